//! Several shards give what one gives: record for record, counter for counter.

use crate::common::{Run, describe, odd_heads_talk, run_one, run_shards, settings};
use crate::random::{Mishap, exchange, mishap, suffer_where};
use linkweir_http::{EvenConnections, GroupsConfig, HttpConfig, TransactionGroups};
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_testkit::conversation::{Conversation, Segment, Side};
use linkweir_testkit::script::{Exchange, tell};
use linkweir_wire::LinkType;
use proptest::collection::vec;
use proptest::prelude::*;

fn groups() -> TransactionGroups {
    TransactionGroups::new(&GroupsConfig::default())
}

/// One stage against several.
fn compare(config: &HttpConfig, frames: &[CapturedFrame], link: LinkType) -> Result<(), String> {
    let one = run_one(config, frames, link);
    for shards in [2, 3, 4, 7] {
        let many = run_shards(config, frames, link, shards, &mut groups());
        one.same_as(&many).map_err(|why| {
            let frames = describe(frames, link, shards, &mut groups());
            format!("{shards} shards: {why}{frames}")
        })?;
    }
    Ok(())
}

fn any_config() -> impl Strategy<Value = HttpConfig> {
    (any::<bool>(), any::<bool>()).prop_map(|(ttlb, keep_duplicates)| HttpConfig {
        ttlb,
        keep_duplicates,
        ..settings()
    })
}

fn together(talks: &[Conversation]) -> Vec<CapturedFrame> {
    let mut frames: Vec<_> = talks.iter().flat_map(Conversation::frames).collect();
    frames.sort_by_key(|frame| frame.timestamp_ns);
    frames
}

/// What is not promised: the end of an upload that comes again with the next request behind it reads
/// like a request with another method; and of a connection eight groups are remembered, so that what
/// comes much later goes to a shard that may not know it, and what is noted of unanswered requests (how
/// often they were seen again) is forgotten after some exchanges. And the stage gathers
/// one head a direction: an earlier one that comes in between, in parts, takes its place in one
/// stage and not in several.
fn is_promised(mishap: &Mishap, segment: &Segment) -> bool {
    match mishap {
        Mishap::Repacketized(_) => segment.from == Side::Server || !segment.payload.ends_with(b"u"),
        Mishap::Repetition(_, ns) => *ns < 7 * Conversation::SPACING_NS,
        Mishap::Delay(_, ns) => *ns < 3 * Conversation::SPACING_NS,
        Mishap::Loss(_) => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Pipelines, interim responses, chunks, split heads, loss, repetition, delay, other cuts.
    #[test]
    fn shards_give_what_one_stage_gives(
        talks in vec((vec(exchange(), 1..14), vec(mishap(), 0..6), 0_u64..3_000_000), 1..4),
        mss in prop_oneof![Just(60_usize), Just(150), Just(536), Just(1460)],
        numbers in any::<(u32, u32)>(),
        snaplen in prop_oneof![4 => Just(usize::MAX), 1 => 60_usize..400],
        config in any_config(),
        (opens, closes) in any::<(bool, bool)>(),
    ) {
        let told: Vec<Conversation> = talks
            .iter()
            .zip(40_000..)
            .map(|((exchanges, mishaps, offset), port)| {
                let mut talk = Conversation::v4(port)
                    .numbered(numbers.0, numbers.1)
                    .mss(mss)
                    .snaplen(snaplen)
                    .starting_at(Conversation::START_NS + offset);
                if opens {
                    talk.handshake();
                }
                tell(&mut talk, exchanges);
                if closes {
                    talk.fin(Side::Server).fin(Side::Client);
                }
                suffer_where(&mut talk, mishaps, is_promised);
                talk
            })
            .collect();
        let frames = together(&told);
        if let Err(why) = compare(&config, &frames, LinkType::ETHERNET) {
            prop_assert!(false, "{why}");
        }
    }
}

/// Few connections are followed, of many most go whole: the records are those of one stage, the shares even.
#[test]
fn many_connections_go_whole_and_evenly() {
    for (connections, each) in [(1_u16, 400), (90, 12)] {
        let talks: Vec<Conversation> = (0..connections)
            .map(|number| {
                let begin = Conversation::START_NS + u64::from(number) * 3_001;
                let mut talk = Conversation::v4(40_000 + number).starting_at(begin);
                talk.handshake();
                for n in 0..each {
                    let size = (n * 911 + usize::from(number) * 131) % 4000;
                    tell(&mut talk, &[Exchange::get(format!("/{number}/{n}"), size)]);
                }
                talk.fin(Side::Server).fin(Side::Client);
                talk
            })
            .collect();
        let frames = together(&talks);
        let one = run_one(&settings(), &frames, LinkType::ETHERNET);
        for shards in [2_u32, 3, 4] {
            let mut splitter = EvenConnections::new(&GroupsConfig::default(), shards as usize);
            let many = run_shards(
                &settings(),
                &frames,
                LinkType::ETHERNET,
                shards,
                &mut splitter,
            );
            assert_eq!(
                one.same_as(&many),
                Ok(()),
                "{connections} connections, {shards} shards"
            );
            let followed = u64::from(connections).min(4 * u64::from(shards));
            assert_eq!(splitter.counts().connections, followed);
            let even = frames.len() as f64 / f64::from(shards);
            for (packets, _) in &many.shares {
                let part = *packets as f64 / even;
                assert!(
                    (0.75..1.25).contains(&part),
                    "{shards} shards: {:?}",
                    many.shares
                );
            }
        }
    }
}

#[test]
fn odd_heads() {
    for mss in [7, 20, 41, 60, 1460] {
        let talk = odd_heads_talk(mss);
        let compared = compare(&settings(), &talk.frames(), talk.link());
        assert!(compared.is_ok(), "{mss}: {compared:?}");
    }
}

#[test]
fn the_comparison_sees_a_difference() {
    let mut talk = Conversation::v4(40_000);
    talk.client_sends("GET /a HTTP/1.1\r\n\r\n");
    let whole = run_one(&settings(), &talk.frames(), talk.link());
    talk.server_sends("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let other = run_one(&settings(), &talk.frames(), talk.link());
    assert!(whole.same_as(&other).is_err());
    let _: &Run = &whole;
}
