//! Messages between generators, and the lines that carry them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use linkweir_load::measure::{Figures, Progress};
use serde::{Deserialize, Serialize};

use crate::clock::now;

/// Version of the protocol. Another one is refused: figures of versions that count differently must not
/// be merged.
pub(super) const PROTOCOL: u32 = 2;

/// What both sides must have alike, by name, such as seed and arrivals.
pub(in crate::load) type Terms = BTreeMap<String, String>;

/// A line. `>` goes to the one that reports, `<` comes from it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Message {
    /// > The first line.
    Hello(Hello),
    /// < Welcome: the share of this generator, and how often its progress is wanted (0: never).
    Welcome {
        index: u32,
        of: u32,
        progress_ns: u64,
    },
    /// < Go away, and why.
    Refused { reason: String },
    /// > What time is it?
    Ping { number: u32 },
    /// < Nanoseconds since the epoch by the clock of the one that reports.
    Pong { number: u32, at_ns: u64 },
    /// > Everything is set up; how well the clocks are known to agree.
    Ready { error_ns: u64 },
    /// < Start then, by the clock of the one that reports.
    Start { at_ns: u64 },
    /// <> Every second, so that silence means something.
    Alive,
    /// < End early, with results.
    Stop,
    /// > What was counted so far, and the times since the last.
    Progress(Box<Progress>),
    /// < What has been measured so far?
    Report,
    /// > That.
    Interim(Box<Figures>),
    /// > What was measured.
    Result(Box<Figures>),
    /// < The result has arrived.
    Taken,
}

/// The first line. What a later version adds to it is passed over, so that its version can be read.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Hello {
    pub(super) protocol: u32,
    pub(super) role: String,
    pub(super) terms: Terms,
}

impl Hello {
    /// Why the one that says this cannot take part, in words for both sides. `is_part` is whether `terms`
    /// are only some of those that there must be.
    pub(super) fn fault(&self, role: &str, terms: &Terms, is_part: bool) -> Option<String> {
        if self.protocol != PROTOCOL {
            return Some(format!(
                "its control protocol is version {}, ours is {PROTOCOL}: use the same version of linkweir",
                self.protocol
            ));
        }
        if self.role != role {
            return Some(format!("the peer is `{}`, expected `{role}`", self.role));
        }
        let of = |terms: &Terms, name: &String| terms.get(name).cloned().unwrap_or_default();
        let theirs = self.terms.keys().filter(|_| !is_part);
        let names: BTreeSet<&String> = terms.keys().chain(theirs).collect();
        let differences: Vec<String> = names
            .into_iter()
            .map(|name| (name, of(terms, name), of(&self.terms, name)))
            .filter(|(_, ours, theirs)| ours != theirs)
            .map(|(name, ours, theirs)| format!("{name} is `{ours}` here and `{theirs}` there"))
            .collect();
        (!differences.is_empty()).then(|| differences.join("; "))
    }
}

/// Longest line before the start: terms, and no more.
pub(super) const SHORT_LINE: usize = 64 << 10;
/// Longest line of results: histograms and series of a day are a tenth of it.
pub(super) const LONG_LINE: usize = 64 << 20;
/// How long a line may take to be taken by the other side.
const SENDING: Duration = Duration::from_secs(10);
/// The socket is read for so long at a time.
const GLANCE: Duration = Duration::from_millis(100);

/// A connection to the other side.
#[derive(Debug)]
pub(super) struct Lines {
    stream: TcpStream,
    peer: SocketAddr,
    buffer: Vec<u8>,
    /// So many bytes of the buffer hold no line feed.
    searched: usize,
    limit: usize,
}

impl Lines {
    pub(super) fn new(stream: TcpStream, peer: SocketAddr) -> anyhow::Result<Self> {
        // An accepted socket may have inherited it.
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(GLANCE))?;
        stream.set_write_timeout(Some(SENDING))?;
        Ok(Self {
            stream,
            peer,
            buffer: Vec::new(),
            searched: 0,
            limit: SHORT_LINE,
        })
    }

    /// Lines may be longer from now on.
    pub(super) const fn expect_results(&mut self) {
        self.limit = LONG_LINE;
    }

    pub(super) const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Sends a line.
    pub(super) fn send(&mut self, message: &Message) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.stream
            .write_all(&line)
            .with_context(|| format!("{}: it takes nothing any more", self.peer))
    }

    /// The next line, if one comes at once; `None` after a tenth of a second of silence.
    pub(super) fn glance(&mut self) -> anyhow::Result<Option<Message>> {
        let mut chunk = [0_u8; 16 << 10];
        loop {
            if let Some(line) = self.whole_line()? {
                return parse(&line, self.peer).map(Some);
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => bail!("{}: it closed the connection", self.peer),
                Ok(len) => self
                    .buffer
                    .extend_from_slice(chunk.get(..len).unwrap_or_default()),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => return Ok(None),
                    ErrorKind::Interrupted => {}
                    _ => return Err(anyhow!(error).context(format!("{}: it is gone", self.peer))),
                },
            }
        }
    }

    /// The next line before `until`.
    pub(super) fn receive(
        &mut self,
        until: Instant,
        stop: &dyn Fn() -> bool,
    ) -> anyhow::Result<Message> {
        loop {
            if let Some(message) = self.glance()? {
                return Ok(message);
            }
            if stop() {
                bail!("stopped while waiting for {}", self.peer);
            }
            if now() >= until {
                bail!("{}: it is silent", self.peer);
            }
        }
    }

    fn whole_line(&mut self) -> anyhow::Result<Option<Vec<u8>>> {
        let fresh = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(at) = fresh.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            if self.searched > self.limit {
                bail!("{}: it sends a line without end", self.peer);
            }
            return Ok(None);
        };
        let rest = self.buffer.split_off(self.searched + at + 1);
        self.searched = 0;
        Ok(Some(std::mem::replace(&mut self.buffer, rest)))
    }
}

fn parse(line: &[u8], peer: SocketAddr) -> anyhow::Result<Message> {
    serde_json::from_slice(line)
        .map_err(|error| anyhow!("{peer}: it does not speak as linkweir does: {error}"))
}
