//! The rows: each sink, what its runs cost, and what they must reach.

use super::super::harness::{self, Column, Runs, Target, digits, find, megabytes, print};
use crate::shell::grouped;

/// Records in a second of a core, into Parquet.
const PARQUET_RATE: f64 = 0.6e6;
/// The same with the encoding on a second core, in a second on the clock.
const PARQUET_RATE_ON_TWO: f64 = 1e6;
/// Records in a second of a core as jsonl, with all that comes before them.
const JSONL_RATE: f64 = 1.5e6;
/// Records in a second on the clock, into a broker of this machine.
const KAFKA_RATE: f64 = 3.5e5;
/// What a record may cost more where there are ten times as many.
const GROWTH: f64 = 1.1;

/// A row of the table.
pub(super) type Row = harness::Row<Sink>;

/// Where records go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sink {
    /// Nowhere: what the analysis alone costs.
    Nowhere,
    /// A file, in the format of the row's name.
    File,
    /// A Parquet file, with the core that otherwise speaks to what is measured.
    TwoCores,
    /// A broker on this machine, lz4.
    Broker,
}

const fn row(name: &'static str, how: Sink) -> Row {
    harness::row(name, name, how)
}

pub(super) static ANALYSIS: Row = row("analysis alone", Sink::Nowhere);

/// What Parquet does on two cores; of the whole command alone.
pub(super) static PARQUET_ON_TWO: Row =
    harness::row("parquet-2", "parquet, two cores", Sink::TwoCores);

/// All of them; `text` is the reference.
pub(super) static SINKS: [Row; 7] = [
    row("text", Sink::File),
    row("jsonl", Sink::File),
    row("csv", Sink::File),
    row("zeek", Sink::File),
    row("parquet", Sink::File),
    row("arrow", Sink::File),
    row("kafka", Sink::Broker),
];

/// What a run took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    pub(super) records: u64,
    /// What the records are in the end: a file's length, or that of the broker's log.
    pub(super) bytes: u64,
    /// User and system time.
    pub(super) cpu_s: f64,
    /// What of `cpu_s` is user time, for a sink alone.
    pub(super) user_s: Option<f64>,
    pub(super) wall_s: f64,
    /// Peak resident size; for a sink alone that of the sink.
    pub(super) memory: u64,
}

impl Taken {
    /// CPU time of a record, nanoseconds.
    pub(super) fn ns(&self) -> f64 {
        self.cpu_s * 1e9 / self.records as f64
    }

    /// User time of a record, nanoseconds.
    pub(super) fn user_ns(&self) -> f64 {
        self.user_s.unwrap_or(self.cpu_s) * 1e9 / self.records as f64
    }

    pub(super) fn bytes_per_record(&self) -> f64 {
        self.bytes as f64 / self.records as f64
    }

    pub(super) fn memory(&self) -> f64 {
        self.memory as f64
    }

    fn per_second(&self) -> f64 {
        self.records as f64 / self.wall_s
    }
}

/// The runs of one row.
pub(super) type Series = harness::Series<Sink, Taken>;

/// The records once, and many times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grown {
    pub(super) once: Taken,
    pub(super) often: Taken,
}

/// How many times the user time a record takes where there are many: the ratio of the medians, for the kernel
/// finds user time out by looking now and then.
pub(super) fn user_growth(runs: &Runs<Grown>) -> f64 {
    runs.median(|run| run.often.user_ns()) / runs.median(|run| run.once.user_ns())
}

/// Records in a second of CPU time.
fn per_cpu_second(runs: &Runs<Taken>) -> f64 {
    1e9 / runs.median(Taken::ns)
}

/// Prints the rows.
pub(super) fn table(title: &str, memory: &'static str, all: &[Series]) {
    // A row, and that of text.
    type Cells<'a> = (&'a Series, Option<&'a Series>);
    #[rustfmt::skip]
    let columns: [Column<Cells<'_>>; 11] = [
        ("sink", |(own, _)| own.row.name.to_owned()),
        ("rounds", |(own, _)| own.count().to_string()),
        ("records", |(own, _)| grouped(own.iter().next().map_or(0, |taken| taken.records))),
        ("ns/record", |(own, _)| digits(own.median(Taken::ns), 0)),
        ("least", |(own, _)| digits(own.least(Taken::ns), 0)),
        ("most", |(own, _)| digits(own.most(Taken::ns), 0)),
        ("M/s CPU", |(own, _)| digits(per_cpu_second(own) * 1e-6, 3)),
        ("M/s clock", |(own, _)| digits(own.median(Taken::per_second) * 1e-6, 3)),
        ("x text", |(own, text)| own.cell_of(*text, Taken::ns)),
        ("bytes/record", |(own, _)| match own.row.how {
            Sink::Nowhere => String::new(),
            _ => digits(own.median(Taken::bytes_per_record), 1),
        }),
        (memory, |(own, _)| megabytes(own.most(Taken::memory))),
    ];
    let text = find(all, "text");
    print(title, &columns, all.iter().map(|own| (own, text)));
}

/// Rates: `which` says of what they are.
pub(super) fn rate_targets(which: &str, all: &[Series]) -> Vec<Target> {
    let rate = |what: &str, how: &str, least: f64, rate: f64| {
        Target::new(
            format!(
                "{what}, {which}: at least {} M records/s {how}",
                least * 1e-6
            ),
            format!("{:.3} M/s", rate * 1e-6),
            rate >= least,
        )
    };
    let by_clock = |own: &Series| own.median(Taken::per_second);
    let jsonl = find(all, ANALYSIS.word).and_then(|_| find(all, "jsonl"));
    let all = [
        jsonl.map(|own| rate("jsonl", "per core", JSONL_RATE, per_cpu_second(own))),
        find(all, "parquet")
            .map(|own| rate("parquet", "per core", PARQUET_RATE, per_cpu_second(own))),
        find(all, PARQUET_ON_TWO.word).map(|own| {
            let how = "by the clock, encoded on a second core";
            rate("parquet", how, PARQUET_RATE_ON_TWO, by_clock(own))
        }),
        find(all, "kafka")
            .map(|own| rate("kafka", "into a local broker", KAFKA_RATE, by_clock(own))),
    ];
    all.into_iter().flatten().collect()
}

/// Whether the cost of a record stays with ten times as many.
pub(super) fn growth_target(all: &[harness::Series<Sink, Grown>]) -> Option<Target> {
    let (worst, name) = all
        .iter()
        .map(|own| (user_growth(own), own.row.name))
        .max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(Target::new(
        format!("user time of a record with ten times the records: at most {GROWTH} x"),
        format!("{worst:.2} x ({name})"),
        worst <= GROWTH,
    ))
}

#[cfg(test)]
mod tests {
    use super::super::super::harness::reached;
    use super::*;

    /// A run of 1000 records with so many nanoseconds and bytes each; the clock shows twice that.
    fn taken(ns: f64, bytes: u64) -> Taken {
        Taken {
            records: 1000,
            bytes: bytes * 1000,
            cpu_s: ns * 1e-6,
            user_s: None,
            wall_s: ns * 2e-6,
            memory: 7,
        }
    }

    fn named(name: &str) -> &'static Row {
        SINKS.iter().find(|row| row.name == name).unwrap()
    }

    fn series(name: &str, ns: &[f64], bytes: u64) -> Series {
        Series {
            row: named(name),
            runs: ns.iter().map(|ns| Some(taken(*ns, bytes))).collect(),
        }
    }

    #[test]
    fn figures_are_medians_of_rounds() {
        let text = series("text", &[100.0, 200.0, 300.0], 50);
        let parquet = series("parquet", &[400.0, 800.0, 3000.0], 25);
        assert!((parquet.median(Taken::ns) - 800.0).abs() < 1e-6);
        assert!((per_cpu_second(&parquet) - 1.25e6).abs() < 1.0);
        assert!((parquet.median(Taken::per_second) - 0.625e6).abs() < 1.0);
        assert!((parquet.ratio(&[&text], Taken::ns) - 4.0).abs() < 1e-9);
        assert!((parquet.median(Taken::bytes_per_record) - 25.0).abs() < 1e-9);
        assert!((parquet.most(Taken::memory) - 7.0).abs() < 1e-9);
    }

    #[test]
    fn rates_are_met_or_missed() {
        let targets = |parquet, kafka| {
            let all = [
                series("parquet", &[parquet], 1),
                series("kafka", &[kafka], 1),
            ];
            reached(&rate_targets("alone", &all))
        };
        // By CPU time, and by the clock.
        assert_eq!(targets(900.0, 1400.0), [true, true]);
        assert_eq!(targets(1700.0, 1500.0), [false, false]);
        assert!(rate_targets("alone", &[series("text", &[1.0], 1)]).is_empty());
        // What only the whole command is to reach.
        assert!(rate_targets("alone", &[series("jsonl", &[1.0], 1)]).is_empty());
        let of = |row: &'static Row, ns| Series {
            row,
            runs: [Some(taken(ns, 1))].into_iter().collect(),
        };
        let whole = |jsonl, parquet| {
            let all = [
                of(&ANALYSIS, 1.0),
                of(named("jsonl"), jsonl),
                of(&PARQUET_ON_TWO, parquet),
            ];
            reached(&rate_targets("whole", &all))
        };
        assert_eq!(whole(660.0, 490.0), [true, true]);
        assert_eq!(whole(670.0, 510.0), [false, false]);
    }

    #[test]
    fn the_worst_growth_counts() {
        let grown = |name, often| harness::Series {
            row: named(name),
            runs: [Some(Grown {
                once: taken(100.0, 1),
                often: taken(often, 1),
            })]
            .into_iter()
            .collect(),
        };
        let target = growth_target(&[grown("text", 90.0), grown("parquet", 111.0)]).unwrap();
        assert!(
            !target.is_reached && target.figure.contains("parquet"),
            "{}",
            target.figure
        );
        assert!(growth_target(&[grown("text", 109.0)]).unwrap().is_reached);
    }
}
