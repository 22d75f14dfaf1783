//! What was seen lately: a cache of fingerprints that forgets the oldest.

/// Fingerprints a set holds: with 16 bytes each, one cache line.
const WAYS: usize = 4;

/// One remembered fingerprint: tag, stamp, and two notes. The tag is the low half of the fingerprint, never zero; a tag
/// of zero is "nothing". The stamp is in milliseconds of capture time modulo 2^32 (49 days); its lowest bit says whether
/// there is a second note.
///
/// An array, because memory for arrays of zeros comes from the kernel untouched: to write all of the cache took a third
/// of a short run.
type Entry = [u32; 4];

/// What is remembered of a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The number that was noted with it.
    pub(crate) note: u32,
    /// The second number, where there was one.
    pub(crate) second: Option<u32>,
}

/// A set-associative cache of fingerprints with two notes each and a time window.
///
/// Shape: sets of four, 64 bytes each; the oldest of a set makes room. What belongs together (the
/// messages of one connection) shares a *home*, that is a set: so the cache lines in use are as
/// many as there are busy connections, not as many as there were messages. Cost: one cache miss at
/// most. It forgets all but the last four of a home, and takes one thing for another with a
/// probability below 2^-29 a look-up: good enough to recognise retransmissions.
/// Units: times are milliseconds of capture time, even ones (the lowest bit is lost).
#[derive(Debug)]
pub(crate) struct SeenCache {
    sets: Vec<[Entry; WAYS]>,
    window_ms: u32,
    /// Sets from the first one on whose memory is in use.
    taken: usize,
}

/// Sets whose memory is taken with each message.
const TAKEN: usize = 8;

const HAS_SECOND: u32 = 1;

#[expect(clippy::cast_possible_truncation, reason = "the low half is the tag")]
const fn tag_of(fingerprint: u64) -> u32 {
    fingerprint as u32 | 1
}

impl SeenCache {
    /// A cache of about `entries` fingerprints that are valid for `window_ms` of capture time.
    #[must_use]
    pub(crate) fn new(entries: usize, window_ms: u32) -> Self {
        let sets = entries.div_ceil(WAYS).clamp(1, 1 << 28).next_power_of_two();
        Self {
            sets: vec![[Entry::default(); WAYS]; sets],
            window_ms,
            taken: 0,
        }
    }

    #[inline]
    fn set_of(&self, home: u32) -> usize {
        // By the high bits: in a product they depend on all bits of its factors.
        ((u64::from(home) * self.sets.len() as u64) >> 32) as usize
    }

    #[inline]
    const fn age(stamp: u32, now_ms: u32) -> u32 {
        (now_ms & !HAS_SECOND).wrapping_sub(stamp & !HAS_SECOND)
    }

    /// What was remembered of `fingerprint` within the window before `now_ms`.
    #[inline]
    #[must_use]
    pub(crate) fn get(&self, home: u32, fingerprint: u64, now_ms: u32) -> Option<Seen> {
        let set = self.sets.get(self.set_of(home))?;
        let tag = tag_of(fingerprint);
        let &[_, stamp, note, second] = set
            .iter()
            .find(|[t, stamp, ..]| *t == tag && Self::age(*stamp, now_ms) <= self.window_ms)?;
        Some(Seen {
            note,
            second: (stamp & HAS_SECOND != 0).then_some(second),
        })
    }

    /// Remembers `fingerprint` at `now_ms`, as the newest of its home.
    #[inline]
    pub(crate) fn put(&mut self, home: u32, fingerprint: u64, now_ms: u32, seen: Seen) {
        // A run with more connections must not use more memory, so all of it is written, but little by little.
        if let Some(set) = self.sets.get_mut(self.taken) {
            *set = std::hint::black_box(*set);
            self.taken += TAKEN;
        }
        let at = self.set_of(home);
        let Some(set) = self.sets.get_mut(at) else {
            return;
        };
        let tag = tag_of(fingerprint);
        let place = set.iter().position(|[t, ..]| *t == tag).unwrap_or(WAYS - 1);
        if let Some(newer) = set.get_mut(..=place) {
            newer.rotate_right(1);
        }
        let stamp = now_ms & !HAS_SECOND | u32::from(seen.second.is_some());
        let [newest, ..] = set;
        *newest = [tag, stamp, seen.note, seen.second.unwrap_or(0)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seen(note: u32) -> Seen {
        Seen { note, second: None }
    }

    #[test]
    fn remembers_within_the_window_and_makes_room_by_age() {
        let mut cache = SeenCache::new(4, 1000);
        for n in 0..4_u32 {
            cache.put(7, u64::from(n) << 1, n * 2, seen(n));
        }
        cache.put(
            7,
            0x99,
            10,
            Seen {
                note: 4,
                second: Some(5),
            },
        );
        assert_eq!(cache.get(7, 0, 10), None, "the oldest made room");
        assert_eq!(cache.get(7, 2, 10), Some(seen(1)));
        assert_eq!(
            cache.get(7, 0x99, 1010),
            Some(Seen {
                note: 4,
                second: Some(5)
            })
        );
        assert_eq!(cache.get(7, 0x99, 1012), None);
        cache.put(7, 0x99, 20, seen(6));
        assert_eq!(
            cache.get(7, 0x99, 20),
            Some(seen(6)),
            "the same place again"
        );
        assert_eq!(cache.get(7, 4, 20), Some(seen(2)));
    }

    #[test]
    fn the_clock_may_wrap() {
        let mut cache = SeenCache::new(64, 1000);
        cache.put(1, 77 << 20, u32::MAX - 5, seen(1));
        assert!(cache.get(1, 77 << 20, 10).is_some());
    }
}
