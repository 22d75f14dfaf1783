//! What the page of the laboratory shows: the figures of several observers for the same quantities, as text, and
//! curves.

use super::plot::Plot;

/// A run of the laboratory.
#[derive(Debug, Clone, Default)]
pub struct LabReport {
    /// The heading.
    pub title: String,
    /// What was run: names and values.
    pub facts: Vec<(String, String)>,
    /// What was found.
    pub tables: Vec<LabTable>,
    /// Curves.
    pub plots: Vec<Plot>,
    /// Remarks, such as what could not be checked.
    pub notes: Vec<String>,
    /// Whether the run was ended early: what differs is then no finding.
    pub is_interrupted: bool,
    /// The command line that made the page.
    pub command_line: String,
    /// Name and version of the program.
    pub program: String,
}

/// The figures of several observers.
#[derive(Debug, Clone, Default)]
pub struct LabTable {
    /// What it is about.
    pub title: String,
    /// The observers, one for each cell of a row.
    pub observers: Vec<String>,
    /// The quantities.
    pub rows: Vec<LabRow>,
}

/// Their figures for one quantity. All figures are text with their units.
#[derive(Debug, Clone)]
pub struct LabRow {
    /// The quantity.
    pub what: String,
    /// A figure of each observer; `None` of one that cannot know.
    pub cells: Vec<Option<String>>,
    /// The largest less the smallest, where it matters.
    pub difference: Option<String>,
    /// What they may differ by; empty where anything goes.
    pub tolerance: String,
    /// Whether they are as they should be.
    pub mark: LabMark,
}

/// Whether figures are as they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabMark {
    /// They are.
    Agrees,
    /// They are not.
    Differs,
    /// They are there to be read: nothing is compared.
    Shown,
}

impl LabReport {
    /// How many rows are compared, and how many of them are not as they should be.
    #[must_use]
    pub fn compared(&self) -> (usize, usize) {
        let marks = self.tables.iter().flat_map(|table| &table.rows);
        let count = |wanted| marks.clone().filter(|row| row.mark == wanted).count();
        let differ = count(LabMark::Differs);
        (count(LabMark::Agrees) + differ, differ)
    }
}
