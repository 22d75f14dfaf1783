//! `model check`: how far a model is from counts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use linkweir_model::check::{Check, CheckError, analytic, compare, marginal};
use linkweir_model::hurst::Dependence;
use linkweir_model::{Counts, Model};
use linkweir_record::human::{counted, short};
use linkweir_sink::{Document, Existing};
use serde_json::{Value, json};

use super::args::CheckArgs;
use super::dependence::{self, Three};
use super::figure::Figure;
use super::series::{self, How, Series};
use super::shown::{Limits, figures, lags_text, object, percent};
use super::simulate::read_model;
use super::{keeps, wrong};
use crate::exit::{Exit, warn};
use crate::files;
use crate::outputs::check_svg;

/// Counts beyond this have no bar.
const MOST_COUNT: u32 = 65_535;

pub(super) fn run(args: &CheckArgs) -> anyhow::Result<Exit> {
    let inputs = args.inputs.iter().chain([&args.model]);
    let outputs = args.plot.as_deref().map(|path| ("--plot", path));
    keeps(outputs, inputs.map(PathBuf::as_path))?;
    let drawing = args.plot.as_deref();
    let drawing = drawing.map(|path| Drawing::open(path, args.files.existing(false)));
    let drawing = drawing.transpose()?;
    let model = read_model(&args.model)?;
    let bin = Duration::try_from_secs_f64(model.bin_s()).ok();
    let how = How {
        series: &args.series,
        span: args.span,
        log: &args.log,
        bin: bin.filter(|bin| !bin.is_zero()),
    };
    let series = series::read(&args.inputs, how)?;
    let lags = lags(args, &model, &series.counts);
    let told = |error: CheckError| match error {
        CheckError::Lags { .. } | CheckError::BinLength { .. } => {
            wrong(format!("{}: {error}", series.source))
        }
        _ => anyhow!("{}: {error}", series.source),
    };
    let check = analytic(&model, &series.counts, lags).map_err(told)?;
    let bins = series.counts.len();
    let of_counts = Dependence::of_counts(&series.counts);
    let mut three = of_counts
        .zip(Dependence::of_model(&model, bins))
        .map(|(counts, model)| Three {
            counts,
            model,
            runs: Vec::new(),
        });
    let mut runs = Vec::new();
    for number in 0..u64::from(args.simulate) {
        let seed = args.seed.wrapping_add(number);
        let path = model.simulate(bins, seed)?;
        runs.push(compare(&series.counts, &path, lags).map_err(told)?);
        if let Some(three) = &mut three {
            three.runs.extend(Dependence::of_counts(&path));
        }
    }
    let three = three.as_ref();
    if let Some(drawing) = drawing {
        drawing.write(&figure(args, &model, &series, &check, three), &check)?;
    }
    for note in &series.notes {
        warn(note);
    }
    let text = if args.json {
        let object = json!({
            "model": args.model,
            "source": series.source,
            "bin_s": model.bin_s(),
            "equations": object(&check),
            "runs": runs.iter().map(object).collect::<Vec<Value>>(),
            "dependence": dependence::object(three),
        });
        format!("{object:#}\n")
    } else {
        table(args, &model, &series, (&check, three), &runs)
    };
    files::print(&text)?;
    for complaint in &series.losses {
        warn(complaint);
    }
    let limits = Limits {
        max_ic: args.max_ic,
        max_mean_error: args.max_mean_error,
    };
    Ok(if limits.are_met(&check) && series.losses.is_empty() {
        Exit::Done
    } else {
        Exit::DataLost
    })
}

/// The lags that are compared: those that were asked for, or those of the fit as far as the counts go.
fn lags(args: &CheckArgs, model: &Model, counts: &Counts) -> usize {
    let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    match args.lags {
        Some(lags) => whole(lags.into()),
        None => {
            let fitted = whole(model.provenance().lags).max(1);
            fitted.min((counts.len() / 2).max(1))
        }
    }
}

fn table(
    args: &CheckArgs,
    model: &Model,
    series: &Series,
    (check, three): (&Check, Option<&Three>),
    runs: &[Check],
) -> String {
    let mut lines = vec![
        format!(
            "model            {}: {}, {}{}",
            args.model.display(),
            counted(model.superposition().states() as u64, "state"),
            counted(model.superposition().sources().len() as u64, "source"),
            if model.profile().is_some() {
                ", with a profile"
            } else {
                ""
            }
        ),
        format!(
            "counts           {}: {} of {} s, {}",
            series.source,
            counted(check.bins as u64, "bin"),
            short(series.counts.bin_s()),
            counted(series.counts.total(), "arrival")
        ),
        "By the equations of the model".to_owned(),
    ];
    lines.extend(figures(check, model.bin_s()));
    lines.push(format!(
        "by chance        the mean of a run as long as the counts spreads by {} or more (one standard deviation)",
        percent(check.sd_of_mean / check.mean_counted)
    ));
    if !runs.is_empty() {
        lines.push(format!(
            "In {} runs as long as the counts, seeds from {}: median (minimum to maximum)",
            runs.len(),
            args.seed
        ));
        let over = lags_text(check.lags, model.bin_s());
        for (name, of, after) in ROWS {
            lines.push(format!("{name:<17}{}{after}", spread(runs, of)));
        }
        lines.push(format!("                 over {over}"));
    }
    lines.extend(dependence::lines(three, model.bin_s()));
    lines.join("\n") + "\n"
}

type Row = (&'static str, fn(&Check) -> f64, &'static str);

/// What is shown of runs.
const ROWS: [Row; 4] = [
    ("mean", |run| run.mean_error.abs(), " from the counts"),
    ("histogram", |run| run.total_variation, " total variation"),
    (
        "autocovariance",
        |run| run.autocovariance.ic,
        " inequality coefficient",
    ),
    ("", |run| run.autocovariance.theil, " Theil's"),
];

/// Median, least and largest.
fn spread(runs: &[Check], of: fn(&Check) -> f64) -> String {
    let mut values: Vec<f64> = runs.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    let at = |place: usize| percent(values.get(place).copied().unwrap_or(f64::NAN));
    let last = values.len().saturating_sub(1);
    format!("{} ({} to {})", at(values.len() / 2), at(0), at(last))
}

fn figure(
    args: &CheckArgs,
    model: &Model,
    series: &Series,
    check: &Check,
    three: Option<&Three>,
) -> Figure {
    let most = series.counts.max().min(MOST_COUNT);
    let mut counted = vec![0.0; usize::try_from(most).unwrap_or(0) + 1];
    for (count, share) in series.counts.histogram() {
        let place = usize::try_from(count).unwrap_or(usize::MAX);
        if let Some(bar) = counted.get_mut(place) {
            *bar = share;
        }
    }
    // As far again: the model may have longer tails.
    let reach = most.saturating_mul(2).max(10);
    let without_lag0 = |all: &[f64]| all.get(1..).unwrap_or_default().to_vec();
    let name = args.model.file_name().unwrap_or_default().to_string_lossy();
    Figure {
        title: format!("{name} and {}", series.source),
        subtitle: format!(
            "mean {:.4} (model) and {:.4} (counts); total variation {}; inequality coefficient {} over {}",
            check.mean_model,
            check.mean_counted,
            short(check.total_variation),
            percent(check.autocovariance.ic),
            lags_text(check.lags, model.bin_s())
        ),
        bin_s: model.bin_s(),
        counted,
        modelled: marginal(model, check.bins, reach),
        counted_acov: without_lag0(&check.counted),
        modelled_acov: without_lag0(&check.model),
        counted_variance: curve(three.map(|three| &three.counts)),
        modelled_variance: curve(three.map(|three| &three.model)),
    }
}

/// The variance-time curve.
fn curve(of: Option<&Dependence>) -> Vec<(usize, f64)> {
    of.map_or_else(Vec::new, |of| of.variance_time.curve.clone())
}

/// What a figure is drawn as.
enum Form {
    Picture,
    Page,
}

/// The file of a figure.
struct Drawing {
    form: Form,
    file: Document,
}

impl Drawing {
    fn open(path: &Path, existing: Existing) -> anyhow::Result<Self> {
        let is_page = path
            .extension()
            .is_some_and(|ending| ending.eq_ignore_ascii_case("html"));
        let form = if is_page {
            Form::Page
        } else {
            check_svg(path)?;
            Form::Picture
        };
        let file = files::document_at(path, existing)?;
        Ok(Self { form, file })
    }

    fn write(self, figure: &Figure, check: &Check) -> anyhow::Result<()> {
        let text = match &self.form {
            Form::Picture => figure.svg(),
            Form::Page => {
                let cards = [
                    (format!("{:.4}", check.mean_counted), "mean of the counts"),
                    (format!("{:.4}", check.mean_model), "mean of the model"),
                    (short(check.total_variation), "total variation"),
                    (percent(check.autocovariance.ic), "inequality coefficient"),
                    (percent(check.autocovariance.theil), "Theil's coefficient"),
                    (check.lags.to_string(), "lags compared"),
                ];
                figure.page(&cards)
            }
        };
        self.file.write_whole(text.as_bytes())?;
        Ok(())
    }
}
