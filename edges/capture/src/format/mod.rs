//! Capture formats as state machines over bytes: given what has arrived, say where frames are.

mod erf;
mod pcap;
mod pcapng;
mod snoop;

use std::fmt;
use std::sync::Arc;

use linkweir_engine::FrameRef;

use erf::Erf;
use pcap::Pcap;
use pcapng::Pcapng;
use snoop::Snoop;

/// Takes the TLS key logs that captures of pcapng carry, piece by piece, each before the packets that need it; an empty
/// piece is the end of one.
#[derive(Clone)]
pub struct OnSecrets(Arc<TakesSecrets>);

type TakesSecrets = dyn Fn(&[u8]) + Send + Sync;

impl OnSecrets {
    /// Calls this.
    #[must_use]
    pub fn new(take: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    pub(crate) fn take(&self, piece: &[u8]) {
        (self.0)(piece);
    }
}

impl Default for OnSecrets {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for OnSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnSecrets(..)")
    }
}

/// What one call of an index function achieved.
#[derive(Debug)]
pub(crate) struct Indexed {
    /// Bytes of the given data that are done with.
    pub(crate) consumed: usize,
    /// The record or block it stopped at.
    pub(crate) unit: Unit,
    /// What stands in the way of going on.
    pub(crate) need: Need,
}

/// A record or block that is not done with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    /// Its name, for messages.
    pub(crate) what: &'static str,
    /// Its length as far as known.
    pub(crate) total: u64,
    /// How many of its bytes are consumed already.
    pub(crate) back: u64,
}

impl Unit {
    /// A unit of which nothing is consumed yet.
    pub(crate) const fn whole(what: &'static str, total: u64) -> Self {
        Self {
            what,
            total,
            back: 0,
        }
    }
}

/// What an index function waits for.
#[derive(Debug)]
pub(crate) enum Need {
    /// More bytes behind those that are there.
    More,
    /// The next bytes are of no use; drop them unseen. Never zero.
    Skip(u64),
    /// The data cannot be what it claims to be.
    Damaged(String),
}

/// Where an index function writes to.
#[derive(Debug)]
pub(crate) struct Output<'a> {
    /// Takes the frames.
    pub(crate) frames: &'a mut Vec<FrameRef>,
    /// Position of the given data in the buffer to which frame offsets refer.
    pub(crate) origin: u32,
    /// Longest frame that may be held.
    pub(crate) max_frame: u32,
    /// Counts records that are no usable frame.
    pub(crate) unusable: &'a mut u64,
    /// Takes secrets.
    pub(crate) secrets: &'a OnSecrets,
}

/// A capture being read.
#[derive(Debug)]
pub(crate) enum Format {
    /// Classic pcap in all its variants.
    Pcap(Pcap),
    /// pcapng.
    Pcapng(Pcapng),
    /// Endace ERF.
    Erf(Erf),
    /// Snoop.
    Snoop(Snoop),
}

/// What the first bytes of a stream are.
#[derive(Debug)]
pub(crate) enum Detection {
    /// Too few bytes to tell; where the stream ends here, this is the reason.
    Undecided(Unreadable),
    /// Nothing that can be read, and why.
    Unknown(Unreadable),
    /// A capture whose file header has this many bytes.
    Found(Format, usize),
}

/// Why a stream cannot be read as a capture.
#[derive(Debug)]
pub(crate) enum Unreadable {
    /// It begins as no capture does.
    Foreign(String),
    /// It is a capture all the same, by its first bytes.
    Capture(String),
}

impl Format {
    /// Recognises a capture by its first bytes.
    ///
    /// `ended`: nothing will follow them. `erf_named`: the name says that it is ERF, the one format
    /// without a magic number.
    pub(crate) fn detect(data: &[u8], ended: bool, erf_named: bool) -> Detection {
        let Some(magic) = data.first_chunk::<4>() else {
            return Detection::Undecided(Unreadable::Foreign(format!(
                "not a capture: only {} byte{} long",
                data.len(),
                if data.len() == 1 { "" } else { "s" }
            )));
        };
        let header_cut = |wanted: usize| {
            let message = cut("file header", data.len() as u64, wanted as u64);
            Detection::Undecided(Unreadable::Capture(message))
        };
        if let Some(variant) = Pcap::variant(*magic) {
            return data.first_chunk().map_or_else(
                || header_cut(Pcap::HEADER_BYTES),
                |header| {
                    Detection::Found(Self::Pcap(Pcap::new(variant, header)), Pcap::HEADER_BYTES)
                },
            );
        }
        if *magic == Pcapng::MAGIC {
            return match Pcapng::detect(data) {
                None => header_cut(Pcapng::HEADER_BYTES),
                Some(true) => Detection::Found(Self::Pcapng(Pcapng::new()), 0),
                Some(false) => Detection::Unknown(Unreadable::Foreign(
                    "not a capture: it begins like pcapng but has no byte-order magic".to_owned(),
                )),
            };
        }
        if *magic == Snoop::MAGIC {
            return match data.first_chunk() {
                None => header_cut(Snoop::HEADER_BYTES),
                Some(header) => match Snoop::new(header) {
                    Ok(snoop) => Detection::Found(Self::Snoop(snoop), Snoop::HEADER_BYTES),
                    Err(message) => Detection::Unknown(Unreadable::Capture(message)),
                },
            };
        }
        let [a, b, c, d] = magic;
        match Erf::detect(data, ended, erf_named) {
            Some(true) => Detection::Found(Self::Erf(Erf::new()), 0),
            Some(false) => Detection::Unknown(Unreadable::Foreign(format!(
                "not a capture: it begins with {a:02x} {b:02x} {c:02x} {d:02x}, as no known format does"
            ))),
            None => Detection::Undecided(Unreadable::Foreign(format!(
                "not a capture: {} bytes that no known format begins with",
                data.len()
            ))),
        }
    }

    /// Finds the frames in `data`, which begins at the first byte not yet consumed.
    pub(crate) fn index(&mut self, data: &[u8], out: &mut Output<'_>) -> Indexed {
        match self {
            Self::Pcap(pcap) => pcap.index(data, out),
            Self::Pcapng(pcapng) => pcapng.index(data, out),
            Self::Erf(erf) => erf.index(data, out),
            Self::Snoop(snoop) => snoop.index(data, out),
        }
    }
}

/// The message for a unit that the end of the file cuts.
pub(crate) fn cut(what: &str, have: u64, wanted: u64) -> String {
    format!("{what} cut: {have} of {wanted} bytes")
}

/// A header as words of four bytes.
fn words<const BYTES: usize, const WORDS: usize>(header: &[u8; BYTES]) -> [[u8; 4]; WORDS] {
    let (chunks, _) = header.as_chunks::<4>();
    chunks.first_chunk().copied().unwrap_or([[0; 4]; WORDS])
}

/// A 32-bit number in the byte order of the file.
#[inline]
const fn number<const BIG: bool>(bytes: [u8; 4]) -> u32 {
    if BIG {
        u32::from_be_bytes(bytes)
    } else {
        u32::from_le_bytes(bytes)
    }
}
