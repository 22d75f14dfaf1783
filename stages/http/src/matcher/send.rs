//! Handing over to other shards, and taking what they hand over.

use linkweir_engine::hash::eq3_balance;
use linkweir_engine::split::{hash_of_addresses, shard_of, transaction_hash};
use linkweir_proto::http1::{Outcome, parse_response};
use linkweir_record::HttpBatch;
use linkweir_table::{Chain, Id};
use linkweir_wire::{Joined, SeqNumber, Transport};

use super::Matcher;
use crate::config::Shard;
use crate::handoff::{Content, Handoff, Messages, Request};
use crate::key::{Connection, ConnectionHash};
use crate::pending::{Half, MAX_PIPELINE, Waiting, WaitingRequest};
use crate::segment::{Place, Standing};

/// Handoffs that may wait to be taken; with more, what would be one stays where nothing finds it.
const MAX_WAITING: usize = 8192;

/// Bytes of a packet in a handoff at most: a jumbo frame. What came in parts is longer only to do harm, and
/// stays.
const MAX_PACKET: usize = 9216;

impl Shard {
    /// The shard of a match number, where it is another one.
    #[inline]
    fn other(self, connection: &Connection, match_seq: u32) -> Option<usize> {
        let hash = eq3_balance(connection.client, connection.server, match_seq);
        let shard = shard_of(hash, self.count);
        (shard != self.index).then_some(shard as usize)
    }
}

impl Matcher {
    /// The shard to which what waits at `match_seq` belongs, where it is another one.
    #[inline]
    pub(crate) fn other_shard(&self, connection: &Connection, match_seq: u32) -> Option<usize> {
        self.shard?.other(connection, match_seq)
    }

    fn send(&mut self, shard: usize, content: Content) -> Result<(), Content> {
        if self.handoffs.len() >= MAX_WAITING {
            return Err(content);
        }
        self.handoffs.push_back((shard, Handoff(content)));
        Ok(())
    }

    pub(crate) fn next_handoff(&mut self) -> Option<(usize, Handoff)> {
        self.handoffs.pop_front()
    }

    /// Sends a leader and its queue to the shard of `match_seq`.
    pub(crate) fn send_queue(
        &mut self,
        shard: usize,
        leader: Id,
        hash: ConnectionHash,
        match_seq: u32,
        out: &mut HttpBatch,
    ) {
        if self.handoffs.len() >= MAX_WAITING {
            self.output.records.stats.table_full += 1;
            return self.pending.hide(leader, hash);
        }
        let mut requests = Vec::new();
        let mut next = Some(leader);
        while let Some(id) = next.filter(|_| requests.len() <= MAX_PIPELINE as usize) {
            let Some((waiting, follower)) = self.pending.remove(id) else {
                break;
            };
            next = follower;
            requests.extend(self.pack(waiting));
        }
        if let Some(rest) = next {
            self.pending.hide(rest, hash);
        }
        // There is room: it was looked for before.
        let messages = Messages::Requests {
            match_seq,
            requests,
        };
        if let Err(Content::Messages(Messages::Requests {
            match_seq,
            requests,
        })) = self.send(shard, Content::Messages(messages))
        {
            self.take_requests(match_seq, requests, out);
        }
    }

    fn pack(&mut self, waiting: Waiting) -> Option<Request> {
        let text = self.texts.read(&waiting.text, &mut self.scratch);
        let text = Box::from(text);
        self.texts.release(waiting.text);
        let Half::Request(request) = &waiting.half else {
            return None;
        };
        Some(Request {
            place: Place {
                direction: waiting.connection,
                seq: request.seq,
                ack: request.origin,
                has_ack: !request.on_syn,
                ts_ns: waiting.ts_ns,
                vlan: waiting.vlan,
                segment_end: request.seq,
                segment_ns: waiting.packet_ns,
                standing: Standing::Alone { is_whole: false },
            },
            bytes: waiting.bytes,
            minor: waiting.minor,
            retransmissions: waiting.retransmissions,
            interim_responses: request.interim_responses,
            lens: request.lens,
            text,
        })
    }

    /// Sends a response that was read in a shard that is not that of its match number; whether it went.
    pub(crate) fn send_response(&mut self, shard: usize, place: &Place, bytes: &[u8]) -> bool {
        let response = Messages::Response {
            place: *place,
            bytes: Box::from(bytes),
        };
        self.send(shard, Content::Messages(response)).is_ok()
    }

    /// Sends a packet that was in parts to the shard of its segment; whether it went.
    pub(crate) fn send_packet(&mut self, joined: &Joined<'_>) -> bool {
        let (Some(shard), Ok(packet)) = (self.shard, &joined.packet) else {
            return false;
        };
        let network = &packet.network;
        let is_mine = |hash| shard_of(hash, shard.count) == shard.index;
        // In a tunnel, and behind what the kernel does not look into, all of a connection is here.
        let is_by_addresses = packet.tunnels == 0 && is_mine(hash_of_addresses(network));
        let (link_type, bytes, wire_len) = joined.frame;
        let Transport::Tcp(tcp) = &packet.transport else {
            return false;
        };
        let hash = transaction_hash(network, tcp);
        if !is_by_addresses || is_mine(hash) || bytes.len() > MAX_PACKET {
            return false;
        }
        let content = Content::Packet {
            timestamp: joined.timestamp,
            link: link_type,
            wire_len,
            bytes: Box::from(bytes),
        };
        self.send(shard_of(hash, shard.count) as usize, content)
            .is_ok()
    }

    /// Takes what another shard has sent, as if it had been seen here.
    pub(crate) fn unpack(&mut self, messages: Messages, out: &mut HttpBatch) {
        match messages {
            Messages::Requests {
                match_seq,
                requests,
            } => self.take_requests(match_seq, requests, out),
            Messages::Response { place, bytes } => {
                if let Outcome::Complete(head, len) = parse_response(&bytes) {
                    let body = bytes.get(len..).unwrap_or_default();
                    self.on_response(&place, &head, len, body, true, out);
                }
            }
        }
    }

    fn take_requests(&mut self, match_seq: u32, requests: Vec<Request>, out: &mut HttpBatch) {
        let mut at = None;
        for request in requests {
            let connection = request.place.direction;
            self.advance(request.place.segment_ns, out);
            if let Some(match_seq) = self.take_request(match_seq, &request, out) {
                at = Some((connection, match_seq));
            }
        }
        // All are there before the first is answered: they stay in their order.
        let Some((connection, match_seq)) = at else {
            return;
        };
        let hash = ConnectionHash::new(self.seed, &connection);
        if let Some(leader) = self.pending.find_leader(&connection, hash, match_seq) {
            self.relocate(&connection, hash, leader, Some(match_seq), out);
            self.watch
                .expect_start(connection.reversed(), SeqNumber(match_seq), self.now_ns);
        }
        self.release_bodies(out);
    }

    /// Lets a request wait; says at which match number.
    fn take_request(
        &mut self,
        match_seq: u32,
        request: &Request,
        out: &mut HttpBatch,
    ) -> Option<u32> {
        let connection = request.place.direction;
        let hash = ConnectionHash::new(self.seed, &connection);
        self.make_room(request.text.len(), out);
        let mut text = Chain::default();
        self.texts.append(&mut text, &request.text);
        // At this match number, or behind the answers to those before it.
        let sought = Place {
            ack: match_seq,
            ..request.place
        };
        let spot = self.spot_of(&connection, hash, &sought);
        let mut half = WaitingRequest::new(&request.place, request.lens);
        // Those that went by here were for the first of a queue.
        let leader = self.pending.find_leader(&connection, hash, spot.match_seq);
        let passed_by = leader.map_or(spot.interim_responses, |_| 0);
        half.interim_responses = request.interim_responses.saturating_add(passed_by);
        let waiting = Waiting {
            connection,
            match_seq: spot.match_seq,
            ts_ns: request.place.ts_ns,
            changed_ns: self.now_ns,
            packet_ns: request.place.segment_ns,
            text,
            bytes: request.bytes,
            vlan: request.place.vlan,
            minor: request.minor,
            retransmissions: request.retransmissions,
            half: Half::Request(half),
        };
        let inserted = match leader {
            None => self.pending.insert(hash, waiting),
            Some(leader) => self.pending.insert_behind(leader, hash, waiting),
        };
        let id = match inserted {
            Ok(id) => id,
            Err(refused) => {
                self.output.records.stats.table_full += 1;
                self.give_up(refused, out);
                return None;
            }
        };
        if self.other_shard(&connection, match_seq).is_some() {
            // It came back: no shard takes it, and here no response finds it.
            if leader.is_none() {
                self.pending.hide(id, hash);
            }
            return None;
        }
        Some(spot.match_seq)
    }
}
