//! The dictionary of a column of numbers or addresses, and what every dictionary can do.

use std::hash::{BuildHasher, Hash};
use std::net::{IpAddr, Ipv6Addr};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::texts::push_text;
use crate::address::{folded, push_address, slot};

/// The different values of a column, each with a key: its place in the dictionary page.
pub(super) trait Dictionary {
    /// A value as it stands in a record.
    type Value<'a>: Copy;

    /// The key of a value, which is added where it is new.
    fn key(&mut self, value: Self::Value<'_>) -> u32;

    /// Appends a value as it stands in a page without keys, and in the dictionary page (`PLAIN`).
    fn push_plain(&mut self, value: Self::Value<'_>, out: &mut Vec<u8>);

    /// Values so far.
    fn len(&self) -> usize;

    /// Bytes of the dictionary page so far.
    fn bytes(&self) -> usize;

    /// The dictionary page; there are no values then.
    fn take(&mut self) -> Vec<u8>;
}

/// A value that fits a register or two, and how it stands in a page.
pub(super) trait Scalar: Copy + Eq + Hash {
    /// Its bits, those of its host where it is an address, as one number.
    fn bits(self) -> u64;
    /// Appends it to a page.
    fn push(self, out: &mut Vec<u8>);
}

/// A number in four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Four(pub(super) u32);

impl Scalar for Four {
    #[inline]
    fn bits(self) -> u64 {
        u64::from(self.0)
    }

    #[inline]
    fn push(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_le_bytes());
    }
}

/// A number in eight bytes: unsigned, signed, or the bits of one with a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Eight(pub(super) u64);

impl Scalar for Eight {
    #[inline]
    fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    fn push(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_le_bytes());
    }
}

/// An address, which becomes text; IPv4 as the mapped address, of which both forms are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Address(u128);

impl Address {
    /// The unspecified address.
    pub(super) const NOBODY: Self = Self(0);
}

impl From<IpAddr> for Address {
    #[inline]
    fn from(address: IpAddr) -> Self {
        let address = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        Self(address.to_bits())
    }
}

impl Scalar for Address {
    #[inline]
    fn bits(self) -> u64 {
        folded(self.0)
    }

    fn push(self, out: &mut Vec<u8>) {
        let mut text = String::new();
        push_address(&mut text, IpAddr::V6(Ipv6Addr::from_bits(self.0)));
        push_text(out, |out| out.extend_from_slice(text.as_bytes()));
    }
}

/// Values that were looked up last, each in the slot of its bits: a power of two, small enough to stay in
/// the first-level cache.
const RECENT: usize = 128;

/// No value has this key: a dictionary is closed long before.
const NO_KEY: u32 = u32::MAX;

/// The dictionary of a column of such values.
#[derive(Debug)]
pub(super) struct Scalars<T> {
    recent: Box<[(T, u32)]>,
    keys: HashTable<(T, u32)>,
    hasher: DefaultHashBuilder,
    page: Vec<u8>,
}

impl<T: Scalar> Scalars<T> {
    /// Without values; `any` is one, of no meaning.
    pub(super) fn new(any: T) -> Self {
        Self {
            recent: vec![(any, NO_KEY); RECENT].into(),
            keys: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            page: Vec::new(),
        }
    }

    fn key_of_all(&mut self, value: T) -> u32 {
        let Self {
            keys, hasher, page, ..
        } = self;
        let next = u32::try_from(keys.len()).unwrap_or(NO_KEY);
        keys.entry(
            hasher.hash_one(value),
            |(known, _)| *known == value,
            |(known, _)| hasher.hash_one(known),
        )
        .or_insert_with(|| {
            value.push(page);
            (value, next)
        })
        .get()
        .1
    }
}

impl<T: Scalar> Dictionary for Scalars<T> {
    type Value<'a> = T;

    #[inline]
    fn key(&mut self, value: T) -> u32 {
        let slot = slot(value.bits(), RECENT);
        if let Some((known, key)) = self.recent.get(slot)
            && *known == value
            && *key != NO_KEY
        {
            return *key;
        }
        let key = self.key_of_all(value);
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = (value, key);
        }
        key
    }

    #[inline]
    fn push_plain(&mut self, value: T, out: &mut Vec<u8>) {
        value.push(out);
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn bytes(&self) -> usize {
        self.page.len()
    }

    fn take(&mut self) -> Vec<u8> {
        self.keys.clear();
        for (_, key) in &mut self.recent {
            *key = NO_KEY;
        }
        std::mem::take(&mut self.page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_one_key_in_one_page() {
        let mut numbers = Scalars::new(Four(0));
        for round in 0..2 {
            for n in 0..3000_u32 {
                assert_eq!(numbers.key(Four(n * 7)), n, "round {round}");
            }
        }
        assert_eq!((numbers.len(), numbers.bytes()), (3000, 12_000));
        assert_eq!(
            numbers.take().get(4..12),
            Some(&[7, 0, 0, 0, 14, 0, 0, 0][..])
        );
        assert_eq!((numbers.key(Four(14)), numbers.len()), (0, 1));
    }

    #[test]
    fn both_forms_of_an_address_are_one_text() {
        let mut addresses = Scalars::new(Address::NOBODY);
        for text in ["10.0.0.1", "::ffff:10.0.0.1", "::", "2001:DB8::1"] {
            let _key = addresses.key(text.parse::<IpAddr>().unwrap().into());
        }
        assert_eq!(
            addresses.take(),
            b"\x08\0\0\x0010.0.0.1\x02\0\0\0::\x0b\0\0\x002001:db8::1"
        );
    }
}
