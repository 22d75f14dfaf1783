//! Names one behind the other in a ring that overwrites the oldest.

/// Bytes in front of a name: its length.
const LENGTH: usize = 1;
/// The longest name, and its length.
const MOST: usize = 255 + LENGTH;

/// Names a name in a [`NameRing`], also when it is no longer there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct NameId(
    /// How many bytes had ever been written when it began, plus one; 0 is no name.
    u64,
);

/// Names in the order in which they came; the newest stand where the oldest stood.
///
/// Shape: `capacity` bytes, untouched until they are used.
#[derive(Debug)]
pub(super) struct NameRing {
    bytes: Vec<u8>,
    /// Bytes ever written, gaps at the end of a round included.
    written: u64,
}

impl NameRing {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            bytes: vec![0; capacity.max(2 * MOST)],
            written: 0,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "smaller than the length of a vector"
    )]
    const fn place(&self, at: u64) -> usize {
        (at % self.bytes.len() as u64) as usize
    }

    /// Writes a name (its first 255 bytes).
    pub(super) fn push(&mut self, name: &[u8]) -> NameId {
        let name = name.get(..MOST - LENGTH).unwrap_or(name);
        let place = self.place(self.written);
        let left = self.bytes.len() - place;
        let mut at = self.written;
        if left < name.len() + LENGTH {
            // A name stands in one piece.
            at += left as u64;
        }
        let place = self.place(at);
        if let Some(room) = self.bytes.get_mut(place..)
            && let Some((length, room)) = room.split_first_mut()
            && let Some(room) = room.get_mut(..name.len())
        {
            *length = u8::try_from(name.len()).unwrap_or(u8::MAX);
            room.copy_from_slice(name);
        }
        self.written = at + (name.len() + LENGTH) as u64;
        NameId(at + 1)
    }

    /// The name, if it was not overwritten.
    #[inline]
    pub(super) fn get(&self, id: NameId) -> Option<&[u8]> {
        let at = id.0.checked_sub(1)?;
        if self.written.checked_sub(at)? > self.bytes.len() as u64 {
            return None;
        }
        let (length, rest) = self.bytes.get(self.place(at)..)?.split_first()?;
        rest.get(..usize::from(*length))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against all names ever written: one that is there is right, and the newest are there.
        #[test]
        fn names_are_whole_or_gone(lengths in proptest::collection::vec(0_usize..255, 1..60)) {
            let mut ring = NameRing::new(1024);
            let mut all = Vec::new();
            for (number, length) in lengths.into_iter().enumerate() {
                let name = vec![u8::try_from(number).unwrap_or(0); length];
                all.push((ring.push(&name), name));
                for (id, name) in &all {
                    prop_assert!(ring.get(*id).is_none_or(|found| found == name));
                }
                let newest: usize = all
                    .iter()
                    .rev()
                    .take_while(|(id, _)| ring.get(*id).is_some())
                    .map(|(_, name)| name.len() + 1)
                    .sum();
                let total: usize = all.iter().map(|(_, name)| name.len() + 1).sum();
                prop_assert!(newest >= total.min(1024 - 2 * MOST));
            }
            prop_assert_eq!(ring.get(NameId::default()), None);
        }
    }
}
