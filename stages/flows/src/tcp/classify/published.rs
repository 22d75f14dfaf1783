//! The published rules, as Tstat applies them.
//!
//! Source: Mellia, Meo, Muscariello, Rossi 2008, "Passive analysis of TCP anomalies", sec. 3; the
//! order and constants of Tstat 3.3.0. Its reading of an identification field from version 6, where
//! the payload length stands in that place, is not among the published rules.

use linkweir_record::flow::Anomaly;

use super::{Case, Found, Verdict, class_of};
use linkweir_record::flow::Evidence;

/// Smallest retransmission timeout: 100 ms.
const MIN_RTO: u64 = 100_000_000;
/// The timeout where no round-trip time is known: 500 ms.
const UNKNOWN_RTO: u64 = 500_000_000;

/// Classifies by the rules in their published order.
pub(crate) fn classify(case: &Case) -> Verdict {
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
