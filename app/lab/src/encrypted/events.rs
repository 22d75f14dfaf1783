//! Streams of events: what a client reads when, beside what is seen of it with keys, without, and in clear behind the
//! server. Half of the streams pass a proxy that buffers, which must be found, and of the others must not.

use super::client::Heard;
use super::settings::Settings;
use super::trace::{self, Reader, records};
use super::{Part, plan};
use crate::curves::quantile;
use crate::error::LabError;
use crate::program::{all, each};
use crate::report::{Report, Rule, Table, Unit};
use crate::testbed::{Testbed, go_first};
use linkweir_testkit::gateway::Place;
use linkweir_testkit::netns::{Running, until};
use serde::Deserialize;
use std::collections::HashMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// First part of the path of a stream that the server passes on as it comes, and of one that it buffers.
const KINDS: [&str; 2] = ["/events/", "/buffered/"];
/// Events of a stream and milliseconds between them, in turns: an answer of a model, and slower ones.
const SHAPES: [(u64, u64); 3] = [(40, 25), (20, 60), (12, 110)];
/// Streams at a time: half as many connections take turns of both kinds.
const AT_ONCE: u32 = 8;
/// How long the last events may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// What a time may differ by between the client and the packets, on a line that loses nothing, seconds.
const WITHIN_S: f64 = 1.5e-3;

/// The number of a stream by its path.
pub(super) fn number(path: &str) -> Option<u64> {
    KINDS.iter().find_map(|kind| plan::number_of(kind, path))
}

/// What is known of the streams of a line.
#[derive(Debug, Default)]
pub(super) struct Found {
    clock: Vec<Stream>,
    keyed: Vec<Stream>,
    estimated: Vec<Stream>,
    clear: Vec<Stream>,
}

/// A stream as one observer has it; times in seconds.
#[derive(Debug, Clone)]
struct Stream {
    /// Whether the server buffers it.
    is_held: bool,
    events: u64,
    first_s: Option<f64>,
    gap_s: Option<f64>,
    longest_s: Option<f64>,
    is_found_buffered: bool,
}

/// Fields of `http_transaction`.
#[derive(Debug, Deserialize)]
struct Record {
    client_port: u16,
    request_ts_ns: Option<u64>,
    uri: Option<String>,
    first_event_ns: Option<u64>,
    events: Option<u64>,
    event_gap_p50_ns: Option<u64>,
    event_gap_max_ns: Option<u64>,
    buffered: Option<String>,
}

/// All streams over a line, and what was captured of them.
pub(super) fn observe(
    settings: &Settings,
    testbed: &mut Testbed<'_>,
    line: &'static str,
) -> Result<Found, LabError> {
    let traces = trace::start(testbed, line)?;
    testbed.tell_of(&format!("{line} line: streams"), settings.duration);
    let clock = ask(settings, testbed, line)?;
    let traces = traces.finish(testbed)?;
    testbed.tell(&format!("{line} line: what was captured"));
    let all = |capture: &Path, reader| all::<Record>(&records(testbed, capture, reader)?);
    let keyed = all(&traces.clients, Reader::Keys(&traces.keys))?;
    let estimated = all(&traces.clients, Reader::Estimates)?;
    let clear = all(&traces.origin, Reader::Estimates)?;
    // An estimate has no path: it is of the stream whose request is in its packet.
    let named: HashMap<_, _> = keyed
        .iter()
        .filter_map(|record| {
            Some((
                (record.request_ts_ns?, record.client_port),
                is_held(record.uri.as_deref()?)?,
            ))
        })
        .collect();
    let known = |record: &Record| record.uri.as_deref().and_then(is_held);
    let place = |record: &Record| {
        named
            .get(&(record.request_ts_ns?, record.client_port))
            .copied()
    };
    Ok(Found {
        clock: clock.iter().filter_map(of_clock).collect(),
        keyed: keyed
            .iter()
            .filter_map(|record| of_record(record, known(record)?))
            .collect(),
        estimated: estimated
            .iter()
            .filter_map(|record| of_record(record, place(record)?))
            .collect(),
        clear: clear
            .iter()
            .filter_map(|record| of_record(record, known(record)?))
            .collect(),
    })
}

/// Lets the laboratory's client ask for streams of both kinds in turns.
fn ask(
    settings: &Settings,
    testbed: &Testbed<'_>,
    line: &str,
) -> Result<Vec<(String, Heard)>, LabError> {
    let (mut left, mut paths) = (settings.duration * AT_ONCE, Vec::new());
    while !left.is_zero() {
        let at = paths.len();
        // Both kinds of each shape, in turns, on each connection.
        let kind = KINDS.get(at / 8 % 2).copied().unwrap_or_default();
        let (events, gap) = SHAPES.get(at / 16 % 3).copied().unwrap_or_default();
        paths.push(format!("{kind}{events}/{gap}/{at}"));
        left = left.saturating_sub(Duration::from_millis(events * gap) + settings.latency * 2);
    }
    let name = |ending: &str| testbed.path(&format!("{line}-client-0.{ending}"));
    let (plan, out, said) = (name("plan"), name("out"), name("err"));
    let text: String = paths.iter().map(|path| format!("{path}\n")).collect();
    fs::write(&plan, text).map_err(LabError::file(&plan))?;
    let (plan, out_text) = (plan.display().to_string(), out.display().to_string());
    let mut command = testbed.part(Place::Client, &["client", "--plan", &plan, "-w", &out_text]);
    command.env("SSLKEYLOGFILE", name("keys"));
    let file = File::create(&said).map_err(LabError::file(&said))?;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(file);
    let client = |why: String| LabError::program("the client", why);
    let mut running = Running::start(&mut command).map_err(|error| client(error.to_string()))?;
    go_first(testbed, running.id());
    until(settings.duration * 4 + TIMEOUT, || {
        testbed.is_stopped() || !matches!(running.ended(), Ok(None))
    });
    if testbed.is_stopped() {
        return Err(LabError::Stopped);
    }
    if !matches!(running.ended(), Ok(Some(status)) if status.success()) {
        return Err(client(fs::read_to_string(&said).unwrap_or_default()));
    }
    let mut readings = Vec::new();
    each(&out, |heard: Heard| {
        let path = usize::try_from(heard.reading.id)
            .ok()
            .and_then(|at| paths.get(at));
        readings.extend(path.map(|path| (path.clone(), heard)));
    })?;
    Ok(readings)
}

/// Whether the server buffers a stream, by its path.
fn is_held(path: &str) -> Option<bool> {
    number(path)?;
    Some(path.contains(KINDS[1]))
}

fn of_clock((path, heard): &(String, Heard)) -> Option<Stream> {
    let seconds: Vec<f64> = heard
        .events_ns
        .iter()
        .map(|nanos| *nanos as f64 / 1e9)
        .collect();
    let gap = |two: &[f64]| match two {
        [one, next] => next - one,
        _ => 0.0,
    };
    let mut gaps: Vec<f64> = seconds.windows(2).map(gap).collect();
    gaps.sort_by(f64::total_cmp);
    Some(Stream {
        is_held: is_held(path)?,
        events: seconds.len() as u64,
        first_s: seconds.first().copied(),
        gap_s: quantile(&gaps, 0.5),
        longest_s: gaps.last().copied(),
        is_found_buffered: false,
    })
}

fn of_record(record: &Record, is_held: bool) -> Option<Stream> {
    let seconds = |nanos: Option<u64>| nanos.map(|nanos| nanos as f64 / 1e9);
    Some(Stream {
        is_held,
        events: record.events?,
        first_s: seconds(record.first_event_ns),
        gap_s: seconds(record.event_gap_p50_ns),
        longest_s: seconds(record.event_gap_max_ns),
        is_found_buffered: record.buffered.as_deref() == Some("yes"),
    })
}

/// The tables of both lines.
pub(super) fn report(settings: &Settings, parts: &[Part<Found>]) -> Report {
    let mut report = Report::default();
    super::tables::lines(settings, &mut report);
    for part in parts {
        for (what, is_held) in [
            ("passed on as they come", false),
            ("behind a proxy that buffers", true),
        ] {
            let title = format!("{} line: streams {what}", part.name);
            report
                .tables
                .push(streams(&title, &part.found, is_held, part.harm.loss == 0.0));
        }
    }
    report.notes.push(
        "estimated: from the lengths and the times of records. origin: in clear, between the server and the origin, where \
         nothing is buffered yet."
            .to_owned(),
    );
    report
}

fn streams(title: &str, found: &Found, is_held: bool, is_clean: bool) -> Table {
    let mut table = Table::new(title, &["client", "keys", "estimated", "origin"]);
    let observers = [&found.clock, &found.keyed, &found.estimated, &found.clear];
    let of = |figure: &dyn Fn(&[&Stream]) -> Option<f64>| {
        observers.map(|streams| {
            let streams: Vec<&Stream> = streams
                .iter()
                .filter(|one| one.is_held == is_held)
                .collect();
            figure(&streams)
        })
    };
    let count = of(&|streams| Some(streams.len() as f64));
    let events = of(&|streams| Some(streams.iter().map(|one| one.events).sum::<u64>() as f64));
    let [client, keys, estimated, origin] = count;
    table.row(
        "streams",
        Unit::Count,
        Rule::Same,
        &[client, keys, None, origin],
    );
    table.row(
        "  seen without keys",
        Unit::Count,
        Rule::Shown,
        &[None, None, estimated, None],
    );
    let [client, keys, estimated, origin] = events;
    table.row(
        "events",
        Unit::Count,
        Rule::Same,
        &[client, keys, None, origin],
    );
    table.row(
        "  without keys",
        Unit::Count,
        Rule::Shown,
        &[None, None, estimated, None],
    );
    let median = |figure: fn(&Stream) -> Option<f64>| {
        of(&|streams| {
            let mut figures: Vec<f64> = streams.iter().filter_map(|one| figure(one)).collect();
            figures.sort_by(f64::total_cmp);
            quantile(&figures, 0.5)
        })
    };
    let near = if is_clean {
        Rule::Within(WITHIN_S)
    } else {
        Rule::Shown
    };
    for (name, figures) in [
        ("time to first event, median", median(|one| one.first_s)),
        ("gap, median of medians", median(|one| one.gap_s)),
        ("longest gap, median", median(|one| one.longest_s)),
    ] {
        let [client, keys, estimated, origin] = figures;
        // Quantiles of gaps are those of a sketch, an eighth too large at most.
        let rule = match name.starts_with("gap") {
            true if is_clean => Rule::WithinPart(0.125),
            _ => near,
        };
        let rule = if is_held && name.starts_with("gap") {
            Rule::Shown
        } else {
            rule
        };
        let estimated = estimated.filter(|_| !is_held);
        table.row(name, Unit::Seconds, rule, &[client, keys, estimated, None]);
        table.row(
            "  at the origin",
            Unit::Seconds,
            Rule::Shown,
            &[None, None, None, origin],
        );
    }
    let buffered =
        of(&|streams| Some(streams.iter().filter(|one| one.is_found_buffered).count() as f64));
    let [_, keys, _, origin] = buffered;
    let all = count[1].unwrap_or(0.0);
    let rule = if is_held {
        Rule::AtLeast(all)
    } else {
        Rule::AtMost(0.0)
    };
    table.row(
        "a proxy that buffers was found",
        Unit::Count,
        rule,
        &[None, keys, None, None],
    );
    table.row(
        "  at the origin",
        Unit::Count,
        Rule::AtMost(0.0),
        &[None, None, None, origin],
    );
    table
}
