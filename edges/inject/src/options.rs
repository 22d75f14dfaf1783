//! The options of a port, and why it cannot be opened or used.

use std::str::FromStr;
use std::time::Duration;
use std::{fmt, io};

use linkweir_sys::packet_socket::PacketSocket;

/// How frames are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SenderKind {
    /// `AF_XDP` where the kernel allows it, else a packet socket.
    #[default]
    Auto,
    /// An `AF_XDP` socket that only sends: frames are copied to memory that is shared with the kernel.
    Xdp,
    /// A packet socket and `sendmmsg(2)`, past the queueing discipline.
    Packet,
}

impl SenderKind {
    /// The word on the command line and in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Xdp => "xdp",
            Self::Packet => "packet",
        }
    }
}

impl fmt::Display for SenderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SenderKind {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let all = [Self::Auto, Self::Xdp, Self::Packet];
        let found = all.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or("a sender is auto, xdp or packet")
    }
}

/// What a port is opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortOptions {
    /// Name of the interface.
    pub interface: String,
    /// How frames are sent.
    pub sender: SenderKind,
    /// Whether the card is to take frames for hardware addresses other than its own.
    pub promiscuous: bool,
    /// Memory for frames that wait to be taken, in bytes as the kernel counts them (about 1 KiB for a
    /// short frame). The kernel may give less to an ordinary user.
    pub receive_buffer: usize,
    /// How long after an arrival the next is looked out for without sleeping. Being woken costs a
    /// receiver some 20 us, and the sender of the frame, on the core that sent it, the interrupt.
    pub linger: Duration,
    /// Whether the kernel leaves out what is not load: all but ARP, neighbour discovery and TCP.
    pub only_load: bool,
}

impl PortOptions {
    /// The defaults, for an interface.
    #[must_use]
    pub fn new(interface: &str) -> Self {
        Self {
            interface: interface.to_owned(),
            sender: SenderKind::Auto,
            promiscuous: true,
            receive_buffer: 128 << 20,
            linger: Duration::from_micros(30),
            only_load: true,
        }
    }
}

/// Why an interface cannot be used, or can no more.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// There is none of this name in this network namespace.
    #[error("no interface {0:?} in this network namespace")]
    NoInterface(String),
    /// Its frames are not Ethernet frames.
    #[error("the interface {0:?} is not an Ethernet interface (hardware type {1})")]
    NotEthernet(String, u16),
    /// The process may not.
    #[error(
        "sending frames on {0:?} needs CAP_NET_RAW (run as root, or in a network namespace of your own)"
    )]
    NotPermitted(String),
    /// It is not up, or went down.
    #[error("the interface {0:?} is down")]
    Down(String),
    /// It was removed while it was in use.
    #[error("the interface {0:?} is gone")]
    Gone(String),
    /// What the kernel said of anything else.
    #[error("{doing} on {interface:?}: {error}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// Where.
        interface: String,
        /// What the kernel said.
        #[source]
        error: io::Error,
    },
}

/// `ENXIO`, `ENODEV`: no such device.
const NO_DEVICE: [i32; 2] = [6, 19];

impl PortError {
    /// The error of an operation on a socket of the interface.
    pub(crate) fn of(
        error: io::Error,
        doing: &'static str,
        interface: &str,
        socket: Option<&PacketSocket>,
    ) -> Self {
        let name = interface.to_owned();
        // A socket of an interface that is no more is bound to none.
        let is_gone = error
            .raw_os_error()
            .is_some_and(|code| NO_DEVICE.contains(&code));
        let is_unbound = socket.is_some_and(|socket| matches!(socket.interface(), Ok(None)));
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::NotPermitted(name),
            _ if is_gone => Self::Gone(name),
            io::ErrorKind::NetworkDown if is_unbound => Self::Gone(name),
            io::ErrorKind::NetworkDown => Self::Down(name),
            _ => Self::Io {
                doing,
                interface: name,
                error,
            },
        }
    }

    /// Whether the interface was removed: nothing will ever pass it again.
    #[must_use]
    pub const fn is_gone(&self) -> bool {
        matches!(self, Self::Gone(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_have_words() {
        for kind in [SenderKind::Auto, SenderKind::Xdp, SenderKind::Packet] {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert!("dpdk".parse::<SenderKind>().is_err());
    }
}
