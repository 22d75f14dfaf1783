//! The live view of a run: the page, the terminal, lines, `/metrics`, alerts.
//!
//! The loop of the run gives a look at its counters once an interval and waits for nobody: everything else happens on
//! a thread of its own. A look that finds no room there is joined with the next.

mod board;

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::anyhow;
use linkweir_engine::Loss;
use linkweir_live::load::LoadRun;
use linkweir_load::measure::Progress;
use linkweir_wire::Timestamp;

pub(super) use self::board::Board;
use crate::clock::timestamp;
use crate::view::View;

/// The live view of load.
pub(super) type LoadView = View<LoadRun>;

/// Looks that wait.
const WAITING: usize = 4;
/// How often the clock of the statistics moves on.
const TICK: Duration = Duration::from_millis(100);

/// What the loop says.
enum Said {
    /// The schedule begins then.
    Begin(Timestamp),
    /// A look, and where it counts.
    Look(u64, Box<Progress>),
}

/// The side of the loop.
pub(super) struct Lookout {
    interval: Duration,
    /// When the next look is due: never where nobody looks.
    next: Option<Timestamp>,
    /// A look for which there was no room.
    waiting: Option<Box<Progress>>,
    board: Option<(SyncSender<Said>, JoinHandle<Vec<Loss>>)>,
}

impl Lookout {
    /// Starts the thread of `board`, where there is one. A look is due each `interval`, where somebody looks.
    pub(super) fn start(board: Option<Board>, interval: Duration) -> anyhow::Result<Self> {
        let board = board.map(|board| {
            let (sender, said) = sync_channel(WAITING);
            let thread = std::thread::Builder::new().name("live".to_owned());
            let thread = thread.spawn(move || show(board, &said))?;
            anyhow::Ok((sender, thread))
        });
        Ok(Self {
            interval,
            next: None,
            waiting: None,
            board: board.transpose()?,
        })
    }

    /// The schedule begins at `at`; `is_wanted` is whether somebody else wants looks.
    /// Whether anybody looks.
    pub(super) fn begin(&mut self, at: Timestamp, is_wanted: bool) -> bool {
        if let Some((board, _)) = &self.board {
            // There is room: it is the first.
            let _sent = board.try_send(Said::Begin(at));
        }
        let is_watched = is_wanted || self.board.is_some();
        self.next = is_watched.then(|| at + self.interval);
        is_watched
    }

    /// Whether a look is due.
    #[inline]
    pub(super) fn is_due(&self, time: Timestamp) -> bool {
        self.next.is_some_and(|next| time >= next)
    }

    /// Takes a look at `time`: it counts in the interval that has just ended, however late the loop comes to it.
    pub(super) fn look(&mut self, time: Timestamp, progress: Progress) {
        let Some(next) = self.next else { return };
        let interval = linkweir_wire::nanos(self.interval).max(1);
        let late = time.nanos_since(next) / interval * interval;
        let boundary = next + Duration::from_nanos(late);
        self.next = Some(boundary + self.interval);
        let progress = self.joined(progress);
        if let Some((board, _)) = &self.board {
            let said = Said::Look(boundary.as_nanos().saturating_sub(1), progress);
            if let Err(TrySendError::Full(Said::Look(_, progress))) = board.try_send(said) {
                self.waiting = Some(progress);
            }
        }
    }

    fn joined(&mut self, progress: Progress) -> Box<Progress> {
        match self.waiting.take() {
            None => Box::new(progress),
            Some(mut waiting) => {
                waiting.join(progress);
                waiting
            }
        }
    }

    /// The last look; gives the alerts that a webhook did not deliver.
    pub(super) fn finish(
        &mut self,
        time: Timestamp,
        progress: Progress,
    ) -> anyhow::Result<Vec<Loss>> {
        let progress = self.joined(progress);
        let Some((board, thread)) = self.board.take() else {
            return Ok(Vec::new());
        };
        // The schedule is over: it may wait.
        let _sent = board.send(Said::Look(time.as_nanos(), progress));
        drop(board);
        let undelivered = thread.join();
        undelivered.map_err(|_| anyhow!("the live view has panicked"))
    }
}

/// A run that never began leaves no terminal taken.
impl Drop for Lookout {
    fn drop(&mut self) {
        if let Some((board, thread)) = self.board.take() {
            drop(board);
            let _shown = thread.join();
        }
    }
}

/// Shows what the loop says, until it says nothing any more.
fn show(mut board: Board, said: &Receiver<Said>) -> Vec<Loss> {
    loop {
        match said.recv_timeout(TICK) {
            Ok(Said::Begin(at)) => board.begin(at),
            Ok(Said::Look(at_ns, progress)) => board.look(0, at_ns, *progress),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                board.ended(0, None);
                return board.finish(timestamp());
            }
        }
        board.show(timestamp());
    }
}
