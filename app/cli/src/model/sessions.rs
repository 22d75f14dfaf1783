//! `model sessions`: when sessions of logs begin, or how many in each bin of time.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use linkweir_model::bins::{Bins, TooManyBins};
use linkweir_model::log::calendar::format_date;
use linkweir_record::human::{counted, moment, short, thousands};
use linkweir_wire::nanos;
use serde_json::{Value, json};

use super::args::SessionsArgs;
use super::logs::{self, Found};
use super::{keeps, wrong};
use crate::exit::{Exit, say, warn};
use crate::files;
use crate::progress::Meter;

pub(super) fn run(args: &SessionsArgs) -> anyhow::Result<Exit> {
    let meter = Meter::start(args.quiet);
    let summary_path = args.summary.as_deref().map(|path| ("--summary", path));
    let outputs = [("-w", args.write.as_path())]
        .into_iter()
        .chain(summary_path);
    keeps(outputs, args.logs.iter().map(PathBuf::as_path))?;
    let logs = logs::open(&args.logs, args.log.format)?;
    let existing = args.files.existing(false);
    let mut out = files::document_at(&args.write, existing)?;
    let totals = args.summary.as_deref();
    let totals = totals.map(|path| files::document_at(path, existing));
    let totals = totals.transpose().context("--summary")?;
    let mut empty = None;
    let found = match args.bin {
        Some(bin) => {
            let width_ns = nanos(bin);
            let mut bins = Bins::new(width_ns);
            let found = logs::sessions(logs, &args.log, args.span, args.bin, |time_ns| {
                bins.add(time_ns, 1).map_err(|error| too_many(error, bin))
            })?;
            // The time that was watched, also where nothing began.
            if let Some((first, last)) = found.watched {
                for time_ns in [first, last] {
                    bins.add(time_ns, 0).map_err(|error| too_many(error, bin))?;
                }
            }
            empty = mostly_empty(&bins);
            let (start_ns, counts) = bins.into_counts();
            writeln!(out, "bin_start,count")?;
            let starts = (0..).map(|at: u64| start_ns + at * width_ns);
            for (start, count) in starts.zip(counts) {
                writeln!(out, "{},{count}", format_date(start))?;
            }
            found
        }
        None => {
            writeln!(out, "session_start")?;
            logs::sessions(logs, &args.log, args.span, None, |time_ns| {
                writeln!(out, "{}", format_date(time_ns))?;
                Ok(())
            })?
        }
    };
    out.finish()?;
    if let Some(document) = totals {
        let object = summary(&found, args, meter.elapsed().as_secs_f64());
        document.write_json(&object).context("--summary")?;
    }
    if !args.quiet {
        screen(&found, args, empty.as_deref());
    }
    for complaint in found.complaints() {
        warn(&complaint);
    }
    Ok(if found.is_complete() {
        Exit::Done
    } else {
        Exit::DataLost
    })
}

/// That there are too many bins, with what can be done.
pub(super) fn too_many(error: TooManyBins, bin: std::time::Duration) -> anyhow::Error {
    wrong(format!(
        "{error} of {}: give a longer --bin, or the time that is meant with --from and --to",
        humantime::format_duration(bin)
    ))
}

fn per_session(found: &Found) -> f64 {
    found.totals.requests as f64 / found.totals.sessions.max(1) as f64
}

/// What to know of bins most of which are empty: a time that is a little wrong makes such.
fn mostly_empty(bins: &Bins) -> Option<String> {
    let (all, filled) = bins.filled();
    let (before, after) = bins.longest_gap().filter(|_| filled < all / 2)?;
    Some(format!(
        "{} of {} are empty; the longest time without a session is from {} to {}",
        thousands((all - filled) as u64),
        counted(all as u64, "bin"),
        moment(before),
        moment(after)
    ))
}

fn screen(found: &Found, args: &SessionsArgs, empty: Option<&str>) {
    let totals = &found.totals;
    let least = if totals.is_clients_least {
        "at least "
    } else {
        ""
    };
    say(&format!(
        "requests   {} of {least}{}",
        thousands(totals.requests),
        counted(totals.clients, "client")
    ));
    if let (Some(first), Some(last)) = (totals.first_ns, totals.last_ns) {
        say(&format!("           {} to {}", moment(first), moment(last)));
    }
    say(&format!(
        "sessions   {}, {} requests each (timeout {})",
        thousands(totals.sessions),
        short(per_session(found)),
        humantime::format_duration(args.log.timeout)
    ));
    if found.sessions != totals.sessions {
        say(&format!(
            "           {} of them begin in the time that was asked for",
            thousands(found.sessions)
        ));
    }
    if let Some(empty) = empty {
        say(&format!("bins       {empty}"));
    }
    let mut not_read: Vec<String> = Vec::new();
    for (_, cause, count, _) in &found.faults {
        not_read.push(format!("{} {}", cause.as_str(), thousands(*count)));
    }
    if !not_read.is_empty() {
        say(&format!(
            "omitted    lines by cause: {}",
            not_read.join(", ")
        ));
    }
}

fn summary(found: &Found, args: &SessionsArgs, elapsed_s: f64) -> Value {
    let totals = &found.totals;
    let faults: Vec<Value> = found
        .faults
        .iter()
        .map(|(input, cause, count, first)| {
            json!({"input": input, "cause": cause.as_str(), "count": count, "first_line": first})
        })
        .collect();
    json!({
        "first_ts_ns": totals.first_ns,
        "last_ts_ns": totals.last_ns,
        "elapsed_s": elapsed_s,
        "model": {
            "requests": totals.requests,
            "clients": totals.clients,
            "clients_are_more": totals.is_clients_least,
            "sessions": totals.sessions,
            "sessions_written": found.sessions,
            "requests_per_session": per_session(found),
            "timeout_s": args.log.timeout.as_secs_f64(),
            "late_requests": totals.late,
            "clients_forgotten": totals.forgotten,
            "not_read": faults,
        },
    })
}
