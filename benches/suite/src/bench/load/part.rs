//! What `--only` may name.

use super::row::Tool;

/// A row of the table, or a measurement beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// One row of the table.
    Row(Tool),
    /// Very many connections at once.
    Open,
    /// How well the schedule is kept.
    Lag,
    /// Constant arrivals against correlated ones (Table 2 of the paper).
    Contrast,
}

impl Part {
    const OTHERS: [(&'static str, Self); 3] = [
        ("open", Self::Open),
        ("lag", Self::Lag),
        ("contrast", Self::Contrast),
    ];

    /// The part of a word.
    pub(super) fn named(word: &str) -> Option<Self> {
        let row = Tool::all().into_iter().find(|tool| tool.word() == word);
        let other = || Self::OTHERS.iter().find(|(name, _)| *name == word);
        row.map(Self::Row)
            .or_else(|| other().map(|(_, part)| *part))
    }

    /// All words.
    pub(super) fn names() -> Vec<&'static str> {
        let rows = Tool::all().into_iter().map(Tool::word);
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
