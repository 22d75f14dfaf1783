//! TIME-WAIT: what is left of a connection that we closed first. Source: RFC 9293 sec. 3.6.1.

use std::num::NonZeroU32;
use std::time::Duration;

use linkweir_table::{Id, Table};
use linkweir_wire::{SeqNumber, Timestamp};

use crate::seam::Client;

/// A connection in TIME-WAIT: 20 bytes, 36 with its place in the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub(super) client: Client,
    pub(super) local_port: u16,
    pub(super) remote: u16,
    pub(super) snd_nxt: SeqNumber,
    pub(super) rcv_nxt: SeqNumber,
    /// When it ends: milliseconds, modulo 2^32, with the lowest bit set.
    until: NonZeroU32,
}

/// All of them, in order of age: they all stay for the same time.
#[derive(Debug)]
pub(super) struct TimeWait {
    table: Table<Ended>,
    stay: Duration,
    /// The latest time that was heard of, milliseconds.
    now_ms: u64,
    /// Most that there were.
    peak: usize,
}

const fn until(ms: u64) -> NonZeroU32 {
    #[expect(clippy::cast_possible_truncation, reason = "modulo 2^32")]
    let ms = ms as u32;
    NonZeroU32::MIN.saturating_add(ms & !1)
}

impl TimeWait {
    /// At most `capacity`, for `stay` each (at most 12 days).
    pub(super) fn new(capacity: u32, stay: Duration) -> Self {
        Self {
            table: Table::with_capacity(capacity as usize),
            stay: stay.min(Duration::from_secs(1 << 20)),
            now_ms: 0,
            peak: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.table.len()
    }

    /// Bytes of memory that were touched so far.
    pub(super) const fn memory_bytes(&self) -> usize {
        // Value, hash, three links; the buckets are a quarter of the capacity or more.
        self.peak * (size_of::<Option<Ended>>() + 16) + self.table.capacity().next_power_of_two()
    }

    /// The connection with this hash for which `is_key` holds.
    #[inline]
    pub(super) fn find(&self, hash: u32, is_key: impl Fn(&Ended) -> bool) -> Option<Id> {
        if self.table.is_empty() {
            return None;
        }
        self.table.find(hash, is_key)
    }

    pub(super) fn get(&self, id: Id) -> Option<&Ended> {
        self.table.get(id)
    }

    /// Adds a connection; whether the oldest had to leave for it.
    pub(super) fn add(
        &mut self,
        hash: u32,
        client: Client,
        (local_port, remote): (u16, u16),
        (snd_nxt, rcv_nxt): (SeqNumber, SeqNumber),
        now: Timestamp,
    ) -> bool {
        self.expire(now);
        let mut has_evicted = false;
        if self.table.is_full()
            && let Some((oldest, _)) = self.table.oldest()
        {
            self.table.remove(oldest);
            has_evicted = true;
        }
        let ended = Ended {
            client,
            local_port,
            remote,
            snd_nxt,
            rcv_nxt,
            until: self.until(),
        };
        // There is room.
        self.table.insert(hash, ended).ok();
        self.peak = self.peak.max(self.table.len());
        has_evicted
    }

    /// Begins the wait anew: the server has sent its FIN again.
    pub(super) fn restart(&mut self, id: Id, now: Timestamp) {
        self.expire(now);
        let until = self.until();
        if let Some(ended) = self.table.get_mut(id) {
            ended.until = until;
            self.table.refresh(id);
        }
    }

    fn until(&self) -> NonZeroU32 {
        let stay = u64::try_from(self.stay.as_millis()).unwrap_or(u64::MAX);
        // Rounded up to even, as `until` rounds down.
        until(self.now_ms.saturating_add(stay).saturating_add(1))
    }

    /// Forgets those whose time is over.
    pub(super) fn expire(&mut self, now: Timestamp) {
        self.now_ms = self.now_ms.max(now.as_nanos() / 1_000_000);
        while let Some((id, left)) = self.oldest()
            && left <= 0
        {
            self.table.remove(id);
        }
    }

    /// The oldest, and the milliseconds that it has left.
    fn oldest(&self) -> Option<(Id, i32)> {
        let (id, ended) = self.table.oldest()?;
        let now = until(self.now_ms).get();
        Some((id, ended.until.get().wrapping_sub(now).cast_signed()))
    }

    /// When the oldest ends.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        let (_, left) = self.oldest()?;
        let ms = self.now_ms + u64::try_from(left).unwrap_or(0);
        Some(Timestamp::from_nanos(ms.saturating_mul(1_000_000)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        // Before and after 2^32 ms.
        Timestamp::from_nanos(((1 << 32) - 500 + ms) * 1_000_000)
    }

    fn add(wait: &mut TimeWait, client: Client, ms: u64) -> bool {
        wait.add(client, client, (1, 2), (SeqNumber(3), SeqNumber(4)), at(ms))
    }

    #[test]
    fn they_leave_in_time_and_a_fin_keeps_them() {
        assert!(size_of::<Option<Ended>>() == 20, "with its links 36 bytes");
        let mut wait = TimeWait::new(10, Duration::from_secs(1));
        for client in 0..3 {
            add(&mut wait, client, u64::from(client) * 100);
        }
        let first = wait.find(0, |ended| ended.client == 0).unwrap();
        wait.restart(first, at(400));
        wait.expire(at(1098));
        assert_eq!(wait.len(), 3);
        wait.expire(at(1103));
        assert_eq!(wait.len(), 2, "the second is over");
        assert!(wait.next_deadline() >= Some(at(1200)) && wait.next_deadline() <= Some(at(1203)));
        assert!(wait.get(first).is_some());
        wait.expire(at(1403));
        assert_eq!((wait.len(), wait.next_deadline()), (0, None));
    }

    #[test]
    fn a_full_table_lets_the_oldest_go() {
        let mut wait = TimeWait::new(2, Duration::from_secs(1));
        assert!(!add(&mut wait, 0, 0) && !add(&mut wait, 1, 0) && add(&mut wait, 2, 0));
        assert!(wait.find(0, |ended| ended.client == 0).is_none());
        assert!(wait.find(2, |ended| ended.client == 2).is_some());
    }
}
