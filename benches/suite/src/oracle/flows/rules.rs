//! Where tcptrace counts something else, and what its value must be then. A rule explains a difference
//! only where the numbers are those that follow from it.

use super::fields::Field;
use super::ours::Record;

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
