//! Gnutella beside HTTP: pushes, and the messages between servents.
//!
//! Source: "Gnutella 0.6" (draft of Klingberg and Manfredi, 2002), sec. 2 and 3.

use super::State;
use super::facts::Facts;
use super::start::Handshake;
use crate::inspect::{Coding, FileInfo, Found, Side};

/// Identifier (16 bytes), type, time to live, hops, length of the payload (lowest byte first).
const HEADER: usize = 23;
const TYPE_AT: usize = 16;
const LENGTH_AT: usize = 19;

const QUERY: u8 = 0x80;
const QUERY_HIT: u8 = 0x81;

/// Longest payload, bytes. Servents drop the connection at less.
const MAX_PAYLOAD: u32 = 64 * 1024;

/// What follows the last head of a side.
pub(super) fn after_handshake(handshake: Handshake, head: &[u8]) -> State {
    match handshake {
        Handshake::Connect => State::Head,
        // Compressed messages are not opened.
        Handshake::Accepted if Facts::of(head).coding() != Coding::Identity => State::Text,
        Handshake::Accepted => State::Messages(Messages::default()),
        Handshake::Refused => State::Text,
    }
}

/// `GIV <index>:<identifier>/<name>`: its sender offers the file. The other pushes name none.
pub(super) fn push<F: Found>(sender: Side, line: &[u8], found: &mut F) {
    let Some(offer) = line.strip_prefix(b"GIV ") else {
        return;
    };
    let Some(slash) = memchr::memchr(b'/', offer) else {
        return;
    };
    let name = offer.get(slash + 1..).unwrap_or_default();
    name_file(sender, name, None, &[], found);
}

fn name_file<F: Found>(
    sender: Side,
    name: &[u8],
    announced_size: Option<u64>,
    identifier: &[u8],
    found: &mut F,
) {
    if name.trim_ascii().is_empty() {
        return;
    }
    let file = FileInfo {
        name,
        announced_size,
        identifier,
        ..FileInfo::default()
    };
    found.file_named(sender, &file);
}

/// The messages that one side sends.
#[derive(Debug)]
pub(super) struct Messages {
    header: [u8; HEADER],
    /// Bytes of the header that are there.
    in_header: usize,
    /// Bytes of the payload that are to come.
    left: usize,
    /// The payload, where it is read and was cut.
    gathered: Vec<u8>,
}

impl Default for Messages {
    fn default() -> Self {
        Self {
            header: [0; HEADER],
            in_header: 0,
            left: 0,
            gathered: Vec::new(),
        }
    }
}

impl Messages {
    /// Takes bytes up to the end of a header or of a payload, and gives those behind.
    pub(super) fn feed<'a, F: Found>(
        &mut self,
        sender: Side,
        bytes: &'a [u8],
        found: &mut F,
    ) -> (&'a [u8], Result<(), &'static str>) {
        if self.in_header < HEADER {
            let free = self.header.get_mut(self.in_header..).unwrap_or_default();
            let (here, rest) = bytes.split_at_checked(free.len()).unwrap_or((bytes, &[]));
            for (to, from) in free.iter_mut().zip(here) {
                *to = *from;
            }
            self.in_header += here.len();
            found.text(sender, here);
            return (rest, self.begin_payload());
        }
        let (here, rest) = bytes.split_at_checked(self.left).unwrap_or((bytes, &[]));
        self.left -= here.len();
        found.text(sender, here);
        let kind = self.kind();
        let is_read = matches!(kind, QUERY | QUERY_HIT);
        if is_read && (self.left > 0 || !self.gathered.is_empty()) {
            self.gathered.extend_from_slice(here);
        }
        if self.left == 0 {
            let gathered = std::mem::take(&mut self.gathered);
            let payload = if gathered.is_empty() { here } else { &gathered };
            match kind {
                QUERY => query(sender, payload, found),
                QUERY_HIT => query_hit(sender, payload, found),
                _ => {}
            }
            self.in_header = 0;
        }
        (rest, Ok(()))
    }

    fn kind(&self) -> u8 {
        self.header.get(TYPE_AT).copied().unwrap_or_default()
    }

    fn begin_payload(&mut self) -> Result<(), &'static str> {
        if self.in_header < HEADER {
            return Ok(());
        }
        let length = self.header.get(LENGTH_AT..).and_then(<[u8]>::first_chunk);
        let length = length.map_or(0, |length| u32::from_le_bytes(*length));
        if length > MAX_PAYLOAD {
            return Err("Gnutella message beyond 64 KiB");
        }
        self.left = usize::try_from(length).unwrap_or(usize::MAX);
        if self.left == 0 {
            self.in_header = 0;
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.gathered.capacity()
    }
}

/// Least speed (2 bytes), and what is looked for up to a zero byte.
fn query<F: Found>(sender: Side, payload: &[u8], found: &mut F) {
    let text = payload.get(2..).unwrap_or_default();
    let end = memchr::memchr(0, text).unwrap_or(text.len());
    let words = text.get(..end).unwrap_or_default();
    name_file(sender.other(), words, None, &[], found);
}

/// Count, port, address, speed (11 bytes), then of each file index, size, name and extension, both up
/// to a zero byte.
fn query_hit<F: Found>(sender: Side, payload: &[u8], found: &mut F) {
    let count = payload.first().copied().unwrap_or_default();
    let mut rest = payload.get(11..).unwrap_or_default();
    for _ in 0..count {
        let Some((&[_, _, _, _, a, b, c, d], texts)) = rest.split_first_chunk::<8>() else {
            return;
        };
        let mut texts = texts.splitn(3, |&byte| byte == 0);
        let (Some(name), Some(extension), Some(after)) = (texts.next(), texts.next(), texts.next())
        else {
            return;
        };
        let size = u64::from(u32::from_le_bytes([a, b, c, d]));
        name_file(sender, name, Some(size), name_by_hash(extension), found);
        rest = after;
    }
}

/// `urn:...` among the extensions, which 0x1C separates (HUGE 0.94).
fn name_by_hash(extension: &[u8]) -> &[u8] {
    let mut parts = extension.split(|&byte| byte == 0x1C);
    parts
        .find(|part| part.starts_with(b"urn:"))
        .unwrap_or_default()
}
