//! Which flows are due: a hashed timing wheel with lists through the slots.
//!
//! Source: Varghese, Lauck 1987, "Hashed and hierarchical timing wheels", scheme 6. A flow stands in
//! the list of the tick at which it was due when it was last filed; packets do not move it. When the
//! tick comes, it is filed anew if packets came meanwhile: one visit per timeout instead of one move
//! per packet.
//!
//! Not `linkweir_table::Wheel`: its timer has 16 bytes, a link 8, and a flow fits in 512 (decision 0009).

use linkweir_table::NONE;

/// Nanoseconds of a tick: 2^25, about 34 ms.
const TICK_BITS: u32 = 25;
/// Lists: a turn takes 137 s. What is due later is visited once a turn.
const LISTS: usize = 1 << 12;

/// Set in `previous` of the first slot of a list, whose number stands in the lower bits.
const HEAD: u32 = 1 << 31;

/// The place of a slot in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    /// The slot before, of the first one [`HEAD`] and its list; `NONE` where it is in none.
    previous: u32,
    /// The slot behind.
    next: u32,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            previous: NONE,
            next: NONE,
        }
    }
}

/// Where the links of the slots are.
pub(crate) trait Links {
    /// The link of a slot; `None` where there is no such slot.
    fn link(&mut self, id: u32) -> Option<&mut Link>;
}

/// The heads of the lists.
#[derive(Debug, Clone)]
pub(crate) struct Wheel {
    heads: Vec<u32>,
    /// The tick that was visited last; `u64::MAX` before the first.
    tick: u64,
}

impl Wheel {
    pub(crate) fn new() -> Self {
        Self {
            heads: vec![NONE; LISTS],
            tick: u64::MAX,
        }
    }

    /// Files a slot that is in no list, to be visited when it is due, or before.
    pub(crate) fn file(&mut self, id: u32, due_ns: u64, links: &mut impl Links) {
        // The tick after: when it is visited, the moment has passed.
        let mut tick = (due_ns >> TICK_BITS) + 1;
        if self.tick != u64::MAX {
            tick = tick.clamp(self.tick + 1, self.tick + LISTS as u64 - 1);
        }
        let list = usize::try_from(tick % LISTS as u64).unwrap_or(0);
        let Some(head) = self.heads.get_mut(list) else {
            return;
        };
        let next = std::mem::replace(head, id);
        if let Some(link) = links.link(id) {
            link.previous = HEAD | u32::try_from(list).unwrap_or(0);
            link.next = next;
        }
        if let Some(next) = links.link(next) {
            next.previous = id;
        }
    }

    /// Takes a slot out of its list, where it is in one.
    pub(crate) fn remove(&mut self, id: u32, links: &mut impl Links) {
        let Some(mine) = links.link(id) else {
            return;
        };
        let Link { previous, next } = std::mem::take(mine);
        if previous == NONE {
            return;
        }
        if previous & HEAD != 0 {
            let list = (previous & !HEAD) as usize;
            if let Some(head) = self.heads.get_mut(list) {
                *head = next;
            }
        } else if let Some(previous) = links.link(previous) {
            previous.next = next;
        }
        if let Some(next) = links.link(next) {
            next.previous = previous;
        }
    }

    /// The next slot of a list whose tick has come, taken out of it; `None` when all were visited.
    /// The caller files it anew or gives it up.
    pub(crate) fn visit(&mut self, now_ns: u64, links: &mut impl Links) -> Option<u32> {
        let now = now_ns >> TICK_BITS;
        if self.tick == u64::MAX {
            self.tick = now;
        }
        // After a long silence one turn visits every list.
        self.tick = self.tick.max(now.saturating_sub(LISTS as u64));
        loop {
            let list = usize::try_from(self.tick % LISTS as u64).unwrap_or(0);
            let head = self.heads.get(list).copied().unwrap_or(NONE);
            if head != NONE {
                self.remove(head, links);
                return Some(head);
            }
            if self.tick >= now {
                return None;
            }
            self.tick += 1;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    struct All(Vec<Link>);

    impl Links for All {
        fn link(&mut self, id: u32) -> Option<&mut Link> {
            self.0.get_mut(id as usize)
        }
    }

    #[test]
    fn slots_are_visited_when_they_are_due_and_not_long_after() {
        let start = 1_700_000_000_000_000_000_u64;
        let second = 1_000_000_000;
        let mut links = All(vec![Link::default(); 1000]);
        let mut wheel = Wheel::new();
        assert_eq!(wheel.visit(start, &mut links), None);
        let due = |id: u64| start + (id * 7919 % 900) * second;
        for id in 0..1000_u32 {
            wheel.file(id, due(u64::from(id)), &mut links);
        }
        // Taken out from the middle, the front and the end of lists.
        for id in (0..1000).step_by(3) {
            wheel.remove(id, &mut links);
            wheel.remove(id, &mut links);
        }
        let mut seen = 0;
        let mut now = start;
        while now < start + 901 * second {
            now += second / 4;
            while let Some(id) = wheel.visit(now, &mut links) {
                if due(u64::from(id)) >= now {
                    // More than a turn ahead.
                    wheel.file(id, due(u64::from(id)), &mut links);
                    continue;
                }
                assert!(id % 3 != 0);
                assert!(now - due(u64::from(id)) <= second, "{id}");
                seen += 1;
            }
        }
        assert_eq!(seen, 1000 - 334);
        wheel.file(5, now + second, &mut links);
        assert_eq!(wheel.visit(now + 100_000 * second, &mut links), Some(5));
        assert_eq!(wheel.visit(now + 100_000 * second, &mut links), None);
    }
}
