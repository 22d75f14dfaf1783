//! What a service tells systemd (`sd_notify`): ready, well, stopping. Nothing where nobody listens.

use std::os::unix::net::UnixDatagram;

/// The socket of `NOTIFY_SOCKET`, opened before privileges go.
#[derive(Debug, Default)]
pub(super) struct Notifier(Option<UnixDatagram>);

impl Notifier {
    /// Connects to the socket that systemd names.
    pub(super) fn open() -> Self {
        let Some(name) = std::env::var_os("NOTIFY_SOCKET") else {
            return Self(None);
        };
        let connect = || {
            let socket = UnixDatagram::unbound()?;
            match name.to_str().and_then(|name| name.strip_prefix('@')) {
                Some(name) => {
                    use std::os::linux::net::SocketAddrExt as _;
                    let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
                    socket.connect_addr(&address)?;
                }
                None => socket.connect(&name)?,
            }
            std::io::Result::Ok(socket)
        };
        Self(connect().ok())
    }

    fn say(&self, state: &str) {
        if let Some(socket) = &self.0
            && socket.send(state.as_bytes()).is_err()
        {
            // A supervisor that does not listen is not told.
        }
    }

    pub(super) fn is_ready(&self) {
        self.say("READY=1");
    }

    pub(super) fn is_well(&self) {
        self.say("WATCHDOG=1");
    }

    pub(super) fn is_stopping(&self) {
        self.say("STOPPING=1");
    }
}
