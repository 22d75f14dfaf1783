//! `--otlp`: what a receiver gets, decoded by a reader of Protocol Buffers that shares nothing with the writer.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use linkweir_testkit::conversation::Conversation;

use crate::common::{demo, http, plain};

/// A field of a message: a number, or the bytes of a text or message.
#[derive(Debug, Clone)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

/// The fields of a message by their numbers, each in its order.
#[derive(Debug, Clone, Default)]
struct Fields(BTreeMap<u64, Vec<Field>>);

impl Fields {
    fn of(bytes: &[u8]) -> Self {
        let mut at = 0;
        let varint = |at: &mut usize| {
            let mut value = 0_u64;
            for shift in 0.. {
                let byte = bytes[*at];
                *at += 1;
                value |= u64::from(byte & 127) << (7 * shift);
                if byte < 128 {
                    return value;
                }
            }
            0
        };
        let mut fields = Self::default();
        while at < bytes.len() {
            let key = varint(&mut at);
            let fixed = |at: &mut usize, length: usize| {
                let mut value = [0; 8];
                value[..length].copy_from_slice(&bytes[*at..*at + length]);
                *at += length;
                Field::Number(u64::from_le_bytes(value))
            };
            let field = match key % 8 {
                0 => Field::Number(varint(&mut at)),
                1 => fixed(&mut at, 8),
                5 => fixed(&mut at, 4),
                2 => {
                    let length = varint(&mut at) as usize;
                    at += length;
                    Field::Bytes(bytes[at - length..at].to_vec())
                }
                other => panic!("wire type {other}"),
            };
            fields.0.entry(key / 8).or_default().push(field);
        }
        fields
    }

    fn all(&self, number: u64) -> Vec<Self> {
        let all = self.0.get(&number).into_iter().flatten();
        all.map(|field| match field {
            Field::Bytes(bytes) => Self::of(bytes),
            Field::Number(number) => panic!("a message, not {number}"),
        })
        .collect()
    }

    fn bytes(&self, number: u64) -> Vec<u8> {
        match self.0.get(&number).and_then(|all| all.first()) {
            Some(Field::Bytes(bytes)) => bytes.clone(),
            _ => Vec::new(),
        }
    }

    fn text(&self, number: u64) -> String {
        String::from_utf8(self.bytes(number)).unwrap()
    }

    fn number(&self, number: u64) -> Option<u64> {
        match self.0.get(&number).and_then(|all| all.first()) {
            Some(Field::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// Attributes (`KeyValue`), numbers as text.
    fn attributes(&self, number: u64) -> BTreeMap<String, String> {
        let pairs = self.all(number).into_iter().map(|pair| {
            let value = pair.all(2).remove(0);
            let number = value.number(3).map(|number| number.to_string());
            (pair.text(1), number.unwrap_or_else(|| value.text(1)))
        });
        pairs.collect()
    }
}

/// Bodies by path.
type Bodies = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

fn answer(stream: TcpStream, bodies: &Bodies) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let head = head.to_ascii_lowercase();
        assert!(
            head.contains("content-type: application/x-protobuf\r\n"),
            "{head}"
        );
        let (_, length) = head.split_once("content-length: ").unwrap();
        let length = length.split_once("\r\n").unwrap().0.parse().unwrap();
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let path = head.split(' ').nth(1).unwrap().to_owned();
        bodies.lock().unwrap().push((path, body));
        reader
            .get_mut()
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
    }
}

fn receiver() -> (String, Bodies) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let bodies = Bodies::default();
    let kept = Arc::clone(&bodies);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let kept = Arc::clone(&kept);
            std::thread::spawn(move || answer(stream, &kept));
        }
    });
    (url, bodies)
}

/// The messages of a path, from the `ScopeMetrics` or `ScopeSpans` on.
fn scopes(bodies: &Bodies, wanted: &str) -> Vec<Fields> {
    let bodies = bodies.lock().unwrap();
    let bodies = bodies.iter().filter(|(path, _)| path == wanted);
    bodies
        .flat_map(|(_, body)| Fields::of(body).all(1))
        .flat_map(|resource| {
            let origin = resource.all(1).remove(0).attributes(1);
            assert_eq!(origin["service.name"], "linkweir");
            assert_eq!(origin["linkweir.subject"], "http");
            resource.all(2)
        })
        .collect()
}

fn spans(bodies: &Bodies) -> Vec<Fields> {
    let scopes = scopes(bodies, "/v1/traces");
    scopes.iter().flat_map(|scope| scope.all(2)).collect()
}

#[test]
fn a_receiver_gets_every_transaction_and_the_metrics() {
    let (url, bodies) = receiver();
    let directory = tempfile::tempdir().unwrap();
    let summary = directory.path().join("summary.json");
    let words = [
        "-w",
        "/dev/null",
        "--otlp",
        &url,
        "--metrics-hosts",
        "2",
        "--summary",
    ];
    let words = [&words[..], &[summary.to_str().unwrap()]].concat();
    http(&demo(), &words).exits(0);
    let summary: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(summary).unwrap()).unwrap();
    let methods = &summary["http"]["methods"];

    let spans = spans(&bodies);
    assert_eq!(
        spans.len() as u64,
        summary["http"]["requests"].as_u64().unwrap()
    );
    let mut by_method = BTreeMap::<String, u64>::new();
    let (mut identifiers, mut failed) = (BTreeSet::new(), 0);
    for span in &spans {
        let attributes = span.attributes(9);
        *by_method.entry(span.text(5)).or_default() += 1;
        assert_eq!(span.text(5), attributes["http.request.method"]);
        assert_eq!((span.bytes(1).len(), span.bytes(2).len()), (16, 8));
        assert!(identifiers.insert(span.bytes(2)));
        assert!(span.number(7).unwrap() < span.number(8).unwrap());
        assert_eq!(span.number(6), Some(2), "SPAN_KIND_SERVER");
        assert!(attributes["url.path"].starts_with('/'));
        assert!(!attributes["url.path"].contains('?'));
        let is_error = span
            .all(15)
            .iter()
            .any(|status| status.number(3) == Some(2));
        assert_eq!(
            is_error,
            attributes["http.response.status_code"].starts_with('5'),
            "{attributes:?}"
        );
        failed += u64::from(is_error);
    }
    let codes = summary["http"]["status_codes"].as_object().unwrap();
    let want: u64 = codes
        .iter()
        .filter(|(code, _)| code.starts_with('5'))
        .filter_map(|(_, count)| count.as_u64())
        .sum();
    assert_eq!(failed, want);
    assert_eq!(serde_json::to_value(&by_method).unwrap(), *methods);

    // The last message has everything, and the values of the summary.
    let last = scopes(&bodies, "/v1/metrics").pop().unwrap();
    let metrics: BTreeMap<String, Fields> = last
        .all(2)
        .into_iter()
        .map(|metric| (metric.text(1), metric))
        .collect();
    let requests = metrics["linkweir_http_requests_total"].all(7).remove(0);
    assert_eq!((requests.number(2), requests.number(3)), (Some(2), Some(1)));
    for point in requests.all(1) {
        let count = point.number(6);
        assert_eq!(count, methods[&point.attributes(7)["method"]].as_u64());
    }
    let times = metrics["linkweir_http_response_time_seconds"]
        .all(9)
        .remove(0);
    let mut all = 0;
    for point in times.all(1) {
        let between: Vec<u64> = point
            .bytes(6)
            .chunks(8)
            .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
            .collect();
        assert_eq!(
            between.len(),
            1 + point.bytes(7).len() / 8,
            "a last one without bound"
        );
        assert_eq!(Some(between.iter().sum()), point.number(4));
        all += point.number(4).unwrap();
    }
    assert_eq!(Some(all), summary["http"]["transactions"].as_u64());
    let hosts = metrics["linkweir_http_host_requests_total"]
        .all(7)
        .remove(0)
        .all(1);
    let hosts: BTreeMap<String, u64> = hosts
        .iter()
        .map(|point| {
            (
                point.attributes(7)["host"].clone(),
                point.number(6).unwrap(),
            )
        })
        .collect();
    assert_eq!(hosts.len(), 3, "two, and all others: {hosts:?}");
    assert_eq!(hosts.values().sum::<u64>(), spans.len() as u64);
}

#[test]
fn spans_are_those_of_the_sample() {
    let (url, bodies) = receiver();
    let words = ["--otlp", &url, "--sample", "1/8", "--format", "jsonl"];
    let ran = http(&demo(), &words).exits(0);
    let spans = spans(&bodies);
    assert_eq!(spans.len(), ran.stdout.lines().count());
    assert!((40..200).contains(&spans.len()), "{}", spans.len());
}

#[test]
fn a_span_is_in_the_trace_of_its_request() {
    let (url, bodies) = receiver();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traced.pcap");
    let head = "GET /a?b=c HTTP/1.1\r\nHost: shop.test:8080\r\n\
                traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n";
    let mut talk = Conversation::v4(40_000);
    talk.handshake().client_sends(head);
    std::fs::write(&path, plain(&talk.frames())).unwrap();
    http(&path, &["-w", "/dev/null", "--otlp", &url]).exits(0);
    let [span] = &spans(&bodies)[..] else {
        panic!("one span");
    };
    assert_eq!(span.bytes(1)[..4], [0x4b, 0xf9, 0x2f, 0x35]);
    assert_eq!(span.bytes(4), [0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
    let attributes = span.attributes(9);
    for (name, value) in [
        ("url.path", "/a"),
        ("url.query", "b=c"),
        ("server.address", "shop.test"),
        ("server.port", "8080"),
        ("error.type", "unanswered"),
    ] {
        assert_eq!(attributes[name], value, "{attributes:?}");
    }
}

#[test]
fn a_receiver_that_hangs_is_waited_for_no_longer_than_asked() {
    // It takes the connection, and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let words = ["-w", "/dev/null", "--otlp", &url, "--summary", "-"];
    let words = [&words[..], &["--delivery-timeout", "200ms"]].concat();
    let begin = std::time::Instant::now();
    let ran = http(&demo(), &words).exits(1);
    let took = begin.elapsed();
    let summary: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let lost = &summary["dropped"]["sink"];
    assert_eq!(lost["otlp_spans"], 800, "{summary}");
    assert_eq!(lost["otlp_metrics"], 1, "{summary}");
    let said = "messages with metrics not delivered: 1, spans: 800";
    ran.says(said).says("no response before the end of the run");
    assert!(took < std::time::Duration::from_secs(4), "{took:?}");
}

#[test]
fn what_is_not_delivered_is_said_and_counted() {
    // Taken, and closed again: nobody listens there.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let words = ["-w", "/dev/null", "--otlp", &url, "--summary", "-"];
    let ran = http(&demo(), &words).exits(1);
    assert!(ran.stderr.contains("spans: 800"), "{}", ran.stderr);
    let summary: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(summary["dropped"]["sink"]["otlp_spans"], 800, "{summary}");
    http(&demo(), &["-w", "/dev/null", "--otlp", "ftp://x"]).exits(2);
    let twice = format!("{url}/v1/metrics");
    let ran = http(&demo(), &["-w", "/dev/null", "--otlp", &twice]).exits(2);
    ran.says("`/v1/metrics` is added to the address");
    let ran = http(&demo(), &["-w", "/dev/null", "--otlp", &url]).exits(1);
    let all = ran.stdout.clone() + &ran.stderr;
    assert!(all.contains("spans not sent by --otlp"), "{all}");
    assert!(!all.contains("otlp_spans"), "{all}");
}
