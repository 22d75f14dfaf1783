//! Runs segments of one connection through the stage: two directions, any order, any overlap.
//!
//! Input: records of a direction and control byte, two bytes of sequence offset, one of length, and
//! that many bytes of payload. Totals must add up whatever comes.

use linkweir_engine::{Batch, FrameRef, Stage};
use linkweir_http::{HttpConfig, HttpStage};
use linkweir_record::{HttpBatch, RecordBatch};
use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{LinkType, SeqNumber, TcpFlags, Timestamp};

pub(crate) fn target(input: &[u8]) {
    let Some((&[flags], mut rest)) = input.split_first_chunk::<1>() else {
        return;
    };
    let config = HttpConfig {
        max_pending: 16,
        // Making it large would take longer than the input.
        remembered: 64,
        ttlb: flags & 1 != 0,
        keep_duplicates: flags & 2 != 0,
        ..HttpConfig::default()
    };
    let mut stage = HttpStage::new(&config);
    let mut out = HttpBatch::default();
    let (client, server) = (
        "10.0.0.1:40000".parse().unwrap(),
        "10.0.0.2:80".parse().unwrap(),
    );
    let mut now = 1_700_000_000_000_000_000_u64;
    while let Some((&[control, hi, lo, len], after)) = rest.split_first_chunk::<4>() {
        let (payload, after) = after.split_at(usize::from(len).min(after.len()));
        rest = after;
        let offset = u32::from(u16::from_be_bytes([hi, lo]));
        let back = control & 1 != 0;
        let frame = TcpFrame {
            seq: SeqNumber((u32::MAX - 500).wrapping_add(offset)),
            ack: SeqNumber(u32::MAX - 500 + u32::from(control >> 4) * 16),
            flags: if control & 2 != 0 {
                TcpFlags::ACK | TcpFlags::FIN
            } else {
                TcpFlags::ACK
            },
            payload,
            ..if back {
                TcpFrame::new(server, client)
            } else {
                TcpFrame::new(client, server)
            }
        };
        let bytes = frame.to_vec();
        now += u64::from(control & 12) * 10_000_000_000 + 1_000;
        let len = u32::try_from(bytes.len()).unwrap();
        let index = [FrameRef {
            timestamp: Timestamp::from_nanos(now),
            offset: 0,
            captured_len: len,
            wire_len: len,
            link: LinkType::ETHERNET,
            interface: 0,
        }];
        stage.on_batch(&Batch::new(&bytes, &index), &mut out);
    }
    while !stage.finish(&mut out) {}
    let stats = stage.stats();
    assert_eq!(stage.pending(), 0);
    assert_eq!(stats.requests, stats.transactions + stats.unanswered);
    assert_eq!(
        stats.responses,
        stats.transactions + stats.orphans + stats.interim_responses
    );
    if !config.keep_duplicates {
        let records = stats.transactions + stats.unanswered + stats.orphans;
        assert_eq!(out.len() as u64, records);
    }
}
