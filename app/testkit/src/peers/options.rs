//! The words after a program's name.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// `--key value` in the order in which they came; `--answer` and `--lf` stand alone.
#[derive(Debug, Default, Clone)]
pub(super) struct Options {
    pairs: Vec<(String, String)>,
}

/// A file to be sent.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    pub name: String,
    pub bytes: Vec<u8>,
}

impl Options {
    /// Takes the words apart; what has no key comes back.
    pub(super) fn read(words: &[String]) -> io::Result<(Self, Vec<String>)> {
        let mut options = Self::default();
        let mut rest = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(key) = word.strip_prefix("--") else {
                rest.push(word.clone());
                continue;
            };
            let value = if matches!(key, "answer" | "lf") {
                String::new()
            } else {
                words.next().ok_or(ErrorKind::InvalidInput)?.clone()
            };
            options.pairs.push((key.to_owned(), value));
        }
        Ok((options, rest))
    }

    /// All values of a key.
    pub(super) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let is_it = move |pair: &&(String, String)| pair.0 == key;
        self.pairs.iter().filter(is_it).map(|pair| pair.1.as_str())
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.all(key).next().is_some()
    }

    /// The value of a key, where it is there.
    pub(super) fn find<T: FromStr>(&self, key: &str) -> io::Result<Option<T>> {
        let value = self.all(key).next();
        let read = value.map(|text| text.parse().map_err(|_| ErrorKind::InvalidInput.into()));
        read.transpose()
    }

    /// The value of a key that must be there.
    pub(super) fn get<T: FromStr>(&self, key: &str) -> io::Result<T> {
        let wrong = || io::Error::new(ErrorKind::InvalidInput, format!("--{key} is missing"));
        self.find(key)?.ok_or_else(wrong)
    }

    pub(super) fn address(&self, key: &str) -> io::Result<SocketAddr> {
        self.get(key)
    }

    /// The file of a key.
    pub(super) fn shared(&self, key: &str) -> io::Result<Shared> {
        let path: PathBuf = self.get(key)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(Shared {
            name: name.into_owned(),
            bytes: fs::read(&path)?,
        })
    }

    /// The file of a key, to be written.
    pub(super) fn create(&self, key: &str) -> io::Result<fs::File> {
        let path: PathBuf = self.get(key)?;
        fs::File::create(Path::new(&path))
    }

    pub(super) fn timeout(&self) -> io::Result<Duration> {
        Ok(Duration::from_secs(self.find("timeout")?.unwrap_or(10)))
    }

    pub(super) fn pace(&self) -> io::Result<Pace> {
        let offsets = self.all("split").flat_map(|list| list.split(','));
        let cuts: Result<_, _> = offsets.map(str::parse).collect();
        Ok(Pace {
            cuts: cuts.map_err(|_| ErrorKind::InvalidInput)?,
            chunk: self.find("chunk")?,
            pause: Duration::from_millis(self.find("pause")?.unwrap_or(5)),
        })
    }
}

/// How what is sent is cut into writes.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    /// Offsets in the stream.
    pub cuts: Vec<u64>,
    /// Longest write, bytes.
    pub chunk: Option<usize>,
    /// After each cut.
    pub pause: Duration,
}

impl Pace {
    /// How many of the bytes that begin at an offset are the next write.
    pub(super) fn next(&self, offset: u64, left: usize) -> usize {
        let to_cut = self.cuts.iter().filter_map(|cut| cut.checked_sub(offset));
        let to_cut = to_cut.filter(|far| *far > 0).min();
        let to_cut = to_cut.and_then(|far| usize::try_from(far).ok());
        left.min(to_cut.unwrap_or(usize::MAX))
            .min(self.chunk.unwrap_or(usize::MAX).max(1))
    }
}
