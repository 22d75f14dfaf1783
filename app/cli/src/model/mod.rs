//! `linkweir model`: from logs to counts, from counts to a model, from a model to counts.

mod args;
mod check;
#[cfg(feature = "parquet")]
mod columns;
#[cfg(not(feature = "parquet"))]
#[path = "no_columns.rs"]
mod columns;
mod dependence;
mod export;
mod figure;
mod fit;

mod logs;
mod series;
mod sessions;
mod shown;
mod simulate;
mod table;

use std::path::Path;

use anyhow::anyhow;
use linkweir_record::human::moment;

pub(crate) use args::ModelArgs;
use args::{ModelCommand, SpanArgs};

use crate::exit::{Exit, Wrong};
use crate::outputs::restrict_reader;

/// Runs the command.
pub(crate) fn run(args: &ModelArgs) -> anyhow::Result<Exit> {
    restrict_reader(args.command.written())?;
    match &args.command {
        ModelCommand::Sessions(args) => sessions::run(args),
        ModelCommand::Fit(args) => fit::run(args),
        ModelCommand::Simulate(args) => simulate::run(args),
        ModelCommand::Check(args) => check::run(args),
        ModelCommand::Export(args) => export::run(args),
    }
}

impl ModelCommand {
    /// What it writes.
    fn written(&self) -> Vec<&Path> {
        match self {
            Self::Sessions(args) => {
                let summary = args.summary.as_deref();
                summary.into_iter().chain([args.write.as_path()]).collect()
            }
            Self::Fit(args) => vec![&args.output],
            Self::Simulate(args) => vec![&args.write],
            Self::Check(args) => args.plot.as_deref().into_iter().collect(),
            Self::Export(args) => vec![&args.write],
        }
    }
}

/// Something about the command line that only the input can tell.
fn wrong(message: String) -> anyhow::Error {
    anyhow!(Wrong(message))
}

/// Refuses outputs that would replace an input or one another.
fn keeps<'a>(
    outputs: impl IntoIterator<Item = (&'a str, &'a Path)>,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> anyhow::Result<()> {
    let outputs: Vec<(&str, &Path)> = outputs.into_iter().collect();
    let inputs: Vec<(&str, &Path)> = inputs.into_iter().map(|path| ("the input", path)).collect();
    crate::conflicts::check(&outputs, &inputs).map_err(wrong)
}

impl SpanArgs {
    /// From when until before when, nanoseconds since 1970.
    fn limits(self) -> (u64, u64) {
        (
            self.from.map_or(0, |from| from.0),
            self.to.map_or(u64::MAX, |to| to.0),
        )
    }

    /// Whether not all of the time is meant.
    const fn is_part(self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

    /// Refuses what has a longer time without an arrival than is meant.
    fn check_gap(self, longest: Option<(u64, u64)>) -> anyhow::Result<()> {
        let doubt = "is a time in the input wrong? Leave it out with --from and --to";
        match longest {
            Some((before, after))
                if after.saturating_sub(before) > linkweir_wire::nanos(self.max_gap) =>
            {
                let places = [String::new(), String::new()];
                Err(wrong(no_arrivals((before, after), places, doubt, true)))
            }
            _ => Ok(()),
        }
    }
}

/// That nothing came from then to then, with what is named of both places, the doubt, and that the gap can
/// be allowed where the bins then fit.
fn no_arrivals(
    (before, after): (u64, u64),
    [place, next_place]: [String; 2],
    doubt: &str,
    fits: bool,
) -> String {
    const DAY_NS: u64 = 86_400_000_000_000;
    let days = after.saturating_sub(before).div_ceil(DAY_NS);
    let allow = match fits {
        true => format!(", or allow the gap with --max-gap {days}d"),
        false => String::new(),
    };
    format!(
        "no arrivals from {}{place} to {}{next_place}: {doubt}{allow}",
        moment(before),
        moment(after)
    )
}
