//! The schedule as it is played: which session is due, and whose it is.

use std::time::Duration;

use linkweir_wire::Timestamp;

use crate::arrivals::{Arrivals, RateSource, Schedule};

/// What one of two hosts does (paper Fig. 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Everything.
    All,
    /// Sends the first SYN of each session on schedule ("RPS Init").
    Init,
    /// Takes the sessions over when the SYN ACK comes, and measures ("RPS Stat").
    Stat,
}

/// The sessions of a schedule that are one generator's: every `of`th, beginning with number `index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Number of the generator, below `of`.
    pub index: u32,
    /// How many generators there are.
    pub of: u32,
}

impl Share {
    /// All sessions.
    pub const ALL: Self = Self { index: 0, of: 1 };

    const fn has(self, number: u64) -> bool {
        number % self.of as u64 == self.index as u64
    }
}

/// The next sessions.
#[derive(Debug)]
pub(super) struct Planned<R> {
    schedule: Schedule<R>,
    share: Share,
    begin: Option<Timestamp>,
    /// Number of the session that the schedule gives next.
    number: u64,
    next: Option<(u64, Timestamp)>,
    is_done: bool,
}

impl<R: RateSource> Planned<R> {
    pub(super) fn new(schedule: Schedule<R>, share: Share) -> Self {
        Self {
            schedule,
            share: Share {
                of: share.of.max(1),
                ..share
            },
            begin: None,
            number: 0,
            next: None,
            is_done: false,
        }
    }

    pub(super) fn begin(&mut self, at: Timestamp) {
        self.begin = Some(at);
        self.advance();
    }

    fn advance(&mut self) {
        self.next = None;
        let Some(begin) = self.begin else { return };
        while let Some(offset) = self.schedule.next() {
            let number = self.number;
            self.number += 1;
            if self.share.has(number) {
                self.next = Some((number, begin + Duration::from_nanos(offset)));
                return;
            }
        }
        self.is_done = true;
    }

    /// When the next session is due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.next.map(|(_, at)| at)
    }

    /// A session that is due: its number and its planned time.
    pub(super) fn due(&mut self, now: Timestamp) -> Option<(u64, Timestamp)> {
        let due = self.next.filter(|(_, at)| *at <= now)?;
        self.advance();
        Some(due)
    }

    /// When the schedule began.
    pub(super) const fn begun(&self) -> Option<Timestamp> {
        self.begin
    }

    /// No session begins any more.
    pub(super) const fn end(&mut self) {
        self.next = None;
        self.is_done = true;
    }

    pub(super) const fn is_done(&self) -> bool {
        self.is_done
    }
}
