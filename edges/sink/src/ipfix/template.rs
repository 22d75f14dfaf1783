//! Templates, and records by them.

use std::net::{IpAddr, Ipv4Addr};

use linkweir_record::flow::{Flow, Protocol};

use super::element::{
    ELEMENTS, Element, MAX_TEXT, OUR_PEN, REVERSE_BIT, REVERSE_PEN, Read, VARIABLE, described,
};

/// Set of templates (RFC 7011 sec. 3.3.2).
pub(super) const TEMPLATE_SET: u16 = 2;
/// Set of options templates.
pub(super) const OPTIONS_SET: u16 = 3;
/// Template of what this exporter has sent.
pub(super) const STATISTICS: u16 = 260;
/// Template of what the elements of our enterprise are (RFC 5610 sec. 3.9).
pub(super) const TYPE_INFORMATION: u16 = 261;

/// The template of flows of one protocol and IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FlowTemplate {
    pub(super) is_tcp: bool,
    pub(super) is_v6: bool,
}

impl FlowTemplate {
    pub(super) const ALL: [Self; 4] = [
        Self::new(true, false),
        Self::new(true, true),
        Self::new(false, false),
        Self::new(false, true),
    ];

    const fn new(is_tcp: bool, is_v6: bool) -> Self {
        Self { is_tcp, is_v6 }
    }

    /// The one that fits a flow. Were the sides of different versions, IPv6 carries both.
    pub(super) fn of(flow: &Flow<'_>) -> Self {
        Self {
            is_tcp: flow.row.protocol == Protocol::Tcp,
            is_v6: flow.row.client.ip.is_ipv6() || flow.row.server.ip.is_ipv6(),
        }
    }

    /// Its id, which is that of its data sets.
    pub(super) const fn id(self) -> u16 {
        256 + if self.is_tcp { 0 } else { 2 } + if self.is_v6 { 1 } else { 0 }
    }

    fn elements(self) -> impl Iterator<Item = &'static Element> {
        ELEMENTS
            .iter()
            .filter(move |element| self.is_tcp || !element.is_of_tcp)
    }

    /// Appends the template record (RFC 7011 sec. 3.4.1).
    pub(super) fn describe(self, out: &mut Vec<u8>) {
        let mut fields = Vec::new();
        let mut count = 0_u16;
        for element in self.elements() {
            let (id, length) = match element.read {
                Read::Address(_) if self.is_v6 => (v6_address(element.id), 16),
                _ => (element.id, element.length),
            };
            let pen = element.is_ours.then_some(OUR_PEN);
            field(&mut fields, id, length, pen);
            count += 1;
            if matches!(element.read, Read::Sides(_)) {
                if element.is_ours {
                    field(&mut fields, id | REVERSE_BIT, length, pen);
                } else {
                    field(&mut fields, id, length, Some(REVERSE_PEN));
                }
                count += 1;
            }
        }
        put16(out, self.id());
        put16(out, count);
        out.extend_from_slice(&fields);
    }

    /// Appends the record of a flow.
    pub(super) fn record(self, flow: &Flow<'_>, out: &mut Vec<u8>) {
        for element in self.elements() {
            match element.read {
                Read::Address(read) => address(out, read(flow), self.is_v6),
                Read::Flow(read) => number(out, read(flow), element.length),
                Read::Sides(read) => {
                    number(out, read(&flow.row.client), element.length);
                    number(out, read(&flow.row.server), element.length);
                }
                Read::Text(read) => text(out, read(flow)),
            }
        }
    }
}

/// sourceIPv6Address is 27, destinationIPv6Address 28.
const fn v6_address(v4: u16) -> u16 {
    if v4 == 8 { 27 } else { 28 }
}

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// A field specifier (RFC 7011 sec. 3.2): the top bit says that an enterprise number follows.
fn field(out: &mut Vec<u8>, id: u16, length: u16, enterprise: Option<u32>) {
    let Some(pen) = enterprise else {
        put16(out, id);
        put16(out, length);
        return;
    };
    put16(out, id | 0x8000);
    put16(out, length);
    out.extend_from_slice(&pen.to_be_bytes());
}

fn address(out: &mut Vec<u8>, ip: IpAddr, is_v6: bool) {
    match (ip, is_v6) {
        (IpAddr::V4(ip), false) => out.extend_from_slice(&ip.octets()),
        (IpAddr::V4(ip), true) => out.extend_from_slice(&ip.to_ipv6_mapped().octets()),
        (IpAddr::V6(ip), true) => out.extend_from_slice(&ip.octets()),
        (IpAddr::V6(ip), false) => {
            let v4 = ip.to_ipv4_mapped().unwrap_or(Ipv4Addr::UNSPECIFIED);
            out.extend_from_slice(&v4.octets());
        }
    }
}

/// A number in `length` bytes, at most 8; what does not fit is the largest that does, because a
/// counter that wrapped would look like a small one.
pub(super) fn number(out: &mut Vec<u8>, value: u64, length: u16) {
    let length = usize::from(length).min(8);
    let largest = u64::MAX >> (64 - 8 * length.max(1));
    let bytes = value.min(largest).to_be_bytes();
    out.extend_from_slice(bytes.get(8 - length..).unwrap_or_default());
}

/// A text of variable length (RFC 7011 sec. 7): its length in one byte, then UTF-8 (sec. 6.1.6).
///
/// Bytes from the network that are no UTF-8, and control characters, become U+FFFD: the collector
/// may print what it gets.
pub(super) fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    let at = out.len();
    out.push(0);
    let mut length = 0_u8;
    let mut add = |out: &mut Vec<u8>, character: char| -> bool {
        let mut utf8 = [0; 4];
        let encoded = character.encode_utf8(&mut utf8).as_bytes();
        let new = usize::from(length) + encoded.len();
        match u8::try_from(new) {
            Ok(new) if usize::from(new) <= MAX_TEXT => {
                length = new;
                out.extend_from_slice(encoded);
                true
            }
            _ => false,
        }
    };
    'all: for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            let shown = if character.is_control() {
                char::REPLACEMENT_CHARACTER
            } else {
                character
            };
            if !add(out, shown) {
                break 'all;
            }
        }
        if !chunk.invalid().is_empty() && !add(out, char::REPLACEMENT_CHARACTER) {
            break;
        }
    }
    if let Some(place) = out.get_mut(at) {
        *place = length;
    }
}

/// What an exporter says of itself (RFC 7011 sec. 4.1, 4.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Statistics {
    pub(super) octets: u64,
    pub(super) messages: u64,
    pub(super) records: u64,
    pub(super) not_sent: u64,
}

impl Statistics {
    /// Appends the options template record (RFC 7011 sec. 3.4.2): the scope is the observation
    /// domain.
    pub(super) fn describe(out: &mut Vec<u8>) {
        const FIELDS: [(u16, u16); 5] = [
            (149, 4), // observationDomainId
            (40, 8),  // exportedOctetTotalCount
            (41, 8),  // exportedMessageTotalCount
            (42, 8),  // exportedFlowRecordTotalCount
            (166, 8), // notSentFlowTotalCount
        ];
        options(out, STATISTICS, 1, &FIELDS);
    }

    pub(super) fn record(&self, domain: u32, out: &mut Vec<u8>) {
        number(out, domain.into(), 4);
        for count in [self.octets, self.messages, self.records, self.not_sent] {
            number(out, count, 8);
        }
    }
}

fn options(out: &mut Vec<u8>, id: u16, scopes: u16, fields: &[(u16, u16)]) {
    put16(out, id);
    put16(out, u16::try_from(fields.len()).unwrap_or_default());
    put16(out, scopes);
    for (id, length) in fields {
        field(out, *id, *length, None);
    }
}

/// Appends the options template by which a collector learns names and types of our elements.
pub(super) fn describe_type_information(out: &mut Vec<u8>) {
    const FIELDS: [(u16, u16); 5] = [
        (346, 4),        // privateEnterpriseNumber
        (303, 2),        // informationElementId
        (339, 1),        // informationElementDataType
        (344, 1),        // informationElementSemantics
        (341, VARIABLE), // informationElementName
    ];
    options(out, TYPE_INFORMATION, 2, &FIELDS);
}

/// The records of [`describe_type_information`].
pub(super) fn type_information() -> impl Iterator<Item = Vec<u8>> {
    const UNSIGNED_32: u64 = 3;
    const UNSIGNED_64: u64 = 4;
    const STRING: u64 = 13;
    const DEFAULT: u64 = 0;
    const QUANTITY: u64 = 1;
    const DELTA_COUNTER: u64 = 3;
    described().map(|(id, element, is_reverse)| {
        let mut record = Vec::new();
        let is_count = element.name.ends_with("Packets")
            || element.name.ends_with("Octets")
            || element.name.ends_with("Acks");
        let width = if element.length == 8 {
            UNSIGNED_64
        } else {
            UNSIGNED_32
        };
        let (kind, semantics) = match element.read {
            Read::Text(_) => (STRING, DEFAULT),
            _ if is_count => (width, DELTA_COUNTER),
            _ => (width, QUANTITY),
        };
        number(&mut record, OUR_PEN.into(), 4);
        number(&mut record, id.into(), 2);
        number(&mut record, kind, 1);
        number(&mut record, semantics, 1);
        let name = if is_reverse {
            // RFC 5103 sec. 6.1: "reverse" and the name with a capital.
            let mut rest = element.name.chars();
            let first = rest.next().map(|c| c.to_ascii_uppercase());
            "reverse".chars().chain(first).chain(rest).collect()
        } else {
            element.name.to_owned()
        };
        text(&mut record, name.as_bytes());
        record
    })
}
