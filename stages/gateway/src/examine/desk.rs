//! What an examination works with while it handles one packet: the time, the connection's ends, and
//! where effects, numbers and counters go.

use linkweir_engine::Effects;
use linkweir_engine::effect::{FileId, Ticket};
use linkweir_record::GatewayKind;
use linkweir_record::gateway::{GatewayRow, GatewayText};
use linkweir_wire::Timestamp;

use crate::connection::Ends;
use crate::invitations::Invitations;
use crate::policy::Policy;
use crate::stats::Stats;

/// Numbers that are never used twice: those of a worker begin with its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ids {
    worker: u8,
    next: u64,
}

impl Ids {
    pub(crate) const fn of_worker(worker: u8) -> Self {
        Self { worker, next: 0 }
    }

    const fn take(&mut self) -> u64 {
        self.next += 1;
        ((self.worker as u64) << 56) | self.next
    }

    pub(crate) const fn ticket(&mut self) -> Ticket {
        Ticket(self.take())
    }

    pub(crate) const fn file(&mut self) -> FileId {
        FileId(self.take())
    }

    /// A word that says which worker and which number: `0-17`.
    pub(crate) fn word(&self, id: FileId) -> String {
        format!("{}-{}", self.worker, id.0 & ((1 << 56) - 1))
    }
}

/// Everything beside the examination itself.
#[derive(Debug)]
pub(crate) struct Desk<'a> {
    pub(crate) now: Timestamp,
    pub(crate) policy: &'a Policy,
    pub(crate) ends: Ends,
    pub(crate) is_tcp: bool,
    pub(crate) effects: &'a mut Effects<GatewayKind>,
    pub(crate) ids: &'a mut Ids,
    pub(crate) stats: &'a mut Stats,
    pub(crate) invitations: &'a Invitations,
    /// Bytes that files under inspection may take now.
    pub(crate) memory: &'a mut usize,
    /// Scans that were asked for since this was last emptied.
    pub(crate) asked: &'a mut Vec<Ticket>,
}

impl Desk<'_> {
    /// Writes an event; time, ends and protocol are filled in here.
    pub(crate) fn tell(&mut self, row: GatewayRow, text: &GatewayText<'_>) {
        let row = GatewayRow {
            ts_ns: self.now.as_nanos(),
            client_ip: self.ends.client.0,
            client_port: self.ends.client.1,
            server_ip: self.ends.server.0,
            server_port: self.ends.server.1,
            protocol: if self.is_tcp { "tcp" } else { "udp" },
            ..row
        };
        self.stats.count_event(row.event);
        self.effects.records.push(row, text);
    }
}
