//! Tables of counts and of events: CSV as people have it.
//!
//! ```text
//! 31          bin_start,count              TIMESTAMP,ContextTokens,GeneratedTokens
//! 28          1998-06-08T22:00:00Z,31      2023-11-16 18:17:03.9799600,4808,10
//! ...         ...                          ...
//! counts      counts with times            events
//! ```
//! With or without a heading; commas, semicolons or tabs; lines that begin with `#` are passed over.

mod cell;
mod plan;
mod regular;

use std::io::{BufRead, BufReader, Read};

use anyhow::{Context, anyhow};
use linkweir_model::bins::{Bins, TooManyBins};
use linkweir_model::log::MOST_LINE_BYTES;

pub(super) use regular::{Irregular, Regular};

use super::args::{SeriesArgs, SpanArgs};
use super::wrong;
use crate::opened::Opened;
use cell::{Unit, cells, count, time};
use plan::{Kind, NoPlan, Plan};

/// Rows of counts that are held.
const MOST_ROWS: usize = 1 << 22;

/// What a table holds.
#[derive(Debug)]
pub(super) enum Table {
    /// A count on each line, and where the table has them, the time at which its bin begins
    /// (nanoseconds since 1970).
    Counts(Vec<(Option<u64>, u64)>),
    /// A time on each line, counted.
    Events(Bins),
}

/// Reads a table. Events go into bins of `width_ns`.
pub(super) fn read(
    opened: Opened,
    args: &SeriesArgs,
    span: SpanArgs,
    width_ns: u64,
) -> anyhow::Result<Table> {
    let name = opened.name.clone();
    let plan = Plan::of(&opened.beginning, args.column.as_deref(), args.events);
    let plan = plan.map_err(|fault| match fault {
        NoPlan::Input(what) => anyhow!("{name}: {what}"),
        NoPlan::Usage(what) => wrong(format!("{name}: {what}")),
    })?;
    let mut lines = Lines::new(opened);
    let mut is_heading = plan.has_heading;
    let (from, to) = span.limits();
    let mut counts = Vec::new();
    let mut bins = Bins::new(width_ns);
    while lines.next().with_context(|| name.clone())? {
        let row = lines.row();
        if row.is_empty() || row.starts_with(b"#") || std::mem::take(&mut is_heading) {
            continue;
        }
        let cell = |column: usize| cells(row, plan.separator).nth(column).unwrap_or_default();
        let fault = |cell: &[u8], what: &str| {
            let text = String::from_utf8_lossy(cell.get(..40).unwrap_or(cell)).into_owned();
            anyhow!(
                "{name}: line {}: `{text}` is not a valid {what}",
                lines.number
            )
        };
        let read_time = |column: usize, unit: Unit| {
            time(cell(column), unit).ok_or_else(|| fault(cell(column), "time"))
        };
        match plan.kind {
            Kind::Events { column, unit } => {
                let time_ns = read_time(column, unit)?;
                if (from..to).contains(&time_ns) {
                    bins.add(time_ns, 1).map_err(|TooManyBins| {
                        wrong(format!(
                            "{name}: line {}: {TooManyBins}: give a longer --bin, or the time that is meant with --from and --to",
                            lines.number
                        ))
                    })?;
                }
            }
            Kind::Counts { column, times } => {
                let begins = times
                    .map(|(column, unit)| read_time(column, unit))
                    .transpose()?;
                let number = count(cell(column)).ok_or_else(|| fault(cell(column), "count"))?;
                if begins.is_none_or(|begins| (from..to).contains(&begins)) {
                    counts.push((begins, number));
                }
            }
        }
        if counts.len() > MOST_ROWS {
            return Err(anyhow!("{name}: more than {MOST_ROWS} counts"));
        }
    }
    match plan.kind {
        Kind::Events { .. } => Ok(Table::Events(bins)),
        Kind::Counts { times: None, .. } if span.is_part() => Err(wrong(format!(
            "{name}: its counts have no times, so --from and --to mean nothing"
        ))),
        Kind::Counts { .. } => Ok(Table::Counts(counts)),
    }
}

/// The lines of an input, one at a time.
struct Lines {
    reader: BufReader<Opened>,
    line: Vec<u8>,
    /// From 1.
    number: u64,
}

impl Lines {
    fn new(opened: Opened) -> Self {
        Self {
            reader: BufReader::with_capacity(64 << 10, opened),
            line: Vec::new(),
            number: 0,
        }
    }

    /// Whether there is a next line.
    fn next(&mut self) -> anyhow::Result<bool> {
        self.line.clear();
        self.number += 1;
        let mut limited = self.reader.by_ref().take(MOST_LINE_BYTES as u64);
        let got = limited.read_until(b'\n', &mut self.line)?;
        if got == MOST_LINE_BYTES && !self.line.ends_with(b"\n") {
            return Err(anyhow!("line {} is longer than a table has", self.number));
        }
        Ok(got > 0)
    }

    fn row(&self) -> &[u8] {
        self.line.trim_ascii()
    }
}

#[cfg(test)]
mod tests;
