//! What the gateway counts.

use std::collections::BTreeMap;

use linkweir_proto::application::Application;
use linkweir_record::GatewayEventKind;
use linkweir_sketch::LogLinear;

use crate::policy::{Label, Policy};

/// What was seen of one application. Of connections that pass, the packets behind the decision are the
/// kernel's and not in here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ApplicationStats {
    /// Connections that were decided.
    pub connections: u64,
    /// Packets that came to user space.
    pub packets: u64,
    /// Their IP bytes.
    pub bytes: u64,
    /// Connections allowed without inspection.
    pub allowed: u64,
    /// Connections dropped by rule.
    pub dropped: u64,
    /// Connections rejected by rule.
    pub rejected: u64,
    /// Connections that are or were inspected.
    pub inspected: u64,
    /// Connections that were inspected, or let through while more of them was looked at, and were blocked for what they carried.
    pub blocked: u64,
}

impl std::ops::AddAssign for ApplicationStats {
    fn add_assign(&mut self, other: Self) {
        self.connections += other.connections;
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.allowed += other.allowed;
        self.dropped += other.dropped;
        self.rejected += other.rejected;
        self.inspected += other.inspected;
        self.blocked += other.blocked;
    }
}

/// Counters of one worker; they merge by addition.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// By application, those that were seen.
    pub applications: BTreeMap<String, ApplicationStats>,
    /// Packets taken.
    pub packets: u64,
    /// Their IP bytes.
    pub bytes: u64,
    /// Packets that are neither TCP nor UDP: they pass.
    pub strangers: u64,
    /// Packets whose headers were not followed to their end: they pass or not as `fail` says, without a mark.
    pub undecoded: u64,
    /// Packets with a wrong transport checksum: they pass untouched.
    pub bad_checksums: u64,
    /// Packets that wait now.
    pub held_packets: u64,
    /// Payload bytes that are kept now: of packets that wait, of what has passed ahead of a gap, and of what
    /// is not acknowledged.
    pub held_bytes: u64,
    /// The most packets that waited at once.
    pub peak_held_packets: u64,
    /// Packets that came before one that was missing.
    pub out_of_order: u64,
    /// Packets that came again after they were released.
    pub duplicates: u64,
    /// Packets that came again while they were held: dropped, the first goes.
    pub retransmitted_while_held: u64,
    /// Packets dropped or passed unseen because no more could be held.
    pub over_limit: u64,
    /// Connections that were ended because a segment was sent again with other bytes.
    pub rewritten: u64,
    /// Segments dropped because their receiver ignores them (RFC 9293 sec. 3.10.7.4, RFC 7323 sec. 5,
    /// RFC 5961 sec. 5): they must not stand for the stream.
    pub implausible: u64,
    /// Receivers that acknowledged bytes which the gateway was not given.
    pub gaps: u64,
    /// Connections that are classified or inspected now.
    pub connections: u64,
    /// Handshakes without payload yet, now.
    pub half_open: u64,
    /// Connections forgotten because the table was full.
    pub evicted: u64,
    /// Inspected connections that were picked up midstream.
    pub resumed: u64,
    /// Connections forgotten before they were decided: too little of them was seen.
    pub undecided: u64,
    /// Scans asked for.
    pub scans: u64,
    /// Scans that did not answer in time.
    pub scan_timeouts: u64,
    /// From a packet's arrival to its answer where it waited for a scan, nanoseconds.
    pub scan_wait_ns: LogLinear,
    /// Files that ended.
    pub files: u64,
    /// Chat messages.
    pub messages: u64,
    /// Events by kind, in the order of [`GatewayEventKind::ALL`].
    pub events: [u64; GatewayEventKind::ALL.len()],
}

impl Stats {
    pub(crate) fn count_event(&mut self, event: GatewayEventKind) {
        if let Some(count) = self.events.get_mut(event as usize) {
            *count += 1;
        }
    }

    /// Events of a kind.
    #[must_use]
    pub fn events_of(&self, event: GatewayEventKind) -> u64 {
        self.events.get(event as usize).copied().unwrap_or(0)
    }

    /// Adds the counters of another worker.
    pub fn merge(&mut self, other: &Self) {
        for (name, stats) in &other.applications {
            *self.applications.entry(name.clone()).or_default() += *stats;
        }
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.strangers += other.strangers;
        self.undecoded += other.undecoded;
        self.bad_checksums += other.bad_checksums;
        self.held_packets += other.held_packets;
        self.held_bytes += other.held_bytes;
        self.peak_held_packets += other.peak_held_packets;
        self.out_of_order += other.out_of_order;
        self.duplicates += other.duplicates;
        self.retransmitted_while_held += other.retransmitted_while_held;
        self.over_limit += other.over_limit;
        self.rewritten += other.rewritten;
        self.implausible += other.implausible;
        self.gaps += other.gaps;
        self.connections += other.connections;
        self.half_open += other.half_open;
        self.evicted += other.evicted;
        self.resumed += other.resumed;
        self.undecided += other.undecided;
        self.scans += other.scans;
        self.scan_timeouts += other.scan_timeouts;
        self.scan_wait_ns.merge(&other.scan_wait_ns);
        self.files += other.files;
        self.messages += other.messages;
        for (sum, count) in self.events.iter_mut().zip(other.events) {
            *sum += count;
        }
    }
}

/// Counters by label, for the packet path: an index and no name.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    /// Of the known applications, by their number.
    known: Vec<ApplicationStats>,
    /// Of the policy's own, by their place.
    own: Vec<ApplicationStats>,
    unknown: ApplicationStats,
    /// Of the own signatures of policies before, by name.
    before: BTreeMap<String, ApplicationStats>,
}

impl Labels {
    #[inline]
    pub(crate) fn of(&mut self, label: Label) -> &mut ApplicationStats {
        let (list, at) = match label {
            Label::Known(application) => (&mut self.known, application as usize),
            Label::Own(at) => (&mut self.own, usize::from(at)),
            Label::Unknown => return &mut self.unknown,
        };
        if list.len() <= at {
            list.resize(at + 1, ApplicationStats::default());
        }
        list.get_mut(at).unwrap_or(&mut self.unknown)
    }

    /// The places of own signatures are about to change.
    pub(crate) fn keep_own(&mut self, policy: &Policy) {
        for (signature, stats) in policy.signatures.iter().zip(std::mem::take(&mut self.own)) {
            *self.before.entry(signature.name.clone()).or_default() += stats;
        }
    }

    /// Counters by name, of what was seen.
    pub(crate) fn by_name(&self, policy: &Policy) -> BTreeMap<String, ApplicationStats> {
        let mut all = self.before.clone();
        let known = Application::ALL.iter().zip(&self.known);
        let known = known.map(|(application, stats)| (application.as_str(), *stats));
        let own = policy.signatures.iter().zip(&self.own);
        let own = own.map(|(signature, stats)| (signature.name.as_str(), *stats));
        for (name, stats) in known.chain(own).chain([("unknown", self.unknown)]) {
            if stats != ApplicationStats::default() {
                *all.entry(name.to_owned()).or_default() += stats;
            }
        }
        all
    }
}
