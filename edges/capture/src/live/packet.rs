//! [`PacketSource`]: one ring of an interface.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linkweir_engine::{Batch, Drops, Fault, FrameRef, SourceError, SourceEvent};
use linkweir_sys::BpfFilter;
use linkweir_sys::cbpf::Instruction;
use linkweir_sys::packet_socket::PacketRing;
use linkweir_sys::wait::wall_clock_ns;

use super::LiveOptions;
use super::block::{Layout, index_block};
use super::open::{Opened, RETIRE};

/// How often the kernel is asked for its counters.
const STATISTICS_EVERY_NS: u64 = 100_000_000;

/// Frames of one socket.
#[derive(Debug)]
pub(super) struct PacketSource {
    ring: PacketRing,
    layout: Layout,
    filter: Option<BpfFilter>,
    frames: Vec<FrameRef>,
    notices: Vec<String>,
    faults: VecDeque<Fault>,
    drops: Drops,
    statistics_due_ns: u64,
    idle: Duration,
    stop: Arc<AtomicBool>,
    is_closing: bool,
}

impl PacketSource {
    pub(super) fn new(opened: Opened, options: &LiveOptions) -> Self {
        Self {
            ring: opened.ring,
            layout: opened.layout,
            filter: opened.filter,
            frames: Vec::new(),
            notices: opened.notices,
            faults: VecDeque::new(),
            drops: Drops::default(),
            statistics_due_ns: 0,
            idle: options.idle,
            stop: Arc::clone(&options.stop),
            is_closing: false,
        }
    }

    pub(super) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    pub(super) const fn drops(&self) -> Drops {
        self.drops
    }

    pub(super) fn next_event(&mut self) -> Result<SourceEvent<'_>, SourceError> {
        loop {
            if let Some(fault) = self.faults.pop_front() {
                return Ok(SourceEvent::Fault(fault));
            }
            if self.take_block() {
                return Ok(SourceEvent::Batch(Batch::new(
                    self.ring.block(),
                    &self.frames,
                )));
            }
            if self.stop.load(Ordering::Relaxed) {
                self.close();
                // What the kernel still holds back comes within one retirement.
                let has_more = self.ring.wait(RETIRE * 4).unwrap_or(false);
                if !has_more {
                    self.count_drops();
                    return Ok(SourceEvent::End);
                }
                continue;
            }
            if !self.ring.wait(self.idle).unwrap_or(false) {
                self.count_drops();
                return Ok(SourceEvent::Idle);
            }
        }
    }

    /// Takes blocks until one has a frame; false where none is ready.
    fn take_block(&mut self) -> bool {
        while self.ring.advance() {
            self.frames.clear();
            let report = index_block(self.ring.block_mut(), self.layout, &mut self.frames);
            self.drops.unusable_records += report.unusable;
            if let Some(filter) = &self.filter {
                let block = self.ring.block();
                self.frames.retain(|one| {
                    let mut frames = Batch::new(block, std::slice::from_ref(one));
                    frames
                        .frames()
                        .next()
                        .is_some_and(|frame| filter.matches(frame.bytes, frame.wire_len))
                });
            }
            if report.last_ns >= self.statistics_due_ns {
                self.count_drops();
            }
            if !self.frames.is_empty() {
                return true;
            }
        }
        false
    }

    /// Takes no more from the kernel than what is in the ring.
    fn close(&mut self) {
        if !self.is_closing {
            self.is_closing = true;
            // Refused only where the socket is broken, and then nothing comes anyway.
            self.ring.socket().attach(&[Instruction::keep(0)]).ok();
        }
    }

    fn count_drops(&mut self) {
        self.statistics_due_ns = wall_clock_ns().saturating_add(STATISTICS_EVERY_NS);
        if let Ok(counted) = self.ring.socket().statistics() {
            self.drops.kernel += u64::from(counted.drops);
        }
    }
}
