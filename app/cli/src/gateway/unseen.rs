//! Packets that passed unseen because a queue of the kernel was full and fails open: how many, and when.
//!
//! The kernel counts them nowhere. They are those that its rules sent to the queues less those that a queue
//! numbered, and of these the ones for which the socket had no room. All of that is read once a tick: a packet
//! costs nothing.

use std::time::Duration;

/// Without another such packet for so long it is over.
const QUIET: Duration = Duration::from_secs(1);
/// Told after so long even where it goes on.
const LONGEST: Duration = Duration::from_secs(10);

/// What was counted until now, in the order in which it is read, so that packets that come meanwhile never look
/// as if they had passed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counted {
    /// Packets that the queues had numbered before the others were read, modulo 2^32.
    pub(super) numbered_before: u32,
    /// Packets that rules sent to the queues; `None` where that cannot be known.
    pub(super) queued: Option<u64>,
    /// Packets that the queues have numbered, modulo 2^32.
    pub(super) numbered: u32,
    /// Packets that were numbered and found no room at a socket.
    pub(super) overruns: u64,
}

/// A time in which packets passed unseen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spell {
    pub(super) packets: u64,
    /// When the last look before was, and the last that found some, since the start.
    from: Duration,
    to: Duration,
}

impl Spell {
    /// How long it was at most.
    pub(super) const fn lasted(&self) -> Duration {
        self.to.saturating_sub(self.from)
    }
}

/// The account of them.
#[derive(Debug, Default)]
pub(super) struct Unseen {
    total: u64,
    /// Packets sent to the queues until the last look.
    queued: u64,
    /// The greatest difference so far between what was sent and what was seen, modulo 2^32; `None` before there
    /// were rules.
    most: Option<u32>,
    looked: Duration,
    open: Option<Spell>,
}

impl Unseen {
    /// Packets that passed unseen until now.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// Whether there is news in what was counted. It is to be counted once more then: a packet that stood between its rule
    /// and its queue has its number by now.
    pub(super) fn is_news(&self, counted: &Counted) -> bool {
        counted
            .queued
            .is_some_and(|queued| self.compare(counted, queued).1 > 0)
    }

    /// The greatest difference until now, and how many more there are.
    fn compare(&self, counted: &Counted, queued: u64) -> (u32, u32) {
        #[expect(clippy::cast_possible_truncation, reason = "differences modulo 2^32")]
        let missing = |numbered: u32| {
            let all = (queued as u32).wrapping_add(counted.overruns as u32);
            all.wrapping_sub(numbered)
        };
        // Rules that are made anew count from 0.
        let known = self.most.filter(|_| queued >= self.queued);
        let most = known.unwrap_or_else(|| missing(counted.numbered_before));
        // In front of `most` by half of all numbers at most: less than was found before is no news.
        let more = missing(counted.numbered).wrapping_sub(most);
        (most, if more.cast_signed() > 0 { more } else { 0 })
    }

    /// Looks at what was counted, at a time since the start.
    pub(super) fn look(&mut self, counted: &Counted, now: Duration) {
        let Some(queued) = counted.queued else { return };
        let (most, more) = self.compare(counted, queued);
        self.most = Some(most.wrapping_add(more));
        self.queued = queued;
        if more > 0 {
            self.total += u64::from(more);
            let from = self.looked;
            let spell = self.open.get_or_insert(Spell {
                packets: 0,
                from,
                to: now,
            });
            spell.packets += u64::from(more);
            spell.to = now;
        }
        self.looked = now;
    }

    /// The spell that is over, or has lasted long enough to be told; at the end of a run any.
    pub(super) fn take(&mut self, now: Duration, is_end: bool) -> Option<Spell> {
        let is_told = |spell: &mut Spell| {
            is_end
                || now.saturating_sub(spell.to) >= QUIET
                || now.saturating_sub(spell.from) >= LONGEST
        };
        self.open.take_if(is_told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn counted(queued: u64, numbered: u32, overruns: u64) -> Counted {
        Counted {
            numbered_before: numbered,
            queued: Some(queued),
            numbered,
            overruns,
        }
    }

    #[test]
    fn what_was_sent_and_got_no_number_passed_unseen() {
        let mut unseen = Unseen::default();
        // Before the gateway ran, and before it had rules, nothing was its affair.
        unseen.look(&Counted::default(), ms(0));
        unseen.look(&counted(1_000, 10, 0), ms(100));
        assert_eq!(unseen.total(), 0);
        unseen.look(&counted(1_500, 400, 0), ms(200));
        assert_eq!(unseen.total(), 110);
        // What is sent while it is looked is numbered, but not yet sent for who looks.
        unseen.look(&counted(1_500, 450, 0), ms(300));
        unseen.look(&counted(1_550, 450, 0), ms(400));
        assert_eq!(unseen.total(), 110);
        // Numbered, and lost on the way.
        unseen.look(&counted(1_560, 460, 7), ms(500));
        assert_eq!(unseen.total(), 117);
        assert_eq!(unseen.take(ms(1_400), false), None);
        let spell = unseen.take(ms(1_500), false).unwrap();
        assert_eq!((spell.packets, spell.lasted()), (117, ms(400)));
        assert_eq!(unseen.take(ms(9_000), true), None);
    }

    #[test]
    fn what_has_no_number_yet_is_asked_for_again() {
        let mut unseen = Unseen::default();
        unseen.look(&counted(1_000, 10, 0), ms(100));
        assert!(unseen.is_news(&counted(1_001, 10, 0)));
        assert!(!unseen.is_news(&counted(1_002, 12, 0)));
        assert!(!unseen.is_news(&Counted::default()));
        assert_eq!(unseen.total(), 0, "to ask changes nothing");
    }

    #[test]
    fn rules_that_are_made_anew_and_numbers_that_begin_again_are_no_loss() {
        let mut unseen = Unseen::default();
        let last = u32::MAX - 3;
        unseen.look(&counted(50, last, 0), ms(0));
        unseen.look(&counted(60, last.wrapping_add(10), 0), ms(100));
        unseen.look(&counted(3, last.wrapping_add(20), 0), ms(200));
        assert_eq!(unseen.total(), 0);
        unseen.look(&counted(9, last.wrapping_add(25), 0), ms(300));
        assert_eq!(unseen.total(), 1);
    }

    #[test]
    fn what_goes_on_is_told_in_parts() {
        let mut unseen = Unseen::default();
        unseen.look(&counted(0, 0, 0), ms(0));
        let mut told = Vec::new();
        for at in 1..=250 {
            unseen.look(&counted(at * 5, 0, 0), ms(at * 100));
            told.extend(unseen.take(ms(at * 100), at == 250));
        }
        let parts: Vec<_> = told.iter().map(|one| (one.packets, one.lasted())).collect();
        assert_eq!(
            parts,
            [(500, ms(10_000)), (500, ms(10_000)), (250, ms(5_000))]
        );
    }
}
