//! Why frames cannot be sent or received.

use std::io;

use linkweir_sys::packet_socket::PacketSocket;

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
