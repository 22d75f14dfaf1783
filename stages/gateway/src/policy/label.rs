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
