//! Packets in IP fragments: several shards give what one gives, whatever becomes of the parts, and count
//! them once.

use crate::common::{run_one, run_shards, settings};
use crate::random::exchange;
use linkweir_engine::{FlowSplitter, Splitter};
use linkweir_http::TransactionGroups;
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_testkit::conversation::{Conversation, Side};
use linkweir_testkit::parts::{Trouble, in_parts, suffer};
use linkweir_testkit::script::{Exchange, tell};
use linkweir_wire::LinkType;
use proptest::collection::vec;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

/// Conversations in parts of at most so many bytes.
fn traffic(talks: &[Vec<Exchange>], is_v6: bool, piece: usize) -> Vec<CapturedFrame> {
    let talks = talks.iter().zip(40_000..).map(|(exchanges, port)| {
        let mut talk = if is_v6 {
            Conversation::v6(port)
        } else {
            Conversation::v4(port)
        };
        talk.handshake();
        tell(&mut talk, exchanges);
        talk.fin(Side::Server).fin(Side::Client);
        talk
    });
    let mut frames: Vec<_> = talks.flat_map(|talk| talk.frames()).collect();
    frames.sort_by_key(|frame| frame.timestamp_ns);
    in_parts(&frames, piece)
}

fn trouble() -> impl Strategy<Value = (usize, Trouble)> {
    let trouble = prop_oneof![
        Just(Trouble::Lost),
        (0..60_usize).prop_map(Trouble::Again),
        (1..60_usize).prop_map(Trouble::Late),
        Just(Trouble::Forged),
        Just(Trouble::Early),
        Just(Trouble::Odd),
    ];
    (any::<usize>(), trouble)
}

fn compare<S: Splitter>(frames: &[CapturedFrame], splitter: fn() -> S) -> Result<(), String> {
    let one = run_one(&settings(), frames, LinkType::ETHERNET);
    for shards in 1..5 {
        let many = run_shards(
            &settings(),
            frames,
            LinkType::ETHERNET,
            shards,
            &mut splitter(),
        );
        one.same_as(&many)
            .map_err(|why| format!("{shards} shards: {why}"))?;
        if one.fragments != many.fragments {
            let (one, many) = (one.fragments, many.fragments);
            return Err(format!("{shards} shards: {many:?} instead of {one:?}"));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_becomes_of_parts_shards_give_what_one_stage_gives(
        talks in vec(vec(exchange(), 1..4), 1..4),
        is_v6: bool,
        piece in prop_oneof![Just(8_usize), Just(16), Just(40), Just(256), Just(1480)],
        troubles in vec(trouble(), 0..40),
        pause in any::<Option<prop::sample::Index>>(),
    ) {
        let mut frames = traffic(&talks, is_v6, piece);
        suffer(&mut frames, &troubles);
        if let Some(index) = pause {
            // Long enough for parts to be given up.
            let from = index.index(frames.len() + 1);
            frames.iter_mut().skip(from).for_each(|frame| frame.timestamp_ns += 40 * SECOND);
        }
        if let Err(why) = compare(&frames, || FlowSplitter) {
            prop_assert!(false, "{why}");
        }
    }

    /// By transactions too, as long as packets become whole in about their order.
    #[test]
    fn transactions_in_parts_are_distributed_as_whole_ones_are(
        talks in vec(vec(exchange(), 1..14), 1..4),
        is_v6: bool,
        piece in prop_oneof![Just(8_usize), Just(16), Just(40), Just(256), Just(1480)],
        late in vec((any::<usize>(), (1..4_usize).prop_map(Trouble::Late)), 0..20),
    ) {
        let mut frames = traffic(&talks, is_v6, piece);
        suffer(&mut frames, &late);
        if let Err(why) = compare(&frames, TransactionGroups::default) {
            prop_assert!(false, "{why}");
        }
    }
}
