//! The word of the command line that says how sessions arrive.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// `constant:RATE`, `poisson:RATE`, `mmpp:MODEL.json[@RATE]`, `mmpp:MODEL.json@=RATE` or `replay:FILE`. Rates are
/// sessions a second.
#[derive(Debug, Clone, PartialEq)]
pub enum Word {
    /// Equal gaps.
    Constant {
        /// Sessions a second.
        rate: f64,
    },
    /// A Poisson process.
    Poisson {
        /// Sessions a second on average.
        rate: f64,
    },
    /// A model of `linkweir model fit`.
    Model {
        /// Its file.
        path: String,
        /// Sessions a second on average; `None`: as the model has it.
        rate: Option<f64>,
        /// Whether the average is that of the run, and not that of the model.
        is_exact: bool,
    },
    /// Recorded beginnings.
    Replay {
        /// Their file.
        path: String,
    },
}

/// What is wrong with the word, and what to write.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WordError {
    /// It names no way to plan.
    #[error(
        "`{0}` is not a valid arrival process: write constant:RATE, poisson:RATE, mmpp:MODEL.json[@[=]RATE] or replay:FILE"
    )]
    Kind(String),
    /// The rate is no number above zero.
    #[error(
        "`{0}` is not a valid rate: write sessions a second, above 0 and at most 1e9, like 250 or 0.5"
    )]
    Rate(String),
    /// The file is not named.
    #[error("`{0}:` names no file: write its path behind the colon")]
    NoFile(&'static str),
}

/// More would be several sessions in a nanosecond, which is the step of the schedule.
const MAX_RATE: f64 = 1e9;

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant { rate } => write!(f, "constant:{rate}"),
            Self::Poisson { rate } => write!(f, "poisson:{rate}"),
            Self::Model {
                path, rate: None, ..
            } => write!(f, "mmpp:{path}"),
            Self::Model {
                path,
                rate: Some(rate),
                is_exact,
            } => write!(f, "mmpp:{path}@{}{rate}", if *is_exact { "=" } else { "" }),
            Self::Replay { path } => write!(f, "replay:{path}"),
        }
    }
}

impl Word {
    /// Sessions a second on average that the word asks for; `None` where it leaves that to its file.
    #[must_use]
    pub const fn rate(&self) -> Option<f64> {
        match self {
            Self::Constant { rate } | Self::Poisson { rate } => Some(*rate),
            Self::Model { rate, .. } => *rate,
            Self::Replay { .. } => None,
        }
    }
}

impl FromStr for Word {
    type Err = WordError;

    fn from_str(word: &str) -> Result<Self, WordError> {
        let unknown = || WordError::Kind(word.to_owned());
        let (kind, rest) = word.split_once(':').ok_or_else(unknown)?;
        match kind {
            "constant" => Ok(Self::Constant { rate: rate(rest)? }),
            "poisson" => Ok(Self::Poisson { rate: rate(rest)? }),
            "mmpp" => {
                // A file may have an `@` in its name: only a number behind the last one is a rate.
                let split = rest.rsplit_once('@').map(|(path, word)| {
                    let exact = word.strip_prefix('=');
                    (path, exact.unwrap_or(word), exact.is_some())
                });
                let (path, rate, is_exact) = match split {
                    Some((path, word, is_exact)) if word.parse::<f64>().is_ok() => {
                        (path, Some(rate(word)?), is_exact)
                    }
                    _ => (rest, None, false),
                };
                Ok(Self::Model {
                    path: file("mmpp", path)?,
                    rate,
                    is_exact,
                })
            }
            "replay" => Ok(Self::Replay {
                path: file("replay", rest)?,
            }),
            _ => Err(unknown()),
        }
    }
}

fn rate(word: &str) -> Result<f64, WordError> {
    let rate = word.parse::<f64>().ok();
    rate.filter(|rate| *rate > 0.0 && *rate <= MAX_RATE)
        .ok_or_else(|| WordError::Rate(word.to_owned()))
}

fn file(kind: &'static str, path: &str) -> Result<String, WordError> {
    if path.is_empty() {
        return Err(WordError::NoFile(kind));
    }
    Ok(path.to_owned())
}
