//! Who looks on while others run, and may give orders.

use std::net::SocketAddr;

use linkweir_load::measure::{Figures, Progress};

/// What whoever looks on asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::load) struct Asked {
    /// All that wait may start.
    pub(in crate::load) start: bool,
    /// All that run are to end early.
    pub(in crate::load) stop: bool,
    /// All that run are to give their figures so far.
    pub(in crate::load) report: bool,
}

/// Looks on. Workers are numbered in the order in which they came.
pub(in crate::load) trait Operator {
    /// A worker has come.
    fn came(&mut self, peer: SocketAddr);
    /// How it goes with one.
    fn progress(&mut self, worker: usize, progress: Progress);
    /// The figures of one so far.
    fn interim(&mut self, worker: usize, figures: Figures);
    /// One has ended with its figures, or is gone for a reason.
    fn ended(&mut self, worker: usize, with: Result<Figures, &str>);
    /// What is asked for since the last time; called some times a second.
    fn ask(&mut self) -> Asked;
}

/// Nobody looks on.
pub(in crate::load) struct Nobody;

impl Operator for Nobody {
    fn came(&mut self, _peer: SocketAddr) {}

    fn progress(&mut self, _worker: usize, _progress: Progress) {}

    fn interim(&mut self, _worker: usize, _figures: Figures) {}

    fn ended(&mut self, _worker: usize, _with: Result<Figures, &str>) {}

    fn ask(&mut self) -> Asked {
        Asked::default()
    }
}
