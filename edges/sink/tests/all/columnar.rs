//! Parquet files and Arrow streams: what is in them, and what becomes of them.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float64Type, Int64Type, TimestampNanosecondType, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch as Columns};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType, TimeUnit};
use linkweir_engine::{Sink, SinkError};
use linkweir_record::flow::{FlowText, Protocol};
use linkweir_record::half::{HalfBatch, HalfKind, HalfRow};
use linkweir_record::{
    FlowBatch, FlowKind, FlowRow, GatewayBatch, GatewayKind, GatewayRow, GatewayText, HttpBatch,
    HttpKind, HttpRow, LoadBatch, LoadKind, LoadRow, RecordBatch, RecordKind, Text,
};
use linkweir_sink::{Format, OutputOptions, Partition, Rotation, open_sink};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

const HOUR: u64 = 3_600_000_000_000;
/// 2026-11-22 07:00:00 UTC.
const T0: u64 = 1_795_330_800_000_000_000;
/// Records of a full row group.
const GROUP: usize = 131_072;

fn http(times: impl IntoIterator<Item = u64>) -> HttpBatch {
    let mut batch = HttpBatch::default();
    for time in times {
        let row = HttpRow {
            request_ts_ns: Some(time),
            client_port: 1000 + u16::try_from(time % 5000).unwrap(),
            ..HttpRow::default()
        };
        let uri = format!("/{time:x}/\"quoted\"\n");
        let text = Text {
            method: b"GET",
            uri: uri.as_bytes(),
            ..Text::default()
        };
        batch.push(row, &text);
    }
    batch
}

fn open<K: RecordKind>(path: &Path, options: OutputOptions) -> Result<Box<dyn Sink<K>>, SinkError> {
    open_sink::<K>(path.to_str().unwrap(), None, options)
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn parquet(path: &Path) -> Vec<Columns> {
    let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    builder.build().unwrap().map(Result::unwrap).collect()
}

fn arrow(path: &Path) -> Vec<Columns> {
    let reader = StreamReader::try_new(File::open(path).unwrap(), None).unwrap();
    reader.map(Result::unwrap).collect()
}

fn rows(batches: &[Columns]) -> usize {
    batches.iter().map(Columns::num_rows).sum()
}

/// The times of all records of a file, in their order.
fn times(path: &Path) -> Vec<u64> {
    let mut times = Vec::new();
    for batch in parquet(path) {
        let column = batch.column_by_name("request_ts_ns").unwrap();
        let column = column.as_primitive::<TimestampNanosecondType>();
        times.extend(
            column
                .values()
                .iter()
                .map(|time| u64::try_from(*time).unwrap()),
        );
    }
    times
}

/// A value as `jsonl` writes it. Moments of flows are milliseconds there.
fn value(batch: &Columns, column: usize, row: usize, json: &Value) -> Value {
    let array = batch.column(column);
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::UInt16 => json!(array.as_primitive::<UInt16Type>().value(row)),
        DataType::UInt32 => json!(array.as_primitive::<UInt32Type>().value(row)),
        DataType::UInt64 => json!(array.as_primitive::<UInt64Type>().value(row)),
        DataType::Int64 => {
            json!(u64::try_from(array.as_primitive::<Int64Type>().value(row)).unwrap())
        }
        DataType::Float64 => json!(array.as_primitive::<Float64Type>().value(row)),
        DataType::Timestamp(TimeUnit::Nanosecond, None) => {
            let nanos = array.as_primitive::<TimestampNanosecondType>().value(row);
            let nanos = u64::try_from(nanos).unwrap();
            if json.is_f64() {
                // Read as the line was: the nearest number is one of two.
                let millis = format!("{}.{:06}", nanos / 1_000_000, nanos % 1_000_000);
                serde_json::from_str(&millis).unwrap()
            } else {
                json!(nanos)
            }
        }
        DataType::Utf8 => json!(array.as_string::<i32>().value(row)),
        DataType::Binary => {
            let bytes = array.as_binary::<i32>().value(row);
            json!(bytes.iter().map(|b| format!("{b:02x}")).collect::<String>())
        }
        other => panic!("{other}"),
    }
}

/// Writes records as Parquet, as Arrow and as jsonl, and compares every field of every record.
fn all_formats_agree<K: RecordKind>(batch: &K::Batch) {
    let directory = tempfile::tempdir().unwrap();
    let path = |ending: &str| directory.path().join(format!("out.{ending}"));
    for ending in ["parquet", "arrow", "jsonl"] {
        let mut sink = open::<K>(&path(ending), OutputOptions::default()).unwrap();
        sink.write(batch).unwrap();
        sink.finish().unwrap();
    }
    let lines = std::fs::read_to_string(path("jsonl")).unwrap();
    let lines: Vec<Value> = lines
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let file = File::open(path("parquet")).unwrap();
    let stream = File::open(path("arrow")).unwrap();
    for schema in [
        ParquetRecordBatchReaderBuilder::try_new(file)
            .unwrap()
            .schema()
            .clone(),
        StreamReader::try_new(stream, None).unwrap().schema(),
    ] {
        assert_eq!(schema.metadata()["linkweir.kind"], K::NAME);
        assert_eq!(
            schema.metadata()["linkweir.schema_version"],
            K::VERSION.to_string()
        );
    }
    for batches in [parquet(&path("parquet")), arrow(&path("arrow"))] {
        assert_eq!(rows(&batches), batch.len());
        let mut lines = lines.iter();
        for batch in &batches {
            let schema = batch.schema();
            let columns: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            let fields: Vec<&str> = K::fields().iter().map(|field| field.name).collect();
            assert_eq!(columns, fields);
            for (row, line) in (0..batch.num_rows()).zip(&mut lines) {
                for (column, name) in fields.iter().enumerate() {
                    let expected = line.get(name).unwrap_or(&Value::Null);
                    let there = value(batch, column, row, expected);
                    assert_eq!(&there, expected, "{} {name} of record {row}", K::NAME);
                }
            }
        }
    }
}

#[test]
fn transactions_are_those_of_jsonl() {
    let mut batch = http([T0 + 123_456_789]);
    let hostile: [&[u8]; 5] = [
        b"\xff\x00-",
        b"\\x5c and \\xzz \\",
        "h\u{e9}te \u{85}\u{1F30D}".as_bytes(),
        b"\xe2\x82 cut",
        b"tab\tand \x1b[31m",
    ];
    for text in hostile {
        let row = HttpRow {
            client_ip: "2001:db8::7".parse().unwrap(),
            server_ip: "::ffff:192.168.255.1".parse().unwrap(),
            response_ts_ns: Some(T0),
            status_code: Some(599),
            request_bytes: Some(u64::MAX),
            flow_hash: u32::MAX,
            vlan: Some(4095),
            ..HttpRow::default()
        };
        let text = Text {
            uri: text,
            host: text,
            ..Text::default()
        };
        batch.push(row, &text);
    }
    all_formats_agree::<HttpKind>(&batch);
}

#[test]
fn flows_are_those_of_jsonl() {
    let mut batch = FlowBatch::default();
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let mut row = FlowRow {
            protocol,
            first_ns: T0 + 1,
            last_ns: T0 + 2_500_000_123,
            ..FlowRow::default()
        };
        row.client.bytes_all = u64::MAX;
        row.client.rtt.avg_ns = 1_234_567;
        let text = FlowText {
            sni: b"example.org\xfe",
            ..FlowText::default()
        };
        batch.push(row, &text);
    }
    all_formats_agree::<FlowKind>(&batch);
}

#[test]
fn events_sessions_and_halves_are_those_of_jsonl() {
    let mut events = GatewayBatch::default();
    let row = GatewayRow {
        ts_ns: T0,
        protocol: "tcp",
        sha256: Some([0xa5; 32]),
        is_complete: Some(true),
        ..GatewayRow::default()
    };
    let text = GatewayText {
        message: b"\xc3(\\x41",
        ..GatewayText::default()
    };
    events.push(row, &text);
    events.push(GatewayRow::default(), &GatewayText::default());
    all_formats_agree::<GatewayKind>(&events);

    let mut sessions = LoadBatch::default();
    sessions.push(
        LoadRow {
            planned_ts_ns: T0,
            ..LoadRow::default()
        },
        b"dsl",
    );
    sessions.push(
        LoadRow {
            failure: "refused",
            ..LoadRow::default()
        },
        b"",
    );
    all_formats_agree::<LoadKind>(&sessions);

    let mut halves = HalfBatch::default();
    halves.push(
        HalfRow {
            ts_ns: T0,
            ..HalfRow::default()
        },
        b"GET / HTTP/1.1\r\n\0\xff",
    );
    halves.push(HalfRow::default(), b"");
    all_formats_agree::<HalfKind>(&halves);
}

static CLOCK: AtomicU64 = AtomicU64::new(T0);

#[test]
fn a_killed_run_leaves_all_row_groups() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.parquet");
    let partial = directory.path().join(".out.parquet.partial");
    let options = OutputOptions {
        wall_clock_ns: || CLOCK.load(Ordering::Relaxed),
        ..OutputOptions::default()
    };
    let mut sink = open::<HttpKind>(&path, options).unwrap();
    // A whole file from the beginning.
    assert_eq!(rows(&parquet(&partial)), 0);
    sink.write(&http(T0..T0 + 1000)).unwrap();
    sink.flush().unwrap();
    assert_eq!(rows(&parquet(&partial)), 0);
    // What is a minute old is written, although more came since.
    CLOCK.fetch_add(59_000_000_000, Ordering::Relaxed);
    sink.write(&http(T0..T0 + 10)).unwrap();
    sink.flush().unwrap();
    assert_eq!(rows(&parquet(&partial)), 0);
    CLOCK.fetch_add(1_000_000_000, Ordering::Relaxed);
    sink.flush().unwrap();
    assert_eq!(rows(&parquet(&partial)), 1010);
    sink.flush().unwrap();
    for start in (0..2 * GROUP as u64 + 512).step_by(512) {
        sink.write(&http(T0 + start..T0 + start + 512)).unwrap();
    }
    // Full row groups are written as soon as they are encoded, which is done beside the run; the rest is what a killed
    // run loses.
    drop(sink);
    assert_eq!(rows(&parquet(&partial)), 1010 + 2 * GROUP);
    let bytes = std::fs::read(&partial).unwrap();
    let footers = bytes.windows(4).filter(|window| window == b"PAR1").count();
    assert_eq!(
        footers, 2,
        "at the beginning and at the end, nothing dead between"
    );
    assert!(!path.exists());
}

#[test]
fn a_killed_run_leaves_a_stream_up_to_the_last_flush() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.arrow");
    let mut sink = open::<HttpKind>(&path, OutputOptions::default()).unwrap();
    sink.write(&http(0..10)).unwrap();
    sink.flush().unwrap();
    sink.write(&http(0..5)).unwrap();
    drop(sink);
    assert_eq!(
        rows(&arrow(&directory.path().join(".out.arrow.partial"))),
        10
    );
}

#[test]
fn files_rotate_by_size_and_by_time() {
    let directory = tempfile::tempdir().unwrap();
    for (ending, limit) in [("parquet", 60_000), ("arrow", 900_000)] {
        let path = directory.path().join(format!("size.{ending}"));
        let options = OutputOptions {
            rotation: Some(Rotation::Size(limit)),
            ..OutputOptions::default()
        };
        let mut sink = open::<HttpKind>(&path, options).unwrap();
        for start in (0..20_000).step_by(500) {
            sink.write(&http(start..start + 500)).unwrap();
        }
        sink.finish().unwrap();
        let files: Vec<String> = names(directory.path())
            .into_iter()
            .filter(|name| name.ends_with(ending))
            .collect();
        assert!(files.len() > 2, "{files:?}");
        assert_eq!(files[0], format!("size-000001.{ending}"));
        let mut total = 0;
        for file in &files {
            let path = directory.path().join(file);
            let len = path.metadata().unwrap().len();
            assert!(len < 2 * limit, "{file} has {len} bytes");
            total += match ending {
                "parquet" => rows(&parquet(&path)),
                _ => rows(&arrow(&path)),
            };
        }
        assert_eq!(total, 20_000);
    }
    let path = directory.path().join("time.parquet");
    let options = OutputOptions {
        rotation: Some(Rotation::Every(Duration::from_secs(3600))),
        ..OutputOptions::default()
    };
    let mut sink = open::<HttpKind>(&path, options).unwrap();
    sink.write(&http([T0, T0 + 5, T0 + HOUR, T0 + 1, T0 + 3 * HOUR]))
        .unwrap();
    sink.finish().unwrap();
    let of = |n: usize| times(&directory.path().join(format!("time-{n:06}.parquet")));
    // A late record stays in the file that is open.
    assert_eq!(
        [of(1), of(2), of(3)],
        [
            vec![T0, T0 + 5],
            vec![T0 + HOUR, T0 + 1],
            vec![T0 + 3 * HOUR]
        ]
    );
}

/// All files of a tree with the times of their records.
fn tree(root: &Path) -> BTreeMap<String, Vec<u64>> {
    fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
        for name in names(directory) {
            let path = directory.join(name);
            if path.is_dir() {
                walk(&path, found);
            } else {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(root, &mut found);
    let name = |path: &Path| {
        path.strip_prefix(root)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    found.iter().map(|path| (name(path), times(path))).collect()
}

fn partitioned(root: &Path, options: OutputOptions) -> Box<dyn Sink<HttpKind>> {
    let options = OutputOptions {
        partition: options.partition.or(Some(Partition::Hour)),
        ..options
    };
    open::<HttpKind>(root, options).unwrap()
}

#[test]
fn records_go_into_the_directory_of_their_hour() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("made/here");
    let mut sink = partitioned(&root, OutputOptions::default());
    // A late one for a directory that is open, and one for a directory whose file is complete.
    let minute = 60_000_000_000;
    let seen = [
        T0 - HOUR,
        T0,
        T0 - 1,
        T0 + HOUR - 1,
        T0 + HOUR,
        T0 + HOUR + 6 * minute,
        T0 + 7,
    ];
    sink.write(&http(seen)).unwrap();
    sink.write(&http([T0 - HOUR + 9])).unwrap();
    sink.finish().unwrap();
    sink.finish().unwrap();
    let expected = BTreeMap::from(
        [
            ("hour=06/part-000001.parquet", vec![T0 - HOUR, T0 - 1]),
            ("hour=06/part-000002.parquet", vec![T0 - HOUR + 9]),
            (
                "hour=07/part-000001.parquet",
                vec![T0, T0 + HOUR - 1, T0 + 7],
            ),
            (
                "hour=08/part-000001.parquet",
                vec![T0 + HOUR, T0 + HOUR + 6 * minute],
            ),
        ]
        .map(|(name, times)| (format!("date=2026-11-22/{name}"), times)),
    );
    assert_eq!(tree(&root), expected);
}

#[test]
fn no_more_than_four_directories_are_open_and_rotation_begins_parts() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("days");
    let mut sink = partitioned(
        &root,
        OutputOptions {
            partition: Some(Partition::Day),
            ..OutputOptions::default()
        },
    );
    let days: Vec<u64> = (0..10).map(|n| T0 - n * 24 * HOUR).collect();
    sink.write(&http(days.iter().copied())).unwrap();
    let open = |root: &Path| {
        let files = tree(root).into_keys();
        files.filter(|name| name.ends_with(".partial")).count()
    };
    assert_eq!((tree(&root).len(), open(&root)), (10, 4));
    sink.rotate().unwrap();
    assert_eq!((tree(&root).len(), open(&root)), (10, 0));
    sink.write(&http([T0])).unwrap();
    sink.finish().unwrap();
    assert_eq!(
        names(&root.join("date=2026-11-22")),
        ["part-000001.parquet", "part-000002.parquet"]
    );
    let root = directory.path().join("sizes");
    let options = OutputOptions {
        rotation: Some(Rotation::Size(20_000)),
        ..OutputOptions::default()
    };
    let mut sink = partitioned(&root, options);
    sink.write(&http(T0..T0 + 8000)).unwrap();
    sink.finish().unwrap();
    let files = tree(&root);
    assert!(files.len() > 2, "{:?}", files.keys());
    assert_eq!(files.values().map(Vec::len).sum::<usize>(), 8000);
}

static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[test]
fn the_newest_file_stays_however_large() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("out");
    let options = OutputOptions {
        budget: Some(1),
        ..OutputOptions::default()
    };
    let mut sink = partitioned(&root, options);
    for hour in 0..3 {
        let start = T0 + hour * HOUR;
        sink.write(&http(start..start + 500)).unwrap();
    }
    sink.finish().unwrap();
    assert_eq!(names(&root), ["date=2026-11-22"]);
    assert_eq!(names(&root.join("date=2026-11-22")), ["hour=09"]);
    assert_eq!(
        names(&root.join("date=2026-11-22/hour=09")),
        ["part-000001.parquet"]
    );
}

#[test]
fn the_oldest_files_make_room() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("out");
    let write = |budget, hours: std::ops::Range<u64>| {
        let options = OutputOptions {
            budget,
            announce: |text| TOLD.lock().unwrap().push(text.to_owned()),
            ..OutputOptions::default()
        };
        let mut sink = partitioned(&root, options);
        for hour in hours {
            let start = T0 + hour * HOUR;
            sink.write(&http(start..start + 500)).unwrap();
        }
        sink.finish().unwrap();
    };
    write(None, 0..20);
    let one = root.join("date=2026-11-22/hour=07/part-000001.parquet");
    let bytes = one.metadata().unwrap().len();
    // What is not ours, and what only looks like it.
    let other = directory.path().join("other");
    std::fs::create_dir_all(other.join("hour=00")).unwrap();
    std::fs::copy(&one, other.join("hour=00/part-000001.parquet")).unwrap();
    std::os::unix::fs::symlink(&other, root.join("date=1999-01-01")).unwrap();
    std::os::unix::fs::symlink(
        &one,
        root.join("date=2026-11-22/hour=07/part-000009.parquet"),
    )
    .unwrap();
    std::fs::write(root.join("date=2026-11-22/hour=07/notes.txt"), "mine").unwrap();
    assert!(TOLD.lock().unwrap().is_empty());

    write(Some(bytes * 5 + 200), 20..21);
    let left = |path: &str| root.join(path).exists();
    assert!(!left("date=2026-11-22/hour=07/part-000001.parquet"));
    assert!(left("date=2026-11-22/hour=07/notes.txt"));
    assert!(
        !left("date=2026-11-22/hour=08"),
        "its directory goes with it"
    );
    assert!(left("date=2026-11-23/hour=03/part-000001.parquet"));
    assert!(other.join("hour=00/part-000001.parquet").exists());
    assert!(root.join("date=1999-01-01").is_symlink());
    let link = root.join("date=2026-11-22/hour=07/part-000009.parquet");
    assert!(link.is_symlink());
    let parts = (0..24).filter(|hour| {
        left(&format!(
            "date=2026-11-23/hour={hour:02}/part-000001.parquet"
        ))
    });
    assert!(parts.count() <= 5);
    let told = TOLD.lock().unwrap().clone();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("deleted 1") && told[0].contains("date=2026-11-22/hour=07"),
        "{told:?}"
    );
}

#[test]
fn a_budget_takes_no_more_than_it_must() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("out");
    let write = |hour: u64, rotation, budget| {
        let options = OutputOptions {
            rotation,
            budget,
            ..OutputOptions::default()
        };
        let mut sink = partitioned(&root, options);
        let start = T0 + hour * HOUR;
        for part in 0..40 {
            sink.write(&http(start + part * 500..start + part * 500 + 500))
                .unwrap();
        }
        sink.finish().unwrap();
    };
    let sizes = |hour: &str| -> Vec<u64> {
        let directory = root.join("date=2026-11-22").join(hour);
        let files = names(&directory).into_iter();
        files
            .map(|name| directory.join(name).metadata().unwrap().len())
            .collect()
    };
    write(0, Some(Rotation::Size(20_000)), None);
    let before = sizes("hour=07");
    assert!(before.len() > 4, "{before:?}");
    // One file of the directory is too much: the directory loses its oldest file and no other.
    let budget = before.iter().sum::<u64>() + 8_000;
    write(1, None, Some(budget));
    let newer: u64 = sizes("hour=08").iter().sum();
    let after = sizes("hour=07");
    assert!(after.iter().sum::<u64>() + newer <= budget);
    let oldest_left = before.len() - after.len();
    assert!(oldest_left > 0);
    assert_eq!(after, before.get(oldest_left..).unwrap());
    let one_more = before.get(oldest_left - 1).unwrap();
    assert!(after.iter().sum::<u64>() + newer + one_more > budget);
}

#[test]
fn what_cannot_be_partitioned_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let refusal = |name: &str, format| {
        let path = directory.path().join(name);
        let options = OutputOptions {
            partition: Some(Partition::Hour),
            ..OutputOptions::default()
        };
        open_sink::<HttpKind>(path.to_str().unwrap(), format, options)
            .err()
            .unwrap()
            .to_string()
    };
    std::fs::write(directory.path().join("there"), "x").unwrap();
    assert!(refusal("dir", Some(Format::Jsonl)).contains("is for the format `parquet`"));
    assert!(refusal("out.parquet", None).contains("looks like a file"));
    assert!(refusal("there", None).contains("is not a directory"));
    assert!(refusal("there/below", None).contains("there/below"));
    assert_eq!(names(directory.path()), ["there"]);
    let missing = directory.path().join("no/out.parquet");
    let error = open::<HttpKind>(&missing, OutputOptions::default())
        .err()
        .unwrap();
    assert!(error.to_string().contains("does not exist"), "{error}");
}

#[test]
fn a_full_device_is_an_error_with_its_name() {
    if !Path::new("/dev/full").exists() {
        eprintln!("SKIPPED: there is no /dev/full");
        return;
    }
    for format in [Format::Parquet, Format::Arrow] {
        let error = open_sink::<HttpKind>("/dev/full", Some(format), OutputOptions::default())
            .err()
            .unwrap();
        assert!(
            error.to_string().starts_with("/dev/full: No space left"),
            "{error}"
        );
    }
}

/// A tiny tmpfs; `None` where this user may not mount.
fn tiny_disk(directory: &Path) -> Option<impl Drop> {
    struct Mounted(PathBuf);
    impl Drop for Mounted {
        fn drop(&mut self) {
            let _best_effort = Command::new("umount").arg(&self.0).status();
        }
    }
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=512k", "tmpfs"])
        .arg(directory)
        .output()
        .is_ok_and(|output| output.status.success());
    mounted.then(|| Mounted(directory.to_owned()))
}

#[test]
fn a_full_disk_leaves_what_was_complete() {
    static CLOCK: AtomicU64 = AtomicU64::new(0);
    let directory = tempfile::tempdir().unwrap();
    let Some(disk) = tiny_disk(directory.path()) else {
        eprintln!("SKIPPED: no tiny file system could be mounted; run as root to test a full disk");
        return;
    };
    for ending in ["parquet", "arrow"] {
        let path = directory.path().join(format!("out.{ending}"));
        let options = OutputOptions {
            // A minute passes with each look at the clock.
            wall_clock_ns: || CLOCK.fetch_add(60_000_000_000, Ordering::Relaxed),
            ..OutputOptions::default()
        };
        let mut sink = open::<HttpKind>(&path, options).unwrap();
        let mut written = 0;
        let error = (0..200)
            .find_map(|n| {
                written += 500;
                let batch = http(n * 1000..n * 1000 + 500);
                sink.write(&batch).and_then(|()| sink.flush()).err()
            })
            .unwrap();
        let text = error.to_string();
        assert!(
            text.contains(path.to_str().unwrap()) && text.contains("No space left"),
            "{text}"
        );
        assert!(sink.finish().is_err() && sink.write(&http(0..1)).is_err());
        let lost = sink.losses().count;
        drop(sink);
        let partial = directory.path().join(format!(".out.{ending}.partial"));
        let there = match ending {
            "parquet" => rows(&parquet(&partial)),
            _ => rows(&arrow(&partial)),
        };
        assert_eq!(there as u64 + lost, written + 1);
        assert!(there >= 1000 && there.is_multiple_of(500), "{there}");
        assert_eq!(names(directory.path()), [format!(".out.{ending}.partial")]);
        std::fs::remove_file(partial).unwrap();
    }
    drop(disk);
}

#[test]
fn pipes_get_streams_and_may_be_closed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    if !Command::new("mkfifo")
        .arg(&path)
        .status()
        .is_ok_and(|s| s.success())
    {
        eprintln!("SKIPPED: no mkfifo");
        return;
    }
    let reading = path.clone();
    let reader = std::thread::spawn(move || {
        let reader = StreamReader::try_new(File::open(reading).unwrap(), None).unwrap();
        reader
            .map(|batch| batch.unwrap().num_rows())
            .take(2)
            .collect::<Vec<_>>()
    });
    let open = |format| {
        open_sink::<HttpKind>(
            path.to_str().unwrap(),
            Some(format),
            OutputOptions::default(),
        )
    };
    let mut sink = open(Format::Arrow).unwrap();
    sink.write(&http(0..3)).unwrap();
    sink.flush().unwrap();
    sink.write(&http(0..4)).unwrap();
    sink.flush().unwrap();
    assert_eq!(reader.join().unwrap(), [3, 4]);
    let error = (0..50)
        .find_map(|_| sink.write(&http(0..5000)).err())
        .unwrap();
    assert!(matches!(error, SinkError::ClosedPipe), "{error}");
    assert!(matches!(sink.finish(), Err(SinkError::ClosedPipe)));
    drop(sink);

    // Parquet needs no place to go back to.
    let reading = path.clone();
    let reader = std::thread::spawn(move || std::fs::read(reading).unwrap());
    let mut sink = open(Format::Parquet).unwrap();
    sink.write(&http(T0..T0 + 300)).unwrap();
    sink.finish().unwrap();
    drop(sink);
    let copy = directory.path().join("copy.parquet");
    std::fs::write(&copy, reader.join().unwrap()).unwrap();
    assert_eq!(times(&copy), (T0..T0 + 300).collect::<Vec<_>>());
}
