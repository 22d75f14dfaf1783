//! [`TcpClients`]: the way in.

use super::connection::{Connection, Connections, Marks, State};
use super::emit::Sender;
use super::flight::Flight;
use super::keys::Ports;
use super::reassembly::Reassembly;
use super::receive::TICK_BITS;
use super::run::pool_of;
use super::settings::{TcpCounts, TcpSettings};
use super::stack::{Fate, Stack};
use super::time_wait::TimeWait;
use crate::seam::{Client, CloseReason, ConnId, Listener, SegmentOut, TcpEvent};
use linkweir_table::{Id, Index, NONE, Slab, Wheel};
use linkweir_wire::Timestamp;
use std::net::SocketAddr;

/// The TCP of all emulated clients; see the [module](super).
#[derive(Debug)]
pub struct TcpClients {
    pub(super) conns: Connections,
    pub(super) index: Index,
    pub(super) wheel: Wheel,
    pub(super) time_wait: TimeWait,
    pub(super) ports: Ports,
    /// Ports of connections that this host makes alone, where there are two hosts.
    pub(super) own_ports: Option<Ports>,
    pub(super) stack: Stack,
}

impl TcpClients {
    /// The TCP of a population of `clients`; `seed` decides ports, initial sequence numbers and
    /// offsets of timestamps.
    #[must_use]
    pub fn new(settings: TcpSettings, seed: u64, clients: u32) -> Self {
        let conns = Connections::with_capacity(settings.max_connections);
        let capacity = conns.capacity();
        Self {
            index: Index::with_capacity(capacity),
            conns,
            wheel: Wheel::new(TICK_BITS),
            time_wait: TimeWait::new(settings.max_time_wait, settings.time_wait),
            ports: Ports::new(clients, settings.first_port, settings.last_port),
            own_ports: None,
            stack: Stack {
                flights: Slab::with_capacity(capacity),
                outgoing: pool_of(settings.send_pool),
                incoming: Reassembly::with_bytes(settings.receive_pool),
                scratch: Vec::new(),
                sender: Sender::new(settings, seed),
            },
        }
    }

    #[inline]
    pub(super) fn find(
        &self,
        hash: u32,
        client: Client,
        port: u16,
        remote: SocketAddr,
    ) -> Option<u32> {
        let remotes = &self.stack.sender.remotes;
        self.index.find(hash, |slot| {
            self.conns.at(slot).is_some_and(|conn| {
                conn.client == client && conn.local_port == port && remotes.is(conn.remote, remote)
            })
        })
    }

    #[inline]
    pub(super) fn find_ended(
        &self,
        hash: u32,
        client: Client,
        port: u16,
        remote: SocketAddr,
    ) -> Option<Id> {
        let remotes = &self.stack.sender.remotes;
        self.time_wait.find(hash, |ended| {
            ended.client == client && ended.local_port == port && remotes.is(ended.remote, remote)
        })
    }

    /// Appends to what is sent on a connection. `false` where nothing was taken: the connection is
    /// gone or was closed by us, or the pool is full (which is counted).
    pub fn send(
        &mut self,
        conn: ConnId,
        bytes: &[u8],
        now: Timestamp,
        out: &mut impl SegmentOut,
    ) -> bool {
        let slot = conn.slot;
        let Some(conn) = self.conns.get_mut(conn) else {
            return false;
        };
        let is_open = matches!(
            conn.state,
            State::SynSent | State::Established | State::CloseWait
        );
        if !is_open || conn.marks.has(Marks::CLOSE_ASKED) {
            return false;
        }
        if bytes.is_empty() {
            return true;
        }
        let stack = &mut self.stack;
        let is_fresh = conn.flight == NONE;
        stack.begin_flight(conn);
        let taken = stack
            .flights
            .get_mut(conn.flight)
            .is_some_and(|flight| flight.data.append(&mut stack.outgoing, bytes));
        if !taken {
            stack.sender.counts.send_pool_full += 1;
            if is_fresh {
                stack.end_flight(conn);
            }
            return false;
        }
        stack.transmit(conn, now, out);
        self.arm(slot, now);
        true
    }

    /// Closes our side of a connection: FIN behind what is buffered. What the server sends still
    /// comes.
    pub fn close(&mut self, conn: ConnId, now: Timestamp, out: &mut impl SegmentOut) {
        let slot = conn.slot;
        let Some(conn) = self.conns.get_mut(conn) else {
            return;
        };
        conn.state = match conn.state {
            State::SynSent => {
                conn.marks.set(Marks::CLOSE_ASKED);
                return;
            }
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            _ => return,
        };
        self.stack.begin_flight(conn);
        self.stack.transmit(conn, now, out);
        self.arm(slot, now);
    }

    /// The same where the server is about to close: our FIN waits for its own and acknowledges it, so that
    /// the two take one segment. It waits no longer than an acknowledgment may.
    pub fn close_after_peer(&mut self, conn: ConnId, now: Timestamp, out: &mut impl SegmentOut) {
        match self.conns.get_mut(conn) {
            Some(open) if open.state == State::Established => {
                open.marks.set(Marks::CLOSE_ASKED);
                // The timer is that of the acknowledgment.
                self.stack.owe_ack(open, now);
                self.arm(conn.slot, now);
            }
            _ => self.close(conn, now, out),
        }
    }

    /// Ends a connection at once: RST to the server, [`CloseReason::Aborted`] to the listener.
    pub fn abort(
        &mut self,
        conn: ConnId,
        now: Timestamp,
        out: &mut impl SegmentOut,
        to: &mut impl Listener,
    ) {
        let slot = conn.slot;
        let Some(conn) = self.conns.get_mut(conn) else {
            return;
        };
        let seq = self.stack.snd_max(conn);
        self.stack.sender.reset(conn, seq, now, out);
        self.settle(slot, Fate::Ended(CloseReason::Aborted), (now, now), to);
    }

    /// Does everything that is due.
    pub fn on_tick(&mut self, now: Timestamp, out: &mut impl SegmentOut, to: &mut impl Listener) {
        while let Some(slot) = self.wheel.pop(now.as_nanos(), &mut self.conns) {
            let Some(conn) = self.conns.at_mut(slot) else {
                continue;
            };
            let fate = self.stack.on_due(conn, now, out);
            self.settle(slot, fate, (now, now), to);
        }
        self.time_wait.expire(now);
    }

    /// When to call [`on_tick`](Self::on_tick) next: not after the first thing that is due, at times
    /// before it. `None` where nothing is.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let timers = self.wheel.next_ns().map(Timestamp::from_nanos);
        [timers, self.time_wait.next_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Takes the consequence of what happened to a connection; the times are those of the event and
    /// of now.
    pub(super) fn settle(
        &mut self,
        slot: u32,
        fate: Fate,
        (at, now): (Timestamp, Timestamp),
        to: &mut impl Listener,
    ) {
        let reason = match fate {
            Fate::Open => {
                self.arm(slot, now);
                return;
            }
            Fate::TimeWait => CloseReason::Finished,
            Fate::Ended(reason) => reason,
        };
        self.wheel.cancel(slot, &mut self.conns);
        let Some(conn) = self.conns.at_mut(slot) else {
            return;
        };
        let (client, port) = (conn.client, conn.local_port);
        let remote = self.stack.sender.remotes.get(conn.remote);
        let hash = remote.map(|remote| self.stack.sender.keys.connection(client, port, remote));
        if let Some(hash) = hash {
            self.index.remove(hash, slot);
        }
        if fate == Fate::TimeWait
            && let Some(hash) = hash
        {
            let numbers = (self.stack.snd_max(conn), conn.rcv_nxt);
            let has_evicted = self
                .time_wait
                .add(hash, client, (port, conn.remote), numbers, now);
            self.stack.sender.counts.time_wait_evicted += u64::from(has_evicted);
        }
        self.stack.forget(conn);
        let id = ConnId {
            slot,
            generation: conn.generation,
        };
        to.on_event(id, conn.user, TcpEvent::Closed(reason), at);
        self.conns.release(slot);
    }

    /// Sees to it that the timer of a connection is not after what is due first. A timer that comes
    /// too early costs a look; moving it with each segment would cost more.
    pub(super) fn arm(&mut self, slot: u32, now: Timestamp) {
        let Some(conn) = self.conns.at(slot) else {
            return;
        };
        let Some(due) = self.stack.deadline(conn, now) else {
            return;
        };
        let due = due.as_nanos();
        let is_early = self
            .wheel
            .due_ns(&conn.timer)
            .is_some_and(|set| set < due.saturating_add(self.wheel.tick_ns()));
        if !is_early {
            self.wheel.set(slot, due, &mut self.conns);
        }
    }

    /// The local port of a connection; 0 where it is gone.
    #[must_use]
    pub fn local_port(&self, conn: ConnId) -> u16 {
        self.conns.get(conn).map_or(0, |conn| conn.local_port)
    }

    /// Connections that are open, those being opened or closed too; without TIME-WAIT.
    #[must_use]
    pub const fn open(&self) -> u32 {
        self.conns.len()
    }

    /// Connections in TIME-WAIT.
    #[must_use]
    pub const fn in_time_wait(&self) -> usize {
        self.time_wait.len()
    }

    /// What was counted.
    #[must_use]
    pub const fn counts(&self) -> &TcpCounts {
        &self.stack.sender.counts
    }

    /// Bytes of memory in use: what was touched of what is reserved. It does not shrink.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let stack = &self.stack;
        size_of::<Self>()
            + self.conns.memory_bytes()
            + self.index.memory_bytes()
            + self.wheel.memory_bytes()
            + self.time_wait.memory_bytes()
            + self.ports.memory_bytes()
            + self.own_ports.as_ref().map_or(0, Ports::memory_bytes)
            + stack.flights.memory_bytes()
            + stack.outgoing.memory_bytes()
            + stack.incoming.memory_bytes()
            + stack.scratch.capacity()
            + stack.sender.remotes.memory_bytes()
    }

    /// Places in use of the pools that hold what is in flight.
    #[cfg(test)]
    pub(super) fn in_flight(&self) -> usize {
        self.stack.flights.len() + self.stack.outgoing.in_use() + self.stack.incoming.in_use()
    }
}

impl Stack {
    /// Something is to be sent.
    pub(super) fn begin_flight(&mut self, conn: &mut Connection) {
        if conn.flight == NONE {
            // A burst after everything was acknowledged begins with the initial window: RFC 5681
            // sec. 4.1 asks for it after a pause, and not to know how long it was is the same.
            let flight = Flight::at(conn.snd_nxt, Self::initial_window(conn));
            conn.flight = self.flights.insert(flight).unwrap_or(NONE);
        }
    }
}
