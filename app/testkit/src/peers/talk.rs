//! A connection, and how fast and in which pieces we write to it.
//!
//! Taking connections.

use super::options::{Options, Pace};
use super::{say, strange};
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Longest line or head that is believed.
const LONGEST: usize = 64 * 1024;
/// How long a server may take until it listens.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(3);

/// A connection.
#[derive(Debug)]
pub(super) struct Talk {
    reader: BufReader<TcpStream>,
    pace: Pace,
    sent: u64,
}

impl Talk {
    pub(super) fn new(stream: TcpStream, options: &Options) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(options.timeout()?))?;
        stream.set_write_timeout(Some(options.timeout()?))?;
        Ok(Self {
            reader: BufReader::new(stream),
            pace: options.pace()?,
            sent: 0,
        })
    }

    /// Connects, and says `connected LOCAL to ADDRESS`; waits a while for who does not listen yet.
    #[expect(clippy::disallowed_methods, reason = "another process takes time")]
    pub(super) fn connect(address: SocketAddr, options: &Options) -> io::Result<Self> {
        let begin = Instant::now();
        loop {
            match TcpStream::connect_timeout(&address, options.timeout()?) {
                Ok(stream) => {
                    let talk = Self::new(stream, options)?;
                    say(format_args!("connected {} to {address}", talk.local()?));
                    return Ok(talk);
                }
                Err(error)
                    if error.kind() == ErrorKind::ConnectionRefused
                        && begin.elapsed() < LISTEN_TIMEOUT => {}
                Err(error) => return Err(error),
            }
            pause(Duration::from_millis(20));
        }
    }

    /// Another end of the same connection, for who only writes.
    pub(super) fn writer(&self) -> io::Result<TcpStream> {
        self.reader.get_ref().try_clone()
    }

    pub(super) fn local(&self) -> io::Result<SocketAddr> {
        self.reader.get_ref().local_addr()
    }

    pub(super) fn peer(&self) -> io::Result<SocketAddr> {
        self.reader.get_ref().peer_addr()
    }

    /// Sends, in as many writes as the pace says.
    pub(super) fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let length = self.pace.next(self.sent, bytes.len());
            let (piece, rest) = bytes.split_at_checked(length).unwrap_or((bytes, &[]));
            self.reader.get_ref().write_all(piece)?;
            self.sent += u64::try_from(piece.len()).unwrap_or(0);
            bytes = rest;
            let is_cut = self.pace.cuts.contains(&self.sent);
            if is_cut || self.pace.chunk.is_some() && !bytes.is_empty() {
                pause(self.pace.pause);
            }
        }
        Ok(())
    }

    /// The next line without its end; `None` at the end of the stream.
    pub(super) fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        let limit = u64::try_from(LONGEST).unwrap_or(u64::MAX);
        (&mut self.reader)
            .take(limit)
            .read_until(b'\n', &mut line)?;
        if line.pop_if(|last| *last == b'\n').is_none() {
            return if line.is_empty() {
                Ok(None)
            } else {
                Err(strange("a line does not end"))
            };
        }
        line.pop_if(|last| *last == b'\r');
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
    }

    /// The next line, which must come.
    pub(super) fn must_line(&mut self) -> io::Result<String> {
        let line = self.line()?;
        line.ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }

    /// So many bytes.
    pub(super) fn exact(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// What has come; empty at the end of the stream.
    pub(super) fn some(&mut self) -> io::Result<Vec<u8>> {
        let bytes = self.reader.fill_buf()?.to_vec();
        self.reader.consume(bytes.len());
        Ok(bytes)
    }

    /// So many bytes, to a file as they come.
    pub(super) fn copy(&mut self, length: u64, out: &mut impl Write) -> io::Result<()> {
        let mut left = length;
        while left > 0 {
            let bytes = self.reader.fill_buf()?;
            if bytes.is_empty() {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
            let taken = bytes.get(..most).unwrap_or(bytes);
            out.write_all(taken)?;
            let taken = taken.len();
            self.reader.consume(taken);
            left -= u64::try_from(taken).unwrap_or(left);
        }
        Ok(())
    }

    /// We have sent all; waits until the other side has too, so that nothing of it is lost by a reset.
    pub(super) fn close(mut self) -> io::Result<()> {
        self.reader.get_ref().shutdown(Shutdown::Write)?;
        while !self.some()?.is_empty() {}
        Ok(())
    }
}

/// Lets others go on.
#[expect(
    clippy::disallowed_methods,
    reason = "a slow sender is what is asked for"
)]
pub(super) fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Takes connections for ever, each on a thread of its own.
pub(super) fn each(
    options: &Options,
    serve: impl Fn(Talk) -> io::Result<()> + Send + Sync,
) -> io::Result<()> {
    let listener = TcpListener::bind(options.address("listen")?)?;
    say(format_args!("listening {}", listener.local_addr()?));
    std::thread::scope(|scope| {
        for stream in listener.incoming() {
            let talk = Talk::new(stream?, options)?;
            let serve = &serve;
            scope.spawn(move || {
                if let Err(error) = serve(talk) {
                    say(format_args!("connection failed: {error}"));
                }
            });
        }
        Ok(())
    })
}

/// Takes one connection.
pub(super) fn one(options: &Options) -> io::Result<Talk> {
    let listener = TcpListener::bind(options.address("listen")?)?;
    say(format_args!("listening {}", listener.local_addr()?));
    Talk::new(listener.accept()?.0, options)
}
