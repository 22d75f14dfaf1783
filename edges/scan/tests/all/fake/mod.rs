//! A clamd that does what a test says.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One connection, as the fake sees it. A `VERSION` is answered by itself.
pub(crate) struct Dialogue {
    stream: UnixStream,
    is_session: bool,
    commands: u32,
}

impl Dialogue {
    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.stream.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn command(&mut self) -> io::Result<String> {
        let mut text = Vec::new();
        loop {
            match self.byte()? {
                0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
                byte => text.push(byte),
            }
        }
    }

    /// Waits for `INSTREAM`, without reading the stream.
    pub(crate) fn wait(&mut self) -> io::Result<()> {
        loop {
            match self.command()?.as_str() {
                "zIDSESSION" => self.is_session = true,
                "zVERSION" => self.raw(b"ClamAV fake/1\0"),
                "zEND" => return Err(io::ErrorKind::UnexpectedEof.into()),
                "zINSTREAM" => {
                    self.commands += 1;
                    return Ok(());
                }
                other => panic!("unexpected command {other:?}"),
            }
        }
    }

    /// Waits for a stream and reads it.
    pub(crate) fn stream(&mut self) -> io::Result<Vec<u8>> {
        self.wait()?;
        let mut bytes = Vec::new();
        loop {
            let mut length = [0; 4];
            self.stream.read_exact(&mut length)?;
            let length = u32::from_be_bytes(length) as usize;
            if length == 0 {
                return Ok(bytes);
            }
            let begin = bytes.len();
            bytes.resize(begin + length, 0);
            self.stream.read_exact(&mut bytes[begin..])?;
        }
    }

    /// Answers as clamd does.
    pub(crate) fn answer(&mut self, text: &str) {
        let number = self.commands;
        let text = if self.is_session {
            format!("{number}: {text}\0")
        } else {
            format!("{text}\0")
        };
        self.raw(text.as_bytes());
    }

    /// Sends bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        // Whether the other end still listens is its own affair.
        self.stream.write_all(bytes).ok();
    }

    /// Waits until the other end is gone.
    pub(crate) fn until_closed(&mut self) {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).ok();
    }
}

/// Listens at a path; each connection is handled on a thread by `serve`, with its number from 0. Only
/// connections with a scan count.
pub(crate) struct Fake {
    pub(crate) path: PathBuf,
    directory: Option<tempfile::TempDir>,
    pub(crate) scans: Arc<AtomicUsize>,
}

impl Fake {
    pub(crate) fn start(serve: impl Fn(usize, &mut Dialogue) + Send + Sync + 'static) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut fake = Self::at(&directory.path().join("clamd.sock"), serve);
        fake.directory = Some(directory);
        fake
    }

    pub(crate) fn at(
        path: &Path,
        serve: impl Fn(usize, &mut Dialogue) + Send + Sync + 'static,
    ) -> Self {
        let listener = UnixListener::bind(path).expect("a socket");
        let serve = Arc::new(serve);
        let scans = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&scans);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (serve, scans) = (Arc::clone(&serve), Arc::clone(&counted));
                let mut first = [0; 9];
                let mut stream = stream.expect("a connection");
                std::thread::spawn(move || {
                    // Questions for the version come and go by themselves.
                    if stream.read_exact(&mut first).is_err() {
                        return;
                    }
                    if &first == b"zVERSION\0" {
                        stream.write_all(b"ClamAV fake/1\0").ok();
                        return;
                    }
                    let number = scans.fetch_add(1, Ordering::Relaxed);
                    let is_session = &first == b"zIDSESSIO";
                    let mut rest = [0; 2];
                    // The rest of `zIDSESSION\0`, or of `zINSTREAM\0`.
                    let length = if is_session { 2 } else { 1 };
                    stream.read_exact(&mut rest[..length]).ok();
                    assert!(is_session, "tests use sessions");
                    let mut dialogue = Dialogue {
                        stream,
                        is_session,
                        commands: 0,
                    };
                    serve(number, &mut dialogue);
                });
            }
        });
        Self {
            path: path.to_owned(),
            directory: None,
            scans,
        }
    }
}
