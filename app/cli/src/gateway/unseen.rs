//! Packets that passed unseen because a queue of the kernel was full and fails open: how many, and when.
//!
//! The kernel counts them nowhere. They are those that its rules sent to the queues less those that a queue
//! numbered, and of these the ones for which the socket had no room. All of that is read once a tick: a packet
//! costs nothing. A processor that stops between a rule and its queue, as those of virtual machines do, leaves a
//! packet without a number for a while: what is missing counts when it still is at a later look.

use std::time::Duration;

/// Without another such packet for so long it is over.
const QUIET: Duration = Duration::from_secs(1);
/// Told after so long even where it goes on.
const LONGEST: Duration = Duration::from_secs(10);
/// What has no number after so long gets none.
const SETTLED: Duration = Duration::from_millis(50);

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
    /// When the last look before it was, and the last that found some, since the start.
    from: Duration,
    to: Duration,
}

impl Spell {
    /// How long it was at most.
    pub(super) const fn lasted(&self) -> Duration {
        self.to.saturating_sub(self.from)
    }
}

/// Packets that were missing at a look, and may yet be numbered.
#[derive(Debug, Clone, Copy)]
struct Missing {
    packets: u32,
    /// When the look before was, and that which missed them.
    from: Duration,
    to: Duration,
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
    missing: Option<Missing>,
    open: Option<Spell>,
}

impl Unseen {
    /// Packets that passed unseen until now.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// Looks at what was counted, at a time since the start.
    pub(super) fn look(&mut self, counted: &Counted, now: Duration) {
        let Some(queued) = counted.queued else { return };
        #[expect(clippy::cast_possible_truncation, reason = "differences modulo 2^32")]
        let missing = |numbered: u32| {
            let all = (queued as u32).wrapping_add(counted.overruns as u32);
            all.wrapping_sub(numbered)
        };
        // Rules that are made anew count from 0.
        if queued < self.queued {
            self.most = None;
        }
        self.queued = queued;
        let most = *self
            .most
            .get_or_insert_with(|| missing(counted.numbered_before));
        // In front of `most` by half of all numbers at most: less than was found before is no news.
        let more = missing(counted.numbered).wrapping_sub(most);
        let mut more = if more.cast_signed() > 0 { more } else { 0 };
        let before = self.missing.take();
        if let Some(mut before) = before {
            before.packets = before.packets.min(more);
            if now.saturating_sub(before.to) >= SETTLED {
                self.confirm(before);
                more -= before.packets;
            } else if before.packets > 0 {
                self.missing = Some(before);
            }
        }
        if more > 0 && self.missing.is_none() {
            self.missing = Some(Missing {
                packets: more,
                from: self.looked,
                to: now,
            });
        }
        self.looked = now;
    }

    /// They passed unseen.
    fn confirm(&mut self, missing: Missing) {
        if missing.packets == 0 {
            return;
        }
        self.total += u64::from(missing.packets);
        self.most = self.most.map(|most| most.wrapping_add(missing.packets));
        let spell = self.open.get_or_insert(Spell {
            packets: 0,
            from: missing.from,
            to: missing.to,
        });
        spell.packets += u64::from(missing.packets);
        spell.to = missing.to;
    }

    /// The spell that is over, or has lasted long enough to be told; at the end of a run any.
    pub(super) fn take(&mut self, now: Duration, is_end: bool) -> Option<Spell> {
        if is_end && let Some(missing) = self.missing.take() {
            self.confirm(missing);
        }
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
        unseen.look(&counted(1_500, 400, 0), ms(200));
        unseen.look(&counted(1_500, 400, 0), ms(300));
        assert_eq!(unseen.total(), 110);
        // What is sent while it is looked is numbered, but not yet sent for who looks.
        unseen.look(&counted(1_500, 450, 0), ms(400));
        unseen.look(&counted(1_550, 450, 0), ms(500));
        unseen.look(&counted(1_550, 450, 0), ms(600));
        assert_eq!(unseen.total(), 110);
        // Numbered, and lost on the way.
        unseen.look(&counted(1_560, 460, 7), ms(700));
        unseen.look(&counted(1_560, 460, 7), ms(800));
        assert_eq!(unseen.total(), 117);
        assert_eq!(unseen.take(ms(1_600), false), None);
        let spell = unseen.take(ms(1_700), false).unwrap();
        assert_eq!((spell.packets, spell.lasted()), (117, ms(600)));
        assert_eq!(unseen.take(ms(9_000), true), None);
    }

    #[test]
    fn what_is_numbered_late_did_not_pass_unseen() {
        let mut unseen = Unseen::default();
        unseen.look(&counted(1_000, 10, 0), ms(100));
        // One is late, and again one; of three, one gets no number. Asked in between, nothing is certain.
        for (at, queued, numbered) in [
            (200, 1_001, 10),
            (300, 1_002, 12),
            (400, 1_005, 12),
            (410, 1_005, 12),
            (430, 1_005, 13),
            (500, 1_007, 16),
        ] {
            assert_eq!(unseen.total(), 0, "{at} ms");
            unseen.look(&counted(queued, numbered, 0), ms(at));
        }
        assert_eq!(unseen.total(), 1);
        let spell = unseen.take(ms(1_500), false).unwrap();
        assert_eq!((spell.packets, spell.lasted()), (1, ms(100)));
        // At the end there is no later look.
        unseen.look(&counted(1_008, 16, 0), ms(1_600));
        let spell = unseen.take(ms(1_600), true).unwrap();
        assert_eq!((spell.packets, unseen.total()), (1, 2));
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
        unseen.look(&counted(9, last.wrapping_add(25), 0), ms(400));
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
        assert_eq!(told.iter().map(|one| one.packets).sum::<u64>(), 1_250);
        let longest = told.iter().map(Spell::lasted).max().unwrap();
        assert!(longest <= LONGEST && told.len() == 3, "{told:?}");
    }
}
