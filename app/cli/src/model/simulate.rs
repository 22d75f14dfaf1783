//! `model simulate`: counts drawn from a model.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, anyhow};
use linkweir_model::{Model, autocovariance};
use linkweir_record::human::{counted, short};

use super::args::SimulateArgs;
use super::keeps;
use crate::exit::{Exit, say};
use crate::files;

/// Reads a model file; `-` is standard input.
pub(super) fn read_model(path: &Path) -> anyhow::Result<Model> {
    let name = path.display().to_string();
    let text = files::read_text(path, linkweir_model::file::MAX_BYTES as u64);
    let text = text.with_context(|| name.clone())?;
    Model::from_json(&text).map_err(|error| anyhow!("{name}: {error}"))
}

pub(super) fn run(args: &SimulateArgs) -> anyhow::Result<Exit> {
    keeps([("-w", args.write.as_path())], [args.model.as_path()])?;
    let model = read_model(&args.model)?;
    let mut out = files::document_at(&args.write, args.files.existing(false))?;
    let bins = usize::try_from(args.bins).unwrap_or(usize::MAX);
    let counts = model.simulate(bins, args.seed)?;
    writeln!(out, "count")?;
    for count in counts.values() {
        writeln!(out, "{count}")?;
    }
    out.finish()?;
    if !args.quiet {
        let values: Vec<f64> = counts.values().iter().copied().map(f64::from).collect();
        let drawn = autocovariance(&values, 10);
        let stated = model.superposition().autocovariance(10);
        say(&format!(
            "drawn            {} of {} s, {}, seed {}",
            counted(u64::from(args.bins), "bin"),
            short(model.bin_s()),
            counted(counts.total(), "arrival"),
            args.seed
        ));
        // Factors of a profile are 1 on average over its period, not over a part of it.
        let factors = model.profile().map(|profile| profile.first(bins));
        let factor = factors.map_or(1.0, |all| all.iter().sum::<f64>() / all.len().max(1) as f64);
        say(&format!(
            "mean             {:.4} per bin (model {:.4}{})",
            counts.mean(),
            model.mean() * factor,
            if model.profile().is_some() {
                " over these bins"
            } else {
                ""
            }
        ));
        // At lags in bins. With a profile the series is no stationary one, and the model's
        // autocovariance is that of the process below the profile.
        for (lag, name) in [(0, "variance"), (1, "covariance 1"), (10, "covariance 10")] {
            if let (Some(drawn), Some(stated)) = (drawn.get(lag), stated.get(lag)) {
                let of_model = if model.profile().is_none() {
                    format!(" (model {})", short(*stated))
                } else {
                    String::new()
                };
                say(&format!("{name:<17}{}{of_model}", short(*drawn)));
            }
        }
    }
    Ok(Exit::Done)
}
