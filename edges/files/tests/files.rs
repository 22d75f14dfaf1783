//! Files from steps: what is on the disk afterwards.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a helper that fails is a failed test, and a thread takes time of the clock"
)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use linkweir_engine::effect::{FileEnd, FileId, FileOp, FileOrigin};
use linkweir_files::{
    FileStore, FileStoreClient, FileStoreError, FileStoreOptions, FileStoreStatus, LossCause,
    Stale, WhenFull,
};
use linkweir_sys::privileges::Restrict;
use linkweir_wire::Timestamp;
use serde_json::Value;

/// A directory for files, one for the quarantine, and options for both.
struct Place {
    #[expect(dead_code, reason = "it goes with its directories")]
    base: tempfile::TempDir,
    directory: PathBuf,
    quarantine: PathBuf,
}

impl Place {
    fn new() -> Self {
        let base = tempfile::tempdir().expect("a directory");
        let (directory, quarantine) = (base.path().join("files"), base.path().join("bad"));
        Self {
            base,
            directory,
            quarantine,
        }
    }

    fn options(&self) -> FileStoreOptions {
        FileStoreOptions::new(&self.directory, &self.quarantine)
    }

    fn start(&self) -> FileStore {
        start(&self.options()).expect("starts")
    }
}

/// Starts a store. A program that a test beside this one is starting has the locks of all for a moment, also of stores that have
/// ended.
fn start(options: &FileStoreOptions) -> Result<FileStore, FileStoreError> {
    let begin = Instant::now();
    loop {
        match FileStore::start(options.clone()) {
            Err(FileStoreError::InUse(_)) if begin.elapsed() < Duration::from_secs(5) => {
                std::thread::sleep(Duration::from_millis(1));
            }
            done => return done,
        }
    }
}

fn origin(name: &str) -> Box<FileOrigin> {
    Box::new(FileOrigin {
        time: Timestamp::from_nanos(17),
        sender: "10.0.0.1:80".parse().expect("an address"),
        receiver: "10.0.0.2:4000".parse().expect("an address"),
        application: "http".to_owned(),
        name: format!("original {name}").into_bytes(),
        stored_name: name.to_owned(),
    })
}

fn begin(client: &FileStoreClient, id: u64, name: &str) {
    client.submit(FileOp::Begin {
        id: FileId(id),
        origin: origin(name),
    });
}

fn data(client: &FileStoreClient, id: u64, bytes: &[u8]) {
    client.submit(FileOp::Data {
        id: FileId(id),
        bytes: bytes.to_vec(),
    });
}

fn end(client: &FileStoreClient, id: u64, end: FileEnd) {
    client.submit(FileOp::End {
        id: FileId(id),
        end,
    });
}

fn whole(client: &FileStoreClient, id: u64, name: &str, bytes: &[u8], how: FileEnd) {
    begin(client, id, name);
    data(client, id, bytes);
    end(client, id, how);
}

/// Waits until everything submitted is on the disk.
fn settled(store: &FileStore) -> FileStoreStatus {
    let begin = Instant::now();
    loop {
        let status = store.status();
        if status.waiting_steps == 0 {
            return status;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{status:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Every file of a directory with its bytes, texts apart.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.into_string().expect("plain"));
    let is_file = |name: &String| !name.ends_with(".json") && !name.ends_with(".json.partial");
    let read = |name: String| {
        let bytes = fs::read(directory.join(&name)).unwrap_or_default();
        (name, bytes)
    };
    names.filter(is_file).map(read).collect()
}

fn names(directory: &Path) -> Vec<String> {
    files(directory).into_keys().collect()
}

fn text(directory: &Path, name: &str) -> Value {
    let path = directory.join(format!("{name}.json"));
    let text = fs::read_to_string(path).expect("a text beside it");
    assert!(text.ends_with('\n'));
    serde_json::from_str(&text).expect("JSON")
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().expect("it is there").mode() & 0o7777
}

#[test]
fn a_file_gets_its_name_when_it_ends() {
    let place = Place::new();
    let store = place.start();
    let client = store.client();
    begin(&client, 1, "song.mp3");
    data(&client, 1, b"first ");
    data(&client, 1, b"");
    settled(&store);
    assert_eq!(names(&place.directory), [".song.mp3.partial"]);
    assert_eq!(mode(&place.directory.join(".song.mp3.partial")), 0o600);
    data(&client, 1, b"second");
    end(&client, 1, FileEnd::Keep);
    let status = settled(&store);
    assert_eq!(files(&place.directory)["song.mp3"], b"first second");
    assert_eq!(
        fs::read_dir(&place.directory).expect("a directory").count(),
        2,
        "nothing hidden is left"
    );
    assert_eq!(mode(&place.directory.join("song.mp3")), 0o600);
    assert_eq!(mode(&place.directory), 0o700);
    let text = text(&place.directory, "song.mp3");
    let expected = serde_json::json!({
        "ts_ns": 17, "sender": "10.0.0.1:80", "receiver": "10.0.0.2:4000", "application": "http",
        "name": "original song.mp3", "size": 12, "end": "kept", "cut": null,
    });
    assert_eq!(text, expected);
    assert_eq!(
        (status.kept, status.parts, status.bytes, status.open),
        (1, 0, 12, 0)
    );
    let on_disk: u64 = ["song.mp3", "song.mp3.json"]
        .map(|name| {
            fs::metadata(place.directory.join(name))
                .expect("there")
                .len()
        })
        .iter()
        .sum();
    assert_eq!(status.total_bytes, on_disk);
    assert_eq!(store.take_notices(), Vec::<String>::new());
}

#[test]
fn each_end_has_its_place() {
    let place = Place::new();
    let store = place.start();
    let client = store.client();
    whole(&client, 1, "kept", b"k", FileEnd::Keep);
    whole(&client, 2, "part", b"p", FileEnd::KeepPart);
    whole(&client, 3, "infected", b"i", FileEnd::Quarantine);
    whole(&client, 4, "gone", b"g", FileEnd::Discard);
    begin(&client, 5, "empty");
    end(&client, 5, FileEnd::Keep);
    let status = settled(&store);
    assert_eq!(names(&place.directory), ["empty", "kept", "part"]);
    assert_eq!(files(&place.quarantine)["infected"], b"i");
    assert_eq!(mode(&place.quarantine.join("infected")), 0o400);
    assert_eq!(text(&place.directory, "part")["end"], "part");
    assert_eq!(text(&place.directory, "empty")["size"], 0);
    assert_eq!(text(&place.quarantine, "infected")["end"], "quarantined");
    assert_eq!(
        (
            status.kept,
            status.parts,
            status.quarantined,
            status.discarded
        ),
        (2, 1, 1, 1)
    );
    assert!(!place.directory.join("gone.json").exists());
    assert_eq!(status.lost, FileStoreStatus::default().lost);
}

#[test]
fn names_stay_in_the_directory_and_replace_nothing() {
    let place = Place::new();
    let outside = place.directory.parent().expect("a parent").join("victim");
    fs::create_dir(&place.directory).expect("made");
    fs::write(&outside, "before").expect("written");
    // Links where the store will write, and a file of somebody else's where it will rename to.
    symlink(&outside, place.directory.join(".link.partial")).expect("a link");
    symlink(&outside, place.directory.join("taken")).expect("a link");
    fs::write(place.directory.join("note.json"), "theirs").expect("written");
    let store = place.start();
    let client = store.client();
    for (id, name) in [
        "../victim",
        "/etc/evil",
        "..",
        ".hidden",
        "a\0b",
        "link",
        "taken",
        "note",
        "twice",
        "twice",
        "a",
        "a.json",
        "a",
    ]
    .into_iter()
    .enumerate()
    {
        whole(&client, id as u64, name, name.as_bytes(), FileEnd::Keep);
    }
    whole(&client, 99, &"n".repeat(5000), b"long", FileEnd::Keep);
    let status = settled(&store);
    assert_eq!((status.kept, status.last_error), (14, None));
    assert_eq!(fs::read_to_string(&outside).expect("there"), "before");
    assert_eq!(
        fs::read_to_string(place.directory.join("note.json")).expect("there"),
        "theirs"
    );
    let long = "n".repeat(200);
    let mut expected = vec![
        "_.",
        "_._victim",
        "_etc_evil",
        "_hidden",
        "a",
        "a-2",
        "a.json-2",
        "a_b",
        "link-2",
        "note-2",
        "taken",
        "taken-2",
        "twice",
        "twice-2",
        long.as_str(),
        ".link.partial",
    ];
    expected.sort_unstable();
    assert_eq!(names(&place.directory), expected);
    // `a.json` is a text, so the file of that name got another.
    assert_eq!(files(&place.directory)["a"], b"a");
    assert_eq!(text(&place.directory, "a")["name"], "original a");
    assert_eq!(
        text(&place.directory, "a.json-2")["name"],
        "original a.json"
    );
    assert_eq!(
        fs::read(place.directory.join("a.json-2")).expect("there"),
        b"a.json"
    );
}

#[test]
fn what_is_too_long_is_a_beginning() {
    let place = Place::new();
    let store = start(&FileStoreOptions {
        max_file_bytes: 10,
        ..place.options()
    })
    .expect("starts");
    let client = store.client();
    begin(&client, 1, "long");
    for _ in 0..3 {
        data(&client, 1, b"1234567");
    }
    end(&client, 1, FileEnd::Keep);
    whole(&client, 2, "fits", b"1234567890", FileEnd::Keep);
    begin(&client, 3, "infected");
    data(&client, 3, b"12345678901");
    end(&client, 3, FileEnd::Quarantine);
    let status = settled(&store);
    assert_eq!(files(&place.directory)["long"], b"1234567123");
    let told = text(&place.directory, "long");
    assert_eq!(
        (&told["end"], &told["cut"], &told["size"]),
        (&"part".into(), &"file_limit".into(), &10.into())
    );
    assert_eq!(text(&place.directory, "fits")["end"], "kept");
    assert_eq!(text(&place.quarantine, "infected")["cut"], "file_limit");
    let lost = status.lost.of(LossCause::FileLimit);
    assert_eq!((lost.files, lost.bytes, status.bytes), (2, 12, 30));
    assert_eq!(store.take_notices().len(), 1, "said once");
}

#[test]
fn bytes_that_the_disk_is_too_slow_for_cut_the_file() {
    let place = Place::new();
    let store = start(&FileStoreOptions {
        buffer_bytes: 100_000,
        ..place.options()
    })
    .expect("starts");
    let client = store.client();
    begin(&client, 1, "burst");
    data(&client, 1, b"beginning");
    data(&client, 1, &[0; 100_000]);
    data(&client, 1, b"after the hole");
    end(&client, 1, FileEnd::Keep);
    let status = settled(&store);
    assert_eq!(files(&place.directory)["burst"], b"beginning");
    assert_eq!(text(&place.directory, "burst")["cut"], "buffer");
    let lost = status.lost.of(LossCause::Buffer);
    assert_eq!((lost.files, lost.bytes, status.parts), (1, 100_014, 1));
}

#[test]
fn a_full_directory_refuses_or_forgets_the_oldest() {
    for when_full in [WhenFull::Refuse, WhenFull::DeleteOldest] {
        let place = Place::new();
        fs::create_dir(&place.directory).expect("made");
        // What is there counts; what has no text beside it is not ours to delete.
        fs::write(place.directory.join("foreign"), vec![0; 10_000]).expect("written");
        let store = start(&FileStoreOptions {
            max_total_bytes: 50_000,
            when_full,
            ..place.options()
        })
        .expect("starts");
        assert_eq!(store.status().total_bytes, 10_000);
        let client = store.client();
        whole(&client, 0, "virus", &[1; 5_000], FileEnd::Quarantine);
        for id in 1..=8 {
            whole(&client, id, &format!("f{id}"), &[1; 9_000], FileEnd::Keep);
            settled(&store);
        }
        let status = settled(&store);
        assert!(status.total_bytes <= 50_000, "{}", status.total_bytes);
        let on_disk: u64 = [&place.directory, &place.quarantine]
            .into_iter()
            .flat_map(|directory| fs::read_dir(directory).expect("a directory"))
            .map(|entry| entry.expect("an entry").metadata().expect("there").len())
            .sum();
        assert_eq!(status.total_bytes, on_disk);
        assert_eq!(names(&place.quarantine), ["virus"]);
        let lost = status.lost.of(LossCause::TotalLimit);
        match when_full {
            WhenFull::Refuse => {
                assert_eq!(names(&place.directory), ["f1", "f2", "f3", "f4", "foreign"]);
                assert_eq!(text(&place.directory, "f4")["cut"], "total_limit");
                assert_eq!((lost.files, status.deleted), (5, 0));
            }
            WhenFull::DeleteOldest => {
                assert_eq!(names(&place.directory), ["f6", "f7", "f8", "foreign"]);
                assert!(!place.directory.join("f1.json").exists());
                assert_eq!((lost.files, status.deleted, status.kept), (0, 5, 8));
                // And so do those that an earlier run has left.
                drop(client);
                drop(store);
                let store = start(&FileStoreOptions {
                    max_files: 3,
                    when_full,
                    ..place.options()
                })
                .expect("starts");
                whole(&store.client(), 1, "f9", b"9", FileEnd::Keep);
                settled(&store);
                assert_eq!(
                    names(&place.directory),
                    ["f9", "foreign"],
                    "with that in the quarantine"
                );
            }
        }
    }
}

#[test]
fn one_directory_can_be_both() {
    let place = Place::new();
    let options = FileStoreOptions {
        max_total_bytes: 10_000,
        when_full: WhenFull::DeleteOldest,
        ..FileStoreOptions::new(&place.directory, place.directory.join("../files"))
    };
    let mut store = start(&options).expect("starts");
    let client = store.client();
    whole(&client, 1, "virus", b"v", FileEnd::Quarantine);
    whole(&client, 2, "kept", b"k", FileEnd::Keep);
    begin(&client, 3, "open");
    data(&client, 3, b"o");
    store.finish();
    let status = store.status();
    assert_eq!((status.quarantined, status.kept, status.parts), (1, 1, 1));
    assert_eq!(names(&place.directory), ["kept", "open", "virus"]);
    assert_eq!(mode(&place.directory.join("virus")), 0o400);
    let lengths = |store: &FileStore| store.status().total_bytes;
    let before = lengths(&store);
    drop(store);
    // What is infected is no old file to make room with, in the next run either.
    let store = start(&options).expect("starts");
    assert_eq!(lengths(&store), before, "counted once");
    whole(&store.client(), 1, "new", &[0; 9_550], FileEnd::Keep);
    settled(&store);
    assert_eq!(names(&place.directory), ["new", "virus"]);
}

#[test]
fn the_number_of_open_files_is_bounded() {
    let place = Place::new();
    let store = start(&FileStoreOptions {
        max_open: 2,
        ..place.options()
    })
    .expect("starts");
    let client = store.client();
    for id in 0..5 {
        begin(&client, id, &format!("f{id}"));
        data(&client, id, b"12345");
    }
    assert_eq!(store.status().open, 2);
    for id in 0..5 {
        end(&client, id, FileEnd::Keep);
    }
    let status = settled(&store);
    assert_eq!(names(&place.directory), ["f0", "f1"]);
    assert_eq!(status.lost.of(LossCause::OpenLimit).files, 3);
    assert_eq!(status.lost.of(LossCause::NotBegun).bytes, 15);
}

#[test]
fn the_end_of_a_run_or_a_client_leaves_parts() {
    let place = Place::new();
    let store = place.start();
    let (first, second) = (store.client(), store.client());
    begin(&first, 1, "of-client");
    data(&first, 1, b"abc");
    begin(&second, 1, "of-run");
    data(&second, 1, b"def");
    drop(first);
    settled(&store);
    assert_eq!(names(&place.directory), [".of-run.partial", "of-client"]);
    drop(store);
    assert_eq!(files(&place.directory)["of-run"], b"def");
    assert_eq!(text(&place.directory, "of-run")["end"], "part");
    // The store is gone; what comes now is nobody's.
    data(&second, 1, b"ghi");
}

#[test]
fn clients_do_not_disturb_each_other() {
    let place = Place::new();
    let store = place.start();
    std::thread::scope(|scope| {
        for number in 0..4_u8 {
            let client = store.client();
            scope.spawn(move || {
                // All use the same ids and names; files are interleaved.
                for group in 0..20 {
                    let ids = group * 10..group * 10 + 10;
                    ids.clone()
                        .for_each(|id| begin(&client, id, &format!("f{id}")));
                    for _ in 0..5 {
                        ids.clone().for_each(|id| data(&client, id, &[number; 100]));
                    }
                    ids.for_each(|id| end(&client, id, FileEnd::Keep));
                }
            });
        }
    });
    let status = settled(&store);
    assert_eq!((status.kept, status.bytes), (800, 400_000));
    let files = files(&place.directory);
    assert_eq!(files.len(), 800);
    let mut of_client = [0; 4];
    for (name, bytes) in &files {
        assert!(
            bytes.len() == 500 && bytes.iter().all(|byte| *byte == bytes[0]),
            "{name} is mixed"
        );
        of_client[usize::from(bytes[0])] += 1;
        assert_eq!(text(&place.directory, name)["size"], 500);
    }
    assert_eq!(of_client, [200; 4]);
}

#[test]
fn a_second_run_is_kept_out() {
    let place = Place::new();
    let store = place.start();
    let error = FileStore::start(place.options()).expect_err("in use");
    assert!(matches!(error, FileStoreError::InUse(path) if path == place.directory));
    drop(store);
    let file = place.directory.join("file");
    fs::write(&file, "").expect("written");
    let error = FileStore::start(FileStoreOptions::new(&file, &place.quarantine))
        .expect_err("no directory");
    assert!(matches!(error, FileStoreError::Directory { path, .. } if path == file));
}

/// In the process that is to be killed: writes until then.
const VICTIM: &str = "LINKWEIR_VAULT_VICTIM";

#[test]
fn a_killed_run_leaves_what_the_next_one_completes() {
    if let Some(base) = std::env::var_os(VICTIM) {
        let base = PathBuf::from(base);
        let store =
            start(&FileStoreOptions::new(base.join("files"), base.join("bad"))).expect("starts");
        let client = store.client();
        whole(&client, 1, "done", b"done", FileEnd::Keep);
        begin(&client, 2, "open");
        begin(&client, 3, "empty");
        for number in 0_u64.. {
            data(&client, 2, &number.to_be_bytes());
            // As fast as the disk, for the kill to find it at work.
            while store.status().waiting_bytes > 10_000 {
                std::thread::yield_now();
            }
        }
    }
    for stale in [Stale::Keep, Stale::Delete] {
        let place = Place::new();
        let mut victim = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "a_killed_run_leaves_what_the_next_one_completes"])
            .env(VICTIM, place.directory.parent().expect("a parent"))
            .stdout(Stdio::null())
            .spawn()
            .expect("started");
        let hidden = place.directory.join(".open.partial");
        let begin = Instant::now();
        while fs::metadata(&hidden).map_or(0, |meta| meta.len()) < 100_000 {
            assert!(
                begin.elapsed() < Duration::from_secs(20),
                "it does not write"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        victim.kill().expect("it runs");
        victim.wait().expect("it ended");
        assert_eq!(
            names(&place.directory),
            [".empty.partial", ".open.partial", "done"]
        );
        // One that was on its way to the quarantine, and one without a word about it.
        fs::write(place.directory.join(".bad.partial"), "virus").expect("written");
        fs::write(place.directory.join(".bad.json.partial"), "{}\n").expect("written");
        let read_only = fs::Permissions::from_mode(0o400);
        fs::set_permissions(place.directory.join(".bad.partial"), read_only).expect("set");
        fs::write(place.directory.join(".unknown.partial"), "?").expect("written");
        // Killed between its two names; and half a copy.
        fs::write(place.directory.join(".half.partial"), "half").expect("written");
        fs::write(place.directory.join("half.json"), "{}\n").expect("written");
        fs::write(place.quarantine.join(".copy.partial"), "ha").expect("written");
        let written = fs::metadata(&hidden).expect("there").len();
        let store = start(&FileStoreOptions {
            stale,
            ..place.options()
        })
        .expect("the lock went with the process");
        assert_eq!(names(&place.quarantine), ["bad"]);
        let left = files(&place.directory);
        if stale == Stale::Delete {
            assert_eq!(names(&place.directory), ["done"]);
            assert_eq!(store.status().interrupted, 1);
            continue;
        }
        assert_eq!(names(&place.directory), ["done", "half", "open"]);
        assert_eq!(left["open"].len() as u64, written);
        for (number, piece) in (0_u64..).zip(left["open"].chunks_exact(8)) {
            assert_eq!(piece, number.to_be_bytes(), "a beginning without a hole");
        }
        let told = text(&place.directory, "open");
        assert_eq!(
            (&told["end"], &told["name"]),
            (&"interrupted".into(), &"original open".into())
        );
        assert_eq!(store.status().interrupted, 3);
    }
}

#[test]
fn a_directory_that_goes_and_comes_back() {
    let place = Place::new();
    let store = place.start();
    let client = store.client();
    begin(&client, 1, "open");
    data(&client, 1, b"abc");
    settled(&store);
    fs::remove_dir_all(&place.directory).expect("removed");
    end(&client, 1, FileEnd::Keep);
    for id in 2..5 {
        whole(&client, id, "x", b"12345", FileEnd::Keep);
    }
    let status = settled(&store);
    let lost = status.lost.of(LossCause::NoDirectory);
    assert_eq!((lost.files, lost.bytes, status.kept), (4, 18, 0));
    assert!(
        !place.directory.exists(),
        "it is not ours to make: a disk may belong there"
    );
    assert_eq!(store.take_notices().len(), 1, "said once");
    fs::create_dir(&place.directory).expect("made");
    whole(&client, 6, "y", b"abc", FileEnd::Keep);
    assert_eq!(settled(&store).kept, 1);
    assert_eq!(files(&place.directory)["y"], b"abc");
    assert_eq!(
        store.take_notices(),
        ["recorded files: writing works again"]
    );
}

#[test]
fn no_permission_costs_files_and_not_the_run() {
    let place = Place::new();
    fs::create_dir(&place.directory).expect("made");
    fs::create_dir(&place.quarantine).expect("made");
    let restrict = Restrict {
        writable: vec![place.directory.clone(), place.quarantine.clone()],
        ..Restrict::default()
    };
    let options = place.options();
    // The store's thread has what the thread has that starts it: here no right over foreign modes.
    let store = std::thread::spawn(move || {
        restrict.apply().expect("restricted");
        start(&options).expect("starts")
    });
    let store = store.join().expect("no panic");
    let client = store.client();
    let set = |directory: &Path, mode| {
        fs::set_permissions(directory, fs::Permissions::from_mode(mode)).expect("set");
    };
    set(&place.directory, 0o500);
    whole(&client, 1, "a", b"12345", FileEnd::Keep);
    let lost = settled(&store).lost.of(LossCause::NoPermission);
    assert_eq!((lost.files, lost.bytes), (1, 5));
    set(&place.directory, 0o700);
    set(&place.quarantine, 0o500);
    whole(&client, 2, "virus", b"12345", FileEnd::Quarantine);
    whole(&client, 3, "b", b"12345", FileEnd::Keep);
    let status = settled(&store);
    assert_eq!(status.lost.of(LossCause::Quarantine).files, 1);
    // What is infected is in the quarantine or nowhere.
    assert_eq!(names(&place.directory), ["b"]);
    set(&place.quarantine, 0o700);
    whole(&client, 4, "virus", b"12345", FileEnd::Quarantine);
    assert_eq!(settled(&store).quarantined, 1);
    assert_eq!(names(&place.quarantine), ["virus"]);
}

#[test]
fn a_quarantine_on_another_disk_gets_a_copy() {
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("SKIPPED: no /dev/shm");
        return;
    };
    let mut place = Place::new();
    let device = |path: &Path| path.metadata().expect("there").dev();
    if device(memory.path()) == device(place.directory.parent().expect("a parent")) {
        eprintln!("SKIPPED: the temporary directory is in /dev/shm");
        return;
    }
    place.quarantine = memory.path().join("bad");
    let store = place.start();
    let client = store.client();
    whole(&client, 1, "virus", &[7; 300_000], FileEnd::Quarantine);
    whole(&client, 2, "virus", b"another", FileEnd::Quarantine);
    let status = settled(&store);
    assert_eq!((status.quarantined, status.last_error), (2, None));
    assert_eq!(names(&place.directory), Vec::<String>::new());
    assert_eq!(
        fs::read_dir(&place.directory).expect("a directory").count(),
        0
    );
    let there = files(&place.quarantine);
    assert_eq!(there.keys().collect::<Vec<_>>(), ["virus", "virus-2"]);
    assert!(there["virus"] == vec![7; 300_000] && there["virus-2"] == b"another");
    assert_eq!(mode(&place.quarantine.join("virus")), 0o400);
    assert_eq!(text(&place.quarantine, "virus-2")["size"], 7);
}

/// A file system of 1 MiB; gone when dropped.
struct Tiny(PathBuf);

impl Tiny {
    fn mount(path: &Path) -> Option<Self> {
        fs::create_dir(path).expect("made");
        let done = Command::new("mount")
            .args([
                "-t",
                "tmpfs",
                "-o",
                "size=1m,mode=700",
                "linkweir-store-test",
            ])
            .arg(path)
            .stderr(Stdio::null())
            .status();
        if done.is_ok_and(|status| status.success()) {
            return Some(Self(path.to_owned()));
        }
        eprintln!("SKIPPED: no tmpfs can be mounted here (root may)");
        None
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        Command::new("umount")
            .arg("--lazy")
            .arg(&self.0)
            .status()
            .ok();
    }
}

#[test]
fn a_full_disk_costs_files_until_there_is_room() {
    let place = Place::new();
    let Some(_disk) = Tiny::mount(&place.directory) else {
        return;
    };
    let store = place.start();
    let client = store.client();
    whole(&client, 1, "small", &[1; 300_000], FileEnd::Keep);
    begin(&client, 2, "large");
    for _ in 0..10 {
        data(&client, 2, &[2; 100_000]);
    }
    // While it is full: no room even for a beginning.
    whole(&client, 3, "none", b"12345", FileEnd::Keep);
    end(&client, 2, FileEnd::Keep);
    let status = settled(&store);
    let large = &files(&place.directory)["large"];
    assert!(
        large.len() > 600_000 && large.len() < 800_000,
        "{}",
        large.len()
    );
    let told = text(&place.directory, "large");
    assert_eq!(
        (&told["end"], &told["cut"]),
        (&"part".into(), &"no_space".into())
    );
    assert_eq!(told["size"], large.len());
    let lost = status.lost.of(LossCause::NoSpace);
    assert_eq!(lost.files, 2);
    assert_eq!(lost.bytes, 1_000_005 - large.len() as u64);
    assert_eq!(names(&place.directory), ["large", "small"]);
    let notices = store.take_notices();
    assert!(
        notices[0].contains("no_space") && notices[1].contains("again"),
        "{notices:?}"
    );
    fs::remove_file(place.directory.join("small")).expect("removed");
    whole(&client, 4, "after", &[4; 200_000], FileEnd::Keep);
    assert_eq!(settled(&store).kept, 2);
    assert_eq!(files(&place.directory)["after"].len(), 200_000);
}
