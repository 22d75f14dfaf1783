//! A file on its way to the scanner: in windows, or whole.

use linkweir_engine::effect::{ScanChunk, Ticket};

use crate::context::Context;
use crate::policy::{ScanMode, ScanSettings};

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
