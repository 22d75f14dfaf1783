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
    /// A transfer coding other than `chunked`, or a known one and then `chunked` (rule 4, sec. 6.1).
    TransferEncoding,
    /// A request with `Content-Length` and `Transfer-Encoding` (rule 3): one that smuggles.
    Both,
    /// `Transfer-Encoding` in HTTP/1.0 (sec. 6.1).
    OldVersion,
    /// A length or transfer coding over several lines, or with white space before its colon, or a transfer coding with
    /// white space behind it: servers and clients do not agree on whether to read it (sec. 5.1, 5.2).
    Disguised,
}

impl FramingFault {
    /// A short phrase for records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ContentLength => "Content-Length that contradicts",
            Self::TransferEncoding => "Transfer-Encoding that is not chunked",
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
}

/// What the fields of a head say of the length of its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Framing {
    length: Said<u64>,
    codings: Said<OtherCoding>,
    is_disguised: bool,
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
        let is_coding = self.codings != Said::Nothing;
        self.is_disguised |=
            field.is_folded || field.has_blank_before_colon || is_coding && field.has_odd_blank;
        true
    }

    /// The body of a request of HTTP/1.`minor`.
    ///
    /// # Errors
    /// Every contradiction: servers answer it with 400, or do not agree.
    pub fn request(&self, minor: u8) -> Result<BodyLength, FramingFault> {
        if self.is_disguised {
            return Err(FramingFault::Disguised);
        }
        match (self.codings, self.length) {
            (Said::Nothing, Said::Nothing) => Ok(BodyLength::Known(0)),
            (Said::Nothing, Said::This(length)) => Ok(BodyLength::Known(length)),
            (Said::Nothing, Said::Nonsense) => Err(FramingFault::ContentLength),
            (_, Said::This(_) | Said::Nonsense) => Err(FramingFault::Both),
            _ if minor == 0 => Err(FramingFault::OldVersion),
            (Said::This(_), _) => Ok(BodyLength::Chunked),
            _ => Err(FramingFault::TransferEncoding),
        }
    }

    /// The body of a response of HTTP/1.`minor` that has one: not to `HEAD`, not 1xx, 204 or 304.
    ///
    /// A transfer coding overrides `Content-Length`, as clients read it.
    ///
    /// # Errors
    /// What a client must not read either, and what clients read in different ways.
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
            (Said::This(_), _) => Ok(BodyLength::Chunked),
        }
    }

    /// Whether a length and a transfer coding are there: by RFC 9112 sec. 6.3 the coding counts, to some clients the
    /// length.
    #[must_use]
    pub fn has_both(&self) -> bool {
        self.codings != Said::Nothing && self.length != Said::Nothing
    }

    /// The transfer coding that is left once chunks are joined.
    #[must_use]
    pub const fn other_coding(&self) -> OtherCoding {
        match self.codings {
            Said::This(other) => other,
            Said::Nothing | Said::Nonsense => OtherCoding::None,
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

/// Takes the field `Transfer-Encoding`: `chunked`, or one other known coding and then `chunked`. Of anything
/// else some clients make something and others nothing; a second field too.
fn codings(before: Said<OtherCoding>, value: &[u8]) -> Said<OtherCoding> {
    if before != Said::Nothing {
        return Said::Nonsense;
    }
    let mut parts = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    let is =
        |part: Option<&[u8]>, name: &[u8]| part.is_some_and(|part| part.eq_ignore_ascii_case(name));
    let first = parts.next();
    let other = if is(first, b"chunked") {
        OtherCoding::None
    } else if is(first, b"gzip") || is(first, b"x-gzip") {
        OtherCoding::Gzip
    } else if is(first, b"deflate") {
        OtherCoding::Deflate
    } else {
        return Said::Nonsense;
    };
    let is_chunked = other == OtherCoding::None || is(parts.next(), b"chunked");
    if is_chunked && parts.next().is_none() {
        Said::This(other)
    } else {
        Said::Nonsense
    }
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
            ("Transfer-Encoding: gzip, chunked", Ok(BodyLength::Chunked)),
            (
                "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
                Err(TransferEncoding),
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
    fn a_response_that_clients_read_in_different_ways_is_not_read() {
        use FramingFault::{ContentLength, Disguised, OldVersion, TransferEncoding};
        for (fields, want) in [
            ("Server: a", Ok(BodyLength::UntilClose)),
            ("Content-Length: 7", Ok(BodyLength::Known(7))),
            ("Content-Length : 7", Err(Disguised)),
            ("Transfer-Encoding : chunked", Err(Disguised)),
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
                Err(TransferEncoding),
            ),
            ("Transfer-Encoding: gzip", Err(TransferEncoding)),
            ("Transfer-Encoding: chunked,", Err(TransferEncoding)),
            ("Transfer-Encoding: ,chunked", Err(TransferEncoding)),
            (
                "Transfer-Encoding: identity, chunked",
                Err(TransferEncoding),
            ),
            ("Transfer-Encoding: br, chunked", Err(TransferEncoding)),
            (
                "Transfer-Encoding: deflate, gzip, chunked",
                Err(TransferEncoding),
            ),
            (
                "Transfer-Encoding:\r\nTransfer-Encoding: chunked",
                Err(TransferEncoding),
            ),
            ("Transfer-Encoding: gzip, chunked", Ok(BodyLength::Chunked)),
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
            ("X-Gzip, chunked", OtherCoding::Gzip),
            ("deflate,Chunked", OtherCoding::Deflate),
        ] {
            let framing = framing(&format!("Transfer-Encoding: {value}"));
            assert_eq!(framing.other_coding(), want, "{value}");
        }
    }
}
