//! One stage and several threads: one analyses while the others read what comes next.
//!
//! ```text
//! thread 0   read 0 │ analyse 0 │ read 2          │ analyse 2 │ ...
//! thread 1   read 1             │ analyse 1 │ read 3          │ ...
//! ```
//! To copy full packets out of the page cache costs more than to analyse them. What a thread has read lies in the cache
//! of its core, and is analysed there; packets go through the stage in their order, so that records and totals are in
//! every case those of one thread.
//!
//! Whose turn has not come spins before it sleeps: to be woken takes as long as to analyse a piece.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::outputs::Outlet;
use crate::run::{Directive, Run, RunError, RunReport};
use crate::seams::{Progress, ReadAhead, Stage};

/// Looks at the turn before a thread sleeps: some 40 us.
const SPINS: usize = 2000;
/// After this long a thread looks whether the others are still there.
const PATIENCE: Duration = Duration::from_millis(100);

/// What the threads of a run have in common.
struct Relay<S, R, D> {
    shift: Mutex<Shift<S, R, D>>,
    /// The thread whose turn it is.
    turn: AtomicUsize,
    has_passed: Condvar,
    threads: usize,
}

/// The turn of a thread.
type Turn<'t, S, R, D> = MutexGuard<'t, Shift<S, R, D>>;

/// What only the thread has whose turn it is.
struct Shift<S, R, D> {
    source: S,
    run: R,
    direct: D,
    /// What the run came to, when it has ended.
    outcome: Option<Result<(), RunError>>,
    /// Packets and bytes of each thread.
    shares: Vec<(u64, u64)>,
    /// Threads that sleep.
    sleeping: usize,
}

/// Drives `run` through `source` on this thread and others, `threads` together. Gives what each has
/// analysed, packets and bytes, too.
pub(crate) fn drive<'r, S, T, O, D>(
    run: Run<'r, T, O>,
    source: S,
    threads: usize,
    direct: D,
) -> (RunReport, Vec<(u64, u64)>, Result<(), RunError>)
where
    S: ReadAhead + Send,
    T: Stage,
    O: Outlet<T::Record>,
    D: FnMut(&RunReport, Progress) -> Directive + Send,
    Run<'r, T, O>: Send,
{
    let threads = threads.max(1);
    let relay = Relay {
        shift: Mutex::new(Shift {
            source,
            run,
            direct,
            outcome: None,
            shares: vec![(0, 0); threads],
            sleeping: 0,
        }),
        turn: AtomicUsize::new(0),
        has_passed: Condvar::new(),
        threads,
    };
    thread::scope(|scope| {
        for number in 1..threads {
            let relay = &relay;
            scope.spawn(move || relay.work(number));
        }
        relay.work(0);
    });
    let shift = relay.shift.into_inner();
    let shift = shift.unwrap_or_else(PoisonError::into_inner);
    let (report, ended) = shift.run.end(shift.source, shift.outcome.unwrap_or(Ok(())));
    (report, shift.shares, ended)
}

impl<'r, S, T, O, D> Relay<S, Run<'r, T, O>, D>
where
    S: ReadAhead,
    T: Stage,
    O: Outlet<T::Record>,
    D: FnMut(&RunReport, Progress) -> Directive,
{
    fn work(&self, number: usize) {
        let mut piece = S::Piece::default();
        let mut is_claimed = false;
        loop {
            if is_claimed {
                S::read(&mut piece);
            }
            let Some(mut shift) = self.wait(number) else {
                return;
            };
            if shift.outcome.is_none() {
                is_claimed = shift.go_on(number, &mut piece, is_claimed);
            }
            let (has_ended, sleeping) = (shift.outcome.is_some(), shift.sleeping);
            self.turn
                .store((number + 1) % self.threads, Ordering::Release);
            drop(shift);
            if sleeping > 0 {
                self.has_passed.notify_all();
            }
            if has_ended {
                return;
            }
        }
    }

    /// Waits for the turn of a thread; nothing where another has failed.
    fn wait(&self, number: usize) -> Option<Turn<'_, S, Run<'r, T, O>, D>> {
        let has_come = || self.turn.load(Ordering::Acquire) == number;
        for _ in 0..SPINS {
            if has_come() {
                break;
            }
            spin_loop();
        }
        let mut shift = self.shift.lock().ok()?;
        while !has_come() {
            shift.sleeping += 1;
            let (woken, _) = self.has_passed.wait_timeout(shift, PATIENCE).ok()?;
            shift = woken;
            shift.sleeping -= 1;
        }
        Some(shift)
    }
}

impl<S, T, O, D> Shift<S, Run<'_, T, O>, D>
where
    S: ReadAhead,
    T: Stage,
    O: Outlet<T::Record>,
    D: FnMut(&RunReport, Progress) -> Directive,
{
    /// Analyses what was claimed and read, and claims what comes next: false where others have claimed all that there is, and
    /// at the end.
    fn go_on(&mut self, number: usize, piece: &mut S::Piece, is_claimed: bool) -> bool {
        if is_claimed && self.source.supply(piece) {
            self.take(number);
        }
        while self.outcome.is_none() {
            if self.source.claim(piece) {
                return true;
            }
            if self.source.is_ahead() {
                return false;
            }
            // Of a pipe and what is compressed nobody reads ahead, so that no other thread would do better.
            self.take(number);
        }
        false
    }

    /// Takes what is supplied, or else what the source has next.
    fn take(&mut self, number: usize) {
        let seen = |run: &Run<'_, T, O>| (run.report().packets, run.report().bytes);
        let before = seen(&self.run);
        while self.outcome.is_none() {
            match self.run.step(&mut self.source, &mut self.direct) {
                Ok(true) if self.source.is_supplied() => {}
                Ok(true) => break,
                ended => self.outcome = Some(ended.map(drop)),
            }
        }
        let after = seen(&self.run);
        if let Some((packets, bytes)) = self.shares.get_mut(number) {
            *packets += after.0 - before.0;
            *bytes += after.1 - before.1;
        }
    }
}
