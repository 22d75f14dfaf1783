//! The gateway between two networks: classify a connection, hold and inspect what it carries, decide.
//!
//! The P2P Proxy (Tsai 2005) as a state machine without a kernel: queued packets, scan reports and the
//! time come in, an [`Effects`](linkweir_engine::Effects) with verdicts, scans, files and events goes
//! out. [`GatewayStage`] is the entry; the parts are
//!
//! * [`policy`]: which application of which client gets what; compiled, never changed in place
//! * `connection`: the state of a connection, and its bounded tables
//! * `hold`: in-order delivery and packets that wait (the paper's Q1 and Q2)
//! * [`inspect`]: the protocols' parsers, which report what they find to a [`inspect::Found`]
//! * `examine`: the policy applied to it: keywords, names, scan windows, records
#![forbid(unsafe_code)]

mod connection;
mod context;
mod examine;
mod hold;
pub mod inspect;
mod invitations;
pub mod policy;
mod stage;
mod stats;
mod steps;
mod work;

pub use connection::Undecided;
pub use invitations::Invitations;
pub use stage::GatewayStage;
pub use stats::{ApplicationStats, Stats};
pub use steps::{Step, StepTimes, Took};

#[cfg(test)]
mod tests;
