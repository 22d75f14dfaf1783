//! How messages get to a collector: UDP (RFC 7011 sec. 10.3, RFC 5426) or TCP (RFC 7011 sec. 10.4, RFC 6587).

use std::io::{self, ErrorKind, Read as _, Write};
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket,
};
use std::time::Duration;

use linkweir_engine::SinkError;

use crate::options::OutputOptions;

/// How long a run may wait for a collector that does not take what it is sent.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a collector may say nothing before its connection is closed.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the first connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a later one may take: the run stands still meanwhile.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// The first pause between attempts to connect again, nanoseconds; it doubles up to the longest.
const FIRST_PAUSE_NS: u64 = 1_000_000_000;
const LONGEST_PAUSE_NS: u64 = 64_000_000_000;

/// Which protocol carries the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    Udp,
    Tcp,
}

/// What became of a message.
#[derive(Debug)]
pub(crate) enum Sent {
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
pub(crate) enum Transport {
    Udp(UdpSocket),
    Tcp(Connection),
}

/// A TCP connection that is made again when it breaks.
#[derive(Debug)]
pub(crate) struct Connection {
    remote: SocketAddr,
    stream: Option<TcpStream>,
    /// When the next attempt may be made, and the pause after it.
    retry_ns: u64,
    pause_ns: u64,
}

impl Transport {
    /// Resolves the name and connects.
    fn open(carrier: Carrier, address: &str) -> io::Result<Self> {
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
    pub(crate) fn renew(&mut self, now_ns: u64) -> bool {
        match self {
            Self::Tcp(connection) => connection.renew(now_ns),
            Self::Udp(_) => false,
        }
    }

    /// Sends one message.
    pub(crate) fn send(&mut self, message: &[u8], now_ns: u64) -> Sent {
        match self {
            Self::Udp(socket) => send_datagram(socket, message),
            Self::Tcp(connection) => connection.send(message, now_ns),
        }
    }

    /// Says that nothing more comes.
    pub(crate) fn close(&mut self) {
        if let Self::Tcp(connection) = self
            && let Some(stream) = connection.stream.take()
        {
            // A connection that is broken already needs no end. With something unread the kernel would reset it, and the
            // collector lose what it has not read.
            stream.shutdown(Shutdown::Write).ok();
            stream.set_read_timeout(Some(END_TIMEOUT)).ok();
            let mut unread = [0; 1024];
            while matches!((&stream).read(&mut unread), Ok(len) if len > 0) {}
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
                let error = match error.kind() {
                    ErrorKind::WouldBlock => {
                        io::Error::new(ErrorKind::TimedOut, "it does not take what it is sent")
                    }
                    _ => error,
                };
                // Part of the message may be on its way: after it nothing else would be understood.
                self.stream = None;
                self.retry_ns = now_ns.saturating_add(self.pause_ns);
                Sent::No(error)
            }
        }
    }
}

/// The carrier and the address of a collector: `SCHEME://HOST:PORT`, `SCHEME+udp://`, `SCHEME+tcp://`; nothing where the scheme
/// is another one.
pub(crate) fn carrier(destination: &str, scheme: &str) -> Option<(Carrier, String)> {
    let (named, address) = destination.split_once("://")?;
    let carrier = match named.strip_prefix(scheme)? {
        "" | "+udp" => Carrier::Udp,
        "+tcp" => Carrier::Tcp,
        _ => return None,
    };
    let address = address.strip_suffix('/').unwrap_or(address);
    Some((carrier, address.to_owned()))
}

/// Connects to the collector that a destination names by this scheme; `examples` are destinations as they should be.
///
/// # Errors
/// [`SinkError::Refused`] where it names no collector, or where files were to be rotated; [`SinkError::Io`] where its name has no
/// address or it refuses the connection.
pub(crate) fn connect(
    destination: &str,
    scheme: &str,
    examples: &str,
    options: &OutputOptions,
) -> Result<(Carrier, Transport), SinkError> {
    let refuse = |message: String| SinkError::Refused {
        destination: destination.to_owned(),
        message,
    };
    let named = carrier(destination, scheme).filter(|(_, address)| has_port(address));
    let Some((carrier, address)) = named else {
        return Err(refuse(format!(
            "a collector is host:port, for example {examples}"
        )));
    };
    if options.rotation.is_some() {
        return Err(refuse("only a file can be rotated".to_owned()));
    }
    let transport = Transport::open(carrier, &address).map_err(|source| SinkError::Io {
        destination: destination.to_owned(),
        source,
    })?;
    Ok((carrier, transport))
}

/// Whether an address is `HOST:PORT`. `rsplit_once` alone would take the last group of `::1` for a port.
fn has_port(address: &str) -> bool {
    let port = address
        .rsplit_once(':')
        .filter(|(host, _)| {
            !host.is_empty()
                && (!host.contains(':') || (host.starts_with('[') && host.ends_with(']')))
        })
        .and_then(|(_, port)| port.parse::<u16>().ok());
    port.is_some_and(|port| port > 0)
}
