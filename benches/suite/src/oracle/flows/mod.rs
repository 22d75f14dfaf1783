//! `oracle flows`: the records of `linkweir flows` against what tcptrace and tshark say of the same
//! captures.
//!
//! tcptrace (`-l -r`): every field that both have, connection by connection. Where the two cut the
//! packets of one pair of ends into different connections, sums and maxima over all of them are
//! compared, and what cannot be joined is not. tshark (`-z conv,tcp`): packets and bytes of each
//! direction; its bytes are those of frames, ours those of IP, so both are compared with what the
//! frames themselves say.
//!
//! And the applications against nDPI's labels ([`labels`]).
//!
//! A difference that `benches/oracle/flow_exceptions.tsv` does not name and explain is a failure, and
//! so is an exception that no longer applies.

use super::labels;
use crate::Outcome;
use crate::shell::{self, Options, grouped, print_table, read_unpacked, root};
use anyhow::{Context as _, Result};
use conversations::Pair;
use fields::{FIELDS, Record};
use rules::{Difference, Exceptions};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tcptrace::{Connection, End};

mod conversations;
mod fields;
mod rules;
mod tcptrace;

/// How often the two sides of one field agreed.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    agree: u64,
    excepted: u64,
    differ: u64,
}

/// Everything that was compared.
struct Report {
    exceptions: Exceptions,
    tallies: BTreeMap<String, Tally>,
    differences: Vec<Difference>,
    /// How often each rule explained a difference.
    rules: BTreeMap<&'static str, usize>,
}

impl Report {
    fn compare(&mut self, agrees: bool, difference: impl FnOnce() -> Difference, field: &str) {
        let tally = self.tallies.entry(field.to_owned()).or_default();
        if agrees {
            tally.agree += 1;
            return;
        }
        let difference = difference();
        if self.exceptions.reason(&difference).is_some() {
            tally.excepted += 1;
        } else {
            tally.differ += 1;
            self.differences.push(difference);
        }
    }
}

/// `oracle flows [--file PART] [--verbose] [--captures DIR] [--binary FILE]`
pub(super) fn run(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let part: Option<String> = options.value("--file")?;
    let verbose = options.flag("--verbose");
    let captures: Option<PathBuf> = options.value("--captures")?;
    let binary: Option<PathBuf> = options.value("--binary")?;
    options.rest()?;

    let captures = captures.unwrap_or_else(|| root().join("../shared/captures"));
    let truth = captures.join("truth");
    if !truth.join("tcptrace").is_dir() {
        println!("*********************************************************************");
        println!("** ORACLE SKIPPED: no captures with tcptrace's results here.");
        println!(
            "** Looked for {}; --captures DIR names another directory.",
            truth.join("tcptrace").display()
        );
        println!("** Nothing was compared with tcptrace or tshark.");
        println!("*********************************************************************");
        return Ok(true);
    }
    let binary = match binary {
        Some(binary) => binary,
        None => shell::built_binary()?,
    };
    let mut report = Report {
        exceptions: Exceptions::read(&root().join("benches/oracle/flow_exceptions.tsv"))?,
        tallies: BTreeMap::new(),
        differences: Vec::new(),
        rules: BTreeMap::new(),
    };
    let mut failed = 0;
    let mut files = 0;
    for name in names(&captures, part.as_deref())? {
        let flat = name.replace('/', "~");
        let found = |directory: &str, endings: &[&str]| {
            let paths = endings
                .iter()
                .map(|ending| truth.join(directory).join(format!("{flat}{ending}")));
            paths.into_iter().find(|path| path.is_file())
        };
        let traced = found("tcptrace", &[".txt", ".txt.gz"]);
        let conversed = found("flow", &[".conv.txt", ".conv.txt.gz"]);
        if traced.is_none() && conversed.is_none() {
            continue;
        }
        files += 1;
        let capture = captures.join("pcaps").join(&name);
        let records = match fields::read(&binary, &capture) {
            Ok(records) => records,
            Err(error) => {
                println!("{name}: {error:#}");
                failed += 1;
                continue;
            }
        };
        if let Some(path) = traced {
            let text = text_of(&path)?;
            let theirs = tcptrace::parse(&text).with_context(|| format!("{}", path.display()))?;
            let frames = conversations::frames(&capture)?;
            against_tcptrace(&mut report, &name, &records, &theirs, &frames);
        }
        if let Some(path) = conversed {
            let text = text_of(&path)?;
            against_tshark(&mut report, &name, &capture, &records, &text)
                .with_context(|| format!("{}", path.display()))?;
        }
    }
    print(&report, files, verbose);
    let mut stale = 0;
    if part.is_none() {
        for exception in report.exceptions.unused() {
            println!("exception no longer applies: {exception}");
            stale += 1;
        }
    }
    let are_equal = failed == 0 && report.differences.is_empty() && stale == 0;
    if part.is_some() {
        return Ok(are_equal);
    }
    println!();
    let are_labels_equal = labels::labels(&binary, &captures)?;
    Ok(are_equal && are_labels_equal)
}

fn text_of(path: &Path) -> Result<String> {
    Ok(String::from_utf8_lossy(&read_unpacked(path)?).into_owned())
}

/// Captures by name, in the order of the catalog.
fn names(captures: &Path, part: Option<&str>) -> Result<Vec<String>> {
    let catalog =
        std::fs::read_to_string(captures.join("CATALOG.tsv")).context("read CATALOG.tsv")?;
    let paths = catalog.lines().skip(1).map(|row| row.split('\t').next());
    let names = paths
        .flatten()
        .filter_map(|path| path.strip_prefix("pcaps/"));
    Ok(names
        .filter(|name| part.is_none_or(|part| name.contains(part)))
        .map(str::to_owned)
        .collect())
}

fn by_pair<T>(all: &[T], ends: impl Fn(&T) -> [End; 2]) -> BTreeMap<Pair, Vec<&T>> {
    let mut map: BTreeMap<Pair, Vec<&T>> = BTreeMap::new();
    for one in all {
        let [a, b] = ends(one);
        map.entry(conversations::pair(a, b).0)
            .or_default()
            .push(one);
    }
    map
}

fn direction([from, to]: [End; 2], end: usize) -> String {
    let (from, to) = if end == 0 { (from, to) } else { (to, from) };
    format!("{}:{}>{}:{}", from.0, from.1, to.0, to.1)
}

fn against_tcptrace(
    report: &mut Report,
    name: &str,
    records: &[Record],
    theirs: &[Connection],
    frames: &conversations::Frames,
) {
    let ours = by_pair(records, |record| record.ends);
    for (pair, connections) in by_pair(theirs, |connection| connection.ends) {
        let records = ours.get(&pair).map(Vec::as_slice).unwrap_or_default();
        let same_cut = records.len() == connections.len();
        report.compare(
            same_cut,
            || Difference {
                file: name.to_owned(),
                direction: direction(pair, 0),
                field: "connections".to_owned(),
                ours: records.len().to_string(),
                theirs: connections.len().to_string(),
            },
            "connections",
        );
        if records.is_empty() {
            continue;
        }
        let repeats = frames.repeats.get(&pair).copied().unwrap_or_default();
        let of_pair = OfPair {
            windows: frames.syn_windows.get(&pair).copied().unwrap_or_default(),
            // Of several connections it is not known which.
            repeats: (connections.len() == 1).then_some(repeats.map(|repeats| repeats.count)),
        };
        if same_cut {
            for (connection, record) in connections.iter().zip(records) {
                compare_fields(report, name, &[connection], &[record], of_pair);
            }
        } else {
            compare_fields(report, name, &connections, records, of_pair);
        }
    }
}

/// What the frames say of both directions of a pair of ends, the lower end's first.
#[derive(Debug, Clone, Copy)]
struct OfPair {
    windows: [Option<(u64, u64)>; 2],
    repeats: Option<[u64; 2]>,
}

const fn one_of<T: Copy>([first, second]: [T; 2], is_second: bool) -> T {
    if is_second { second } else { first }
}

fn compare_fields(
    report: &mut Report,
    name: &str,
    connections: &[&Connection],
    records: &[&Record],
    of_pair: OfPair,
) {
    let Some(first) = connections.first() else {
        return;
    };
    for field in &FIELDS {
        for end in [0, 1] {
            let Some((ours, theirs)) = fields::values(field, connections, records, end) else {
                continue;
            };
            let agrees = field.agrees(ours, theirs);
            let [one, other] = first.ends;
            let is_exchanged = conversations::pair(one, other).1;
            let own = one_of(first.ends, end == 1);
            let is_second = (end == 1) != is_exchanged;
            let sides: Vec<usize> = records
                .iter()
                .map(|record| usize::from(record.ends.first() != Some(&own)))
                .collect();
            let direction_of = rules::Direction {
                field,
                ours,
                theirs,
                records,
                sides: &sides,
                syn_windows: one_of(of_pair.windows, is_second),
                repeats: of_pair.repeats.map(|repeats| one_of(repeats, is_second)),
                probes: connections
                    .iter()
                    .filter_map(|connection| {
                        let host = usize::from(connection.ends.first() != Some(&own));
                        connection.number_of(host, "zwnd probe pkts")
                    })
                    .sum(),
            };
            if let Some(rule) = (!agrees).then(|| direction_of.rule()).flatten() {
                *report.rules.entry(rule).or_default() += 1;
                let tally = report.tallies.entry(field.label.to_owned()).or_default();
                tally.excepted += 1;
                continue;
            }
            report.compare(
                agrees,
                || Difference {
                    file: name.to_owned(),
                    direction: format!("{} #{}", direction(first.ends, end), first.number),
                    field: field.label.to_owned(),
                    ours: number(ours),
                    theirs: number(theirs),
                },
                field.label,
            );
        }
    }
}

/// Whole numbers as such, others with three decimals.
fn number(value: f64) -> String {
    if value.fract() == 0.0 {
        format!("{value}")
    } else {
        format!("{value:.3}")
    }
}

fn against_tshark(
    report: &mut Report,
    name: &str,
    capture: &Path,
    records: &[Record],
    text: &str,
) -> Result<()> {
    let theirs = conversations::parse(text)?;
    let frames = conversations::frames(capture)?;
    let mut ours = conversations::Conversations::new();
    for record in records {
        let [client, server] = record.ends;
        let (pair, is_exchanged) = conversations::pair(client, server);
        let both = ours.entry(pair).or_default();
        for (index, direction) in both.iter_mut().enumerate() {
            let side = index ^ usize::from(is_exchanged);
            let count = |column| record.number(side, column).map_or(0, to_u64);
            direction.packets += count("pkts_all");
            direction.bytes += count("ip_bytes");
        }
    }
    for (pair, theirs) in &theirs {
        for (end, theirs) in theirs.iter().enumerate() {
            let of = |all: &conversations::Conversations| {
                let both = all.get(pair).copied().unwrap_or_default();
                both.get(end).copied().unwrap_or_default()
            };
            let (own, wire, ip) = (of(&ours), of(&frames.wire), of(&frames.ip));
            let printed = wire.bytes / theirs.unit.max(1) * theirs.unit.max(1);
            let rows = [
                ("tshark: packets", own.packets, theirs.packets),
                ("tshark: bytes of frames", printed, theirs.bytes),
                ("frames: bytes of IP", own.bytes, ip.bytes),
            ];
            for (field, ours, theirs) in rows {
                report.compare(
                    ours == theirs,
                    || Difference {
                        file: name.to_owned(),
                        direction: direction(*pair, end),
                        field: field.to_owned(),
                        ours: ours.to_string(),
                        theirs: theirs.to_string(),
                    },
                    field,
                );
            }
        }
    }
    let more = ours
        .keys()
        .filter(|pair| !theirs.contains_key(*pair))
        .count();
    report.compare(
        more == 0,
        || Difference {
            file: name.to_owned(),
            direction: "*".to_owned(),
            field: "tshark: conversations".to_owned(),
            ours: (theirs.len() + more).to_string(),
            theirs: theirs.len().to_string(),
        },
        "tshark: conversations",
    );
    Ok(())
}

/// Counts in JSON that are whole and small enough.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of packets and bytes of captures in a directory"
)]
fn to_u64(value: f64) -> u64 {
    value as u64
}

/// Differences of one field that are shown unless all are wanted.
const SHOWN: usize = 6;

fn print(report: &Report, files: usize, verbose: bool) {
    let header = ["field", "agree", "explained", "differ"];
    let mut table = vec![header.map(str::to_owned).to_vec()];
    let mut total = Tally::default();
    let order = FIELDS.iter().map(|field| field.label.to_owned());
    let rest = report.tallies.keys().cloned();
    let mut shown: Vec<String> = Vec::new();
    for field in order.chain(rest) {
        if shown.contains(&field) {
            continue;
        }
        let tally = report.tallies.get(&field).copied().unwrap_or_default();
        let figures = [tally.agree, tally.excepted, tally.differ].map(grouped);
        table.push(std::iter::once(field.clone()).chain(figures).collect());
        total.agree += tally.agree;
        total.excepted += tally.excepted;
        total.differ += tally.differ;
        shown.push(field);
    }
    let figures = [total.agree, total.excepted, total.differ].map(grouped);
    let title = format!("total of {files} captures");
    table.push(std::iter::once(title).chain(figures).collect());
    print_table(&table);
    for (rule, count) in &report.rules {
        println!("explained, {count} times: {rule}");
    }
    for (reason, count) in report.exceptions.uses() {
        println!("explained, {count} times: {reason}");
    }
    for field in shown {
        let of_field = report.differences.iter().filter(|d| d.field == field);
        let limit = if verbose { usize::MAX } else { SHOWN };
        for difference in of_field.take(limit) {
            let Difference {
                file,
                direction,
                field,
                ours,
                theirs,
            } = difference;
            println!("DIFFERS: {file}\t{direction}\t{field}\t{ours}\t{theirs}");
        }
    }
}
