//! Handshake messages of one direction, gathered over records.

use linkweir_proto::tls::{MessageHeader, message_type};

/// The most that is kept of a message: hellos with post-quantum keys have some kilobytes.
const MAX_MESSAGE: usize = 1 << 16;

/// What was read of the message that is due.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// Header and body, as far as they are kept.
    bytes: Vec<u8>,
    /// Bytes of a message that is passed over.
    passed: u32,
}

/// Whether more than the kind of a message is of use.
const fn is_read(kind: u8) -> bool {
    matches!(
        kind,
        message_type::CLIENT_HELLO
            | message_type::SERVER_HELLO
            | message_type::ENCRYPTED_EXTENSIONS
            | message_type::KEY_UPDATE
    )
}

impl Messages {
    /// The next message that is complete in `rest`, of which what was read is taken away; of those that are passed over
    /// the header alone, as soon as it is there.
    pub(crate) fn next(&mut self, rest: &mut &[u8]) -> Option<Vec<u8>> {
        let behind = usize::try_from(self.passed).map_or(0, |passed| passed.min(rest.len()));
        self.passed -= u32::try_from(behind).unwrap_or(self.passed);
        *rest = rest.get(behind..).unwrap_or_default();
        self.take(rest, MessageHeader::LEN);
        let header = MessageHeader::parse(*self.bytes.first_chunk()?);
        let len = header.len as usize;
        if !is_read(header.kind) || len > MAX_MESSAGE {
            self.passed = header.len;
            return Some(std::mem::take(&mut self.bytes));
        }
        self.take(rest, MessageHeader::LEN + len);
        (self.bytes.len() == MessageHeader::LEN + len).then(|| std::mem::take(&mut self.bytes))
    }

    /// Takes of `rest` what is missing to `len` bytes.
    fn take(&mut self, rest: &mut &[u8], len: usize) {
        let missing = len.saturating_sub(self.bytes.len()).min(rest.len());
        let (taken, behind) = rest.split_at(missing);
        self.bytes.extend_from_slice(taken);
        *rest = behind;
    }

    /// Bytes are missing: where the next message begins is not known.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Bytes that are kept.
    pub(crate) const fn held(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, len: usize) -> Vec<u8> {
        let [.., a, b, c] = u32::try_from(len).unwrap().to_be_bytes();
        [[kind, a, b, c].as_slice(), &vec![kind; len]].concat()
    }

    #[test]
    fn messages_come_in_any_pieces() {
        let all = [
            message(message_type::CLIENT_HELLO, 40),
            message(message_type::CERTIFICATE, 30),
            message(message_type::FINISHED, 0),
            message(message_type::KEY_UPDATE, 1),
        ];
        let bytes = all.concat();
        for size in 1..=bytes.len() {
            let (mut messages, mut found) = (Messages::default(), Vec::new());
            for mut piece in bytes.chunks(size) {
                while let Some(message) = messages.next(&mut piece) {
                    found.push(message);
                }
            }
            // Of what nobody reads, the header.
            let [hello, certificate, finished, update] = &all;
            let expected = [hello, &certificate[..4], finished, update].map(<[u8]>::to_vec);
            assert_eq!(found, expected, "{size}");
        }
    }

    #[test]
    fn what_claims_to_be_huge_is_not_kept() {
        let mut messages = Messages::default();
        let mut rest: &[u8] = &[message_type::CLIENT_HELLO, 0xff, 0xff, 0xff, 1, 2, 3];
        assert_eq!(messages.next(&mut rest).map(|kept| kept.len()), Some(4));
        assert_eq!((messages.next(&mut rest), messages.held()), (None, 0));
    }
}
