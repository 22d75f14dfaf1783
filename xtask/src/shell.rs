//! Running other programs, and reading the command line.

use anyhow::{Context as _, Result, bail};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The root of the checkout.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Where cargo puts what it builds for this workspace.
pub fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// The cargo that runs this task.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // `cargo run` tells this task its package. Some build scripts look at that, so with it everything
    // above them, the whole binary, would be built once from here and once from a shell.
    for (name, _) in std::env::vars_os() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_"]
            .iter()
            .any(|prefix| name.to_string_lossy().starts_with(prefix))
        {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command with its output on the terminal; `false` if it fails.
///
/// # Errors
/// It cannot be started.
pub fn passes(command: &mut Command) -> Result<bool> {
    let status = command
        .status()
        .with_context(|| format!("run `{}`", command.get_program().to_string_lossy()))?;
    Ok(status.success())
}

/// The standard output of a command that must succeed.
///
/// # Errors
/// It cannot be started, or fails.
pub fn output(command: &mut Command) -> Result<Vec<u8>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("run `{name}`"))?;
    if !output.status.success() {
        bail!("`{name}` failed: {}", output.status);
    }
    Ok(output.stdout)
}

/// The program, and the laboratory beside it.
const PROGRAMS: [&str; 4] = ["--package", "linkweir", "--package", "linkweir-lab"];

/// Builds the program as the tests have built it, and says where it is: for what it says, not how fast.
///
/// # Errors
/// The build fails.
pub fn built_binary() -> Result<PathBuf> {
    let mut build = cargo();
    build.args(["build", "--quiet"]).args(PROGRAMS);
    if !passes(&mut build)? {
        bail!("the build failed");
    }
    Ok(target_dir().join("debug/linkweir"))
}

/// Builds a program of the workspace and says where it is. As one of all its packages: the libraries have the
/// features that they have in the tests, and are not compiled again.
///
/// # Errors
/// The build fails.
pub fn built(name: &str) -> Result<PathBuf> {
    let mut build = cargo();
    build.args(["build", "--quiet", "--workspace", "--bin", name]);
    if !passes(&mut build)? {
        bail!("`{name}` does not build");
    }
    Ok(target_dir().join("debug").join(name))
}

/// Builds the release binary and says where it is.
///
/// # Errors
/// The build fails.
pub fn release_binary() -> Result<PathBuf> {
    let mut build = cargo();
    build.args(["build", "--release"]).args(PROGRAMS);
    if !passes(&mut build)? {
        bail!("the release build failed");
    }
    Ok(target_dir().join("release/linkweir"))
}

/// A directory in memory for what is measured, where a disk would be what is measured. Always the same for a
/// purpose, so that what an interrupted run leaves there is removed by the next.
pub fn memory_directory(purpose: &str) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() {
        memory.to_path_buf()
    } else {
        std::env::temp_dir()
    };
    let user = std::fs::metadata("/proc/self").map_or(0, |own| own.uid());
    parent.join(format!("linkweir-{purpose}-{user}"))
}

/// Whether a program of this name is on the path (or where Debian puts those of the administrator).
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(program))
        .find(|candidate| candidate.is_file())
}

/// The whole of a file, unpacked if its name ends in `.gz`.
///
/// # Errors
/// It cannot be read, or gzip fails.
pub fn read_unpacked(path: &Path) -> Result<Vec<u8>> {
    if path.extension() == Some(OsStr::new("gz")) {
        output(Command::new("gzip").arg("-dc").arg(path))
    } else {
        std::fs::read(path).with_context(|| format!("read {}", path.display()))
    }
}

/// Does a piece of work for each of some things, on as many threads as there are cores; what came of it is in
/// their order.
pub fn side_by_side<T: Sync, R: Send>(things: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let mut results: Vec<(usize, R)> = Vec::new();
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores)
            .map(|_| {
                scope.spawn(|| {
                    let mut own = Vec::new();
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(thing) = things.get(index) else {
                            return own;
                        };
                        own.push((index, work(thing)));
                    }
                })
            })
            .collect();
        for worker in workers {
            results.extend(worker.join().unwrap_or_default());
        }
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// The options of a task: `--name`, `--name value` and the rest.
#[derive(Debug)]
pub struct Options {
    args: Vec<String>,
}

impl Options {
    /// Takes the arguments behind the task's name.
    pub fn new(args: &[String]) -> Self {
        Self {
            args: args.to_vec(),
        }
    }

    /// Whether `name` is given.
    pub fn flag(&mut self, name: &str) -> bool {
        match self.args.iter().position(|arg| arg == name) {
            Some(at) => {
                self.args.remove(at);
                true
            }
            None => false,
        }
    }

    /// The value behind the first `name`, if it is given.
    ///
    /// # Errors
    /// The value is missing or does not parse.
    pub fn value<T: std::str::FromStr>(&mut self, name: &str) -> Result<Option<T>> {
        let Some(at) = self.args.iter().position(|arg| arg == name) else {
            return Ok(None);
        };
        self.args.remove(at);
        if at >= self.args.len() {
            bail!("{name} needs a value");
        }
        let text = self.args.remove(at);
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => bail!("{name}: `{text}` is not a value for it"),
        }
    }

    /// What is left: positional arguments.
    ///
    /// # Errors
    /// An unknown option is left.
    pub fn rest(self) -> Result<Vec<String>> {
        if let Some(unknown) = self.args.iter().find(|arg| arg.starts_with('-')) {
            bail!("unknown option {unknown}");
        }
        Ok(self.args)
    }
}

/// A number with thousands separated, for tables.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Prints rows with columns aligned: the first to the left, the others to the right.
pub fn print_table(rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    for row in rows {
        let mut line = String::new();
        for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
            if index == 0 {
                line.push_str(&format!("{cell:<width$}"));
            } else if index + 1 == columns && row.len() == columns && !is_figure(cell) {
                line.push_str(&format!("  {cell}"));
            } else {
                line.push_str(&format!("  {cell:>width$}"));
            }
        }
        println!("{}", line.trim_end());
    }
}

fn is_figure(cell: &str) -> bool {
    cell.starts_with(|c: char| c.is_ascii_digit() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(args: &[&str]) -> Options {
        Options::new(&args.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_taken_in_any_order() {
        let mut given = options(&["wire", "--seconds", "5", "--asan"]);
        assert!(given.flag("--asan"));
        assert_eq!(given.value::<u64>("--seconds").unwrap(), Some(5));
        assert_eq!(given.value::<u64>("--runs").unwrap(), None);
        assert_eq!(given.rest().unwrap(), ["wire"]);
    }

    #[test]
    fn a_wrong_option_is_an_error() {
        assert!(options(&["--seconds"]).value::<u64>("--seconds").is_err());
        assert!(
            options(&["--seconds", "x"])
                .value::<u64>("--seconds")
                .is_err()
        );
        assert!(options(&["--nonsense"]).rest().is_err());
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(grouped(20_000_000), "20,000,000");
    }
}
