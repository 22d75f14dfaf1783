use std::path::Path;

use linkweir_record::{FlowKind, HttpKind};
use linkweir_sketch::LogLinear;

use super::file::{MAX_ROW, RingFile};
use super::*;
use crate::api::HttpCounts;
use crate::figure::Codes;
use crate::interval::Sums;

const S: u64 = 1_000_000_000;
/// A time that is the start of a row of every level.
const T0: u64 = 1_700_000_000 / 120 * 120 * S;

fn second(at: u64, requests: u64) -> Open<HttpKind> {
    let mut times = LogLinear::new();
    times.record_n(1_000_000, requests);
    let mut codes = Codes::default();
    codes.record_n(200, requests);
    Open {
        sums: Sums {
            packets: 2 * requests,
            counts: HttpCounts {
                requests,
                responses: requests,
                codes,
                response_time_ns: times,
                ..HttpCounts::default()
            },
            ..Sums::default()
        },
        ..Open::new(T0 + at * S, T0 + (at + 1) * S)
    }
}

fn run(path: &Path, from: u64, to: u64) -> (Day<HttpKind>, Arc<DayReader>) {
    let (mut day, reader) = open::<HttpKind>(path, false).unwrap();
    for at in from..to {
        day.push(&second(at, 3), S, &Dropped::default());
    }
    (day, reader)
}

fn requests(reader: &DayReader, span_s: u64) -> Vec<u64> {
    let past = reader.past::<HttpKind>(span_s);
    past.ticks.iter().map(|tick| tick.requests).collect()
}

#[test]
fn a_day_survives_restarts_and_goes_on_in_its_rows() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("day");
    let (mut day, reader) = run(&path, 0, 12);
    assert_eq!(
        requests(&reader, 900),
        [15, 15],
        "the open row is not there yet"
    );
    day.flush();
    assert_eq!(requests(&reader, 900), [15, 15, 6]);
    drop((day, reader));
    // A second is missing, and the row of the finest level is the same.
    let (mut day, reader) = run(&path, 13, 27);
    day.flush();
    assert_eq!(requests(&reader, 900), [15, 15, 12, 15, 15, 6]);
    assert_eq!(requests(&reader, 21_600), [78], "30 s a row");
    assert_eq!(requests(&reader, 86_400), [78], "2 min a row");
    let past = reader.past::<HttpKind>(900);
    let [.., tick, _, _, _] = &past.ticks[..] else {
        panic!("six rows");
    };
    assert_eq!((past.step_s, past.torn), (5.0, 0));
    assert_eq!(
        (tick.interval_s, tick.packets, tick.codes[&200]),
        (4.0, 24, 12)
    );
    let times = tick.response_time_ns.unwrap();
    assert_eq!((times.count, times.min), (12, 1_000_000));
    assert!((1_000_000..=1_125_000).contains(&times.p50));
    // The same seconds again, as of a capture that is read twice, are not counted twice.
    drop((day, reader));
    let (mut day, reader) = run(&path, 25, 27);
    day.flush();
    assert_eq!(requests(&reader, 900), [15, 15, 12, 15, 15, 6]);
}

#[test]
fn the_size_is_constant_and_a_span_is_no_longer_than_it_says() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("day");
    let (mut day, reader) = open::<HttpKind>(&path, true).unwrap();
    let before = path.metadata().unwrap().len();
    // Thirty hours of minutes.
    for at in 0..30 * 60 {
        let minute = Open {
            end: T0 + (at + 1) * 60 * S,
            ..second(at * 60, 1)
        };
        day.push(&minute, 60 * S, &Dropped::default());
    }
    day.flush();
    assert_eq!(path.metadata().unwrap().len(), before);
    assert!((35_000_000..38_000_000).contains(&before), "{before} bytes");
    for (span, minutes) in [(900, 15), (3600, 60), (21_600, 360), (86_400, 1440)] {
        let all: u64 = requests(&reader, span).iter().sum();
        assert_eq!(all, minutes, "{span} s");
    }
}

#[test]
fn half_written_rows_are_recognised() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("day");
    let (mut day, _) = run(&path, 0, 30);
    day.flush();
    drop(day);
    let ladder = ladder().unwrap();
    let tear = |at: usize| {
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    };
    let row = |number| RingFile::place_of(&ladder, 0, number) + 30;
    let last = (T0 + 30 * S - 1) / STEP;
    // The last row is in the journal too.
    tear(row(last));
    let (_, reader) = open::<HttpKind>(&path, true).unwrap();
    assert_eq!(requests(&reader, 900), [15; 6]);
    tear(row(last - 1));
    let (_, reader) = open::<HttpKind>(&path, true).unwrap();
    let past = reader.past::<HttpKind>(900);
    assert_eq!((past.ticks.len(), past.torn), (5, 1));
    assert_eq!(requests(&reader, 86_400), [90], "the other levels have it");
}

#[test]
fn what_is_no_history_is_refused_and_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("day");
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let error = open::<HttpKind>(&path, true).unwrap_err().to_string();
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "it is as it was");
        error
    };
    assert_eq!(refused(b"a letter"), "not a history of a console");
    std::fs::remove_file(&path).unwrap();
    let held = open::<HttpKind>(&path, true).unwrap();
    let locked = open::<HttpKind>(&path, true).unwrap_err().to_string();
    assert_eq!(locked, "another process is writing it");
    drop(held);
    let of_flows = open::<FlowKind>(&path, true).unwrap_err().to_string();
    assert!(
        of_flows.contains("is one of `http`, and not of `flows`"),
        "{of_flows}"
    );
    let whole = std::fs::read(&path).unwrap();
    let cut = refused(&whole[..whole.len() - 1]);
    assert!(cut.contains("was cut"), "{cut}");
    let mut other = whole.clone();
    other[8] = 9;
    assert!(refused(&other).contains("format version 9"));
    let mut damaged = whole;
    damaged[40] ^= 1;
    assert!(refused(&damaged).contains("header is not whole"));
    let nowhere = open::<HttpKind>(&directory.path().join("no/day"), true);
    assert!(matches!(nowhere, Err(DayError::Map(_))));
    assert!(matches!(
        open::<HttpKind>(directory.path(), true),
        Err(DayError::NotAHistory)
    ));
}

#[test]
fn a_row_is_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("day");
    let (mut day, reader) = open::<HttpKind>(&path, true).unwrap();
    let mut wide = second(0, 1);
    for code in 0..999 {
        wide.sums.counts.codes.record_n(code, 1 << 40);
    }
    day.push(&wide, S, &Dropped::default());
    day.flush();
    // Too large for its slot: counted for each level, and what follows is written.
    assert_eq!(reader.past::<HttpKind>(900).too_large, 3);
    assert_eq!(requests(&reader, 900), [0; 0]);
    day.push(&second(5, 3), S, &Dropped::default());
    day.flush();
    assert_eq!(requests(&reader, 900), [3]);
    let row = OpenRow::<HttpKind>::new(1).bytes(MAX_ROW).unwrap();
    assert!(row.len() < 1024, "{} bytes", row.len());
}
