//! Collectors that are away, or do not read what they are sent: a run never waits for them.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and asks the clock how long calls take"
)]

use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use linkweir_engine::{DeliveryTimeout, Sink, SinkError};
use linkweir_record::{HttpBatch, HttpKind, HttpRow, Text};
use linkweir_sink::{OutputOptions, open_sink};

fn batch(records: u16) -> HttpBatch {
    let mut batch = HttpBatch::default();
    for client_port in 0..records {
        let row = HttpRow {
            client_port,
            ..HttpRow::default()
        };
        let text = Text {
            uri: &[b'x'; 500],
            ..Text::default()
        };
        batch.push(row, &text);
    }
    batch
}

fn options(is_live: bool, timeout: Duration) -> OutputOptions {
    OutputOptions {
        is_live,
        timeout: DeliveryTimeout::given(timeout),
        ..OutputOptions::default()
    }
}

fn open(address: &str, options: OutputOptions) -> Result<Box<dyn Sink<HttpKind>>, SinkError> {
    open_sink(&format!("syslog+tcp://{address}"), None, options)
}

/// A port at which nobody listens.
fn deaf_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Messages up to the end of a connection, by their lengths.
fn messages(mut stream: TcpStream) -> usize {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    let (mut rest, mut count) = (all.as_slice(), 0);
    while let Some(blank) = rest.iter().position(|byte| *byte == b' ') {
        let length: usize = str::from_utf8(&rest[..blank]).unwrap().parse().unwrap();
        rest = &rest[blank + 1 + length..];
        count += 1;
    }
    count
}

#[test]
fn a_collector_that_does_not_read_holds_nobody_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut sink = open(&address, options(true, Duration::from_millis(300))).unwrap();
    // 12 MB, of which the buffers of the system take a part; the rest waits.
    let records = batch(1_000);
    let mut longest = Duration::ZERO;
    for _ in 0..12 {
        let begin = Instant::now();
        sink.write(&records).unwrap();
        sink.flush().unwrap();
        longest = longest.max(begin.elapsed());
    }
    assert!(longest < Duration::from_secs(1), "{longest:?}");
    assert_eq!(sink.losses().count, 0, "all of it waits");
    let begin = Instant::now();
    sink.finish().unwrap();
    assert!(
        begin.elapsed() < Duration::from_secs(3),
        "{:?}",
        begin.elapsed()
    );
    let losses = sink.losses();
    assert!((1..12_000).contains(&losses.count), "{losses:?}");
    assert!(losses.first.unwrap().contains("given up while they waited"));
}

#[test]
fn a_live_run_waits_for_a_collector_that_comes_late_and_loses_nothing() {
    let port = deaf_port();
    let address = format!("127.0.0.1:{port}");
    let mut sink = open(&address, options(true, Duration::from_secs(20))).unwrap();
    for _ in 0..5 {
        sink.write(&batch(1_000)).unwrap();
        sink.flush().unwrap();
    }
    // The first attempts have failed by then.
    std::thread::sleep(Duration::from_millis(300));
    let listener = TcpListener::bind(&address).unwrap();
    let reader = std::thread::spawn(move || messages(listener.accept().unwrap().0));
    sink.finish().unwrap();
    assert_eq!(sink.losses().count, 0);
    assert_eq!(reader.join().unwrap(), 5_000);
}

#[test]
fn a_run_over_files_is_refused_at_once_and_a_wrong_name_any_run() {
    let address = format!("127.0.0.1:{}", deaf_port());
    let error = open(&address, options(false, Duration::ZERO))
        .err()
        .unwrap();
    assert!(error.to_string().contains("refused"), "{error}");
    for is_live in [false, true] {
        let error = open("no-such-host.invalid:601", options(is_live, Duration::ZERO));
        assert!(matches!(error, Err(SinkError::Io { .. })));
    }
}
