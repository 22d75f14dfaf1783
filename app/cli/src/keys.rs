//! `--keys`: the secrets of TLS sessions from a key log, also while programs write it.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use linkweir_capture::OnSecrets;
use linkweir_keys::{LiveLog, MAX_SESSIONS};
use linkweir_record::human::{counted, thousands};
use zeroize::Zeroizing;

use crate::exit::warn;

/// How often a file is looked at.
const EVERY: Duration = Duration::from_millis(100);

/// Reads the key logs in captures into this one.
pub(crate) fn from_captures(log: &Arc<LiveLog>) -> OnSecrets {
    let log = Arc::clone(log);
    OnSecrets::new(move |piece| {
        if log.grown() == 0 && linkweir_sys::privileges::forbid_core_dumps().is_err() {
            warn(
                "a capture has TLS secrets, and core dumps of this process, which would have them too, cannot be forbidden",
            );
        }
        match piece {
            [] => log.end(),
            piece => log.push(piece),
        }
    })
}

/// A key log as far as it was read.
#[derive(Debug)]
pub(crate) struct KeySource {
    path: PathBuf,
    log: Arc<LiveLog>,
    file: File,
    /// Bytes that were read of it.
    read: u64,
}

impl KeySource {
    /// Opens a key log and reads what is there; where packets come from files, a FIFO to its end.
    pub(crate) fn open(path: &Path, reads_files: bool, log: &Arc<LiveLog>) -> anyhow::Result<Self> {
        // A dump of the memory of this process would hold the secrets.
        linkweir_sys::privileges::forbid_core_dumps().context("forbid core dumps for --keys")?;
        if reads_files && std::fs::metadata(path).is_ok_and(|is| is.file_type().is_fifo()) {
            warn(&format!(
                "--keys: {} is read to its end before the capture",
                path.display()
            ));
        }
        let open = || {
            let is_file = std::fs::metadata(path)?.is_file();
            let file = match is_file || reads_files {
                true => File::open(path)?,
                false => linkweir_sys::open_without_waiting(path)?,
            };
            let mut source = Self {
                path: path.to_path_buf(),
                log: Arc::clone(log),
                file,
                read: 0,
            };
            source.go_on()?;
            if reads_files {
                source.log.pause();
                let counters = source.log.counters();
                if counters.evicted > 0 {
                    warn(&format!(
                        "--keys: {} has more than {} sessions: {} were discarded, the first ones; give a key log of the time of the capture",
                        path.display(),
                        thousands(MAX_SESSIONS as u64),
                        thousands(counters.evicted),
                    ));
                }
                if counters.secrets == 0 {
                    warn(&format!(
                        "--keys: {} has no secrets ({} of other kinds, {} that are not of a key log)",
                        path.display(),
                        counted(counters.others, "line"),
                        counted(counters.bad, "line"),
                    ));
                }
            }
            Ok::<_, io::Error>(source)
        };
        open().with_context(|| format!("read the key log {} (--keys)", path.display()))
    }

    /// Goes on reading as the file grows, as long as this process runs.
    pub(crate) fn follow(mut self) -> anyhow::Result<()> {
        let thread = std::thread::Builder::new().name("keys".to_owned());
        let follow = move || {
            loop {
                std::thread::park_timeout(EVERY);
                if let Err(error) = self.go_on() {
                    return warn(&format!(
                        "--keys: {}: {error}; no more secrets are read",
                        self.path.display()
                    ));
                }
            }
        };
        thread.spawn(follow).context("start a thread for --keys")?;
        Ok(())
    }

    /// Reads what is new; from the beginning where another file has the name, or it was emptied.
    fn go_on(&mut self) -> io::Result<()> {
        self.read_on()?;
        let (open, named) = (self.file.metadata()?, std::fs::metadata(&self.path).ok());
        let is_file = |of: &Metadata| of.is_file();
        let Some(named) = named.filter(|named| is_file(named) && is_file(&open)) else {
            return Ok(());
        };
        let is_another = (open.dev(), open.ino()) != (named.dev(), named.ino());
        if is_another || open.len() < self.read {
            self.log.end();
            self.file = File::open(&self.path)?;
            self.read = 0;
            self.read_on()?;
        }
        Ok(())
    }

    fn read_on(&mut self) -> io::Result<()> {
        let mut buffer = Zeroizing::new([0; 16 << 10]);
        loop {
            let len = match self.file.read(buffer.as_mut_slice()) {
                Ok(0) => return Ok(()),
                Ok(len) => len,
                // A FIFO with a writer that says nothing now.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.read += len as u64;
            self.log.push(buffer.get(..len).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn line(random: u8) -> String {
        let random = format!("{random:02x}").repeat(32);
        format!("CLIENT_RANDOM {random} {}\n", "00".repeat(48))
    }

    fn secrets(source: &KeySource) -> u64 {
        source.log.counters().secrets
    }

    #[test]
    fn a_file_may_grow_be_emptied_and_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys.log");
        std::fs::write(&path, line(1)).unwrap();
        let mut source = KeySource::open(&path, true, &Arc::default()).unwrap();
        assert_eq!(secrets(&source), 1);
        let mut file = File::options().append(true).open(&path).unwrap();
        // A line in two parts.
        let (first, rest) = (line(2), line(3));
        let (begin, end) = rest.split_at(20);
        write!(file, "{first}{begin}").unwrap();
        source.go_on().unwrap();
        assert_eq!(secrets(&source), 2);
        write!(file, "{end}").unwrap();
        source.go_on().unwrap();
        assert_eq!(secrets(&source), 3);
        // Emptied, and written again.
        std::fs::write(&path, line(4)).unwrap();
        source.go_on().unwrap();
        assert_eq!(secrets(&source), 4);
        std::fs::remove_file(&path).unwrap();
        source.go_on().unwrap();
        std::fs::write(&path, line(5)).unwrap();
        source.go_on().unwrap();
        assert_eq!((secrets(&source), source.log.counters().bad), (5, 0));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error =
            KeySource::open(Path::new("/nowhere/keys.log"), true, &Arc::default()).unwrap_err();
        let told = format!("{error:#}");
        assert!(told.contains("/nowhere/keys.log (--keys)"), "{told}");
    }
}
