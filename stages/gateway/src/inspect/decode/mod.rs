//! Content codings taken off, within bounds.

mod gzip;

use flate2::{Decompress, FlushDecompress, Status};
use gzip::Header;

/// How much a coded body may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeLimit {
    /// Decoded bytes in all.
    pub total: u64,
    /// Decoded bytes for each coded one, once [`DecodeLimit::FREE`] bytes have come out. Deflate can
    /// reach 1032, text seldom 20.
    pub ratio: u32,
}

impl DecodeLimit {
    /// Decoded bytes for which the ratio does not count: small pages of blanks are no bombs.
    pub const FREE: u64 = 256 * 1024;
}

impl Default for DecodeLimit {
    /// 64 MiB, and 200 for one.
    fn default() -> Self {
        Self {
            total: 64 * 1024 * 1024,
            ratio: 200,
        }
    }
}

/// Why a body cannot be decoded any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// It is not of its coding.
    Malformed,
    /// It needs an unknown dictionary (RFC 1950 sec. 2.2).
    Dictionary,
    /// It is longer than [`DecodeLimit::total`].
    TooLong,
    /// It grows by more than [`DecodeLimit::ratio`].
    Bomb,
}

impl DecodeError {
    /// A short phrase for records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "body that is not of its coding",
            Self::Dictionary => "body that needs a dictionary",
            Self::TooLong => "decoded body beyond its bound",
            Self::Bomb => "body that grows beyond its bound",
        }
    }
}

/// Decoded bytes are given in pieces of at most so many.
const PIECE: usize = 8 * 1024;

/// Takes a [`Coding`] off a stream that comes in pieces.
///
/// Memory: some 48 KiB while a coded stream is decoded, none for [`Coding::Identity`] and
/// [`Coding::Other`], whose bytes go through as they are. Checksums are not compared: clients show what
/// they have decoded before they see one.
#[derive(Debug)]
pub struct Decoder {
    inflate: Option<Inflate>,
    limit: DecodeLimit,
    /// Coded bytes read, decoded bytes given.
    taken: u64,
    given: u64,
    failed: Option<DecodeError>,
}

#[derive(Debug)]
struct Inflate {
    state: State,
    machine: Decompress,
}

/// Where in the coded stream the next byte is.
#[derive(Debug)]
enum State {
    /// In the header of a member of gzip.
    Gzip(Header),
    /// Before the first byte of zlib or raw deflate.
    Zlib,
    /// Behind the first byte, which alone does not tell.
    ZlibOrRaw(u8),
    /// In compressed data; whether a member's trailer follows.
    Data { is_gzip: bool },
    /// In the trailer of a member: so many bytes are left.
    Trailer(u8),
    /// Behind a member: another one, or garbage.
    NextMember,
    /// Behind the first magic byte of another one.
    Magic,
    /// Behind the end. Browsers pass over what is there.
    End,
}

/// CRC-32 and length (RFC 1952 sec. 2.3.1).
const TRAILER: u8 = 8;

impl Decoder {
    /// A decoder for one body.
    #[must_use]
    pub fn new(coding: Coding, limit: DecodeLimit) -> Self {
        let state = match coding {
            Coding::Identity | Coding::Other => None,
            Coding::Gzip => Some(State::Gzip(Header::default())),
            Coding::Deflate => Some(State::Zlib),
        };
        Self {
            // Headers are read here: the machine sees raw deflate only.
            inflate: state.map(|state| Inflate {
                state,
                machine: Decompress::new(false),
            }),
            limit,
            taken: 0,
            given: 0,
            failed: None,
        }
    }

    /// Decodes the next bytes of the body; `out` gets what comes out, in pieces of at most 8 KiB.
    ///
    /// # Errors
    /// The body is not of its coding, or a bound is reached; so is every later call. What came out
    /// before has been given.
    pub fn push(&mut self, bytes: &[u8], out: &mut impl FnMut(&[u8])) -> Result<(), DecodeError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let Some(mut inflate) = self.inflate.take() else {
            self.taken += bytes.len() as u64;
            return self.give(bytes, out);
        };
        let mut rest = bytes;
        let mut result = Ok(());
        while result.is_ok() && !rest.is_empty() {
            result = self.step(&mut inflate, &mut rest, out);
        }
        self.inflate = Some(inflate);
        self.failed = result.err();
        result
    }

    /// Whether the coded stream has ended where one of its ends may be. Bodies without coding have
    /// no end of their own: always.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        let state = self.inflate.as_ref().map(|inflate| &inflate.state);
        match state {
            None | Some(State::End | State::NextMember | State::Magic) => self.failed.is_none(),
            _ => false,
        }
    }

    /// Decoded bytes so far.
    #[must_use]
    pub const fn decoded_bytes(&self) -> u64 {
        self.given
    }

    fn step(
        &mut self,
        inflate: &mut Inflate,
        rest: &mut &[u8],
        out: &mut impl FnMut(&[u8]),
    ) -> Result<(), DecodeError> {
        let Inflate { state, machine } = inflate;
        if let State::Data { is_gzip } = *state {
            return self.data(inflate, is_gzip, rest, out);
        }
        let Some((&byte, after)) = rest.split_first() else {
            return Ok(());
        };
        *rest = after;
        self.taken += 1;
        match state {
            State::Gzip(header) => {
                if header.push(byte).ok_or(DecodeError::Malformed)? {
                    *state = State::Data { is_gzip: true };
                }
            }
            State::Zlib => *state = State::ZlibOrRaw(byte),
            State::ZlibOrRaw(first) => {
                let header = [*first, byte];
                *state = State::Data { is_gzip: false };
                if is_zlib(header) {
                    if byte & 0x20 != 0 {
                        return Err(DecodeError::Dictionary);
                    }
                } else {
                    self.taken -= header.len() as u64;
                    return self.data(inflate, false, &mut &header[..], out);
                }
            }
            State::Trailer(1) => *state = State::NextMember,
            State::Trailer(left) => *left -= 1,
            State::NextMember if byte == gzip::MAGIC_1 => *state = State::Magic,
            State::Magic if byte == gzip::MAGIC_2 => {
                machine.reset(false);
                *state = State::Gzip(Header::behind_magic());
            }
            State::NextMember | State::Magic | State::End | State::Data { .. } => {
                *state = State::End;
                *rest = &[];
            }
        }
        Ok(())
    }

    /// Inflates until the bytes are used up or the deflate stream ends.
    fn data(
        &mut self,
        inflate: &mut Inflate,
        is_gzip: bool,
        rest: &mut &[u8],
        out: &mut impl FnMut(&[u8]),
    ) -> Result<(), DecodeError> {
        let machine = &mut inflate.machine;
        let mut piece = [0; PIECE];
        loop {
            let (before_in, before_out) = (machine.total_in(), machine.total_out());
            let status = machine.decompress(rest, &mut piece, FlushDecompress::None);
            let used = distance(before_in, machine.total_in());
            let made = distance(before_out, machine.total_out());
            self.taken += used as u64;
            *rest = rest.get(used..).unwrap_or_default();
            // What came out in front of a fault is shown by clients: it counts.
            self.give(piece.get(..made).unwrap_or_default(), out)?;
            if status.map_err(|_| DecodeError::Malformed)? == Status::StreamEnd {
                inflate.state = if is_gzip {
                    State::Trailer(TRAILER)
                } else {
                    State::End
                };
                return Ok(());
            }
            if used == 0 && made == 0 && !rest.is_empty() {
                return Err(DecodeError::Malformed);
            }
            // A full piece may leave more inside the machine.
            if made < PIECE && rest.is_empty() {
                return Ok(());
            }
        }
    }

    /// Gives decoded bytes, as many as the bounds allow.
    fn give(&mut self, bytes: &[u8], out: &mut impl FnMut(&[u8])) -> Result<(), DecodeError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let by_ratio = self.taken.saturating_mul(u64::from(self.limit.ratio));
        let by_ratio = by_ratio.max(DecodeLimit::FREE);
        let (bound, error) = if by_ratio < self.limit.total {
            (by_ratio, DecodeError::Bomb)
        } else {
            (self.limit.total, DecodeError::TooLong)
        };
        let room = usize::try_from(bound.saturating_sub(self.given)).unwrap_or(usize::MAX);
        let fits = bytes.get(..room).unwrap_or(bytes);
        self.given += fits.len() as u64;
        if !fits.is_empty() {
            out(fits);
        }
        if fits.len() < bytes.len() {
            self.failed = Some(error);
            return Err(error);
        }
        Ok(())
    }
}

/// Whether two bytes are the header of zlib: deflate, a window of at most 32 KiB, a multiple of 31.
fn is_zlib([method, flags]: [u8; 2]) -> bool {
    method & 0x0F == 8 && method >> 4 <= 7 && u16::from_be_bytes([method, flags]).is_multiple_of(31)
}

fn distance(before: u64, after: u64) -> usize {
    usize::try_from(after.saturating_sub(before)).unwrap_or(usize::MAX)
}

// Names of content codings.

/// How the bytes of a file are coded (RFC 9110 sec. 8.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Coding {
    /// Not at all.
    #[default]
    Identity,
    /// `gzip`, `x-gzip` (RFC 1952).
    Gzip,
    /// `deflate`: zlib (RFC 1950), or raw deflate as some servers send it.
    Deflate,
    /// One that is not taken off: `br`, `zstd`, several one after the other.
    Other,
}

impl Coding {
    /// The coding that a `Content-Encoding` value names, or a list of one.
    #[must_use]
    pub fn of(value: &[u8]) -> Self {
        value
            .split(|&byte| byte == b',')
            .fold(Self::Identity, |before, name| {
                before.then(Self::of_name(name.trim_ascii()))
            })
    }

    /// This coding, and then another over it.
    #[must_use]
    pub const fn then(self, next: Self) -> Self {
        match (self, next) {
            (Self::Identity, other) | (other, Self::Identity) => other,
            _ => Self::Other,
        }
    }

    fn of_name(name: &[u8]) -> Self {
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        if name.is_empty() || is(b"identity") {
            Self::Identity
        } else if is(b"gzip") || is(b"x-gzip") {
            Self::Gzip
        } else if is(b"deflate") {
            Self::Deflate
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests;
