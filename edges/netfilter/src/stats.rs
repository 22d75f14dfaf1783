//! What the kernel counts at its packet queues.
//!
//! Source: `/proc/net/netfilter/nfnetlink_queue`, as `net/netfilter/nfnetlink_queue.c` of Linux writes
//! it: nine numbers a line.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};

/// The table of the network namespace of the thread that reads; `/proc/net` would be that of the
/// thread the process began with. Root may read it.
const TABLE: &str = "/proc/thread-self/net/netfilter/nfnetlink_queue";

/// A queue, as the kernel sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelQueue {
    /// Its number.
    pub number: u16,
    /// The netlink port of who serves it: as a rule its process id.
    pub port: u32,
    /// Packets without a verdict now.
    pub waiting: u32,
    /// What of a packet goes to user space: 0 nothing, 1 its description, 2 its bytes too.
    pub copy_mode: u8,
    /// How many of its bytes.
    pub copy_range: u32,
    /// Packets that came while the queue was full and were dropped. With fail-open they pass, and are not counted.
    pub queue_dropped: u32,
    /// Packets for which the socket had no room: dropped. With fail-open they pass, and are not counted.
    pub user_dropped: u32,
    /// The number the last packet got: how many there were, modulo 2^32.
    pub last_id: u32,
}

/// The table, held open: who opened it as root reads it also when it is root no more.
#[derive(Debug)]
pub struct QueueTable(File);

impl QueueTable {
    /// Opens that of this network namespace.
    ///
    /// # Errors
    /// No queue was bound yet since the system came up (`NotFound`), or not root.
    pub fn open() -> io::Result<Self> {
        File::open(TABLE).map(Self)
    }

    /// All queues that somebody serves.
    ///
    /// # Errors
    /// What the system says.
    pub fn read(&self) -> io::Result<Vec<KernelQueue>> {
        let mut file = &self.0;
        file.rewind()?;
        let mut table = String::new();
        file.read_to_string(&mut table)?;
        Ok(table.lines().filter_map(parse_line).collect())
    }
}

/// All queues of this network namespace that somebody serves.
///
/// # Errors
/// As [`QueueTable::open`].
pub fn kernel_queues() -> io::Result<Vec<KernelQueue>> {
    QueueTable::open()?.read()
}

/// One of them; `None` where nobody serves it.
///
/// # Errors
/// As [`kernel_queues`].
pub fn kernel_queue(number: u16) -> io::Result<Option<KernelQueue>> {
    let all = kernel_queues()?;
    Ok(all.into_iter().find(|queue| queue.number == number))
}

fn parse_line(line: &str) -> Option<KernelQueue> {
    let mut fields = line.split_ascii_whitespace();
    // More fields may come one day; fewer never did.
    Some(KernelQueue {
        number: fields.next()?.parse().ok()?,
        port: fields.next()?.parse().ok()?,
        waiting: fields.next()?.parse().ok()?,
        copy_mode: fields.next()?.parse().ok()?,
        copy_range: fields.next()?.parse().ok()?,
        queue_dropped: fields.next()?.parse().ok()?,
        user_dropped: fields.next()?.parse().ok()?,
        last_id: fields.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_is_read_field_by_field() {
        let line = "   20  51734   317 2 65531    12     3   100234  1";
        let queue = KernelQueue {
            number: 20,
            port: 51_734,
            waiting: 317,
            copy_mode: 2,
            copy_range: 65_531,
            queue_dropped: 12,
            user_dropped: 3,
            last_id: 100_234,
        };
        assert_eq!(parse_line(line), Some(queue));
    }

    #[test]
    fn what_is_no_line_is_no_queue() {
        for line in [
            "",
            "20 51734 317 2 65531 12 3",
            "70000 1 1 1 1 1 1 1 1",
            "a b",
        ] {
            assert_eq!(parse_line(line), None, "{line:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(line in "[0-9 a\\-]{0,60}") {
            if let Some(queue) = parse_line(&line) {
                prop_assert!(line.contains(&queue.last_id.to_string()));
            }
        }
    }
}
