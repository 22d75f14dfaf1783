//! Draws the view: losses first, then rates, curves, percentiles, codes and the table.
//!
//! Nothing here depends on the size of the terminal: what has no room is left out, from the curves
//! on. Text of the network has no control characters (see [`clean`](linkweir_live::text::clean)).

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Sparkline, SparklineBar, Table};

use super::beside::{Beside, draw_beside, draw_events};
use super::look::{Look, columns, fit, pair, pairs};
use super::number::{clock, count, duration, percent};
use super::screen::Screen;
use super::shown::{Bar, Curve, Shown};
use linkweir_live::TABLES_EVERY;
use linkweir_live::api::{AlertState, AlertStatus, Tick, Window, Word as _};

/// Draws `screen`; notes how many rows of the table have room.
pub(super) fn draw<K: Shown>(frame: &mut Frame<'_>, screen: &mut Screen<K>) {
    let look = Look {
        is_coloured: screen.is_coloured,
    };
    let area = frame.area();
    let alerts = u16::from(screen.last().is_some_and(|tick| worst(tick).is_some()));
    // From 20 lines on there is room for curves and codes above a table of some rows.
    let (curves, codes) = match area.height {
        0..16 => (0, 0),
        16..20 => (4, 0),
        20..32 => (4, 4),
        _ => (7, 4),
    };
    let rows = area.height.saturating_sub(5 + alerts + curves + codes);
    let beside = Beside::of(screen, rows);
    let [
        title,
        health,
        alert,
        rates,
        curve,
        times,
        bars,
        panel,
        table,
        events,
        keys,
    ] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(alerts),
        Constraint::Length(1),
        Constraint::Length(curves),
        Constraint::Length(1),
        Constraint::Length(codes),
        Constraint::Length(beside.panel),
        Constraint::Min(0),
        Constraint::Length(beside.events),
        Constraint::Length(1),
    ])
    .areas(area);
    draw_title(frame, title, screen, &look);
    if let Some(tick) = screen.last() {
        draw_health(frame, health, tick, &look);
        draw_alert(frame, alert, tick, &look);
        draw_rates::<K>(frame, rates, tick, &look);
        draw_curves(frame, curve, screen, &look);
        draw_times::<K>(frame, times, tick, &look);
        draw_bars::<K>(frame, bars, tick, &look);
    } else {
        let waiting = "waiting for packets: no interval has ended yet";
        frame.render_widget(Paragraph::new(waiting), health);
    }
    draw_beside(frame, panel, &beside, &look);
    draw_table(frame, table, screen, &look);
    draw_events(frame, events, screen, &look);
    draw_keys(frame, keys, &look);
}

fn draw_title<K: Shown>(frame: &mut Frame<'_>, area: Rect, screen: &Screen<K>, look: &Look) {
    let mut left = Line::from(Span::styled(
        "linkweir",
        look.fg(Color::Cyan).add_modifier(Modifier::BOLD),
    ));
    let mut right = Line::default();
    if let Some(meta) = &screen.meta {
        left.push_span("  ");
        let source = match meta.source.as_str() {
            "-" => "standard input",
            named => named,
        };
        left.push_span(Span::styled(source, Look::strong()));
        if let Some(tick) = screen.last() {
            let up = duration(tick.t_ms.saturating_sub(meta.started_ms));
            left.push_span("  ");
            left.spans.extend(pair("up", up, look));
        }
        if screen.is_paused {
            right.push_span(Span::styled(" PAUSED ", look.warn().reversed()));
            right.push_span(" ");
        }
        if meta.finished {
            right.push_span(Span::styled(" FINISHED ", Look::strong().reversed()));
            right.push_span(" ");
        }
    }
    if let Some(tick) = screen.last() {
        right.push_span(clock(tick.t_ms));
    }
    let width = u16::try_from(right.width()).unwrap_or(u16::MAX);
    let [left_area, right_area] =
        Layout::horizontal([Constraint::Min(0), Constraint::Length(width)]).areas(area);
    frame.render_widget(Paragraph::new(fit(left, left_area.width)), left_area);
    frame.render_widget(
        Paragraph::new(right).alignment(Alignment::Right),
        right_area,
    );
}

fn draw_health<F>(frame: &mut Frame<'_>, area: Rect, tick: &Tick<F>, look: &Look) {
    let total = tick.dropped_total.total();
    let mut line = Line::default();
    if total == 0 {
        line.spans.extend(pair("dropped", "0".to_owned(), look));
    } else {
        let causes: Vec<String> = tick
            .dropped_total
            .by_cause()
            .iter()
            .filter(|(_, lost)| *lost > 0)
            .map(|(cause, lost)| format!("{cause} {}", count(*lost)))
            .collect();
        let mut text = format!(" DROPPED {}: {} ", count(total), causes.join(", "));
        let now = tick.dropped.total();
        if now > 0 {
            text.push_str(&format!("(now +{}) ", count(now)));
        }
        line.push_span(Span::styled(text, look.bad()));
    }
    line.push_span("   ");
    let (entries, capacity) = (tick.table.entries, tick.table.capacity);
    if capacity == 0 {
        line.spans.extend(pair("in table", count(entries), look));
    } else {
        line.spans
            .extend(pair("table", percent(entries, capacity), look));
        line.push_span(Span::styled(
            format!(" {} of {}", count(entries), count(capacity)),
            look.quiet(),
        ));
    }
    if !tick.alerts.is_empty() {
        let firing = in_state(tick, AlertState::Firing).count();
        line.push_span("   ");
        line.spans
            .extend(pair("alerts firing", firing.to_string(), look));
    }
    frame.render_widget(Paragraph::new(fit(line, area.width)), area);
}

fn in_state<F>(tick: &Tick<F>, state: AlertState) -> impl Iterator<Item = &AlertStatus> {
    tick.alerts.iter().filter(move |alert| alert.state == state)
}

/// The alert to show where there is one line for all: firing before pending.
fn worst<F>(tick: &Tick<F>) -> Option<&AlertStatus> {
    in_state(tick, AlertState::Firing)
        .next()
        .or_else(|| in_state(tick, AlertState::Pending).next())
}

fn draw_alert<F>(frame: &mut Frame<'_>, area: Rect, tick: &Tick<F>, look: &Look) {
    let Some(alert) = worst(tick) else { return };
    let more = in_state(tick, alert.state).count().saturating_sub(1);
    let style = if alert.state == AlertState::Firing {
        look.bad()
    } else {
        look.warn()
    };
    let mut line = Line::from(Span::styled(
        format!(
            " {} ",
            alert.state.as_str().replace('_', " ").to_uppercase()
        ),
        style,
    ));
    line.push_span(" ");
    line.push_span(Span::styled(alert.rule.as_str(), Look::strong()));
    let since = duration(tick.t_ms.saturating_sub(alert.since_ms));
    line.push_span("  ");
    line.push_span(Span::styled(format!("for {since}"), look.quiet()));
    if more > 0 {
        line.push_span("  ");
        line.push_span(format!("and {more} more"));
    }
    frame.render_widget(Paragraph::new(fit(line, area.width)), area);
}

fn draw_rates<K: Shown>(frame: &mut Frame<'_>, area: Rect, tick: &Tick<K::Figures>, look: &Look) {
    let line = fit(pairs(K::rates(tick), look), area.width);
    frame.render_widget(Paragraph::new(line), area);
}

fn draw_times<K: Shown>(frame: &mut Frame<'_>, area: Rect, tick: &Tick<K::Figures>, look: &Look) {
    let line = match K::times(tick) {
        Ok(times) => pairs(times, look),
        Err(none) => Line::styled(none, look.quiet()),
    };
    frame.render_widget(Paragraph::new(fit(line, area.width)), area);
}

fn draw_curves<K: Shown>(frame: &mut Frame<'_>, area: Rect, screen: &Screen<K>, look: &Look) {
    let [left, _, right] = Layout::horizontal([
        Constraint::Fill(1),
        Constraint::Length(2),
        Constraint::Fill(1),
    ])
    .areas(area);
    let [one, other] = K::curves();
    draw_curve(frame, left, screen, look, Color::Blue, &one);
    draw_curve(frame, right, screen, look, Color::Yellow, &other);
}

/// A curve with its name and its largest value; the last interval is at the right edge.
fn draw_curve<K: Shown>(
    frame: &mut Frame<'_>,
    area: Rect,
    screen: &Screen<K>,
    look: &Look,
    colour: Color,
    curve: &Curve<K>,
) {
    let [head, plot] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let width = usize::from(plot.width);
    let shown = screen.ticks.len().min(width);
    let values: Vec<Option<u64>> = screen
        .ticks
        .iter()
        .skip(screen.ticks.len() - shown)
        .map(|tick| (curve.value)(tick))
        .collect();
    let most = values.iter().flatten().max().copied();
    let mut title = Line::from(Span::styled(curve.name, Look::strong()));
    if let (Some(most), Some(tick)) = (most, screen.last()) {
        title.push_span("  ");
        title.push_span(Span::styled(
            format!("up to {}", (curve.show)(most, tick)),
            look.quiet(),
        ));
    }
    frame.render_widget(Paragraph::new(fit(title, head.width)), head);
    let bars: Vec<SparklineBar> = std::iter::repeat_n(None, width - shown)
        .chain(values)
        .map(SparklineBar::from)
        .collect();
    let curve = Sparkline::default()
        .data(bars)
        .max(most.unwrap_or(0).max(1))
        .style(look.fg(colour))
        .absent_value_symbol(" ");
    frame.render_widget(curve, plot);
}

fn draw_bars<K: Shown>(frame: &mut Frame<'_>, area: Rect, tick: &Tick<K::Figures>, look: &Look) {
    let [left, _, right] = Layout::horizontal([
        Constraint::Fill(1),
        Constraint::Length(2),
        Constraint::Fill(1),
    ])
    .areas(area);
    let (bars, all) = K::bars(tick);
    let name_width = bars.iter().map(|bar| bar.name.len()).max().unwrap_or(0);
    // Name, bar, count and share in fixed columns; what is left is the bar's.
    let room = usize::from(left.width).saturating_sub(name_width + 17);
    let line = |bar: &Bar| {
        let length = part_of(room, bar.count, all);
        let line = Line::from(vec![
            Span::styled(format!("{:<name_width$} ", bar.name), Look::strong()),
            Span::styled("█".repeat(length), look.tone(bar.tone)),
            Span::raw(" ".repeat(room - length)),
            Span::raw(format!("{:>7}", count(bar.count))),
            Span::raw("  "),
            Span::raw(format!("{:>7}", percent(bar.count, all))),
        ]);
        fit(line, left.width)
    };
    let bars: Vec<Line<'_>> = bars.iter().map(line).collect();
    frame.render_widget(Paragraph::new(bars), left);
    let lists: Vec<Line<'_>> = K::lists(tick)
        .into_iter()
        .flat_map(|list| {
            let list = largest(list);
            let rows: Vec<_> = list
                .chunks(4)
                .take(2)
                .map(|row| fit(listed(row, look), right.width))
                .collect();
            rows
        })
        .collect();
    frame.render_widget(Paragraph::new(lists), right);
}

/// Columns of a bar: some for what is not zero, and not more than there are.
fn part_of(room: usize, part: u64, whole: u64) -> usize {
    if part == 0 || whole == 0 {
        return 0;
    }
    let columns = u128::from(part) * (room as u128) / u128::from(whole);
    usize::try_from(columns).map_or(room, |columns| columns.clamp(1, room.max(1)).min(room))
}

/// Names and counts, largest first.
fn largest(mut all: Vec<(String, u64)>) -> Vec<(String, u64)> {
    all.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    all
}

/// `200 7.3k  404 12`, a line of a list.
fn listed(row: &[(String, u64)], look: &Look) -> Line<'static> {
    let mut line = Line::default();
    for (name, n) in row {
        if !line.spans.is_empty() {
            line.push_span("  ");
        }
        line.push_span(Span::styled(name.clone(), look.quiet()));
        line.push_span(format!(" {}", count(*n)));
    }
    line
}

/// How often the table is renewed: the intervals above it are when they end.
fn table_every_s<K: Shown>(screen: &Screen<K>) -> u64 {
    let interval = screen.meta.as_ref().map_or(0.0, |meta| meta.interval_s);
    Duration::from_secs_f64(interval.clamp(0.0, 1e9))
        .max(TABLES_EVERY)
        .as_secs()
}

const fn window_name(window: Window) -> &'static str {
    match window {
        Window::Minute => "last minute",
        Window::FiveMinutes => "last 5 minutes",
        Window::All => "whole run",
    }
}

fn draw_table<K: Shown>(frame: &mut Frame<'_>, area: Rect, screen: &mut Screen<K>, look: &Look) {
    let [tabs, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    screen.page = usize::from(body.height.saturating_sub(1));
    let mut line = Line::default();
    for (by, table) in screen.tables() {
        let style = if by == screen.by {
            Look::strong().reversed()
        } else {
            look.quiet()
        };
        line.push_span(Span::styled(format!(" {} ", table.name), style));
    }
    line.push_span(Span::styled(
        format!(
            "  {}, by {}, every {} s",
            window_name(screen.window),
            screen.sort.as_str(),
            table_every_s(screen)
        ),
        look.quiet(),
    ));
    frame.render_widget(Paragraph::new(line), tabs);

    let rows = screen.table.as_ref().map_or(&[][..], |table| &table.rows);
    let heading = |text: &'static str, is_sorted: bool| {
        let style = if is_sorted {
            Look::strong().underlined()
        } else {
            look.quiet()
        };
        Cell::from(Line::styled(text, style).alignment(Alignment::Right))
    };
    let shown: Vec<(&str, Vec<String>)> = rows
        .iter()
        .skip(screen.offset)
        .take(screen.page)
        .map(|row| (K::key(row), K::cells(row)))
        .collect();
    let widths = K::headings().iter().enumerate().map(|(at, heading)| {
        let cells = shown.iter().filter_map(|(_, cells)| cells.get(at));
        let longest = cells.map(|cell| cell.chars().count()).max();
        longest.unwrap_or(0).max(heading.1.into())
    });
    let widths = columns(widths, body.width);
    let count = widths.len() - 1;
    let header = Row::new(
        std::iter::once(Cell::from(Span::styled("KEY", look.quiet()))).chain(
            K::headings()
                .iter()
                .take(count)
                .map(|(text, _, sort)| heading(text, *sort == Some(screen.sort))),
        ),
    );
    let shown = shown.into_iter().map(|(key, cells)| {
        let key = match key {
            "" => "(none)",
            key => key,
        };
        let cells = cells.into_iter().take(count);
        Row::new(
            std::iter::once(Cell::from(key))
                .chain(cells.map(|text| Cell::from(Line::from(text).alignment(Alignment::Right)))),
        )
    });
    frame.render_widget(
        Table::new(shown, widths).header(header).column_spacing(1),
        body,
    );
}

fn draw_keys(frame: &mut Frame<'_>, area: Rect, look: &Look) {
    let keys = [
        ("q", "quit"),
        ("tab", "table"),
        ("s", "sort"),
        ("w", "window"),
        ("p", "pause"),
        ("up/down", "scroll"),
    ];
    let mut line = Line::default();
    for (key, what) in keys {
        line.push_span(Span::styled(key, Look::strong()));
        line.push_span(Span::styled(format!(" {what}   "), look.quiet()));
    }
    frame.render_widget(Paragraph::new(line), area);
}
