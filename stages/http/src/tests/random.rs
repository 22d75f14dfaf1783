//! Random exchanges, and what a network does to a conversation, as strategies of proptest.

use linkweir_wire::SeqNumber;
use proptest::prelude::*;
use proptest::sample::Index;

use linkweir_testkit::conversation::{Conversation, Segment};
use linkweir_testkit::script::{Exchange, Framing};

/// A random exchange.
pub(crate) fn exchange() -> impl Strategy<Value = Exchange> {
    let method = prop_oneof![
        6 => Just("GET"),
        2 => Just("HEAD"),
        2 => Just("POST"),
        1 => Just("PURGE"),
    ];
    let status = prop_oneof![6 => Just(200), 1 => Just(204), 1 => Just(304), 1 => Just(404)];
    let framing = prop_oneof![3 => Just(Framing::Length), 1 => Just(Framing::Chunked)];
    (
        (method, "/[a-z0-9/?=&]{0,60}", "[a-z]{1,12}[.]test"),
        (0_usize..300, status, 0_usize..4000, framing),
        (
            proptest::bool::weighted(0.15),
            proptest::bool::weighted(0.3),
        ),
    )
        .prop_map(
            |((method, target, host), (upload, status, body, framing), (interim, pipelined))| {
                Exchange {
                    upload: if method == "POST" { upload } else { 0 },
                    // What a chunked body measures is known only where one segment holds all of it.
                    body: if framing == Framing::Chunked {
                        body % 400
                    } else {
                        body
                    },
                    method,
                    target,
                    host,
                    status,
                    framing,
                    interim,
                    pipelined,
                    ..Exchange::get("/", 0)
                }
            },
        )
}

/// What the network does to a conversation.
#[derive(Debug, Clone)]
pub(crate) enum Mishap {
    /// A segment is lost.
    Loss(Index),
    /// A segment comes twice, so many nanoseconds apart.
    Repetition(Index, u64),
    /// A segment comes later by so many nanoseconds.
    Delay(Index, u64),
    /// A segment comes again together with the next bytes, cut differently (RFC 9293 sec. 3.8.1).
    Repacketized(Index),
}

/// A random mishap.
pub(crate) fn mishap() -> impl Strategy<Value = Mishap> {
    let segment = any::<Index>;
    prop_oneof![
        segment().prop_map(Mishap::Loss),
        (segment(), 0_u64..20_000_000).prop_map(|(at, ns)| Mishap::Repetition(at, ns)),
        (segment(), 0_u64..20_000_000).prop_map(|(at, ns)| Mishap::Delay(at, ns)),
        segment().prop_map(Mishap::Repacketized),
    ]
}

/// Lets mishaps happen.
pub(crate) fn suffer(talk: &mut Conversation, mishaps: &[Mishap]) {
    suffer_where(talk, mishaps, |_, _| true);
}

/// Lets mishaps happen to the segments to which they may.
pub(crate) fn suffer_where(
    talk: &mut Conversation,
    mishaps: &[Mishap],
    may: impl Fn(&Mishap, &Segment) -> bool,
) {
    for mishap in mishaps {
        let (Mishap::Loss(at)
        | Mishap::Repetition(at, _)
        | Mishap::Delay(at, _)
        | Mishap::Repacketized(at)) = mishap;
        let count = talk.segments().len();
        let hit = (count > 0).then(|| talk.segments().get(at.index(count)));
        if !hit.flatten().is_some_and(|segment| may(mishap, segment)) {
            continue;
        }
        match mishap {
            Mishap::Loss(at) => {
                talk.lose(at.index(count));
            }
            Mishap::Repetition(at, ns) => {
                talk.repeat(at.index(count), *ns);
            }
            Mishap::Delay(at, ns) => {
                talk.delay(at.index(count), *ns);
            }
            Mishap::Repacketized(at) => {
                let again = repacketized(talk.segments(), at.index(count));
                talk.segments_mut().extend(again);
            }
        }
    }
}

/// The bytes of a segment from its middle on, joined with those of the next of that side.
fn repacketized(segments: &[Segment], at: usize) -> Option<Segment> {
    let first = segments.get(at)?;
    let middle = first.payload.len() / 2;
    let mut joined = first.clone();
    joined.payload.drain(..middle);
    joined.seq = SeqNumber(first.seq.0.wrapping_add(u32::try_from(middle).ok()?));
    let end = first
        .seq
        .0
        .wrapping_add(u32::try_from(first.payload.len()).ok()?);
    if let Some(next) = segments
        .iter()
        .find(|s| s.from == first.from && s.seq.0 == end)
    {
        joined.payload.extend_from_slice(&next.payload);
        // Who sends it acknowledges what it has by then (RFC 9293 sec. 3.4).
        joined.ack = next.ack;
        joined.at_ns = joined.at_ns.max(next.at_ns);
    }
    joined.at_ns += 500_000;
    (!joined.payload.is_empty()).then_some(joined)
}
