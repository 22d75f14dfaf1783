//! The protocol of the ring: who may touch which bytes, and who wakes whom.
//!
//! Positions count bytes since the ring was made and never wrap (2^64 bytes are 500 years at 1 GB/s).
//! The writer owns `[head, consumed + capacity)`, the reader `[tail, produced)`. Each side keeps a copy
//! of the other's last known position, so that it reads the other's cache line only when its copy
//! does not suffice.
//!
//! Generic over the atomics, so that `loom` runs exactly this code over every interleaving: see the
//! tests at the end.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use thiserror::Error;

/// A position of the other side that cannot be: its memory was overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the positions of the ring make no sense: something else wrote into its memory")]
pub struct Corrupt;

/// A position that both sides see.
pub(super) trait Word {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
}

/// Says that a side sleeps (1) or not (0); also the futex it sleeps on.
pub(super) trait Flag {
    fn load(&self, order: Ordering) -> u32;
    fn store(&self, value: u32, order: Ordering);
    /// A sequentially consistent fence.
    fn fence();
}

impl Word for AtomicU64 {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        Self::load(self, order)
    }

    #[inline]
    fn store(&self, value: u64, order: Ordering) {
        Self::store(self, value, order);
    }
}

impl Flag for AtomicU32 {
    #[inline]
    fn load(&self, order: Ordering) -> u32 {
        Self::load(self, order)
    }

    #[inline]
    fn store(&self, value: u32, order: Ordering) {
        Self::store(self, value, order);
    }

    #[inline]
    fn fence() {
        std::sync::atomic::fence(Ordering::SeqCst);
    }
}

/// The writer's end.
#[derive(Debug)]
pub(super) struct Head {
    capacity: u64,
    /// Where the next byte goes.
    at: u64,
    /// What the reader may know of.
    published: u64,
    /// The reader's position when last looked at.
    consumed: u64,
}

impl Head {
    pub(super) const fn new(capacity: u64) -> Self {
        Self {
            capacity,
            at: 0,
            published: 0,
            consumed: 0,
        }
    }

    #[inline]
    pub(super) const fn at(&self) -> u64 {
        self.at
    }

    #[inline]
    pub(super) const fn has_unpublished(&self) -> bool {
        self.at != self.published
    }

    /// Whether `len` bytes may be written from `at` on.
    #[inline]
    pub(super) fn has_room(&mut self, len: u64, consumed: &impl Word) -> Result<bool, Corrupt> {
        if len <= self.capacity - (self.at - self.consumed) {
            return Ok(true);
        }
        self.look(consumed)?;
        Ok(len <= self.capacity - (self.at - self.consumed))
    }

    /// Bytes the reader has not released.
    pub(super) fn queued(&mut self, consumed: &impl Word) -> Result<u64, Corrupt> {
        self.look(consumed)?;
        Ok(self.at - self.consumed)
    }

    fn look(&mut self, consumed: &impl Word) -> Result<(), Corrupt> {
        // Acquire: what the reader read there, it read before it gave the space back.
        let seen = consumed.load(Acquire);
        if seen < self.consumed || seen > self.published {
            return Err(Corrupt);
        }
        self.consumed = seen;
        Ok(())
    }

    /// `len` bytes from `at` on are written; at most what [`Self::has_room`] granted.
    #[inline]
    pub(super) const fn advance(&mut self, len: u64) {
        self.at += len;
    }

    /// Lets the reader see everything written.
    #[inline]
    pub(super) fn publish(&mut self, produced: &impl Word) {
        // Release: the bytes are there before the position says so.
        produced.store(self.at, Release);
        self.published = self.at;
    }
}

/// The reader's end.
#[derive(Debug)]
pub(super) struct Tail {
    capacity: u64,
    at: u64,
    /// The writer's position when last looked at.
    produced: u64,
}

impl Tail {
    /// Goes on where the last reader stopped.
    pub(super) fn new(
        capacity: u64,
        consumed: &impl Word,
        produced: &impl Word,
    ) -> Result<Self, Corrupt> {
        let at = consumed.load(Relaxed);
        let mut tail = Self {
            capacity,
            at,
            produced: at,
        };
        tail.look(produced)?;
        Ok(tail)
    }

    #[inline]
    pub(super) const fn at(&self) -> u64 {
        self.at
    }

    /// Bytes that may be read from `at` on.
    #[inline]
    pub(super) fn look(&mut self, produced: &impl Word) -> Result<u64, Corrupt> {
        // Acquire: pairs with the release of `publish`; the bytes are there.
        let seen = produced.load(Acquire);
        if seen < self.produced || seen - self.at > self.capacity {
            return Err(Corrupt);
        }
        self.produced = seen;
        Ok(seen - self.at)
    }

    /// Bytes that were readable when last looked at, and are not released.
    #[inline]
    pub(super) const fn known(&self) -> u64 {
        self.produced - self.at
    }

    /// Gives `len` bytes back to the writer; no more than were readable.
    #[inline]
    pub(super) fn release(&mut self, len: u64, consumed: &impl Word) {
        self.at += len.min(self.produced - self.at);
        // Release: reading is over before the space is free.
        consumed.store(self.at, Release);
    }
}

/// Announces that the caller is about to sleep. It must look at the position once more after this,
/// and then sleep only while the flag says 1.
///
/// The fence and that of [`must_wake`] stand between a store and a load on either side: at least
/// one of the two sees what the other stored, so that no wakeup is lost.
#[inline]
pub(super) fn announce_sleep<F: Flag>(flag: &F) {
    flag.store(1, Relaxed);
    F::fence();
}

/// The caller sleeps no more.
#[inline]
pub(super) fn retract_sleep<F: Flag>(flag: &F) {
    flag.store(0, Relaxed);
}

/// Asked after a position was moved: whether the other side sleeps and must be woken.
#[inline]
pub(super) fn must_wake<F: Flag>(flag: &F) -> bool {
    F::fence();
    let sleeps = flag.load(Relaxed) != 0;
    if sleeps {
        flag.store(0, Relaxed);
    }
    sleeps
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "what fails here is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn a_position_that_cannot_be_is_refused() {
        let (produced, consumed) = (AtomicU64::new(0), AtomicU64::new(0));
        let mut head = Head::new(16);
        assert_eq!(head.has_room(16, &consumed), Ok(true));
        assert_eq!(head.has_room(17, &consumed), Ok(false));
        head.advance(16);
        head.publish(&produced);
        let mut tail = Tail::new(16, &consumed, &produced).unwrap();
        assert_eq!(tail.look(&produced), Ok(16));
        tail.release(100, &consumed);
        assert_eq!(consumed.load(Relaxed), 16, "no more than there was");
        for wrong in [17, u64::MAX] {
            consumed.store(wrong, Relaxed);
            assert_eq!(head.has_room(1, &consumed), Err(Corrupt));
        }
        consumed.store(16, Relaxed);
        assert_eq!(head.has_room(1, &consumed), Ok(true));
        consumed.store(15, Relaxed);
        assert_eq!(head.queued(&consumed), Err(Corrupt), "never backwards");
        for wrong in [15, 33, u64::MAX] {
            produced.store(wrong, Relaxed);
            assert_eq!(tail.look(&produced), Err(Corrupt));
            consumed.store(16, Relaxed);
            assert!(Tail::new(16, &consumed, &produced).is_err());
        }
    }
}

/// Run by `RUSTFLAGS="--cfg loom" cargo test -p linkweir-sys --lib loom` in a target directory of its own.
#[cfg(all(test, loom))]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "what fails here is a failed test"
)]
mod loom_tests {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU32, AtomicU64, fence};
    use loom::thread;

    use super::*;

    impl Word for AtomicU64 {
        fn load(&self, order: Ordering) -> u64 {
            Self::load(self, order)
        }

        fn store(&self, value: u64, order: Ordering) {
            Self::store(self, value, order);
        }
    }

    impl Flag for AtomicU32 {
        fn load(&self, order: Ordering) -> u32 {
            Self::load(self, order)
        }

        fn store(&self, value: u32, order: Ordering) {
            Self::store(self, value, order);
        }

        fn fence() {
            fence(Ordering::SeqCst);
        }
    }

    /// A ring of two bytes whose every access loom checks for races.
    struct Shared {
        data: [UnsafeCell<u64>; 2],
        produced: AtomicU64,
        consumed: AtomicU64,
        finished: AtomicU32,
        reader_sleeps: AtomicU32,
        writer_sleeps: AtomicU32,
    }

    // SAFETY: loom itself reports every access to the cells that is not ordered.
    unsafe impl Sync for Shared {}

    fn shared() -> Arc<Shared> {
        Arc::new(Shared {
            data: [UnsafeCell::new(0), UnsafeCell::new(0)],
            produced: AtomicU64::new(0),
            consumed: AtomicU64::new(0),
            finished: AtomicU32::new(0),
            reader_sleeps: AtomicU32::new(0),
            writer_sleeps: AtomicU32::new(0),
        })
    }

    /// `FUTEX_WAIT` on 1: a lost wakeup is a loop without end, which loom reports.
    fn sleep(flag: &AtomicU32) {
        while Flag::load(flag, Acquire) == 1 {
            thread::yield_now();
        }
    }

    fn write(ring: &Shared, head: &mut Head, values: std::ops::Range<u64>, batch: u64) {
        for value in values {
            while !head.has_room(1, &ring.consumed).unwrap() {
                head.publish(&ring.produced);
                must_wake(&ring.reader_sleeps);
                announce_sleep(&ring.writer_sleeps);
                if head.has_room(1, &ring.consumed).unwrap() {
                    retract_sleep(&ring.writer_sleeps);
                    break;
                }
                sleep(&ring.writer_sleeps);
                retract_sleep(&ring.writer_sleeps);
            }
            ring.data[(head.at() % 2) as usize].with_mut(|cell| {
                // SAFETY: loom checks that nobody else is at it.
                unsafe { *cell = value }
            });
            head.advance(1);
            if head.at() % batch == 0 {
                head.publish(&ring.produced);
                must_wake(&ring.reader_sleeps);
            }
        }
    }

    fn finish(ring: &Shared, head: &mut Head) {
        head.publish(&ring.produced);
        Flag::store(&ring.finished, 1, Release);
        must_wake(&ring.reader_sleeps);
    }

    /// Everything up to the end.
    fn read_all(ring: &Shared) -> Vec<u64> {
        let mut tail = Tail::new(2, &ring.consumed, &ring.produced).unwrap();
        let mut seen = Vec::new();
        loop {
            // In this order: what is finished has no more after its last position.
            let finished = Flag::load(&ring.finished, Acquire) == 1;
            let there = tail.look(&ring.produced).unwrap();
            if there > 0 {
                for at in tail.at()..tail.at() + there {
                    ring.data[(at % 2) as usize].with(|cell| {
                        // SAFETY: loom checks that nobody else is at it.
                        seen.push(unsafe { *cell });
                    });
                }
                tail.release(there, &ring.consumed);
                must_wake(&ring.writer_sleeps);
                continue;
            }
            if finished {
                return seen;
            }
            announce_sleep(&ring.reader_sleeps);
            let finished = Flag::load(&ring.finished, Acquire) == 1;
            if finished || tail.look(&ring.produced).unwrap() > 0 {
                retract_sleep(&ring.reader_sleeps);
                continue;
            }
            sleep(&ring.reader_sleeps);
            retract_sleep(&ring.reader_sleeps);
        }
    }

    fn check(values: u64, batch: u64) {
        let mut model = loom::model::Builder::new();
        // Two preemptions show every fault that was planted; more take minutes.
        model.preemption_bound = Some(2);
        model.check(move || {
            let ring = shared();
            let writer = {
                let ring = ring.clone();
                thread::spawn(move || {
                    let mut head = Head::new(2);
                    write(&ring, &mut head, 0..values, batch);
                    finish(&ring, &mut head);
                })
            };
            let seen = read_all(&ring);
            writer.join().unwrap();
            assert_eq!(seen, (0..values).collect::<Vec<_>>());
        });
    }

    #[test]
    fn loom_nothing_is_lost_or_torn_over_the_wrap() {
        check(4, 1);
    }

    #[test]
    fn loom_batches_that_fill_the_ring_wake_their_reader() {
        check(4, 2);
    }

    #[test]
    fn loom_what_was_not_published_comes_with_the_end() {
        check(3, 16);
    }

    #[test]
    fn loom_a_second_reader_goes_on_where_the_first_stopped() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(|| {
            let ring = shared();
            let writer = {
                let ring = ring.clone();
                thread::spawn(move || {
                    let mut head = Head::new(2);
                    write(&ring, &mut head, 0..3, 1);
                    finish(&ring, &mut head);
                })
            };
            let mut seen = Vec::new();
            {
                let mut tail = Tail::new(2, &ring.consumed, &ring.produced).unwrap();
                if tail.look(&ring.produced).unwrap() > 0 {
                    ring.data[0].with(|cell| {
                        // SAFETY: loom checks that nobody else is at it.
                        seen.push(unsafe { *cell });
                    });
                    tail.release(1, &ring.consumed);
                    must_wake(&ring.writer_sleeps);
                }
            }
            seen.extend(read_all(&ring));
            writer.join().unwrap();
            assert_eq!(seen, [0, 1, 2]);
        });
    }
}
