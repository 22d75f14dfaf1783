//! A file while it passes by.

use linkweir_engine::effect::FileId;
use sha2::{Digest as _, Sha256};

use super::scanning::Scanning;
use crate::inspect::{Decoder, FileInfo};
use crate::policy::{Hold, KeywordState, Rule};

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
