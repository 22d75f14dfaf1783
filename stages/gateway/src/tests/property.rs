use linkweir_engine::effect::Decision;
use linkweir_record::gateway::GatewayEventKind;
use proptest::collection::vec;
use proptest::prelude::{
    Just, ProptestConfig, Strategy, prop, prop_assert, prop_assert_eq, proptest,
};

use super::bed::{Bed, REQUEST, VIRUS, policy, response, scanning};
use crate::inspect::Side;
use crate::policy::Action;

const WINDOW: usize = 300;

/// A body with the virus at an offset, or nowhere.
fn body() -> impl Strategy<Value = (Vec<u8>, bool)> {
    (200..1200_usize, prop::option::of(0..1000_usize)).prop_map(|(len, at)| {
        let mut body: Vec<u8> = (b'a'..=b'w').cycle().take(len).collect();
        let at = at.filter(|at| *at <= len);
        if let Some(at) = at {
            body.splice(at..at, VIRUS.iter().copied());
        }
        (body, at.is_some())
    })
}

/// How a stream is sent: cuts, an order of the pieces, and which come twice.
fn sending() -> impl Strategy<Value = (Vec<usize>, Vec<usize>, Vec<bool>)> {
    (
        vec(1..400_usize, 1..40),
        Just((0..64).collect::<Vec<usize>>()).prop_shuffle(),
        vec(prop::bool::weighted(0.2), 64),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever the segmentation, the order and the repetitions: a clean file arrives byte by byte, an
    /// infected one never whole; each packet is answered once.
    #[test]
    fn a_file_is_clean_or_does_not_arrive(
        (body, is_infected) in body(),
        (cuts, order, twice) in sending(),
        is_scanner_slow in prop::bool::ANY,
        near in 1..6_usize,
    ) {
        let mut bed = Bed::new(policy(Action::Inspect, scanning(WINDOW)));
        bed.open();
        bed.send(Side::Client, 0, REQUEST);
        let answer = response(&body);
        let mut pieces = Vec::new();
        let (mut at, mut cuts) = (0, cuts.iter().cycle());
        while at < answer.len() {
            let len = *cuts.next().expect("a cycle");
            let end = (at + len).min(answer.len());
            pieces.push((at, end));
            at = end;
        }
        // Reordered within a distance, as networks do; at first all of it is tried in any order.
        let mut numbered: Vec<usize> = (0..pieces.len()).collect();
        numbered.sort_by_key(|at| at / near * 64 + order.get(at % 64).copied().unwrap_or(0));
        for at in numbered {
            let (from, to) = pieces[at];
            bed.send(Side::Server, from, &answer[from..to]);
            if twice.get(at % 64) == Some(&true) {
                bed.send(Side::Server, from, &answer[from..to]);
            }
            if !is_scanner_slow {
                bed.scan();
            }
        }
        // What was dropped while too much was held would come again; nothing is: the bounds are far.
        while !bed.due.is_empty() {
            bed.scan();
        }
        prop_assert_eq!(bed.unanswered(), 0);
        let got = bed.at_client.stream();
        prop_assert!(answer.starts_with(&got));
        prop_assert_eq!(bed.events_of(GatewayEventKind::Infected), usize::from(is_infected));
        prop_assert_eq!(bed.events_of(GatewayEventKind::File), 1);
        if is_infected {
            prop_assert!(got.len() < answer.len());
            prop_assert_eq!(bed.decision(), Decision::Reject);
        } else {
            prop_assert_eq!(got.len(), answer.len());
        }
    }

    /// Overlapping segments of any content: bounded, answered, and what passes is what was inspected.
    #[test]
    fn hostile_segments_are_answered(
        segments in vec((0..4000_usize, vec(0..255_u8, 0..300), prop::bool::ANY), 1..80),
    ) {
        let mut bed = Bed::new(policy(Action::Inspect, scanning(WINDOW)));
        bed.open();
        bed.send(Side::Client, 0, REQUEST);
        for (offset, payload, is_server) in &segments {
            let side = if *is_server { Side::Server } else { Side::Client };
            bed.send(side, *offset, payload);
            bed.scan();
        }
        bed.fin(Side::Server, 4000);
        bed.advance(30_000_000_000);
        bed.scan();
        bed.finish();
        prop_assert_eq!(bed.unanswered(), 0);
        prop_assert_eq!(bed.stage.stats().held_packets, 0);
        prop_assert_eq!(bed.stage.stats().held_bytes, 0);
    }
}
