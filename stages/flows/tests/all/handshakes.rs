//! Handshakes with two answers: the one that the client acknowledges counts.

use std::net::SocketAddr;

use linkweir_flows::{FlowsConfig, FlowsStage, FlowsStats};
use linkweir_record::RecordBatch;
use linkweir_record::flow::{FlowRow, FlowState};
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_testkit::conversation::{Conversation, Side};
use linkweir_testkit::memory::drive;
use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{LinkType, SeqNumber, TcpFlags};

const CLIENT: u32 = 1000;
const SERVER: u32 = 500_000;

/// Maximum segment size 1400, window scale 3.
const AGREED: [u8; 8] = [2, 4, 0x05, 0x78, 3, 3, 3, 1];
/// Maximum segment size 536, no window scale.
const OTHERWISE: [u8; 4] = [2, 4, 0x02, 0x18];

fn answer(seq: u32, options: &[u8]) -> Vec<u8> {
    let parse = |text: &str| text.parse::<SocketAddr>().unwrap();
    TcpFrame {
        seq: SeqNumber(seq),
        ack: SeqNumber(CLIENT + 1),
        flags: TcpFlags::SYN | TcpFlags::ACK,
        window: if options == AGREED { 8000 } else { 60_000 },
        options,
        ..TcpFrame::new(parse("198.51.100.2:80"), parse("192.0.2.1:4000"))
    }
    .to_vec()
}

/// A whole connection whose SYN is answered by these SYN-ACKs, one after the other.
fn answered_by(answers: &[Vec<u8>]) -> Vec<CapturedFrame> {
    let mut talk = Conversation::v4(4000)
        .numbered(CLIENT + 1, SERVER + 1)
        .spaced(10_000_000);
    talk.handshake()
        .client_sends("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
        .server_sends("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
        .server_sends(vec![b'x'; 5000])
        .acknowledges(Side::Client)
        .fin(Side::Client)
        .fin(Side::Server)
        .acknowledges(Side::Client);
    let mut frames = talk.frames();
    let first = frames.remove(1);
    for (number, bytes) in (0..).zip(answers) {
        let frame = CapturedFrame {
            timestamp_ns: first.timestamp_ns + number * 1_000_000,
            bytes: bytes.clone(),
            wire_len: u32::try_from(bytes.len()).unwrap(),
            ..first
        };
        let at = 1 + usize::try_from(number).unwrap();
        frames.insert(at, frame);
    }
    frames
}

fn flow(frames: &[CapturedFrame]) -> (FlowRow, FlowsStats) {
    let mut stage = FlowsStage::new(&FlowsConfig::default());
    let batch = drive(&mut stage, frames, LinkType::ETHERNET, &[3, 1]);
    assert_eq!(batch.len(), 1);
    (*batch.get(0).unwrap().row, stage.stats())
}

/// The numbers of a row without those that another packet adds to.
fn without_packets(mut row: FlowRow) -> FlowRow {
    let server = &mut row.server;
    (server.pkts_all, server.ack_cnt, server.syn_cnt) = (0, 0, 0);
    server.ip_bytes = 0;
    (row.syn_ack_ns, row.ack_dat_ns) = (None, None);
    row
}

#[test]
fn an_answer_that_the_client_does_not_take_changes_no_number() {
    let real = answer(SERVER, &AGREED);
    let (expected, _) = flow(&answered_by(std::slice::from_ref(&real)));
    assert_eq!(expected.state, FlowState::Closed);
    assert_eq!(
        (expected.server.mss, expected.server.window_scale),
        (1400, 3)
    );
    assert_eq!((expected.http_status, expected.client.rtt.count), (200, 3));
    for other in [
        SERVER + 70_000,
        SERVER - 70_000,
        SERVER + (1 << 28),
        SERVER ^ (1 << 31),
    ] {
        let other = answer(other, &OTHERWISE);
        for (answers, taken_at) in [
            ([&real, &other].as_slice(), 10),
            (&[&other, &real], 11),
            (&[&real, &other, &other], 10),
        ] {
            let answers: Vec<_> = answers.iter().copied().cloned().collect();
            let (row, stats) = flow(&answered_by(&answers));
            let mut expected = without_packets(expected);
            let mut found = without_packets(row);
            assert_eq!(row.server.syn_cnt, answers.len() as u64);
            assert_eq!(row.syn_ack_ns, Some(taken_at * 1_000_000));
            assert_eq!(stats.impossible_sequences, 1);
            // One answer was sent twice; the samples of the one that was taken are its own.
            assert_eq!(found.server.syn_retx, (answers.len() - 2) as u64);
            found.server.syn_retx = 0;
            let late = (taken_at - 10) * 1_000_000;
            assert_eq!(found.server.rtt.min_ns + late, expected.server.rtt.min_ns);
            (found.server.rtt, expected.server.rtt) = Default::default();
            (found.client.rtt, expected.client.rtt) = Default::default();
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn of_many_answers_the_acknowledgment_tells_where_the_stream_begins() {
    let mut answers: Vec<_> = (1..6)
        .map(|number| answer(SERVER + number * 70_000, &OTHERWISE))
        .collect();
    answers.insert(2, answer(SERVER, &AGREED));
    let (row, stats) = flow(&answered_by(&answers));
    assert_eq!(stats.impossible_sequences, 5);
    assert_eq!(row.state, FlowState::Closed);
    assert_eq!((row.server.pkts_ooo, row.server.pkts_retx), (0, 0));
    assert_eq!((row.http_status, row.server.bytes_uniq), (200, 5041));
}

#[test]
fn an_answer_behind_the_handshake_changes_nothing() {
    for other in [SERVER + 70_000, SERVER - 70_000] {
        let mut frames = answered_by(&[answer(SERVER, &AGREED)]);
        let (expected, _) = flow(&frames);
        let injected = CapturedFrame {
            bytes: answer(other, &OTHERWISE),
            ..frames[1].clone()
        };
        frames.insert(4, injected);
        let (row, stats) = flow(&frames);
        assert_eq!(stats.impossible_sequences, 1);
        let (mut row, mut expected) = (without_packets(row), without_packets(expected));
        (row.syn_ack_ns, expected.syn_ack_ns) = (None, None);
        assert_eq!(row, expected);
    }
}

#[test]
fn the_first_answer_counts_while_nobody_acknowledges() {
    let answers = [answer(SERVER, &AGREED), answer(SERVER + 70_000, &OTHERWISE)];
    let mut frames = answered_by(&answers);
    let server = frames[1].bytes[26..30].to_vec();
    frames.retain(|frame| frame.bytes[26..30] == server);
    let (row, stats) = flow(&frames);
    assert_eq!(stats.impossible_sequences, 1);
    assert_eq!((row.server.pkts_ooo, row.server.pkts_retx), (0, 0));
    assert_eq!(row.server.bytes_uniq, 5041);
}
