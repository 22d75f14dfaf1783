//! `linkweir gateway`: what is inspected arrives as it was sent, and is in the audit once.

use super::site;

use std::fs;
use std::path::Path;

use linkweir_testkit::gateway::{Place, SERVER_V6};
use linkweir_testkit::peers;
use serde_json::Value;
use site::{Events, Site, at, ended, noise, same, sha256, url};

/// Everything that has an inspector is inspected and audited.
const AUDIT: &str = r#"
[[rule]]
name = "all"
application = ["http", "fasttrack", "gnutella", "msn", "msnftp", "edonkey"]
action = "inspect"
audit = true
"#;

/// The audit has a file of this name once: all of it, and by its hash.
#[track_caller]
fn audited(events: &Events, application: &str, name: &str, file: &Path) {
    let event = events.one("file", "file_name", name);
    assert_eq!(event["application"], application, "{event:#}");
    assert_eq!(event["complete"], "true", "{event:#}");
    let length = fs::metadata(file).unwrap().len();
    assert_eq!(event["size"].as_u64(), Some(length), "{event:#}");
    assert_eq!(event["sha256"], sha256(file), "{event:#}");
}

#[test]
fn http_by_length_in_chunks_and_coded() {
    let Some(site) = Site::open(&[]) else { return };
    let gateway = site.gateway(AUDIT);
    let bytes = noise(1_500_001);
    let text = b"a line of a text that gzip likes\n".repeat(20_000);
    for name in ["length", "chunks", "six"] {
        site.nginx.put(name, &bytes).unwrap();
    }
    let coded = site.nginx.put("coded", &text).unwrap();
    let six = format!("http://[{SERVER_V6}]:8080/plain/six");
    let transfers = [
        (url("plain/length"), &bytes),
        (url("chunked/chunks"), &bytes),
        (url("gzip/coded"), &text),
        (six, &bytes),
    ];
    for (url, bytes) in &transfers {
        let (code, out) = site.curl(0, url, "out", &["--compressed"]);
        assert_eq!(code, 0, "{url}");
        same(&out, bytes);
    }
    // A request on a connection that had one before.
    let (out, again) = (site.path("first"), site.path("second"));
    let mut curl = site.curl_command(0, &url("plain/length"), &out);
    let status = curl.arg("-o").arg(&again).arg(url("plain/chunks")).status();
    assert!(status.unwrap().success());
    same(&out, &bytes);
    same(&again, &bytes);

    let events = gateway.end();
    audited(&events, "http", "six", &site.nginx.file("six"));
    for name in ["length", "chunks"] {
        let files = events.of("file");
        let files = files.iter().filter(|event| event["file_name"] == name);
        let files: Vec<_> = files.map(|event| &event["sha256"]).collect();
        let sum = Value::from(sha256(&site.nginx.file(name)));
        assert_eq!(files, [&sum, &sum], "{name}");
    }
    // The coding is taken off: what is audited is the file.
    audited(&events, "http", "coded", &coded);
    assert_eq!(events.of("malformed"), [] as [&Value; 0]);
}

#[test]
fn the_transfers_of_file_sharing() {
    let Some(site) = Site::open(&[]) else { return };
    let gateway = site.gateway(AUDIT);
    let bytes = noise(700_001);
    // Ports that are nobody's: the bytes tell.
    let transfers = [
        ("fasttrack", "4001", ""),
        ("fasttrack", "4002", "--lf"),
        ("gnutella", "4003", ""),
        ("gnutella", "4004", "--urn=sha1"),
        ("msnftp", "4005", ""),
        ("edonkey", "4006", "--size=700001"),
    ];
    for (protocol, port, more) in transfers {
        let file = site.put(&format!("{protocol}-{port}.mp3"), &bytes);
        let (file, address) = (file.to_str().unwrap(), format!("10.88.2.2:{port}"));
        let mut more: Vec<&str> = more.split('=').collect();
        more.retain(|word| !word.is_empty());
        let server = ["serve", protocol, "--listen", &address, "--file", file];
        let server = [&server[..], &["--split", "3,700,40000"]].concat();
        let server = [&server[..], if more == ["--lf"] { &more } else { &[] }].concat();
        let _server = site.serve(Place::Server, &server);
        let words = ["fetch", protocol, "--connect", &address, "--out", "out"];
        let (code, said) = site.fetch(&[&words[..], &more].concat());
        assert_eq!(code, peers::COMPLETE, "{protocol}: {said}");
        same(&site.path("out"), &bytes);
    }
    let events = gateway.end();
    let file = site.path("fasttrack-4001.mp3");
    for (application, count) in [("fasttrack", 2), ("gnutella", 2), ("msnftp", 1)] {
        let files = events.of("file");
        let files = files.iter().filter(|e| e["application"] == application);
        let sums: Vec<_> = files.map(|event| event["sha256"].clone()).collect();
        assert_eq!(
            sums,
            vec![Value::from(sha256(&file)); count],
            "{application}"
        );
    }
    let gnutella = "gnutella-4003.mp3";
    audited(&events, "gnutella", gnutella, &site.path(gnutella));
    let decided = events.decisions();
    assert!(decided.contains(&("edonkey", "inspect")), "{decided:?}");
    assert_eq!(events.of("malformed"), [] as [&Value; 0]);
}

/// Who cannot be reached connects to the one who asks: the file goes from the client to the server.
#[test]
fn pushes() {
    let Some(site) = Site::open(&[]) else { return };
    let gateway = site.gateway(AUDIT);
    let bytes = noise(400_001);
    for (protocol, port) in [("fasttrack", 4011), ("gnutella", 4012)] {
        let file = site.put(&format!("{protocol}-push.ogg"), &bytes);
        let address = at(port);
        let words = ["fetch", protocol, "--listen", &address, "--out", "out"];
        let receiver = site.serve(Place::Server, &words);
        let file = file.to_str().unwrap();
        let (code, said) = site.fetch(&["serve", protocol, "--push", &address, "--file", file]);
        assert_eq!(code, peers::COMPLETE, "{protocol}: {said}");
        assert_eq!(ended(&receiver.output().unwrap()).0, peers::COMPLETE);
        same(&site.path("out"), &bytes);
    }
    let events = gateway.end();
    let sum = sha256(&site.path("out"));
    for application in ["fasttrack", "gnutella"] {
        let event = events.one("file", "application", application);
        assert_eq!(event["sha256"], sum, "{event:#}");
        assert_eq!(event["sender"], "client", "{event:#}");
    }
}

#[test]
fn a_conversation_and_the_file_offered_in_it() {
    let Some(site) = Site::open(&[]) else { return };
    let gateway = site.gateway(AUDIT);
    let bytes = noise(300_001);
    let file = site.put("holiday plan.doc", &bytes);
    let address = at(1863);
    let _board = site.serve(Place::Server, &["serve", "msn", "--listen", &address]);
    let other = [
        "chat",
        "--connect",
        &address,
        "--as",
        "bob@example.test",
        "--answer",
        "--say",
        "good evening",
        "--say",
        "gr\u{fc}\u{df} dich",
        "--hear",
        "2",
        "--offer",
        file.to_str().unwrap(),
        "--listen",
        "10.88.2.2:0",
    ];
    let other = site.serve(Place::Server, &other);
    let words = [
        "chat",
        "--connect",
        &address,
        "--as",
        "alice@example.test",
        "--to",
        "bob@example.test",
        "--say",
        "hello",
        "--say",
        "are you there?",
        "--hear",
        "2",
        "--accept",
        "out",
    ];
    let (code, said) = site.fetch(&words);
    assert_eq!(code, peers::COMPLETE, "{said}");
    assert_eq!(ended(&other.output().unwrap()).0, peers::COMPLETE);
    same(&site.path("out"), &bytes);

    let events = gateway.end();
    let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
    let mut messages: Vec<(String, String)> = events
        .of("message")
        .iter()
        .map(|event| (text(event, "from"), text(event, "message")))
        .collect();
    messages.sort_unstable();
    let said = |who: &str, what: &str| (format!("{who}@example.test"), what.to_owned());
    let expected = [
        said("alice", "are you there?"),
        said("alice", "hello"),
        said("bob", "good evening"),
        said("bob", "gr\u{fc}\u{df} dich"),
    ];
    assert_eq!(messages, expected);
    audited(&events, "msnftp", "holiday plan.doc", &file);
}

#[test]
fn files_are_kept_where_that_is_asked_for() {
    let Some(site) = Site::open(&[]) else { return };
    let policy = "[[rule]]\nname = \"keep\"\napplication = [\"http\"]\naction = \"inspect\"\n\
                  audit = true\nrecord = true\n";
    let gateway = site.gateway(policy);
    let bytes = noise(600_001);
    let file = site.nginx.put("kept.bin", &bytes).unwrap();
    let (code, _) = site.curl(3, &url("plain/kept.bin"), "out", &[]);
    assert_eq!(code, 0);
    let events = gateway.end();
    audited(&events, "http", "kept.bin", &file);
    let event = events.one("file", "file_name", "kept.bin");
    assert_eq!(event["client_ip"], "10.88.1.14");
    let stored = event["stored"].as_str().unwrap();
    same(&site.path("record").join(stored), &bytes);
    let kept = fs::read_dir(site.path("record")).unwrap().count();
    assert!(kept >= 1, "{kept}");
}
