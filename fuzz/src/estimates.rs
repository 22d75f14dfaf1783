//! Transactions of TLS and of QUIC without keys: records and datagrams of any size in both directions, lost, doubled and
//! out of order, on connections that have begun as they should.

use std::net::SocketAddr;

use linkweir_engine::{Batch, FrameRef, Stage};
use linkweir_http::{HttpConfig, HttpStage};
use linkweir_record::{Confidence, HttpBatch, RecordBatch};
use linkweir_wire::emit::{TcpFrame, UdpFrame};
use linkweir_wire::{LinkType, SeqNumber, TcpFlags, Timestamp};

/// A client's first datagram, in hexadecimal digits.
const INITIAL: &str = include_str!("../../app/testkit/captures/initial-h3.hex");
/// Records that one packet may give: of TLS several end with a segment.
const RECORDS_PER_PACKET: usize = 4;
/// A hello of TLS 1.3 without anything but the protocols `h2` and `http/1.1`.
const HELLO: &[u8] = b"\x16\x03\x01\x00\x41\x01\x00\x00\x3d\x03\x03AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\x00\x00\x02\x13\x01\x01\
    \x00\x00\x12\x00\x10\x00\x0e\x00\x0c\x02h2\x08http/1.1";

struct Run {
    stage: HttpStage,
    out: HttpBatch,
    now_ns: u64,
    packets: usize,
}

impl Run {
    fn take(&mut self, bytes: &[u8]) {
        self.packets += 1;
        let len = u32::try_from(bytes.len()).unwrap();
        let index = [FrameRef {
            timestamp: Timestamp::from_nanos(self.now_ns),
            offset: 0,
            captured_len: len,
            wire_len: len,
            link: LinkType::ETHERNET,
            interface: 0,
        }];
        self.stage
            .on_batch(&Batch::new(bytes, &index), &mut self.out);
    }
}

fn ends(is_client: bool, port: u16) -> (SocketAddr, SocketAddr) {
    let client = SocketAddr::from(([10, 0, 0, 1], port));
    let server = SocketAddr::from(([10, 0, 0, 2], 443));
    if is_client {
        (client, server)
    } else {
        (server, client)
    }
}

/// Takes four bytes a packet: what it is, its size in two, and the time since the one before.
///
/// Of the first, bit 0 is the direction, bit 1 says TLS or QUIC, bits 2 and 3 what happens to it, bits 4 and 5 what it
/// is, bits 6 and 7 how long the time unit is.
pub(crate) fn estimates(input: &[u8]) {
    let config = HttpConfig {
        max_pending: 16,
        remembered: 64,
        ..HttpConfig::default()
    };
    let mut run = Run {
        stage: HttpStage::new(&config),
        out: HttpBatch::default(),
        now_ns: 1_700_000_000_000_000_000,
        packets: 0,
    };
    let digits: Vec<u8> = INITIAL
        .chars()
        .filter_map(|digit| u8::try_from(digit.to_digit(16)?).ok())
        .collect();
    let (pairs, _) = digits.as_chunks::<2>();
    let initial: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
    let mut next = [1_u32, 1_u32];
    let mut held: Option<Vec<u8>> = None;
    let (packets, _) = input.as_chunks::<4>();
    let begin = [[0, 0, 0, 0], [2, 0, 0, 0]];
    for (at, [control, high, low, time]) in begin.iter().chain(packets).enumerate() {
        let is_client = control & 1 == 0;
        let size = usize::from(u16::from_be_bytes([*high, *low]) & 0x3fff);
        run.now_ns += u64::from(*time) << [0, 12, 18, 28][usize::from(control >> 6)];
        let (src, dst) = ends(is_client, 40_000);
        let frame = if control & 2 == 0 {
            let kind = control >> 4 & 3;
            let mut payload = vec![0xee; size.min(1472)];
            match (at, kind) {
                (0, _) | (_, 3) => payload.clone_from(&initial),
                (_, 1 | 2) => {
                    // Long headers: Handshake, 0-RTT, Initial, Retry by the size.
                    let kind = 0xc0 | *low << 4 & 0x30;
                    let header = [kind, 0, 0, 0, 1, 0, 4, 1, 2, 3, 4, 0, 8];
                    payload.splice(..0, header);
                    payload.truncate(1472);
                }
                _ => payload.iter_mut().take(1).for_each(|first| *first = 0x41),
            }
            UdpFrame {
                payload: &payload,
                ..UdpFrame::new(src, dst)
            }
            .to_vec()
        } else {
            let mut payload = match (at, control >> 4 & 3) {
                (1, _) => HELLO.to_vec(),
                (_, 1) => HELLO.to_vec(),
                (_, kind) => {
                    let len = u16::try_from(size).unwrap().to_be_bytes();
                    let header = [[23, 22, 23, 21][usize::from(kind)], 3, 3, len[0], len[1]];
                    [&header[..], &vec![0xee; size.min(1400)]].concat()
                }
            };
            payload.truncate(1448);
            let side = usize::from(!is_client);
            let seq = next[side];
            // A record may be longer than its first segment.
            let step = if control & 8 == 0 {
                payload.len()
            } else {
                size + 5
            };
            next[side] = seq.wrapping_add(u32::try_from(step).unwrap());
            TcpFrame {
                seq: SeqNumber(seq),
                ack: SeqNumber(next[1 - side]),
                flags: if *high == 0xff {
                    TcpFlags::ACK | TcpFlags::FIN
                } else {
                    TcpFlags::ACK
                },
                payload: &payload,
                ..TcpFrame::new(src, dst)
            }
            .to_vec()
        };
        match control >> 2 & 3 {
            // Lost, but for what begins a connection.
            1 if at > 1 => {}
            2 => {
                run.take(&frame);
                run.take(&frame);
            }
            // Behind the next one.
            3 if held.is_none() => held = Some(frame),
            _ => {
                run.take(&frame);
                if let Some(late) = held.take() {
                    run.take(&late);
                }
            }
        }
    }
    while !run.stage.finish(&mut run.out) {}
    check(&run);
}

fn check(run: &Run) {
    assert!(run.out.len() <= run.packets * RECORDS_PER_PACKET);
    assert_eq!(run.stage.pending(), 0);
    let mut count = 0;
    for view in run.out.views() {
        let row = view.row;
        let Some(confidence) = view.web().and_then(|web| web.confidence) else {
            continue;
        };
        count += 1;
        let request_ns = row.request_ts_ns.unwrap();
        assert!(request_ns <= run.now_ns);
        if let Some(response_ns) = row.response_ts_ns {
            assert!(response_ns >= request_ns, "a response before its request");
            assert_ne!(confidence, Confidence::CannotTell);
            let to_last_ns = row.ttlb_ns.unwrap();
            assert!(
                request_ns + to_last_ns >= response_ns,
                "a last byte before the first"
            );
            // A record of TLS may be too short to have anything inside.
            assert!(row.response_bytes.unwrap() > 0 || row.version != (3, 0));
        }
        if row.version == (3, 0) {
            assert_ne!(confidence, Confidence::Exact);
        }
    }
    let stats = run.stage.stats();
    assert_eq!(stats.of_estimate, count);
    assert!(stats.estimated_connections as usize <= run.packets);
}
