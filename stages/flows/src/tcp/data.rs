//! The sequence space that a segment takes: in order, after a gap, or seen before.

use linkweir_record::flow::Anomaly;
use linkweir_wire::TcpFlags;

use super::classify::{Behind, Case, Found, PathRtt, by_evidence, by_published_rules};
use linkweir_table::NONE;

use super::direction::{Direction, flag};
use super::extras::Recent;
use super::extras::{MAX_SEGMENTS, Segment};
use super::{Arrival, IMPOSSIBLE, Outcome, Pools, before, later, mark};
use crate::config::Classifier;

/// A window that says nothing of what may be lost by a capture: 1 MiB.
const SMALLEST_WINDOW: u32 = 1 << 20;

/// Takes the sequence space of a segment with payload, SYN or FIN. Returns whether it was out of
/// sequence: what it holds was seen before, or should have come before what was seen.
#[inline]
pub(super) fn on_data(
    me: &mut Direction,
    peer: &mut Direction,
    arrival: &Arrival<'_>,
    tsval: Option<u32>,
    pools: &mut Pools,
    outcome: &mut Outcome,
) -> bool {
    let tcp = arrival.tcp;
    let flags = tcp.flags();
    let start = tcp.seq().0;
    let end = start.wrapping_add(tcp.sequence_len());
    let segment = Segment {
        time: arrival.now,
        start,
        end,
        tsval: tsval.unwrap_or(0),
        ip_id: arrival.ip_id.unwrap_or(0),
        class: 0,
        was_sent_again: false,
    };
    if !me.has(flag::STARTED) {
        me.flags |= flag::STARTED;
        me.next = end;
        if !me.has(flag::SYN) {
            // Met in the middle: the lowest number seen is what there is.
            me.isn = start;
        }
        if !me.has(flag::ACKED) || before(start, me.una) {
            me.una = start;
        }
    } else if start == me.next {
        me.next = end;
    } else if before(me.next, start) {
        let gap = start.wrapping_sub(me.next);
        if gap > furthest(me, peer) {
            pools.impossible += 1;
            return true;
        }
        outcome.lost = gap;
        me.next = end;
        pools.miss(me, gap);
    } else {
        return on_old(me, peer, arrival, &segment, pools, outcome);
    }
    outcome.fresh = tcp.payload_len;
    if flags.contains(TcpFlags::FIN) {
        me.flags |= flag::FIN;
    }
    append(me, &segment, pools);
    false
}

/// How far ahead of what was sent a segment can be: what the receiver's largest window allows, and
/// as much again for packets that the capture missed. Where no window is known, anything but absurd.
fn furthest(me: &Direction, peer: &Direction) -> u32 {
    if peer.win_max == 0 || !me.has(flag::SYN) || !peer.has(flag::SYN) {
        return IMPOSSIBLE;
    }
    peer.win_max
        .max(SMALLEST_WINDOW)
        .saturating_mul(16)
        .min(IMPOSSIBLE)
}

/// Puts a segment behind all others in flight.
#[inline]
fn append(me: &mut Direction, segment: &Segment, pools: &mut Pools) {
    if !me.has_outstanding() && me.set_one_segment(segment) {
        return;
    }
    append_to_list(me, segment, pools);
}

fn append_to_list(me: &mut Direction, segment: &Segment, pools: &mut Pools) {
    make_list(me, pools);
    if let Some(list) = pools.lists.get_mut(me.list) {
        if list.0.len() >= MAX_SEGMENTS {
            list.0.pop_front();
            pools.forgotten += 1;
        }
        list.0.push_back(*segment);
    }
}

/// Moves the one segment into a list, where there is none yet.
fn make_list(me: &mut Direction, pools: &mut Pools) {
    if me.list != NONE {
        return;
    }
    me.list = pools.lists.take().unwrap_or(NONE);
    if let (Some(one), Some(list)) = (me.one_segment(), pools.lists.get_mut(me.list)) {
        list.0.push_back(one);
    }
    me.clear_one_segment();
}

/// What of a segment that begins before `next` was seen.
struct Coverage {
    /// Bytes of sequence space that were seen before.
    seen: u32,
    /// Bytes that were not, before `next`.
    filled: u32,
    /// What was there where it begins.
    found: Found,
    /// Class plus one of the segment before.
    class_before: u8,
}

/// A segment that begins before the highest number sent.
#[cold]
fn on_old(
    me: &mut Direction,
    peer: &mut Direction,
    arrival: &Arrival<'_>,
    segment: &Segment,
    pools: &mut Pools,
    outcome: &mut Outcome,
) -> bool {
    let tcp = arrival.tcp;
    let flags = tcp.flags();
    let is_syn = flags.contains(TcpFlags::SYN);
    let Segment { start, end, .. } = *segment;
    if me.next.wrapping_sub(start) > IMPOSSIBLE {
        pools.impossible += 1;
        return true;
    }
    let was_next = me.next;
    let is_tail = !before(end, was_next);
    make_list(me, pools);
    let covered = cover(me, segment, pools);
    let is_acked = me.has(flag::ACKED) && before(start, me.una);
    let rtt = PathRtt::of(me, peer);
    let extras = pools.extras.get(me.extras);
    let was_asked = (start == me.una && me.dup_acks >= 3)
        || extras.is_some_and(|extras| extras.was_asked && extras.asked == start);
    // From here to the sender and back: no answer to what passed here comes sooner.
    let heard_since = peer.rtt_min;
    let case = Case {
        now: arrival.now,
        len: end.wrapping_sub(start),
        found: covered.found,
        is_acked,
        class_before: covered.class_before,
        was_asked,
        was_heard: was_asked
            && extras
                .is_none_or(|extras| heard_since <= arrival.now.saturating_sub(extras.asked_at)),
        is_partial: extras.is_some_and(|extras| {
            extras.is_recovering && start == me.una && before(start, extras.recover)
        }),
        is_sacked_above: extras.is_some_and(|extras| {
            extras.was_sacked
                && heard_since <= arrival.now.saturating_sub(extras.sacked_at)
                && (before(end, extras.sacked) || extras.sacked == end && covered.filled > 0)
        }),
        is_window_closed: peer.window == 0,
        has_both_syns: me.has(flag::SYN) && peer.has(flag::SYN),
        is_tail,
        is_keep_alive: end == was_next
            && end.wrapping_sub(start) <= 1
            && me.has(flag::ACKED)
            && me.una == was_next
            && !flags.contains(TcpFlags::FIN),
        is_syn,
        tsval: (segment.tsval != 0).then_some(segment.tsval),
        newest_tsval: me.tsval,
        ip_id: Some(segment.ip_id).filter(|id| *id != 0),
        raw_ip_id: arrival.ip_id,
        last: extras.map_or((u64::MAX, 0), |extras| {
            (
                arrival.now.saturating_sub(extras.last_time),
                extras.last_class,
            )
        }),
        rtt,
    };
    let (class, evidence) = match pools.classifier {
        Classifier::Evidence => by_evidence(&case),
        Classifier::Tstat => by_published_rules(&case),
    };
    if !is_syn {
        outcome.evidence |= evidence;
    }
    let number = class as u8 + 1;

    let rest = if before(was_next, end) {
        end.wrapping_sub(was_next)
    } else {
        0
    };
    if covered.seen > 0 && tcp.payload_len > 0 && !is_syn {
        pools.marks |= mark::RETRANSMISSION;
    }
    count(me, arrival, segment, &covered, class, pools);
    insert(me, segment, number, was_next, pools);
    if rest > 0 {
        // What lies behind all that was sent is in order.
        me.next = end;
        outcome.fresh = rest.min(tcp.payload_len);
        if flags.contains(TcpFlags::FIN) {
            me.flags |= flag::FIN;
            outcome.fresh = outcome.fresh.saturating_sub(1);
        }
        outcome.known = tcp.payload_len - outcome.fresh;
    }
    if me.list != NONE
        && pools
            .lists
            .get(me.list)
            .is_some_and(|list| list.0.is_empty())
    {
        pools.release_list(me);
    }
    true
}

/// Finds out what of a segment was seen; ranges that were acknowledged unseen are filled by it.
fn cover(me: &mut Direction, segment: &Segment, pools: &mut Pools) -> Coverage {
    let Segment { start, end, .. } = *segment;
    let to = if before(me.next, end) { me.next } else { end };
    let una = if me.has(flag::ACKED) { me.una } else { start };
    let acked_end = if before(una, to) { una } else { to };
    let below_all = lower_base(me, start, to, pools);
    let start = start.wrapping_add(below_all);
    let acked_end = later(acked_end, start);
    let mut covered = Coverage {
        seen: 0,
        filled: below_all,
        found: Found::Hole {
            before: None,
            behind: None,
        },
        class_before: 0,
    };
    let acked = Found::Copy {
        time: me.acked_time,
        ip_id: me.acked_ip_id,
        tsval: None,
        was_sent_again: false,
    };
    if before(start, acked_end) {
        let below = acked_end.wrapping_sub(start);
        let extras = pools.extras.get_mut(me.extras);
        let filled = extras.map_or(0, |extras| extras.fill_holes(start, acked_end));
        covered.filled += filled;
        covered.seen = below.saturating_sub(filled);
        covered.class_before = me.acked_class;
        covered.found = if filled < below {
            acked
        } else {
            Found::Hole {
                before: Some(me.acked_time),
                behind: None,
            }
        };
    }
    let is_open = !before(start, acked_end);
    let Some(list) = pools.lists.get(me.list) else {
        return covered;
    };
    let from = later(start, acked_end);
    let at = list.first_after(from);
    if is_open {
        let ahead = at.checked_sub(1).and_then(|at| list.0.get(at));
        let stamp = |one: &Segment| (one.tsval != 0).then_some(one.tsval);
        covered.class_before = ahead.map_or(me.acked_class, |one| one.class);
        covered.found = match list.0.get(at) {
            Some(copy) if !before(start, copy.start) => Found::Copy {
                time: copy.time,
                ip_id: copy.ip_id,
                tsval: stamp(copy),
                was_sent_again: copy.was_sent_again,
            },
            behind => Found::Hole {
                before: ahead
                    .map(|one| one.time)
                    .or_else(|| (me.acked_time != 0).then_some(me.acked_time)),
                behind: behind.map(|one| Behind {
                    time: one.time,
                    tsval: stamp(one),
                    ip_id: one.ip_id,
                }),
            },
        };
    }
    let mut cursor = from;
    for one in list.0.iter().skip(at) {
        if !before(one.start, to) {
            break;
        }
        let (first, last) = (
            later(cursor, one.start),
            if before(to, one.end) { to } else { one.end },
        );
        covered.filled += first.wrapping_sub(cursor);
        covered.seen += last.wrapping_sub(first);
        cursor = last;
    }
    if before(cursor, to) {
        covered.filled += to.wrapping_sub(cursor);
    }
    covered
}

/// Bytes in front of the lowest number seen of a flow that was met in the middle: they are new, and
/// the lowest number goes down to theirs.
fn lower_base(me: &mut Direction, start: u32, to: u32, pools: &mut Pools) -> u32 {
    if me.has(flag::SYN) || !before(start, me.isn) {
        return 0;
    }
    let base = std::mem::replace(&mut me.isn, start);
    let end = if before(to, base) { to } else { base };
    // What of it is there, `count` takes off again.
    pools.miss(me, base.wrapping_sub(start));
    if before(end, base)
        && let Some(extras) = pools.extras_of(me)
    {
        extras.add_hole(end, base);
    }
    end.wrapping_sub(start)
}

/// Counts a segment out of sequence.
fn count(
    me: &mut Direction,
    arrival: &Arrival<'_>,
    segment: &Segment,
    covered: &Coverage,
    class: Anomaly,
    pools: &mut Pools,
) {
    let flags = arrival.tcp.flags();
    let payload = arrival.tcp.payload_len;
    let first_fin = flags.contains(TcpFlags::FIN) && me.fin <= 1;
    // The published rules do not look back at what they decided.
    let may_be_corrected = pools.classifier == Classifier::Evidence;
    let sent = me.next;
    let Some(extras) = pools.extras_of(me) else {
        return;
    };
    extras.missed = extras.missed.saturating_sub(u64::from(covered.filled));
    if covered.seen > 0 {
        extras.pkts_retx += 1;
        let mut bytes = covered.seen;
        // SYN and FIN are no bytes.
        if flags.contains(TcpFlags::SYN) {
            bytes = bytes.saturating_sub(1);
        }
        if flags.contains(TcpFlags::FIN) && !first_fin {
            bytes = bytes.saturating_sub(1);
        }
        extras.bytes_retx += u64::from(bytes.min(payload));
    }
    if covered.filled > 0 && covered.seen == 0 {
        extras.pkts_ooo += 1;
    }
    if flags.contains(TcpFlags::SYN) {
        // Counted apart: what a connection needs to be opened says nothing of the path in use.
        extras.syn_retx += 1;
        return;
    }
    extras.note_again(segment.start, segment.time);
    extras.count(class);
    if class == Anomaly::FastRetransmit
        && (!extras.is_recovering || !before(segment.start, extras.recover))
    {
        extras.recover = sent;
        extras.is_recovering = true;
    } else if class == Anomaly::Rto {
        extras.is_recovering = false;
    }
    extras.last_class = class as u8 + 1;
    extras.last_time = segment.time;
    if may_be_corrected && matches!(class, Anomaly::Rto | Anomaly::FastRetransmit) {
        extras.remember(Recent {
            start: segment.start,
            end: segment.end,
            tsval: segment.tsval,
            class: class as u8 + 1,
            is_pending: true,
        });
    }
}

/// Marks the copies in flight and puts what is new among them.
fn insert(me: &Direction, segment: &Segment, number: u8, was_next: u32, pools: &mut Pools) {
    let Some(list) = pools.lists.get_mut(me.list) else {
        return;
    };
    let una = if me.has(flag::ACKED) {
        later(me.una, segment.start)
    } else {
        segment.start
    };
    let mut cursor = una;
    let mut at = list.first_after(cursor);
    while before(cursor, segment.end) {
        match list.0.get_mut(at) {
            Some(one) if !before(cursor, one.start) => {
                one.was_sent_again = true;
                one.time = segment.time;
                one.tsval = segment.tsval;
                one.ip_id = segment.ip_id;
                one.class = number;
                cursor = one.end;
                at += 1;
            }
            behind => {
                let piece_end = match behind {
                    Some(one) if before(one.start, segment.end) => one.start,
                    _ => segment.end,
                };
                if list.0.len() >= MAX_SEGMENTS {
                    pools.forgotten += 1;
                    return;
                }
                let piece = Segment {
                    start: cursor,
                    end: piece_end,
                    // New bytes behind all others are in order.
                    class: if before(cursor, was_next) { number } else { 0 },
                    ..*segment
                };
                list.0.insert(at, piece);
                cursor = piece_end;
                at += 1;
            }
        }
    }
}
