//! Threads that send to the service of somebody else. The run does not wait for them, and when it ends no longer than it was
//! told to: what hangs in a call of the system is left there.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Longest time that the end of a run waits for such a thread, whatever its options say: one attempt of most.
pub(crate) const LONGEST_END: Duration = Duration::from_secs(5);

/// What was not delivered when nobody waited any longer.
pub(crate) const NO_RESPONSE: &str = "no response before the end of the run";

/// How the thread sees that it is to end.
#[derive(Debug)]
pub(crate) struct Stop {
    stopped: Receiver<()>,
    is_given_up: Arc<AtomicBool>,
}

impl Stop {
    /// Waits for the length of a break; says whether to go on.
    pub(crate) fn rest(&self, length: Duration) -> bool {
        matches!(
            self.stopped.recv_timeout(length),
            Err(RecvTimeoutError::Timeout)
        )
    }

    /// Whether nobody waits any longer: what it counted so far is final.
    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Acquire)
    }
}

/// A thread that sends until this is dropped.
pub(crate) struct Background {
    stop: Option<Sender<()>>,
    ended: Receiver<()>,
    is_given_up: Arc<AtomicBool>,
    limit: Duration,
    give_up: Option<Box<dyn FnOnce() + Send>>,
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Background").finish_non_exhaustive()
    }
}

impl Background {
    /// Starts a thread, for whose end dropping this waits at most `limit`; then `give_up` counts what is left.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(
        name: &str,
        limit: Duration,
        run: impl FnOnce(&Stop) + Send + 'static,
        give_up: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let (end, ended) = channel();
        let is_given_up = Arc::<AtomicBool>::default();
        let seen = Stop {
            stopped,
            is_given_up: Arc::clone(&is_given_up),
        };
        // A panic in it must not become one of the run, and ends it as well.
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(move || {
            let _end: Sender<()> = end;
            run(&seen);
        })?;
        Ok(Self {
            stop: Some(stop),
            ended,
            is_given_up,
            limit: limit.min(LONGEST_END),
            give_up: Some(Box::new(give_up)),
        })
    }

    /// Tells it to end; dropping this waits for that.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
        if let Err(RecvTimeoutError::Timeout) = self.ended.recv_timeout(self.limit) {
            self.is_given_up.store(true, Ordering::Release);
            if let Some(give_up) = self.give_up.take() {
                give_up();
            }
        }
    }
}
