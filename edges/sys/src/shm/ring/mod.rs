//! The two ends of a ring.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use rustix::thread::futex;

use super::cursor::{Corrupt, Head, Tail, announce_sleep, must_wake, retract_sleep};
use super::memory::{Mapping, PAGE, create, seal_for_others, sealed_len};

/// The writer may write more.
pub const RUNNING: u32 = 0;
/// The writer wrote everything there is.
pub const FINISHED: u32 = 1;
/// The writer ended before its time.
pub const ABANDONED: u32 = 2;

/// Counters that the writer sets and the reader sees.
pub const WRITER_NOTES: usize = 6;
/// Counters that the reader sets and the writer sees.
pub const READER_NOTES: usize = 6;

/// `linkweir` and the layout's version: a ring of another one is refused.
const MAGIC: u64 = 0x6c6b_7765_6972_0001;
/// Capacities of a ring in bytes.
const CAPACITIES: std::ops::RangeInclusive<usize> = 1 << 16..=1 << 30;

/// Looks before the first sleep: a few microseconds, less than a sleep and its wakeup cost.
const SPINS: u32 = 256;

/// Two lines of cache: the prefetcher takes lines by pairs.
#[derive(Debug)]
#[repr(C, align(128))]
struct Apart<T>(T);

/// The control page. Atomics only, so that any content and any change by others is sound.
#[derive(Debug)]
#[repr(C)]
struct Control {
    /// Written before the ring is shared, read at the opening.
    identity: Apart<(AtomicU64, AtomicU64)>,
    writer: Apart<WriterSide>,
    reader: Apart<ReaderSide>,
    reader_sleeps: Apart<AtomicU32>,
    writer_sleeps: Apart<AtomicU32>,
    /// Process id of the reader; 0 where there is none.
    attached: Apart<AtomicU32>,
}

#[derive(Debug)]
#[repr(C)]
struct WriterSide {
    produced: AtomicU64,
    notes: [AtomicU64; WRITER_NOTES],
    state: AtomicU32,
}

#[derive(Debug)]
#[repr(C)]
struct ReaderSide {
    consumed: AtomicU64,
    notes: [AtomicU64; READER_NOTES],
}

const _: () = assert!(size_of::<Control>() <= PAGE);
const _: () = assert!(size_of::<WriterSide>() <= 64 && size_of::<ReaderSide>() <= 64);

/// Invariant: the mapping is at least a page, writable, and lives as long as this.
#[derive(Debug)]
struct ControlPage(Mapping);

impl std::ops::Deref for ControlPage {
    type Target = Control;

    #[inline]
    fn deref(&self) -> &Control {
        let control = self.0.start::<Control>();
        // SAFETY: by the invariant there is a page here, aligned as pages are, that lives as long as
        // `self`; `Control` is atomics only, for which every content is valid, and fits (asserted).
        unsafe { &*control }
    }
}

/// Sleeps until somebody clears the flag or `limit` has passed; at once where it is clear already.
fn sleep(flag: &AtomicU32, limit: Duration) {
    let limit = futex::Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    };
    // Every way it can end (woken, changed, time, signal) means to look again.
    let _ended = futex::wait(flag, futex::Flags::empty(), 1, Some(&limit));
}

fn wake(flag: &AtomicU32) {
    let _woken = futex::wake(flag, futex::Flags::empty(), 1);
}

fn wrong(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// The end that writes. Dropped without [`Self::close`], it tells the reader [`ABANDONED`].
#[derive(Debug)]
pub struct RingWriter {
    control: ControlPage,
    /// Invariant: twice `capacity`, mirrored, writable; nobody else has it writable.
    data: Mapping,
    capacity: usize,
    head: Head,
    /// Bytes lent by the last `reserve`.
    reserved: usize,
    /// Whether something was shown that a sleeping reader does not know of.
    must_tell: bool,
    data_file: OwnedFd,
    control_file: OwnedFd,
}

impl RingWriter {
    /// A ring of at least `capacity` bytes: rounded up to a power of two from 64 KiB to 1 GiB.
    ///
    /// Pages are taken when they are first written.
    ///
    /// # Errors
    /// What `memfd_create(2)`, `fcntl(2)` and `mmap(2)` say.
    pub fn create(capacity: usize) -> io::Result<Self> {
        let capacity = capacity
            .clamp(*CAPACITIES.start(), *CAPACITIES.end())
            .next_power_of_two();
        let data_file = create("linkweir-ring", capacity)?;
        let data = Mapping::mirrored(&data_file, capacity, true)?;
        seal_for_others(&data_file)?;
        let control_file = create("linkweir-ring-control", PAGE)?;
        let control = ControlPage(Mapping::whole(&control_file, PAGE)?);
        let Apart((magic, size)) = &control.identity;
        size.store(capacity as u64, Relaxed);
        magic.store(MAGIC, Release);
        Ok(Self {
            control,
            data,
            capacity,
            head: Head::new(capacity as u64),
            reserved: 0,
            must_tell: false,
            data_file,
            control_file,
        })
    }

    /// A reader of this ring in this process.
    ///
    /// # Errors
    /// As of [`RingReader::open`].
    pub fn reader(&self) -> io::Result<RingReader> {
        RingReader::open(self.data_file.as_fd(), self.control_file.as_fd())
    }

    /// Bytes the ring holds.
    #[inline]
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// The position of the next byte, counted from the beginning of the ring's life.
    #[inline]
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.head.at()
    }

    /// `len` bytes to write to, in one piece; nothing where there is no room for them now.
    ///
    /// # Errors
    /// [`Corrupt`], from where on the ring is of no use.
    #[inline]
    pub fn reserve(&mut self, len: usize) -> Result<Option<&mut [u8]>, Corrupt> {
        self.reserved = 0;
        if !self
            .head
            .has_room(len as u64, &self.control.reader.0.consumed)?
        {
            return Ok(None);
        }
        self.reserved = len;
        let offset = offset(self.head.at(), self.capacity);
        let start = self.data.start::<u8>().wrapping_add(offset);
        // SAFETY: offset < capacity and len <= capacity (`has_room`), so the range lies in the mirrored
        // mapping. It was zeroed by the kernel. The protocol gives it to the writer alone until it is
        // published, and the borrow of `self` keeps it the only one here.
        let bytes = unsafe { std::slice::from_raw_parts_mut(start, len) };
        Ok(Some(bytes))
    }

    /// The first `len` bytes of the last reservation are written; at most all of it.
    #[inline]
    pub fn commit(&mut self, len: usize) {
        let len = len.min(std::mem::take(&mut self.reserved));
        self.head.advance(len as u64);
    }

    /// Lets a reader that is awake see what was committed; one that sleeps, with [`Self::publish`].
    #[inline]
    pub fn show(&mut self) {
        self.head.publish(&self.control.writer.0.produced);
        self.must_tell = true;
    }

    /// Lets the reader see what was committed, and wakes it where it sleeps.
    #[inline]
    pub fn publish(&mut self) {
        if self.head.has_unpublished() || self.must_tell {
            self.head.publish(&self.control.writer.0.produced);
            self.must_tell = false;
            self.wake_reader();
        }
    }

    fn wake_reader(&self) {
        if must_wake(&self.control.reader_sleeps.0) {
            wake(&self.control.reader_sleeps.0);
        }
    }

    /// Says how it ends ([`FINISHED`], [`ABANDONED`]), after what was committed.
    pub fn close(&mut self, state: u32) {
        self.publish();
        self.control.writer.0.state.store(state, Release);
        self.wake_reader();
    }

    /// Bytes that the reader has not released.
    ///
    /// # Errors
    /// [`Corrupt`], from where on the ring is of no use.
    pub fn queued(&mut self) -> Result<u64, Corrupt> {
        self.head.queued(&self.control.reader.0.consumed)
    }

    /// Publishes, and waits until `len` bytes can be reserved; false where they cannot after `limit`
    /// at the latest (or sooner).
    ///
    /// # Errors
    /// [`Corrupt`], from where on the ring is of no use.
    pub fn wait_for_room(&mut self, len: usize, limit: Duration) -> Result<bool, Corrupt> {
        self.publish();
        let consumed = &self.control.reader.0.consumed;
        for _ in 0..SPINS {
            if self.head.has_room(len as u64, consumed)? {
                return Ok(true);
            }
            std::hint::spin_loop();
        }
        let flag = &self.control.writer_sleeps.0;
        announce_sleep(flag);
        let mut has_room = self.head.has_room(len as u64, consumed);
        if has_room == Ok(false) {
            sleep(flag, limit);
            has_room = self.head.has_room(len as u64, consumed);
        }
        retract_sleep(flag);
        has_room
    }

    /// Sets counter `index` of the writer; nothing where there is none.
    #[inline]
    pub fn set_note(&self, index: usize, value: u64) {
        if let Some(note) = self.control.writer.0.notes.get(index) {
            // Release: whoever sees the counter sees what was published before it.
            note.store(value, Release);
        }
    }

    /// Counter `index` of the reader, as it says; 0 where there is none.
    #[inline]
    #[must_use]
    pub fn reader_note(&self, index: usize) -> u64 {
        let notes = &self.control.reader.0.notes;
        notes.get(index).map_or(0, |note| note.load(Acquire))
    }

    /// Whether there is a reader.
    #[must_use]
    pub fn has_reader(&self) -> bool {
        self.control.attached.0.load(Acquire) != 0
    }

    /// The ring's files and its readers' comings and goings, for another thread.
    ///
    /// # Errors
    /// What the system says.
    pub fn keeper(&self) -> io::Result<RingKeeper> {
        Ok(RingKeeper {
            control: ControlPage(Mapping::whole(&self.control_file, PAGE)?),
            data_file: self.data_file.try_clone()?,
            control_file: self.control_file.try_clone()?,
        })
    }
}

/// Lets readers of other processes in.
#[derive(Debug)]
pub struct RingKeeper {
    control: ControlPage,
    data_file: OwnedFd,
    control_file: OwnedFd,
}

impl RingKeeper {
    /// The files of the ring, for [`RingReader::open`] in another process: data, control.
    #[must_use]
    pub fn files(&self) -> [BorrowedFd<'_>; 2] {
        [self.data_file.as_fd(), self.control_file.as_fd()]
    }

    /// Counter `index` of the reader, as it says; 0 where there is none.
    #[must_use]
    pub fn reader_note(&self, index: usize) -> u64 {
        let notes = &self.control.reader.0.notes;
        notes.get(index).map_or(0, |note| note.load(Acquire))
    }

    /// A reader in another process is known to have ended without saying so: lets the next one in,
    /// which goes on at the last position released. A reader in this process stays.
    pub fn forget_reader(&self) {
        let attached = &self.control.attached.0;
        if attached.load(Acquire) != std::process::id() {
            attached.store(0, Release);
        }
        if must_wake(&self.control.writer_sleeps.0) {
            wake(&self.control.writer_sleeps.0);
        }
    }
}

impl Drop for RingWriter {
    fn drop(&mut self) {
        if self.control.writer.0.state.load(Relaxed) == RUNNING {
            self.close(ABANDONED);
        }
    }
}

#[inline]
fn offset(position: u64, capacity: usize) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "less than the capacity, a power of two in a usize"
    )]
    let offset = (position & (capacity as u64 - 1)) as usize;
    offset
}

/// The end that reads. One at a time; dropping it lets the next one in.
#[derive(Debug)]
pub struct RingReader {
    control: ControlPage,
    /// Invariant: twice `capacity`, mirrored, readable.
    data: Mapping,
    capacity: usize,
    tail: Tail,
}

impl RingReader {
    /// The reader of a ring whose files came from [`RingKeeper::files`], maybe of another process. The
    /// files may be closed after this.
    ///
    /// # Errors
    /// `InvalidData` where the files are no ring of this version, `ResourceBusy` where it has a
    /// reader, and what the system says.
    pub fn open(data_file: BorrowedFd<'_>, control_file: BorrowedFd<'_>) -> io::Result<Self> {
        if sealed_len(control_file)? < PAGE {
            return Err(wrong("the control page is too small"));
        }
        let control = ControlPage(Mapping::whole(&control_file, PAGE)?);
        let Apart((magic, size)) = &control.identity;
        if magic.load(Acquire) != MAGIC {
            return Err(wrong("no ring of this version"));
        }
        let capacity = sealed_len(data_file)?;
        if !capacity.is_power_of_two()
            || !CAPACITIES.contains(&capacity)
            || size.load(Relaxed) != capacity as u64
        {
            return Err(wrong("a ring of an impossible size"));
        }
        let data = Mapping::mirrored(&data_file, capacity, false)?;
        let attached = &control.attached.0;
        attached
            .compare_exchange(0, std::process::id(), AcqRel, Acquire)
            .map_err(|_| io::Error::from(io::ErrorKind::ResourceBusy))?;
        let tail = Tail::new(
            capacity as u64,
            &control.reader.0.consumed,
            &control.writer.0.produced,
        );
        let tail = tail.map_err(|corrupt| {
            attached.store(0, Release);
            wrong(&corrupt.to_string())
        })?;
        Ok(Self {
            control,
            data,
            capacity,
            tail,
        })
    }

    /// Bytes the ring holds.
    #[inline]
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// The position of the first readable byte, counted from the beginning of the ring's life.
    #[inline]
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.tail.at()
    }

    /// All bytes that were published and not released, in one piece.
    ///
    /// # Errors
    /// [`Corrupt`], from where on the ring is of no use.
    #[inline]
    pub fn readable(&mut self) -> Result<&[u8], Corrupt> {
        let len = self.tail.look(&self.control.writer.0.produced)?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "at most the capacity, a usize"
        )]
        let len = len as usize;
        let offset = offset(self.tail.at(), self.capacity);
        let start = self.data.start::<u8>().wrapping_add(offset);
        // SAFETY: offset < capacity and len <= capacity (`look`), so the range lies in the mirrored
        // mapping, whose files cannot shrink. A writer of this process leaves it alone until it is
        // released, which the borrow of `self` rules out; for one of another process see the module.
        let bytes = unsafe { std::slice::from_raw_parts(start, len) };
        Ok(bytes)
    }

    /// Gives the first `len` readable bytes back to the writer, and wakes it where it sleeps and half of the ring is free.
    #[inline]
    pub fn release(&mut self, len: usize) {
        self.tail
            .release(len as u64, &self.control.reader.0.consumed);
        // Not for every piece: a writer that waits for room is to find enough of it to be worth the switch. What is
        // left will be released too, so it is woken in time.
        let has_room = self.tail.known() <= self.capacity() as u64 / 2;
        if has_room && must_wake(&self.control.writer_sleeps.0) {
            wake(&self.control.writer_sleeps.0);
        }
    }

    /// Waits until something is readable or the writer has closed; false where neither was so after
    /// `limit` at the latest (or sooner).
    ///
    /// # Errors
    /// [`Corrupt`], from where on the ring is of no use.
    pub fn wait_for_data(&mut self, limit: Duration) -> Result<bool, Corrupt> {
        for _ in 0..SPINS {
            if self.is_worth_a_look()? {
                return Ok(true);
            }
            std::hint::spin_loop();
        }
        announce_sleep(&self.control.reader_sleeps.0);
        let mut is_worth_it = self.is_worth_a_look();
        if is_worth_it == Ok(false) {
            sleep(&self.control.reader_sleeps.0, limit);
            is_worth_it = self.is_worth_a_look();
        }
        retract_sleep(&self.control.reader_sleeps.0);
        is_worth_it
    }

    fn is_worth_a_look(&mut self) -> Result<bool, Corrupt> {
        let closed = self.state() != RUNNING;
        Ok(self.tail.look(&self.control.writer.0.produced)? > 0 || closed)
    }

    /// How the writer ended: [`RUNNING`], [`FINISHED`] or [`ABANDONED`]. Asked before
    /// [`Self::readable`], it says whether more can come after that.
    #[inline]
    #[must_use]
    pub fn state(&self) -> u32 {
        self.control.writer.0.state.load(Acquire)
    }

    /// Counter `index` of the writer, as it says; 0 where there is none.
    #[inline]
    #[must_use]
    pub fn writer_note(&self, index: usize) -> u64 {
        let notes = &self.control.writer.0.notes;
        notes.get(index).map_or(0, |note| note.load(Acquire))
    }

    /// Counter `index` of the reader: what it was set to last, by this reader or the one before.
    #[inline]
    #[must_use]
    pub fn note(&self, index: usize) -> u64 {
        let notes = &self.control.reader.0.notes;
        notes.get(index).map_or(0, |note| note.load(Relaxed))
    }

    /// Sets counter `index` of the reader; nothing where there is none.
    #[inline]
    pub fn set_note(&self, index: usize, value: u64) {
        if let Some(note) = self.control.reader.0.notes.get(index) {
            note.store(value, Release);
        }
    }
}

impl Drop for RingReader {
    fn drop(&mut self) {
        self.control.attached.0.store(0, Release);
        // A writer that waits for room looks whether anybody is left.
        if must_wake(&self.control.writer_sleeps.0) {
            wake(&self.control.writer_sleeps.0);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
