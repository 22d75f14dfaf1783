//! Targets: what the figures must reach.

use crate::Outcome;

/// What was promised, and how it went.
#[derive(Debug)]
pub(crate) struct Target {
    /// The promise.
    pub(crate) what: String,
    /// What was measured, for people.
    pub(crate) figure: String,
    /// Whether the figure keeps the promise.
    pub(crate) is_reached: bool,
}

impl Target {
    pub(crate) fn new(
        what: impl Into<String>,
        figure: impl Into<String>,
        is_reached: bool,
    ) -> Self {
        Self {
            what: what.into(),
            figure: figure.into(),
            is_reached,
        }
    }

    /// Of a row that was not run: missed.
    pub(crate) fn not_measured(what: impl Into<String>) -> Self {
        Self::new(what, "not measured, something is not installed", false)
    }
}

/// Prints of each whether it is reached; the outcome of the bench.
pub(crate) fn verdict(targets: &[Target]) -> Outcome {
    println!();
    for target in targets {
        let word = if target.is_reached { "PASS" } else { "MISS" };
        println!("{word}  {}: {}", target.what, target.figure);
    }
    Ok(targets.iter().all(|target| target.is_reached))
}

/// Of each whether it is reached.
#[cfg(test)]
pub(crate) fn reached(targets: &[Target]) -> Vec<bool> {
    targets.iter().map(|target| target.is_reached).collect()
}
