//! A peer of `linkweir_testkit::peers` as a process in a namespace.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use linkweir_testkit::gateway::Place;
use linkweir_testkit::netns::Running;

use crate::error::LabError;
use crate::testbed::Testbed;

/// How long a peer may take for all that it does.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A peer that runs. Dropped, it is killed.
#[derive(Debug)]
pub(super) struct Peer {
    running: Running,
    said: PathBuf,
}

/// What a peer said, and how it ended.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// One of the codes of `linkweir_testkit::peers`; `None` of one that was killed.
    pub(super) code: Option<u8>,
    text: String,
}

impl Peer {
    /// Starts one; its words are those of `linkweir_testkit::peers`, and what it says goes to the file
    /// `NAME.said`.
    pub(super) fn start(
        testbed: &Testbed<'_>,
        place: Place,
        name: &str,
        words: &[&str],
    ) -> Result<Self, LabError> {
        let said = testbed.path(&format!("{name}.said"));
        let file = File::create(&said).map_err(LabError::file(&said))?;
        let mut command = testbed.part(place, &["peer"]);
        command.args(words).stdout(file).stderr(Stdio::null());
        let running =
            Running::start(&mut command).map_err(|error| LabError::program(name, error))?;
        Ok(Self { running, said })
    }

    /// The same for one that listens: returns when it does.
    pub(super) fn listening(
        testbed: &Testbed<'_>,
        place: Place,
        name: &str,
        words: &[&str],
    ) -> Result<Self, LabError> {
        let mut peer = Self::start(testbed, place, name, words)?;
        testbed.wait(name, TIMEOUT, || {
            peer.has_ended() || peer.text().contains("listening ")
        })?;
        if peer.has_ended() {
            return Err(LabError::program(name, peer.text()));
        }
        Ok(peer)
    }

    /// Waits until it ends by itself.
    pub(super) fn wait(mut self, testbed: &Testbed<'_>) -> Result<Said, LabError> {
        testbed.wait("a peer", TIMEOUT, || self.has_ended())?;
        let status = self.running.ended();
        let code = status.ok().flatten().and_then(|status| status.code());
        Ok(Said {
            code: code.and_then(|code| u8::try_from(code).ok()),
            text: self.text(),
        })
    }

    /// Kills it, and gives what it said so far.
    pub(super) fn kill(self) -> Said {
        let said = self.said.clone();
        drop(self);
        Said {
            code: None,
            text: fs::read_to_string(said).unwrap_or_default(),
        }
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.running.ended(), Ok(None))
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.said).unwrap_or_default()
    }
}

impl Said {
    /// The connections that it opened: its own address, and the other one.
    pub(super) fn opened(&self) -> impl Iterator<Item = (SocketAddr, SocketAddr)> + '_ {
        self.text.lines().filter_map(|line| {
            let (own, other) = line.strip_prefix("connected ")?.split_once(" to ")?;
            Some((own.parse().ok()?, other.parse().ok()?))
        })
    }

    /// The messages that it heard.
    pub(super) fn heard(&self) -> impl Iterator<Item = &str> + '_ {
        let lines = self.text.lines();
        lines.filter_map(|line| Some(line.strip_prefix("heard ")?.split_once(": ")?.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_says_is_read() {
        let said = Said {
            code: Some(0),
            text: "connected 10.0.0.1:4000 to 10.0.0.2:5000\nheard a@b: x: y\nconnected\n\
                   received 7\n"
                .to_owned(),
        };
        let opened: Vec<_> = said.opened().collect();
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(
            opened,
            [(address("10.0.0.1:4000"), address("10.0.0.2:5000"))]
        );
        assert_eq!(said.heard().collect::<Vec<_>>(), ["x: y"]);
    }
}
