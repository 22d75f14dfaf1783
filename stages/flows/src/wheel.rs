//! Which flows are due: a hashed timing wheel.
//!
//! Source: Varghese, Lauck 1987, "Hashed and hierarchical timing wheels", scheme 6. A flow stands in
//! the list of the tick at which it was due when it was last filed; packets do not move it. When the
//! tick comes, it is filed anew if packets came meanwhile: one visit per timeout instead of one move
//! per packet.
//!
//! Not `linkweir_table::Wheel`, whose lists go through what is timed: to file and remove a flow would read
//! and write two others, which are not in the cache, and who is due next would not be known ahead. Here a
//! list is an array of slots; what is removed stays in it and is passed over.

/// Nanoseconds of a tick: 2^25, about 34 ms.
const TICK_BITS: u32 = 25;
/// Lists: a turn takes 137 s. What is due later is visited once a turn.
const LISTS: usize = 1 << 12;

/// The list of a slot that is in none.
const NOWHERE: u16 = u16::MAX;
/// Set while lists are swept: the slot has been met.
const MET: u16 = 1 << 15;

/// Slots whose coming visit can be prepared for.
const AHEAD: usize = 16;

/// Entries that a list that was visited keeps memory for.
const KEPT: usize = 16;

/// Entries that need not be removed, beside as many as there are flows.
const SPARE: usize = 1 << 12;

/// The lists.
///
/// Shape: 2 bytes a slot, and 4 an entry; entries are at most twice as many as flows, and [`SPARE`].
#[derive(Debug, Clone)]
pub(crate) struct Wheel {
    /// Slots by tick, the one that was filed last at the end.
    lists: Vec<Vec<u32>>,
    /// The list that each slot is in: entries of it elsewhere, and before its last one, are void.
    filed: Vec<u16>,
    /// Entries, also void ones.
    entries: usize,
    /// Slots that are in a list.
    len: usize,
    /// The tick that was visited last; `u64::MAX` before the first.
    tick: u64,
}

impl Wheel {
    pub(crate) fn new() -> Self {
        Self {
            lists: vec![Vec::new(); LISTS],
            filed: Vec::new(),
            entries: 0,
            len: 0,
            tick: u64::MAX,
        }
    }

    /// Files a slot, to be visited when it is due, or before; where it is in a list, it is taken out of
    /// that.
    pub(crate) fn file(&mut self, id: u32, due_ns: u64) {
        self.remove(id);
        if self.entries > 2 * self.len + SPARE {
            self.sweep();
        }
        // The tick after: when it is visited, the moment has passed.
        let mut tick = (due_ns >> TICK_BITS) + 1;
        if self.tick != u64::MAX {
            tick = tick.clamp(self.tick + 1, self.tick + LISTS as u64 - 1);
        }
        let number = number_of(tick);
        if id as usize >= self.filed.len() {
            self.filed.resize(id as usize + 1, NOWHERE);
        }
        if let (Some(list), Some(filed)) = (
            self.lists.get_mut(usize::from(number)),
            self.filed.get_mut(id as usize),
        ) {
            list.push(id);
            *filed = number;
            self.entries += 1;
            self.len += 1;
        }
    }

    /// Takes a slot out of its list, where it is in one.
    pub(crate) fn remove(&mut self, id: u32) {
        if let Some(filed) = self.filed.get_mut(id as usize)
            && *filed != NOWHERE
        {
            *filed = NOWHERE;
            self.len -= 1;
        }
    }

    /// Forgets all void entries.
    #[cold]
    fn sweep(&mut self) {
        self.entries = 0;
        for (list, number) in self.lists.iter_mut().zip(0_u16..) {
            // Of a slot that is in it more than once the last entry counts.
            list.reverse();
            list.retain(|id| {
                let filed = self.filed.get_mut(*id as usize);
                filed
                    .filter(|filed| **filed == number)
                    .is_some_and(|filed| {
                        *filed |= MET;
                        true
                    })
            });
            list.reverse();
            for id in list.iter() {
                if let Some(filed) = self.filed.get_mut(*id as usize) {
                    *filed &= !MET;
                }
            }
            if list.len() < list.capacity() / 4 {
                list.shrink_to(KEPT);
            }
            self.entries += list.len();
        }
    }

    /// The next slot of a list whose tick has come, taken out of it; `None` when all were visited.
    /// The caller files it anew or gives it up.
    pub(crate) fn visit(&mut self, now_ns: u64) -> Option<u32> {
        let now = now_ns >> TICK_BITS;
        if self.tick == u64::MAX {
            self.tick = now;
        }
        // After a long silence one turn visits every list.
        self.tick = self.tick.max(now.saturating_sub(LISTS as u64));
        loop {
            let number = number_of(self.tick);
            let list = self.lists.get_mut(usize::from(number))?;
            while let Some(id) = list.pop() {
                self.entries -= 1;
                if self.filed.get(id as usize) == Some(&number) {
                    self.remove(id);
                    return Some(id);
                }
            }
            list.shrink_to(KEPT);
            if self.tick >= now {
                return None;
            }
            self.tick += 1;
        }
    }

    /// The slots that [`Wheel::visit`] comes to next, as far as they are in the list that it is in.
    pub(crate) fn ahead(&self) -> &[u32] {
        let list = self.lists.get(usize::from(number_of(self.tick)));
        let list = list.map_or(&[][..], Vec::as_slice);
        list.get(list.len().saturating_sub(AHEAD)..)
            .unwrap_or_default()
    }

    /// When the next tick comes, nanoseconds since the epoch.
    #[inline]
    pub(crate) const fn next_ns(&self) -> u64 {
        if self.tick == u64::MAX {
            return 0;
        }
        self.tick.saturating_add(1) << TICK_BITS
    }
}

/// The list of a tick.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "12 bits")]
const fn number_of(tick: u64) -> u16 {
    (tick % LISTS as u64) as u16
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn slots_are_visited_when_they_are_due_and_not_long_after() {
        let start = 1_700_000_000_000_000_000_u64;
        let second = 1_000_000_000;
        let mut wheel = Wheel::new();
        assert_eq!(wheel.visit(start), None);
        let due = |id: u64| start + (id * 7919 % 900) * second;
        for id in 0..1000_u32 {
            wheel.file(id, due(u64::from(id)));
        }
        // Taken out from the middle, the front and the end of lists.
        for id in (0..1000).step_by(3) {
            wheel.remove(id);
            wheel.remove(id);
        }
        let mut seen = 0;
        let mut now = start;
        while now < start + 901 * second {
            now += second / 4;
            while let Some(id) = wheel.visit(now) {
                if due(u64::from(id)) >= now {
                    // More than a turn ahead.
                    wheel.file(id, due(u64::from(id)));
                    continue;
                }
                assert!(id % 3 != 0);
                assert!(now - due(u64::from(id)) <= second, "{id}");
                seen += 1;
            }
        }
        assert_eq!(seen, 1000 - 334);
        wheel.file(5, now + second);
        assert_eq!(wheel.visit(now + 100_000 * second), Some(5));
        assert_eq!(wheel.visit(now + 100_000 * second), None);
    }

    /// Slots come and go within a tick, as in a flood: what is void stays bounded, and nobody is
    /// forgotten, visited twice or out of turn.
    #[test]
    fn void_entries_are_bounded_and_change_nothing() {
        let tick = 1 << TICK_BITS;
        let mut wheel = Wheel::new();
        let mut now = 1_700_000_000_000_000_000_u64;
        assert_eq!(wheel.visit(now), None);
        // When each slot is due, and when it was filed among all.
        let mut model: HashMap<u32, (u64, u64)> = HashMap::new();
        let mut chance = 1_u64;
        for round in 0..200_000 {
            chance = chance
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let id = u32::try_from(chance >> 33).unwrap() % 500;
            let due = now + (chance >> 20) % (20 * tick);
            match chance >> 60 {
                0..3 => {
                    wheel.remove(id);
                    model.remove(&id);
                }
                _ => {
                    wheel.file(id, due);
                    model.insert(id, ((due >> TICK_BITS) + 1, round));
                }
            }
            assert!(wheel.entries <= 2 * wheel.len + SPARE + 2);
            assert_eq!(wheel.len, model.len());
            if round % 100 == 0 {
                now += tick / 3;
                let mut last = None;
                while let Some(id) = wheel.visit(now) {
                    let (due, filed) = model.remove(&id).unwrap();
                    assert!(due <= now >> TICK_BITS);
                    let key = (due, std::cmp::Reverse(filed));
                    assert!(last.is_none_or(|last| last < key), "the last one first");
                    last = Some(key);
                }
                assert!(model.values().all(|(due, _)| *due > now >> TICK_BITS));
            }
        }
        let kept: usize = wheel.lists.iter().map(Vec::capacity).sum();
        assert!(kept < 64 * 1024, "{kept}");
    }
}
