//! The bars: what the figures must reach.

use super::measure::Series;
use super::programs::Program;

/// A promise and how it went.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) what: String,
    pub(super) figure: String,
    pub(super) passed: bool,
}

const MEMORY_MB: f64 = 64.0;
const START_MS: f64 = 20.0;
/// What may differ between once and ten times the capture, in parts of one.
const TOLERANCE: f64 = 0.05;

/// All bars of `bench http`, in the order in which they are promised.
pub(super) fn all(
    mix: &[Series],
    tiny: &[Series],
    once: &Series,
    often: &Series,
    start_s: f64,
) -> Vec<Bar> {
    let mut bars = vec![
        speed("mix", mix, Program::Walk, 0.75),
        speed("mix", mix, Program::Httpry, 5.0),
        speed("mix", mix, Program::Tshark, 100.0),
        speed("tiny", tiny, Program::Walk, 0.3),
        speed("tiny", tiny, Program::Httpry, 3.0),
    ];
    let of_linkweir = mix
        .iter()
        .chain(tiny)
        .filter(|row| row.program == Program::Linkweir);
    let peak = of_linkweir
        .chain([once, often])
        .map(peak_mb)
        .fold(0.0, f64::max);
    bars.push(Bar {
        what: format!("peak memory at most {MEMORY_MB} MB"),
        figure: format!("{peak:.1} MB"),
        passed: peak > 0.0 && peak <= MEMORY_MB,
    });
    let memory = peak_mb(often) / peak_mb(once);
    bars.push(Bar {
        what: "peak memory the same for ten times the packets, within 5 %".to_owned(),
        figure: format!(
            "{:.1} and {:.1} MB, {}",
            peak_mb(once),
            peak_mb(often),
            percent(memory)
        ),
        passed: (memory - 1.0).abs() <= TOLERANCE,
    });
    // Time per packet, ten times over against once.
    let time = once.speed_over(often);
    bars.push(Bar {
        what: "time linear in the packets, within 5 %".to_owned(),
        figure: format!("per packet {}", percent(time)),
        passed: (time - 1.0).abs() <= TOLERANCE,
    });
    bars.push(Bar {
        what: format!("first record within {START_MS} ms of the start"),
        figure: format!("{:.2} ms", start_s * 1e3),
        passed: start_s * 1e3 < START_MS,
    });
    bars
}

/// Says of each whether it is reached.
pub(super) fn print(bars: &[Bar]) {
    for Bar {
        what,
        figure,
        passed,
    } in bars
    {
        let verdict = if *passed { "PASS" } else { "MISS" };
        println!("{verdict}  {what}: {figure}");
    }
}

fn speed(capture: &str, rows: &[Series], against: Program, least: f64) -> Bar {
    let what = format!(
        "{capture}: at least {least} x the packets/s of {}",
        against.name()
    );
    let row = |program| rows.iter().find(|row| row.program == program);
    match (row(Program::Linkweir), row(against)) {
        (Some(linkweir), Some(other)) => {
            let ratio = linkweir.speed_over(other);
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

fn peak_mb(row: &Series) -> f64 {
    row.median().peak_bytes as f64 * 1e-6
}

fn percent(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::super::measure::Cost;
    use super::*;

    fn series(program: Program, packets: u64, cpu_s: f64, peak_bytes: u64) -> Series {
        let mut series = Series::new(program, packets, 0);
        series.costs.push(Cost {
            cpu_s,
            wall_s: cpu_s,
            peak_bytes,
        });
        series
    }

    fn verdicts(linkweir_s: f64, often_s: f64, peak: u64) -> Vec<bool> {
        let mix = [
            series(Program::Walk, 100, 0.8, 1),
            series(Program::Linkweir, 100, linkweir_s, peak),
            series(Program::Httpry, 100, 5.0, 1),
            series(Program::Tshark, 10, 10.0, 1),
        ];
        let once = series(Program::Linkweir, 100, 1.0, 10_000_000);
        let often = series(Program::Linkweir, 1000, often_s, 10_400_000);
        let bars = all(&mix, &mix, &once, &often, 0.019);
        bars.iter().map(|bar| bar.passed).collect()
    }

    #[test]
    fn bars_that_are_met() {
        assert!(verdicts(1.0, 10.4, 64_000_000).iter().all(|passed| *passed));
    }

    #[test]
    fn bars_that_are_missed() {
        let verdicts = verdicts(1.1, 10.6, 64_100_000);
        assert_eq!(
            verdicts,
            [false, false, false, true, true, false, true, false, true]
        );
    }

    #[test]
    fn a_program_that_is_not_there_is_a_miss() {
        assert!(!speed("mix", &[], Program::Httpry, 5.0).passed);
    }
}
