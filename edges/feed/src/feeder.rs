//! Distributes frames to the consumers of a named feed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use linkweir_engine::split::shard_of;
use linkweir_engine::{Batch, Frame, Router, Splitter};
use linkweir_wire::Timestamp;
use thiserror::Error;

use crate::producer::{Producer, Refused, RingCounters};
use crate::server::{Presence, Server, Slot};
use crate::socket::check_name;
use crate::socket::listen_as;

/// A feeder that waits tells its caller this often.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// What happens to a frame whose ring is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// It is dropped and counted.
    Drop,
    /// Everything waits for its consumer if that is attached or has not come yet; for one that left
    /// it is dropped and counted.
    Wait,
}

/// What a feed is like.
#[derive(Debug, Clone)]
pub struct FeederOptions {
    /// How consumers call it: `[A-Za-z0-9._-]{1,64}`.
    pub name: String,
    /// Number of consumers; 1 to 1024.
    pub consumers: u32,
    /// Bytes of each ring; rounded up to a power of two from 64 KiB to 1 GiB.
    pub ring_bytes: usize,
    /// What happens to a frame whose ring is full.
    pub when_full: WhenFull,
}

/// Why a feed cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FeedError {
    /// The name or the number of consumers is none.
    #[error("{0}")]
    Options(String),
    /// Another feeder has the name.
    #[error("a feeder called `{0}` is running already in this network namespace")]
    NameTaken(String),
    /// The system refused memory, a socket or a thread.
    #[error("feed `{name}`: {source}")]
    Io {
        /// The feed.
        name: String,
        /// What the system said.
        source: io::Error,
    },
}

/// What one consumer got and how it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsumerStatus {
    /// Where it is.
    pub presence: Presence,
    /// Its process, or that of the last one; 0 where there was none.
    pub pid: u32,
    /// Frames that went into its ring.
    pub packets: u64,
    /// Bytes those had on the wire.
    pub bytes: u64,
    /// Frames that were for it and are lost: those that did not fit, and at the end those that nobody
    /// took out of the ring.
    pub dropped: u64,
    /// Frames in its ring.
    pub queued_packets: u64,
    /// Bytes in its ring.
    pub queued_bytes: u64,
    /// Bytes its ring holds.
    pub ring_bytes: u64,
    /// Consumers that were let in so far.
    pub attached: u64,
    /// Of those, the ones that ended without saying so.
    pub killed: u64,
    /// Frames that the killed ones had done with.
    pub taken_by_killed: u64,
    /// Of those, the frames whose records were perhaps not written when they were killed: all that came
    /// after a consumer last said that everything was.
    pub unwritten_by_killed: u64,
}

/// What a feeder waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The consumer.
    pub consumer: usize,
    /// Where it is: attached and slow, or not there yet.
    pub presence: Presence,
}

/// A ring, and what went into those that it replaced.
#[derive(Debug)]
struct Outlet {
    producer: Producer,
    before: RingCounters,
}

/// A feed that is open. Dropping it without [`Self::finish`] tells the consumers that it ended before
/// its time.
#[derive(Debug)]
pub struct Feeder {
    outlets: Vec<Outlet>,
    slots: Arc<[Slot]>,
    when_full: WhenFull,
    ring_bytes: usize,
    server: Server,
}

impl Feeder {
    /// Takes the name and begins to let consumers in.
    ///
    /// # Errors
    /// As of [`FeedError`].
    pub fn open(options: &FeederOptions) -> Result<Self, FeedError> {
        check_name(&options.name).map_err(FeedError::Options)?;
        if !(1..=1024).contains(&options.consumers) {
            return Err(FeedError::Options(
                "a feed has 1 to 1024 consumers".to_owned(),
            ));
        }
        let failed = |source: io::Error| {
            if source.kind() == io::ErrorKind::AddrInUse {
                FeedError::NameTaken(options.name.clone())
            } else {
                FeedError::Io {
                    name: options.name.clone(),
                    source,
                }
            }
        };
        let listener = listen_as(&options.name).map_err(failed)?;
        let mut outlets = Vec::new();
        let mut slots = Vec::new();
        for _ in 0..options.consumers {
            let producer = Producer::create(options.ring_bytes).map_err(failed)?;
            slots.push(Slot::new(producer.keeper().map_err(failed)?));
            outlets.push(Outlet {
                producer,
                before: RingCounters::default(),
            });
        }
        let slots: Arc<[Slot]> = slots.into();
        let server = Server::start(listener, Arc::clone(&slots)).map_err(failed)?;
        Ok(Self {
            outlets,
            slots,
            when_full: options.when_full,
            ring_bytes: options.ring_bytes,
            server,
        })
    }

    /// Distributes the frames of a batch, IP fragments as the packets they make. Where a full ring makes it wait,
    /// `on_wait` is called about ten times a second and says whether to go on waiting; if not, the frame is
    /// dropped, and so are all that do not fit from then on ([`WhenFull::Drop`]).
    pub fn distribute(
        &mut self,
        batch: &Batch<'_>,
        router: &mut Router<'_, impl Splitter>,
        on_wait: &mut dyn FnMut(&mut Self, Waiting) -> bool,
    ) {
        for frame in batch.frames() {
            router.take(&frame, |frame, hash| self.push(frame, hash, on_wait));
        }
        self.flush();
    }

    /// Distributes what there is of packets of which parts are missing, as of [`Router::give_up`].
    pub fn give_up(
        &mut self,
        now: Option<Timestamp>,
        router: &mut Router<'_, impl Splitter>,
        on_wait: &mut dyn FnMut(&mut Self, Waiting) -> bool,
    ) {
        router.give_up(now, |frame, hash| self.push(frame, hash, on_wait));
        self.flush();
    }

    #[inline]
    fn push(
        &mut self,
        frame: &Frame<'_>,
        hash: Option<u32>,
        on_wait: &mut dyn FnMut(&mut Self, Waiting) -> bool,
    ) {
        let count = u32::try_from(self.outlets.len()).unwrap_or(1);
        let number = shard_of(hash.unwrap_or(0), count) as usize;
        let Some(outlet) = self.outlets.get_mut(number) else {
            return;
        };
        match outlet.producer.push(frame) {
            Ok(()) => {}
            Err(refused) => self.refused(number, frame, refused, on_wait),
        }
    }

    #[cold]
    fn refused(
        &mut self,
        number: usize,
        frame: &Frame<'_>,
        refused: Refused,
        on_wait: &mut dyn FnMut(&mut Self, Waiting) -> bool,
    ) {
        let mut refused = refused;
        loop {
            match refused {
                Refused::Corrupt => {
                    // Whoever wrote nonsense gets no more of it; the next one begins afresh.
                    if self.replace(number).is_err() {
                        return self.count_drop(number);
                    }
                }
                Refused::Full if self.when_full == WhenFull::Wait && self.may_come(number) => {
                    // Nobody else is to wait for frames that are there.
                    self.flush();
                    if !self.wait_for_room(number, frame) {
                        let presence = self.presence(number);
                        let waiting = Waiting {
                            consumer: number,
                            presence,
                        };
                        if !on_wait(self, waiting) {
                            self.when_full = WhenFull::Drop;
                        }
                    }
                }
                _ => return self.count_drop(number),
            }
            let Some(outlet) = self.outlets.get_mut(number) else {
                return;
            };
            match outlet.producer.push(frame) {
                Ok(()) => return,
                Err(again) => refused = again,
            }
        }
    }

    /// False where there is still no room after a while.
    fn wait_for_room(&mut self, number: usize, frame: &Frame<'_>) -> bool {
        self.outlets
            .get_mut(number)
            .is_none_or(|outlet| outlet.producer.wait_for_room(frame, TELL_EVERY) != Ok(false))
    }

    fn count_drop(&mut self, number: usize) {
        if let Some(outlet) = self.outlets.get_mut(number) {
            outlet.producer.count_drop();
        }
    }

    /// A fresh ring for a consumer whose ring was written into; what was in the old one is lost.
    fn replace(&mut self, number: usize) -> io::Result<()> {
        let (Some(outlet), Some(slot)) = (self.outlets.get_mut(number), self.slots.get(number))
        else {
            return Ok(());
        };
        let producer = Producer::create(self.ring_bytes)?;
        slot.replace(producer.keeper()?);
        let old = std::mem::replace(&mut outlet.producer, producer);
        let counters = old.counters();
        let before = &mut outlet.before;
        before.packets += counters.packets;
        before.bytes += counters.bytes;
        before.dropped += counters.dropped;
        before.taken += counters.taken;
        Ok(())
    }

    fn presence(&self, number: usize) -> Presence {
        self.slots
            .get(number)
            .map_or(Presence::Left, Slot::presence)
    }

    fn may_come(&self, number: usize) -> bool {
        self.presence(number) != Presence::Left
    }

    /// Lets the consumers see everything that was distributed.
    pub fn flush(&mut self) {
        for outlet in &mut self.outlets {
            outlet.producer.flush();
        }
    }

    /// Nothing came; the time of the capture is `now` where it goes on without packets.
    pub fn idle(&mut self, now: Option<Timestamp>) {
        for outlet in &mut self.outlets {
            match now {
                Some(now) => outlet.producer.flush_at(now),
                None => outlet.producer.flush(),
            }
        }
    }

    /// From now on frames that do not fit are dropped.
    pub const fn stop_waiting(&mut self) {
        self.when_full = WhenFull::Drop;
    }

    /// How the consumers are, by number.
    pub fn status(&mut self) -> Vec<ConsumerStatus> {
        self.outlets
            .iter_mut()
            .zip(self.slots.iter())
            .map(|(outlet, slot)| outlet.status(slot))
            .collect()
    }

    /// Everything was distributed: the consumers end when they have read what they got. Waits for those that
    /// are attached and, with [`WhenFull::Wait`], for those that have not come yet; `on_wait` is called
    /// about ten times a second and says whether to go on waiting.
    ///
    /// What is still in a ring after that counts as dropped.
    pub fn finish(
        mut self,
        on_wait: &mut dyn FnMut(&mut Self, Waiting) -> bool,
    ) -> Vec<ConsumerStatus> {
        for outlet in &mut self.outlets {
            outlet.producer.finish();
        }
        while let Some(waiting) = self.undrained() {
            if let Some(outlet) = self.outlets.get_mut(waiting.consumer)
                && outlet.wait_until_drained(TELL_EVERY)
            {
                if waiting.presence == Presence::Attached {
                    continue;
                }
                // It has nothing to read and has not come: no ring tells when it does.
                crate::attach::pause(TELL_EVERY);
            }
            if !on_wait(&mut self, waiting) {
                break;
            }
        }
        self.server.end();
        let mut status = self.status();
        for consumer in &mut status {
            let left = consumer.queued_packets;
            consumer.packets -= left.min(consumer.packets);
            consumer.dropped += left;
        }
        status
    }

    /// The first consumer that has not read everything and may still do so.
    fn undrained(&mut self) -> Option<Waiting> {
        let waits_for_all = self.when_full == WhenFull::Wait;
        let status = self.status();
        status
            .iter()
            .enumerate()
            .find(|(_, consumer)| match consumer.presence {
                Presence::Attached => consumer.queued_bytes > 0,
                // One that has nothing to read yet is waited for as well: it writes its (empty) output.
                Presence::NotYet => waits_for_all,
                Presence::Left => false,
            })
            .map(|(number, consumer)| Waiting {
                consumer: number,
                presence: consumer.presence,
            })
    }
}

impl Outlet {
    fn status(&mut self, slot: &Slot) -> ConsumerStatus {
        let now = self.producer.counters();
        let before = self.before;
        // What was in a replaced ring and never taken is lost.
        let lost = before.packets - before.taken;
        ConsumerStatus {
            presence: slot.presence(),
            pid: slot.pid.load(Relaxed),
            packets: before.taken + now.packets,
            bytes: before.bytes + now.bytes,
            dropped: before.dropped + lost + now.dropped,
            queued_packets: now.packets - now.taken,
            queued_bytes: self.producer.queued().unwrap_or(0),
            ring_bytes: self.producer.capacity() as u64,
            attached: slot.attached.load(Relaxed),
            killed: slot.killed.load(Relaxed),
            taken_by_killed: slot.taken_by_killed.load(Relaxed),
            unwritten_by_killed: slot.unwritten_by_killed.load(Relaxed),
        }
    }

    /// Waits until the ring is empty; false where it is not after `limit` at the latest (or sooner).
    fn wait_until_drained(&mut self, limit: Duration) -> bool {
        self.producer.wait_until_empty(limit).unwrap_or(true)
    }
}
