//! Half-transactions, distributed to shards, give what one stage gives on the packets: record for record,
//! counter for counter.

use crate::common::halves::{Pieces, compare_pieces, extract};
use crate::common::{describe, odd_heads_talk, run_one, settings_by_packet};
use crate::random::{exchange, mishap, suffer};
use linkweir_http::{GroupsConfig, HttpConfig, TransactionGroups};
use linkweir_record::RecordBatch;
use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_testkit::conversation::{Conversation, Encapsulation, Side};
use linkweir_testkit::script::{Exchange, tell};
use linkweir_wire::LinkType;
use proptest::collection::vec;
use proptest::prelude::*;

fn together(talks: &[Conversation]) -> Vec<CapturedFrame> {
    let mut frames: Vec<_> = talks.iter().flat_map(Conversation::frames).collect();
    frames.sort_by_key(|frame| frame.timestamp_ns);
    frames
}

/// One stage on all frames against the rows of the frames cut at `cuts`, distributed to shards.
fn compare(
    config: &HttpConfig,
    frames: &[CapturedFrame],
    link: LinkType,
    cuts: &[usize],
) -> Result<(), String> {
    let one = run_one(config, frames, link);
    let pieces = Pieces::cut(frames, link, cuts);
    compare_pieces(config, &one, &pieces).map_err(|why| {
        let mut groups = TransactionGroups::new(&GroupsConfig::default());
        let packets = describe(frames, link, 1, &mut groups);
        format!("{why}\ncuts {cuts:?}{packets}")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Pipelines, interim responses, chunks, split heads, loss, repetition, delay, other cuts of segments;
    /// the capture in one file or in several.
    #[test]
    fn rows_give_what_packets_give(
        talks in vec((vec(exchange(), 1..14), vec(mishap(), 0..6), 0_u64..3_000_000), 1..4),
        mss in prop_oneof![Just(60_usize), Just(150), Just(536), Just(1460)],
        numbers in any::<(u32, u32)>(),
        snaplen in prop_oneof![4 => Just(usize::MAX), 1 => 60_usize..400],
        keep_duplicates in any::<bool>(),
        (opens, closes) in any::<(bool, bool)>(),
        cuts in vec(any::<proptest::sample::Index>(), 0..4),
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
                suffer(&mut talk, mishaps);
                talk
            })
            .collect();
        let frames = together(&told);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(frames.len() + 1)).collect();
        cuts.sort_unstable();
        let config = HttpConfig { keep_duplicates, ..settings_by_packet() };
        if let Err(why) = compare(&config, &frames, LinkType::ETHERNET, &cuts) {
            prop_assert!(false, "{why}");
        }
    }
}

/// A page with its parts: of every segment only heads are kept, and each transaction goes by itself.
#[test]
fn plain_transactions_are_one_row_a_message_and_go_to_many_shards() {
    let mut talk = Conversation::v4(40_000);
    talk.handshake();
    let exchanges: Vec<Exchange> = (0..50)
        .map(|n| Exchange::get(format!("/{n}"), 100_000))
        .collect();
    tell(&mut talk, &exchanges);
    let frames = talk.frames();
    let (rows, stage) = extract(&frames, talk.link(), 0);
    let counts = stage.counts();
    assert_eq!((counts.requests, counts.responses), (50, 50));
    assert_eq!((counts.plain, counts.others, counts.possible), (100, 0, 0));
    assert_eq!(rows.len(), 100);
    assert!(rows.views().all(|view| view.payload.len() < 200));
    let flat: Vec<_> = rows.views().map(|view| *view.row).collect();
    let distributed = linkweir_http::extract::shard::distribute(&flat, 7);
    let mut used: Vec<_> = distributed.iter().flatten().collect();
    used.sort_unstable();
    used.dedup();
    assert!(used.len() > 4, "{used:?}");
}

#[test]
fn the_rest_of_a_head_in_the_next_file_is_kept() {
    let mut talk = Conversation::v4(40_000).mss(40);
    talk.handshake();
    let mut exchange = Exchange::get("/".to_owned() + &"x".repeat(200), 3000);
    exchange.pipelined = true;
    tell(&mut talk, &[exchange.clone(), exchange.clone(), exchange]);
    let frames = talk.frames();
    for cut in 0..=frames.len() {
        let config = settings_by_packet();
        let compared = compare(&config, &frames, talk.link(), &[cut]);
        assert!(compared.is_ok(), "{cut}: {compared:?}");
    }
}

/// With the `GET` of the file before, the first response is that to `HEAD` for who does not know it, so
/// it ends elsewhere, and with it all that follow begin elsewhere.
#[test]
fn responses_to_requests_of_the_file_before_may_end_elsewhere() {
    for mss in [60, 61, 70, 150, 1460] {
        for body in [0, 1, 5, 10, 70, 200] {
            let mut talk = Conversation::v4(40_000).mss(mss);
            let exchanges = ["GET", "HEAD", "GET", "GET"].map(|method| Exchange {
                method,
                pipelined: true,
                ..Exchange::get("/", body)
            });
            tell(&mut talk, &exchanges);
            let frames = talk.frames();
            for cut in 0..=frames.len() {
                let config = settings_by_packet();
                let compared = compare(&config, &frames, talk.link(), &[cut]);
                assert!(compared.is_ok(), "{mss} {body} {cut}: {compared:?}");
            }
        }
    }
}

#[test]
fn inner_addresses_tags_and_both_families() {
    for encapsulation in Encapsulation::ALL {
        for start in [Conversation::v4(40_000), Conversation::v6(40_000)] {
            let mut talk = start.within(encapsulation);
            tell(
                &mut talk,
                &[Exchange::get("/", 2000), Exchange::get("/b", 0)],
            );
            let frames = talk.frames();
            let compared = compare(&settings_by_packet(), &frames, talk.link(), &[2]);
            assert!(compared.is_ok(), "{encapsulation:?} {compared:?}");
        }
    }
}

/// Heads as nobody should send them, but some do: rows must show what packets show.
#[test]
fn odd_heads() {
    for mss in [41, 60, 61, 150, 1460] {
        let talk = odd_heads_talk(mss);
        let frames = talk.frames();
        for cut in 0..=frames.len() {
            let compared = compare(&settings_by_packet(), &frames, talk.link(), &[cut]);
            assert!(compared.is_ok(), "{mss} {cut}: {compared:?}");
        }
    }
}

/// A part of a head that has overtaken its beginning is known only afterwards; rows keep their order.
#[test]
fn a_row_that_was_not_sure_waits_and_stays_in_order() {
    let mut talk = Conversation::v4(40_000).mss(40);
    talk.handshake();
    tell(
        &mut talk,
        &[Exchange::get("/".to_owned() + &"x".repeat(100), 10)],
    );
    talk.exchange(3, 4);
    let frames = talk.frames();
    let (rows, _) = extract(&frames, talk.link(), 0);
    let packets: Vec<_> = rows.views().map(|view| view.row.packet).collect();
    assert!(packets.is_sorted() && packets.len() > 3, "{packets:?}");
    let compared = compare(&settings_by_packet(), &frames, talk.link(), &[]);
    assert!(compared.is_ok(), "{compared:?}");
}

#[test]
fn the_comparison_sees_a_row_that_is_missing() {
    let mut talk = Conversation::v4(40_000);
    tell(
        &mut talk,
        &[Exchange::get("/", 10), Exchange::get("/b", 10)],
    );
    let frames = talk.frames();
    let one = run_one(&settings_by_packet(), &frames, talk.link());
    let without_last = Pieces::cut(&frames[..frames.len() - 1], talk.link(), &[]);
    assert!(compare_pieces(&settings_by_packet(), &one, &without_last).is_err());
}
