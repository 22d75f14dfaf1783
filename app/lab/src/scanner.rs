//! clamd, where it is installed.

use std::path::PathBuf;

use linkweir_testkit::clamd::Clamd;

use crate::error::LabError;
use crate::testbed::{Testbed, has};

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
        if !has("clamd") {
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
