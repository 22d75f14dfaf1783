//! The scanner: its threads, from start to end.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use linkweir_engine::effect::{ScanChunk, ScanReport, Ticket};
use linkweir_sys::wait::monotonic_ns;
use thiserror::Error;

use crate::link::Stop;
use crate::options::{Address, ScannerOptions};
use crate::queue::Key;
use crate::shared::{Mailbox, Shared, Wake, locked};
use crate::status::ScannerStatus;
use crate::threads::{Worker, run_probe, run_spool};

/// Why a scanner did not start. That clamd is away is no reason.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScanStartError {
    /// Nothing can be written to the spool directory.
    #[error("spool directory {path}: {source}")]
    SpoolDir {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system gave no thread or no descriptor.
    #[error("scanner: {0}")]
    System(#[from] io::Error),
}

/// Scans by clamd, on threads of its own: `scan-0` and so on with a connection each, `scan-probe`,
/// and `scan-spool` where there is a spool directory. They are bound by what the thread that starts them
/// has given up, so privileges are to be dropped before; they write to the spool directory alone, and
/// connect to clamd.
///
/// Dropping it ends the threads; scans without a report get one that says so.
#[derive(Debug)]
pub struct Scanner {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Scanner {
    /// Starts the threads. Does not wait for clamd, which may come later.
    ///
    /// # Errors
    /// The spool directory takes no file, or the system gives no thread.
    pub fn start(mut options: ScannerOptions) -> Result<Self, ScanStartError> {
        options.connections = options.connections.max(1);
        options.scans_per_connection = options.scans_per_connection.max(1);
        if let Some(path) = &options.spool_dir {
            tempfile::tempfile_in(path).map_err(|source| ScanStartError::SpoolDir {
                path: path.clone(),
                source,
            })?;
        }
        let shared = Arc::new(Shared::new(options, Stop::new()?));
        if let Address::Tcp { host, port } = &shared.options.address
            && let Ok(host) = host.parse::<IpAddr>()
        {
            // No name to look up: scans need not wait for the first check.
            locked(&shared.health).addresses = vec![SocketAddr::new(host, *port)];
        }
        // Dropped on an error, it ends the threads that run already.
        let mut scanner = Self {
            shared: Arc::clone(&shared),
            threads: Vec::new(),
        };
        scanner.spawn("scan-probe".to_owned(), run_probe)?;
        if let Some(directory) = shared.options.spool_dir.clone() {
            scanner.spawn("scan-spool".to_owned(), move |shared| {
                run_spool(shared, &directory);
            })?;
        }
        for number in 0..shared.options.connections {
            scanner.spawn(format!("scan-{number}"), |shared| Worker::new(shared).run())?;
        }
        Ok(scanner)
    }

    fn spawn(
        &mut self,
        name: String,
        run: impl FnOnce(&Shared) + Send + 'static,
    ) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = Builder::new().name(name).spawn(move || run(&shared))?;
        self.threads.push(thread);
        Ok(())
    }

    /// A client for one thread. `wake` is called when there are reports, by a thread of the scanner or
    /// within [`ScanClient::submit`]: it must not wait, nor call the client.
    #[must_use]
    pub fn client(&self, wake: impl Fn() + Send + 'static) -> ScanClient {
        ScanClient::new(Arc::clone(&self.shared), Box::new(wake))
    }

    /// Counters, and whether clamd is there.
    #[must_use]
    pub fn status(&self) -> ScannerStatus {
        self.shared.status()
    }
}

impl Drop for Scanner {
    fn drop(&mut self) {
        self.shared.stop_all();
        for thread in self.threads.drain(..) {
            // A panic in a thread must not become one of the run.
            thread.join().ok();
        }
    }
}

/// Hands chunks in and takes reports out; one for each thread that has a stage. Nothing here waits
/// for a disk or for clamd. Dropping it abandons its scans.
#[derive(Debug)]
pub struct ScanClient {
    shared: Arc<Shared>,
    mailbox: Arc<Mailbox>,
    number: u64,
}

impl ScanClient {
    pub(crate) fn new(shared: Arc<Shared>, wake: Wake) -> Self {
        let mailbox = Arc::new(Mailbox::new(wake));
        let mut state = locked(&shared.state);
        let number = state.next_client;
        state.next_client += 1;
        state.clients.insert(number, Arc::clone(&mailbox));
        drop(state);
        Self {
            shared,
            mailbox,
            number,
        }
    }

    /// Takes a chunk in. Every scan whose last chunk was submitted gets one report, unless it is
    /// abandoned; one that breaks a bound gets a failure, at its last chunk.
    pub fn submit(&self, chunk: ScanChunk) {
        let key = Key {
            client: self.number,
            ticket: chunk.ticket,
        };
        let now = monotonic_ns();
        let mut state = locked(&self.shared.state);
        let next = state.queue.add(self.number, chunk, now);
        self.shared.follow(state, key, next);
    }

    /// Nobody waits for this scan any more: no report comes, and what has not been sent is not.
    pub fn abandon(&self, ticket: Ticket) {
        let key = Key {
            client: self.number,
            ticket,
        };
        let was_there = locked(&self.shared.state).queue.abandon(key);
        locked(&self.shared.tally).abandoned += u64::from(was_there);
    }

    /// Appends the reports that have come since the last call.
    pub fn take_reports(&self, into: &mut Vec<ScanReport>) {
        self.mailbox.take(into);
    }
}

impl Drop for ScanClient {
    fn drop(&mut self) {
        let mut state = locked(&self.shared.state);
        state.queue.abandon_all(self.number);
        state.clients.remove(&self.number);
    }
}
