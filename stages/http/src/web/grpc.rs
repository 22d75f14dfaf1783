//! Messages of a gRPC call in the content of its stream (`PROTOCOL-HTTP2.md` of gRPC).

use linkweir_record::Grpc;
use linkweir_wire::Side;

/// In front of each message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// What a call has come to.
#[derive(Debug, Default)]
pub(super) struct Call {
    sides: [Messages; 2],
    status: Option<u32>,
    pub(super) timeout_ns: Option<u64>,
    answered_ns: Option<[u64; 2]>,
}

/// The messages of one side.
#[derive(Debug, Default)]
struct Messages {
    prefix: [u8; PREFIX],
    had: usize,
    left: u32,
    count: u64,
    bytes: u64,
    /// Bytes in front of a message are missing: where the next begins is not known.
    is_lost: bool,
}

impl Messages {
    /// Content, of which `len` bytes were on the wire. Whether a message begins in it.
    fn take(&mut self, bytes: &[u8], len: u32) -> bool {
        let mut begins = false;
        let mut rest = bytes;
        let captured = u32::try_from(bytes.len()).unwrap_or(len);
        let mut missing = len.saturating_sub(captured);
        while !(self.is_lost || rest.is_empty() && missing == 0) {
            if self.left > 0 {
                let taken = rest.len().min(self.left as usize);
                let (_, behind) = rest.split_at(taken);
                rest = behind;
                self.left -= u32::try_from(taken).unwrap_or(self.left);
                if rest.is_empty() {
                    let of_this = missing.min(self.left);
                    self.left -= of_this;
                    missing -= of_this;
                }
                continue;
            }
            let Some((first, behind)) = rest.split_first() else {
                self.is_lost = true;
                break;
            };
            rest = behind;
            if let Some(place) = self.prefix.get_mut(self.had) {
                *place = *first;
            }
            begins |= self.had == 0;
            self.had += 1;
            if self.had == PREFIX {
                let [_, length @ ..] = self.prefix;
                self.left = u32::from_be_bytes(length);
                self.had = 0;
                self.count += 1;
                self.bytes += u64::from(self.left);
            }
        }
        begins
    }

    const fn counted(&self) -> Option<(u64, u64)> {
        if self.is_lost {
            None
        } else {
            Some((self.count, self.bytes))
        }
    }
}

impl Call {
    /// Content of one side; the request was seen at `from_ns`.
    pub(super) fn content(
        &mut self,
        side: Side,
        bytes: &[u8],
        len: u32,
        ts_ns: u64,
        from_ns: Option<u64>,
    ) {
        let [client, server] = &mut self.sides;
        if side == Side::Client {
            client.take(bytes, len);
        } else if server.take(bytes, len)
            && let Some(from_ns) = from_ns
        {
            let after = ts_ns.saturating_sub(from_ns);
            let [_, last] = self.answered_ns.get_or_insert([after; 2]);
            *last = after;
        }
    }

    pub(super) fn set_status(&mut self, status: u32) {
        self.status = Some(status);
    }

    /// The stream ends by an error: a client takes that for a status where there is none (the table under "Errors").
    pub(super) fn reset(&mut self, error: u32) {
        let status = match error {
            7 => 14,
            8 => 1,
            11 => 8,
            12 => 7,
            _ => 13,
        };
        self.status.get_or_insert(status);
    }

    pub(super) fn finish(&self) -> Grpc {
        let [client, server] = &self.sides;
        Grpc {
            status: self.status,
            messages: [client.counted(), server.counted()],
            timeout_ns: self.timeout_ns,
            answered_ns: self.answered_ns,
        }
    }
}

/// Whether a content type is one of gRPC.
pub(super) fn is_grpc(content_type: &[u8]) -> bool {
    let rest = content_type.strip_prefix(b"application/grpc");
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[u8] = &[0, 0, 0, 0, 2, 7, 7, 0, 0, 0, 0, 0];

    #[test]
    fn messages_know_nothing_of_frames() {
        for size in 1..TWO.len() {
            let mut messages = Messages::default();
            let begun = TWO
                .chunks(size)
                .filter(|part| messages.take(part, u32::try_from(part.len()).unwrap()));
            assert!(begun.count() > 0);
            assert_eq!(messages.counted(), Some((2, 2)), "{size}");
        }
    }

    #[test]
    fn a_message_may_be_missing_but_not_what_stands_in_front() {
        let mut messages = Messages::default();
        messages.take(&TWO[..5], 7);
        messages.take(&TWO[7..], 5);
        assert_eq!(messages.counted(), Some((2, 2)));
        messages.take(&[], 1);
        assert_eq!(messages.counted(), None);
        messages.take(TWO, 12);
        assert_eq!(messages.counted(), None);
    }

    #[test]
    fn content_types() {
        assert!(is_grpc(b"application/grpc") && is_grpc(b"application/grpc+proto"));
        assert!(!is_grpc(b"application/grpc-web") && !is_grpc(b"application/json"));
    }
}
