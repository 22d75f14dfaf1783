//! The halves of a transaction as the table keeps them and as a record needs them.

use linkweir_proto::http1::{
    BodyLength, RequestHead, ResponseHead, chunked_length, request_body, response_body,
};
use linkweir_wire::SeqNumber;

use crate::body::{BodyEnd, EndRule};
use crate::pending::{Waiting, WaitingRequest, WaitingResponse};
use crate::records::{RequestParts, ResponseParts};

/// A text part's length as entries keep it; heads are at most 64 KiB.
#[inline]
pub(crate) fn short(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}

/// The match number after a response: where the next response to the same connection begins.
pub(crate) const fn after(match_seq: u32, head_len: usize, body_len: u64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "sequence numbers count modulo 2^32"
    )]
    match_seq
        .wrapping_add(head_len as u32)
        .wrapping_add(body_len as u32)
}

/// A length that 64 bits still hold with a head before it; a greater one is ignored.
fn countable(length: u64) -> Option<u64> {
    length.checked_add(u64::from(u32::MAX)).map(|_| length)
}

/// The length of a body as the head and the segment tell it.
pub(crate) fn measured(rule: BodyLength, body: &[u8]) -> Option<u64> {
    match rule {
        BodyLength::Known(length) => countable(length),
        BodyLength::Chunked => chunked_length(body).map(|len| len as u64),
        BodyLength::UntilClose => None,
    }
}

/// Body length of a response whose request is unknown, where the head or the segment has it.
pub(crate) fn response_rest(head: &ResponseHead<'_>, body: &[u8]) -> Option<usize> {
    usize::try_from(measured(response_body(head, b""), body)?).ok()
}

/// Bytes of a request's body, where the head or the segment has it.
pub(crate) fn request_rest(head: &RequestHead<'_>, body: &[u8]) -> Option<usize> {
    usize::try_from(measured(request_body(head), body)?).ok()
}

/// What ends the body that follows `head_len` bytes from `match_seq`, of which bytes up to `seen_to` were
/// seen.
pub(crate) fn body_end(
    rule: BodyLength,
    length: Option<u64>,
    (match_seq, head_len): (u32, usize),
    (seen_to, seen_ns): (SeqNumber, u64),
) -> BodyEnd {
    let seen = u64::from(seen_to.0.wrapping_sub(match_seq));
    let rule = match (rule, length) {
        (_, Some(length)) => EndRule::After(
            (head_len as u64)
                .saturating_add(length)
                .saturating_sub(seen),
        ),
        (BodyLength::Chunked, None) => EndRule::LastChunk,
        (_, None) => EndRule::Close,
    };
    BodyEnd {
        rule,
        match_seq: SeqNumber(match_seq),
        seen_to,
        seen_ns,
    }
}

pub(crate) fn stored_rule(response: &WaitingResponse, method: &[u8]) -> BodyLength {
    let head = ResponseHead {
        status_code: response.status_code,
        content_length: response.content_length,
        chunked: response.chunked,
        ..ResponseHead::default()
    };
    response_body(&head, method)
}

/// The body length of a response in the table, now that the method is known.
pub(crate) fn body_length(response: &WaitingResponse, method: &[u8]) -> Option<u64> {
    match stored_rule(response, method) {
        BodyLength::Known(length) => countable(length),
        BodyLength::Chunked => response.chunked_len.map(u64::from),
        BodyLength::UntilClose => None,
    }
}

pub(crate) fn next_match_seq(
    waiting: &Waiting,
    response: &WaitingResponse,
    method: &[u8],
) -> Option<u32> {
    body_length(response, method)
        .map(|length| after(waiting.match_seq, response.head_len as usize, length))
}

/// The end of a body whose head waited in the table: later segments than its own were not watched.
pub(crate) fn stored_end(waiting: &Waiting, response: &WaitingResponse, method: &[u8]) -> BodyEnd {
    body_end(
        stored_rule(response, method),
        body_length(response, method),
        (waiting.match_seq, response.head_len as usize),
        (response.seen_to, response.seen_ns),
    )
}

pub(crate) fn request_parts<'a>(
    waiting: &Waiting,
    request: &WaitingRequest,
    text: &'a [u8],
) -> RequestParts<'a> {
    let mut rest = text;
    let [method, target, host, user_agent] = request.lens.map(|len| {
        let (part, after) = rest.split_at(usize::from(len).min(rest.len()));
        rest = after;
        part
    });
    RequestParts {
        connection: waiting.connection,
        ts_ns: waiting.ts_ns,
        vlan: waiting.vlan,
        bytes: waiting.bytes,
        minor: waiting.minor,
        interim_responses: request.interim_responses,
        retransmissions: waiting.retransmissions,
        method,
        target,
        host,
        user_agent,
        fields: rest,
    }
}

pub(crate) fn response_parts<'a>(
    waiting: &Waiting,
    response: &WaitingResponse,
    text: &'a [u8],
    body: Option<u64>,
) -> ResponseParts<'a> {
    let split = |text: &'a [u8], len: u16| text.split_at(usize::from(len).min(text.len()));
    let (reason_phrase, rest) = split(text, response.reason_len);
    let (content_type, fields) = split(rest, response.type_len);
    ResponseParts {
        connection: waiting.connection,
        ts_ns: waiting.ts_ns,
        vlan: waiting.vlan,
        bytes: body.map(|length| length.saturating_add(u64::from(response.head_len))),
        minor: waiting.minor,
        retransmissions: waiting.retransmissions,
        status_code: response.status_code,
        reason_phrase,
        content_type,
        fields,
    }
}
