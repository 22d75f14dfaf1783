//! Which packets are wanted: those of chosen connections in a time, and all of chosen times.

use std::collections::{HashMap, VecDeque};

use linkweir_engine::Frame;
use linkweir_engine::hash::{Endpoint, flow_hash};
use linkweir_proto::http1::{Start, classify, empty_lines};
use linkweir_wire::{Network, Packet, SeqNumber, Tcp, TcpFlags, Transport, decode};

/// Packets of one connection in a time. Addresses and ports are those of the innermost IP packet, both ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// IP protocol number: 6 or 17.
    pub protocol: u8,
    /// Who sent the first packet.
    pub client: Endpoint,
    /// The other end.
    pub server: Endpoint,
    /// Capture time of the first packet, nanoseconds since the epoch; 0: the first of its connection.
    pub from_ns: u64,
    /// Where it ends.
    pub until: Until,
}

impl Choice {
    /// A moment at which it was there: the first that is known, nanoseconds since the epoch.
    #[must_use]
    pub const fn moment_ns(&self) -> u64 {
        match (self.from_ns, self.until) {
            (0, Until::Time(at) | Until::NextRequest(at)) => at,
            (from, _) => from,
        }
    }
}

/// The end of a [`Choice`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The last packet has this capture time.
    Time(u64),
    /// Before the first segment from the client behind this capture time that begins with an HTTP request
    /// (one with the sequence number of the first segment of the choice is a retransmission and none), that
    /// opens a new connection with the same ports, or that follows [`SILENCE_NS`] without a packet.
    NextRequest(u64),
}

/// A connection without packets for so long is over: 60 s, nanoseconds.
pub const SILENCE_NS: u64 = 60_000_000_000;
/// How far behind its end a choice is kept, for packets that are out of order: 1 s, nanoseconds.
const SLACK_NS: u64 = 1_000_000_000;
/// Choices at once: 150 MB. With more those of the connections that were chosen first are given up.
const MAX_CHOICES: usize = 1 << 20;
/// Lengths of time at once.
const MAX_TIMES: usize = 4096;
/// Choices without a packet that are named.
const SHOWN_ABSENT: usize = 4;
/// First fragments that are remembered.
const MAX_FRAGMENTS: usize = 64;

/// Protocol and both ends, the lower one first.
type Connection = (u8, Endpoint, Endpoint);

/// Source, destination and identification of a fragmented packet of IPv4.
type FragmentKey = (Endpoint, Endpoint);

#[derive(Debug)]
struct Window {
    choice: Choice,
    first_seq: Option<SeqNumber>,
    /// Capture time of the last packet that was taken.
    last_ns: u64,
    /// Whether one was taken.
    is_found: bool,
}

/// A packet before, in or behind a window.
enum Place {
    In,
    Behind,
}

/// The choices.
#[derive(Debug)]
pub struct Selector {
    windows: HashMap<Connection, VecDeque<Window>>,
    /// Connections in the order in which they were chosen; each is there once.
    order: VecDeque<Connection>,
    count: usize,
    max: usize,
    /// Choices that were given up because there were too many.
    evicted: u64,
    /// Choices of a connection that were over without a packet: how many, and the first of them.
    absent: (u64, Vec<Choice>),
    /// Beginning and end; the end of one that goes on is the last moment there is.
    times: VecDeque<(u64, u64)>,
    fragments: VecDeque<FragmentKey>,
    newest: u64,
}

impl Default for Selector {
    fn default() -> Self {
        Self {
            windows: HashMap::new(),
            order: VecDeque::new(),
            count: 0,
            max: MAX_CHOICES,
            evicted: 0,
            absent: (0, Vec::new()),
            times: VecDeque::new(),
            fragments: VecDeque::new(),
            newest: 0,
        }
    }
}

impl Selector {
    /// Chooses packets of a connection.
    pub fn choose(&mut self, choice: Choice) {
        self.sweep();
        let choice = Choice {
            client: canonical(choice.client),
            ..choice
        };
        let connection = connection(choice.protocol, choice.client, choice.server);
        let windows = self.windows.entry(connection).or_insert_with(|| {
            self.order.push_back(connection);
            VecDeque::new()
        });
        let at = windows.partition_point(|one| one.choice.from_ns <= choice.from_ns);
        windows.insert(
            at,
            Window {
                choice,
                first_seq: None,
                last_ns: choice.from_ns,
                is_found: false,
            },
        );
        self.count += 1;
        while self.count > self.max
            && let Some(oldest) = self.order.pop_front()
        {
            let windows = self.windows.remove(&oldest).map_or(0, |all| all.len());
            self.count -= windows;
            self.evicted += windows as u64;
        }
    }

    /// Chooses all packets of a time; one without an end goes on until [`Selector::end_time`]. False where there
    /// are too many.
    pub fn choose_time(&mut self, from_ns: u64, until_ns: Option<u64>) -> bool {
        // None of what is still to come belongs to the first, unless it goes on.
        let is_over = |(_, until): &(u64, u64)| until.saturating_add(SLACK_NS) < self.newest;
        while self.times.front().is_some_and(is_over) {
            self.times.pop_front();
        }
        let has_room = self.times.len() < MAX_TIMES;
        if has_room {
            self.times
                .push_back((from_ns, until_ns.unwrap_or(u64::MAX)));
        }
        has_room
    }

    /// Ends the latest time that goes on and began at `from_ns`.
    pub fn end_time(&mut self, from_ns: u64, until_ns: u64) {
        let mut times = self.times.iter_mut().rev();
        let going_on = times.find(|(from, until)| *from == from_ns && *until == u64::MAX);
        if let Some((_, until)) = going_on {
            *until = until_ns;
        }
    }

    /// Choices that were given up because there were too many.
    #[must_use]
    pub const fn evicted(&self) -> u64 {
        self.evicted
    }

    /// How many choices of connections had no packet, and some of them, once all frames have been seen.
    #[must_use]
    pub fn absent(&self) -> (u64, Vec<Choice>) {
        let mut absent = self.absent.clone();
        for window in self.windows.values().flatten() {
            note_absent(window, &mut absent);
        }
        absent
    }

    /// Whether a frame is wanted. Frames come in capture order.
    pub fn takes(&mut self, frame: &Frame<'_>) -> bool {
        let now = frame.timestamp.as_nanos();
        self.newest = self.newest.max(now);
        let in_time = |(from, until): &(u64, u64)| (*from..=*until).contains(&now);
        let is_in_time = self.times.iter().any(in_time);
        if self.windows.is_empty() {
            return is_in_time;
        }
        // Also where its time is wanted: the choices go on.
        let packet = decode(frame.link, frame.bytes, frame.wire_len).ok();
        packet.is_some_and(|packet| self.takes_packet(&packet, now)) || is_in_time
    }

    fn takes_packet(&mut self, packet: &Packet<'_>, now: u64) -> bool {
        if packet.is_later_fragment {
            return fragment_key(&packet.network).is_some_and(|key| self.fragments.contains(&key));
        }
        let Some((protocol, source, destination)) = ends(packet) else {
            return false;
        };
        let connection = connection(protocol, source, destination);
        let Some(windows) = self.windows.get_mut(&connection) else {
            return false;
        };
        let mut is_taken = false;
        let mut at = 0;
        while let Some(window) = windows.get_mut(at)
            && window.choice.from_ns <= now
        {
            match window.place(packet, source, now) {
                Place::In => {
                    let is_in_time = window.is_in_time(now);
                    window.is_found |= is_in_time;
                    is_taken |= is_in_time;
                    at += 1;
                }
                Place::Behind => {
                    if let Some(over) = windows.remove(at) {
                        note_absent(&over, &mut self.absent);
                    }
                    self.count -= 1;
                }
            }
        }
        if is_taken
            && packet.is_fragment
            && let Some(key) = fragment_key(&packet.network)
        {
            if self.fragments.len() >= MAX_FRAGMENTS {
                self.fragments.pop_front();
            }
            self.fragments.push_back(key);
        }
        is_taken
    }

    /// Looks at two connections, so that those that are over do not stay.
    fn sweep(&mut self) {
        for _ in 0..2 {
            let Some(connection) = self.order.pop_front() else {
                return;
            };
            let newest = self.newest;
            let is_open = |window: &Window| window.ends_before() >= newest;
            let windows = self.windows.get(&connection);
            let is_over = windows.is_none_or(|all| !all.iter().any(is_open));
            if is_over {
                let windows = self.windows.remove(&connection);
                self.count -= windows.map_or(0, |all| all.len());
            } else {
                self.order.push_back(connection);
            }
        }
    }
}

fn note_absent(window: &Window, (count, some): &mut (u64, Vec<Choice>)) {
    if !window.is_found {
        *count += 1;
        if some.len() < SHOWN_ABSENT {
            some.push(window.choice);
        }
    }
}

impl Window {
    fn place(&mut self, packet: &Packet<'_>, source: Endpoint, now: u64) -> Place {
        let behind = match self.choice.until {
            Until::Time(until) => now > until.saturating_add(SLACK_NS),
            Until::NextRequest(after) => {
                now > self.ends_before() || self.is_next(packet, source, (now, after))
            }
        };
        if behind {
            return Place::Behind;
        }
        self.last_ns = self.last_ns.max(now);
        Place::In
    }

    fn is_in_time(&self, now: u64) -> bool {
        match self.choice.until {
            Until::Time(until) => now <= until,
            Until::NextRequest(_) => true,
        }
    }

    /// No packet that is later than this belongs to it, as far as is known.
    const fn ends_before(&self) -> u64 {
        match self.choice.until {
            Until::Time(until) => until.saturating_add(SLACK_NS),
            Until::NextRequest(after) => {
                let latest = if after > self.last_ns {
                    after
                } else {
                    self.last_ns
                };
                latest.saturating_add(SILENCE_NS)
            }
        }
    }

    /// Whether a segment begins what follows the transaction.
    fn is_next(&mut self, packet: &Packet<'_>, source: Endpoint, (now, after): (u64, u64)) -> bool {
        let Transport::Tcp(tcp) = &packet.transport else {
            return false;
        };
        if canonical(source) != self.choice.client {
            return false;
        }
        let is_later = now > after;
        if is_later && is_opening(tcp) {
            return true;
        }
        if tcp.payload_len == 0 {
            return false;
        }
        if is_later && self.first_seq != Some(tcp.seq()) && begins_request(tcp.payload) {
            return true;
        }
        self.first_seq.get_or_insert_with(|| tcp.seq());
        false
    }
}

fn is_opening(tcp: &Tcp<'_>) -> bool {
    tcp.flags().contains(TcpFlags::SYN) && !tcp.flags().contains(TcpFlags::ACK)
}

fn begins_request(payload: &[u8]) -> bool {
    let rest = payload.get(empty_lines(payload)..).unwrap_or_default();
    classify(rest) == Start::Request
}

fn ends(packet: &Packet<'_>) -> Option<(u8, Endpoint, Endpoint)> {
    let (protocol, source, destination) = match &packet.transport {
        Transport::Tcp(tcp) => (6, tcp.src_port(), tcp.dst_port()),
        Transport::Udp(udp) => (17, udp.src_port(), udp.dst_port()),
        _ => return None,
    };
    let network = &packet.network;
    Some((
        protocol,
        (network.src(), source),
        (network.dst(), destination),
    ))
}

/// The hash of a frame's connection, by which what has left is remembered.
pub(super) fn hash(frame: &Frame<'_>) -> Option<u32> {
    let packet = decode(frame.link, frame.bytes, frame.wire_len).ok()?;
    let (_, source, destination) = ends(&packet)?;
    Some(flow_hash(source, destination))
}

/// Records and packets may write IPv4 in different forms.
const fn canonical(end: Endpoint) -> Endpoint {
    (end.0.to_canonical(), end.1)
}

fn connection(protocol: u8, one: Endpoint, other: Endpoint) -> Connection {
    let (one, other) = (canonical(one), canonical(other));
    (protocol, one.min(other), one.max(other))
}

fn fragment_key(network: &Network<'_>) -> Option<FragmentKey> {
    let id = network.identification()?;
    Some(((network.src(), id), (network.dst(), id)))
}

#[cfg(test)]
mod tests {
    use linkweir_testkit::conversation::Conversation;
    use linkweir_wire::{LinkType, Timestamp};

    use super::*;

    #[test]
    fn choices_are_bounded_and_those_that_are_over_do_not_stay() {
        let mut selector = Selector {
            max: 100,
            ..Selector::default()
        };
        let mut talk = Conversation::v4(40_000);
        let bytes = talk.handshake().frames().remove(0).bytes;
        let of = |port: u16, from_ns| Choice {
            protocol: 6,
            client: ([192, 0, 2, 9].into(), port),
            server: ([198, 51, 100, 2].into(), 80),
            from_ns,
            until: Until::NextRequest(from_ns),
        };
        for port in 1..=1_000 {
            selector.choose(of(port, 1));
        }
        assert_eq!((selector.count, selector.evicted), (100, 900));
        assert_eq!(selector.windows.len(), selector.order.len());
        // Two minutes later none of them is there any more, and a thousand others are not too many.
        for port in 1..=1_000 {
            let now = u64::from(port) * 2 * SILENCE_NS;
            selector.takes(&Frame {
                timestamp: Timestamp::from_nanos(now),
                bytes: &bytes,
                wire_len: 100,
                link: LinkType::ETHERNET,
                interface: 0,
            });
            selector.choose(of(port, now));
        }
        assert_eq!(selector.evicted, 900);
        assert!(selector.count < 10, "{}", selector.count);
        assert_eq!(selector.windows.len(), selector.order.len());
    }
}
