//! What happens while the laboratory runs: a line for every step, and on a terminal one below them that
//! says how long the step goes on and what is left of it.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use linkweir_cli::clock::now;
use linkweir_cli::exit::{say, warn};
use linkweir_lab::Step;

/// How often the line is drawn.
const EVERY: Duration = Duration::from_millis(200);

/// The steps of a run.
#[derive(Debug)]
pub(super) struct Steps {
    begun: Instant,
    is_quiet: bool,
    /// Drawn by a thread of its own: the run is busy.
    clock: Option<ProgressBar>,
}

impl Steps {
    /// Before the first one. A clock appears where standard error is a terminal.
    pub(super) fn start(is_quiet: bool) -> Self {
        let has_clock = !is_quiet && std::io::stderr().is_terminal();
        Self {
            begun: now(),
            is_quiet,
            clock: has_clock
                .then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())),
        }
    }

    /// The next one begins.
    pub(super) fn tell(&self, step: Step<'_>) {
        if self.is_quiet {
            return;
        }
        let Some(clock) = &self.clock else {
            warn(step.what);
            return;
        };
        clock.suspend(|| warn(step.what));
        let begun = now();
        let takes = step.takes;
        let time = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
            // What cannot be drawn is drawn the next time.
            let _drawn = out.write_str(&time(now().duration_since(begun), takes));
        };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {time}") {
            clock.set_style(style.with_key("time", time));
        }
        clock.enable_steady_tick(EVERY);
    }

    /// Takes the clock away.
    pub(super) fn clear(&self) {
        if let Some(clock) = &self.clock {
            clock.finish_and_clear();
        }
    }

    /// Says something at the end.
    pub(super) fn conclude(&self, report: Option<&str>) {
        if self.is_quiet {
            return;
        }
        let took = now().duration_since(self.begun).as_secs_f64();
        let report = report.map_or_else(String::new, |path| format!("; report: {path}"));
        say(&format!("linkweir: took {took:.1} s{report}"));
    }
}

/// `3 s of 20 s, 17 s left`; a step may take longer than its time, for what it started has to end.
fn time(elapsed: Duration, takes: Option<Duration>) -> String {
    let so_far = elapsed.as_secs();
    match takes.map(|takes| (takes.as_secs(), takes.saturating_sub(elapsed))) {
        None => format!("{so_far} s"),
        Some((all, Duration::ZERO)) => format!("{so_far} s, of {all} s: the last of it ends"),
        Some((all, left)) => format!(
            "{so_far} s of {all} s, {} s left",
            left.as_secs_f64().ceil()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_says_what_is_left() {
        let at = |millis| time(Duration::from_millis(millis), Some(Duration::from_secs(20)));
        assert_eq!(at(3_400), "3 s of 20 s, 17 s left");
        assert_eq!(at(21_000), "21 s, of 20 s: the last of it ends");
        assert_eq!(time(Duration::from_secs(7), None), "7 s");
    }
}
