//! The web server of the laboratory, and what its log says.
//!
//! clamd, where it is installed.

use crate::error::LabError;
use crate::testbed::Testbed;
use linkweir_testkit::clamd::Clamd;
use linkweir_testkit::gateway::{Place, SERVER};
use linkweir_testkit::load::log::Visit;
use linkweir_testkit::load::{Nginx, Settings};
use linkweir_testkit::ran::installed;
use std::path::PathBuf;

/// nginx at the server, port 80.
pub(crate) struct Web {
    nginx: Nginx,
    directory: PathBuf,
}

impl Web {
    /// Starts it.
    pub(crate) fn start(testbed: &Testbed<'_>, settings: &Settings) -> Result<Self, LabError> {
        let directory = testbed.path("web");
        let listen = [format!("{SERVER}:80 backlog=65535")];
        let command = |program: &str| testbed.command(Place::Server, program);
        let nginx = Nginx::start_at(command, &listen, &directory, settings)
            .map_err(|error| LabError::program("nginx", error))?;
        Ok(Self { nginx, directory })
    }

    /// Puts a file where all paths find it.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> Result<(), LabError> {
        self.nginx
            .put(name, bytes)
            .map_err(LabError::file(&self.directory))
    }

    /// Its process.
    pub(crate) const fn id(&self) -> u32 {
        self.nginx.id()
    }

    /// The requests that it has answered.
    pub(crate) fn visits(&self) -> Vec<Visit> {
        self.nginx.visits()
    }
}

/// The address of a path of the server.
pub(crate) fn url(path: &str) -> String {
    format!("http://{SERVER}{path}")
}

/// What is said where it is not.
pub(crate) const MISSING: &str =
    "clamd is not installed (Debian: clamav-daemon): nothing was searched for viruses";

/// A clamd that knows a few signatures, the EICAR string among them.
#[derive(Debug)]
pub(crate) struct Scanner {
    /// Its process.
    pub(crate) clamd: Clamd,
}

impl Scanner {
    /// Starts it; `None` where it is not installed.
    pub(crate) fn start(testbed: &mut Testbed<'_>) -> Result<Option<Self>, LabError> {
        if installed("clamd").is_none() {
            return Ok(None);
        }
        testbed.tell("clamd");
        let clamd = Clamd::start().map_err(|error| LabError::program("clamd", error))?;
        Ok(Some(Self { clamd }))
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.clamd.socket()
    }

    /// The table `[scanner.clamd]` of a policy, with which a rule may say `scan = "clamd"`.
    pub(crate) fn policy(&self) -> String {
        format!(
            "[scanner.clamd]\naddress = \"{}\"\nwindow = \"32KiB\"\ntail = \"1KiB\"\n",
            self.socket().display()
        )
    }
}
