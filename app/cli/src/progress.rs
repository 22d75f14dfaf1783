//! A progress bar on a terminal, and a line on request.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use linkweir_engine::{Progress, RunReport};

use crate::exit::say;

/// How often the clock's answer is used.
const EVERY: Duration = Duration::from_millis(100);
/// Nothing is shown for runs shorter than this.
const QUIET: Duration = Duration::from_millis(700);

/// Shows how far a run has come.
#[derive(Debug)]
pub(crate) struct Meter {
    started: Instant,
    shown: Instant,
    bar: Option<ProgressBar>,
    wanted: bool,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the binary is where the clock is asked"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Nanoseconds since the epoch.
#[expect(
    clippy::disallowed_methods,
    reason = "the binary is where the clock is asked"
)]
pub(crate) fn wall_clock() -> u64 {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

impl Meter {
    /// Starts the clock. A bar appears where standard error is a terminal, unless `quiet`: nobody wants it,
    /// or something else is on the screen.
    pub(crate) fn start(quiet: bool) -> Self {
        let started = now();
        let wanted = !quiet && std::io::stderr().is_terminal();
        Self {
            started,
            shown: started,
            bar: None,
            wanted,
        }
    }

    /// Time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        now().duration_since(self.started)
    }

    /// Called between batches; whether a tenth of a second has passed since it last said so.
    pub(crate) fn tick(&mut self, report: &RunReport, progress: Progress) -> bool {
        let time = now();
        if time.duration_since(self.shown) < EVERY {
            return false;
        }
        self.shown = time;
        if self.wanted && time.duration_since(self.started) > QUIET {
            let bar = self
                .bar
                .get_or_insert_with(|| new_bar(progress.total_bytes));
            bar.set_position(if progress == Progress::default() {
                report.bytes
            } else {
                progress.consumed_bytes
            });
            let lost = report.drops.kernel + report.drops.ring;
            let mut message = rate(report, time.duration_since(self.started));
            if lost > 0 {
                message = format!("{lost} packets LOST, {message}");
            }
            bar.set_message(message);
        }
        true
    }

    /// One line about the run so far.
    pub(crate) fn say(&self, report: &RunReport, progress: Progress) {
        let of = progress
            .total_bytes
            .map_or_else(String::new, |total| format!(" of {total}"));
        say(&format!(
            "linkweir: {} packets, {}{of} bytes, {} records, {}",
            report.packets,
            if progress == Progress::default() {
                report.bytes
            } else {
                progress.consumed_bytes
            },
            report.records,
            rate(report, self.elapsed())
        ));
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
fn rate(report: &RunReport, elapsed: Duration) -> String {
    let per_second = report.packets as f64 / elapsed.as_secs_f64().max(1e-9);
    format!("{:.2} Mpackets/s", per_second / 1e6)
}

fn new_bar(total: Option<u64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    let template = if total.is_some() {
        "{wide_bar} {decimal_bytes}/{decimal_total_bytes}  {msg}  {eta} left"
    } else {
        "{spinner} {decimal_bytes}  {msg}  {elapsed}"
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
