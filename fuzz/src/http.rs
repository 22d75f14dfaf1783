//! Segments of one connection through the stage: two directions, any order, any overlap.
//!
//! Input: flags, then records of a direction and control byte, two bytes of sequence offset, one of length, and
//! that many bytes of payload. Totals must add up whatever comes.

use linkweir_engine::split::shard_of;
use linkweir_engine::{Batch, FrameRef, Splitter, Stage, TransactionSplitter};
use linkweir_http::{HttpConfig, HttpStage, Shard, TransactionGroups};
use linkweir_record::{HttpBatch, RecordBatch};
use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{LinkType, SeqNumber, TcpFlags, Timestamp};

/// Gives each segment of the input as a batch of one frame.
fn each_segment(mut rest: &[u8], mut take: impl FnMut(&Batch<'_>)) {
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
        take(&Batch::new(&bytes, &index));
    }
}

/// One stage that sees everything.
pub(crate) fn one_stage(input: &[u8]) {
    let Some((&[flags], rest)) = input.split_first_chunk::<1>() else {
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
    each_segment(rest, |batch| stage.on_batch(batch, &mut out));
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

const SHARDS: u32 = 3;

fn exchange(stages: &mut [HttpStage], out: &mut HttpBatch) {
    let mut rounds = 0;
    loop {
        let mut handoffs = Vec::new();
        for stage in stages.iter_mut() {
            while let Some(handoff) = stage.take_handoff() {
                handoffs.push(handoff);
            }
        }
        if handoffs.is_empty() {
            return;
        }
        rounds += 1;
        assert!(rounds < 10_000, "a handoff that wanders for ever");
        for (shard, handoff) in handoffs {
            stages[shard].accept(handoff, out);
        }
    }
}

/// Three shards: distributed by groups of transactions, or by Eq. (3) of each packet with handoffs between
/// the shards. No handoff may be lost or wander for ever.
pub(crate) fn shards(input: &[u8]) {
    let Some((&[flags], rest)) = input.split_first_chunk::<1>() else {
        return;
    };
    let by_groups = flags & 4 != 0;
    let mut stages: Vec<HttpStage> = (0..SHARDS)
        .map(|index| {
            HttpStage::new(&HttpConfig {
                max_pending: 16,
                // Making it large would take longer than the input.
                remembered: 64,
                ttlb: by_groups && flags & 1 != 0,
                shard: (!by_groups).then_some(Shard {
                    index,
                    count: SHARDS,
                }),
                ..HttpConfig::default()
            })
        })
        .collect();
    let (mut groups, mut plain) = (TransactionGroups::default(), TransactionSplitter);
    let mut out = HttpBatch::default();
    each_segment(rest, |batch| {
        let frame = batch.frames().next().unwrap();
        let hash = if by_groups {
            groups.hash(&frame)
        } else {
            plain.hash(&frame)
        };
        stages[shard_of(hash, SHARDS) as usize].on_batch(batch, &mut out);
        // Handoffs arrive at once, or late.
        if flags & 8 != 0 {
            exchange(&mut stages, &mut out);
        }
    });
    exchange(&mut stages, &mut out);
    for stage in &mut stages {
        while !stage.finish(&mut out) {}
    }
    let sum = |of: fn(&HttpStage) -> u64| stages.iter().map(of).sum::<u64>();
    let unpaired = sum(|s| s.stats().unanswered);
    let orphans = sum(|s| s.stats().orphans);
    let pairs = sum(|s| s.stats().transactions);
    assert_eq!(sum(|s| s.stats().requests), pairs + unpaired);
    assert_eq!(
        sum(|s| s.stats().responses),
        pairs + orphans + sum(|s| s.stats().interim_responses)
    );
    assert_eq!(out.len() as u64, pairs + unpaired + orphans);
}
