//! Some of many records, as they are shown.

use std::rc::Rc;

/// Records that a group keeps, unless it is made for another number.
const DEFAULT: usize = 5;

/// A record as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// Where it stands: file and line or row.
    pub place: String,
    /// The cells of its line.
    pub cells: Vec<String>,
    /// The columns behind the cells, each with a value or none, for programs; nothing where no program reads them.
    pub columns: Vec<(String, Option<SampleValue>)>,
}

/// The value of a column for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SampleValue {
    /// A number; points in time and time spans in nanoseconds.
    Number(u64),
    /// All else.
    Text(String),
}

/// How far in front a record is: an error comes before others, then the longer one.
type Rank = (bool, u64);

/// The first records by rank, at most a fixed number.
#[derive(Debug, Clone)]
pub struct Samples {
    most: usize,
    kept: Vec<(Rank, Rc<Sample>)>,
}

impl Default for Samples {
    fn default() -> Self {
        Self::new(DEFAULT)
    }
}

impl Samples {
    /// At most so many.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self {
            most,
            kept: Vec::new(),
        }
    }

    /// Keeps a record if it is among the first; of equals the one that came earlier.
    pub(crate) fn offer(&mut self, rank: Rank, sample: impl FnOnce() -> Rc<Sample>) {
        let at = self.kept.partition_point(|(there, _)| *there >= rank);
        if at >= self.most {
            return;
        }
        self.kept.truncate(self.most - 1);
        self.kept.insert(at.min(self.kept.len()), (rank, sample()));
    }

    pub(crate) fn clear(&mut self) {
        self.kept.clear();
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (rank, sample) in &other.kept {
            self.offer(*rank, || Rc::clone(sample));
        }
    }

    /// Those that are kept, the first by rank first.
    pub fn iter(&self) -> impl Iterator<Item = &Sample> {
        self.kept.iter().map(|(_, sample)| sample.as_ref())
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_long_ones_stay() {
        let mut samples = Samples::new(3);
        for (number, rank) in [
            (false, 5),
            (false, 9),
            (true, 1),
            (false, 9),
            (false, 7),
            (true, 2),
        ]
        .into_iter()
        .enumerate()
        {
            samples.offer(rank, || {
                Rc::new(Sample {
                    place: number.to_string(),
                    ..Sample::default()
                })
            });
        }
        let places: Vec<&str> = samples.iter().map(|sample| sample.place.as_str()).collect();
        assert_eq!(places, ["5", "2", "1"]);
        let mut none = Samples::new(0);
        none.offer((true, 1), Rc::default);
        assert!(none.is_empty());
    }
}
