//! Questions and records of DNS as lines of a log, where they are asked for.

use linkweir_proto::dns::{Data, Message, Name, RecordType};
use linkweir_record::flow::{DnsEntry, DnsRow, FlowBatch};

use super::Ends;

/// Records of one message that become lines.
const MAX_RECORDS: usize = 64;

/// A message between these ends, the client first.
pub(super) fn push(ends: &Ends, bytes: &[u8], ts_ns: u64, out: &mut FlowBatch) {
    let is_multicast = ends.client.0.is_multicast() || ends.server.0.is_multicast();
    let Some(message) = Message::parse(bytes).filter(|_| !is_multicast) else {
        return;
    };
    let mut name = Name::default();
    let question = message.question(&mut name);
    let row = DnsRow {
        time_ns: ts_ns,
        client: ends.client,
        server: ends.server,
        is_internal: [false; 2],
        is_encrypted: false,
        entry: DnsEntry::Question,
        id: message.id(),
        class: question.map_or(0, |question| question.class),
        kind: question.map_or(0, |question| question.kind.0),
        ttl: 0,
        flags: message.flags(),
        counts: message.counts(),
        size: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
    };
    if !message.is_response() {
        if question.is_some() {
            out.push_dns(row, [name.as_bytes(), &[]]);
        }
        return;
    }
    if message.response_code() != 0 {
        let entry = DnsEntry::Fault(message.response_code());
        return out.push_dns(DnsRow { entry, ..row }, [name.as_bytes(), &[]]);
    }
    for answer in message.answers().take(MAX_RECORDS) {
        let mut target = Name::default();
        let (kind, entry) = match answer.data {
            Data::A(address) => (RecordType::A, DnsEntry::Address(address.into())),
            Data::Aaaa(address) => (RecordType::AAAA, DnsEntry::Address(address.into())),
            Data::Cname(at) if message.read_name(at, &mut target) => {
                (RecordType::CNAME, DnsEntry::Name)
            }
            Data::Cname(_) => (RecordType::CNAME, DnsEntry::Other),
            Data::Txt(_) => (RecordType::TXT, DnsEntry::Other),
            Data::Name(kind, _) | Data::Other(kind) => (kind, DnsEntry::Other),
        };
        // A name that is broken is left empty.
        let _is_whole = message.read_name(answer.owner, &mut name);
        let row = DnsRow {
            entry,
            class: answer.class,
            kind: kind.0,
            ttl: answer.ttl,
            ..row
        };
        out.push_dns(row, [name.as_bytes(), target.as_bytes()]);
    }
}
