//! One client, and a server that says what the test wants.

use std::net::SocketAddr;

use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{LinkType, SeqNumber, TcpFlags, TcpOption, Timestamp, Transport, decode};

use super::super::{ConnectError, Heard, Opening, TcpClients, TcpCounts, TcpSettings};
use crate::seam::{Client, CloseReason, ConnId, Listener, SegmentOut, TcpEvent};

pub(super) const SYN: TcpFlags = TcpFlags::SYN;
pub(super) const ACK: TcpFlags = TcpFlags::ACK;
pub(super) const FIN: TcpFlags = TcpFlags::FIN;
pub(super) const RST: TcpFlags = TcpFlags::RST;

/// A segment, either way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seg {
    pub(super) src: SocketAddr,
    pub(super) dst: SocketAddr,
    pub(super) seq: SeqNumber,
    pub(super) ack: SeqNumber,
    pub(super) flags: TcpFlags,
    pub(super) window: u16,
    pub(super) options: Vec<u8>,
    pub(super) payload: Vec<u8>,
}

impl Seg {
    pub(super) fn of_frame(frame: &[u8]) -> Self {
        let len = u32::try_from(frame.len()).unwrap();
        let packet = decode(LinkType::ETHERNET, frame, len).unwrap();
        let Transport::Tcp(tcp) = packet.transport else {
            panic!("no TCP: {packet:?}");
        };
        Self {
            src: SocketAddr::new(packet.network.src(), tcp.src_port()),
            dst: SocketAddr::new(packet.network.dst(), tcp.dst_port()),
            seq: tcp.seq(),
            ack: tcp.ack(),
            flags: tcp.flags(),
            window: tcp.window(),
            options: tcp.options.to_vec(),
            payload: tcp.payload.to_vec(),
        }
    }

    pub(super) fn to_frame(&self) -> Vec<u8> {
        TcpFrame {
            seq: self.seq,
            ack: self.ack,
            flags: self.flags,
            window: self.window,
            options: &self.options,
            payload: &self.payload,
            ..TcpFrame::new(self.src, self.dst)
        }
        .to_vec()
    }

    fn with_options<T>(&self, find: impl Fn(TcpOption<'_>) -> Option<T>) -> Option<T> {
        let frame = self.to_frame();
        let len = u32::try_from(frame.len()).unwrap();
        let packet = decode(LinkType::ETHERNET, &frame, len).unwrap();
        let Transport::Tcp(tcp) = packet.transport else {
            panic!("no TCP");
        };
        tcp.options().find_map(find)
    }

    pub(super) fn mss(&self) -> Option<u16> {
        self.with_options(|option| match option {
            TcpOption::MaximumSegmentSize(mss) => Some(mss),
            _ => None,
        })
    }

    pub(super) fn timestamps(&self) -> Option<(u32, u32)> {
        self.with_options(|option| match option {
            TcpOption::Timestamps { value, echo } => Some((value, echo)),
            _ => None,
        })
    }

    pub(super) fn sack(&self) -> Vec<(SeqNumber, SeqNumber)> {
        self.with_options(|option| match option {
            TcpOption::Sack(blocks) => Some(blocks.collect()),
            _ => None,
        })
        .unwrap_or_default()
    }

    pub(super) fn has(&self, flag: TcpFlags) -> bool {
        self.flags.contains(flag)
    }

    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.payload.len()).unwrap()
            + u32::from(self.has(SYN))
            + u32::from(self.has(FIN))
    }
}

/// Options of a SYN ACK: what is `Some` or true.
pub(super) fn options(
    mss: Option<u16>,
    scale: Option<u8>,
    sack: bool,
    ts: Option<(u32, u32)>,
) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(mss) = mss {
        out.extend_from_slice(&[2, 4]);
        out.extend_from_slice(&mss.to_be_bytes());
    }
    if let Some(scale) = scale {
        out.extend_from_slice(&[1, 3, 3, scale]);
    }
    if sack {
        out.extend_from_slice(&[1, 1, 4, 2]);
    }
    if let Some((value, echo)) = ts {
        out.extend_from_slice(&[1, 1, 8, 10]);
        out.extend_from_slice(&value.to_be_bytes());
        out.extend_from_slice(&echo.to_be_bytes());
    }
    out
}

/// Keeps what is sent.
#[derive(Debug, Default)]
pub(super) struct Wire(pub(super) Vec<Seg>);

impl SegmentOut for Wire {
    fn segment(&mut self, _client: Client, frame: &TcpFrame<'_>, _now: Timestamp) {
        self.0.push(Seg::of_frame(&frame.to_vec()));
    }
}

/// An event with its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    Connected {
        handshake_ns: u64,
        syn_retransmissions: u32,
    },
    Data(Vec<u8>),
    Sent,
    PeerFinished,
    Closed(CloseReason),
}

/// Keeps what is reported.
#[derive(Debug, Default)]
pub(super) struct Ear(pub(super) Vec<(ConnId, u32, Event)>);

impl Listener for Ear {
    fn on_event(&mut self, conn: ConnId, user: u32, event: TcpEvent<'_>, _at: Timestamp) {
        let event = match event {
            TcpEvent::Connected {
                handshake_ns,
                syn_retransmissions,
            } => Event::Connected {
                handshake_ns,
                syn_retransmissions,
            },
            TcpEvent::Data(bytes) => Event::Data(bytes.to_vec()),
            TcpEvent::Sent => Event::Sent,
            TcpEvent::PeerFinished => Event::PeerFinished,
            TcpEvent::Closed(reason) => Event::Closed(reason),
        };
        self.0.push((conn, user, event));
    }
}

/// What a server without options says in its SYN ACK.
pub(super) const PLAIN: Vec<u8> = Vec::new();

/// A client, its connection, and a server.
pub(super) struct Bench {
    pub(super) tcp: TcpClients,
    pub(super) wire: Wire,
    pub(super) ear: Ear,
    pub(super) now: Timestamp,
    pub(super) conn: ConnId,
    /// The SYN of the connection.
    pub(super) syn: Option<Seg>,
    /// The server's next number, and what it has of us.
    pub(super) seq: SeqNumber,
    pub(super) ack: SeqNumber,
    pub(super) window: u16,
    /// Timestamp value the server says, where it does.
    pub(super) ts: Option<u32>,
}

pub(super) fn opening(sends_syn: bool) -> Opening {
    Opening {
        client: 3,
        local: "10.0.0.4".parse().unwrap(),
        remote: "192.0.2.1:80".parse().unwrap(),
        user: 77,
        mss: None,
        sends_syn,
    }
}

/// Small pools: the tests need no more.
pub(super) fn settings() -> TcpSettings {
    TcpSettings {
        max_connections: 64,
        max_time_wait: 64,
        send_pool: 4 << 20,
        receive_pool: 1 << 20,
        ..TcpSettings::default()
    }
}

impl Bench {
    pub(super) fn new(settings: TcpSettings) -> Self {
        Self {
            tcp: TcpClients::new(settings, 5, 16),
            wire: Wire::default(),
            ear: Ear::default(),
            now: Timestamp::from_nanos(1_790_000_000_000_000_000),
            conn: ConnId {
                slot: 9,
                generation: 9,
            },
            syn: None,
            seq: SeqNumber(u32::MAX - 50),
            ack: SeqNumber(0),
            window: 0xffff,
            ts: None,
        }
    }

    /// After the SYN.
    pub(super) fn opened(settings: TcpSettings) -> Self {
        let mut bench = Self::new(settings);
        bench.open(&opening(true)).unwrap();
        let syn = bench.sent().pop().unwrap();
        bench.ack = syn.seq + 1;
        bench.syn = Some(syn);
        bench
    }

    /// After the handshake, with a server that says `options`.
    pub(super) fn established_with(settings: TcpSettings, options: Vec<u8>) -> Self {
        let mut bench = Self::opened(settings);
        bench.pass(10);
        bench.hear_with(SYN | ACK, b"", options);
        bench.seq += 1;
        bench
    }

    /// After the handshake with a server without options; window 65,535, segments of 1,000 bytes.
    pub(super) fn plain() -> Self {
        let mut bench = Self::established_with(settings(), options(Some(1000), None, false, None));
        bench.sent();
        bench.events();
        bench
    }

    /// The same with selective acknowledgments.
    pub(super) fn with_sack() -> Self {
        let mut bench = Self::established_with(settings(), options(Some(1000), None, true, None));
        bench.sent();
        bench.events();
        bench
    }

    pub(super) fn open(&mut self, opening: &Opening) -> Result<(), ConnectError> {
        self.conn = self.tcp.connect(opening, self.now, &mut self.wire)?;
        Ok(())
    }

    /// What was sent since it was asked last.
    pub(super) fn sent(&mut self) -> Vec<Seg> {
        std::mem::take(&mut self.wire.0)
    }

    /// The only segment that was sent.
    pub(super) fn one(&mut self) -> Seg {
        let sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:#?}");
        sent.into_iter().next().unwrap()
    }

    /// What was reported since it was asked last.
    pub(super) fn events(&mut self) -> Vec<Event> {
        let events = std::mem::take(&mut self.ear.0);
        assert!(events.iter().all(|(_, user, _)| *user == 77));
        events.into_iter().map(|(_, _, event)| event).collect()
    }

    /// The server sends a segment at its place, with the options given.
    pub(super) fn hear_with(&mut self, flags: TcpFlags, payload: &[u8], options: Vec<u8>) -> Heard {
        let syn = self.syn.clone().unwrap();
        self.hear_seg(&Seg {
            src: syn.dst,
            dst: syn.src,
            seq: self.seq,
            ack: self.ack,
            flags,
            window: self.window,
            options,
            payload: payload.to_vec(),
        })
    }

    pub(super) fn hear_seg(&mut self, seg: &Seg) -> Heard {
        let frame = seg.to_frame();
        let len = u32::try_from(frame.len()).unwrap();
        let packet = decode(LinkType::ETHERNET, &frame, len).unwrap();
        self.tcp.on_segment(
            &packet,
            3,
            self.now,
            self.now,
            &mut self.wire,
            &mut self.ear,
        )
    }

    /// The server sends a segment; its next number stays.
    pub(super) fn hear(&mut self, flags: TcpFlags, payload: &[u8]) -> Heard {
        let ts = self.ts.map(|value| (value, 0));
        self.hear_with(flags, payload, options(None, None, false, ts))
    }

    /// The server sends a segment and goes on behind it.
    pub(super) fn say(&mut self, flags: TcpFlags, payload: &[u8]) {
        self.hear(flags, payload);
        self.seq += u32::try_from(payload.len()).unwrap() + u32::from(flags.contains(FIN));
    }

    /// The server acknowledges everything up to `seq`.
    pub(super) fn acknowledge(&mut self, seq: SeqNumber) {
        self.ack = seq;
        self.hear(ACK, b"");
    }

    /// Time passes; what is due is done at each deadline.
    pub(super) fn pass(&mut self, ms: u64) {
        let until = self.now + std::time::Duration::from_millis(ms);
        while let Some(next) = self.tcp.next_deadline()
            && next <= until
        {
            self.now = self.now.max(next);
            self.tcp.on_tick(self.now, &mut self.wire, &mut self.ear);
        }
        self.now = until;
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> bool {
        self.tcp.send(self.conn, bytes, self.now, &mut self.wire)
    }

    pub(super) fn close(&mut self) {
        self.tcp.close(self.conn, self.now, &mut self.wire);
    }

    pub(super) fn close_after_peer(&mut self) {
        self.tcp
            .close_after_peer(self.conn, self.now, &mut self.wire);
    }

    pub(super) fn counts(&self) -> &TcpCounts {
        self.tcp.counts()
    }

    /// Nothing is left of anything.
    pub(super) fn assert_empty(&self) {
        assert_eq!(self.tcp.open(), 0);
        assert_eq!(self.tcp.in_flight(), 0);
    }
}
