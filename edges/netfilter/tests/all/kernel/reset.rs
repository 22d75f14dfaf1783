//! Resets that are sent in the name of others.

use linkweir_engine::{Reset, Verdict};
use linkweir_netfilter::ResetSender;
use linkweir_sys::privileges::Restrict;
use linkweir_wire::SeqNumber;

use super::lane::{Lane, Version, is_inside, matched, rule};
use super::service::Service;

const PORT: u16 = 80;
const MARK: u32 = 0x4000_0000;

/// What each end expects next, by what the other has sent so far.
#[derive(Debug, Clone, Copy)]
struct Expected {
    client_port: u16,
    client_next: SeqNumber,
    server_next: SeqNumber,
}

fn follow(service: &Service) -> Expected {
    let (mut client_port, mut client_next, mut server_next) = (0, None, None);
    while let Ok(seen) = service.seen.try_recv() {
        let next = if seen.src_port == PORT {
            &mut server_next
        } else {
            client_port = seen.src_port;
            &mut client_next
        };
        // What is sent again is not what is expected next.
        let end = seen.seq + seen.sequence_len;
        if next.is_none_or(|next| end.after(next)) {
            *next = Some(end);
        }
    }
    Expected {
        client_port,
        client_next: client_next.unwrap(),
        server_next: server_next.unwrap(),
    }
}

#[test]
fn both_ends_take_a_reset_with_the_number_they_expect() {
    if !is_inside("kernel::reset::both_ends_take_a_reset_with_the_number_they_expect") {
        return;
    }
    let lane = Lane::new();
    rule("FORWARD -p tcp -j NFQUEUE --queue-num 7");
    rule("OUTPUT -p tcp -m mark --mark 0x40000000 --tcp-flags RST RST");
    let (mut client, mut server) = (lane.client(), lane.server());
    let mut sender = ResetSender::open(Some(MARK)).unwrap();
    // It goes on without the capability it was opened with.
    let (asked, to_send) = std::sync::mpsc::channel::<Reset>();
    let (tell, sent) = std::sync::mpsc::channel();
    let sending = std::thread::spawn(move || {
        let restrict = Restrict {
            keep_net_admin: true,
            ..Restrict::default()
        };
        restrict.apply().unwrap();
        for reset in to_send {
            sender.send(&reset);
            tell.send((sender.counts(), sender.take_error())).unwrap();
        }
    });
    let reset = |reset: Reset| {
        asked.send(reset).unwrap();
        let (counts, error) = sent.recv().unwrap();
        assert_eq!(counts.failed, 0, "{error:?}");
        counts.sent
    };
    for (round, version) in (0..).zip(Version::BOTH) {
        let service = Service::start(7, |_| Some((Verdict::Accept, None)));
        let to = version.server(PORT);
        server.must(&format!("listen {to}"));
        server.tell("accept");
        client.must(&format!("connect {to}"));
        assert_eq!(server.hear(), "ok");
        for _ in 0..3 {
            client.must("send question");
            assert_eq!(server.ask("receive"), "question");
            server.must("send answer");
            assert_eq!(client.ask("receive"), "answer");
        }
        // The last acknowledgment is on its way still.
        assert_eq!(client.ask("receive-nothing"), "error WouldBlock");
        let expected = follow(&service);
        let right = Reset {
            client: version.client(expected.client_port),
            server: to,
            client_next: expected.client_next,
            server_next: expected.server_next,
        };
        // One number further, and both ends only challenge it.
        let wrong = Reset {
            client_next: right.client_next + 1,
            server_next: right.server_next + 1,
            ..right
        };
        assert_eq!(reset(wrong), round * 4 + 2);
        client.must("send still");
        assert_eq!(server.ask("receive"), "still");
        server.must("send here");
        assert_eq!(client.ask("receive"), "here");
        let right = Reset {
            client_next: right.client_next + 5,
            server_next: right.server_next + 4,
            ..right
        };
        assert_eq!(reset(right), round * 4 + 4);
        assert_eq!(
            client.ask("receive"),
            "error ConnectionReset",
            "{version:?}"
        );
        assert_eq!(
            server.ask("receive"),
            "error ConnectionReset",
            "{version:?}"
        );
        assert_eq!(matched(version, "OUTPUT"), [4], "all of them had the mark");
        service.end();
    }
    drop(asked);
    sending.join().unwrap();
}
