//! What may go on at the beginning of a file: heads and bodies that began in the file before.
//!
//! Until a message begins in a direction, or the direction itself, it is unknown what its first bytes
//! are. What could be the rest of a head is kept, up to the bytes that a head may have. Where the
//! direction itself began before the file, the segments in which a start line stands are kept as well,
//! with the rest of its head: with a request in the file before, a response may be taken for that of
//! another one, and then its length with it (`HEAD`). A timeout later nothing from before the file is
//! awaited any more.

use linkweir_proto::http1::MAX_HEAD;
use linkweir_table::{Id, Table};
use linkweir_wire::SeqNumber;
use memchr::memmem::Finder;

use crate::key::{Connection, ConnectionHash, Meaning};

/// Directions that are known at once; one that was forgotten counts as new, which costs rows only.
const DIRECTIONS: usize = 1 << 16;

/// Bytes of a segment by which the rest of a head is distinguished from a binary body.
const LOOK: usize = 64;

/// With what the version of a start line begins.
const VERSION: &[u8] = b"HTTP/1.";

/// What is known of a direction.
#[derive(Debug)]
struct Direction {
    key: Connection,
    stage: Stage,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    /// Everything that matters from now on began in this file.
    Known,
    /// What is sent may go on with something of the file before.
    Open {
        /// A head that goes on ends here at the latest.
        head_end: Option<SeqNumber>,
        /// Bytes that may still be kept as the rest of a head.
        left: usize,
        /// Where the rest of a start line comes that ends with a segment, and how much of [`VERSION`]
        /// was there.
        split: Option<(SeqNumber, usize)>,
    },
}

impl Stage {
    /// What is sent may go on with a head of at most `left` bytes.
    const fn open(left: usize) -> Self {
        Self::Open {
            head_end: None,
            left,
            split: None,
        }
    }

    /// Looks for start lines; whether there is one, or the beginning of one.
    fn look(&mut self, start_line: &Finder<'_>, seq: SeqNumber, payload: &[u8]) -> bool {
        let Self::Open {
            head_end,
            left,
            split,
        } = self
        else {
            return false;
        };
        let goes_on = split.filter(|(next, _)| *next == seq).map(|(_, had)| had);
        let rest = goes_on
            .and_then(|had| VERSION.get(had..))
            .unwrap_or(VERSION);
        if start_line.find(payload).is_some() || goes_on.is_some() && payload.starts_with(rest) {
            // Perhaps a head begins inside, and goes on.
            *head_end = None;
            *left = MAX_HEAD;
            *split = None;
            return true;
        }
        let end = SeqNumber(
            seq.0
                .wrapping_add(u32::try_from(payload.len()).unwrap_or(u32::MAX)),
        );
        let had = match goes_on {
            // So little that the version is not even whole now.
            Some(had) if rest.starts_with(payload) => had + payload.len(),
            _ => begun(payload),
        };
        if had > 0 {
            *split = Some((end, had));
        }
        had > 0
    }
}

/// The directions at the beginning of a file.
#[derive(Debug)]
pub(super) struct FileStart {
    seed: u64,
    table: Table<Direction>,
    start_line: Finder<'static>,
    /// Capture time from which nothing of before the file is awaited, nanoseconds.
    until_ns: u64,
}

impl FileStart {
    /// Until `until_ns`; `seed` is that of the table's hash.
    pub(super) fn new(until_ns: u64, seed: u64) -> Self {
        Self {
            seed,
            table: Table::with_capacity(DIRECTIONS),
            start_line: Finder::new(VERSION),
            until_ns,
        }
    }

    /// Whether the beginning of the file is over.
    pub(super) const fn is_over(&self, now_ns: u64) -> bool {
        now_ns > self.until_ns
    }

    fn file_under(&self, direction: &Connection) -> u32 {
        let hash = ConnectionHash::new(self.seed, direction).with(Meaning::Direction, 0);
        u32::try_from(hash >> 32).unwrap_or_default()
    }

    /// The entry of a direction, and whether it is new.
    fn entry(&mut self, direction: &Connection, stage: Stage) -> Option<(Id, bool)> {
        let file = self.file_under(direction);
        let found = self.table.find(file, |entry| entry.key == *direction);
        if let Some(id) = found {
            return Some((id, false));
        }
        if self.table.is_full()
            && let Some((oldest, _)) = self.table.oldest()
        {
            self.table.remove(oldest);
        }
        let entry = Direction {
            key: *direction,
            stage,
        };
        self.table.insert(file, entry).ok().map(|id| (id, true))
    }

    /// The direction begins in this file.
    pub(super) fn begins(&mut self, direction: &Connection) {
        if let Some((id, false)) = self.entry(direction, Stage::Known)
            && let Some(entry) = self.table.get_mut(id)
        {
            entry.stage = Stage::Known;
        }
    }

    /// A message begins in the direction: no head of before goes on.
    pub(super) fn has_message(&mut self, direction: &Connection) {
        if let Some((id, false)) = self.entry(direction, Stage::open(0))
            && let Some(entry) = self.table.get_mut(id)
            && matches!(entry.stage, Stage::Open { .. })
        {
            entry.stage = Stage::open(0);
        }
    }

    /// The stage of a direction, which may go on with something of the file before if nothing is known
    /// of it; and what finds start lines.
    fn stage(&mut self, direction: &Connection) -> Option<(&mut Stage, &Finder<'static>)> {
        let (id, _) = self.entry(direction, Stage::open(MAX_HEAD))?;
        let entry = self.table.get_mut(id)?;
        Some((&mut entry.stage, &self.start_line))
    }

    /// Looks for start lines in bytes that the stage has looked at, perhaps for others. Whether there is
    /// one, or the beginning of one.
    pub(super) fn look(&mut self, direction: &Connection, seq: SeqNumber, payload: &[u8]) -> bool {
        self.stage(direction)
            .is_none_or(|(stage, start_line)| stage.look(start_line, seq, payload))
    }

    /// Whether a segment that the stage passes over could matter if the file before were known.
    pub(super) fn may_matter(
        &mut self,
        direction: &Connection,
        seq: SeqNumber,
        payload: &[u8],
    ) -> bool {
        let Some((stage, start_line)) = self.stage(direction) else {
            return true;
        };
        let has_start = stage.look(start_line, seq, payload);
        let Stage::Open { head_end, left, .. } = stage else {
            return false;
        };
        if has_start {
            *left = left.saturating_sub(payload.len());
            return true;
        }
        if head_end.is_some_and(|end| !seq.before(end)) || *left == 0 {
            return false;
        }
        if let Some(end) = rest_of_head(payload) {
            *head_end = Some(SeqNumber(
                seq.0.wrapping_add(u32::try_from(end).unwrap_or(u32::MAX)),
            ));
            if end == 0 {
                return false;
            }
        }
        *left = left.saturating_sub(payload.len());
        true
    }
}

/// How many bytes of [`VERSION`] stand at the end of a payload, without the last of it.
fn begun(payload: &[u8]) -> usize {
    let most = (VERSION.len() - 1).min(payload.len());
    let ends = |had: &usize| {
        VERSION
            .get(..*had)
            .is_some_and(|part| payload.ends_with(part))
    };
    (1..=most).rev().find(ends).unwrap_or(0)
}

/// How many bytes of a payload may be the rest of a head, where that is not all of it: up to the empty
/// line that ends it, and none where there are bytes that no head has.
fn rest_of_head(payload: &[u8]) -> Option<usize> {
    let mut is_line_start = payload.starts_with(b"\n") || payload.starts_with(b"\r\n");
    for (at, byte) in payload.iter().enumerate() {
        match byte {
            b'\n' if is_line_start => return Some(at + 1),
            b'\n' => is_line_start = true,
            b'\r' => {}
            b'\t' => is_line_start = false,
            0..=31 | 127 if at < LOOK => return Some(0),
            _ => is_line_start = false,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn direction(port: u16) -> Connection {
        let end = |last, port| (IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), port);
        Connection {
            client: end(1, port),
            server: end(2, 80),
        }
    }

    #[test]
    fn the_rest_of_a_head_ends_with_an_empty_line() {
        assert_eq!(rest_of_head(b"t: x\r\nHost: a\r\n\r\nbody"), Some(17));
        assert_eq!(rest_of_head(b"\r\nbody"), Some(2));
        assert_eq!(rest_of_head(b"a\n\nbody"), Some(3));
        assert_eq!(rest_of_head(b"name: value\r\n"), None);
        assert_eq!(rest_of_head(b"\x89PNG\r\n\x1a\n\0"), Some(0));
    }

    #[test]
    fn a_direction_is_open_until_something_begins_in_it() {
        let mut file_start = FileStart::new(100, 7);
        let one = direction(1000);
        assert!(file_start.may_matter(&one, SeqNumber(1), b"Agent: x\r\n"));
        assert!(file_start.may_matter(&one, SeqNumber(11), b"Host: y\r\n\r\nbody"));
        assert!(!file_start.may_matter(&one, SeqNumber(26), b"body"));
        assert!(file_start.may_matter(&one, SeqNumber(30), b"bodyHTTP/1.1 200 OK\r\n"));
        file_start.has_message(&one);
        assert!(!file_start.may_matter(&one, SeqNumber(1), b"Agent: x\r\n"));
        // The rest of a head that has begun inside, also where its first word is split.
        assert!(file_start.may_matter(&one, SeqNumber(100), b"body\r\nHT"));
        assert!(!file_start.may_matter(&one, SeqNumber(90), b"Agent: x\r\n"));
        assert!(file_start.may_matter(&one, SeqNumber(108), b"T"));
        assert!(file_start.may_matter(&one, SeqNumber(109), b"P/1.1 200 OK\r\n"));
        assert!(file_start.may_matter(&one, SeqNumber(123), b"Server: x\r\n\r\nbody"));
        assert!(!file_start.may_matter(&one, SeqNumber(140), b"body"));
        file_start.begins(&one);
        assert!(!file_start.may_matter(&one, SeqNumber(150), b"HTTP/1.1 200 OK\r\n"));
        let other = direction(1001);
        file_start.begins(&other);
        assert!(!file_start.may_matter(&other, SeqNumber(1), b"Agent: x\r\n"));
        assert!(!file_start.is_over(100) && file_start.is_over(101));
    }

    #[test]
    fn a_head_has_a_greatest_length() {
        let mut file_start = FileStart::new(100, 7);
        let line = [b'x'; 1024];
        let kept = (0..100)
            .filter(|n| file_start.may_matter(&direction(1), SeqNumber(n * 1024), &line))
            .count();
        assert_eq!(kept, MAX_HEAD / 1024);
    }
}
