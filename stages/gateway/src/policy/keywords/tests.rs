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
    let noise = proptest::collection::vec(proptest::sample::select(b"abABc\0".as_slice()), 0..9);
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
