use linkweir_engine::effect::{Decision, ScanOutcome};
use linkweir_record::RecordBatch as _;
use linkweir_record::gateway::GatewayEventKind;

use super::bed::{Bed, REQUEST, VIRUS, policy, response, scanning};
use crate::inspect::Side;
use crate::policy::{Action, Fail, Policy};

fn opened(window: usize) -> Bed {
    let mut bed = Bed::new(policy(Action::Inspect, scanning(window)));
    bed.open();
    bed.send(Side::Client, 0, REQUEST);
    bed
}

#[test]
fn segments_ahead_of_a_gap_pass_and_the_one_that_fills_it_waits() {
    let mut bed = opened(1 << 20);
    let answer = response(b"0123456789");
    let (head, body) = answer.split_at(answer.len() - 10);
    for _ in 0..2 {
        bed.send(Side::Server, head.len() + 5, &body[5..]);
        assert_eq!(bed.unanswered(), 0);
    }
    bed.send(Side::Server, head.len(), &body[..5]);
    assert_eq!(bed.unanswered(), 0);
    assert_eq!(bed.at_client.stream(), b"", "it can read nothing of it");
    bed.send(Side::Server, 0, head);
    assert_eq!(
        bed.unanswered(),
        1,
        "with it the client could read the file"
    );
    bed.scan();
    assert_eq!(bed.unanswered(), 0);
    assert_eq!(bed.at_client.stream(), answer);
    assert_eq!(bed.stage.stats().out_of_order, 3);
}

#[test]
fn what_passed_ahead_of_a_gap_is_looked_at() {
    let mut bed = opened(1 << 20);
    let answer = response(VIRUS);
    let (first, rest) = answer.split_at(10);
    for (at, part) in rest.chunks(7).enumerate().collect::<Vec<_>>().iter().rev() {
        bed.send(Side::Server, 10 + at * 7, part);
    }
    bed.fin(Side::Server, answer.len());
    assert_eq!(bed.unanswered(), 0);
    bed.send(Side::Server, 0, first);
    bed.scan();
    assert_eq!(bed.at_client.stream(), b"");
    assert_eq!(bed.events_of(GatewayEventKind::Infected), 1);
    assert_eq!(bed.decision(), Decision::Reject);
}

#[test]
fn what_comes_behind_a_wait_keeps_its_order() {
    let mut bed = opened(1000);
    let answer = response(&[b'x'; 4000]);
    bed.send(Side::Server, 0, &answer[..1500]);
    assert_eq!(bed.unanswered(), 1, "a window is full");
    let passed = bed.answers.len();
    // The next, one ahead of a gap, one that came before, the next again.
    let orders = [(1500, 1600), (1700, 1800), (20, 40), (1600, 1700)];
    for (from, to) in orders {
        bed.send(Side::Server, from, &answer[from..to]);
    }
    assert_eq!(bed.unanswered(), 4, "one of the first packet comes late");
    bed.scan();
    assert_eq!(bed.unanswered(), 0);
    assert_eq!(bed.at_client.stream(), &answer[..1800]);
    let ids: Vec<u32> = bed.answers[passed..]
        .iter()
        .map(|answer| answer.id)
        .collect();
    assert!(ids.iter().skip(1).is_sorted(), "{ids:?}");
}

#[test]
fn what_is_sent_again_with_other_bytes_ends_the_connection() {
    let answer = response(b"0123456789");
    let mut other = answer.clone();
    *other.last_mut().expect("a byte") = b'!';
    let last = answer.len() - 1;
    // Of what was released, of what is held, of what has passed ahead of a gap.
    let cases: [(&[(usize, usize)], bool); 3] = [
        (&[(0, answer.len())], true),
        (&[(0, answer.len())], false),
        (&[(last - 2, answer.len())], false),
    ];
    for (sent, is_scanned) in cases {
        let mut bed = opened(1 << 20);
        for (from, to) in sent {
            bed.send(Side::Server, *from, &answer[*from..*to]);
        }
        if is_scanned {
            bed.scan();
        }
        bed.send(Side::Server, last - 1, &other[last - 1..]);
        assert_eq!(bed.decision(), Decision::Reject);
        assert_eq!(bed.resets.len(), 1);
        assert_eq!(bed.events_of(GatewayEventKind::Blocked), 1);
        assert_eq!((bed.stage.stats().rewritten, bed.unanswered()), (1, 0));
    }
}

#[test]
fn what_waits_in_two_forms_ends_the_connection() {
    let mut bed = opened(1000);
    let answer = response(&[b'x'; 9000]);
    // As many scans are awaited as there may be.
    for at in (0..4800).step_by(1200) {
        bed.send(Side::Server, at, &answer[at..at + 1200]);
    }
    assert_eq!(bed.due.len(), 4);
    bed.send(Side::Server, 4800, &answer[4800..4900]);
    bed.send(Side::Server, 4800, &[b'y'; 100]);
    assert_eq!(bed.unanswered(), 6);
    bed.scan();
    assert_eq!((bed.unanswered(), bed.stage.stats().rewritten), (0, 1));
    assert_eq!(bed.decision(), Decision::Reject);
}

#[test]
fn what_is_acknowledged_may_be_sent_again_in_any_form() {
    let mut bed = opened(1 << 20);
    let answer = response(b"0123456789");
    bed.send(Side::Server, 0, &answer);
    bed.scan();
    bed.ack(Side::Client, REQUEST.len(), answer.len());
    bed.ack(Side::Server, answer.len(), REQUEST.len());
    // A keepalive of a byte that nobody reads.
    bed.send(Side::Server, answer.len() - 1, b"!");
    assert_eq!(bed.decision(), Decision::Inspect);
    assert_eq!(bed.stage.stats().held_bytes, 0);
}

#[test]
fn what_passed_unseen_is_told() {
    for (fail, passes) in [(Fail::Open, true), (Fail::Closed, false)] {
        let mut bed = Bed::new(with_fail(fail));
        bed.open();
        bed.send(Side::Client, 0, REQUEST);
        bed.send(Side::Server, 100, b"after a gap");
        assert_eq!(bed.unanswered(), 0);
        bed.advance(200_000_000_000);
        assert_eq!(bed.events_of(GatewayEventKind::Limit), 0);
        // The client has what the gateway was not given.
        bed.ack(Side::Client, REQUEST.len(), 100 + 11);
        assert_eq!(bed.decision() == Decision::Inspect, passes);
        assert_eq!(bed.events_of(GatewayEventKind::Limit), 1);
        assert_eq!(bed.unanswered(), 0);
        assert_eq!(bed.stage.stats().gaps, 1);
    }
}

#[test]
fn nothing_comes_behind_the_end() {
    let mut bed = opened(1 << 20);
    bed.fin(Side::Server, 0);
    bed.send(Side::Server, 0, &response(VIRUS));
    bed.send(Side::Server, 1, &response(VIRUS));
    assert_eq!(bed.at_client.stream(), b"");
    assert_eq!(bed.stage.stats().implausible, 2);
}

#[test]
fn the_last_packet_waits_for_the_verdict() {
    let mut bed = opened(1 << 20);
    let answer = response(&[b'x'; 3000]);
    bed.send(Side::Server, 0, &answer[..1500]);
    assert_eq!(bed.unanswered(), 0);
    bed.send(Side::Server, 1500, &answer[1500..]);
    assert_eq!(bed.unanswered(), 1, "it is held");
    // Its sender sends it again: the first one goes, later.
    bed.send(Side::Server, 1500, &answer[1500..]);
    assert_eq!(bed.unanswered(), 1);
    // Acknowledgments of the other side and its data go on.
    bed.send(Side::Client, REQUEST.len(), REQUEST);
    assert_eq!(bed.unanswered(), 1);
    bed.scan();
    assert_eq!(bed.unanswered(), 0);
    assert_eq!(bed.at_client.stream(), answer);
    let clean = bed.events.views().any(|event| event.row.verdict == "clean");
    assert!(clean, "the audit tells of a clean file");
}

#[test]
fn an_infected_file_never_passes_whole() {
    let mut bed = opened(1000);
    let mut body = vec![b'y'; 5000];
    body.splice(3000..3000, VIRUS.iter().copied());
    let answer = response(&body);
    for (at, part) in answer.chunks(700).enumerate() {
        bed.send(Side::Server, at * 700, part);
        bed.scan();
    }
    assert!(bed.at_client.stream().len() < answer.len() - 1000);
    assert_eq!(bed.events_of(GatewayEventKind::Infected), 1);
    assert_eq!(bed.decision(), Decision::Reject);
    assert_eq!(bed.unanswered(), 0);
    let reset = bed.resets.first().expect("a reset");
    let got = u32::try_from(bed.at_client.stream().len()).expect("small");
    assert_eq!(reset.server_next.0, super::bed::SERVER_FIRST + 1 + got);
}

fn with_fail(fail: Fail) -> Policy {
    let mut policy = policy(Action::Inspect, scanning(1 << 20));
    let mut rule = crate::policy::Rule::clone(&policy.rules[0]);
    rule.fail = fail;
    policy.rules = vec![std::sync::Arc::new(rule)];
    policy
}

#[test]
fn a_scanner_that_cannot_say_is_the_policys_affair() {
    for (fail, passes) in [(Fail::Open, true), (Fail::Closed, false)] {
        for is_silent in [false, true] {
            let mut bed = Bed::new(with_fail(fail));
            bed.open();
            bed.send(Side::Client, 0, REQUEST);
            let answer = response(b"some bytes");
            bed.send(Side::Server, 0, &answer);
            assert_eq!(bed.unanswered(), 1);
            if is_silent {
                assert!(bed.stage.next_deadline().is_some());
                bed.advance(2_000_000_000);
            } else {
                let ticket = bed.due.pop().expect("a scan");
                bed.report(ticket, ScanOutcome::Failed("away".to_owned()));
            }
            assert_eq!(bed.unanswered(), 0);
            assert_eq!(bed.at_client.stream() == answer, passes);
            assert_eq!(bed.events_of(GatewayEventKind::Unscanned), 1);
            assert_eq!(bed.resets.len(), usize::from(!passes));
        }
    }
}

#[test]
fn a_connection_in_its_middle_is_reset_at_both_ends_or_goes_on() {
    for (fail, passes) in [(Fail::Open, true), (Fail::Closed, false)] {
        for sender in [Side::Server, Side::Client] {
            let mut bed = Bed::new(with_fail(fail));
            bed.open();
            bed.send(Side::Client, 0, REQUEST);
            assert_eq!(bed.decision(), Decision::Inspect);
            // The kernel keeps the mark; whoever serves the queue now knows nothing.
            bed.stage = Bed::new(with_fail(fail)).stage;
            bed.send(sender, REQUEST.len(), b"in the middle");
            bed.send(sender, REQUEST.len() + 13, b", and more");
            assert_eq!(bed.unanswered(), 0);
            assert_eq!(bed.stage.stats().resumed, 1);
            assert_eq!(bed.events_of(GatewayEventKind::Limit), 1);
            assert_eq!(bed.decision() == Decision::Inspect, passes);
            assert_eq!(bed.resets.len(), usize::from(!passes));
            if let Some(reset) = bed.resets.first() {
                // What the segment says of both streams.
                let sent = u32::try_from(REQUEST.len()).expect("small");
                let (client, server) = (super::bed::CLIENT_FIRST + 1, super::bed::SERVER_FIRST + 1);
                let expected = match sender {
                    Side::Client => (client + sent, server),
                    Side::Server => (client, server + sent),
                };
                assert_eq!((reset.client_next.0, reset.server_next.0), expected);
                assert_eq!(reset.client, super::bed::client());
            }
        }
    }
}

#[test]
fn without_a_length_the_last_packet_waits_for_the_end() {
    let mut bed = opened(1 << 20);
    let mut answer = b"HTTP/1.0 200 OK\r\n\r\n".to_vec();
    answer.extend_from_slice(b"until the end ");
    let half = answer.len();
    answer.extend_from_slice(VIRUS);
    bed.send(Side::Server, 0, &answer[..half]);
    assert_eq!(bed.unanswered(), 1, "it may be the last");
    bed.send(Side::Server, half, &answer[half..]);
    assert_eq!(bed.unanswered(), 1);
    assert_eq!(bed.at_client.stream().len(), half);
    bed.fin(Side::Server, answer.len());
    assert_eq!(bed.unanswered(), 2);
    bed.scan();
    assert_eq!(bed.unanswered(), 0);
    assert_eq!(bed.at_client.stream().len(), half);
    assert!(!bed.at_client.has_fin);
    assert_eq!(bed.events_of(GatewayEventKind::Infected), 1);
}

#[test]
fn who_waits_for_an_acknowledgment_of_a_last_packet_gets_it() {
    let mut bed = opened(1 << 20);
    let answer = b"HTTP/1.0 200 OK\r\n\r\nslowly";
    bed.send(Side::Server, 0, answer);
    assert_eq!(bed.unanswered(), 1);
    bed.send(Side::Server, 0, answer);
    assert_eq!(bed.unanswered(), 1);
    // Before its verdict it does not go.
    bed.scan();
    assert_eq!(bed.unanswered(), 0);
    assert_eq!(bed.at_client.stream(), answer);
}

#[test]
fn a_reset_that_its_receiver_ignores_does_not_end_the_inspection() {
    use linkweir_wire::TcpFlags;
    let mut bed = opened(1 << 20);
    bed.packet(
        Side::Server,
        super::bed::SERVER_FIRST + 5000,
        TcpFlags::RST,
        &[],
    );
    assert_eq!(bed.stage.stats().connections, 1);
    bed.packet(
        Side::Server,
        super::bed::SERVER_FIRST + 1,
        TcpFlags::RST,
        &[],
    );
    assert_eq!(bed.stage.stats().connections, 0);
}

#[test]
fn a_packet_does_not_wait_for_ever_for_the_next_one() {
    let mut bed = opened(1 << 20);
    let answer = b"HTTP/1.0 200 OK\r\n\r\nonly this, and then nothing";
    bed.send(Side::Server, 0, answer);
    assert_eq!(bed.unanswered(), 1);
    assert!(bed.stage.next_deadline().is_some());
    bed.advance(600_000_000);
    // What came so far is scanned, and goes then.
    assert_eq!(bed.due.len(), 1);
    assert_eq!(bed.unanswered(), 1);
    bed.scan();
    assert_eq!(bed.unanswered(), 0);
    assert_eq!(bed.at_client.stream(), answer);
}

#[test]
fn a_segment_that_its_receiver_ignores_does_not_stand_for_the_stream() {
    use linkweir_wire::TcpFlags;
    let mut bed = opened(1 << 20);
    let answer = response(VIRUS);
    let (head, body) = answer.split_at(answer.len() - VIRUS.len());
    bed.send(Side::Server, 0, head);
    // Without ACK a receiver drops it: the decoy must not be taken for the body.
    let at = super::bed::SERVER_FIRST + 1 + u32::try_from(head.len()).expect("small");
    bed.packet(Side::Server, at, TcpFlags::PSH, &[b'.'; VIRUS.len()]);
    assert_eq!(bed.stage.stats().implausible, 1);
    bed.send(Side::Server, head.len(), body);
    bed.scan();
    assert_eq!(bed.events_of(GatewayEventKind::Infected), 1);
    assert_ne!(bed.at_client.stream(), answer);
}

#[test]
fn what_follows_a_reset_does_not_pass_unseen() {
    use linkweir_wire::TcpFlags;
    let mut bed = opened(1 << 20);
    bed.packet(
        Side::Server,
        super::bed::SERVER_FIRST + 1,
        TcpFlags::RST,
        &[],
    );
    bed.send(Side::Server, 0, &response(VIRUS));
    assert!(bed.at_client.stream().is_empty());
    assert_eq!(bed.decision(), Decision::Reject);
}

#[test]
fn what_cannot_be_scanned_is_not_clean() {
    const GET: &str = "GET /a HTTP/1.1\r\nHost: a\r\n";
    for (request, answer) in [
        // Parts of a file, one that says of how much and others that do not.
        (
            GET,
            "206 A\r\nContent-Length: 4\r\nContent-Range: bytes 0-3/9\r\n\r\nabcd",
        ),
        (
            GET,
            "206 A\r\nContent-Length: 4\r\nContent-Range: bytes 0-3/*\r\n\r\nabcd",
        ),
        (GET, "206 A\r\nContent-Length: 4\r\n\r\nabcd"),
        (
            GET,
            "206 A\r\nContent-Range: bytes 0-3/9\r\nContent-Range: bytes 0-3/4\r\nContent-Length: 4\r\n\r\nabcd",
        ),
        // To some clients this is the last response.
        (
            GET,
            "103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd",
        ),
        // Another protocol, and a tunnel.
        (
            "GET /a HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\n",
            "101 Switching Protocols\r\nUpgrade: h2c\r\n\r\nabcd",
        ),
        ("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n", "200 OK\r\n\r\nabcd"),
    ] {
        let (request, answer) = (format!("{request}\r\n"), format!("HTTP/1.1 {answer}"));
        for (fail, passes) in [(Fail::Open, true), (Fail::Closed, false)] {
            let mut bed = Bed::new(with_fail(fail));
            bed.open();
            bed.send(Side::Client, 0, request.as_bytes());
            bed.send(Side::Server, 0, answer.as_bytes());
            bed.scan();
            assert_eq!(bed.events_of(GatewayEventKind::Unscanned), 1, "{answer}");
            assert_eq!(
                bed.at_client.stream() == answer.as_bytes(),
                passes,
                "{answer}"
            );
        }
    }
}

#[test]
fn a_whole_file_in_a_206_is_scanned() {
    let mut bed = Bed::new(with_fail(Fail::Closed));
    bed.open();
    bed.send(Side::Client, 0, REQUEST);
    let whole = b"HTTP/1.1 206 A\r\nContent-Length: 4\r\nContent-Range: bytes 0-3/4\r\n\r\nabcd";
    bed.send(Side::Server, 0, whole);
    bed.scan();
    assert_eq!(bed.events_of(GatewayEventKind::Unscanned), 0);
    assert_eq!(bed.at_client.stream(), whole);
}

/// What the audit says of a file rests on all scans of it, in whatever order the scanner answers.
#[test]
fn a_file_is_told_when_the_last_scan_of_it_is_done() {
    let with_virus = |len: usize| [&vec![b'z'; len - VIRUS.len()][..], VIRUS].concat();
    // The last window ends with the file; a window and the rest come in one packet.
    let plain = response(&with_virus(1500));
    let mut chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for part in [with_virus(1000), vec![b'z'; 500]] {
        chunked.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
        chunked.extend_from_slice(&part);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    for (answer, scans) in [(plain, 1), (chunked, 2)] {
        let mut bed = opened(1000);
        bed.send(Side::Server, 0, &answer);
        assert_eq!(bed.due.len(), scans);
        // The last one that was asked is answered first.
        bed.scan();
        assert_eq!(bed.events_of(GatewayEventKind::Infected), 1);
        let files = bed.events.views();
        let files = files.filter(|event| event.row.event == GatewayEventKind::File);
        let verdicts: Vec<_> = files.map(|event| event.row.verdict).collect();
        assert_eq!(verdicts, ["infected"]);
        assert_eq!(bed.unanswered(), 0);
        assert!(bed.at_client.stream().is_empty());
    }
}

/// A window goes when its own scan is done, and the next ones are scanned meanwhile.
#[test]
fn windows_are_scanned_at_once_and_go_in_their_order() {
    let mut bed = opened(1000);
    let answer = response(&[b'x'; 6000]);
    for at in (0..4800).step_by(1200) {
        bed.send(Side::Server, at, &answer[at..at + 1200]);
    }
    let asked = std::mem::take(&mut bed.due);
    assert_eq!((asked.len(), bed.unanswered()), (4, 4));
    let mut passed = Vec::new();
    for at in [1, 0, 3, 2] {
        bed.report(asked[at], ScanOutcome::Clean);
        passed.push(bed.at_client.stream().len());
    }
    assert_eq!(passed, [0, 2400, 2400, 4800]);
    assert_eq!(bed.unanswered(), 0);
}

/// The packet that waits for the next one of its file has an older timestamp.
#[test]
fn a_retransmission_does_not_overtake_a_last_packet() {
    let mut bed = opened(1 << 20);
    let answer = b"HTTP/1.0 200 OK\r\n\r\nuntil the end, which comes later";
    bed.send(Side::Server, 0, &answer[..30]);
    bed.send(Side::Server, 30, &answer[30..]);
    assert_eq!(bed.unanswered(), 1);
    let passed = bed.answers.len();
    bed.send(Side::Server, 0, &answer[..30]);
    assert_eq!((bed.unanswered(), bed.due.len()), (2, 1));
    bed.scan();
    assert_eq!(bed.unanswered(), 0);
    let ids = bed.answers[passed..].iter().map(|answer| answer.id);
    assert!(ids.is_sorted());
}
