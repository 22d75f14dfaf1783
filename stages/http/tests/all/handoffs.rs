//! Shards that get every packet by itself, by Eq. (3), and hand over what belongs to another.

use crate::common::{Run, finish, frame_of, give, run_one, settings_by_packet};
use crate::random::exchange;
use linkweir_engine::split::shard_of;
use linkweir_engine::{Splitter, Stage, TransactionSplitter};
use linkweir_http::{Handoff, HttpConfig, HttpStage, Shard};
use linkweir_record::HttpBatch;
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_testkit::conversation::{Conversation, Side};
use linkweir_testkit::parts::in_parts;
use linkweir_testkit::script::{Exchange, Framing, tell};
use linkweir_wire::LinkType;
use proptest::collection::vec;
use proptest::prelude::*;

/// Shards that exchange handoffs in any order, some of them a packet or two late.
fn run_by_packet(frames: &[CapturedFrame], shards: u32, mut dice: u64, is_late: bool) -> Run {
    let mut stages: Vec<_> = (0..shards)
        .map(|index| {
            HttpStage::new(&HttpConfig {
                shard: Some(Shard {
                    index,
                    count: shards,
                }),
                ..settings_by_packet()
            })
        })
        .collect();
    let mut roll = |sides: usize| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (dice >> 33) as usize % sides
    };
    let mut under_way: Vec<(usize, Handoff)> = Vec::new();
    let mut out = HttpBatch::default();
    let mut shares = vec![0; stages.len()];
    for frame in frames {
        let frame = frame_of(frame, LinkType::ETHERNET);
        let shard = shard_of(TransactionSplitter.hash(&frame), shards) as usize;
        shares[shard] += 1;
        give(&mut stages[shard], &frame, &mut out);
        under_way.extend(std::iter::from_fn(|| stages[shard].take_handoff()));
        while !(under_way.is_empty() || is_late && roll(3) == 0) {
            let (to, handoff) = under_way.swap_remove(roll(under_way.len()));
            stages[to].accept(handoff, &mut out);
            under_way.extend(std::iter::from_fn(|| stages[to].take_handoff()));
        }
    }
    while !under_way.is_empty() {
        let (to, handoff) = under_way.swap_remove(roll(under_way.len()));
        stages[to].accept(handoff, &mut out);
        under_way.extend(std::iter::from_fn(|| stages[to].take_handoff()));
    }
    finish(&mut stages, &mut out);
    Run::new(&stages, &out, &shares)
}

fn compare(frames: &[CapturedFrame], dice: u64, is_late: bool) -> Result<(), String> {
    let one = run_one(&settings_by_packet(), frames, LinkType::ETHERNET);
    for shards in [2, 3, 4, 7] {
        let many = run_by_packet(frames, shards, dice, is_late);
        one.same_as(&many).map_err(|why| {
            let frames = crate::common::describe(
                frames,
                LinkType::ETHERNET,
                shards,
                &mut TransactionSplitter,
            );
            format!("{shards} shards: {why}{frames}")
        })?;
        if one.fragments != many.fragments {
            let (one, many) = (one.fragments, many.fragments);
            return Err(format!("{shards} shards: {many:?} instead of {one:?}"));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// As servers talk: a response begins a segment; uploads after 100 Continue. Pipelines too, as
    /// long as a handoff comes before the next packets of its connection.
    #[test]
    fn shards_by_packet_give_what_one_stage_gives(
        talks in vec((vec(exchange(), 1..14), 0_u64..3_000_000, any::<(u32, u32)>()), 1..4),
        dice in any::<u64>(),
        is_late in any::<bool>(),
    ) {
        let mut frames: Vec<_> = talks
            .iter()
            .zip(40_000..)
            .flat_map(|((exchanges, offset, numbers), port)| {
                let mut talk = Conversation::v4(port)
                    .numbered(numbers.0, numbers.1)
                    .starting_at(Conversation::START_NS + offset);
                talk.handshake();
                let mut exchanges = exchanges.clone();
                exchanges.iter_mut().for_each(|e| e.pipelined &= !is_late);
                tell(&mut talk, &exchanges);
                talk.fin(Side::Server).fin(Side::Client);
                talk.frames()
            })
            .collect();
        frames.sort_by_key(|frame| frame.timestamp_ns);
        if let Err(why) = compare(&frames, dice, is_late) {
            prop_assert!(false, "{why}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// The parts of a packet meet by its addresses, and what they make goes where it would have gone whole.
    #[test]
    fn packets_in_parts_go_where_whole_ones_do(
        talks in vec((vec(exchange(), 1..8), any::<(u32, u32)>()), 1..4),
        is_v6: bool,
        piece in prop_oneof![Just(8_usize), Just(40), Just(256), Just(1480)],
        dice in any::<u64>(),
    ) {
        let mut frames: Vec<_> = talks
            .iter()
            .zip(40_000..)
            .flat_map(|((exchanges, numbers), port)| {
                let talk = if is_v6 {
                    Conversation::v6(port)
                } else {
                    Conversation::v4(port)
                };
                let mut talk = talk.numbered(numbers.0, numbers.1);
                talk.handshake();
                tell(&mut talk, exchanges);
                talk.fin(Side::Server).fin(Side::Client);
                talk.frames()
            })
            .collect();
        frames.sort_by_key(|frame| frame.timestamp_ns);
        let parts = in_parts(&frames, piece);
        if let Err(why) = compare(&parts, dice, false) {
            prop_assert!(false, "{why}");
        }
    }
}

#[test]
fn interim_and_final_response_in_one_segment() {
    for server in 0..64 {
        let mut talk = Conversation::v4(40_000).numbered(1, server * 977);
        talk.handshake();
        for n in 0..5 {
            let upload = Exchange {
                method: "POST",
                upload: 100,
                ..Exchange::get(format!("/{n}"), 50)
            };
            let mut answers = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
            answers.extend(upload.response());
            talk.client_sends(upload.request()).server_sends(&answers);
        }
        compare(&talk.frames(), 1, true).unwrap();
    }
}

#[test]
fn a_pipeline_answered_in_one_segment() {
    for server in 0..64 {
        for framing in [Framing::Length, Framing::Chunked] {
            let mut talk = Conversation::v4(40_000).numbered(1, server * 977);
            talk.handshake();
            let all: Vec<_> = (0..6)
                .map(|n| Exchange {
                    framing,
                    ..Exchange::get(format!("/{n}"), 10)
                })
                .collect();
            let asked: Vec<u8> = all.iter().flat_map(Exchange::request).collect();
            let answered: Vec<u8> = all.iter().flat_map(Exchange::response).collect();
            talk.client_sends(&asked).server_sends(&answered);
            compare(&talk.frames(), u64::from(server), true).unwrap();
        }
    }
}

/// A handoff that nobody takes comes back: its messages end as unmatched ones, and only once.
#[test]
fn a_handoff_that_comes_back_is_kept() {
    let upload = Exchange {
        method: "POST",
        upload: 100,
        ..Exchange::get("/", 50)
    };
    let mut came_back = 0;
    for server in 0..16 {
        let mut talk = Conversation::v4(40_000).numbered(1, server * 977);
        talk.client_sends(upload.request())
            .server_sends("HTTP/1.1 100 Continue\r\n\r\n")
            .server_sends(upload.response());
        for index in 0..2 {
            let shard = Some(Shard { index, count: 2 });
            let mut stage = HttpStage::new(&HttpConfig {
                shard,
                ..settings_by_packet()
            });
            let mut out = HttpBatch::default();
            for frame in talk.frames().iter().take(2) {
                let frame = frame_of(frame, LinkType::ETHERNET);
                if shard_of(TransactionSplitter.hash(&frame), 2) == index {
                    give(&mut stage, &frame, &mut out);
                }
            }
            if let Some((_, handoff)) = stage.take_handoff() {
                came_back += 1;
                stage.accept(handoff, &mut out);
                assert!(stage.take_handoff().is_none());
            }
            finish(std::slice::from_mut(&mut stage), &mut out);
            assert_eq!(stage.stats().requests, stage.stats().unanswered);
        }
    }
    assert!(came_back > 0);
}
