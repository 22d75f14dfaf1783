//! A process that writes an archive is killed, many times; nothing but its last step may be missing.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use linkweir_sketch::Step;
use linkweir_sketch::archive::Cell;
use linkweir_sketch::cells::{Direction, Measure, SeriesId, Transport};
use linkweir_tstat::archive::{ArchiveSink, read_archive};

const FILE: &str = "LINKWEIR_TEST_ARCHIVE";
const STEP: Duration = Duration::from_secs(300);
const KILLS: u64 = 40;
const BYTES: SeriesId = SeriesId::bytes(Transport::Tcp, Direction::Out);

fn throughput() -> SeriesId {
    SeriesId::distribution(Measure::TcpThroughput, Direction::Out).unwrap()
}

/// What a step holds, by its number.
fn content(number: u64) -> u64 {
    number * 7 + 13
}

fn step(number: u64) -> Step {
    let mut step = Step {
        number,
        span_ns: 300_000_000_000,
        shards: 1,
        ..Step::default()
    };
    step.cells.add(BYTES, content(number));
    step.cells.add(throughput(), content(number));
    step
}

/// The process that is killed: writes steps, and says after each that it is there. Only the test below
/// names it a file, and kills it.
#[test]
fn writer() {
    let Some(path) = std::env::var_os(FILE) else {
        return;
    };
    let mut sink = ArchiveSink::open(Path::new(&path), STEP).unwrap();
    let first = sink.opened().newest.map_or(5000, |newest| newest + 1);
    assert_eq!((sink.opened().rebuilt, sink.opened().lost), (0, 0));
    for number in first.. {
        sink.put(&step(number)).unwrap();
        println!("step {number}");
    }
}

/// Looks at every row of every level; returns the latest step.
fn check(path: &Path, first: u64) -> u64 {
    let mut reader = read_archive(path).unwrap();
    let mut row = reader.buffer();
    let newest = reader.rows(0).unwrap().last().unwrap().number;
    for (level, steps) in [1, 6, 24, 288].into_iter().enumerate() {
        let rows = reader.rows(level).unwrap();
        assert_eq!(rows.last().unwrap().number, newest / steps, "level {level}");
        let oldest = rows.first().unwrap().number;
        for (place, expected) in rows.into_iter().zip(oldest..) {
            assert_eq!(place.number, expected, "no gap");
            assert!(reader.row(level, place, &mut row).unwrap());
            let (from, to) = (expected * steps, (expected + 1) * steps);
            let inside = from.max(first)..to.min(newest + 1);
            assert_eq!(u64::from(row.steps()), inside.end - inside.start);
            let sum: u64 = inside.clone().map(content).sum();
            let Some(Cell::Scalar {
                sum: found,
                min,
                max,
            }) = reader.cell(&row, usize::from(BYTES.0))
            else {
                panic!("a counter");
            };
            assert_eq!(
                (found, min, max),
                (sum, content(inside.start), content(inside.end - 1))
            );
            let Some(Cell::Distribution(found)) = reader.cell(&row, usize::from(throughput().0))
            else {
                panic!("a distribution");
            };
            assert_eq!(found.sum, u128::from(sum));
            assert_eq!(found.buckets.iter().sum::<u64>(), u64::from(row.steps()));
        }
    }
    newest
}

#[test]
fn a_killed_writer_loses_the_current_step_at_most() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.arc");
    let mut said = 4999;
    for kill in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "archive_kill::writer", "--nocapture"])
            .env(FILE, &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let step_of = |line: String| {
            line.strip_prefix("step ")
                .and_then(|n| n.parse::<u64>().ok())
        };
        for _ in 0..kill % 11 + 2 {
            said = lines.find_map(|line| step_of(line.unwrap())).unwrap();
        }
        // At another moment of the next step each time.
        for _ in 0..kill * 37 % 700 * 300 {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        said = lines
            .map_while(Result::ok)
            .filter_map(step_of)
            .last()
            .unwrap_or(said);
        let newest = check(&path, 5000);
        assert!(
            (said..=said + 1).contains(&newest),
            "said {said}, there is {newest}"
        );
        said = newest;
    }
    assert!(said > 5200);
}
