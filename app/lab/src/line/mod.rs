//! A line between two interfaces that loses some segments and lets some come late, and counts what it
//! does.
//!
//! It takes whole frames from each interface and gives them to the other. Only TCP segments and UDP datagrams come
//! to harm: a lost answer of ARP would be felt, but no observer could explain it. The kernel's own
//! emulator (`netem`) is not in every kernel, and does not say what it did to which kind of segment.
//!
//! A line between the clients and the gateway.
//!
//! ```text
//!  client                                                gateway
//!  host0 10.88.1.11 <veth> host1   the line   cli0 <veth> lan0 10.88.1.1
//!  load
//! ```
//! The addresses of the clients' namespace move in front of the line (`Net::put_before_line`).

use crate::error::LabError;
use crate::program::{Ended, Program};
use crate::testbed::{Testbed, go_first};
use linkweir_inject::{Port, PortError, PortOptions, SenderKind};
use linkweir_load::frames::Frames;
use linkweir_sys::wait::{any_readable, wall_clock_ns};
use linkweir_testkit::gateway::{LineEnds, Place};
use linkweir_wire::Timestamp;
use serde::Serialize;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use way::Way;

#[cfg(test)]
mod tests;
mod way;

pub use way::{Counts, Harm, Kind, Segments};

/// How long a signal may go unnoticed.
const LOOK: Duration = Duration::from_millis(50);
/// Memory for frames that wait to be taken, bytes. What an ordinary user gets of it is less.
const BUFFER: usize = 64 << 20;

/// What a line is between, and what it does.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Its two interfaces. They have to be up, and nobody else should answer on them.
    pub between: [String; 2],
    /// What it does to segments, in each direction.
    pub harm: Harm,
    /// Names its random numbers.
    pub seed: u64,
}

/// What a line did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Done {
    /// From the first interface to the second.
    pub forth: Counts,
    /// From the second to the first.
    pub back: Counts,
    /// Frames that were lost against its will.
    #[serde(skip)]
    pub dropped: Dropped,
}

/// What was lost against the will of the line, in both directions: with any of it, its counts are not
/// what happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Frames for which the kernel had no memory before they were taken.
    pub kernel: u64,
    /// Frames too long to be taken whole.
    pub too_long: u64,
    /// Frames that the other interface did not take.
    pub refused: u64,
}

/// Runs until `stop` is set. What waits then still goes its way.
///
/// # Errors
/// An interface cannot be opened, or is gone.
pub fn run(options: &Options, stop: &AtomicBool) -> Result<Done, PortError> {
    let [near, far] = &options.between;
    let (mut near, mut far) = (open(near)?, open(far)?);
    let mut forth = Way::new(options.harm, options.seed, 0);
    let mut back = Way::new(options.harm, options.seed, 1);
    let mut frames = Frames::default();
    while !stop.load(Ordering::Relaxed) {
        let due = [&forth, &back].map(Way::next_deadline);
        let limit = due.into_iter().flatten().min().map_or(LOOK, |due| {
            Duration::from_nanos(due.nanos_since(now())).min(LOOK)
        });
        wait(&near, &far, limit)?;
        carry(&mut near, &mut far, &mut forth, &mut frames)?;
        carry(&mut far, &mut near, &mut back, &mut frames)?;
    }
    for (way, to) in [(&mut forth, &mut far), (&mut back, &mut near)] {
        frames.clear();
        way.pop_due(Timestamp::MAX, &mut frames);
        to.send(frames.iter())?;
    }
    let mut dropped = Dropped::default();
    for counts in [near.counts(), far.counts()] {
        dropped.kernel += counts.dropped;
        dropped.too_long += counts.too_long;
        dropped.refused += counts.sent.refused;
    }
    Ok(Done {
        forth: forth.counts(),
        back: back.counts(),
        dropped,
    })
}

fn open(interface: &str) -> Result<Port, PortError> {
    Port::open(&PortOptions {
        // Each frame as it came, whatever it is: the kernel's path of a packet socket is the plainest.
        sender: SenderKind::Packet,
        only_load: false,
        receive_buffer: BUFFER,
        linger: Duration::ZERO,
        ..PortOptions::new(interface)
    })
}

fn wait(near: &Port, far: &Port, limit: Duration) -> Result<(), PortError> {
    let files = [near.as_fd(), far.as_fd()];
    any_readable(&files, limit)
        .map(drop)
        .map_err(|error| PortError::Io {
            doing: "waiting",
            interface: "the line".to_owned(),
            error,
        })
}

/// Takes what has come at one side, and gives the other what it gets now.
fn carry(
    from: &mut Port,
    to: &mut Port,
    way: &mut Way,
    frames: &mut Frames,
) -> Result<(), PortError> {
    frames.clear();
    let now = now();
    from.receive(Duration::ZERO, |frame| way.take(frame.bytes, now, frames))?;
    way.pop_due(now, frames);
    to.send(frames.iter())?;
    Ok(())
}

fn now() -> Timestamp {
    Timestamp::from_nanos(wall_clock_ns())
}

/// How long it may take until it runs.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A line that runs.
pub(crate) struct Line {
    program: Program,
    ends: LineEnds,
}

impl Line {
    /// Moves the clients in front of a line, and starts it.
    pub(crate) fn lay(testbed: &mut Testbed<'_>, harm: Harm) -> Result<Self, LabError> {
        let ends = testbed.net.put_before_line(Place::Client)?;
        testbed.clients = ends.host;
        Self::start(testbed, ends, harm, "line")
    }

    /// Another line in the place of this one.
    pub(crate) fn replace(
        self,
        testbed: &Testbed<'_>,
        harm: Harm,
        name: &str,
    ) -> Result<Self, LabError> {
        self.program.finish()?;
        Self::start(testbed, self.ends, harm, name)
    }

    fn start(
        testbed: &Testbed<'_>,
        ends: LineEnds,
        harm: Harm,
        name: &str,
    ) -> Result<Self, LabError> {
        let (loss, reorder) = (harm.loss.to_string(), harm.reorder.to_string());
        let seed = testbed.order.seed.to_string();
        let mut words = vec!["line", "--between", ends.near, "--and", ends.far];
        words.extend(["--loss", &loss, "--reorder", &reorder, "--seed", &seed]);
        let times = [("--delay", harm.delay), ("--latency", harm.latency)];
        let times = times.map(|(flag, time)| (flag, time, format!("{}ns", time.as_nanos())));
        for (flag, time, text) in &times {
            if !time.is_zero() {
                words.extend([*flag, text]);
            }
        }
        let mut program = Program::start_part(testbed, Place::Client, name, &words)?;
        let id = program.id();
        // A socket at each end.
        testbed.wait("the line", TIMEOUT, || {
            program.has_ended() || testbed.net.packet_sockets_of(Place::Client, id) >= 2
        })?;
        program.must_run()?;
        // A frame that waits for a core would be one that the line delays.
        go_first(testbed, id);
        Ok(Self { program, ends })
    }

    /// Ends it.
    pub(crate) fn finish(self) -> Result<Ended, LabError> {
        self.program.finish()
    }
}
