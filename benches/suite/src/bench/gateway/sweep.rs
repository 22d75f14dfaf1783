//! Fig. 10 of the paper: how much is scanned at a time.

use super::between::Gateway;
use super::policy::{Policy, Scanner};
use super::row::Row;
use super::series::Rounds;
use super::site::Site;
use crate::bench::measure::median;
use crate::bench::progress;
use crate::shell::print_table;
use anyhow::{Context as _, Result};

/// Sizes of a window, KiB.
const WINDOWS: [u32; 11] = [1, 2, 5, 10, 20, 30, 40, 60, 80, 100, 120];

/// Runs of one size.
#[derive(Debug, Default)]
struct Size {
    through: Vec<f64>,
    alone: Vec<f64>,
    memory: Vec<f64>,
}

/// Measures all sizes in turns, and clamd alone with the same; prints a table.
pub(super) fn run(rounds: &Rounds<'_>, site: &Site) -> Result<()> {
    let (socket, _) = rounds.clamd.context("there is no clamd")?;
    let mut sizes: Vec<(u32, Size)> = WINDOWS.map(|window| (window, Size::default())).into();
    for round in 0..rounds.plan.runs {
        for (window_kib, size) in &mut sizes {
            progress(&format!("round {}: windows of {window_kib} KiB", round + 1));
            let scanner = Scanner {
                socket,
                window_kib: *window_kib,
            };
            let policy = Policy::of(Row::Scan, rounds.plan.queues, Some(scanner));
            let gateway = Gateway::start(rounds, site, &policy.context("no policy")?)?;
            let run = rounds.downloads(site, &[gateway.id()])?;
            gateway.finish()?;
            size.through.push(run.gbit_s * 125.0);
            size.memory.push(run.memory as f64 * 1e-6);
            let alone = rounds.clamd_alone(site, *window_kib)?;
            size.alone.push(alone.gbit_s * 125.0);
        }
    }
    progress("");
    let header = [
        "window, KiB",
        "gateway, MB/s",
        "clamd alone, MB/s",
        "part",
        "MB",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for (window, size) in &sizes {
        let parts = size.through.iter().zip(&size.alone);
        let parts: Vec<f64> = parts.map(|(through, alone)| through / alone).collect();
        rows.push(vec![
            window.to_string(),
            format!("{:.1}", median(&size.through)),
            format!("{:.1}", median(&size.alone)),
            format!("{:.2}", median(&parts)),
            format!("{:.1}", median(&size.memory)),
        ]);
    }
    println!(
        "\nFig. 10 of the paper: size of the window that is scanned, with a tail of 1 KiB (windows of 1 KiB: half a KiB)"
    );
    print_table(&rows);
    Ok(())
}

/// The rate of the program `throughput`, MB/s: the third column of its second line.
pub(super) fn rate(said: &str) -> Option<f64> {
    said.lines().nth(1)?.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_read() {
        let said = "window_kib connections mb_per_s scans_per_s\n32 4 104.5 3189 1.2\n";
        assert_eq!(rate(said), Some(104.5));
        assert_eq!(rate("window_kib\n"), None);
    }
}
