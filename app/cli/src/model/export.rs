//! `model export`: the chain of all sources together, for other programs.

use std::fmt::Write as _;

use anyhow::anyhow;
use linkweir_model::source::MAX_STATES;
use linkweir_model::{Model, Source};
use serde_json::{Value, json};

use super::args::{ExportArgs, ExportForm};
use super::keeps;
use super::simulate::read_model;
use crate::exit::{Exit, Wrong, warn};
use crate::files;

pub(super) fn run(args: &ExportArgs) -> anyhow::Result<Exit> {
    keeps([("-w", args.write.as_path())], [args.model.as_path()])?;
    let model = read_model(&args.model)?;
    let states = model.superposition().states();
    if args.matrices && states > MAX_STATES {
        return Err(anyhow!(Wrong(format!(
            "{}: {states} states together: --matrices is for at most {MAX_STATES}",
            args.model.display()
        ))));
    }
    let out = files::document_at(&args.write, args.files.existing(false))?;
    let text = match args.format {
        ExportForm::Json => format!("{}\n", object(args, &model)?),
        ExportForm::Csv => table(args, &model)?,
    };
    out.write_whole(text.as_bytes())?;
    if model.profile().is_some() {
        warn(
            "the chain is that of the sources: it does not contain the profile, which multiplies the rates of the bins",
        );
    }
    Ok(Exit::Done)
}

/// The chain where its matrix is asked for.
fn chain(args: &ExportArgs, model: &Model) -> anyhow::Result<Option<Source>> {
    let product = args.matrices.then(|| model.superposition().product());
    Ok(product.transpose()?)
}

fn object(args: &ExportArgs, model: &Model) -> anyhow::Result<Value> {
    let sources = model.superposition().sources();
    let law = model.superposition().rate_law();
    let (rates, stationary): (Vec<f64>, Vec<f64>) = law.into_iter().unzip();
    let mut object = json!({
        "model": args.model,
        "bin_s": model.bin_s(),
        "states": rates.len(),
        "states_of_sources": sources.iter().map(Source::states).collect::<Vec<_>>(),
        "mean": model.mean(),
        "has_profile": model.profile().is_some(),
        "stationary": stationary,
        "rates": rates,
    });
    if let (Some(chain), Some(object)) = (chain(args, model)?, object.as_object_mut()) {
        let diagonal = |(at, rate): (usize, &f64)| {
            let mut row = vec![0.0; chain.states()];
            if let Some(entry) = row.get_mut(at) {
                *entry = *rate;
            }
            row
        };
        let lambda: Vec<Vec<f64>> = chain.rates().iter().enumerate().map(diagonal).collect();
        object.insert("P".to_owned(), json!(chain.rows().collect::<Vec<_>>()));
        object.insert("Lambda".to_owned(), json!(lambda));
    }
    Ok(object)
}

/// A line for each state.
fn table(args: &ExportArgs, model: &Model) -> anyhow::Result<String> {
    let chain = chain(args, model)?;
    let law = model.superposition().rate_law();
    let mut text = "state,rate,stationary".to_owned();
    if chain.is_some() {
        for state in 1..=law.len() {
            write!(text, ",p{state}")?;
        }
    }
    text.push('\n');
    let mut rows = chain.iter().flat_map(Source::rows);
    for (state, (rate, stationary)) in (1..).zip(law) {
        let state: usize = state;
        write!(text, "{state},{rate},{stationary}")?;
        for entry in rows.next().unwrap_or_default() {
            write!(text, ",{entry}")?;
        }
        text.push('\n');
    }
    Ok(text)
}
