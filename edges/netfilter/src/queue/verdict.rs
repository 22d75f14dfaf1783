//! Verdicts as the kernel reads them (`NFQNL_MSG_VERDICT`).
//!
//! One message for each packet. There is a message for all packets up to a number
//! (`NFQNL_MSG_VERDICT_BATCH`); it would answer those that are held too.
//!
//! Source: `linux/netfilter/nfnetlink_queue.h`, `linux/netfilter.h`.

use linkweir_engine::{Answer, Verdict};

use super::SUBSYSTEM;
use crate::message::{Request, append};

/// `NFQNL_MSG_VERDICT`.
const VERDICT: u8 = 1;
/// `NFQA_VERDICT_HDR`.
const HEADER: u16 = 2;
/// `NFQA_MARK`.
const MARK: u16 = 3;

/// Bytes of the longest verdict: head 16, generic head 4, verdict 4 + 8, mark 4 + 4.
pub(super) const MAX_BYTES: usize = 40;

/// Appends the message with the verdict for one packet.
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
        body.put(HEADER, &[a, b, c, d, e, f, g, h]);
        if let Some(mark) = answer.mark {
            body.put(MARK, &mark.to_be_bytes());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Messages;

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
        assert_eq!(out.len(), 2 * 32 + MAX_BYTES);
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
