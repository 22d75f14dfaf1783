//! The dictionary of a column of texts or bytes.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::dictionary::Dictionary;
use crate::text;

/// Appends a text as it stands in a page: its length in four bytes, then what `write` appends.
#[inline]
pub(super) fn push_text(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = u32::try_from(out.len() - start - 4).unwrap_or(0);
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&length.to_le_bytes());
    }
}

/// A text that is in the dictionary.
#[derive(Debug, Clone, Copy)]
struct Known {
    hash: u64,
    key: u32,
    /// Whether it stands in the page with escapes, so that its bytes there are not those of the network.
    is_escaped: bool,
}

/// The dictionary of a column of texts, which are valid UTF-8 by the rule of [`text`], or of bytes.
#[derive(Debug)]
pub(super) struct Texts {
    is_text: bool,
    keys: HashTable<Known>,
    hasher: DefaultHashBuilder,
    page: Vec<u8>,
    /// Where each text ends in the page.
    ends: Vec<usize>,
    /// The text that was looked up last, where it stands as it is.
    last: Option<u32>,
    scratch: String,
}

impl Texts {
    /// Without values.
    pub(super) fn new(is_text: bool) -> Self {
        Self {
            is_text,
            keys: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            page: Vec::new(),
            ends: Vec::new(),
            last: None,
            scratch: String::new(),
        }
    }

    /// A text that is not there as it stands: new, or one that stands with escapes.
    fn other_key(&mut self, hash: u64, bytes: &[u8]) -> u32 {
        let Self {
            keys, page, ends, ..
        } = self;
        let is_escaped = self.is_text && text::as_it_is(bytes).is_none();
        let (hash, bytes) = if is_escaped {
            let bytes = text::escaped(bytes, &mut self.scratch).as_bytes();
            (self.hasher.hash_one(bytes), bytes)
        } else {
            (hash, bytes)
        };
        let next = u32::try_from(ends.len()).unwrap_or(u32::MAX);
        let of_escaped = |known: &&Known| known.is_escaped && at(page, ends, known.key) == bytes;
        if is_escaped && let Some(known) = keys.iter_hash(hash).find(of_escaped) {
            return known.key;
        }
        push_text(page, |page| page.extend_from_slice(bytes));
        ends.push(page.len());
        let known = Known {
            hash,
            key: next,
            is_escaped,
        };
        keys.insert_unique(hash, known, |known| known.hash);
        next
    }
}

/// The text with a key.
#[inline]
fn at<'a>(page: &'a [u8], ends: &[usize], key: u32) -> &'a [u8] {
    let key = key as usize;
    let start = key
        .checked_sub(1)
        .and_then(|before| ends.get(before))
        .copied();
    let Some(end) = ends.get(key) else {
        return &[];
    };
    page.get(start.unwrap_or(0) + 4..*end).unwrap_or_default()
}

impl Dictionary for Texts {
    type Value<'a> = &'a [u8];

    #[inline]
    fn key(&mut self, bytes: &[u8]) -> u32 {
        if let Some(last) = self.last
            && at(&self.page, &self.ends, last) == bytes
        {
            return last;
        }
        let hash = self.hasher.hash_one(bytes);
        let as_it_is = |known: &Known| {
            known.hash == hash
                && !known.is_escaped
                && at(&self.page, &self.ends, known.key) == bytes
        };
        if let Some(known) = self.keys.find(hash, as_it_is) {
            self.last = Some(known.key);
            return known.key;
        }
        self.other_key(hash, bytes)
    }

    fn push_plain(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let bytes = if self.is_text {
            text::valid(bytes, &mut self.scratch).as_bytes()
        } else {
            bytes
        };
        push_text(out, |out| out.extend_from_slice(bytes));
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn bytes(&self) -> usize {
        self.page.len()
    }

    fn take(&mut self) -> Vec<u8> {
        self.keys.clear();
        self.ends.clear();
        self.last = None;
        std::mem::take(&mut self.page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_key_also_where_it_is_escaped() {
        let mut texts = Texts::new(true);
        let cases: [(&[u8], u32, &[u8]); 9] = [
            (b"GET", 0, b"GET"),
            (b"", 1, b""),
            (b"a\xff", 2, b"a\\xff"),
            (b"GET", 0, b"GET"),
            // The same text as that of the third, but of other bytes.
            (b"a\\xff", 3, b"a\\x5cxff"),
            (b"a\xff", 2, b"a\\xff"),
            (b"a\\xff", 3, b"a\\x5cxff"),
            (b"a\\x5cxff", 4, b"a\\x5cx5cxff"),
            ("zażółć".as_bytes(), 5, "zażółć".as_bytes()),
        ];
        for _ in 0..2 {
            for (bytes, key, text) in cases {
                assert_eq!(texts.key(bytes), key, "{}", bytes.escape_ascii());
                assert_eq!(at(&texts.page, &texts.ends, key), text);
                let mut plain = Vec::new();
                texts.push_plain(bytes, &mut plain);
                assert_eq!(plain.get(4..), Some(text));
            }
        }
        assert_eq!(texts.len(), 6);
        assert_eq!(texts.take().get(..11), Some(&b"\x03\0\0\0GET\0\0\0\0"[..]));
        assert_eq!((texts.key(b"POST"), texts.len()), (0, 1));
    }

    #[test]
    fn bytes_stay_what_they_are() {
        let mut texts = Texts::new(false);
        for _ in 0..2 {
            assert_eq!(texts.key(b"\xff\\x00"), 0);
            assert_eq!(texts.key(b"\xff"), 1);
        }
        assert_eq!(texts.take(), b"\x05\0\0\0\xff\\x00\x01\0\0\0\xff");
    }
}
