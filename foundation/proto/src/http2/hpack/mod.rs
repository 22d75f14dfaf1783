//! HPACK as an observer reads it: header blocks to fields (RFC 7541).
//!
//! An observer may join a connection late, or miss a block. Indices count from the newest entry, so what was inserted
//! since is found exactly, and what lies behind it is not known: [`Field`] says so and nothing is guessed. After a
//! block that may have been missed, [`Decoder::forget`] gives up what is known.

mod fixed;
mod huffman;
mod known;
pub(crate) mod table;
#[cfg(test)]
mod tests;

pub(crate) use known::Known;
pub use table::Field;
use table::Table;

/// The size of a dynamic table before anybody says another one (RFC 9113 sec. 6.5.2).
const DEFAULT_SIZE: usize = 4096;
/// The largest table that is kept; of an encoder that uses a larger one the oldest entries are not known.
pub const MAX_TABLE: usize = 64 << 10;
/// The most that the fields of one block may hold, names and values: a block of 64 KiB can name an entry as large
/// as the table in every byte.
pub const MAX_FIELDS: usize = 256 << 10;

/// Why a block could not be decoded to its end; the rest of the connection decodes as after a late join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It ends inside a field.
    Cut,
    /// A number is larger than any that can be meant (RFC 7541 sec. 5.1).
    Number,
    /// A string is not one of the Huffman code.
    Huffman,
    /// Index 0, which stands for nothing (RFC 7541 sec. 6.1).
    Index,
    /// It is longer than what is kept of one, or comes in too many parts.
    Long,
}

/// What one block came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Decoded {
    /// Fields.
    pub fields: u32,
    /// Of these, fields whose name or value is not known.
    pub unknown: u32,
    /// Of these, fields that were not given: the block holds more than [`MAX_FIELDS`].
    pub withheld: u32,
}

/// The state of one direction of a connection.
///
/// Shape: the entries of the dynamic table, at most [`MAX_TABLE`] bytes by the count of the RFC.
#[derive(Debug, Clone)]
pub struct Decoder {
    table: Table,
}

/// Room for the strings of a field that are not in a block as they are; connections share one.
#[derive(Debug, Clone, Default)]
pub struct Strings {
    pub(crate) name: Vec<u8>,
    pub(crate) value: Vec<u8>,
    pub(crate) known: Known,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// For a connection that is seen from its beginning.
    #[must_use]
    pub fn new() -> Self {
        Self {
            table: Table::of(DEFAULT_SIZE),
        }
    }

    /// For a connection that has had blocks already: how large its table may be is not known.
    #[must_use]
    pub fn joined_late() -> Self {
        Self {
            table: Table::of(MAX_TABLE),
        }
    }

    /// Bytes that it keeps.
    #[must_use]
    pub fn held(&self) -> usize {
        self.table.held()
    }

    /// A block, or a part of one, was not seen: what the table holds is not known any more.
    pub fn forget(&mut self) {
        *self = Self::joined_late();
    }

    /// Decodes a block: gives its fields in order. The value of one whose name nobody `wants` may come empty: strings
    /// that the table does not take are then passed over.
    ///
    /// # Errors
    /// Where it is not a block; what was given so far stands, and the table is forgotten.
    pub fn decode(
        &mut self,
        block: &[u8],
        strings: &mut Strings,
        wants: impl Fn(&[u8]) -> bool,
        on_field: impl FnMut(Field<'_>),
    ) -> Result<Decoded, Fault> {
        let decoded = self.fields(block, strings, wants, on_field);
        if decoded.is_err() {
            self.forget();
        }
        decoded
    }

    fn fields(
        &mut self,
        block: &[u8],
        strings: &mut Strings,
        wants: impl Fn(&[u8]) -> bool,
        mut on_field: impl FnMut(Field<'_>),
    ) -> Result<Decoded, Fault> {
        let mut rest = Rest(block);
        let mut decoded = Decoded::default();
        let mut held = 0_usize;
        while let Some(first) = rest.0.first() {
            // The first bits say what follows (RFC 7541 sec. 6).
            let (prefix, is_inserted) = match first.leading_zeros() {
                0 => (7, false),
                1 => (6, true),
                2 => {
                    let size = rest.number(5)?;
                    self.table.resize(size.min(MAX_TABLE));
                    continue;
                }
                _ => (4, false),
            };
            let index = rest.number(prefix)?;
            let Strings { name, value, known } = &mut *strings;
            let field = match (prefix, index) {
                (7, 0) => return Err(Fault::Index),
                (7, _) => self.entry(index),
                _ => {
                    let name = match index {
                        0 => Some(rest.string(7, name, known)?),
                        _ => self.entry(index).name.map(|entry| {
                            name.clear();
                            name.extend_from_slice(entry);
                            name.as_slice()
                        }),
                    };
                    let is_of_use = is_inserted || name.is_none_or(&wants);
                    let value = match is_of_use {
                        true => rest.string(7, value, known)?,
                        false => {
                            rest.coded(7)?;
                            &[]
                        }
                    };
                    let value = Some(value);
                    let field = Field { name, value };
                    if is_inserted {
                        self.table.insert(field);
                    }
                    field
                }
            };
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
        Ok(decoded)
    }

    /// The entry of an index from 1 on: of the static table, or of the dynamic one behind it.
    fn entry(&self, index: usize) -> Field<'_> {
        if let Some((name, value)) = fixed::ENTRIES.get(index.wrapping_sub(1)) {
            return Field {
                name: Some(name),
                value: Some(value),
            };
        }
        let number = index.saturating_sub(fixed::ENTRIES.len() + 1);
        self.table.get(number).unwrap_or_default()
    }
}

/// What is left of a block.
pub(crate) struct Rest<'a>(pub(crate) &'a [u8]);

impl<'a> Rest<'a> {
    /// A number whose first bits are the last `prefix` ones of the next byte (RFC 7541 sec. 5.1).
    pub(crate) fn number(&mut self, prefix: u32) -> Result<usize, Fault> {
        let (first, mut rest) = self.0.split_first().ok_or(Fault::Cut)?;
        let all = (1 << prefix) - 1;
        let mut number = u32::from(*first) & all;
        if number == all {
            let mut shift = 0;
            loop {
                let (byte, behind) = rest.split_first().ok_or(Fault::Cut)?;
                rest = behind;
                number += u32::from(byte & 0x7F) << shift;
                if byte & 0x80 == 0 {
                    break;
                }
                shift += 7;
                // Up to 2^28, which is more than any block has.
                if shift > 21 {
                    return Err(Fault::Number);
                }
            }
        }
        self.0 = rest;
        Ok(number as usize)
    }

    /// A string; where it is coded, decoded into `into` (RFC 7541 sec. 5.2). Its length has a prefix of `prefix` bits,
    /// and the bit before them says whether it is coded.
    pub(crate) fn string<'b>(
        &mut self,
        prefix: u32,
        into: &'b mut Vec<u8>,
        known: &mut Known,
    ) -> Result<&'b [u8], Fault>
    where
        'a: 'b,
    {
        let (is_coded, bytes) = self.coded(prefix)?;
        if !is_coded {
            return Ok(bytes);
        }
        known.decode(bytes, into).ok_or(Fault::Huffman)?;
        Ok(into)
    }

    /// A string as it stands, and whether it is coded.
    fn coded(&mut self, prefix: u32) -> Result<(bool, &'a [u8]), Fault> {
        let is_coded = self.0.first().ok_or(Fault::Cut)? & 1 << prefix != 0;
        let len = self.number(prefix)?;
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(Fault::Cut)?;
        self.0 = rest;
        Ok((is_coded, bytes))
    }
}
