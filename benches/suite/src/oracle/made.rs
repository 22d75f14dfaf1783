//! One made capture with every link type, tag and tunnel, and IP fragments, against tshark.
//!
//! A pcapng file with an interface for each holds a short conversation over each of them, distinguished by the
//! port of its client: one run of each program for all.

use super::{Findings, Pair, ours, truth};
use anyhow::{Context as _, Result, bail};
use linkweir_testkit::capture_writer::{
    ByteOrder, CapturedFrame, PacketBlock, PcapngInterface, pcapng,
};
use linkweir_testkit::conversation::{Conversation, Encapsulation};
use linkweir_testkit::temporary::TemporaryDirectory;
use linkweir_wire::emit::fragments;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// What tshark does not follow: it reads these link types and has no dissector for them.
const TSHARK_LACKS: &[Encapsulation] = &[Encapsulation::MultilinkFrameRelay, Encapsulation::Slip];

/// The port of the first conversation's client.
const FIRST_PORT: u16 = 40_000;

/// What tshark is asked for: the columns of the rows under `truth/`.
const COLUMNS: [&str; 14] = [
    "frame.number",
    "frame.time_epoch",
    "ip.src",
    "ipv6.src",
    "tcp.srcport",
    "ip.dst",
    "ipv6.dst",
    "tcp.dstport",
    "tcp.stream",
    "tcp.seq_raw",
    "http.request.method",
    "http.response.code",
    "http.response_in",
    "http.request_in",
];

/// Compares; whether both found every conversation that they should. Without tshark nothing is compared.
pub(super) fn run(binary: &Path) -> Result<bool> {
    if Command::new("tshark").arg("-v").output().is_err() {
        println!("** tshark is not installed: link types and tunnels were not compared.");
        return Ok(true);
    }
    let directory = TemporaryDirectory::new("oracle-")?;
    let capture = directory.path().join("made.pcapng");
    let (names, bytes) = made();
    std::fs::write(&capture, bytes)?;
    let ours = ours::read(binary, &capture)?;
    let theirs = tshark(&capture)?;
    let mut faults = 0;
    for (port, (name, is_known)) in (FIRST_PORT..).zip(&names) {
        let pairs = |findings: &Findings| -> BTreeSet<Pair> {
            let all = findings.pairs.iter();
            all.filter(|pair| pair.client.1 == port).copied().collect()
        };
        let (ours, theirs) = (pairs(&ours), pairs(&theirs));
        if ours.len() != 2 {
            println!("{name}: {} of 2 transactions found", ours.len());
            faults += 1;
        } else if *is_known && ours != theirs {
            println!("{name}: tshark has {} of 2 transactions", theirs.len());
            faults += 1;
        } else if !is_known && !theirs.is_empty() {
            println!("{name}: exception no longer applies, tshark has it");
            faults += 1;
        }
    }
    println!(
        "every link type and tunnel: {} conversations, {faults} differ",
        names.len()
    );
    Ok(faults == 0)
}

/// The conversations by name, whether tshark follows them, and the capture.
fn made() -> (Vec<(String, bool)>, Vec<u8>) {
    let mut names = Vec::new();
    let mut interfaces = Vec::new();
    let mut frames = Vec::new();
    let mut add = |name: String, is_known: bool, talk: &Conversation, all: Vec<CapturedFrame>| {
        let interface = u16::try_from(interfaces.len()).unwrap_or(u16::MAX);
        interfaces.push(PcapngInterface::usual(talk.link()));
        frames.extend(
            all.into_iter()
                .map(|frame| CapturedFrame { interface, ..frame }),
        );
        names.push((name, is_known));
    };
    let mut ports = FIRST_PORT..;
    let mut talk = |encapsulation, is_v6: bool| {
        let port = ports.next().unwrap_or(u16::MAX);
        let talk = if is_v6 {
            Conversation::v6(port)
        } else {
            Conversation::v4(port)
        };
        let mut talk = talk.within(encapsulation);
        talk.handshake();
        for turn in 0..2 {
            talk.client_sends(format!(
                "GET /{turn} HTTP/1.1\r\nHost: a.example\r\nUser-Agent: oracle\r\n\r\n"
            ))
            .server_sends(format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 60\r\n\r\n{}",
                "x".repeat(60)
            ));
        }
        talk
    };
    for encapsulation in Encapsulation::ALL {
        let is_known = !TSHARK_LACKS.contains(&encapsulation);
        for is_v6 in [false, true] {
            let talk = talk(encapsulation, is_v6);
            let name = format!("{encapsulation:?}{}", if is_v6 { " 6" } else { "" });
            add(name, is_known, &talk, talk.frames());
        }
    }
    for is_v6 in [false, true] {
        let talk = talk(Encapsulation::RawIp, is_v6);
        let cut = |(id, frame): (u32, CapturedFrame)| {
            let whole = move |bytes: Vec<u8>| CapturedFrame {
                wire_len: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
                bytes,
                ..frame
            };
            let parts = fragments(&frame.bytes, id, 48);
            parts.into_iter().map(whole).collect::<Vec<_>>()
        };
        let parts = (1..).zip(talk.frames()).flat_map(cut).collect();
        add(
            format!("fragments {}", if is_v6 { 6 } else { 4 }),
            true,
            &talk,
            parts,
        );
    }
    let file = pcapng(
        &frames,
        ByteOrder::Little,
        &interfaces,
        PacketBlock::Enhanced,
    );
    (names, file)
}

fn tshark(capture: &Path) -> Result<Findings> {
    let output = Command::new("tshark")
        .args(["-n", "-2", "-o", "tcp.desegment_tcp_streams:FALSE"])
        // By itself it expects what some access points make of the header, not RFC 5416.
        .args(["-o", "capwap.swap_fc:FALSE"])
        .args(["--enable-heuristic", "fp_eth", "-Y", "http", "-r"])
        .arg(capture)
        .args([
            "-T",
            "fields",
            "-E",
            "header=y",
            "-E",
            "occurrence=a",
            "-E",
            "aggregator=;",
        ])
        .args(
            COLUMNS
                .iter()
                .chain(&["frame.protocols"])
                .flat_map(|column| ["-e", column]),
        )
        .output()
        .context("run tshark")?;
    if !output.status.success() {
        bail!("tshark: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let rows = String::from_utf8_lossy(&output.stdout).replace(';', " ;; ");
    truth::findings(&rows)
}
