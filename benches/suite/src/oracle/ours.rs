//! Our side: one run of `linkweir http`, its summary and its records.

use super::{Findings, Pair, is_interim};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs the binary over a capture. Without estimates: tshark has no key either, and shows no request of TLS.
///
/// # Errors
/// The run failed (exit 1, data lost, is none: captures here are cut and corrupt on purpose), or its
/// output is not what it should be.
pub(super) fn read(binary: &Path, capture: &Path) -> Result<Findings> {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let (process, run) = (std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
    let summary_file = std::env::temp_dir().join(format!("oracle-{process}-{run}.json"));
    let output = Command::new(binary)
        .args(["http", "-q", "--estimate", "off"])
        .args(["--format", "jsonl", "-w", "-"])
        .arg("--summary")
        .arg(&summary_file)
        .arg("-r")
        .arg(capture)
        .output()
        .context("run linkweir")?;
    if !matches!(output.status.code(), Some(0 | 1)) {
        bail!(
            "{}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let summary = std::fs::read(&summary_file).context("read the summary")?;
    std::fs::remove_file(&summary_file).context("remove the summary")?;
    let summary: Value = serde_json::from_slice(&summary).context("parse the summary")?;
    let records = String::from_utf8(output.stdout).context("records are not UTF-8")?;
    findings(&summary, &records)
}

fn findings(summary: &Value, records: &str) -> Result<Findings> {
    let http = summary.get("http").context("the summary has no `http`")?;
    let count = |name: &str| {
        http.get(name)
            .and_then(Value::as_u64)
            .with_context(|| format!("the summary has no `{name}`"))
    };
    let counts = |name: &str| -> Result<Vec<(&String, u64)>> {
        let object = http.get(name).and_then(Value::as_object);
        let object = object.with_context(|| format!("the summary has no `{name}`"))?;
        // A count of nothing is no finding.
        let counts = object
            .iter()
            .map(|(key, value)| (key, value.as_u64().unwrap_or(0)));
        Ok(counts.filter(|(_, count)| *count > 0).collect())
    };
    let mut found = Findings {
        requests: count("requests")?,
        repeated_requests: count("retransmitted_requests")?,
        responses: count("responses")?,
        repeated_responses: count("retransmitted_responses")?,
        interim: count("interim_responses")?,
        ..Findings::default()
    };
    for (method, count) in counts("methods")? {
        found.methods.insert(method.clone(), count);
    }
    for (code, count) in counts("status_codes")? {
        let code = code
            .parse()
            .with_context(|| format!("status code `{code}`"))?;
        if !is_interim(code) {
            found.codes.insert(code, count);
        }
    }
    for line in records.lines() {
        let record: Value = serde_json::from_str(line).context("parse a record")?;
        if record.get("state").and_then(Value::as_str) == Some("complete") {
            found
                .pairs
                .insert(pair(&record).with_context(|| format!("record {line}"))?);
        }
    }
    Ok(found)
}

fn pair(record: &Value) -> Result<Pair> {
    let number = |name: &str| {
        record
            .get(name)
            .and_then(Value::as_u64)
            .with_context(|| format!("no number `{name}`"))
    };
    let address = |name: &str| -> Result<IpAddr> {
        let text = record
            .get(name)
            .and_then(Value::as_str)
            .with_context(|| format!("no `{name}`"))?;
        text.parse()
            .with_context(|| format!("`{name}` is not an address"))
    };
    let port = |name: &str| Ok::<_, anyhow::Error>(u16::try_from(number(name)?)?);
    Ok(Pair {
        client: (address("client_ip")?, port("client_port")?),
        server: (address("server_ip")?, port("server_port")?),
        request_us: number("request_ts_ns")? / 1000,
        response_us: number("response_ts_ns")? / 1000,
        code: u16::try_from(number("status_code")?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_and_records_become_findings() {
        let summary = serde_json::json!({ "http": {
            "requests": 2, "retransmitted_requests": 1, "responses": 2, "retransmitted_responses": 0,
            "interim_responses": 1, "methods": { "GET": 2, "PUT": 0 }, "status_codes": { "200": 1 },
        }});
        let records = concat!(
            r#"{"client_ip":"10.0.0.1","client_port":5000,"server_ip":"10.0.0.2","server_port":80,"#,
            r#""request_ts_ns":1000999,"response_ts_ns":2000000,"status_code":200,"state":"complete"}"#,
            "\n",
            r#"{"client_ip":"10.0.0.1","client_port":5000,"state":"unanswered"}"#,
            "\n",
        );
        let found = findings(&summary, records).unwrap();
        assert_eq!((found.requests, found.responses, found.interim), (2, 2, 1));
        assert_eq!((found.repeated_requests, found.repeated_responses), (1, 0));
        assert_eq!(found.methods.len(), 1);
        let pair = found.pairs.first().unwrap();
        assert_eq!(
            (pair.request_us, pair.response_us, pair.code),
            (1000, 2000, 200)
        );
        assert_eq!(found.pairs.len(), 1);
    }
}
