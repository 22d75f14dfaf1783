//! Draws what there is beside the intervals: the status of the process, and its last records.

use std::sync::Arc;

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table};

use super::look::{Look, columns, fit, pairs};
use super::probes;
use super::screen::Screen;
use super::shown::{Panel, Shown};
use linkweir_live::api::Numbered;

/// Maximum rows of the table of the panel.
const MAX_ROWS: usize = 8;
/// Maximum rows of last records.
const MAX_EVENTS: u16 = 12;
/// Below so many rows there is no room for a second table.
const ROOM_FOR_TABLE: u16 = 16;

/// What is shown, and how many rows it takes.
#[derive(Debug, Default)]
pub(super) struct Beside {
    shown: Panel,
    /// Rows of the panel.
    pub(super) panel: u16,
    /// Rows of the last records.
    pub(super) events: u16,
}

fn rows(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

impl Beside {
    /// Shares `room` rows with the table of keys: lines first, then the table of the panel, then half
    /// of the rest for the last records.
    pub(super) fn of<K: Shown>(screen: &Screen<K>, room: u16) -> Self {
        let mut shown = match (&screen.now, &screen.probes) {
            (Some(now), _) => now
                .status
                .as_deref()
                .map_or_else(Panel::default, |status| K::panel(status)),
            (None, Some(probes)) => probes::panel(probes),
            (None, None) => return Self::default(),
        };
        shown.lines.truncate(usize::from(room / 3));
        let lines = rows(shown.lines.len());
        shown.rows.truncate(MAX_ROWS);
        if room.saturating_sub(lines) < ROOM_FOR_TABLE {
            shown.rows.clear();
        }
        let table = match rows(shown.rows.len()) {
            0 => 0,
            rows => rows + 1,
        };
        let panel = lines + table;
        let rest = room.saturating_sub(panel);
        Self {
            shown,
            panel,
            events: if screen.now.is_some() && K::HAS_EVENTS {
                (rest / 2).min(MAX_EVENTS)
            } else {
                0
            },
        }
    }
}

/// Draws the panel.
pub(super) fn draw_beside(frame: &mut Frame<'_>, area: Rect, beside: &Beside, look: &Look) {
    let shown = &beside.shown;
    let height = rows(shown.lines.len());
    let [lines, table] =
        Layout::vertical([Constraint::Length(height), Constraint::Min(0)]).areas(area);
    let text: Vec<Line<'_>> = shown
        .lines
        .iter()
        .map(|line| {
            let pairs = pairs(
                line.iter().map(|(name, value)| (*name, value.clone())),
                look,
            );
            fit(pairs, area.width)
        })
        .collect();
    frame.render_widget(Paragraph::new(text), lines);
    if shown.rows.is_empty() {
        return;
    }
    // The first column is text, the others are numbers.
    let cell = |at: usize, line: Line<'static>| {
        let side = if at == 0 {
            Alignment::Left
        } else {
            Alignment::Right
        };
        Cell::from(line.alignment(side))
    };
    let widths = shown.headings.iter().enumerate().skip(1).map(|(at, one)| {
        let cells = shown.rows.iter().filter_map(|row| row.get(at));
        let longest = cells.map(|cell| cell.chars().count()).max();
        longest.unwrap_or(0).max(one.1.into())
    });
    let widths = columns(widths, table.width);
    let count = widths.len();
    let header = shown.headings.iter().take(count).enumerate();
    let header = header.map(|(at, (text, _))| cell(at, Line::styled(*text, look.quiet())));
    let body = shown.rows.iter().map(|row| {
        let cells = row.iter().take(count).enumerate();
        Row::new(cells.map(|(at, text)| cell(at, Line::from(text.clone()))))
    });
    let body = Table::new(body, widths).header(Row::new(header));
    frame.render_widget(body.column_spacing(1), table);
}

/// Draws the last records, the latest at the bottom.
pub(super) fn draw_events<K: Shown>(
    frame: &mut Frame<'_>,
    area: Rect,
    screen: &Screen<K>,
    look: &Look,
) {
    let Some(now) = &screen.now else { return };
    let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let title = Span::styled("last events", Look::strong());
    frame.render_widget(Paragraph::new(Line::from(title)), head);
    // Those of which there are many are shown where there are no others.
    let is_rare = |one: &&Arc<Numbered<K::Event>>| !K::is_routine(&one.event);
    let has_rare = now.events.iter().any(|one| is_rare(&one));
    let shown: Vec<_> = now
        .events
        .iter()
        .filter(|one| !has_rare || is_rare(one))
        .collect();
    let skip = shown.len().saturating_sub(usize::from(body.height));
    let lines: Vec<Line<'_>> = shown
        .iter()
        .skip(skip)
        .map(|one| {
            let (text, tone) = K::event_line(&one.event);
            Line::styled(text, look.tone(tone))
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), body);
}
