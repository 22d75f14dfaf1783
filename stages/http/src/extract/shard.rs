//! Which rows must meet: the rule of [`linkweir_record::half`], which engines state in SQL.
//!
//! A connection in which everything is plain and follows in order has no memory beyond a transaction, so
//! each of its messages goes by Eq. (3). Any other connection goes as a whole. That can be told only by
//! all rows of a connection, of all files.

use std::collections::HashMap;

use linkweir_engine::hash::Endpoint;
use linkweir_record::HalfRow;

/// The shard of each of `rows`, which are in the order of (`order_ns`, `file`, `packet`); `None` for rows
/// that no shard needs.
#[must_use]
pub fn distribute(rows: &[HalfRow], shards: u32) -> Vec<Option<u32>> {
    let shards = shards.max(1);
    let mut connections: HashMap<u64, Judged> = HashMap::new();
    for row in rows {
        connections.entry(row.connection).or_default().add(row);
    }
    let of = |row: &HalfRow| {
        let is_by_message = connections
            .get(&row.connection)
            .is_some_and(|judged| !judged.is_whole);
        match (is_by_message, row.is_request) {
            (true, None) => None,
            (true, Some(_)) => Some(row.eq3 % shards),
            (false, _) => u32::try_from(row.connection % u64::from(shards)).ok(),
        }
    };
    rows.iter().map(of).collect()
}

/// `a` is not before `b` on the circle of sequence numbers.
const fn follows(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) < 1 << 31
}

/// A connection, as far as its rows were looked at.
#[derive(Debug, Default)]
struct Judged {
    is_whole: bool,
    client: Option<Endpoint>,
    /// By sender.
    directions: Vec<(Endpoint, Last)>,
}

/// What is known of the messages that a side has sent.
#[derive(Debug, Default, Clone, Copy)]
struct Last {
    message: Option<(u32, u32)>,
    end: Option<u32>,
}

impl Judged {
    fn add(&mut self, row: &HalfRow) {
        let (src, dst) = ((row.src_ip, row.src_port), (row.dst_ip, row.dst_port));
        let at = match self.directions.iter().position(|(end, _)| *end == src) {
            Some(at) => at,
            None => {
                self.directions.push((src, Last::default()));
                self.directions.len() - 1
            }
        };
        let Some((_, last)) = self.directions.get_mut(at) else {
            return;
        };
        let mut fits = row.is_plain && last.admits(row);
        if let Some(is_request) = row.is_request {
            let client = if is_request { src } else { dst };
            fits &= *self.client.get_or_insert(client) == client;
            last.message = Some((row.seq, row.ack));
            last.end = row.end_seq.or(last.end);
        }
        self.is_whole |= !fits;
    }
}

impl Last {
    /// Whether a row follows such that nothing before it has to do with it.
    fn admits(&self, row: &HalfRow) -> bool {
        let is_behind = self.end.is_none_or(|end| follows(row.seq, end));
        let Some(is_request) = row.is_request else {
            let row_end = row.seq.wrapping_add(row.payload_len);
            return is_behind || self.end.is_some_and(|end| follows(end, row_end));
        };
        let Some((seq, ack)) = self.message else {
            return true;
        };
        if row.seq == seq {
            return !is_request || row.ack == ack;
        }
        let is_new_link = row.ack != ack && follows(row.ack, ack);
        follows(row.seq, seq) && is_behind && (!is_request || is_new_link)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    const CLIENT: Endpoint = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 4000);
    const SERVER: Endpoint = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 80);

    fn row(is_request: Option<bool>, seq: u32, ack: u32, end: Option<u32>) -> HalfRow {
        let (src, dst) = if is_request == Some(false) {
            (SERVER, CLIENT)
        } else {
            (CLIENT, SERVER)
        };
        HalfRow {
            src_ip: src.0,
            src_port: src.1,
            dst_ip: dst.0,
            dst_port: dst.1,
            seq,
            ack,
            end_seq: end,
            payload_len: 10,
            is_request,
            is_plain: true,
            connection: 5,
            eq3: if is_request == Some(false) { seq } else { ack },
            ..HalfRow::default()
        }
    }

    fn request(seq: u32, ack: u32) -> HalfRow {
        row(Some(true), seq, ack, Some(seq.wrapping_add(10)))
    }

    fn response(seq: u32, ack: u32) -> HalfRow {
        row(Some(false), seq, ack, None)
    }

    #[test]
    fn plain_messages_go_by_themselves() {
        let rows = [
            request(u32::MAX - 4, 100),
            response(100, 6),
            request(u32::MAX - 4, 100),
            request(6, 201),
            response(201, 16),
        ];
        let distributed: Vec<u32> = distribute(&rows, 100).into_iter().flatten().collect();
        assert_eq!(distributed, [0, 0, 0, 1, 1]);
    }

    #[test]
    fn what_is_not_in_order_goes_as_a_whole() {
        let whole = |rows: &[HalfRow]| distribute(rows, 1000).iter().all(|shard| *shard == Some(5));
        let plain = [request(1, 100), response(100, 11)];
        assert!(!whole(&plain));
        let more = [
            // Pipelined.
            request(11, 100),
            // Older than the one before it, or overlapping it.
            request(0, 201),
            request(9, 201),
            // The same request, acknowledging more.
            request(1, 201),
            // An older response.
            response(90, 11),
            // Another client.
            row(Some(true), 11, 200, None),
            HalfRow {
                is_plain: false,
                ..request(11, 200)
            },
            // A message is expected inside.
            row(None, 6, 0, None),
        ];
        for (at, last) in more.into_iter().enumerate() {
            let mut last = last;
            if at == 5 {
                last = HalfRow {
                    src_ip: last.dst_ip,
                    src_port: last.dst_port,
                    dst_ip: last.src_ip,
                    dst_port: last.src_port,
                    ..last
                };
            }
            let rows = [plain.as_slice(), &[last]].concat();
            assert!(whole(&rows), "{at}");
        }
    }

    #[test]
    fn rows_without_a_message_are_needed_only_by_whole_connections() {
        let rows = [row(None, 0, 0, None), request(10, 100), response(100, 20)];
        assert_eq!(distribute(&rows, 7).first(), Some(&None));
    }
}
