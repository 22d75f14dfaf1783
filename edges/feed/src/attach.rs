//! The consumer's side of a feed: finds its ring by name and reads it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linkweir_engine::{Drops, Progress, Source, SourceError, SourceEvent};
use linkweir_sys::shm::RingReader;
use linkweir_wire::Timestamp;

use crate::consumer::{Consumer, Step};
use crate::socket::ConsumerName;
use crate::socket::{BYE, Heard, connect_to, hear, hear_with, peer, request, say, wait_any};

/// A feeder that is not there yet is looked for this often.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A feeder answers at once; one that does not in this time is none.
const ANSWER_MS: u32 = 5_000;
/// After this long without a frame the caller is notified.
const IDLE: Duration = Duration::from_millis(100);

/// One consumer of a feed in another process.
///
/// Ends when the feeder has finished and everything was read. A feeder that ends without finishing is
/// a fault, after everything it gave was read. Dropping it tells the feeder that this consumer ended on
/// purpose; a successor goes on with the frames after the last batch.
#[derive(Debug)]
pub struct FeedSource {
    // In this order: the ring is left before the feeder hears of it.
    consumer: Consumer,
    connection: Option<Connection>,
    stop: Arc<AtomicBool>,
    consumers: u32,
}

#[derive(Debug)]
struct Connection(OwnedFd);

impl Drop for Connection {
    fn drop(&mut self) {
        if say(&self.0, BYE).is_err() {
            // The feeder has gone first.
        }
    }
}

/// Becomes consumer K of the feed NAME. Where no such feeder runs yet, waits up to `patience` for it,
/// or until `stop`; `on_wait` is called once before the waiting begins.
///
/// # Errors
/// Where there is no feeder, it refuses (no such consumer, attached already, another version or
/// user), or the ring cannot be mapped.
pub fn attach(
    name: &ConsumerName,
    stop: Arc<AtomicBool>,
    patience: Duration,
    on_wait: &mut dyn FnMut(),
) -> Result<FeedSource, SourceError> {
    let failed = |message: String| SourceError {
        input: format!("feed {name}"),
        message,
    };
    let mut waited = Duration::ZERO;
    let connection = loop {
        match connect_to(&name.feed) {
            Ok(connection) => break connection,
            Err(error) if is_absence(&error) => {}
            Err(error) => return Err(failed(error.to_string())),
        }
        if waited >= patience || stop.load(Ordering::Relaxed) {
            return Err(failed(format!(
                "no feeder called `{}` runs in this network namespace",
                name.feed
            )));
        }
        if waited.is_zero() {
            on_wait();
        }
        pause(LOOK_EVERY);
        waited += LOOK_EVERY;
    };
    let own = rustix::process::geteuid().as_raw();
    match peer(&connection) {
        // Whoever owns the memory could change it under this process: only oneself or root may.
        Ok((user, _)) if user == own || user == 0 => {}
        Ok((user, _)) => {
            return Err(failed(format!(
                "the feeder runs for user {user}; run the consumer for the same one"
            )));
        }
        Err(error) => return Err(failed(error.to_string())),
    }
    let (reader, consumers) = ask(&connection, name.number).map_err(failed)?;
    Ok(FeedSource {
        consumer: Consumer::new(reader, format!("feed {name}")),
        connection: Some(Connection(connection)),
        stop,
        consumers,
    })
}

/// Whether nobody listens there.
fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, NotFound, WouldBlock};
    matches!(error.kind(), ConnectionRefused | NotFound | WouldBlock)
}

#[expect(
    clippy::disallowed_methods,
    reason = "beside the data path: there is no feeder yet, or nothing more to feed"
)]
pub(crate) fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// Asks for a ring.
fn ask(connection: &OwnedFd, number: u32) -> Result<(RingReader, u32), String> {
    let text = |error: io::Error| error.to_string();
    // A feeder that wants nothing of us says why and hangs up, perhaps before it is asked.
    let said = say(connection, request(number).as_bytes());
    rustix::io::ioctl_fionbio(connection, true).map_err(|error| error.to_string())?;
    wait_any(std::iter::once(connection), ANSWER_MS).map_err(text)?;
    let (answer, files) = hear_with(connection).map_err(|error| match said {
        Ok(()) => format!("the feeder does not answer: {error}"),
        Err(_) => "the feeder hung up: it may be of another user".to_owned(),
    })?;
    if let Some(reason) = answer.strip_prefix("no ") {
        return Err(reason.escape_default().to_string());
    }
    let consumers = answer.strip_prefix("ok ").and_then(|n| n.parse().ok());
    let (Some(consumers), [data, control]) = (consumers, files.as_slice()) else {
        return Err("the feeder's answer is none".to_owned());
    };
    match RingReader::open(data.as_fd(), control.as_fd()) {
        Ok(reader) => Ok((reader, consumers)),
        Err(error) => Err(error.to_string()),
    }
}

impl FeedSource {
    /// Number of consumers of the feed.
    #[must_use]
    pub const fn consumers(&self) -> u32 {
        self.consumers
    }

    /// Whether the feeder's process is gone.
    fn is_alone(&self) -> bool {
        self.connection.as_ref().is_none_or(|connection| {
            loop {
                match hear(&connection.0) {
                    Heard::Gone => return true,
                    Heard::Nothing => return false,
                    Heard::Text(_) => {}
                }
            }
        })
    }
}

impl Source for FeedSource {
    fn next_event(&mut self) -> Result<SourceEvent<'_>, SourceError> {
        if self.stop.load(Ordering::Relaxed) {
            self.consumer.give_back();
            return Ok(SourceEvent::End);
        }
        let mut step = self.consumer.step(IDLE);
        if step == Step::Idle && self.is_alone() {
            // What it gave, or that it finished, may have come in the meantime.
            step = self.consumer.step(Duration::ZERO);
            if step == Step::Idle {
                self.consumer.end();
                step = Step::Broken("the feeder was killed or cut this consumer off");
            }
        }
        Ok(match step {
            Step::Frames => self.consumer.batch(),
            Step::Idle => SourceEvent::Idle,
            Step::End => SourceEvent::End,
            Step::Broken(message) => SourceEvent::Fault(self.consumer.fault(message)),
        })
    }

    fn progress(&self) -> Progress {
        self.consumer.progress()
    }

    fn drops(&self) -> Drops {
        self.consumer.drops()
    }

    fn is_distributed(&self) -> bool {
        self.consumer.is_distributed()
    }

    fn now(&self) -> Option<Timestamp> {
        self.consumer.now()
    }

    fn on_written(&mut self) {
        self.consumer.on_written();
    }
}

impl Drop for FeedSource {
    fn drop(&mut self) {
        self.consumer.give_back();
    }
}
