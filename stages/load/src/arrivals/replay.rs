//! Beginnings that were recorded, with their timing.

use thiserror::Error;

use super::Arrivals;

/// Most times in a file: 800 MB of them.
const MAX_TIMES: usize = 100_000_000;
const NANOS_DIGITS: usize = 9;

/// Recorded times of sessions, counted from the first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replay {
    offsets: Vec<u64>,
    next: usize,
}

/// What is wrong with a file of times.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{line}:{column}: {what}")]
pub struct ReplayError {
    /// Line, from 1 on.
    pub line: usize,
    /// Character in the line, from 1 on.
    pub column: usize,
    /// What it is, and what to do.
    pub what: String,
}

impl Replay {
    /// Plays times in nanoseconds since any origin; they are put in order and counted from the first.
    #[must_use]
    pub fn new(mut times_ns: Vec<u64>) -> Self {
        times_ns.sort_unstable();
        let first = times_ns.first().copied().unwrap_or(0);
        for time in &mut times_ns {
            *time -= first;
        }
        Self {
            offsets: times_ns,
            next: 0,
        }
    }

    /// Reads a list of times: one a line, in seconds with at most nine decimals, since any origin.
    ///
    /// Behind a comma, a semicolon, a blank or a tab the line may say more, which is not read. Empty lines,
    /// lines that begin with `#`, and one line of names at the top are passed over.
    ///
    /// # Errors
    /// A line does not begin with a time, there is none at all, or there are more than 100 million.
    pub fn parse(text: &str) -> Result<Self, ReplayError> {
        let mut times = Vec::new();
        let mut may_be_names = true;
        for (number, line) in text.lines().enumerate() {
            let blanks = line.len() - line.trim_start().len();
            let content = line.trim();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let wrong = |what: String| ReplayError {
                line: number + 1,
                column: blanks + 1,
                what,
            };
            let is_first = std::mem::take(&mut may_be_names);
            let word = content
                .split([',', ';', ' ', '\t'])
                .next()
                .unwrap_or_default();
            match nanos_of(word) {
                Some(nanos) if times.len() < MAX_TIMES => times.push(nanos),
                Some(_) => {
                    return Err(wrong(format!(
                        "more than {MAX_TIMES} times: split the file"
                    )));
                }
                None if is_first && !word.starts_with(|c: char| c.is_ascii_digit()) => {}
                None => {
                    return Err(wrong(format!(
                        "`{}` is not a valid time: write seconds, like 12.5",
                        word.escape_debug()
                    )));
                }
            }
        }
        if times.is_empty() {
            return Err(ReplayError {
                line: 1,
                column: 1,
                what: "no time in the file: write one a line, in seconds".to_owned(),
            });
        }
        Ok(Self::new(times))
    }

    /// Plays it slower (`factor` above 1) or faster.
    #[must_use]
    pub fn stretched(mut self, factor: f64) -> Self {
        for offset in &mut self.offsets {
            #[expect(clippy::cast_precision_loss, reason = "a length of time")]
            let scaled = *offset as f64 * factor;
            *offset = super::whole_nanos(scaled);
        }
        self
    }

    /// How many sessions are left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(self.next)
    }

    /// Whether none is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Arrivals for Replay {
    #[inline]
    fn next(&mut self) -> Option<u64> {
        let at = self.offsets.get(self.next).copied()?;
        self.next += 1;
        Some(at)
    }
}

/// Seconds with decimals as nanoseconds, exactly; `None` where it is not such a number. Decimals beyond the
/// ninth are cut.
fn nanos_of(word: &str) -> Option<u64> {
    let (seconds, decimals) = word.split_once('.').unwrap_or((word, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if seconds.is_empty() || !is_digits(seconds) || !is_digits(decimals) {
        return None;
    }
    let mut nanos = seconds.parse::<u64>().ok()?;
    let digits = decimals.bytes().chain(std::iter::repeat(b'0'));
    for digit in digits.take(NANOS_DIGITS) {
        nanos = nanos
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))?;
    }
    Some(nanos)
}
