//! The highest rate without a drop, and what the readers make of it.

use super::super::bars::Bar;
use super::super::measure::median;
use super::readers::{Reader, Readers, Received};
use super::sender::{Sender, Sent, Span};
use crate::shell::{grouped, print_table};
use anyhow::Result;
use std::path::Path;

/// The rate of the promise about the CPU, packets per second.
const PROMISED_RATE: f64 = 1e6;
/// What the analysing thread may take of a core at that rate.
const PROMISED_CORE: f64 = 0.5;
/// Runs at a rate that must all be without a drop.
const PROOFS: usize = 3;
/// Halvings of the search, where the full speed of the sender is too much.
const STEPS: usize = 6;

/// The runs of one reader at one rate.
#[derive(Debug)]
struct Series {
    reader: Reader,
    runs: Vec<(Sent, Received)>,
}

impl Series {
    fn sum(&self, part: impl Fn(&(Sent, Received)) -> u64) -> u64 {
        self.runs.iter().map(part).sum()
    }

    fn median(&self, part: impl Fn(&(Sent, Received)) -> f64) -> f64 {
        median(&self.runs.iter().map(part).collect::<Vec<_>>())
    }

    /// Part of a core that a thread took.
    fn core(&self, part: fn(&Received) -> f64) -> f64 {
        self.median(|(sent, received)| part(received) / sent.seconds)
    }

    /// The same for so many packets per second, by CPU time per packet that was received.
    fn core_at(&self, rate: f64) -> f64 {
        self.median(|(_, received)| received.thread_s / received.packets as f64 * rate)
    }

    fn row(&self) -> Vec<String> {
        let sent = self.sum(|(sent, _)| sent.packets);
        let received = self.sum(|(_, received)| received.packets);
        let dropped = self.sum(|(_, received)| received.dropped);
        vec![
            self.reader.name().to_owned(),
            self.runs.len().to_string(),
            format!("{:.3}", self.median(|(sent, _)| sent.rate() * 1e-6)),
            format!(
                "{:.2}",
                self.median(|(sent, _)| sent.bytes as f64 * 8e-9 / sent.seconds)
            ),
            grouped(sent),
            grouped(received),
            grouped(dropped),
            format!(
                "{:.2} %",
                100.0 * (sent - received.min(sent)) as f64 / sent as f64
            ),
            format!("{:.1} %", 100.0 * self.core(|received| received.thread_s)),
            format!("{:.1} %", 100.0 * self.core(|received| received.all_s)),
            format!("{:.1} %", 100.0 * self.core_at(PROMISED_RATE)),
            format!(
                "{:.0} ms",
                1e3 * self.median(|(_, received)| received.waited_s)
            ),
        ]
    }
}

/// What is measured and for how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Speed<'a> {
    pub(super) sender: &'a Sender<'a>,
    pub(super) readers: &'a Readers<'a>,
    pub(super) runs: usize,
    pub(super) seconds: f64,
}

impl Speed<'_> {
    /// Measures all readers on a capture; prints the table and gives the bars.
    pub(super) fn of(&self, title: &str, capture: &Path, readers: &[Reader]) -> Result<Vec<Bar>> {
        let (rate, limit) = self.search(capture)?;
        let limit_mpps = limit * 1e-6;
        match rate {
            None => println!(
                "\n[{title}] the empty reader takes all that the sender sends, {limit_mpps:.3} Mpps, in {PROOFS} runs"
            ),
            Some(_) => println!(
                "\n[{title}] the empty reader takes {limit_mpps:.3} Mpps without a drop in {PROOFS} runs, and not more"
            ),
        }
        let readers: Vec<Reader> = readers
            .iter()
            .copied()
            .filter(|reader| self.readers.path(*reader).is_some())
            .collect();
        let highest = self.rounds(capture, &readers, rate)?;
        let mut table = vec![HEADER.map(str::to_owned).to_vec()];
        table.extend(highest.iter().map(Series::row));
        let promised = if limit > PROMISED_RATE {
            let series = self.rounds(capture, &readers, Some(PROMISED_RATE))?;
            table.push(vec!["[at 1 Mpps]".to_owned()]);
            table.extend(series.iter().map(Series::row));
            Some(series)
        } else {
            None
        };
        print_table(&table);
        println!(
            "lost: not analysed when the traffic ended; thread, all: part of a core that the busiest thread and all took; 1 Mpps: that thread for 1 Mpps, by CPU time per packet; waited: it was kept from its core"
        );
        Ok(bars(title, &highest, promised.as_deref()))
    }

    /// The highest rate that the empty reader takes without a drop: as the sender is told (nothing:
    /// as fast as it can) and in packets per second.
    fn search(&self, capture: &Path) -> Result<(Option<f64>, f64)> {
        if let Some(reached) = self.is_clean(capture, None)? {
            return Ok((None, reached));
        }
        let (full, _) = self.run(capture, Reader::Empty, None)?;
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
        let mut rates = Vec::new();
        for _ in 0..PROOFS {
            let (sent, received) = self.run(capture, Reader::Empty, rate)?;
            if received.dropped > 0 || received.packets < sent.packets {
                return Ok(None);
            }
            rates.push(sent.rate());
        }
        Ok(Some(median(&rates)))
    }

    fn run(&self, capture: &Path, reader: Reader, rate: Option<f64>) -> Result<(Sent, Received)> {
        let send = || self.sender.send(capture, Span::Seconds(self.seconds), rate);
        self.readers.during(reader, send)
    }

    /// All readers take turns.
    fn rounds(&self, capture: &Path, readers: &[Reader], rate: Option<f64>) -> Result<Vec<Series>> {
        let mut all: Vec<Series> = readers
            .iter()
            .map(|reader| Series {
                reader: *reader,
                runs: Vec::new(),
            })
            .collect();
        for round in 0..self.runs {
            for series in &mut all {
                super::super::progress(&format!("round {}: {}", round + 1, series.reader.name()));
                series.runs.push(self.run(capture, series.reader, rate)?);
            }
        }
        super::super::progress("");
        Ok(all)
    }
}

const HEADER: [&str; 12] = [
    "reader", "runs", "Mpps", "Gb/s", "sent", "received", "dropped", "lost", "thread", "all",
    "1 Mpps", "waited",
];

fn bars(title: &str, highest: &[Series], promised: Option<&[Series]>) -> Vec<Bar> {
    let linkweir = |series: &'_ [Series]| {
        series
            .iter()
            .position(|series| series.reader == Reader::Linkweir)
    };
    let Some(own) = linkweir(highest).and_then(|at| highest.get(at)) else {
        return Vec::new();
    };
    let lost = own.sum(|(sent, received)| sent.packets.saturating_sub(received.packets));
    let rate = own.median(|(sent, _)| sent.rate());
    let mut bars = vec![Bar {
        what: format!("{title}: no drop at the highest rate of the empty reader"),
        figure: format!(
            "{} of {} packets lost at {:.3} Mpps",
            grouped(lost),
            grouped(own.sum(|(sent, _)| sent.packets)),
            rate * 1e-6
        ),
        passed: lost == 0 && own.sum(|(_, received)| received.dropped) == 0,
    }];
    let at_rate = promised.and_then(|all| linkweir(all).and_then(|at| all.get(at)));
    let (core, how) = match at_rate {
        Some(series) => (series.core(|received| received.thread_s), String::new()),
        None => (
            own.core_at(PROMISED_RATE),
            format!(
                " by CPU time per packet; the sender reaches {:.3} Mpps, where it is {:.1} %",
                rate * 1e-6,
                100.0 * own.core(|received| received.thread_s)
            ),
        ),
    };
    bars.push(Bar {
        what: format!("{title}: analysing thread under 50 % of a core at 1 Mpps"),
        figure: format!("{:.1} %{how}", core * 100.0),
        passed: core < PROMISED_CORE,
    });
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(reader: Reader, sent: u64, received: u64, thread_s: f64) -> Series {
        let run = (
            Sent {
                packets: sent,
                bytes: sent * 100,
                seconds: 2.0,
            },
            Received {
                packets: received,
                dropped: sent - received,
                thread_s,
                waited_s: 0.0,
                all_s: thread_s,
            },
        );
        Series {
            reader,
            runs: vec![run, run, run],
        }
    }

    #[test]
    fn what_could_not_be_sent_is_scaled() {
        // 0.6 s of CPU time for a million packets in two seconds.
        let own = [series(Reader::Linkweir, 1_000_000, 1_000_000, 0.6)];
        let bars = bars("mix", &own, None);
        assert!(bars[0].passed);
        assert!(!bars[1].passed, "{}", bars[1].figure);
        assert!(bars[1].figure.starts_with("60.0 %"));
        assert!(bars[1].figure.contains("where it is 30.0 %"));
    }

    #[test]
    fn a_single_lost_packet_is_a_miss() {
        let own = [series(Reader::Linkweir, 1_000_000, 999_999, 0.1)];
        assert!(!bars("mix", &own, None)[0].passed);
        assert!(bars("mix", &[series(Reader::Empty, 1, 1, 0.1)], None).is_empty());
    }
}
