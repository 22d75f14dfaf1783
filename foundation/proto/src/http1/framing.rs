//! The length of a body as RFC 9112 sec. 6.3 decides it, with its contradictions told.
//!
//! The [head parsers](super::parse_request) measure and take what they can get. Who decides what a
//! client will read must not: where two readings are possible, an attacker chooses the other one.

use super::{BodyLength, Field};

/// Why the end of a message cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FramingFault {
    /// `Content-Length` is not a number, or there are several different ones (sec. 6.3 rule 5).
    ContentLength,
    /// A request with a transfer coding whose last is not `chunked` (rule 4), or `chunked` twice
    /// (sec. 6.1).
    TransferEncoding,
    /// A request with `Content-Length` and `Transfer-Encoding` (rule 3): one that smuggles.
    Both,
    /// `Transfer-Encoding` in HTTP/1.0 (sec. 6.1).
    OldVersion,
    /// A length or transfer coding over several lines, or with white space before its colon:
    /// servers do not agree on whether to read it (sec. 5.1, 5.2).
    Disguised,
}

impl FramingFault {
    /// A short phrase for records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ContentLength => "Content-Length that contradicts",
            Self::TransferEncoding => "Transfer-Encoding that does not end in chunked",
            Self::Both => "both Content-Length and Transfer-Encoding",
            Self::OldVersion => "Transfer-Encoding in HTTP/1.0",
            Self::Disguised => "length in a folded or disguised field",
        }
    }
}

/// What one of the two fields says, all its lines together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Said<T> {
    #[default]
    Nothing,
    This(T),
    Nonsense,
}

/// The transfer codings so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Codings {
    is_last_chunked: bool,
    /// The one coding beside `chunked`.
    other: OtherCoding,
}

/// Transfer codings beside `chunked`: what is left to take off once the chunks are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OtherCoding {
    /// None.
    #[default]
    None,
    /// `gzip` or `x-gzip`.
    Gzip,
    /// `deflate`.
    Deflate,
    /// Another one, or several.
    Unknown,
}

/// What the fields of a head say of the length of its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Framing {
    length: Said<u64>,
    codings: Said<Codings>,
    is_disguised: bool,
    has_blank: bool,
}

impl Framing {
    /// Takes a field; says whether it was one of framing.
    pub fn add(&mut self, field: &Field<'_>) -> bool {
        if field.is(b"content-length") {
            self.length = length(self.length, field.value);
        } else if field.is(b"transfer-encoding") {
            self.codings = codings(self.codings, field.value);
        } else {
            return false;
        }
        self.is_disguised |= field.is_folded;
        self.has_blank |= field.has_blank_before_colon;
        true
    }

    /// The body of a request of HTTP/1.`minor`.
    ///
    /// # Errors
    /// Every contradiction: servers answer it with 400, or do not agree.
    pub fn request(&self, minor: u8) -> Result<BodyLength, FramingFault> {
        if self.is_disguised || self.has_blank {
            return Err(FramingFault::Disguised);
        }
        match (self.codings, self.length) {
            (Said::Nothing, Said::Nothing) => Ok(BodyLength::Known(0)),
            (Said::Nothing, Said::This(length)) => Ok(BodyLength::Known(length)),
            (Said::Nothing, Said::Nonsense) => Err(FramingFault::ContentLength),
            (_, Said::This(_) | Said::Nonsense) => Err(FramingFault::Both),
            _ if minor == 0 => Err(FramingFault::OldVersion),
            (Said::This(codings), _) if codings.is_last_chunked => Ok(BodyLength::Chunked),
            _ => Err(FramingFault::TransferEncoding),
        }
    }

    /// The body of a response of HTTP/1.`minor` that has one: not to `HEAD`, not 1xx, 204 or 304.
    ///
    /// A transfer coding overrides `Content-Length`, as clients read it. White space before the
    /// colon is removed (sec. 5.1).
    ///
    /// # Errors
    /// What a client must not read either.
    pub fn response(&self, minor: u8) -> Result<BodyLength, FramingFault> {
        if self.is_disguised {
            return Err(FramingFault::Disguised);
        }
        match (self.codings, self.length) {
            (Said::Nothing, Said::Nothing) => Ok(BodyLength::UntilClose),
            (Said::Nothing, Said::This(length)) => Ok(BodyLength::Known(length)),
            (Said::Nothing, Said::Nonsense) => Err(FramingFault::ContentLength),
            (Said::Nonsense, _) => Err(FramingFault::TransferEncoding),
            (Said::This(_), _) if minor == 0 => Err(FramingFault::OldVersion),
            (Said::This(codings), _) if codings.is_last_chunked => Ok(BodyLength::Chunked),
            (Said::This(_), _) => Ok(BodyLength::UntilClose),
        }
    }

    /// The transfer coding that is left once chunks are joined.
    #[must_use]
    pub const fn other_coding(&self) -> OtherCoding {
        match self.codings {
            Said::This(codings) => codings.other,
            Said::Nothing => OtherCoding::None,
            Said::Nonsense => OtherCoding::Unknown,
        }
    }
}

/// Adds a line of `Content-Length`: a number, or a list of equal ones (RFC 9110 sec. 8.6).
fn length(before: Said<u64>, value: &[u8]) -> Said<u64> {
    value
        .split(|&byte| byte == b',')
        .fold(before, |said, part| {
            match (said, decimal(part.trim_ascii())) {
                (Said::Nothing, Some(number)) => Said::This(number),
                (Said::This(other), Some(number)) if other == number => said,
                _ => Said::Nonsense,
            }
        })
}

/// Digits only; `None` where there is none, something else, or more than 64 bits.
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// Adds a line of `Transfer-Encoding`: codings in the order in which they were applied.
fn codings(before: Said<Codings>, value: &[u8]) -> Said<Codings> {
    let mut now = match before {
        Said::Nonsense => return before,
        Said::This(codings) => codings,
        Said::Nothing => Codings {
            is_last_chunked: false,
            other: OtherCoding::None,
        },
    };
    for part in value.split(|&byte| byte == b',') {
        let part = part.trim_ascii();
        if part.is_empty() {
            continue;
        }
        if now.is_last_chunked {
            // Nothing may be applied to chunks, least of all chunks.
            return Said::Nonsense;
        }
        if part.eq_ignore_ascii_case(b"chunked") {
            now.is_last_chunked = true;
            continue;
        }
        now.other = match (now.other, part) {
            (other, part) if part.eq_ignore_ascii_case(b"identity") => other,
            (OtherCoding::None, part)
                if part.eq_ignore_ascii_case(b"gzip") || part.eq_ignore_ascii_case(b"x-gzip") =>
            {
                OtherCoding::Gzip
            }
            (OtherCoding::None, part) if part.eq_ignore_ascii_case(b"deflate") => {
                OtherCoding::Deflate
            }
            _ => OtherCoding::Unknown,
        };
    }
    Said::This(now)
}

#[cfg(test)]
mod tests {
    use super::super::Fields;
    use super::*;

    fn framing(fields: &str) -> Framing {
        let mut framing = Framing::default();
        for field in Fields::of_section(format!("{fields}\r\n\r\n").as_bytes()) {
            framing.add(&field);
        }
        framing
    }

    #[test]
    fn what_a_request_may_say() {
        use FramingFault::{Both, ContentLength, Disguised, OldVersion, TransferEncoding};
        for (fields, want) in [
            ("Host: a", Ok(BodyLength::Known(0))),
            ("Content-Length: 7", Ok(BodyLength::Known(7))),
            (
                "Content-Length: 7\r\ncontent-length: 7",
                Ok(BodyLength::Known(7)),
            ),
            ("Content-Length: 7, 7", Ok(BodyLength::Known(7))),
            ("Content-Length: 7\r\nContent-Length: 8", Err(ContentLength)),
            ("Content-Length: 7, 8", Err(ContentLength)),
            ("Content-Length: +7", Err(ContentLength)),
            ("Content-Length: 0x7", Err(ContentLength)),
            ("Content-Length:", Err(ContentLength)),
            ("Content-Length: 18446744073709551616", Err(ContentLength)),
            ("Transfer-Encoding: Chunked", Ok(BodyLength::Chunked)),
            (
                "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
                Ok(BodyLength::Chunked),
            ),
            ("Transfer-Encoding: xchunked", Err(TransferEncoding)),
            ("Transfer-Encoding: chunked, gzip", Err(TransferEncoding)),
            ("Transfer-Encoding: chunked, chunked", Err(TransferEncoding)),
            ("Transfer-Encoding:", Err(TransferEncoding)),
            ("Transfer-Encoding: chunked\r\nContent-Length: 7", Err(Both)),
            ("Transfer-Encoding:\r\n chunked", Err(Disguised)),
            ("Transfer-Encoding : chunked", Err(Disguised)),
            ("Content-Length: 7\r\n 7", Err(Disguised)),
        ] {
            assert_eq!(framing(fields).request(1), want, "{fields}");
        }
        assert_eq!(
            framing("Transfer-Encoding: chunked").request(0),
            Err(OldVersion)
        );
    }

    #[test]
    fn a_response_is_read_as_clients_do() {
        use FramingFault::{ContentLength, Disguised, OldVersion, TransferEncoding};
        for (fields, want) in [
            ("Server: a", Ok(BodyLength::UntilClose)),
            ("Content-Length: 7", Ok(BodyLength::Known(7))),
            ("Content-Length : 7", Ok(BodyLength::Known(7))),
            ("Content-Length: 7\r\nContent-Length: 8", Err(ContentLength)),
            (
                "Transfer-Encoding: chunked\r\nContent-Length: 7",
                Ok(BodyLength::Chunked),
            ),
            (
                "Transfer-Encoding: chunked\r\nContent-Length: x",
                Ok(BodyLength::Chunked),
            ),
            (
                "Transfer-Encoding: xchunked\r\nContent-Length: 7",
                Ok(BodyLength::UntilClose),
            ),
            ("Transfer-Encoding: gzip", Ok(BodyLength::UntilClose)),
            ("Transfer-Encoding: chunked, chunked", Err(TransferEncoding)),
            ("Transfer-Encoding:\r\n\tchunked", Err(Disguised)),
        ] {
            assert_eq!(framing(fields).response(1), want, "{fields}");
        }
        assert_eq!(
            framing("Transfer-Encoding: chunked").response(0),
            Err(OldVersion)
        );
    }

    #[test]
    fn the_coding_beside_chunked() {
        for (value, want) in [
            ("chunked", OtherCoding::None),
            ("identity, chunked", OtherCoding::None),
            ("X-Gzip, chunked", OtherCoding::Gzip),
            ("deflate", OtherCoding::Deflate),
            ("deflate, gzip, chunked", OtherCoding::Unknown),
            ("br", OtherCoding::Unknown),
        ] {
            let framing = framing(&format!("Transfer-Encoding: {value}"));
            assert_eq!(framing.other_coding(), want, "{value}");
        }
    }
}
