//! A file while it passes by.

use linkweir_engine::effect::{FileId, ScanChunk, Ticket};
use sha2::{Digest as _, Sha256};

use crate::context::Context;
use crate::inspect::{Decoder, FileInfo};
use crate::policy::{Hold, KeywordState, Rule, ScanMode, ScanSettings};

/// Bytes of a name that are kept.
const MAX_NAME: usize = 1024;

/// A file of which bytes come.
#[derive(Debug)]
pub(super) struct Transfer {
    /// Tells the files of a connection apart.
    pub(super) number: u32,
    pub(super) name: Vec<u8>,
    pub(super) from: Vec<u8>,
    pub(super) to: Vec<u8>,
    pub(super) announced: Option<u64>,
    /// Bytes so far, decoded.
    pub(super) size: u64,
    pub(super) hash: Option<Sha256>,
    pub(super) keywords: Option<KeywordState>,
    pub(super) decoder: Option<Box<Decoder>>,
    pub(super) scanning: Option<Scanning>,
    /// Whether nothing of it goes before its verdict.
    pub(super) is_held: bool,
    pub(super) file: Option<FileId>,
    pub(super) stored: String,
    /// Why it was not scanned as it should have been.
    pub(super) unscanned: Option<String>,
    /// Whether all of it came; known at its end.
    pub(super) is_complete: bool,
    is_until_close: bool,
    /// Whether it is a part of a file of unknown length.
    pub(super) is_part: bool,
    /// Bytes of memory that it was given.
    pub(super) memory: usize,
}

impl Transfer {
    pub(super) fn new(rule: &Rule, number: u32, info: &FileInfo<'_>) -> Self {
        let cut = |text: &[u8]| text.get(..MAX_NAME).unwrap_or(text).to_vec();
        let name = if info.name.is_empty() {
            info.identifier
        } else {
            info.name
        };
        Self {
            number,
            name: cut(name),
            from: cut(info.from),
            to: cut(info.to),
            announced: info.announced_size,
            size: 0,
            hash: rule.inspect.audit.then(Sha256::new),
            keywords: rule
                .inspect
                .keywords
                .as_ref()
                .map(crate::policy::Keywords::start),
            decoder: None,
            scanning: rule.inspect.scan.map(Scanning::new),
            is_held: (rule.inspect.scan).is_some_and(|scan| scan.hold == Hold::File),
            file: None,
            stored: String::new(),
            unscanned: None,
            is_complete: false,
            is_until_close: info.is_until_close,
            is_part: info.is_part,
            memory: 0,
        }
    }

    /// Whether its newest packet must stay until the next one comes.
    pub(super) fn must_hold_last(&self) -> bool {
        let is_open = |scanning: &Scanning| !scanning.is_empty();
        self.is_until_close && self.scanning.as_ref().is_some_and(is_open)
    }

    /// Whether anything is to be found in its bytes.
    pub(super) const fn is_read(&self) -> bool {
        self.hash.is_some()
            || self.keywords.is_some()
            || self.decoder.is_some()
            || self.scanning.is_some()
            || self.file.is_some()
    }

    /// SHA-256 of the bytes so far, where it was asked for.
    pub(super) fn sha256(&mut self) -> Option<[u8; 32]> {
        self.hash.take().map(|hash| hash.finalize().into())
    }
}

/// A name that is safe in a directory: letters, digits, `.`, `-` and `_`, no dot first, at most 100 bytes.
pub(super) fn safe_name(name: &[u8]) -> String {
    let letters = name.iter().take(100).map(|&byte| {
        let is_safe = byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if is_safe { char::from(byte) } else { '_' }
    });
    let name: String = letters.collect();
    match name.trim_start_matches('.') {
        "" => "file".to_owned(),
        name => name.to_owned(),
    }
}

// A file on its way to the scanner: in windows, or whole.

/// Bytes after which a part of a whole file is handed over.
const PART: usize = 64 * 1024;

/// A scan that packets wait for.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) ticket: Ticket,
    /// The number of the file that it is a scan of.
    pub(super) file: u32,
}

/// The bytes that were not given to the scanner yet.
#[derive(Debug)]
pub(super) struct Scanning {
    settings: ScanSettings,
    buffer: Vec<u8>,
    /// How many bytes at its start were scanned in the window before.
    tail: usize,
    /// The scan of a whole file, once a part of it was given.
    whole: Option<Ticket>,
}

impl Scanning {
    pub(super) const fn new(settings: ScanSettings) -> Self {
        Self {
            settings,
            buffer: Vec::new(),
            tail: 0,
            whole: None,
        }
    }

    /// Takes bytes of the file. The scan that packets have to wait for, where a window is full.
    pub(super) fn push(&mut self, bytes: &[u8], ctx: &mut Context<'_>) -> Option<Ticket> {
        self.buffer.extend_from_slice(bytes);
        match self.settings.mode {
            ScanMode::Window { bytes, .. } => {
                (self.buffer.len() - self.tail >= bytes).then(|| self.scan_window(ctx))
            }
            ScanMode::File => {
                if self.buffer.len() >= PART {
                    self.give(false, ctx);
                }
                None
            }
        }
    }

    /// The file has ended: its last scan.
    pub(super) fn finish(&mut self, ctx: &mut Context<'_>) -> Ticket {
        match self.settings.mode {
            ScanMode::Window { .. } => self.scan_window(ctx),
            ScanMode::File => self.give(true, ctx),
        }
    }

    /// Scans what there is, where it is scanned in windows.
    pub(super) fn flush(&mut self, ctx: &mut Context<'_>) -> Option<Ticket> {
        let is_windowed = matches!(self.settings.mode, ScanMode::Window { .. });
        (is_windowed && !self.is_empty()).then(|| self.scan_window(ctx))
    }

    /// Bytes of memory that it has.
    pub(super) const fn memory(&self) -> usize {
        self.buffer.capacity()
    }

    /// Bytes of memory that it needs more for so many bytes of the file, at least.
    pub(super) const fn growth(&self, bytes: usize) -> usize {
        (self.buffer.len() + bytes).saturating_sub(self.buffer.capacity())
    }

    /// Whether everything that came was scanned.
    pub(super) const fn is_empty(&self) -> bool {
        self.buffer.len() == self.tail && self.whole.is_none()
    }

    /// The scan that will never get its last part.
    pub(super) const fn abandoned(&mut self) -> Option<Ticket> {
        self.whole.take()
    }

    fn scan_window(&mut self, ctx: &mut Context<'_>) -> Ticket {
        let keep = match self.settings.mode {
            ScanMode::Window { tail, .. } => tail.min(self.buffer.len()),
            ScanMode::File => 0,
        };
        let mut next = Vec::with_capacity(self.buffer.capacity());
        let from = self.buffer.len() - keep;
        next.extend_from_slice(self.buffer.get(from..).unwrap_or_default());
        self.tail = keep;
        let bytes = std::mem::replace(&mut self.buffer, next);
        let ticket = ctx.ids.ticket();
        ctx.request_scan(ScanChunk {
            ticket,
            bytes,
            is_last: true,
        });
        ticket
    }

    fn give(&mut self, is_last: bool, ctx: &mut Context<'_>) -> Ticket {
        let ticket = *self.whole.get_or_insert_with(|| ctx.ids.ticket());
        if is_last {
            self.whole = None;
        }
        let bytes = std::mem::take(&mut self.buffer);
        ctx.request_scan(ScanChunk {
            ticket,
            bytes,
            is_last,
        });
        ticket
    }
}

impl Context<'_> {
    fn request_scan(&mut self, chunk: ScanChunk) {
        if chunk.is_last {
            self.requested.push(chunk.ticket);
            self.stats.scans += 1;
        }
        self.effects.scans.push(chunk);
    }
}
