//! Queries of DNS and their responses, where records of them are asked for.

use std::io::Write as _;
use std::net::IpAddr;

use linkweir_engine::hash::mix;
use linkweir_proto::dns::{Data, Message, Name, RecordType};
use linkweir_record::Anonymizer;
use linkweir_record::dns::{DnsBatch, DnsQueryRow, type_name};
use linkweir_record::flow::Protocol;
use linkweir_record::http::HttpState;
use linkweir_table::Table;

use super::Ends;
use crate::config::FlowsConfig;
use crate::key::FlowKey;

/// Queries that wait for a response.
const MAX_WAITING: usize = 65_536;
/// How long they do.
const TIMEOUT_NS: u64 = 60_000_000_000;
/// Records of a response that are kept, and bytes of what they say.
const MAX_RECORDS: usize = 256;
const MAX_BYTES: usize = 4096;

/// A query that waits.
#[derive(Debug)]
struct Waiting {
    key: FlowKey,
    row: DnsQueryRow,
    name: Name,
}

/// Pairs the queries of all flows with their responses.
///
/// Memory: some 400 bytes a query that waits, at most 26 MB.
#[derive(Debug)]
pub(super) struct Queries {
    seed: u64,
    waiting: Table<Waiting>,
    anonymizer: Option<Anonymizer>,
    name: Name,
    target: Name,
    answers: Vec<u8>,
    ttls: Vec<u8>,
    /// Queries that had to leave because too many waited.
    pub(super) evicted: u64,
}

impl Queries {
    pub(super) fn new(config: &FlowsConfig) -> Self {
        Self {
            seed: config.hash_seed,
            waiting: Table::with_capacity(MAX_WAITING),
            anonymizer: config.anonymizer.clone(),
            name: Name::default(),
            target: Name::default(),
            answers: Vec::new(),
            ttls: Vec::new(),
            evicted: 0,
        }
    }

    /// A message between these ends, the client first.
    pub(super) fn hear(
        &mut self,
        ends: &Ends,
        protocol: Protocol,
        bytes: &[u8],
        ts_ns: u64,
        out: &mut DnsBatch,
    ) {
        let Some(message) = Message::parse(bytes) else {
            return;
        };
        self.expire(ts_ns, out);
        let question = message.question(&mut self.name);
        let key = FlowKey::between(ends.client, ends.server, protocol);
        let hash = key.hash(self.seed ^ mix(u64::from(message.id())));
        let asked = self.waiting.find(hash, |waiting| {
            waiting.key == key && waiting.row.id == message.id()
        });
        let question = question.map(|question| (question.kind.0, question.class));
        let row = DnsQueryRow {
            client: ends.client,
            server: ends.server,
            protocol,
            id: message.id(),
            question,
            flags: message.flags(),
            flow_id: key.id(ends.start_ns),
            ..DnsQueryRow::default()
        };
        let is_same = asked
            .and_then(|id| self.waiting.get(id))
            .is_some_and(|waiting| waiting.row.question == question && waiting.name == self.name);
        if !message.is_response() {
            if let Some(waiting) = asked
                .filter(|_| is_same)
                .and_then(|id| self.waiting.get_mut(id))
            {
                waiting.row.retransmissions = waiting.row.retransmissions.saturating_add(1);
                return;
            }
            // The client uses the number anew.
            if let Some(waiting) = asked.and_then(|id| self.waiting.remove(id)) {
                self.give_up(waiting, out);
            }
            if self.waiting.is_full() {
                self.evicted += 1;
                self.give_up_oldest(out);
            }
            let row = DnsQueryRow {
                query_ts_ns: Some(ts_ns),
                state: HttpState::Unanswered,
                ..row
            };
            let name = self.name.clone();
            // There is room.
            drop(self.waiting.insert(hash, Waiting { key, row, name }));
            return;
        }
        // Some servers leave the question out of a response that refuses it.
        let is_answer = is_same || question.is_none();
        let query = asked
            .filter(|_| is_answer)
            .and_then(|id| self.waiting.remove(id));
        let [questions, answers, ..] = message.counts();
        let row = DnsQueryRow {
            response_ts_ns: Some(ts_ns),
            state: HttpState::Orphan,
            counts: Some([questions, answers]),
            response_bytes: u32::try_from(bytes.len()).ok(),
            ..row
        };
        self.read_answers(&message);
        let row = match query {
            None => row,
            Some(query) => {
                self.name = query.name;
                DnsQueryRow {
                    query_ts_ns: query.row.query_ts_ns,
                    state: HttpState::Complete,
                    question: query.row.question,
                    retransmissions: query.row.retransmissions,
                    flow_id: query.row.flow_id,
                    ..row
                }
            }
        };
        self.push(row, out);
    }

    /// When the oldest query is to be given up.
    pub(super) fn due(&self) -> Option<u64> {
        let (_, waiting) = self.waiting.oldest()?;
        Some(waiting.row.query_ts_ns?.saturating_add(TIMEOUT_NS))
    }

    /// Writes the queries that have waited too long at `now_ns`.
    pub(super) fn expire(&mut self, now_ns: u64, out: &mut DnsBatch) {
        while self.due().is_some_and(|due| now_ns > due) {
            self.give_up_oldest(out);
        }
    }

    /// Writes all that wait.
    pub(super) fn finish(&mut self, out: &mut DnsBatch) {
        while !self.waiting.is_empty() {
            self.give_up_oldest(out);
        }
    }

    fn give_up_oldest(&mut self, out: &mut DnsBatch) {
        let oldest = self.waiting.oldest().map(|(id, _)| id);
        if let Some(waiting) = oldest.and_then(|id| self.waiting.remove(id)) {
            self.give_up(waiting, out);
        }
    }

    fn give_up(&mut self, waiting: Waiting, out: &mut DnsBatch) {
        let name = std::mem::replace(&mut self.name, waiting.name);
        self.answers.clear();
        self.ttls.clear();
        self.push(waiting.row, out);
        self.name = name;
    }

    fn push(&self, mut row: DnsQueryRow, out: &mut DnsBatch) {
        let mut name = self.name.as_bytes();
        if let Some(anonymizer) = &self.anonymizer {
            for end in [&mut row.client, &mut row.server] {
                end.0 = anonymizer.replace(end.0);
            }
            // The names of addresses are addresses (RFC 1035 sec. 3.5, RFC 3596 sec. 2.5).
            for suffix in [&b"in-addr.arpa"[..], b"ip6.arpa"] {
                if name.ends_with(suffix) {
                    name = suffix;
                }
            }
        }
        out.push(row, [name, &self.answers, &self.ttls]);
    }

    /// What the records of the answer section say.
    fn read_answers(&mut self, message: &Message<'_>) {
        self.answers.clear();
        self.ttls.clear();
        for record in message.answers().take(MAX_RECORDS) {
            if self.answers.len() > MAX_BYTES {
                return;
            }
            if !self.ttls.is_empty() {
                self.answers.push(b',');
                self.ttls.push(b',');
            }
            let address = |address: IpAddr| match &self.anonymizer {
                Some(anonymizer) => anonymizer.replace(address),
                None => address,
            };
            // Writing to a vector cannot fail.
            let _never_fails = write!(self.ttls, "{}", record.ttl);
            match record.data {
                Data::A(v4) => {
                    let _never_fails = write!(self.answers, "{}", address(v4.into()));
                }
                Data::Aaaa(v6) => {
                    let _never_fails = write!(self.answers, "{}", address(v6.into()));
                }
                Data::Cname(at) | Data::Name(_, at) => {
                    // A name that is broken is left empty.
                    let _is_whole = message.read_name(at, &mut self.target);
                    push_item(&mut self.answers, self.target.as_bytes());
                }
                Data::Txt(at) => {
                    for (number, text) in message.texts(at).enumerate() {
                        if number > 0 {
                            self.answers.push(b' ');
                        }
                        push_item(&mut self.answers, text);
                    }
                }
                Data::Other(RecordType(kind)) => match type_name(kind) {
                    Some(name) => self.answers.extend_from_slice(name.as_bytes()),
                    None => {
                        let _never_fails = write!(self.answers, "TYPE{kind}");
                    }
                },
            }
        }
    }
}

/// Commas stand between items, not in them.
fn push_item(out: &mut Vec<u8>, item: &[u8]) {
    for byte in item {
        match byte {
            b',' => out.extend_from_slice(b"\\x2c"),
            b'\\' => out.extend_from_slice(b"\\x5c"),
            byte => out.push(*byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use linkweir_record::{DnsKind, RecordBatch};

    use super::*;

    fn ends() -> Ends {
        Ends {
            client: ([10, 0, 0, 1].into(), 40_000),
            server: ([10, 0, 0, 2].into(), 53),
            start_ns: 1,
        }
    }

    /// A message about `a.example`; a response has the addresses.
    fn message(id: u16, addresses: &[[u8; 4]], flags: u16) -> Vec<u8> {
        let mut bytes = id.to_be_bytes().to_vec();
        bytes.extend(flags.to_be_bytes());
        bytes.extend([0, 1, 0, u8::try_from(addresses.len()).unwrap(), 0, 0, 0, 0]);
        bytes.extend(b"\x01a\x07example\x00\x00\x01\x00\x01");
        for address in addresses {
            bytes.extend(b"\xC0\x0C\x00\x01\x00\x01\x00\x00\x00\x3C\x00\x04");
            bytes.extend(address);
        }
        bytes
    }

    fn queries() -> (Queries, DnsBatch) {
        (Queries::new(&FlowsConfig::default()), DnsBatch::default())
    }

    fn states(out: &DnsBatch) -> Vec<HttpState> {
        RecordBatch::<DnsKind>::views(out)
            .map(|query| query.row.state)
            .collect()
    }

    #[test]
    fn a_query_and_its_response_are_one_record() {
        let (mut queries, mut out) = queries();
        let mut hear = |bytes: &[u8], at| queries.hear(&ends(), Protocol::Udp, bytes, at, &mut out);
        hear(&message(7, &[], 0x0100), 1_000);
        hear(&message(7, &[], 0x0100), 2_000);
        hear(
            &message(7, &[[192, 0, 2, 1], [192, 0, 2, 2]], 0x8180),
            5_000,
        );
        let query = out.get(0).unwrap();
        assert_eq!(query.row.response_time_ns(), Some(4_000));
        assert_eq!(
            (query.row.retransmissions, query.row.state),
            (1, HttpState::Complete)
        );
        assert_eq!(
            query.texts,
            [&b"a.example"[..], b"192.0.2.1,192.0.2.2", b"60,60"]
        );
        // It comes again.
        queries.hear(
            &ends(),
            Protocol::Udp,
            &message(7, &[], 0x8183),
            6_000,
            &mut out,
        );
        assert_eq!(states(&out), [HttpState::Complete, HttpState::Orphan]);
    }

    #[test]
    fn the_same_number_over_another_transport_is_another_query() {
        let (mut queries, mut out) = queries();
        queries.hear(
            &ends(),
            Protocol::Udp,
            &message(7, &[], 0x0100),
            1_000,
            &mut out,
        );
        queries.hear(
            &ends(),
            Protocol::Tcp,
            &message(7, &[], 0x8180),
            2_000,
            &mut out,
        );
        queries.finish(&mut out);
        assert_eq!(states(&out), [HttpState::Orphan, HttpState::Unanswered]);
    }

    #[test]
    fn without_a_response_a_query_ends_after_a_minute() {
        let (mut queries, mut out) = queries();
        queries.hear(
            &ends(),
            Protocol::Udp,
            &message(7, &[], 0x0100),
            1_000,
            &mut out,
        );
        queries.expire(1_000 + TIMEOUT_NS, &mut out);
        assert!(out.is_empty());
        queries.expire(1_001 + TIMEOUT_NS, &mut out);
        assert_eq!(states(&out), [HttpState::Unanswered]);
        assert_eq!(out.get(0).unwrap().texts[0], b"a.example");
    }

    #[test]
    fn a_full_table_gives_the_oldest_up() {
        let (mut queries, mut out) = queries();
        for number in 0..=MAX_WAITING {
            let ends = Ends {
                client: (
                    [10, 0, 0, 1].into(),
                    u16::try_from(number % 65_536).unwrap(),
                ),
                server: ([10, 0, 1, u8::try_from(number >> 16).unwrap()].into(), 53),
                start_ns: 1,
            };
            queries.hear(
                &ends,
                Protocol::Udp,
                &message(7, &[], 0x0100),
                1_000,
                &mut out,
            );
        }
        assert_eq!((out.len(), queries.evicted), (1, 1));
        queries.finish(&mut out);
        assert_eq!(out.len(), MAX_WAITING + 1);
    }

    #[test]
    fn names_of_addresses_do_not_give_them_away() {
        let config = FlowsConfig {
            anonymizer: Some(Anonymizer::new(&[7; 32])),
            ..FlowsConfig::default()
        };
        let (mut queries, mut out) = (Queries::new(&config), DnsBatch::default());
        let mut bytes = vec![0, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        bytes.extend(b"\x012\x010\x010\x0210\x07in-addr\x04arpa\x00\x00\x0c\x00\x01");
        queries.hear(&ends(), Protocol::Udp, &bytes, 1_000, &mut out);
        queries.finish(&mut out);
        let query = out.get(0).unwrap();
        assert_eq!(query.texts[0], b"in-addr.arpa");
        assert_ne!(query.row.client.0, ends().client.0);
    }

    #[test]
    fn commas_in_texts_are_escaped() {
        let mut out = Vec::new();
        push_item(&mut out, b"a,b\\x2c");
        assert_eq!(out, b"a\\x2cb\\x5cx2c");
    }
}
