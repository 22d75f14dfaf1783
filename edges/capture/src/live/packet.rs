//! [`PacketSource`]: one ring of an interface, for as long as the interface lives and after.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linkweir_engine::{Batch, Drops, FrameRef, SourceError, SourceEvent};
use linkweir_sys::cbpf::Instruction;
use linkweir_sys::wait::{monotonic_ns, pause, wall_clock_ns};

use super::LiveOptions;
use super::block::index_block;
use super::group::Group;
use super::open::{Opened, RETIRE, open_all};
use super::watch::{Change, Watch};

/// How often the kernel is asked for its counters.
const STATISTICS_EVERY_NS: u64 = 100_000_000;

/// What taking a block came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// It has frames.
    Frames,
    /// It has none, or none that matches.
    Nothing,
    /// No block is ready.
    Empty,
}

/// Frames of one socket.
#[derive(Debug)]
pub(super) struct PacketSource {
    group: Arc<Group<Opened>>,
    /// Which of the group it is: its shard.
    member: usize,
    /// Nothing while no interface is open.
    opened: Option<Opened>,
    watch: Watch,
    frames: Vec<FrameRef>,
    notices: Vec<String>,
    drops: Drops,
    times_full: u64,
    /// Since when blocks came without frames.
    quiet_since_ns: Option<u64>,
    statistics_due_ns: u64,
    idle: Duration,
    retry: Duration,
    reopen_due_ns: u64,
    stop: Arc<AtomicBool>,
    is_closing: bool,
}

impl PacketSource {
    /// All sources of a capture.
    pub(super) fn open(options: &LiveOptions) -> Result<Vec<Self>, SourceError> {
        let opened = open_all(options)?;
        let group = Arc::new(Group::new(options, open_all));
        let source = |(member, mut opened): (usize, Opened)| Self {
            group: Arc::clone(&group),
            member,
            watch: Watch::new(&options.interface, opened.interface, member == 0),
            notices: std::mem::take(&mut opened.notices),
            opened: Some(opened),
            frames: Vec::new(),
            drops: Drops::default(),
            times_full: 0,
            quiet_since_ns: None,
            statistics_due_ns: 0,
            idle: options.idle,
            retry: options.retry,
            reopen_due_ns: 0,
            stop: Arc::clone(&options.stop),
            is_closing: false,
        };
        Ok(opened.into_iter().enumerate().map(source).collect())
    }

    pub(super) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    pub(super) const fn drops(&self) -> Drops {
        self.drops
    }

    /// The socket, for whoever waits for several.
    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        self.opened.as_ref().map(|opened| opened.ring.as_fd())
    }

    /// How often the kernel found the ring full.
    pub(super) const fn times_full(&self) -> u64 {
        self.times_full
    }

    pub(super) fn next_event(&mut self) -> Result<SourceEvent<'_>, SourceError> {
        loop {
            if let Some(fault) = self.watch.take_fault() {
                return Ok(SourceEvent::Fault(fault));
            }
            let is_stopped = self.stop.load(Ordering::Relaxed);
            if is_stopped {
                // First, so that the ring empties whatever the rate.
                self.close();
            }
            match self.take_block() {
                Taken::Frames => {
                    self.quiet_since_ns = None;
                    let block = self.opened.as_ref().map_or(&[][..], |o| o.ring.block());
                    return Ok(SourceEvent::Batch(Batch::new(block, &self.frames)));
                }
                // Nothing that matches: for the stage that is as if nothing came.
                Taken::Nothing if self.is_idle_long() => return Ok(SourceEvent::Idle),
                Taken::Nothing => continue,
                Taken::Empty => {}
            }
            if self.opened.is_none() {
                if is_stopped {
                    return Ok(SourceEvent::End);
                }
                self.reopen();
                if self.opened.is_none() {
                    pause(self.idle);
                    return Ok(SourceEvent::Idle);
                }
            } else if is_stopped {
                // What the kernel still holds back comes within one retirement.
                if !self.wait(RETIRE * 4) {
                    self.count_drops();
                    return Ok(SourceEvent::End);
                }
            } else if self.wait(self.idle) {
                self.look_after_error();
            } else {
                self.count_drops();
                self.look_around();
                if !self.watch.has_fault() {
                    self.quiet_since_ns = None;
                    return Ok(SourceEvent::Idle);
                }
            }
        }
    }

    /// Whether blocks without frames have come for as long as makes an idle event.
    fn is_idle_long(&mut self) -> bool {
        let now = monotonic_ns();
        let since = *self.quiet_since_ns.get_or_insert(now);
        let is_long = u128::from(now.saturating_sub(since)) >= self.idle.as_nanos();
        if is_long {
            self.quiet_since_ns = None;
        }
        is_long
    }

    /// Takes the next block, if one is ready.
    fn take_block(&mut self) -> Taken {
        let Some(opened) = &mut self.opened else {
            return Taken::Empty;
        };
        if !opened.ring.advance() {
            return Taken::Empty;
        }
        self.frames.clear();
        let block = opened.ring.block_mut();
        let report = index_block(block, opened.layout, &mut self.frames);
        self.drops.unusable_records += report.unusable;
        if let Some(filter) = &opened.filter {
            let block = opened.ring.block();
            self.frames.retain(|one| {
                Batch::new(block, std::slice::from_ref(one))
                    .frames()
                    .any(|frame| filter.matches(frame.bytes, frame.wire_len))
            });
        }
        if report.last_ns >= self.statistics_due_ns {
            self.count_drops();
            self.look_around();
        }
        if self.frames.is_empty() {
            Taken::Nothing
        } else {
            Taken::Frames
        }
    }

    fn wait(&self, limit: Duration) -> bool {
        self.opened
            .as_ref()
            .is_some_and(|opened| opened.ring.wait(limit).unwrap_or(false))
    }

    /// Takes no more from the kernel than what is in the ring.
    fn close(&mut self) {
        if !self.is_closing
            && let Some(opened) = &self.opened
        {
            self.is_closing = true;
            // Refused only where the socket is broken, and then nothing comes anyway.
            opened.ring.socket().attach(&[Instruction::keep(0)]).ok();
        }
        // An error that waits at the socket would look like frames.
        if let Some(opened) = &self.opened {
            opened.ring.socket().take_error().ok();
        }
    }

    /// Adds what the kernel dropped since it was last asked.
    fn count_drops(&mut self) {
        self.statistics_due_ns = wall_clock_ns().saturating_add(STATISTICS_EVERY_NS);
        if let Some(opened) = &self.opened
            && let Ok(counted) = opened.ring.socket().statistics()
        {
            self.drops.kernel += u64::from(counted.drops);
            self.times_full += u64::from(counted.freezes);
        }
    }

    /// The socket woke up: for a block that is ready, or for an error.
    fn look_after_error(&mut self) {
        let Some(opened) = &mut self.opened else {
            return;
        };
        match opened.ring.socket().take_error() {
            Ok(Some(_)) => self.look_around_now(),
            _ => {
                if !opened.ring.is_ready() {
                    // Nothing of what it woke up for: not to be asked again and again.
                    pause(Duration::from_millis(1));
                }
            }
        }
    }

    /// Notices changes of the interface, at most once in `retry`.
    fn look_around(&mut self) {
        if self.watch.is_due(self.retry) {
            self.look_around_now();
        }
    }

    fn look_around_now(&mut self) {
        let Some(opened) = &self.opened else {
            return;
        };
        let socket = opened.ring.socket();
        if self.watch.look(socket.interface().ok().flatten()) == Change::Vanished
            && !opened.ring.is_ready()
        {
            self.count_drops();
            self.opened = None;
        }
    }

    /// Opens the interface again, if it is back and the time has come.
    fn reopen(&mut self) {
        let now = monotonic_ns();
        if now < self.reopen_due_ns {
            return;
        }
        let retry_ns = linkweir_wire::nanos(self.retry);
        self.reopen_due_ns = now.saturating_add(retry_ns);
        match self.group.reopen(self.member) {
            Ok(opened) => {
                self.watch.is_back(opened.interface);
                self.opened = Some(opened);
            }
            Err(error) => self.watch.is_still_away(&error.message),
        }
    }
}
