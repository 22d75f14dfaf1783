//! Records of `linkweir http`: what a capture saw, as a log.
//!
//! A response without its request (an orphan) has no time of a request and gives none.
//!
//! Binary records of the 1998 World Cup web site.
//!
//! ```text
//! 0         4         8         12    16     17     18   19     20
//! | time s  | client  | object  | size | method | status | type | server |
//! ```
//! Numbers are big-endian, the time is seconds since 1970 (GMT), the client is a number that stands
//! for one address in all files. Source: the README of the data set (Arlitt, Jin 1998).

use super::calendar::{Digits, SECOND_NS};
use super::{Cause, Client, Request};
use serde::Deserialize;
use std::net::IpAddr;

/// Fields of the text line.
const TEXT_FIELDS: usize = 13;

/// What of a JSON object matters.
#[derive(Debug, Deserialize)]
struct Line {
    client_ip: IpAddr,
    request_ts_ns: Option<u64>,
}

fn request(client: IpAddr, time_ns: Option<u64>) -> Result<Request, Cause> {
    Ok(Request {
        time_ns: time_ns.ok_or(Cause::NoRequest)?,
        client: Client::Address(client.to_canonical()),
        line: 0,
    })
}

fn address(text: &[u8]) -> Result<IpAddr, Cause> {
    let text = std::str::from_utf8(text).map_err(|_| Cause::Client)?;
    text.parse().map_err(|_| Cause::Client)
}

/// Reads a JSON object.
pub(super) fn json(line: &[u8]) -> Result<Request, Cause> {
    let line: Line = serde_json::from_slice(line).map_err(|_| Cause::Record)?;
    request(line.client_ip, line.request_ts_ns)
}

/// Reads a line of text: the client is its first field, the time of the request its fifth, in
/// seconds with nine decimals.
pub(super) fn text(line: &[u8]) -> Result<Request, Cause> {
    let mut fields = line.split(|byte| *byte == b'|');
    let client = fields.next().ok_or(Cause::Record)?;
    let time = fields.nth(3).ok_or(Cause::Record)?;
    if fields.count() != TEXT_FIELDS - 5 {
        return Err(Cause::Record);
    }
    let client = address(client)?;
    if time.is_empty() {
        return Err(Cause::NoRequest);
    }
    let time_ns = seconds(time).ok_or(Cause::Time)?;
    request(client, Some(time_ns))
}

fn seconds(text: &[u8]) -> Option<u64> {
    let whole = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = Digits(text);
    let whole = u64::try_from(at.number(whole.max(1))?).ok()?;
    let nanos = at.fraction()?;
    if !at.rest().is_empty() {
        return None;
    }
    whole.checked_mul(SECOND_NS)?.checked_add(nanos.into())
}

/// Where the two fields stand in a table with commas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Columns {
    client: usize,
    time: usize,
}

impl Columns {
    /// Of a heading; nothing where it is not one of such records.
    pub(super) fn of_heading(line: &[u8]) -> Option<Self> {
        let place = |name: &[u8]| fields(line).position(|field| field == name);
        Some(Self {
            client: place(b"client_ip")?,
            time: place(b"request_ts_ns")?,
        })
    }

    /// Reads a line.
    pub(super) fn request(self, line: &[u8]) -> Result<Request, Cause> {
        let client = fields(line).nth(self.client).ok_or(Cause::Record)?;
        let time = fields(line).nth(self.time).ok_or(Cause::Record)?;
        let client = address(client)?;
        let time_ns = match time {
            [] => None,
            digits => {
                let text = std::str::from_utf8(digits).map_err(|_| Cause::Time)?;
                Some(text.parse().map_err(|_| Cause::Time)?)
            }
        };
        request(client, time_ns)
    }
}

/// The fields of a line with commas; one in quotes may hold commas, and keeps its quotes.
fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut is_quoted = false;
    line.split(move |byte| {
        is_quoted ^= *byte == b'"';
        *byte == b',' && !is_quoted
    })
}

/// Bytes of a record.
pub const RECORD_BYTES: usize = 20;

/// Reads a record.
pub(super) fn world_cup(record: &[u8; RECORD_BYTES]) -> Request {
    let [t0, t1, t2, t3, c0, c1, c2, c3, ..] = *record;
    Request {
        time_ns: u64::from(u32::from_be_bytes([t0, t1, t2, t3])) * SECOND_NS,
        client: Client::Number(u32::from_be_bytes([c0, c1, c2, c3])),
        line: 0,
    }
}

/// Whether a stream begins with such records: times of the event, methods that exist.
pub(super) fn is_world_cup(beginning: &[u8]) -> bool {
    /// 1998-04-30 to 1998-07-27, with a day to spare on both sides.
    const EVENT: std::ops::Range<u64> = 893_808_000..901_584_000;
    /// Methods are numbered from 0; the last is "other".
    const LAST_METHOD: u8 = 8;
    let (records, _) = beginning.as_chunks::<RECORD_BYTES>();
    let mut first = records.iter().take(3).peekable();
    first.peek().is_some()
        && first.all(|record| {
            let [.., method, _, _, _] = *record;
            EVENT.contains(&(world_cup(record).time_ns / SECOND_NS)) && method <= LAST_METHOD
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_in_three_forms() {
        let expected = Ok(Request {
            time_ns: 1_795_227_738_900_456_000,
            client: Client::Address([10, 80, 0, 11].into()),
            line: 0,
        });
        let object = br#"{"client_ip":"10.80.0.11","client_port":1,"request_ts_ns":1795227738900456000,"uri":"/"}"#;
        assert_eq!(json(object), expected);
        let line = b"10.80.0.11|27200|10.80.0.1|80|1795227738.900456000|1795227738.901556000|0.001100000|OK|200|GET|curl|h|/";
        assert_eq!(text(line), expected);
        let columns = Columns::of_heading(b"client_ip,user_agent,request_ts_ns\r").unwrap();
        let line = b"10.80.0.11,\"a, \"\"b\"\", c\",1795227738900456000\r";
        assert_eq!(columns.request(line), expected);
    }

    #[test]
    fn orphans_and_damage() {
        let object = br#"{"client_ip":"::1","request_ts_ns":null}"#;
        assert_eq!(json(object), Err(Cause::NoRequest));
        for wrong in [
            &br#"{"request_ts_ns":5}"#[..],
            br#"{"client_ip":"::1","request_ts_ns":-5}"#,
            br#"{"client_ip":"::1""#,
            b"",
        ] {
            assert_eq!(json(wrong), Err(Cause::Record));
        }
        assert_eq!(text(b"::1|1|::2|80||5.0|||200||||"), Err(Cause::NoRequest));
        assert_eq!(text(b"::1|1|::2|80|5.x|5.0|||200||||"), Err(Cause::Time));
        assert_eq!(text(b"x|1|::2|80|5.0|5.0|||200||||"), Err(Cause::Client));
        assert_eq!(text(b"::1|1|::2"), Err(Cause::Record));
        let columns = Columns::of_heading(b"client_ip,request_ts_ns").unwrap();
        assert_eq!(columns.request(b"::1,"), Err(Cause::NoRequest));
        assert_eq!(columns.request(b"::1,1e9"), Err(Cause::Time));
        assert_eq!(columns.request(b"::1"), Err(Cause::Record));
        assert_eq!(Columns::of_heading(b"time,client_ip"), None);
    }
}
