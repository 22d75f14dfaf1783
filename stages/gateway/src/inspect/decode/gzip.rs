//! The header of a member of gzip (RFC 1952 sec. 2.3), byte by byte.

/// First byte of a member.
pub(super) const MAGIC_1: u8 = 0x1F;
/// Second byte of a member.
pub(super) const MAGIC_2: u8 = 0x8B;

const DEFLATE: u8 = 8;

/// Flags: which optional fields follow, in this order.
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;
const HAS_CHECKSUM: u8 = 2;
const RESERVED: u8 = 0xE0;

/// How far the header is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Header {
    flags: u8,
    at: At,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum At {
    #[default]
    Magic1,
    Magic2,
    Method,
    Flags,
    /// Time, extra flags, system: so many bytes are left.
    Fixed(u8),
    ExtraLength,
    ExtraLengthHigh(u8),
    Extra(u16),
    /// In a file name or comment, up to a zero byte, behind so many bytes.
    Name(u16),
    Comment(u16),
    Checksum(u8),
}

impl Header {
    /// A header whose magic bytes were seen.
    pub(super) const fn behind_magic() -> Self {
        Self {
            flags: 0,
            at: At::Method,
        }
    }

    /// Takes a byte: whether the header ends with it; `None` where it is none.
    pub(super) fn push(&mut self, byte: u8) -> Option<bool> {
        self.at = match self.at {
            At::Magic1 if byte == MAGIC_1 => At::Magic2,
            At::Magic2 if byte == MAGIC_2 => At::Method,
            At::Method if byte == DEFLATE => At::Flags,
            At::Flags if byte & RESERVED == 0 => {
                self.flags = byte;
                At::Fixed(6)
            }
            At::Magic1 | At::Magic2 | At::Method | At::Flags => return None,
            At::Fixed(left) if left > 1 => At::Fixed(left - 1),
            At::ExtraLength => At::ExtraLengthHigh(byte),
            At::ExtraLengthHigh(low) if [low, byte] != [0, 0] => {
                At::Extra(u16::from_le_bytes([low, byte]))
            }
            At::Extra(left) if left > 1 => At::Extra(left - 1),
            At::Name(passed) if byte != 0 => At::Name(longer(passed)?),
            At::Comment(passed) if byte != 0 => At::Comment(longer(passed)?),
            At::Checksum(left) if left > 1 => At::Checksum(left - 1),
            // A field has ended with this byte.
            At::Fixed(_)
            | At::ExtraLengthHigh(_)
            | At::Extra(_)
            | At::Name(_)
            | At::Comment(_)
            | At::Checksum(_) => match self.next_field() {
                Some(field) => field,
                None => return Some(true),
            },
        };
        Some(false)
    }

    /// The next optional field that the flags announce.
    fn next_field(&mut self) -> Option<At> {
        let fields = [
            (HAS_EXTRA, At::ExtraLength),
            (HAS_NAME, At::Name(0)),
            (HAS_COMMENT, At::Comment(0)),
            (HAS_CHECKSUM, At::Checksum(2)),
        ];
        let (flag, field) = fields
            .into_iter()
            .find(|(flag, _)| self.flags & flag != 0)?;
        self.flags &= !flag;
        Some(field)
    }
}

/// One byte more, within 64 KiB.
const fn longer(passed: u16) -> Option<u16> {
    passed.checked_add(1)
}
