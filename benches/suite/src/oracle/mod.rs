//! `oracle`: what `linkweir http` finds, against what tshark found, on a directory of captures; before them
//! on one that is made, with every link type and tunnel (`made`).
//!
//! The directory has `CATALOG.tsv`, the captures under `pcaps/` and tshark's rows under `truth/http/`.
//! It is not part of the project; without it the oracle says so and passes.
//!
//! The rule of equality: requests, responses, methods, codes and pairs are compared on messages that are
//! no duplicates, which for tshark's rows are those whose direction and sequence number came before.
//! Of duplicates we must have found at least those that tshark shows: it shows some retransmissions
//! again and leaves out others. Everything else is a difference, unless `benches/oracle/exceptions.tsv`
//! names and explains it; an exception that no longer applies is an error as well.

mod exceptions;
mod flows;
mod labels;
mod made;
mod ours;
mod truth;

use crate::Outcome;
use crate::shell::{self, Options, grouped, print_table, root};
use anyhow::{Context as _, Result};
use exceptions::Exceptions;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// A request and its final response: client, server, when each was seen (us since 1970), code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    client: (IpAddr, u16),
    server: (IpAddr, u16),
    request_us: u64,
    response_us: u64,
    code: u16,
}

/// What one side says of one capture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Findings {
    /// Requests that are no duplicates.
    requests: u64,
    repeated_requests: u64,
    /// Responses that are no duplicates, interim ones included.
    responses: u64,
    repeated_responses: u64,
    /// Interim responses that are no duplicates.
    interim: u64,
    /// Requests that are no duplicates, by method.
    methods: BTreeMap<String, u64>,
    /// Final responses that are no duplicates, by code.
    codes: BTreeMap<u16, u64>,
    pairs: BTreeSet<Pair>,
}

/// One number on which the sides differ.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Difference {
    quantity: String,
    ours: u64,
    theirs: u64,
}

/// A response that announces another: 1xx but 101, behind which the connection speaks something else.
fn is_interim(code: u16) -> bool {
    (100..200).contains(&code) && code != 101
}

fn compare(ours: &Findings, theirs: &Findings) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut check = |quantity: String, ours: u64, theirs: u64| {
        if ours != theirs {
            differences.push(Difference {
                quantity,
                ours,
                theirs,
            });
        }
    };
    check("requests".to_owned(), ours.requests, theirs.requests);
    check("responses".to_owned(), ours.responses, theirs.responses);
    if theirs.repeated_requests > ours.repeated_requests {
        check(
            "repeated requests".to_owned(),
            ours.repeated_requests,
            theirs.repeated_requests,
        );
    }
    if theirs.repeated_responses > ours.repeated_responses {
        check(
            "repeated responses".to_owned(),
            ours.repeated_responses,
            theirs.repeated_responses,
        );
    }
    check("interim".to_owned(), ours.interim, theirs.interim);
    let methods: BTreeSet<&String> = ours.methods.keys().chain(theirs.methods.keys()).collect();
    for method in methods {
        let count = |side: &Findings| side.methods.get(method).copied().unwrap_or(0);
        check(format!("method {method}"), count(ours), count(theirs));
    }
    let codes: BTreeSet<u16> = ours
        .codes
        .keys()
        .chain(theirs.codes.keys())
        .copied()
        .collect();
    for code in codes {
        let count = |side: &Findings| side.codes.get(&code).copied().unwrap_or(0);
        check(format!("code {code}"), count(ours), count(theirs));
    }
    // Only where tshark matched: what else we pair, it could not.
    let common = theirs.pairs.intersection(&ours.pairs).count() as u64;
    check("pairs".to_owned(), common, theirs.pairs.len() as u64);
    differences
}

/// `oracle flows ...`, or `oracle [--file PART] [--verbose] [--captures DIR]`
pub(crate) fn run(args: &[String]) -> Outcome {
    if let Some(("flows", rest)) = args.split_first().map(|(what, rest)| (what.as_str(), rest)) {
        return flows::run(rest);
    }
    let mut options = Options::new(args);
    let part: Option<String> = options.value("--file")?;
    let verbose = options.flag("--verbose");
    let captures: Option<PathBuf> = options.value("--captures")?;
    options.rest()?;

    let binary = shell::built_binary()?;
    let is_made_equal = part.is_some() || made::run(&binary)?;
    let captures = captures.unwrap_or_else(|| root().join("../shared/captures"));
    let truth_dir = captures.join("truth/http");
    if !truth_dir.is_dir() {
        println!("*********************************************************************");
        println!("** ORACLE SKIPPED: no captures with tshark's results here.");
        println!(
            "** Looked for {}; --captures DIR names another directory.",
            truth_dir.display()
        );
        println!("** No recorded capture was compared with tshark.");
        println!("*********************************************************************");
        return Ok(is_made_equal);
    }

    let mut exceptions = Exceptions::read(&root().join("benches/oracle/exceptions.tsv"))?;
    let mut table = vec![
        [
            "file",
            "requests",
            "tshark",
            "responses",
            "tshark",
            "pairs",
            "tshark",
            "more",
            "verdict",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    let mut totals = [0_u64; 6];
    let mut differing = 0;
    let mut excepted = 0;
    let files = files(&captures, part.as_deref())?;
    let read = shell::side_by_side(&files, |(name, truth_file)| {
        let capture = captures.join("pcaps").join(name);
        Ok((truth::read(truth_file)?, ours::read(&binary, &capture)?))
    });
    for ((name, _), read) in files.iter().zip(read) {
        let (theirs, ours) = match read {
            Ok(both) => both,
            Err::<_, anyhow::Error>(error) => {
                println!("{name}: {error:#}");
                differing += 1;
                continue;
            }
        };
        let differences = compare(&ours, &theirs);
        let (explained, unexplained): (Vec<_>, Vec<_>) = differences
            .into_iter()
            .partition(|difference| exceptions.explains(name, difference));
        differing += usize::from(!unexplained.is_empty());
        excepted += usize::from(unexplained.is_empty() && !explained.is_empty());
        let common = ours.pairs.intersection(&theirs.pairs).count() as u64;
        let figures = [
            ours.requests,
            theirs.requests,
            ours.responses,
            theirs.responses,
            common,
            theirs.pairs.len() as u64,
        ];
        for (total, figure) in totals.iter_mut().zip(figures) {
            *total += figure;
        }
        let mut row = vec![shortened(name)];
        row.extend(figures.map(grouped));
        row.push(grouped(ours.pairs.len() as u64 - common));
        row.push(verdict(&explained, &unexplained));
        table.push(row);
        if verbose {
            show(name, &ours, &theirs);
        }
    }
    let mut total = vec![format!("total of {} files", files.len())];
    total.extend(totals.map(grouped));
    total.extend([
        String::new(),
        format!("differ: {differing}, explained: {excepted}"),
    ]);
    table.push(total);
    print_table(&table);
    println!("(`more`: pairs that we found and tshark did not)");

    let mut stale = 0;
    if part.is_none() {
        for exception in exceptions.unused() {
            println!("exception no longer applies: {exception}");
            stale += 1;
        }
    }
    Ok(differing == 0 && stale == 0 && is_made_equal)
}

fn verdict(explained: &[Difference], unexplained: &[Difference]) -> String {
    let list = |differences: &[Difference]| {
        let texts: Vec<String> = differences
            .iter()
            .map(|d| format!("{} {}/{}", d.quantity, d.ours, d.theirs))
            .collect();
        texts.join(", ")
    };
    match (explained.is_empty(), unexplained.is_empty()) {
        (true, true) => "equal".to_owned(),
        (false, true) => format!("explained: {}", list(explained)),
        _ => format!("DIFFERS: {}", list(unexplained)),
    }
}

/// The pairs that only one side has.
fn show(name: &str, ours: &Findings, theirs: &Findings) {
    let line = |who: &str, pair: &Pair| {
        let Pair {
            client,
            server,
            request_us,
            response_us,
            code,
        } = pair;
        println!(
            "{name}: {who}: {}:{} -> {}:{} request {}.{:06} response {}.{:06} code {code}",
            client.0,
            client.1,
            server.0,
            server.1,
            request_us / 1_000_000,
            request_us % 1_000_000,
            response_us / 1_000_000,
            response_us % 1_000_000,
        );
    };
    theirs
        .pairs
        .difference(&ours.pairs)
        .for_each(|pair| line("only tshark", pair));
    ours.pairs
        .difference(&theirs.pairs)
        .for_each(|pair| line("only ours", pair));
}

/// The end of a long path.
fn shortened(name: &str) -> String {
    const WIDTH: usize = 52;
    let length = name.chars().count();
    if length <= WIDTH {
        return name.to_owned();
    }
    let tail: String = name.chars().skip(length - WIDTH + 2).collect();
    format!("..{tail}")
}

/// Captures with tshark's rows: name under `pcaps/`, file of rows.
fn files(captures: &Path, part: Option<&str>) -> Result<Vec<(String, PathBuf)>> {
    let catalog =
        std::fs::read_to_string(captures.join("CATALOG.tsv")).context("read CATALOG.tsv")?;
    let truth_dir = captures.join("truth/http");
    let mut files = Vec::new();
    for row in catalog.lines().skip(1) {
        let path = row.split('\t').next().unwrap_or("");
        let Some(name) = path.strip_prefix("pcaps/") else {
            continue;
        };
        if part.is_some_and(|part| !name.contains(part)) {
            continue;
        }
        let flat = name.replace('/', "~");
        let rows = [".noreasm.tsv", ".noreasm.tsv.gz"]
            .map(|ending| truth_dir.join(format!("{flat}{ending}")))
            .into_iter()
            .find(|rows| rows.is_file());
        if let Some(rows) = rows {
            files.push((name.to_owned(), rows));
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interim_is_1xx_but_not_101() {
        assert!(is_interim(100) && is_interim(103));
        assert!(!is_interim(101) && !is_interim(200));
    }

    #[test]
    fn what_only_we_pair_is_no_difference() {
        let pair = Pair {
            client: ("10.0.0.1".parse().unwrap(), 1000),
            server: ("10.0.0.2".parse().unwrap(), 80),
            request_us: 1,
            response_us: 2,
            code: 200,
        };
        let with = Findings {
            pairs: BTreeSet::from([pair]),
            ..Findings::default()
        };
        let without = Findings::default();
        assert!(compare(&with, &without).is_empty());
        let lost = compare(&without, &with);
        assert_eq!(
            lost,
            [Difference {
                quantity: "pairs".to_owned(),
                ours: 0,
                theirs: 1
            }]
        );
    }

    #[test]
    fn a_method_that_one_side_lacks_is_a_difference() {
        let ours = Findings {
            methods: BTreeMap::from([("GET".into(), 2)]),
            ..Findings::default()
        };
        let theirs = Findings::default();
        assert_eq!(
            compare(&ours, &theirs).first().unwrap().quantity,
            "method GET"
        );
    }
}
