//! The watchdog of the workers, and what the service manager is notified of.

use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use linkweir_sys::signals::kill_this_process;

use super::shared::Shared;
use crate::clock;
use crate::exit::warn;

/// How often it looks.
const EVERY: Duration = Duration::from_millis(100);

/// Looks at the workers until the run stops.
pub(super) fn watch(shared: &Arc<Shared>, timeout: Duration, notifier: &Notifier) {
    let mut seen: Vec<(u64, Instant)> = shared.workers.iter().map(|_| (0, clock::now())).collect();
    let mut notified = clock::now();
    notifier.is_ready();
    while !shared.is_stopping() {
        std::thread::park_timeout(EVERY);
        for (number, (worker, (beats, since))) in shared.workers.iter().zip(&mut seen).enumerate() {
            let now = worker.beats.load(Ordering::Relaxed);
            if now != *beats {
                (*beats, *since) = (now, clock::now());
            } else if since.elapsed() >= timeout {
                warn(&format!(
                    "worker {number} has made no progress for {:.1} s: the gateway ends to free its queue",
                    since.elapsed().as_secs_f64()
                ));
                kill_this_process();
            }
        }
        if notified.elapsed() >= Duration::from_secs(1) {
            notified = clock::now();
            notifier.is_well();
        }
    }
    notifier.is_stopping();
}

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
            // A supervisor that does not listen is not notified.
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
