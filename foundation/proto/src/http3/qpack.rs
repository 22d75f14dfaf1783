//! QPACK as an observer reads it: field sections to fields (RFC 9204).
//!
//! A section names entries of a dynamic table by their place since the connection began, and says how many must have
//! been inserted for that. The insertions come on another stream, which may be late: such a section waits. Where bytes
//! of that stream are lost, entries of the table are not known any more, and nothing is guessed.

use super::fixed;
use crate::http2::hpack::table::Table;
use crate::http2::hpack::{Decoded, Fault, Field, MAX_FIELDS, MAX_TABLE, Rest, Strings};

/// What an entry counts at least (RFC 9204 sec. 3.2.1).
const ENTRY: usize = 32;

/// What became of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// Its fields were given.
    Read(Decoded),
    /// Entries that it names are not inserted yet; nothing was given.
    Waits,
}

/// The table of what one side sends.
///
/// Shape: the entries of the dynamic table, at most [`MAX_TABLE`] bytes by the count of the RFC.
#[derive(Debug, Clone, Default)]
pub struct Decoder {
    table: Table,
    /// Entries inserted since the connection began.
    inserted: usize,
    /// The largest table that the other side allows, in entries; `None` where it did not say.
    max_entries: Option<usize>,
    /// Whether insertions were lost.
    is_lost: bool,
}

/// What a section says of the table.
#[derive(Debug, Clone, Copy)]
struct Prefix {
    required: usize,
    base: usize,
    /// Whether these numbers are known: else no dynamic entry is.
    is_known: bool,
}

impl Decoder {
    /// The other side allows a table of so many bytes (`SETTINGS_QPACK_MAX_TABLE_CAPACITY`).
    pub fn allow(&mut self, capacity: u64) {
        let capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
        self.max_entries = Some(capacity / ENTRY);
    }

    /// Bytes of the stream of insertions are lost: dynamic entries are not known from here on.
    pub fn lose(&mut self) {
        *self = Self {
            max_entries: self.max_entries,
            is_lost: true,
            ..Self::default()
        };
    }

    /// Bytes that it keeps.
    #[must_use]
    pub fn held(&self) -> usize {
        self.table.held()
    }

    /// Reads instructions of the encoder (RFC 9204 sec. 4.3), as far as they are whole; how many bytes that were.
    ///
    /// # Errors
    /// Where they are none; the table is then lost.
    pub fn instructions(&mut self, bytes: &[u8], strings: &mut Strings) -> Result<usize, Fault> {
        let mut read = 0;
        while !self.is_lost && read < bytes.len() {
            let mut rest = Rest(bytes.get(read..).unwrap_or_default());
            match self.instruction(&mut rest, strings) {
                Ok(()) => read = bytes.len() - rest.0.len(),
                Err(Fault::Cut) => return Ok(read),
                Err(fault) => {
                    self.lose();
                    return Err(fault);
                }
            }
        }
        Ok(if self.is_lost { bytes.len() } else { read })
    }

    fn instruction(&mut self, rest: &mut Rest<'_>, strings: &mut Strings) -> Result<(), Fault> {
        let first = *rest.0.first().ok_or(Fault::Cut)?;
        let Strings {
            name,
            value,
            known: strings,
        } = strings;
        match first.leading_zeros() {
            // With the name of an entry.
            0 => {
                let is_static = first & 0x40 != 0;
                let index = rest.number(6)?;
                let known = if is_static {
                    fixed_entry(index)?.name
                } else {
                    self.relative(self.inserted, index)?.name
                };
                let known = keep(known, name);
                let value = Some(rest.string(7, value, strings)?);
                self.insert(Field { name: known, value });
            }
            // With a name of its own.
            1 => {
                let name = Some(rest.string(5, name, strings)?);
                let value = Some(rest.string(7, value, strings)?);
                self.insert(Field { name, value });
            }
            // The size of the table.
            2 => {
                let capacity = rest.number(5)?;
                self.table.resize(capacity.min(MAX_TABLE));
            }
            // An entry once more.
            _ => {
                let index = rest.number(5)?;
                let entry = self.relative(self.inserted, index)?;
                let (name, value) = (keep(entry.name, name), keep(entry.value, value));
                self.insert(Field { name, value });
            }
        }
        Ok(())
    }

    fn insert(&mut self, field: Field<'_>) {
        self.table.insert(field);
        self.inserted = self.inserted.saturating_add(1);
    }

    /// The entry `index` before `base` (RFC 9204 sec. 3.2.5).
    fn relative(&self, base: usize, index: usize) -> Result<Field<'_>, Fault> {
        let number = base.checked_sub(index + 1).ok_or(Fault::Index)?;
        self.absolute(number)
    }

    /// The entry of a number since the connection began; one that has left is not known, one that is not there yet
    /// cannot be named.
    fn absolute(&self, number: usize) -> Result<Field<'_>, Fault> {
        let from_newest = self.inserted.checked_sub(number + 1).ok_or(Fault::Index)?;
        Ok(self.table.get(from_newest).unwrap_or_default())
    }

    /// Reads a section: gives its fields in order.
    ///
    /// # Errors
    /// Where it is none; what was given so far stands.
    pub fn decode<'a>(
        &'a self,
        section: &'a [u8],
        strings: &mut Strings,
        mut on_field: impl FnMut(Field<'_>),
    ) -> Result<Section, Fault> {
        let mut rest = Rest(section);
        let prefix = self.prefix(&mut rest)?;
        if prefix.is_known && prefix.required > self.inserted {
            return Ok(Section::Waits);
        }
        let mut decoded = Decoded::default();
        let mut held = 0_usize;
        while !rest.0.is_empty() {
            let field = self.line(&mut rest, prefix, strings)?;
            let len = |part: Option<&[u8]>| part.map_or(0, <[u8]>::len);
            held = held.saturating_add(len(field.name) + len(field.value));
            decoded.fields += 1;
            decoded.unknown += u32::from(field.name.is_none() || field.value.is_none());
            if held <= MAX_FIELDS {
                on_field(field);
            } else {
                decoded.withheld += 1;
            }
        }
        Ok(Section::Read(decoded))
    }

    /// RFC 9204 sec. 4.5.1.
    fn prefix(&self, rest: &mut Rest<'_>) -> Result<Prefix, Fault> {
        let encoded = rest.number(8)?;
        let is_behind = rest.0.first().ok_or(Fault::Cut)? & 0x80 != 0;
        let delta = rest.number(7)?;
        let required = match (encoded, self.max_entries) {
            (0, _) => Some(0),
            (_, None | Some(0)) => None,
            _ if self.is_lost => None,
            (_, Some(max_entries)) => {
                let range = 2 * max_entries;
                if encoded > range {
                    return Err(Fault::Number);
                }
                let most = self.inserted + max_entries;
                let wrapped = most / range * range;
                let count = wrapped + encoded - 1;
                let count = match count > most {
                    true => count.checked_sub(range).ok_or(Fault::Number)?,
                    false => count,
                };
                Some(count)
            }
        };
        let Some(required) = required else {
            return Ok(Prefix {
                required: 0,
                base: 0,
                is_known: false,
            });
        };
        let base = match is_behind {
            true => required.checked_sub(delta + 1).ok_or(Fault::Index)?,
            false => required.saturating_add(delta),
        };
        Ok(Prefix {
            required,
            base,
            is_known: true,
        })
    }

    /// RFC 9204 sec. 4.5.2 to 4.5.6.
    fn line<'a, 'b>(
        &'a self,
        rest: &mut Rest<'a>,
        prefix: Prefix,
        strings: &'b mut Strings,
    ) -> Result<Field<'b>, Fault>
    where
        'a: 'b,
    {
        let first = *rest.0.first().ok_or(Fault::Cut)?;
        let Strings {
            name,
            value,
            known: strings,
        } = strings;
        let before = |index: usize| match prefix.is_known {
            true => self.relative(prefix.base, index),
            false => Ok(Field::default()),
        };
        let behind = |index: usize| match prefix.is_known {
            true => self.absolute(prefix.base.saturating_add(index)),
            false => Ok(Field::default()),
        };
        let known = match first.leading_zeros() {
            0 => {
                let is_static = first & 0x40 != 0;
                let index = rest.number(6)?;
                return if is_static {
                    fixed_entry(index)
                } else {
                    before(index)
                };
            }
            1 => {
                let is_static = first & 0x10 != 0;
                let index = rest.number(4)?;
                if is_static {
                    fixed_entry(index)
                } else {
                    before(index)
                }?
                .name
            }
            2 => Some(rest.string(3, name, strings)?),
            3 => {
                let index = rest.number(4)?;
                return behind(index);
            }
            _ => {
                let index = rest.number(3)?;
                behind(index)?.name
            }
        };
        Ok(Field {
            name: known,
            value: Some(rest.string(7, value, strings)?),
        })
    }
}

fn fixed_entry(index: usize) -> Result<Field<'static>, Fault> {
    let (name, value) = fixed::ENTRIES.get(index).ok_or(Fault::Index)?;
    Ok(Field {
        name: Some(name),
        value: Some(value),
    })
}

/// A copy that outlives the entry.
fn keep<'a>(text: Option<&[u8]>, into: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let text = text?;
    into.clear();
    into.extend_from_slice(text);
    Some(into)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
        digits.chunks(2).map(|pair| byte(pair).unwrap()).collect()
    }

    fn fields(decoder: &Decoder, section: &str) -> (Vec<String>, Result<Section, Fault>) {
        let mut out = Vec::new();
        let text = |part: Option<&[u8]>| match part {
            Some(part) => String::from_utf8_lossy(part).into_owned(),
            None => "?".to_owned(),
        };
        let section = decoder.decode(&hex(section), &mut Strings::default(), |field| {
            out.push(format!("{}={}", text(field.name), text(field.value)));
        });
        (out, section)
    }

    fn instruct(decoder: &mut Decoder, text: &str) {
        let bytes = hex(text);
        let read = decoder.instructions(&bytes, &mut Strings::default());
        assert_eq!(read, Ok(bytes.len()));
    }

    /// RFC 9204 appendix B, in its order.
    #[test]
    fn the_examples_of_the_rfc() {
        let mut decoder = Decoder::default();
        decoder.allow(220);
        let (first, _) = fields(&decoder, "0000 510b 2f69 6e64 6578 2e68 746d 6c");
        assert_eq!(first, [":path=/index.html"]);

        let second = "0381 10 11";
        assert_eq!(fields(&decoder, second).1, Ok(Section::Waits));
        instruct(
            &mut decoder,
            "3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d c10c 2f73 616d 706c 652f 7061 7468",
        );
        assert_eq!(
            fields(&decoder, second).0,
            [":authority=www.example.com", ":path=/sample/path"]
        );

        instruct(
            &mut decoder,
            "4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565",
        );
        instruct(&mut decoder, "02");
        let third = "0500 80 c1 81";
        let wanted = [
            ":authority=www.example.com",
            ":path=/",
            "custom-key=custom-value",
        ];
        assert_eq!(fields(&decoder, third).0, wanted);

        // The oldest entry leaves.
        instruct(&mut decoder, "810d 6375 7374 6f6d 2d76 616c 7565 32");
        assert_eq!(
            decoder.absolute(4).unwrap().value,
            Some(&b"custom-value2"[..])
        );
        assert_eq!(decoder.absolute(0), Ok(Field::default()));
        assert_eq!(decoder.absolute(5), Err(Fault::Index));
    }

    #[test]
    fn instructions_may_come_in_any_pieces() {
        let bytes = hex(
            "3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d c10c 2f73 616d 706c 652f 7061 7468",
        );
        for at in 0..bytes.len() {
            let mut decoder = Decoder::default();
            let mut strings = Strings::default();
            let read = decoder.instructions(&bytes[..at], &mut strings).unwrap();
            assert!(read <= at);
            let rest = &bytes[read..];
            assert_eq!(decoder.instructions(rest, &mut strings), Ok(rest.len()));
            assert_eq!(decoder.inserted, 2, "{at}");
        }
    }

    #[test]
    fn behind_a_loss_only_what_stands_in_the_section_is_known() {
        let mut decoder = Decoder::default();
        decoder.allow(220);
        instruct(
            &mut decoder,
            "3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d",
        );
        decoder.lose();
        instruct(&mut decoder, "c10c 2f73 616d 706c 652f 7061 7468");
        let (fields, section) = fields(&decoder, "0500 80 c1 510b 2f69 6e64 6578 2e68 746d 6c 81");
        assert_eq!(fields, ["?=?", ":path=/", ":path=/index.html", "?=?"]);
        let Ok(Section::Read(decoded)) = section else {
            panic!("{section:?}")
        };
        assert_eq!((decoded.fields, decoded.unknown), (4, 2));
    }

    #[test]
    fn what_is_none_is_refused() {
        let mut decoder = Decoder::default();
        decoder.allow(220);
        let refused = |section: &str| fields(&decoder, section).1.unwrap_err();
        // A static entry 99, a count beyond the range, a base before the first.
        assert_eq!(refused("0000 ff24"), Fault::Index);
        assert_eq!(refused("0e00"), Fault::Number);
        assert_eq!(refused("0080"), Fault::Index);
        assert_eq!(refused("00"), Fault::Cut);
        assert_eq!(refused("0000 510b 2f"), Fault::Cut);
        let fault = decoder.instructions(&hex("80"), &mut Strings::default());
        assert_eq!(fault, Err(Fault::Index));
        assert!(decoder.is_lost);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(
            capacity in 0_u64..5000,
            instructions in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
            section in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
        ) {
            let mut decoder = Decoder::default();
            let mut strings = Strings::default();
            decoder.allow(capacity);
            let read = decoder.instructions(&instructions, &mut strings).unwrap_or_default();
            proptest::prop_assert!(read <= instructions.len());
            std::hint::black_box(decoder.decode(&section, &mut strings, |_| {})).ok();
        }
    }
}
