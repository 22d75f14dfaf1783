//! A laboratory: clients, a gateway and a server in network namespaces of their own, with every
//! command of `linkweir` at work on the same traffic, so that each checks the others.
//!
//! A [`Scenario`] is a file: what kind of experiment it is, and its figures. [`run`] builds the
//! [testbed](mod@testbed), starts the programs, and gives [`Report`]: tables in which every observer has
//! a column, each row with what the observers may differ by, and curves.
//!
//! Nothing of it touches the machine's own interfaces, and nothing stays: the namespaces have no names
//! and live as long as pipes of ours, what runs in them is killed with the thread that started it, and
//! the directory is removed by a process that waits for our end.
#![forbid(unsafe_code)]

pub mod report;
pub mod scenario;

mod curves;
pub mod encrypted;
mod error;
pub mod failover;
mod gateway;
pub mod line;
pub mod overload;
pub mod p2p;
mod program;
pub mod regenerate;
mod services;
mod settings;
mod testbed;
pub mod traffic;

use std::sync::atomic::Ordering;

pub use error::LabError;
pub use report::Report;
pub use scenario::Scenario;
pub use testbed::{Order, Step};

use scenario::Kind;
use testbed::Testbed;

/// Runs a scenario; `tell` hears of every step.
///
/// To be called on the thread that lives as long as the program: what it starts ends with it.
///
/// # Errors
/// A program is missing, the kernel does not allow namespaces, or a command failed.
pub fn run(
    scenario: &Scenario,
    order: &Order,
    tell: &mut dyn FnMut(Step<'_>),
) -> Result<Report, LabError> {
    scenario.check()?;
    let mut testbed = Testbed::new(order, tell)?;
    let mut report = match &scenario.kind {
        Kind::Traffic(settings) => traffic::run(settings, &mut testbed)?,
        Kind::Regenerate(settings) => regenerate::run(settings, &mut testbed)?,
        Kind::Overload(settings) => overload::run(settings, &mut testbed)?,
        Kind::Failover(settings) => failover::run(settings, &mut testbed)?,
        Kind::P2p(settings) => p2p::run(settings, &mut testbed)?,
        Kind::Encrypted(settings) => encrypted::run(settings, &mut testbed)?,
    };
    report.begin_with("scenario", &scenario.title);
    report.begin_with("seed", &order.seed.to_string());
    if order.stop.load(Ordering::Relaxed) {
        let why =
            "The run was ended early: what was to be sent later is not there, and may differ.";
        report.notes.push(why.to_owned());
        report.interrupted = true;
    }
    Ok(report)
}
