//! What a connection carries, by the signatures.

use linkweir_proto::application::Application;

/// What was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Label {
    /// An application that the program knows.
    Known(Application),
    /// A signature of the policy, by its place in it.
    Own(u16),
    /// Nothing.
    Unknown,
}

impl Label {
    /// Whether a rule for `other` is for this: a connection of several applications (`stun,dtls`) is each of
    /// them.
    #[must_use]
    pub fn includes(self, other: Self) -> bool {
        match (self, other) {
            (Self::Known(one), Self::Known(other)) => one.includes(other),
            _ => self == other,
        }
    }
}
