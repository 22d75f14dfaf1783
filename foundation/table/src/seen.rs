//! What was seen lately: a cache of fingerprints that forgets the oldest.

/// Fingerprints a set holds: with 16 bytes each, one cache line.
const WAYS: usize = 4;

/// One remembered fingerprint; all zero is "nothing".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Entry {
    fingerprint: u64,
    /// Milliseconds of capture time, modulo 2^32 (49 days).
    stamp_ms: u32,
    note: u32,
}

/// What is remembered of a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The number that was noted with it, if any.
    pub note: Option<u32>,
}

/// A set-associative cache of 64-bit fingerprints with a time window.
///
/// Shape: sets of four, 64 bytes each; the oldest of a set makes room. It may forget early when it
/// is small for the rate, and takes two things for one with probability 2^-62: good enough to
/// recognise retransmissions, which come within seconds.
#[derive(Debug)]
pub struct SeenCache {
    sets: Vec<[Entry; WAYS]>,
    window_ms: u32,
}

/// The lowest bit of a stored fingerprint says whether it has a note, the next that it is in use.
const NOTED: u64 = 1;
const IN_USE: u64 = 2;

impl SeenCache {
    /// A cache of about `entries` fingerprints that are valid for `window_ms` of capture time.
    #[must_use]
    pub fn new(entries: usize, window_ms: u32) -> Self {
        let sets = entries.div_ceil(WAYS).clamp(1, 1 << 28).next_power_of_two();
        Self {
            sets: vec![[Entry::default(); WAYS]; sets],
            window_ms,
        }
    }

    #[inline]
    fn set_of(&self, fingerprint: u64) -> usize {
        // The high half: the low bits are taken by the flags.
        (fingerprint >> 32) as usize & (self.sets.len() - 1)
    }

    /// Whether `fingerprint` was remembered within the window before `now_ms`.
    #[inline]
    #[must_use]
    pub fn get(&self, fingerprint: u64, now_ms: u32) -> Option<Seen> {
        let set = self.sets.get(self.set_of(fingerprint))?;
        let wanted = fingerprint | NOTED | IN_USE;
        set.iter()
            .find(|e| {
                e.fingerprint | NOTED == wanted && now_ms.wrapping_sub(e.stamp_ms) <= self.window_ms
            })
            .map(|e| Seen {
                note: (e.fingerprint & NOTED != 0).then_some(e.note),
            })
    }

    /// Remembers `fingerprint` at `now_ms`, with a note if there is one.
    #[inline]
    pub fn put(&mut self, fingerprint: u64, now_ms: u32, note: Option<u32>) {
        let at = self.set_of(fingerprint);
        let Some(set) = self.sets.get_mut(at) else {
            return;
        };
        let wanted = fingerprint | NOTED | IN_USE;
        let same = set.iter().position(|e| e.fingerprint | NOTED == wanted);
        let place = same.or_else(|| {
            let age = |e: &Entry| {
                if e.fingerprint == 0 {
                    u32::MAX
                } else {
                    now_ms.wrapping_sub(e.stamp_ms)
                }
            };
            (0..WAYS).max_by_key(|&way| set.get(way).map_or(0, age))
        });
        if let Some(entry) = place.and_then(|way| set.get_mut(way)) {
            let fingerprint = if note.is_some() {
                wanted
            } else {
                wanted & !NOTED
            };
            *entry = Entry {
                fingerprint,
                stamp_ms: now_ms,
                note: note.unwrap_or(0),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_within_the_window_and_makes_room_by_age() {
        let mut cache = SeenCache::new(4, 1000);
        for n in 0..4_u64 {
            cache.put(n << 40 | 4, u32::try_from(n).unwrap(), None);
        }
        cache.put(0x99 << 40, 10, Some(5));
        assert_eq!(cache.get(4, 10), None, "the oldest made room");
        assert_eq!(cache.get(1 << 40 | 4, 10), Some(Seen { note: None }));
        assert_eq!(cache.get(0x99 << 40, 1010), Some(Seen { note: Some(5) }));
        assert_eq!(cache.get(0x99 << 40, 1011), None);
        cache.put(0x99 << 40, 20, Some(6));
        assert_eq!(cache.get(0x99 << 40, 20), Some(Seen { note: Some(6) }));
        assert_eq!(cache.get(0, 5), None, "an empty place is no fingerprint");
    }

    #[test]
    fn the_clock_may_wrap() {
        let mut cache = SeenCache::new(64, 1000);
        cache.put(77 << 20, u32::MAX - 5, None);
        assert!(cache.get(77 << 20, 10).is_some());
    }
}
