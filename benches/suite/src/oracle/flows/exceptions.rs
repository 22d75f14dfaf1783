//! The differences that are known and explained: `benches/oracle/flow_exceptions.tsv`.

use anyhow::{Context as _, Result, bail};
use std::path::Path;

/// A difference.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Difference {
    /// Name of the capture.
    pub(super) file: String,
    /// Both ends, and of which one the value is: `a:1>b:2`.
    pub(super) direction: String,
    pub(super) field: String,
    pub(super) ours: String,
    pub(super) theirs: String,
}

#[derive(Debug)]
struct Exception {
    cells: [String; 5],
    reason: String,
    used: usize,
}

/// The checked-in list. Columns: capture, direction, field, ours, theirs, reason; `*` stands for
/// everything in the second to fifth, and in the first it may end a name.
#[derive(Debug)]
pub(super) struct Exceptions {
    rows: Vec<Exception>,
}

impl Exceptions {
    /// Reads the list.
    ///
    /// # Errors
    /// The file cannot be read, or a row lacks a column or a reason.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{}", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let mut rows = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let at = index + 1;
            let cells: Vec<&str> = line.split('\t').collect();
            let [file, direction, field, ours, theirs, reason] = cells.as_slice() else {
                bail!("line {at}: not six columns")
            };
            if reason.trim().len() < 10 {
                bail!("line {at}: an exception needs a reason");
            }
            rows.push(Exception {
                cells: [file, direction, field, ours, theirs].map(|cell| (*cell).to_owned()),
                reason: (*reason).to_owned(),
                used: 0,
            });
        }
        Ok(Self { rows })
    }

    /// The reason for a difference, if the list has it.
    pub(super) fn reason(&mut self, difference: &Difference) -> Option<&str> {
        let Difference {
            file,
            direction,
            field,
            ours,
            theirs,
        } = difference;
        let row = self.rows.iter_mut().find(|row| {
            let [its_file, rest @ ..] = &row.cells;
            let is_file = match its_file.strip_suffix('*') {
                Some(start) => file.starts_with(start),
                None => its_file == file,
            };
            let cells = [direction, field, ours, theirs];
            is_file
                && rest
                    .iter()
                    .zip(cells)
                    .all(|(own, cell)| own == "*" || own == cell)
        })?;
        row.used += 1;
        Some(&row.reason)
    }

    /// The rows that explained nothing.
    pub(super) fn unused(&self) -> impl Iterator<Item = String> {
        let unused = self.rows.iter().filter(|row| row.used == 0);
        unused.map(|row| row.cells.join(" "))
    }

    /// The reasons and how many differences each explained.
    pub(super) fn uses(&self) -> Vec<(&str, usize)> {
        let mut uses: Vec<(&str, usize)> = Vec::new();
        for row in self.rows.iter().filter(|row| row.used > 0) {
            match uses.iter_mut().find(|(reason, _)| *reason == row.reason) {
                Some((_, count)) => *count += row.used,
                None => uses.push((&row.reason, row.used)),
            }
        }
        uses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_explain_what_they_name() {
        let text = "# comment\nblitz*\t*\tRTT avg\t*\t*\ta reason that is long\n\
            a.pcap\tx>y\tsum\t3\t2\tanother reason\n";
        let mut list = Exceptions::parse(text).unwrap();
        let difference = Difference {
            file: "a.pcap".to_owned(),
            direction: "x>y".to_owned(),
            field: "sum".to_owned(),
            ours: "3".to_owned(),
            theirs: "2".to_owned(),
        };
        assert_eq!(list.reason(&difference), Some("another reason"));
        let other = Difference {
            ours: "4".to_owned(),
            ..difference.clone()
        };
        assert_eq!(list.reason(&other), None);
        let wide = Difference {
            file: "blitz/b".to_owned(),
            field: "RTT avg".to_owned(),
            ..difference
        };
        assert_eq!(list.unused().count(), 1);
        assert!(list.reason(&wide).is_some());
        assert_eq!(list.unused().count(), 0);
        assert_eq!(list.uses().len(), 2);
        assert!(Exceptions::parse("a\tb\tc\td\te\t\n").is_err());
    }
}
