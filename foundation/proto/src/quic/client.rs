//! What the client says in its Initial packets.

use memchr::memmem;

use super::header::{Kind, LongHeader, Version};
use super::keys::InitialKeys;
use super::stream::CryptoStream;
use crate::tls::reader::Reader;
use crate::tls::{Parsed, parse_client_hello};

/// Initial packets that are decrypted of one connection.
const MAX_PACKETS: u8 = 4;

/// `user_agent` of Google's transport parameters.
const USER_AGENT: u64 = 0x3129;

/// Where the hello stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It is whole.
    Whole,
    /// More packets are needed.
    More,
    /// Nothing more is to be expected: too many packets, or none that could be read.
    Over,
}

/// The Initial packets of one client, until its hello is whole.
///
/// Shape: about 8 KiB, of fixed size; to be used again after [`ClientInitials::clear`].
#[derive(Debug, Clone)]
pub struct ClientInitials {
    keys: Option<InitialKeys>,
    stream: CryptoStream,
    packets: u8,
}

impl Default for ClientInitials {
    fn default() -> Self {
        Self::new()
    }
}

impl ClientInitials {
    /// No packet seen yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            keys: None,
            stream: CryptoStream::new(),
            packets: 0,
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.keys = None;
        self.stream.clear();
        self.packets = 0;
    }

    /// Takes an Initial packet of the client, at the start of `datagram`.
    ///
    /// Cost: some five microseconds, of four packets at most.
    pub fn on_packet(&mut self, datagram: &[u8], header: &LongHeader<'_>) -> Progress {
        let Some(version) = Version::of(header.version).filter(|_| header.kind == Kind::Initial)
        else {
            return Progress::More;
        };
        if self.packets >= MAX_PACKETS {
            return Progress::Over;
        }
        self.packets += 1;
        let stream = &mut self.stream;
        let mut take = |keys: &InitialKeys| {
            keys.open(datagram, header, |frames| {
                super::stream::walk(frames, |offset, piece| stream.insert(offset, piece));
            })
        };
        // Later packets go to an id that the server chose, with the keys of the first (RFC 9001
        // sec. 5.2); after a Retry the keys are new.
        let is_open = self.keys.as_ref().and_then(&mut take).is_some();
        if !is_open {
            let other = Version::is_reserved(header.version).then_some(Version::Draft29);
            self.keys = [Some(version), other]
                .into_iter()
                .flatten()
                .find_map(|version| {
                    let keys = InitialKeys::client(version, header.destination_id)?;
                    take(&keys).map(|()| keys)
                });
        }
        let is_whole = match parse_client_hello(self.stream.prefix()) {
            Parsed::Complete(_) => true,
            Parsed::Partial(_) => false,
            Parsed::Not => parse_google_hello(self.stream.prefix()).is_some(),
        };
        if is_whole {
            Progress::Whole
        } else if self.packets >= MAX_PACKETS {
            Progress::Over
        } else {
            Progress::More
        }
    }

    /// What came of the hello so far without a hole: a handshake message for
    /// [`parse_client_hello`], of Google's versions one for [`parse_google_hello`].
    #[must_use]
    pub fn hello(&self) -> &[u8] {
        self.stream.prefix()
    }
}

/// The user agent in transport parameters (RFC 9000 sec. 18), where the client says it.
#[must_use]
pub fn user_agent(parameters: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(parameters);
    loop {
        let id = reader.varint()?;
        let len = usize::try_from(reader.varint()?).ok()?;
        let value = reader.take(len)?;
        if id == USER_AGENT {
            return Some(value);
        }
    }
}

// Google's QUIC before the IETF's: versions `Q0xx`, whose hello is in clear.
//
// Source: "QUIC Wire Layout Specification" and "QUIC Crypto" (Google, 2016): a message is its name,
// a count, and pairs of tag and end offset, all little-endian.

/// Where the hello begins: behind a header of at most 50 bytes and a hash of 12.
const SEARCHED: usize = 96;
/// Tags that are looked at.
const MAX_TAGS: usize = 64;

/// What the client says. Slices borrow from the datagram; absent ones are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GoogleHello<'a> {
    /// `SNI`.
    pub server_name: &'a [u8],
    /// `UAID`.
    pub user_agent: &'a [u8],
}

/// The version in the public header that the client's first packets have in versions up to Q043, for
/// example `0x51303433`; `None` where it is not such a header.
#[must_use]
pub fn public_version(datagram: &[u8]) -> Option<u32> {
    let (flags, rest) = datagram.split_first()?;
    // Version and connection id are there, neither a reset nor a long header, no other bits.
    if flags & 0b1100_1011 != 0b0000_1001 {
        return None;
    }
    let version = *rest.get(8..)?.first_chunk::<4>()?;
    matches!(version, [b'Q', b'0', b'0'..=b'9', b'0'..=b'9']).then(|| u32::from_be_bytes(version))
}

/// Reads a `CHLO` that begins within the first bytes; `None` where there is none.
#[must_use]
pub fn parse_google_hello(bytes: &[u8]) -> Option<GoogleHello<'_>> {
    let searched = bytes.get(..SEARCHED).unwrap_or(bytes);
    let at = memmem::find(searched, b"CHLO")?;
    let rest = bytes.get(at + 4..)?;
    let ([low, high, _, _], rest) = rest.split_first_chunk::<4>()?;
    let count = usize::from(u16::from_le_bytes([*low, *high]));
    if count > MAX_TAGS {
        return None;
    }
    let (tags, values) = rest.split_at_checked(count * 8)?;
    let mut hello = GoogleHello::default();
    let mut from = 0;
    for tag in tags.as_chunks::<8>().0 {
        let [a, b, c, d, end @ ..] = *tag;
        let end = u32::from_le_bytes(end) as usize;
        // The last values may be cut.
        let value = values.get(from..end).unwrap_or_default();
        match &[a, b, c, d] {
            b"SNI\0" => hello.server_name = value,
            b"UAID" => hello.user_agent = value,
            _ => {}
        }
        from = end;
    }
    Some(hello)
}
