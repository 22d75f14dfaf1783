//! Round-robin files by the real rrdtool and the real rrdcached.
#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and waits for programs of others by the clock"
)]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use linkweir_engine::{Sink, SinkError};
use linkweir_record::flow::{FlowBatch, FlowKind};
use linkweir_sketch::Step;
use linkweir_sketch::step::HistogramId;
use linkweir_tstat::rrd::{RrdOptions, Series, measured, open_rrd};

const SPAN_S: u64 = 300;

/// The first step of the tests: a multiple of a day, so that rows of every archive begin with it.
const FIRST: u64 = 1_699_920_000 / SPAN_S;

fn has(programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_missing = |program: &&&str| {
        !std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
    };
    let missing: Vec<_> = programs.iter().filter(is_missing).collect();
    if !missing.is_empty() {
        eprintln!("SKIPPED: needs {missing:?} (scripts/setup.sh test installs them)");
    }
    missing.is_empty()
}

/// Ends a child by its id, if a test fails before it does.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// What shard `shard` of two measured in step `n`: packet lengths, round-trip times in some steps.
fn step(n: u64, shard: u32) -> Step {
    let mut step = Step {
        number: FIRST + n,
        span_ns: SPAN_S * 1_000_000_000,
        shard,
        shards: 2,
        ..Step::default()
    };
    let id = |name| HistogramId::named(name).unwrap();
    step.histograms.add_n(id("ip_len_in"), 40, 10 + n);
    step.histograms.add_n(id("ip_len_in"), 1_500, 5);
    if n.is_multiple_of(2) {
        step.histograms
            .add(id("tcp_rtt_avg_in"), 20 + u64::from(shard) * 10);
    }
    step
}

fn feed(sink: &mut dyn Sink<FlowKind>, step: Step) {
    let mut batch = FlowBatch::default();
    batch.push_step(step);
    sink.write(&batch).unwrap();
}

/// Steps of two shards, the second one late by one.
fn feed_all(sink: &mut dyn Sink<FlowKind>, count: u64) {
    for n in 0..count {
        feed(sink, step(n, 0));
        if let Some(late) = n.checked_sub(1) {
            feed(sink, step(late, 1));
        }
    }
    feed(sink, step(count - 1, 1));
}

fn rrdtool(arguments: &[&str]) -> String {
    let output = Command::new("rrdtool")
        .env("LC_ALL", "C")
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The values of a file from the first step on, with the end of each.
fn fetch(file: &Path, steps: u64) -> Vec<(u64, f64)> {
    let start = (FIRST * SPAN_S).to_string();
    let end = ((FIRST + steps) * SPAN_S - 1).to_string();
    let file = file.to_str().unwrap();
    rrdtool(&["fetch", file, "AVERAGE", "-s", &start, "-e", &end])
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(at, value)| {
            (
                at.parse().unwrap(),
                value.replace("-nan", "nan").parse().unwrap(),
            )
        })
        .collect()
}

/// What the files say after `COUNT` steps of [`feed_all`].
fn check(directory: &Path) {
    let files = std::fs::read_dir(directory).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let names = names.filter(|name| name.ends_with(".rrd"));
    let names = names.collect::<BTreeSet<_>>();
    let expected = measured().iter().map(Series::file).collect::<BTreeSet<_>>();
    assert_eq!(names, expected);
    let values = |name: &str| -> Vec<f64> {
        let fetched = fetch(&directory.join(name), COUNT);
        let ends: Vec<_> = fetched.iter().map(|(at, _)| *at).collect();
        let expected: Vec<_> = (1..=COUNT).map(|n| (FIRST + n) * SPAN_S).collect();
        assert_eq!(ends, expected);
        fetched.into_iter().map(|(_, value)| value).collect()
    };
    let counted: Vec<_> = (0..COUNT).map(|n| (20 + 2 * n) as f64).collect();
    assert_eq!(values("ip_len_in.idx40.rrd"), counted);
    assert_eq!(values("ip_len_in.idx1500.rrd"), [10.0; COUNT as usize]);
    assert_eq!(values("ip_len_in.idxoth.rrd"), [0.0; COUNT as usize]);
    assert_eq!(values("ip_len_in.prc95.rrd"), [1_500.0; COUNT as usize]);
    assert_eq!(values("ip_len_out.idx40.rrd"), [0.0; COUNT as usize]);
    for (n, mean) in values("tcp_rtt_avg_in.avg.rrd").into_iter().enumerate() {
        // Of both shards, and unknown where there was nothing.
        assert!(
            if n.is_multiple_of(2) {
                mean == 25.0
            } else {
                mean.is_nan()
            },
            "{n}: {mean}"
        );
    }
    let deviation = values("tcp_rtt_avg_in.stdev.rrd");
    assert!((deviation[0] - 50_f64.sqrt()).abs() < 1e-9, "{deviation:?}");
    let info = rrdtool(&[
        "info",
        directory.join("tcp_rtt_avg_in.max.rrd").to_str().unwrap(),
    ]);
    let has = |line: &str| assert!(info.lines().any(|l| l == line), "{line} in {info}");
    has("step = 300");
    has("ds[tcp_rtt_avg_in].type = \"GAUGE\"");
    has("ds[tcp_rtt_avg_in].minimal_heartbeat = 600");
    for (at, (steps, rows)) in [(1, 600), (6, 700), (24, 775), (288, 797)]
        .into_iter()
        .enumerate()
    {
        has(&format!("rra[{at}].cf = \"AVERAGE\""));
        has(&format!("rra[{at}].pdp_per_row = {steps}"));
        has(&format!("rra[{at}].rows = {rows}"));
    }
    assert!(!info.contains("rra[4]"));
    let size = directory
        .join("tcp_rtt_avg_in.max.rrd")
        .metadata()
        .unwrap()
        .len();
    assert_eq!(size, 24_184, "that of Tstat's files");
}

const COUNT: u64 = 13;

#[test]
fn a_directory_gets_the_files_of_tstat() {
    if !has(&["rrdtool"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let rrd = directory.path().join("rrd");
    let mut sink = open_rrd(rrd.to_str().unwrap(), RrdOptions::default()).unwrap();
    feed_all(&mut *sink, COUNT);
    sink.finish().unwrap();
    assert_eq!(sink.losses().count, 0, "{:?}", sink.losses());
    check(&rrd);
    // A second run over the same times is refused value by value, named once, and changes nothing.
    let mut again = open_rrd(rrd.to_str().unwrap(), RrdOptions::default()).unwrap();
    feed(&mut *again, step(3, 0));
    again.finish().unwrap();
    let losses = again.losses();
    assert_eq!(losses.count, measured().len() as u64);
    assert!(losses.first.unwrap().contains("illegal attempt to update"));
    check(&rrd);
    // A third goes on where the first ended.
    let mut later = open_rrd(rrd.to_str().unwrap(), RrdOptions::default()).unwrap();
    feed(&mut *later, step(COUNT, 0));
    drop(later);
    let mut later = open_rrd(rrd.to_str().unwrap(), RrdOptions::default()).unwrap();
    feed(&mut *later, step(COUNT, 0));
    later.finish().unwrap();
    assert_eq!(later.losses().count, 0);
    let values = fetch(&rrd.join("ip_len_in.idx40.rrd"), COUNT + 1);
    assert_eq!(values.last().unwrap().1, (10 + COUNT) as f64);
}

struct Daemon {
    _process: Ends,
    socket: PathBuf,
}

fn daemon(directory: &Path) -> Daemon {
    let socket = directory.join("rrdcached.sock");
    std::fs::remove_file(&socket).ok();
    let base = directory.join("base");
    std::fs::create_dir_all(&base).unwrap();
    let process = Command::new("rrdcached")
        .arg("-g")
        .arg("-l")
        .arg(format!("unix:{}", socket.display()))
        .arg("-b")
        .arg(&base)
        .arg("-p")
        .arg(directory.join("rrdcached.pid"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let process = Ends(process);
    let end = Instant::now() + Duration::from_secs(20);
    while UnixStream::connect(&socket).is_err() {
        assert!(Instant::now() < end, "rrdcached does not come");
        thread::sleep(Duration::from_millis(20));
    }
    Daemon {
        _process: process,
        socket,
    }
}

impl Daemon {
    fn flush_all(&self) {
        let stream = UnixStream::connect(&self.socket).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.get_mut().write_all(b"FLUSHALL\n").unwrap();
        reader.read_line(&mut line).unwrap();
        assert!(line.starts_with("0 "), "{line}");
        // FLUSHALL only begins it; FLUSH of each file waits for it.
        for file in [
            "ip_len_in.idx40",
            "ip_len_in.idx1500",
            "ip_len_in.idxoth",
            "ip_len_in.prc95",
            "ip_len_out.idx40",
            "tcp_rtt_avg_in.avg",
            "tcp_rtt_avg_in.stdev",
        ] {
            reader
                .get_mut()
                .write_all(format!("FLUSH {file}.rrd\n").as_bytes())
                .unwrap();
            line.clear();
            reader.read_line(&mut line).unwrap();
            assert!(line.starts_with("0 "), "{line}");
        }
    }
}

#[test]
fn rrdcached_gets_the_same() {
    if !has(&["rrdtool", "rrdcached"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let daemon = daemon(directory.path());
    let destination = format!("unix:{}", daemon.socket.display());
    let mut sink = open_rrd(&destination, RrdOptions::default()).unwrap();
    feed_all(&mut *sink, COUNT);
    sink.finish().unwrap();
    assert_eq!(sink.losses().count, 0, "{:?}", sink.losses());
    daemon.flush_all();
    check(&directory.path().join("base"));
}

#[test]
fn a_daemon_that_goes_away_is_counted_and_found_again() {
    if !has(&["rrdtool", "rrdcached"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let first = daemon(directory.path());
    let destination = format!("unix:{}", first.socket.display());
    let mut sink = open_rrd(&destination, RrdOptions::default()).unwrap();
    let alone = |n| Step {
        shards: 1,
        ..step(n, 0)
    };
    feed(&mut *sink, alone(0));
    first.flush_all();
    drop(first);
    feed(&mut *sink, alone(1));
    assert_eq!(sink.losses().count, measured().len() as u64);
    assert!(sink.losses().first.unwrap().contains("rrdcached.sock"));
    let second = daemon(directory.path());
    feed(&mut *sink, alone(2));
    sink.finish().unwrap();
    assert_eq!(sink.losses().count, measured().len() as u64);
    second.flush_all();
    let values = fetch(&directory.path().join("base/ip_len_in.idx40.rrd"), 3);
    assert_eq!(values[0].1, 10.0);
    assert_eq!(values[2].1, 12.0);
}

#[test]
fn a_shard_that_never_comes_holds_up_no_more_than_it_may() {
    if !has(&["rrdtool"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut sink = open_rrd(directory.path().to_str().unwrap(), RrdOptions::default()).unwrap();
    for n in 0..25 {
        feed(&mut *sink, step(n, 0));
    }
    let file = directory.path().join("ip_len_in.idx40.rrd");
    assert!(file.is_file(), "the oldest step is written without it");
    feed(&mut *sink, step(0, 1));
    assert_eq!(sink.losses().count, 1);
    sink.finish().unwrap();
    let values = fetch(&file, 25);
    assert_eq!(values.len(), 25);
    assert!(
        values
            .iter()
            .zip(0..)
            .all(|((_, value), n)| *value == f64::from(10 + n))
    );
}

#[test]
fn what_cannot_be_written_is_refused() {
    let sub_second = RrdOptions {
        step: Duration::from_millis(1_500),
    };
    let refused = open_rrd("unix:/nowhere", sub_second);
    assert!(
        matches!(refused, Err(SinkError::Refused { message, .. }) if message.contains("seconds"))
    );
    let nobody = open_rrd("unix:/nowhere/rrdcached.sock", RrdOptions::default());
    assert!(matches!(nobody, Err(SinkError::Io { .. })));
    let nowhere = open_rrd("/nowhere/at/all", RrdOptions::default());
    assert!(matches!(nowhere, Err(SinkError::Io { .. })));
}
