//! The paper's Table 3: what each of several workers or consumers of a live link gets, and what that costs.

use super::super::harness::{
    Target, count, digits,
    proc::{Threads, rest},
};
use super::readers::{listening, summary};
use super::sender::{Sender, Span};
use super::traffic::{self, Talked};
use crate::shell::{grouped, print_table};
use anyhow::{Context as _, Result, bail, ensure};
use linkweir_engine::hash::eq1_connection;
use linkweir_engine::split::shard_of;
use linkweir_testkit::conversation::Side;
use linkweir_testkit::netns::{Running, interface, until};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How far from even a share may be, percentage points.
const MOST_PP: f64 = 0.5;
/// Slow enough for four programs on two cores: shares are of packets that were not lost.
const RATE: f64 = 100_000.0;
const TIMEOUT: Duration = Duration::from_secs(20);

/// What one worker or consumer got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Share {
    packets: u64,
    transactions: u64,
}

/// A way to divide, and what each got.
#[derive(Debug)]
struct Division {
    how: String,
    shares: Vec<Share>,
    /// CPU time of the feeder, seconds; of workers, among which the kernel distributes, none.
    feeder_s: f64,
    /// The most of a worker or consumer.
    most_s: f64,
    /// Whether shares are to be even: connections as they are need not be.
    is_even: bool,
}

impl Division {
    /// The largest distance from an even share, percentage points.
    fn deviation(&self, part: fn(&Share) -> u64) -> f64 {
        let even = 100.0 / self.shares.len() as f64;
        let percent = percentages(&self.shares, part);
        percent
            .into_iter()
            .map(|percent| (percent - even).abs())
            .fold(0.0, f64::max)
    }

    fn rows(&self) -> [Vec<String>; 2] {
        let row = |what: &str, part: fn(&Share) -> u64| {
            let mut row = vec![
                format!("{}: {what}", self.how),
                grouped(self.shares.iter().map(part).sum()),
                format!("{:.2}", self.deviation(part)),
                digits(self.feeder_s, 2),
                digits(self.most_s, 2),
            ];
            let percent = percentages(&self.shares, part);
            row.extend(percent.iter().map(|percent| format!("{percent:.2} %")));
            row
        };
        [
            row("packets", |share| share.packets),
            row("transactions", |share| share.transactions),
        ]
    }

    fn target(&self) -> Target {
        let packets = self.deviation(|share| share.packets);
        let transactions = self.deviation(|share| share.transactions);
        Target::new(
            format!("{}: within {MOST_PP} percentage points of even", self.how),
            format!("packets {packets:.2}, transactions {transactions:.2}"),
            packets <= MOST_PP && transactions <= MOST_PP,
        )
    }
}

fn percentages(shares: &[Share], part: fn(&Share) -> u64) -> Vec<f64> {
    let all: u64 = shares.iter().map(part).sum();
    let percent = |share| part(share) as f64 * 100.0 / all as f64;
    shares.iter().map(percent).collect()
}

/// Measures workers and consumers; prints the table, beside Eq. (1) alone.
pub(super) fn all(
    sender: &Sender<'_>,
    linkweir: &Path,
    transactions: u64,
    dir: &Path,
) -> Result<Vec<Target>> {
    let capture = dir.join("shares.pcap");
    let talked = traffic::write(&capture, transactions)?;
    let run = Run {
        sender,
        linkweir,
        capture: &capture,
        dir,
        packets: talked.iter().map(|talk| talk.packets).sum(),
        transactions,
    };
    let counts = [1_u32, 2, 4];
    let mut all = Vec::new();
    for count in counts {
        all.push(run.workers(count)?);
    }
    for by in ["transaction", "paper", "flow"] {
        for count in counts {
            all.push(run.consumers(by, count)?);
        }
    }
    std::fs::remove_file(&capture)?;

    println!(
        "\nshares: {} transactions in {} packets, {} connections from 8 addresses, {} packets/s",
        grouped(transactions),
        grouped(run.packets),
        talked.len(),
        format_args!("{RATE:.0}")
    );
    let header = [
        "divided",
        "all",
        "max pp",
        "feeder, CPU s",
        "most, CPU s",
        "shares",
    ];
    let mut table = vec![header.map(str::to_owned).to_vec()];
    for division in &all {
        table.extend(division.rows());
    }
    for count in [2, 4] {
        table.extend(by_connection(&talked, count).rows());
    }
    print_table(&table);
    let even = all.iter().filter(|division| division.is_even);
    Ok(even.map(Division::target).collect())
}

/// What Eq. (1), which knows only the connection, would give each of `count`.
fn by_connection(talked: &[Talked], count: u32) -> Division {
    let mut shares = vec![Share::default(); count as usize];
    let server = (traffic::server().ip(), traffic::server().port());
    for talk in talked {
        let hash = eq1_connection((talk.client.ip(), talk.client.port()), server);
        if let Some(share) = shares.get_mut(shard_of(hash, count) as usize) {
            share.packets += talk.packets;
            share.transactions += talk.transactions;
        }
    }
    Division {
        how: format!("Eq. (1) alone, {count} ways"),
        shares,
        feeder_s: f64::NAN,
        most_s: f64::NAN,
        is_even: false,
    }
}

/// The capture, sent once for each division.
struct Run<'a> {
    sender: &'a Sender<'a>,
    linkweir: &'a Path,
    capture: &'a Path,
    dir: &'a Path,
    packets: u64,
    transactions: u64,
}

impl Run<'_> {
    fn http(&self, summary: &Path) -> Command {
        let mut command = self.sender.wire.command(Side::Server, self.linkweir);
        command
            .args([
                "http",
                "-q",
                "--overwrite",
                "--format",
                "text",
                "-w",
                "/dev/null",
                "--summary",
            ])
            .arg(summary)
            .stderr(Stdio::piped());
        command
    }

    fn send(&self) -> Result<()> {
        let sent = self.sender.send(self.capture, Span::Once, Some(RATE))?;
        ensure!(
            sent.packets == self.packets,
            "sent {sent:?} of {}",
            self.packets
        );
        Ok(())
    }

    /// Threads of one process, the kernel dealing.
    fn workers(&self, workers: u32) -> Result<Division> {
        let path = self.dir.join("workers.json");
        let mut command = self.http(&path);
        command.args([
            "-i",
            interface(Side::Server),
            "--workers",
            &workers.to_string(),
        ]);
        let running = listening(self.sender.wire, command, workers as usize)?;
        self.send()?;
        rest(running.id(), TIMEOUT);
        // The thread that waits for the others has nothing to do.
        let most_s = Threads::of(running.id()).busiest().ran;
        ended(running)?;
        let total = summary(&path)?;
        let shares = if workers == 1 {
            vec![share(&total)?]
        } else {
            let each = total.get("workers").and_then(Value::as_array);
            let each = each.context("no `workers` in the summary")?;
            each.iter().map(share).collect::<Result<Vec<Share>>>()?
        };
        self.complete(Division {
            how: format!("{workers} workers"),
            shares,
            feeder_s: 0.0,
            most_s,
            is_even: true,
        })
    }

    /// Processes of their own behind a feeder.
    fn consumers(&self, by: &str, count: u32) -> Result<Division> {
        let name = format!("bench-{}", std::process::id());
        let mut feeder = self.sender.wire.command(Side::Server, self.linkweir);
        feeder
            .args(["feed", "-q", "-i", interface(Side::Server), "--name", &name])
            .args(["--by", by, "--consumers", &count.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let feeder = listening(self.sender.wire, feeder, 1)?;
        let paths: Vec<PathBuf> = (0..count)
            .map(|number| self.dir.join(format!("consumer-{number}.json")))
            .collect();
        let mut consumers = Vec::new();
        for (number, path) in paths.iter().enumerate() {
            let mut command = self.http(path);
            command.args(["--feed", &format!("{name}/{number}")]);
            consumers.push(Running::start(&mut command)?);
        }
        // A moment for all to attach; who ended could not.
        std::thread::sleep(Duration::from_millis(700));
        for consumer in &mut consumers {
            ensure!(consumer.ended()?.is_none(), "a consumer has ended");
        }
        self.send()?;
        let mut most_s: f64 = 0.0;
        for consumer in &consumers {
            rest(consumer.id(), TIMEOUT);
            most_s = most_s.max(Threads::of(consumer.id()).all());
        }
        let feeder_s = Threads::of(feeder.id()).all();
        ended(feeder)?;
        // The feed is over: they end by themselves, or when they are asked.
        for mut consumer in consumers {
            until(Duration::from_secs(2), || {
                !matches!(consumer.ended(), Ok(None))
            });
            ended(consumer)?;
        }
        let each = paths.iter().map(|path| share(&summary(path)?));
        self.complete(Division {
            how: format!("feed --by {by}, {count} consumers"),
            shares: each.collect::<Result<_>>()?,
            feeder_s,
            most_s,
            is_even: by != "flow",
        })
    }

    /// Shares of a run that lost something would be shares of something else. A half that the rule without memory gave to
    /// another consumer is counted elsewhere (`bench live --only scale`).
    fn complete(&self, division: Division) -> Result<Division> {
        let sum = |part: fn(&Share) -> u64| division.shares.iter().map(part).sum::<u64>();
        let (packets, transactions) = (sum(|one| one.packets), sum(|one| one.transactions));
        let may_lose = division.how.contains("--by paper");
        if packets != self.packets || (transactions != self.transactions && !may_lose) {
            bail!(
                "{}: {packets} of {} packets and {transactions} of {} transactions",
                division.how,
                self.packets,
                self.transactions
            );
        }
        Ok(division)
    }
}

/// The share in a summary, or in one of its workers.
fn share(summary: &Value) -> Result<Share> {
    // A worker has it beside its packets, a run under the key of its stage.
    let stage = summary.get("http").unwrap_or(summary);
    Ok(Share {
        packets: count(summary, "packets")?,
        transactions: count(stage, "transactions")?,
    })
}

/// Asks a program to end. That something was lost (exit code 1) shows in the counts.
fn ended(running: Running) -> Result<()> {
    let output = running.finish()?;
    if !matches!(output.status.code(), Some(0 | 1)) {
        bail!(
            "{}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn division(packets: &[u64]) -> Division {
        let share = |packets: &u64| Share {
            packets: *packets,
            transactions: 10,
        };
        Division {
            how: "2 workers".to_owned(),
            shares: packets.iter().map(share).collect(),
            feeder_s: 0.0,
            most_s: 1.0,
            is_even: true,
        }
    }

    #[test]
    fn distance_from_even() {
        let uneven = division(&[49, 51]);
        assert!((uneven.deviation(|share| share.packets) - 1.0).abs() < 1e-9);
        assert_eq!(uneven.deviation(|share| share.transactions), 0.0);
        assert!(!uneven.target().is_reached);
        assert!(division(&[4_999, 5_001]).target().is_reached);
    }

    #[test]
    fn the_connection_alone_divides_badly() {
        let directory = std::env::temp_dir().join(format!("shares-{}", std::process::id()));
        let talked = traffic::write(&directory, 3200).unwrap();
        std::fs::remove_file(&directory).unwrap();
        for count in [2, 4] {
            let division = by_connection(&talked, count);
            let sum: u64 = division.shares.iter().map(|share| share.transactions).sum();
            assert_eq!(sum, 3200);
            assert!(division.deviation(|share| share.transactions) > MOST_PP);
        }
    }
}
