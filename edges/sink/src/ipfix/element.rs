//! What a flow record says: one table of information elements, from which templates and records are
//! both made, so that they cannot disagree.
//!
//! Source: RFC 7011 (protocol), RFC 7012 and IANA's registry (elements), RFC 5103 (both directions in
//! one record), RFC 5610 (describing the elements of an enterprise).

use std::net::IpAddr;

use linkweir_record::flow::{Anomaly, Extent, Flow, FlowSide, FlowState, Protocol};

/// IANA's number for the reverse direction of its own elements (RFC 5103 sec. 6.1).
pub(super) const REVERSE_PEN: u32 = 29_305;

/// The enterprise of our elements: the number reserved for documentation (RFC 5612), because the
/// project has none of its own.
pub(super) const OUR_PEN: u32 = 32_473;

/// The bit of an element of ours that says "reverse": RFC 5103 sec. 6.2 leaves the way to the
/// enterprise, the top bit of the id is the one that others use.
pub(super) const REVERSE_BIT: u16 = 0x4000;

/// The length in a template of an element whose records carry their own (RFC 7011 sec. 7).
pub(super) const VARIABLE: u16 = 0xffff;

/// Longest text in a record: a DNS name fits (RFC 1035: 253), and its length in one byte.
pub(super) const MAX_TEXT: usize = 254;

/// Where the value of an element comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Read {
    /// The address of one side; the length in the template is that of the template's IP version.
    Address(fn(&Flow<'_>) -> IpAddr),
    /// A number of the whole flow.
    Flow(fn(&Flow<'_>) -> u64),
    /// A number of each side: first the client's, then the server's as the reverse element.
    Sides(fn(&FlowSide) -> u64),
    /// A text of the flow.
    Text(for<'a> fn(&Flow<'a>) -> &'a [u8]),
}

/// One information element.
#[derive(Debug, Clone, Copy)]
pub(super) struct Element {
    /// IANA's name, or ours.
    pub(super) name: &'static str,
    /// Its number.
    pub(super) id: u16,
    /// Whether it is of our enterprise and not IANA's.
    pub(super) is_ours: bool,
    /// Bytes of a number; shorter than the registry's length is reduced-size encoding
    /// (RFC 7011 sec. 6.2). No meaning for addresses and texts.
    pub(super) length: u16,
    /// Whether only TCP flows have it.
    pub(super) is_of_tcp: bool,
    /// Where its value comes from.
    pub(super) read: Read,
}

const fn iana(name: &'static str, id: u16, length: u16, read: Read) -> Element {
    Element {
        name,
        id,
        is_ours: false,
        length,
        is_of_tcp: false,
        read,
    }
}

const fn tcp(element: Element) -> Element {
    Element {
        is_of_tcp: true,
        ..element
    }
}

const fn ours(name: &'static str, id: u16, length: u16, read: Read) -> Element {
    Element {
        is_ours: true,
        ..iana(name, id, length, read)
    }
}

const fn our_side(name: &'static str, id: u16, read: fn(&FlowSide) -> u64) -> Element {
    tcp(ours(name, id, 4, Read::Sides(read)))
}

const fn micros(nanos: u64) -> u64 {
    nanos / 1_000
}

const fn millis(nanos: u64) -> u64 {
    nanos / 1_000_000
}

fn control_bits(side: &FlowSide) -> u64 {
    let bit = |count: u64, bit: u64| if count > 0 { bit } else { 0 };
    bit(side.fin_cnt, 0x01)
        | bit(side.syn_cnt, 0x02)
        | bit(side.rst_cnt, 0x04)
        | bit(side.pkts_push, 0x08)
        | bit(side.ack_cnt, 0x10)
}

/// RFC 5102 sec. 5.11.3.
fn end_reason(flow: &Flow<'_>) -> u64 {
    const IDLE: u64 = 1;
    const ACTIVE: u64 = 2;
    const END_OF_FLOW: u64 = 3;
    const FORCED: u64 = 4;
    const LACK_OF_RESOURCES: u64 = 5;
    match (flow.row.state, flow.row.extent) {
        (FlowState::Open, Extent::Partial) => ACTIVE,
        (FlowState::Open, Extent::Final) => FORCED,
        (FlowState::Closed | FlowState::Reset | FlowState::Reused, _) => END_OF_FLOW,
        (FlowState::Idle | FlowState::Unanswered, _) => IDLE,
        (FlowState::Evicted, _) => LACK_OF_RESOURCES,
    }
}

/// 1: the source is the initiator; 0: which is which is a guess (RFC 5103 sec. 6.3).
fn direction(flow: &Flow<'_>) -> u64 {
    u64::from(flow.row.has_syn || flow.row.protocol == Protocol::Udp)
}

fn application<'a>(flow: &Flow<'a>) -> &'a [u8] {
    match flow.row.application {
        "" => b"unknown",
        name => name.as_bytes(),
    }
}

/// The elements, in the order of a record.
///
/// The template of TCP has 60 fields: tshark, for one, takes no more.
pub(super) static ELEMENTS: &[Element] = &[
    iana("sourceIPAddress", 8, 4, Read::Address(|v| v.row.client.ip)),
    iana(
        "destinationIPAddress",
        12,
        4,
        Read::Address(|v| v.row.server.ip),
    ),
    iana(
        "sourceTransportPort",
        7,
        2,
        Read::Flow(|v| v.row.client.port.into()),
    ),
    iana(
        "destinationTransportPort",
        11,
        2,
        Read::Flow(|v| v.row.server.port.into()),
    ),
    iana(
        "protocolIdentifier",
        4,
        1,
        Read::Flow(|v| v.row.protocol.number().into()),
    ),
    iana("flowEndReason", 136, 1, Read::Flow(end_reason)),
    iana("biflowDirection", 239, 1, Read::Flow(direction)),
    tcp(iana("tcpControlBits", 6, 2, Read::Sides(control_bits))),
    iana("minimumTTL", 52, 1, Read::Sides(|s| s.ttl_min.into())),
    iana("maximumTTL", 53, 1, Read::Sides(|s| s.ttl_max.into())),
    iana("packetDeltaCount", 2, 8, Read::Sides(|s| s.pkts_all)),
    iana("octetDeltaCount", 1, 8, Read::Sides(|s| s.ip_bytes)),
    iana(
        "flowStartMilliseconds",
        152,
        8,
        Read::Flow(|v| millis(v.row.first_ns)),
    ),
    iana(
        "flowEndMilliseconds",
        153,
        8,
        Read::Flow(|v| millis(v.row.last_ns)),
    ),
    iana("flowId", 148, 8, Read::Flow(|v| v.row.flow_id)),
    iana(
        "vlanId",
        58,
        2,
        Read::Flow(|v| v.row.vlan.unwrap_or_default().into()),
    ),
    our_side("rttSamples", 1, |s| s.rtt.count.into()),
    our_side("rttMeanMicroseconds", 2, |s| micros(s.rtt.avg_ns)),
    our_side("rttMinimumMicroseconds", 3, |s| micros(s.rtt.min_ns)),
    our_side("rttMaximumMicroseconds", 4, |s| micros(s.rtt.max_ns)),
    our_side("retransmittedPackets", 6, |s| s.pkts_retx),
    tcp(ours(
        "retransmittedOctets",
        7,
        8,
        Read::Sides(|s| s.bytes_retx),
    )),
    our_side("outOfOrderPackets", 8, |s| s.pkts_ooo),
    our_side("rtoPackets", 16, |s| s.anomaly(Anomaly::Rto)),
    our_side("fastRetransmitPackets", 17, |s| {
        s.anomaly(Anomaly::FastRetransmit)
    }),
    our_side("reorderedPackets", 18, |s| s.anomaly(Anomaly::Reordering)),
    our_side("networkDuplicatePackets", 19, |s| {
        s.anomaly(Anomaly::NetworkDuplicate)
    }),
    our_side("unknownAnomalyPackets", 20, |s| s.anomaly(Anomaly::Unknown)),
    our_side("flowControlPackets", 21, |s| {
        s.anomaly(Anomaly::FlowControl)
    }),
    our_side("unnecessaryRtoPackets", 22, |s| {
        s.anomaly(Anomaly::UnnecessaryRto)
    }),
    our_side("unnecessaryFastRetransmitPackets", 23, |s| {
        s.anomaly(Anomaly::UnnecessaryFastRetransmit)
    }),
    our_side("tailLossProbePackets", 24, |s| {
        s.anomaly(Anomaly::TailLossProbe)
    }),
    our_side("windowMaximum", 32, |s| s.win_max.into()),
    tcp(ours(
        "synToSynAckMicroseconds",
        40,
        4,
        Read::Flow(|v| micros(v.row.syn_ack_ns.unwrap_or_default())),
    )),
    // Texts last: up to here all records of a template are of one length.
    iana("applicationName", 96, VARIABLE, Read::Text(application)),
    tcp(iana(
        "httpRequestHost",
        460,
        VARIABLE,
        Read::Text(|v| v.text.http_host),
    )),
    ours("tlsServerName", 48, VARIABLE, Read::Text(|v| v.text.sni)),
    ours("resolvedName", 49, VARIABLE, Read::Text(|v| v.text.fqdn)),
];

/// The elements of our enterprise that RFC 5610 lets us describe, forward and reverse.
pub(super) fn described() -> impl Iterator<Item = (u16, &'static Element, bool)> {
    ELEMENTS
        .iter()
        .filter(|element| element.is_ours)
        .flat_map(|element| {
            let reverse = match element.read {
                Read::Sides(_) => Some((element.id | REVERSE_BIT, element, true)),
                _ => None,
            };
            std::iter::once((element.id, element, false)).chain(reverse)
        })
}
