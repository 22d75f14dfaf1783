//! The three namespaces, the server in one of them, and its files.

use anyhow::{Context as _, Result};
use linkweir_testkit::gateway::{Links, Net, Place, SERVER};
use linkweir_testkit::netns::Running;
use std::ffi::OsStr;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::bench::harness::{ready, text};
use crate::shell::root;

/// Bytes of a download.
pub(super) const DOWNLOAD: usize = 2 << 20;
/// Bytes of a small answer.
const SMALL: usize = 1024;
/// Bytes of the file that is slow to scan: less than a window.
pub(super) const SLOW: usize = 16 << 10;
/// Bytes of the file that a shaped client never gets to the end of.
const LARGE: usize = 64 << 20;
/// Keywords, none of which occurs in the files.
const KEYWORDS: usize = 1000;
/// The servers of the paper's test bed beside the one that there is.
const MORE_SERVERS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 88, 2, 3), Ipv4Addr::new(10, 88, 2, 4)];
/// What the slow scanner is slow for.
pub(super) const MARKER: &str = "TAKE-YOUR-TIME";

/// Where it is measured.
#[derive(Debug)]
pub(super) struct Site {
    // Ends before its namespace.
    _nginx: Running,
    net: Net,
    dir: PathBuf,
}

impl Site {
    /// Makes the namespaces and starts nginx; `dir` is in memory.
    pub(super) fn new(links: Links, dir: &Path) -> Result<Self> {
        let files = dir.join("files");
        fs::create_dir_all(&files).with_context(|| format!("create {}", files.display()))?;
        let words_of_file = words(LARGE, (2, 5), 1);
        let slow = [MARKER.as_bytes(), &words_of_file].concat();
        for (name, bytes, length) in [
            ("file.bin", &words_of_file, DOWNLOAD),
            ("small.bin", &words_of_file, SMALL),
            ("slow.bin", &slow, SLOW),
            ("large.bin", &words_of_file, LARGE),
        ] {
            fs::write(files.join(name), bytes.get(..length).unwrap_or(bytes))?;
        }
        let mut keywords = words(KEYWORDS * 16, (6, 14), 2);
        keywords
            .iter_mut()
            .filter(|byte| **byte == b' ')
            .for_each(|byte| *byte = b'\n');
        let keywords = String::from_utf8(keywords)?;
        let keywords: Vec<&str> = keywords.lines().take(KEYWORDS).collect();
        fs::write(dir.join("keywords"), keywords.join("\n"))?;

        let net = Net::with(links)?;
        for address in MORE_SERVERS {
            let address = format!("{address}/24");
            net.must(
                Place::Server,
                "ip",
                &["address", "add", &address, "dev", "srv0"],
            )?;
        }
        let nginx = nginx(&net, dir)?;
        Ok(Self {
            _nginx: nginx,
            net,
            dir: dir.to_path_buf(),
        })
    }

    pub(super) const fn net(&self) -> &Net {
        &self.net
    }

    /// For what belongs to it; in memory.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The addresses of all servers.
    pub(super) fn servers() -> [IpAddr; 3] {
        let [second, third] = MORE_SERVERS.map(IpAddr::V4);
        [SERVER, second, third]
    }

    /// A file that nginx serves.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.dir.join("files").join(name)
    }

    /// A command where the clients are.
    pub(super) fn client(&self, program: impl AsRef<OsStr>) -> Command {
        self.net.command(Place::Client, program)
    }

    /// A command where the gateway is.
    pub(super) fn gateway(&self, program: impl AsRef<OsStr>) -> Command {
        self.net.command(Place::Gateway, program)
    }

    /// A short command where the gateway is; words are separated by blanks.
    pub(super) fn must(&self, line: &str) -> Result<()> {
        let mut words = line.split_whitespace();
        let program = words.next().context("no command")?;
        let words: Vec<&str> = words.collect();
        Ok(self.net.must(Place::Gateway, program, &words)?)
    }

    /// Whether somebody listens on a TCP port where the gateway is; in hexadecimal, as the kernel's table
    /// has it.
    pub(super) fn listens(&self, port: &str) -> bool {
        let tables = [self.net.table("tcp"), self.net.table("tcp6")].concat();
        // 0A: listening.
        let is_it = |line: &str| line.contains(&format!(":{port} ")) && line.contains(" 0A ");
        tables.lines().any(is_it)
    }

    /// The address of a file.
    pub(super) fn url(name: &str) -> String {
        format!("http://{SERVER}/{name}")
    }
}

/// A configuration of `benches/gateway`, filled in and written.
pub(super) fn filled(name: &str, path: &Path, values: &[(&str, &str)]) -> Result<()> {
    let source = root().join("benches/gateway").join(name);
    let mut text =
        fs::read_to_string(&source).with_context(|| format!("read {}", source.display()))?;
    for (placeholder, value) in values {
        text = text.replace(placeholder, value);
    }
    fs::write(path, text).with_context(|| format!("write {}", path.display()))
}

fn nginx(net: &Net, dir: &Path) -> Result<Running> {
    let configuration = dir.join("nginx.conf");
    filled("nginx.conf", &configuration, &[("DIRECTORY", &text(dir)?)])?;
    let log = dir.join("nginx-error.log");
    let mut command = net.command(Place::Server, "nginx");
    command
        .arg("-e")
        .arg(&log)
        .arg("-p")
        .arg(dir)
        .arg("-c")
        .arg(&configuration);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let nginx = Running::start(&mut command).context("start nginx")?;
    // Its number is written once its sockets listen.
    let pid = dir.join("nginx.pid");
    let is_there = |_| fs::metadata(&pid).is_ok_and(|file| file.len() > 0);
    let said = |_| fs::read_to_string(&log).unwrap_or_default();
    ready("nginx", nginx, is_there, said)
}

/// Random words of small letters, of so many letters each, separated by blanks; always the same. What
/// is searched has words of other lengths than what is looked for, so nothing is found.
fn words(length: usize, (shortest, longest): (u8, u8), seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut random = |below: u8| {
        // Knuth's linear congruential generator; its upper bits are the good ones.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let [high, ..] = state.to_be_bytes();
        high % below
    };
    let mut text = Vec::with_capacity(length + 16);
    while text.len() < length {
        for _ in 0..shortest + random(longest - shortest + 1) {
            text.push(b'a' + random(26));
        }
        text.push(b' ');
    }
    text.truncate(length);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_keyword_occurs_in_a_file() {
        let longest = |text: &[u8]| text.split(|byte| *byte == b' ').map(<[u8]>::len).max();
        assert!(longest(&words(100_000, (2, 5), 1)) <= Some(5));
        let keywords = words(16_000, (6, 14), 2);
        let complete: Vec<&[u8]> = keywords.split(|byte| *byte == b' ').take(1000).collect();
        assert_eq!(complete.len(), 1000);
        assert!(complete.iter().all(|word| (6..=14).contains(&word.len())));
    }
}
