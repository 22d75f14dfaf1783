//! The queue itself: who may open it, what a close does, what comes back.

use std::time::{Duration, Instant};

use linkweir_engine::{Answer, QueuedPacket, Verdict};
use linkweir_netfilter::stats::{kernel_queue, kernel_queues};
use linkweir_netfilter::{Queue, QueueError, QueueOptions};
use linkweir_sys::privileges::Restrict;
use linkweir_testkit::netns::until;
use linkweir_wire::emit::UdpFrame;

use super::lane::{Lane, Version, is_inside, rule};
use super::service::Service;

#[test]
fn a_queue_has_one_reader_and_the_other_is_told() {
    if !is_inside("kernel::queue::a_queue_has_one_reader_and_the_other_is_told") {
        return;
    }
    let options = QueueOptions {
        copy_range: 200,
        max_len: 50,
        fail_open: true,
        ..QueueOptions::default()
    };
    let queue = Queue::open(7, &options).unwrap();
    let buffer = queue.receive_buffer();
    assert!(buffer.is_forced && buffer.bytes >= 32 << 20, "{buffer:?}");
    let table = kernel_queue(7).unwrap().unwrap();
    assert_eq!((table.copy_mode, table.copy_range), (2, 200));
    assert_eq!((table.waiting, table.user_dropped), (0, 0));
    match Queue::open(7, &options).unwrap_err() {
        QueueError::Busy { queue: 7, holder } => assert_eq!(holder, Some(table.port)),
        other => panic!("{other}"),
    }
    let other = Queue::open(8, &options).unwrap();
    assert_eq!(kernel_queues().unwrap().len(), 2);
    drop((queue, other));
    assert_eq!(kernel_queues().unwrap(), []);
    Queue::open(7, &options).unwrap();
}

#[test]
fn without_the_capability_the_error_names_it() {
    if !is_inside("kernel::queue::without_the_capability_the_error_names_it") {
        return;
    }
    let refused = std::thread::spawn(|| {
        Restrict::default().apply().unwrap();
        Queue::open(7, &QueueOptions::default()).unwrap_err()
    });
    let refused = refused.join().unwrap();
    assert!(
        matches!(refused, QueueError::NotPermitted { queue: 7 }),
        "{refused}"
    );
    assert!(refused.to_string().contains("CAP_NET_ADMIN"));
}

#[test]
fn a_wake_ends_a_receive_and_a_wrong_number_is_counted() {
    if !is_inside("kernel::queue::a_wake_ends_a_receive_and_a_wrong_number_is_counted") {
        return;
    }
    let mut queue = Queue::open(7, &QueueOptions::default()).unwrap();
    let waker = queue.waker();
    let began = Instant::now();
    let ringer = std::thread::spawn(move || waker.wake());
    let given = queue
        .receive(Duration::from_secs(60), |_| panic!("no packet"))
        .unwrap();
    ringer.join().unwrap();
    assert_eq!(given, 0);
    assert!(began.elapsed() < Duration::from_secs(30));
    let answers: Vec<Answer> = (0..600)
        .map(|id| Answer {
            id,
            verdict: Verdict::Accept,
            mark: Some(id),
        })
        .collect();
    queue.answer(&answers).unwrap();
    for _ in 0..600_usize.div_ceil(32) {
        queue
            .receive(Duration::ZERO, |_| panic!("no packet"))
            .unwrap();
    }
    let counts = queue.counts();
    assert_eq!((counts.refused_answers, counts.send_errors), (600, 0));
    assert_eq!(
        (counts.malformed, counts.foreign, counts.overruns),
        (0, 0, 0)
    );
}

#[test]
fn verdicts_come_in_any_order_and_a_closed_queue_drops_what_it_holds() {
    if !is_inside(
        "kernel::queue::verdicts_come_in_any_order_and_a_closed_queue_drops_what_it_holds",
    ) {
        return;
    }
    let lane = Lane::new();
    rule("FORWARD -p udp -j NFQUEUE --queue-num 7 --queue-bypass");
    let (mut client, mut server) = (lane.client(), lane.server());
    for version in Version::BOTH {
        let (from, to) = (version.client(5000), version.server(5001));
        client.must(&format!("bind {from}"));
        server.must(&format!("bind {to}"));
        let service = Service::start(7, |seen| {
            (!seen.payload.starts_with(b"held")).then_some((Verdict::Accept, None))
        });
        for text in ["held one", "held two", "free", "held three"] {
            client.must(&format!("datagram {to} {text}"));
        }
        assert_eq!(
            server.ask("datagrams"),
            "free",
            "it passes those that are held"
        );
        let seen: Vec<_> = (0..4).map(|_| service.next()).collect();
        assert_eq!(kernel_queue(7).unwrap().unwrap().waiting, 3);
        service.answer(vec![
            Answer {
                id: seen[1].id,
                verdict: Verdict::Accept,
                mark: None,
            },
            Answer {
                id: seen[0].id,
                verdict: Verdict::Drop,
                mark: None,
            },
        ]);
        assert_eq!(server.ask("datagrams"), "held two");
        assert_eq!(server.ask("datagrams-nothing"), "error WouldBlock");
        // One is held still, when the queue is closed.
        let counts = service.end();
        assert_eq!(counts.packets, 4);
        assert_eq!(
            (counts.malformed, counts.overruns, counts.refused_answers),
            (0, 0, 0)
        );
        assert_eq!(
            server.ask("datagrams-nothing"),
            "error WouldBlock",
            "it is dropped"
        );
        client.must(&format!("datagram {to} nobody serves"));
        assert_eq!(server.ask("datagrams"), "nobody serves");
    }
}

#[test]
fn what_comes_while_a_queue_is_opened_is_answered_too() {
    if !is_inside("kernel::queue::what_comes_while_a_queue_is_opened_is_answered_too") {
        return;
    }
    let lane = Lane::new();
    rule("FORWARD -p udp -j NFQUEUE --queue-num 7 --queue-bypass");
    let mut client = lane.client();
    client.must(&format!("bind {}", Version::V4.client(5000)));
    let answer = |id| Answer {
        id,
        verdict: Verdict::Accept,
        mark: None,
    };
    let waiting = || kernel_queue(7).unwrap().unwrap().waiting;
    let (mut came, mut answers) = (0, Vec::new());
    for _ in 0..20 {
        client.tell(&format!("flood {} 3000", Version::V4.server(5001)));
        let mut queue = Queue::open(7, &QueueOptions::default()).unwrap();
        assert_eq!(client.hear(), "ok");
        let all_are_answered = || {
            loop {
                answers.clear();
                let timeout = Duration::from_millis(5);
                let given = queue.receive(timeout, |packet| answers.push(answer(packet.id)));
                if given.unwrap() == 0 {
                    return waiting() == 0;
                }
                queue.answer(&answers).unwrap();
            }
        };
        assert!(until(Duration::from_secs(10), all_are_answered));
        let counts = queue.counts();
        came += counts.packets;
        assert_eq!((counts.refused_answers, counts.overruns), (0, 0));
    }
    assert!(came > 0);
}

#[test]
fn settings_change_while_packets_wait_and_none_is_lost() {
    if !is_inside("kernel::queue::settings_change_while_packets_wait_and_none_is_lost") {
        return;
    }
    let lane = Lane::new();
    rule("FORWARD -p udp -j NFQUEUE --queue-num 7");
    let mut client = lane.client();
    client.must(&format!("bind {}", Version::V4.client(5000)));
    let mut queue = Queue::open(7, &QueueOptions::default()).unwrap();
    for text in ["one", "two", "three"] {
        client.must(&format!("datagram {} {text}", Version::V4.server(5001)));
    }
    let waiting = |packets| {
        let so = || kernel_queue(7).unwrap().unwrap().waiting == packets;
        assert!(until(Duration::from_secs(10), so));
    };
    waiting(3);
    let short = QueueOptions {
        copy_range: 30,
        max_len: 3,
        ..QueueOptions::default()
    };
    queue.change(&short).unwrap();
    waiting(3);
    let mut got = Vec::new();
    while got.len() < 3 {
        let take = |packet: QueuedPacket<'_>| {
            got.push((
                packet.id,
                packet.bytes.get(28..).map(<[u8]>::to_vec),
                packet.wire_len,
            ));
        };
        assert_ne!(queue.receive(Duration::from_secs(10), take).unwrap(), 0);
    }
    // In their order, under new numbers, and no more of each than is asked for now.
    let expected = [
        (4, Some(b"on".to_vec()), 31),
        (5, Some(b"tw".to_vec()), 31),
        (6, Some(b"th".to_vec()), 33),
    ];
    assert_eq!(got, expected);
    // Three are as many as may wait.
    client.must(&format!("datagram {} four", Version::V4.server(5001)));
    let is_dropped = || kernel_queue(7).unwrap().unwrap().queue_dropped == 1;
    assert!(until(Duration::from_secs(10), is_dropped));
    waiting(3);
}

#[test]
fn a_checksum_is_open_until_somebody_has_found_it_right() {
    if !is_inside("kernel::queue::a_checksum_is_open_until_somebody_has_found_it_right") {
        return;
    }
    let lane = Lane::new();
    // Whoever uses connection marks has connections tracked.
    rule("FORWARD -j CONNMARK --restore-mark");
    rule("FORWARD -p udp -j NFQUEUE --queue-num 7");
    let mut client = lane.client();
    for version in Version::BOTH {
        let (from, to) = (version.client(5000), version.server(5001));
        let service = Service::start(7, |_| Some((Verdict::Drop, None)));
        let mut frame = UdpFrame::new(from, to);
        frame.payload = b"text";
        let right = frame.to_packet();
        let mut wrong = right.clone();
        *wrong.last_mut().unwrap() ^= 1;
        for (packet, is_wrong) in [(right, false), (wrong, true)] {
            let digits: String = packet.iter().map(|byte| format!("{byte:02x}")).collect();
            client.must(&format!("packet {to} {digits}"));
            let seen = service.next();
            assert_eq!(seen.is_checksum_open, is_wrong, "{version:?}");
        }
        // A sender that leaves it to the hardware: not right yet, and nothing to look at.
        client.must(&format!("bind {from}"));
        client.must(&format!("datagram {to} text"));
        assert!(!service.next().is_checksum_open);
        service.end();
    }
}

/// What is known of packets that pass because there is no room, with `fail_open`: the rule has counted them; those for
/// which the queue had no room got no number, those for which the socket had none are its overruns.
#[test]
fn what_passes_a_full_queue_is_counted_by_the_rule_alone() {
    if !is_inside("kernel::queue::what_passes_a_full_queue_is_counted_by_the_rule_alone") {
        return;
    }
    let lane = Lane::new();
    rule("FORWARD -p udp -j NFQUEUE --queue-num 7");
    let (mut client, mut server) = (lane.client(), lane.server());
    let (from, to) = (Version::V4.client(5000), Version::V4.server(5001));
    client.must(&format!("bind {from}"));
    server.must(&format!("bind {to}"));
    let open = QueueOptions {
        fail_open: true,
        ..QueueOptions::default()
    };
    let short = QueueOptions { max_len: 3, ..open };
    let small = QueueOptions {
        receive_buffer: 4096,
        ..open
    };
    for (options, is_numbered) in [(short, false), (small, true)] {
        let mut queue = Queue::open(7, &options).unwrap();
        client.must(&format!("flood {to} 100"));
        let mut passed = 0;
        while server.ask("datagrams-nothing") != "error WouldBlock" {
            passed += 1;
        }
        let table = kernel_queue(7).unwrap().unwrap();
        assert_eq!((table.queue_dropped, table.user_dropped), (0, 0));
        let mut seen = 0;
        while let given @ 1.. = queue.receive(Duration::ZERO, |_| {}).unwrap() {
            seen += given;
        }
        assert!(seen > 0 && passed > 0, "{seen} {passed}");
        assert_eq!(seen + passed, 100);
        let overruns = if is_numbered { passed } else { 0 };
        assert_eq!(queue.counts().overruns, overruns as u64);
        assert_eq!(table.last_id as usize, seen + overruns);
    }
}
