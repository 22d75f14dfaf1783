//! Why a run came to no report.

use std::io;
use std::path::{Path, PathBuf};

use linkweir_testkit::gateway;

/// Why a run came to no report.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A scenario's file cannot be read, or says what it may not.
    #[error("{name}: {why}")]
    Scenario {
        /// The file, or the name of the scenario.
        name: String,
        /// With line and column where the text is wrong.
        why: String,
    },
    /// Programs are not installed.
    #[error("not installed: {}; on Debian: apt-get install {}", programs.join(", "), packages.join(" "))]
    Missing {
        /// What was looked for on the path.
        programs: Vec<String>,
        /// Debian's packages that have them.
        packages: Vec<String>,
    },
    /// The kernel does not allow it here.
    #[error(
        "{0} (the laboratory needs root, or user namespaces for ordinary users: sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns)"
    )]
    Namespaces(#[from] gateway::Unavailable),
    /// One of the programs failed.
    #[error("{what}: {why}")]
    Program {
        /// Which, and what it did.
        what: String,
        /// Its last words.
        why: String,
    },
    /// A file.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The run was ended before there was anything to say.
    #[error("ended before anything was measured")]
    Stopped,
}

impl LabError {
    /// A program that failed.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "errors and texts alike, without a `&` before each"
    )]
    pub(crate) fn program(what: impl Into<String>, why: impl ToString) -> Self {
        let why = why.to_string();
        Self::Program {
            what: what.into(),
            why: match why.trim() {
                "" => "it says nothing".to_owned(),
                said => said.to_owned(),
            },
        }
    }

    /// A file that cannot be read or written; for `map_err`.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::File { path, source }
    }
}
