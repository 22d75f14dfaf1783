//! A bell: any thread ends the wait of the one that receives.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Ends the wait of a thread; its clones ring the same bell.
#[derive(Debug, Clone)]
pub struct Waker {
    event: Arc<OwnedFd>,
}

impl Waker {
    /// A new bell.
    ///
    /// # Errors
    /// What `eventfd(2)` says: too many open files.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            event: Arc::new(event),
        })
    }

    /// Ends the wait that goes on, or else the next one. Several before it count as one. Never
    /// blocks, and makes no lock.
    pub fn wake(&self) {
        // The only failure of an eventfd that is open is a counter at its end: rung already.
        rustix::io::write(&self.event, &1_u64.to_ne_bytes()).ok();
    }

    /// Uses up what was rung.
    pub(super) fn clear(&self) {
        let mut count = [0; 8];
        // Nothing rung, nothing to use up.
        rustix::io::read(&self.event, &mut count).ok();
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
