//! `benches/limits/replay.c`: what puts the packets on the wire.

use super::super::harness::Words;
use anyhow::{Context as _, Result, bail};
use linkweir_testkit::conversation::Side;
use linkweir_testkit::netns::{Wire, interface};
use std::path::{Path, PathBuf};

/// The core that sends. On a veth pair it also does what the kernel does to receive.
pub(super) const CORE: usize = 1;

/// How much is sent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Span {
    /// The capture once.
    Once,
    /// The capture again and again, each time as other connections, for so many seconds.
    Seconds(f64),
}

/// What was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) seconds: f64,
}

impl Sent {
    pub(super) fn rate(&self) -> f64 {
        self.packets as f64 / self.seconds
    }
}

/// The sender and the namespaces it sends between.
#[derive(Debug)]
pub(super) struct Sender<'w> {
    pub(super) wire: &'w Wire,
    pub(super) program: PathBuf,
}

impl Sender<'_> {
    /// Sends a capture from the clients' side; `rate` in packets per second, as fast as it goes if
    /// not given.
    pub(super) fn send(&self, capture: &Path, span: Span, rate: Option<f64>) -> Result<Sent> {
        let mut command = self.wire.urgent_command(Side::Client, &self.program);
        command
            .arg(interface(Side::Client))
            .arg(capture)
            .args(["--core", &CORE.to_string()]);
        if let Span::Seconds(seconds) = span {
            command.args(["--loops", "0", "--seconds", &seconds.to_string()]);
        }
        if let Some(rate) = rate {
            command.args(["--rate", &format!("{rate:.0}")]);
        }
        let output = command.output().context("run the sender")?;
        let line = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("the sender failed: {line} {said}");
        }
        let words = Words::of(&line);
        Ok(Sent {
            packets: words.whole("sent")?,
            bytes: words.whole("bytes")?,
            seconds: words.number("seconds")?,
        })
    }
}
