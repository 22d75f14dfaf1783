//! What is due when: a hierarchical timer wheel whose entries live where the caller keeps them.
//!
//! Source: Varghese, Lauck 1987, "Hashed and hierarchical timing wheels", scheme 7.

use super::slab::{NONE, Slab};

/// Bits of a tick number that one level distinguishes.
const LEVEL_BITS: u32 = 6;
/// Lists of a level: one bit each in a word.
const LISTS: usize = 1 << LEVEL_BITS;
/// Set in `previous` of the first entry of a list, whose number stands in the lower bits.
const HEAD: u32 = 1 << 31;

/// The place of an entry in a [`Wheel`]: 16 bytes inside what it times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timer {
    /// Tick at which it is due.
    tick: u64,
    /// The entry before, of the first one [`HEAD`] and its list; `NONE` where it is in none.
    previous: u32,
    /// The entry behind.
    next: u32,
}

impl Timer {
    /// Whether it is set.
    #[inline]
    #[must_use]
    pub const fn is_set(&self) -> bool {
        self.previous != NONE
    }
}

impl Default for Timer {
    fn default() -> Self {
        Self {
            tick: 0,
            previous: NONE,
            next: NONE,
        }
    }
}

/// Where the timers are: entry `id` is below 2^31.
pub trait Timers {
    /// The timer of an entry; `None` where there is no such entry.
    fn timer(&mut self, id: u32) -> Option<&mut Timer>;
}

impl Timers for [Timer] {
    fn timer(&mut self, id: u32) -> Option<&mut Timer> {
        self.get_mut(id as usize)
    }
}

impl Timers for Vec<Timer> {
    fn timer(&mut self, id: u32) -> Option<&mut Timer> {
        self.get_mut(id as usize)
    }
}

/// What has a timer.
pub trait Timed {
    /// Its timer.
    fn timer(&mut self) -> &mut Timer;
}

impl<T: Timed> Timers for Slab<Option<T>> {
    #[inline]
    fn timer(&mut self, id: u32) -> Option<&mut Timer> {
        self.value_mut(id).map(Timed::timer)
    }
}

/// A hierarchical timer wheel.
///
/// Levels of 64 lists; a list of level 0 holds the timers of one tick, a list of the level above
/// those of 64 ticks, and so on, as far as 64-bit nanoseconds reach: no time is too far. A timer
/// stands at the level of the highest digit in which its tick differs from the present one, and is
/// filed anew one level down, or more, when that digit comes up.
///
/// Cost: set and cancel touch the timer and its neighbours in the list; a timer moves down at most
/// once a level. What is due next is found from one word a level. Nothing is allocated after
/// [`Wheel::new`].
///
/// No timer is early; one is late by less than a tick, and by how long the caller waits.
///
/// ```
/// use linkweir_table::{Timer, Wheel};
///
/// let mut timers = vec![Timer::default(); 2];
/// let mut wheel = Wheel::new(20); // ticks of 2^20 ns, about 1 ms
/// wheel.set(0, 5_000_000_000, &mut timers);
/// wheel.set(1, 3_000_000_000, &mut timers);
/// wheel.cancel(0, &mut timers);
/// assert_eq!(wheel.pop(4_000_000_000, &mut timers), Some(1));
/// assert_eq!(wheel.pop(4_000_000_000, &mut timers), None);
/// ```
#[derive(Debug, Clone)]
pub struct Wheel {
    levels: Vec<Level>,
    /// All ticks before this one are done.
    now: u64,
    tick_bits: u32,
}

#[derive(Debug, Clone)]
struct Level {
    /// Which lists are not empty.
    used: u64,
    heads: [u32; LISTS],
}

impl Wheel {
    /// A wheel with ticks of 2^`tick_bits` ns (at most 2^40); it begins at time 0.
    #[must_use]
    pub fn new(tick_bits: u32) -> Self {
        let tick_bits = tick_bits.min(40);
        let levels = (u64::BITS - tick_bits).div_ceil(LEVEL_BITS);
        Self {
            levels: (0..levels)
                .map(|_| Level {
                    used: 0,
                    heads: [NONE; LISTS],
                })
                .collect(),
            now: 0,
            tick_bits,
        }
    }

    /// Nanoseconds of a tick.
    #[must_use]
    pub const fn tick_ns(&self) -> u64 {
        1 << self.tick_bits
    }

    /// Bytes of memory; the timers are the caller's.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        self.levels.len() * size_of::<Level>()
    }

    /// Sets the timer of entry `id`, anew where it is set already; a time that has passed is due at
    /// the next [`Wheel::pop`].
    #[inline]
    pub fn set(&mut self, id: u32, due_ns: u64, timers: &mut impl Timers) {
        self.cancel(id, timers);
        // Rounded up: never early.
        let partial = u64::from(due_ns & (self.tick_ns() - 1) != 0);
        let tick = ((due_ns >> self.tick_bits) + partial).max(self.now);
        self.file(id, tick, timers);
    }

    /// Takes the timer of entry `id` back, where it is set.
    #[inline]
    pub fn cancel(&mut self, id: u32, timers: &mut impl Timers) {
        let Some(timer) = timers.timer(id) else {
            return;
        };
        let (previous, next) = (timer.previous, timer.next);
        if previous == NONE {
            return;
        }
        timer.previous = NONE;
        timer.next = NONE;
        if previous & HEAD != 0 {
            self.put_head(previous & !HEAD, next);
        } else if let Some(previous) = timers.timer(previous) {
            previous.next = next;
        }
        if let Some(next) = timers.timer(next) {
            next.previous = previous;
        }
    }

    /// When the timer of an entry will be due, nanoseconds; `None` where it is not set.
    #[inline]
    #[must_use]
    pub const fn due_ns(&self, timer: &Timer) -> Option<u64> {
        if timer.is_set() {
            Some(timer.tick << self.tick_bits)
        } else {
            None
        }
    }

    /// The next entry whose timer is due by `now_ns`, in the order of the ticks; its timer is no
    /// longer set. `None` when there is no more. Entries of one tick come in no order.
    #[inline]
    pub fn pop(&mut self, now_ns: u64, timers: &mut impl Timers) -> Option<u32> {
        let until = now_ns >> self.tick_bits;
        while let Some((level, list, start)) = self.first() {
            if start > until {
                break;
            }
            self.now = self.now.max(start);
            let place = u32::try_from(level << LEVEL_BITS | list).ok()?;
            if level == 0 {
                let id = self.head(place);
                if timers.timer(id).is_none() {
                    // The caller has fewer entries than it had: the list ends here.
                    self.put_head(place, NONE);
                    continue;
                }
                self.cancel(id, timers);
                return Some(id);
            }
            // The whole list, before anything else is looked at: what moves down may be due later
            // than what has not moved yet.
            loop {
                let id = self.head(place);
                let Some(tick) = timers.timer(id).map(|timer| timer.tick) else {
                    break;
                };
                self.cancel(id, timers);
                self.file(id, tick, timers);
            }
            self.put_head(place, NONE);
        }
        self.now = self.now.max(until);
        None
    }

    /// When to call [`Wheel::pop`] next: not after the first timer is due, and as late as the level
    /// of that timer lets it be said. `None` where none is set.
    #[inline]
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        self.first()
            .map(|(_, _, start)| start.saturating_mul(self.tick_ns()))
    }

    /// Level, list and first tick of the first list that is not empty.
    ///
    /// What stands at a level shares all higher digits with the present tick, so the lowest level
    /// comes first, and within a level no list lies behind.
    #[inline]
    fn first(&self) -> Option<(usize, usize, u64)> {
        let (number, level) = self
            .levels
            .iter()
            .enumerate()
            .find(|(_, level)| level.used != 0)?;
        let list = level.used.trailing_zeros();
        let shift = LEVEL_BITS * u32::try_from(number).ok()?;
        let above = self.now.checked_shr(shift + LEVEL_BITS).unwrap_or(0);
        let digits = above.checked_shl(LEVEL_BITS).unwrap_or(0) | u64::from(list);
        Some((number, list as usize, digits << shift))
    }

    /// Files an entry that is in no list under a tick that is not done.
    #[inline]
    fn file(&mut self, id: u32, tick: u64, timers: &mut impl Timers) {
        let differs = self.now ^ tick;
        let level = (u64::BITS - differs.leading_zeros()).saturating_sub(1) / LEVEL_BITS;
        let list = (tick >> (level * LEVEL_BITS)) & (LISTS as u64 - 1);
        let place = level << LEVEL_BITS | u32::try_from(list).unwrap_or(0);
        let next = self.head(place);
        let Some(timer) = timers.timer(id) else {
            return;
        };
        *timer = Timer {
            tick,
            previous: HEAD | place,
            next,
        };
        if let Some(next) = timers.timer(next) {
            next.previous = id;
        }
        self.put_head(place, id);
    }

    #[inline]
    fn head(&self, place: u32) -> u32 {
        let (level, list) = split(place);
        self.levels
            .get(level)
            .and_then(|level| level.heads.get(list))
            .copied()
            .unwrap_or(NONE)
    }

    #[inline]
    fn put_head(&mut self, place: u32, id: u32) {
        let (level, list) = split(place);
        let Some(level) = self.levels.get_mut(level) else {
            return;
        };
        let Some(head) = level.heads.get_mut(list) else {
            return;
        };
        *head = id;
        let bit = 1 << list;
        if id == NONE {
            level.used &= !bit;
        } else {
            level.used |= bit;
        }
    }
}

/// Level and list of a place.
#[inline]
const fn split(place: u32) -> (usize, usize) {
    ((place >> LEVEL_BITS) as usize, place as usize & (LISTS - 1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn any_time_of_64_bits_is_due_when_it_comes() {
        let times = [
            0,
            1,
            63 << 20,
            64 << 20,
            1 << 40,
            1_790_000_000_000_000_000,
            u64::MAX,
        ];
        let mut timers = vec![Timer::default(); times.len()];
        let mut wheel = Wheel::new(20);
        assert_eq!(wheel.next_ns(), None);
        for (id, due) in (0..).zip(times) {
            wheel.set(id, due, &mut timers);
        }
        for (id, due) in (0..).zip(times).take(times.len() - 1) {
            assert!(wheel.next_ns().unwrap() <= due.next_multiple_of(1 << 20));
            if due > 0 {
                assert_eq!(wheel.pop(due - 1, &mut timers), None, "{due} is not early");
            }
            assert_eq!(
                wheel.pop(due.next_multiple_of(1 << 20), &mut timers),
                Some(id)
            );
        }
        // Rounded up, the last tick would be the one after 2^64 ns: it never comes.
        assert_eq!(wheel.pop(u64::MAX, &mut timers), None);
    }

    #[test]
    fn a_timer_in_the_past_is_due_at_once_and_a_set_one_moves() {
        let mut timers = vec![Timer::default(); 2];
        let mut wheel = Wheel::new(10);
        assert_eq!(wheel.pop(1 << 40, &mut timers), None);
        wheel.set(1, 5, &mut timers);
        assert_eq!(wheel.pop(1 << 40, &mut timers), Some(1));
        wheel.set(1, 1 << 50, &mut timers);
        wheel.set(1, 1 << 45, &mut timers);
        wheel.set(7, 1 << 45, &mut timers);
        assert_eq!(wheel.due_ns(&timers[1]), Some(1 << 45));
        assert_eq!(wheel.pop(1 << 45, &mut timers), Some(1));
        assert!(!timers[1].is_set());
        assert_eq!(wheel.pop(u64::MAX, &mut timers), None);
    }

    #[test]
    fn entries_that_are_gone_end_their_list() {
        let mut timers = vec![Timer::default(); 4];
        let mut wheel = Wheel::new(10);
        for (id, due) in [(0, 1 << 10), (1, 1 << 10), (2, 1 << 30), (3, 1 << 30)] {
            wheel.set(id, due, &mut timers);
        }
        timers.clear();
        assert_eq!(wheel.pop(u64::MAX, &mut timers), None);
        assert_eq!(wheel.next_ns(), None);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Set(u32, u64),
        Cancel(u32),
        Advance(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // Spans of all sizes, from within a tick to years.
        let span = (0_u32..56, any::<u64>()).prop_map(|(bits, n)| n & ((1 << bits) - 1));
        let step = prop_oneof![
            4 => (0_u32..24, span.clone()).prop_map(|(id, span)| Step::Set(id, span)),
            1 => (0_u32..24).prop_map(Step::Cancel),
            2 => span.prop_map(Step::Advance),
        ];
        proptest::collection::vec(step, 1..200)
    }

    proptest! {
        /// Against a sorted set of (tick, entry).
        #[test]
        fn entries_come_in_order_and_on_time(
            start in 0_u64..1 << 61,
            tick_bits in 0_u32..24,
            steps in steps(),
        ) {
            let mut timers = vec![Timer::default(); 24];
            let mut wheel = Wheel::new(tick_bits);
            let tick = wheel.tick_ns();
            let mut model: BTreeSet<(u64, u32)> = BTreeSet::new();
            let mut now = start;
            prop_assert_eq!(wheel.pop(now, &mut timers), None);
            for step in steps {
                match step {
                    Step::Set(id, span) => {
                        model.retain(|(_, other)| *other != id);
                        let due = now + span;
                        model.insert((due.div_ceil(tick).max(now / tick), id));
                        wheel.set(id, due, &mut timers);
                    }
                    Step::Cancel(id) => {
                        model.retain(|(_, other)| *other != id);
                        wheel.cancel(id, &mut timers);
                        prop_assert!(!timers[id as usize].is_set());
                    }
                    Step::Advance(span) => {
                        now += span;
                        let mut last = 0;
                        while let Some(id) = wheel.pop(now, &mut timers) {
                            let at = model.iter().position(|(_, other)| *other == id);
                            let found = at.and_then(|at| model.iter().nth(at).copied());
                            prop_assert!(found.is_some(), "{} was not set", id);
                            let (due, id) = found.unwrap();
                            prop_assert!(due <= now / tick && due >= last);
                            prop_assert_eq!(Some(due), model.first().map(|(due, _)| *due));
                            last = due;
                            model.remove(&(due, id));
                        }
                        prop_assert!(model.first().is_none_or(|(due, _)| *due > now / tick));
                    }
                }
                let first = model.first().map(|(due, _)| due * tick);
                let next = wheel.next_ns();
                prop_assert_eq!(next.is_some(), first.is_some());
                prop_assert!(next <= first, "{:?} after {:?}", next, first);
            }
        }
    }
}
