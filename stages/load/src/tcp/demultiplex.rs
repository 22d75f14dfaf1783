//! Whose a segment is; the answers to those of nobody.

use std::net::SocketAddr;

use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{Packet, SeqNumber, TcpFlags, Timestamp, Transport};

use super::clients::TcpClients;
use super::segment::Segment;
use super::stack::Context;
use crate::seam::{Client, ConnId, Listener, SegmentOut};

/// Whose segment it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// That of an open connection.
    Known,
    /// That of a connection in TIME-WAIT.
    TimeWait,
    /// That of no connection: answered with a RST unless it is one (RFC 9293 sec. 3.10.7.1).
    Stray,
    /// It was not TCP.
    NotTcp,
}

impl TcpClients {
    /// Takes a segment to an address of a client. `at` is when it arrived, as the kernel saw it; its
    /// checksum is right.
    pub fn on_segment(
        &mut self,
        packet: &Packet<'_>,
        client: Client,
        at: Timestamp,
        now: Timestamp,
        out: &mut impl SegmentOut,
        to: &mut impl Listener,
    ) -> Heard {
        let Transport::Tcp(tcp) = packet.transport else {
            return Heard::NotTcp;
        };
        self.stack.sender.counts.segments_in += 1;
        let remote = SocketAddr::new(packet.network.src(), tcp.src_port());
        let port = tcp.dst_port();
        let segment = Segment::read(&tcp);
        let hash = self.stack.sender.keys.connection(client, port, remote);
        if let Some(slot) = self.find(hash, client, port, remote)
            && let Some(conn) = self.conns.at_mut(slot)
        {
            let id = ConnId {
                slot,
                generation: conn.generation,
            };
            let mut cx = Context {
                id,
                at,
                now,
                out,
                to: &mut *to,
            };
            let fate = self.stack.hear(conn, &segment, &mut cx);
            self.settle(slot, fate, (at, now), to);
            return Heard::Known;
        }
        // Our end of the answer.
        let frame = TcpFrame::new(SocketAddr::new(packet.network.dst(), port), remote);
        if let Some(id) = self.find_ended(hash, client, port, remote) {
            self.hear_ended(id, client, &segment, frame, now, out);
            return Heard::TimeWait;
        }
        self.refuse_stray(client, &segment, frame, now, out);
        Heard::Stray
    }

    /// A connection in TIME-WAIT hears a segment: a FIN that comes again is acknowledged again and
    /// begins the wait anew. A RST does not end it (RFC 1337).
    fn hear_ended(
        &mut self,
        id: linkweir_table::Id,
        client: Client,
        segment: &Segment<'_>,
        frame: TcpFrame<'_>,
        now: Timestamp,
        out: &mut impl SegmentOut,
    ) {
        let Some(ended) = self.time_wait.get(id).copied() else {
            return;
        };
        let sender = &mut self.stack.sender;
        if segment.has(TcpFlags::RST) || segment.len() == 0 {
            return;
        }
        sender.counts.time_wait_answers += 1;
        let frame = TcpFrame {
            seq: ended.snd_nxt,
            ack: ended.rcv_nxt,
            ..frame
        };
        let echo = segment.timestamps.map(|(value, _)| value);
        sender.last_ack(client, &frame, echo, now, out);
        let end = segment.seq + segment.len();
        if segment.has(TcpFlags::FIN) && end == ended.rcv_nxt {
            self.time_wait.restart(id, now);
        }
    }

    /// Answers a segment of no connection (RFC 9293 sec. 3.10.7.1).
    fn refuse_stray(
        &mut self,
        client: Client,
        segment: &Segment<'_>,
        frame: TcpFrame<'_>,
        now: Timestamp,
        out: &mut impl SegmentOut,
    ) {
        let sender = &mut self.stack.sender;
        sender.counts.strays += 1;
        if segment.has(TcpFlags::RST) {
            return;
        }
        let (seq, ack, flags) = if segment.has(TcpFlags::ACK) {
            (segment.ack, SeqNumber(0), TcpFlags::RST)
        } else {
            let end = segment.seq + segment.len();
            (SeqNumber(0), end, TcpFlags::RST | TcpFlags::ACK)
        };
        let frame = TcpFrame {
            seq,
            ack,
            flags,
            window: 0,
            ..frame
        };
        sender.counts.resets_out += 1;
        sender.bare(client, &frame, now, out);
    }
}
