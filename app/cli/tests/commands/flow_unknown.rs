//! `linkweir flows --unknown`: what a signature would need.

use std::net::SocketAddr;
use std::path::Path;

use crate::common::{ended, linkweir, plain};
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_wire::emit::{TcpFrame, UdpFrame};
use linkweir_wire::{SeqNumber, TcpFlags};
use serde_json::{Value, json};

/// A client of its own for each number.
fn client(number: u16) -> SocketAddr {
    SocketAddr::new([10, 0, 0, 1].into(), 40_000 + number)
}

fn server(port: u16) -> SocketAddr {
    SocketAddr::new([192, 0, 2, 1].into(), port)
}

/// A TCP connection: the handshake where `has_syn`, then these segments of the client, and what the server sends.
fn connection(
    number: u16,
    port: u16,
    has_syn: bool,
    asks: &[&[u8]],
    answer: &[u8],
) -> Vec<Vec<u8>> {
    let (client, server) = (client(number), server(port));
    let (mut seq, ack) = (SeqNumber(1000), SeqNumber(5000));
    let segment = |src, dst, seq, ack, flags, payload: &[u8]| {
        TcpFrame {
            seq,
            ack,
            flags,
            payload,
            ..TcpFrame::new(src, dst)
        }
        .to_vec()
    };
    let data = TcpFlags::ACK | TcpFlags::PSH;
    let mut frames = Vec::new();
    if has_syn {
        let (syn, zero) = (TcpFlags::SYN, SeqNumber(0));
        frames.push(segment(client, server, seq - 1, zero, syn, &[]));
        frames.push(segment(
            server,
            client,
            ack - 1,
            seq,
            syn | TcpFlags::ACK,
            &[],
        ));
    }
    for ask in asks {
        frames.push(segment(client, server, seq, ack, data, ask));
        seq += u32::try_from(ask.len()).unwrap();
    }
    frames.push(segment(server, client, ack, seq, data, answer));
    frames
}

fn datagram(number: u16, port: u16, payload: &[u8]) -> Vec<u8> {
    UdpFrame {
        payload,
        ..UdpFrame::new(client(number), server(port))
    }
    .to_vec()
}

/// A protocol that nobody knows on two ports, and around it what is not to be listed.
fn capture() -> Vec<u8> {
    let ask: [&[u8]; 2] = [b"\xF7qz\x01", b"\x01\x02\x03\x04and more"];
    let answer: &[u8] = b"\xF7ok";
    let mut frames = Vec::new();
    for number in 0..3 {
        frames.extend(connection(number, 7001, true, &ask, answer));
    }
    frames.extend(connection(3, 7002, true, &ask, answer));
    // Its beginning was not seen.
    frames.extend(connection(4, 7003, false, &ask, answer));
    // Known; and without payload.
    frames.extend(connection(
        5,
        7004,
        true,
        &[b"SSH-2.0-x\r\n"],
        b"SSH-2.0-y\r\n",
    ));
    frames.push(connection(6, 7005, true, &ask, answer).swap_remove(0));
    for number in 7..9 {
        frames.push(datagram(number, 7001, b"\xF7qz-of-datagrams"));
        frames.push(datagram(number, 7001, b"others"));
    }
    let frames = (1..).zip(frames).map(|(number, bytes)| CapturedFrame {
        timestamp_ns: number * 1_000_000,
        interface: 0,
        wire_len: u32::try_from(bytes.len()).unwrap(),
        bytes,
    });
    plain(&frames.collect::<Vec<_>>())
}

/// The summary's part, and what is on the screen.
fn unknown(path: &Path, words: &[&str]) -> (Value, String) {
    let mut command = linkweir();
    command.args(["flows", "-w", "/dev/null", "--summary", "-", "-r"]);
    let ran = ended(command.arg(path).args(words).output().unwrap()).exits(0);
    let mut summary: Value = serde_json::from_str(&ran.stdout).unwrap();
    (summary["flows"]["unknown"].take(), ran.stderr)
}

#[test]
fn an_unknown_protocol_is_listed_by_port_and_first_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("unknown.pcap");
    std::fs::write(&path, capture()).unwrap();
    let (found, screen) = unknown(&path, &["--unknown"]);
    assert_eq!(
        (&found["flows"], &found["packets"], &found["groups"]),
        (&json!(7), &json!(5 * 4 + 3 + 4), &json!(4)),
        "{found}"
    );
    let groups: Vec<Value> = found["top"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| {
            json!([
                group["protocol"],
                group["server_port"],
                group["flows"],
                group["client_hex"],
                group["client_text"],
                group["server_hex"],
                group["example"]["client_port"],
            ])
        })
        .collect();
    let (ask, answer) = ("f7717a0101020304", "f76f6b");
    assert_eq!(
        groups,
        [
            json!(["tcp", 7001, 3, ask, ".qz.....", answer, 40_000]),
            json!(["udp", 7001, 2, "f7717a2d6f662d64", ".qz-of-d", "", 40_007]),
            json!(["tcp", 7002, 1, ask, ".qz.....", answer, 40_003]),
            json!(["tcp", 7003, 1, "", "", "", 40_004]),
        ]
    );
    for text in [
        "7 flows, 27 packets,",
        "f7717a0101020304 .qz.....",
        "10.0.0.1:40000 > 192.0.2.1:7001",
    ] {
        assert!(screen.contains(text), "{text}: {screen}");
    }
    // The same of several workers, and fewer rows where fewer are asked for.
    assert_eq!(
        unknown(&path, &["--unknown", "20", "--workers", "3"]).0,
        found
    );
    let (few, screen) = unknown(&path, &["--unknown", "1"]);
    assert_eq!(few["top"].as_array().unwrap().len(), 1);
    assert_eq!(few["flows"], found["flows"]);
    assert!(!screen.contains("7002"), "{screen}");
    // It was asked for: also of a run that says nothing else.
    let (_, quiet) = unknown(&path, &["--unknown", "-q"]);
    assert!(
        quiet.trim_start().starts_with("protocol") && quiet.contains("7001"),
        "{quiet}"
    );
    // Who does not ask has none of it.
    let (none, screen) = unknown(&path, &[]);
    assert!(
        none.is_null() && !screen.contains("7001"),
        "{none} {screen}"
    );
}
