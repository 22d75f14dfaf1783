//! Counts per bin from whatever the user named: a table of counts, a table of events, logs.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow};
use linkweir_model::Counts;
use linkweir_model::bins::Bins;
use linkweir_model::counts::{Spread, spread};
use linkweir_record::human::{counted, span};
use linkweir_wire::nanos;

use super::args::{LogArgs, LogForm, SeriesArgs, SpanArgs};
use super::table::{self, Irregular, Regular, Table};
use super::{logs, sessions, wrong};
use crate::opened::Opened;

/// Bins where nothing else says how long they are.
const DEFAULT_BIN: Duration = Duration::from_secs(10);
/// What a count without a time stands for where it is spread.
const MINUTE_NS: u64 = 60_000_000_000;

/// A series, and what has to be said of it.
pub(super) struct Series {
    pub(super) counts: Counts,
    /// What it is made of, for the model file.
    pub(super) source: String,
    /// What the reader should know: gaps, bins left out.
    pub(super) notes: Vec<String>,
    /// What of the input was lost.
    pub(super) losses: Vec<String>,
}

/// The flags that say how a series is read.
#[derive(Clone, Copy)]
pub(super) struct How<'a> {
    pub(super) series: &'a SeriesArgs,
    pub(super) span: SpanArgs,
    pub(super) log: &'a LogArgs,
    /// The bin where no flag says so: that of the model in `check`.
    pub(super) bin: Option<Duration>,
}

impl How<'_> {
    fn bin(&self) -> Option<Duration> {
        self.series.bin.or(self.bin)
    }
}

/// Reads the series.
pub(super) fn read(inputs: &[PathBuf], how: How<'_>) -> anyhow::Result<Series> {
    let names: Vec<String> = inputs
        .iter()
        .map(|path| path.file_name().unwrap_or(path.as_os_str()))
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    let source = names.join(", ");
    let mut opened = Vec::new();
    for path in inputs {
        let input = Opened::open(path)?;
        if input.beginning.is_empty() {
            return Err(anyhow!("{}: it is empty", input.name));
        }
        opened.push(input);
    }
    let asks_for_log = how.log.format != LogForm::Auto;
    let is_table = how.series.events || how.series.column.is_some();
    let forms: Vec<_> = opened
        .iter()
        .map(|input| logs::form(input, how.log.format).filter(|_| asks_for_log || !is_table))
        .collect();
    if forms.iter().all(Option::is_some) {
        if how.series.spread.is_some() {
            return Err(wrong("--spread is for tables of counts".to_owned()));
        }
        let logs = opened.into_iter().zip(forms.into_iter().flatten());
        return of_logs(logs.collect(), how, &source);
    }
    if opened.len() > 1 {
        let place = forms.iter().position(Option::is_none).unwrap_or(0);
        let name = opened.get(place).map_or("", |input| input.name.as_str());
        return Err(anyhow!(
            "{name}: not a log; tables must be given one at a time"
        ));
    }
    let Some(input) = opened.pop() else {
        return Err(wrong("no input".to_owned()));
    };
    of_table(input, how, source)
}

fn of_logs(logs: Vec<(Opened, logs::Form)>, how: How<'_>, source: &str) -> anyhow::Result<Series> {
    let bin = how.bin().unwrap_or(DEFAULT_BIN);
    let name = logs
        .first()
        .map_or("", |(log, _)| log.name.as_str())
        .to_owned();
    let mut bins = Bins::new(nanos(bin));
    let logs = logs::Merged::new(logs)?;
    let found = logs::sessions(logs, how.log, how.span, Some(bin), |time_ns| {
        bins.add(time_ns, 1)
            .map_err(|error| sessions::too_many(error, bin))
    })?;
    if let Some((first, last)) = found.watched {
        for time_ns in [first, last] {
            bins.add(time_ns, 0)
                .map_err(|error| sessions::too_many(error, bin))?;
        }
    }
    if found.sessions == 0 {
        return Err(anyhow!("{name}: no session in it"));
    }
    let source = format!(
        "sessions of {source}, timeout {}",
        humantime::format_duration(how.log.timeout)
    );
    Ok(Series {
        counts: narrow(&name, bin, bins.into_counts().1)?,
        source,
        notes: Vec::new(),
        losses: if found.is_complete() {
            Vec::new()
        } else {
            found.complaints()
        },
    })
}

fn of_table(input: Opened, how: How<'_>, source: String) -> anyhow::Result<Series> {
    let name = input.name.clone();
    let width = how.bin().unwrap_or(DEFAULT_BIN);
    let is_empty = || anyhow!("{name}: nothing in it in the time that was asked for");
    let (counts, notes) = match table::read(input, how.series, how.span, nanos(width))? {
        Table::Events(bins) => {
            if how.series.spread.is_some() {
                return Err(wrong("--spread is for tables of counts".to_owned()));
            }
            how.span.check_gap(bins.longest_gap())?;
            let counts = bins.into_counts().1;
            if counts.is_empty() {
                return Err(is_empty());
            }
            (narrow(&name, width, counts)?, Vec::new())
        }
        Table::Counts(rows) => {
            if rows.is_empty() {
                return Err(is_empty());
            }
            let (regular, mut notes) = regular(&name, rows, how.span)?;
            let spread_from = how.series.spread.map(|_| MINUTE_NS);
            let native_ns = regular.step_ns.or(spread_from);
            let native_ns = native_ns.unwrap_or_else(|| nanos(width));
            let wanted_ns = how.bin().map_or(native_ns, nanos);
            (
                fit_bins(
                    &name,
                    regular.counts,
                    native_ns,
                    wanted_ns,
                    how.series,
                    &mut notes,
                )?,
                notes,
            )
        }
    };
    Ok(Series {
        counts,
        source,
        notes,
        losses: Vec::new(),
    })
}

fn regular(
    name: &str,
    rows: Vec<(Option<u64>, u64)>,
    span_args: SpanArgs,
) -> anyhow::Result<(Regular, Vec<String>)> {
    let timed: Option<Vec<(u64, u64)>> = rows
        .iter()
        .map(|(time, count)| Some(((*time)?, *count)))
        .collect();
    let Some(timed) = timed else {
        let series = Regular {
            step_ns: None,
            counts: rows.into_iter().map(|(_, count)| count).collect(),
            missing: 0,
        };
        return Ok((series, Vec::new()));
    };
    let mut times: Vec<u64> = timed.iter().map(|(time, _)| *time).collect();
    times.sort_unstable();
    let gaps = times.iter().copied().zip(times.iter().copied().skip(1));
    span_args.check_gap(gaps.max_by_key(|(before, after)| after - before))?;
    let series = Regular::of(timed).map_err(|fault| match fault {
        Irregular::Steps(step) => anyhow!(
            "{name}: its times are not in equal steps (the shortest is {}); if they are events, say --events",
            span(step)
        ),
        Irregular::Long => anyhow!("{name}: its times span too many bins"),
    })?;
    let notes = match series.missing {
        0 => Vec::new(),
        missing => vec![format!(
            "{name}: {} missing and taken as empty",
            counted(missing, "bin")
        )],
    };
    Ok((series, notes))
}

/// Counts of the bins that are wanted from those that were counted.
fn fit_bins(
    name: &str,
    counts: Vec<u64>,
    native_ns: u64,
    wanted_ns: u64,
    args: &SeriesArgs,
    notes: &mut Vec<String>,
) -> anyhow::Result<Counts> {
    let seconds = |ns: u64| Duration::from_nanos(ns).as_secs_f64();
    if let Some(seed) = args.spread {
        let how = Spread {
            from_bin_s: seconds(native_ns),
            bin_s: seconds(wanted_ns),
            mean: args.mean,
            seed,
        };
        if !native_ns.is_multiple_of(wanted_ns) {
            return Err(wrong(format!(
                "--bin {}: bins of {} cannot be spread over such",
                span(wanted_ns),
                span(native_ns)
            )));
        }
        return spread(&counts, how).with_context(|| name.to_owned());
    }
    if native_ns == wanted_ns {
        return narrow(name, Duration::from_nanos(wanted_ns), counts);
    }
    if wanted_ns < native_ns || !wanted_ns.is_multiple_of(native_ns) {
        let hint = if native_ns.is_multiple_of(wanted_ns) {
            "; --spread SEED makes a surrogate of it"
        } else {
            ""
        };
        return Err(wrong(format!(
            "{name}: it counts per {}, so bins of {} cannot be had{hint}",
            span(native_ns),
            span(wanted_ns)
        )));
    }
    let each = usize::try_from(wanted_ns / native_ns).unwrap_or(usize::MAX);
    let whole = counts.chunks_exact(each);
    if !whole.remainder().is_empty() {
        notes.push(format!("{name}: its last bin is not full and is omitted"));
    }
    let summed = whole.map(|bins| bins.iter().fold(0_u64, |sum, one| sum.saturating_add(*one)));
    narrow(name, Duration::from_nanos(wanted_ns), summed.collect())
}

/// Counts as the model takes them.
fn narrow(name: &str, bin: Duration, counts: Vec<u64>) -> anyhow::Result<Counts> {
    let mut narrow = Vec::with_capacity(counts.len());
    for (number, count) in (1..).zip(counts) {
        let count = u32::try_from(count).map_err(|_| {
            let number: u64 = number;
            anyhow!(
                "{name}: bin {number}: a count of {count} is beyond {}",
                u32::MAX
            )
        })?;
        narrow.push(count);
    }
    Counts::new(bin.as_secs_f64(), narrow).with_context(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(
        counts: &[u64],
        native_s: u64,
        wanted_s: u64,
        seed: Option<u64>,
    ) -> anyhow::Result<Counts> {
        let args = SeriesArgs {
            bin: None,
            column: None,
            events: false,
            spread: seed,
            mean: None,
        };
        let ns = |seconds: u64| seconds * 1_000_000_000;
        fit_bins(
            "t",
            counts.to_vec(),
            ns(native_s),
            ns(wanted_s),
            &args,
            &mut Vec::new(),
        )
    }

    #[test]
    fn bins_are_summed_or_spread() {
        let counts = [1, 2, 3, 4, 5];
        assert_eq!(
            fitted(&counts, 10, 10, None).unwrap().values(),
            [1, 2, 3, 4, 5]
        );
        assert_eq!(fitted(&counts, 10, 20, None).unwrap().values(), [3, 7]);
        let spread = fitted(&[6000; 100], 60, 10, Some(1)).unwrap();
        assert_eq!((spread.len(), spread.bin_s()), (600, 10.0));
        assert!((spread.mean() - 1000.0).abs() < 10.0);
        for (native, wanted, seed) in [
            (60, 10, None),
            (10, 25, None),
            (60, 25, Some(1)),
            (10, 60, Some(1)),
        ] {
            assert!(
                fitted(&counts, native, wanted, seed).is_err(),
                "{native} {wanted}"
            );
        }
        assert!(fitted(&[1 << 40], 10, 10, None).is_err());
        assert!(fitted(&[u64::MAX; 4], 10, 20, None).is_err());
    }
}
