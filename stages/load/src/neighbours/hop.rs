//! What is known of one next hop, and when to ask for it again.
//!
//! Source: RFC 4861 sec. 7.3 in short, for ARP too: ask the group, use the answer, ask its owner
//! again before it is old, ask the group where the owner is silent.

use std::net::IpAddr;
use std::time::Duration;

use linkweir_wire::Timestamp;

/// Waits after each question to the group; no answer after the last is a failure: 5 s after the first.
/// At most one question a second (RFC 1122 sec. 2.3.2.1, `RETRANS_TIMER` of RFC 4861 sec. 10).
const ASK: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(2),
];

/// How long a failed one is left alone before it is asked for again.
const REST: Duration = Duration::from_secs(5);

/// How long an answer holds. RFC 4861 sec. 10 has 30 s (`REACHABLE_TIME`); ours is short, for a router that
/// fails over during a run is to be followed, and a question costs nothing beside the load.
const REACHABLE: Duration = Duration::from_secs(3);

/// Questions to the owner before the group is asked (`MAX_UNICAST_SOLICIT`), and the wait after each.
const PROBES: u8 = 3;
const PROBE_WAIT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// So many questions to the group have been asked.
    Asking(u8),
    Reachable,
    /// So many questions to the owner have been asked.
    Probing(u8),
    Failed,
}

/// Whom to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// Everybody, or the group of the address.
    Group,
    /// The owner of this hardware address.
    Owner([u8; 6]),
}

/// What the time has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing yet.
    Nothing,
    /// To ask.
    Ask(Question),
    /// Nobody has answered.
    Failed,
}

/// A next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hop {
    pub(super) address: IpAddr,
    /// As last heard; stays in use while it is asked for again, until that has failed.
    pub(super) mac: Option<[u8; 6]>,
    phase: Phase,
    due: Timestamp,
}

impl Hop {
    /// One of whom nothing is known: the time to ask is now.
    pub(super) const fn new(address: IpAddr, now: Timestamp) -> Self {
        Self {
            address,
            mac: None,
            phase: Phase::Asking(0),
            due: now,
        }
    }

    /// When [`Hop::on_tick`] has something to say.
    pub(super) const fn due(&self) -> Timestamp {
        self.due
    }

    pub(super) fn has_failed(&self) -> bool {
        self.phase == Phase::Failed
    }

    /// Its hardware address was heard.
    pub(super) fn heard(&mut self, mac: [u8; 6], now: Timestamp) {
        self.mac = Some(mac);
        self.phase = Phase::Reachable;
        self.due = now + REACHABLE;
    }

    /// Goes on to what is due.
    pub(super) fn on_tick(&mut self, now: Timestamp) -> Due {
        if now < self.due {
            return Due::Nothing;
        }
        match self.phase {
            Phase::Asking(asked) => match ASK.get(usize::from(asked)) {
                Some(&wait) => {
                    self.phase = Phase::Asking(asked + 1);
                    self.due = now + wait;
                    Due::Ask(Question::Group)
                }
                None => {
                    self.mac = None;
                    self.phase = Phase::Failed;
                    self.due = now + REST;
                    Due::Failed
                }
            },
            Phase::Failed => {
                // It stays failed, and is asked for, until it answers.
                self.due = now + REST;
                Due::Ask(Question::Group)
            }
            Phase::Reachable => self.probe(0, now),
            Phase::Probing(probed) => self.probe(probed, now),
        }
    }

    fn probe(&mut self, probed: u8, now: Timestamp) -> Due {
        if let Some(mac) = self.mac
            && probed < PROBES
        {
            self.phase = Phase::Probing(probed + 1);
            self.due = now + PROBE_WAIT;
            return Due::Ask(Question::Owner(mac));
        }
        self.phase = Phase::Asking(0);
        self.on_tick(now)
    }
}
