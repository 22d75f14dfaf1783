//! Files that are held until their verdict.

use linkweir_engine::effect::Decision;
use linkweir_record::GatewayEventKind;
use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{SeqNumber, TcpFlags};

use super::bed::{
    Bed, CLIENT_FIRST, REQUEST, SERVER_FIRST, VIRUS, policy, response, scanning, segment,
};
use crate::inspect::Side;
use crate::policy::{Action, Fail, Hold, Inspect, Policy};

const SEGMENT: usize = 1000;

fn holding(window: usize, fail: Fail) -> Policy {
    let mut inspect = scanning(window);
    inspect.scan = inspect.scan.map(|scan| crate::policy::ScanSettings {
        hold: Hold::File,
        ..scan
    });
    let mut policy = policy(Action::Inspect, Inspect { ..inspect });
    let rule = std::sync::Arc::get_mut(&mut policy.rules[0]).expect("nobody else has it");
    rule.fail = fail;
    policy
}

/// Requests that the client sends at once, for as many files as a test has.
const FILES: usize = 4;
/// Their bytes.
const ASKED: usize = FILES * REQUEST.len();

/// A sender that sends as long as twenty segments are not acknowledged, and a receiver that acknowledges what it has.
struct Ends<'a> {
    bed: &'a mut Bed,
    stream: &'a [u8],
    sent: usize,
    has: usize,
    /// Whether the stream ends behind its last byte.
    is_fin: bool,
}

impl Ends<'_> {
    /// One round trip, 50 ms; the scanner answers or does not.
    fn go(&mut self, scans: bool) {
        let acknowledged = (self.bed.acknowledged[1] as usize).max(self.has);
        while self.sent < self.stream.len() && self.sent < acknowledged + 20 * SEGMENT {
            let to = (self.sent + SEGMENT).min(self.stream.len());
            self.bed
                .send(Side::Server, self.sent, &self.stream[self.sent..to]);
            self.sent = to;
            if self.is_fin && to == self.stream.len() {
                self.bed.fin(Side::Server, to);
            }
        }
        if scans {
            self.bed.scan();
        }
        let has = self.bed.at_client.stream().len();
        // What comes behind a hole is answered too.
        for _ in 0..if has == self.has { 4 } else { 1 } {
            let end = has + usize::from(self.bed.at_client.has_fin && has == self.stream.len());
            self.bed.ack(Side::Client, ASKED, end);
        }
        self.has = has;
        self.bed.advance(50_000_000);
    }

    /// Goes on for so many rounds; in each `every`-th what found no room comes again.
    fn go_again(&mut self, rounds: usize, every: usize) {
        for round in 1..=rounds {
            if round % every == 0 {
                self.sent = (self.bed.acknowledged[1] as usize).max(self.has);
            }
            self.go(true);
        }
    }
}

fn ends<'a>(bed: &'a mut Bed, stream: &'a [u8], is_fin: bool) -> Ends<'a> {
    bed.open();
    bed.send(Side::Client, 0, &REQUEST.repeat(FILES));
    Ends {
        bed,
        stream,
        sent: 0,
        has: 0,
        is_fin,
    }
}

#[test]
fn nothing_of_a_virus_arrives() {
    let body = [VIRUS, &vec![b'x'; 100_000]].concat();
    let whole = response(&body);
    // One that never comes to its end has none of its last bytes delivered either.
    let endless = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n",
        &body[..60_000],
    ]
    .concat();
    for (stream, window, is_blocked) in [(&whole, 8000, true), (&endless, 1 << 20, false)] {
        for fail in [Fail::Open, Fail::Closed] {
            let mut bed = Bed::new(holding(window, fail));
            let mut ends = ends(&mut bed, stream, false);
            for _ in 0..100 {
                ends.go(true);
            }
            assert!(ends.sent >= body.len().min(stream.len()) || is_blocked);
            let came = bed.at_client.stream();
            assert_eq!(came, b"", "{is_blocked}");
            assert_eq!(bed.resets.len(), usize::from(is_blocked));
        }
    }
}

#[test]
fn a_clean_file_arrives_whatever_is_lost() {
    let body: Vec<u8> = (0..120_000_u32).map(|at| (at % 251) as u8).collect();
    let stream = response(&body);
    let losses: [fn(usize) -> bool; 4] = [
        |_| false,
        |number| number % 7 == 3,
        |number| number < 40 && number % 2 == 0,
        |number| (20..25).contains(&number),
    ];
    for loses in losses {
        for is_fin in [false, true] {
            let mut bed = Bed::new(holding(1 << 20, Fail::Closed));
            bed.loses = loses;
            let mut ends = ends(&mut bed, &stream, is_fin);
            for round in 0..20 {
                ends.go(false);
                assert_eq!(ends.has, 0, "{round}: nothing before the verdict");
            }
            assert!(
                ends.sent > 110_000,
                "the sender is not stopped: {}",
                ends.sent
            );
            for _ in 0..400 {
                ends.go(true);
                if ends.has == stream.len() {
                    break;
                }
            }
            // The last acknowledgment.
            ends.go(true);
            assert_eq!(bed.at_client.stream().len(), stream.len());
            assert!(bed.at_client.stream() == stream);
            assert_eq!(bed.at_client.has_fin, is_fin);
            assert_eq!((bed.resets.len(), bed.unanswered()), (0, 0));
            assert_eq!(bed.events_of(GatewayEventKind::Unscanned), 0);
            // What comes behind it goes as it comes.
            if !is_fin {
                let own = bed.own.len();
                bed.send(
                    Side::Server,
                    stream.len(),
                    b"HTTP/1.1 204 No Content\r\n\r\n",
                );
                assert_eq!((bed.own.len(), bed.unanswered()), (own, 0));
            }
        }
    }
}

#[test]
fn a_trickle_keeps_the_receiver_awake() {
    let stream = response(&vec![b'x'; 500_000]);
    // Where the file is scanned at its end nothing of it is known before.
    for (window, trickles) in [(8000, true), (1 << 20, false)] {
        let mut bed = Bed::new(holding(window, Fail::Closed));
        let mut ends = ends(&mut bed, &stream[..200_000], false);
        for _ in 0..200 {
            ends.go(true);
        }
        let (sent, came) = (ends.sent, ends.has);
        assert_eq!(sent, 200_000);
        assert_eq!((1000..10_000).contains(&came), trickles, "{came}");
        assert!(trickles || came == 0);
    }
}

#[test]
fn a_file_without_room_is_what_fail_says() {
    let stream = response(&vec![b'x'; 100_000]);
    for (fail, arrives) in [(Fail::Open, true), (Fail::Closed, false)] {
        let mut policy = holding(8000, fail);
        policy.limits.held_bytes = 50_000;
        let mut bed = Bed::new(policy);
        let mut ends = ends(&mut bed, &stream, false);
        ends.go_again(600, 40);
        assert_eq!(
            bed.at_client.stream() == stream,
            arrives,
            "{}",
            bed.at_client.stream().len()
        );
        assert_eq!(bed.events_of(GatewayEventKind::Limit), 1);
        assert_eq!(bed.decision() == Decision::Inspect, arrives);
    }
}

#[test]
fn a_sender_that_resets_ends_it_for_both() {
    let stream = response(&vec![b'x'; 50_000]);
    let mut bed = Bed::new(holding(1 << 20, Fail::Open));
    let mut ends = ends(&mut bed, &stream[..20_000], false);
    ends.go(true);
    let seq = SERVER_FIRST + 1 + 20_000;
    bed.packet(Side::Server, seq, TcpFlags::RST | TcpFlags::ACK, &[]);
    assert_eq!(bed.at_client.stream(), b"");
    assert_eq!((bed.resets.len(), bed.unanswered()), (1, 0));
    assert_eq!(
        bed.resets[0].server_next.0,
        SERVER_FIRST + 1,
        "what the client expects"
    );
}

#[test]
fn what_is_owed_is_never_forgotten_silently() {
    let stream = response(&vec![b'x'; 50_000]);
    let mut bed = Bed::new(holding(1 << 20, Fail::Open));
    let mut ends = ends(&mut bed, &stream[..20_000], false);
    ends.go(true);
    bed.finish();
    assert_eq!(bed.resets.len(), 1);
}

#[test]
fn what_is_ahead_of_a_gap_does_not_pass() {
    let stream = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n",
        VIRUS,
        &[b'x'; 79_000],
    ]
    .concat();
    let mut bed = Bed::new(holding(1 << 20, Fail::Closed));
    bed.open();
    bed.send(Side::Client, 0, REQUEST);
    for at in (200..stream.len()).step_by(SEGMENT) {
        bed.send(
            Side::Server,
            at,
            &stream[at..(at + SEGMENT).min(stream.len())],
        );
    }
    bed.send(Side::Server, 0, &stream[..200]);
    for _ in 0..100 {
        bed.scan();
        let has = bed.at_client.stream().len();
        bed.ack(Side::Client, REQUEST.len(), has);
        bed.advance(100_000_000);
    }
    let came = bed.at_client.stream().len();
    assert!(came < stream.len() - 64 * 1024, "{came}");
    assert!(
        bed.acknowledged[1] > 60_000,
        "what has room is acknowledged"
    );
}

#[test]
fn windows_and_signs_of_life_are_answered() {
    let stream = response(&vec![b'x'; 50_000]);
    let mut bed = Bed::new(holding(1 << 20, Fail::Closed));
    let mut ends = ends(&mut bed, &stream[..20_000], false);
    ends.go(true);
    let of = |bed: &Bed| (bed.bare[0], bed.bare[1]);
    let before = of(&bed);
    // The server asks, and gets an answer in the name of the client.
    bed.packet(Side::Server, SERVER_FIRST + 20_000, TcpFlags::ACK, &[]);
    assert_eq!(of(&bed), (before.0, before.1 + 1));
    // The client asks.
    bed.packet(
        Side::Client,
        CLIENT_FIRST.wrapping_add(u32::try_from(ASKED).expect("small")),
        TcpFlags::ACK,
        &[],
    );
    assert_eq!(of(&bed), (before.0 + 1, before.1 + 1));
    // Its window changes.
    bed.segment(
        Side::Client,
        &TcpFrame {
            seq: SeqNumber(CLIENT_FIRST.wrapping_add(1 + u32::try_from(ASKED).expect("small"))),
            window: 3000,
            ..segment(Side::Client)
        },
    );
    assert_eq!(of(&bed), (before.0 + 1, before.1 + 2));
    assert_eq!(bed.unanswered(), 0);
}

#[test]
fn files_that_wait_for_their_receiver_make_the_next_one_wait() {
    let first = response(&vec![b'x'; 30_000]);
    let stream = [&first[..], &first, &first].concat();
    let mut policy = holding(8000, Fail::Closed);
    policy.limits.held_bytes = 50_000;
    let mut bed = Bed::new(policy);
    let mut ends = ends(&mut bed, &stream, false);
    ends.go_again(400, 20);
    assert!(
        bed.at_client.stream() == stream,
        "{}",
        bed.at_client.stream().len()
    );
    assert_eq!(bed.events_of(GatewayEventKind::Limit), 0);
}

#[test]
fn a_client_that_goes_away_leaves_nothing() {
    let stream = response(&vec![b'x'; 50_000]);
    let mut bed = Bed::new(holding(1 << 20, Fail::Open));
    let mut ends = ends(&mut bed, &stream[..20_000], false);
    ends.go(true);
    // Its end says that it has nothing yet; the server must hear what it believes to have arrived.
    bed.fin(Side::Client, ASKED);
    assert!(bed.at_server.has_fin);
    let fin = bed.own.iter().rfind(|segment| segment.is_fin);
    let fin = fin.expect("the gateway's own").clone();
    assert_eq!(fin.ack.0, SERVER_FIRST + 1 + 20_000);
    // The server has it, and so has the client.
    bed.ack(Side::Server, 20_000, ASKED + 1);
    let all = u32::try_from(ASKED + 1).expect("small");
    assert_eq!(bed.acknowledged[0], all);
    let end = CLIENT_FIRST.wrapping_add(1 + all);
    // Its program is gone: what comes is answered with a reset, by the number of what it was acknowledged.
    bed.packet(Side::Client, end, TcpFlags::RST, &[]);
    assert_eq!((bed.resets.len(), bed.unanswered()), (1, 0));
    assert_eq!(bed.stage.stats().held_bytes, 0);
}

#[test]
fn ends_that_are_silent_lose_what_is_held() {
    let stream = response(&vec![b'x'; 50_000]);
    let mut policy = holding(1 << 20, Fail::Open);
    policy.limits.idle_timeout_ns = 10_000_000_000;
    let mut bed = Bed::new(policy);
    let mut ends = ends(&mut bed, &stream, false);
    while ends.bed.own.is_empty() {
        ends.go(true);
    }
    assert!(ends.has < stream.len(), "it is on its way");
    let brought = bed.own.len();
    for second in 0..10 {
        assert_eq!(bed.resets.len(), 0, "{second}");
        bed.advance(1_000_000_000);
    }
    bed.advance(2_000_000_000);
    assert_eq!((bed.resets.len(), bed.unanswered()), (1, 0));
    assert!(bed.own.len() - brought < 10, "it waits longer each time");
    assert_eq!(bed.events_of(GatewayEventKind::Limit), 1);
    assert_eq!(bed.stage.stats().held_bytes, 0);
}

#[test]
fn a_scanner_that_hangs_delays_an_open_file_once() {
    let stream = response(&vec![b'x'; 200_000]);
    for hold in [Hold::Packet, Hold::File] {
        let mut policy = holding(8000, Fail::Open);
        let rule = std::sync::Arc::get_mut(&mut policy.rules[0]).expect("nobody else has it");
        if let Some(scan) = &mut rule.inspect.scan {
            scan.hold = hold;
        }
        let mut bed = Bed::new(policy);
        let mut ends = ends(&mut bed, &stream, false);
        let mut rounds = 0;
        while ends.has < stream.len() && rounds < 200 {
            ends.go(false);
            rounds += 1;
        }
        assert!(
            rounds < 80,
            "{hold:?}: {rounds} times 50 ms, the timeout is 1 s"
        );
        assert_eq!(bed.at_client.stream(), stream);
        assert!(bed.events_of(GatewayEventKind::Unscanned) >= 1);
        assert!(bed.due.len() <= 8, "{hold:?}: {} scans", bed.due.len());
    }
}
