//! Fig. 10 of the paper: how much is scanned at a time.

use super::between::Gateway;
use super::between::Rounds;
use super::policy::{Policy, Scanner};
use super::rows::named;
use super::site::Site;
use crate::bench::harness::{Column, Row, Series, digits, megabytes, print, rounds, row};
use anyhow::{Context as _, Result};

/// A size of a window, KiB.
#[derive(Debug)]
struct Window(u32);

/// Gateway and clamd alone with the same window, MB/s, and the gateway's resident memory, bytes.
#[derive(Debug)]
struct Run {
    through: f64,
    alone: f64,
    memory: f64,
}

static WINDOWS: [Row<Window>; 11] = [
    row("1", "1", Window(1)),
    row("2", "2", Window(2)),
    row("5", "5", Window(5)),
    row("10", "10", Window(10)),
    row("20", "20", Window(20)),
    row("30", "30", Window(30)),
    row("40", "40", Window(40)),
    row("60", "60", Window(60)),
    row("80", "80", Window(80)),
    row("100", "100", Window(100)),
    row("120", "120", Window(120)),
];

#[rustfmt::skip]
const COLUMNS: [Column<Series<Window, Run>>; 5] = [
    ("window, KiB", |own| own.row.name.to_owned()),
    ("gateway, MB/s", |own| digits(own.median(|run| run.through), 1)),
    ("clamd alone, MB/s", |own| digits(own.median(|run| run.alone), 1)),
    ("part", |own| digits(own.median(|run| run.through / run.alone), 2)),
    ("MB", |own| megabytes(own.median(|run| run.memory))),
];

/// Measures all sizes in turns, and clamd alone with the same; prints a table.
pub(super) fn run(measured: &Rounds<'_>, site: &Site) -> Result<()> {
    let (socket, _) = measured.clamd.context("there is no clamd")?;
    let runs = measured.plan.runs;
    let all = rounds("windows, KiB", &WINDOWS, runs, |_, row, _| {
        let window_kib = row.how.0;
        let scanner = Scanner { socket, window_kib };
        let policy = Policy::of(named("scan")?, measured.plan.queues, Some(scanner))?;
        let gateway = Gateway::start(measured, site, &policy)?;
        let run = measured.downloads(site, &[gateway.id()])?;
        gateway.finish()?;
        Ok(Some(Run {
            through: run.gbit_s * 125.0,
            alone: measured.clamd_alone(site, window_kib)?.gbit_s * 125.0,
            memory: run.memory as f64,
        }))
    })?;
    print(
        "Fig. 10 of the paper: size of the window that is scanned, with a tail of 1 KiB (windows of 1 KiB: half a KiB)",
        &COLUMNS,
        &all,
    );
    let rates = all
        .iter()
        .map(|own| (own.row.name, own.median(|run| run.through)));
    println!("{}", best(&rates.collect::<Vec<_>>()));
    Ok(())
}

/// Names the best window, and those that are as good within the noise of such a bench.
fn best(rates: &[(&str, f64)]) -> String {
    /// Of the best.
    const AS_GOOD: f64 = 0.95;
    let Some((name, most)) = rates.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return "best window: not measured".to_owned();
    };
    let others = rates
        .iter()
        .filter(|(other, rate)| other != name && *rate >= AS_GOOD * most);
    let others: Vec<&str> = others.map(|(other, _)| *other).collect();
    format!(
        "best window: {name} KiB, {} MB/s; within {:.0} % of it: {}",
        digits(*most, 1),
        100.0 * (1.0 - AS_GOOD),
        if others.is_empty() {
            "none".to_owned()
        } else {
            others.join(", ")
        }
    )
}

#[cfg(test)]
mod tests {
    use super::best;

    #[test]
    fn the_best_window_is_named_with_those_as_good() {
        let rates = [("1", 44.0), ("30", 50.0), ("40", 49.0), ("120", 51.0)];
        let expected = "best window: 120 KiB, 51.0 MB/s; within 5 % of it: 30, 40";
        assert_eq!(best(&rates), expected);
        assert_eq!(best(&[]), "best window: not measured");
    }
}
