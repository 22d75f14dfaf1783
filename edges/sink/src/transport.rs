//! How messages get to a collector: UDP (RFC 7011 sec. 10.3, RFC 5426) or TCP (RFC 7011 sec. 10.4, RFC 6587).

use std::io::{self, ErrorKind, Read as _, Write};
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket,
};
use std::time::Duration;

use linkweir_engine::SinkError;
use linkweir_sys::wait::monotonic_ns;

use crate::delivery::{Backoff, Delivery};
use crate::options::OutputOptions;

/// How long one call may wait for a collector that does not take what it is sent: then it is looked whether anybody still waits
/// for us.
const SEND_TIMEOUT: Duration = Duration::from_millis(250);

/// After so long without taking a byte, people are told of it, and then the connection is given up: the machine behind it
/// may be gone.
const SILENT: Duration = Duration::from_secs(10);
const STALLED: Duration = Duration::from_secs(60);

/// How long a collector may say nothing before its connection is closed.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// How long an attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection that has lasted so long was a good one: after it the first pause goes again.
const LASTING: Duration = Duration::from_secs(10);

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
    /// It is lost, as those after it: nobody waits for the collector any longer.
    GivenUp,
}

/// Whether a message can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ready {
    /// As the one before.
    Yes,
    /// It is the first of a new connection.
    New,
    /// There is no connection, and nobody waits for one any longer.
    GivenUp,
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
    remotes: Vec<SocketAddr>,
    stream: Option<TcpStream>,
    backoff: Backoff,
    connected_ns: u64,
}

impl Transport {
    /// Resolves the name, and connects where the collector must be there.
    fn open(carrier: Carrier, address: &str, may_be_away: bool) -> io::Result<Self> {
        let remotes: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
        match carrier {
            Carrier::Udp => first(&remotes, udp).map(Self::Udp),
            Carrier::Tcp => {
                let stream = match may_be_away {
                    true => None,
                    false => Some(first(&remotes, tcp)?),
                };
                Ok(Self::Tcp(Connection {
                    remotes,
                    stream,
                    backoff: Backoff::default(),
                    connected_ns: monotonic_ns(),
                }))
            }
        }
    }

    /// Waits for a connection.
    pub(crate) fn ready(&mut self, delivery: &Delivery) -> Ready {
        match self {
            Self::Tcp(connection) => connection.ready(delivery),
            Self::Udp(_) => Ready::Yes,
        }
    }

    /// Sends one message, after [`Self::ready`]. Waits for a collector that does not take it.
    pub(crate) fn send(&mut self, message: &[u8], delivery: &Delivery) -> Sent {
        match self {
            Self::Udp(socket) => send_datagram(socket, message),
            Self::Tcp(connection) => connection.send(message, delivery),
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

/// What the first of these addresses gives that gives something.
fn first<T>(remotes: &[SocketAddr], open: fn(SocketAddr) -> io::Result<T>) -> io::Result<T> {
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for remote in remotes {
        match open(*remote) {
            Ok(opened) => return Ok(opened),
            Err(error) => last = error,
        }
    }
    Err(last)
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

fn tcp(remote: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&remote, CONNECT_TIMEOUT)?;
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
    fn ready(&mut self, delivery: &Delivery) -> Ready {
        if self.stream.is_some() {
            return Ready::Yes;
        }
        loop {
            if delivery.is_given_up() {
                return Ready::GivenUp;
            }
            match first(&self.remotes, tcp) {
                Ok(stream) => {
                    self.stream = Some(stream);
                    self.connected_ns = monotonic_ns();
                    return Ready::New;
                }
                Err(error) => delivery.away(&error.to_string()),
            }
            if !self.backoff.rest(delivery) {
                return Ready::GivenUp;
            }
        }
    }

    fn send(&mut self, message: &[u8], delivery: &Delivery) -> Sent {
        let Some(stream) = &mut self.stream else {
            return match delivery.is_given_up() {
                true => Sent::GivenUp,
                false => Sent::No(ErrorKind::NotConnected.into()),
            };
        };
        match write_all(stream, message, delivery) {
            Ok(true) => Sent::Yes,
            Ok(false) => {
                self.stream = None;
                Sent::GivenUp
            }
            Err(error) => {
                // Part of the message may be on its way: after it nothing else would be understood.
                self.stream = None;
                let lasted = monotonic_ns().saturating_sub(self.connected_ns);
                if Duration::from_nanos(lasted) >= LASTING {
                    self.backoff.reset();
                }
                delivery.away(&error.to_string());
                Sent::No(error)
            }
        }
    }
}

/// Writes a message for as long as somebody waits for that; false where nobody does any longer.
fn write_all(stream: &mut TcpStream, message: &[u8], delivery: &Delivery) -> io::Result<bool> {
    let mut rest = message;
    let mut stalled = Duration::ZERO;
    while !rest.is_empty() {
        match stream.write(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => {
                rest = rest.get(written..).unwrap_or_default();
                stalled = Duration::ZERO;
                delivery.take();
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if delivery.is_given_up() {
                    return Ok(false);
                }
                stalled += SEND_TIMEOUT;
                let why = "it does not take what it is sent";
                if stalled >= STALLED {
                    return Err(io::Error::new(ErrorKind::TimedOut, why));
                }
                if stalled >= SILENT {
                    delivery.away(why);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(true)
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

/// The way to the collector that a destination names by this scheme; `examples` are destinations as they should be. A live run
/// connects later, and waits for a collector that is away: what it captures meanwhile is not lost. A run over files has lost nothing
/// yet, so it ends at once.
///
/// # Errors
/// [`SinkError::Refused`] where it names no collector, or where files were to be rotated; [`SinkError::Io`] where its name has no
/// address, or where a run over files is refused the connection.
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
    let transport =
        Transport::open(carrier, &address, options.is_live).map_err(|source| SinkError::Io {
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
