//! Binary records of the 1998 World Cup web site.
//!
//! ```text
//! 0         4         8         12    16     17     18   19     20
//! | time s  | client  | object  | size | method | status | type | server |
//! ```
//! Numbers are big-endian, the time is seconds since 1970 (GMT), the client is a number that stands
//! for one address in all files. Source: the README of the data set (Arlitt, Jin 1998).

use super::calendar::SECOND_NS;
use super::{Client, Request};

/// Bytes of a record.
pub const RECORD_BYTES: usize = 20;

/// Reads a record.
pub(super) fn parse(record: &[u8; RECORD_BYTES]) -> Request {
    let [t0, t1, t2, t3, c0, c1, c2, c3, ..] = *record;
    Request {
        time_ns: u64::from(u32::from_be_bytes([t0, t1, t2, t3])) * SECOND_NS,
        client: Client::Number(u32::from_be_bytes([c0, c1, c2, c3])),
        line: 0,
    }
}

/// Whether a stream begins with such records: times of the event, methods that exist.
pub(super) fn looks_like(beginning: &[u8]) -> bool {
    /// 1998-04-30 to 1998-07-27, with a day to spare on both sides.
    const EVENT: std::ops::Range<u64> = 893_808_000..901_584_000;
    /// Methods are numbered from 0; the last is "other".
    const LAST_METHOD: u8 = 8;
    let (records, _) = beginning.as_chunks::<RECORD_BYTES>();
    let mut first = records.iter().take(3).peekable();
    first.peek().is_some()
        && first.all(|record| {
            let [.., method, _, _, _] = *record;
            EVENT.contains(&(parse(record).time_ns / SECOND_NS)) && method <= LAST_METHOD
        })
}
