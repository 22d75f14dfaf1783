//! The file of the packets, or the files one after the other.

use anyhow::Context as _;
use linkweir_capture::chosen::Pieces;
use linkweir_sink::{Document, Existing};

use crate::chunks::Chunks;
use crate::exit::warn;
use crate::files::refused;

/// Where the packets go.
#[derive(Debug)]
pub(super) struct Out {
    destination: String,
    existing: Existing,
    waits: bool,
    /// `None` where no file could be opened, and at the end.
    chunks: Option<Chunks>,
    /// Packets that were not written.
    pub(super) lost: u64,
    /// Why, first.
    pub(super) failed: Option<String>,
}

impl Out {
    /// Opens the first file.
    pub(super) fn open(destination: &str, existing: Existing, waits: bool) -> anyhow::Result<Self> {
        let mut out = Self {
            destination: destination.to_owned(),
            existing,
            waits,
            chunks: None,
            lost: 0,
            failed: None,
        };
        out.begin().context("--pcap-out")?;
        Ok(out)
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        let file = Document::open_in_pieces(&self.destination, self.existing, warn);
        let file = file.map_err(refused)?;
        self.chunks = Some(Chunks::begin(file, self.waits)?);
        // The next ones stand beside those that this run has written.
        self.existing = Existing::Keep;
        Ok(())
    }

    /// Completes the file.
    pub(super) fn complete(&mut self) {
        let Some(chunks) = self.chunks.take() else {
            return;
        };
        let (lost, written) = chunks.finish(Vec::new(), 0);
        self.lost += lost;
        if let Err(error) = written {
            self.failed.get_or_insert_with(|| error.to_string());
        }
    }

    /// Leaves the file uncompleted.
    pub(super) fn abandon(&mut self) {
        if let Some(chunks) = self.chunks.take() {
            chunks.abandon();
        }
    }

    /// Completes the file and begins the next.
    pub(super) fn rotate(&mut self) {
        self.complete();
        if let Err(error) = self.begin() {
            self.failed.get_or_insert_with(|| error.to_string());
        }
    }
}

impl Pieces for Out {
    fn piece(&mut self, bytes: &mut Vec<u8>, packets: u64) {
        match &mut self.chunks {
            Some(chunks) => chunks.push(std::mem::take(bytes), packets),
            None => self.lost += packets,
        }
    }
}
