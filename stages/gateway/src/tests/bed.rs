//! A test bed: packets in, answers carried out, what each end gets.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use linkweir_engine::Effects;
use linkweir_engine::effect::{
    Answer, Decision, MarkLayout, OwnSegment, QueuedPacket, Reset, ScanChunk, ScanOutcome,
    ScanReport, Ticket, Verdict,
};
use linkweir_proto::application::Application;
use linkweir_record::gateway::GatewayEventKind;
use linkweir_record::{GatewayBatch, GatewayKind, RecordBatch as _};
use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{SeqNumber, TcpFlags, Timestamp};

use crate::inspect::Side;
use crate::policy::{
    Action, Applications, Hold, Inspect, Label, Limits, Policy, Rule, ScanMode, ScanSettings,
};
use crate::{GatewayStage, Invitations, Took};

pub(super) const CLIENT_FIRST: u32 = 0xffff_ff00;
pub(super) const SERVER_FIRST: u32 = 5_000;

/// What the scanner looks for.
pub(super) const VIRUS: &[u8] = b"NOT-A-VIRUS-BUT-FOUND-LIKE-ONE-0123456789";

pub(super) fn client() -> SocketAddr {
    "10.0.0.1:40000".parse().expect("an address")
}

pub(super) fn server() -> SocketAddr {
    "192.0.2.1:80".parse().expect("an address")
}

/// A policy of one rule, for HTTP.
pub(super) fn policy(action: Action, inspect: Inspect) -> Policy {
    let mut rule = Rule::any("web", 1, action);
    rule.applications = Applications::Of(vec![Label::Known(Application::Http)]);
    rule.inspect = inspect;
    Policy {
        marks: MarkLayout::default(),
        limits: Limits::default(),
        signatures: Vec::new(),
        rules: vec![Arc::new(rule)],
        default: Arc::new(Rule::any("default", 0, Action::Allow)),
        places: None,
        local_minute: None,
        quotas: None,
    }
}

/// Scanning in windows.
pub(super) fn scanning(window: usize) -> Inspect {
    Inspect {
        scan: Some(ScanSettings {
            mode: ScanMode::Window {
                bytes: window,
                tail: VIRUS.len(),
            },
            timeout_ns: 1_000_000_000,
            hold: Hold::Packet,
        }),
        audit: true,
        ..Inspect::default()
    }
}

/// A packet on its way.
#[derive(Debug, Clone)]
struct Sent {
    from: Side,
    seq: u32,
    payload: Vec<u8>,
    is_fin: bool,
    mark: u32,
}

/// The end that gets what one side sends.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// Bytes by their offset in the stream.
    bytes: BTreeMap<u32, u8>,
    pub(super) has_fin: bool,
}

impl Receiver {
    fn take(&mut self, at: u32, bytes: &[u8], is_fin: bool) {
        for (offset, byte) in bytes.iter().enumerate() {
            let offset = at.wrapping_add(u32::try_from(offset).expect("small"));
            self.bytes.entry(offset).or_insert(*byte);
        }
        self.has_fin |= is_fin;
    }

    /// The stream as far as it came without a hole.
    pub(super) fn stream(&self) -> Vec<u8> {
        let at = self.bytes.iter().enumerate();
        let whole = at.take_while(|(at, (offset, _))| *at == **offset as usize);
        whole.map(|(_, (_, byte))| *byte).collect()
    }
}

pub(super) struct Bed {
    pub(super) stage: GatewayStage,
    pub(super) effects: Effects<GatewayKind>,
    pub(super) now: Timestamp,
    waiting: BTreeMap<u32, Sent>,
    next_id: u32,
    /// What the server got, and the client.
    pub(super) at_server: Receiver,
    pub(super) at_client: Receiver,
    pub(super) answers: Vec<Answer>,
    pub(super) resets: Vec<Reset>,
    /// What the gateway has acknowledged to client and server in the name of the other, and what it brings is lost where this
    /// says so.
    pub(super) acknowledged: [u32; 2],
    pub(super) own: Vec<OwnSegment>,
    /// Acknowledgments in the name of an end, to client and server.
    pub(super) bare: [usize; 2],
    pub(super) loses: fn(usize) -> bool,
    pub(super) events: GatewayBatch,
    scans: BTreeMap<Ticket, Vec<u8>>,
    pub(super) due: Vec<Ticket>,
    marks: MarkLayout,
    mark: u32,
    /// A clock that packets are timed by, and what the last one took.
    pub(super) stamp: Option<fn() -> u64>,
    pub(super) took: Took,
}

impl Bed {
    pub(super) fn new(policy: Policy) -> Self {
        let marks = policy.marks;
        Self {
            stage: GatewayStage::new(Arc::new(policy), 0, Arc::new(Invitations::default())),
            effects: Effects::default(),
            now: Timestamp::from_nanos(1_000_000_000_000),
            waiting: BTreeMap::new(),
            next_id: 0,
            at_server: Receiver::default(),
            at_client: Receiver::default(),
            answers: Vec::new(),
            resets: Vec::new(),
            acknowledged: [0; 2],
            own: Vec::new(),
            bare: [0; 2],
            loses: |_| false,
            events: GatewayBatch::default(),
            scans: BTreeMap::new(),
            due: Vec::new(),
            marks,
            mark: 0,
            stamp: None,
            took: Took::default(),
        }
    }

    /// The handshake.
    pub(super) fn open(&mut self) {
        self.packet(Side::Client, CLIENT_FIRST, TcpFlags::SYN, &[]);
        self.packet(
            Side::Server,
            SERVER_FIRST,
            TcpFlags::SYN | TcpFlags::ACK,
            &[],
        );
        self.packet(
            Side::Client,
            CLIENT_FIRST.wrapping_add(1),
            TcpFlags::ACK,
            &[],
        );
    }

    /// What follows is of another connection, of which conntrack knows nothing.
    pub(super) const fn anew(&mut self) {
        self.mark = 0;
    }

    /// Payload at an offset of a side's stream.
    pub(super) fn send(&mut self, from: Side, offset: usize, payload: &[u8]) {
        let seq = first(from)
            .wrapping_add(1)
            .wrapping_add(u32::try_from(offset).expect("small"));
        self.packet(from, seq, TcpFlags::ACK | TcpFlags::PSH, payload);
    }

    /// The end of a side's stream.
    pub(super) fn fin(&mut self, from: Side, offset: usize) {
        let seq = first(from)
            .wrapping_add(1)
            .wrapping_add(u32::try_from(offset).expect("small"));
        self.packet(from, seq, TcpFlags::ACK | TcpFlags::FIN, &[]);
    }

    /// An acknowledgment without payload at an offset of a side's stream: it has so many bytes of the other.
    pub(super) fn ack(&mut self, from: Side, offset: usize, has: usize) {
        let [seq, ack] = [(from, offset), (from.other(), has)].map(|(side, offset)| {
            let offset = u32::try_from(offset).expect("small");
            first(side).wrapping_add(1).wrapping_add(offset)
        });
        self.packet_with(from, seq, ack, TcpFlags::ACK, &[]);
    }

    pub(super) fn packet(&mut self, from: Side, seq: u32, flags: TcpFlags, payload: &[u8]) {
        let ack = first(from.other()).wrapping_add(1);
        self.packet_with(from, seq, ack, flags, payload);
    }

    fn packet_with(&mut self, from: Side, seq: u32, ack: u32, flags: TcpFlags, payload: &[u8]) {
        self.segment(
            from,
            &TcpFrame {
                seq: SeqNumber(seq),
                ack: SeqNumber(ack),
                flags,
                payload,
                ..segment(from)
            },
        );
    }

    /// Any segment of a side, as [`segment`] makes it.
    pub(super) fn segment(&mut self, from: Side, frame: &TcpFrame<'_>) {
        let sent = Sent {
            from,
            seq: frame.seq.0,
            payload: frame.payload.to_vec(),
            is_fin: frame.flags.contains(TcpFlags::FIN),
            mark: self.mark,
        };
        self.queue(sent, &frame.to_packet());
    }

    /// Any IP packet of the server's; the answer to it.
    pub(super) fn raw(&mut self, bytes: &[u8]) -> Option<Answer> {
        let sent = Sent {
            from: Side::Server,
            seq: SERVER_FIRST,
            payload: Vec::new(),
            is_fin: false,
            mark: self.mark,
        };
        self.queue(sent, bytes);
        let id = self.next_id;
        self.answers.iter().find(|answer| answer.id == id).copied()
    }

    fn queue(&mut self, sent: Sent, bytes: &[u8]) {
        self.next_id += 1;
        self.waiting.insert(self.next_id, sent);
        let packet = QueuedPacket {
            id: self.next_id,
            mark: self.mark,
            bytes,
            wire_len: u32::try_from(bytes.len()).expect("a packet"),
            is_checksum_open: true,
        };
        if let Some(stamp) = self.stamp {
            self.took = self
                .stage
                .on_packet_timed(&packet, self.now, &mut self.effects, stamp);
        } else {
            self.stage.on_packet(&packet, self.now, &mut self.effects);
        }
        self.carry_out();
    }

    fn carry_out(&mut self) {
        for answer in std::mem::take(&mut self.effects.answers) {
            let sent = self
                .waiting
                .remove(&answer.id)
                .expect("each packet is answered once");
            self.answers.push(answer);
            if let Some(mark) = answer.mark {
                self.mark = mark;
            }
            let decision = self.marks.read(answer.mark.unwrap_or(sent.mark)).decision;
            let passes = match answer.verdict {
                Verdict::Accept => true,
                Verdict::Drop => false,
                // The kernel's rules, once more.
                Verdict::Repeat => !matches!(decision, Decision::Drop | Decision::Reject),
            };
            if passes {
                let receiver = match sent.from {
                    Side::Client => &mut self.at_server,
                    Side::Server => &mut self.at_client,
                };
                let at = sent.seq.wrapping_sub(first(sent.from)).wrapping_sub(1);
                receiver.take(at, &sent.payload, sent.is_fin);
            }
        }
        self.resets.append(&mut self.effects.resets);
        for own in std::mem::take(&mut self.effects.segments) {
            let from = if own.from == client() {
                Side::Client
            } else {
                Side::Server
            };
            let ack = own.ack.0.wrapping_sub(first(from.other())).wrapping_sub(1);
            let [to_client, to_server] = &mut self.acknowledged;
            let (receiver, acknowledged) = match from {
                Side::Client => (&mut self.at_server, to_server),
                Side::Server => (&mut self.at_client, to_client),
            };
            *acknowledged = ack.max(*acknowledged);
            let number = self.own.len();
            if own.payload.is_empty() && !own.is_fin {
                let [to_client, to_server] = &mut self.bare;
                *match from {
                    Side::Client => to_server,
                    Side::Server => to_client,
                } += 1;
            }
            if !own.payload.is_empty() || own.is_fin {
                let at = own.seq.0.wrapping_sub(first(from)).wrapping_sub(1);
                if !(self.loses)(number) {
                    receiver.take(at, &own.payload, own.is_fin);
                }
                self.own.push(own);
            }
        }
        for ScanChunk {
            ticket,
            bytes,
            is_last,
        } in self.effects.scans.drain(..)
        {
            self.scans.entry(ticket).or_default().extend(bytes);
            if is_last {
                self.due.push(ticket);
            }
        }
        let records = std::mem::take(&mut self.effects.records);
        records
            .views()
            .for_each(|event| self.events.push_view(&event));
    }

    /// The scanner answers everything it was asked.
    pub(super) fn scan(&mut self) {
        while let Some(ticket) = self.due.pop() {
            let bytes = self.scans.remove(&ticket).expect("a scan");
            let outcome = if bytes.windows(VIRUS.len()).any(|part| part == VIRUS) {
                ScanOutcome::Infected("Test.Virus".to_owned())
            } else {
                ScanOutcome::Clean
            };
            self.report(ticket, outcome);
        }
    }

    pub(super) fn report(&mut self, ticket: Ticket, outcome: ScanOutcome) {
        let report = ScanReport {
            ticket,
            outcome,
            latency_ns: 1,
        };
        self.stage.on_report(&report, self.now, &mut self.effects);
        self.carry_out();
    }

    pub(super) fn advance(&mut self, nanos: u64) {
        self.now = Timestamp::from_nanos(self.now.as_nanos() + nanos);
        self.stage.on_tick(self.now, &mut self.effects);
        self.carry_out();
    }

    pub(super) fn finish(&mut self) {
        self.stage.finish(self.now, &mut self.effects);
        self.carry_out();
    }

    /// Packets without an answer.
    pub(super) fn unanswered(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn events_of(&self, kind: GatewayEventKind) -> usize {
        self.events
            .views()
            .filter(|event| event.row.event == kind)
            .count()
    }

    /// The decision that the kernel knows.
    pub(super) fn decision(&self) -> Decision {
        self.marks.read(self.mark).decision
    }
}

/// The first segment with payload of a side, without any.
pub(super) fn segment(from: Side) -> TcpFrame<'static> {
    let (src, dst) = match from {
        Side::Client => (client(), server()),
        Side::Server => (server(), client()),
    };
    TcpFrame {
        seq: SeqNumber(first(from).wrapping_add(1)),
        ack: SeqNumber(first(from.other()).wrapping_add(1)),
        flags: TcpFlags::ACK,
        ..TcpFrame::new(src, dst)
    }
}

fn first(side: Side) -> u32 {
    match side {
        Side::Client => CLIENT_FIRST,
        Side::Server => SERVER_FIRST,
    }
}

pub(super) const REQUEST: &[u8] = b"GET /files/song.mp3 HTTP/1.1\r\nHost: example.test\r\n\r\n";

/// A response with a body.
pub(super) fn response(body: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}
