//! What the client says in its Initial packets.

use super::frames;
use super::header::{Kind, LongHeader, Version};
use super::keys::InitialKeys;
use super::stream::CryptoStream;
use crate::tls::reader::Reader;
use crate::tls::{Parsed, parse_client_hello};

/// Initial packets that are decrypted of one connection.
const MOST_PACKETS: u8 = 4;

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
        if self.packets >= MOST_PACKETS {
            return Progress::Over;
        }
        self.packets += 1;
        let stream = &mut self.stream;
        let mut take = |keys: &InitialKeys| {
            keys.open(datagram, header, |frames| {
                frames::walk(frames, |offset, piece| stream.insert(offset, piece));
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
            Parsed::Not => super::parse_google_hello(self.stream.prefix()).is_some(),
        };
        if is_whole {
            Progress::Whole
        } else if self.packets >= MOST_PACKETS {
            Progress::Over
        } else {
            Progress::More
        }
    }

    /// What came of the hello so far without a hole: a handshake message for
    /// [`parse_client_hello`], of Google's versions one for [`super::parse_google_hello`].
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
