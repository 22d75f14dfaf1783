//! Flags from a TOML file.
//!
//! The file's keys are the long names of flags; unknown ones are errors that name the line. The
//! file is turned into words that stand before the command line's own, and flags that are on the
//! command line are left out of it: the command line wins.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue};
use clap::{ArgAction, CommandFactory, Parser as _};
use serde::Deserialize as _;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use crate::command::Cli;
use crate::files;

/// Why there is nothing to run.
#[derive(Debug)]
pub(crate) enum Refused {
    /// What clap has to say: help too.
    Clap(clap::Error),
    /// The configuration file is wrong.
    File(String),
}

impl From<clap::Error> for Refused {
    fn from(error: clap::Error) -> Self {
        Self::Clap(error)
    }
}

/// Bytes of the longest configuration file.
const MAX_BYTES: u64 = 1 << 20;

/// Parses the command line together with the file that its `--config` names.
pub(crate) fn parse(words: impl Iterator<Item = OsString>) -> Result<Cli, Refused> {
    let words: Vec<OsString> = words.collect();
    let Some(path) = config_path(&words) else {
        return match Cli::measuring(&words) {
            Some(cli) => Ok(cli),
            None => Ok(Cli::try_parse_from(words)?),
        };
    };
    let command = Cli::command();
    let Some((at, stage)) = words
        .iter()
        .enumerate()
        .skip(1)
        .find_map(|(at, word)| Some((at, command.find_subcommand(word.to_str()?)?)))
    else {
        return Ok(Cli::try_parse_from(words)?);
    };
    // Its file is the policy, not flags.
    if stage.get_name() == "gateway" {
        return Ok(Cli::try_parse_from(words)?);
    }
    let extra = read(&path, stage, words.get(at..).unwrap_or_default()).map_err(Refused::File)?;
    let mut all = words.get(..=at).unwrap_or_default().to_vec();
    all.extend(extra.iter().map(|given| given.word.clone()));
    all.extend_from_slice(words.get(at + 1..).unwrap_or_default());
    Cli::try_parse_from(all).map_err(|error| match line_at_fault(&extra, &error) {
        Some(line) => Refused::File(format!("{}, line {line}: {}", path.display(), said(&error))),
        None => Refused::Clap(error),
    })
}

/// A word that stands for a part of the file.
#[derive(Debug)]
struct Given {
    word: OsString,
    line: usize,
}

/// The line that clap complains of, where it does so of what is in the file.
fn line_at_fault(extra: &[Given], error: &clap::Error) -> Option<usize> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    // `--timeout <DURATION>`
    let flag = text(ContextKind::InvalidArg)?.split(' ').next()?;
    let whole = text(ContextKind::InvalidValue).map(|value| format!("{flag}={value}"));
    let is_flag = |given: &&Given| {
        let word = given.word.to_string_lossy();
        word.split('=').next() == Some(flag)
    };
    let mut of_flag = extra.iter().filter(is_flag);
    let exact = of_flag.clone().find(|given| {
        whole
            .as_ref()
            .is_some_and(|whole| given.word.as_os_str() == whole.as_str())
    });
    Some(exact.or_else(|| of_flag.next())?.line)
}

/// What clap says, without what is about the command line.
fn said(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.split("\n\n").next().unwrap_or_default();
    text.trim_start_matches("error: ").to_owned()
}

fn config_path(words: &[OsString]) -> Option<PathBuf> {
    let mut words = words.iter().take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        if word == "--config" {
            return words.next().map(PathBuf::from);
        }
        if let Some(path) = word
            .to_str()
            .and_then(|word| word.strip_prefix("--config="))
        {
            return Some(path.into());
        }
    }
    None
}

/// The words that a configuration file stands for.
fn read(path: &Path, stage: &clap::Command, given: &[OsString]) -> Result<Vec<Given>, String> {
    let name = path.display();
    let text = files::read_text(path, MAX_BYTES).map_err(|error| format!("{name}: {error}"))?;
    let table = DeTable::parse(&text).map_err(|mut error| {
        error.set_input(Some(&text));
        format!("{name}: {error}")
    })?;
    let line_of = |at: usize| text.get(..at).unwrap_or(&text).matches('\n').count() + 1;
    let mut words = Vec::new();
    for (key, value) in table.get_ref() {
        let line = line_of(key.span().start);
        let key: &str = key.get_ref();
        let Some(flag) = stage
            .get_arguments()
            .find(|arg| arg.get_long() == Some(key))
        else {
            let near = stage
                .get_arguments()
                .filter_map(clap::Arg::get_long)
                .filter(|name| *name != "config")
                .collect::<Vec<_>>()
                .join(", ");
            return Err(format!(
                "{name}, line {line}: unknown key `{key}`; valid keys: {near}"
            ));
        };
        if key == "config" {
            return Err(format!(
                "{name}, line {line}: a configuration file cannot name another"
            ));
        }
        if is_given(flag, stage, given) {
            continue;
        }
        let word = OsString::from(format!("--{key}"));
        let mut give = |word: OsString, line| words.push(Given { word, line });
        match (flag.get_action(), value.get_ref()) {
            (ArgAction::SetTrue, DeValue::Boolean(true)) => give(word, line),
            (ArgAction::SetTrue, DeValue::Boolean(false)) => {}
            (ArgAction::SetTrue, _) => {
                return Err(format!("{name}, line {line}: `{key}` is true or false"));
            }
            (ArgAction::Append, DeValue::Array(values)) => {
                for value in values {
                    let line = line_of(value.span().start);
                    let value = scalar(value).ok_or_else(|| {
                        format!("{name}, line {line}: `{key}` is a list of texts")
                    })?;
                    give(format!("--{key}={value}").into(), line);
                }
            }
            _ => {
                let value = scalar(value)
                    .ok_or_else(|| format!("{name}, line {line}: `{key}` takes one value"))?;
                give(format!("--{key}={value}").into(), line);
            }
        }
    }
    Ok(words)
}

fn scalar(value: &Spanned<DeValue<'_>>) -> Option<String> {
    // Numbers as TOML means them: `1_000` is one.
    match toml::Value::deserialize(ValueDeserializer::from(value.clone())).ok()? {
        toml::Value::String(text) => Some(text),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Whether a flag stands on the command line, in its long form or its short one, alone or in a
/// cluster (`-qr trace.pcap`).
fn is_given(flag: &clap::Arg, stage: &clap::Command, given: &[OsString]) -> bool {
    let long = flag.get_long().map(|name| format!("--{name}"));
    let takes_value = |letter: char| {
        let other = stage
            .get_arguments()
            .find(|arg| arg.get_short() == Some(letter));
        other.is_some_and(|arg| !matches!(arg.get_action(), ArgAction::SetTrue))
    };
    given
        .iter()
        .take_while(|word| *word != "--")
        .filter_map(|word| word.to_str())
        .any(|word| match word.strip_prefix("--") {
            Some(_) => long.as_ref().is_some_and(|long| {
                word.strip_prefix(long.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
            }),
            None => word.strip_prefix('-').is_some_and(|letters| {
                let end = letters.find(takes_value).map_or(letters.len(), |at| at + 1);
                flag.get_short().is_some_and(|short| {
                    letters.get(..end).is_some_and(|part| part.contains(short))
                })
            }),
        })
}
