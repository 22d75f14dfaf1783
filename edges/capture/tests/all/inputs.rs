//! Lists of inputs: files, directories, pipes, compressed or not, filtered or not.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::common::{COMPRESSIONS, cases, compress, drain, drain_ahead, read, sample, with_chunk};
use linkweir_capture::{CaptureFiles, Input, ReadOptions};
use linkweir_engine::{FaultKind, Source, SourceEvent};
use linkweir_testkit::capture_writer::{
    ByteOrder, CapturedFrame, PacketBlock, PcapVariant, PcapngInterface, pcap, pcapng,
};
use linkweir_wire::LinkType;

fn usual(frames: &[CapturedFrame]) -> Vec<u8> {
    pcap(frames, PcapVariant::usual(LinkType::ETHERNET))
}

fn open(paths: &[&Path]) -> CaptureFiles {
    let inputs: Vec<Input> = paths.iter().map(|path| Input::from(*path)).collect();
    CaptureFiles::open(&inputs, ReadOptions::default()).unwrap()
}

fn filtered(filter: &str) -> ReadOptions {
    ReadOptions {
        filter: Some(filter.to_owned()),
        ..ReadOptions::default()
    }
}

#[test]
fn files_are_one_trace_in_the_order_given() {
    let directory = tempfile::tempdir().unwrap();
    let frames = sample(1);
    let (first, second) = (
        directory.path().join("b.pcap"),
        directory.path().join("a.pcap"),
    );
    fs::write(&first, usual(&frames[..3])).unwrap();
    fs::write(&second, compress("zstd", &usual(&frames[3..]))).unwrap();
    let mut files = open(&[&first, &second]);
    let total = files.progress().total_bytes.unwrap();
    assert_eq!(
        total,
        fs::metadata(&first).unwrap().len() + fs::metadata(&second).unwrap().len()
    );
    assert_eq!(files.progress().consumed_bytes, 0);
    while !matches!(files.next_event().unwrap(), SourceEvent::End) {}
    assert_eq!(files.progress().consumed_bytes, total);
    let trace = drain(open(&[&first, &second]));
    assert_eq!(trace.frames, frames);
    assert_eq!(trace.faults, []);
}

#[test]
fn what_others_read_ahead_is_the_same_trace() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let packed = path("packed");
    fs::write(&packed, compress("gzip", &usual(&sample(1)))).unwrap();
    let mut pieces = 0;
    for (number, case) in cases().iter().enumerate() {
        // Whole, cut off, and damaged in the middle.
        let mut damaged = case.file.clone();
        let middle = damaged.len() / 2;
        damaged[middle..].fill(0xee);
        let files = [
            case.file.as_slice(),
            &case.file[..case.file.len() - 5],
            &damaged,
        ];
        let paths: Vec<_> = (0..files.len())
            .map(|file| path(&format!("{number}.{file}")))
            .collect();
        for (path, bytes) in paths.iter().zip(files) {
            fs::write(path, bytes).unwrap();
        }
        let all = [&paths[0], &packed, &paths[1], &paths[2], &paths[0]];
        let inputs = all.map(|path| Input::from(path.as_path()));
        let open = |chunk| CaptureFiles::open(&inputs, with_chunk(chunk)).unwrap();
        for chunk in [40, 97, 300] {
            let alone = drain(open(chunk));
            for crew in 1..4 {
                let ahead = drain_ahead(open(chunk), crew, |_| pieces += 1);
                assert!(ahead == alone, "{}, {chunk}, {crew}", case.name);
            }
        }
    }
    assert!(pieces > 1000, "{pieces}");
}

#[test]
fn a_file_that_is_read_ahead_may_grow_and_shrink() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.pcap");
    let frames: Vec<_> = (0..40).flat_map(|_| sample(1)).collect();
    let bytes = usual(&frames);
    let half = bytes.len() / 2;
    let open = || CaptureFiles::open(&[Input::from(path.as_path())], with_chunk(100)).unwrap();

    fs::write(&path, &bytes[..half]).unwrap();
    let grown = drain_ahead(open(), 3, |turn| {
        if turn == 5 {
            let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
            file.write_all(&bytes[half..]).unwrap();
        }
    });
    assert_eq!((grown.frames, grown.faults), (frames.clone(), Vec::new()));

    let shrunk = drain_ahead(open(), 3, |turn| {
        if turn == 5 {
            let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(half as u64).unwrap();
        }
    });
    assert!(frames.starts_with(&shrunk.frames));
    let most = drain(open()).frames.len();
    // What was read before it was cut off is there.
    assert!((most..=most + 8).contains(&shrunk.frames.len()), "{most}");
}

#[test]
fn a_missing_file_is_refused_before_anything_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let there = directory.path().join("there.pcap");
    fs::write(&there, usual(&sample(1))).unwrap();
    let inputs = [
        Input::from(there.as_path()),
        Input::from("no/such/trace.pcap"),
    ];
    let error = CaptureFiles::open(&inputs, ReadOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "no/such/trace.pcap: no such file");
    let error = CaptureFiles::open(
        &[Input::from(directory.path().join("x"))],
        ReadOptions::default(),
    );
    assert!(error.is_err());
}

/// A file of that name in the directory, with the directories on the way.
fn put(directory: &Path, name: &str, bytes: &[u8]) {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_directory_gives_its_files_and_those_below_in_name_order() {
    let directory = tempfile::tempdir().unwrap();
    let frames = sample(1);
    let refused = || CaptureFiles::open(&[Input::from(directory.path())], ReadOptions::default());
    assert!(refused().unwrap_err().to_string().contains("has no files"));
    for (name, bytes) in [
        ("2/x/1.pcap", &usual(&frames[2..3])[..]),
        ("2/a.pcap", &usual(&frames[1..2])),
        ("1.pcap", &usual(&frames[..1])),
        ("3.txt", b"not a capture"),
        ("2/empty", b""),
        ("2/x/tiny", b"ab"),
        ("2/y/notes.gz", &compress("gzip", b"nor this one")),
        ("4.pcap", &usual(&frames[3..])[..45]),
        ("4/header.pcap", &usual(&frames)[..20]),
        ("5.pcap", &usual(&frames[3..])),
    ] {
        put(directory.path(), name, bytes);
    }
    std::os::unix::net::UnixListener::bind(directory.path().join("socket")).unwrap();
    let trace = drain(open(&[directory.path()]));
    assert_eq!(trace.frames, frames);
    let faults: Vec<_> = trace
        .faults
        .iter()
        .map(|fault| (fault.kind, &fault.input))
        .collect();
    assert_eq!(faults.len(), 3, "{faults:?}");
    for (at, (kind, input)) in [
        (FaultKind::Damaged, "4/header.pcap"),
        (FaultKind::Damaged, "4.pcap"),
        (FaultKind::Skipped, "and 2 more"),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(faults[at].0, kind, "{faults:?}");
        assert!(faults[at].1.ends_with(input), "{faults:?}");
    }
    assert_eq!(trace.faults[1].offset, Some(24));
    assert!(
        trace.faults[2].message.contains("5 files"),
        "{:?}",
        trace.faults[2]
    );
}

#[test]
fn a_directory_of_other_files_is_no_input() {
    let directory = tempfile::tempdir().unwrap();
    put(directory.path(), "a/readme", b"not a capture");
    let trace = drain(open(&[directory.path()]));
    assert_eq!(trace.faults.len(), 1);
    assert_eq!(trace.faults[0].kind, FaultKind::Unusable);
    assert!(trace.faults[0].message.starts_with("1 file of"));
}

#[test]
fn links_among_directories_end_and_depth_is_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let frames = sample(1);
    put(directory.path(), "a/1.pcap", &usual(&frames));
    let link = |from: &str, to: &Path| {
        std::os::unix::fs::symlink(to, directory.path().join(from)).unwrap();
    };
    link("a/loop", directory.path());
    link("b", &directory.path().join("a"));
    link("nowhere", Path::new("no/such/file"));
    let trace = drain(open(&[directory.path()]));
    assert_eq!(trace.frames, frames, "once");
    for (at, (kind, input, message)) in [
        (FaultKind::Skipped, "a/loop", "read already"),
        (FaultKind::Skipped, "/b", "read already"),
        (
            FaultKind::Damaged,
            "/nowhere",
            "a link to a file that is not there",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let fault = &trace.faults[at];
        assert_eq!(fault.kind, kind, "{fault:?}");
        assert!(fault.input.ends_with(input), "{fault:?}");
        assert!(fault.message.contains(message), "{fault:?}");
    }
    assert_eq!(trace.faults.len(), 3);

    let deep = tempfile::tempdir().unwrap();
    put(deep.path(), "1.pcap", &usual(&frames));
    put(
        deep.path(),
        &format!("{}2.pcap", "d/".repeat(31)),
        &usual(&frames),
    );
    put(
        deep.path(),
        &format!("{}3.pcap", "d/".repeat(32)),
        &usual(&frames),
    );
    let trace = drain(open(&[deep.path()]));
    assert_eq!(trace.frames.len(), 2 * frames.len());
    assert_eq!(trace.faults.len(), 1);
    assert_eq!(trace.faults[0].kind, FaultKind::Damaged);
    assert!(trace.faults[0].message.contains("32 directories deep"));
}

#[test]
fn a_tree_in_which_nothing_could_be_read_is_no_input() {
    let frames = sample(1);
    let deep = tempfile::tempdir().unwrap();
    put(
        deep.path(),
        &format!("{}1.pcap", "d/".repeat(32)),
        &usual(&frames),
    );
    let dangling = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("no/such/file", dangling.path().join("x.pcap")).unwrap();
    for directory in [deep.path(), dangling.path()] {
        let trace = drain(open(&[directory]));
        let kinds: Vec<_> = trace.faults.iter().map(|fault| fault.kind).collect();
        assert_eq!(
            kinds,
            [FaultKind::Damaged, FaultKind::Unusable],
            "{:?}",
            trace.faults
        );
        assert_eq!(trace.faults[1].input, directory.display().to_string());
        // Beside what can be read it is a loss like others.
        put(directory, "readable.pcap", &usual(&frames));
        let trace = drain(open(&[directory]));
        assert_eq!((trace.frames.len(), trace.faults.len()), (frames.len(), 1));
        assert_eq!(trace.faults[0].kind, FaultKind::Damaged);
    }
}

#[test]
fn a_directory_that_may_not_be_read_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let frames = sample(1);
    put(directory.path(), "1.pcap", &usual(&frames));
    // Longer than a name may be, so that nobody can look there, whatever his rights.
    let link = directory.path().join("b");
    std::os::unix::fs::symlink("x".repeat(300), &link).unwrap();
    let trace = drain(open(&[directory.path()]));
    assert_eq!(trace.frames, frames);
    assert_eq!(trace.faults.len(), 1);
    assert_eq!(trace.faults[0].kind, FaultKind::Damaged);
    assert_eq!(trace.faults[0].input, link.display().to_string());
}

#[test]
fn erf_is_known_by_content_or_by_its_name() {
    let case = cases().into_iter().find(|case| case.name == "erf").unwrap();
    assert_eq!(
        read("trace", &case.file, ReadOptions::default()).frames,
        case.frames
    );
    // Two records and the end: short, but nothing contradicts.
    let two = &case.file[..24 + 56];
    assert_eq!(
        read("trace", two, ReadOptions::default()).frames,
        case.frames[..2]
    );
    // A cut first record tells too little without the name.
    let cut = &case.file[..20];
    let kind = |name: &str| read(name, cut, ReadOptions::default()).faults[0].kind;
    assert_eq!(
        (kind("trace"), kind("trace.ERF")),
        (FaultKind::Unusable, FaultKind::Damaged)
    );
}

#[test]
fn a_fifo_gives_what_has_arrived() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    if !Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .is_ok_and(|status| status.success())
    {
        // Where the system has no `mkfifo` there is nothing to test.
        return;
    }
    let frames = sample(1);
    let file = usual(&frames);
    let (told, wait) = std::sync::mpsc::channel();
    let path = fifo.clone();
    let writer = std::thread::spawn(move || {
        let mut pipe = fs::OpenOptions::new().write(true).open(path).unwrap();
        // Two whole frames and a part of the third.
        pipe.write_all(&file[..24 + 16 + 16 + 37 + 5]).unwrap();
        wait.recv().unwrap();
        pipe.write_all(&file[24 + 16 + 16 + 37 + 5..]).unwrap();
    });
    let mut files = open(&[&fifo]);
    assert_eq!(files.progress().total_bytes, None);
    let SourceEvent::Batch(batch) = files.next_event().unwrap() else {
        panic!("frames that have arrived are given");
    };
    assert_eq!(batch.len(), 2);
    told.send(()).unwrap();
    let trace = drain(files);
    assert_eq!(trace.frames, frames[2..]);
    writer.join().unwrap();
}

#[test]
fn filters_apply_to_every_link_type() {
    let mut frames = sample(2);
    for frame in &mut frames {
        // IPv4 to port 80, once with an Ethernet header and once without.
        let mut packet = vec![
            0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        packet.extend([
            0xc0, 0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0,
        ]);
        if frame.interface == 0 {
            packet.splice(..0, [0; 12].into_iter().chain([8, 0]));
        }
        frame.wire_len = packet.len() as u32;
        frame.bytes = packet;
    }
    let at = frames.len() - 1;
    let end = frames[at].bytes.len() - 17;
    frames[at].bytes[end] = 81;
    let interfaces = [LinkType::ETHERNET, LinkType::RAW].map(PcapngInterface::usual);
    let file = pcapng(
        &frames,
        ByteOrder::Little,
        &interfaces,
        PacketBlock::Enhanced,
    );
    let trace = read("test", &file, filtered("tcp dst port 80"));
    assert_eq!(trace.faults, []);
    assert_eq!(trace.frames, frames[..at]);
    assert_eq!(
        read("test", &file, filtered("tcp dst port 81")).frames,
        frames[at..]
    );
    assert_eq!(read("test", &file, filtered("udp")).frames, []);
}

#[test]
fn a_bad_filter_is_refused_before_anything_is_read() {
    let error = CaptureFiles::open(&[Input::Stdin], filtered("tcp prot 80")).unwrap_err();
    assert!(error.to_string().contains("syntax error"), "{error}");
}

#[test]
fn a_filter_without_meaning_for_the_first_link_type_is_refused() {
    let stream = std::io::Cursor::new(usual(&sample(1)));
    let mut files = CaptureFiles::from_reader("test", stream, filtered("wlan type mgt")).unwrap();
    let error = files.next_event().unwrap_err();
    assert!(error.to_string().contains("link type 1"), "{error}");
}

#[test]
fn a_filter_without_meaning_for_a_later_link_type_is_a_fault() {
    let frames = sample(2);
    let interfaces = [LinkType::ETHERNET, LinkType::RAW].map(PcapngInterface::usual);
    let file = pcapng(
        &frames,
        ByteOrder::Little,
        &interfaces,
        PacketBlock::Enhanced,
    );
    let trace = read("test", &file, filtered("ether[0] = 0x5a or len >= 0"));
    assert_eq!(trace.faults, []);
    let trace = read("test", &file, filtered("ether broadcast or len >= 0"));
    assert_eq!(trace.faults.len(), 1);
    assert_eq!(trace.faults[0].kind, FaultKind::Damaged);
    assert!(trace.faults[0].message.contains("link type 101"));
    assert!(trace.frames.iter().all(|frame| frame.interface == 0));
    assert_eq!(trace.drops.unusable_records, 3);
}

#[test]
fn standard_input_is_a_dash() {
    assert_eq!(Input::from("-"), Input::Stdin);
    assert_eq!(Input::from("./-"), Input::Path("./-".into()));
    let files = CaptureFiles::open(&[Input::Stdin], ReadOptions::default()).unwrap();
    assert_eq!(files.progress().total_bytes, None);
}

#[test]
fn compressed_files_of_other_tools() {
    let file = usual(&sample(1));
    for how in COMPRESSIONS {
        let tool = Command::new(how)
            .arg("-c")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn();
        let Ok(mut tool) = tool else {
            continue;
        };
        tool.stdin.take().unwrap().write_all(&file).unwrap();
        let compressed = tool.wait_with_output().unwrap().stdout;
        let trace = read("test", &compressed, ReadOptions::default());
        assert_eq!(trace.frames, sample(1), "{how}");
        assert_eq!(trace.faults, [], "{how}");
    }
}
