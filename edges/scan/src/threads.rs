//! The threads of a scanner: workers, each with one connection, take scans, ask clamd and report; the probe
//! asks whether clamd is there, often while it is not; the spooler moves long scans out of memory while
//! they gather.

use std::io::{self, Write as _};
use std::net::ToSocketAddrs;
use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;

use linkweir_engine::effect::ScanOutcome;
use linkweir_sys::wait::monotonic_ns;

use crate::icap;
use crate::link::{LinkError, Until};
use crate::options::{Address, ScannerOptions};
use crate::queue::{Job, SpoolJob, Spooled};
use crate::reply::Reply;
use crate::session::{Fault, Session, connect, version};
use crate::shared::{Order, Shared, locked};
use crate::status::{Failure, FailureCause};

/// An idle connection is closed after this time, before clamd does it (`IdleTimeout` and
/// `CommandReadTimeout`, 30 s).
const IDLE: Duration = Duration::from_secs(10);
/// The second attempt is the last.
const ATTEMPTS: u32 = 2;

#[derive(Debug)]
pub(crate) struct Worker<'a> {
    shared: &'a Shared,
    session: Option<Session>,
    /// Whether the next connection replaces one that broke.
    has_lost_one: bool,
}

impl<'a> Worker<'a> {
    pub(crate) const fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            session: None,
            has_lost_one: false,
        }
    }

    /// Works until the scanner ends.
    pub(crate) fn run(&mut self) {
        loop {
            let pause = self.session.is_some().then_some(IDLE);
            match self.shared.next(pause) {
                Order::Scan(job) => {
                    let outcome = self.scan(&job);
                    self.shared.finish(&job, outcome);
                }
                Order::Idle => self.hang_up(),
                Order::Stop => {
                    self.hang_up();
                    return;
                }
            }
        }
    }

    fn hang_up(&mut self) {
        if let Some(session) = self.session.take() {
            session.end();
        }
    }

    fn scan(&mut self, job: &Job) -> Result<ScanOutcome, Failure> {
        let timeout = linkweir_wire::nanos(self.shared.options.timeout);
        let until = Until {
            deadline_ns: job.last_ns.saturating_add(timeout),
            stop: &self.shared.stop,
        };
        if monotonic_ns() >= until.deadline_ns {
            return Err(self.late(&format!(
                "no connection to {} was free",
                self.shared.options.name()
            )));
        }
        if let Some(why) = locked(&self.shared.health).why_down() {
            return Err(Failure::new(FailureCause::Unreachable, why));
        }
        let mut attempt = 1;
        loop {
            let mut session = self.session(until)?;
            let fault = match session.scan(&job.body, until) {
                Ok(reply) => return self.conclude(session, reply),
                Err(fault) => fault,
            };
            // The connection is in the middle of something and of no use to anybody.
            drop(session);
            match fault {
                Fault::Abandoned => {
                    return Err(Failure::new(
                        FailureCause::Stopped,
                        "nobody waits for it any more",
                    ));
                }
                Fault::Spool(_) => {
                    return Err(Failure::new(FailureCause::Spool, fault.to_string()));
                }
                Fault::Link(LinkError::Stopped) => {
                    return Err(Failure::new(
                        FailureCause::Stopped,
                        "the scanner was stopped",
                    ));
                }
                Fault::Link(LinkError::TimedOut) => {
                    self.has_lost_one = true;
                    locked(&self.shared.health).suspect();
                    self.shared.check.notify_all();
                    return Err(
                        self.late(&format!("{} did not answer", self.shared.options.name()))
                    );
                }
                Fault::Link(error) => {
                    self.has_lost_one = true;
                    attempt += 1;
                    if attempt > ATTEMPTS {
                        return Err(broken(self.shared.options.name(), &error));
                    }
                }
            }
        }
    }

    /// The connection to use: the one there is, or a new one.
    fn session(&mut self, until: Until<'_>) -> Result<Session, Failure> {
        if let Some(session) = self.session.take()
            && !session.is_over()
        {
            return Ok(session);
        }
        let options = &self.shared.options;
        let resolved = locked(&self.shared.health).addresses.clone();
        match connect(&options.address, &resolved, until) {
            Ok(link) => {
                let mut tally = locked(&self.shared.tally);
                tally.connections += 1;
                tally.reconnects += u64::from(std::mem::take(&mut self.has_lost_one));
                drop(tally);
                Ok(match options.icap() {
                    None => Session::new(link, options.scans_per_connection > 1),
                    Some(service) => {
                        let offer = locked(&self.shared.health).offer;
                        Session::icap(link, service, offer)
                    }
                })
            }
            Err(LinkError::Stopped) => Err(Failure::new(
                FailureCause::Stopped,
                "the scanner was stopped",
            )),
            Err(LinkError::TimedOut) => {
                locked(&self.shared.tally).connect_failures += 1;
                locked(&self.shared.health).suspect();
                self.shared.check.notify_all();
                Err(self.late(&format!(
                    "{} took no connection",
                    self.shared.options.name()
                )))
            }
            Err(error) => {
                locked(&self.shared.tally).connect_failures += 1;
                let why = unreachable(&self.shared.options, &error);
                if locked(&self.shared.health).lost(why.clone()) {
                    self.shared.check.notify_all();
                }
                Err(Failure::new(FailureCause::Unreachable, why))
            }
        }
    }

    fn conclude(&mut self, session: Session, reply: Reply) -> Result<ScanOutcome, Failure> {
        locked(&self.shared.health).answered(monotonic_ns());
        // After an error clamd closes the connection.
        let is_usable = session.is_usable() && matches!(reply, Reply::Clean | Reply::Infected(_));
        if is_usable && session.commands() < self.shared.options.scans_per_connection {
            self.session = Some(session);
        } else if is_usable {
            session.end();
        }
        match reply {
            Reply::Clean => Ok(ScanOutcome::Clean),
            Reply::Infected(name) => Ok(ScanOutcome::Infected(name)),
            Reply::SizeLimit => Err(Failure::new(
                FailureCause::ClamdSizeLimit,
                "longer than clamd's StreamMaxLength",
            )),
            Reply::Error(text) => {
                let name = self.shared.options.name();
                Err(Failure::new(FailureCause::Clamd, format!("{name}: {text}")))
            }
        }
    }

    fn late(&self, what: &str) -> Failure {
        let limit = self.shared.options.timeout;
        Failure::new(FailureCause::Timeout, format!("{what} within {limit:?}"))
    }
}

/// The failure of a scan whose connection broke on the last attempt.
fn broken(name: &str, error: &LinkError) -> Failure {
    let cause = match error {
        LinkError::Garbage => FailureCause::Protocol,
        _ => FailureCause::Closed,
    };
    Failure::new(cause, format!("{}, twice", said(name, error)))
}

/// An error with the name of the other end.
fn said(name: &str, error: &LinkError) -> String {
    match error {
        LinkError::Closed => format!("{name} closed the connection"),
        LinkError::Garbage => format!("invalid reply from {name}"),
        error => error.to_string(),
    }
}

/// Why the scanner cannot be reached, in words.
pub(crate) fn unreachable(options: &ScannerOptions, error: &LinkError) -> String {
    let (name, address) = (options.name(), &options.address);
    match error {
        LinkError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
            format!("{name} is not running: there is no {address}")
        }
        LinkError::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            format!("{name} is not running: nobody listens at {address}")
        }
        error => format!(
            "{name} at {address} cannot be reached: {}",
            said(name, error)
        ),
    }
}

/// Checks until the scanner ends.
pub(crate) fn run_probe(shared: &Shared) {
    // The first check is at once.
    let mut pause = Duration::ZERO;
    while wait(shared, pause) {
        check(shared);
        pause = locked(&shared.health).next_check(shared.options.probe_interval);
    }
}

/// Waits, unless somebody wants a check; says whether to go on.
fn wait(shared: &Shared, pause: Duration) -> bool {
    let health = locked(&shared.health);
    let (mut health, _) = shared
        .check
        .wait_timeout_while(health, pause, |health| {
            !health.take_check() && !shared.is_stopped()
        })
        .unwrap_or_else(PoisonError::into_inner);
    // A wish that came with the end of the wait is granted too.
    health.take_check();
    !shared.is_stopped()
}

fn check(shared: &Shared) {
    let began_ns = monotonic_ns();
    let timeout = linkweir_wire::nanos(shared.options.timeout);
    let until = Until {
        deadline_ns: began_ns.saturating_add(timeout),
        stop: &shared.stop,
    };
    match ask(shared, until) {
        Ok(version) => {
            let mut health = locked(&shared.health);
            health.version = version;
            health.up();
        }
        Err(LinkError::Stopped) => {}
        Err(error) => {
            let why = unreachable(&shared.options, &error);
            locked(&shared.health).check_failed(why.clone(), began_ns);
            let mut tally = locked(&shared.tally);
            tally.connect_failures += 1;
            tally.last_error = Some(why);
        }
    }
}

fn ask(shared: &Shared, until: Until<'_>) -> Result<String, LinkError> {
    let address = &shared.options.address;
    if let Address::Tcp { host, port } = address {
        // Here and not by the workers: a look-up has no deadline.
        let addresses = (host.as_str(), *port).to_socket_addrs()?.collect();
        locked(&shared.health).addresses = addresses;
    }
    let resolved = locked(&shared.health).addresses.clone();
    let link = connect(address, &resolved, until)?;
    let Some(service) = shared.options.icap() else {
        return version(&link, until);
    };
    let (offer, version) = icap::options(&link, &service, until)?;
    locked(&shared.health).offer = offer;
    Ok(version)
}

/// Writes until the scanner ends.
pub(crate) fn run_spool(shared: &Shared, directory: &Path) {
    while let Some(mut job) = next(shared) {
        let (key, memory) = (job.key, job.memory());
        let written = write(&mut job, directory).map_err(|error| {
            let text = format!(
                "the spool directory {} takes no bytes: {error}",
                directory.display()
            );
            Failure::new(FailureCause::Spool, text)
        });
        // What was in memory is let go before it counts as free.
        drop(job);
        let mut state = locked(&shared.state);
        let next = state.queue.spooled_back(key, memory, written);
        shared.follow(state, key, next);
    }
}

fn next(shared: &Shared) -> Option<SpoolJob> {
    let mut state = locked(&shared.state);
    loop {
        if shared.is_stopped() {
            return None;
        }
        if let Some(job) = state.queue.take_spool() {
            return Some(job);
        }
        state = shared
            .spool
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner);
    }
}

/// Appends the parts to the scan's file, which has no name: it is gone with the last who has it open.
fn write(job: &mut SpoolJob, directory: &Path) -> io::Result<Spooled> {
    let mut spooled = match job.file.take() {
        Some(spooled) => spooled,
        None => Spooled {
            file: tempfile::tempfile_in(directory)?,
            length: 0,
        },
    };
    for part in job.parts.drain(..) {
        spooled.file.write_all(&part)?;
        spooled.length += part.len() as u64;
    }
    Ok(spooled)
}
