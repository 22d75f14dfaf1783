//! What a segment acknowledges.

use linkweir_record::flow::{Anomaly, Evidence};
use linkweir_wire::tcp::SackBlocks;

use super::classify::class_of;
use linkweir_table::NONE;

use super::direction::{Direction, flag};
use super::extras::Segment;
use super::{IMPOSSIBLE, Pools, before, later, mark};

/// The acknowledging part of a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acknowledgment<'a> {
    /// `SEG.ACK`.
    pub(super) ack: u32,
    /// When, nanoseconds since the epoch.
    pub(super) now: u64,
    /// The announced window, scaled.
    pub(super) window: u32,
    /// `TSecr`, where there are timestamps.
    pub(super) tsecr: Option<u32>,
    /// Selective acknowledgments.
    pub(super) sack: Option<SackBlocks<'a>>,
    /// Whether it is a SYN-ACK: what it acknowledges was seen, or it answers something else.
    pub(super) is_syn: bool,
    /// Whether it is nothing but an acknowledgment.
    pub(super) is_pure: bool,
}

/// `me` acknowledges what `sender` sent. Returns the bits of evidence that corrected a class.
#[inline]
pub(super) fn on_ack(
    me: &mut Direction,
    sender: &mut Direction,
    packet: &Acknowledgment<'_>,
    pools: &mut Pools,
) -> u8 {
    let mut evidence = 0;
    if let Some(blocks) = packet.sack {
        evidence |= on_sack(me, sender, (packet.ack, packet.now), blocks, pools);
    }
    let ack = packet.ack;
    if !sender.has(flag::ACKED) {
        // Data in flight when the capture began is below; a first acknowledgment is the baseline.
        sender.flags |= flag::ACKED;
        if !sender.has(flag::STARTED) {
            sender.una = ack;
            sender.flags |= flag::DATA_ACKED;
            return evidence;
        }
    }
    if !sender.has(flag::DATA_ACKED)
        && (!sender.has(flag::SYN) || ack != sender.isn.wrapping_add(1))
    {
        sender.flags |= flag::DATA_ACKED;
    }
    if before(sender.una, ack) {
        if sender.has(flag::STARTED)
            && before(sender.next, ack)
            && (packet.is_syn || ack.wrapping_sub(sender.next) > IMPOSSIBLE)
        {
            pools.impossible += 1;
            return evidence;
        }
        if sender.extras != NONE {
            evidence |= on_timestamp_echo(sender, packet, pools);
        }
        advance(sender, packet, pools);
    } else if ack == sender.una
        && packet.is_pure
        && sender.has_outstanding()
        && packet.window == me.window
    {
        on_duplicate(me, sender, packet.now, pools);
    }
    evidence
}

/// `SND.UNA` moves on.
#[inline]
fn advance(sender: &mut Direction, packet: &Acknowledgment<'_>, pools: &mut Pools) {
    let ack = packet.ack;
    sender.dup_acks = 0;
    if sender.has(flag::ONE_SEGMENT) {
        if let Some(one) = sender.one_segment()
            && !before(ack, one.end)
        {
            let extras = pools.extras.get(sender.extras);
            let may = extras.is_none_or(|extras| extras.may_sample(one.start, one.time));
            if ack == one.end && !one.was_sent_again && may {
                sender.sample(packet.now.saturating_sub(one.time));
            }
            note_acked(sender, &one);
            sender.clear_one_segment();
            if one.start != sender.una || before(one.end, ack) {
                note_holes(sender, &[one], ack, pools);
            }
        }
    } else if sender.list != NONE {
        advance_list(sender, packet, pools);
    } else if sender.has(flag::STARTED) && before(sender.next, ack) {
        note_holes(sender, &[], ack, pools);
    }
    sender.una = ack;
    if sender.has(flag::STARTED) && before(sender.next, ack) {
        // Acknowledged, but never seen.
        pools.miss(sender, ack.wrapping_sub(sender.next));
        sender.next = ack;
    }
    if sender.has(flag::FIN) && ack == sender.next {
        sender.flags |= flag::CLOSED;
    }
}

fn note_acked(sender: &mut Direction, one: &Segment) {
    if one.time >= sender.acked_time {
        sender.acked_time = one.time;
        sender.acked_ip_id = one.ip_id;
    }
    sender.acked_class = one.class;
}

/// Takes out what is acknowledged. A sample is taken by Karn's rule: the last segment was sent once,
/// and nothing before it was sent after it.
fn advance_list(sender: &mut Direction, packet: &Acknowledgment<'_>, pools: &mut Pools) {
    let ack = packet.ack;
    let Some(list) = pools.lists.get_mut(sender.list) else {
        return;
    };
    let mut newest_before = 0;
    let mut cursor = sender.una;
    let mut holes = [(0, 0); 4];
    let mut hole_count = 0;
    let mut note = |from: u32, to: u32| {
        if before(from, to)
            && let Some(slot) = holes.get_mut(hole_count)
        {
            *slot = (from, to);
            hole_count += 1;
        }
    };
    let mut sample = None;
    let extras = pools.extras.get(sender.extras);
    while let Some(one) = list.0.front().copied() {
        if before(ack, one.end) {
            break;
        }
        list.0.pop_front();
        note(cursor, one.start);
        cursor = one.end;
        if ack == one.end
            && !one.was_sent_again
            && newest_before <= one.time
            && extras.is_none_or(|extras| extras.may_sample(one.start, one.time))
        {
            sample = Some(packet.now.saturating_sub(one.time));
        }
        newest_before = newest_before.max(one.time);
        note_acked(sender, &one);
    }
    // Part of a segment may be acknowledged.
    let reached = list.0.front().map_or(ack, |one| {
        if before(one.start, ack) {
            one.start
        } else {
            ack
        }
    });
    note(cursor, reached);
    if let Some(rtt) = sample {
        sender.sample(rtt);
    }
    if list.0.is_empty() {
        pools.release_list(sender);
    }
    let found = holes;
    if hole_count > 0
        && let Some(extras) = pools.extras_of(sender)
    {
        for (from, to) in found.into_iter().take(hole_count) {
            extras.add_hole(from, to);
        }
        pools.marks |= mark::GAP_OF_PEER;
    }
}

/// Ranges below `ack` that were never seen.
#[cold]
fn note_holes(sender: &mut Direction, seen: &[Segment], ack: u32, pools: &mut Pools) {
    let mut cursor = sender.una;
    let Some(extras) = pools.extras_of(sender) else {
        return;
    };
    for one in seen {
        if before(cursor, one.start) {
            extras.add_hole(cursor, one.start);
        }
        cursor = later(cursor, one.end);
    }
    if before(cursor, ack) {
        extras.add_hole(cursor, ack);
    }
    pools.marks |= mark::GAP_OF_PEER;
}

/// The same acknowledgment once more, while data is outstanding (RFC 5681 sec. 2).
#[cold]
fn on_duplicate(me: &mut Direction, sender: &mut Direction, now: u64, pools: &mut Pools) {
    sender.dup_acks = sender.dup_acks.saturating_add(1);
    if let Some(extras) = pools.extras_of(me) {
        extras.dup_acks += 1;
    }
    if sender.dup_acks == 3 {
        let una = sender.una;
        if let Some(extras) = pools.extras_of(sender) {
            extras.asked = una;
            extras.was_asked = true;
            extras.asked_at = now;
        }
    }
}

/// Selective acknowledgments: what the receiver has, and what it got twice (RFC 2883).
#[cold]
fn on_sack(
    me: &mut Direction,
    sender: &mut Direction,
    (ack, now): (u32, u64),
    mut blocks: SackBlocks<'_>,
    pools: &mut Pools,
) -> u8 {
    if let Some(extras) = pools.extras_of(me) {
        extras.sack += 1;
    }
    let Some(extras) = pools.extras_of(sender) else {
        return 0;
    };
    let Some((left, right)) = blocks.next() else {
        return 0;
    };
    let second = blocks.next();
    let is_within = |outer: (linkweir_wire::SeqNumber, linkweir_wire::SeqNumber)| {
        !before(left.0, outer.0.0) && !before(outer.1.0, right.0)
    };
    let is_duplicate = !before(ack, right.0) || second.is_some_and(is_within);
    let mut evidence = 0;
    if is_duplicate {
        // One report of a duplicate is of one segment: of several that it could be, the last.
        let newest = usize::from(extras.recent_at);
        for back in 1..=extras.recent.len() {
            let at = newest.wrapping_sub(back) % extras.recent.len();
            let Some(recent) = extras.recent.get_mut(at) else {
                continue;
            };
            // The receiver had every byte of it.
            if recent.class == 0 || before(recent.start, left.0) || before(right.0, recent.end) {
                continue;
            }
            let class = std::mem::take(&mut recent.class);
            evidence |= correct(extras, class, Evidence::Dsack);
            break;
        }
    }
    let rest = blocks.chain(second);
    let first = (!is_duplicate).then_some((left, right));
    for (_, right) in rest.chain(first) {
        if before(ack, right.0) && (!extras.was_sacked || before(extras.sacked, right.0)) {
            if !extras.was_sacked {
                extras.sacked_at = now;
            }
            extras.sacked = right.0;
            extras.was_sacked = true;
        }
    }
    evidence
}

/// Which copy was acknowledged: an echo older than the retransmission is one of the original
/// (RFC 3522).
#[cold]
fn on_timestamp_echo(sender: &mut Direction, packet: &Acknowledgment<'_>, pools: &mut Pools) -> u8 {
    let Some(extras) = pools.extras.get_mut(sender.extras) else {
        return 0;
    };
    if extras.was_sacked && !before(packet.ack, extras.sacked) {
        extras.was_sacked = false;
    }
    let mut evidence = 0;
    for at in 0..extras.recent.len() {
        let Some(recent) = extras.recent.get_mut(at) else {
            continue;
        };
        if recent.class == 0 || !recent.is_pending || before(packet.ack, recent.end) {
            continue;
        }
        // Only the first acknowledgment that covers it tells.
        recent.is_pending = false;
        if let Some(echo) = packet.tsecr
            && recent.tsval != 0
            && echo != 0
            && before(echo, recent.tsval)
        {
            let class = std::mem::take(&mut recent.class);
            evidence |= correct(extras, class, Evidence::Timestamps);
        }
    }
    evidence
}

/// A retransmission was not needed. (The published rules do not look back.)
fn correct(extras: &mut super::Extras, number: u8, by: Evidence) -> u8 {
    let (from, to) = match class_of(number) {
        Some(Anomaly::Rto) => (Anomaly::Rto, Anomaly::UnnecessaryRto),
        Some(Anomaly::FastRetransmit) => {
            (Anomaly::FastRetransmit, Anomaly::UnnecessaryFastRetransmit)
        }
        _ => return 0,
    };
    extras.correct(from, to);
    by.bit()
}
