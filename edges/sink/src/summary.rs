//! The summary of a run: one JSON object for programs, one screen for people.

use linkweir_engine::SinkError;

use crate::human::thousands;

/// Writes one JSON object, indented, with a line feed at its end. `-` is standard output; a file
/// appears under its name only when it is whole.
///
/// # Errors
/// Where the destination cannot be written.
pub fn write_summary_file(destination: &str, summary: &serde_json::Value) -> Result<(), SinkError> {
    let mut bytes = format!("{summary:#}").into_bytes();
    bytes.push(b'\n');
    crate::output::write_whole(destination, &bytes)
}

#[derive(Debug, Clone)]
enum Line {
    Heading(String),
    Row {
        label: String,
        value: String,
        unit: String,
    },
}

/// The screen that is printed at the end of a run: rows of a label, a value and a unit, with the
/// values of each block in a column.
///
/// # Example
/// ```
/// let mut screen = linkweir_sink::summary::Screen::new();
/// screen.heading("capture").count("packets", 2_000_000, "").row("rate", "8.1", "Mpkt/s");
/// assert_eq!(screen.to_string(), "capture\n  packets  2,000,000\n  rate           8.1  Mpkt/s\n");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Screen {
    lines: Vec<Line>,
}

impl Screen {
    /// An empty screen.
    #[must_use]
    pub const fn new() -> Self {
        Self { lines: Vec::new() }
    }

    /// Begins a block.
    pub fn heading(&mut self, text: &str) -> &mut Self {
        self.lines.push(Line::Heading(text.to_owned()));
        self
    }

    /// A value as it is to be shown.
    pub fn row(&mut self, label: &str, value: impl Into<String>, unit: &str) -> &mut Self {
        let (label, unit) = (label.to_owned(), unit.to_owned());
        self.lines.push(Line::Row {
            label,
            value: value.into(),
            unit,
        });
        self
    }

    /// An exact number, its thousands separated.
    pub fn count(&mut self, label: &str, number: u64, unit: &str) -> &mut Self {
        self.row(label, thousands(number), unit)
    }

    /// A number that is shown only where it is not zero: a fault that did not happen needs no line.
    pub fn count_if_any(&mut self, label: &str, number: u64, unit: &str) -> &mut Self {
        if number > 0 {
            self.count(label, number, unit);
        }
        self
    }

    /// A number with a decimal prefix, such as a rate.
    pub fn scaled(&mut self, label: &str, number: f64, unit: &str) -> &mut Self {
        let text = crate::human::scaled(number, unit);
        let (value, unit) = text.split_once(' ').unwrap_or((&text, ""));
        self.row(label, value, unit)
    }

    /// A span of nanoseconds.
    pub fn span(&mut self, label: &str, nanos: u64) -> &mut Self {
        let text = crate::human::span(nanos);
        // `2 min 5 s` is a value without a unit of its own.
        match text.split_once(' ') {
            Some((value, unit)) if !unit.contains(' ') => self.row(label, value, unit),
            _ => self.row(label, text, ""),
        }
    }
}

impl std::fmt::Display for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (mut labels, mut values) = (0, 0);
        for line in &self.lines {
            if let Line::Row { label, value, .. } = line {
                labels = labels.max(label.chars().count());
                values = values.max(value.chars().count());
            }
        }
        for line in &self.lines {
            match line {
                Line::Heading(text) => writeln!(f, "{text}")?,
                Line::Row { label, value, unit } => {
                    let gap = if unit.is_empty() { "" } else { "  " };
                    writeln!(f, "  {label:labels$}  {value:>values$}{gap}{unit}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut screen = Screen::new();
        screen
            .heading("http")
            .count("requests", 1_234_567, "")
            .count_if_any("orphans", 0, "")
            .scaled("rate", 8_100_000.0, "pkt/s")
            .span("median response time", 104_130_000)
            .span("trace", 125_000_000_000);
        let expected = "\
http
  requests              1,234,567
  rate                        8.1  Mpkt/s
  median response time        104  ms
  trace                 2 min 5 s
";
        assert_eq!(screen.to_string(), expected);
    }

    #[test]
    fn summary_files_are_whole_json() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.json");
        let value = serde_json::json!({"packets": u64::MAX, "dropped": {"kernel": 0}});
        write_summary_file(path.to_str().unwrap(), &value).unwrap();
        let back: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(back, value);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(
            write_summary_file(folder.path().join("no/s.json").to_str().unwrap(), &value).is_err()
        );
    }
}
