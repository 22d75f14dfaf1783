//! Other connections while one waits for its scan: no head-of-line blocking (paper sec. 3.4).

use super::between::Rounds;
use super::between::{Gateway, start};
use super::policy::{Policy, Scanner, WINDOW_KIB};
use super::rows::named;
use super::site::{MARKER, SLOW, Site};
use crate::bench::harness::{Column, Runs, Target, digits, number, print};
use anyhow::{Context as _, Result, bail};
use linkweir_testkit::gateway::SERVER;
use linkweir_testkit::netns::Running;
use serde_json::Value;
use std::process::Stdio;

/// How long the slow scan takes, ms.
const DELAY_MS: u32 = 1000;
/// Connections that ask for small files, and requests per second of all of them.
const CONNECTIONS: u32 = 8;
const RATE: u32 = 1000;
/// Least seconds of a run: a percentile of a short one is one request.
const LEAST_SECONDS: u32 = 4;
/// How much the 99th percentile may grow, ms.
const MOST_MS: f64 = 1.0;

/// Response times of one run, ms.
#[derive(Debug, Clone, Copy)]
struct Times {
    p50: f64,
    p99: f64,
    max: f64,
}

/// Response times without and with a slow scan, of one round.
#[derive(Debug)]
struct Pair {
    quiet: Times,
    slow: Times,
    /// With a slow scan that the queue waits for.
    blocked: Times,
}

/// Measures small requests without and with a slow scan on another connection, in turns.
pub(super) fn run(rounds: &Rounds<'_>, site: &Site) -> Result<Target> {
    let socket = site.path("slow.sock");
    let mut scanner = site.gateway(rounds.programs.own("slow_scanner"));
    scanner.arg(&socket).args([MARKER, &DELAY_MS.to_string()]);
    let _scanner = start(site, scanner, "slow_scanner", |_| socket.exists())?;
    let settings = Scanner {
        socket: &socket,
        window_kib: WINDOW_KIB,
    };
    let policy = Policy::of(named("scan")?, rounds.plan.queues, Some(settings))?;
    let blocking = Policy {
        waits_for_scans: true,
        ..policy.clone()
    };
    let pairs = Runs::measure(rounds.plan.runs, "one slow scan", |round| {
        let gateway = Gateway::start(rounds, site, &policy)?;
        let quiet = || ask(rounds, site);
        let slow = |downloads| {
            let waiting = Waiting::start(site, downloads)?;
            let times = ask(rounds, site)?;
            waiting.finish()?;
            anyhow::Ok(times)
        };
        // Whichever comes first meets a gateway that has just begun.
        let (quiet, during) = if round % 2 == 1 {
            let during = slow(seconds(rounds) + 1)?;
            (quiet()?, during)
        } else {
            (quiet()?, slow(seconds(rounds) + 1)?)
        };
        gateway.finish()?;
        let gateway = Gateway::start(rounds, site, &blocking)?;
        // Who asks must also connect while the queue waits, which takes seconds.
        let blocked = slow(4 * seconds(rounds))?;
        gateway.finish()?;
        Ok(Pair {
            quiet,
            slow: during,
            blocked,
        })
    })?;
    // A name, and the times of a pair that it is the name of.
    type Of = (&'static str, fn(&Pair) -> &Times);
    const ROWS: [Of; 3] = [
        ("without", |pair| &pair.quiet),
        ("with a scan of 1 s", |pair| &pair.slow),
        ("the same, the queue waits", |pair| &pair.blocked),
    ];
    let rows = ROWS.map(|(name, of)| (name, pairs.iter().map(|pair| Some(*of(pair))).collect()));
    print(
        &format!(
            "{RATE} small requests per second over {CONNECTIONS} connections that are scanned, while another one waits for its scan"
        ),
        &COLUMNS,
        rows,
    );
    Ok(target(pairs.median(|pair| pair.slow.p99 - pair.quiet.p99)))
}

const COLUMNS: [Column<(&str, Runs<Times>)>; 7] = [
    ("response time, ms", |(name, _)| (*name).to_owned()),
    ("runs", |(_, runs)| runs.count().to_string()),
    ("median", |(_, runs)| digits(runs.median(|run| run.p50), 3)),
    ("99 %", |(_, runs)| digits(runs.median(|run| run.p99), 3)),
    ("least", |(_, runs)| digits(runs.least(|run| run.p99), 3)),
    ("most", |(_, runs)| digits(runs.most(|run| run.p99), 3)),
    ("longest", |(_, runs)| digits(runs.most(|run| run.max), 3)),
];

fn target(growth: f64) -> Target {
    Target::new(
        format!(
            "while one connection's scan takes {DELAY_MS} ms, the 99th percentile of the others grows by less than {MOST_MS} ms"
        ),
        format!("{growth:+.3} ms"),
        growth < MOST_MS,
    )
}

fn seconds(rounds: &Rounds<'_>) -> u32 {
    rounds.plan.seconds.max(LEAST_SECONDS)
}

/// One connection that downloads what is slow to scan, again and again.
struct Waiting {
    curl: Running,
    count: u32,
}

impl Waiting {
    fn start(site: &Site, count: u32) -> Result<Self> {
        let mut curl = site.client("curl");
        curl.args([
            "-sS",
            "-w",
            "%{stderr}%{http_code} %{size_download} %{time_total}\n",
        ]);
        for _ in 0..count {
            curl.args(["-o", "/dev/null", &Site::url("slow.bin")]);
        }
        curl.stdout(Stdio::null()).stderr(Stdio::piped());
        let curl = Running::start(&mut curl).context("run curl")?;
        // Its first scan has begun by then.
        std::thread::sleep(std::time::Duration::from_millis(200));
        Ok(Self { curl, count })
    }

    /// Waits for its last download; each must have been whole, and slow.
    fn finish(self) -> Result<()> {
        let output = self.curl.output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let is_slow = |line: &&str| {
            let mut words = line.split_whitespace();
            let (code, size, time) = (words.next(), words.next(), words.next());
            let size = size.and_then(|size| size.parse::<usize>().ok());
            let time = time.and_then(|time| time.parse::<f64>().ok());
            code == Some("200")
                && size == Some(SLOW)
                && time.is_some_and(|time| time >= f64::from(DELAY_MS) / 1e3)
        };
        if said.lines().filter(is_slow).count() != usize::try_from(self.count)? {
            bail!(
                "a download that should wait for its scan did not: {}",
                said.trim()
            );
        }
        Ok(())
    }
}

/// Small requests at a steady rate.
fn ask(rounds: &Rounds<'_>, site: &Site) -> Result<Times> {
    let mut paced = site.client(rounds.programs.own("paced"));
    paced.args([&format!("{SERVER}:80"), "/small.bin"]);
    paced.args([CONNECTIONS, RATE, seconds(rounds)].map(|number| number.to_string()));
    let output = paced
        .stderr(Stdio::inherit())
        .output()
        .context("run paced")?;
    let said: Value = serde_json::from_slice(&output.stdout).context("paced failed")?;
    let ms = |name| Ok::<f64, anyhow::Error>(number(&said, name)? / 1e3);
    Ok(Times {
        p50: ms("p50_us")?,
        p99: ms("p99_us")?,
        max: ms("max_us")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_than_a_millisecond() {
        assert!(target(0.999).is_reached && target(-0.1).is_reached);
        assert!(!target(1.0).is_reached);
        assert!(!target(f64::NAN).is_reached);
    }
}
