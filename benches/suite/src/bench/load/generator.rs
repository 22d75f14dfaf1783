//! `linkweir load`, and what its summary says.

use super::peers::{KEPT, Loaded, PATH};
use super::rows::{Clients, Mode, Reached};
use super::site::{Ended, Site};
use crate::bench::harness;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// More than a run takes beyond what was asked for: sessions that are open at its end go on.
const MORE: Duration = Duration::from_secs(90);

/// A run that is asked for.
#[derive(Debug, Clone)]
pub(super) struct Job<'a> {
    pub(super) binary: &'a Path,
    pub(super) path: &'a str,
    pub(super) clients: Clients,
    /// As `--arrivals` has it.
    pub(super) arrivals: String,
    pub(super) seconds: u32,
    pub(super) seed: u64,
    /// Lines of a script, in httperf's format; none is one request of `path`.
    pub(super) script: Option<String>,
    /// Further words.
    pub(super) words: Vec<String>,
}

/// What came of it.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) ended: Ended,
    /// The whole summary.
    summary: Value,
}

/// Runs it; that it says INVALID is no error.
pub(super) fn run(site: &Site, job: &Job<'_>) -> Result<Outcome> {
    let summary = site.path("summary.json");
    let mut load = site.linkweir(job.binary, &Site::url(job.path));
    load.args([
        "--clients",
        &job.clients.cidr(),
        "--arrivals",
        &job.arrivals,
    ]);
    load.args(["--duration", &format!("{}s", job.seconds)]);
    load.args(["--seed", &job.seed.to_string(), "--overwrite", "--summary"]);
    load.arg(&summary).args(&job.words);
    if let Some(script) = &job.script {
        let path = site.path("script");
        fs::write(&path, script)?;
        load.arg("--script").arg(&path);
    }
    let timeout = Duration::from_secs(job.seconds.into()) + MORE;
    let ended = site.run(&mut load, timeout)?;
    if !matches!(ended.code, Some(0 | 1)) {
        bail!(
            "linkweir load: exit {:?}: {}",
            ended.code,
            ended.stderr.trim()
        );
    }
    let text =
        fs::read(&summary).with_context(|| format!("no summary: {}", ended.stderr.trim()))?;
    Ok(Outcome {
        ended,
        summary: serde_json::from_slice(&text)?,
    })
}

impl Outcome {
    /// A number of the key `load`; parts of the way are separated by slashes.
    pub(super) fn number(&self, way: &str) -> Result<f64> {
        harness::number(&self.summary, &format!("load/{way}"))
    }

    /// The same for a count.
    pub(super) fn count(&self, way: &str) -> Result<u64> {
        harness::count(&self.summary, &format!("load/{way}"))
    }

    /// Sessions that failed, for whatever cause.
    pub(super) fn failed(&self) -> Result<u64> {
        let failed = self
            .summary
            .pointer("/load/failed")
            .and_then(Value::as_object);
        let counts = failed.context("no `load.failed` in the summary")?.values();
        Ok(counts.filter_map(Value::as_u64).sum())
    }

    /// The causes for which sessions failed, with how many; empty where none did.
    pub(super) fn causes(&self) -> String {
        let failed = self
            .summary
            .pointer("/load/failed")
            .and_then(Value::as_object);
        let counts = failed.into_iter().flatten();
        let counts = counts.filter(|(_, count)| count.as_u64() != Some(0));
        let causes: Vec<String> = counts
            .map(|(cause, count)| format!("{cause} {count}"))
            .collect();
        causes.join(", ")
    }

    /// What it reached, where it kept the rate: nothing failed, the run is valid, and as many answers
    /// came as were asked for. The time is that of the whole run, with the end of the last session.
    pub(super) fn kept(self, rate: f64) -> Result<Option<Loaded>> {
        let seconds = harness::number(&self.summary, "elapsed_s")?;
        let per_second = self.number("responses")? / seconds;
        let is_kept =
            self.ended.code == Some(0) && self.failed()? == 0 && per_second >= KEPT * rate;
        let us = |way| self.number(way).ok().map(|seconds| seconds * 1e6);
        let reached = Reached {
            per_second,
            p50_us: us("response_time_s/median"),
            p99_us: us("response_time_s/p99"),
        };
        Ok(is_kept.then_some((reached, self.ended)))
    }
}

/// The rows of the table: a rate of requests per second; `None` where it is not kept.
pub(super) fn at_rate(
    site: &Site,
    binary: &Path,
    (clients, mode): (Clients, &Mode),
    seconds: u32,
    rate: f64,
) -> Result<Option<Loaded>> {
    let sessions = rate / f64::from(mode.requests);
    let job = Job {
        binary,
        path: PATH,
        clients,
        arrivals: format!("constant:{sessions:.3}"),
        seconds,
        seed: 1,
        script: (!mode.closes()).then(|| script(mode.requests)),
        words: words(mode),
    };
    run(site, &job)?.kept(rate)
}

/// Further words of a row. What the server has not answered soon after the end it could not keep up
/// with. How well the schedule is kept is measured for itself; here it is enough that sessions are not
/// heaped up.
fn words(mode: &Mode) -> Vec<String> {
    let mut words = vec!["--drain", "100ms", "--lag-limit", "20ms"];
    if mode.closes() {
        words.push("--close");
    }
    words.into_iter().map(str::to_owned).collect()
}

/// One session of so many requests, one after the other on its connection.
fn script(requests: u32) -> String {
    format!("{PATH}\n").repeat(usize::try_from(requests).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::super::site::Busy;
    use super::*;

    fn outcome(code: i32, responses: u64, refused: u64) -> Outcome {
        let times = serde_json::json!({ "median": 0.001, "p99": 0.002 });
        Outcome {
            ended: Ended {
                code: Some(code),
                stdout: String::new(),
                stderr: String::new(),
                busy: Busy::default(),
                memory: 1,
            },
            summary: serde_json::json!({ "elapsed_s": 2.0, "load": {
                "failed": { "refused": refused, "reset": 0 },
                "responses": responses,
                "response_time_s": times,
            } }),
        }
    }

    #[test]
    fn a_rate_is_kept_or_not() {
        let kept =
            |code, responses, refused| outcome(code, responses, refused).kept(1000.0).unwrap();
        let (reached, _) = kept(0, 1970, 0).unwrap();
        assert_eq!((reached.per_second, reached.p50_us), (985.0, Some(1000.0)));
        assert!(kept(0, 1950, 0).is_none(), "the server did not follow");
        assert!(kept(1, 2000, 0).is_none(), "the run is invalid");
        assert!(kept(0, 2000, 1).is_none(), "one session failed");
        assert!(outcome(0, 1, 0).number("schedule_lag_us/p50").is_err());
        assert_eq!(outcome(0, 7, 0).count("responses").unwrap(), 7);
        assert_eq!(outcome(0, 7, 3).causes(), "refused 3");
        assert_eq!(outcome(0, 7, 0).causes(), "");
    }
}
