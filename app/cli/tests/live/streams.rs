//! Streams behind a real proxy: nginx that buffers, and nginx that does not, before the same origin.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use linkweir_testkit::conversation::Side;
use linkweir_testkit::netns::{Running, SERVER};
use linkweir_testkit::web::{nginx, temporary_paths};
use serde_json::Value;
use tempfile::tempdir;

use crate::common::http;
use crate::http::{Measured, totals};
use crate::traffic::{Site, pause};

const EVENTS: u64 = 10;
const GAP: Duration = Duration::from_millis(30);
const BUFFERS: u64 = 8090;
const PASSES_ON: u64 = 8091;
const TLS_ONE: u64 = 443;
const TLS_TWO: u64 = 8443;

/// Answers one request with events, one every 30 ms, until it closes: what comes in chunks nginx passes on in any case.
fn answer(stream: UnixStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    while lines
        .next()
        .transpose()?
        .is_some_and(|line| !line.is_empty())
    {}
    let mut stream = stream;
    let head = "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    for number in 0..EVENTS {
        pause(GAP);
        write!(stream, "data: {{\"token\":{number}}}\n\n")?;
    }
    Ok(())
}

/// nginx on four ports before an origin in a thread of its own, with `directory` for what it needs.
fn proxies(site: &Site, directory: &Path) -> Running {
    let socket = directory.join("origin");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    let directory = directory.join("proxies");
    std::fs::create_dir_all(&directory).unwrap();
    certificate(&directory);
    let at = directory.display();
    let paths = temporary_paths(&directory);
    let server = |port: u64, words: &str, buffering: &str| {
        format!(
            "server {{ listen {SERVER}:{port} {words}; location / {{
                proxy_pass http://unix:{}; proxy_buffering {buffering};
            }} }}",
            socket.display()
        )
    };
    let servers = [
        server(BUFFERS, "", "on"),
        server(PASSES_ON, "", "off"),
        server(TLS_ONE, "ssl", "off"),
        server(TLS_TWO, "ssl http2", "off"),
    ]
    .concat();
    let configuration = format!(
        "user root root; daemon off; master_process off; pid {at}/nginx.pid; error_log {at}/error.log crit;
        events {{ worker_connections 64; }}
        http {{ access_log off; ssl_certificate {at}/cert.pem; ssl_certificate_key {at}/key.pem; {paths} {servers} }}"
    );
    let mut command = site.wire.command(Side::Server, "nginx");
    nginx(&mut command, &directory, &configuration).unwrap()
}

fn certificate(directory: &Path) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"])
        .args([
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-subj",
            "/CN=test",
        ])
        .arg("-keyout")
        .arg(directory.join("key.pem"))
        .arg("-out")
        .arg(directory.join("cert.pem"))
        .stderr(Stdio::null())
        .status();
    assert!(made.unwrap().success());
}

/// Asks for the stream, and receives it.
fn ask(site: &Site, url: &str, keys: &Path) {
    let mut curl = site.wire.command(Side::Client, "curl");
    let output = curl
        .args(["-s", "-f", "-k", "-N", "-m", "10", url])
        .env("SSLKEYLOGFILE", keys)
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        said.matches("data:").count() as u64,
        EVENTS,
        "{url}: {said}"
    );
}

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn span_ms(record: &Value, name: &str) -> u64 {
    record[name].as_u64().unwrap() / 1_000_000
}

#[test]
fn a_proxy_that_buffers_is_found_and_one_that_does_not_is_not() {
    let directory = tempdir().unwrap();
    let Some(site) = Site::open(directory.path()) else {
        return;
    };
    let _proxies = proxies(&site, directory.path());
    let interface = linkweir_testkit::netns::interface(Side::Server);
    let measured = Measured::start(&site, "streams", 1, &["-i", interface]);
    for port in [BUFFERS, PASSES_ON, BUFFERS, PASSES_ON] {
        ask(
            &site,
            &format!("http://{SERVER}:{port}/chat"),
            Path::new("/dev/null"),
        );
    }
    Site::settle();
    measured.finish(directory.path(), &[0]);
    let records = std::fs::read_to_string(directory.path().join("streams.jsonl")).unwrap();
    let mut streams = lines(&records);
    streams.retain(|record| record["uri"] == "/chat");
    assert_eq!(streams.len(), 4);
    for stream in &streams {
        let buffers = stream["server_port"] == BUFFERS;
        assert_eq!(stream["events"], EVENTS, "{stream}");
        assert_eq!(
            stream["buffered"],
            if buffers { "yes" } else { "no" },
            "{stream}"
        );
        let first_ms = span_ms(stream, "first_event_ns");
        let median_ms = span_ms(stream, "event_gap_p50_ns");
        if buffers {
            // All of it waits for the last event.
            assert!(first_ms >= 300 && median_ms == 0, "{stream}");
            assert!(stream["coalesced"].as_u64().unwrap() >= 5, "{stream}");
        } else {
            assert!((30..290).contains(&first_ms), "{stream}");
            assert!((25..60).contains(&median_ms), "{stream}");
        }
    }
    let found = &totals(directory.path(), "streams")["http"]["streams"];
    assert_eq!(
        (&found["streams"], &found["buffered"]),
        (&4.into(), &2.into()),
        "{found}"
    );
    assert_eq!(
        found["hosts"][format!("{SERVER}:{BUFFERS}")]["buffered"],
        2,
        "{found}"
    );
}

#[test]
fn in_tls_with_keys_and_without() {
    let directory = tempdir().unwrap();
    let Some(site) = Site::open(directory.path()) else {
        return;
    };
    let _proxies = proxies(&site, directory.path());
    let capture = directory.path().join("streams.pcap");
    let Some(recorder) = site.record(&capture) else {
        return;
    };
    let keys = directory.path().join("keys.log");
    for port in [TLS_ONE, TLS_TWO] {
        ask(&site, &format!("https://{SERVER}:{port}/chat"), &keys);
    }
    Site::settle();
    recorder.finish().unwrap();
    let keys = keys.to_str().unwrap();
    let opened = lines(
        &http(&capture, &["--format", "jsonl", "--keys", keys])
            .exits(0)
            .stdout,
    );
    let estimated = lines(&http(&capture, &["--format", "jsonl"]).exits(0).stdout);
    for port in [TLS_ONE, TLS_TWO] {
        let of = |records: &[Value]| {
            let mut found = records
                .iter()
                .filter(|record| record["server_port"] == port);
            found.next().unwrap().clone()
        };
        let (opened, estimated) = (of(&opened), of(&estimated));
        assert_eq!(
            (&opened["source"], &opened["uri"]),
            (&"keys".into(), &"/chat".into())
        );
        assert_eq!(
            (&opened["events"], &opened["buffered"]),
            (&EVENTS.into(), &"no".into()),
            "{opened}"
        );
        assert_eq!(
            (&estimated["source"], &estimated["confidence"]),
            (&"estimate".into(), &"likely".into())
        );
        // Each event is a record; the first one may be in that of the head.
        let found = estimated["events"].as_u64().unwrap();
        assert!((EVENTS - 1..=EVENTS).contains(&found), "{estimated}");
        let medians = [&opened, &estimated].map(|one| span_ms(one, "event_gap_p50_ns"));
        assert!(
            medians.iter().all(|median| (25..60).contains(median)),
            "{medians:?}"
        );
        let first = [&opened, &estimated].map(|one| span_ms(one, "first_event_ns"));
        assert!(first[0].abs_diff(first[1]) <= 35, "{first:?}");
    }
}
