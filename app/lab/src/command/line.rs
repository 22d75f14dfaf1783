//! The lossy line of the laboratory, a process of its own in its namespace.

use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use linkweir_cli::exit::Exit;
use linkweir_cli::files;
use linkweir_cli::signals::Signals;
use linkweir_cli::units;
use linkweir_lab::line::{self, Harm, Options};
use linkweir_sink::Existing;

/// A line between two interfaces that loses some TCP segments and lets some come late, until a signal.
#[derive(Debug, Args)]
pub(crate) struct LineArgs {
    /// One end.
    #[arg(long, value_name = "IFACE")]
    between: String,

    /// The other.
    #[arg(long, value_name = "IFACE")]
    and: String,

    /// Part of the segments that is lost, in each direction.
    #[arg(long, value_name = "PART", value_parser = part)]
    loss: f64,

    /// Part of the others that comes late.
    #[arg(long, value_name = "PART", value_parser = part)]
    reorder: f64,

    /// By how much more [default: no time].
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    delay: Option<Duration>,

    /// How long each frame is on its way, in each direction [default: no time].
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    latency: Option<Duration>,

    /// Names the random numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Write what was done to which segments as one JSON object.
    #[arg(long, value_name = "PATH")]
    summary: String,

    /// Nothing more is said in any case.
    #[arg(short, long)]
    quiet: bool,
}

/// Runs the command.
pub(crate) fn run(args: &LineArgs) -> anyhow::Result<Exit> {
    let summary = files::document(&args.summary, Existing::Refuse).context("--summary")?;
    let signals = Signals::install()?;
    let options = Options {
        between: [args.between.clone(), args.and.clone()],
        harm: Harm {
            latency: args.latency.unwrap_or_default(),
            loss: args.loss,
            reorder: args.reorder,
            delay: args.delay.unwrap_or_default(),
        },
        seed: args.seed,
    };
    let done = line::run(&options, &signals.stop_flag())?;
    let totals = serde_json::json!({ "line": done, "dropped": done.dropped });
    summary.write_json(&totals).context("--summary")?;
    Ok(if done.dropped == line::Dropped::default() {
        Exit::Done
    } else {
        Exit::DataLost
    })
}

fn part(text: &str) -> Result<f64, String> {
    let part: f64 = text.parse().map_err(|_| "no number".to_owned())?;
    if (0.0..=1.0).contains(&part) {
        Ok(part)
    } else {
        Err("a part is between 0 and 1".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_of_one() {
        assert_eq!(part("0.01"), Ok(0.01));
        assert!(part("1.01").is_err() && part("-0.1").is_err() && part("NaN").is_err());
    }
}
