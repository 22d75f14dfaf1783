//! `-w syslog://`: rsyslog reads what is sent, and what nobody hears is counted.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use linkweir_testkit::netns::{Running, until};
use linkweir_testkit::ran;
use serde_json::Value;

use crate::common::{Ran, demo, run};

const PROBE: &str = "probe-7";
const PATIENCE: Duration = Duration::from_secs(20);

/// Sends the records of the bundled capture to a destination.
fn sent(destination: &str, more: &[&str]) -> Ran {
    let demo = demo();
    let words = ["http", "-r", demo.to_str().unwrap(), "-w", destination];
    run(&[&words[..], more].concat())
}

/// A collector that writes the parts of each message to a file.
fn collector(directory: &Path, module: &str, port: u16) -> Running {
    let out = directory.join("out");
    let conf = directory.join("rsyslog.conf");
    let text = format!(
        "global(workDirectory=\"{0}\" maxMessageSize=\"64k\")\n\
         module(load=\"{module}\")\n\
         input(type=\"{module}\" address=\"127.0.0.1\" port=\"{port}\")\n\
         template(name=\"parts\" type=\"string\" string=\"%pri% %timereported:::date-rfc3339% %hostname% %app-name% \
         %procid% %msgid% %structured-data% %msg%\\n\")\n\
         action(type=\"omfile\" file=\"{1}\" template=\"parts\" asyncWriting=\"off\")\n",
        directory.display(),
        out.display()
    );
    std::fs::write(&conf, text).unwrap();
    let mut command = ran::command("rsyslogd");
    command
        .arg("-n")
        .arg("-f")
        .arg(&conf)
        .arg("-i")
        .arg(directory.join("pid"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Running::start(&mut command).unwrap()
}

#[test]
fn rsyslog_reads_every_record() {
    if ran::installed("rsyslogd").is_none() {
        return;
    }
    // Datagrams are lost where nobody reads fast enough: some, which any buffer holds.
    for (scheme, module, more) in [
        (
            "syslog",
            "imudp",
            &["--head", "40", "--fields", "host,status_code,uri"][..],
        ),
        ("syslog+tcp", "imtcp", &[]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let _collector = collector(directory.path(), module, port);
        let listens = || match module {
            "imudp" => UdpSocket::bind(("127.0.0.1", port)).is_err(),
            _ => TcpStream::connect(("127.0.0.1", port)).is_ok(),
        };
        assert!(until(PATIENCE, listens), "rsyslogd does not listen");
        let destination = format!("{scheme}://127.0.0.1:{port}");
        sent(&destination, &[&["--probe", PROBE][..], more].concat()).exits(0);
        let jsonl = sent("-", &[&["-q", "--format", "jsonl"][..], more].concat()).exits(0);
        let expected = jsonl.lines();
        let out = directory.path().join("out");
        let read = || std::fs::read_to_string(&out).unwrap_or_default();
        until(PATIENCE, || read().lines().count() >= expected.len());
        let text = read();
        let messages: Vec<&str> = text.lines().collect();
        assert_eq!(messages.len(), expected.len());
        for (message, record) in messages.iter().zip(&expected) {
            let parts: Vec<&str> = message.splitn(8, ' ').collect();
            assert_eq!(parts[7], *record);
            assert_eq!(
                [parts[0], parts[2], parts[3]],
                ["134", PROBE, "linkweir"],
                "{message}"
            );
            assert_eq!([parts[5], parts[6]], ["http_transaction", "-"], "{message}");
            assert!(
                parts[1].starts_with("20") && parts[1].ends_with('Z'),
                "{message}"
            );
        }
    }
}

#[test]
fn what_nobody_hears_is_counted() {
    let port = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let directory = tempfile::tempdir().unwrap();
    let summary = directory.path().join("s.json");
    let destination = format!("syslog://127.0.0.1:{port}");
    sent(&destination, &["--summary", summary.to_str().unwrap()])
        .exits(1)
        .says("records are lost: sent when it did not listen");
    let summary: Value = serde_json::from_slice(&std::fs::read(&summary).unwrap()).unwrap();
    // The last one may have gone out before the refusal of the one before came.
    assert!(
        summary["dropped"]["sink"][&destination].as_u64() >= Some(798),
        "{summary}"
    );
    sent("syslog://127.0.0.1", &[])
        .exits(2)
        .says("a collector is host:port");
    sent(&destination, &["--rotate", "1h"])
        .exits(2)
        .says("only a file can be rotated");
}

#[test]
fn a_collector_that_speaks_first_gets_everything() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let destination = format!("syslog+tcp://{}", listener.local_addr().unwrap());
    let collector = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"hello\n").unwrap();
        // The run has ended by then, but for its connection.
        std::thread::sleep(Duration::from_millis(500));
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes
    });
    sent(&destination, &[]).exits(0);
    let bytes = collector.join().unwrap();
    let (mut rest, mut messages) = (&bytes[..], 0);
    while !rest.is_empty() {
        let blank = rest.iter().position(|byte| *byte == b' ').unwrap();
        let len: usize = std::str::from_utf8(&rest[..blank])
            .unwrap()
            .parse()
            .unwrap();
        let message = &rest[blank + 1..][..len];
        assert!(message.starts_with(b"<134>1 20") && message.ends_with(b"}"));
        rest = &rest[blank + 1 + len..];
        messages += 1;
    }
    assert_eq!(messages, 800);
}
