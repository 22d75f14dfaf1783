//! The bars of `bench sinks`.

use super::super::bars::Bar;
use super::real::Size;
use super::row::{Row, Series};

/// Bytes of an HTTP record of a real capture in Parquet, at most.
const PARQUET_BYTES: f64 = 60.0;
/// Records in a second of a core, into Parquet.
const PARQUET_RATE: f64 = 0.6e6;
/// Records in a second on the clock, into a broker of this machine.
const KAFKA_RATE: f64 = 3e5;
/// What a record may cost more where there are ten times as many.
const GROWTH: f64 = 1.1;

/// Parquet's size, of the first trace: all captures.
pub(super) fn of_sizes(sizes: &[Size]) -> Option<Bar> {
    let first = sizes.first()?;
    let bytes = first.parquet_per_record();
    Some(Bar {
        what: format!("parquet: at most {PARQUET_BYTES} bytes per http record of real captures"),
        figure: format!("{bytes:.1} bytes ({})", first.name),
        passed: bytes <= PARQUET_BYTES,
    })
}

/// Rates: `which` says of what they are.
pub(super) fn of_rates(which: &str, all: &[Series]) -> Vec<Bar> {
    let series = |row| all.iter().find(|series| series.row == row);
    let parquet = series(Row::Parquet).map(|series| {
        let rate = series.per_cpu_second();
        Bar {
            what: format!(
                "parquet, {which}: at least {} M records/s per core",
                PARQUET_RATE * 1e-6
            ),
            figure: format!("{:.3} M/s", rate * 1e-6),
            passed: rate >= PARQUET_RATE,
        }
    });
    let kafka = series(Row::Kafka).map(|series| {
        let rate = series.per_second();
        Bar {
            what: format!(
                "kafka, {which}: at least {:.0} k records/s into a local broker",
                KAFKA_RATE * 1e-3
            ),
            figure: format!("{:.0} k/s", rate * 1e-3),
            passed: rate >= KAFKA_RATE,
        }
    });
    parquet.into_iter().chain(kafka).collect()
}

/// Whether the cost of a record stays with ten times as many.
pub(super) fn of_growth(all: &[(Series, Series)]) -> Option<Bar> {
    let worst = all
        .iter()
        .map(|(once, often)| (often.user_over(once), once.row))
        .max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(Bar {
        what: format!("user time of a record with ten times the records: at most {GROWTH} x"),
        figure: format!("{:.2} x ({})", worst.0, worst.1.name()),
        passed: worst.0 <= GROWTH,
    })
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::series;
    use super::*;

    #[test]
    fn rates_are_met_or_missed() {
        // 900 ns of CPU time; the clock of these series shows twice that.
        let met = of_rates(
            "alone",
            &[
                series(Row::Parquet, &[900.0], 1),
                series(Row::Kafka, &[1600.0], 1),
            ],
        );
        assert!(met.iter().all(|bar| bar.passed) && met.len() == 2);
        let missed = of_rates(
            "alone",
            &[
                series(Row::Parquet, &[1700.0], 1),
                series(Row::Kafka, &[1700.0], 1),
            ],
        );
        assert!(missed.iter().all(|bar| !bar.passed));
        assert!(of_rates("alone", &[series(Row::Text, &[1.0], 1)]).is_empty());
    }

    #[test]
    fn the_worst_growth_counts() {
        let both = |row, often| (series(row, &[100.0], 1), series(row, &[often], 1));
        let bar = of_growth(&[both(Row::Text, 90.0), both(Row::Parquet, 111.0)]).unwrap();
        assert!(
            !bar.passed && bar.figure.contains("parquet"),
            "{}",
            bar.figure
        );
        assert!(of_growth(&[both(Row::Text, 109.0)]).unwrap().passed);
    }

    #[test]
    fn sizes_are_of_all_captures() {
        let size = |parquet| Size {
            name: "all".to_owned(),
            records: 100,
            bytes: [50_000, parquet, 30_000],
        };
        assert!(of_sizes(&[size(6000), size(9000)]).unwrap().passed);
        assert!(!of_sizes(&[size(6001)]).unwrap().passed);
        assert!(of_sizes(&[]).is_none());
    }
}
