//! The other programs, and what they say at the end.

use super::rows::{Mode, Reached};
use super::site::{Ended, Site};
use anyhow::{Context as _, Result, bail};
use std::time::Duration;

/// Connections of wrk and ab at once.
pub(super) const CONNECTIONS: u32 = 32;
/// What is asked for.
pub(super) const PATH: &str = "/small";
/// More than a run takes.
const MORE: Duration = Duration::from_secs(60);
/// Part of the asked rate that counts as kept.
pub(super) const KEPT: f64 = 0.98;

/// What a program reached, and how it ended.
pub(super) type Loaded = (Reached, Ended);

/// wrk for so many seconds.
pub(super) fn wrk(site: &Site, mode: &Mode, seconds: u32) -> Result<Loaded> {
    let mut wrk = site.client("wrk");
    wrk.args(["-t1", "--latency", "--timeout", "10s"]);
    wrk.args([format!("-c{CONNECTIONS}"), format!("-d{seconds}s")]);
    if mode.closes() {
        wrk.args(["-H", "Connection: close"]);
    }
    let ended = site.run(wrk.arg(Site::url(PATH)), MORE)?;
    let reached = of_wrk(&ended.stdout).with_context(|| format!("wrk: {}", ended.stdout))?;
    Ok((reached, ended))
}

/// ab for so many seconds.
pub(super) fn ab(site: &Site, mode: &Mode, seconds: u32) -> Result<Loaded> {
    let mut ab = site.client("ab");
    ab.arg("-q");
    if !mode.closes() {
        ab.arg("-k");
    }
    // It keeps a record of each of -n requests, so that is bounded too.
    let most = seconds.saturating_mul(200_000);
    ab.args(
        [("-c", CONNECTIONS), ("-t", seconds), ("-n", most)]
            .map(|(key, value)| format!("{key}{value}")),
    );
    let ended = site.run(ab.arg(Site::url(PATH)), MORE)?;
    let reached =
        of_ab(&ended.stdout).with_context(|| format!("ab: {}{}", ended.stdout, ended.stderr))?;
    Ok((reached, ended))
}

/// httperf at a rate of requests per second; `None` where it did not keep that.
pub(super) fn httperf(site: &Site, mode: &Mode, seconds: u32, rate: f64) -> Result<Option<Loaded>> {
    let calls = mode.requests;
    let sessions = rate / f64::from(calls);
    let mut httperf = site.client("httperf");
    httperf.args(["--hog", "--timeout", "2", "--uri", PATH]);
    httperf.args(["--server", &linkweir_testkit::load::SERVER.to_string()]);
    httperf.args(["--rate", &format!("{sessions:.3}")]);
    httperf.args([
        "--num-conns",
        &format!("{:.0}", sessions * f64::from(seconds)),
    ]);
    httperf.args(["--num-calls", &calls.to_string()]);
    // Far beyond what it can do it never ends.
    let timeout = Duration::from_secs(u64::from(seconds) + 3);
    let Some(ended) = site.run_within(&mut httperf, timeout)? else {
        return Ok(None);
    };
    let reached = of_httperf(&ended.stdout)
        .with_context(|| format!("httperf: {}{}", ended.stdout, ended.stderr))?;
    let is_kept = reached.is_some_and(|reached| reached.per_second >= KEPT * rate);
    Ok(reached.filter(|_| is_kept).map(|reached| (reached, ended)))
}

/// The first number behind a word at the beginning of a line.
fn after<'a>(said: &'a str, word: &str) -> Option<&'a str> {
    let line = said
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(word))?;
    line.split_whitespace().next()
}

fn of_wrk(said: &str) -> Result<Reached> {
    if said.contains("Socket errors") || said.contains("Non-2xx") {
        bail!("not all connections and answers were good");
    }
    let time = |word: &str| after(said, word).and_then(micros);
    Ok(Reached {
        per_second: after(said, "Requests/sec:").context("no rate")?.parse()?,
        p50_us: time("50%"),
        p99_us: time("99%"),
    })
}

/// wrk's times: `112.00us`, `24.04ms`, `1.10s`.
fn micros(text: &str) -> Option<f64> {
    let (number, factor) = match text.strip_suffix("us") {
        Some(number) => (number, 1.0),
        None => match text.strip_suffix("ms") {
            Some(number) => (number, 1e3),
            None => (text.strip_suffix('s')?, 1e6),
        },
    };
    Some(number.parse::<f64>().ok()? * factor)
}

fn of_ab(said: &str) -> Result<Reached> {
    if after(said, "Failed requests:") != Some("0") || said.contains("Non-2xx") {
        bail!("not all requests were answered well");
    }
    let time = |word: &str| Some(after(said, word)?.parse::<f64>().ok()? * 1e3);
    Ok(Reached {
        per_second: after(said, "Requests per second:")
            .context("no rate")?
            .parse()?,
        p50_us: time("50%"),
        p99_us: time("99%"),
    })
}

/// `None` where something failed: the rate is too high for it.
fn of_httperf(said: &str) -> Result<Option<Reached>> {
    let failed: u64 = after(said, "Errors: total").context("no errors")?.parse()?;
    let per_second = after(said, "Request rate:").context("no rate")?.parse()?;
    // The time of a connection, from its SYN on; of one with several calls that says little.
    let median = said
        .lines()
        .find(|line| line.starts_with("Connection time") && line.contains("median"));
    let median = median.and_then(|line| {
        line.split_once("median ")?
            .1
            .split(' ')
            .next()?
            .parse::<f64>()
            .ok()
    });
    let is_single = after(said, "Connection length [replies/conn]:") == Some("1.000");
    Ok((failed == 0).then_some(Reached {
        per_second,
        p50_us: median.filter(|_| is_single).map(|ms| ms * 1e3),
        p99_us: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrk_is_read() {
        let said = "Running 1s test @ http://a/\n  Latency Distribution\n     50%  112.00us\n     90%  \
                    223.00us\n     99%   24.04ms\n  176446 requests in 1.35s\nRequests/sec: 130993.97\n";
        let reached = of_wrk(said).unwrap();
        assert_eq!(reached.per_second, 130_993.97);
        assert_eq!(
            (reached.p50_us, reached.p99_us),
            (Some(112.0), Some(24_040.0))
        );
        assert!(of_wrk(&format!("{said}  Socket errors: connect 1, read 0\n")).is_err());
        assert_eq!(micros("1.5s"), Some(1.5e6));
    }

    #[test]
    fn ab_is_read() {
        let said = |failed: u32| {
            format!(
                "Failed requests:        {failed}\nRequests per second:    17597.53 [#/sec] (mean)\n  50%      2\n  99%      3\n"
            )
        };
        let reached = of_ab(&said(0)).unwrap();
        assert_eq!(
            (reached.per_second, reached.p99_us),
            (17_597.53, Some(3000.0))
        );
        assert!(of_ab(&said(1)).is_err());
    }

    #[test]
    fn httperf_is_read() {
        let said = |failed: u32| {
            format!(
                "Connection rate: 8001.3 conn/s (0.1 ms/conn, <=616 concurrent connections)\n\
                 Connection time [ms]: min 0.1 avg 1.3 max 34.7 median 0.5 stddev 4.9\n\
                 Connection length [replies/conn]: 1.000\nRequest rate: 8001.3 req/s (0.1 ms/req)\n\
                 Errors: total {failed} client-timo 0\n"
            )
        };
        let reached = of_httperf(&said(0)).unwrap().unwrap();
        assert_eq!((reached.per_second, reached.p50_us), (8001.3, Some(500.0)));
        assert_eq!(of_httperf(&said(3)).unwrap(), None);
        assert!(of_httperf("usage").is_err());
    }
}
