//! [`CaptureFiles`]: a list of capture files as one trace.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use linkweir_engine::{
    Batch, Drops, Fault, FaultKind, FrameRef, Progress, Source, SourceError, SourceEvent,
};

use crate::format::{Detection, Format, Need, Output, cut};
use crate::inputs::{self, Input, Item};
use crate::window::Window;

/// How captures are read.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// A libpcap filter expression; frames it does not match are left out.
    pub filter: Option<String>,
    /// Bytes per read; also the most that one batch spans. 256 KiB stay in a level 2 cache.
    pub chunk_bytes: usize,
    /// Longest frame that is held. libpcap writes none above 262,144 bytes.
    pub max_frame_bytes: u32,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            filter: None,
            chunk_bytes: 256 << 10,
            max_frame_bytes: 256 << 10,
        }
    }
}

/// Room for the headers around a frame.
const HEADER_ROOM: usize = 256;

/// Capture files, directories and standard input as one trace, in the order given.
///
/// Frames keep the order of the files. A file that is damaged gives what it has, then one
/// [`SourceEvent::Fault`]; the next file follows.
///
/// Memory: one buffer of `chunk_bytes` and one maximal frame, whatever the files say, plus what
/// the decompressor of the current file needs.
#[derive(Debug)]
pub struct CaptureFiles {
    waiting: VecDeque<Item>,
    current: Option<Open>,
    window: Window,
    frames: Vec<FrameRef>,
    faults: VecDeque<Fault>,
    options: ReadOptions,
    unusable: u64,
    /// Bytes of inputs that are done with.
    finished_bytes: u64,
    total_bytes: Option<u64>,
}

/// The file being read.
#[derive(Debug)]
struct Open {
    item: Item,
    stream: Stream,
    /// Compressed bytes read.
    raw_bytes: Arc<AtomicU64>,
    /// Nothing until the first bytes told.
    format: Option<Format>,
    /// Offset of a record whose bytes are being skipped.
    skip_from: Option<u64>,
}

/// What a step came to.
enum Step {
    Again,
    Batch,
    Close,
}

impl CaptureFiles {
    /// Takes a list of inputs as one trace. Nothing is read yet.
    ///
    /// # Errors
    /// Where an input does not exist, a directory is empty, or the filter is no valid expression.
    pub fn open(inputs: &[Input], options: ReadOptions) -> Result<Self, SourceError> {
        let items = inputs::expand(inputs)?;
        let options = ReadOptions {
            chunk_bytes: options.chunk_bytes.clamp(1, 1 << 28),
            max_frame_bytes: options.max_frame_bytes.clamp(1, 1 << 28),
            ..options
        };
        Ok(Self {
            total_bytes: items.iter().map(|item| item.size).sum(),
            waiting: items.into(),
            current: None,
            window: Window::new(
                options.chunk_bytes,
                options.max_frame_bytes as usize + HEADER_ROOM,
            ),
            frames: Vec::new(),
            faults: VecDeque::new(),
            options,
            unusable: 0,
            finished_bytes: 0,
        })
    }

    /// Opens the next input; false where there is none.
    fn open_next(&mut self) -> bool {
        let Some(item) = self.waiting.pop_front() else {
            return false;
        };
        self.window.reset();
        let raw_bytes = Arc::new(AtomicU64::new(0));
        let opened: io::Result<Box<dyn Read + Send>> = match &item.input {
            Input::Stdin => Ok(Box::new(io::stdin())),
            Input::Path(path) => File::open(path).map(|file| Box::new(file) as _),
        };
        match opened {
            Ok(inner) => {
                self.current = Some(Open {
                    item,
                    stream: Stream {
                        inner,
                        count: Arc::clone(&raw_bytes),
                    },
                    raw_bytes,
                    format: None,
                    skip_from: None,
                });
            }
            Err(error) => {
                self.faults.push_back(Fault {
                    input: item.name(),
                    offset: None,
                    kind: FaultKind::Unusable,
                    message: inputs::reason(&error),
                });
                self.finished_bytes += item.size.unwrap_or(0);
            }
        }
        true
    }

    /// Reads once and indexes what came.
    fn step(&mut self) -> Step {
        let Some(open) = &mut self.current else {
            return Step::Close;
        };
        let fault = |window: &Window, open: &Open, message: String| Fault {
            input: open.item.name(),
            offset: Some(open.skip_from.unwrap_or_else(|| window.offset())),
            kind: if open.format.is_some() {
                FaultKind::Damaged
            } else {
                FaultKind::Unusable
            },
            message,
        };
        match self.window.fill(&mut open.stream) {
            Ok(0) => {
                if let Some(message) = open.end_message(&self.window) {
                    self.faults.push_back(fault(&self.window, open, message));
                }
                return Step::Close;
            }
            Ok(_) => {}
            Err(error) => {
                self.faults
                    .push_back(fault(&self.window, open, inputs::reason(&error)));
                return Step::Close;
            }
        }
        if open.format.is_none() {
            match Format::detect(self.window.unread()) {
                Detection::Undecided(_) => return Step::Again,
                Detection::Unknown(message) => {
                    self.faults.push_back(fault(&self.window, open, message));
                    return Step::Close;
                }
                Detection::Found(format, header_bytes) => {
                    open.format = Some(format);
                    self.window.consume(header_bytes);
                }
            }
        }
        loop {
            if self.window.skipping() > 0 {
                break;
            }
            open.skip_from = None;
            let Some(format) = &mut open.format else {
                break;
            };
            let indexed = format.index(
                self.window.unread(),
                &mut Output {
                    frames: &mut self.frames,
                    origin: self.window.origin(),
                    max_frame: self.options.max_frame_bytes,
                    unusable: &mut self.unusable,
                },
            );
            self.window.consume(indexed.consumed);
            match indexed.need {
                Need::More { .. } => break,
                Need::Skip(count) => {
                    open.skip_from = Some(self.window.offset());
                    self.window.skip(count);
                }
                Need::Damaged(message) => {
                    self.faults.push_back(fault(&self.window, open, message));
                    return Step::Close;
                }
            }
        }
        if self.frames.is_empty() {
            Step::Again
        } else {
            Step::Batch
        }
    }

    fn close(&mut self) {
        if let Some(open) = self.current.take() {
            self.finished_bytes += open
                .item
                .size
                .unwrap_or_else(|| open.raw_bytes.load(Ordering::Relaxed));
        }
    }
}

impl Open {
    /// What is wrong with a stream that ends now, if anything.
    fn end_message(&mut self, window: &Window) -> Option<String> {
        let data = window.unread();
        let Some(format) = &mut self.format else {
            return match Format::detect(data) {
                _ if data.is_empty() => Some("the file is empty".to_owned()),
                Detection::Undecided(message) | Detection::Unknown(message) => Some(message),
                Detection::Found(..) => None,
            };
        };
        if window.skipping() > 0 {
            return Some(format!(
                "record cut: {} of its bytes are missing",
                window.skipping()
            ));
        }
        if data.is_empty() {
            return None;
        }
        let mut unusable = 0;
        let indexed = format.index(
            data,
            &mut Output {
                frames: &mut Vec::new(),
                origin: 0,
                max_frame: u32::MAX,
                unusable: &mut unusable,
            },
        );
        match indexed.need {
            Need::More { what, wanted } => Some(cut(what, data.len(), wanted)),
            Need::Damaged(message) => Some(message),
            Need::Skip(_) => None,
        }
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
                return Ok(SourceEvent::End);
            }
            match self.step() {
                Step::Again => {}
                Step::Batch => break,
                Step::Close => {
                    self.close();
                    if !self.frames.is_empty() {
                        break;
                    }
                }
            }
        }
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

/// The raw input, counting.
struct Stream {
    inner: Box<dyn Read + Send>,
    count: Arc<AtomicU64>,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(buffer)?;
        self.count.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
}
