//! HTTP/2, and TLS with keys, on the traffic of real servers and clients: what is said is what tshark and their own logs
//! say, and of a part of the traffic nothing wrong.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use linkweir_http::{HttpConfig, HttpStage};
use linkweir_keys::LiveLog;
use linkweir_record::{Confidence, HttpBatch, HttpTransaction, RecordBatch as _};
use linkweir_testkit::capture_writer::{
    ByteOrder, CapturedFrame, PacketBlock, PcapngInterface, pcapng, pcapng_block,
};
use linkweir_testkit::memory::drive;
use linkweir_wire::LinkType;
use serde_json::Value;
use tempfile::tempdir;

use crate::common::{fifo, frames_of, run};

/// Server and client of each: nginx, h2o, grpcio, caddy; curl, nghttp, aioquic, Chromium.
const CAPTURES: [&str; 8] = [
    "caddy-h3",
    "chromium-h2",
    "chromium-h3",
    "grpc-clear",
    "h2o-h2c",
    "nginx-h1-tls13",
    "nginx-h2-tls12",
    "nginx-h2-tls13",
];

fn bundled(name: &str) -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../testkit/captures/web"
    ))
    .join(name)
}

fn has_keys(name: &str) -> bool {
    bundled(&format!("{name}.keys")).exists()
}

fn measure(name: &str, frames: &[CapturedFrame]) -> HttpBatch {
    let keys = has_keys(name).then(|| {
        let log = LiveLog::new();
        log.push(&std::fs::read(bundled(&format!("{name}.keys"))).unwrap());
        Arc::new(log)
    });
    let mut stage = HttpStage::new(&HttpConfig {
        keys,
        awaits_keys: true,
        // Of these another test.
        estimates: false,
        ..HttpConfig::default()
    });
    drive(&mut stage, frames, LinkType::ETHERNET, &[])
}

/// Port of the client, stream, method, target, code, times of request and response; `-` where there is none.
fn told(view: &HttpTransaction<'_>) -> [String; 7] {
    let text = |bytes: &[u8]| match bytes {
        [] => "-".to_owned(),
        bytes => String::from_utf8_lossy(bytes).into_owned(),
    };
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let stream = view.web().and_then(|web| web.stream_id);
    [
        view.row.client_port.to_string(),
        number(stream.map(u64::from)),
        text(view.text.method),
        text(view.text.uri),
        number(view.row.status_code.map(u64::from)),
        number(view.row.request_ts_ns),
        number(view.row.response_ts_ns),
    ]
}

#[test]
fn records_are_those_of_tshark_and_of_the_logs() {
    for name in CAPTURES {
        let batch = measure(name, &frames_of(&bundled(&format!("{name}.pcap.gz"))));
        let mut ours: Vec<[String; 7]> = batch.views().map(|view| told(&view)).collect();
        let truth = std::fs::read_to_string(bundled(&format!("{name}.tsv"))).unwrap();
        for line in truth.lines() {
            let row: Vec<&str> = line.split('\t').collect();
            // A log does not say everything.
            let is_it = |one: &[String; 7]| {
                let mut fields = one.iter().zip(&row);
                fields.all(|(ours, theirs)| *theirs == "-" || ours == theirs)
            };
            let at = ours.iter().position(is_it);
            let at = at.unwrap_or_else(|| panic!("{name}: {line} is not in {ours:?}"));
            ours.remove(at);
        }
        assert!(ours.is_empty(), "{name}: {ours:?}");
        let are_opened = batch
            .views()
            .all(|view| view.web().is_some_and(|web| web.tls_version > 0));
        assert_eq!(are_opened, has_keys(name), "{name}");
        let carrier: &[u8] = if name.ends_with("h3") { b"q13" } else { b"t" };
        let has_ja4 = |view: HttpTransaction<'_>| {
            let ja4 = view.web().and_then(|web| web.ja4);
            ja4.is_some_and(|ja4| ja4.starts_with(carrier))
        };
        assert!(!has_keys(name) || batch.views().all(has_ja4), "{name}");
        // Chromium sends its hello in pieces of any order.
        let is_named =
            |view: HttpTransaction<'_>| view.web().is_some_and(|web| web.sni == b"localhost");
        assert!(
            !name.starts_with("chromium") || batch.views().all(is_named),
            "{name}"
        );
    }
}

#[test]
fn of_a_part_of_the_traffic_nothing_wrong_is_said() {
    for name in CAPTURES {
        let frames = frames_of(&bundled(&format!("{name}.pcap.gz")));
        let whole: Vec<_> = {
            let batch = measure(name, &frames);
            batch.views().map(|view| told(&view)).collect()
        };
        let mut complete = [0; 3];
        let check = |frames: &[CapturedFrame], what: &str| {
            let batch = measure(name, frames);
            for view in batch.views() {
                let said = told(&view);
                // An answer that switches protocols is said by itself where its request is missing.
                let is_true = view.row.status_code == Some(101)
                    || whole.iter().any(|truth| {
                        let mut fields = said.iter().zip(truth);
                        fields.all(|(said, truth)| said == "-" || said == truth)
                    });
                assert!(is_true, "{name}, {what}: {said:?}");
            }
            batch.len()
        };
        for at in (25..frames.len()).step_by(25) {
            check(&frames[at..], &format!("joined at {at}"));
            let mut part = frames.clone();
            part.remove(at);
            complete[0] += check(&part, &format!("without {at}"));
            let mut part = frames.clone();
            part.insert(at, frames[at].clone());
            complete[1] += check(&part, &format!("{at} twice"));
            let mut part = frames.clone();
            part.swap(at - 1, at);
            complete[2] += check(&part, &format!("{at} earlier"));
            let mut part = frames.clone();
            let late = part.remove(at);
            part.insert((at + 8).min(part.len()), late);
            check(&part, &format!("{at} eight later"));
        }
        let times = (frames.len() - 1) / 25;
        let [without, twice, earlier] = complete;
        assert_eq!(twice, times * whole.len(), "{name}");
        assert!(earlier >= times * whole.len(), "{name}: {earlier}");
        assert!(without * 10 >= times * whole.len() * 9, "{name}: {without}");
    }
}

#[test]
fn keys_come_from_a_file_and_from_a_fifo_and_are_missed() {
    let directory = tempdir().unwrap();
    let capture = bundled("chromium-h2.pcap.gz");
    let summary = directory.path().join("summary.json");
    let words = |more: &[&str]| {
        let mut words = vec!["http", "-r", capture.to_str().unwrap(), "--format", "jsonl"];
        words.extend(["--overwrite", "--summary", summary.to_str().unwrap()]);
        let words: Vec<String> = words
            .iter()
            .chain(more)
            .map(|&word| word.to_owned())
            .collect();
        words
    };
    let found = |more: &[&str]| {
        let words = words(more);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ran = run(&words).exits(0);
        let text = std::fs::read_to_string(&summary).unwrap();
        let summary: Value = serde_json::from_str(&text).unwrap();
        let with_keys = ran.stdout.matches("\"source\":\"keys\"").count();
        (with_keys, summary["http"].clone())
    };
    let keys = bundled("chromium-h2.keys");
    let (count, http) = found(&["--keys", keys.to_str().unwrap()]);
    assert_eq!(count, 19);
    assert_eq!(
        (&http["sources"]["keys"], &http["versions"]["2"]),
        (&19.into(), &19.into())
    );
    assert_eq!(
        (&http["followed"]["connections"], &http["undecrypted"]),
        (&1.into(), &0.into())
    );

    // A FIFO is read to its end before the capture.
    let pipe = fifo(directory.path());
    let text = std::fs::read(&keys).unwrap();
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || {
            let mut file = std::fs::File::options().write(true).open(pipe).unwrap();
            file.write_all(&text).unwrap();
        }
    });
    let (count, _) = found(&["--keys", pipe.to_str().unwrap()]);
    writer.join().unwrap();
    assert_eq!(count, 19);

    // Keys of others.
    let others = bundled("nginx-h2-tls12.keys");
    let (count, http) = found(&["--keys", others.to_str().unwrap()]);
    assert_eq!(count, 0);
    assert_eq!(
        (&http["followed"]["connections"], &http["undecrypted"]),
        (&1.into(), &1.into())
    );

    run(&[
        "http",
        "-r",
        capture.to_str().unwrap(),
        "--keys",
        "/nowhere/keys",
    ])
    .exits(3)
    .says("/nowhere/keys");
}

#[test]
fn estimates_are_compared_with_keys() {
    let words = |more: &[&str]| {
        let capture = bundled("nginx-h1-tls13.pcap.gz").display().to_string();
        let words = ["http", "-q", "--format", "jsonl", "-r", &capture];
        run(&[&words[..], more].concat()).exits(0)
    };
    let keys = bundled("nginx-h1-tls13.keys").display().to_string();
    let ran = words(&["--keys", &keys, "--check-estimates"]);
    assert_eq!(ran.stdout.matches("\"source\":\"keys\"").count(), 22);
    assert_eq!(ran.stdout.matches("\"source\":\"estimate\"").count(), 22);
    assert!(
        ran.stderr
            .contains("22 transactions with keys, 22 estimated; 0 with keys only")
    );
    let row = ran.stderr.lines().find(|line| line.contains("exact"));
    let row: Vec<&str> = row.unwrap().split_whitespace().collect();
    assert_eq!(row[..6], ["1.1", "exact", "22", "22", "100.0", "%"]);
    // An estimate stands where no secret opens the connection, and nowhere else.
    let count = |more: &[&str]| {
        words(more)
            .stdout
            .matches("\"confidence\":\"exact\"")
            .count()
    };
    assert_eq!(count(&["--keys", &keys]), 0);
    assert_eq!(count(&[]), 22);
    assert_eq!(count(&["--estimate", "off"]), 0);
}

#[test]
fn secrets_in_a_capture_are_used_without_a_flag() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("with_secrets.pcapng");
    let frames = frames_of(&bundled("chromium-h2.pcap.gz"));
    let keys = std::fs::read(bundled("chromium-h2.keys")).unwrap();
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let interface = PcapngInterface::usual(LinkType::ETHERNET);
        let plain = pcapng(&frames, order, &[interface], PacketBlock::Enhanced);
        let number = |n: u32| match order {
            ByteOrder::Little => n.to_le_bytes(),
            ByteOrder::Big => n.to_be_bytes(),
        };
        let len = u32::try_from(keys.len()).unwrap();
        let mut body = [&number(0x544c_534b)[..], &number(len), &keys].concat();
        body.resize(body.len().next_multiple_of(4), 0);
        // Behind the section header and the interface.
        let block_len = |at: usize| {
            let word: [u8; 4] = plain[at + 4..at + 8].try_into().unwrap();
            match order {
                ByteOrder::Little => u32::from_le_bytes(word) as usize,
                ByteOrder::Big => u32::from_be_bytes(word) as usize,
            }
        };
        let at = block_len(0) + block_len(block_len(0));
        let block = pcapng_block(order, 10, &body);
        std::fs::write(&path, [&plain[..at], &block, &plain[at..]].concat()).unwrap();
        let words = ["http", "-r", path.to_str().unwrap(), "--format", "jsonl"];
        let ran = run(&words).exits(0);
        assert_eq!(ran.stdout.lines().count(), 19);
        let small = run(&[&words[..], &["--read-size", "64KiB", "--workers", "2"]].concat());
        assert_eq!(small.exits(0).stdout.lines().count(), 19);
    }
}

/// Estimates without keys: port of the client, times of request and response, confidence.
fn estimate(frames: &[CapturedFrame]) -> Vec<(u16, u64, Option<u64>, Confidence)> {
    let mut stage = HttpStage::new(&HttpConfig::default());
    let batch = drive(&mut stage, frames, LinkType::ETHERNET, &[]);
    let told = batch.views().filter_map(|view| {
        let confidence = view.web()?.confidence?;
        let row = view.row;
        Some((
            row.client_port,
            row.request_ts_ns?,
            row.response_ts_ns,
            confidence,
        ))
    });
    told.collect()
}

#[test]
fn estimates_are_what_keys_say_of_whole_captures_and_of_parts() {
    // How many of the requests have an estimate, are exact and are likely; of HTTP/2 most are at the same time.
    for (name, [count, exact, likely]) in [
        ("nginx-h1-tls13", [22, 22, 0]),
        ("nginx-h2-tls12", [25, 5, 6]),
        ("nginx-h2-tls13", [16, 1, 10]),
        ("chromium-h2", [9, 0, 5]),
        // 27 requests one at a time, six at the same time, four one at a time.
        ("chromium-h3-turns", [32, 0, 31]),
        ("chromium-h3", [9, 0, 1]),
        ("caddy-h3", [15, 0, 0]),
    ] {
        let frames = frames_of(&bundled(&format!("{name}.pcap.gz")));
        let truth: Vec<_> = {
            let batch = measure(name, &frames);
            let times = batch.views().map(|view| {
                let row = view.row;
                (row.client_port, row.request_ts_ns, row.response_ts_ns)
            });
            times.collect()
        };
        let is_true = |&(port, request, response, _): &(u16, u64, Option<u64>, Confidence)| {
            response.is_none() || truth.contains(&(port, Some(request), response))
        };
        let told = estimate(&frames);
        let of = |confidence| told.iter().filter(|told| told.3 == confidence).count();
        let counts = [told.len(), of(Confidence::Exact), of(Confidence::Likely)];
        assert_eq!(counts, [count, exact, likely], "{name}");
        assert!(told.iter().all(is_true), "{name}: {told:?}");
        let (mut timed, mut wrong) = (0, 0);
        let mut check = |frames: &[CapturedFrame], what: &str| {
            for told in estimate(frames) {
                timed += usize::from(told.2.is_some());
                wrong += usize::from(!is_true(&told));
                assert!(
                    told.3 != Confidence::Exact || is_true(&told),
                    "{name}, {what}: {told:?}"
                );
            }
        };
        for at in (25..frames.len()).step_by(25) {
            check(&frames[at..], &format!("joined at {at}"));
            let mut part = frames.clone();
            part.remove(at);
            check(&part, &format!("without {at}"));
            let mut part = frames.clone();
            part.insert(at, frames[at].clone());
            check(&part, &format!("{at} twice"));
            let mut part = frames.clone();
            part.swap(at - 1, at);
            check(&part, &format!("{at} earlier"));
        }
        println!("{name}: {timed} estimates with a response time in parts, {wrong} wrong");
        assert!(wrong * 20 <= timed, "{name}: {wrong} of {timed}");
    }
}

/// A run that succeeds.
fn done(words: &[&str]) -> String {
    run(words).exits(0).stdout
}

#[test]
fn packets_of_a_stream_can_be_opened_where_the_secrets_are_written_too() {
    let directory = tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (out, record) = (path("out.pcapng"), path("record.jsonl"));
    for (name, target) in [
        ("chromium-h2", "/page/img6.png"),
        ("chromium-h3", "/post"),
        ("nginx-h1-tls13", "/api/form"),
    ] {
        let capture = bundled(&format!("{name}.pcap.gz")).display().to_string();
        let keys = bundled(&format!("{name}.keys")).display().to_string();
        let words = ["http", "-q", "--overwrite", "--format", "jsonl"];
        let read = ["-r", capture.as_str(), "--keys", keys.as_str()];
        let filter = format!("uri ~ \"^{target}\"");
        let write = ["--pcap-out", out.as_str(), "--pcap-secrets"];
        let all = done(&[&words[..], &read, &["--pcap-filter", &filter], &write].concat());
        let wanted: Vec<&str> = all
            .lines()
            .filter(|line| line.contains(&format!("\"uri\":\"{target}")))
            .collect();
        assert!(!wanted.is_empty(), "{name}: {all}");
        // Without a key log.
        let again = done(&["http", "-q", "--format", "jsonl", "-r", &out]);
        for one in &wanted {
            assert!(again.lines().any(|line| line == *one), "{name}: {one}");
        }
        // The same by a record.
        std::fs::write(&record, wanted[0]).unwrap();
        let of = format!("@{record}");
        let found = [
            &["http", "-q", "--overwrite"][..],
            &read,
            &["--packets-of", &of],
            &write,
        ]
        .concat();
        done(&found);
        let again = done(&["http", "-q", "--format", "jsonl", "-r", &out]);
        assert!(
            again.lines().any(|line| line == wanted[0]),
            "{name}: {again}"
        );
        // Secrets are nowhere unless they are asked for.
        done(
            &[
                &words[..],
                &read,
                &["--pcap-filter", &filter, "--pcap-out", &out],
            ]
            .concat(),
        );
        let again = done(&["http", "-q", "--format", "jsonl", "-r", &out]);
        assert!(!again.contains("\"keys\""), "{name}: {again}");
    }
}

#[test]
fn two_workers_say_the_same() {
    for name in CAPTURES {
        let capture = bundled(&format!("{name}.pcap.gz")).display().to_string();
        let keys = bundled(&format!("{name}.keys")).display().to_string();
        let mut words = vec![
            "http",
            "-q",
            "--sort",
            "--format",
            "jsonl",
            "-r",
            capture.as_str(),
        ];
        if has_keys(name) {
            words.extend(["--keys", keys.as_str()]);
        }
        let one = done(&words);
        assert!(!one.is_empty(), "{name}");
        assert_eq!(
            done(&[&words[..], &["--workers", "2"]].concat()),
            one,
            "{name}"
        );
    }
}
