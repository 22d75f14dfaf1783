//! What a run found: tables with a column for each observer, and curves. As JSON its keys are a format for
//! others: they stay as they are.

mod text;

use serde::Serialize;

/// What a run found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// What was run: names and values.
    pub facts: Vec<(String, String)>,
    /// What was found.
    pub tables: Vec<Table>,
    /// Curves.
    pub pictures: Vec<Picture>,
    /// Remarks for the reader, such as what could not be checked here.
    pub notes: Vec<String>,
    /// Whether the run was ended before its time: what was to be sent later is not there, so that rows that
    /// differ are no finding.
    pub interrupted: bool,
}

/// The figures of several observers for the same quantities.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// What it is about.
    pub title: String,
    /// The observers, one for each cell of a row.
    #[serde(rename = "witnesses")]
    pub observers: Vec<String>,
    /// The quantities.
    pub rows: Vec<Row>,
}

/// The figures of the observers for one quantity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The quantity.
    pub what: String,
    /// What the figures are.
    pub unit: Unit,
    /// A figure of each observer; `None` of one that cannot know.
    pub cells: Vec<Option<f64>>,
    /// What they may differ by.
    pub rule: Rule,
}

/// What a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// How many there are.
    Count,
    /// A time in seconds.
    Seconds,
    /// Octets.
    Bytes,
    /// So many in a second.
    PerSecond,
    /// Bits in a second.
    BitsPerSecond,
    /// A part of one.
    Part,
    /// A number of no unit.
    Number,
}

/// What the figures of a row may differ by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Nothing.
    Same,
    /// So much, in the row's unit, from the largest to the smallest.
    Within(f64),
    /// This part of the largest figure, from the largest to the smallest.
    WithinPart(f64),
    /// Each is at least as large as the one on its right, with this slack in the row's unit.
    Falling(f64),
    /// Each is at most this.
    AtMost(f64),
    /// Each is at least this.
    AtLeast(f64),
    /// Anything: the row is there to be read.
    Shown,
}

/// Curves over one axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Picture {
    /// What it shows.
    pub title: String,
    /// Below.
    pub x: Axis,
    /// At the left.
    pub y: Axis,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// An axis of a picture.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Axis {
    /// What it measures.
    pub name: String,
    /// What its figures are.
    pub unit: Unit,
    /// Whether steps are factors.
    pub is_logarithmic: bool,
}

/// One curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// Whose it is.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

impl Report {
    /// Whether all rows are as they should be.
    #[must_use]
    pub fn agree(&self) -> bool {
        self.tables.iter().all(Table::agrees)
    }

    /// How many rows are compared, and how many of them are not as they should be.
    #[must_use]
    pub fn compared(&self) -> (usize, usize) {
        let rows = self.tables.iter().flat_map(|table| &table.rows);
        let compared: Vec<&Row> = rows.filter(|row| row.rule != Rule::Shown).collect();
        let wrong = compared.iter().filter(|row| !row.agrees()).count();
        (compared.len(), wrong)
    }

    /// Adds what was run.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "numbers and texts alike, without a `&` before each"
    )]
    pub fn fact(&mut self, name: &str, value: impl ToString) {
        self.facts.push((name.to_owned(), value.to_string()));
    }

    /// Adds what was run before everything else.
    pub(crate) fn begin_with(&mut self, name: &str, value: &str) {
        self.facts.insert(0, (name.to_owned(), value.to_owned()));
    }
}

impl Table {
    /// One without rows.
    #[must_use]
    pub fn new(title: &str, observers: &[&str]) -> Self {
        Self {
            title: title.to_owned(),
            observers: observers.iter().map(|name| (*name).to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds counts.
    pub fn count(&mut self, what: &str, rule: Rule, cells: &[Option<u64>]) {
        // Counts of a run are far below 2^53.
        let cells: Vec<Option<f64>> = cells.iter().map(|cell| cell.map(|n| n as f64)).collect();
        self.row(what, Unit::Count, rule, &cells);
    }

    /// Adds figures.
    pub fn row(&mut self, what: &str, unit: Unit, rule: Rule, cells: &[Option<f64>]) {
        self.rows.push(Row {
            what: what.to_owned(),
            unit,
            cells: cells.to_vec(),
            rule,
        });
    }

    /// Adds figures that are there to be read.
    pub fn show(&mut self, what: &str, unit: Unit, cells: &[Option<f64>]) {
        self.row(what, unit, Rule::Shown, cells);
    }

    /// Whether all rows are as they should be.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.rows.iter().all(Row::agrees)
    }
}

impl Row {
    /// The figures that there are.
    fn figures(&self) -> impl Iterator<Item = f64> + '_ {
        self.cells.iter().copied().flatten()
    }

    /// The largest figure less the smallest; `None` where fewer than two say anything.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        let largest = self.figures().fold(f64::NEG_INFINITY, f64::max);
        let smallest = self.figures().fold(f64::INFINITY, f64::min);
        (self.figures().count() > 1).then_some(largest - smallest)
    }

    /// Whether the figures are as they should be. A row that is compared and has nothing to compare is
    /// not.
    #[must_use]
    pub fn agrees(&self) -> bool {
        let largest = self.figures().fold(f64::NEG_INFINITY, f64::max);
        let within = |tolerance: f64| {
            self.difference()
                .is_some_and(|difference| difference <= tolerance)
        };
        let has_any = self.figures().next().is_some();
        // What is not a number agrees with nothing.
        if self.rule != Rule::Shown && !self.figures().all(f64::is_finite) {
            return false;
        }
        match self.rule {
            Rule::Same => within(0.0),
            Rule::Within(tolerance) => within(tolerance),
            Rule::WithinPart(part) => within(part * largest),
            Rule::Falling(tolerance) => {
                let figures: Vec<f64> = self.figures().collect();
                let falls = |pair: &[f64]| matches!(pair, [a, b] if *b <= *a + tolerance);
                figures.len() > 1 && figures.windows(2).all(falls)
            }
            Rule::AtMost(limit) => has_any && self.figures().all(|figure| figure <= limit),
            Rule::AtLeast(limit) => has_any && self.figures().all(|figure| figure >= limit),
            Rule::Shown => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agrees(rule: Rule, cells: &[Option<f64>]) -> bool {
        let mut table = Table::new("t", &["a", "b", "c"]);
        table.row("r", Unit::Count, rule, cells);
        table.agrees()
    }

    #[test]
    fn each_rule_has_its_limit() {
        assert!(agrees(Rule::Same, &[Some(3.0), None, Some(3.0)]));
        assert!(!agrees(Rule::Same, &[Some(3.0), None, Some(4.0)]));
        assert!(agrees(Rule::Within(1.0), &[Some(3.0), Some(4.0)]));
        assert!(!agrees(Rule::Within(0.9), &[Some(3.0), Some(4.0)]));
        assert!(agrees(Rule::WithinPart(0.25), &[Some(3.0), Some(4.0)]));
        assert!(!agrees(Rule::WithinPart(0.24), &[Some(3.0), Some(4.0)]));
        assert!(agrees(
            Rule::Falling(0.0),
            &[Some(3.0), None, Some(3.0), Some(1.0)]
        ));
        assert!(!agrees(Rule::Falling(0.5), &[Some(3.0), Some(4.0)]));
        assert!(agrees(Rule::AtMost(4.0), &[Some(4.0)]));
        assert!(!agrees(Rule::AtLeast(4.0), &[Some(4.0), Some(3.9)]));
    }

    #[test]
    fn silence_is_not_agreement() {
        for rule in [
            Rule::Same,
            Rule::Within(9.0),
            Rule::Falling(9.0),
            Rule::AtMost(9.0),
        ] {
            assert!(!agrees(rule, &[None, None]), "{rule:?}");
        }
        assert!(!agrees(Rule::Same, &[Some(1.0), None]));
        assert!(!agrees(Rule::Same, &[Some(f64::NAN), Some(f64::NAN)]));
        assert!(agrees(Rule::Shown, &[None]));
    }

    #[test]
    fn what_is_shown_is_not_counted_as_compared() {
        let mut table = Table::new("t", &["a", "b"]);
        table.count("same", Rule::Same, &[Some(1), Some(1)]);
        table.count("not", Rule::Same, &[Some(1), Some(2)]);
        table.count("shown", Rule::Shown, &[Some(1), Some(2)]);
        let report = Report {
            tables: vec![table],
            ..Report::default()
        };
        assert_eq!(report.compared(), (2, 1));
        assert!(!report.agree());
    }
}
