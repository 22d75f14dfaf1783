//! The differences that are known and explained.

use super::Difference;
use anyhow::{Context as _, Result, bail};
use std::path::Path;

/// The rows of a checked-in list, with their line numbers: `N` columns, the last one an explanation; `#`
/// starts a comment.
///
/// # Errors
/// A row lacks a column or its explanation.
pub(super) fn rows<const N: usize>(text: &str) -> Result<Vec<(usize, [&str; N])>> {
    let lines = text.lines().zip(1..);
    let lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    let rows = lines.map(|(line, at)| {
        let cells: Vec<&str> = line.split('\t').collect();
        let Ok(row) = <[&str; N]>::try_from(cells) else {
            bail!("line {at}: not {N} columns");
        };
        if row.last().is_none_or(|why| why.trim().len() < 10) {
            bail!("line {at}: an exception needs an explanation");
        }
        Ok((at, row))
    });
    rows.collect()
}

#[derive(Debug)]
struct Exception {
    file: String,
    difference: Difference,
    used: bool,
}

/// The checked-in list.
#[derive(Debug)]
pub(super) struct Exceptions {
    rows: Vec<Exception>,
}

impl Exceptions {
    /// Reads the list: columns file, quantity, ours, tshark's, explanation; `#` starts a comment.
    ///
    /// # Errors
    /// The file cannot be read, or a row lacks a column or an explanation.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{}", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let rows = rows(text)?.into_iter().map(|(at, row)| {
            let [file, quantity, ours, theirs, _] = row;
            Ok(Exception {
                file: file.to_owned(),
                difference: Difference {
                    quantity: quantity.to_owned(),
                    ours: ours.parse().with_context(|| format!("line {at}: ours"))?,
                    theirs: theirs
                        .parse()
                        .with_context(|| format!("line {at}: tshark"))?,
                },
                used: false,
            })
        });
        Ok(Self {
            rows: rows.collect::<Result<_>>()?,
        })
    }

    /// Whether the list has exactly this difference.
    pub(super) fn explains(&mut self, file: &str, difference: &Difference) -> bool {
        let row = self
            .rows
            .iter_mut()
            .find(|row| row.file == file && row.difference == *difference);
        if let Some(row) = row {
            row.used = true;
            return true;
        }
        false
    }

    /// The exceptions that explained nothing.
    pub(super) fn unused(&self) -> impl Iterator<Item = String> {
        self.rows.iter().filter(|row| !row.used).map(|row| {
            let Difference {
                quantity,
                ours,
                theirs,
            } = &row.difference;
            format!("{}: {quantity}: ours {ours}, tshark's {theirs}", row.file)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# comment\n\na.pcap\trequests\t3\t2\ttshark does not know the method\n";

    #[test]
    fn an_exception_explains_exactly_its_difference() {
        let mut list = Exceptions::parse(LIST).unwrap();
        let known = Difference {
            quantity: "requests".to_owned(),
            ours: 3,
            theirs: 2,
        };
        let other = Difference {
            ours: 4,
            ..known.clone()
        };
        assert!(!list.explains("a.pcap", &other));
        assert_eq!(list.unused().count(), 1);
        assert!(list.explains("a.pcap", &known));
        assert_eq!(list.unused().count(), 0);
    }

    #[test]
    fn an_exception_without_explanation_is_an_error() {
        assert!(Exceptions::parse("a.pcap\trequests\t3\t2\t\n").is_err());
        assert!(Exceptions::parse("a.pcap\trequests\t3\n").is_err());
    }
}
