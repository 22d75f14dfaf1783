//! Streams behind a real proxy: nginx that buffers, and nginx that does not, before the same origin.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use linkweir_testkit::conversation::Side;
use linkweir_testkit::netns::{Running, SERVER};
use linkweir_testkit::web::{nginx, temporary_paths};
use serde_json::Value;
use tempfile::tempdir;

use crate::http::{Measured, totals};
use crate::traffic::{Site, pause};

const EVENTS: u64 = 10;
const GAP: Duration = Duration::from_millis(30);
const BUFFERS: u64 = 8090;
const PASSES_ON: u64 = 8091;

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

/// nginx on two ports before the origin at `socket`.
fn proxies(site: &Site, directory: &Path, socket: &Path) -> Running {
    let at = directory.display();
    let paths = temporary_paths(directory);
    let server = |port: u64, buffering: &str| {
        format!(
            "server {{ listen {SERVER}:{port}; location / {{
                proxy_pass http://unix:{}; proxy_buffering {buffering};
            }} }}",
            socket.display()
        )
    };
    let configuration = format!(
        "user root root; daemon off; master_process off; pid {at}/nginx.pid; error_log {at}/error.log crit;
        events {{ worker_connections 64; }}
        http {{ access_log off; {paths} {} {} }}",
        server(BUFFERS, "on"),
        server(PASSES_ON, "off"),
    );
    let mut command = site.wire.command(Side::Server, "nginx");
    nginx(&mut command, directory, &configuration).unwrap()
}

#[test]
fn a_proxy_that_buffers_is_found_and_one_that_does_not_is_not() {
    let directory = tempdir().unwrap();
    let Some(site) = Site::open(directory.path()) else {
        return;
    };
    let socket = directory.path().join("origin");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    let of_proxies = directory.path().join("proxies");
    std::fs::create_dir_all(&of_proxies).unwrap();
    let _proxies = proxies(&site, &of_proxies, &socket);
    let interface = linkweir_testkit::netns::interface(Side::Server);
    let measured = Measured::start(&site, "streams", 1, &["-i", interface]);
    for port in [BUFFERS, PASSES_ON, BUFFERS, PASSES_ON] {
        let mut curl = site.wire.command(Side::Client, "curl");
        let output = curl
            .args(["-s", "-f", "-N", "-m", "10"])
            .arg(format!("http://{SERVER}:{port}/chat"))
            .stdout(Stdio::piped())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said.matches("data:").count() as u64, EVENTS, "{said}");
    }
    Site::settle();
    measured.finish(directory.path(), &[0]);
    let records = std::fs::read_to_string(directory.path().join("streams.jsonl")).unwrap();
    let records = records
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let streams: Vec<Value> = records.filter(|record| record["uri"] == "/chat").collect();
    assert_eq!(streams.len(), 4);
    for stream in &streams {
        let buffers = stream["server_port"] == BUFFERS;
        assert_eq!(stream["events"], EVENTS, "{stream}");
        assert_eq!(
            stream["buffered"],
            if buffers { "yes" } else { "no" },
            "{stream}"
        );
        let first_ms = stream["first_event_ns"].as_u64().unwrap() / 1_000_000;
        let median_ms = stream["event_gap_p50_ns"].as_u64().unwrap() / 1_000_000;
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
