//! Response times of HTTPS without keys, beside those who know them: the client's clock, the server's log, and the
//! records that the keys of the clients give.
//!
//! ```text
//!  client                                       gateway          server
//!  host0 10.88.1.11 <veth> line <veth> cli0  -- lan0 wan0 --  srv0 10.88.2.2
//!  curl, Chromium, ...                                        nginx or Caddy (TLS)  ->  the origin (loopback)
//!  capture                                      capture
//! ```
//! The [origin] behind the server answers after the time and with the bytes that the path names, `/d/MILLISECONDS/BYTES/ID`.
//! So each transaction has a name that the client's clock, the log and the records with keys agree on; a record without
//! keys is found by the packet of its request. Everything is sent twice: over a line that only takes time, and over one
//! that loses and reorders.

use crate::error::LabError;
use crate::line::{Harm, Line};
use crate::report::Report;
use crate::testbed::{Testbed, need};
use clients::Client;
use linkweir_sys::wait::wall_clock_ns;
use seen::{Seen, Window};
use server::Server;

mod browser;
pub mod client;
mod clients;
mod events;
pub mod origin;
mod plan;
mod seen;
mod server;
mod settings;
mod tables;
mod trace;

pub use settings::{Asks, Protocol, Settings, Software};

/// The name of the server, which is in no DNS.
const HOST: &str = "shop.test";

/// A line and what was found behind it.
struct Part<T> {
    name: &'static str,
    harm: Harm,
    found: T,
}

/// Runs it.
pub(crate) fn run(settings: &Settings, testbed: &mut Testbed<'_>) -> Result<Report, LabError> {
    need(&["tcpdump", "openssl", "curl"])?;
    testbed.tell("the web server");
    let server = Server::start(testbed, settings)?;
    if settings.asks == Asks::Streams {
        let parts = over_lines(settings, testbed, |testbed, line| {
            events::observe(settings, testbed, line)
        })?;
        return Ok(events::report(settings, &parts));
    }
    let (clients, missing) = clients::of(settings);
    let parts = over_lines(settings, testbed, |testbed, line| {
        observe(settings, testbed, line, &clients, &server)
    })?;
    let mut report = tables::report(settings, &parts);
    report.notes.extend(missing);
    Ok(report)
}

/// Does the same over both lines.
fn over_lines<T>(
    settings: &Settings,
    testbed: &mut Testbed<'_>,
    mut observe: impl FnMut(&mut Testbed<'_>, &'static str) -> Result<T, LabError>,
) -> Result<Vec<Part<T>>, LabError> {
    let mut line: Option<Line> = None;
    let mut parts = Vec::new();
    for (name, harm) in [("clean", settings.clean()), ("lossy", settings.harm())] {
        line = Some(match line.take() {
            None => Line::lay(testbed, harm)?,
            Some(line) => line.replace(testbed, harm, name)?,
        });
        let found = observe(testbed, name)?;
        parts.push(Part { name, harm, found });
    }
    if let Some(line) = line {
        line.finish()?;
    }
    Ok(parts)
}

/// All clients one after the other over a line, between two captures.
fn observe(
    settings: &Settings,
    testbed: &mut Testbed<'_>,
    line: &'static str,
    clients: &[Client],
    server: &Server,
) -> Result<Vec<Seen>, LabError> {
    let traces = trace::start(testbed, line)?;
    let mut windows = Vec::new();
    for client in clients {
        let what = format!("{line} line: {}", client.name);
        testbed.tell_of(&what, settings.duration);
        let begin_ns = wall_clock_ns();
        let clock = client.run(settings, testbed, line)?;
        windows.push(Window {
            client: *client,
            begin_ns,
            end_ns: wall_clock_ns(),
            clock,
        });
        if testbed.is_stopped() {
            return Err(LabError::Stopped);
        }
    }
    let traces = traces.finish(testbed)?;
    testbed.tell(&format!("{line} line: what was captured"));
    seen::read(testbed, &traces, windows, &server.visits()?)
}
