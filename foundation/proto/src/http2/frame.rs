//! Frames (RFC 9113 sec. 4.1 and 6).

/// Bytes of the header of a frame.
pub const HEADER: usize = 9;
/// The longest payload before anybody allows more (RFC 9113 sec. 4.2).
pub const DEFAULT_LENGTH: u32 = 16_384;

/// What a frame is (RFC 9113 sec. 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Content of a message.
    Data,
    /// The fields of a message, or the first part of them.
    Headers,
    /// Order among streams: deprecated.
    Priority,
    /// The end of a stream by an error.
    RstStream,
    /// Parameters of the connection.
    Settings,
    /// A request that the server answers without being asked.
    PushPromise,
    /// A measurement of the round trip.
    Ping,
    /// The end of the connection.
    GoAway,
    /// How much more may be sent.
    WindowUpdate,
    /// More of the fields of the frame before it.
    Continuation,
    /// One of an extension: it is passed over (RFC 9113 sec. 5.5).
    Other(u8),
}

/// Bits of [`FrameHeader::flags`].
pub mod flag {
    /// DATA, HEADERS: the last frame of its stream in this direction.
    pub const END_STREAM: u8 = 0x1;
    /// SETTINGS, PING: an answer.
    pub const ACK: u8 = 0x1;
    /// HEADERS, `PUSH_PROMISE`, CONTINUATION: the fields are complete.
    pub const END_HEADERS: u8 = 0x4;
    /// DATA, HEADERS, `PUSH_PROMISE`: there is padding.
    pub const PADDED: u8 = 0x8;
    /// HEADERS: a priority stands before the fields.
    pub const PRIORITY: u8 = 0x20;
}

/// The nine bytes in front of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of the payload.
    pub length: u32,
    /// What it is.
    pub kind: Kind,
    /// See [`flag`]; what a bit means depends on the kind.
    pub flags: u8,
    /// The stream; 0 is the connection.
    pub stream: u32,
}

impl FrameHeader {
    /// Reads the bytes in front of a payload.
    #[inline]
    #[must_use]
    pub const fn parse(bytes: &[u8; HEADER]) -> Self {
        let [a, b, c, kind, flags, s, t, u, v] = *bytes;
        Self {
            length: u32::from_be_bytes([0, a, b, c]),
            kind: match kind {
                0 => Kind::Data,
                1 => Kind::Headers,
                2 => Kind::Priority,
                3 => Kind::RstStream,
                4 => Kind::Settings,
                5 => Kind::PushPromise,
                6 => Kind::Ping,
                7 => Kind::GoAway,
                8 => Kind::WindowUpdate,
                9 => Kind::Continuation,
                other => Kind::Other(other),
            },
            flags,
            // The first bit is reserved and ignored.
            stream: u32::from_be_bytes([s & 0x7F, t, u, v]),
        }
    }

    /// Whether a bit of [`flag`] is set.
    #[inline]
    #[must_use]
    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Whether a receiver would take it: its length and its stream are possible for its kind (RFC 9113 sec. 6).
    ///
    /// A weak sign: of nine bytes by chance one in some hundreds passes. A chain of three is a strong one.
    #[must_use]
    pub const fn is_valid(&self, most: u32) -> bool {
        let of_connection = self.stream == 0;
        let fits = match self.kind {
            Kind::Data | Kind::Continuation => !of_connection,
            Kind::Headers => {
                let least = self.has(flag::PADDED) as u32 + 5 * self.has(flag::PRIORITY) as u32;
                !of_connection && self.length >= least
            }
            Kind::Priority => !of_connection && self.length == 5,
            Kind::RstStream => !of_connection && self.length == 4,
            Kind::Settings if self.has(flag::ACK) => of_connection && self.length == 0,
            Kind::Settings => of_connection && self.length.is_multiple_of(6),
            Kind::PushPromise => !of_connection && self.length >= 4,
            Kind::Ping => of_connection && self.length == 8,
            Kind::GoAway => of_connection && self.length >= 8,
            Kind::WindowUpdate => self.length == 4,
            Kind::Other(_) => true,
        };
        fits && self.length <= most
    }
}

/// The part of a payload that is content or a header block: without padding, priority and promised stream.
/// `None` where they do not fit (RFC 9113 sec. 6.1, 6.2, 6.6).
#[must_use]
pub fn content<'a>(header: &FrameHeader, payload: &'a [u8]) -> Option<&'a [u8]> {
    let (mut rest, mut padding) = (payload, 0);
    let may_be_padded = matches!(header.kind, Kind::Data | Kind::Headers | Kind::PushPromise);
    if may_be_padded && header.has(flag::PADDED) {
        let (first, behind) = rest.split_first()?;
        (rest, padding) = (behind, usize::from(*first));
    }
    let front = match header.kind {
        Kind::Headers if header.has(flag::PRIORITY) => 5,
        Kind::PushPromise => 4,
        _ => 0,
    };
    let rest = rest.get(front..)?;
    rest.get(..rest.len().checked_sub(padding)?)
}

/// The stream that a `PUSH_PROMISE` opens.
#[must_use]
pub fn promised(header: &FrameHeader, payload: &[u8]) -> Option<u32> {
    let at = usize::from(header.has(flag::PADDED));
    let bytes = payload.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*bytes) & 0x7FFF_FFFF)
}

/// A number in the payload: the error code of `RST_STREAM`, or of the last stream and the error code of GOAWAY the
/// first.
#[must_use]
pub fn number(payload: &[u8]) -> Option<u32> {
    payload.first_chunk().copied().map(u32::from_be_bytes)
}

/// The parameters of SETTINGS: identifier, value (RFC 9113 sec. 6.5.1).
pub fn settings(payload: &[u8]) -> impl Iterator<Item = (u16, u32)> {
    let all = payload.as_chunks::<6>().0.iter();
    all.map(|&[a, b, c, d, e, f]| (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(length: u32, kind: u8, flags: u8, stream: u32) -> FrameHeader {
        let [_, a, b, c] = length.to_be_bytes();
        let [s, t, u, v] = stream.to_be_bytes();
        FrameHeader::parse(&[a, b, c, kind, flags, s, t, u, v])
    }

    #[test]
    fn headers_are_read_and_judged() {
        let headers = frame(0x01_0203, 1, 0x25, 0x8000_0005);
        assert_eq!(
            headers,
            FrameHeader {
                length: 0x01_0203,
                kind: Kind::Headers,
                flags: 0x25,
                stream: 5
            }
        );
        assert!(headers.has(flag::END_STREAM) && headers.has(flag::PRIORITY));
        assert!(!headers.has(flag::PADDED));
        let valid = [
            (0, 0, 0, 1),
            (5, 1, 0x20, 1),
            (5, 2, 0, 3),
            (4, 3, 0, 1),
            (0, 4, 1, 0),
            (18, 4, 0, 0),
            (4, 5, 0, 1),
            (8, 6, 0, 0),
            (12, 7, 0, 0),
            (4, 8, 0, 0),
            (4, 8, 0, 7),
            (0, 9, 0, 1),
            (3, 10, 0, 0),
        ];
        for (length, kind, flags, stream) in valid {
            assert!(
                frame(length, kind, flags, stream).is_valid(DEFAULT_LENGTH),
                "{kind}"
            );
        }
        let invalid = [
            (0, 0, 0, 0),
            (4, 1, 0x20, 1),
            (0, 1, 8, 1),
            (4, 2, 0, 3),
            (5, 3, 0, 1),
            (6, 4, 1, 0),
            (5, 4, 0, 0),
            (6, 4, 0, 1),
            (3, 5, 0, 1),
            (8, 6, 0, 1),
            (7, 7, 0, 0),
            (5, 8, 0, 0),
            (0, 9, 0, 0),
            (DEFAULT_LENGTH + 1, 0, 0, 1),
        ];
        for (length, kind, flags, stream) in invalid {
            assert!(
                !frame(length, kind, flags, stream).is_valid(DEFAULT_LENGTH),
                "{kind}"
            );
        }
    }

    #[test]
    fn what_stands_around_a_block_is_taken_off() {
        let cut = |kind, flags, payload| content(&frame(0, kind, flags, 1), payload);
        assert_eq!(cut(1, 0, b"block"), Some(&b"block"[..]));
        assert_eq!(cut(1, 0x28, b"\x02.....blockPP"), Some(&b"block"[..]));
        assert_eq!(cut(0, 8, b"\x03data..."), Some(&b"data"[..]));
        assert_eq!(cut(0, 8, b"\x04data"), Some(&b""[..]));
        assert_eq!(cut(5, 8, b"\x01\0\0\0\x02block."), Some(&b"block"[..]));
        // The same bit means nothing in a CONTINUATION.
        assert_eq!(cut(9, 8, b"\x01block"), Some(&b"\x01block"[..]));
        for (kind, flags, payload) in [
            (0, 8, &b""[..]),
            (0, 8, b"\x05data"),
            (1, 0x20, b"...."),
            (1, 0x28, b"\x01....."),
            (5, 0, b"\0\0\0"),
        ] {
            assert_eq!(cut(kind, flags, payload), None, "{kind}");
        }
        assert_eq!(
            promised(&frame(0, 5, 8, 1), b"\x01\x80\0\0\x02block."),
            Some(2)
        );
        assert_eq!(promised(&frame(0, 5, 0, 1), b"\0\0\0\x04"), Some(4));
        assert_eq!(number(b"\0\0\0\x08"), Some(8));
        assert_eq!(number(b"\0\0\x08"), None);
        let all: Vec<(u16, u32)> = settings(b"\0\x01\0\0\x10\0\0\x03\0\0\0\x64\0").collect();
        assert_eq!(all, [(1, 4096), (3, 100)]);
    }
}
