//! The few forms of Protocol Buffers that OTLP needs (`protobuf.dev/programming-guides/encoding`).
//!
//! By hand: twelve messages, written only, do not need a generator and its run-time library.

/// A message that is being written: fields one after the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Message(pub(super) Vec<u8>);

/// Kinds of fields on the wire.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;

impl Message {
    fn varint(&mut self, mut value: u64) {
        loop {
            let low = value.to_le_bytes()[0] & 0x7f;
            value >>= 7;
            if value == 0 {
                return self.0.push(low);
            }
            self.0.push(low | 0x80);
        }
    }

    fn key(&mut self, field: u64, kind: u64) {
        self.varint(field << 3 | kind);
    }

    /// An enumeration, a truth value, or an integer that is not negative.
    pub(super) fn number(&mut self, field: u64, value: u64) {
        self.key(field, VARINT);
        self.varint(value);
    }

    /// `fixed64` or `sfixed64`.
    pub(super) fn fixed(&mut self, field: u64, value: u64) {
        self.key(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// `fixed32`.
    pub(super) fn fixed32(&mut self, field: u64, value: u32) {
        self.key(field, FIXED32);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn double(&mut self, field: u64, value: f64) {
        self.fixed(field, value.to_bits());
    }

    pub(super) fn bytes(&mut self, field: u64, value: &[u8]) {
        self.key(field, BYTES);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// Text; what is not UTF-8 is replaced, as a decoder would refuse the whole message.
    pub(super) fn text(&mut self, field: u64, value: &[u8]) {
        self.bytes(field, String::from_utf8_lossy(value).as_bytes());
    }

    /// A packed list of 64-bit values.
    pub(super) fn packed(&mut self, field: u64, values: impl ExactSizeIterator<Item = u64>) {
        self.key(field, BYTES);
        self.varint(8 * values.len() as u64);
        for value in values {
            self.0.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// A message in this one. It is written behind a gap that its length is then put into.
    pub(super) fn within(&mut self, field: u64, write: impl FnOnce(&mut Self)) {
        self.key(field, BYTES);
        let start = self.0.len();
        write(self);
        let length = (self.0.len() - start) as u64;
        let mut prefix = Self::default();
        prefix.varint(length);
        self.0.splice(start..start, prefix.0);
    }

    /// An attribute with a text (`KeyValue`, `AnyValue.string_value`).
    pub(super) fn attribute(&mut self, field: u64, key: &str, value: &[u8]) {
        self.within(field, |pair| {
            pair.text(1, key.as_bytes());
            pair.within(2, |any| any.text(1, value));
        });
    }

    /// An attribute with an integer (`AnyValue.int_value`).
    pub(super) fn integer(&mut self, field: u64, key: &str, value: u64) {
        self.within(field, |pair| {
            pair.text(1, key.as_bytes());
            pair.within(2, |any| any.number(3, value));
        });
    }
}

/// The first field of this number: its bytes, or its value; `None` where there is none or the message is malformed.
fn first_field(message: &[u8], wanted: u64) -> Option<(&[u8], u64)> {
    let mut rest = message;
    while !rest.is_empty() {
        let key = take_varint(&mut rest)?;
        let (bytes, number) = match key & 7 {
            VARINT => (&[][..], take_varint(&mut rest)?),
            BYTES => {
                let length = usize::try_from(take_varint(&mut rest)?).ok()?;
                let (bytes, after) = rest.split_at_checked(length)?;
                rest = after;
                (bytes, 0)
            }
            FIXED64 => (rest.split_off(..8)?, 0),
            FIXED32 => (rest.split_off(..4)?, 0),
            _ => return None,
        };
        if key >> 3 == wanted {
            return Some((bytes, number));
        }
    }
    None
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// How much a receiver says that it has refused of a message: `partial_success` of the responses.
pub(super) fn refused(response: &[u8]) -> u64 {
    let partial = first_field(response, 1).and_then(|(partial, _)| first_field(partial, 1));
    partial.map_or(0, |(_, number)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the encoding guide.
    #[test]
    fn the_examples_of_the_guide() {
        let mut message = Message::default();
        message.number(1, 150);
        message.text(2, b"testing");
        message.within(3, |inner| inner.number(1, 150));
        let want = [
            &[0x08, 0x96, 0x01][..],
            &[0x12, 0x07],
            b"testing",
            &[0x1a, 0x03, 0x08, 0x96, 0x01],
        ];
        assert_eq!(message.0, want.concat());
    }

    #[test]
    fn what_a_receiver_refuses() {
        let mut response = Message::default();
        response.within(1, |partial| {
            partial.text(2, b"too old");
            partial.fixed(9, 1);
            partial.number(1, 300);
        });
        assert_eq!(refused(&response.0), 300);
        assert_eq!(refused(&[]), 0);
        // Cut anywhere it is no panic.
        for end in 0..response.0.len() {
            assert!(refused(&response.0[..end]) <= 300);
        }
        assert_eq!(refused(&[0xff; 40]), 0);
    }
}
