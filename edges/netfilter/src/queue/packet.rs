//! Packets as the kernel describes them (`NFQNL_MSG_PACKET`), verdicts as it reads them (`NFQNL_MSG_VERDICT`).
//!
//! Source: `linux/netfilter/nfnetlink_queue.h`.

use linkweir_engine::{Answer, QueuedPacket, Verdict};

use crate::message::{Message, Request, append, number};
use crate::queue::SUBSYSTEM;

/// `NFQA_PACKET_HDR`: the packet's number, the protocol, the hook.
const HEADER: u16 = 1;
/// `NFQA_MARK`: absent where it is 0.
const MARK: u16 = 3;
/// `NFQA_PAYLOAD`.
const PAYLOAD: u16 = 10;
/// `NFQA_CAP_LEN`: absent where all of the packet is there.
const LENGTH: u16 = 13;
/// `NFQA_SKB_INFO`.
const STATE: u16 = 14;
/// `NFQA_SKB_CSUMNOTREADY`: the checksum is not yet filled in; a local sender leaves that to the
/// hardware.
const CHECKSUM_UNFILLED: u32 = 1;
/// `NFQA_SKB_CSUM_NOTVERIFIED`: nobody has looked at the checksum.
const CHECKSUM_UNSEEN: u32 = 4;

/// A packet, and whether its message was faulty behind the packet's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decoded<'a> {
    pub(super) packet: QueuedPacket<'a>,
    pub(super) is_faulty: bool,
}

/// Reads a packet; `None` where its number cannot be found.
///
/// Of a message that is faulty behind that, the rest is left out: such a packet can still be
/// answered, and must be, or it would stay in the kernel.
pub(super) fn decode<'a>(message: &Message<'a>) -> Option<Decoded<'a>> {
    let (mut id, mut mark, mut length, mut state) = (None, 0, None, 0);
    let mut bytes: &[u8] = &[];
    let mut is_faulty = message.is_cut;
    for attribute in message.attributes() {
        let Ok((kind, value)) = attribute else {
            is_faulty = true;
            break;
        };
        match (kind, number(value)) {
            (PAYLOAD, _) => bytes = value,
            (HEADER, Some(first)) => id = Some(first),
            (MARK, Some(value)) => mark = value,
            (LENGTH, Some(value)) => length = Some(value),
            (STATE, Some(value)) => state = value,
            (HEADER | MARK | LENGTH | STATE, None) => is_faulty = true,
            _ => {}
        }
    }
    let copied = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    Some(Decoded {
        packet: QueuedPacket {
            id: id?,
            mark,
            bytes,
            wire_len: length.unwrap_or(0).max(copied),
            is_checksum_open: state & CHECKSUM_UNSEEN != 0 && state & CHECKSUM_UNFILLED == 0,
        },
        is_faulty,
    })
}

/// `NFQNL_MSG_VERDICT`.
const VERDICT: u8 = 1;
/// `NFQA_VERDICT_HDR`.
const VERDICT_HEADER: u16 = 2;

/// Bytes of the longest verdict: head 16, generic head 4, verdict 4 + 8, mark 4 + 4.
pub(super) const MAX_VERDICT: usize = 40;

/// Appends the message with the verdict for one packet.
///
/// One message for each packet. There is a message for all packets up to a number
/// (`NFQNL_MSG_VERDICT_BATCH`); it would answer those that are held too.
///
/// Source: `linux/netfilter/nfnetlink_queue.h`, `linux/netfilter.h`.
pub(super) fn append_answer(out: &mut Vec<u8>, queue: u16, answer: &Answer) {
    let head = Request {
        subsystem: SUBSYSTEM,
        message: VERDICT,
        flags: 0,
        sequence: 0,
        family: 0,
        resource: queue,
    };
    // NF_DROP, NF_ACCEPT, NF_REPEAT.
    let verdict: u32 = match answer.verdict {
        Verdict::Drop => 0,
        Verdict::Accept => 1,
        Verdict::Repeat => 4,
    };
    append(out, head, |body| {
        let [a, b, c, d] = verdict.to_be_bytes();
        let [e, f, g, h] = answer.id.to_be_bytes();
        body.put(VERDICT_HEADER, &[a, b, c, d, e, f, g, h]);
        if let Some(mark) = answer.mark {
            body.put(MARK, &mark.to_be_bytes());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::message::{Messages, Request, append};

    /// What the kernel would send.
    fn datagram(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        let head = Request {
            subsystem: 3,
            message: 0,
            flags: 0,
            sequence: 0,
            family: 2,
            resource: 5,
        };
        append(&mut out, head, |body| {
            for (kind, value) in attributes {
                body.put(*kind, value);
            }
        });
        out
    }

    fn first(datagram: &[u8]) -> Option<Decoded<'_>> {
        decode(&Messages::new(datagram).next()?.ok()?)
    }

    /// Number 258, IPv4, the hook FORWARD.
    const HEAD: &[u8] = &[0, 0, 1, 2, 8, 0, 2];

    #[test]
    fn every_field_is_read() {
        let bytes = datagram(&[
            (HEADER, HEAD),
            (MARK, &[0, 2, 0, 1]),
            (4, &[0; 16]),
            (STATE, &[0, 0, 0, 6]),
            (LENGTH, &[0, 0, 0xff, 0xff]),
            (PAYLOAD, b"E..packet"),
        ]);
        let packet = QueuedPacket {
            id: 258,
            mark: 0x2_0001,
            bytes: b"E..packet",
            wire_len: 65_535,
            is_checksum_open: true,
        };
        assert_eq!(
            first(&bytes),
            Some(Decoded {
                packet,
                is_faulty: false
            })
        );
    }

    #[test]
    fn what_is_absent_has_its_default() {
        let bytes = datagram(&[(HEADER, HEAD), (PAYLOAD, b"E..packet")]);
        let packet = first(&bytes).unwrap().packet;
        assert_eq!((packet.mark, packet.wire_len), (0, 9));
        assert!(!packet.is_checksum_open);
        for (state, is_open) in [(1, false), (2, false), (4, true), (5, false), (6, true)] {
            let bytes = datagram(&[(HEADER, HEAD), (STATE, &[0, 0, 0, state])]);
            assert_eq!(
                first(&bytes).unwrap().packet.is_checksum_open,
                is_open,
                "{state}"
            );
        }
    }

    #[test]
    fn a_faulty_message_gives_a_packet_that_can_be_answered() {
        let whole = datagram(&[(HEADER, HEAD), (PAYLOAD, &[7; 40])]);
        // Cut in the payload: the number is there.
        let cut = first(&whole[..whole.len() - 8]).unwrap();
        assert!(cut.is_faulty);
        assert_eq!((cut.packet.id, cut.packet.bytes), (258, [].as_slice()));
        // Cut before the number ends.
        assert_eq!(first(&whole[..26]), None);
        let short = datagram(&[(HEADER, HEAD), (MARK, &[1, 2])]);
        let short = first(&short).unwrap();
        assert!(short.is_faulty && short.packet.mark == 0);
        let nameless = datagram(&[(HEADER, &[1, 2]), (PAYLOAD, b"E")]);
        assert_eq!(first(&nameless), None);
    }

    proptest! {
        #[test]
        fn no_message_breaks_it(
            attributes in proptest::collection::vec((0_u16..16, proptest::collection::vec(any::<u8>(), 0..20)), 0..8),
            at in 0_usize..200, value: u8, cut in 0_usize..200,
        ) {
            let attributes: Vec<(u16, &[u8])> =
                attributes.iter().map(|(kind, value)| (*kind, value.as_slice())).collect();
            let mut bytes = datagram(&attributes);
            let at = at % bytes.len();
            bytes[at] = value;
            let cut = &bytes[..cut.min(bytes.len())];
            if let Some(decoded) = first(cut) {
                let copied = decoded.packet.bytes.len();
                prop_assert!(copied <= cut.len());
                prop_assert!(usize::try_from(decoded.packet.wire_len).unwrap() >= copied);
            }
        }
    }

    #[test]
    fn a_verdict_names_its_packet_and_its_mark() {
        let mut out = Vec::new();
        let answers = [
            (Verdict::Accept, None),
            (Verdict::Drop, None),
            (Verdict::Repeat, Some(0x0a0b_0c0d)),
        ];
        for (verdict, mark) in answers {
            let answer = Answer {
                id: 0x0102_0304,
                verdict,
                mark,
            };
            append_answer(&mut out, 9, &answer);
        }
        assert_eq!(out.len(), 2 * 32 + MAX_VERDICT);
        let messages: Vec<_> = Messages::new(&out).map(Result::unwrap).collect();
        for (message, verdict) in messages.iter().zip([1, 0, 4]) {
            assert_eq!((message.kind, message.flags), (0x0301, 1));
            assert_eq!(message.body[..4], [0, 0, 0, 9]);
            let first = message.attributes().next().unwrap().unwrap();
            assert_eq!(first, (2, [0, 0, 0, verdict, 1, 2, 3, 4].as_slice()));
        }
        let mark = messages[2].attributes().nth(1).unwrap().unwrap();
        assert_eq!(mark, (3, [10, 11, 12, 13].as_slice()));
        assert_eq!(messages[0].attributes().count(), 1);
    }
}
