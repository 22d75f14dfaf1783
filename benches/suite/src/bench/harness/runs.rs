//! Rows that take turns, and figures over the rounds.

use super::progress;
use anyhow::{Context as _, Result};
use std::ops::Deref;

/// A row of a table.
#[derive(Debug)]
pub(crate) struct Row<H> {
    /// The word on the command line; no other row of the bench has it.
    pub(crate) word: &'static str,
    /// The name in the table.
    pub(crate) name: &'static str,
    /// What is run, and what it must reach.
    pub(crate) how: H,
}

/// A row, for tables of them.
pub(crate) const fn row<H>(word: &'static str, name: &'static str, how: H) -> Row<H> {
    Row { word, name, how }
}

/// What was measured, by round; nothing for a round in which it was not run or gave nothing.
#[derive(Debug, Clone)]
pub(crate) struct Runs<T>(Vec<Option<T>>);

/// The runs of one row.
#[derive(Debug)]
pub(crate) struct Series<H: 'static, T> {
    pub(crate) row: &'static Row<H>,
    pub(crate) runs: Runs<T>,
}

impl<H, T> Series<H, T> {
    /// The cell of a table that says what a figure is of that of another row; empty where that was not run.
    pub(crate) fn cell_of(&self, other: Option<&Self>, part: fn(&T) -> f64) -> String {
        other.map_or_else(String::new, |other| {
            format!("{:.2}", self.ratio(&[other], part))
        })
    }
}

impl<H, T> Deref for Series<H, T> {
    type Target = Runs<T>;

    fn deref(&self) -> &Runs<T> {
        &self.runs
    }
}

impl<T> FromIterator<Option<T>> for Runs<T> {
    fn from_iter<I: IntoIterator<Item = Option<T>>>(runs: I) -> Self {
        Self(runs.into_iter().collect())
    }
}

impl<T> Runs<T> {
    /// Measures once per round; `title` is shown on a terminal meanwhile.
    ///
    /// # Errors
    /// A run failed.
    pub(crate) fn measure(
        rounds: usize,
        title: &str,
        mut run: impl FnMut(usize) -> Result<T>,
    ) -> Result<Self> {
        let runs = (0..rounds).map(|round| {
            progress(&format!("round {}: {title}", round + 1));
            run(round).map(Some)
        });
        let runs = runs.collect();
        progress("");
        runs
    }

    /// Those that gave something, in the order of the rounds.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }

    /// How many gave something.
    pub(crate) fn count(&self) -> usize {
        self.iter().count()
    }

    fn figures(&self, part: impl Fn(&T) -> f64) -> Vec<f64> {
        self.iter().map(part).collect()
    }

    /// The middle of a figure; not a number if there are none.
    pub(crate) fn median(&self, part: impl Fn(&T) -> f64) -> f64 {
        median(&self.figures(part))
    }

    /// The smallest; infinite if there are none.
    pub(crate) fn least(&self, part: impl Fn(&T) -> f64) -> f64 {
        self.iter().map(part).fold(f64::INFINITY, f64::min)
    }

    /// The largest; zero if there are none.
    pub(crate) fn most(&self, part: impl Fn(&T) -> f64) -> f64 {
        self.iter().map(part).fold(0.0, f64::max)
    }

    /// The sum of a count.
    pub(crate) fn sum(&self, part: impl Fn(&T) -> u64) -> u64 {
        self.iter().map(part).sum()
    }

    /// What a figure is of the smallest of others: the median of the ratios of each round in which all of
    /// them gave something.
    pub(crate) fn ratio(&self, others: &[&Self], part: impl Fn(&T) -> f64) -> f64 {
        let of_round = |(at, own): (usize, &Option<T>)| {
            let its = others
                .iter()
                .map(|other| Some(part(other.0.get(at)?.as_ref()?)));
            let its: Option<Vec<f64>> = its.collect();
            Some(part(own.as_ref()?) / its?.into_iter().reduce(f64::min)?)
        };
        let ratios: Vec<f64> = self.0.iter().enumerate().filter_map(of_round).collect();
        median(&ratios)
    }
}

/// The series of the row of a name or word.
pub(crate) fn find<'a, H, T>(all: &'a [Series<H, T>], word: &str) -> Option<&'a Series<H, T>> {
    all.iter().find(|series| series.row.word == word)
}

/// Runs rows in turns; `run` gets the number of the round, the row, and what the row gave last.
///
/// # Errors
/// A run failed; the row's name is in the error.
pub(crate) fn rounds<H, T>(
    title: &str,
    rows: impl IntoIterator<Item = &'static Row<H>>,
    rounds: usize,
    mut run: impl FnMut(usize, &'static Row<H>, Option<&T>) -> Result<Option<T>>,
) -> Result<Vec<Series<H, T>>> {
    let series = |row| Series {
        row,
        runs: Runs(Vec::new()),
    };
    let mut all: Vec<Series<H, T>> = rows.into_iter().map(series).collect();
    for round in 0..rounds {
        for Series { row, runs } in &mut all {
            progress(&format!("{title}, round {}: {}", round + 1, row.name));
            let last = runs.0.iter().flatten().last();
            let given = run(round, row, last).context(row.name)?;
            runs.0.push(given);
        }
    }
    progress("");
    Ok(all)
}

/// The middle of some figures; not a number if there are none.
pub(crate) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    if sorted.len() % 2 == 1 {
        at(middle)
    } else {
        f64::midpoint(at(middle.wrapping_sub(1)), at(middle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static ROWS: [Row<u32>; 2] = [
        Row {
            word: "a",
            name: "first",
            how: 1,
        },
        Row {
            word: "b",
            name: "second",
            how: 2,
        },
    ];

    fn runs(figures: &[f64]) -> Runs<f64> {
        figures.iter().copied().map(Some).collect()
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn ratios_are_by_round() {
        let own = runs(&[4.0, 1.0, 9.0]);
        let (accept, automaton) = (runs(&[8.0, 2.0, 10.0]), runs(&[5.0, 5.0, 5.0]));
        // 4 of 5, 1 of 2, 9 of 5.
        assert_eq!(own.ratio(&[&accept, &automaton], |run| *run), 0.8);
        assert_eq!(own.ratio(&[&accept], |run| *run), 0.5);
        // A round in which the other did not run, or gave nothing, is none.
        assert_eq!(own.ratio(&[&runs(&[8.0])], |run| *run), 0.5);
        let nothing: Runs<f64> = [None, Some(4.0), None].into_iter().collect();
        assert_eq!(own.ratio(&[&nothing], |run| *run), 0.25);
        assert_eq!((nothing.count(), nothing.median(|run| *run)), (1, 4.0));
        assert!(own.ratio(&[&runs(&[])], |run| *run).is_nan());
    }

    #[test]
    fn rows_take_turns() {
        let mut turns = Vec::new();
        let all = rounds("test", &ROWS, 2, |round, row, last: Option<&u32>| {
            turns.push((round, row.word, last.copied()));
            Ok((round == 0 || row.how == 2).then_some(row.how))
        });
        let all = all.unwrap();
        let expected = [
            (0, "a", None),
            (0, "b", None),
            (1, "a", Some(1)),
            (1, "b", Some(2)),
        ];
        assert_eq!(turns, expected);
        assert_eq!(find(&all, "a").unwrap().count(), 1);
        assert_eq!(find(&all, "b").unwrap().sum(|run| u64::from(*run)), 4);
        let failed = rounds("test", &ROWS, 1, |_, _, _: Option<&u32>| {
            anyhow::bail!("no")
        });
        assert_eq!(failed.unwrap_err().to_string(), "first");
    }
}
