//! Downloads from far away: over a line that takes its time, loses segments and lets some come late.
//!
//! The line is the laboratory's, between the server and the gateway: there a gateway that holds what it
//! looks at does most harm, since it is the one who sees the gaps.

use super::between::{Between, start};
use super::row::Row;
use super::series::{Rounds, Series, ratio};
use super::site::Site;
use crate::bench::bars::Bar;
use crate::bench::progress;
use crate::shell::print_table;
use anyhow::{Context as _, Result};
use linkweir_testkit::gateway::{LineEnds, Links, Place};
use linkweir_testkit::netns::Running;
use std::path::Path;

/// Least part of what comes without a gateway that looks.
const LEAST: f64 = 0.9;
/// One way, half of the round trip of 20 ms.
const LATENCY: &str = "10ms";
/// By how much a segment comes late.
const LATE: &str = "5ms";
/// Shortest run, seconds: a download has some tens of round trips.
const SHORTEST: u32 = 5;

/// A line: its name, the part that is lost, and the part of the others that comes late.
const LINES: [(&str, &str, &str); 4] = [
    ("no loss", "0", "0"),
    ("0.5 % lost", "0.005", "0"),
    ("2 % lost", "0.02", "0"),
    ("1 % late", "0", "0.01"),
];

/// What stands between: nothing that looks, names, and a scanner that packets wait for.
const ROWS: [Row; 3] = [Row::Forward, Row::Inspect, Row::Scan];

/// Measures each line; the site is made for it.
pub(super) fn run(rounds: &Rounds<'_>, folder: &Path) -> Result<Vec<Bar>> {
    let links = Links {
        has_offloads: false,
        ..Links::default()
    };
    let site = Site::new(links, folder)?;
    let ends = site.net().put_before_line(Place::Server)?;
    let plan = super::Plan {
        seconds: rounds.plan.seconds.max(SHORTEST),
        // Of several, all of what the scanner can take would be asked for.
        connections: 1,
        ..rounds.plan.clone()
    };
    let rounds = Rounds {
        plan: &plan,
        ..*rounds
    };
    let mut table = vec![
        [
            "line of 20 ms",
            "row",
            "runs",
            "Mbit/s",
            "least",
            "most",
            "forward",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    let mut bars = Vec::new();
    for (name, loss, late) in LINES {
        let mut all: Vec<Series> = ROWS
            .iter()
            .filter(|row| rounds.clamd.is_some() || !row.scans())
            .map(|row| Series {
                row: *row,
                runs: Vec::new(),
            })
            .collect();
        for round in 0..plan.runs {
            for series in &mut all {
                progress(&format!(
                    "{name}, round {}: {}",
                    round + 1,
                    series.row.name()
                ));
                // The same segments are lost in each row of a round, as far as there are as many.
                let line = lay(&rounds, &site, ends, loss, late, round)?;
                let between = Between::start(&rounds, &site, series.row)?;
                let run = rounds.downloads(&site, &between.ids());
                between.finish()?;
                end(line)?;
                series.runs.push(run.with_context(|| series.row.name())?);
            }
        }
        bars.extend(judge(name, &all));
        table.extend(all.iter().map(|series| cells(name, series, &all)));
    }
    progress("");
    println!(
        "\n2 MB downloads over a line of 20 ms between server and gateway, one after the other:"
    );
    print_table(&table);
    Ok(bars)
}

/// Starts the line.
fn lay(
    rounds: &Rounds<'_>,
    site: &Site,
    ends: LineEnds,
    loss: &str,
    late: &str,
    round: usize,
) -> Result<Running> {
    let summary = site.path("line.json");
    if summary.exists() {
        std::fs::remove_file(&summary)?;
    }
    let lab = rounds.programs.linkweir.with_file_name("linkweir-lab");
    let mut line = site.net().command(Place::Server, lab);
    line.args(["line", "--quiet", "--between", ends.near, "--and", ends.far]);
    line.args(["--loss", loss, "--reorder", late, "--delay", LATE]);
    line.args(["--latency", LATENCY, "--seed", &round.to_string()]);
    line.arg("--summary").arg(summary);
    // A socket at each end.
    start(site, line, "line", |id| {
        site.net().packet_sockets_of(Place::Server, id) >= 2
    })
}

/// Ends it; that it lost what it should not have lost is an error.
fn end(line: Running) -> Result<()> {
    line.signal("TERM")?;
    let output = line.output()?;
    anyhow::ensure!(
        output.status.success(),
        "the line could not follow: {}",
        output.status
    );
    Ok(())
}

fn judge(name: &str, all: &[Series]) -> Vec<Bar> {
    let find = |row: Row| all.iter().find(|series| series.row == row);
    let rows = ROWS.iter().filter(|row| **row != Row::Forward);
    let bars = rows.map(|row| {
        let ratio = match (find(*row), find(Row::Forward)) {
            (Some(own), Some(forward)) => Some(ratio(own, &[forward])),
            _ => None,
        };
        Bar {
            what: format!(
                "{}, 20 ms, {name}: at least {LEAST} of \"forward\"",
                row.name()
            ),
            figure: ratio.map_or_else(
                || "not measured, something is not installed".to_owned(),
                |ratio| format!("{ratio:.2}"),
            ),
            passed: ratio.is_some_and(|ratio| ratio >= LEAST),
        }
    });
    bars.collect()
}

fn cells(name: &str, series: &Series, all: &[Series]) -> Vec<String> {
    let rates = || series.runs.iter().map(|run| 1000.0 * run.gbit_s);
    let forward = all.iter().find(|series| series.row == Row::Forward);
    vec![
        name.to_owned(),
        series.row.name().to_owned(),
        series.runs.len().to_string(),
        format!("{:.1}", 1000.0 * series.median(|run| run.gbit_s)),
        format!("{:.1}", rates().fold(f64::INFINITY, f64::min)),
        format!("{:.1}", rates().fold(0.0, f64::max)),
        forward.map_or_else(String::new, |forward| {
            format!("{:.2}", ratio(series, &[forward]))
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::series::tests::series;
    use super::*;

    #[test]
    fn a_row_that_is_missing_is_a_miss() {
        let all = [series(Row::Forward, &[1.0]), series(Row::Inspect, &[0.9])];
        let bars = judge("no loss", &all);
        let passed: Vec<bool> = bars.iter().map(|bar| bar.passed).collect();
        assert_eq!(passed, [true, false]);
        assert!(bars[1].figure.starts_with("not measured"));
    }
}
