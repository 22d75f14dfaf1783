//! Flows of no known application, grouped by what a signature would need: protocol, server port, and how
//! both sides begin.

use std::net::IpAddr;

use linkweir_record::flow::{FlowRow, FlowSide, Protocol};
use linkweir_sketch::{Payload, TopEntry, TopK};
use linkweir_wire::Side;

use crate::stage::FlowsStage;
use crate::tcp::direction::flag;

/// First bytes of each side that are kept.
pub const FIRST_BYTES: usize = 8;

/// Groups at most. As long as there are no more, their numbers are exact.
pub const MAX_GROUPS: usize = 4096;

/// Protocol, port, and for each side a length and its bytes.
const KEY: usize = 1 + 2 + 2 * (1 + FIRST_BYTES);

/// What begins a flow: the first bytes of one side, in the order of the stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct First {
    bytes: [u8; FIRST_BYTES],
    len: u8,
    /// What comes does not continue these bytes.
    is_cut: bool,
}

impl First {
    fn hear(&mut self, payload: &[u8]) {
        if self.is_cut {
            return;
        }
        let rest = self.bytes.get_mut(usize::from(self.len)..);
        for (place, byte) in rest.unwrap_or_default().iter_mut().zip(payload) {
            *place = *byte;
            self.len += 1;
        }
    }

    const fn wants(self) -> bool {
        !self.is_cut && (self.len as usize) < FIRST_BYTES
    }
}

/// A flow of a group, so that it can be found in the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Example {
    /// First packet of the flow, nanoseconds since the epoch.
    pub start_ns: u64,
    /// Address and port of the client, as records have them.
    pub client: (IpAddr, u16),
    /// Address and port of the server, as records have them.
    pub server: (IpAddr, u16),
}

/// What is counted of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupCounts {
    /// Packets of its flows.
    pub packets: u64,
    /// Bytes of their IP packets.
    pub bytes: u64,
    /// The flow of them that began first.
    pub example: Option<Example>,
}

impl Payload for GroupCounts {
    fn merge(&mut self, other: &Self) {
        self.packets = self.packets.saturating_add(other.packets);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.example = self.example.into_iter().chain(other.example).min();
    }
}

/// Flows that are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownGroup<'a> {
    /// TCP or UDP.
    pub protocol: Protocol,
    /// Port of the server.
    pub server_port: u16,
    /// At most [`FIRST_BYTES`] that the client sent first; empty where it sent nothing or its SYN was not seen.
    pub client: &'a [u8],
    /// The same of the server.
    pub server: &'a [u8],
    /// Flows; at least so many where `error` is not 0.
    pub flows: u64,
    /// How many flows more there may have been: more than [`MAX_GROUPS`] groups competed.
    pub error: u64,
    /// Packets, bytes, an example; of the flows counted in `flows`.
    pub counts: GroupCounts,
}

impl<'a> UnknownGroup<'a> {
    fn of(entry: &TopEntry<'a, GroupCounts>) -> Option<Self> {
        let (fixed, rest) = entry.key.split_first_chunk::<3>()?;
        let [protocol, high, low] = *fixed;
        let (client, rest) = taken(rest)?;
        let (server, _) = taken(rest)?;
        Some(Self {
            protocol: if protocol == 0 {
                Protocol::Tcp
            } else {
                Protocol::Udp
            },
            server_port: u16::from_be_bytes([high, low]),
            client,
            server,
            flows: entry.count - entry.error,
            error: entry.error,
            counts: *entry.payload,
        })
    }
}

/// The bytes of one side in a key, and what is behind them.
fn taken(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = key.split_first()?;
    let (bytes, rest) = rest.split_at_checked(FIRST_BYTES)?;
    Some((bytes.get(..usize::from(*len))?, rest))
}

/// The most frequent groups of flows with payload of no known application. Those of several workers add up.
#[derive(Debug, Clone)]
pub struct UnknownFlows {
    groups: TopK<GroupCounts>,
    /// Groups that are shown.
    rows: usize,
    packets: u64,
    bytes: u64,
}

impl UnknownFlows {
    fn new(rows: u16) -> Self {
        Self {
            groups: TopK::new(MAX_GROUPS, KEY),
            rows: usize::from(rows),
            packets: 0,
            bytes: 0,
        }
    }

    /// Adds what another worker counted.
    pub fn merge(&mut self, other: &Self) {
        self.groups.merge(&other.groups);
        self.packets = self.packets.saturating_add(other.packets);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    /// Flows of all groups, exact.
    #[must_use]
    pub const fn flows(&self) -> u64 {
        self.groups.total()
    }

    /// Packets of all groups, exact.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Bytes of the IP packets of all groups, exact.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Groups that are kept: all of them, or [`MAX_GROUPS`].
    #[must_use]
    pub const fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there was no such flow.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// As many groups as the settings have, those of the most flows, most first.
    #[must_use]
    pub fn top(&self) -> Vec<UnknownGroup<'_>> {
        let mut all: Vec<_> = self.groups.entries().collect();
        // By what is sure: a group that has just taken the place of another inherits its count.
        let order = |entry: &TopEntry<'_, GroupCounts>| entry.count - entry.error;
        all.sort_unstable_by(|a, b| order(b).cmp(&order(a)).then_with(|| a.key.cmp(b.key)));
        all.truncate(self.rows);
        all.iter().filter_map(UnknownGroup::of).collect()
    }

    fn record(&mut self, row: &FlowRow, first: &[First; 2]) {
        let packets = row.client.pkts_all.saturating_add(row.server.pkts_all);
        let bytes = row.client.ip_bytes.saturating_add(row.server.ip_bytes);
        self.packets = self.packets.saturating_add(packets);
        self.bytes = self.bytes.saturating_add(bytes);
        let mut key = [0; KEY];
        let [high, low] = row.server.port.to_be_bytes();
        let [client, server] = first;
        let fixed = [u8::from(row.protocol == Protocol::Udp), high, low];
        let parts = fixed
            .into_iter()
            .chain([client.len])
            .chain(client.bytes)
            .chain([server.len])
            .chain(server.bytes);
        for (place, byte) in key.iter_mut().zip(parts) {
            *place = byte;
        }
        if let Some(group) = self.groups.record(&key) {
            group.merge(&GroupCounts {
                packets,
                bytes,
                example: Some(Example {
                    start_ns: row.start_ns,
                    client: end(&row.client),
                    server: end(&row.server),
                }),
            });
        }
    }
}

const fn end(side: &FlowSide) -> (IpAddr, u16) {
    (side.ip, side.port)
}

/// What is listened for where it is asked for.
#[derive(Debug)]
pub(crate) struct Listener {
    /// How flows begin, by their slot: as many as were in the table at once.
    first: Vec<[First; 2]>,
    pub(crate) found: UnknownFlows,
}

impl Listener {
    pub(crate) fn new(rows: u16) -> Self {
        Self {
            first: Vec::new(),
            found: UnknownFlows::new(rows),
        }
    }

    /// Payload of this side is missing.
    #[cold]
    pub(crate) fn stop(&mut self, slot: u32, side: Side) {
        if let Some(first) = self.side(slot, side) {
            first.is_cut = true;
        }
    }

    fn side(&mut self, slot: u32, side: Side) -> Option<&mut First> {
        let slot = slot as usize;
        if slot >= self.first.len() {
            self.first.resize(slot + 1, [First::default(); 2]);
        }
        let [client, server] = self.first.get_mut(slot)?;
        Some(match side {
            Side::Client => client,
            Side::Server => server,
        })
    }
}

impl FlowsStage {
    /// Payload of a flow that may stay without an application. What is behind a gap, or of a TCP connection
    /// whose beginning was not seen, is no beginning.
    #[inline(never)]
    pub(crate) fn listen(&mut self, slot: u32, side: Side, payload: &[u8], len: u32) {
        let (Some(listener), Some(flow)) = (&mut self.listener, self.flows.get_mut(slot)) else {
            return;
        };
        if self.layer7.application(flow.layer7).is_some() {
            return;
        }
        let is_tcp = flow.protocol() == Protocol::Tcp;
        let (me, _) = flow.both(side);
        let Some(first) = listener.side(slot, side) else {
            return;
        };
        first.is_cut |= is_tcp && !me.has(flag::SYN);
        first.hear(payload);
        // Datagrams do not continue one another, nor does what follows a segment that the snap length has cut.
        first.is_cut |= !is_tcp || payload.len() < len as usize;
        // Layer 7 may have seen enough of it before there are as many bytes as are kept.
        if first.wants() {
            me.flags &= !flag::L7_DONE;
        }
    }

    /// A flow has ended.
    pub(crate) fn note_unknown(&mut self, slot: u32, row: &FlowRow) {
        let (Some(listener), Some(flow)) = (&mut self.listener, self.flows.get(slot)) else {
            return;
        };
        let first = listener.first.get_mut(slot as usize);
        let first = first.map(std::mem::take).unwrap_or_default();
        let has_payload = row.client.bytes_all > 0 || row.server.bytes_all > 0;
        if has_payload && self.layer7.application(flow.layer7).is_none() {
            listener.found.record(row, &first);
        }
    }

    /// Flows of no known application, where they are asked for.
    #[must_use]
    pub fn unknown(&self) -> Option<&UnknownFlows> {
        self.listener.as_ref().map(|listener| &listener.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(port: u16, start_ns: u64) -> FlowRow {
        let mut row = FlowRow {
            start_ns,
            protocol: Protocol::Udp,
            ..FlowRow::default()
        };
        row.server.port = port;
        row.client.pkts_all = 2;
        row.client.ip_bytes = 100;
        row
    }

    fn first(text: &[u8]) -> First {
        let mut first = First::default();
        for byte in text {
            first.hear(&[*byte]);
        }
        first
    }

    #[test]
    fn parts_of_the_traffic_add_up() {
        let flows = [
            (1, 30, "abcdefghij"),
            (1, 20, "abcdefghzz"),
            (1, 10, "x"),
            (2, 5, "abcdefgh"),
        ];
        let count = |flows: &[(u16, u64, &str)]| {
            let mut all = UnknownFlows::new(1);
            for (port, start, text) in flows {
                all.record(
                    &row(*port, *start),
                    &[first(text.as_bytes()), First::default()],
                );
            }
            all
        };
        let whole = count(&flows);
        let (left, right) = flows.split_at(1);
        let mut parts = count(left);
        parts.merge(&count(right));
        assert_eq!(parts.top(), whole.top());
        assert_eq!((parts.flows(), parts.packets(), parts.bytes()), (4, 8, 400));
        let top = parts.top();
        assert_eq!(top.len(), 1);
        let group = top.first().unwrap();
        assert_eq!((group.server_port, group.flows, group.error), (1, 2, 0));
        assert_eq!((group.client, group.server), (&b"abcdefgh"[..], &b""[..]));
        assert_eq!(group.counts.example.unwrap().start_ns, 20);
    }

    #[test]
    fn groups_are_bounded_and_the_frequent_ones_stay() {
        let mut all = UnknownFlows::new(1);
        for number in 0..3 * MAX_GROUPS as u64 {
            let one = first(&number.to_be_bytes());
            all.record(&row(9, number), &[one, First::default()]);
            if number % 4 == 0 {
                all.record(&row(7, number), &[first(b"often"), First::default()]);
            }
        }
        assert_eq!(all.len(), MAX_GROUPS);
        let top = all.top();
        let group = top.first().unwrap();
        assert_eq!((group.client, group.flows), (&b"often"[..], 3072));
    }

    #[test]
    fn what_is_behind_a_gap_is_no_beginning() {
        let mut one = first(b"ab");
        one.is_cut = true;
        one.hear(b"cd");
        assert_eq!(
            (one.len, one.bytes, one.wants()),
            (2, *b"ab\0\0\0\0\0\0", false)
        );
        assert!(first(b"ab").wants() && !first(b"abcdefgh").wants());
    }
}
