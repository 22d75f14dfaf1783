//! The statistics as files: CSV and JSON.
//!
//! CSV is that of RFC 4180 with a header line. A cell that a spreadsheet would take for a formula
//! (first character `=`, `+`, `-`, `@`, tab or carriage return) gets an apostrophe in front: the names
//! in it come from the network.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::about::AboutRow;
use crate::api::{Tick, Window, Word};
use crate::figure::Columns;
use crate::figures::{Counts as _, Keyed as _};
use crate::kind::Kind;
use crate::live::LiveOf;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What<B> {
    /// One row per interval.
    Series,
    /// One row per key, over the whole run.
    Keys(B),
}

impl<B: Word> What<B> {
    /// The file of that name: `series`, or the name of a table.
    ///
    /// # Errors
    /// There is no file of that name.
    pub fn of<K: Kind<By = B>>(word: &str) -> Result<Self, UnknownFile> {
        if word == "series" {
            return Ok(Self::Series);
        }
        let mut tables = B::ALL.iter().zip(K::TABLES);
        let by = tables.find(|(_, table)| table.name == word);
        by.map(|(by, _)| Self::Keys(*by)).ok_or_else(|| {
            let names = K::TABLES.iter().map(|table| table.name);
            UnknownFile(std::iter::once("series").chain(names).collect())
        })
    }
}

/// There is no file of that name; the names that there are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected one of: {}", .0.join(" "))]
pub struct UnknownFile(pub Vec<&'static str>);

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

/// The numbers of an interval side by side: the names that every interval has in order, those that
/// only some have, and all values.
fn series_row<K: Kind>(tick: &Tick<K::Figures>) -> (Vec<String>, Vec<String>, Map<String, Value>) {
    let Columns { own, further } = K::Counts::columns(&tick.figures);
    let mut figures = tick.figures.clone();
    let percentiles = K::Counts::percentiles(&mut figures);
    let spreads = K::Of::ALL
        .iter()
        .zip(percentiles)
        .flat_map(|(of, (name, values))| {
            let values = *values;
            let of = of.as_str();
            // What is behind the quantity is its unit.
            let unit = name.strip_prefix(of).unwrap_or_default();
            K::STATS.iter().map(move |stat| {
                let value = match values {
                    Some(values) => values.get(stat).into(),
                    None if *stat == "count" => 0.into(),
                    None => Value::Null,
                };
                let unit = if *stat == "count" { "" } else { unit };
                (format!("{of}_{stat}{unit}"), value)
            })
        });
    let (dropped, table) = (&tick.dropped, &tick.table);
    let before = [
        ("id", tick.id.into()),
        ("t_ms", tick.t_ms.into()),
        ("interval_s", tick.interval_s.into()),
        ("packets", tick.packets.into()),
        ("bytes", tick.bytes.into()),
    ];
    let before = before.map(|(name, value): (&str, Value)| (name.to_owned(), value));
    let losses = dropped.by_cause();
    let losses = losses.map(|(cause, count)| (format!("dropped_{cause}"), count.into()));
    let fill = [
        ("table_entries".to_owned(), table.entries.into()),
        ("table_capacity".to_owned(), table.capacity.into()),
    ];
    let (mut names, mut row) = (Vec::new(), Map::new());
    for (name, value) in before
        .into_iter()
        .chain(own)
        .chain(spreads)
        .chain(losses)
        .chain(fill)
    {
        // A count that is also one of several by class has one column.
        if row.insert(name.clone(), value).is_none() {
            names.push(name);
        }
    }
    let more = further.iter().map(|(name, _)| name.clone()).collect();
    row.extend(further);
    (names, more, row)
}

fn key_rows<K: Kind>(live: &LiveOf<K>, by: K::By) -> Value {
    let Some(sort) = K::Sort::ALL.first() else {
        return Value::Null;
    };
    let top = live.top(by, *sort, Window::All, usize::MAX);
    json!({ "by": by, "window": "all", "floor": top.floor, "rows": top.rows })
}

impl<K: Kind> LiveOf<K> {
    /// A table as CSV.
    #[must_use]
    pub fn csv(&self, what: What<K::By>) -> String {
        match what {
            What::Series => {
                let ticks = self.series();
                let mut header: Vec<String> = Vec::new();
                let mut rows = Vec::with_capacity(ticks.len());
                let mut further = BTreeSet::new();
                for tick in &ticks {
                    let (names, more, row) = series_row::<K>(tick);
                    header = names;
                    further.extend(more);
                    rows.push(row);
                }
                header.extend(further);
                csv(&header, &rows)
            }
            What::Keys(by) => {
                let mut header: Vec<String> =
                    K::Keyed::COLUMNS.iter().map(|n| (*n).into()).collect();
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
                // Of clients, where anything is known of one.
                let known = AboutRow::COLUMNS.into_iter();
                let known = known.filter(|name| rows.iter().any(|row| row.contains_key(*name)));
                header.extend(known.map(str::to_owned));
                csv(&header, &rows)
            }
        }
    }

    /// A table as JSON: intervals as in the API, or rows with their error bound.
    #[must_use]
    pub fn json(&self, what: What<K::By>) -> Value {
        match what {
            What::Series => {
                let ticks = self.series();
                let ticks: Vec<&Tick<K::Figures>> = ticks.iter().map(AsRef::as_ref).collect();
                json!({ "meta": self.meta(), "ticks": ticks, "totals": self.totals() })
            }
            What::Keys(by) => key_rows(self, by),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::By;
    use crate::live::Live;
    use linkweir_record::HttpKind;

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
            about: AboutRow::default(),
        };
        let Value::Object(row) = serde_json::to_value(row).unwrap() else {
            panic!("a row is an object");
        };
        let header: Vec<String> = <HttpKind as Kind>::Keyed::COLUMNS
            .iter()
            .map(|name| (*name).to_owned())
            .collect();
        assert_eq!(row.len(), header.len());
        assert!(header.iter().all(|name| row.contains_key(name)));
        assert!(csv(&header, &[row]).ends_with("\"'=x\",3,0,0,0,7,,,,9\r\n"));
    }
}
