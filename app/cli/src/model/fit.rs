//! `model fit`: a model of counts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use linkweir_model::log::calendar::format_date;
use linkweir_model::{FitError, FitOptions, Fitted, fit};
use linkweir_record::human::{counted, short};
use serde_json::{Value, json};

use super::args::FitArgs;
use super::series::{self, How, Series};
use super::shown::{Limits, figures, lags_text, percent, signed_percent};
use super::{keeps, wrong};
use crate::clock::{now, wall_clock};
use crate::exit::{Exit, say, warn};
use crate::files;

/// Below so many expected visits a run of the counted length may look nothing like the counts.
const FEW_VISITS: f64 = 10.0;

pub(super) fn run(args: &FitArgs) -> anyhow::Result<Exit> {
    keeps(
        [("-o", args.output.as_path())],
        args.inputs.iter().map(PathBuf::as_path),
    )?;
    let is_on_stdout = args.output == Path::new("-");
    if is_on_stdout && args.json {
        return Err(wrong(
            "-o - and --json both go to standard output".to_owned(),
        ));
    }
    let how = How {
        series: &args.series,
        span: args.span,
        log: &args.log,
        bin: None,
    };
    let out = files::document_at(&args.output, args.files.existing(false))?;
    let series = series::read(&args.inputs, how)?;
    let (fitted, elapsed) = fitted(args, &series)?;
    out.write_whole((fitted.model.to_json() + "\n").as_bytes())?;
    for note in &series.notes {
        warn(note);
    }
    if args.json {
        let object = object(&fitted, &series, args, elapsed);
        files::print(&format!("{object:#}\n"))?;
    } else if !args.quiet {
        let text = table(&fitted, &series, elapsed);
        if is_on_stdout {
            say(text.trim_end());
        } else {
            files::print(&text)?;
        }
    }
    for complaint in &series.losses {
        warn(complaint);
    }
    let limits = Limits {
        max_ic: args.max_ic,
        max_mean_error: args.max_mean_error,
    };
    let is_met = limits.are_met(&fitted.check);
    Ok(if is_met && series.losses.is_empty() {
        Exit::Done
    } else {
        Exit::DataLost
    })
}

fn fitted(args: &FitArgs, series: &Series) -> anyhow::Result<(Fitted, Duration)> {
    let shape = &args.shape;
    let whole = |number: Option<u32>| number.and_then(|number| usize::try_from(number).ok());
    let options = FitOptions {
        lags: whole(shape.lags),
        states: whole(shape.states),
        scales: whole(shape.sources),
        profile_s: shape.profile.map(|span| span.as_secs_f64()),
        source: series.source.clone(),
        date: format_date(wall_clock() / 1_000_000_000 * 1_000_000_000),
        program: format!("linkweir {}", env!("CARGO_PKG_VERSION")),
    };
    let started = now();
    let fitted = fit(&series.counts, &options).map_err(|error| {
        let name = &series.source;
        match error {
            FitError::Lags { .. }
            | FitError::States { .. }
            | FitError::Scales(_)
            | FitError::Window(_) => wrong(format!("{name}: {error}")),
            _ => anyhow!("{name}: {error}"),
        }
    })?;
    Ok((fitted, now().duration_since(started)))
}

/// Seconds as people say them.
fn time_text(seconds: f64) -> String {
    match seconds {
        86_400.0.. => format!("{} days", short(seconds / 86_400.0)),
        3600.0.. => format!("{} h", short(seconds / 3600.0)),
        60.0.. => format!("{} min", short(seconds / 60.0)),
        1.0.. => format!("{} s", short(seconds)),
        _ => format!("{} ms", short(seconds * 1000.0)),
    }
}

fn rates(rates: &[f64]) -> String {
    let all: Vec<String> = rates.iter().copied().map(short).collect();
    all.join("  ")
}

fn table(fitted: &Fitted, series: &Series, elapsed: Duration) -> String {
    let (model, check) = (&fitted.model, &fitted.check);
    let sources = model.superposition().sources();
    let states = model.superposition().states();
    let scales = fitted.scales.len();
    let rest = sources.get(scales).map_or(1, |source| source.states());
    let mut lines = vec![
        format!("counts           {}", series.source),
        format!(
            "                 {} of {} s, {}",
            counted(check.bins as u64, "bin"),
            short(model.bin_s()),
            counted(series.counts.total(), "arrival")
        ),
        format!(
            "model            {}: L = {}, M = {} without memory",
            counted(states as u64, "state"),
            counted(scales as u64, "two-state source"),
            counted(rest as u64, "state")
        ),
    ];
    if let Some(profile) = model.profile() {
        let most = profile.factors().iter().copied().fold(0.0, f64::max);
        let least = profile.factors().iter().copied().fold(most, f64::min);
        lines.push(format!(
            "profile          {} to {} times the mean, a point every {}, repeats after {}",
            short(least),
            short(most),
            time_text(f64::from(profile.every()) * model.bin_s()),
            time_text(f64::from(profile.bins()) * model.bin_s())
        ));
    }
    for (number, (scale, source)) in (1..).zip(fitted.scales.iter().zip(sources)) {
        let number: u32 = number;
        lines.push(format!(
            "source {number}         remembers {}; rates {} per bin; low {} of the time; {} visits in as many bins",
            time_text(scale.tau * model.bin_s()),
            rates(source.rates()),
            percent(scale.low),
            short(scale.visits)
        ));
    }
    if let Some(source) = sources.get(scales) {
        lines.push(format!("without memory   rates {}", rates(source.rates())));
        lines.push(format!(
            "                 share of time, %: {}",
            rates(
                &source
                    .stationary()
                    .iter()
                    .map(|p| p * 100.0)
                    .collect::<Vec<f64>>()
            )
        ));
    }
    lines.extend(figures(check, model.bin_s()));
    lines.push(format!(
        "step 1           inequality coefficient of the exponentials {}",
        percent(fitted.exponentials.ic)
    ));
    lines.push(format!(
        "fitted in        {}",
        time_text(elapsed.as_secs_f64())
    ));
    if fitted.scales.iter().any(|scale| scale.visits < FEW_VISITS) {
        lines.push(format!(
            "note             a run of this length visits a source less than {FEW_VISITS} times: its mean spreads by {} or more (one",
            signed_percent(check.sd_of_mean / check.mean_counted)
        ));
        lines.push(
            "                 standard deviation). If that is a daily trend and no chance, give --profile."
                .to_owned(),
        );
    }
    lines.join("\n") + "\n"
}

fn object(fitted: &Fitted, series: &Series, args: &FitArgs, elapsed: Duration) -> Value {
    let (model, check) = (&fitted.model, &fitted.check);
    let scales: Vec<Value> = fitted
        .scales
        .iter()
        .map(|scale| {
            json!({
                "tau_bins": scale.tau,
                "tau_s": scale.tau * model.bin_s(),
                "variance": scale.amplitude,
                "low": scale.low,
                "visits": scale.visits,
            })
        })
        .collect();
    let sources = model.superposition().sources();
    json!({
        "model": args.output,
        "source": series.source,
        "bin_s": model.bin_s(),
        "arrivals": series.counts.total(),
        "states": model.superposition().states(),
        "two_state_sources": fitted.scales.len(),
        "states_without_memory": sources.last().map_or(1, |source| source.states()),
        "rates": sources.iter().map(|source| source.rates()).collect::<Vec<_>>(),
        "has_profile": model.profile().is_some(),
        "time_scales": scales,
        "exponentials": {"ic": fitted.exponentials.ic, "theil": fitted.exponentials.theil},
        "check": super::shown::object(check),
        "lags_text": lags_text(check.lags, model.bin_s()),
        "fit_s": elapsed.as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let texts = [0.25, 7.0, 90.0, 24_630.0, 864_000.0].map(time_text);
        assert_eq!(texts, ["250 ms", "7 s", "1.5 min", "6.84 h", "10 days"]);
    }
}
