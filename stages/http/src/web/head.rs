//! The fields of a header block that a record needs.

use linkweir_proto::http2::hpack::Field;
use linkweir_record::HeaderNames;

use crate::chosen::Chosen;

/// What is kept of one field: longer values are cut.
const MAX_TEXT: usize = 16 << 10;

/// What a block begins with: pseudo-header fields come first (RFC 9113 sec. 8.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum First {
    /// Nothing, or a field whose name is not known.
    #[default]
    Unknown,
    /// `:status`.
    Status,
    /// Any other.
    Other,
}

/// What a header block says; the buffers are used again.
#[derive(Debug, Default)]
pub(super) struct Head {
    /// Fields so far.
    count: u32,
    pub(super) first: First,
    pub(super) method: Vec<u8>,
    pub(super) path: Vec<u8>,
    pub(super) authority: Vec<u8>,
    pub(super) user_agent: Vec<u8>,
    pub(super) content_type: Vec<u8>,
    pub(super) content_encoding: Vec<u8>,
    /// Header fields that are kept.
    pub(super) chosen: Chosen,
    pub(super) status: Option<u16>,
    pub(super) grpc_status: Option<u32>,
    pub(super) grpc_timeout_ns: Option<u64>,
    /// Whether a field that is missing here may have been there.
    pub(super) is_partial: bool,
}

impl Head {
    pub(super) fn new(headers: &HeaderNames) -> Self {
        Self {
            chosen: Chosen::new(headers),
            ..Self::default()
        }
    }

    pub(super) fn clear(&mut self) {
        for text in [
            &mut self.method,
            &mut self.path,
            &mut self.authority,
            &mut self.user_agent,
            &mut self.content_type,
            &mut self.content_encoding,
        ] {
            text.clear();
        }
        self.chosen.forget();
        self.count = 0;
        self.first = First::Unknown;
        self.status = None;
        self.grpc_status = None;
        self.grpc_timeout_ns = None;
        self.is_partial = false;
    }

    /// Whether a field with this name says something: those of [`Head::take`].
    pub(super) fn wants(name: &[u8]) -> bool {
        // Most are not, and differ in their first bytes.
        match name {
            [b':', ..] | b"host" | b"user-agent" | b"content-type" | b"content-encoding" => true,
            [b'g', ..] => name.starts_with(b"grpc-"),
            [b't' | b'x', ..] => Chosen::is_always(name),
            _ => false,
        }
    }

    /// Which fields say something in this run.
    pub(super) fn wanted(&self) -> fn(&[u8]) -> bool {
        if self.chosen.is_empty() {
            Self::wants
        } else {
            |_| true
        }
    }

    /// Takes note of a field.
    pub(super) fn take(&mut self, field: Field<'_>) {
        if self.count == 0 {
            self.first = match field.name {
                None => First::Unknown,
                Some(b":status") => First::Status,
                Some(_) => First::Other,
            };
        }
        self.count += 1;
        let Some(name) = field.name else {
            self.is_partial = true;
            return;
        };
        if !self.chosen.is_empty() || Chosen::is_always(name) {
            let is_kept = self.chosen.take(name, field.value);
            self.is_partial |= is_kept && field.value.is_none();
        }
        let text = match name {
            b":method" => &mut self.method,
            b":path" => &mut self.path,
            b":authority" => &mut self.authority,
            // RFC 9113 sec. 8.3.1: what a gateway from HTTP/1.1 may send instead of an authority.
            b"host" if self.authority.is_empty() => &mut self.authority,
            b"user-agent" => &mut self.user_agent,
            b"content-type" => &mut self.content_type,
            b"content-encoding" => &mut self.content_encoding,
            b":status" => {
                self.status = field.value.and_then(status);
                self.is_partial |= field.value.is_none();
                return;
            }
            b"grpc-status" => {
                self.grpc_status = field.value.and_then(number);
                self.is_partial |= field.value.is_none();
                return;
            }
            b"grpc-timeout" => {
                self.grpc_timeout_ns = field.value.and_then(grpc_timeout);
                return;
            }
            _ => return,
        };
        let Some(value) = field.value else {
            self.is_partial = true;
            return;
        };
        text.clear();
        text.extend_from_slice(value.get(..MAX_TEXT).unwrap_or(value));
    }
}

fn number(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn status(text: &[u8]) -> Option<u16> {
    let code = number(text).filter(|_| text.len() == 3)?;
    u16::try_from(code).ok()
}

/// `grpc-timeout`: at most eight digits and a unit (`PROTOCOL-HTTP2.md` of gRPC).
fn grpc_timeout(text: &[u8]) -> Option<u64> {
    let (unit, digits) = text.split_last()?;
    let unit_ns: u64 = match unit {
        b'H' => 3_600_000_000_000,
        b'M' => 60_000_000_000,
        b'S' => 1_000_000_000,
        b'm' => 1_000_000,
        b'u' => 1_000,
        b'n' => 1,
        _ => return None,
    };
    let value = number(digits).filter(|_| digits.len() <= 8)?;
    u64::from(value).checked_mul(unit_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field<'a>(name: &'a str, value: &'a str) -> Field<'a> {
        Field {
            name: Some(name.as_bytes()),
            value: Some(value.as_bytes()),
        }
    }

    #[test]
    fn what_is_not_known_is_said() {
        let mut head = Head::default();
        head.take(field("cookie", "a"));
        head.take(Field {
            name: Some(b"accept"),
            value: None,
        });
        assert!(!head.is_partial, "nobody asked for these");
        head.take(Field {
            name: Some(b":path"),
            value: None,
        });
        assert!(head.is_partial);
        head.clear();
        head.take(Field::default());
        assert!(head.is_partial);
    }

    #[test]
    fn timeouts_and_codes() {
        assert_eq!(grpc_timeout(b"20S"), Some(20_000_000_000));
        assert_eq!(grpc_timeout(b"99999999H"), None, "beyond 64 bits");
        assert_eq!(grpc_timeout(b"5"), None);
        assert_eq!(grpc_timeout(b"+5S"), Some(5_000_000_000));
        assert_eq!(grpc_timeout(b"123456789n"), None);
        assert_eq!(status(b"200"), Some(200));
        assert_eq!(status(b"20"), None);
        let mut head = Head::default();
        head.take(field("host", "a"));
        head.take(field(":authority", "b"));
        head.take(field("host", "c"));
        assert_eq!(head.authority, b"b");
    }
}
