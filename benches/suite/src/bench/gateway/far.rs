//! Downloads from far away: over a line that takes its time, loses segments and lets some come late.
//!
//! The line is the laboratory's, between the server and the gateway: there a gateway that holds what it
//! looks at does most harm, since it is the one who sees the gaps.

use super::between::Rounds;
use super::between::{Between, start};
use super::rows::{Series, named, part};
use super::site::Site;
use crate::bench::harness::{Column, Target, digits, find, print, rounds};
use anyhow::Result;
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
const ROWS: [&str; 3] = ["forward", "inspect", "scan"];

/// Measures each line; the site is made for it.
pub(super) fn run(measured: &Rounds<'_>, dir: &Path) -> Result<Vec<Target>> {
    let links = Links {
        has_offloads: false,
        ..Links::default()
    };
    let site = Site::new(links, dir)?;
    let ends = site.net().put_before_line(Place::Server)?;
    let plan = super::Plan {
        seconds: measured.plan.seconds.max(SHORTEST),
        // Of several, all of what the scanner can take would be asked for.
        connections: 1,
        ..measured.plan.clone()
    };
    let measured = Rounds {
        plan: &plan,
        ..*measured
    };
    let rows = ROWS.iter().map(|word| named(word));
    let mut rows = rows.collect::<Result<Vec<_>>>()?;
    rows.retain(|row| measured.has(row));
    let mut lines = Vec::new();
    for (name, loss, late) in LINES {
        let all = rounds(name, rows.clone(), plan.runs, |round, row, _| {
            // The same segments are lost in each row of a round, as far as there are as many.
            let line = lay(&measured, &site, ends, loss, late, round)?;
            let between = Between::start(&measured, &site, row)?;
            let run = measured.downloads(&site, &between.ids());
            between.finish()?;
            end(line)?;
            run.map(Some)
        })?;
        lines.push((name, all));
    }
    #[rustfmt::skip]
    let columns: [Column<Cells<'_>>; 7] = [
        ("line of 20 ms", |cells| cells.line.to_owned()),
        ("row", |cells| cells.own.row.name.to_owned()),
        ("runs", |cells| cells.own.count().to_string()),
        ("Mbit/s", |cells| digits(1000.0 * cells.own.median(|run| run.gbit_s), 1)),
        ("least", |cells| digits(1000.0 * cells.own.least(|run| run.gbit_s), 1)),
        ("most", |cells| digits(1000.0 * cells.own.most(|run| run.gbit_s), 1)),
        ("forward", |cells| cells.own.cell_of(cells.forward, |run| run.gbit_s)),
    ];
    let rows = lines.iter().flat_map(|(line, all)| {
        let forward = find(all, "forward");
        all.iter().map(move |own| Cells { line, own, forward })
    });
    print(
        "2 MB downloads over a line of 20 ms between server and gateway, one after the other:",
        &columns,
        rows,
    );
    Ok(lines
        .iter()
        .flat_map(|(name, all)| targets(name, all))
        .collect())
}

/// A row of the table.
struct Cells<'a> {
    line: &'a str,
    own: &'a Series,
    forward: Option<&'a Series>,
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

fn targets(line: &str, all: &[Series]) -> Vec<Target> {
    let rows = ROWS.iter().filter(|word| **word != "forward");
    let targets = rows.map(|word| {
        let name = named(word).map_or(*word, |row| row.name);
        let what = format!("{name}, 20 ms, {line}: at least {LEAST} of \"forward\"");
        part(&what, all, word, &["forward"], LEAST)
    });
    targets.collect()
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::series;
    use super::*;
    use crate::bench::harness::reached;

    #[test]
    fn a_row_that_is_missing_is_a_miss() {
        let all = [series("forward", &[1.0]), series("inspect", &[0.9])];
        let targets = targets("no loss", &all);
        assert_eq!(reached(&targets), [true, false]);
        assert!(targets[1].figure.starts_with("not measured"));
        assert!(ROWS.iter().all(|word| named(word).is_ok()));
    }
}
