//! Running the programs that change the kernel's rules: each command as it is run and as a person would
//! type it, and why it failed.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use thiserror::Error;

use crate::rules::plan::PlanError;

/// Where Debian keeps programs. Those of the administrator are not on everybody's path, and a service may
/// have none at all.
const DIRECTORIES: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/sbin",
    "/sbin",
    "/usr/local/bin",
    "/usr/bin",
    "/bin",
];

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
        /// What it said on its standard error, in one line.
        said: String,
    },
    /// It failed for want of rights.
    #[error("needs root (CAP_NET_ADMIN): {command}: {said}")]
    Rights {
        /// The command, without what it read.
        command: String,
        /// What it said on its standard error, in one line.
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
        let said = one_line(&String::from_utf8_lossy(&output.stderr));
        let said = if said.is_empty() {
            output.status.to_string()
        } else {
            said
        };
        let mut words = vec![step.program];
        words.extend(step.words.iter().map(String::as_str));
        Err(failed(words.join(" "), said))
    }

    /// The text of a file of the kernel, as this namespace sees it.
    ///
    /// # Errors
    /// It is not there or cannot be read.
    pub(super) fn read(&self, path: &str) -> Result<String, CommandError> {
        if !self.prefix.is_empty() {
            return self.run(&Step::new("cat", &[path]));
        }
        std::fs::read_to_string(path).map_err(|source| CommandError::Run {
            program: path.to_owned(),
            source,
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

/// What a program said, without the ends of its lines.
fn one_line(said: &str) -> String {
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("; ")
}

/// The error of a command. Missing rights are recognised by its words: a program ends with the same
/// status for every cause.
fn failed(command: String, said: String) -> CommandError {
    let is_refused = ["Permission denied", "Operation not permitted"]
        .iter()
        .any(|words| said.contains(words));
    if is_refused {
        CommandError::Rights { command, said }
    } else {
        CommandError::Failed { command, said }
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

/// The program on the path, or where Debian keeps it.
fn find(program: &str) -> Result<PathBuf, CommandError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    find_in(program, &path).ok_or_else(|| CommandError::Missing {
        program: program.to_owned(),
        package: package(program),
    })
}

fn find_in(program: &str, path: &OsString) -> Option<PathBuf> {
    std::env::split_paths(path)
        .chain(DIRECTORIES.iter().map(PathBuf::from))
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(program))
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

/// A program, its words, and what it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The program.
    pub program: &'static str,
    /// Its arguments.
    pub words: Vec<String>,
    /// What it reads from its standard input, ending with a line feed; nothing where empty.
    pub input: String,
}

impl Step {
    pub(super) fn new(program: &'static str, words: &[&str]) -> Self {
        Self {
            program,
            words: words.iter().map(|&word| word.to_owned()).collect(),
            input: String::new(),
        }
    }

    pub(super) fn reading(program: &'static str, words: &[&str], input: String) -> Self {
        Self {
            input,
            ..Self::new(program, words)
        }
    }
}

/// A line for a shell, with a here-document where the program reads something. No word that we write
/// needs quotes, nor does a line equal the end mark.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program)?;
        for word in &self.words {
            write!(f, " {word}")?;
        }
        if self.input.is_empty() {
            return Ok(());
        }
        write!(f, " <<'END'\n{}END", self.input)
    }
}

/// What has our name, was not made by us or was changed since, and stays.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} (to remove: {undo})")]
pub struct Foreign {
    /// What it is and where.
    pub what: String,
    /// The commands that remove it, for a shell.
    pub undo: String,
}

/// Why rules could not be made, changed or removed.
#[derive(Debug, Error)]
pub enum RulesError {
    /// The plan cannot be carried out.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A command did not do what it should.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// Somebody else made what has our name.
    #[error("not made by linkweir, or changed since: {}", list(.0))]
    Foreign(Vec<Foreign>),
    /// Classes are made on an interface that is not there.
    #[error("interface {0} is not there; it must be there when classes (`shape`) are made")]
    NoInterface(String),
    /// Somebody else's queueing discipline is where ours would be.
    #[error(
        "interface {interface} has a queueing discipline that somebody set ({kind} {handle}); remove it \
         (tc qdisc del dev {interface} root) or do not shape there"
    )]
    Taken {
        /// The interface.
        interface: String,
        /// Its kind.
        kind: String,
        /// Its number.
        handle: String,
    },
    /// Rules are there, for another policy, or only a part of them.
    #[error(
        "rules of another policy, or a part of them, are there already ({0} differ); \
         `linkweir gateway reload` changes them where a gateway runs, `linkweir gateway down` removes them"
    )]
    Other(String),
    /// Nothing is there that could be changed.
    #[error("no rules are there to be changed; `linkweir gateway up` makes them")]
    NotUp,
    /// Connections carry marks that another mask would read wrongly.
    #[error(
        "the rules that are there use the mark bits {there:#010x} and not {wanted:#010x}; \
         that takes `linkweir gateway down` and `up`"
    )]
    OtherMarks {
        /// The mask that is in use.
        there: u32,
        /// The mask of the plan.
        wanted: u32,
    },
    /// A step failed, and what had been made before it was removed again, unless `left` says otherwise.
    #[error("{error}{}", left.as_ref().map(|it| format!("; what was made is still there: {it}")).unwrap_or_default())]
    RolledBack {
        /// Why the step failed.
        error: CommandError,
        /// Why what had been made could not be removed.
        left: Option<Box<Self>>,
    },
}

fn list(all: &[Foreign]) -> String {
    let each: Vec<String> = all.iter().map(ToString::to_string).collect();
    each.join(", ")
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
    fn programs_are_found_without_a_path() {
        for path in ["", "/nonexistent", "/usr/sbin"] {
            assert!(find_in("cat", &OsString::from(path)).is_some(), "{path}");
        }
    }

    #[test]
    fn many_lines_become_one() {
        let said = "Cannot find device \"x0\"\n\n  Command failed -:1\r\n";
        assert_eq!(
            one_line(said),
            "Cannot find device \"x0\"; Command failed -:1"
        );
        assert_eq!(one_line("\n"), "");
    }

    #[test]
    fn missing_rights_come_first() {
        let said = "iptables-save v1.8.9 (nf_tables): Could not fetch rule set generation id: \
                    Permission denied (you must be root)";
        let error = failed("iptables-save".to_owned(), said.to_owned()).to_string();
        assert!(
            error.starts_with("needs root (CAP_NET_ADMIN): iptables-save: "),
            "{error}"
        );
        let legacy = "Failed to list table names in /proc/net/ip_tables_names: Permission denied";
        for said in [legacy, "RTNETLINK answers: Operation not permitted"] {
            let error = failed("tool".to_owned(), said.to_owned());
            assert!(matches!(error, CommandError::Rights { .. }), "{said}");
        }
        let other = failed("tc".to_owned(), "Cannot find device".to_owned());
        assert_eq!(other.to_string(), "tc: Cannot find device");
    }

    #[test]
    fn a_file_is_read_without_a_program() {
        let here = Host::here();
        assert!(here.read("/proc/net/dev").unwrap().contains("lo:"));
        assert!(here.read("/proc/net/no-such-file").is_err());
    }

    #[test]
    fn much_goes_in_and_out_at_once() {
        let much = "0123456789\n".repeat(100_000);
        let step = Step::reading("cat", &[], much.clone());
        assert_eq!(Host::here().run(&step).unwrap(), much);
    }

    #[test]
    fn a_step_is_a_line_of_a_shell() {
        let plain = Step::new("tc", &["qdisc", "show"]);
        assert_eq!(plain.to_string(), "tc qdisc show");
        let reading = Step::reading("nft", &["-f", "-"], "flush x\n".to_owned());
        assert_eq!(reading.to_string(), "nft -f - <<'END'\nflush x\nEND");
    }
}
