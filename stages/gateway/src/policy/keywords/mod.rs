//! Keywords in a stream: one automaton, whose state is carried from segment to segment.
//!
//! Each keyword is looked for as UTF-8 and as UTF-16 in both byte orders; ASCII letters in both cases,
//! other letters in the two cases of the whole word. What is carried is four bytes a direction, and no
//! tail of the text is kept.
//!
//! Where all keywords are long enough ([`Filter`]) the automaton looks only at places at which one may
//! begin. Otherwise, and whatever comes, it takes one load for each byte.

mod filter;
mod table;
#[cfg(test)]
mod tests;

use filter::Filter;
use table::{Row, START, Table};
use thiserror::Error;

/// Bytes of all keywords in all encodings: bounds the automaton to about 256 MiB.
const MAX_BYTES: usize = 256 * 1024;

/// A set of keywords, compiled.
#[derive(Debug, Clone)]
pub struct Keywords {
    table: Table,
    filter: Option<Filter>,
    words: Vec<String>,
    /// Which keyword a pattern of the automaton is a form of.
    word_of: Vec<u32>,
}

/// Where a stream stands in the automaton.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeywordState(Row);

/// Why keywords cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeywordsError {
    /// One is empty.
    #[error("an empty keyword would match everything")]
    Empty,
    /// They are too many.
    #[error("the keywords are too many: {0} bytes in their encodings, at most {MAX_BYTES}")]
    TooMany(usize),
    /// The automaton cannot be built.
    #[error("{0}")]
    Automaton(String),
}

impl Keywords {
    /// Compiles keywords.
    ///
    /// # Errors
    /// One is empty, or they are too many.
    pub fn new(words: Vec<String>) -> Result<Self, KeywordsError> {
        let mut patterns: Vec<Vec<u8>> = Vec::new();
        let mut word_of = Vec::new();
        for (at, word) in words.iter().enumerate() {
            if word.is_empty() {
                return Err(KeywordsError::Empty);
            }
            let mut forms = vec![word.clone(), word.to_lowercase(), word.to_uppercase()];
            if word.is_ascii() {
                forms.truncate(1);
            }
            forms.sort_unstable();
            forms.dedup();
            for form in forms {
                let wide = |to_bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
                    form.encode_utf16().flat_map(to_bytes).collect()
                };
                patterns.push(wide(u16::to_le_bytes));
                patterns.push(wide(u16::to_be_bytes));
                patterns.push(form.into_bytes());
                word_of.extend([u32::try_from(at).unwrap_or(u32::MAX); 3]);
            }
        }
        let bytes = patterns.iter().map(Vec::len).sum();
        if bytes > MAX_BYTES {
            return Err(KeywordsError::TooMany(bytes));
        }
        let table =
            Table::new(&patterns).map_err(|error| KeywordsError::Automaton(error.to_string()))?;
        Ok(Self {
            table,
            filter: Filter::new(&patterns),
            words,
            word_of,
        })
    }

    /// The state of a stream that begins.
    #[must_use]
    pub const fn start(&self) -> KeywordState {
        KeywordState(START)
    }

    /// Takes the next bytes of a stream; the first keyword that ends in them. The state is then right
    /// behind it, and the rest of `bytes` has not been inspected.
    #[must_use]
    pub fn find(&self, state: &mut KeywordState, bytes: &[u8]) -> Option<&str> {
        let Some(filter) = &self.filter else {
            let has_match = self.follow(&mut state.0, bytes);
            return has_match.then(|| self.word(state.0));
        };
        // What began in the bytes before is followed first.
        let (mut place, mut end) = (0, 0);
        loop {
            // Until nothing that began before `end` can match any more.
            while place < end + self.table.depth(state.0) {
                let &byte = bytes.get(place)?;
                state.0 = self.table.next(state.0, byte);
                place += 1;
                if self.table.is_match(state.0) {
                    return Some(self.word(state.0));
                }
            }
            let suspicion = filter.find(bytes, place - self.table.depth(state.0));
            state.0 = START;
            place = suspicion.begin;
            let Some(behind) = suspicion.end else {
                // Too little is left for the filter.
                let rest = bytes.get(place..).unwrap_or_default();
                let has_match = self.follow(&mut state.0, rest);
                return has_match.then(|| self.word(state.0));
            };
            end = behind;
        }
    }

    /// Takes the automaton over bytes, up to the first match.
    fn follow(&self, state: &mut Row, bytes: &[u8]) -> bool {
        let mut at = *state;
        for &byte in bytes {
            at = self.table.next(at, byte);
            if self.table.is_match(at) {
                *state = at;
                return true;
            }
        }
        *state = at;
        false
    }

    /// The first keyword in a text of its own.
    #[must_use]
    pub fn find_in(&self, text: &[u8]) -> Option<&str> {
        self.find(&mut self.start(), text)
    }

    fn word(&self, at: Row) -> &str {
        self.table
            .pattern(at)
            .and_then(|pattern| self.word_of.get(pattern))
            .and_then(|word| self.words.get(*word as usize))
            .map_or("", String::as_str)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}
