//! Styles, and lines and columns that fit.

use ratatui::layout::Constraint;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::shown::Tone;

/// Columns of the key of a table at least.
const KEY: u16 = 12;

/// Styles by what they say; without colours weight and reversal say it.
pub(super) struct Look {
    pub(super) is_coloured: bool,
}

impl Look {
    pub(super) const fn fg(&self, colour: Color) -> Style {
        if self.is_coloured {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    /// Something is lost or broken.
    pub(super) const fn bad(&self) -> Style {
        if self.is_coloured {
            Style::new()
                .fg(Color::White)
                .bg(Color::Red)
                .add_modifier(Modifier::BOLD)
        } else {
            Style::new().add_modifier(Modifier::REVERSED.union(Modifier::BOLD))
        }
    }

    /// Something may become so.
    pub(super) const fn warn(&self) -> Style {
        self.fg(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// Names of numbers.
    pub(super) const fn quiet(&self) -> Style {
        if self.is_coloured {
            Style::new().fg(Color::DarkGray)
        } else {
            Style::new()
        }
    }

    pub(super) const fn strong() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Cool for what is well, warm for what is not.
    pub(super) const fn tone(&self, tone: Tone) -> Style {
        match tone {
            Tone::Good => self.fg(Color::Blue),
            Tone::Fine => self.fg(Color::Cyan),
            Tone::Doubtful => self.fg(Color::Yellow),
            Tone::Bad => self.fg(Color::Red),
        }
    }
}

/// A name and a value.
pub(super) fn pair<'a>(name: &'a str, value: String, look: &Look) -> [Span<'a>; 3] {
    [
        Span::styled(name, look.quiet()),
        Span::raw(" "),
        Span::styled(value, Look::strong()),
    ]
}

/// What of a line has room: where it has not, whole names and values are left out from the end, for half a
/// number is another number. What is between two of them is spaces alone.
pub(super) fn fit(mut line: Line<'_>, width: u16) -> Line<'_> {
    while line.width() > usize::from(width) {
        let is_gap = |span: &Span<'_>| span.content.len() > 1 && span.content.trim().is_empty();
        let Some(gap) = line.spans.iter().rposition(is_gap) else {
            break;
        };
        line.spans.truncate(gap);
    }
    line
}

/// The columns of a table that have room beside a first one of [`KEY`], each as wide as the longest of its
/// texts: the others are left out from the right.
pub(super) fn columns(widths: impl Iterator<Item = usize>, room: u16) -> Vec<Constraint> {
    let mut rest = room.saturating_sub(KEY);
    let mut columns = vec![Constraint::Min(KEY)];
    for width in widths {
        let width = u16::try_from(width).unwrap_or(u16::MAX);
        match rest.checked_sub(width.saturating_add(1)) {
            Some(left) => rest = left,
            None => break,
        }
        columns.push(Constraint::Length(width));
    }
    columns
}

/// Names and values in one line, three spaces between them.
pub(super) fn pairs<'a>(all: impl IntoIterator<Item = (&'a str, String)>, look: &Look) -> Line<'a> {
    let mut line = Line::default();
    for (name, value) in all {
        if !line.spans.is_empty() {
            line.push_span("   ");
        }
        line.spans.extend(pair(name, value, look));
    }
    line
}
