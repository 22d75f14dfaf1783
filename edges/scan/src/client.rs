//! The scanner as a queue thread sees it.

use std::sync::Arc;

use linkweir_engine::effect::{ScanChunk, ScanReport, Ticket};
use linkweir_sys::wait::monotonic_ns;

use crate::queue::Key;
use crate::shared::{Mailbox, Shared, Wake, locked};

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
