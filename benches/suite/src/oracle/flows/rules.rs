//! Where tcptrace counts something else, and what its value must be then. A rule explains a difference
//! only where the numbers are those that follow from it.
//!
//! The differences that are known and explained: `benches/oracle/flow_exceptions.tsv`.

use super::super::exceptions::rows;
use super::fields::{Field, Record};
use anyhow::{Context as _, Result};
use std::path::Path;

/// What a rule sees of one direction.
#[derive(Debug)]
pub(super) struct Direction<'a> {
    pub(super) field: &'a Field,
    pub(super) ours: f64,
    pub(super) theirs: f64,
    /// Our records of the connection, and which side of each is the direction's.
    pub(super) records: &'a [&'a Record],
    pub(super) sides: &'a [usize],
    /// Smallest and largest window in a SYN of this direction.
    pub(super) syn_windows: Option<(u64, u64)>,
    /// Segments without data that repeat acknowledgment and window, where they are of one
    /// connection.
    pub(super) repeats: Option<u64>,
    /// What tcptrace takes for probes of a closed window.
    pub(super) probes: f64,
}

impl Direction<'_> {
    /// A column of the direction, summed.
    fn sum(&self, column: &str) -> f64 {
        let each = self.records.iter().zip(self.sides);
        each.filter_map(|(record, side)| record.number(*side, column))
            .sum()
    }

    fn is(&self, expected: f64) -> bool {
        self.field.agrees(expected, self.theirs)
    }

    /// The name of the rule that explains the difference.
    pub(super) fn rule(&self) -> Option<&'static str> {
        let samples = self.sum("rtt_cnt");
        match self.field.label {
            // tcptrace divides by the count and a ten-thousandth, lest it divide by zero.
            "RTT avg" if self.is(self.ours * samples / (samples + 0.0001)) => {
                Some("tcptrace's means are sum / (count + 0.0001)")
            }
            "RTT stdev" if self.theirs == 0.0 && samples < 3.0 => {
                Some("tcptrace gives no deviation of fewer than three samples")
            }
            // Rounding of the sums makes it worse by the root of the large numbers.
            "RTT stdev" if (self.ours - self.theirs).abs() <= self.ours.max(1.0) * 0.002 + 0.05 => {
                Some("tcptrace's deviation uses its mean, which is too small")
            }
            "RTT min" if self.ours == 0.0 => {
                Some("tcptrace takes a smallest round-trip time of zero for none")
            }
            "mss requested"
                if self.ours >= 32_768.0 && self.theirs == self.ours + 4_294_901_760.0 =>
            {
                Some("tcptrace extends the sign of a maximum segment size above 32767")
            }
            "rexmt data bytes" | "rexmt data pkts"
                if self.probes > 0.0
                    && self.ours > self.theirs
                    && self.ours <= self.theirs + self.probes =>
            {
                Some("tcptrace counts probes of a closed window apart")
            }
            "rexmt data bytes" | "rexmt data pkts" => self.control_bits(),
            #[expect(clippy::cast_precision_loss, reason = "packets of a capture")]
            "duplicate acks" if self.repeats.is_some_and(|repeats| self.is(repeats as f64)) => {
                Some(
                    "tcptrace's duplicate acks are all repeats without data, also where nothing is outstanding, and FINs",
                )
            }
            "min win adv" | "max win adv" => self.windows(),
            _ => None,
        }
    }

    /// tcptrace counts SYN and FIN as bytes of data, also when they come again.
    fn control_bits(&self) -> Option<&'static str> {
        let again = |column| (self.sum(column) - 1.0).max(0.0);
        let more = self.theirs - self.ours;
        (more > 0.0 && more <= again("syn_cnt") + again("fin_cnt"))
            .then_some("tcptrace counts SYN and FIN that come again as retransmitted bytes")
    }

    /// Where windows are scaled, tcptrace leaves those of SYNs out, which are not.
    fn windows(&self) -> Option<&'static str> {
        let (smallest, largest) = self.syn_windows?;
        #[expect(clippy::cast_precision_loss, reason = "windows are below 2^53")]
        let (smallest, largest) = (smallest as f64, largest as f64);
        let with_syns = if self.field.label == "min win adv" {
            // None of its own is zero.
            let theirs = if self.theirs == 0.0 {
                smallest
            } else {
                self.theirs
            };
            theirs.min(smallest)
        } else {
            self.theirs.max(largest)
        };
        (with_syns == self.ours)
            .then_some("tcptrace leaves the windows of SYNs out where windows are scaled")
    }
}

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
        let rows = rows(text)?.into_iter().map(|(_, row)| {
            let [file, direction, field, ours, theirs, reason] = row;
            Exception {
                cells: [file, direction, field, ours, theirs].map(str::to_owned),
                reason: reason.to_owned(),
                used: 0,
            }
        });
        Ok(Self {
            rows: rows.collect(),
        })
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
