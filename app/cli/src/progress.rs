//! A progress bar on a terminal, and a line on request.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use linkweir_engine::{Progress, RunReport};
use linkweir_record::human::{counted, thousands};

use crate::clock::now;
use crate::exit::say;
use crate::passive::totals::rate;

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
            let mut message = rate(
                report.packets,
                "packets/s",
                time.duration_since(self.started),
            );
            if lost > 0 {
                message = format!("{} LOST, {message}", counted(lost, "packet"));
            }
            bar.set_message(message);
        }
        true
    }

    /// One line about the run so far.
    pub(crate) fn say(&self, report: &RunReport, progress: Progress) {
        let of = progress
            .total_bytes
            .map_or_else(String::new, |total| format!(" of {}", thousands(total)));
        let bytes = if progress == Progress::default() {
            report.bytes
        } else {
            progress.consumed_bytes
        };
        say(&format!(
            "linkweir: {}, {}{of} bytes, {}, {}",
            counted(report.packets, "packet"),
            thousands(bytes),
            counted(report.records, "record"),
            rate(report.packets, "packets/s", self.elapsed())
        ));
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
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
