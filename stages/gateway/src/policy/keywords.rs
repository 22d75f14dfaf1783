//! Keywords in a stream: one automaton, whose state is carried from segment to segment.
//!
//! Each keyword is looked for as UTF-8 and as UTF-16 in both byte orders; ASCII letters in both cases,
//! other letters in the two cases of the whole word. A dense automaton needs one load a byte whatever
//! comes, about 0.7 GB/s on one core; its state is four bytes a direction, and no tail is kept.

use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, MatchKind};
use thiserror::Error;

/// Bytes of all keywords in all encodings: bounds the automaton to about 256 MiB.
const MAX_BYTES: usize = 256 * 1024;

/// A set of keywords, compiled.
#[derive(Debug, Clone)]
pub struct Keywords {
    automaton: DFA,
    start: StateID,
    words: Vec<String>,
    /// Which word a pattern of the automaton is a form of.
    word_of: Vec<u32>,
}

/// Where a stream stands in the automaton.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeywordState(StateID);

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
        let wrong = |error: &dyn std::fmt::Display| KeywordsError::Automaton(error.to_string());
        let automaton = DFA::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(&patterns)
            .map_err(|error| wrong(&error))?;
        let start = automaton
            .start_state(Anchored::No)
            .map_err(|error| wrong(&error))?;
        Ok(Self {
            automaton,
            start,
            words,
            word_of,
        })
    }

    /// The state of a stream that begins.
    #[must_use]
    pub const fn start(&self) -> KeywordState {
        KeywordState(self.start)
    }

    /// Takes the next bytes of a stream; the first keyword that ends in them. The state is then right
    /// behind it, and the rest of `bytes` has not been looked at.
    #[must_use]
    pub fn find(&self, state: &mut KeywordState, bytes: &[u8]) -> Option<&str> {
        let mut at = state.0;
        for &byte in bytes {
            at = self.automaton.next_state(Anchored::No, at, byte);
            if self.automaton.is_special(at) && self.automaton.is_match(at) {
                state.0 = at;
                return Some(self.word(at));
            }
        }
        state.0 = at;
        None
    }

    /// The first keyword in a text of its own.
    #[must_use]
    pub fn find_in(&self, text: &[u8]) -> Option<&str> {
        self.find(&mut self.start(), text)
    }

    fn word(&self, at: StateID) -> &str {
        let pattern = self.automaton.match_pattern(at, 0);
        self.word_of
            .get(pattern.as_usize())
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
