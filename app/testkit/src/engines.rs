//! The engines in which people keep records (DuckDB, ClickHouse, pandas, Arrow), driven by scripts of
//! Python in an environment of their own, which `scripts/setup.sh test` makes.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The scripts and the Python that has the engines.
#[derive(Debug)]
pub struct Engines {
    directory: PathBuf,
}

impl Engines {
    /// Those of this directory: scripts, `requirements.txt`, and `.venv` with what that names.
    ///
    /// # Errors
    /// Why they cannot be used: nothing is installed, or other versions are.
    pub fn find(directory: &Path) -> Result<Self, String> {
        let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap_or_default();
        let (wanted, there) = (read("requirements.txt"), read(".venv/installed"));
        if wanted.is_empty() || wanted.trim() != there.trim() {
            return Err(format!(
                "the engines that {} names are not installed beside it (scripts/setup.sh test)",
                directory.join("requirements.txt").display()
            ));
        }
        Ok(Self {
            directory: directory.to_owned(),
        })
    }

    /// A script with its arguments, not yet started.
    pub fn script<S: AsRef<OsStr>>(&self, name: &str, arguments: &[S]) -> Command {
        let mut command = Command::new(self.directory.join(".venv/bin/python"));
        command
            // Nothing is written beside the scripts.
            .arg("-B")
            .arg(self.directory.join(name))
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    /// Runs a script and gives what it wrote and how it ended.
    ///
    /// # Errors
    /// It could not be started.
    pub fn run<S: AsRef<OsStr>>(&self, name: &str, arguments: &[S]) -> io::Result<Output> {
        self.script(name, arguments).output()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_versions_are_none() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text);
        let reason = || Engines::find(directory.path()).map(|_| ()).unwrap_err();
        assert!(reason().contains("scripts/setup.sh test"));
        write("requirements.txt", "duckdb==2.0.0\n").unwrap();
        assert!(reason().contains("not installed"));
        std::fs::create_dir(directory.path().join(".venv")).unwrap();
        write(".venv/installed", "duckdb==1.0.0\n").unwrap();
        assert!(reason().contains("not installed"));
        write(".venv/installed", "duckdb==2.0.0\n").unwrap();
        let engines = Engines::find(directory.path()).unwrap();
        let command = engines.script("read.py", &["x"]);
        assert_eq!(
            command.get_program(),
            directory.path().join(".venv/bin/python")
        );
        assert_eq!(command.get_args().last(), Some(OsStr::new("x")));
    }
}
