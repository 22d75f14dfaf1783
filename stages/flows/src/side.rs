//! The two ends of a flow.

/// An end of a flow, or the direction of what it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Who opened the flow; of a TCP flow without SYN, who seems to have.
    Client,
    /// Who was called.
    Server,
}

impl Side {
    /// The end across.
    #[inline]
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}
