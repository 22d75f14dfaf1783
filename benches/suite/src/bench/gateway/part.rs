//! What `--only` may name.

use super::row::Row;

/// A row of the table, or a measurement beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// One row.
    Row(Row),
    /// The table again, in packets as on a cable.
    Cable,
    /// Sizes of the scan window (Fig. 10).
    Sweep,
    /// Other connections while one waits for its scan.
    SlowScan,
    /// A rate of ten megabits per second.
    Shape,
    /// Ten thousand connections.
    Many,
    /// A line with a latency, loss and reordering.
    Far,
    /// Requests while somebody floods.
    Flood,
}

impl Part {
    const OTHERS: [(&'static str, Self); 7] = [
        ("cable", Self::Cable),
        ("sweep", Self::Sweep),
        ("slow-scan", Self::SlowScan),
        ("shape", Self::Shape),
        ("many", Self::Many),
        ("far", Self::Far),
        ("flood", Self::Flood),
    ];

    /// The part of a word.
    pub(super) fn named(word: &str) -> Option<Self> {
        let row = Row::ALL.into_iter().find(|row| row.word() == word);
        let other = || Self::OTHERS.iter().find(|(name, _)| *name == word);
        row.map(Self::Row)
            .or_else(|| other().map(|(_, part)| *part))
    }

    /// All words.
    pub(super) fn names() -> Vec<&'static str> {
        let rows = Row::ALL.into_iter().map(Row::word);
        rows.chain(Self::OTHERS.iter().map(|(name, _)| *name))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_a_word_of_its_own() {
        let mut names = Part::names();
        for name in &names {
            assert!(Part::named(name).is_some(), "{name}");
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(Part::named("nothing"), None);
    }
}
