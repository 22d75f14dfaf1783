//! wrk: downloads over several connections, as fast as they go.

use super::Plan;
use super::site::Site;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::process::Stdio;

use crate::shell::root;

/// What came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Downloaded {
    pub(super) bytes: f64,
    pub(super) seconds: f64,
}

impl Downloaded {
    pub(super) fn gbit_s(&self) -> f64 {
        self.bytes * 8e-9 / self.seconds
    }
}

/// Downloads `file.bin` for as long and over as many connections as is planned, with a connection for each
/// download or with connections that are kept.
pub(super) fn run(site: &Site, plan: &Plan) -> Result<Downloaded> {
    let mut wrk = site.client("wrk");
    wrk.args([
        "-t1",
        &format!("-c{}", plan.connections),
        &format!("-d{}s", plan.seconds),
        // A scan may take a while on a machine that does other things.
        "--timeout",
        "10s",
        "-s",
    ])
    .arg(root().join("benches/gateway/wrk.lua"));
    if plan.is_one_each {
        wrk.args(["-H", "Connection: close"]);
    }
    let output = wrk
        .arg(Site::url("file.bin"))
        .stderr(Stdio::inherit())
        .output()
        .context("run wrk")?;
    let said = String::from_utf8_lossy(&output.stdout);
    read(&said).with_context(|| format!("wrk: {}", said.trim()))
}

fn read(said: &str) -> Result<Downloaded> {
    let line = said.lines().find(|line| line.starts_with('{'));
    let counted: Value = serde_json::from_str(line.context("no counters")?)?;
    let number = |name: &str| {
        let number = counted.get(name).and_then(Value::as_f64);
        number.with_context(|| format!("no `{name}`"))
    };
    let (bytes, seconds) = (number("bytes")?, number("duration_us")? * 1e-6);
    // An answer that is not the file, or none, is no download.
    if number("failed")? + number("status")? > 0.0 {
        bail!("not all connections and answers were good");
    }
    if bytes == 0.0 || seconds == 0.0 {
        bail!("nothing came");
    }
    Ok(Downloaded { bytes, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_behind_the_report() {
        let line = |failed| {
            format!(
                "Running 1s test\n  2 requests\n{{\"bytes\":250000000,\"requests\":2,\"duration_us\":1000000,\
                 \"failed\":{failed},\"status\":0,\"p50_us\":1,\"p99_us\":2}}\n"
            )
        };
        assert_eq!(read(&line(0)).unwrap().gbit_s(), 2.0);
        assert!(read(&line(1)).is_err());
        assert!(read("wrk: no such host").is_err());
    }
}
