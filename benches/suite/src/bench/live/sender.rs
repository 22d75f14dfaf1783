//! `benches/limits/replay.c`: what puts the packets on the wire.
//!
//! From a feeder to a consumer through shared memory: the example `feed_speed`, which pins both to cores of
//! their own and times every way of `linkweir feed --by`.

use super::super::harness::{Column, Runs, Target, Words, digits, number, print};
use crate::shell::{cargo, output};
use anyhow::{Context as _, Result, bail};
use linkweir_testkit::conversation::Side;
use linkweir_testkit::netns::{Wire, interface};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The core that sends. On a veth pair it also does what the kernel does to receive, unless that is steered to another.
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

/// What a feeder and a consumer must carry, million packets per second.
const LEAST_MPPS: f64 = 5.0;
/// Bytes of a packet of zeros.
const BYTES: u64 = 200;
const PACKETS: u64 = 20_000_000;
/// The way that the goal is of.
const GOAL: &str = "feed_paper_mpps";
/// The ways that are timed, by their keys; the last is what `linkweir feed` does unless told otherwise.
const WAYS: [(&str, &str); 6] = [
    ("ring_mpps", "a ring, two threads"),
    ("feed_flow_mpps", "--by flow"),
    ("feed_paper_mpps", "--by paper"),
    ("nginx_flow_mpps", "--by flow, traffic of nginx"),
    ("nginx_paper_mpps", "--by paper, traffic of nginx"),
    (
        "nginx_transaction_mpps",
        "--by transaction, traffic of nginx",
    ),
];

/// Figures by way, in their order.
type Figures = [f64; WAYS.len()];

/// Times the rings; prints the table.
pub(super) fn rate(runs: usize) -> Result<Target> {
    let figures = Runs::measure(runs, "feeder to consumer", |_| {
        let mut example = cargo();
        example
            .args(["run", "--quiet", "--release", "--package"])
            .arg("linkweir-instructions")
            .args(["--example", "feed_speed", "--"])
            .args([PACKETS, BYTES].map(|number| number.to_string()));
        let text = String::from_utf8(output(&mut example)?)?;
        parse(text.lines().last().unwrap_or_default())
    })?;
    let of_way = |at: usize| -> Runs<f64> {
        let figures = figures.iter().map(|figures| figures.get(at).copied());
        figures.collect()
    };
    let title = format!(
        "feeder to consumer process, a core each: packets of {BYTES} bytes without HTTP, or those of the \
         bundled capture; median of {runs}"
    );
    let rows = WAYS.iter().enumerate();
    print(
        &title,
        &COLUMNS,
        rows.map(|(at, (_, name))| (*name, of_way(at))),
    );
    let goal = WAYS.iter().position(|(key, _)| *key == GOAL);
    let goal = of_way(goal.context("no way for the target")?);
    Ok(target(goal.median(|mpps| *mpps)))
}

const COLUMNS: [Column<(&str, Runs<f64>)>; 4] = [
    ("through", |(name, _)| (*name).to_owned()),
    ("Mpps", |(_, runs)| digits(runs.median(|mpps| *mpps), 2)),
    ("least", |(_, runs)| digits(runs.least(|mpps| *mpps), 2)),
    ("most", |(_, runs)| digits(runs.most(|mpps| *mpps), 2)),
];

fn parse(line: &str) -> Result<Figures> {
    let said: Value = serde_json::from_str(line).context("the last line of feed_speed")?;
    let mut figures = [f64::NAN; WAYS.len()];
    for (figure, (key, _)) in figures.iter_mut().zip(WAYS) {
        *figure = number(&said, key)?;
    }
    Ok(figures)
}

fn target(mpps: f64) -> Target {
    Target::new(
        format!("feeder to consumer by Eq. (3): at least {LEAST_MPPS} Mpps of {BYTES} bytes"),
        format!("{mpps:.2} Mpps"),
        mpps >= LEAST_MPPS,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_the_example() {
        let line = r#"{"packet_bytes":200,"ring_mpps":9.5,"feed_flow_mpps":7,"feed_paper_mpps":6.5,
            "nginx_flow_mpps":6,"nginx_paper_mpps":5.5,"nginx_transaction_mpps":5.001}"#;
        assert_eq!(parse(line).unwrap(), [9.5, 7.0, 6.5, 6.0, 5.5, 5.001]);
        assert!(parse("{}").is_err());
        let passed = |mpps| target(mpps).is_reached;
        assert!(passed(5.0) && !passed(4.99) && !passed(f64::NAN));
    }
}
