//! Other connections while one waits for its scan: no head-of-line blocking (paper sec. 3.4).

use super::between::{Gateway, start};
use super::policy::{Policy, Scanner, WINDOW_KIB};
use super::row::Row;
use super::series::Rounds;
use super::site::{MARKER, SLOW, Site};
use crate::bench::bars::Bar;
use crate::bench::measure::median;
use crate::bench::progress;
use crate::shell::print_table;
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

/// Measures small requests without and with a slow scan on another connection, in turns.
pub(super) fn run(rounds: &Rounds<'_>, site: &Site) -> Result<Bar> {
    let socket = site.path("slow.sock");
    let mut scanner = site.gateway(rounds.programs.own("slow_scanner"));
    scanner.arg(&socket).args([MARKER, &DELAY_MS.to_string()]);
    let _scanner = start(site, scanner, "slow_scanner", |_| socket.exists())?;
    let settings = Scanner {
        socket: &socket,
        window_kib: WINDOW_KIB,
    };
    let policy = Policy::of(Row::Scan, rounds.plan.queues, Some(settings)).context("no policy")?;
    let (mut quiet, mut slow) = (Vec::new(), Vec::new());
    for round in 0..rounds.plan.runs {
        progress(&format!("round {}: one slow scan", round + 1));
        let gateway = Gateway::start(rounds, site, &policy)?;
        // Whichever comes first meets a gateway that has just begun.
        for is_slow in [round % 2 == 1, round % 2 == 0] {
            if is_slow {
                let waiting = Waiting::start(site, seconds(rounds) + 1)?;
                slow.push(ask(rounds, site)?);
                waiting.finish()?;
            } else {
                quiet.push(ask(rounds, site)?);
            }
        }
        gateway.finish()?;
    }
    progress("");
    let growth: Vec<f64> = quiet
        .iter()
        .zip(&slow)
        .map(|(quiet, slow)| slow.p99 - quiet.p99)
        .collect();
    table(&[("without", &quiet), ("with a scan of 1 s", &slow)]);
    Ok(bar(median(&growth)))
}

fn bar(growth: f64) -> Bar {
    Bar {
        what: format!(
            "while one connection's scan takes {DELAY_MS} ms, the 99th percentile of the others grows by less than {MOST_MS} ms"
        ),
        figure: format!("{growth:+.3} ms"),
        passed: growth < MOST_MS,
    }
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
    let ms = |name: &str| {
        let value = said.get(name).and_then(Value::as_f64);
        value
            .map(|us| us / 1e3)
            .with_context(|| format!("no `{name}`"))
    };
    Ok(Times {
        p50: ms("p50_us")?,
        p99: ms("p99_us")?,
        max: ms("max_us")?,
    })
}

fn table(rows: &[(&str, &[Times])]) {
    let header = [
        "response time, ms",
        "runs",
        "median",
        "99 %",
        "least",
        "most",
        "longest",
    ];
    let mut cells = vec![header.map(str::to_owned).to_vec()];
    for (name, runs) in rows {
        let of = |part: fn(&Times) -> f64| runs.iter().map(part).collect::<Vec<f64>>();
        let p99 = of(|times| times.p99);
        cells.push(vec![
            (*name).to_owned(),
            runs.len().to_string(),
            format!("{:.3}", median(&of(|times| times.p50))),
            format!("{:.3}", median(&p99)),
            format!("{:.3}", p99.iter().copied().fold(f64::INFINITY, f64::min)),
            format!("{:.3}", p99.iter().copied().fold(0.0, f64::max)),
            format!(
                "{:.3}",
                of(|times| times.max).into_iter().fold(0.0, f64::max)
            ),
        ]);
    }
    println!(
        "\n{RATE} small requests per second over {CONNECTIONS} connections that are scanned, while another one waits for its scan"
    );
    print_table(&cells);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_than_a_millisecond() {
        assert!(bar(0.999).passed && bar(-0.1).passed);
        assert!(!bar(1.0).passed);
        assert!(!bar(f64::NAN).passed);
    }
}
