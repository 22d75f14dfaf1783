//! What the view shows and what keys do to it; no terminal here.

use std::sync::Arc;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use linkweir_live::api::{Meta, Now, Probes, Tick, TopTable, Window, Word};
use linkweir_live::{KeyTable, Kind, LiveOf};

/// Rows asked for: more than a screen has, so that there is something to scroll.
const ROWS: usize = 200;
/// Intervals kept for the curves: more than a screen has columns.
const CURVE: usize = 400;

/// What is to be done after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// The key means nothing.
    Nothing,
    /// Draw again.
    Draw,
    /// Ask for the table again and draw.
    Ask,
    /// Draw everything again: something else wrote to the terminal.
    Repaint,
    /// End the run.
    Quit,
}

/// What is on the screen.
#[derive(Debug)]
pub(super) struct Screen<K: Kind> {
    pub(super) is_coloured: bool,
    pub(super) meta: Option<Meta>,
    /// The last intervals, oldest first.
    pub(super) ticks: Vec<Arc<Tick<K::Figures>>>,
    pub(super) table: Option<TopTable<K::By, K::Row>>,
    /// What there is beside the intervals, where the kind has something.
    pub(super) now: Option<Now<K::Status, K::Event>>,
    /// The probes that the statistics are merged from.
    pub(super) probes: Option<Arc<Probes>>,
    pub(super) by: K::By,
    pub(super) sort: K::Sort,
    pub(super) window: Window,
    /// First row of the table that is shown.
    pub(super) offset: usize,
    /// Rows of the table that were shown last.
    pub(super) page: usize,
    pub(super) is_paused: bool,
    /// Id of the last interval and whether the run had ended, when last looked.
    seen: (u64, bool),
}

/// The first of a choice; each has one.
fn first<T: Word>() -> Option<T> {
    T::ALL.first().copied()
}

/// The one after `now`, the first after the last.
fn next<T: Copy + PartialEq>(all: &[T], now: T) -> T {
    let mut after = all.iter().skip_while(|one| **one != now).skip(1);
    after.next().or_else(|| all.first()).copied().unwrap_or(now)
}

/// The one before `now`, the last before the first.
fn previous<T: Copy + PartialEq>(all: &[T], now: T) -> T {
    let before = all.iter().take_while(|one| **one != now).last();
    before.or_else(|| all.last()).copied().unwrap_or(now)
}

impl<K: Kind> Screen<K> {
    /// The tables that there are: those of countries and AS numbers only where something is known of addresses.
    pub(super) fn tables(&self) -> impl Iterator<Item = (K::By, &'static KeyTable)> + use<K> {
        let has_places = self.meta.as_ref().is_some_and(|meta| meta.places);
        let all = K::By::ALL.iter().copied().zip(K::TABLES);
        all.filter(move |(_, table)| has_places || !table.needs_places())
    }

    fn all_by(&self) -> Vec<K::By> {
        self.tables().map(|(by, _)| by).collect()
    }

    pub(super) fn new(is_coloured: bool) -> Option<Self> {
        Some(Self {
            is_coloured,
            meta: None,
            ticks: Vec::new(),
            table: None,
            now: None,
            probes: None,
            by: first()?,
            sort: first()?,
            window: Window::FiveMinutes,
            offset: 0,
            page: 1,
            is_paused: false,
            seen: (0, false),
        })
    }

    /// The last interval.
    pub(super) fn last(&self) -> Option<&Tick<K::Figures>> {
        self.ticks.last().map(AsRef::as_ref)
    }

    /// Whether there is something new since [`Screen::refresh`].
    pub(super) fn is_behind(&self, live: &LiveOf<K>) -> bool {
        self.seen != (live.last_id(), live.is_finished())
    }

    /// Takes what is new; of a paused view only whether the run has ended.
    pub(super) fn refresh(&mut self, live: &LiveOf<K>) {
        // Before the intervals are read: one that is closed in between is seen the next time.
        self.seen = (live.last_id(), live.is_finished());
        self.meta = Some(live.meta());
        if self.is_paused {
            return;
        }
        let known = self.last().map_or(0, |tick| tick.id);
        let after = known.max(self.seen.0.saturating_sub(CURVE as u64));
        self.ticks.extend(live.ticks_after(after));
        let surplus = self.ticks.len().saturating_sub(CURVE);
        self.ticks.drain(..surplus);
        self.now = K::HAS_STATUS.then(|| live.now());
        self.probes = live.probes();
        self.ask(live);
    }

    /// Asks for the table as it is chosen now.
    pub(super) fn ask(&mut self, live: &LiveOf<K>) {
        self.table = Some(live.top(self.by, self.sort, self.window, ROWS));
    }

    /// Furthest that the table can be scrolled.
    fn end(&self) -> usize {
        let rows = self.table.as_ref().map_or(0, |table| table.rows.len());
        rows.saturating_sub(self.page)
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> After {
        let page = self.page.max(1);
        match key.code {
            // In raw mode the terminal makes no signal of it.
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return After::Quit;
            }
            KeyCode::Char('l') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return After::Repaint;
            }
            KeyCode::Char('q') => return After::Quit,
            KeyCode::Tab | KeyCode::Right => self.by = next(&self.all_by(), self.by),
            KeyCode::BackTab | KeyCode::Left => self.by = previous(&self.all_by(), self.by),
            KeyCode::Char('s') => self.sort = next(K::Sort::ALL, self.sort),
            KeyCode::Char('w') => self.window = next(Window::ALL, self.window),
            KeyCode::Char('p' | ' ') => {
                self.is_paused = !self.is_paused;
                // What came while it was paused is taken at once.
                self.seen = (u64::MAX, false);
                return After::Draw;
            }
            KeyCode::Down | KeyCode::Char('j') => {
                return self.scroll(self.offset.saturating_add(1));
            }
            KeyCode::Up | KeyCode::Char('k') => return self.scroll(self.offset.saturating_sub(1)),
            KeyCode::PageDown => return self.scroll(self.offset.saturating_add(page)),
            KeyCode::PageUp => return self.scroll(self.offset.saturating_sub(page)),
            KeyCode::Home => return self.scroll(0),
            KeyCode::End => return self.scroll(usize::MAX),
            _ => return After::Nothing,
        }
        self.offset = 0;
        After::Ask
    }

    fn scroll(&mut self, to: usize) -> After {
        self.offset = to.min(self.end());
        After::Draw
    }
}
