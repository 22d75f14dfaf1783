//! The statistics as files: CSV and JSON.
//!
//! CSV is that of RFC 4180 with a header line. A cell that a spreadsheet would take for a formula
//! (first character `=`, `+`, `-`, `@`, tab or carriage return) gets an apostrophe in front: the names
//! in it come from the network.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::str::FromStr;

use serde_json::{Map, Value, json};

use crate::api::{By, Sort, Tick, UnknownWord, Window};
use crate::live::Live;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// One row per interval.
    Series,
    /// One row per key, over the whole run.
    Keys(By),
}

impl FromStr for What {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        Ok(match word {
            "series" => Self::Series,
            "hosts" => Self::Keys(By::Host),
            "servers" => Self::Keys(By::Server),
            "urls" => Self::Keys(By::Url),
            "clients" => Self::Keys(By::Client),
            _ => {
                return Err(UnknownWord {
                    expected: "series hosts servers urls clients ",
                });
            }
        })
    }
}

/// One cell.
fn push_cell(out: &mut String, text: &str) {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if !is_formula && !text.contains(['"', ',', '\n', '\r']) {
        out.push_str(text);
        return;
    }
    out.push('"');
    if is_formula {
        out.push('\'');
    }
    for c in text.chars() {
        if c == '"' {
            out.push('"');
        }
        out.push(c);
    }
    out.push('"');
}

/// A number or nothing; names go through [`push_cell`].
fn push_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => {}
        Value::String(text) => push_cell(out, text),
        other => {
            // Writing to a String cannot fail.
            write!(out, "{other}").ok();
        }
    }
}

/// The table as CSV: the header of the first row's names, then all rows.
fn csv(header: &[String], rows: &[Map<String, Value>]) -> String {
    let mut out = String::new();
    for (at, name) in header.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        push_cell(&mut out, name);
    }
    out.push_str("\r\n");
    for row in rows {
        for (at, name) in header.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            push_value(&mut out, row.get(name).unwrap_or(&Value::Null));
        }
        out.push_str("\r\n");
    }
    out
}

/// The numbers of an interval side by side, and their names in order.
fn series_row(tick: &Tick) -> (Vec<&'static str>, Map<String, Value>) {
    let mut names = Vec::new();
    let mut row = Map::new();
    let mut put = |name: &'static str, value: Value| {
        names.push(name);
        row.insert(name.to_owned(), value);
    };
    put("id", tick.id.into());
    put("t_ms", tick.t_ms.into());
    put("interval_s", tick.interval_s.into());
    put("packets", tick.packets.into());
    put("bytes", tick.bytes.into());
    put("requests", tick.requests.into());
    put("responses", tick.responses.into());
    put("complete", tick.complete.into());
    put("unanswered", tick.unanswered.into());
    put("orphans", tick.orphans.into());
    put("retransmissions", tick.retransmissions.into());
    let times = tick.response_time_ns;
    for (name, value) in [
        ("response_time_min_ns", times.map(|t| t.min)),
        ("response_time_mean_ns", times.map(|t| t.mean)),
        ("response_time_p50_ns", times.map(|t| t.p50)),
        ("response_time_p90_ns", times.map(|t| t.p90)),
        ("response_time_p95_ns", times.map(|t| t.p95)),
        ("response_time_p99_ns", times.map(|t| t.p99)),
        ("response_time_p999_ns", times.map(|t| t.p999)),
        ("response_time_max_ns", times.map(|t| t.max)),
    ] {
        put(name, value.into());
    }
    put("dropped_kernel", tick.dropped.kernel.into());
    put("dropped_ring", tick.dropped.ring.into());
    put(
        "dropped_unusable_records",
        tick.dropped.unusable_records.into(),
    );
    put("dropped_table_full", tick.dropped.table_full.into());
    put("dropped_sink", tick.dropped.sink.into());
    put("table_entries", tick.table.entries.into());
    put("table_capacity", tick.table.capacity.into());
    for (code, count) in &tick.codes {
        row.insert(format!("code_{code}"), (*count).into());
    }
    (names, row)
}

fn key_rows(live: &Live, by: By) -> Value {
    let top = live.top(by, Sort::Requests, Window::All, usize::MAX);
    json!({ "by": by, "window": "all", "floor": top.floor, "rows": top.rows })
}

/// The names of the columns of a [`TopRow`](crate::api::TopRow).
const KEY_COLUMNS: [&str; 10] = [
    "key",
    "requests",
    "errors_4xx",
    "errors_5xx",
    "unanswered",
    "bytes",
    "p50",
    "p95",
    "p99",
    "max",
];

impl Live {
    /// A table as CSV.
    #[must_use]
    pub fn csv(&self, what: What) -> String {
        match what {
            What::Series => {
                let ticks = self.series();
                let mut header = Vec::new();
                let mut rows = Vec::with_capacity(ticks.len());
                let mut codes = BTreeSet::new();
                for tick in &ticks {
                    let (names, row) = series_row(tick);
                    header = names;
                    codes.extend(tick.codes.keys().copied());
                    rows.push(row);
                }
                let mut header: Vec<String> = header.into_iter().map(str::to_owned).collect();
                header.extend(codes.into_iter().map(|code| format!("code_{code}")));
                csv(&header, &rows)
            }
            What::Keys(by) => {
                let header: Vec<String> = KEY_COLUMNS.map(str::to_owned).into();
                let rows: Vec<Map<String, Value>> = match key_rows(self, by).get_mut("rows") {
                    Some(Value::Array(rows)) => rows
                        .iter_mut()
                        .filter_map(|row| match row.take() {
                            Value::Object(row) => Some(row),
                            _ => None,
                        })
                        .collect(),
                    _ => Vec::new(),
                };
                csv(&header, &rows)
            }
        }
    }

    /// A table as JSON: intervals as in the API, or rows with their error bound.
    #[must_use]
    pub fn json(&self, what: What) -> Value {
        match what {
            What::Series => {
                let ticks = self.series();
                let ticks: Vec<&Tick> = ticks.iter().map(AsRef::as_ref).collect();
                json!({ "meta": self.meta(), "ticks": ticks, "totals": self.totals() })
            }
            What::Keys(by) => key_rows(self, by),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(text: &str) -> String {
        let mut out = String::new();
        push_cell(&mut out, text);
        out
    }

    #[test]
    fn cells_are_quoted_and_no_formulas() {
        assert_eq!(cell("shop.example"), "shop.example");
        assert_eq!(cell("a,b"), "\"a,b\"");
        assert_eq!(cell("a\"b"), "\"a\"\"b\"");
        for formula in ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "=\"x\""] {
            let cell = cell(formula);
            assert!(cell.starts_with("\"'"), "{cell}");
            assert!(cell.ends_with('"'));
        }
    }

    #[test]
    fn tables_of_an_empty_run_have_no_rows() {
        let live = Live::new(crate::LiveOptions::default());
        assert_eq!(live.csv(What::Series), "\r\n");
        assert_eq!(
            live.csv(What::Keys(By::Host)),
            "key,requests,errors_4xx,errors_5xx,unanswered,bytes,p50,p95,p99,max\r\n"
        );
        assert_eq!(live.json(What::Keys(By::Url))["rows"], json!([]));
    }

    #[test]
    fn columns_are_those_of_a_row() {
        let row = crate::api::TopRow {
            key: "=x".into(),
            requests: 3,
            errors_4xx: 0,
            errors_5xx: 0,
            unanswered: 0,
            bytes: 7,
            p50: None,
            p95: None,
            p99: None,
            max: Some(9),
        };
        let Value::Object(row) = serde_json::to_value(row).unwrap() else {
            panic!("a row is an object");
        };
        assert_eq!(row.len(), KEY_COLUMNS.len());
        let header: Vec<String> = KEY_COLUMNS.map(str::to_owned).into();
        assert!(header.iter().all(|name| row.contains_key(name)));
        assert!(csv(&header, &[row]).ends_with("\"'=x\",3,0,0,0,7,,,,9\r\n"));
    }
}
