//! One connection to a scanner: clamd's `INSTREAM`, many times within an `IDSESSION`, or ICAP.

use std::io::{self, IoSlice};
use std::net::SocketAddr;

use thiserror::Error;

use crate::icap::{self, Offer, Service};
use crate::link::{Link, LinkError, Sent, Until, read_block};
use crate::options::Address;
use crate::queue::Body;
use crate::reply::{Reply, parse, printable};

/// Bytes read from a spool file at a time.
const BLOCK: usize = 64 << 10;
/// Bytes of memory sent as one chunk, at most.
const LARGE_BLOCK: usize = 1 << 20;
/// The chunk without bytes that ends a stream.
const END_OF_STREAM: [u8; 4] = [0; 4];

/// Why a scan has no answer.
#[derive(Debug, Error)]
pub(crate) enum Fault {
    #[error("{0}")]
    Link(#[from] LinkError),
    #[error("the spool file cannot be read: {0}")]
    Spool(io::Error),
    #[error("nobody waits for it any more")]
    Abandoned,
}

/// A connection, and how often it was used.
#[derive(Debug)]
pub(crate) struct Session {
    link: Link,
    /// Whether there is a session: numbers before the answers, and more than one command.
    is_session: bool,
    commands: u32,
    answer: Vec<u8>,
    /// Where it is not clamd.
    icap: Option<(Service, Offer)>,
    /// Whether the other end would take one more scan.
    is_usable: bool,
}

/// Connects to the first of the addresses that takes it.
pub(crate) fn connect(
    address: &Address,
    resolved: &[SocketAddr],
    until: Until<'_>,
) -> Result<Link, LinkError> {
    match address {
        Address::Unix(path) => Link::unix(path, until),
        Address::Tcp { .. } => {
            let mut last = LinkError::Io(io::Error::other("its name is not known yet"));
            for address in resolved {
                match Link::tcp(*address, until) {
                    Ok(link) => return Ok(link),
                    Err(error) => last = error,
                }
            }
            Err(last)
        }
    }
}

impl Session {
    /// Begins on a connection; `is_session` where it is for more than one scan.
    pub(crate) const fn new(link: Link, is_session: bool) -> Self {
        Self {
            link,
            is_session,
            commands: 0,
            answer: Vec::new(),
            icap: None,
            is_usable: true,
        }
    }

    /// Begins on a connection to an ICAP service.
    pub(crate) const fn icap(link: Link, service: Service, offer: Offer) -> Self {
        Self {
            link,
            is_session: false,
            commands: 0,
            answer: Vec::new(),
            icap: Some((service, offer)),
            is_usable: true,
        }
    }

    /// Whether it can be used for more than the scans so far.
    pub(crate) const fn is_usable(&self) -> bool {
        self.is_usable
    }

    /// Scans done on it.
    pub(crate) const fn commands(&self) -> u32 {
        self.commands
    }

    /// Whether clamd has ended it meanwhile, as it does when nothing comes for long.
    pub(crate) fn is_over(&self) -> bool {
        self.link.is_over()
    }

    /// Ends it politely, without waiting.
    pub(crate) fn end(self) {
        if self.is_session {
            self.link.send_at_once(b"zEND\0");
        }
    }

    /// Has `body` scanned. After an error, or an answer that is one, the session is of no use.
    pub(crate) fn scan(&mut self, body: &Body, until: Until<'_>) -> Result<Reply, Fault> {
        if let Some((service, offer)) = &self.icap {
            self.commands += 1;
            let (reply, is_usable) = icap::scan(&self.link, (service, *offer), body, until)?;
            self.is_usable = is_usable;
            return Ok(reply);
        }
        // What goes before the next bytes: the command, the length.
        let mut head = Vec::with_capacity(32);
        if self.is_session && self.commands == 0 {
            head.extend_from_slice(b"zIDSESSION\0");
        }
        head.extend_from_slice(b"zINSTREAM\0");
        self.commands += 1;
        self.send_body(&mut head, body, until)?;
        self.link.receive(&mut self.answer, until)?;
        let id = self.is_session.then_some(self.commands);
        parse(&self.answer, id).ok_or(Fault::Link(LinkError::Garbage))
    }

    /// Sends the stream; stops early where clamd takes no more, for then it has an answer.
    fn send_body(&self, head: &mut Vec<u8>, body: &Body, until: Until<'_>) -> Result<(), Fault> {
        if let Some(spooled) = &body.spooled {
            let mut buffer = vec![0; BLOCK];
            let mut offset = 0;
            while offset < spooled.length {
                let left = usize::try_from(spooled.length - offset).unwrap_or(BLOCK);
                let block = buffer.get_mut(..left.min(BLOCK)).unwrap_or_default();
                read_block(&spooled.file, block, offset).map_err(Fault::Spool)?;
                offset += block.len() as u64;
                if self.send_block(head, block, &[], body, until)? == Sent::Refused {
                    return Ok(());
                }
            }
        }
        let mut blocks = body
            .parts
            .iter()
            .flat_map(|part| part.chunks(LARGE_BLOCK))
            .peekable();
        if blocks.peek().is_none() {
            head.extend_from_slice(&END_OF_STREAM);
            self.link.send(&mut [IoSlice::new(head)], until)?;
        }
        while let Some(block) = blocks.next() {
            // A window goes out in one piece, and wakes clamd once.
            let tail: &[u8] = if blocks.peek().is_none() {
                &END_OF_STREAM
            } else {
                &[]
            };
            if self.send_block(head, block, tail, body, until)? == Sent::Refused {
                return Ok(());
            }
        }
        Ok(())
    }

    fn send_block(
        &self,
        head: &mut Vec<u8>,
        block: &[u8],
        tail: &[u8],
        body: &Body,
        until: Until<'_>,
    ) -> Result<Sent, Fault> {
        if body.is_abandoned() {
            return Err(Fault::Abandoned);
        }
        let length = u32::try_from(block.len()).unwrap_or(u32::MAX);
        head.extend_from_slice(&length.to_be_bytes());
        let mut parts = [IoSlice::new(head), IoSlice::new(block), IoSlice::new(tail)];
        let sent = self.link.send(&mut parts, until)?;
        head.clear();
        Ok(sent)
    }
}

/// Asks for program and database on a connection of its own.
pub(crate) fn version(link: &Link, until: Until<'_>) -> Result<String, LinkError> {
    link.send(&mut [IoSlice::new(b"zVERSION\0")], until)?;
    let mut answer = Vec::new();
    link.receive(&mut answer, until)?;
    match std::str::from_utf8(&answer) {
        Ok(text) if !text.is_empty() && !text.starts_with("UNKNOWN") => Ok(printable(text)),
        _ => Err(LinkError::Garbage),
    }
}
