//! [`TcpClients`]: the way in.

use std::net::{IpAddr, SocketAddr};

use linkweir_table::Wheel;
use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{Packet, SeqNumber, TcpFlags, Timestamp, Transport};

use super::chunks::Chunks;
use super::connection::{Connection, Marks, Slab, State};
use super::emit::{Sender, Syn};
use super::flight::Flight;
use super::index::Index;
use super::pool::{NOBODY, Pool};
use super::ports::Ports;
use super::reassembly::Reassembly;
use super::receive::TICK_BITS;
use super::segment::Segment;
use super::settings::{TcpCounts, TcpSettings};
use super::stack::{Context, Fate, Stack};
use super::time_wait::TimeWait;
use crate::seam::{Client, CloseReason, ConnId, Listener, SegmentOut, TcpEvent};

/// Ports that are looked at for a free one: those of a client are used in turn, so where so many in
/// a row are taken, nearly all are.
const PORT_TRIES: u32 = 1024;

/// A connection to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// Whose it is.
    pub client: Client,
    /// The client's address.
    pub local: IpAddr,
    /// The server, of the same version of IP.
    pub remote: SocketAddr,
    /// A number that comes back with each event.
    pub user: u32,
    /// Maximum segment size to announce instead of that of the settings: the client's line has a
    /// smaller MTU.
    pub mss: Option<u16>,
    /// Whether the SYN is sent; `false` where another host sends it (see
    /// [`TcpClients::syn_only`]).
    pub sends_syn: bool,
}

/// Why a connection cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The next ports of the client are all in use, or there is no such client.
    #[error("no free port")]
    NoPort,
    /// The most connections at a time are open, or too many servers were connected to.
    #[error("no room for another connection")]
    NoRoom,
}

/// Whose segment it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// That of an open connection.
    Known,
    /// That of a connection in TIME-WAIT.
    TimeWait,
    /// That of no connection: answered with a RST unless it is one (RFC 9293 sec. 3.10.7.1).
    Stray,
    /// It was no TCP.
    NotTcp,
}

/// The TCP of all emulated clients; see the [module](super).
#[derive(Debug)]
pub struct TcpClients {
    conns: Slab,
    index: Index,
    wheel: Wheel,
    time_wait: TimeWait,
    ports: Ports,
    stack: Stack,
}

impl TcpClients {
    /// The TCP of a population of `clients`; `seed` decides ports, initial sequence numbers and
    /// offsets of timestamps.
    #[must_use]
    pub fn new(settings: TcpSettings, seed: u64, clients: u32) -> Self {
        let conns = Slab::with_capacity(settings.max_connections);
        let capacity = conns.capacity();
        Self {
            index: Index::with_capacity(capacity),
            conns,
            wheel: Wheel::new(TICK_BITS),
            time_wait: TimeWait::new(settings.max_time_wait, settings.time_wait),
            ports: Ports::new(clients, settings.first_port, settings.last_port),
            stack: Stack {
                flights: Pool::with_capacity(capacity),
                outgoing: Chunks::with_bytes(settings.send_pool),
                incoming: Reassembly::with_bytes(settings.receive_pool),
                scratch: Vec::new(),
                sender: Sender::new(settings, seed),
            },
        }
    }

    /// Opens a connection; with [`Opening::sends_syn`] the SYN goes out.
    ///
    /// `now` decides the initial sequence number and the SYN's timestamp.
    ///
    /// # Errors
    /// [`ConnectError`]; the port that was looked at is passed over.
    pub fn connect(
        &mut self,
        opening: &Opening,
        now: Timestamp,
        out: &mut impl SegmentOut,
    ) -> Result<ConnId, ConnectError> {
        self.time_wait.expire(now);
        let number = self.stack.sender.remotes.number(opening.remote);
        let remote = SocketAddr::new(opening.remote.ip(), opening.remote.port());
        let (port, hash) = self.free_port(opening, remote)?;
        let number = number.ok_or(ConnectError::NoRoom)?;
        let syn = self.syn(opening, remote, port, now);
        let (slot, conn) = self.conns.take().ok_or(ConnectError::NoRoom)?;
        conn.set_local(opening.local);
        conn.client = opening.client;
        conn.user = opening.user;
        conn.local_port = port;
        conn.remote = number;
        conn.mss = syn.mss;
        let id = ConnId {
            slot,
            generation: conn.generation,
        };
        if !self.stack.begin(conn, syn.seq, now) {
            self.conns.release(slot);
            return Err(ConnectError::NoRoom);
        }
        self.index.insert(hash, slot);
        if opening.sends_syn {
            self.stack.sender.syn(&syn, now, out);
        }
        self.arm(slot, now);
        Ok(id)
    }

    /// Sends the SYN that [`connect`](Self::connect) would send, and keeps nothing of it but the
    /// client's place in its ports. Gives the port.
    ///
    /// This is the paper's host "init"; its host "stat" connects with [`Opening::sends_syn`] off. Both
    /// have the same settings and seed and call for the same openings of each client in the same
    /// order, with the planned time as `now`: then port, initial sequence number and timestamp are
    /// the same. No port is passed over on either host, because "init" does not know which are open:
    /// where one is, "stat" says [`ConnectError::NoPort`].
    ///
    /// # Errors
    /// [`ConnectError::NoPort`] where there is no such client.
    pub fn syn_only(
        &mut self,
        opening: &Opening,
        now: Timestamp,
        out: &mut impl SegmentOut,
    ) -> Result<u16, ConnectError> {
        let remote = SocketAddr::new(opening.remote.ip(), opening.remote.port());
        let port = self.ports.next(&self.stack.sender.keys, opening.client);
        let port = port.ok_or(ConnectError::NoPort)?;
        let syn = self.syn(opening, remote, port, now);
        self.stack.sender.counts.connects += 1;
        self.stack.sender.syn(&syn, now, out);
        Ok(port)
    }

    /// The SYN of an opening from a port.
    fn syn(&self, opening: &Opening, remote: SocketAddr, port: u16, now: Timestamp) -> Syn {
        let sender = &self.stack.sender;
        let local = SocketAddr::new(opening.local, port);
        // The IPv6 header is 20 bytes longer.
        let overhead = if local.is_ipv4() { 0 } else { 20 };
        let default = sender.settings.mss.saturating_sub(overhead);
        let mss = opening.mss.unwrap_or(default);
        Syn {
            client: opening.client,
            local,
            remote,
            seq: sender.keys.initial_sequence(local, remote, now),
            mss: mss.max(1),
        }
    }

    /// The next port of a client that is free towards the server, and the hash of the connection.
    fn free_port(
        &mut self,
        opening: &Opening,
        remote: SocketAddr,
    ) -> Result<(u16, u32), ConnectError> {
        let tries = if opening.sends_syn {
            self.ports.len().min(PORT_TRIES)
        } else {
            1
        };
        let client = opening.client;
        for _ in 0..tries {
            let keys = &self.stack.sender.keys;
            let port = self.ports.next(keys, client).ok_or(ConnectError::NoPort)?;
            let hash = keys.connection(client, port, remote);
            let is_open = self.find(hash, client, port, remote).is_some();
            if !is_open && self.find_ended(hash, client, port, remote).is_none() {
                return Ok((port, hash));
            }
        }
        Err(ConnectError::NoPort)
    }

    #[inline]
    fn find(&self, hash: u32, client: Client, port: u16, remote: SocketAddr) -> Option<u32> {
        let remotes = &self.stack.sender.remotes;
        self.index.find(hash, |slot| {
            self.conns.at(slot).is_some_and(|conn| {
                conn.client == client && conn.local_port == port && remotes.is(conn.remote, remote)
            })
        })
    }

    #[inline]
    fn find_ended(
        &self,
        hash: u32,
        client: Client,
        port: u16,
        remote: SocketAddr,
    ) -> Option<linkweir_table::Id> {
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
        let is_fresh = conn.flight == NOBODY;
        stack.begin_flight(conn);
        let taken = stack
            .flights
            .get_mut(conn.flight)
            .is_some_and(|flight| stack.outgoing.append(&mut flight.data, bytes));
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

    /// Takes a segment to an address of a client. `at` is when it arrived, as the kernel saw it; its
    /// checksum is right.
    pub fn on_segment(
        &mut self,
        packet: &Packet<'_>,
        client: Client,
        at: Timestamp,
        now: Timestamp,
        out: &mut impl SegmentOut,
        to: &mut impl Listener,
    ) -> Heard {
        let Transport::Tcp(tcp) = packet.transport else {
            return Heard::NotTcp;
        };
        self.stack.sender.counts.segments_in += 1;
        let remote = SocketAddr::new(packet.network.src(), tcp.src_port());
        let port = tcp.dst_port();
        let segment = Segment::read(&tcp);
        let hash = self.stack.sender.keys.connection(client, port, remote);
        if let Some(slot) = self.find(hash, client, port, remote)
            && let Some(conn) = self.conns.at_mut(slot)
        {
            let id = ConnId {
                slot,
                generation: conn.generation,
            };
            let mut cx = Context {
                id,
                at,
                now,
                out,
                to: &mut *to,
            };
            let fate = self.stack.hear(conn, &segment, &mut cx);
            self.settle(slot, fate, (at, now), to);
            return Heard::Known;
        }
        // Our end of the answer.
        let frame = TcpFrame::new(SocketAddr::new(packet.network.dst(), port), remote);
        if let Some(id) = self.find_ended(hash, client, port, remote) {
            self.hear_ended(id, client, &segment, frame, now, out);
            return Heard::TimeWait;
        }
        self.refuse_stray(client, &segment, frame, now, out);
        Heard::Stray
    }

    /// A connection in TIME-WAIT hears a segment: a FIN that comes again is acknowledged again and
    /// begins the wait anew. A RST does not end it (RFC 1337).
    fn hear_ended(
        &mut self,
        id: linkweir_table::Id,
        client: Client,
        segment: &Segment<'_>,
        frame: TcpFrame<'_>,
        now: Timestamp,
        out: &mut impl SegmentOut,
    ) {
        let Some(ended) = self.time_wait.get(id).copied() else {
            return;
        };
        let sender = &mut self.stack.sender;
        if segment.has(TcpFlags::RST) || segment.len() == 0 {
            return;
        }
        sender.counts.time_wait_answers += 1;
        let frame = TcpFrame {
            seq: ended.snd_nxt,
            ack: ended.rcv_nxt,
            ..frame
        };
        let echo = segment.timestamps.map(|(value, _)| value);
        sender.last_ack(client, &frame, echo, now, out);
        let end = segment.seq + segment.len();
        if segment.has(TcpFlags::FIN) && end == ended.rcv_nxt {
            self.time_wait.restart(id, now);
        }
    }

    /// Answers a segment of no connection (RFC 9293 sec. 3.10.7.1).
    fn refuse_stray(
        &mut self,
        client: Client,
        segment: &Segment<'_>,
        frame: TcpFrame<'_>,
        now: Timestamp,
        out: &mut impl SegmentOut,
    ) {
        let sender = &mut self.stack.sender;
        sender.counts.strays += 1;
        if segment.has(TcpFlags::RST) {
            return;
        }
        let (seq, ack, flags) = if segment.has(TcpFlags::ACK) {
            (segment.ack, SeqNumber(0), TcpFlags::RST)
        } else {
            let end = segment.seq + segment.len();
            (SeqNumber(0), end, TcpFlags::RST | TcpFlags::ACK)
        };
        let frame = TcpFrame {
            seq,
            ack,
            flags,
            window: 0,
            ..frame
        };
        sender.counts.resets_out += 1;
        sender.bare(client, &frame, now, out);
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
    fn settle(
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
    fn arm(&mut self, slot: u32, now: Timestamp) {
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
            + stack.flights.memory_bytes()
            + stack.outgoing.memory_bytes()
            + stack.incoming.memory_bytes()
            + stack.scratch.capacity()
            + stack.sender.remotes.memory_bytes()
    }

    /// Places in use of the pools that hold what is in flight.
    #[cfg(test)]
    pub(super) fn in_flight(&self) -> usize {
        self.stack.flights.in_use()
            + self.stack.outgoing.in_use() as usize
            + self.stack.incoming.in_use()
    }
}

impl Stack {
    /// Something is to be sent.
    fn begin_flight(&mut self, conn: &mut Connection) {
        if conn.flight == NOBODY {
            // A burst after everything was acknowledged begins with the initial window: RFC 5681
            // sec. 4.1 asks for it after a pause, and not to know how long it was is the same.
            let flight = Flight::at(conn.snd_nxt, Self::initial_window(conn));
            conn.flight = self.flights.insert(flight).unwrap_or(NOBODY);
        }
    }
}
