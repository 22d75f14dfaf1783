//! A socket to clamd on which every wait has an end: a deadline, or the end of the scanner.

use std::fs::File;
use std::io::{self, IoSlice, PipeReader, PipeWriter};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use linkweir_sys::wait::monotonic_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType, connect, recv, send, sendmsg, socket_with, sockopt,
};
use thiserror::Error;

/// Longest answer, bytes; clamd's are shorter.
const MAX_ANSWER: usize = 4096;
/// Longest heads of an answer of another form, bytes, with what came together with them.
const MAX_HEADS: usize = 64 << 10;
/// Longest answer that is heard before all was sent, bytes: a service may give a part of a file back early.
const MAX_HEARD: usize = 8 << 20;
/// Break before a local socket whose queue is full is tried again.
const FULL_BREAK: Duration = Duration::from_millis(10);

/// Ends every wait, once, for good.
#[derive(Debug)]
pub(crate) struct Stop {
    reader: PipeReader,
    /// Dropped to make the other end readable.
    writer: Mutex<Option<PipeWriter>>,
    is_stopped: AtomicBool,
}

impl Stop {
    pub(crate) fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self {
            reader,
            writer: Mutex::new(Some(writer)),
            is_stopped: AtomicBool::new(false),
        })
    }

    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        drop(
            self.writer
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }
}

/// How long a wait may last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Until<'a> {
    /// Monotonic nanoseconds.
    pub(crate) deadline_ns: u64,
    pub(crate) stop: &'a Stop,
}

impl Until<'_> {
    fn left(&self) -> Result<Duration, LinkError> {
        match self.deadline_ns.saturating_sub(monotonic_ns()) {
            0 => Err(LinkError::TimedOut),
            nanos => Ok(Duration::from_nanos(nanos)),
        }
    }
}

/// Why something on the socket did not happen.
#[derive(Debug, Error)]
pub(crate) enum LinkError {
    #[error("no answer in time")]
    TimedOut,
    #[error("the scanner was stopped")]
    Stopped,
    #[error("the scanner closed the connection")]
    Closed,
    #[error("invalid reply from the scanner")]
    Garbage,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// How sending ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    All,
    /// The other end takes no more: it has answered, or is gone. Reading tells.
    Refused,
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Link {
    socket: OwnedFd,
}

impl Link {
    /// Connects to a local socket.
    pub(crate) fn unix(path: &Path, until: Until<'_>) -> Result<Self, LinkError> {
        let address = SocketAddrUnix::new(path).map_err(io::Error::from)?;
        let link = Self::open(AddressFamily::UNIX)?;
        loop {
            match connect(&link.socket, &address) {
                Ok(()) => return Ok(link),
                // Its queue of connections is full, and the kernel tells nobody when it is not.
                Err(Errno::AGAIN) => rest(FULL_BREAK.min(until.left()?), until.stop)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }

    /// Connects to a port.
    pub(crate) fn tcp(address: SocketAddr, until: Until<'_>) -> Result<Self, LinkError> {
        let link = Self::open(match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        })?;
        // A scan's end must not wait for the acknowledgment of its beginning.
        sockopt::set_tcp_nodelay(&link.socket, true).map_err(io::Error::from)?;
        match connect(&link.socket, &address) {
            Ok(()) => return Ok(link),
            Err(Errno::INPROGRESS | Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        link.wait(PollFlags::OUT, until)?;
        let outcome = sockopt::socket_error(&link.socket).map_err(io::Error::from)?;
        outcome.map_err(io::Error::from)?;
        Ok(link)
    }

    fn open(family: AddressFamily) -> Result<Self, LinkError> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None);
        Ok(Self {
            socket: socket.map_err(io::Error::from)?,
        })
    }

    /// Sends all of `parts`, unless the other end will take no more.
    pub(crate) fn send(
        &self,
        parts: &mut [IoSlice<'_>],
        until: Until<'_>,
    ) -> Result<Sent, LinkError> {
        // It speaks before it has heard all: it will not hear the rest.
        self.send_unless(parts, || Ok(true), until)
    }

    /// The same to one that may speak before it has heard all: while it hears nothing, what it says goes into `heard`.
    /// Stops where `is_final` of that, or where it is too long.
    pub(crate) fn send_hearing(
        &self,
        parts: &mut [IoSlice<'_>],
        (heard, is_final): (&mut Vec<u8>, impl Fn(&[u8]) -> bool),
        until: Until<'_>,
    ) -> Result<Sent, LinkError> {
        let hear = || {
            self.receive_some(heard, until)?;
            Ok(heard.len() > MAX_HEARD || is_final(heard))
        };
        self.send_unless(parts, hear, until)
    }

    /// Sends all of `parts`, unless `is_refused` where the other end speaks and takes nothing.
    fn send_unless(
        &self,
        mut parts: &mut [IoSlice<'_>],
        mut is_refused: impl FnMut() -> Result<bool, LinkError>,
        until: Until<'_>,
    ) -> Result<Sent, LinkError> {
        while parts.iter().any(|part| !part.is_empty()) {
            let mut none = SendAncillaryBuffer::default();
            match sendmsg(&self.socket, parts, &mut none, SendFlags::NOSIGNAL) {
                Ok(count) => IoSlice::advance_slices(&mut parts, count),
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => return Ok(Sent::Refused),
                Err(Errno::AGAIN) => {
                    let ready = self.wait(PollFlags::IN | PollFlags::OUT, until)?;
                    let speaks = !ready.contains(PollFlags::OUT) && ready.contains(PollFlags::IN);
                    if speaks && is_refused()? {
                        return Ok(Sent::Refused);
                    }
                }
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
        Ok(Sent::All)
    }

    /// Reads what is there, and waits where nothing is.
    pub(crate) fn receive_some(
        &self,
        into: &mut Vec<u8>,
        until: Until<'_>,
    ) -> Result<(), LinkError> {
        let mut buffer = [0_u8; 16 << 10];
        loop {
            match recv(&self.socket, &mut buffer, RecvFlags::empty()) {
                Ok((0, _)) | Err(Errno::CONNRESET) => return Err(LinkError::Closed),
                Ok((count, _)) => {
                    into.extend_from_slice(buffer.get(..count).unwrap_or_default());
                    return Ok(());
                }
                Err(Errno::AGAIN) => {
                    self.wait(PollFlags::IN, until)?;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }

    /// Sends a short text as far as the socket takes it at once: a good-bye.
    pub(crate) fn send_at_once(&self, text: &[u8]) {
        send(&self.socket, text, SendFlags::NOSIGNAL).ok();
    }

    /// Reads one answer, without the NUL byte that ends it, into `answer`.
    pub(crate) fn receive(&self, answer: &mut Vec<u8>, until: Until<'_>) -> Result<(), LinkError> {
        answer.clear();
        let mut buffer = [0_u8; 512];
        loop {
            match recv(&self.socket, &mut buffer, RecvFlags::empty()) {
                Ok((0, _)) | Err(Errno::CONNRESET) => return Err(LinkError::Closed),
                Ok((count, _)) => {
                    answer.extend_from_slice(buffer.get(..count).unwrap_or_default());
                    match answer.iter().position(|byte| *byte == 0) {
                        Some(end) if end + 1 == answer.len() => {
                            answer.pop();
                            return Ok(());
                        }
                        // Only one question was asked.
                        Some(_) => return Err(LinkError::Garbage),
                        None if answer.len() >= MAX_ANSWER => return Err(LinkError::Garbage),
                        None => {}
                    }
                }
                Err(Errno::AGAIN) => {
                    self.wait(PollFlags::IN, until)?;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }

    /// Reads an answer of another form into `answer`, until `is_enough` of it is there.
    pub(crate) fn receive_until(
        &self,
        answer: &mut Vec<u8>,
        is_enough: impl Fn(&[u8]) -> bool,
        until: Until<'_>,
    ) -> Result<(), LinkError> {
        answer.clear();
        self.receive_more_until(answer, is_enough, until)
    }

    /// The same behind what is there already.
    pub(crate) fn receive_more_until(
        &self,
        answer: &mut Vec<u8>,
        is_enough: impl Fn(&[u8]) -> bool,
        until: Until<'_>,
    ) -> Result<(), LinkError> {
        loop {
            self.receive_some(answer, until)?;
            if is_enough(answer) {
                return Ok(());
            }
            if answer.len() >= MAX_HEADS {
                return Err(LinkError::Garbage);
            }
        }
    }

    /// Whether the other end has closed it, or said something nobody asked for.
    pub(crate) fn is_over(&self) -> bool {
        let mut files = [PollFd::new(&self.socket, PollFlags::IN)];
        !matches!(poll(&mut files, Some(&Timespec::default())), Ok(0))
    }

    /// Waits until one of `flags` is so, or the connection is over.
    fn wait(&self, flags: PollFlags, until: Until<'_>) -> Result<PollFlags, LinkError> {
        loop {
            let left = timespec(until.left()?);
            let mut files = [
                PollFd::new(&self.socket, flags),
                PollFd::new(&until.stop.reader, PollFlags::IN),
            ];
            match poll(&mut files, Some(&left)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
            let [ours, stop] = files;
            if !stop.revents().is_empty() {
                return Err(LinkError::Stopped);
            }
            if !ours.revents().is_empty() {
                return Ok(ours.revents());
            }
        }
    }
}

/// A break, which the end of the scanner cuts short.
fn rest(length: Duration, stop: &Stop) -> Result<(), LinkError> {
    let mut files = [PollFd::new(&stop.reader, PollFlags::IN)];
    match poll(&mut files, Some(&timespec(length))) {
        Ok(0) | Err(Errno::INTR) => Ok(()),
        Ok(_) => Err(LinkError::Stopped),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

fn timespec(length: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(length.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: length.subsec_nanos().into(),
    }
}

/// Reads all of `block` from `offset` of a file.
pub(crate) fn read_block(file: &File, block: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, block, offset)
}
