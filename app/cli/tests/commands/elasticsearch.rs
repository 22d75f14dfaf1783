//! `-w elasticsearch://`: a receiver that is strict about the bulk API gets every record once, whatever it answers.

use std::collections::BTreeMap;
use std::io::{BufReader, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

use serde_json::{Value, json};

use crate::common::{Ran, demo, run};

/// How the receiver answers a request with so many documents, as status and body; `None`: it ends the connection.
type Script = fn(request: usize, documents: usize) -> Option<(u16, Value)>;

/// What the receiver got: the documents it accepted by their id, the fields of the last request, how many requests.
#[derive(Default)]
struct Received {
    documents: BTreeMap<String, Value>,
    fields: BTreeMap<String, String>,
    requests: usize,
}

fn created(documents: usize) -> Value {
    json!({ "errors": false, "items": vec![json!({ "create": { "status": 201 } }); documents] })
}

/// Serves connections until a request asks for `/end`.
fn receiver(script: Script) -> (String, JoinHandle<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let thread = std::thread::spawn(move || {
        let mut received = Received::default();
        loop {
            let mut reader = BufReader::new(listener.accept().unwrap().0);
            while let Some((line, fields, body)) = request(&mut reader) {
                let (status, answer) = match line.as_str() {
                    "GET /end HTTP/1.1" => return received,
                    "GET / HTTP/1.1" => (200, json!({ "version": { "number": "9.2.0" } })),
                    line => {
                        assert!(
                            line.starts_with("POST /web/_bulk?filter_path=errors,"),
                            "{line}"
                        );
                        let documents = documents(&fields, body);
                        let number = received.requests;
                        received.requests += 1;
                        received.fields = fields;
                        let Some((status, answer)) = script(number, documents.len()) else {
                            break;
                        };
                        accept(&mut received, documents, &answer);
                        (status, answer)
                    }
                };
                let text = answer.to_string();
                let head = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n",
                    text.len()
                );
                reader
                    .get_mut()
                    .write_all((head + &text).as_bytes())
                    .unwrap();
            }
        }
    });
    (address, thread)
}

type Request = (String, BTreeMap<String, String>, Vec<u8>);

fn request(reader: &mut impl std::io::BufRead) -> Option<Request> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let fields: BTreeMap<String, String> = lines
        .iter()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = fields
        .get("content-length")
        .map_or(0, |text| text.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    Some((lines[0].clone(), fields, body))
}

/// The documents of a request, each with its id.
fn documents(fields: &BTreeMap<String, String>, body: Vec<u8>) -> Vec<(String, Value)> {
    assert_eq!(fields["content-type"], "application/x-ndjson");
    let body = match fields.get("content-encoding").map(String::as_str) {
        Some("gzip") => unpacked(&body),
        None => body,
        other => panic!("{other:?}"),
    };
    let text = String::from_utf8(body).unwrap();
    assert!(text.ends_with('\n') && !text.ends_with("\n\n"));
    let lines: Vec<&str> = text.lines().collect();
    lines
        .chunks(2)
        .map(|pair| {
            let action: Value = serde_json::from_str(pair[0]).unwrap();
            let id = action["create"]["_id"].as_str().unwrap().to_owned();
            assert_eq!(action, json!({ "create": { "_id": id } }));
            let document: Value = serde_json::from_str(pair[1]).unwrap();
            assert_eq!(document["record_id"], id.as_str());
            let time = document["@timestamp"].as_str().unwrap();
            assert!(
                time.starts_with("2026-11-21T02:") && time.ends_with('Z'),
                "{time}"
            );
            (id, document)
        })
        .collect()
}

fn unpacked(body: &[u8]) -> Vec<u8> {
    let mut gzip = Command::new("gzip");
    let mut child = gzip
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let packed = body.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&packed).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output.stdout
}

/// Keeps the documents that the answer says were created.
fn accept(received: &mut Received, documents: Vec<(String, Value)>, answer: &Value) {
    let items = answer["items"].as_array().cloned().unwrap_or_default();
    for ((id, document), item) in documents.into_iter().zip(items) {
        if item["create"]["status"] == 201 {
            let earlier = received.documents.insert(id, document);
            assert!(earlier.is_none(), "created twice");
        }
    }
}

/// Sends the records of the bundled capture, and ends the receiver.
fn sent(script: Script, more: &[&str]) -> (Ran, Received) {
    let (address, thread) = receiver(script);
    let destination = format!("elasticsearch://{address}/web");
    let demo = demo();
    let words = ["http", "-r", demo.to_str().unwrap(), "-w", &destination];
    let ran = run(&[&words[..], more].concat());
    let mut end = std::net::TcpStream::connect(&address).unwrap();
    end.write_all(b"GET /end HTTP/1.1\r\n\r\n").unwrap();
    (ran, thread.join().unwrap())
}

#[test]
fn every_record_arrives_once_whatever_is_answered() {
    let (ran, received) = sent(
        |request, documents| match request {
            0 => Some((429, json!({ "error": "busy" }))),
            // Accepted or not, nobody knows: it is sent again.
            1 => None,
            2 => {
                let item = |at: usize| match at {
                    0 => {
                        json!({ "create": { "status": 400, "error": { "type": "document_parsing_exception", "reason": "field [vlan] is too large" } } })
                    }
                    1 => {
                        json!({ "create": { "status": 429, "error": { "type": "es_rejected_execution_exception" } } })
                    }
                    2 => {
                        json!({ "create": { "status": 409, "error": { "type": "version_conflict_engine_exception" } } })
                    }
                    _ => json!({ "create": { "status": 201 } }),
                };
                let items: Vec<Value> = (0..documents).map(item).collect();
                Some((200, json!({ "errors": true, "items": items })))
            }
            _ => Some((200, created(documents))),
        },
        &["--probe", "north", "--elasticsearch", "api-key=c2VjcmV0"],
    );
    let ran = ran.exits(1);
    let ran = ran.says("1 record is lost: 1 refused with status 400 (document_parsing_exception)");
    let ran = ran.says("the first refused document: field [vlan] is too large");
    ran.says("it is tried again");
    // One was refused for good, one was there already.
    assert_eq!(received.documents.len(), 798);
    assert!(received.requests >= 4);
    assert_eq!(received.fields["authorization"], "ApiKey c2VjcmV0");
    let plain = run(&[
        "http",
        "-q",
        "-r",
        demo().to_str().unwrap(),
        "--format",
        "jsonl",
    ])
    .exits(0);
    for (id, document) in &received.documents {
        let number: usize = id.split_once('-').unwrap().1.parse().unwrap();
        let mut document = document.as_object().unwrap().clone();
        assert_eq!(document["probe"], "north");
        assert_eq!(document["kind"], "http_transaction");
        for own in ["@timestamp", "kind", "schema_version", "probe", "record_id"] {
            document.remove(own);
        }
        let record: Value = serde_json::from_str(plain.lines()[number]).unwrap();
        assert_eq!(Value::Object(document), record);
    }
}

#[test]
fn who_may_not_write_is_told_at_once() {
    let (ran, received) = sent(
        |_, _| Some((403, json!({ "error": { "type": "security_exception" } }))),
        &["--delivery-timeout", "1h"],
    );
    ran.exits(1)
        .says("it refuses the user or key (status 403): {\"error\"")
        .says("800 records are lost: 800 it refuses the user or key (status 403)");
    assert_eq!(received.requests, 1);
}

#[test]
fn credentials_and_compression() {
    let directory = tempfile::tempdir().unwrap();
    let secret = directory.path().join("password");
    std::fs::write(&secret, "open sesame\n").unwrap();
    let password = format!("password=@{}", secret.display());
    let more = ["--elasticsearch", "user=me", "--elasticsearch", &password];
    let (ran, received) = sent(
        |_, documents| Some((200, created(documents))),
        &[&more[..], &["--elasticsearch", "compression=gzip"]].concat(),
    );
    ran.exits(0);
    assert_eq!(received.documents.len(), 800);
    // printf 'me:open sesame' | base64
    assert_eq!(
        received.fields["authorization"],
        "Basic bWU6b3BlbiBzZXNhbWU="
    );
    assert_eq!(received.fields["content-encoding"], "gzip");
}

#[test]
fn what_cannot_be_is_refused_and_no_password_is_shown() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let stranger = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        assert!(request(&mut reader).is_some());
        stream
            .write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n")
            .unwrap();
    });
    let demo = demo();
    let to = |destination: &str| run(&["http", "-r", demo.to_str().unwrap(), "-w", destination]);
    let ran = to(&format!("elasticsearch://me:sesame@127.0.0.1:{port}/web"))
        .exits(2)
        .says("does not accept the credentials")
        .says("in the process list");
    assert!(!ran.stderr.contains("sesame"), "{}", ran.stderr);
    stranger.join().unwrap();
    to("elasticsearch://127.0.0.1:1/web")
        .exits(3)
        .says("127.0.0.1:1");
    to("elasticsearch://127.0.0.1:1")
        .exits(2)
        .says("an index in lower case");
}

#[test]
fn the_template_names_the_index() {
    let from = "elasticsearch://h:9200/web";
    let ran = run(&[
        "schema",
        "http_transaction",
        "--format",
        "elasticsearch",
        "--from",
        from,
    ]);
    let template: Value = serde_json::from_str(&ran.exits(0).stdout).unwrap();
    assert_eq!(template["index_patterns"], json!(["web"]));
    let properties = &template["template"]["mappings"]["properties"];
    assert_eq!(properties["client_ip"]["type"], "ip");
    assert_eq!(properties["@timestamp"]["type"], "date_nanos");
    run(&["schema", "all", "--format", "elasticsearch"])
        .exits(2)
        .says("for one kind of records");
}
