//! Which column of ours is which label of tcptrace, and what counts as equal.
//!
//! Our side: one run of `linkweir flows`.

use super::tcptrace::{Connection, End};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// How values of several connections become one, where the two programs cut differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    Sum,
    Most,
    /// Cannot be joined: means, and what depends on where a connection begins.
    No,
}

/// A field.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    /// Ours, without the prefix of the side.
    pub(super) column: &'static str,
    pub(super) label: &'static str,
    pub(super) join: Join,
    /// How far the two may be apart: what tcptrace rounds to.
    pub(super) within: f64,
}

const fn exact(column: &'static str, label: &'static str) -> Field {
    Field {
        column,
        label,
        join: Join::Sum,
        within: 0.0,
    }
}

const fn most(column: &'static str, label: &'static str) -> Field {
    Field {
        join: Join::Most,
        ..exact(column, label)
    }
}

/// Printed in milliseconds with one decimal.
const fn millis(column: &'static str, label: &'static str) -> Field {
    Field {
        join: Join::No,
        within: 0.0501,
        ..exact(column, label)
    }
}

/// Every field that both have.
pub(super) const FIELDS: [Field; 26] = [
    exact("pkts_all", "total packets"),
    exact("ack_cnt", "ack pkts sent"),
    exact("ack_cnt_p", "pure acks sent"),
    exact("sack_cnt", "sack pkts sent"),
    exact("bytes_uniq", "unique bytes sent"),
    exact("pkts_data", "actual data pkts"),
    exact("bytes_all", "actual data bytes"),
    exact("pkts_retx", "rexmt data pkts"),
    exact("bytes_retx", "rexmt data bytes"),
    exact("pkts_ooo", "outoforder pkts"),
    exact("pkts_push", "pushed data pkts"),
    exact("syn_cnt", SYNS),
    exact("fin_cnt", FINS),
    exact("rst_cnt", "resets sent"),
    Field {
        join: Join::No,
        ..exact("mss", "mss requested")
    },
    most("mss_max", "max segm size"),
    Field {
        join: Join::No,
        ..exact("mss_min", "min segm size")
    },
    most("win_max", "max win adv"),
    Field {
        join: Join::No,
        ..exact("win_min", "min win adv")
    },
    exact("win_0", "zero win adv"),
    exact("dup_acks", DUPLICATE_ACKS),
    exact("rtt_cnt", "RTT samples"),
    millis("rtt_avg", "RTT avg"),
    millis("rtt_min", "RTT min"),
    millis("rtt_max", "RTT max"),
    millis("rtt_std", "RTT stdev"),
];

const SYNS: &str = "SYN pkts sent";
const DUPLICATE_ACKS: &str = "duplicate acks";
const FINS: &str = "FIN pkts sent";

/// tcptrace's value of one host.
pub(super) fn theirs(connection: &Connection, host: usize, field: &Field) -> Option<f64> {
    // What came back for the data of this host: its label stands with the data.
    let host = host ^ usize::from(field.label == DUPLICATE_ACKS);
    let of_both = |part: usize| {
        let text = connection.columns.get(host)?.get("SYN/FIN pkts sent")?;
        text.split('/').nth(part)?.parse().ok()
    };
    match field.label {
        SYNS => of_both(0),
        FINS => of_both(1),
        // Only printed where there was one.
        "resets sent" => Some(connection.number_of(host, field.label).unwrap_or(0.0)),
        label => connection.number_of(host, label),
    }
}

/// The values of several, joined; none where that is not possible.
fn joined(values: impl Iterator<Item = Option<f64>>, join: Join) -> Option<f64> {
    let values: Vec<f64> = values.collect::<Option<_>>()?;
    match (join, values.as_slice()) {
        (_, [one]) => Some(*one),
        (Join::Sum, all) => Some(all.iter().sum()),
        (Join::Most, all) => all.iter().copied().reduce(f64::max),
        (Join::No, _) => None,
    }
}

/// Both values of a field of one host, joined where there are several; none where they cannot be
/// compared.
pub(super) fn values(
    field: &Field,
    connections: &[&Connection],
    records: &[&Record],
    end: usize,
) -> Option<(f64, f64)> {
    let first = connections.first()?.ends;
    let of = *first.get(end)?;
    let side = |ends: &[End; 2]| usize::from(ends.first() != Some(&of));
    let their = connections
        .iter()
        .map(|connection| theirs(connection, side(&connection.ends), field));
    let our = records
        .iter()
        .map(|record| record.number(side(&record.ends), field.column));
    Some((joined(our, field.join)?, joined(their, field.join)?))
}

impl Field {
    /// Whether two values count as equal.
    pub(super) fn agrees(&self, ours: f64, theirs: f64) -> bool {
        (ours - theirs).abs() <= self.within
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_are_joined_where_that_is_possible() {
        let values = || [Some(1.0), Some(3.0)].into_iter();
        assert_eq!(joined(values(), Join::Sum), Some(4.0));
        assert_eq!(joined(values(), Join::Most), Some(3.0));
        assert_eq!(joined(values(), Join::No), None);
        assert_eq!(joined([Some(2.0)].into_iter(), Join::No), Some(2.0));
        assert_eq!(joined([Some(2.0), None].into_iter(), Join::Sum), None);
    }

    #[test]
    fn milliseconds_agree_within_what_is_printed() {
        let field = millis("rtt_avg", "RTT avg");
        assert!(field.agrees(26.65, 26.7) && !field.agrees(26.6, 26.7));
    }
}
