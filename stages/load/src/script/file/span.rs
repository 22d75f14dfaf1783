//! Spans of time in a script file.

use toml::de::DeValue;

use super::section::{Result, Section, Value, number_of};
use crate::arrivals::whole_nanos;
use crate::script::span::{MAX_SECONDS, Span};

/// The cap of an exponential that gives none, against its mean: a draw in 500 million is beyond it.
const EXPONENTIAL_CAP: f64 = 20.0;

const UNITS: [(&str, f64); 6] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];

/// A span that may be drawn.
pub(super) fn read(section: &mut Section<'_>, key: &'static str) -> Result<Option<Span>> {
    let Some(value) = section.take(key) else {
        return Ok(None);
    };
    if matches!(value.get_ref(), DeValue::Table(_)) {
        let table = Section::of(section.text(), value, key)?;
        return distribution(table, key).map(Some);
    }
    let seconds = seconds(section, key, &value)?;
    Ok(Some(Span::Constant(whole_nanos(seconds * 1e9))))
}

/// A fixed span, nanoseconds, above 0.
pub(super) fn read_fixed(section: &mut Section<'_>, key: &'static str) -> Result<Option<u64>> {
    let Some(value) = section.take(key) else {
        return Ok(None);
    };
    let nanos = whole_nanos(seconds(section, key, &value)? * 1e9);
    if nanos == 0 {
        let what = format!("`{key}` must be above 0: leave it out for that of the run");
        return Err(section.wrong_at(&value.span(), what));
    }
    Ok(Some(nanos))
}

fn distribution(mut table: Section<'_>, key: &str) -> Result<Span> {
    const NAMES: &str = "exponential, pareto, weibull or lognormal";
    let Some(name) = table.word("distribution")? else {
        return Err(table.wrong(format!("`{key}` needs `distribution`: {NAMES}")));
    };
    let cap = span_of(&mut table, "cap")?;
    let span = match name.get_ref().as_str() {
        "exponential" => {
            let mean = needed_span(&mut table, "mean")?;
            let cap = cap.unwrap_or(mean * EXPONENTIAL_CAP);
            Span::Exponential { mean, cap }
        }
        "pareto" => Span::Pareto {
            scale: needed_span(&mut table, "scale")?,
            shape: needed_number(&mut table, "shape")?,
            cap: needed_cap(&table, cap)?,
        },
        "weibull" => Span::Weibull {
            scale: needed_span(&mut table, "scale")?,
            shape: needed_number(&mut table, "shape")?,
            cap: needed_cap(&table, cap)?,
        },
        "lognormal" => Span::Lognormal {
            mu: needed_number(&mut table, "mu")?,
            sigma: needed_number(&mut table, "sigma")?,
            cap: needed_cap(&table, cap)?,
        },
        other => {
            let what = format!(
                "`{}` is no distribution: write {NAMES}",
                other.escape_debug()
            );
            return Err(table.wrong_at(&name.span(), what));
        }
    };
    if let Some(fault) = span.fault() {
        return Err(table.wrong(format!("`{key}`: {fault}")));
    }
    table.end()?;
    Ok(span)
}

fn needed_number(table: &mut Section<'_>, key: &'static str) -> Result<f64> {
    let number = table.number(key)?;
    number.ok_or_else(|| table.wrong(format!("this distribution needs `{key}`, a number")))
}

fn needed_span(table: &mut Section<'_>, key: &'static str) -> Result<f64> {
    let span = span_of(table, key)?;
    span.ok_or_else(|| table.wrong(format!("this distribution needs `{key}`, like \"1.5s\"")))
}

/// A heavy tail without a cap makes runs that do not repeat.
fn needed_cap(table: &Section<'_>, cap: Option<f64>) -> Result<f64> {
    cap.ok_or_else(|| table.wrong("this distribution needs `cap`, the largest value, like \"60s\""))
}

/// Seconds.
fn span_of(table: &mut Section<'_>, key: &'static str) -> Result<Option<f64>> {
    let Some(value) = table.take(key) else {
        return Ok(None);
    };
    seconds(table, key, &value).map(Some)
}

/// Seconds of a number or a text with a unit.
fn seconds(section: &Section<'_>, key: &str, value: &Value<'_>) -> Result<f64> {
    let number = match value.get_ref().as_str() {
        Some(text) => with_unit(text),
        None => number_of(value.get_ref()),
    };
    let number = number.filter(|seconds| (0.0..=MAX_SECONDS).contains(seconds));
    number.ok_or_else(|| {
        let what = format!("`{key}` must be a span of time, like \"250ms\", \"1.5s\" or \"2m\"");
        section.wrong_at(&value.span(), what)
    })
}

fn with_unit(text: &str) -> Option<f64> {
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at_checked(at)?;
    let (_, scale) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    Some(number.trim_end().parse::<f64>().ok()? * scale)
}
