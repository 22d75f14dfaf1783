//! What generators say to one another: one JSON object a line.

use std::collections::{BTreeMap, BTreeSet};

use linkweir_load::measure::Figures;
use serde::{Deserialize, Serialize};

/// Version of the protocol. Another one is refused: figures of versions that count differently must not
/// be merged.
pub(super) const PROTOCOL: u32 = 1;

/// What both sides must have alike, by name, such as seed and arrivals.
pub(in crate::load) type Terms = BTreeMap<String, String>;

/// A line. `>` goes to the one that reports, `<` comes from it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Message {
    /// > The first line.
    Hello(Hello),
    /// < Welcome: the share of this generator.
    Welcome { index: u32, of: u32 },
    /// < Go away, and why.
    Refused { reason: String },
    /// > What time is it?
    Ping { number: u32 },
    /// < Nanoseconds since the epoch by the clock of the one that reports.
    Pong { number: u32, at_ns: u64 },
    /// > Everything is set up; how well the clocks are known to agree.
    Ready { error_ns: u64 },
    /// < Start then, by the clock of the one that reports.
    Start { at_ns: u64 },
    /// <> Every second, so that silence means something.
    Alive,
    /// < End early, with results.
    Stop,
    /// > What was measured.
    Result(Box<Figures>),
    /// < The result has arrived.
    Taken,
}

/// The first line. What a later version adds to it is passed over, so that its version can be read.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Hello {
    pub(super) protocol: u32,
    pub(super) role: String,
    pub(super) terms: Terms,
}

impl Hello {
    /// Why the one that says this cannot take part, in words for both sides. `is_part` is whether `terms`
    /// are only some of those that there must be.
    pub(super) fn fault(&self, role: &str, terms: &Terms, is_part: bool) -> Option<String> {
        if self.protocol != PROTOCOL {
            return Some(format!(
                "its control protocol is version {}, ours is {PROTOCOL}: use the same version of linkweir",
                self.protocol
            ));
        }
        if self.role != role {
            return Some(format!(
                "the peer is `{}`, expected `{role}`",
                self.role
            ));
        }
        let of = |terms: &Terms, name: &String| terms.get(name).cloned().unwrap_or_default();
        let theirs = self.terms.keys().filter(|_| !is_part);
        let names: BTreeSet<&String> = terms.keys().chain(theirs).collect();
        let differences: Vec<String> = names
            .into_iter()
            .map(|name| (name, of(terms, name), of(&self.terms, name)))
            .filter(|(_, ours, theirs)| ours != theirs)
            .map(|(name, ours, theirs)| format!("{name} is `{ours}` here and `{theirs}` there"))
            .collect();
        (!differences.is_empty()).then(|| differences.join("; "))
    }
}
