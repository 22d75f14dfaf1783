//! The dynamic table as an observer has it (RFC 7541 sec. 2.3.2).

use std::collections::VecDeque;

/// What an entry counts beside its name and value (RFC 7541 sec. 4.1).
const OVERHEAD: usize = 32;

/// A name and a value; `None` is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Field<'a> {
    /// The name, in lower case as it is sent.
    pub name: Option<&'a [u8]>,
    /// The value.
    pub value: Option<&'a [u8]>,
}

/// Where an entry stands; the bytes of the name come first.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Offset of its bytes since the table began.
    at: usize,
    /// Bytes of its name; `None` is not known.
    name: Option<u32>,
    /// Bytes of its value; `None` is not known.
    value: Option<u32>,
}

impl Place {
    fn len(&self) -> usize {
        let [name, value] = [self.name, self.value].map(|len| len.unwrap_or_default() as usize);
        name + value
    }
}

/// Entries from the newest to the oldest, of bounded size.
///
/// Shape: the bytes of all entries one behind the other, and 24 bytes an entry. Cost: an entry is copied once,
/// and at most once more when the bytes of those that left are cut off.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    entries: VecDeque<Place>,
    pub(crate) bytes: Vec<u8>,
    /// The offset of the first of `bytes`.
    base: usize,
    pub(crate) size: usize,
    limit: usize,
}

impl Table {
    /// An empty one that takes so many bytes by the count of RFC 7541 sec. 4.1.
    pub(crate) fn of(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Bytes of memory that it has.
    pub(crate) fn held(&self) -> usize {
        self.bytes.capacity() + self.entries.capacity() * size_of::<Place>()
    }

    /// The entry of a number, 0 being the newest.
    pub(crate) fn get(&self, number: usize) -> Option<Field<'_>> {
        let last = self.entries.len().checked_sub(1)?;
        let place = self.entries.get(last.checked_sub(number)?)?;
        let at = place.at - self.base;
        let behind_name = at + place.name.unwrap_or_default() as usize;
        let part = |from: usize, len: Option<u32>| self.bytes.get(from..from + len? as usize);
        Some(Field {
            name: part(at, place.name),
            value: part(behind_name, place.value),
        })
    }

    /// Inserts an entry, which may push out the oldest ones; one that is larger than the table empties it
    /// (RFC 7541 sec. 4.4).
    pub(crate) fn insert(&mut self, field: Field<'_>) {
        let at = self.base + self.bytes.len();
        let len = |part: Option<&[u8]>| u32::try_from(part?.len()).ok();
        let place = Place {
            at,
            name: len(field.name),
            value: len(field.value),
        };
        self.shrink(self.limit.saturating_sub(place.len() + OVERHEAD));
        if place.len() + OVERHEAD > self.limit {
            return;
        }
        for part in [field.name, field.value].into_iter().flatten() {
            self.bytes.extend_from_slice(part);
        }
        self.size += place.len() + OVERHEAD;
        self.entries.push_back(place);
    }

    /// Takes a new bound, bytes by the count of RFC 7541 sec. 4.1.
    pub(crate) fn resize(&mut self, limit: usize) {
        self.limit = limit;
        self.shrink(limit);
    }

    fn shrink(&mut self, to: usize) {
        while self.size > to {
            let Some(place) = self.entries.pop_front() else {
                break;
            };
            self.size -= place.len() + OVERHEAD;
        }
        let first = self.entries.front().map(|place| place.at);
        let gone = first.map_or(self.bytes.len(), |at| at - self.base);
        if gone > self.bytes.len() / 2 {
            self.bytes.drain(..gone);
            self.base += gone;
        }
    }
}
