//! The automaton of Aho and Corasick as one dense table.
//!
//! One load takes it from a state and a byte to the next state, and never more. Upper and lower case of
//! ASCII share a column, and bytes that no pattern has share one: that makes it half as large as a table
//! by ranges of bytes, and what is used of it stays in the cache beside the packets.

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::noncontiguous::NFA;
use aho_corasick::{Anchored, BuildError, MatchError, MatchKind};
use thiserror::Error;

/// Why there is no table.
#[derive(Debug, Error)]
pub(super) enum TableError {
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Match(#[from] MatchError),
}

/// Columns of a row are a multiple of this, so that few rows lie across one more line of the cache.
const ALIGN: usize = 16;

/// A state: where its row begins.
pub(super) type Row = u32;

/// The row in which a text begins: nothing of any pattern has been seen.
pub(super) const START: Row = 0;

/// States by bytes.
#[derive(Debug, Clone)]
pub(super) struct Table {
    /// Columns of bytes; 0 is that of all bytes that no pattern has.
    columns: [u8; 256],
    /// A row for each state: the next state for each column, and then the state's depth.
    rows: Vec<u32>,
    /// Column of the depth.
    depth: u32,
    /// The first state in which a pattern ends; all that follow are such.
    first_match: Row,
    stride: u32,
    /// The patterns that end in these.
    patterns: Vec<u32>,
}

impl Table {
    /// A table of patterns, in which ASCII letters stand for both cases.
    pub(super) fn new(patterns: &[Vec<u8>]) -> Result<Self, TableError> {
        let automaton = NFA::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(patterns)?;
        let (columns, bytes) = columns(patterns);
        let states = States::of(&automaton, &bytes)?;
        let stride = (bytes.len() + 1).next_multiple_of(ALIGN);
        // States in which something ends come last.
        let mut order: Vec<usize> = (0..states.ids.len()).collect();
        order.sort_by_key(|at| states.is_match.get(*at).copied());
        let mut row_of = vec![START; order.len()];
        for (row, at) in order.iter().enumerate() {
            if let Some(slot) = row_of.get_mut(*at) {
                *slot = to_u32(row * stride);
            }
        }
        let mut rows = Vec::with_capacity(order.len() * stride);
        for &at in &order {
            let next = states.next.chunks_exact(bytes.len()).nth(at);
            let next = next.unwrap_or_default().iter();
            rows.extend(next.map(|to| row_of.get(*to as usize).copied().unwrap_or(START)));
            rows.push(states.depth.get(at).copied().unwrap_or(0));
            rows.resize(rows.len().next_multiple_of(stride), 0);
        }
        let quiet = states.is_match.iter().filter(|is_match| !**is_match);
        let quiet = quiet.count();
        let ends = order.iter().skip(quiet);
        let patterns = ends
            .filter_map(|at| states.ids.get(*at))
            .map(|id| to_u32(automaton.match_pattern(*id, 0).as_usize()))
            .collect();
        Ok(Self {
            columns,
            rows,
            depth: to_u32(bytes.len()),
            first_match: to_u32(quiet * stride),
            stride: to_u32(stride),
            patterns,
        })
    }

    /// The state after one more byte.
    #[inline]
    pub(super) fn next(&self, at: Row, byte: u8) -> Row {
        let [column, ..] = self.columns.get(usize::from(byte)..).unwrap_or_default() else {
            return START;
        };
        let cell = at as usize + usize::from(*column);
        self.rows.get(cell).copied().unwrap_or(START)
    }

    /// Whether a pattern ends here.
    #[inline]
    pub(super) const fn is_match(&self, at: Row) -> bool {
        at >= self.first_match
    }

    /// Bytes of the longest pattern's beginning that ends here.
    #[inline]
    pub(super) fn depth(&self, at: Row) -> usize {
        let cell = at as usize + self.depth as usize;
        self.rows.get(cell).map_or(0, |depth| *depth as usize)
    }

    /// The pattern that ends in a state, the longest of several.
    pub(super) fn pattern(&self, at: Row) -> Option<usize> {
        let behind = at.checked_sub(self.first_match)?;
        let pattern = self.patterns.get((behind / self.stride) as usize)?;
        Some(*pattern as usize)
    }
}

/// Columns of bytes, and a byte of each column.
fn columns(patterns: &[Vec<u8>]) -> ([u8; 256], Vec<Option<u8>>) {
    let mut is_used = [false; 256];
    for byte in patterns.iter().flatten() {
        if let Some(used) = is_used.get_mut(usize::from(byte.to_ascii_lowercase())) {
            *used = true;
        }
    }
    let is_used = |byte: u8| is_used.get(usize::from(byte)) == Some(&true);
    let mut columns = [0; 256];
    let mut bytes = vec![(0..=255).find(|byte: &u8| !is_used(byte.to_ascii_lowercase()))];
    for byte in (0..=255).filter(|byte| is_used(*byte)) {
        // No more than 230: upper case has no column of its own.
        let column = u8::try_from(bytes.len()).unwrap_or(0);
        for byte in [byte, byte.to_ascii_uppercase()] {
            if let Some(slot) = columns.get_mut(usize::from(byte)) {
                *slot = column;
            }
        }
        bytes.push(Some(byte));
    }
    (columns, bytes)
}

/// The states of an automaton that can be reached, the start first, by depth.
#[derive(Debug, Default)]
struct States {
    ids: Vec<StateID>,
    depth: Vec<u32>,
    is_match: Vec<bool>,
    /// For each state and column which state follows.
    next: Vec<u32>,
}

impl States {
    fn of(automaton: &NFA, bytes: &[Option<u8>]) -> Result<Self, MatchError> {
        let start = automaton.start_state(Anchored::No)?;
        let mut states = Self::default();
        let mut place = std::collections::HashMap::from([(start, 0)]);
        states.add(automaton, start, 0);
        let mut at = 0;
        // A state is as deep as the shortest text that leads to it is long.
        while let (Some(&id), Some(&depth)) = (states.ids.get(at), states.depth.get(at)) {
            for byte in bytes {
                let to = byte.map_or(start, |byte| automaton.next_state(Anchored::No, id, byte));
                let next = *place.entry(to).or_insert_with(|| {
                    states.add(automaton, to, depth + 1);
                    states.ids.len() - 1
                });
                states.next.push(to_u32(next));
            }
            at += 1;
        }
        Ok(states)
    }

    fn add(&mut self, automaton: &NFA, id: StateID, depth: u32) {
        self.ids.push(id);
        self.depth.push(depth);
        self.is_match.push(automaton.is_match(id));
    }
}

/// The bound on the patterns keeps every number here below 2^32.
fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
