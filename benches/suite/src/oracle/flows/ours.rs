//! Our side: one run of `linkweir flows`.

use super::tcptrace::End;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A record of a TCP flow.
#[derive(Debug, Clone)]
pub(super) struct Record {
    /// Client and server.
    pub(super) ends: [End; 2],
    /// First packet, milliseconds since the epoch.
    pub(super) first: f64,
    value: Value,
}

impl Record {
    /// A column of one side, 0 the client.
    pub(super) fn number(&self, side: usize, column: &str) -> Option<f64> {
        let prefix = if side == 0 { "c" } else { "s" };
        self.value.get(format!("{prefix}_{column}"))?.as_f64()
    }
}

/// Runs the binary over a capture: its TCP records, by time.
///
/// # Errors
/// The run failed (exit 1, data lost, is none: captures here are cut and corrupt on purpose), or its
/// output is not what it should be.
pub(super) fn read(binary: &Path, capture: &Path) -> Result<Vec<Record>> {
    let output = Command::new(binary)
        .args(["flows", "-q", "--format", "jsonl", "-w", "-", "-r"])
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
    let text = String::from_utf8(output.stdout).context("records are not UTF-8")?;
    let mut records = Vec::new();
    for line in text.lines() {
        let value: Value = serde_json::from_str(line).context("parse a record")?;
        if value.get("protocol").and_then(Value::as_str) == Some("tcp") {
            records.push(record(value).with_context(|| format!("record {line}"))?);
        }
    }
    records.sort_by(|a, b| a.first.total_cmp(&b.first));
    Ok(records)
}

fn record(value: Value) -> Result<Record> {
    let end = |side: &str| -> Result<End> {
        let ip = value.get(format!("{side}_ip")).and_then(Value::as_str);
        let port = value.get(format!("{side}_port")).and_then(Value::as_u64);
        Ok((
            ip.context("no address")?.parse()?,
            u16::try_from(port.context("no port")?)?,
        ))
    };
    Ok(Record {
        ends: [end("c")?, end("s")?],
        first: value
            .get("first")
            .and_then(Value::as_f64)
            .context("no time")?,
        value,
    })
}
