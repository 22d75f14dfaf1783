//! Requests while somebody floods: what is left of them.

use super::between::{Between, start};
use super::row::Row;
use super::series::Rounds;
use super::site::Site;
use crate::bench::bars::Bar;
use crate::bench::measure::median;
use crate::bench::progress;
use crate::shell::print_table;
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

/// A flood: its name, what it sends, so many a second, and what stands between.
struct Flood {
    name: &'static str,
    words: &'static [&'static str],
    port: u16,
    row: Row,
}

const FLOODS: [Flood; 5] = [
    Flood {
        name: "SYNs, 60,000/s",
        words: &["syn", "60000", "cli0"],
        port: DROPPED,
        row: Row::Inspect,
    },
    Flood {
        name: "new UDP flows, 60,000/s",
        words: &["udp", "60000", "cli0"],
        port: DROPPED,
        row: Row::Inspect,
    },
    Flood {
        name: "connections with a gap, 500/s",
        words: &["gaps", "500"],
        port: READ,
        row: Row::Inspect,
    },
    Flood {
        name: "unfinished heads of 60 KiB, 500/s",
        words: &["heads", "500"],
        port: READ,
        row: Row::Inspect,
    },
    Flood {
        name: "downloads that nobody reads, 500/s",
        words: &["windows", "500", "/file.bin"],
        port: 80,
        row: Row::Scan,
    },
];

/// Requests of one run.
#[derive(Debug, Clone, Copy)]
struct Asked {
    per_second: f64,
    p50_ms: f64,
    max_ms: f64,
}

/// Asks through the gateway without and with each flood, in turns.
pub(super) fn run(rounds: &Rounds<'_>, site: &Site) -> Result<Vec<Bar>> {
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
        .command(Place::Server, rounds.programs.own("flood"));
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
    let header = [
        "flood",
        "row",
        "runs",
        "requests/s",
        "of quiet",
        "median, ms",
        "longest, ms",
    ];
    let mut table = vec![header.map(str::to_owned).to_vec()];
    let mut bars = Vec::new();
    for flood in &FLOODS {
        let (mut quiet, mut flooded) = (Vec::new(), Vec::new());
        if !flood.row.scans() || rounds.clamd.is_some() {
            for round in 0..rounds.plan.runs {
                progress(&format!("{}, round {}", flood.name, round + 1));
                quiet.push(ask(rounds, site, flood, false)?);
                flooded.push(ask(rounds, site, flood, true)?);
            }
            table.push(cells("none", flood.row, &quiet, &quiet));
            table.push(cells(flood.name, flood.row, &flooded, &quiet));
        }
        bars.push(bar(flood, &flooded, &quiet));
    }
    sink.signal("TERM")?;
    sink.output()?;
    for (place, _) in &rules {
        site.net().must(*place, "nft", &["delete table ip flood"])?;
    }
    progress("");
    println!(
        "\nsmall requests one after the other, each over a connection of its own, while a flood goes on beside them:"
    );
    print_table(&table);
    Ok(bars)
}

/// One run.
fn ask(rounds: &Rounds<'_>, site: &Site, flood: &Flood, is_flooded: bool) -> Result<Asked> {
    let between = Between::start(rounds, site, flood.row)?;
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
    let said: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{}: a request failed", flood.name))?;
    let number = |name: &str| {
        let number = said.get(name).and_then(Value::as_f64);
        number.with_context(|| format!("no `{name}`"))
    };
    Ok(Asked {
        per_second: number("requests")? / f64::from(seconds),
        p50_ms: number("p50_us")? / 1e3,
        max_ms: number("max_us")? / 1e3,
    })
}

/// Median of the ratios of the same rounds, and the longest time.
fn figures(own: &[Asked], quiet: &[Asked]) -> (f64, f64) {
    let ratios = own.iter().zip(quiet);
    let ratios: Vec<f64> = ratios
        .map(|(own, quiet)| own.per_second / quiet.per_second)
        .collect();
    let longest = own.iter().map(|asked| asked.max_ms).fold(0.0, f64::max);
    (median(&ratios), longest)
}

fn bar(flood: &Flood, own: &[Asked], quiet: &[Asked]) -> Bar {
    let what = format!(
        "flood: {}: at least {LEAST} of the requests without it, none beyond {MOST_MS} ms",
        flood.name
    );
    if own.is_empty() {
        let figure = "not measured, something is not installed".to_owned();
        return Bar {
            what,
            figure,
            passed: false,
        };
    }
    let (part, longest) = figures(own, quiet);
    Bar {
        what,
        figure: format!("{part:.2}, {longest:.0} ms"),
        passed: part >= LEAST && longest < MOST_MS,
    }
}

fn cells(name: &str, row: Row, own: &[Asked], quiet: &[Asked]) -> Vec<String> {
    let of = |part: fn(&Asked) -> f64| median(&own.iter().map(part).collect::<Vec<f64>>());
    let (part, longest) = figures(own, quiet);
    vec![
        name.to_owned(),
        row.name().to_owned(),
        own.len().to_string(),
        format!("{:.0}", of(|asked| asked.per_second)),
        format!("{part:.2}"),
        format!("{:.3}", of(|asked| asked.p50_ms)),
        format!("{longest:.1}"),
    ]
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
        let passed = |own| bar(&FLOODS[0], &[own], &[asked(100.0, 10.0)]).passed;
        assert!(passed(asked(50.0, 999.0)));
        assert!(!passed(asked(49.0, 1.0)) && !passed(asked(100.0, 1000.0)));
        assert!(!bar(&FLOODS[0], &[], &[]).passed);
    }
}
