//! What holds for every conversation, whatever the network does to it.

use linkweir_record::HttpState;
use linkweir_testkit::conversation::{Conversation, Side};
use linkweir_testkit::script::{Exchange, Expected, Framing, tell};
use linkweir_wire::LinkType;
use proptest::collection::vec;
use proptest::prelude::*;

use super::lossy_pipelines::told;
use super::random::{Mishap, exchange, mishap, suffer, suffer_where};
use super::support::{Record, observe_in, together};
use crate::HttpConfig;

fn talk(port: u16, numbers: (u32, u32), mss: usize, offset_ns: u64) -> Conversation {
    Conversation::v4(port)
        .numbered(numbers.0, numbers.1)
        .mss(mss)
        .starting_at(Conversation::START_NS + offset_ns)
}

fn check(record: &Record, expected: &Expected) -> Result<(), TestCaseError> {
    let said = &expected.exchange;
    prop_assert_eq!(record.row.state, HttpState::Complete);
    prop_assert_eq!(&record.method, said.method);
    prop_assert_eq!(&record.uri, &said.target);
    prop_assert_eq!(&record.host, &said.host);
    prop_assert_eq!(&record.user_agent, &said.agent);
    prop_assert_eq!(record.row.status_code, Some(said.status));
    prop_assert_eq!(record.row.request_ts_ns, Some(expected.request_ns));
    prop_assert_eq!(record.row.response_ts_ns, Some(expected.response_ns));
    prop_assert_eq!(record.row.request_bytes, Some(said.request().len() as u64));
    prop_assert_eq!(record.row.interim_responses, u16::from(said.interim));
    if said.framing == Framing::Length || said.is_bodiless() {
        prop_assert_eq!(
            record.row.response_bytes,
            Some(said.response().len() as u64)
        );
    }
    Ok(())
}

fn any_config() -> impl Strategy<Value = HttpConfig> {
    (
        any::<bool>(),
        any::<bool>(),
        prop_oneof![Just(16_usize), Just(1000)],
    )
        .prop_map(|(ttlb, keep_duplicates, max_pending)| HttpConfig {
            ttlb,
            keep_duplicates,
            max_pending,
            ..HttpConfig::default()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Nothing lost: the records are the script.
    #[test]
    fn an_undisturbed_capture_gives_the_script(
        exchanges in vec(exchange(), 1..12),
        numbers in any::<(u32, u32)>(),
        mss in prop_oneof![Just(536_usize), Just(1460), Just(9000)],
        sizes in vec(1_usize..9, 0..4),
        ttlb in any::<bool>(),
    ) {
        let mut talk = talk(40_000, numbers, mss, 0);
        talk.handshake();
        let expected = tell(&mut talk, &exchanges);
        talk.fin(Side::Client).fin(Side::Server);
        let config = HttpConfig { ttlb, ..HttpConfig::default() };
        let outcome = observe_in(&config, &talk.frames(), talk.link(), &sizes);
        let mut records = outcome.records;
        records.sort_by_key(|r| (r.row.response_ts_ns, r.row.request_ts_ns));
        prop_assert_eq!(records.len(), expected.len());
        for (record, expected) in records.iter().zip(&expected) {
            check(record, expected)?;
            if ttlb {
                let ttlb = expected.last_ns - expected.request_ns;
                prop_assert_eq!(record.row.ttlb_ns, Some(ttlb), "{:?}", expected);
            }
        }
        let interim = exchanges.iter().filter(|e| e.interim).count() as u64;
        prop_assert_eq!(outcome.stats.interim_responses, interim);
        prop_assert_eq!(outcome.stats.retransmitted_requests, 0);
        prop_assert_eq!(outcome.stats.truncated_heads, 0);
        prop_assert_eq!(outcome.stats.table_full, 0);
    }

    /// Both streams cut anywhere, in one pipeline: still the script.
    #[test]
    fn streams_may_be_cut_anywhere(
        bodies in vec(0_usize..700, 1..8),
        cuts in (vec(0_usize..1000, 0..8), vec(0_usize..4000, 0..8)),
        numbers in any::<(u32, u32)>(),
    ) {
        let exchanges: Vec<Exchange> = bodies
            .iter()
            .enumerate()
            .map(|(n, body)| Exchange::get(format!("/{n}"), *body))
            .collect();
        let (mut asked, mut answered) = cuts;
        asked.sort_unstable();
        answered.sort_unstable();
        let mut talk = talk(40_000, numbers, 1460, 0);
        let requests: Vec<u8> = exchanges.iter().flat_map(Exchange::request).collect();
        let responses: Vec<u8> = exchanges.iter().flat_map(Exchange::response).collect();
        talk.sends(Side::Client, &requests, &asked).sends(Side::Server, &responses, &answered);
        let outcome = observe_in(&HttpConfig::default(), &talk.frames(), talk.link(), &[]);
        let targets: Vec<_> = outcome.records.iter().map(|r| r.uri.clone()).collect();
        let expected: Vec<_> = exchanges.iter().map(|e| e.target.clone()).collect();
        prop_assert_eq!(targets, expected);
        prop_assert_eq!(outcome.stats.transactions, exchanges.len() as u64);
    }

    /// Repetitions that come soon change no record and no count of messages.
    #[test]
    fn prompt_repetitions_are_recognised(
        exchanges in vec(exchange(), 1..10),
        again in vec((any::<prop::sample::Index>(), 0_u64..1_400_000), 1..6),
    ) {
        let mut talk = talk(40_000, (77, 88), 1460, 0);
        tell(&mut talk, &exchanges);
        let config = HttpConfig::default();
        let expected = observe_in(&config, &talk.frames(), talk.link(), &[]);
        let count = talk.segments().len();
        for (at, ns) in &again {
            talk.repeat(at.index(count), *ns);
        }
        let outcome = observe_in(&config, &talk.frames(), talk.link(), &[]);
        let plain = |records: &[Record]| {
            let mut records = records.to_vec();
            records.iter_mut().for_each(|r| r.row.retransmissions = 0);
            records.sort_by_key(|r| (r.row.request_ts_ns, r.row.response_ts_ns));
            records
        };
        prop_assert_eq!(plain(&outcome.records), plain(&expected.records));
        prop_assert_eq!(outcome.stats.requests, expected.stats.requests);
        prop_assert_eq!(outcome.stats.responses, expected.stats.responses);
    }

    /// Loss, repetition, delay, repacketisation on several connections: the counters add up (this
    /// is checked in every run), nothing is invented, and batches may be cut anywhere.
    #[test]
    fn whatever_happens_the_counters_add_up(
        talks in vec((vec(exchange(), 1..8), vec(mishap(), 0..8), 0_u64..3_000_000), 1..4),
        mss in prop_oneof![Just(60_usize), Just(536), Just(1460)],
        config in any_config(),
        sizes in vec(1_usize..9, 1..4),
    ) {
        let told: Vec<Conversation> = talks
            .iter()
            .zip(40_000..)
            .map(|((exchanges, mishaps, offset), port)| {
                let mut talk = talk(port, (u32::MAX - 100, u32::MAX - 900), mss, *offset);
                tell(&mut talk, exchanges);
                suffer(&mut talk, mishaps);
                talk
            })
            .collect();
        let frames = together(&told);
        let outcome = observe_in(&config, &frames, LinkType::ETHERNET, &sizes);
        let whole = observe_in(&config, &frames, LinkType::ETHERNET, &[]);
        prop_assert_eq!(&outcome.records, &whole.records);
        let stats = &outcome.stats;
        let repeats = talks.iter().flat_map(|(_, m, _)| m).filter(|m| !matches!(m, Mishap::Loss(_)));
        let sent = talks.iter().map(|(e, ..)| e.len()).sum::<usize>() + repeats.count() * 12;
        prop_assert!(stats.requests <= sent as u64, "{:?}", stats);
        for record in &outcome.records {
            let (exchanges, ..) = &talks[usize::from(record.row.client_port - 40_000)];
            let known = record.uri.is_empty()
                || exchanges.iter().any(|e| e.target.starts_with(&record.uri));
            prop_assert!(known, "{:?}", record);
        }
    }

    /// Frames of any bytes: no panic.
    #[test]
    fn any_bytes(
        payloads in vec((any::<bool>(), vec(any::<u8>(), 0..200)), 1..20),
        heads in vec("(GET|HTTP/1.1 200|POST|HTTP/1.) ?[ -~\r\n]{0,80}", 1..20),
    ) {
        let mut talk = talk(40_000, (1, 1), 50, 0);
        for ((by_client, payload), head) in payloads.iter().zip(&heads) {
            if *by_client {
                talk.client_sends(payload).server_sends(head);
            } else {
                talk.client_sends(head).server_sends(payload);
            }
        }
        let config = HttpConfig { ttlb: true, ..HttpConfig::default() };
        observe_in(&config, &talk.frames(), talk.link(), &[3]);
    }
}

/// Exchanges whose answers say which they are: target `/0007` is answered with 407.
fn numbered(shapes: &[(usize, bool, bool, bool)]) -> Vec<Exchange> {
    (0..)
        .zip(shapes)
        .map(|(n, (body, pipelined, interim, chunked))| Exchange {
            status: 400 + n,
            pipelined: *pipelined,
            interim: *interim,
            framing: if *chunked {
                Framing::Chunked
            } else {
                Framing::Length
            },
            ..Exchange::get(format!("/{n:04}"), *body)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever is lost, repeated, delayed or evicted: what is paired belongs together. But for
    /// pipelined requests that are not seen in time, or again when they are forgotten: nothing in
    /// them tells where they stood.
    #[test]
    fn no_pair_is_ever_wrong(
        shapes in vec((0_usize..900, proptest::bool::weighted(0.3), proptest::bool::weighted(0.2), proptest::bool::weighted(0.2)), 1..30),
        may_pipeline in any::<bool>(),
        mishaps in vec(mishap(), 0..8),
        mss in prop_oneof![Just(100_usize), Just(536), Just(1460)],
        numbers in any::<(u32, u32)>(),
        config in any_config(),
    ) {
        let mut talk = talk(40_000, numbers, mss, 0);
        let mut exchanges = numbered(&shapes);
        exchanges.iter_mut().for_each(|e| e.pipelined &= may_pipeline);
        tell(&mut talk, &exchanges);
        let is_pipelined = exchanges.iter().any(|e| e.pipelined);
        suffer_where(&mut talk, &mishaps, |_, segment| !is_pipelined || segment.from == Side::Server);
        let outcome = observe_in(&config, &talk.frames(), talk.link(), &[]);
        for record in outcome.records.iter().filter(|r| r.row.state == HttpState::Complete) {
            let Some(number) = record.uri.get(1..5) else {
                continue;
            };
            let code = record.row.status_code.map(|code| format!("{:04}", code - 400));
            prop_assert_eq!(code.as_deref(), Some(number), "{:?}\n{}", outcome.short(), told(&talk));
        }
    }

    /// Without pipelines a loss costs the exchange it happens to and no other; what comes twice costs
    /// nothing, nor what comes late, unless both halves come when later exchanges are over: nothing
    /// tells them from repeated ones then. (Of interim responses that overtake their request only the last few are
    /// remembered: none here.)
    #[test]
    fn a_loss_costs_one_exchange(
        shapes in vec((0_usize..900, Just(false), Just(false), any::<bool>()), 1..20),
        mishaps in vec(mishap(), 0..8),
        mss in prop_oneof![Just(60_usize), Just(536), Just(1460)],
        numbers in any::<(u32, u32)>(),
    ) {
        let mut talk = talk(40_000, numbers, mss, 0);
        tell(&mut talk, &numbered(&shapes));
        suffer(&mut talk, &mishaps);
        let outcome = observe_in(&HttpConfig::default(), &talk.frames(), talk.link(), &[]);
        let losses = mishaps.iter().filter(|m| matches!(m, Mishap::Loss(_))).count();
        let delays = mishaps.iter().filter(|m| matches!(m, Mishap::Delay(..))).count();
        let least = shapes.len().saturating_sub(losses + delays / 2) as u64;
        prop_assert!(outcome.stats.transactions >= least, "{:?}", outcome.short());
    }
}
