//! Lines over TCP, bounded in length and in time.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};

use super::message::Message;
use crate::clock::now;

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
