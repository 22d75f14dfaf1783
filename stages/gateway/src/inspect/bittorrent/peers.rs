//! The conversation of two peers: a handshake of each, then messages with their length in front.
//!
//! In front of the handshakes there may be an exchange of keys (Message Stream Encryption), of which
//! most clients want only the disguise: when both agree on plain text, the handshakes follow it.

use linkweir_proto::bittorrent::{EXTENDED, ExtensionHandshake, Handshake, MetadataPiece};

use super::Metadata;
use crate::inspect::gather::hexadecimal;
use crate::inspect::gather::{MAX_KEPT, Message, bounded};
use crate::inspect::{FileInfo, Found, Side};

/// Longest message: room for the bits of a torrent of 32 million pieces.
const MAX_MESSAGE: u32 = 4 * 1024 * 1024;
/// Longest that comes before the end of a handshake's start, bytes: of an exchange of keys at most
/// two paddings of 512 and some 200 more.
const MAX_PRELUDE: usize = 2048;

/// State of the conversation.
#[derive(Debug, Default)]
pub(super) struct Peers {
    client: Direction,
    server: Direction,
    info_hash: Option<[u8; 20]>,
    metadata: Metadata,
    is_opaque: bool,
}

/// What is coming from one side.
#[derive(Debug, Default)]
struct Direction {
    phase: Phase,
    message: Message,
    /// By what messages about metadata are known that this side gets.
    metadata_id: Option<u8>,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Before the handshake.
    Start {
        /// Bytes of its start that came.
        matched: usize,
        /// Bytes that came in all.
        passed: usize,
    },
    /// The rest of the handshake.
    Handshake,
    /// The length of a message.
    Length,
    /// The byte that says which message it is, of this length.
    Kind(u32),
    /// What follows that byte.
    Body {
        /// Whether it is a message of an extension.
        is_extended: bool,
    },
}

impl Default for Phase {
    fn default() -> Self {
        Self::Start {
            matched: 0,
            passed: 0,
        }
    }
}

impl Direction {
    fn begin(&mut self, phase: Phase, length: u64, keep: usize) {
        self.phase = phase;
        self.message.begin(length, keep);
    }

    fn begin_length(&mut self) {
        self.begin(Phase::Length, 4, 4);
    }
}

impl Peers {
    /// The next bytes of a side.
    pub(super) fn feed<F: Found>(&mut self, sender: Side, mut bytes: &[u8], found: &mut F) {
        while !bytes.is_empty() {
            if self.is_opaque {
                found.text(sender, bytes);
                return;
            }
            let direction = self.direction(sender);
            if let Phase::Start { matched, passed } = direction.phase {
                bytes = self.seek(sender, matched, passed, bytes, found);
                continue;
            }
            let (taken, rest) = direction.message.take(bytes);
            found.text(sender, taken);
            if direction.message.is_whole() {
                self.on_whole(sender, found);
            }
            bytes = rest;
        }
    }

    const fn direction(&mut self, sender: Side) -> &mut Direction {
        match sender {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// Looks for the start of the handshake; gives what follows it.
    fn seek<'a, F: Found>(
        &mut self,
        sender: Side,
        mut matched: usize,
        mut passed: usize,
        bytes: &'a [u8],
        found: &mut F,
    ) -> &'a [u8] {
        let mut length = 0;
        for byte in bytes {
            if matched == Handshake::START.len() || passed == MAX_PRELUDE {
                break;
            }
            // The first byte of the start is nowhere else in it.
            matched = match Handshake::START.get(matched) {
                Some(next) if next == byte => matched + 1,
                _ => usize::from(Handshake::START.first() == Some(byte)),
            };
            passed += 1;
            length += 1;
        }
        let (taken, rest) = bytes.split_at_checked(length).unwrap_or((bytes, &[]));
        found.text(sender, taken);
        let direction = self.direction(sender);
        if matched == Handshake::START.len() {
            direction.begin(Phase::Handshake, Handshake::REST as u64, Handshake::REST);
        } else if passed == MAX_PRELUDE {
            self.give_up(sender, "no handshake of BitTorrent", found);
        } else {
            direction.phase = Phase::Start { matched, passed };
        }
        rest
    }

    /// What was to come in this phase came.
    fn on_whole<F: Found>(&mut self, sender: Side, found: &mut F) {
        let direction = self.direction(sender);
        let bytes = direction.message.bytes();
        match direction.phase {
            Phase::Start { .. } => {}
            Phase::Handshake => {
                if let Some(handshake) = bytes.first_chunk().and_then(Handshake::parse) {
                    self.on_handshake(sender, handshake.info_hash, found);
                }
            }
            Phase::Length => {
                let length = bytes
                    .first_chunk()
                    .map(|length| u32::from_be_bytes(*length));
                match length.unwrap_or_default() {
                    // Only to show that the peer is alive.
                    0 => direction.begin_length(),
                    length @ 1..=MAX_MESSAGE => direction.begin(Phase::Kind(length), 1, 1),
                    _ => self.give_up(sender, "a message of BitTorrent is too long", found),
                }
            }
            Phase::Kind(1) => direction.begin_length(),
            Phase::Kind(length) => {
                let is_extended = bytes.first() == Some(&EXTENDED);
                let keep = if is_extended { MAX_KEPT } else { 0 };
                direction.begin(Phase::Body { is_extended }, u64::from(length) - 1, keep);
            }
            Phase::Body { is_extended: false } => direction.begin_length(),
            Phase::Body { is_extended: true } => {
                let body = std::mem::take(&mut direction.message);
                direction.begin_length();
                self.on_extended(sender, body.bytes(), found);
            }
        }
    }

    fn on_handshake<F: Found>(&mut self, sender: Side, info_hash: [u8; 20], found: &mut F) {
        self.direction(sender).begin_length();
        if self.info_hash != Some(info_hash) {
            self.info_hash = Some(info_hash);
            self.on_file(sender, b"", None, found);
        }
    }

    fn on_extended<F: Found>(&mut self, sender: Side, body: &[u8], found: &mut F) {
        let Some((id, payload)) = body.split_first() else {
            return;
        };
        if *id == 0 {
            let handshake = ExtensionHandshake::parse(payload);
            if let Some(metadata_id) = handshake.and_then(|handshake| handshake.metadata_id) {
                self.direction(sender).metadata_id = Some(metadata_id);
            }
            return;
        }
        // Messages carry the number that their receiver chose.
        if self.direction(sender.other()).metadata_id != Some(*id) {
            return;
        }
        let Some(piece) = MetadataPiece::parse(payload) else {
            return;
        };
        let mut metadata = std::mem::take(&mut self.metadata);
        metadata.on_piece(&piece, |name, length| {
            self.on_file(sender, name, length, found);
        });
        self.metadata = metadata;
    }

    fn on_file<F: Found>(&self, sender: Side, name: &[u8], length: Option<u64>, found: &mut F) {
        let file = FileInfo {
            name: bounded(name),
            announced_size: length,
            identifier: &self
                .info_hash
                .map(|hash| hexadecimal(&hash))
                .unwrap_or_default(),
            ..FileInfo::default()
        };
        found.file_named(sender, &file);
    }

    fn give_up<F: Found>(&mut self, sender: Side, why: &'static str, found: &mut F) {
        *self = Self {
            is_opaque: true,
            ..Self::default()
        };
        found.malformed(sender, why);
    }
}
