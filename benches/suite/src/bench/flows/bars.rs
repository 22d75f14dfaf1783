//! The bars: what the figures must reach.

use super::super::bars::Bar;
use super::rows::{Row, Series};

const FEW_MPPS: f64 = 3.5;
const MANY_MPPS: f64 = 1.8;
const OVER_ARGUS: f64 = 2.0;
const OVER_TCPTRACE: f64 = 5.0;
/// At 50,000 connections at once.
const MEMORY_MB: f64 = 64.0;
/// At a million.
const MILLION_MB: f64 = 700.0;

fn find(rows: &[Series], row: Row) -> Option<&Series> {
    rows.iter().find(|series| series.row == row)
}

/// All bars of `bench flows`, in the order in which they are promised; `million` is the peak memory of
/// a million connections at once in MB, `same` whether the records are those of one worker, by number
/// of workers.
pub(super) fn all(few: &[Series], many: &[Series], million: f64, same: &[(u32, bool)]) -> Vec<Bar> {
    let mut bars = vec![
        speed("few big flows", few, FEW_MPPS),
        speed("many flows", many, MANY_MPPS),
    ];
    for (capture, rows) in [("few big flows", few), ("many flows", many)] {
        bars.push(ratio(capture, rows, Row::Argus, OVER_ARGUS));
        bars.push(ratio(capture, rows, Row::Tcptrace, OVER_TCPTRACE));
    }
    let peak = find(many, Row::Track).map_or(f64::NAN, Series::peak_mb);
    bars.push(memory("50,000 connections at once", peak, MEMORY_MB));
    bars.push(memory("a million connections at once", million, MILLION_MB));
    for (workers, same) in same {
        bars.push(Bar {
            what: format!("records of {workers} workers are those of one"),
            figure: if *same { "identical" } else { "different" }.to_owned(),
            passed: *same,
        });
    }
    bars
}

fn speed(capture: &str, rows: &[Series], least: f64) -> Bar {
    let mpps = find(rows, Row::Track).map_or(f64::NAN, Series::mpps);
    Bar {
        what: format!("{capture}: at least {least} Mpps with all measurements"),
        figure: format!("{mpps:.2} Mpps"),
        passed: mpps >= least,
    }
}

fn ratio(capture: &str, rows: &[Series], against: Row, least: f64) -> Bar {
    let what = format!(
        "{capture}: at least {least} x the packets/s of {}",
        against.name()
    );
    match (find(rows, Row::Track), find(rows, against)) {
        (Some(own), Some(other)) => {
            let ratio = own.speed_over(other);
            Bar {
                what,
                figure: format!("{ratio:.2} x"),
                passed: ratio >= least,
            }
        }
        _ => Bar {
            what,
            figure: "not measured, it is not installed".to_owned(),
            passed: false,
        },
    }
}

fn memory(what: &str, peak: f64, most: f64) -> Bar {
    Bar {
        what: format!("{what}: at most {most} MB"),
        figure: format!("{peak:.1} MB"),
        passed: peak > 0.0 && peak <= most,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::measure::Cost;
    use super::*;

    fn series(row: Row, cpu_s: f64, peak_bytes: u64) -> Series {
        let cost = Cost {
            cpu_s,
            wall_s: cpu_s,
            peak_bytes,
        };
        Series {
            row,
            packets: 3_500_000,
            costs: vec![cost],
            flows: None,
        }
    }

    #[test]
    fn bars_that_are_met_and_missed() {
        let rows = |cpu_s, peak| {
            [
                series(Row::Track, cpu_s, peak),
                series(Row::Argus, 2.0, 1),
                series(Row::Tcptrace, 5.0, 1),
            ]
        };
        let met = all(&rows(1.0, 1), &rows(1.0, 64_000_000), 700.0, &[(2, true)]);
        assert!(met.iter().all(|bar| bar.passed));
        let few = rows(1.01, 1);
        let missed = all(&few, &rows(2.0, 64_100_000), 701.0, &[(2, false)]);
        assert!(missed.iter().all(|bar| !bar.passed), "{missed:?}");
        assert!(!ratio("few", &[], Row::Argus, 2.0).passed);
    }
}
