//! Evidence first: what the ends say themselves, then time.
//!
//! A network duplicates and reorders packets without touching their timestamps, a sender that
//! retransmits stamps anew (RFC 7323 sec. 4.1): that distinguishes them, over version 6 and with
//! identification fields of zero too. Selective acknowledgments say what the receiver has (RFC 2018,
//! RFC 8985 sec. 6). Only where both are silent do time and duplicate acknowledgments decide, by the
//! published rules. What the receiver says later (`TSecr`, RFC 3522; duplicate selective
//! acknowledgments, RFC 2883) corrects the class: see `ack`.

use linkweir_record::flow::{Anomaly, Evidence};

use super::super::before;
use super::{Behind, Case, Found, Verdict, class_of};

/// What a sender waits at least beyond the round trip before its timer runs out: 200 ms, as Linux
/// and FreeBSD do. RFC 6298 asks for a second.
const MIN_TIMER: u64 = 200_000_000;
/// Classifies by evidence.
pub(crate) fn classify(case: &Case) -> Verdict {
    let window = Evidence::Window.bit();
    if case.len <= 1
        && !case.is_syn
        && (case.is_keep_alive || (case.is_window_closed && case.has_both_syns))
    {
        return (Anomaly::FlowControl, window);
    }
    match case.found {
        Found::Copy {
            time, ip_id, tsval, ..
        } => {
            let age = case.now.saturating_sub(time);
            if let Some(verdict) = doubled(case, age, ip_id, tsval) {
                return verdict;
            }
            sent_again(case, age)
        }
        Found::Hole { before, behind, .. } => {
            if let Some(verdict) = late(case, behind) {
                return verdict;
            }
            let time = before.or_else(|| behind.map(|behind| behind.time));
            let age = time.map_or(u64::MAX, |time| case.now.saturating_sub(time));
            sent_again(case, age)
        }
    }
}

/// Whether the network made this copy.
fn doubled(case: &Case, age: u64, ip_id: u16, copy: Option<u32>) -> Option<Verdict> {
    let (stamps, ids) = (Evidence::Timestamps.bit(), Evidence::IpId.bit());
    let same_id = case.ip_id.filter(|_| ip_id != 0).map(|id| id == ip_id);
    // It cannot be known within less than a round trip that a segment was lost.
    let is_too_soon = age < case.rtt.min && !case.was_heard && !case.is_sacked_above;
    let Some(tsval) = case.tsval else {
        return match same_id {
            Some(true) => Some((Anomaly::NetworkDuplicate, ids)),
            None if is_too_soon && case.rtt.is_known => {
                Some((Anomaly::NetworkDuplicate, Evidence::Timing.bit()))
            }
            _ => None,
        };
    };
    if before(tsval, case.newest_tsval) && copy.is_none_or(|copy| !before(copy, tsval)) {
        // Stamped before others that were seen already, and not after the copy: it was under way.
        return Some((Anomaly::NetworkDuplicate, stamps));
    }
    let is_same = copy.map_or(tsval == case.newest_tsval, |copy| copy == tsval);
    if !is_same {
        return None;
    }
    match same_id {
        Some(true) => Some((Anomaly::NetworkDuplicate, stamps | ids)),
        // A clock may be coarse: a new identification is a new packet.
        Some(false) => None,
        None => (is_too_soon || !case.was_heard && !case.is_sacked_above && age < MIN_TIMER)
            .then_some((Anomaly::NetworkDuplicate, stamps)),
    }
}

/// Identification fields of packets that a sender made one after the other: as far apart as the
/// packets that overtake one another, at most.
const NEAR_IDS: u16 = 32;

/// Whether it was sent once and overtaken.
fn late(case: &Case, behind: Option<Behind>) -> Option<Verdict> {
    let behind = behind?;
    if let (Some(tsval), Some(behind)) = (case.tsval, behind.tsval) {
        if before(tsval, behind) {
            return Some((Anomaly::Reordering, Evidence::Timestamps.bit()));
        }
        if before(behind, tsval) {
            return None;
        }
    }
    let is_quick = case.now.saturating_sub(behind.time) < case.rtt.min;
    let ahead = case.ip_id.filter(|_| behind.ip_id != 0);
    let ahead = ahead.map(|id| behind.ip_id.wrapping_sub(id));
    if is_quick && ahead.is_some_and(|ahead| (1..=NEAR_IDS).contains(&ahead)) {
        // Numbered before what overtook it.
        return Some((Anomaly::Reordering, Evidence::IpId.bit()));
    }
    (is_quick && !case.is_sacked_above && !case.was_heard)
        .then_some((Anomaly::Reordering, Evidence::Timing.bit()))
}

/// The sender sent it again: why.
fn sent_again(case: &Case, age: u64) -> Verdict {
    let timing = Evidence::Timing.bit();
    let rto = if case.rtt.is_known {
        case.rtt.mean + MIN_TIMER.max(4 * case.rtt.deviation)
    } else {
        MIN_TIMER
    };
    let unnecessary = |class| match class {
        Anomaly::Rto if case.is_acked => Anomaly::UnnecessaryRto,
        Anomaly::FastRetransmit if case.is_acked => Anomaly::UnnecessaryFastRetransmit,
        class => class,
    };
    if case.is_syn {
        return (unnecessary(Anomaly::Rto), timing);
    }
    // Asked for, and the timer cannot have run out yet.
    if (case.was_heard || case.is_partial) && age < rto {
        return (
            unnecessary(Anomaly::FastRetransmit),
            Evidence::DupAcks.bit(),
        );
    }
    if case.is_sacked_above && age < rto {
        return (unnecessary(Anomaly::FastRetransmit), Evidence::Sack.bit());
    }
    let (since, class) = case.last;
    if since < case.rtt.mean
        && let Some(
            class @ (Anomaly::Rto
            | Anomaly::FastRetransmit
            | Anomaly::UnnecessaryRto
            | Anomaly::UnnecessaryFastRetransmit),
        ) = class_of(class)
    {
        // The same loss: the sender goes on where it began.
        let class = match class {
            Anomaly::UnnecessaryRto => Anomaly::Rto,
            Anomaly::UnnecessaryFastRetransmit => Anomaly::FastRetransmit,
            class => class,
        };
        return (unnecessary(class), timing);
    }
    if age > rto {
        return (unnecessary(Anomaly::Rto), timing);
    }
    let was_sent_again = matches!(
        case.found,
        Found::Copy {
            was_sent_again: true,
            ..
        }
    );
    // RFC 8985 sec. 7.2: after two round trips without an acknowledgment.
    if case.is_tail
        && case.rtt.is_known
        && !was_sent_again
        && age >= case.rtt.mean + case.rtt.mean / 2
    {
        return (Anomaly::TailLossProbe, timing);
    }
    (Anomaly::Unknown, 0)
}
