//! Connections to be made: ports, and the SYN.

use std::net::{IpAddr, SocketAddr};

use linkweir_wire::Timestamp;

use super::clients::TcpClients;
use super::emit::Syn;
use super::ports::Ports;
use crate::seam::{Client, ConnId, SegmentOut};

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
