//! The cases.

use super::options::Options;
use super::telling::{FULL, MS, Seen, Telling};
use super::{Case, Classified};
use crate::conversation::Side;
use linkweir_record::flow::Anomaly::{
    FastRetransmit, FlowControl, NetworkDuplicate, Reordering, Rto, TailLossProbe, Unknown,
    UnnecessaryFastRetransmit, UnnecessaryRto,
};

const FULL_I: i64 = FULL as i64;

/// Nanoseconds between two cases: no case lasts so long.
const APART_NS: u64 = 20_000_000_000;

/// Every case for one set of parameters: the first begins at `start_ns`, the others after each
/// other, on rising client ports from `port` on.
#[must_use]
pub fn all(options: Options, port: u16, start_ns: u64) -> Vec<Case> {
    let tellings = [
        timers(options),
        fast(options),
        network(options),
        unnecessary(options),
        probes(options),
        handshakes(options),
        one_way(options),
    ];
    let tellings = tellings.into_iter().flatten();
    let places = (port..).zip((0..).map(|index| start_ns + index * APART_NS));
    tellings
        .zip(places)
        .map(|(mut telling, (port, at))| telling.told(port, at))
        .collect()
}

/// Nothing happens, or the retransmission timer runs out.
fn timers(options: Options) -> Vec<Telling> {
    let tell = |name| Telling::new(name, options);

    let mut clean = tell("clean");
    clean.full(0, 0).full(20 * MS, FULL_I);

    let mut delayed = tell("delayed ack");
    delayed.delays_acks(40 * MS);
    delayed
        .full(0, 0)
        .full(100 * MS, FULL_I)
        .full(100_500, 2 * FULL_I);

    let mut seen = tell("rto, original seen");
    seen.full(0, 0).lost();
    seen.full(400 * MS, 0).is(Rto).tstat_seen(Rto);

    let mut hole = tell("rto, original lost before");
    hole.full(0, FULL_I);
    hole.full(400 * MS, 0).is(Rto);

    let mut backoff = tell("rto three times");
    backoff.full(0, 0).lost();
    for at in [300, 900] {
        backoff.full(at * MS, 0).lost().is(Rto).tstat_seen(Rto);
    }
    backoff.full(2_100 * MS, 0).is(Rto).tstat_seen(Rto);

    let mut overlap = tell("rto with new data");
    overlap.full(0, 0).lost();
    overlap.data(400 * MS, 0, 1_500).is(Rto).tstat_seen(Rto);

    // The probe of the tail is lost too; then the timer: both once more, in slow start.
    let mut tail = tell("tail loss, probe, rto");
    tail.full(0, 0).lost().full(100, FULL_I).lost();
    tail.full(45 * MS, FULL_I).lost();
    tail.is(TailLossProbe).tstat_seen(Unknown);
    tail.full(300 * MS, 0).is(Rto).tstat_seen(Rto);
    tail.full(320 * MS, FULL_I).is(Rto).tstat_seen(Rto);

    vec![clean, delayed, seen, hole, backoff, overlap, tail]
}

/// Fast retransmissions.
fn fast(options: Options) -> Vec<Telling> {
    let tell = |name| Telling::new(name, options);
    let four_more = |telling: &mut Telling| {
        for segment in 1..=4_u32 {
            let at = u64::from(segment) * 500;
            telling.full(at, i64::from(segment) * FULL_I);
        }
    };

    let mut seen = tell("fast retransmit, original seen");
    seen.full(0, 0).lost();
    four_more(&mut seen);
    seen.full(30 * MS, 0);
    seen.is(FastRetransmit).tstat_seen(FastRetransmit);

    let mut hole = tell("fast retransmit, original lost before");
    four_more(&mut hole);
    hole.full(30 * MS, 0).is(FastRetransmit);

    // Without SACK one hole per round trip is filled (RFC 6582), with it all at once (RFC 6675).
    let mut burst = tell("three lost, partial acks");
    for segment in 0..3_u32 {
        let at = u64::from(segment) * 500;
        burst.full(at, i64::from(segment) * FULL_I).lost();
    }
    for segment in 3..=6_u32 {
        let at = u64::from(segment) * 500;
        burst.full(at, i64::from(segment) * FULL_I);
    }
    for segment in 0..3_u32 {
        let between = if options.sack { 100 } else { 20 * MS };
        let at = 30 * MS + u64::from(segment) * between;
        burst.full(at, i64::from(segment) * FULL_I);
        burst.is(FastRetransmit);
        burst.tstat_seen(if segment == 0 {
            FastRetransmit
        } else {
            Unknown
        });
    }

    let mut lost = tell("fast retransmission lost, then rto");
    lost.full(0, 0).lost();
    four_more(&mut lost);
    lost.full(30 * MS, 0).lost();
    lost.is(FastRetransmit).tstat_seen(FastRetransmit);
    lost.full(330 * MS, 0).is(Rto).tstat_seen(Rto);

    let mut tellings = vec![seen, hole, burst, lost];
    if options.sack {
        // One selective acknowledgment is enough for RACK (RFC 8985 sec. 6.2).
        let mut rack = tell("rack, one sack");
        rack.full(0, 0).lost().full(100, FULL_I);
        rack.full(26 * MS, 0).is(FastRetransmit).tstat_seen(Unknown);
        tellings.push(rack);
    }
    tellings
}

/// What the network does: exchange and double packets.
fn network(options: Options) -> Vec<Telling> {
    let tell = |name| Telling::new(name, options);
    // On IPv6 there is no identification by which the published rules could tell a copy.
    let copy = |telling: &mut Telling| {
        let is_v4 = options.version == super::Version::V4;
        telling.tstat(if is_v4 { NetworkDuplicate } else { Unknown });
    };

    let mut by_one = tell("reordered by one");
    by_one.full(0, FULL_I);
    by_one.full(300, 0).late(400).is(Reordering);

    let mut by_five = tell("reordered by five");
    for segment in 1..=5_u32 {
        let at = u64::from(segment - 1) * 400;
        by_five.full(at, i64::from(segment) * FULL_I);
    }
    by_five.full(2 * MS, 0).late(2_400).is(Reordering);

    let mut double = tell("doubled");
    double.full(0, 0).doubled(300).is(NetworkDuplicate);
    copy(&mut double);

    // 12 ms: the acknowledgment has passed, but the sender does not have it yet.
    let mut acked = tell("doubled, copy after the ack");
    acked.full(0, 0).doubled(12 * MS).is(NetworkDuplicate);
    acked.or(!options.tells_copies(), &[Some(Unknown)]);
    copy(&mut acked);

    // It comes behind the third duplicate acknowledgment, and was sent before.
    let mut late = tell("reordered behind duplicate acks");
    for segment in 1..=4_u32 {
        let at = u64::from(segment - 1) * 500;
        late.full(at, i64::from(segment) * FULL_I);
    }
    late.full(13 * MS, 0).late(13_400).is(Reordering);
    let others = [FastRetransmit, UnnecessaryFastRetransmit, Unknown].map(Some);
    late.or(!options.timestamps, &others);
    late.tstat(FastRetransmit);
    // And the sender answers those with a retransmission that nobody needs.
    late.full(22 * MS, 0).is(UnnecessaryFastRetransmit);
    let is_shown = options.timestamps || options.sack;
    late.or(!is_shown, &[Some(FastRetransmit), Some(Unknown)]);
    // The copy is less than a mean round trip old, and the one before it no anomaly.
    let is_constant = options.is_constant_id();
    late.tstat(if is_constant {
        NetworkDuplicate
    } else {
        FastRetransmit
    });

    vec![by_one, by_five, double, acked, late]
}

/// Retransmissions that were not needed.
fn unnecessary(options: Options) -> Vec<Telling> {
    let tell = |name| Telling::new(name, options);
    let is_shown = options.timestamps || options.sack;

    let mut rto = tell("unnecessary rto, ack seen");
    rto.full(0, 0).full(400 * MS, 0);
    rto.is(UnnecessaryRto).tstat_seen(UnnecessaryRto);

    // The original is held behind the capture point: acknowledged after the retransmission has
    // passed, with its own timestamp (RFC 3522), and the retransmission as a duplicate (RFC 2883).
    let mut late = tell("unnecessary rto, ack late");
    late.full(0, 0).held(397 * MS).full(400 * MS, 0);
    late.is(UnnecessaryRto).or(!is_shown, &[Some(Rto)]);
    late.tstat_seen(Rto);

    // Reordering behind the capture point: four duplicate acknowledgments, then one for all.
    let mut fast = tell("unnecessary fast retransmit");
    fast.full(0, 0).held(5 * MS);
    for segment in 1..=4_u32 {
        let at = u64::from(segment) * 500;
        fast.full(at, i64::from(segment) * FULL_I);
    }
    fast.full(22 * MS, 0).is(UnnecessaryFastRetransmit);
    let published: &[Classified] = if options.is_constant_id() {
        &[Some(NetworkDuplicate)]
    } else {
        &[Some(UnnecessaryFastRetransmit), Some(Unknown)]
    };
    fast.tstat_one_of(published);

    vec![rto, late, fast]
}

/// Probes of windows, peers and tails.
fn probes(options: Options) -> Vec<Telling> {
    let tell = |name| Telling::new(name, options);

    let mut old_byte = tell("zero window, old byte");
    old_byte.full(0, 0).window(0, 0);
    old_byte.data(300 * MS, FULL_I - 1, 1).is(FlowControl);
    old_byte.window(340 * MS, 60_000).update(350 * MS);

    // The first probe is refused, the second accepted.
    let mut new_byte = tell("zero window, new byte");
    new_byte.full(0, 0).window(0, 0);
    new_byte.data(300 * MS, FULL_I, 1);
    new_byte.data(900 * MS, FULL_I, 1).is(FlowControl);
    new_byte.window(880 * MS, 60_000);
    new_byte.full(930 * MS, FULL_I + 1);

    let mut empty = tell("zero window, empty");
    empty.full(0, 0).window(0, 0);
    empty.empty_old(300 * MS, FULL_I - 1).is_nothing();
    empty.or(true, &[Some(FlowControl)]);
    empty.window(340 * MS, 60_000).update(350 * MS);

    let mut alive = tell("keep-alive, one byte");
    alive.full(0, 0);
    alive.data(5_000 * MS, FULL_I - 1, 1);
    alive.is(FlowControl).tstat_seen(UnnecessaryRto);

    let mut silent = tell("keep-alive, empty");
    silent.full(0, 0);
    silent.empty_old(5_000 * MS, FULL_I - 1).is_nothing();
    silent.or(true, &[Some(FlowControl)]);

    let mut tail = tell("tail loss probe");
    tail.full(0, 0).lost();
    tail.full(45 * MS, 0).is(TailLossProbe).tstat_seen(Unknown);

    let mut of_two = tell("tail loss probe, second of two");
    of_two.full(0, 0).full(100, FULL_I).lost();
    of_two.full(60 * MS, FULL_I);
    of_two.is(TailLossProbe).tstat_seen(Unknown);

    vec![old_byte, new_byte, empty, alive, silent, tail, of_two]
}

/// SYN and FIN.
fn handshakes(options: Options) -> Vec<Telling> {
    // The record has a column for SYNs that come again; they are in no class.
    let again = |name, whose| {
        let mut telling = Telling::with_syn_lost(name, options, whose);
        telling.full(0, 0);
        telling
    };
    let syn = again("syn again", Side::Client);
    let syn_ack = again("syn-ack again", Side::Server);
    let opening = Telling::with_data_on_syn("data on syn", options);
    let mut fin = Telling::new("fin again", options);
    fin.full(0, 0);
    fin.fin(20 * MS, FULL_I).lost();
    fin.fin(420 * MS, FULL_I).is(Rto).tstat_seen(Rto);
    vec![syn, syn_ack, opening, fin]
}

/// Captures of one direction. The published rules want both.
fn one_way(options: Options) -> Vec<Telling> {
    let any = [Some(Rto), Some(FastRetransmit), Some(Unknown)];
    let by_timer = |name, seen| {
        let mut telling = Telling::new(name, options);
        telling.full(0, 0).lost().full(400 * MS, 0);
        telling.sees(seen);
        telling
    };
    let mut data = by_timer("rto, data only", Seen::Sender);
    data.is(Rto).or(true, &any).tstat_one_of(&[]);
    let acks = by_timer("rto, acks only", Seen::Receiver);

    let mut hole = Telling::new("hole filled, data only", options);
    for segment in 1..=4_u32 {
        let at = u64::from(segment) * 500;
        hole.full(at, i64::from(segment) * FULL_I);
    }
    hole.full(30 * MS, 0).sees(Seen::Sender);
    hole.is(FastRetransmit);
    hole.or(true, &any)
        .or(true, &[Some(Reordering)])
        .tstat_one_of(&[]);

    let mut double = Telling::new("doubled, data only", options);
    double.full(0, 0).doubled(300).sees(Seen::Sender);
    double.is(NetworkDuplicate);
    double.or(!options.tells_copies(), &any).tstat_one_of(&[]);

    vec![data, acks, hole, double]
}
