//! What application a flow carries.

use linkweir_proto::http1::{Start, classify};
use linkweir_record::flow::FlowRow;

use super::Segment;
use super::state::Stage;

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
    let _ = segment;
    let starts = [classify(own), classify(other)];
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
    Verdict::More
}
