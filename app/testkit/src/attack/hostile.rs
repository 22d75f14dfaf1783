//! The hostile ends: segments as scripts tell them, past the kernel's TCP.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use linkweir_sys::interface::index_of;
use linkweir_sys::packet_socket::{Framing, Inbox, PacketSocket, TAG_ROOM};
use linkweir_sys::raw_ip::{IpVersion, RawIpSocket};
use linkweir_sys::wait::{monotonic_ns, readable};
use linkweir_wire::emit::{TcpFrame, UdpFrame, fragments};
use linkweir_wire::{LinkType, SeqNumber, TcpFlags, TcpOption, Transport, decode};

use super::script::{Extension, Send, Stamp, Step, Until};
use super::{Family, Part};
use crate::conversation::Side;

/// How long a script waits for anything.
const TIMEOUT: Duration = Duration::from_millis(3000);
/// After which time what is not acknowledged is sent again.
const AGAIN: Duration = Duration::from_millis(300);
/// How often that is done while nothing new is acknowledged.
const TIMES: u8 = 3;
/// How many segments are sent again at once.
const AT_ONCE: usize = 20;
/// How long a connection is answered for behind the end of its script.
const AFTER: Duration = Duration::from_millis(500);
/// What is sent of a filling before it is acknowledged, bytes.
const WINDOW: u32 = 16_000;
const SEGMENT: usize = 1000;
/// Numbers of the first bytes.
const FIRST: SeqNumber = SeqNumber(0xffff_f000);
const FIRST_STAMP: u32 = 1_000_000;
/// Identifications of fragments, so that no two packets have the same.
static FRAGMENTED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);

/// A segment that has come.
#[derive(Debug)]
struct Came {
    from: SocketAddr,
    seq: SeqNumber,
    ack: SeqNumber,
    flags: TcpFlags,
    /// Its timestamp, where it has one.
    stamp: Option<u32>,
    payload: Vec<u8>,
}

/// Plays the scripts of one side, all at the same time.
pub(super) fn play(
    side: Side,
    parts: &[Part],
    is_ready: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let name = match side {
        Side::Client => "cli0",
        Side::Server => "srv0",
    };
    let interface = index_of(name).ok_or(io::ErrorKind::NotFound)?;
    let socket = PacketSocket::open(Framing::Network)?;
    socket.set_receive_buffer(8 << 20)?;
    socket.bind(interface)?;
    socket.ignore_outgoing()?;
    let raw = [
        RawIpSocket::open(IpVersion::V4)?,
        RawIpSocket::open(IpVersion::V6)?,
    ];
    let mut doors: HashMap<SocketAddr, Sender<Came>> = HashMap::new();
    let mut players = Vec::new();
    for part in parts {
        let local = match side {
            Side::Server => part.server,
            Side::Client => SocketAddr::new(part.family.hostile(Side::Client), part.client_port),
        };
        let (door, inbox) = mpsc::channel();
        doors.insert(local, door);
        players.push((part, local, inbox));
    }
    is_ready()?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&socket, &doors, &is_over));
        thread::scope(|inner| {
            for (part, local, inbox) in players {
                let raw = match part.family {
                    Family::V4 => &raw[0],
                    Family::V6 => &raw[1],
                };
                inner.spawn(move || {
                    let peer = (side == Side::Client).then_some(part.server);
                    Player::new(raw, local, peer, inbox).play(&part.row.steps);
                });
            }
        });
        is_over.store(true, Ordering::Relaxed);
        receiving.join().unwrap_or(Ok(()))
    })
}

/// Gives each segment to who it is for.
fn receive(
    socket: &PacketSocket,
    doors: &HashMap<SocketAddr, Sender<Came>>,
    is_over: &AtomicBool,
) -> io::Result<()> {
    let mut inbox = Inbox::new(16)?;
    while !is_over.load(Ordering::Relaxed) {
        readable(socket, Duration::from_millis(50))?;
        for number in 0..inbox.take(socket)? {
            let Some(arrived) = inbox.frame(number) else {
                continue;
            };
            let bytes = arrived.room_and_frame.get(TAG_ROOM..).unwrap_or_default();
            let wire_len = u32::try_from(bytes.len()).unwrap_or(0);
            let Ok(packet) = decode(LinkType::RAW, bytes, wire_len) else {
                continue;
            };
            let Transport::Tcp(tcp) = packet.transport else {
                continue;
            };
            let to = SocketAddr::new(packet.network.dst(), tcp.dst_port());
            let stamp = tcp.options().find_map(|option| match option {
                TcpOption::Timestamps { value, .. } => Some(value),
                _ => None,
            });
            let came = Came {
                from: SocketAddr::new(packet.network.src(), tcp.src_port()),
                seq: tcp.seq(),
                ack: tcp.ack(),
                flags: tcp.flags(),
                stamp,
                payload: tcp.payload.to_vec(),
            };
            if let Some(door) = doors.get(&to) {
                // A script that is over wants nothing more.
                drop(door.send(came));
            }
        }
    }
    Ok(())
}

/// One end of one connection.
struct Player<'a> {
    raw: &'a RawIpSocket,
    local: SocketAddr,
    peer: Option<SocketAddr>,
    inbox: Receiver<Came>,
    /// Place behind what was sent of the stream.
    next: u32,
    /// What was sent of it, by its place; a FIN has no bytes.
    sent: BTreeMap<u32, Vec<u8>>,
    /// Place up to which that is acknowledged.
    acknowledged: u32,
    /// Next number of the other end.
    expected: SeqNumber,
    /// Its timestamp, where both have them.
    echo: Option<u32>,
    stamp: u32,
    heard: Vec<u8>,
    /// How much of it a wait for data has seen.
    waited: usize,
    seen: TcpFlags,
    is_reset: bool,
}

impl<'a> Player<'a> {
    fn new(
        raw: &'a RawIpSocket,
        local: SocketAddr,
        peer: Option<SocketAddr>,
        inbox: Receiver<Came>,
    ) -> Self {
        Self {
            raw,
            local,
            peer,
            inbox,
            next: 0,
            sent: BTreeMap::new(),
            acknowledged: 0,
            expected: SeqNumber(0),
            echo: None,
            stamp: FIRST_STAMP,
            heard: Vec::new(),
            waited: 0,
            seen: TcpFlags(0),
            is_reset: false,
        }
    }

    fn play(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Open if self.peer.is_none() => {
                    self.send(&Send::opening(TcpFlags::SYN | TcpFlags::ACK));
                }
                Step::Open => {
                    self.send(&Send::opening(TcpFlags::SYN));
                    self.wait(Until::SynAck);
                    self.send(&Send::new(TcpFlags::ACK, Vec::new()));
                }
                Step::Send(send) => self.send(send),
                Step::Datagram(payload, times) => {
                    for _ in 0..*times {
                        self.send_datagram(payload);
                    }
                }
                Step::Fill(count) => self.fill(*count),
                Step::Wait(until) => self.wait(*until),
            }
        }
        self.wait(Until::Ack);
        let end = deadline(AFTER);
        while self.take(end) {}
    }

    /// Sends as a step says.
    fn send(&mut self, send: &Send) {
        if self.peer.is_none() {
            self.wait(Until::Syn);
        }
        let is_opening = send.is_opening;
        let is_fin = send.flags.contains(TcpFlags::FIN);
        let base = send.at.unwrap_or(self.next);
        let place = base.wrapping_sub(send.before);
        if let Stamp::Against(by) = send.stamp
            && by > 0
        {
            self.stamp = self.stamp.wrapping_add_signed(by);
        }
        let size = send.pieces.unwrap_or(SEGMENT).max(1);
        let mut parts: Vec<(u32, &[u8])> = vec![(place, &[])];
        if !send.payload.is_empty() {
            let chunks = send.payload.chunks(size).enumerate();
            parts = chunks
                .map(|(number, part)| (place.wrapping_add(length(number * size)), part))
                .collect();
        }
        if send.is_reversed {
            parts.reverse();
        }
        for (place, part) in &parts {
            let seq = if is_opening {
                FIRST
            } else {
                FIRST + 1 + *place
            };
            self.emit(send, seq, part);
        }
        let counts = send.at.is_none() && send.flags.contains(TcpFlags::ACK);
        if counts && !is_opening && (is_fin || !send.payload.is_empty()) {
            for (place, part) in parts {
                self.sent.insert(place, part.to_vec());
            }
            self.next = place.wrapping_add(length(send.payload.len())) + u32::from(is_fin);
            if is_fin && !send.payload.is_empty() {
                self.sent.insert(self.next - 1, Vec::new());
            }
        }
    }

    fn send_datagram(&self, payload: &[u8]) {
        if let Some(peer) = self.peer {
            let frame = UdpFrame {
                payload,
                ..UdpFrame::new(self.local, peer)
            };
            self.put(&frame.to_packet(), peer);
        }
    }

    /// Sends one segment as a step says.
    fn emit(&self, send: &Send, seq: SeqNumber, payload: &[u8]) {
        let Some(peer) = self.peer else { return };
        let is_syn = send.flags.contains(TcpFlags::SYN);
        let mut options = Vec::new();
        if is_syn {
            options.extend([2, 4, 5, 120]);
        }
        if send.has_signature {
            options.extend([1, 1, 19, 18]);
            options.extend([0; 16]);
        }
        let offers = is_syn && !send.flags.contains(TcpFlags::ACK);
        if let Stamp::Against(by) = send.stamp
            && (offers || self.echo.is_some())
        {
            options.extend([1, 1, 8, 10]);
            let value = self.stamp.wrapping_add_signed(by.min(0));
            options.extend(value.to_be_bytes());
            options.extend(self.echo.unwrap_or(0).to_be_bytes());
        }
        let has_ack = send.flags.contains(TcpFlags::ACK);
        let ack = SeqNumber(self.expected.0.wrapping_add_signed(send.ack));
        let frame = TcpFrame {
            seq,
            ack: if has_ack { ack } else { SeqNumber(0) },
            flags: send.flags,
            window: send.window,
            urgent_pointer: send.urgent,
            ttl: send.ttl,
            options: &options,
            payload,
            ..TcpFrame::new(self.local, peer)
        };
        let mut packet = frame.to_packet();
        let header = if peer.is_ipv4() { 20 } else { 40 };
        let mut change = |at: usize, bits: u8| {
            if let Some(byte) = packet.get_mut(header + at) {
                *byte ^= bits;
            }
        };
        if send.has_reserved_bit {
            // The checksum is a sum: a bit more in the one, one less in the other.
            change(12, 0x04);
            let sum = packet.get_mut(header + 16..);
            if let Some(sum) = sum.and_then(|rest| rest.first_chunk_mut::<2>()) {
                let (less, borrow) = u16::from_be_bytes(*sum).overflowing_sub(0x0400);
                *sum = less.wrapping_sub(u16::from(borrow)).to_be_bytes();
            }
        } else if send.has_bad_checksum {
            change(16, 0x55);
        }
        if let Some(extension) = send.extension {
            packet = behind(extension, &packet);
        }
        let Some(size) = send.fragments else {
            return self.put(&packet, peer);
        };
        let number = FRAGMENTED.fetch_add(1, Ordering::Relaxed);
        for (at, fragment) in fragments(&packet, number, size).into_iter().enumerate() {
            self.put(&fragment, peer);
            if send.overlaps && at == 1 {
                let mut other = fragment;
                let from = other.len().saturating_sub(size);
                other.iter_mut().skip(from).for_each(|byte| *byte = b'.');
                self.put(&other, peer);
            }
        }
    }

    fn put(&self, packet: &[u8], peer: SocketAddr) {
        // A full queue is like a loss on the way.
        drop(self.raw.send(packet, peer));
    }

    /// Sends bytes that mean nothing, no more at a time than anybody takes.
    fn fill(&mut self, count: usize) {
        let end = self.next.wrapping_add(length(count));
        while self.next < end && !self.is_reset {
            let size = SEGMENT.min(usize::try_from(end - self.next).unwrap_or(0));
            let bytes = vec![b'-'; size];
            self.send(&Send::new(TcpFlags::ACK | TcpFlags::PSH, bytes));
            if self.next - self.acknowledged > WINDOW {
                self.wait(Until::Ack);
            }
        }
    }

    fn wait(&mut self, until: Until) {
        let mut end = deadline(TIMEOUT);
        let mut again = deadline(AGAIN);
        let mut times = 0;
        while !self.is_so(until) && !self.is_reset {
            let before = self.acknowledged;
            let came = self.take(end.min(again));
            if self.acknowledged != before {
                (end, again, times) = (deadline(TIMEOUT), deadline(AGAIN), 0);
            }
            if came {
                continue;
            }
            if monotonic_ns() >= end {
                return;
            }
            if times >= TIMES {
                return;
            }
            if until == Until::SynAck {
                self.send(&Send::opening(TcpFlags::SYN));
            }
            if until != Until::Syn {
                times += 1;
            }
            self.send_again();
            again = deadline(AGAIN);
        }
        if until == Until::Data {
            self.waited = self.heard.len();
        }
    }

    fn is_so(&self, until: Until) -> bool {
        match until {
            Until::Syn => self.peer.is_some(),
            Until::SynAck => self.seen.contains(TcpFlags::SYN | TcpFlags::ACK),
            Until::Ack => self.acknowledged >= self.next,
            Until::Request => self.heard.windows(4).any(|end| end == b"\r\n\r\n"),
            Until::Data => self.heard.len() > self.waited,
            Until::Reset => self.is_reset,
        }
    }

    /// Sends again what is not acknowledged, as it was.
    fn send_again(&self) {
        let is_waiting = |(place, bytes): &(&u32, &Vec<u8>)| {
            **place + length(bytes.len()).max(1) > self.acknowledged
        };
        let waiting = self.sent.iter().filter(is_waiting).take(AT_ONCE);
        for (place, bytes) in waiting {
            let flags = if bytes.is_empty() {
                TcpFlags::FIN | TcpFlags::ACK
            } else {
                TcpFlags::PSH | TcpFlags::ACK
            };
            self.emit(&Send::new(flags, Vec::new()), FIRST + 1 + *place, bytes);
        }
    }

    /// Takes a segment, and acknowledges what it brings; false where none comes until `end`.
    fn take(&mut self, end: u64) -> bool {
        let left = Duration::from_nanos(end.saturating_sub(monotonic_ns()));
        let came = match self.inbox.recv_timeout(left) {
            Ok(came) => came,
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => {
                self.is_reset = true;
                return false;
            }
        };
        if self.peer.is_some_and(|peer| peer != came.from) {
            return true;
        }
        self.seen = self.seen | came.flags;
        if came.flags.contains(TcpFlags::RST) {
            self.is_reset = true;
            return true;
        }
        if came.flags.contains(TcpFlags::SYN) {
            self.peer = Some(came.from);
            self.expected = came.seq + 1;
            self.echo = came.stamp;
            return true;
        }
        if came.stamp.is_some() && self.echo.is_some() {
            self.echo = came.stamp;
        }
        let place = u32::try_from(came.ack - (FIRST + 1)).unwrap_or(0);
        if came.flags.contains(TcpFlags::ACK) && place <= self.next {
            self.acknowledged = self.acknowledged.max(place);
        }
        let skip = usize::try_from(self.expected - came.seq);
        let is_fin = came.flags.contains(TcpFlags::FIN);
        if let Ok(skip) = skip {
            let new = came.payload.get(skip..).unwrap_or_default();
            let is_end = is_fin && skip <= came.payload.len();
            self.expected += length(new.len()) + u32::from(is_end);
            self.heard.extend(new);
        }
        if !came.payload.is_empty() || is_fin {
            self.send(&Send::new(TcpFlags::ACK, Vec::new()));
        }
        true
    }
}

/// The packet with headers between those of IPv6 and TCP.
fn behind(extension: Extension, packet: &[u8]) -> Vec<u8> {
    const OPTIONS: u8 = 60;
    let (own, count, header): (u8, usize, &[u8]) = match extension {
        Extension::Options(count) => (OPTIONS, count, &[OPTIONS, 0, 1, 4, 0, 0, 0, 0]),
        // The two upper bits of the type: 01.
        Extension::Discard => (OPTIONS, 1, &[OPTIONS, 0, 0x5e, 4, 0, 0, 0, 0]),
        Extension::Routing => (43, 1, &[43, 0, 99, 1, 0, 0, 0, 0]),
        Extension::Authentication => (
            51,
            1,
            &[
                51, 4, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            ],
        ),
    };
    let Some((ip, segment)) = packet.split_at_checked(40) else {
        return packet.to_vec();
    };
    if count == 0 || ip.first().is_none_or(|first| first >> 4 != 6) {
        return packet.to_vec();
    }
    let mut headers = header.repeat(count);
    let last = headers.len() - header.len();
    if let Some(next) = headers.get_mut(last) {
        *next = ip.get(6).copied().unwrap_or_default();
    }
    let mut all = [ip, &headers, segment].concat();
    let length = u16::try_from(all.len() - 40).unwrap_or(0).to_be_bytes();
    if let Some(place) = all.get_mut(4..7) {
        place.copy_from_slice(&[length[0], length[1], own]);
    }
    all
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn deadline(from_now: Duration) -> u64 {
    let nanos = linkweir_wire::nanos(from_now);
    monotonic_ns().saturating_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_stand_between_those_of_ip_and_tcp() {
        let frame = TcpFrame {
            payload: b"x",
            ..TcpFrame::new(
                "[fd00::1]:1".parse().unwrap(),
                "[fd00::2]:2".parse().unwrap(),
            )
        };
        let packet = frame.to_packet();
        for (extension, more) in [
            (Extension::Options(0), 0),
            (Extension::Options(3), 24),
            (Extension::Discard, 8),
            (Extension::Routing, 8),
            (Extension::Authentication, 24),
        ] {
            let bytes = behind(extension, &packet);
            assert_eq!(bytes.len(), packet.len() + more, "{extension:?}");
            let decoded = decode(LinkType::RAW, &bytes, length(bytes.len())).unwrap();
            let Transport::Tcp(tcp) = decoded.transport else {
                panic!("{extension:?}: {decoded:?}")
            };
            assert_eq!(
                (tcp.dst_port(), tcp.payload),
                (2, &b"x"[..]),
                "{extension:?}"
            );
        }
    }
}
