//! What becomes of files: complete or not there, rotated, full disks, closed pipes.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use linkweir_engine::{Sink, SinkError};
use linkweir_record::{HttpBatch, HttpKind, HttpRow, RecordBatch, Text};
use linkweir_sink::{Existing, Format, OutputOptions, Rotation, open_sink};

const HOUR: u64 = 3_600_000_000_000;
/// Endings of files of columns, where this build has them.
const COLUMNS: &[&str] = match cfg!(feature = "parquet") {
    true => &["parquet", "arrow"],
    false => &[],
};

fn batch(times: impl IntoIterator<Item = u64>) -> HttpBatch {
    let mut batch = HttpBatch::default();
    for time in times {
        let row = HttpRow {
            request_ts_ns: Some(time),
            ..HttpRow::default()
        };
        batch.push(
            row,
            &Text {
                method: b"GET",
                uri: b"/some/path,with \"quotes\"\n",
                ..Text::default()
            },
        );
    }
    batch
}

fn open(path: &Path, rotation: Option<Rotation>) -> Result<Box<dyn Sink<HttpKind>>, SinkError> {
    let options = OutputOptions {
        rotation,
        ..OutputOptions::default()
    };
    open_sink::<HttpKind>(path.to_str().unwrap(), None, options)
}

/// Opens a file where there may be one of its name.
fn open_at(path: &Path, existing: Existing) -> Result<Box<dyn Sink<HttpKind>>, SinkError> {
    let options = OutputOptions {
        existing,
        ..OutputOptions::default()
    };
    open_sink::<HttpKind>(path.to_str().unwrap(), None, options)
}

/// Writes a whole file of so many records.
fn run(path: &Path, existing: Existing, records: u64) {
    let mut sink = open_at(path, existing).unwrap();
    sink.write(&batch(0..records)).unwrap();
    sink.finish().unwrap();
}

/// What a run that is killed after so many records leaves.
fn killed(path: &Path, rotation: Option<Rotation>, records: u64) {
    let mut sink = open(path, rotation).unwrap();
    sink.write(&batch(0..records)).unwrap();
    sink.flush().unwrap();
}

/// The files of a directory and how many lines each has.
fn files(directory: &Path) -> Vec<(String, usize)> {
    let all = names(directory).into_iter();
    all.map(|name| (name.clone(), lines(directory.join(name))))
        .collect()
}

/// The same, as literals are written.
fn named(all: &[(&str, usize)]) -> Vec<(String, usize)> {
    all.iter()
        .map(|(name, n)| ((*name).to_owned(), *n))
        .collect()
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn lines(path: PathBuf) -> usize {
    std::fs::read_to_string(path).unwrap().lines().count()
}

#[test]
fn a_file_appears_when_it_is_complete() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.jsonl");
    std::fs::write(&path, "old").unwrap();
    let mut sink = open_at(&path, Existing::Replace).unwrap();
    sink.write(&batch(0..3)).unwrap();
    sink.flush().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(names(directory.path()), [".out.jsonl.partial", "out.jsonl"]);
    assert_eq!(lines(directory.path().join(".out.jsonl.partial")), 3);
    sink.finish().unwrap();
    sink.finish().unwrap();
    assert_eq!(names(directory.path()), ["out.jsonl"]);
    assert_eq!(lines(path), 3);
    assert!(sink.write(&batch(0..1)).is_err());
}

#[test]
fn an_unfinished_run_leaves_whole_lines() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.jsonl");
    let mut sink = open(&path, None).unwrap();
    sink.write(&batch(0..5000)).unwrap();
    drop(sink);
    let partial = std::fs::read_to_string(directory.path().join(".out.jsonl.partial")).unwrap();
    assert!(!path.exists() && !partial.is_empty() && partial.ends_with("}\n"));
    assert!(
        partial
            .lines()
            .all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
    );
}

#[test]
fn a_finished_file_is_replaced_only_where_that_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.jsonl");
    run(&path, Existing::Refuse, 2);
    let error = open_at(&path, Existing::Refuse).err().unwrap().to_string();
    assert!(error.contains("exists; --overwrite"), "{error}");
    run(&path, Existing::Keep, 3);
    run(&path, Existing::Keep, 4);
    let kept = [("out.jsonl", 2), ("out.jsonl.1", 3), ("out.jsonl.2", 4)];
    assert_eq!(files(directory.path()), named(&kept));
    run(&path, Existing::Replace, 9);
    assert_eq!(files(directory.path())[0].1, 9);
    assert_eq!(files(directory.path())[1..], named(&kept)[1..]);
}

#[test]
fn what_a_killed_run_left_gets_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.jsonl");
    killed(&path, None, 5);
    run(&path, Existing::Keep, 1);
    let kept = [("out.jsonl", 5), ("out.jsonl.1", 1)];
    assert_eq!(files(directory.path()), named(&kept));
    // Killed where its name was taken, and where it is going to be replaced.
    let kill = |records| {
        let partial = directory.path().join(".out.jsonl.partial");
        std::fs::write(partial, "{}\n".repeat(records)).unwrap();
    };
    kill(6);
    run(&path, Existing::Replace, 2);
    kill(7);
    assert!(open_at(&path, Existing::Refuse).is_err());
    let kept = [
        ("out.jsonl", 2),
        ("out.jsonl.1", 1),
        ("out.jsonl.2", 6),
        ("out.jsonl.3", 7),
    ];
    assert_eq!(files(directory.path()), named(&kept));
}

#[test]
fn a_run_that_finds_what_was_left_under_its_name_says_what_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.jsonl");
    killed(&path, None, 5);
    let said = || open_at(&path, Existing::Refuse).err().unwrap().to_string();
    let first = said();
    for part in ["out.jsonl: ", "killed run left", "not whole", "--overwrite"] {
        assert!(first.contains(part), "{part}: {first}");
    }
    // From then on it is a file like others.
    assert!(said().contains("exists; --overwrite"), "{}", said());
    assert_eq!(files(directory.path()), named(&[("out.jsonl", 5)]));
}

#[test]
fn an_output_without_a_record_leaves_nothing() {
    for ending in ["jsonl", "csv", "zeek"].iter().chain(COLUMNS) {
        let directory = tempfile::tempdir().unwrap();
        drop(open(&directory.path().join(format!("out.{ending}")), None).unwrap());
        assert!(names(directory.path()).is_empty(), "{ending}");
    }
}

#[test]
fn what_killed_runs_left_of_numbered_files_gets_its_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.jsonl");
    let rotation = Some(Rotation::Size(1 << 20));
    killed(&path, rotation, 5);
    killed(&path, None, 6);
    let mut other = open(&directory.path().join("out.jsonl.old"), None);
    assert!(other.is_err(), "another ending");
    other = open(&directory.path().join("outer-000001.jsonl"), None);
    let mut sink = open(&path, rotation).unwrap();
    sink.write(&batch(0..1)).unwrap();
    sink.finish().unwrap();
    let kept = [
        (".outer-000001.jsonl.partial", 0),
        ("out-000001.jsonl", 5),
        ("out-000002.jsonl", 1),
        ("out.jsonl", 6),
    ];
    assert_eq!(files(directory.path()), named(&kept));
    drop(other);
}

#[test]
fn a_name_that_somebody_takes_meanwhile_stays_his() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.jsonl");
    let mut sink = open(&path, None).unwrap();
    sink.write(&batch(0..3)).unwrap();
    std::fs::write(&path, "theirs\n").unwrap();
    sink.finish().unwrap();
    let kept = [("out.jsonl", 1), ("out.jsonl.1", 3)];
    assert_eq!(files(directory.path()), named(&kept));
}

#[test]
fn an_empty_run_leaves_a_header() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.csv");
    open(&path, None).unwrap().finish().unwrap();
    assert_eq!(lines(path), 1);
}

#[test]
fn what_cannot_be_an_output_is_refused_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let refusal = |name: &str, rotation| {
        open(&directory.path().join(name), rotation)
            .err()
            .unwrap()
            .to_string()
    };
    assert!(refusal("no/out.csv", None).contains("does not exist; create it first"));
    assert!(refusal("", None).contains("is a directory"));
    assert!(refusal("out.xls", None).contains("`.xls`"));
    let special = open_sink::<HttpKind>(
        "/dev/null",
        None,
        OutputOptions {
            rotation: Some(Rotation::Size(9)),
            ..OutputOptions::default()
        },
    );
    assert!(
        special
            .err()
            .unwrap()
            .to_string()
            .contains("only a file can be rotated")
    );
    let url = open_sink::<HttpKind>("ftp://b/t", None, OutputOptions::default());
    assert!(url.err().unwrap().to_string().contains("ftp://"));
    assert!(names(directory.path()).is_empty());
}

#[test]
fn what_stands_under_the_partial_name_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.jsonl");
    let partial = directory.path().join(".out.jsonl.partial");
    std::fs::create_dir(&partial).unwrap();
    let error = open(&path, None).err().unwrap().to_string();
    assert!(error.starts_with(&partial.display().to_string()), "{error}");
    assert_eq!(names(directory.path()), [".out.jsonl.partial"]);
}

#[test]
fn two_runs_on_one_file_do_not_mix() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.jsonl");
    let mut first = open(&path, None).unwrap();
    let error = open(&path, None).err().unwrap().to_string();
    assert!(error.contains("another run writes"), "{error}");
    first.write(&batch(0..7)).unwrap();
    first.finish().unwrap();
    drop(first);
    assert_eq!(lines(path.clone()), 7);
}

#[test]
fn links_stay_links() {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().join("real.txt");
    let link = directory.path().join("link.txt");
    std::fs::write(&real, "old").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let mut sink = open_at(&link, Existing::Replace).unwrap();
    sink.write(&batch(0..2)).unwrap();
    sink.finish().unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(lines(real), 2);
}

#[test]
fn files_rotate_by_size() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.csv");
    let mut sink = open(&path, Some(Rotation::Size(2000))).unwrap();
    sink.write(&batch(0..60)).unwrap();
    sink.finish().unwrap();
    let files = names(directory.path());
    assert!(files.len() > 2, "{files:?}");
    assert_eq!(files[0], "out-000001.csv");
    let mut records = 0;
    for file in &files {
        let bytes = std::fs::read(directory.path().join(file)).unwrap();
        assert!(
            bytes.len() <= 2000 && bytes.starts_with(b"client_ip,"),
            "{file}"
        );
        assert!(bytes.ends_with(b"\n"));
        records += bytes.windows(3).filter(|w| w == b"GET").count();
    }
    assert_eq!(records, 60);
    // The next run goes on counting and replaces nothing.
    let mut sink = open(&path, Some(Rotation::Size(2000))).unwrap();
    sink.write(&batch(0..1)).unwrap();
    sink.finish().unwrap();
    let expected = format!("out-{:06}.csv", files.len() + 1);
    assert_eq!(names(directory.path()).last(), Some(&expected));
}

#[test]
fn a_record_longer_than_a_file_gets_one_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let mut sink = open(&directory.path().join("o.txt"), Some(Rotation::Size(1))).unwrap();
    sink.write(&batch(0..3)).unwrap();
    sink.finish().unwrap();
    assert_eq!(
        names(directory.path()),
        ["o-000001.txt", "o-000002.txt", "o-000003.txt"]
    );
}

#[test]
fn files_rotate_by_capture_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.txt");
    let hour = Rotation::Every(Duration::from_secs(3600));
    let mut sink = open(&path, Some(hour)).unwrap();
    // A late record stays in the file that is open.
    let times = [
        10 * HOUR,
        10 * HOUR + 5,
        11 * HOUR - 1,
        11 * HOUR,
        10 * HOUR,
        14 * HOUR,
    ];
    sink.write(&batch(times)).unwrap();
    sink.finish().unwrap();
    let counts: Vec<usize> = names(directory.path())
        .iter()
        .map(|n| lines(directory.path().join(n)))
        .collect();
    assert_eq!(counts, [3, 2, 1]);
}

#[test]
fn files_of_an_interface_rotate_by_the_clock_where_nothing_comes() {
    static CLOCK: AtomicU64 = AtomicU64::new(10 * HOUR);
    for ending in ["jsonl"].iter().chain(COLUMNS) {
        for is_live in [true, false] {
            CLOCK.store(10 * HOUR, Ordering::Relaxed);
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join(format!("out.{ending}"));
            let options = OutputOptions {
                rotation: Some(Rotation::Every(Duration::from_secs(3600))),
                wall_clock_ns: || CLOCK.load(Ordering::Relaxed),
                is_live,
                ..OutputOptions::default()
            };
            let mut sink = open_sink::<HttpKind>(path.to_str().unwrap(), None, options).unwrap();
            let complete = |sink: &mut Box<dyn Sink<HttpKind>>| {
                sink.flush().unwrap();
                let names = names(directory.path()).into_iter();
                names.filter(|name| !name.ends_with(".partial")).count()
            };
            assert_eq!(complete(&mut sink), 0);
            CLOCK.fetch_add(HOUR, Ordering::Relaxed);
            assert_eq!(complete(&mut sink), 0, "no file without records");
            sink.write(&batch([11 * HOUR + 5])).unwrap();
            assert_eq!(complete(&mut sink), 0);
            CLOCK.fetch_add(HOUR, Ordering::Relaxed);
            assert_eq!(complete(&mut sink), usize::from(is_live), "{ending}");
            sink.write(&batch([12 * HOUR + 1])).unwrap();
            sink.finish().unwrap();
            assert_eq!(names(directory.path()).len(), 2, "a span has one file");
        }
    }
}

#[test]
fn rotation_on_request_numbers_the_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.jsonl");
    let mut sink = open(&path, None).unwrap();
    sink.rotate().unwrap();
    sink.write(&batch(0..2)).unwrap();
    sink.rotate().unwrap();
    assert_eq!(
        names(directory.path()),
        [".out-000002.jsonl.partial", "out-000001.jsonl"]
    );
    sink.write(&batch(0..1)).unwrap();
    sink.rotate().unwrap();
    sink.finish().unwrap();
    assert_eq!(
        names(directory.path()),
        ["out-000001.jsonl", "out-000002.jsonl"]
    );
}

#[test]
fn a_full_device_is_an_error_with_its_name() {
    if !Path::new("/dev/full").exists() {
        eprintln!("SKIPPED: there is no /dev/full");
        return;
    }
    let mut sink = open(Path::new("/dev/full"), None).unwrap();
    let error = sink.write(&batch(0..1)).unwrap_err();
    assert!(matches!(&error, SinkError::Io { destination, .. } if destination == "/dev/full"));
    assert!(
        error.to_string().starts_with("/dev/full: No space left"),
        "{error}"
    );
    assert_eq!(sink.losses().count, 1);
    assert!(sink.finish().is_err() && sink.write(&batch(0..1)).is_err());
    assert_eq!(sink.losses().count, 2);
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
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(directory)
        .output()
        .is_ok_and(|output| output.status.success());
    mounted.then(|| Mounted(directory.to_owned()))
}

#[test]
fn a_full_disk_leaves_no_torn_record() {
    let directory = tempfile::tempdir().unwrap();
    let Some(disk) = tiny_disk(directory.path()) else {
        eprintln!("SKIPPED: no tiny file system could be mounted; run as root to test a full disk");
        return;
    };
    for (name, rotation) in [
        ("a.csv", None),
        ("b.jsonl", None),
        ("c.jsonl", Some(Rotation::Size(20_000))),
    ] {
        let mut sink = open(&directory.path().join(name), rotation).unwrap();
        let records = batch(0..3000);
        let error = sink
            .write(&records)
            .and_then(|()| sink.flush())
            .unwrap_err();
        assert!(error.to_string().contains("No space left"), "{error}");
        assert!(sink.finish().is_err());
        sink.miss(&batch(0..10));
        let lost = sink.losses().count;
        drop(sink);
        let mut there = 0;
        for file in names(directory.path()) {
            let path = directory.path().join(&file);
            let text = std::fs::read_to_string(&path).unwrap();
            there += text.matches("GET").count() as u64;
            assert!(
                file.ends_with(".partial") || rotation.is_some(),
                "{file} is not complete"
            );
            assert!(!text.is_empty() || file.ends_with(".partial"));
            if name.ends_with("jsonl") {
                assert!(text.is_empty() || text.ends_with("}\n"));
                assert!(
                    text.lines()
                        .all(|l| serde_json::from_str::<serde_json::Value>(l).is_ok())
                );
            } else {
                // Whole lines, and no quote left open.
                assert!(text.ends_with('\n') && text.matches('"').count().is_multiple_of(2));
                assert!(text.lines().count() > 100);
            }
            std::fs::remove_file(path).unwrap();
        }
        assert_eq!(there + lost, 3010, "{name}");
    }
    drop(disk);
}

#[test]
fn a_closed_pipe_is_no_failure_of_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    if !Command::new("mkfifo")
        .arg(&path)
        .status()
        .is_ok_and(|status| status.success())
    {
        eprintln!("SKIPPED: no mkfifo");
        return;
    }
    let reading = path.clone();
    let reader = std::thread::spawn(move || {
        let mut first = [0_u8; 10];
        std::fs::File::open(reading)
            .unwrap()
            .read_exact(&mut first)
            .unwrap();
        first
    });
    let mut sink = open_sink::<HttpKind>(
        path.to_str().unwrap(),
        Some(Format::Jsonl),
        OutputOptions::default(),
    )
    .unwrap();
    sink.write(&batch(0..1)).unwrap();
    sink.flush().unwrap();
    assert_eq!(&reader.join().unwrap(), b"{\"client_i");
    let records = batch(0..5000);
    let error = (0..50).find_map(|_| sink.write(&records).err()).unwrap();
    assert!(matches!(error, SinkError::ClosedPipe), "{error}");
    assert!(matches!(sink.finish(), Err(SinkError::ClosedPipe)));
    assert_eq!(sink.losses().count, 0, "nobody wants them");
    assert_eq!(records.len(), 5000);
}

#[test]
fn the_first_records_of_a_stream_do_not_wait() {
    use std::os::fd::AsRawFd;
    let (mut reader, writer) = std::io::pipe().unwrap();
    let name = format!("/dev/fd/{}", writer.as_raw_fd());
    let mut sink =
        open_sink::<HttpKind>(&name, Some(Format::Csv), OutputOptions::default()).unwrap();
    sink.write(&batch(0..1)).unwrap();
    drop(writer);
    // Nothing was flushed, and nothing is finished.
    let mut first = vec![0; 4096];
    let got = reader.read(&mut first).unwrap();
    let methods = |text: &[u8]| text.windows(3).filter(|word| word == b"GET").count();
    assert_eq!(methods(&first[..got]), 1);
    sink.write(&batch(1..3)).unwrap();
    sink.finish().unwrap();
    drop(sink);
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert_eq!(methods(&rest), 2);
}
