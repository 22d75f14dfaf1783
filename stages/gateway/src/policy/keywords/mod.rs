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

#[cfg(test)]
mod tests {
    use aho_corasick::{AhoCorasick, MatchKind};
    use proptest::prelude::*;

    use super::Keywords;

    /// All that is found in a text that comes in pieces: the word, and where it ends.
    fn all(keywords: &Keywords, pieces: &[&[u8]]) -> Vec<(usize, String)> {
        let mut state = keywords.start();
        let (mut found, mut before) = (Vec::new(), 0);
        for piece in pieces {
            // A match leaves the rest: it is given again, from each place on, until it ends there.
            let mut at = 0;
            while at < piece.len() {
                let mut end = at;
                let (word, behind) = loop {
                    end += 1;
                    let mut next = state;
                    let word = keywords.find(&mut next, &piece[at..end]);
                    if word.is_some() || end == piece.len() {
                        break (word, next);
                    }
                };
                let mut whole = state;
                assert_eq!(keywords.find(&mut whole, &piece[at..]), word);
                if let Some(word) = word {
                    found.push((before + end, word.to_owned()));
                }
                state = behind;
                at = end;
            }
            before += piece.len();
        }
        found
    }

    /// What an automaton of another kind finds in the whole text.
    fn expected(words: &[String], text: &[u8]) -> Vec<usize> {
        let wide = |word: &String, to_bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            word.encode_utf16().flat_map(to_bytes).collect()
        };
        let mut patterns: Vec<Vec<u8>> = Vec::new();
        for word in words {
            patterns.push(word.clone().into_bytes());
            patterns.push(wide(word, u16::to_le_bytes));
            patterns.push(wide(word, u16::to_be_bytes));
        }
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(patterns)
            .unwrap();
        let mut ends: Vec<usize> = automaton
            .find_overlapping_iter(text)
            .map(|found| found.end())
            .collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// Words of few letters, so that they begin and end in one another; the shortest decides the filter.
    fn words() -> impl Strategy<Value = Vec<String>> {
        (1_usize..12).prop_flat_map(|shortest| {
            let word = proptest::collection::vec(proptest::sample::select(b"abAB".as_slice()), {
                shortest..shortest + 6
            });
            let word = word.prop_map(|letters| String::from_utf8(letters).unwrap());
            proptest::collection::vec(word, 1..6)
        })
    }

    /// Letters, and words in one of their three forms.
    fn text(words: Vec<String>) -> impl Strategy<Value = (Vec<String>, Vec<u8>)> {
        let noise =
            proptest::collection::vec(proptest::sample::select(b"abABc\0".as_slice()), 0..9);
        let count = words.len();
        let part = (noise, 0..count, 0_u8..4);
        proptest::collection::vec(part, 0..12).prop_map(move |parts| {
            let mut text = Vec::new();
            for (noise, which, form) in parts {
                text.extend(noise);
                let word = words[which].bytes();
                match form {
                    0 => text.extend(word),
                    1 => text.extend(word.flat_map(|byte| [byte, 0])),
                    2 => text.extend(word.flat_map(|byte| [0, byte])),
                    _ => {}
                }
            }
            (words.clone(), text)
        })
    }

    proptest! {
        /// Nothing is missed and nothing invented, wherever the pieces are cut.
        #[test]
        fn as_an_automaton_over_the_whole_text(
            (words, text) in words().prop_flat_map(text),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..5),
        ) {
            let keywords = Keywords::new(words.clone()).unwrap();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
            let found: Vec<usize> = all(&keywords, &pieces).into_iter().map(|(end, _)| end).collect();
            prop_assert_eq!(found, expected(&words, &text));
        }
    }

    #[test]
    fn the_longest_word_that_ends_is_told() {
        let keywords = Keywords::new(vec!["berg".into(), "zauberberg".into()]).unwrap();
        let found = all(&keywords, &[b"der Zau", b"berBERG, ein Berg"]);
        let expected = [(14, "zauberberg".to_owned()), (24, "berg".to_owned())];
        assert_eq!(found, expected);
    }

    #[test]
    fn short_words_need_no_filter() {
        for (word, has_filter) in [("abc", false), ("abcd", true), ("\u{e4}\u{e4}", true)] {
            let keywords = Keywords::new(vec![word.into(), "longer word".into()]).unwrap();
            assert_eq!(keywords.filter.is_some(), has_filter, "{word}");
            let text = format!("{}{word}", "x".repeat(50));
            assert_eq!(keywords.find_in(text.as_bytes()), Some(word));
        }
    }

    #[test]
    fn every_byte_can_be_in_a_keyword() {
        let words: Vec<String> = (1..=0x7ff_u32)
            .filter_map(char::from_u32)
            .map(|letter| format!("<{letter}>{letter}"))
            .collect();
        let keywords = Keywords::new(words.clone()).unwrap();
        for word in words {
            let found = keywords.find_in(format!("before {word} behind").as_bytes());
            // Several letters may be the upper case of one.
            assert_eq!(found.map(str::to_uppercase), Some(word.to_uppercase()));
        }
    }
}
