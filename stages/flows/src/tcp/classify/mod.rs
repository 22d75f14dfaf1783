//! What an out-of-sequence segment is.

mod evidence;

use linkweir_record::flow::{Anomaly, Evidence};

use super::direction::Direction;

pub(crate) use evidence::classify as by_evidence;

/// Round-trip time of the whole path, and what follows from it; nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathRtt {
    /// Smallest of both halves together.
    pub(crate) min: u64,
    /// Mean of both halves together.
    pub(crate) mean: u64,
    /// Standard deviation over the samples of both halves.
    pub(crate) deviation: u64,
    /// Whether both halves have a sample.
    pub(crate) is_known: bool,
}

/// Assumed where a half has no sample: 5 ms.
const UNKNOWN_RTT: u64 = 5_000_000;

impl PathRtt {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "nanoseconds within a mean; a deviation is not negative"
    )]
    pub(crate) fn of(a: &Direction, b: &Direction) -> Self {
        let (Some(mean_a), Some(mean_b)) = (
            a.rtt_sum.checked_div(u64::from(a.rtt_count)),
            b.rtt_sum.checked_div(u64::from(b.rtt_count)),
        ) else {
            return Self {
                min: UNKNOWN_RTT,
                mean: UNKNOWN_RTT,
                deviation: 0,
                is_known: false,
            };
        };
        let count = f64::from(a.rtt_count) + f64::from(b.rtt_count);
        let sum = a.rtt_sum as f64 + b.rtt_sum as f64;
        let mean = sum / count;
        let variance = ((a.rtt_squares + b.rtt_squares) / count - mean * mean).max(0.0);
        Self {
            min: a.rtt_min.saturating_add(b.rtt_min).max(1_000_000),
            mean: mean_a.saturating_add(mean_b),
            deviation: variance.sqrt() as u64,
            is_known: true,
        }
    }
}

/// What was there where the segment begins.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Found {
    /// A copy of these bytes.
    Copy {
        /// When it was seen.
        time: u64,
        /// Its identification field; 0: none.
        ip_id: u16,
        /// Its `TSval`; `None` where it is no longer known or there was none.
        tsval: Option<u32>,
        /// Whether it had been sent more than once already.
        was_sent_again: bool,
    },
    /// Nothing: the bytes are new, though later ones were seen.
    Hole {
        /// When the segment before the hole was seen, where it is still known.
        before: Option<u64>,
        /// The segment behind the hole.
        behind: Option<Behind>,
    },
}

/// A segment that came before those that precede it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Behind {
    /// When it was seen.
    pub(crate) time: u64,
    /// Its `TSval`, where there was one.
    pub(crate) tsval: Option<u32>,
    /// Its identification field; 0: none.
    pub(crate) ip_id: u16,
}

/// Everything that the rules look at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    /// Now, nanoseconds since the epoch.
    pub(crate) now: u64,
    /// Sequence space that the segment takes.
    pub(crate) len: u32,
    /// What was there.
    pub(crate) found: Found,
    /// Whether the receiver has acknowledged these bytes already.
    pub(crate) is_acked: bool,
    /// Class plus one of the segment before; 0: in sequence or none.
    pub(crate) class_before: u8,
    /// Whether three duplicate acknowledgments asked for its first byte.
    pub(crate) was_asked: bool,
    /// The same, and long enough ago for the sender to have heard of it.
    pub(crate) was_heard: bool,
    /// Whether a partial acknowledgment asked for its first byte during a fast recovery.
    pub(crate) is_partial: bool,
    /// Whether the receiver selectively acknowledged later bytes, long enough ago for the sender to
    /// have heard of it.
    pub(crate) is_sacked_above: bool,
    /// Whether the receiver's window is closed.
    pub(crate) is_window_closed: bool,
    /// Whether both SYNs were seen.
    pub(crate) has_both_syns: bool,
    /// Whether it is the last that was sent.
    pub(crate) is_tail: bool,
    /// Whether it is the last byte, and all was acknowledged: a keep-alive.
    pub(crate) is_keep_alive: bool,
    /// Whether it is a SYN.
    pub(crate) is_syn: bool,
    /// Its `TSval`.
    pub(crate) tsval: Option<u32>,
    /// The latest `TSval` of this direction before.
    pub(crate) newest_tsval: u32,
    /// Its identification field, where it is version 4 and not zero.
    pub(crate) ip_id: Option<u16>,
    /// Identification field as it stands, for the published rules; `None` of version 6, which has
    /// none.
    pub(crate) raw_ip_id: Option<u16>,
    /// Time since the last out-of-sequence segment, and its class plus one.
    pub(crate) last: (u64, u8),
    /// Round-trip time of the path.
    pub(crate) rtt: PathRtt,
}

/// A class, and the bits of what decided it.
pub(crate) type Verdict = (Anomaly, u8);

/// The class of a number plus one.
pub(crate) fn class_of(number: u8) -> Option<Anomaly> {
    let at = usize::from(number).checked_sub(1)?;
    Anomaly::ALL.get(at).copied()
}

// The published rules, as Tstat applies them.
//
// Source: Mellia, Meo, Muscariello, Rossi 2008, "Passive analysis of TCP anomalies", sec. 3; the
// order and constants of Tstat 3.3.0. Its reading of an identification field from version 6, where
// the payload length stands in that place, is not among the published rules.

/// Smallest retransmission timeout: 100 ms.
const MIN_RTO: u64 = 100_000_000;
/// The timeout where no round-trip time is known: 500 ms.
const UNKNOWN_RTO: u64 = 500_000_000;

/// Classifies by the rules in their published order.
pub(crate) fn by_published_rules(case: &Case) -> Verdict {
    let rto = if case.rtt.is_known {
        (case.rtt.mean + 4 * case.rtt.deviation).max(MIN_RTO)
    } else {
        UNKNOWN_RTO
    };
    let timing = Evidence::Timing.bit();
    if case.len == 1 && case.is_window_closed && case.has_both_syns {
        return (Anomaly::FlowControl, Evidence::Window.bit());
    }
    let recovery = match case.found {
        Found::Copy { time, .. } => case.now.saturating_sub(time),
        Found::Hole {
            before: Some(time), ..
        } => case.now.saturating_sub(time),
        Found::Hole {
            behind: Some(behind),
            ..
        } => case.now.saturating_sub(behind.time),
        Found::Hole { .. } => u64::MAX,
    };
    if recovery < case.rtt.mean
        && let Some(class) = class_of(case.class_before)
    {
        return (class, timing);
    }
    let was_asked = case.was_asked && recovery < rto;
    let asked = Evidence::DupAcks.bit();
    let unknown = (Anomaly::Unknown, 0);
    if case.is_acked {
        return match case.found {
            Found::Copy { ip_id, .. } if Some(ip_id) == case.raw_ip_id => {
                (Anomaly::NetworkDuplicate, Evidence::IpId.bit())
            }
            _ if was_asked => (Anomaly::UnnecessaryFastRetransmit, asked),
            _ if recovery > rto => (Anomaly::UnnecessaryRto, timing),
            _ => unknown,
        };
    }
    match case.found {
        Found::Copy { ip_id, .. } if Some(ip_id) == case.raw_ip_id => {
            (Anomaly::NetworkDuplicate, Evidence::IpId.bit())
        }
        _ if was_asked => (Anomaly::FastRetransmit, asked),
        _ if recovery > rto => (Anomaly::Rto, timing),
        Found::Hole {
            behind: Some(behind),
            ..
        } if case.now.saturating_sub(behind.time) < case.rtt.min => (Anomaly::Reordering, timing),
        _ => unknown,
    }
}
