//! Report as a person reads them on a terminal: `{}` is plain, `{:#}` has colours.

use std::fmt;

use super::{Report, Row, Rule, Table, Unit};

/// Between columns.
const GAP: &str = "  ";
/// Of a row that is as it should be, and of one that is not.
const OK: &str = "ok";
const DIFFERS: &str = "DIFFERS";
/// ECMA-48, select graphic rendition.
const GREEN: &str = "32";
const RED: &str = "1;31";
const BOLD: &str = "1";

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.facts.iter().map(|(name, _)| name.chars().count());
        let width = width.max().unwrap_or(0);
        for (name, value) in &self.facts {
            writeln!(f, "{name:width$}{GAP}{value}")?;
        }
        for table in &self.tables {
            writeln!(f)?;
            table.fmt(f)?;
        }
        for note in &self.notes {
            writeln!(f, "\n{note}")?;
        }
        let (compared, wrong) = self.compared();
        let passed = compared - wrong;
        let (colour, verdict) = if self.interrupted {
            (
                BOLD,
                format!("Interrupted: {passed} of {compared} checks passed."),
            )
        } else if wrong == 0 {
            (GREEN, format!("All {compared} checks passed."))
        } else {
            (RED, format!("{wrong} of {compared} checks failed."))
        };
        writeln!(f, "\n{}", painted(f, colour, &verdict))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = vec![head(self)];
        lines.extend(self.rows.iter().map(line));
        let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (number, line) in lines.iter().enumerate() {
            let cells = line.iter().zip(&widths).enumerate();
            let cells: Vec<String> = cells
                .map(|(column, (cell, &width))| match column {
                    0 => format!("{cell:width$}"),
                    _ => format!("{cell:>width$}"),
                })
                .collect();
            let text = cells.join(GAP);
            let text = text.trim_end();
            let text = match (line.last().map(String::as_str), number) {
                (_, 0) => painted(f, BOLD, text),
                (Some(OK), _) => marked(f, text, OK, GREEN),
                (Some(DIFFERS), _) => marked(f, text, DIFFERS, RED),
                _ => text.to_owned(),
            };
            writeln!(f, "{text}")?;
        }
        Ok(())
    }
}

/// In a colour, where colours are wanted.
fn painted(f: &fmt::Formatter<'_>, colour: &str, text: &str) -> String {
    if f.alternate() {
        format!("\x1b[{colour}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

/// A line whose last word has a colour.
fn marked(f: &fmt::Formatter<'_>, line: &str, mark: &str, colour: &str) -> String {
    let before = line.strip_suffix(mark).unwrap_or(line);
    format!("{before}{}", painted(f, colour, mark))
}

fn head(table: &Table) -> Vec<String> {
    let mut cells = vec![table.title.clone()];
    cells.extend(table.observers.iter().cloned());
    cells.extend(["difference", "tolerance", ""].map(str::to_owned));
    cells
}

fn line(row: &Row) -> Vec<String> {
    let mut cells = vec![row.what.clone()];
    let figures = row.cells.iter();
    cells.extend(figures.map(|cell| cell.map_or_else(|| "-".to_owned(), |n| row.unit.text(n))));
    let difference = row.difference().filter(|_| row.rule != Rule::Shown);
    cells.push(difference.map_or_else(String::new, |n| row.unit.text(n)));
    cells.push(row.tolerance());
    cells.push(
        match (row.rule, row.agrees()) {
            (Rule::Shown, _) => "",
            (_, true) => OK,
            (_, false) => DIFFERS,
        }
        .to_owned(),
    );
    cells
}

impl Row {
    /// What the figures may differ by, in words; empty where anything goes.
    #[must_use]
    pub fn tolerance(&self) -> String {
        let text = |n: f64| self.unit.text(n);
        match self.rule {
            Rule::Same => "none".to_owned(),
            Rule::Within(tolerance) => text(tolerance),
            Rule::WithinPart(part) => Unit::Part.text(part),
            Rule::Falling(tolerance) => format!("non-increasing (slack {})", text(tolerance)),
            Rule::AtMost(limit) => format!("at most {}", text(limit)),
            Rule::AtLeast(limit) => format!("at least {}", text(limit)),
            Rule::Shown => String::new(),
        }
    }
}

impl Unit {
    /// A figure with its unit.
    #[must_use]
    pub fn text(self, figure: f64) -> String {
        match self {
            Self::Count => grouped(figure),
            Self::Bytes => format!("{} B", grouped(figure)),
            Self::Seconds => seconds(figure),
            Self::PerSecond => format!("{figure:.1}/s"),
            Self::BitsPerSecond => format!("{:.3} Mbit/s", figure / 1e6),
            Self::Part => format!("{:.2} %", 100.0 * figure),
            Self::Number => format!("{figure:.4}"),
        }
    }
}

fn seconds(figure: f64) -> String {
    match figure.abs() {
        0.0 => "0".to_owned(),
        size if size < 1e-3 => format!("{:.1} µs", figure * 1e6),
        size if size < 1.0 => format!("{:.3} ms", figure * 1e3),
        _ => format!("{figure:.3} s"),
    }
}

/// A whole number with a comma between thousands.
fn grouped(figure: f64) -> String {
    let digits = format!("{:.0}", figure.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if figure <= -0.5 {
        text.insert(0, '-');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_their_units() {
        assert_eq!(Unit::Count.text(1_234_567.0), "1,234,567");
        assert_eq!(Unit::Count.text(-12.0), "-12");
        assert_eq!(Unit::Seconds.text(0.000_012_34), "12.3 µs");
        assert_eq!(Unit::Seconds.text(0.012_34), "12.340 ms");
        assert_eq!(Unit::Seconds.text(0.0), "0");
        assert_eq!(Unit::Part.text(0.012), "1.20 %");
        assert_eq!(Unit::BitsPerSecond.text(9_562_400.0), "9.562 Mbit/s");
    }

    #[test]
    fn a_table_has_a_column_for_each_observer() {
        let mut table = Table::new("what", &["load", "nginx"]);
        table.count("sessions", Rule::Same, &[Some(1000), Some(999)]);
        table.count("seen", Rule::Shown, &[None, Some(5)]);
        let report = Report {
            facts: vec![("seed".to_owned(), "1".to_owned())],
            tables: vec![table],
            ..Report::default()
        };
        let expected = "seed  1\n\n\
            what       load  nginx  difference  tolerance\n\
            sessions  1,000    999           1       none  DIFFERS\n\
            seen          -      5\n\n\
            1 of 1 checks failed.\n";
        assert_eq!(report.to_string(), expected);

        let interrupted = Report {
            interrupted: true,
            ..report.clone()
        };
        let verdict = "Interrupted: 0 of 1 checks passed.\n";
        let said = expected.replace("1 of 1 checks failed.\n", verdict);
        assert_eq!(interrupted.to_string(), said);

        let coloured = format!("{report:#}");
        assert!(
            coloured.contains("none  \x1b[1;31mDIFFERS\x1b[0m\n"),
            "{coloured}"
        );
        let mut plain = coloured;
        for colour in [BOLD, GREEN, RED, "0"] {
            plain = plain.replace(&format!("\x1b[{colour}m"), "");
        }
        assert_eq!(plain, expected);
    }
}
