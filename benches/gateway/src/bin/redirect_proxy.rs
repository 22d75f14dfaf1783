//! A proxy behind a port redirection, with the gateway's functions: the other way to be in the middle
//! (paper sec. 5.5, Figs. 11 and 12).
//!
//! `redirect_proxy PORT [--file-names PATTERN,...] [--keywords FILE] [--record DIRECTORY]
//! [--scan SOCKET WINDOW TAIL]`: takes connections that netfilter's REDIRECT sent to the port, connects to
//! where each was going (`SO_ORIGINAL_DST`) and copies both directions, a thread for each. With a function,
//! what is copied is parsed before it is sent on, by the gateway's own inspector of HTTP, so that the two
//! differ in how they come to the bytes and in nothing else. WINDOW and TAIL are bytes. What must not pass
//! ends the connection. Without a function it only copies.
#![forbid(unsafe_code)]

use anyhow::{Context as _, Result, bail};
use linkweir_engine::effect::{ScanChunk, ScanOutcome, Ticket};
use linkweir_gateway::inspect::{ChatMessage, FileInfo, Found, Inspector, Invitation, Side};
use linkweir_gateway::policy::{KeywordState, Keywords, NamePattern, NamePatterns};
use linkweir_proto::application::Application;
use linkweir_scan::{Address, ScanClient, Scanner, ScannerOptions};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::OriginalDst;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::{mem, thread};

/// Bytes copied at a time.
const BLOCK: usize = 64 << 10;
/// Recorded files that are kept; the oldest make room.
const KEPT: u64 = 100;

fn main() -> Result<()> {
    let (port, functions) = arguments()?;
    let functions = Arc::new(functions);
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
    for client in listener.incoming() {
        let (client, functions) = (client?, Arc::clone(&functions));
        // A connection that fails is the client's to notice.
        thread::spawn(move || serve(&client, &functions));
    }
    Ok(())
}

/// What it does beside copying.
#[derive(Debug, Default)]
struct Functions {
    file_names: NamePatterns,
    keywords: Option<Keywords>,
    record: Option<PathBuf>,
    scan: Option<Scan>,
    recorded: AtomicU64,
}

#[derive(Debug)]
struct Scan {
    scanner: Scanner,
    window: usize,
    tail: usize,
}

impl Functions {
    const fn copies_only(&self) -> bool {
        self.file_names.0.is_empty()
            && self.keywords.is_none()
            && self.record.is_none()
            && self.scan.is_none()
    }
}

fn arguments() -> Result<(u16, Functions)> {
    let mut words = std::env::args().skip(1);
    let port = words.next().context("usage: redirect_proxy PORT ...")?;
    let mut functions = Functions::default();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word}: no value"));
        match word.as_str() {
            "--file-names" => {
                let patterns = value()?;
                functions.file_names =
                    NamePatterns(patterns.split(',').map(NamePattern::new).collect());
            }
            "--keywords" => {
                let list = fs::read_to_string(value()?)?;
                functions.keywords =
                    Some(Keywords::new(list.lines().map(str::to_owned).collect())?);
            }
            "--record" => {
                let directory = PathBuf::from(value()?);
                fs::create_dir_all(&directory)?;
                functions.record = Some(directory);
            }
            "--scan" => {
                let options = ScannerOptions::new(Address::Unix(value()?.into()));
                functions.scan = Some(Scan {
                    scanner: Scanner::start(options)?,
                    window: value()?.parse()?,
                    tail: value()?.parse()?,
                });
            }
            other => bail!("{other}: not an option"),
        }
    }
    Ok((port.parse()?, functions))
}

fn serve(client: &TcpStream, functions: &Arc<Functions>) -> io::Result<()> {
    let wanted = getsockopt(client, OriginalDst)?;
    let address = Ipv4Addr::from(u32::from_be(wanted.sin_addr.s_addr));
    let server = TcpStream::connect(SocketAddrV4::new(address, u16::from_be(wanted.sin_port)))?;
    for side in [client, &server] {
        side.set_nodelay(true)?;
    }
    let examined = Arc::new(Mutex::new(Examined::new(functions)));
    let (server_again, client_again) = (server.try_clone()?, client.try_clone()?);
    let shared = Arc::clone(&examined);
    let other = thread::spawn(move || copy(&server_again, &client_again, Side::Server, &shared));
    // Both directions end before the connection does; what went wrong in one the other sees as its end.
    let forth = copy(client, &server, Side::Client, &examined);
    other.join().ok();
    forth
}

fn copy(
    mut from: &TcpStream,
    mut to: &TcpStream,
    sender: Side,
    examined: &Mutex<Examined>,
) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    let copied = loop {
        match from.read(&mut block) {
            Ok(0) => break Ok(()),
            Ok(length) => {
                let bytes = block.get(..length).unwrap_or_default();
                let passes = examined
                    .lock()
                    .is_ok_and(|mut examined| examined.passes(sender, bytes));
                if !passes {
                    to.shutdown(Shutdown::Both).ok();
                    break Err(io::ErrorKind::PermissionDenied.into());
                }
                if let Err(error) = to.write_all(bytes) {
                    break Err(error);
                }
            }
            Err(error) => break Err(error),
        }
    };
    // It may be closed already.
    to.shutdown(Shutdown::Write).ok();
    from.shutdown(Shutdown::Read).ok();
    copied
}

/// A connection that is parsed while it is copied.
struct Examined {
    /// None: it is only copied.
    inspector: Option<Inspector>,
    findings: Findings,
}

/// What is found in it.
struct Findings {
    functions: Arc<Functions>,
    words: [Option<KeywordState>; 2],
    files: [Option<Passing>; 2],
    /// The scanner's client and its calls.
    scans: Option<(ScanClient, mpsc::Receiver<()>)>,
    tickets: u64,
    passes: bool,
}

/// A file in transfer.
#[derive(Default)]
struct Passing {
    record: Option<File>,
    window: Vec<u8>,
    /// Bytes at the front of the window that were scanned already.
    scanned: usize,
}

impl Examined {
    fn new(functions: &Arc<Functions>) -> Self {
        let scans = functions.scan.as_ref().map(|scan| {
            let (wake, woken) = mpsc::channel();
            // At the end of the connection nobody listens any more.
            let client = scan.scanner.client(move || {
                wake.send(()).ok();
            });
            (client, woken)
        });
        let is_parsed = !functions.copies_only();
        Self {
            inspector: is_parsed.then(|| Inspector::of(Some(Application::Http))),
            findings: Findings {
                functions: Arc::clone(functions),
                words: [None, None],
                files: [None, None],
                scans,
                tickets: 0,
                passes: true,
            },
        }
    }

    /// Whether the next bytes of a side may be sent on.
    fn passes(&mut self, sender: Side, bytes: &[u8]) -> bool {
        if let Some(inspector) = &mut self.inspector {
            inspector.feed(sender, bytes, &mut self.findings);
        }
        self.findings.passes
    }
}

const fn of<T>(pair: &mut [T; 2], side: Side) -> &mut T {
    let [client, server] = pair;
    match side {
        Side::Client => client,
        Side::Server => server,
    }
}

impl Findings {
    fn look_for_words(&mut self, sender: Side, bytes: &[u8]) {
        if let Some(keywords) = &self.functions.keywords {
            let state = of(&mut self.words, sender).get_or_insert_with(|| keywords.start());
            self.passes &= keywords.find(state, bytes).is_none();
        }
    }

    fn look_at_name(&mut self, file: &FileInfo<'_>) {
        self.passes &= self.functions.file_names.find(file.name).is_none();
    }

    /// Scans a window, and waits for what is said of it.
    fn scan(&mut self, bytes: Vec<u8>) {
        let Some((client, woken)) = &self.scans else {
            return;
        };
        self.tickets += 1;
        client.submit(ScanChunk {
            ticket: Ticket(self.tickets),
            bytes,
            is_last: true,
        });
        let mut reports = Vec::new();
        while reports.is_empty() && woken.recv().is_ok() {
            client.take_reports(&mut reports);
        }
        let is_clean = |outcome: &ScanOutcome| matches!(outcome, ScanOutcome::Clean);
        self.passes &= reports.iter().all(|report| is_clean(&report.outcome));
    }
}

impl Found for Findings {
    fn text(&mut self, sender: Side, bytes: &[u8]) {
        self.look_for_words(sender, bytes);
    }

    fn file_named(&mut self, _sender: Side, file: &FileInfo<'_>) {
        self.look_at_name(file);
    }

    fn file_begin(&mut self, sender: Side, file: &FileInfo<'_>) {
        self.look_at_name(file);
        let record = self.functions.record.as_ref().map(|directory| {
            let number = self.functions.recorded.fetch_add(1, Ordering::Relaxed) % KEPT;
            File::create(directory.join(number.to_string()))
        });
        let mut passing = Passing::default();
        match record.transpose() {
            Ok(record) => passing.record = record,
            Err(_) => self.passes = false,
        }
        *of(&mut self.files, sender) = Some(passing);
    }

    fn file_data(&mut self, sender: Side, mut bytes: &[u8]) {
        self.look_for_words(sender, bytes);
        let Some(mut passing) = of(&mut self.files, sender).take() else {
            return;
        };
        if let Some(record) = &mut passing.record {
            self.passes &= record.write_all(bytes).is_ok();
        }
        let scan = self.functions.scan.as_ref();
        if let Some((size, tail)) = scan.map(|scan| (scan.window, scan.tail)) {
            while !bytes.is_empty() {
                let room = size.saturating_sub(passing.window.len() - passing.scanned);
                let (now, later) = bytes.split_at(room.min(bytes.len()));
                passing.window.extend_from_slice(now);
                bytes = later;
                if passing.window.len() - passing.scanned >= size {
                    let kept = passing.window.len().saturating_sub(tail);
                    let next = passing.window.get(kept..).unwrap_or_default().to_vec();
                    passing.scanned = next.len();
                    let window = mem::replace(&mut passing.window, next);
                    self.scan(window);
                }
            }
        }
        *of(&mut self.files, sender) = Some(passing);
    }

    fn file_end(&mut self, sender: Side, _is_complete: bool) {
        let passing = of(&mut self.files, sender).take();
        let Some(passing) = passing else { return };
        if passing.window.len() > passing.scanned {
            self.scan(passing.window);
        }
    }

    fn host(&mut self, _host: &[u8]) {}
    fn message(&mut self, _sender: Side, _message: &ChatMessage<'_>) {}
    fn invitation(&mut self, _sender: Side, _invitation: &Invitation<'_>) {}
    fn invited(&mut self, _cookie: &[u8], _use_it: &mut dyn FnMut(&FileInfo<'_>)) {}
    fn malformed(&mut self, _sender: Side, _why: &'static str) {}
}
