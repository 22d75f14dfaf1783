//! The highest rate without a drop, and what the readers make of it.

use super::super::harness::{self, Column, Row, Runs, Target, cells, digits, find, print_cells};
use super::readers::{EMPTY, Listens, Readers, Received, WATCHED};
use super::sender::{Sender, Sent, Span};
use crate::shell::grouped;
use anyhow::Result;
use std::path::Path;

/// The rate of the promise about the CPU, packets per second.
const PROMISED_RATE: f64 = 1e6;
/// What the analysis may take of a core at that rate, beside what the kernel takes to receive.
const PROMISED_CORE: f64 = 0.5;
/// The part of the empty reader's highest rate at which nothing may be lost for so many seconds, with records
/// written and the page open.
const LASTING_PART: f64 = 0.95;
const LASTING_SECONDS: f64 = 60.0;
/// Runs at a rate that must all be without a drop.
const PROOFS: usize = 3;
/// Halvings of the search, where the full speed of the sender is too much.
const STEPS: usize = 6;

/// One run of a reader.
#[derive(Debug, Clone, Copy)]
struct Run {
    sent: Sent,
    received: Received,
}

impl Run {
    /// Part of a core that the busiest thread took, and all.
    fn core(&self) -> f64 {
        self.received.thread_s / self.sent.seconds
    }

    fn cores(&self) -> f64 {
        self.received.all_s / self.sent.seconds
    }

    /// Part of the core that programs took, without what the kernel received in interrupts.
    fn own(&self) -> f64 {
        self.received.core_s / self.sent.seconds
    }

    /// The same at the rate of the promise, by CPU time per packet that was received.
    fn own_as_promised(&self) -> f64 {
        self.received.core_s / self.received.packets as f64 * PROMISED_RATE
    }

    fn rate(&self) -> f64 {
        self.sent.rate()
    }
}

/// The runs of one reader at one rate.
type Series = harness::Series<Listens, Run>;

fn sent(own: &Runs<Run>) -> u64 {
    own.sum(|run| run.sent.packets)
}

fn received(own: &Runs<Run>) -> u64 {
    own.sum(|run| run.received.packets)
}

fn dropped(own: &Runs<Run>) -> u64 {
    own.sum(|run| run.received.dropped)
}

#[rustfmt::skip]
const COLUMNS: [Column<Series>; 13] = [
    ("reader", |own| own.row.name.to_owned()),
    ("runs", |own| own.count().to_string()),
    ("Mpps", |own| digits(own.median(Run::rate) * 1e-6, 3)),
    ("Gb/s", |own| digits(own.median(|run| run.sent.bytes as f64 * 8e-9 / run.sent.seconds), 2)),
    ("sent", |own| grouped(sent(own))),
    ("received", |own| grouped(received(own))),
    ("dropped", |own| grouped(dropped(own))),
    ("lost", |own| {
        let lost = sent(own).saturating_sub(received(own));
        format!("{:.2} %", 100.0 * lost as f64 / sent(own) as f64)
    }),
    ("thread", |own| format!("{:.1} %", 100.0 * own.median(Run::core))),
    ("all", |own| format!("{:.1} %", 100.0 * own.median(Run::cores))),
    ("own", |own| format!("{:.1} %", 100.0 * own.median(Run::own))),
    ("1 Mpps", |own| format!("{:.1} %", 100.0 * own.median(Run::own_as_promised))),
    ("waited", |own| format!("{:.0} ms", 1e3 * own.median(|run| run.received.waited_s))),
];

/// What is measured and for how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Speed<'a> {
    pub(super) sender: &'a Sender<'a>,
    pub(super) readers: &'a Readers<'a>,
    pub(super) runs: usize,
    pub(super) seconds: f64,
}

impl Speed<'_> {
    /// Measures all readers on a capture; prints the table and gives the targets.
    pub(super) fn of(
        &self,
        title: &str,
        capture: &Path,
        readers: &[&'static Row<Listens>],
    ) -> Result<Vec<Target>> {
        let (rate, limit) = self.search(capture)?;
        let limit_mpps = limit * 1e-6;
        let title_of_table = match rate {
            None => format!(
                "[{title}] the empty reader takes all that the sender sends, {limit_mpps:.3} Mpps, in {PROOFS} runs"
            ),
            Some(_) => format!(
                "[{title}] the empty reader takes {limit_mpps:.3} Mpps without a drop in {PROOFS} runs, and not more"
            ),
        };
        let highest = self.rounds(capture, readers, rate)?;
        let promised = if limit > PROMISED_RATE {
            self.rounds(capture, readers, Some(PROMISED_RATE))?
        } else {
            Vec::new()
        };
        let lasting = self.lasting(capture, LASTING_PART * limit)?;
        let rows = |all: &[Series]| -> Vec<Vec<String>> {
            all.iter().map(|own| cells(&COLUMNS, own)).collect()
        };
        let mut table = rows(&highest);
        if !promised.is_empty() {
            table.push(vec!["[at 1 Mpps]".to_owned()]);
            table.extend(rows(&promised));
        }
        table.push(vec![format!(
            "[at {LASTING_PART} of the highest rate, {LASTING_SECONDS} s]"
        )]);
        table.extend(rows(&lasting));
        print_cells(&title_of_table, &COLUMNS, table);
        println!(
            "lost: not analysed when the traffic ended; thread, all: part of a core that the busiest thread and all took, with the interrupts that stopped them; own: what programs took of the core, without interrupts; 1 Mpps: the same for 1 Mpps, by CPU time per packet; waited: it was kept from its core"
        );
        Ok(targets(title, &highest, &promised, &lasting))
    }

    /// One long run with records and the page, beside one of the empty reader: what the machine alone loses meanwhile.
    fn lasting(&self, capture: &Path, rate: f64) -> Result<Vec<Series>> {
        let long = Self {
            runs: 1,
            seconds: LASTING_SECONDS,
            ..*self
        };
        long.rounds(capture, &[&EMPTY, &WATCHED], Some(rate))
    }

    /// The highest rate that the empty reader takes without a drop: as the sender is told (nothing:
    /// as fast as it can) and in packets per second.
    fn search(&self, capture: &Path) -> Result<(Option<f64>, f64)> {
        if let Some(reached) = self.is_clean(capture, None)? {
            return Ok((None, reached));
        }
        let full = self.run(capture, &EMPTY, None)?;
        let (mut good, mut bad) = (0.0, full.rate());
        for _ in 0..STEPS {
            let middle = f64::midpoint(good, bad);
            if self.is_clean(capture, Some(middle))?.is_some() {
                good = middle;
            } else {
                bad = middle;
            }
        }
        anyhow::ensure!(good > 0.0, "the empty reader drops at every rate");
        Ok((Some(good), good))
    }

    /// The median rate of runs without a drop; nothing if one had a drop.
    fn is_clean(&self, capture: &Path, rate: Option<f64>) -> Result<Option<f64>> {
        let mut runs = Vec::new();
        for _ in 0..PROOFS {
            let run = self.run(capture, &EMPTY, rate)?;
            if run.received.dropped > 0 || run.received.packets < run.sent.packets {
                return Ok(None);
            }
            runs.push(Some(run));
        }
        let runs: Runs<Run> = runs.into_iter().collect();
        Ok(Some(runs.median(Run::rate)))
    }

    fn run(&self, capture: &Path, reader: &Row<Listens>, rate: Option<f64>) -> Result<Run> {
        let send = || self.sender.send(capture, Span::Seconds(self.seconds), rate);
        let (sent, received) = self.readers.during(reader, send)?;
        Ok(Run { sent, received })
    }

    /// All readers that are installed take turns.
    fn rounds(
        &self,
        capture: &Path,
        readers: &[&'static Row<Listens>],
        rate: Option<f64>,
    ) -> Result<Vec<Series>> {
        let rows = readers.iter().copied();
        let rows = rows.filter(|row| self.readers.path(row).is_some());
        harness::rounds("readers", rows, self.runs, |_, row, _| {
            self.run(capture, row, rate).map(Some)
        })
    }
}

/// That a reader loses nothing.
fn no_drop(what: String, own: &Series) -> Target {
    let lost = own.sum(|run| run.sent.packets.saturating_sub(run.received.packets));
    Target::new(
        what,
        format!(
            "{} of {} packets lost at {:.3} Mpps",
            grouped(lost),
            grouped(sent(own)),
            own.median(Run::rate) * 1e-6
        ),
        lost == 0 && dropped(own) == 0,
    )
}

fn targets(
    title: &str,
    highest: &[Series],
    promised: &[Series],
    lasting: &[Series],
) -> Vec<Target> {
    let Some(own) = find(highest, "linkweir") else {
        return Vec::new();
    };
    let rate = own.median(Run::rate);
    let (core, how) = match find(promised, "linkweir") {
        Some(series) => (series.median(Run::own), String::new()),
        None => (
            own.median(Run::own_as_promised),
            format!(
                " by CPU time per packet; the sender reaches {:.3} Mpps, where it is {:.1} %",
                rate * 1e-6,
                100.0 * own.median(Run::own)
            ),
        ),
    };
    let long = find(lasting, "watched").map(|own| {
        let what = format!(
            "{title}: no drop at {LASTING_PART} of that rate for {LASTING_SECONDS} s, its page open"
        );
        no_drop(what, own)
    });
    let mut targets = vec![
        no_drop(
            format!("{title}: no drop at the highest rate of the empty reader"),
            own,
        ),
        Target::new(
            format!(
                "{title}: analysis under 50 % of a core at 1 Mpps, beside the kernel's interrupts"
            ),
            format!("{:.1} %{how}", core * 100.0),
            core < PROMISED_CORE,
        ),
    ];
    targets.extend(long);
    targets
}

#[cfg(test)]
mod tests {
    use super::super::readers::LINKWEIR;
    use super::*;

    fn series(row: &'static Row<Listens>, sent: u64, received: u64, thread_s: f64) -> [Series; 1] {
        let run = Run {
            sent: Sent {
                packets: sent,
                bytes: sent * 100,
                seconds: 2.0,
            },
            received: Received {
                packets: received,
                dropped: sent - received,
                thread_s,
                waited_s: 0.0,
                all_s: thread_s,
                core_s: thread_s,
            },
        };
        [Series {
            row,
            runs: [Some(run); 3].into_iter().collect(),
        }]
    }

    #[test]
    fn what_could_not_be_sent_is_scaled() {
        // 0.6 s of CPU time for a million packets in two seconds.
        let own = series(&LINKWEIR, 1_000_000, 1_000_000, 0.6);
        let targets = targets("mix", &own, &[], &[]);
        assert!(targets[0].is_reached);
        assert!(!targets[1].is_reached, "{}", targets[1].figure);
        assert!(targets[1].figure.starts_with("60.0 %"));
        assert!(targets[1].figure.contains("where it is 30.0 %"));
    }

    #[test]
    fn a_single_lost_packet_is_a_miss() {
        let own = series(&LINKWEIR, 1_000_000, 999_999, 0.1);
        let lasting = series(&WATCHED, 1_000_000, 999_999, 0.1);
        let targets = targets("mix", &own, &[], &lasting);
        assert_eq!(harness::reached(&targets), [false, true, false]);
    }

    #[test]
    fn what_was_not_run_has_no_target() {
        assert!(targets("mix", &series(&EMPTY, 1, 1, 0.1), &[], &[]).is_empty());
    }
}
