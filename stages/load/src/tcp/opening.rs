//! Connections to be made: ports, and the SYN.
//!
//! The SYN ACK. Source: RFC 9293 sec. 3.10.7.3.

use super::clients::TcpClients;
use super::connection::{Connection, Marks, State};
use super::emit::{Syn, TIMESTAMPS_LEN};
use super::flight::Flight;
use super::keys::Ports;
use super::segment::Segment;
use super::stack::{Context, Fate, Stack};
use crate::seam::{Client, CloseReason, ConnId, Listener, SegmentOut, TcpEvent};
use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{SeqNumber, TcpFlags, Timestamp};
use std::net::{IpAddr, SocketAddr};

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

impl TcpClients {
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
    /// have the same settings and seed, [`split`](Self::split) their ports, and call for the same
    /// openings of each client in the same order, with the planned time as `now`: then port, initial
    /// sequence number and timestamp are the same. No port is passed over on either host, because
    /// "init" does not know which are open: where one is, "stat" says [`ConnectError::NoPort`].
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

    /// Divides the ports of each client between the connections that two hosts make together (the lower
    /// half) and those that one makes alone, and counts time from `begin`, which both know by their
    /// own clocks. To be called before the first connection.
    pub fn split(&mut self, begin: Timestamp) {
        let settings = &self.stack.sender.settings;
        let (first, last) = (settings.first_port, settings.last_port);
        let clients = self.ports.clients();
        let middle = first + last.saturating_sub(first) / 2;
        self.ports = Ports::new(clients, first, middle);
        self.own_ports = Some(Ports::new(clients, middle.saturating_add(1), last));
        self.stack.sender.keys.begin(begin);
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
        let tries = if opening.sends_syn { PORT_TRIES } else { 1 };
        let client = opening.client;
        for _ in 0..tries {
            let keys = &self.stack.sender.keys;
            let ports = match &mut self.own_ports {
                Some(own) if opening.sends_syn => own,
                _ => &mut self.ports,
            };
            let port = ports.next(keys, client).ok_or(ConnectError::NoPort)?;
            let hash = keys.connection(client, port, remote);
            let is_open = self.find(hash, client, port, remote).is_some();
            if !is_open && self.find_ended(hash, client, port, remote).is_none() {
                return Ok((port, hash));
            }
        }
        Err(ConnectError::NoPort)
    }
}

/// The least segment that a server may ask for; below, headers would be nearly all that is sent.
const LEAST_MSS: u16 = 64;

impl Stack {
    /// The SYN of a connection in SYN-SENT; until it is made its `mss` is what we announce.
    pub(super) fn syn_of(&self, conn: &Connection) -> Option<Syn> {
        Some(Syn {
            client: conn.client,
            local: conn.local(),
            remote: self.sender.remotes.get(conn.remote)?,
            seq: conn.snd_una,
            mss: conn.mss,
        })
    }

    /// Puts a connection into SYN-SENT; what is under way is the SYN.
    pub(super) fn begin(&mut self, conn: &mut Connection, iss: SeqNumber, now: Timestamp) -> bool {
        conn.snd_una = iss;
        conn.snd_nxt = iss + 1;
        let mut flight = Flight::at(iss + 1, 0);
        flight.begun = now;
        flight.due = now + self.sender.rto(conn);
        let Some(at) = self.flights.insert(flight) else {
            return false;
        };
        conn.flight = at;
        self.sender.counts.connects += 1;
        true
    }

    /// A connection in SYN-SENT hears a segment. Data and FIN of a SYN ACK are not taken: the server
    /// sends them again.
    pub(super) fn hear_syn_ack(
        &mut self,
        conn: &mut Connection,
        segment: &Segment<'_>,
        cx: &mut Context<'_, impl SegmentOut, impl Listener>,
    ) -> Fate {
        let has_ack = segment.has(TcpFlags::ACK);
        let is_reset = segment.has(TcpFlags::RST);
        if has_ack && segment.ack != conn.snd_nxt {
            self.sender.counts.bad_acks += 1;
            if !is_reset {
                self.refuse(conn, segment, cx);
            }
            return Fate::Open;
        }
        if is_reset {
            if !has_ack {
                return Fate::Open;
            }
            self.sender.counts.resets_in += 1;
            return Fate::Ended(CloseReason::Refused);
        }
        if !segment.has(TcpFlags::SYN) {
            return Fate::Open;
        }
        if !has_ack {
            self.sender.counts.simultaneous_opens += 1;
            return Fate::Open;
        }
        self.establish(conn, segment, cx);
        Fate::Open
    }

    /// Answers a segment that acknowledges what we never sent.
    fn refuse(
        &mut self,
        conn: &Connection,
        segment: &Segment<'_>,
        cx: &mut Context<'_, impl SegmentOut, impl Listener>,
    ) {
        let Some(remote) = self.sender.remotes.get(conn.remote) else {
            return;
        };
        let frame = TcpFrame {
            seq: segment.ack,
            flags: TcpFlags::RST,
            window: 0,
            ..TcpFrame::new(conn.local(), remote)
        };
        self.sender.counts.resets_out += 1;
        self.sender.bare(conn.client, &frame, cx.now, cx.out);
    }

    fn establish(
        &mut self,
        conn: &mut Connection,
        segment: &Segment<'_>,
        cx: &mut Context<'_, impl SegmentOut, impl Listener>,
    ) {
        self.agree(conn, segment);
        conn.rcv_nxt = segment.seq + 1;
        conn.rcv_acked = conn.rcv_nxt;
        conn.snd_una = segment.ack;
        // Never scaled in a SYN ACK.
        conn.snd_wnd = u32::from(segment.window);
        conn.snd_wl1 = segment.seq;
        conn.state = State::Established;
        conn.backoff = 0;
        let (begun, again) = self
            .flights
            .get(conn.flight)
            .map_or((cx.at, 0), |flight| (flight.begun, flight.retries));
        let handshake_ns = cx.at.nanos_since(begun);
        if again == 0 {
            self.sample(conn, handshake_ns);
        } else {
            conn.marks.set(Marks::SYN_LOST);
            self.sample_echo(conn, segment, cx.at);
        }
        self.sender.counts.established += 1;
        let event = TcpEvent::Connected {
            handshake_ns,
            syn_retransmissions: u32::from(again),
        };
        cx.tell(conn, event);
        if conn.marks.has(Marks::CLOSE_ASKED) {
            conn.state = State::FinWait1;
        }
        let has_data = self
            .flights
            .get(conn.flight)
            .is_some_and(|flight| flight.data.end() != conn.snd_nxt);
        if has_data || conn.has_fin() {
            let cwnd = Self::initial_window(conn);
            if let Some(flight) = self.flights.get_mut(conn.flight) {
                flight.cwnd = cwnd;
                flight.due = Timestamp::MAX;
                flight.retries = 0;
            }
        } else {
            self.end_flight(conn);
        }
        if self.sender.settings.delay_handshake_ack {
            self.owe_ack(conn, cx.now);
        } else {
            conn.marks.set(Marks::ACK_NOW);
        }
    }

    /// Takes the options of the SYN ACK; a server that answers with SYN cookies may send none.
    fn agree(&self, conn: &mut Connection, segment: &Segment<'_>) {
        let settings = &self.sender.settings;
        let overhead = match segment.timestamps {
            Some((value, _)) if settings.timestamps => {
                conn.marks.set(Marks::TIMESTAMPS);
                conn.ts_recent = value;
                TIMESTAMPS_LEN
            }
            _ => 0,
        };
        if settings.sack && segment.sack_permitted {
            conn.marks.set(Marks::SACK);
        }
        if let Some(scale) = segment.window_scale {
            conn.marks.set(Marks::SCALED);
            conn.snd_shift = scale;
        }
        // RFC 9293 sec. 3.7.1: without the option 536 or 1220. Until now `mss` is what we announced.
        let default = if conn.local().is_ipv4() { 536 } else { 1220 };
        let theirs = segment.mss.unwrap_or(default).max(LEAST_MSS);
        // RFC 6691: options come off what is announced.
        conn.rcv_mss = conn.mss.saturating_sub(overhead).max(1);
        conn.mss = conn.mss.max(LEAST_MSS).min(theirs) - overhead;
    }

    /// `IW` (RFC 6928); one segment where the SYN was lost (RFC 5681 sec. 3.1).
    pub(super) fn initial_window(conn: &Connection) -> u32 {
        let mss = u32::from(conn.mss);
        if conn.marks.has(Marks::SYN_LOST) {
            return mss;
        }
        (10 * mss).min((2 * mss).max(14_600))
    }
}
