//! A real clamd on a configuration, a database and a socket of its own, in a directory that goes with it.
//!
//! The database has one signature for the EICAR test string (`Gw.Eicar.Body`, found anywhere) and a
//! few thousand for bytes that do not occur. There is no network, and no cache of clean files: what is
//! scanned twice is scanned twice.

use std::fmt::{self, Write as _};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use crate::netns::{Running, until};
use crate::ran::installed;
use crate::temporary::TemporaryDirectory;

/// The EICAR test string: 68 bytes that scanners report though they do no harm. Put together when the
/// program runs, so that no file of the project has it.
pub static EICAR: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let halves: [&[u8]; 2] = [
        br"X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR",
        b"-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*",
    ];
    halves.concat()
});

/// What clamd calls it: signatures of one's own are unofficial.
pub const EICAR_NAME: &str = "Gw.Eicar.Body.UNOFFICIAL";

/// Signatures beside that of EICAR.
const RANDOM_SIGNATURES: u64 = 4000;
/// How long clamd may take to start or to end.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Why there is no clamd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// For a person who reads that a test did not run.
    pub why: String,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no clamd: {}", self.why)
    }
}

impl std::error::Error for Unavailable {}

impl From<io::Error> for Unavailable {
    fn from(error: io::Error) -> Self {
        Self {
            why: error.to_string(),
        }
    }
}

/// A clamd that runs, or did. Dropped, it is killed. It also ends with the thread that started it.
#[derive(Debug)]
pub struct Clamd {
    program: PathBuf,
    directory: TemporaryDirectory,
    running: Option<Running>,
}

impl Clamd {
    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// It is not installed (Debian: clamav-daemon), or does not start.
    pub fn start() -> Result<Self, Unavailable> {
        Self::start_with("")
    }

    /// Starts it with more lines for its configuration, such as `StreamMaxLength 1M`.
    ///
    /// # Errors
    /// As [`Clamd::start`].
    pub fn start_with(settings: &str) -> Result<Self, Unavailable> {
        let program = installed("clamd").ok_or_else(|| Unavailable {
            why: "the program clamd is not installed (Debian: clamav-daemon)".to_owned(),
        })?;
        // A path of a socket has at most 107 bytes, so not below the directory of a build.
        let directory = TemporaryDirectory::new("clamd-")?;
        let database = directory.path().join("db");
        fs::create_dir(&database)?;
        fs::create_dir(directory.path().join("tmp"))?;
        fs::write(database.join("test.ndb"), signatures())?;
        fs::write(
            directory.path().join("clamd.conf"),
            config(directory.path(), settings),
        )?;
        let mut clamd = Self {
            program,
            directory,
            running: None,
        };
        clamd.restart()?;
        Ok(clamd)
    }

    /// The path of its socket, the same after a restart.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("clamd.sock")
    }

    /// Its process id; `None` while it does not run.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(Running::id)
    }

    /// Sends it a signal by name: `STOP` makes it hang, `CONT` ends that.
    ///
    /// # Errors
    /// It does not run.
    pub fn signal(&self, name: &str) -> io::Result<()> {
        let running = self.running.as_ref();
        running.map_or_else(
            || Err(io::Error::other("it does not run")),
            |clamd| clamd.signal(name),
        )
    }

    /// Ends it as an administrator does, with SIGTERM, and waits for that.
    pub fn stop(&mut self) {
        if let Some(mut running) = self.running.take() {
            // One that does not end in time, or has ended before, is killed when dropped.
            drop(running.signal("TERM"));
            until(TIMEOUT, || !matches!(running.ended(), Ok(None)));
        }
    }

    /// Kills it: no good-bye, and its socket stays behind.
    pub fn kill(&mut self) {
        drop(self.running.take());
    }

    /// Ends it if it runs, starts it again and waits until it answers.
    ///
    /// # Errors
    /// It does not start.
    pub fn restart(&mut self) -> Result<(), Unavailable> {
        self.stop();
        let log = fs::File::create(self.directory.path().join("log"))?;
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(&self.program)
            .arg("--foreground")
            .arg("--config-file")
            .arg(self.directory.path().join("clamd.conf"))
            // A key pressed for the program is not for it.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let mut running = Running::start(&mut command)?;
        let socket = self.socket();
        let mut has_ended = false;
        let answers = until(TIMEOUT, || {
            has_ended = !matches!(running.ended(), Ok(None));
            has_ended || is_answering(&socket).unwrap_or(false)
        });
        if answers && !has_ended {
            self.running = Some(running);
            return Ok(());
        }
        let log = fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        Err(Unavailable {
            why: format!("it does not start: {}", log.trim()),
        })
    }
}

fn is_answering(socket: &Path) -> io::Result<bool> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(b"zPING\0")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.starts_with("PONG"))
}

fn config(directory: &Path, settings: &str) -> String {
    let directory = directory.display();
    // The first setting of a name counts, so what the caller wants comes first.
    format!(
        "{settings}\n\
         DatabaseDirectory {directory}/db\n\
         TemporaryDirectory {directory}/tmp\n\
         LocalSocket {directory}/clamd.sock\n\
         LocalSocketMode 600\n\
         FixStaleSocket yes\n\
         Foreground yes\n\
         DisableCache yes\n\
         Bytecode no\n\
         SelfCheck 0\n\
         MaxThreads 8\n\
         StreamMaxLength 100M\n\
         {}",
        if is_root() { "User root\n" } else { "" }
    )
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").is_ok_and(|of_us| of_us.uid() == 0)
}

/// Lines of a database of bodies: name, type of file (0: any), offset (`*`: any), bytes.
fn signatures() -> String {
    let mut lines = String::new();
    let mut line = |name: &str, bytes: &[u8]| {
        write!(lines, "{name}:0:*:").unwrap_or_default();
        for byte in bytes {
            write!(lines, "{byte:02x}").unwrap_or_default();
        }
        lines.push('\n');
    };
    line("Gw.Eicar.Body", &EICAR);
    // splitmix64: always the same, and nothing that occurs in a test's data.
    let mut state = 0x6c69_6e6b_7765_6972_u64;
    for number in 0..RANDOM_SIGNATURES {
        let mut bytes = Vec::with_capacity(24);
        for _ in 0..3 {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            bytes.extend_from_slice(&(mixed ^ (mixed >> 31)).to_be_bytes());
        }
        line(&format!("Gw.Random.{number}"), &bytes);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_string_has_its_length() {
        assert_eq!(EICAR.len(), 68);
        assert_eq!(signatures().lines().count(), 4001);
        // Its parts are no signature, and so this file is none.
        assert!(
            !include_bytes!("clamd.rs")
                .windows(68)
                .any(|part| part == EICAR.as_slice())
        );
    }

    #[test]
    fn it_starts_stops_and_starts_again() {
        let mut clamd = match Clamd::start() {
            Ok(clamd) => clamd,
            Err(error) => {
                eprintln!("SKIPPED: {error}");
                return;
            }
        };
        let first = clamd.pid().expect("it runs");
        let socket = clamd.socket();
        clamd.stop();
        assert_eq!(clamd.pid(), None);
        assert!(!Path::new(&format!("/proc/{first}/exe")).exists());
        assert!(is_answering(&socket).is_err());
        clamd.restart().expect("it starts again");
        assert!(is_answering(&socket).expect("it listens"));
        clamd.kill();
        assert!(is_answering(&socket).is_err());
        let directory = clamd.directory.path().to_owned();
        drop(clamd);
        assert!(!directory.exists());
    }
}
