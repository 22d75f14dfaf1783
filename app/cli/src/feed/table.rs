//! The table of consumers: on a terminal redrawn once a second, and at the end.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use linkweir_engine::RunReport;
use linkweir_feed::{ConsumerStatus, Presence};
use linkweir_record::human::{counted, percent, scaled, thousands};

use crate::clock::now;
use crate::exit::say;

/// How often it is drawn.
const EVERY: Duration = Duration::from_secs(1);
/// Rows of a table that is redrawn, at most.
const MOST_ROWS: usize = 32;

/// Draws the table over itself.
#[derive(Debug)]
pub(crate) struct Table {
    wanted: bool,
    drawn_at: Instant,
    packets_then: u64,
    lines: usize,
}

impl Table {
    /// A table that shows itself where standard error is a terminal, unless `quiet`.
    pub(crate) fn new(quiet: bool) -> Self {
        Self {
            wanted: !quiet && std::io::stderr().is_terminal(),
            drawn_at: now(),
            packets_then: 0,
            lines: 0,
        }
    }

    /// Whether a second has passed.
    pub(crate) fn is_due(&self) -> bool {
        self.wanted && now().duration_since(self.drawn_at) >= EVERY
    }

    /// Draws it where it was drawn before.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a rate is shown with three digits"
    )]
    pub(crate) fn draw(&mut self, status: &[ConsumerStatus], report: &RunReport) {
        let time = now();
        let seconds = time.duration_since(self.drawn_at).as_secs_f64().max(1e-9);
        let rate = (report.packets - self.packets_then) as f64 / seconds;
        self.clear();
        let mut lines = rows(status, true);
        lines.truncate(MOST_ROWS);
        lines.push(format!(
            "{} read, {}/s; lost before the feed: {}",
            counted(report.packets, "packet"),
            scaled(rate, ""),
            thousands(report.drops.kernel + report.drops.unusable_records)
        ));
        self.lines = lines.len();
        say(&lines.join("\n"));
        self.drawn_at = time;
        self.packets_then = report.packets;
    }

    /// Takes it away.
    pub(crate) fn clear(&mut self) {
        if self.lines > 0 {
            // Up to its first line, and everything from there on erased.
            let up = std::mem::take(&mut self.lines);
            say(&format!("\x1b[{up}F\x1b[J\x1b[1A"));
        }
    }

    /// Prints it once.
    pub(crate) fn say(&mut self, status: &[ConsumerStatus], report: &RunReport) {
        self.clear();
        say(&format!(
            "linkweir: {} read\n{}",
            counted(report.packets, "packet"),
            rows(status, true).join("\n")
        ));
    }
}

/// One line a consumer, under a line of names; with the queues where it still runs.
pub(crate) fn rows(status: &[ConsumerStatus], is_running: bool) -> Vec<String> {
    let all: u64 = status.iter().map(|c| c.packets + c.dropped).sum();
    let mut head = format!(
        "{:>8}  {:>15}  {:>8}  {:>15}",
        "consumer", "packets", "share", "dropped"
    );
    if is_running {
        head.push_str("             queued  state");
    } else {
        head.push_str("  killed  unwritten");
    }
    let row = |(number, consumer): (usize, &ConsumerStatus)| {
        let share = percent(consumer.packets + consumer.dropped, all);
        let mut line = format!(
            "{number:>8}  {:>15}  {share:>8}  {:>15}",
            thousands(consumer.packets),
            thousands(consumer.dropped),
        );
        if is_running {
            let queued = format!(
                "{} {}",
                thousands(consumer.queued_bytes),
                percent(consumer.queued_bytes, consumer.ring_bytes)
            );
            let state = match consumer.presence {
                Presence::NotYet => "not there yet".to_owned(),
                Presence::Attached => format!("process {}", consumer.pid),
                Presence::Left => "left".to_owned(),
            };
            line.push_str(&format!("  {queued:>18}  {state}"));
        } else {
            let unwritten = thousands(consumer.unwritten_by_killed);
            line.push_str(&format!("  {:>6}  {unwritten:>9}", consumer.killed));
        }
        line
    };
    std::iter::once(head)
        .chain(status.iter().enumerate().map(row))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_count_what_was_dropped() {
        let consumer = |packets, dropped| ConsumerStatus {
            presence: Presence::Attached,
            pid: 7,
            packets,
            bytes: 0,
            dropped,
            queued_packets: 0,
            queued_bytes: 512,
            ring_bytes: 1024,
            attached: 1,
            killed: 0,
            taken_by_killed: 0,
            unwritten_by_killed: 0,
        };
        let status = [consumer(1000, 2000), consumer(1000, 0)];
        let lines = rows(&status, true);
        assert_eq!(lines.len(), 3);
        assert!(
            lines[1].contains("75") && lines[2].contains("25"),
            "{lines:?}"
        );
        assert!(lines[1].ends_with("process 7") && lines[1].contains("512 50"));
        assert!(rows(&status, false)[0].ends_with("killed  unwritten"));
    }
}
