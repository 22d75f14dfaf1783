//! How messages get to the collector: UDP (RFC 7011 sec. 10.3) or TCP (sec. 10.4).

use std::io::{self, ErrorKind, Write};
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket,
};
use std::time::Duration;

/// How long a run may wait for a collector that does not take what it is sent.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the first connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a later one may take: the run stands still meanwhile.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// The first pause between attempts to connect again, nanoseconds; it doubles up to the longest.
const FIRST_PAUSE_NS: u64 = 1_000_000_000;
const LONGEST_PAUSE_NS: u64 = 64_000_000_000;

/// Which protocol carries the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carrier {
    Udp,
    Tcp,
}

/// What became of a message.
#[derive(Debug)]
pub(super) enum Sent {
    /// It is on its way.
    Yes,
    /// It is on its way, but the collector had refused an earlier one.
    EarlierRefused(io::Error),
    /// It is lost.
    No(io::Error),
    /// It is lost, as those before: there is no connection, and it is too early to try again.
    NotTried,
}

/// A way to the collector.
#[derive(Debug)]
pub(super) enum Transport {
    Udp(UdpSocket),
    Tcp(Connection),
}

/// A TCP connection that is made again when it breaks.
#[derive(Debug)]
pub(super) struct Connection {
    remote: SocketAddr,
    stream: Option<TcpStream>,
    /// When the next attempt may be made, and the pause after it.
    retry_ns: u64,
    pause_ns: u64,
}

impl Transport {
    /// Resolves the name and connects.
    pub(super) fn open(carrier: Carrier, address: &str) -> io::Result<Self> {
        let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
        for remote in address.to_socket_addrs()? {
            let opened = match carrier {
                Carrier::Udp => udp(remote).map(Self::Udp),
                Carrier::Tcp => tcp(remote, CONNECT_TIMEOUT).map(|stream| {
                    Self::Tcp(Connection {
                        remote,
                        stream: Some(stream),
                        retry_ns: 0,
                        pause_ns: FIRST_PAUSE_NS,
                    })
                }),
            };
            match opened {
                Ok(transport) => return Ok(transport),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Whether a message of this moment would be the first of a new connection; makes that
    /// connection where it is time to.
    pub(super) fn renew(&mut self, now_ns: u64) -> bool {
        match self {
            Self::Tcp(connection) => connection.renew(now_ns),
            Self::Udp(_) => false,
        }
    }

    /// Sends one message.
    pub(super) fn send(&mut self, message: &[u8], now_ns: u64) -> Sent {
        match self {
            Self::Udp(socket) => send_datagram(socket, message),
            Self::Tcp(connection) => connection.send(message, now_ns),
        }
    }

    /// Says that nothing more comes.
    pub(super) fn close(&mut self) {
        if let Self::Tcp(connection) = self
            && let Some(stream) = connection.stream.take()
        {
            // A connection that is broken already needs no end.
            stream.shutdown(Shutdown::Write).ok();
        }
    }
}

fn udp(remote: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(remote)?;
    socket.set_write_timeout(Some(SEND_TIMEOUT))?;
    Ok(socket)
}

fn tcp(remote: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&remote, timeout)?;
    stream.set_write_timeout(Some(SEND_TIMEOUT))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A refusal (ICMP port unreachable) is reported with the next call and means a message before: that one
/// is lost, this one is not sent yet.
fn send_datagram(socket: &UdpSocket, message: &[u8]) -> Sent {
    match socket.send(message) {
        Ok(_) => Sent::Yes,
        Err(refused) if refused.kind() == ErrorKind::ConnectionRefused => {
            match socket.send(message) {
                Ok(_) => Sent::EarlierRefused(refused),
                Err(error) => Sent::No(error),
            }
        }
        Err(error) => Sent::No(error),
    }
}

impl Connection {
    fn renew(&mut self, now_ns: u64) -> bool {
        if self.stream.is_some() || now_ns < self.retry_ns {
            return false;
        }
        match tcp(self.remote, RECONNECT_TIMEOUT) {
            Ok(stream) => {
                self.stream = Some(stream);
                true
            }
            Err(_) => {
                self.retry_ns = now_ns.saturating_add(self.pause_ns);
                self.pause_ns = self.pause_ns.saturating_mul(2).min(LONGEST_PAUSE_NS);
                false
            }
        }
    }

    fn send(&mut self, message: &[u8], now_ns: u64) -> Sent {
        let Some(stream) = &mut self.stream else {
            return Sent::NotTried;
        };
        match stream.write_all(message) {
            Ok(()) => {
                self.pause_ns = FIRST_PAUSE_NS;
                Sent::Yes
            }
            Err(error) => {
                // Part of the message may be on its way: after it nothing else would be understood.
                self.stream = None;
                self.retry_ns = now_ns.saturating_add(self.pause_ns);
                Sent::No(error)
            }
        }
    }
}

/// Bytes of a message header.
const HEADER: usize = 16;

/// Bytes of a set header.
const SET_HEADER: usize = 4;

/// Longest message: fits an Ethernet frame with IPv6, UDP and a tunnel around it, so that it is
/// never cut into fragments (RFC 7011 sec. 10.3.3).
pub(super) const MAX_MESSAGE: usize = 1_400;

/// Longest record that fits a message.
pub(super) const MAX_RECORD: usize = MAX_MESSAGE - HEADER - SET_HEADER;

/// A message being filled.
#[derive(Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
    /// The open set: its id and where it begins.
    set: Option<(u16, usize)>,
    /// Flow records in it.
    flows: u32,
    /// Data records in it, those of options included.
    records: u32,
}

impl Message {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.len() <= HEADER
    }

    pub(super) const fn flows(&self) -> u32 {
        self.flows
    }

    /// Data records in it: what the sequence number counts.
    pub(super) const fn records(&self) -> u32 {
        self.records
    }

    /// Appends a record to the set of this id; `false` where it does not fit: send first.
    ///
    /// Templates are records of sets 2 and 3 here, but no data records.
    pub(super) fn add(&mut self, set: u16, record: &[u8], is_flow: bool) -> bool {
        if self.bytes.is_empty() {
            self.bytes.resize(HEADER, 0);
        }
        let is_new = self.set.is_none_or(|(open, _)| open != set);
        let header = if is_new { SET_HEADER } else { 0 };
        if self.bytes.len() + header + record.len() > MAX_MESSAGE {
            return false;
        }
        if is_new {
            self.close_set();
            self.set = Some((set, self.bytes.len()));
            self.bytes.extend_from_slice(&set.to_be_bytes());
            self.bytes.extend_from_slice(&[0, 0]);
        }
        self.bytes.extend_from_slice(record);
        self.records += u32::from(set >= 256);
        self.flows += u32::from(is_flow);
        true
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    fn put_length(&mut self, at: usize, length: usize) {
        // At most MAX_MESSAGE.
        let length = u16::try_from(length).unwrap_or(u16::MAX);
        self.put(at, &length.to_be_bytes());
    }

    fn close_set(&mut self) {
        if let Some((_, at)) = self.set.take() {
            self.put_length(at + 2, self.bytes.len() - at);
        }
    }

    /// The message with its header: version 10, export time in seconds, the data records sent
    /// before, the observation domain (RFC 7011 sec. 3.1).
    pub(super) fn complete(&mut self, export_s: u32, sequence: u32, domain: u32) -> &[u8] {
        self.close_set();
        self.put(0, &10_u16.to_be_bytes());
        self.put_length(2, self.bytes.len());
        self.put(4, &export_s.to_be_bytes());
        self.put(8, &sequence.to_be_bytes());
        self.put(12, &domain.to_be_bytes());
        &self.bytes
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.set = None;
        self.flows = 0;
        self.records = 0;
    }
}
