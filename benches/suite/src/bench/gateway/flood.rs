//! Requests while somebody floods: what is left of them.

use super::between::Rounds;
use super::between::{Between, start};
use super::rows::named;
use super::site::Site;
use crate::bench::harness::{
    self, Column, Row, Runs, Series, Target, digits, number, print, rounds,
};
use anyhow::{Context as _, Result};
use linkweir_testkit::gateway::{Place, SERVER};
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;

/// Least part of the requests that come through without the flood.
const LEAST: f64 = 0.5;
/// Longest time of a request, ms.
const MOST_MS: f64 = 1000.0;
/// Shortest run, seconds: in the first second tables fill.
const SHORTEST: u32 = 3;
/// Where packets of a flood are read, or dropped by the server's kernel.
const READ: u16 = 81;
const DROPPED: u16 = 82;

/// A flood: what it sends, so many a second, and what stands between.
#[derive(Debug)]
struct Flood {
    words: &'static [&'static str],
    port: u16,
    row: &'static str,
}

const fn flood(
    name: &'static str,
    words: &'static [&'static str],
    port: u16,
    row: &'static str,
) -> Row<Flood> {
    harness::row(name, name, Flood { words, port, row })
}

#[rustfmt::skip]
static FLOODS: [Row<Flood>; 5] = [
    flood("SYNs, 60,000/s", &["syn", "60000", "cli0"], DROPPED, "inspect"),
    flood("new UDP flows, 60,000/s", &["udp", "60000", "cli0"], DROPPED, "inspect"),
    flood("connections with a gap, 500/s", &["gaps", "500"], READ, "inspect"),
    flood("unfinished heads of 60 KiB, 500/s", &["heads", "500"], READ, "inspect"),
    flood("downloads that nobody reads, 500/s", &["windows", "500", "/file.bin"], 80, "scan"),
];

/// Requests of one run.
#[derive(Debug, Clone, Copy)]
struct Asked {
    per_second: f64,
    p50_ms: f64,
    max_ms: f64,
}

/// Requests without and with a flood, of one round.
#[derive(Debug)]
struct Pair {
    quiet: Asked,
    flooded: Asked,
}

/// Asks through the gateway without and with each flood, in turns.
pub(super) fn run(measured: &Rounds<'_>, site: &Site) -> Result<Vec<Target>> {
    let rules = [
        (
            Place::Client,
            format!(
                "add table ip flood {{ chain out {{ type filter hook output priority 0 ; tcp dport {READ} meta length 152 drop; }}; }}"
            ),
        ),
        (
            Place::Server,
            format!(
                "add table ip flood {{ chain in {{ type filter hook input priority 0; meta l4proto {{ tcp, udp }} th dport {DROPPED} drop; }}; }}"
            ),
        ),
    ];
    for (place, rule) in &rules {
        site.net().must(*place, "nft", &[rule])?;
    }
    let mut sink = site
        .net()
        .command(Place::Server, measured.programs.own("flood"));
    sink.args(["sink", &format!("{SERVER}:{READ}")]);
    let sink = start(site, sink, "sink", |_| {
        let tables = site
            .net()
            .command(Place::Server, "cat")
            .arg("/proc/net/tcp")
            .output();
        tables.is_ok_and(|table| {
            String::from_utf8_lossy(&table.stdout).contains(&format!(":{READ:04X} "))
        })
    })?;
    let runs = measured.plan.runs;
    let all = rounds("flood", &FLOODS, runs, |_, flood, _| {
        if !measured.has(named(flood.how.row)?) {
            return Ok(None);
        }
        Ok(Some(Pair {
            quiet: ask(measured, site, &flood.how, false)?,
            flooded: ask(measured, site, &flood.how, true)?,
        }))
    })?;
    sink.signal("TERM")?;
    sink.output()?;
    for (place, _) in &rules {
        site.net().must(*place, "nft", &["delete table ip flood"])?;
    }
    let shown = all.iter().filter(|series| series.count() > 0);
    let rows = shown.flat_map(|series| [(series, false), (series, true)]);
    #[rustfmt::skip]
    let columns: [Column<Cells<'_>>; 7] = [
        ("flood", |(own, is_flooded)| (if *is_flooded { own.row.name } else { "none" }).to_owned()),
        ("row", |(own, _)| {
            named(own.row.how.row).map_or_else(|_| String::new(), |row| row.name.to_owned())
        }),
        ("runs", |(own, _)| own.count().to_string()),
        ("requests/s", |own| digits(median(own, |asked| asked.per_second), 0)),
        ("of quiet", |(own, is_flooded)| digits(if *is_flooded { part(own) } else { 1.0 }, 2)),
        ("median, ms", |own| digits(median(own, |asked| asked.p50_ms), 3)),
        ("longest, ms", |(own, is_flooded)| digits(own.most(|pair| pair.of(*is_flooded).max_ms), 1)),
    ];
    print(
        "small requests one after the other, each over a connection of its own, while a flood goes on beside them:",
        &columns,
        rows,
    );
    Ok(all
        .iter()
        .map(|series| target(series.row.name, series))
        .collect())
}

/// A flood, and whether the row is that with it.
type Cells<'a> = (&'a Series<Flood, Pair>, bool);

impl Pair {
    const fn of(&self, is_flooded: bool) -> &Asked {
        if is_flooded {
            &self.flooded
        } else {
            &self.quiet
        }
    }
}

fn median((own, is_flooded): &Cells<'_>, part: fn(&Asked) -> f64) -> f64 {
    own.median(|pair| part(pair.of(*is_flooded)))
}

/// What is left of the requests: the median of the ratios of the same rounds.
fn part(runs: &Runs<Pair>) -> f64 {
    runs.median(|pair| pair.flooded.per_second / pair.quiet.per_second)
}

/// One run.
fn ask(rounds: &Rounds<'_>, site: &Site, flood: &Flood, is_flooded: bool) -> Result<Asked> {
    let between = Between::start(rounds, site, named(flood.row)?)?;
    let mut flooding = None;
    if is_flooded {
        let mut command = site.client(rounds.programs.own("flood"));
        let (kind, rest) = flood.words.split_first().context("a flood without words")?;
        command
            .arg(kind)
            .arg(format!("{SERVER}:{}", flood.port))
            .args(rest);
        flooding = Some(start(site, command, "flood", |_| true)?);
        std::thread::sleep(Duration::from_secs(1));
    }
    let seconds = rounds.plan.seconds.max(SHORTEST);
    let mut fresh = site.client(rounds.programs.own("fresh"));
    fresh.args([&format!("{SERVER}:80"), "/small.bin", &seconds.to_string()]);
    let output = fresh
        .stderr(Stdio::inherit())
        .output()
        .context("run fresh")?;
    if let Some(flooding) = flooding {
        flooding.signal("TERM")?;
        flooding.output()?;
    }
    between.finish()?;
    let said: Value = serde_json::from_slice(&output.stdout).context("a request failed")?;
    let number = |name| number(&said, name);
    Ok(Asked {
        per_second: number("requests")? / f64::from(seconds),
        p50_ms: number("p50_us")? / 1e3,
        max_ms: number("max_us")? / 1e3,
    })
}

fn target(name: &str, runs: &Runs<Pair>) -> Target {
    let what = format!(
        "flood: {name}: at least {LEAST} of the requests without it, none beyond {MOST_MS} ms"
    );
    if runs.count() == 0 {
        return Target::not_measured(what);
    }
    let (part, longest) = (part(runs), runs.most(|pair| pair.flooded.max_ms));
    Target::new(
        what,
        format!("{part:.2}, {longest:.0} ms"),
        part >= LEAST && longest < MOST_MS,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_requests_or_a_long_one_is_a_miss() {
        let asked = |per_second, max_ms| Asked {
            per_second,
            p50_ms: 1.0,
            max_ms,
        };
        let passed = |flooded| {
            let quiet = asked(100.0, 10.0);
            let runs = [Some(Pair { quiet, flooded })].into_iter().collect();
            target("t", &runs).is_reached
        };
        assert!(passed(asked(50.0, 999.0)));
        assert!(!passed(asked(49.0, 1.0)) && !passed(asked(100.0, 1000.0)));
        assert!(!target("t", &[None].into_iter().collect()).is_reached);
        assert!(FLOODS.iter().all(|flood| named(flood.how.row).is_ok()));
    }
}
