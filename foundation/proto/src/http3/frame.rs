//! Frames (RFC 9114 sec. 7), and what a stream that goes in one direction is for (sec. 6.2).

use crate::tls::reader::Reader;

/// What a stream that only one side sends on is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Settings, and what concerns the whole connection.
    Control,
    /// A response that nobody asked for; its number in the other direction follows.
    Push,
    /// Insertions into the table of QPACK.
    Encoder,
    /// What became of them.
    Decoder,
    /// Something else, to be passed over.
    Other,
}

/// What the first bytes of a stream that goes in one direction say, and how many they are; `None` where they are not
/// all there.
#[must_use]
pub fn purpose(bytes: &[u8]) -> Option<(Purpose, usize)> {
    let mut reader = Reader::new(bytes);
    let purpose = match reader.varint()? {
        0 => Purpose::Control,
        1 => Purpose::Push,
        2 => Purpose::Encoder,
        3 => Purpose::Decoder,
        _ => Purpose::Other,
    };
    Some((purpose, bytes.len() - reader.rest().len()))
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Content.
    Data,
    /// A field section: that of a head or of trailers.
    Headers,
    /// Settings of the connection.
    Settings,
    /// The head of a request that the server makes itself.
    PushPromise,
    /// No further requests.
    Goaway,
    /// Something else, to be passed over.
    Other,
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// What it is.
    pub kind: Kind,
    /// Bytes of its content.
    pub len: u64,
}

impl FrameHeader {
    /// The most bytes that a header has.
    pub const MAX: usize = 16;

    /// The header at the start of `bytes`, and how many they are; `None` where they are not all there.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut reader = Reader::new(bytes);
        let kind = match reader.varint()? {
            0 => Kind::Data,
            1 => Kind::Headers,
            4 => Kind::Settings,
            5 => Kind::PushPromise,
            7 => Kind::Goaway,
            _ => Kind::Other,
        };
        let len = reader.varint()?;
        Some((Self { kind, len }, bytes.len() - reader.rest().len()))
    }
}

/// `SETTINGS_QPACK_MAX_TABLE_CAPACITY` (RFC 9204 sec. 5) among the settings of a frame; 0 where it is not there.
#[must_use]
pub fn table_capacity(settings: &[u8]) -> u64 {
    let mut reader = Reader::new(settings);
    let mut capacity = 0;
    while let (Some(name), Some(value)) = (reader.varint(), reader.varint()) {
        if name == 1 {
            capacity = value;
        }
    }
    capacity
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_purposes() {
        let (header, len) = FrameHeader::parse(&[1, 0x40, 0x64, 9]).unwrap();
        assert_eq!((header.kind, header.len, len), (Kind::Headers, 100, 3));
        assert_eq!(FrameHeader::parse(&[0, 0x40]), None);
        // A frame that is reserved to be passed over (RFC 9114 sec. 7.2.8).
        let (header, _) = FrameHeader::parse(&[0x40, 0x21, 0]).unwrap();
        assert_eq!(header.kind, Kind::Other);
        assert_eq!(purpose(&[2, 1]), Some((Purpose::Encoder, 1)));
        assert_eq!(purpose(&[0x40]), None);
    }

    #[test]
    fn the_capacity_among_settings() {
        assert_eq!(table_capacity(&[6, 0x44, 0, 1, 0x50, 0, 7, 16]), 4096);
        assert_eq!(table_capacity(&[6, 4]), 0);
        assert_eq!(table_capacity(&[1]), 0);
    }
}
