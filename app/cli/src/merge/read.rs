//! Reads sketches, strictly: what is missing, of another type or not known is an error that names it.

use linkweir_engine::{Drops, Fault, FaultKind};
use linkweir_sketch::LogLinear;
use linkweir_wire::{DecodeFaults, Timestamp};
use serde_json::Value;

use super::fields::Fields;
use super::sketch::{HttpTotals, KIND, RunTotals, Sketch, VERSION};
use super::write::kind_name;

/// The sketch that a file holds, or what is wrong with it.
pub(super) fn from_json(text: &str) -> Result<Sketch, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
    let mut all = Fields::root(value)?;
    let version = all
        .count("linkweir_sketch")
        .map_err(|error| format!("{error}; this is no sketch of linkweir"))?;
    if version != VERSION {
        return Err(format!(
            "a sketch of version {version}, this linkweir reads version {VERSION}"
        ));
    }
    let kind = all.text("kind")?;
    if kind != KIND {
        return Err(format!(
            "a sketch of `{kind}`, this linkweir merges those of `{KIND}`"
        ));
    }
    let sketch = Sketch {
        started_ns: all.count("started_ns")?,
        ended_ns: all.count("ended_ns")?,
        run: all.object_if_there("run")?.map(run).transpose()?,
        http: all.object_if_there("http")?.map(http).transpose()?,
    };
    all.end()?;
    Ok(sketch)
}

fn run(mut run: Fields) -> Result<RunTotals, String> {
    let mut dropped = run.object("dropped")?;
    let drops = Drops {
        kernel: dropped.count("kernel")?,
        ring: dropped.count("ring")?,
        unusable_records: dropped.count("unusable_records")?,
    };
    dropped.end()?;
    let mut decode_errors = DecodeFaults::default();
    for (layer, causes) in run.object("decode_errors")?.each()? {
        for (cause, count) in causes.counts()? {
            if !decode_errors.record_named(&layer, &cause, count) {
                return Err(format!(
                    "`run.decode_errors.{layer}.{cause}` is not known to this version of linkweir"
                ));
            }
        }
    }
    let totals = RunTotals {
        packets: run.count("packets")?,
        bytes: run.count("bytes")?,
        first: run.count_or_null("first_ts_ns")?.map(Timestamp::from_nanos),
        last: run.count_or_null("last_ts_ns")?.map(Timestamp::from_nanos),
        drops,
        decode_errors,
        input_faults: run
            .objects("input_faults")?
            .into_iter()
            .map(fault)
            .collect::<Result<_, _>>()?,
    };
    run.end()?;
    Ok(totals)
}

fn fault(mut fields: Fields) -> Result<Fault, String> {
    let name = fields.text("kind")?;
    let kinds = [
        FaultKind::Unusable,
        FaultKind::Damaged,
        FaultKind::Interrupted,
        FaultKind::Skipped,
    ];
    let kind = kinds.into_iter().find(|kind| kind_name(*kind) == name);
    let fault = Fault {
        input: fields.text("input")?,
        offset: fields.count_or_null("offset")?,
        kind: kind.ok_or_else(|| {
            format!(
                "{} must be unusable, damaged, interrupted or skipped, not `{name}`",
                fields.path("kind")
            )
        })?,
        message: fields.text("message")?,
    };
    fields.end()?;
    Ok(fault)
}

fn http(mut http: Fields) -> Result<HttpTotals, String> {
    let mut totals = HttpTotals {
        records: http.count("records")?,
        unsorted: http.count("unsorted")?,
        sink_losses: http.count("sink_losses")?,
        ..HttpTotals::default()
    };
    let stats = &mut totals.stats;
    for (name, counter) in stats.counters_mut() {
        *counter = http.count(name)?;
    }
    for (method, count) in http.object("methods")?.counts()? {
        stats.count_methods(method.as_bytes(), count);
    }
    stats.count_other_methods(http.count("other_methods")?);
    for (code, count) in http.object("status_codes")?.counts()? {
        let number = code.parse::<u16>().ok();
        if !number.is_some_and(|number| stats.count_statuses(number, count)) {
            return Err(format!("`http.status_codes.{code}` is no status code"));
        }
    }
    stats.response_time = histogram(http.object("response_time_ns")?)?;
    http.end()?;
    Ok(totals)
}

fn histogram(mut fields: Fields) -> Result<LogLinear, String> {
    let path = fields.path("buckets");
    let buckets: Option<Vec<(u64, u64)>> = fields.list("buckets")?.iter().map(bucket).collect();
    let buckets = buckets.ok_or_else(|| format!("{path} must be pairs of whole numbers"))?;
    let sum = fields.text("sum")?;
    let sum: u128 = sum
        .parse()
        .map_err(|_| format!("{} must be digits, not `{sum}`", fields.path("sum")))?;
    let (min, max) = (fields.count_or_null("min")?, fields.count_or_null("max")?);
    fields.end()?;
    LogLinear::from_parts(buckets, sum, min.zip(max))
        .filter(|histogram| (histogram.min(), histogram.max()) == (min, max))
        .ok_or_else(|| format!("{path} contradict `sum`, `min` and `max` beside them"))
}

fn bucket(pair: &Value) -> Option<(u64, u64)> {
    match pair.as_array()?.as_slice() {
        [upper, count] => upper.as_u64().zip(count.as_u64()),
        _ => None,
    }
}
