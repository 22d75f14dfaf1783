//! What application a flow carries.

use linkweir_proto::http1::{Start, classify};
use linkweir_proto::quic::{Kind, LongHeader, public_version};
use linkweir_proto::tls::{ContentType, RecordHeader};
use linkweir_record::flow::FlowRow;

use super::state::Stage;
use super::{Ends, Segment};
use crate::side::Side;

/// The label of a flow, in our words and in Tstat's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Label {
    /// Our name; empty: not known.
    pub(super) name: &'static str,
    /// Tstat's bit mask (TCP) or number (UDP).
    pub(super) con_t: u32,
    pub(super) p2p_t: u32,
    pub(super) http_t: u32,
    pub(super) p2p_st: u32,
}

impl Label {
    /// Fills the columns of the label.
    pub(super) const fn fill(&self, row: &mut FlowRow) {
        row.application = self.name;
        row.con_t = self.con_t;
        row.p2p_t = self.p2p_t;
        row.http_t = self.http_t;
        row.p2p_st = self.p2p_st;
    }
}

/// What the first bytes of a flow say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Decided.
    Is(Label, Stage),
    /// More bytes may decide.
    More,
    /// Nothing that is known.
    Unknown,
}

/// What a TCP flow carries, by the first bytes of the side of `segment` and of the other one, in
/// stream order.
pub(super) fn tcp(segment: &Segment<'_>, own: &[u8], other: &[u8]) -> Verdict {
    // A flow that began before the capture tells itself by a later message.
    let starts = [classify(own), classify(other), classify(segment.payload)];
    if starts
        .iter()
        .any(|start| matches!(start, Start::Request | Start::Response))
    {
        let label = Label {
            name: "http",
            con_t: 1,
            ..Label::default()
        };
        return Verdict::Is(label, Stage::Http);
    }
    if is_hello(own) || is_hello(other) {
        let label = Label {
            name: "tls",
            con_t: 8192,
            ..Label::default()
        };
        return Verdict::Is(label, Stage::Tls);
    }
    Verdict::More
}

/// What a UDP flow carries, by one datagram.
pub(super) fn udp(payload: &[u8], _side: Side, _ends: &Ends) -> Verdict {
    let is_quic = LongHeader::parse(payload).is_some_and(|header| header.kind != Kind::Unknown);
    if is_quic || public_version(payload).is_some() {
        let label = Label {
            name: "quic",
            con_t: 45,
            ..Label::default()
        };
        return Verdict::Is(label, Stage::Quic);
    }
    Verdict::More
}

/// Whether a stream begins with a hello of TLS.
fn is_hello(bytes: &[u8]) -> bool {
    let Some((header, [1 | 2, ..])) = bytes.split_first_chunk() else {
        return false;
    };
    RecordHeader::parse(*header).is_some_and(|header| header.content == ContentType::Handshake)
}
