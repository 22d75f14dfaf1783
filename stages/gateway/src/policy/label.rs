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

    /// Whether files in its connections are followed, so that they can be scanned and recorded.
    #[must_use]
    pub const fn has_files(self) -> bool {
        matches!(
            self,
            Self::Known(
                Application::Http
                    | Application::FastTrack
                    | Application::Gnutella
                    | Application::MsnFtp
            )
        )
    }

    /// Whether names of files are read in its connections.
    #[must_use]
    pub const fn has_file_names(self) -> bool {
        self.has_files()
            || matches!(
                self,
                Self::Known(Application::Msn | Application::EDonkey | Application::BitTorrent)
            )
    }
}
