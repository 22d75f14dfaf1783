//! Running the programs that change the kernel's rules.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use thiserror::Error;

use super::step::Step;

/// Where Debian keeps programs of the administrator, which are not on everybody's path.
const SBIN: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Where commands take effect.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Host {
    /// Words before each command.
    prefix: Vec<String>,
}

/// Why a command did not do what it should.
#[derive(Debug, Error)]
pub enum CommandError {
    /// The program is nowhere.
    #[error("{program} is not installed (Debian package {package})")]
    Missing {
        /// The program.
        program: String,
        /// Where it comes from.
        package: &'static str,
    },
    /// It could not be run.
    #[error("{program}: {source}")]
    Run {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// It failed.
    #[error("{command}: {said}")]
    Failed {
        /// The command, without what it read.
        command: String,
        /// What it said on its standard error.
        said: String,
    },
    /// It said what cannot be understood.
    #[error("{program} says what is not understood: {what}")]
    Output {
        /// The program.
        program: &'static str,
        /// What of it.
        what: String,
    },
}

impl Host {
    /// The network namespace that the process is in.
    #[must_use]
    pub const fn here() -> Self {
        Self { prefix: Vec::new() }
    }

    /// A network namespace that has a name (`ip netns`).
    #[must_use]
    pub fn namespace(name: &str) -> Self {
        Self {
            prefix: ["ip", "netns", "exec", name].map(str::to_owned).into(),
        }
    }

    /// Runs a command; gives what it wrote.
    ///
    /// # Errors
    /// The program is missing, cannot be run, or failed.
    pub fn run(&self, step: &Step) -> Result<String, CommandError> {
        let output = self.output(step)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim();
        Err(CommandError::Failed {
            command: format!("{} {}", step.program, step.words.join(" ")),
            said: if said.is_empty() {
                output.status.to_string()
            } else {
                said.to_owned()
            },
        })
    }

    /// Whether a program is installed.
    ///
    /// # Errors
    /// [`CommandError::Missing`].
    pub fn needs(&self, program: &str) -> Result<(), CommandError> {
        find(program).map(drop)
    }

    fn output(&self, step: &Step) -> Result<Output, CommandError> {
        let program = find(step.program)?;
        let mut command = match self.prefix.split_first() {
            Some((first, rest)) => {
                let mut command = Command::new(find(first)?);
                command.args(rest).arg(program);
                command
            }
            None => Command::new(program),
        };
        let child = command
            .args(&step.words)
            .env("LC_ALL", "C")
            .stdin(if step.input.is_empty() {
                Stdio::null()
            } else {
                Stdio::piped()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        child
            .and_then(|child| feed(child, step.input.as_bytes()))
            .map_err(|source| CommandError::Run {
                program: step.program.to_owned(),
                source,
            })
    }
}

/// Writes and reads at the same time: a program may say much before it has read everything.
fn feed(mut child: Child, input: &[u8]) -> io::Result<Output> {
    let pipe = child.stdin.take();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // One that stops reading says why when it fails.
            if let Some(mut pipe) = pipe {
                drop(pipe.write_all(input));
            }
        });
        child.wait_with_output()
    })
}

/// The program on the path, or where administrators' programs are.
fn find(program: &str) -> Result<PathBuf, CommandError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    find_in(program, &path).ok_or_else(|| CommandError::Missing {
        program: program.to_owned(),
        package: package(program),
    })
}

fn find_in(program: &str, path: &OsString) -> Option<PathBuf> {
    std::env::split_paths(path)
        .chain(SBIN.iter().map(PathBuf::from))
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata()
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

fn package(program: &str) -> &'static str {
    match program {
        "nft" => "nftables",
        "tc" | "ip" => "iproute2",
        "cat" => "coreutils",
        _ => "iptables",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let none = OsString::from("/nowhere");
        assert_eq!(find_in("no-such-program", &none), None);
        let error = Host::here().run(&Step::new("ip7tables-save", &[]));
        assert_eq!(
            error.unwrap_err().to_string(),
            "ip7tables-save is not installed (Debian package iptables)"
        );
    }

    #[test]
    fn what_a_program_says_is_in_the_error() {
        let error = Host::here().run(&Step::new("cat", &["/nowhere/at-all"]));
        let said = error.unwrap_err().to_string();
        assert!(said.starts_with("cat /nowhere/at-all: "), "{said}");
        assert!(said.ends_with(": No such file or directory"), "{said}");
    }

    #[test]
    fn much_goes_in_and_out_at_once() {
        let much = "0123456789\n".repeat(100_000);
        let step = Step::reading("cat", &[], much.clone());
        assert_eq!(Host::here().run(&step).unwrap(), much);
    }
}
