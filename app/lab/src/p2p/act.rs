//! What the peers do: transfers and conversations, and what is to become of them.
//!
//! Whether files arrived as they were sent.

use super::Settings;
use super::peer::{Peer, Said};
use super::policy::{FOR_GUEST, GUEST, KEYWORD, MEMBER};
use crate::error::LabError;
use crate::testbed::Testbed;
use linkweir_testkit::clamd::EICAR;
use linkweir_testkit::gateway::{Place, SERVER};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The first port of a peer: nobody's.
const PORT: u16 = 21_000;
/// What each of two says in a conversation.
const MESSAGES: [&str; 3] = ["good morning", "are you there?", "here is the file"];

/// What one answers to all of them.
const REPLY: &str = "I have heard you";

/// What is to become of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Fate {
    /// Everything arrives.
    Arrives,
    /// A virus is found in the file.
    Infected,
    /// A keyword is found in what is said.
    Secret,
    /// Nothing of it passes, and nobody is notified.
    Dropped,
    /// The connection is reset.
    Rejected,
}

/// One transfer or conversation.
#[derive(Debug)]
pub(super) struct Act {
    /// As the records name it.
    pub(super) application: &'static str,
    pub(super) fate: Fate,
    /// Whose peer it is.
    pub(super) client: IpAddr,
    number: u16,
}

/// What became of it.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) act: Act,
    /// The code of the peer at the client.
    pub(super) code: Option<u8>,
    /// The connections that were opened through the gateway, and what they are.
    pub(super) connections: Vec<(&'static str, SocketAddr)>,
    /// A file that was sent, and where it was to come.
    pub(super) file: Option<(PathBuf, PathBuf)>,
    /// Messages that were said, those of them that were heard.
    pub(super) said: usize,
    pub(super) heard: usize,
    /// Whether a keyword was heard.
    pub(super) is_out: bool,
}

/// What is done, in this order: those that are to wait in vain first, because that takes time.
pub(super) fn acts(settings: &Settings, has_scanner: bool) -> Vec<Act> {
    let infected = if has_scanner { settings.infected } else { 0 };
    let kinds = [
        ("edonkey", Fate::Dropped, GUEST, settings.refused),
        ("fasttrack", Fate::Rejected, GUEST, settings.refused),
        ("fasttrack", Fate::Arrives, MEMBER, settings.transfers),
        ("gnutella", Fate::Arrives, MEMBER, settings.transfers),
        ("gnutella", Fate::Infected, MEMBER, infected),
        ("unknown", Fate::Arrives, MEMBER, settings.transfers),
        ("msn", Fate::Arrives, MEMBER, settings.transfers),
        ("msn", Fate::Infected, MEMBER, infected),
        ("msn", Fate::Secret, MEMBER, settings.secrets),
    ];
    let all = kinds
        .into_iter()
        .flat_map(|(application, fate, client, count)| {
            (0..count).map(move |_| (application, fate, client))
        });
    (0..)
        .zip(all)
        .map(|(number, (application, fate, client))| Act {
            application,
            fate,
            client,
            number,
        })
        .collect()
}

/// An act that has begun.
pub(super) struct Begun {
    act: Act,
    /// At the server.
    others: Vec<Peer>,
    own: Peer,
    file: Option<(PathBuf, PathBuf)>,
    /// Where the conversation is, if it is one.
    board: Option<SocketAddr>,
}

impl Act {
    /// Every second transfer of what can be pushed is: who has the file connects to who wants it.
    fn is_pushed(&self) -> bool {
        let can_be = matches!(self.application, "fasttrack" | "gnutella");
        can_be && self.fate == Fate::Arrives && self.number % 2 == 1
    }

    /// Starts its peers.
    pub(super) fn begin(
        self,
        testbed: &Testbed<'_>,
        settings: &Settings,
    ) -> Result<Begun, LabError> {
        let name = format!("{}-{}", self.application, self.number);
        let sent = testbed.put(&name, &self.content(testbed.order.seed, settings))?;
        let came = testbed.path(&format!("{name}.came"));
        let server = if self.client == GUEST {
            FOR_GUEST
        } else {
            SERVER
        };
        let at = SocketAddr::new(server, PORT + self.number);
        if self.application == "msn" {
            return self.converse(testbed, at, (sent, came));
        }
        let protocol = match self.application {
            "unknown" => "raw",
            known => known,
        };
        let (file, out, address) = (text(&sent), text(&came), at.to_string());
        let (theirs, ours) = (format!("{name}-server"), format!("{name}-client"));
        let (other, own) = if self.is_pushed() {
            let words = ["fetch", protocol, "--listen", &address, "--out", &out];
            let other = Peer::listening(testbed, Place::Server, &theirs, &words)?;
            let words = ["serve", protocol, "--push", &address, "--file", &file];
            (other, Peer::start(testbed, Place::Client, &ours, &words)?)
        } else {
            let words = ["serve", protocol, "--listen", &address, "--file", &file];
            let other = Peer::listening(testbed, Place::Server, &theirs, &words)?;
            let words = ["fetch", protocol, "--connect", &address, "--out", &out];
            let size = settings.file_bytes.to_string();
            let more: &[&str] = match protocol {
                "edonkey" => &["--size", &size, "--timeout", "2"],
                "raw" => &["--say", "what nobody knows"],
                _ => &[],
            };
            let words = [&words[..], more].concat();
            (other, Peer::start(testbed, Place::Client, &ours, &words)?)
        };
        Ok(Begun {
            act: self,
            others: vec![other],
            own,
            file: Some((sent, came)),
            board: None,
        })
    }

    /// Two talk, and a file goes from the one at the server to the one at the client.
    fn converse(
        self,
        testbed: &Testbed<'_>,
        at: SocketAddr,
        (sent, came): (PathBuf, PathBuf),
    ) -> Result<Begun, LabError> {
        let name = format!("msn-{}", self.number);
        let (address, file, out) = (at.to_string(), text(&sent), text(&came));
        let words = ["serve", "msn", "--listen", &address];
        let board = Peer::listening(testbed, Place::Server, &format!("{name}-board"), &words)?;
        let says: Vec<&str> = MESSAGES.iter().flat_map(|text| ["--say", *text]).collect();
        let all = MESSAGES.len().to_string();
        let secret = format!("all of {KEYWORD} is in it");
        let has_file = self.fate != Fate::Secret;
        let (theirs, ours) = if has_file {
            let theirs = ["--hear", &all, "--offer", &file, "--listen", "10.88.2.2:0"];
            let ours = ["--hear", &all, "--accept", &out];
            ([&says, &theirs[..]].concat(), [&says, &ours[..]].concat())
        } else {
            // She says it when he has heard all that may be said.
            let theirs = vec!["--hear", &all, "--reply", REPLY, "--then", "1"];
            let ours = ["--hear", "1", "--reply", &secret, "--then", "1"];
            (theirs, [&says, &ours[..]].concat())
        };
        let begin = ["chat", "--connect", &address];
        let bob = ["--as", "bob@example.test", "--answer"];
        let words = [&begin[..], &bob, &theirs].concat();
        let bob = Peer::start(testbed, Place::Server, &format!("{name}-bob"), &words)?;
        let alice = ["--as", "alice@example.test", "--to", "bob@example.test"];
        let words = [&begin[..], &alice, &ours].concat();
        let own = Peer::start(testbed, Place::Client, &format!("{name}-alice"), &words)?;
        Ok(Begun {
            act: self,
            others: vec![bob, board],
            own,
            file: has_file.then_some((sent, came)),
            board: Some(at),
        })
    }

    /// Bytes of no pattern, different for every act; in the middle is what is to be found.
    fn content(&self, seed: u64, settings: &Settings) -> Vec<u8> {
        let mut bytes = noise(seed ^ u64::from(self.number), settings.file_bytes);
        if self.fate == Fate::Infected {
            let middle = bytes.len() / 2;
            bytes.splice(middle..middle, EICAR.iter().copied());
        }
        bytes
    }
}

impl Begun {
    /// Waits until the peers have ended.
    pub(super) fn end(self, testbed: &Testbed<'_>) -> Result<Outcome, LabError> {
        let own = self.own.wait(testbed)?;
        let is_whole = self.act.fate == Fate::Arrives;
        let mut others = self.others.into_iter();
        let other = match others.next() {
            // The last bytes of a push or a conversation may be under way to it.
            Some(peer) if is_whole && (self.board.is_some() || self.act.is_pushed()) => {
                peer.wait(testbed)?
            }
            Some(peer) => peer.kill(),
            None => Said::default(),
        };
        let application = |other: SocketAddr| match self.board {
            Some(board) if other != board => "msnftp",
            _ => self.act.application,
        };
        let opened = own.opened();
        let connections = opened
            .map(|(own, other)| (application(other), own))
            .collect();
        let is_secret = |text: &&str| text.contains(KEYWORD);
        let heard: Vec<&str> = own.heard().chain(other.heard()).collect();
        let said = match (self.board, self.act.fate) {
            (None, _) => 0,
            (Some(_), Fate::Secret) => MESSAGES.len() + 1,
            (Some(_), _) => 2 * MESSAGES.len(),
        };
        Ok(Outcome {
            code: own.code,
            connections,
            file: self.file,
            said,
            heard: heard.iter().filter(|text| !is_secret(text)).count(),
            is_out: heard.iter().any(is_secret),
            act: self.act,
        })
    }
}

/// Bytes in which neither a scanner nor a codec finds anything: xorshift (Marsaglia 2003).
pub(super) fn noise(seed: u64, length: u32) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let words = (0..length.div_ceil(8)).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    words.take(length).collect()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// The SHA-256 of each file that is there, in hexadecimal digits as records have it.
pub(super) fn hashes<'a>(
    paths: impl Iterator<Item = &'a Path>,
) -> Result<BTreeMap<PathBuf, String>, LabError> {
    let there: Vec<&Path> = paths.filter(|path| path.is_file()).collect();
    if there.is_empty() {
        return Ok(BTreeMap::new());
    }
    let output = Command::new("sha256sum")
        .arg("-b")
        .args(&there)
        .output()
        .map_err(|error| LabError::program("sha256sum", error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = |line: &str| {
        let (hash, path) = line.split_once(" *")?;
        Some((PathBuf::from(path), hash.to_owned()))
    };
    Ok(text.lines().filter_map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_as_long_as_asked_for_and_its_own() {
        assert_eq!(noise(1, 1001).len(), 1001);
        assert_eq!(noise(1, 1001), noise(1, 1001));
        assert_ne!(noise(1, 1001), noise(2, 1001));
    }

    #[test]
    fn files_that_are_there_have_a_hash() {
        let directory = tempfile::tempdir().unwrap();
        let (there, not) = (directory.path().join("a b"), directory.path().join("c"));
        std::fs::write(&there, "abc").unwrap();
        let hashes = hashes([there.as_path(), not.as_path()].into_iter()).unwrap();
        // Source: FIPS 180-4, example of the Secure Hash Standard.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hashes.get(&there).map(String::as_str), Some(expected));
        assert_eq!(hashes.get(&not), None);
    }
}
