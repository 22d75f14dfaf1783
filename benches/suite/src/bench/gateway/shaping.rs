//! A rate for one client, while another downloads as fast as it can.

use super::between::Gateway;
use super::between::Rounds;
use super::policy::Policy;
use super::site::Site;
use crate::bench::harness::{Runs, Target};
use anyhow::{Context as _, Result, bail};
use linkweir_testkit::gateway::client;
use linkweir_testkit::netns::Running;
use std::process::Stdio;

/// Goodput of 10 Mbit/s, MB/s: 1.25 of frames, of which 1448 bytes in 1514 are payload, rounded as the
/// promise is.
const RATE: f64 = 1.19;
const TOLERANCE: f64 = 0.02;
/// Least part of what the others get without a shaped client beside them.
const OTHERS: f64 = 0.9;
/// Seconds for which the shaped client downloads: what is in flight at the end must not matter.
const SECONDS: u32 = 6;
/// The shaped client; wrk uses the first address.
const SHAPED: u8 = 1;

/// One round.
#[derive(Debug)]
struct Run {
    /// What the shaped client got, MB/s.
    shaped: f64,
    /// What the others got without a shaped download and beside one, Gbit/s.
    alone: f64,
    beside: f64,
}

/// Measures both.
pub(super) fn run(rounds: &Rounds<'_>, site: &Site) -> Result<Vec<Target>> {
    let policy = Policy {
        queues: rounds.plan.queues,
        scanner: None,
        waits_for_scans: false,
        rules: format!(
            "[[rule]]\nname = \"slow\"\napplication = [\"http\"]\nclients = [\"{}\"]\n\
             action = \"allow\"\nshape = \"10mbit\"\n",
            client(SHAPED)
        ),
    };
    let runs = Runs::measure(rounds.plan.runs, "10 Mbit/s", |_| {
        let gateway = Gateway::start(rounds, site, &policy)?;
        let alone = rounds.downloads(site, &[gateway.id()])?.gbit_s;
        let download = Shaped::start(site)?;
        // The shaped download has found its rate by then.
        std::thread::sleep(std::time::Duration::from_secs(1));
        let beside = rounds.downloads(site, &[gateway.id()])?.gbit_s;
        let shaped = download.rate()?;
        gateway.finish()?;
        Ok(Run {
            shaped,
            alone,
            beside,
        })
    })?;
    println!(
        "\nshaped to 10 Mbit/s: {} MB/s; others meanwhile: {:.2} Gbit/s",
        runs.iter()
            .map(|run| format!("{:.3}", run.shaped))
            .collect::<Vec<_>>()
            .join(", "),
        runs.median(|run| run.beside),
    );
    let part = runs.median(|run| run.beside / run.alone);
    Ok(targets(runs.median(|run| run.shaped), part))
}

fn targets(shaped: f64, others: f64) -> Vec<Target> {
    vec![
        Target::new(
            format!(
                "shaped to 10 Mbit/s: {RATE} MB/s within {:.0} %",
                TOLERANCE * 100.0
            ),
            format!("{shaped:.3} MB/s"),
            (shaped / RATE - 1.0).abs() <= TOLERANCE,
        ),
        Target::new(
            format!("others beside it: at least {OTHERS} of what they get alone"),
            format!("{others:.2}"),
            others >= OTHERS,
        ),
    ]
}

/// A download of the shaped client.
struct Shaped {
    curl: Running,
}

impl Shaped {
    fn start(site: &Site) -> Result<Self> {
        let mut curl = site.client("curl");
        curl.args([
            "-s",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code} %{size_download} %{time_total}",
        ]);
        curl.args(["--interface", &client(SHAPED).to_string()]);
        curl.args(["--max-time", &SECONDS.to_string(), &Site::url("large.bin")]);
        curl.stdout(Stdio::piped());
        let curl = Running::start(&mut curl).context("run curl")?;
        Ok(Self { curl })
    }

    /// Waits for its end; MB/s.
    fn rate(self) -> Result<f64> {
        let output = self.curl.output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let mut words = said.split_whitespace();
        let is_good = words.next() == Some("200");
        let mut number = || words.next().and_then(|word| word.parse::<f64>().ok());
        match (is_good, number(), number()) {
            (true, Some(bytes), Some(seconds)) if seconds > 0.0 => Ok(bytes / seconds * 1e-6),
            _ => bail!("the shaped download failed: {}", said.trim()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::harness::reached;

    #[test]
    fn two_percent_to_both_sides() {
        let passed = |shaped, others| reached(&targets(shaped, others));
        assert_eq!(passed(1.196, 0.97), [true, true]);
        assert_eq!(passed(1.22, 0.89), [false, false]);
        assert_eq!(passed(1.16, 1.1), [false, true]);
    }
}
