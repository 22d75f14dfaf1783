//! Messages of nfnetlink: how they are written and taken apart.
//!
//! Numbers of the head are in the machine's byte order, those of the packet filter's attributes in
//! network order.
//!
//! Source: netlink(7), `linux/netlink.h`, `linux/netfilter/nfnetlink.h`.

use std::io;
use std::time::Duration;

use linkweir_sys::netlink::NetfilterSocket;

/// `struct nlmsghdr`.
const HEAD_BYTES: usize = 16;
/// `struct nfgenmsg`: family, version, and a number whose meaning is that of the subsystem.
pub(crate) const GENERIC_BYTES: usize = 4;
/// `struct nlattr`.
const ATTRIBUTE_BYTES: usize = 4;

/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
/// `NLM_F_ACK`: the kernel answers even where nothing is wrong.
pub(crate) const ACKNOWLEDGE: u16 = 4;
/// `NLM_F_DUMP`.
pub(crate) const DUMP: u16 = 0x300;
/// `NLM_F_DUMP_INTR`: the table changed its shape during the dump.
pub(crate) const DUMP_INTERRUPTED: u16 = 0x10;
/// `NLMSG_ERROR`.
pub(crate) const ERROR: u16 = 2;
/// `NLMSG_DONE`.
pub(crate) const DONE: u16 = 3;
/// `NLA_F_NESTED`.
const NESTED: u16 = 0x8000;
/// `NLA_TYPE_MASK`: the bits of an attribute's type that number it.
const TYPE_MASK: u16 = 0x3fff;

/// What the head of a request says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    /// Number of the subsystem.
    pub(crate) subsystem: u8,
    /// Number of the message in the subsystem.
    pub(crate) message: u8,
    /// Flags beside `NLM_F_REQUEST`.
    pub(crate) flags: u16,
    /// Comes back in the answer.
    pub(crate) sequence: u32,
    /// Address family.
    pub(crate) family: u8,
    /// Of a packet queue its number.
    pub(crate) resource: u16,
}

/// Appends a message; `body` puts its attributes.
pub(crate) fn append(
    out: &mut Vec<u8>,
    request: Request,
    body: impl FnOnce(&mut AttributeWriter<'_>),
) {
    let start = out.len();
    let kind = (u16::from(request.subsystem) << 8) | u16::from(request.message);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(&(REQUEST | request.flags).to_ne_bytes());
    out.extend_from_slice(&request.sequence.to_ne_bytes());
    // Port 0: the kernel knows whom it has it from.
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&[request.family, 0]);
    out.extend_from_slice(&request.resource.to_be_bytes());
    body(&mut AttributeWriter { out });
    let len = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    if let Some(field) = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut::<4>) {
        *field = len.to_ne_bytes();
    }
}

/// Puts attributes into a message.
pub(crate) struct AttributeWriter<'a> {
    out: &'a mut Vec<u8>,
}

impl AttributeWriter<'_> {
    /// Puts an attribute. Those of the packet filter are short; one of 64 KiB cannot be said.
    #[inline]
    pub(crate) fn put(&mut self, kind: u16, value: &[u8]) {
        let len = u16::try_from(value.len() + ATTRIBUTE_BYTES).unwrap_or(u16::MAX);
        self.out.extend_from_slice(&len.to_ne_bytes());
        self.out.extend_from_slice(&kind.to_ne_bytes());
        self.out.extend_from_slice(value);
        let padding = value.len().next_multiple_of(4) - value.len();
        self.out.extend(std::iter::repeat_n(0, padding));
    }

    /// Puts an attribute whose value consists of attributes.
    pub(crate) fn put_nested(&mut self, kind: u16, attributes: &[u8]) {
        self.put(kind | NESTED, attributes);
    }
}

/// Something does not fit its own lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A message that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    /// Subsystem and number, or a number below 16 of netlink itself.
    pub(crate) kind: u16,
    /// Flags.
    pub(crate) flags: u16,
    /// That of the request it answers.
    pub(crate) sequence: u32,
    /// What follows the head.
    pub(crate) body: &'a [u8],
    /// Whether the message says that it is longer than what came.
    pub(crate) is_cut: bool,
}

impl<'a> Message<'a> {
    /// The attributes behind the generic head of the packet filter.
    pub(crate) fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.body.get(GENERIC_BYTES..).unwrap_or_default())
    }
}

/// The messages of a datagram; ends after one that is malformed.
#[derive(Debug, Clone)]
pub(crate) struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Messages<'a> {
    pub(crate) const fn new(datagram: &'a [u8]) -> Self {
        Self { rest: datagram }
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let message = std::mem::take(&mut self.rest);
        let Some((head, _)) = message.split_at_checked(HEAD_BYTES) else {
            return Some(Err(Malformed));
        };
        let (Some(len), Some(kind), Some(flags), Some(sequence)) = (
            u32_at(head, 0),
            u16_at(head, 4),
            u16_at(head, 6),
            u32_at(head, 8),
        ) else {
            return Some(Err(Malformed));
        };
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if len < HEAD_BYTES {
            return Some(Err(Malformed));
        }
        let end = len.min(message.len());
        let next = len.checked_next_multiple_of(4).unwrap_or(len);
        self.rest = message.get(next..).unwrap_or_default();
        Some(Ok(Message {
            kind,
            flags,
            sequence,
            body: message.get(HEAD_BYTES..end).unwrap_or_default(),
            is_cut: len > message.len(),
        }))
    }
}

/// Attributes: number and value; ends after one that is malformed.
#[derive(Debug, Clone)]
pub(crate) struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// Those of a message or, where attributes are nested, of a value.
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<(u16, &'a [u8]), Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let all = std::mem::take(&mut self.rest);
        let (Some(len), Some(kind)) = (u16_at(all, 0), u16_at(all, 2)) else {
            return Some(Err(Malformed));
        };
        let len = usize::from(len);
        let Some(value) = all.get(ATTRIBUTE_BYTES..len) else {
            return Some(Err(Malformed));
        };
        // The last one may go without padding.
        self.rest = all.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(Ok((kind & TYPE_MASK, value)))
    }
}

/// What the kernel says to a request: 0, or why not (`errno`); `None` in a message that says neither.
///
/// The words it can add to that (`NETLINK_EXT_ACK`) it has not for queues and connections.
pub(crate) fn acknowledgment(message: &Message<'_>) -> Option<i32> {
    if !matches!(message.kind, ERROR | DONE) {
        return None;
    }
    let code = u32_at(message.body, 0)?.cast_signed();
    Some(code.checked_neg().unwrap_or(i32::MAX))
}

/// Two bytes in the machine's order.
#[inline]
fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let field = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_ne_bytes(*field))
}

/// Four bytes in the machine's order.
#[inline]
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_ne_bytes(*field))
}

/// The value of an attribute that is a number of the packet filter: in network order.
#[inline]
pub(crate) fn number(value: &[u8]) -> Option<u32> {
    value
        .first_chunk::<4>()
        .map(|four| u32::from_be_bytes(*four))
}

/// How long the kernel may take for the next part of its table.
const PATIENCE: Duration = Duration::from_secs(10);
/// Enough for a part of the table, which the kernel limits to 32 KiB.
pub(crate) const BUFFER_BYTES: usize = 64 * 1024;

/// Why a table was not told to its end.
#[derive(Debug)]
pub(crate) enum DumpError<E> {
    /// The socket failed, or the kernel said nothing for ten seconds.
    Socket(io::Error),
    /// The kernel refused, with this `errno`.
    Refused(i32),
    /// Whoever read the parts.
    Reader(E),
}

/// Asks for a table; gives `on_part` every datagram of it. Returns whether the table stayed the same
/// meanwhile: if not, entries may be missing or there twice.
pub(crate) fn dump<E>(
    socket: &NetfilterSocket,
    request: &[u8],
    mut on_part: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<bool, DumpError<E>> {
    socket.send(request).map_err(DumpError::Socket)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut is_whole = true;
    loop {
        let part = socket
            .receive_one(&mut buffer, PATIENCE)
            .map_err(DumpError::Socket)?;
        let mut is_last = false;
        for message in Messages::new(part) {
            let Ok(message) = message else { break };
            is_whole &= message.flags & DUMP_INTERRUPTED == 0;
            if matches!(message.kind, ERROR | DONE) {
                match acknowledgment(&message) {
                    Some(code) if code != 0 => return Err(DumpError::Refused(code)),
                    _ => is_last |= message.kind == DONE,
                }
            }
        }
        on_part(part).map_err(DumpError::Reader)?;
        if is_last {
            return Ok(is_whole);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const QUESTION: Request = Request {
        subsystem: 3,
        message: 2,
        flags: ACKNOWLEDGE,
        sequence: 77,
        family: 10,
        resource: 0x1234,
    };

    fn written() -> Vec<u8> {
        let mut out = Vec::new();
        append(&mut out, QUESTION, |body| {
            body.put(1, b"abcde");
            let inner = [8, 0, 1, 0, 9, 9, 9, 9];
            body.put_nested(2, &inner);
        });
        append(&mut out, QUESTION, |_| {});
        out
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = written();
        // 16 + 4, the first attribute 4 + 5 + 3 of padding, the second 4 + 8; 16 + 4.
        assert_eq!(bytes.len(), 44 + 20);
        let messages: Vec<_> = Messages::new(&bytes).map(Result::unwrap).collect();
        assert_eq!(messages.len(), 2);
        let first = messages[0];
        assert_eq!((first.kind, first.flags), (0x0302, 5));
        assert_eq!((first.sequence, first.is_cut), (77, false));
        assert_eq!(first.body[..4], [10, 0, 0x12, 0x34]);
        let attributes: Vec<_> = first.attributes().map(Result::unwrap).collect();
        assert_eq!(attributes[0], (1, b"abcde".as_slice()));
        assert_eq!(attributes[1].0, 2, "without the flag of nesting");
        let inner: Vec<_> = Attributes {
            rest: attributes[1].1,
        }
        .collect();
        assert_eq!(inner, [Ok((1, [9; 4].as_slice()))]);
        assert_eq!(messages[1].attributes().count(), 0);
    }

    #[test]
    fn lengths_that_lie_end_the_walk() {
        let mut bytes = written();
        bytes[0] = 15;
        assert_eq!(
            Messages::new(&bytes).collect::<Vec<_>>(),
            [Err(Malformed)],
            "shorter than its own head"
        );
        bytes[..4].copy_from_slice(&u32::MAX.to_ne_bytes());
        let long: Vec<_> = Messages::new(&bytes).collect();
        assert_eq!(long.len(), 1);
        assert!(long[0].is_ok_and(|message| message.is_cut));
        for (value, wrong) in [
            ([3, 0, 1, 0].as_slice(), "shorter than its head"),
            (&[9, 0, 1, 0, 1, 2, 3, 4], "longer than what is there"),
            (&[8, 0, 1], "no head"),
        ] {
            let all: Vec<_> = Attributes { rest: value }.collect();
            assert_eq!(all, [Err(Malformed)], "{wrong}");
        }
        let unpadded: Vec<_> = Attributes {
            rest: &[5, 0, 1, 0, 7],
        }
        .collect();
        assert_eq!(unpadded, [Ok((1, [7].as_slice()))]);
    }

    #[test]
    fn a_refusal_has_a_code() {
        let message = |kind, body| Message {
            kind,
            flags: 0,
            sequence: 0,
            body,
            is_cut: false,
        };
        // The code, then the request that is refused, or its head.
        let mut body = (-16_i32).to_ne_bytes().to_vec();
        body.extend_from_slice(&written());
        assert_eq!(acknowledgment(&message(ERROR, &body)), Some(16));
        assert_eq!(acknowledgment(&message(DONE, &[0; 4])), Some(0));
        assert_eq!(acknowledgment(&message(ERROR, &body[..3])), None);
        assert_eq!(acknowledgment(&message(0x0300, &body)), None);
        let lowest = i32::MIN.to_ne_bytes();
        assert_eq!(acknowledgment(&message(ERROR, &lowest)), Some(i32::MAX));
    }

    proptest! {
        #[test]
        fn nothing_that_comes_in_breaks_it(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut taken = 0;
            for message in Messages::new(&bytes).flatten() {
                taken += message.body.len() + HEAD_BYTES;
                let values: usize = message.attributes().flatten().map(|(_, value)| value.len()).sum();
                prop_assert!(values <= message.body.len());
                prop_assert!(acknowledgment(&message) != Some(i32::MIN));
            }
            prop_assert!(taken <= bytes.len());
        }

        #[test]
        fn one_wrong_byte_breaks_nothing(at in 0_usize..64, value: u8) {
            let mut bytes = written();
            bytes[at] = value;
            for message in Messages::new(&bytes).flatten() {
                prop_assert!(message.body.len() <= bytes.len());
                prop_assert!(message.attributes().count() <= bytes.len() / 4);
            }
        }
    }
}
