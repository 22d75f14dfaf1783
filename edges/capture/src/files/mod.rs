//! [`CaptureFiles`]: a list of capture files as one trace.

mod ahead;

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use linkweir_engine::{
    Batch, Detach, Drops, Fault, FaultKind, FrameRef, Progress, Source, SourceError, SourceEvent,
};

use linkweir_wire::LinkType;

use crate::decompress::{Bytes, Compression};
use crate::filter::Filter;
use crate::format::{Detection, Format, Need, OnSecrets, Output, Unit, Unreadable, cut};
use crate::inputs::{self, Input, Item, Others};
use crate::pipe::{Manners, Pipe};
use crate::window::Window;

pub use ahead::FilePiece;
use ahead::Positioned;

/// How captures are read.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// A libpcap filter expression; frames it does not match are left out.
    pub filter: Option<String>,
    /// Bytes per read; also the most that one batch spans. 512 KiB: measured 4 % faster than half of
    /// it and twice of it, on a level 2 cache of 1 MiB.
    pub chunk_bytes: usize,
    /// Set from outside to end the trace: noticed between reads, and within a tenth of a second
    /// where an input is a pipe that has nothing.
    pub stop: Arc<AtomicBool>,
    /// Longest frame that is held. libpcap writes none above 262,144 bytes.
    pub max_frame_bytes: u32,
    /// What becomes of the secrets in captures.
    pub on_secrets: OnSecrets,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            filter: None,
            chunk_bytes: 512 << 10,
            stop: Arc::default(),
            max_frame_bytes: 256 << 10,
            on_secrets: OnSecrets::default(),
        }
    }
}

/// Room for the headers around a frame.
const HEADER_ROOM: usize = 256;

/// Capture files, directories and standard input as one trace, in the order given.
///
/// Frames keep the order of the files. A file that is damaged gives what it has, then one
/// [`SourceEvent::Fault`]; the next file follows. Directories are read with those in them, each once
/// and in the order of names; what in them is no capture is counted, and said in one fault at the end.
///
/// Memory: one buffer of `chunk_bytes` and one maximal frame, whatever the files say, plus what
/// the decompressor of the current file needs, and such a buffer for each who reads ahead.
#[derive(Debug)]
pub struct CaptureFiles {
    waiting: VecDeque<Item>,
    current: Option<Open>,
    window: Window,
    frames: Vec<FrameRef>,
    faults: VecDeque<Fault>,
    filter: Option<Filter>,
    /// What directories hold besides captures.
    others: Others,
    /// Names of the directories among the inputs, until the end of the trace.
    directories: Vec<String>,
    /// Whether anything was a capture.
    has_capture: bool,
    /// Whether any frame has been given out.
    has_delivered: bool,
    manners: Manners,
    max_frame: u32,
    on_secrets: OnSecrets,
    unusable: u64,
    /// What came of a piece that is in the window.
    supplied: Option<io::Result<usize>>,
    /// Whether the buffer of the window is that of whoever supplied last.
    is_lent: bool,
    /// Of the claims that are good: another since they could not all be kept.
    generation: u64,
    /// Bytes of inputs that are done with.
    finished_bytes: u64,
    total_bytes: Option<u64>,
}

/// The file being read.
struct Open {
    item: Item,
    stream: Bytes,
    /// Compressed bytes read.
    raw_bytes: Arc<AtomicU64>,
    /// A regular file, which others may read ahead once it is known not to be compressed.
    file: Option<Arc<File>>,
    /// Offset up to which it is claimed, by how many who have not supplied it.
    claimed: (u64, usize),
    /// Whether the first bytes have told how it is compressed, if at all.
    is_sniffed: bool,
    /// Nothing until the first bytes told.
    format: Option<Format>,
    /// The record or block that is not done with, and the offset of its first byte.
    unit: Unit,
    unit_offset: u64,
    /// Link types for which the filter has no meaning.
    refused: HashSet<LinkType>,
}

/// What a step came to.
enum Step {
    /// Nothing to give out yet.
    Again,
    /// Nothing has come for a while.
    Idle,
    /// There are frames.
    Batch,
    /// The file is done with; there may be frames too.
    Close,
}

impl CaptureFiles {
    /// Takes a list of inputs as one trace. Nothing is read yet.
    ///
    /// # Errors
    /// Where an input does not exist, a directory is empty, or the filter is no valid expression.
    pub fn open(inputs: &[Input], options: ReadOptions) -> Result<Self, SourceError> {
        let listing = inputs::expand(inputs)?;
        let chunk_bytes = options.chunk_bytes.clamp(1, 1 << 28);
        let max_frame = options.max_frame_bytes.clamp(1, 1 << 28);
        let filter = options
            .filter
            .map(|expression| Filter::new(expression, max_frame))
            .transpose()
            .map_err(|error| SourceError {
                input: "-f".to_owned(),
                message: error.to_string(),
            })?;
        Ok(Self {
            total_bytes: listing.items.iter().map(|item| item.size).sum(),
            waiting: listing.items.into(),
            current: None,
            window: Window::new(chunk_bytes, max_frame as usize + HEADER_ROOM),
            frames: Vec::new(),
            faults: listing.faults.into(),
            others: listing.others,
            directories: listing.directories,
            has_capture: false,
            filter,
            has_delivered: false,
            manners: Manners {
                stop: options.stop,
                may_idle: Arc::default(),
            },
            max_frame,
            on_secrets: options.on_secrets,
            unusable: 0,
            supplied: None,
            is_lent: false,
            generation: 0,
            finished_bytes: 0,
        })
    }

    /// Takes one stream that is open already as the trace. `name` stands in messages.
    ///
    /// # Errors
    /// Where the filter is no valid expression.
    pub fn from_reader(
        name: &str,
        reader: impl Read + Send + 'static,
        options: ReadOptions,
    ) -> Result<Self, SourceError> {
        let mut files = Self::open(&[], options)?;
        let item = Item {
            input: Input::Path(name.into()),
            is_listed: false,
            size: None,
        };
        files.total_bytes = None;
        files.current = Some(Open::new(item, Arc::default(), Box::new(reader)));
        Ok(files)
    }

    /// Opens the next input; false where there is none.
    fn open_next(&mut self) -> bool {
        let Some(item) = self.waiting.pop_front() else {
            return false;
        };
        self.window.reset();
        self.manners.may_idle.store(true, Ordering::Relaxed);
        let (raw_bytes, mut file) = (Arc::default(), None);
        let opened: io::Result<Bytes> = match &item.input {
            Input::Stdin => Pipe::stdin(self.manners.clone()).map(|pipe| Box::new(pipe) as _),
            // A regular file has its bytes at once.
            Input::Path(path) if item.size.is_some() => File::open(path).map(|opened| {
                let inner = Positioned {
                    file: Arc::clone(file.insert(Arc::new(opened))),
                    position: Arc::clone(&raw_bytes),
                };
                Box::new(inner) as _
            }),
            Input::Path(path) => {
                Pipe::open(path, self.manners.clone()).map(|pipe| Box::new(pipe) as _)
            }
        };
        match opened {
            Ok(inner) => {
                self.current = Some(Open {
                    file,
                    ..Open::new(item, raw_bytes, inner)
                });
            }
            Err(error) => {
                self.faults.push_back(Fault {
                    input: item.name(),
                    offset: None,
                    kind: item.unusable(),
                    message: inputs::reason(&error),
                });
                self.finished_bytes += item.size.unwrap_or(0);
            }
        }
        true
    }

    /// Reads once and indexes what came.
    fn step(&mut self) -> Result<Step, SourceError> {
        let Some(open) = &mut self.current else {
            return Ok(Step::Close);
        };
        let read = match self.supplied.take() {
            Some(read) => read,
            None => {
                // A record longer than a piece: what is claimed is read here.
                self.generation += u64::from(open.claimed.1 > 0);
                open.claimed.1 = 0;
                self.window.fill(&mut open.stream)
            }
        };
        let is_ended = match read {
            // Cut off by the user, not damaged.
            Ok(0) if self.manners.stop.load(Ordering::Relaxed) => return Ok(Step::Close),
            Ok(got) => got == 0,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Step::Idle),
            Err(error) => {
                let fault = open.fault(&self.window, inputs::reason(&error));
                self.faults.push_back(fault);
                return Ok(Step::Close);
            }
        };
        if !open.is_sniffed {
            if self.window.unread().len() < Compression::MAGIC_BYTES && !is_ended {
                return Ok(Step::Again);
            }
            open.is_sniffed = true;
            if let Some(compression) = Compression::detect(self.window.unread()) {
                self.manners.may_idle.store(false, Ordering::Relaxed);
                if let Err(error) = open.decompress(compression, self.window.unread().to_vec()) {
                    let fault = open.fault(&self.window, inputs::reason(&error));
                    self.faults.push_back(fault);
                    return Ok(Step::Close);
                }
                self.window.reset();
                return Ok(Step::Again);
            }
        }
        let damage = open
            .detect(&mut self.window, is_ended)
            .and_then(|()| {
                let indexed = open.index(
                    &mut self.window,
                    &mut self.frames,
                    self.max_frame,
                    &mut self.unusable,
                    &self.on_secrets,
                );
                indexed.map_err(Unreadable::Capture)
            })
            .and_then(|()| {
                if is_ended {
                    open.check_end(&self.window).map_err(Unreadable::Capture)
                } else {
                    Ok(())
                }
            });
        let is_done = is_ended || damage.is_err();
        match damage {
            Ok(()) => {}
            Err(Unreadable::Foreign(_)) if open.item.is_listed => {
                self.others.count(open.item.name());
            }
            Err(Unreadable::Foreign(message) | Unreadable::Capture(message)) => {
                self.faults.push_back(open.fault(&self.window, message));
            }
        }
        if let Some(filter) = &mut self.filter
            && let Some(refused) = filter.apply(
                self.window.buffer(),
                &mut self.frames,
                &mut open.refused,
                &mut self.unusable,
            )
        {
            let input = open.item.name();
            if !self.has_delivered && self.frames.is_empty() {
                return Err(SourceError {
                    input,
                    message: refused.message,
                });
            }
            self.faults.push_back(Fault {
                input,
                offset: None,
                kind: FaultKind::Damaged,
                message: refused.message,
            });
        }
        Ok(match (is_done, self.frames.is_empty()) {
            (true, _) => Step::Close,
            (false, true) => Step::Again,
            (false, false) => Step::Batch,
        })
    }

    /// What is to be said of directories when everything was read, once.
    fn last_fault(&mut self) -> Option<Fault> {
        // Who ends it early has not learnt what there is.
        let is_read = self.has_capture || self.manners.stop.load(Ordering::Relaxed);
        let directories = std::mem::take(&mut self.directories);
        let others = self.others.take_fault(is_read);
        others.or_else(|| inputs::nothing_in(&directories).filter(|_| !is_read))
    }

    fn close(&mut self) {
        self.generation += 1;
        if let Some(open) = self.current.take() {
            let read = open.raw_bytes.load(Ordering::Relaxed);
            self.finished_bytes += open.item.size.unwrap_or(read);
            self.has_capture |= open.format.is_some();
        }
    }
}

impl Open {
    /// A stream, of which `raw_bytes` counts what is read.
    fn new(item: Item, raw_bytes: Arc<AtomicU64>, inner: Bytes) -> Self {
        Self {
            item,
            stream: Box::new(Counted {
                inner,
                count: Arc::clone(&raw_bytes),
            }),
            raw_bytes,
            file: None,
            claimed: (0, 0),
            is_sniffed: false,
            format: None,
            unit: Unit::whole("file header", 0),
            unit_offset: 0,
            refused: HashSet::new(),
        }
    }

    /// Puts a decompressor between the input and its reader.
    fn decompress(&mut self, compression: Compression, seen: Vec<u8>) -> io::Result<()> {
        let raw = std::mem::replace(&mut self.stream, Box::new(io::empty()));
        // A regular file has its bytes at once. Nobody else decodes it.
        let may_wait = self.file.take().is_none();
        self.stream = compression.reader_ahead(seen, raw, may_wait)?;
        Ok(())
    }

    /// The fault of this file that `message` tells.
    fn fault(&self, window: &Window, message: String) -> Fault {
        let (kind, offset) = if self.format.is_some() {
            (FaultKind::Damaged, self.unit_offset)
        } else {
            (self.item.unusable(), window.offset())
        };
        Fault {
            input: self.item.name(),
            offset: Some(offset),
            kind,
            message,
        }
    }

    /// Finds out what format this is, once enough bytes are there.
    fn detect(&mut self, window: &mut Window, is_ended: bool) -> Result<(), Unreadable> {
        if self.format.is_some() {
            return Ok(());
        }
        let data = window.unread();
        if is_ended && data.is_empty() {
            return Err(Unreadable::Foreign("the file is empty".to_owned()));
        }
        let is_last = is_ended || data.len() >= window.held_bytes();
        match Format::detect(data, is_last, self.item.input.is_named_erf()) {
            Detection::Undecided(_) if !is_last => Ok(()),
            Detection::Undecided(why) | Detection::Unknown(why) => Err(why),
            Detection::Found(format, header_bytes) => {
                self.format = Some(format);
                window.consume(header_bytes);
                self.unit_offset = window.offset();
                Ok(())
            }
        }
    }

    /// Indexes all that has arrived.
    fn index(
        &mut self,
        window: &mut Window,
        frames: &mut Vec<FrameRef>,
        max_frame: u32,
        unusable: &mut u64,
        secrets: &OnSecrets,
    ) -> Result<(), String> {
        let Some(format) = &mut self.format else {
            return Ok(());
        };
        while window.skipping() == 0 {
            let mut output = Output {
                frames,
                origin: window.origin(),
                max_frame,
                unusable,
                secrets,
            };
            let indexed = format.index(window.unread(), &mut output);
            window.consume(indexed.consumed);
            self.unit = indexed.unit;
            self.unit_offset = window.offset().saturating_sub(indexed.unit.back);
            match indexed.need {
                Need::More => break,
                Need::Skip(count) => window.skip(count),
                Need::Damaged(message) => return Err(message),
            }
        }
        Ok(())
    }

    /// Whether the stream may end here.
    fn check_end(&self, window: &Window) -> Result<(), String> {
        let have = window.offset() - self.unit_offset + window.unread().len() as u64;
        if self.format.is_none() || have == 0 {
            return Ok(());
        }
        Err(cut(self.unit.what, have, self.unit.total))
    }
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Open")
            .field("item", &self.item)
            .field("format", &self.format)
            .field("unit", &self.unit)
            .field("unit_offset", &self.unit_offset)
            .finish_non_exhaustive()
    }
}

impl Source for CaptureFiles {
    fn next_event(&mut self) -> Result<SourceEvent<'_>, SourceError> {
        self.frames.clear();
        loop {
            if let Some(fault) = self.faults.pop_front() {
                return Ok(SourceEvent::Fault(fault));
            }
            if self.current.is_none() {
                if self.open_next() {
                    continue;
                }
                return Ok(match self.last_fault() {
                    Some(fault) => SourceEvent::Fault(fault),
                    None => SourceEvent::End,
                });
            }
            match self.step()? {
                Step::Again => {}
                Step::Idle => return Ok(SourceEvent::Idle),
                Step::Batch => break,
                Step::Close => {
                    self.close();
                    if !self.frames.is_empty() {
                        break;
                    }
                }
            }
        }
        self.has_delivered = true;
        Ok(SourceEvent::Batch(Batch::new(
            self.window.buffer(),
            &self.frames,
        )))
    }

    fn progress(&self) -> Progress {
        let current = self.current.as_ref().map_or(0, |open| {
            let read = open.raw_bytes.load(Ordering::Relaxed);
            open.item.size.map_or(read, |size| read.min(size))
        });
        Progress {
            consumed_bytes: self.finished_bytes + current,
            total_bytes: self.total_bytes,
        }
    }

    fn drops(&self) -> Drops {
        Drops {
            unusable_records: self.unusable,
            ..Drops::default()
        }
    }
}

impl Detach for CaptureFiles {
    fn detach(&mut self, spare: Vec<u8>) -> Vec<u8> {
        self.window.detach(spare)
    }
}

/// The raw input, counting.
struct Counted {
    inner: Bytes,
    count: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(buffer)?;
        self.count.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
}
