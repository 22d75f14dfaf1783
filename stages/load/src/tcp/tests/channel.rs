//! Two ends over a line that loses, doubles, delays and reorders: both streams arrive whole,
//! everything ends, nothing stays behind.

use std::collections::BTreeMap;
use std::time::Duration;

use linkweir_wire::{LinkType, SeqNumber, Timestamp, decode};
use proptest::prelude::*;

use super::super::{TcpClients, TcpSettings};
use super::harness::{ACK, Ear, Event, FIN, SYN, Seg, Wire, opening, options, settings};
use crate::seam::{CloseReason, ConnId};

/// A server of one connection: it reads a request of known length, sends a response, and closes. It
/// goes back to what is not acknowledged each time its timer expires.
struct Server {
    iss: SeqNumber,
    una: u32,
    /// Bytes of the response that were sent.
    nxt: u32,
    response: Vec<u8>,
    request: Vec<u8>,
    wanted: usize,
    /// Request bytes ahead of a gap, by place.
    ahead: BTreeMap<u32, u8>,
    /// What the client began with.
    irs: Option<SeqNumber>,
    got_fin: bool,
    closes_first: bool,
    timestamps: bool,
    sack: bool,
    ts_recent: u32,
    timer: Timestamp,
    ends: Option<(std::net::SocketAddr, std::net::SocketAddr)>,
}

const SERVER_RTO: Duration = Duration::from_millis(300);

impl Server {
    /// Whether its FIN may go.
    fn may_finish(&self) -> bool {
        self.request.len() == self.wanted && (self.closes_first || self.got_fin)
    }

    fn rcv_nxt(&self) -> SeqNumber {
        let got = u32::try_from(self.request.len()).unwrap();
        self.irs.unwrap() + 1 + got + u32::from(self.got_fin)
    }

    fn fin_at(&self) -> u32 {
        u32::try_from(self.response.len()).unwrap()
    }

    fn is_done(&self) -> bool {
        self.una == self.fin_at() + 1 && self.got_fin
    }

    fn segment(
        &self,
        flags: linkweir_wire::TcpFlags,
        at: SeqNumber,
        payload: &[u8],
        now: Timestamp,
    ) -> Seg {
        let (src, dst) = self.ends.unwrap();
        let clock = u32::try_from(now.as_nanos() / 1_000_000 % (1 << 32)).unwrap();
        let ts = self.timestamps.then_some((clock, self.ts_recent));
        let mut options = if flags.contains(SYN) {
            options(Some(900), Some(2), self.sack, ts)
        } else {
            options(None, None, false, ts)
        };
        if self.sack && !self.ahead.is_empty() && !flags.contains(SYN) {
            // The first range, and no more: a server may say less than it could.
            let base = self.irs.unwrap() + 1;
            let first = *self.ahead.keys().next().unwrap();
            let mut last = first;
            while self.ahead.contains_key(&last) {
                last += 1;
            }
            options.extend_from_slice(&[1, 1, 5, 10]);
            options.extend_from_slice(&(base + first).0.to_be_bytes());
            options.extend_from_slice(&(base + last).0.to_be_bytes());
        }
        Seg {
            src,
            dst,
            seq: at,
            ack: self.rcv_nxt(),
            flags: flags | ACK,
            window: 16_000,
            options,
            payload: payload.to_vec(),
        }
    }

    fn hear(&mut self, seg: &Seg, now: Timestamp) -> Vec<Seg> {
        self.ends = Some((seg.dst, seg.src));
        if let Some((value, _)) = seg.timestamps()
            && self.timestamps
        {
            self.ts_recent = value;
        }
        if seg.has(SYN) {
            self.irs = Some(seg.seq);
            return vec![self.segment(SYN, self.iss, b"", now)];
        }
        let Some(irs) = self.irs else {
            return vec![];
        };
        let acked = u32::try_from(seg.ack - (self.iss + 1)).unwrap();
        assert!(
            acked <= self.fin_at() + 1,
            "acknowledges what was never sent"
        );
        self.una = self.una.max(acked);
        let place = seg.seq - (irs + 1);
        for (n, byte) in (0..).zip(&seg.payload) {
            let at = u32::try_from(place + n).unwrap();
            if at as usize >= self.request.len() {
                self.ahead.insert(at, *byte);
            }
        }
        while let Some(byte) = self
            .ahead
            .remove(&u32::try_from(self.request.len()).unwrap())
        {
            self.request.push(byte);
        }
        let end = place + i32::try_from(seg.payload.len()).unwrap();
        if seg.has(FIN) && end == i32::try_from(self.request.len()).unwrap() {
            self.got_fin = true;
        }
        let mut out = self.send(now);
        if seg.len() > 0 && out.is_empty() {
            let at = self.iss + 1 + self.nxt;
            out.push(self.segment(ACK, at, b"", now));
        }
        out
    }

    /// Sends what a window of 20,000 bytes allows.
    fn send(&mut self, now: Timestamp) -> Vec<Seg> {
        let mut out = Vec::new();
        if self.irs.is_none() || self.request.len() < self.wanted {
            return out;
        }
        let end = self.fin_at();
        self.nxt = self.nxt.max(self.una);
        while self.nxt < end && self.nxt - self.una < 20_000 {
            let len = (end - self.nxt).min(900);
            let payload = &self.response[self.nxt as usize..(self.nxt + len) as usize];
            out.push(self.segment(ACK, self.iss + 1 + self.nxt, payload, now));
            self.nxt += len;
        }
        if self.nxt == end && self.may_finish() {
            out.push(self.segment(FIN, self.iss + 1 + end, b"", now));
            self.nxt += 1;
        }
        if !out.is_empty() {
            self.timer = now + SERVER_RTO;
        }
        out
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Seg> {
        self.timer = now + SERVER_RTO;
        if self.irs.is_none() || self.is_done() {
            return vec![];
        }
        self.nxt = self.una.min(self.fin_at());
        if self.una == 0 && self.nxt == 0 && self.request.is_empty() {
            return vec![self.segment(SYN, self.iss, b"", now)];
        }
        self.send(now)
    }
}

/// How bad the line is, in hundredths.
#[derive(Debug, Clone, Copy)]
struct Line {
    loss: u8,
    copies: u8,
    /// Milliseconds that a segment may be late.
    jitter: u64,
}

/// On the way: by arrival and number, to the client or not.
type Under = BTreeMap<(Timestamp, u64), (bool, Seg)>;

struct Sky {
    under: Under,
    random: linkweir_model::Random,
    line: Line,
    number: u64,
}

impl Sky {
    fn put(&mut self, to_client: bool, segs: Vec<Seg>, now: Timestamp) {
        for seg in segs {
            let copies = 1 + u64::from(self.random.below(100) < u64::from(self.line.copies));
            for _ in 0..copies {
                if self.random.below(100) < u64::from(self.line.loss) {
                    continue;
                }
                let late = 5 + self.random.below(self.line.jitter + 1);
                self.number += 1;
                let at = now + Duration::from_millis(late);
                self.under
                    .insert((at, self.number), (to_client, seg.clone()));
            }
        }
    }
}

fn stream(len: usize, step: usize) -> Vec<u8> {
    (0..len)
        .map(|n| u8::try_from(n * step % 251).unwrap())
        .collect()
}

/// Runs one connection to its end.
fn run(
    settings: TcpSettings,
    server: &mut Server,
    line: Line,
    seed: u64,
    request: &[u8],
) -> (TcpClients, Vec<Event>) {
    let mut tcp = TcpClients::new(settings, seed, 8);
    let (mut wire, mut ear) = (Wire::default(), Ear::default());
    let mut now = Timestamp::from_nanos(1_790_000_000_000_000_000);
    server.timer = now + SERVER_RTO;
    let mut sky = Sky {
        under: Under::new(),
        random: linkweir_model::Random::new(seed),
        line,
        number: 0,
    };
    let conn: ConnId = tcp.connect(&opening(true), now, &mut wire).unwrap();
    let mut parts = request.chunks(request.len().div_ceil(3).max(1));
    let (mut finished, mut closed, mut received) = (false, false, 0);
    for _ in 0..2_000_000 {
        sky.put(false, std::mem::take(&mut wire.0), now);
        if tcp.open() == 0 && server.is_done() && tcp.in_time_wait() == 0 {
            break;
        }
        let next_arrival = sky.under.keys().next().map(|(at, _)| *at);
        let next = [next_arrival, tcp.next_deadline(), Some(server.timer)];
        now = now.max(next.into_iter().flatten().min().unwrap());
        while let Some(entry) = sky.under.first_entry().filter(|entry| entry.key().0 <= now) {
            let (to_client, seg) = entry.remove();
            if to_client {
                let frame = seg.to_frame();
                let len = u32::try_from(frame.len()).unwrap();
                let packet = decode(LinkType::ETHERNET, &frame, len).unwrap();
                tcp.on_segment(&packet, 3, now, now, &mut wire, &mut ear);
            } else {
                let answers = server.hear(&seg, now);
                sky.put(true, answers, now);
            }
        }
        tcp.on_tick(now, &mut wire, &mut ear);
        if server.timer <= now {
            let again = server.tick(now);
            sky.put(true, again, now);
        }
        // The session: a part of the request at a time, and close when the response is there.
        if let Some(part) = parts.next() {
            assert!(tcp.send(conn, part, now, &mut wire));
        }
        received = ear.0.iter().fold(0, |sum, (_, _, event)| match event {
            Event::Data(bytes) => sum + bytes.len(),
            _ => sum,
        });
        finished |= ear
            .0
            .iter()
            .any(|(_, _, event)| *event == Event::PeerFinished);
        let may_close = if server.closes_first {
            finished
        } else {
            received == server.response.len()
        };
        if may_close && parts.len() == 0 && !closed {
            closed = true;
            tcp.close(conn, now, &mut wire);
        }
    }
    assert_eq!(received, server.response.len());
    (tcp, ear.0.into_iter().map(|(_, _, event)| event).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn both_streams_arrive_whole_and_everything_ends(
        seed: u64,
        iss: u32,
        (request, response) in (1_usize..40_000, 0_usize..60_000),
        (loss, copies, jitter) in (0_u8..25, 0_u8..20, 0_u64..60),
        (timestamps, sack, closes_first, delay) in any::<(bool, bool, bool, bool)>(),
    ) {
        let request = stream(request, 7);
        let mut server = Server {
            iss: SeqNumber(iss),
            una: 0,
            nxt: 0,
            response: stream(response, 11),
            request: vec![],
            wanted: request.len(),
            ahead: BTreeMap::new(),
            irs: None,
            got_fin: false,
            closes_first,
            timestamps,
            sack,
            ts_recent: 0,
            timer: Timestamp::ZERO,
            ends: None,
        };
        let settings = TcpSettings {
            // A line this bad may lose any number in a row; TIME-WAIT outlives the server's timer.
            syn_retries: 100,
            retries: 100,
            max_rto: Duration::from_secs(2),
            time_wait: Duration::from_secs(30),
            fin_wait_2: Duration::from_secs(3600),
            delay_handshake_ack: delay,
            ..settings()
        };
        let line = Line { loss, copies, jitter };
        let (tcp, events) = run(settings, &mut server, line, seed, &request);
        prop_assert!(server.request == request, "{} of {}", server.request.len(), request.len());
        let data: Vec<u8> = events
            .iter()
            .flat_map(|event| match event {
                Event::Data(bytes) => bytes.clone(),
                _ => vec![],
            })
            .collect();
        prop_assert!(data == server.response);
        prop_assert!(server.is_done());
        prop_assert_eq!(events.last(), Some(&Event::Closed(CloseReason::Finished)));
        prop_assert_eq!(events.iter().filter(|event| **event == Event::PeerFinished).count(), 1);
        prop_assert_eq!((tcp.open(), tcp.in_flight(), tcp.in_time_wait()), (0, 0, 0));
        prop_assert_eq!(tcp.next_deadline(), None);
        if loss == 0 && jitter == 0 {
            prop_assert_eq!(tcp.counts().retransmissions, 0);
        }
    }

    /// Bytes from outside: whatever comes, nothing panics, memory stays bounded, and events keep
    /// their order.
    #[test]
    fn any_segments_are_survived(
        segs in proptest::collection::vec(
            (any::<u8>(), -3_i32..3000, -3_i32..20, any::<u16>(), proptest::collection::vec(any::<u8>(), 0..60), 0_usize..200),
            1..60,
        ),
    ) {
        let mut bench = super::harness::Bench::with_sack();
        bench.send(&[7; 3000]);
        let (seq, ack) = (bench.seq, bench.ack);
        let syn = bench.syn.clone().unwrap();
        for (flags, at, acked, window, options, len) in segs {
            let offset = |base: SeqNumber, by: i32| SeqNumber(base.0.wrapping_add_signed(by));
            bench.hear_seg(&Seg {
                src: syn.dst,
                dst: syn.src,
                seq: offset(seq, at),
                ack: offset(ack, acked * 200),
                flags: linkweir_wire::TcpFlags(flags),
                window,
                options: options.into_iter().take(40).collect(),
                payload: vec![1; len],
            });
            bench.pass(u64::from(window) % 300);
        }
        bench.tcp.abort(bench.conn, bench.now, &mut bench.wire, &mut bench.ear);
        bench.assert_empty();
        let events = bench.events();
        let ends = events.iter().filter(|event| matches!(event, Event::Closed(_)));
        prop_assert_eq!(ends.count(), 1);
        prop_assert!(matches!(events.last(), Some(Event::Closed(_))));
    }
}
