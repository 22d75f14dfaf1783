//! `linkweir feed --histogram`: how evenly the paper's hashes spread real packets (Fig. 8), as a plot, a page
//! or numbers.

use std::path::Path;

use anyhow::Context;
use linkweir_engine::{Fault, FaultKind, RunReport};
use linkweir_record::human::{thousands, to_f64};
use linkweir_report::page::{Page, table};
use linkweir_report::plot::{Axis, Marks, Plot, Scale, Series, Unit};
use serde_json::{Value, json};

use super::args::FeedArgs;
use super::spread::{BINS, HashSpread, SHARDS, Spread};
use super::summary;
use crate::clock::now;
use crate::exit::{Exit, say, warn};
use crate::files;
use crate::outputs::AtEnd;
use crate::passive::input::{self, Opened};
use crate::signals::Signals;

/// Runs the command with `--histogram`.
pub(super) fn run(args: &FeedArgs, destination: &Path, signals: &Signals) -> anyhow::Result<Exit> {
    let started = now();
    let picture = files::document_at(destination, args.existing()).context("--histogram")?;
    let summary = AtEnd::open("--summary", args.summary.as_deref(), args.existing())?;
    let mut spread = Spread::new();
    let mut report = RunReport::default();
    let opened = input::open(&args.input, 1, signals)?;
    args.restrict()?;
    let outcome = match opened {
        Opened::Files(files) => spread.read(*files, args, signals, &mut report),
        Opened::Live(sources) => {
            let source = sources.into_iter().next().context("no interface")?;
            spread.read(source, args, signals, &mut report)
        }
    };
    let mut exit = Exit::Done;
    if let Err(error) = outcome {
        warn(&error.to_string());
        exit = Exit::Failed;
    }
    let is_unusable = |fault: &Fault| fault.kind == FaultKind::Unusable;
    let has_unusable = report.faults.iter().any(is_unusable);
    let ending = destination.extension().and_then(std::ffi::OsStr::to_str);
    match ending {
        // A picture of nothing replaces no other.
        _ if report.left_without_a_packet(exit == Exit::Done) => Ok(()),
        Some("svg") => picture.write_whole(svg(&spread).as_bytes()),
        Some("html" | "htm") => picture.write_whole(html(&spread, &report).as_bytes()),
        _ => picture.write_json(&spread.to_json(true)),
    }
    .context("--histogram")?;
    if let Some(document) = summary {
        let mut all = summary::common(&report, 0, now().duration_since(started));
        if let Value::Object(keys) = &mut all {
            keys.insert("feed".to_owned(), json!({ "consumers": [] }));
            keys.insert("histogram".to_owned(), spread.to_json(false));
        }
        if document.write_json(&all).is_some() {
            exit = exit.max(Exit::DataLost);
        }
    }
    if !args.quiet {
        say(&spread.to_screen());
    }
    let lost = report.drops.kernel + report.drops.ring + report.drops.unusable_records;
    if lost > 0 || !report.faults.is_empty() {
        exit = exit.max(Exit::DataLost);
    }
    if has_unusable {
        exit = exit.max(Exit::Failed);
    }
    Ok(exit)
}

/// The figure's two or three hashes in one drawing; a point is a bin.
fn plot(hashes: &[&HashSpread]) -> Plot {
    let bin_width = 2_f64.powi(32) / to_f64(BINS as u64);
    let points = |hash: &HashSpread| {
        hash.bins
            .iter()
            .zip(0_u32..)
            .filter(|(count, _)| **count > 0)
            .map(|(count, bin)| {
                let middle = (f64::from(bin) + 0.5) * bin_width - 2_f64.powi(31);
                (middle, to_f64(*count))
            })
            .collect()
    };
    Plot {
        title: "Packets by hash value".to_owned(),
        x: Axis::new(
            "hash value as a signed number: one consumer left of 0, the other right",
            Scale::Linear,
            Unit::Count,
        ),
        y: Axis::new("packets of a bin", Scale::Log, Unit::Count),
        series: hashes
            .iter()
            .map(|hash| Series {
                name: hash.name.to_owned(),
                marks: Marks::Points,
                points: points(hash),
            })
            .collect(),
        guides: vec![(0.0, "0".to_owned())],
    }
}

fn all(spread: &Spread) -> Vec<&HashSpread> {
    spread.hashes.iter().collect()
}

/// The drawing alone.
fn svg(spread: &Spread) -> String {
    plot(&all(spread)).standalone_svg()
}

/// The drawing with its numbers.
fn html(spread: &Spread, report: &RunReport) -> String {
    let mut page = Page::new("Distribution of hash values");
    let lost = report.drops.kernel + report.drops.unusable_records;
    page.cards(&[
        (thousands(lost), "packets lost", lost > 0),
        (thousands(report.packets), "packets", false),
        (thousands(spread.packets), "of TCP, which are spread", false),
        (thousands(spread.requests), "HTTP requests", false),
    ]);
    let plot = plot(&all(spread));
    let figure = format!(
        "{}{}<p class=\"note\">The figure of merit for a hash: an even band means even consumers. \
         Eq. (1) has one value a connection; Eqs. (2) and (3) have one a transaction.</p>\n",
        plot.svg(),
        plot.table()
    );
    page.raw("<div class=\"grid2\">\n");
    page.section("Packets by hash value", true, &figure);
    page.section("Numbers", true, &numbers(spread));
    page.raw("</div>\n");
    page.finish(concat!("linkweir ", env!("CARGO_PKG_VERSION")))
}

/// A row for each figure, a column for each hash: the shares of eight consumers take room.
fn numbers(spread: &Spread) -> String {
    let head: Vec<&str> = std::iter::once("")
        .chain(spread.hashes.iter().map(|hash| hash.name))
        .collect();
    let row = |name: String, figure: &dyn Fn(&HashSpread) -> String| {
        (name, spread.hashes.iter().map(figure).collect())
    };
    let mut rows: Vec<(String, Vec<String>)> = vec![
        row("values".to_owned(), &|hash| thousands(hash.distinct())),
        row("packets of the most frequent".to_owned(), &|hash| {
            thousands(hash.most_frequent())
        }),
        row("fullest bin".to_owned(), &|hash| {
            format!("{:.2} %", hash.fullest_bin() * 100.0)
        }),
        row("chi-square".to_owned(), &|hash| {
            format!("{:.1}", hash.chi_square())
        }),
    ];
    for (at, count) in SHARDS.iter().enumerate() {
        for (place, what) in ["packets", "transactions"].into_iter().enumerate() {
            let name = format!("{what}, {count} consumers");
            rows.push(row(name, &|hash| shares(hash, at, place)));
        }
    }
    let note = format!(
        "<p class=\"note\">Shares in per cent. The chi-square of an even spread over {BINS} bins is about {}.</p>\n",
        BINS - 1
    );
    table(&head, rows.into_iter()) + &note
}

/// Shares of consumers in per cent, four on a line.
fn shares(hash: &HashSpread, at: usize, place: usize) -> String {
    let shares = hash.shares(at);
    let shares = shares.get(place).map(Vec::as_slice).unwrap_or_default();
    let lines = shares.chunks(4).map(|four| {
        let four: Vec<String> = four
            .iter()
            .map(|share| format!("{:.2}", share * 100.0))
            .collect();
        four.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}
