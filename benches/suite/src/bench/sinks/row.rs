//! The rows: each sink, and what its runs cost.

use super::super::measure::median;
use crate::shell::{grouped, print_table};

/// Where records go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    /// Nowhere: what the analysis alone costs.
    Analysis,
    /// The reference.
    Text,
    Jsonl,
    Csv,
    Zeek,
    Parquet,
    Arrow,
    /// A broker on this machine, lz4.
    Kafka,
}

impl Row {
    pub(super) const SINKS: [Self; 7] = [
        Self::Text,
        Self::Jsonl,
        Self::Csv,
        Self::Zeek,
        Self::Parquet,
        Self::Arrow,
        Self::Kafka,
    ];

    /// The name of its format, and in the table.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Analysis => "analysis alone",
            Self::Text => "text",
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Zeek => "zeek",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
            Self::Kafka => "kafka",
        }
    }

    pub(super) fn of(name: &str) -> Option<Self> {
        Self::SINKS.into_iter().find(|row| row.name() == name)
    }
}

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
    fn ns(&self) -> f64 {
        self.cpu_s * 1e9 / self.records as f64
    }

    fn user_ns(&self) -> f64 {
        self.user_s.unwrap_or(self.cpu_s) * 1e9 / self.records as f64
    }
}

/// The runs of one row.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) row: Row,
    pub(super) runs: Vec<Taken>,
}

impl Series {
    pub(super) const fn new(row: Row) -> Self {
        Self {
            row,
            runs: Vec::new(),
        }
    }

    fn median(&self, part: impl Fn(&Taken) -> f64) -> f64 {
        median(&self.runs.iter().map(part).collect::<Vec<_>>())
    }

    /// CPU time of a record, nanoseconds.
    pub(super) fn ns(&self) -> f64 {
        self.median(Taken::ns)
    }

    /// Records in a second of CPU time.
    pub(super) fn per_cpu_second(&self) -> f64 {
        1e9 / self.ns()
    }

    /// Records in a second on the clock.
    pub(super) fn per_second(&self) -> f64 {
        self.median(|taken| taken.records as f64 / taken.wall_s)
    }

    pub(super) fn bytes_per_record(&self) -> f64 {
        self.median(|taken| taken.bytes as f64 / taken.records as f64)
    }

    /// The most memory of a run, bytes.
    pub(super) fn memory(&self) -> u64 {
        self.runs
            .iter()
            .map(|taken| taken.memory)
            .max()
            .unwrap_or(0)
    }

    /// How many times the CPU time of `other` a record takes: the median of the ratios of each round.
    pub(super) fn cost_over(&self, other: &Self) -> f64 {
        let rounds = self.runs.iter().zip(&other.runs);
        median(
            &rounds
                .map(|(own, its)| own.ns() / its.ns())
                .collect::<Vec<_>>(),
        )
    }

    /// User time of a record, nanoseconds.
    pub(super) fn user_ns(&self) -> f64 {
        self.median(Taken::user_ns)
    }

    /// How many times the user time of `other` a record takes: the ratio of the medians, for the kernel
    /// finds user time out by looking now and then.
    pub(super) fn user_over(&self, other: &Self) -> f64 {
        self.user_ns() / other.user_ns()
    }

    /// The least and the most CPU time of a record in a round.
    fn spread(&self) -> (f64, f64) {
        let all = self.runs.iter().map(Taken::ns);
        all.fold((f64::INFINITY, 0.0), |(least, most), ns| {
            (ns.min(least), ns.max(most))
        })
    }
}

/// Prints the rows.
pub(super) fn table(title: &str, memory: &str, all: &[Series]) {
    println!("\n{title}");
    let header = [
        "sink",
        "rounds",
        "records",
        "ns/record",
        "least",
        "most",
        "M/s CPU",
        "M/s clock",
        "x text",
        "bytes/record",
        memory,
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let text = all.iter().find(|series| series.row == Row::Text);
    for series in all {
        let (least, most) = series.spread();
        let has_bytes = series.row != Row::Analysis;
        rows.push(vec![
            series.row.name().to_owned(),
            series.runs.len().to_string(),
            grouped(series.runs.first().map_or(0, |taken| taken.records)),
            format!("{:.0}", series.ns()),
            format!("{least:.0}"),
            format!("{most:.0}"),
            format!("{:.3}", series.per_cpu_second() * 1e-6),
            format!("{:.3}", series.per_second() * 1e-6),
            text.map_or_else(String::new, |text| format!("{:.2}", series.cost_over(text))),
            if has_bytes {
                format!("{:.1}", series.bytes_per_record())
            } else {
                String::new()
            },
            format!("{:.1}", series.memory() as f64 * 1e-6),
        ]);
    }
    print_table(&rows);
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A series of runs of 1000 records with so many nanoseconds and bytes each.
    pub(in super::super) fn series(row: Row, ns: &[f64], bytes: u64) -> Series {
        let run = |ns: &f64| Taken {
            records: 1000,
            bytes: bytes * 1000,
            cpu_s: ns * 1e-6,
            user_s: None,
            wall_s: ns * 2e-6,
            memory: 7,
        };
        Series {
            row,
            runs: ns.iter().map(run).collect(),
        }
    }

    #[test]
    fn figures_are_medians_of_rounds() {
        let text = series(Row::Text, &[100.0, 200.0, 300.0], 50);
        let parquet = series(Row::Parquet, &[400.0, 800.0, 3000.0], 25);
        assert!((parquet.ns() - 800.0).abs() < 1e-6);
        assert!((parquet.per_cpu_second() - 1.25e6).abs() < 1.0);
        assert!((parquet.per_second() - 0.625e6).abs() < 1.0);
        assert!((parquet.cost_over(&text) - 4.0).abs() < 1e-9);
        assert!((parquet.bytes_per_record() - 25.0).abs() < 1e-9);
        assert_eq!(parquet.memory(), 7);
    }

    #[test]
    fn every_sink_is_found_by_its_name() {
        for row in Row::SINKS {
            assert_eq!(Row::of(row.name()), Some(row));
        }
        assert_eq!(Row::of("analysis alone"), None);
    }
}
