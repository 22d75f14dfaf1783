//! Capture formats as state machines over bytes: given what has arrived, say where frames are.

mod pcap;

use linkweir_engine::FrameRef;

pub(crate) use pcap::Pcap;

/// What one call of an index function achieved.
#[derive(Debug)]
pub(crate) struct Indexed {
    /// Bytes of the given data that are done with.
    pub(crate) consumed: usize,
    /// What stands in the way of going on.
    pub(crate) need: Need,
}

/// What an index function waits for.
#[derive(Debug)]
pub(crate) enum Need {
    /// The `what` that begins at the first unconsumed byte has `wanted` bytes.
    More {
        /// Name of the unit, for the message where the file ends here.
        what: &'static str,
        /// Its length.
        wanted: u64,
    },
    /// The next bytes are of no use; drop them unseen.
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
}

/// A capture being read.
#[derive(Debug)]
pub(crate) enum Format {
    /// Classic pcap in all its variants.
    Pcap(Pcap),
}

/// What the first bytes of a stream are.
#[derive(Debug)]
pub(crate) enum Detection {
    /// Too few bytes to tell; where the stream ends here, the message is the reason.
    Undecided(String),
    /// No capture, and why.
    Unknown(String),
    /// A capture whose file header has this many bytes.
    Found(Format, usize),
}

impl Format {
    /// Recognises a capture by its first bytes.
    pub(crate) fn detect(data: &[u8]) -> Detection {
        let Some(magic) = data.first_chunk::<4>() else {
            return Detection::Undecided(format!(
                "not a capture: only {} byte{} long",
                data.len(),
                if data.len() == 1 { "" } else { "s" }
            ));
        };
        if let Some(variant) = Pcap::variant(*magic) {
            return match data.first_chunk() {
                Some(header) => {
                    Detection::Found(Self::Pcap(Pcap::new(variant, header)), Pcap::HEADER_BYTES)
                }
                None => {
                    Detection::Undecided(cut("file header", data.len(), Pcap::HEADER_BYTES as u64))
                }
            };
        }
        let [a, b, c, d] = magic;
        Detection::Unknown(format!(
            "not a capture: it begins with {a:02x} {b:02x} {c:02x} {d:02x}, which no known format does"
        ))
    }

    /// Finds the frames in `data`, which begins at the first byte not yet consumed.
    pub(crate) fn index(&mut self, data: &[u8], out: &mut Output<'_>) -> Indexed {
        match self {
            Self::Pcap(pcap) => pcap.index(data, out),
        }
    }
}

/// The message for a unit that the end of the file cuts.
pub(crate) fn cut(what: &str, have: usize, wanted: u64) -> String {
    format!("{what} cut: {have} of {wanted} bytes")
}
