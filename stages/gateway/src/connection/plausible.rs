//! Segments that their receiver ignores: an inspector that took them for the stream would be shown other
//! bytes than the receiver.
//!
//! They are dropped. That is safe for an honest sender: what it sends again has a current timestamp and
//! acknowledgment. What is not detected here is detected when it is sent again with other bytes
//! ([`Stream::differs`](crate::hold::Stream::differs)), so where it is not known what a receiver takes, it
//! takes it.

use linkweir_wire::{SeqNumber, Tcp, TcpFlags, TcpOption};

/// The largest shift of a window (RFC 7323 sec. 2.3).
const LARGEST_SHIFT: u8 = 14;
/// Ticks that a timestamp may be older, as Linux takes them (`TCP_PAWS_WINDOW`).
const PAWS_WINDOW: i32 = 1;

/// What one end has sent, as far as the other end judges its segments by it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Plausible {
    /// Its newest timestamp in order: TS.Recent of its receiver (RFC 7323 sec. 4.3).
    timestamp: Option<u32>,
    /// Its first and its newest acknowledgment.
    acks: Option<(SeqNumber, SeqNumber)>,
    /// What it can take: its newest acknowledgment and window.
    edge: Option<SeqNumber>,
    /// Its newest window, as its segments have it.
    window: u16,
    largest_window: u32,
    /// By how many bits its windows are shifted, where its handshake was seen.
    shift: Option<u8>,
    /// Whether it signs its segments.
    is_signed: bool,
}

/// What else the receiver judges a segment by.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Receiver {
    /// The next byte that it will send, as far as that is known.
    pub(crate) sent: Option<SeqNumber>,
    /// The next byte that it can read, as far as that is known.
    pub(crate) next: Option<SeqNumber>,
    /// Number behind the last byte that it has room for.
    pub(crate) edge: Option<SeqNumber>,
}

/// What the options of a segment say.
#[derive(Debug, Default)]
struct Options {
    timestamp: Option<u32>,
    shift: Option<u8>,
    is_signed: bool,
}

impl Options {
    fn of(tcp: &Tcp<'_>) -> Self {
        let mut all = Self::default();
        for option in tcp.options() {
            match option {
                TcpOption::Timestamps { value, .. } => all.timestamp = Some(value),
                TcpOption::WindowScale(shift) => all.shift = Some(shift.min(LARGEST_SHIFT)),
                // RFC 2385 and RFC 5925.
                TcpOption::Other { kind: 19 | 29, .. } => all.is_signed = true,
                _ => {}
            }
        }
        all
    }
}

impl Plausible {
    /// The SYN of an end, or its answer to one.
    pub(crate) fn opening(tcp: &Tcp<'_>) -> Self {
        let options = Options::of(tcp);
        let window = u32::from(tcp.window());
        Self {
            timestamp: options.timestamp,
            acks: (tcp.flags().contains(TcpFlags::ACK)).then(|| (tcp.ack(), tcp.ack())),
            edge: None,
            window: tcp.window(),
            largest_window: window,
            shift: options.shift,
            is_signed: options.is_signed,
        }
    }

    /// What both ends have offered holds where both have (RFC 7323 sec. 2.2, RFC 2385 sec. 2).
    pub(crate) fn agree(client: &mut Self, server: &mut Self) {
        if client.shift.is_none() || server.shift.is_none() {
            client.shift = Some(0);
            server.shift = Some(0);
        }
        let is_signed = client.is_signed && server.is_signed;
        client.is_signed = is_signed;
        server.is_signed = is_signed;
    }

    /// The first byte of the other end has this number.
    pub(crate) const fn acknowledges_from(&mut self, first: SeqNumber) {
        self.acks = Some((first, first));
    }

    /// Number behind the last byte that this end has room for.
    pub(crate) const fn edge(&self) -> Option<SeqNumber> {
        self.edge
    }

    /// Its newest timestamp.
    pub(crate) const fn timestamp(&self) -> Option<u32> {
        self.timestamp
    }

    /// What it has acknowledged.
    pub(crate) fn newest_ack(&self) -> Option<SeqNumber> {
        self.acks.map(|(_, newest)| newest)
    }

    /// Its newest window, as its segments have it.
    pub(crate) const fn window(&self) -> u16 {
        self.window
    }

    /// Number behind the last byte that it has room for, as a segment of it says.
    pub(crate) fn edge_at(&self, ack: SeqNumber) -> SeqNumber {
        ack + (u32::from(self.window) << self.shift.unwrap_or(0))
    }

    /// Somebody has acknowledged in its name: the other end may send as much more.
    pub(crate) fn acknowledged(&mut self, ack: SeqNumber) {
        let edge = self.edge_at(ack);
        if self.edge.is_none_or(|known| edge.after(known)) {
            self.edge = Some(edge);
        }
    }

    /// Whether the receiver takes a segment; what it says of its sender is noted then.
    pub(crate) fn takes(&mut self, tcp: &Tcp<'_>, receiver: Receiver) -> bool {
        // RFC 9293 sec. 3.10.7.4: without ACK a segment is dropped.
        if !tcp.flags().contains(TcpFlags::ACK) {
            return false;
        }
        let options = Options::of(tcp);
        // Whoever has not agreed on a signature drops the segment.
        if options.is_signed && !self.is_signed {
            return false;
        }
        let (seq, ack) = (tcp.seq(), tcp.ack());
        if receiver.sent.is_some_and(|sent| ack.after(sent)) {
            return false;
        }
        if receiver.edge.is_some_and(|edge| seq.after(edge)) {
            return false;
        }
        // RFC 5961 sec. 5.2, as Linux has it: neither a window behind nor more than was acknowledged.
        let (first, newest) = self.acks.unwrap_or((ack, ack));
        let acknowledged = newest.0.wrapping_sub(first.0);
        let oldest = newest - self.largest_window.min(acknowledged);
        if ack.before(oldest) {
            return false;
        }
        // PAWS (RFC 7323 sec. 5.3).
        let age = |value: u32| {
            self.timestamp
                .map_or(0, |newest| newest.wrapping_sub(value).cast_signed())
        };
        if options
            .timestamp
            .is_some_and(|value| age(value) > PAWS_WINDOW)
        {
            return false;
        }
        let is_reached = receiver.next.is_none_or(|next| !seq.after(next));
        if is_reached && options.timestamp.is_some_and(|value| age(value) <= 0) {
            self.timestamp = options.timestamp;
        }
        let newest = if ack.after(newest) { ack } else { newest };
        self.acks = Some((first, newest));
        let window = u32::from(tcp.window()) << self.shift.unwrap_or(LARGEST_SHIFT);
        self.window = tcp.window();
        self.largest_window = self.largest_window.max(window);
        let edge = ack + window;
        if self.edge.is_none_or(|known| edge.after(known)) {
            self.edge = Some(edge);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_wire::emit::TcpFrame;
    use linkweir_wire::{LinkType, Transport, decode};
    use std::net::SocketAddr;

    /// A segment by its numbers, window, flags and options.
    #[derive(Clone, Copy)]
    struct Sent {
        seq: u32,
        ack: u32,
        window: u16,
        flags: TcpFlags,
        timestamp: Option<u32>,
        other: &'static [u8],
    }

    const SENT: Sent = Sent {
        seq: 1000,
        ack: 5000,
        window: 100,
        flags: TcpFlags::ACK,
        timestamp: None,
        other: &[],
    };

    fn with<T>(sent: Sent, each: impl FnOnce(&Tcp<'_>) -> T) -> T {
        let mut options = sent.other.to_vec();
        if let Some(value) = sent.timestamp {
            options.extend([1, 1, 8, 10]);
            options.extend(value.to_be_bytes());
            options.extend([0; 4]);
        }
        while !options.len().is_multiple_of(4) {
            options.push(1);
        }
        let end = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let bytes = TcpFrame {
            seq: SeqNumber(sent.seq),
            ack: SeqNumber(sent.ack),
            window: sent.window,
            flags: sent.flags,
            options: &options,
            payload: b"x",
            ..TcpFrame::new(end("10.0.0.1:1"), end("10.0.0.2:2"))
        }
        .to_packet();
        let packet = decode(
            LinkType::RAW,
            &bytes,
            u32::try_from(bytes.len()).expect("small"),
        );
        match packet.expect("a packet").transport {
            Transport::Tcp(tcp) => each(&tcp),
            other => panic!("{other:?}"),
        }
    }

    fn opened(client: Sent, server: Sent) -> [Plausible; 2] {
        let mut both = [client, server].map(|sent| with(sent, Plausible::opening));
        let [client, server] = &mut both;
        Plausible::agree(client, server);
        both
    }

    fn takes(plausible: &mut Plausible, sent: Sent, receiver: Receiver) -> bool {
        with(sent, |tcp| plausible.takes(tcp, receiver))
    }

    const SYN: Sent = Sent {
        flags: TcpFlags::SYN,
        seq: 999,
        ack: 0,
        window: 1000,
        ..SENT
    };
    const ANSWER: Sent = Sent {
        flags: TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0),
        seq: 4999,
        ack: 1000,
        window: 1000,
        ..SENT
    };
    /// The server's first segment.
    const FIRST: Sent = Sent {
        seq: 5000,
        ack: 1000,
        window: 1000,
        ..SENT
    };
    const RECEIVER: Receiver = Receiver {
        sent: Some(SeqNumber(1000)),
        next: Some(SeqNumber(5000)),
        edge: None,
    };

    #[test]
    fn without_ack_or_with_a_signature_that_nobody_asked_for() {
        const MD5: &[u8] = &[19, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1];
        let signed = |sent: Sent| Sent { other: MD5, ..sent };
        let [_, mut server] = opened(SYN, ANSWER);
        assert!(!takes(
            &mut server,
            Sent {
                flags: TcpFlags::PSH,
                ..FIRST
            },
            RECEIVER
        ));
        assert!(!takes(&mut server, signed(FIRST), RECEIVER));
        assert!(takes(&mut server, FIRST, RECEIVER));
        let [_, mut server] = opened(signed(SYN), ANSWER);
        assert!(!takes(&mut server, signed(FIRST), RECEIVER));
        let [_, mut server] = opened(signed(SYN), signed(ANSWER));
        assert!(takes(&mut server, signed(FIRST), RECEIVER));
    }

    #[test]
    fn a_timestamp_older_than_that_of_the_handshake_or_of_an_acknowledgment() {
        let at = |sent: Sent, timestamp| Sent {
            timestamp: Some(timestamp),
            ..sent
        };
        let [_, mut server] = opened(at(SYN, 7), at(ANSWER, u32::MAX));
        assert!(!takes(&mut server, at(FIRST, u32::MAX - 2), RECEIVER));
        assert!(
            takes(&mut server, at(FIRST, u32::MAX - 1), RECEIVER),
            "as Linux does"
        );
        // Ahead of a gap it is not noted, in order it is.
        let ahead = Sent { seq: 5001, ..FIRST };
        assert!(takes(&mut server, at(ahead, 500), RECEIVER));
        assert!(takes(&mut server, at(FIRST, 100), RECEIVER));
        assert!(!takes(&mut server, at(FIRST, 98), RECEIVER));
        assert!(
            takes(&mut server, FIRST, RECEIVER),
            "Linux takes one without"
        );
    }

    #[test]
    fn an_acknowledgment_older_than_a_window_or_than_the_connection() {
        let [_, mut server] = opened(SYN, ANSWER);
        let acks = |ack| Sent { ack, ..FIRST };
        let receiver = Receiver {
            sent: Some(SeqNumber(100_000)),
            ..RECEIVER
        };
        assert!(
            !takes(&mut server, acks(999), receiver),
            "nothing was acknowledged"
        );
        assert!(takes(&mut server, acks(1500), receiver));
        assert!(takes(&mut server, acks(1000), receiver));
        assert!(takes(&mut server, acks(50_000), receiver));
        assert!(takes(&mut server, acks(49_000), receiver));
        assert!(!takes(&mut server, acks(48_999), receiver));
        assert!(!takes(&mut server, acks(100_001), receiver), "not sent yet");
    }

    #[test]
    fn windows_are_shifted_as_agreed() {
        const SHIFT: &[u8] = &[3, 3, 4];
        let shifted = |sent: Sent| Sent {
            other: SHIFT,
            ..sent
        };
        for (client, server, edge) in [
            (shifted(SYN), shifted(ANSWER), 1000 + 16 * 1000),
            (SYN, shifted(ANSWER), 1000 + 1000),
        ] {
            let [mut client, mut server] = opened(client, server);
            assert!(takes(&mut server, FIRST, RECEIVER));
            assert_eq!(server.edge(), Some(SeqNumber(edge)));
            let receiver = Receiver {
                sent: Some(SeqNumber(5000)),
                next: Some(SeqNumber(1000)),
                edge: server.edge(),
            };
            let at = |seq| Sent { seq, ..SENT };
            assert!(
                takes(&mut client, at(edge), receiver),
                "it may ask for room"
            );
            assert!(!takes(&mut client, at(edge + 1), receiver));
        }
        let mut unknown = Plausible::default();
        assert!(takes(&mut unknown, FIRST, Receiver::default()));
        assert_eq!(unknown.edge(), Some(SeqNumber(1000 + (1000 << 14))));
    }
}
