//! What happens to an interface while it is captured, in words.

use std::collections::VecDeque;
use std::time::Duration;

use linkweir_engine::{Fault, FaultKind};
use linkweir_sys::interface;
use linkweir_sys::wait::monotonic_ns;

/// Outages that are reported; one that flaps for weeks is not worth more memory.
const TOLD_OUTAGES: u64 = 1000;

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The socket is good.
    None,
    /// The interface does not exist any more: the socket will receive nothing.
    Vanished,
}

/// An interface under observation.
#[derive(Debug)]
pub(super) struct Watch {
    /// As the user named it.
    name: String,
    /// Its number, 0 for all.
    index: u32,
    /// Its name and MTU when last seen.
    seen_name: String,
    mtu: Option<u32>,
    /// When it went down or away.
    away_since_ns: Option<u64>,
    /// Whether it went away, not only down.
    is_gone: bool,
    last_look_ns: u64,
    last_refusal: String,
    outages: u64,
    /// Whether this one of several sources tells.
    tells: bool,
    faults: VecDeque<Fault>,
}

impl Watch {
    pub(super) fn new(name: &str, index: u32, tells: bool) -> Self {
        Self {
            name: name.to_owned(),
            index,
            seen_name: name.to_owned(),
            mtu: interface::mtu_of(name),
            away_since_ns: None,
            is_gone: false,
            last_look_ns: monotonic_ns(),
            last_refusal: String::new(),
            outages: 0,
            tells,
            faults: VecDeque::new(),
        }
    }

    pub(super) fn take_fault(&mut self) -> Option<Fault> {
        self.faults.pop_front()
    }

    pub(super) fn has_fault(&self) -> bool {
        !self.faults.is_empty()
    }

    /// Whether the last look was `every` ago.
    pub(super) fn is_due(&self, every: Duration) -> bool {
        let every = linkweir_wire::nanos(every);
        self.index != 0 && monotonic_ns().saturating_sub(self.last_look_ns) >= every
    }

    /// Looks at the interface. `bound` is where the socket is bound now.
    pub(super) fn look(&mut self, bound: Option<u32>) -> Change {
        self.last_look_ns = monotonic_ns();
        if self.index == 0 {
            return Change::None;
        }
        let found = interface::interfaces().ok().and_then(|all| {
            all.into_iter()
                .find(|one| Some(one.index) == bound && one.index == self.index)
        });
        let Some(found) = found else {
            self.goes_away();
            return Change::Vanished;
        };
        if found.is_up() {
            self.comes_back("is up again");
        } else if self.away_since_ns.is_none() {
            self.outages += 1;
            self.away_since_ns = Some(self.last_look_ns);
            self.tell("the interface went down; capture goes on when it is up again".to_owned());
        }
        if found.name != self.seen_name {
            let state = if found.is_up() { "" } else { " while down" };
            self.tell(format!(
                "is called {} now; capture goes on{state}",
                found.name
            ));
            self.seen_name = found.name;
        }
        let mtu = interface::mtu_of(&self.seen_name);
        if let (Some(old), Some(new)) = (self.mtu, mtu)
            && old != new
        {
            self.tell(format!(
                "the MTU is {new} now ({old} before); capture goes on"
            ));
        }
        self.mtu = mtu.or(self.mtu);
        Change::None
    }

    /// Looks at the interface by its number alone, for sockets that do not tell where they are.
    pub(super) fn look_by_number(&mut self) -> Change {
        self.look(Some(self.index))
    }

    fn goes_away(&mut self) {
        if self.is_gone {
            return;
        }
        if self.away_since_ns.is_none() {
            self.outages += 1;
            self.away_since_ns = Some(self.last_look_ns);
        }
        self.is_gone = true;
        self.tell(
            "the interface is gone; capture goes on when there is one of this name".to_owned(),
        );
    }

    fn comes_back(&mut self, how: &str) {
        if let Some(since) = self.away_since_ns.take() {
            let seconds = Duration::from_nanos(monotonic_ns().saturating_sub(since)).as_secs_f64();
            let outages = self.outages;
            self.tell(format!(
                "{how} after {seconds:.1} s; capture goes on (outage {outages})"
            ));
        }
        self.is_gone = false;
        self.last_refusal.clear();
    }

    /// There is a new socket, on the interface with this number.
    pub(super) fn is_back(&mut self, index: u32) {
        self.index = index;
        self.seen_name.clone_from(&self.name);
        self.mtu = interface::mtu_of(&self.name);
        self.comes_back("is back");
    }

    /// It could not be opened again; told where the reason is a new one.
    pub(super) fn is_still_away(&mut self, reason: &str) {
        let is_new = self.last_refusal != reason;
        // That it is not there has been said.
        let is_known =
            reason.starts_with("no such interface") || reason.starts_with("the interface is down");
        if is_new && !is_known {
            self.tell(format!("cannot be opened again: {reason}"));
        }
        reason.clone_into(&mut self.last_refusal);
    }

    fn tell(&mut self, message: String) {
        if self.tells && self.outages <= TOLD_OUTAGES {
            self.faults.push_back(Fault {
                input: self.name.clone(),
                offset: None,
                kind: FaultKind::Interrupted,
                message,
            });
        }
    }
}
