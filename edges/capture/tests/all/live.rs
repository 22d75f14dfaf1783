//! Live capture on interfaces of a network namespace.

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::netns::{Taken, finish, ip, is_inside, open, sender, veth};
use linkweir_capture::{CaptureFiles, Fanout, Input, LiveCapture, LiveOptions, ReadOptions};
use linkweir_engine::{FaultKind, Frame, Source, SourceEvent, Splitter, TransactionSplitter};
use linkweir_sys::interface;
use linkweir_sys::packet_socket::{Framing, PacketSocket};
use linkweir_wire::{LinkType, Timestamp};

/// How often is looked for frames that the kernel has not delivered yet.
const ROUNDS: u32 = 100;
const MACS: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

fn options(interface: &str) -> LiveOptions {
    LiveOptions {
        interface: interface.to_owned(),
        buffer_bytes: 4 << 20,
        idle: Duration::from_millis(20),
        retry: Duration::from_millis(50),
        ..LiveOptions::default()
    }
}

fn frame(tags: &[u8], ethertype: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = MACS.to_vec();
    bytes.extend(tags);
    bytes.extend(ethertype.to_be_bytes());
    bytes.extend(body);
    bytes
}

fn tcp(src: u16, dst: u16, seq: u32, ack: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [src.to_be_bytes(), dst.to_be_bytes()].concat();
    bytes.extend(seq.to_be_bytes());
    bytes.extend(ack.to_be_bytes());
    bytes.extend([0x50, 0x18, 1, 0, 0, 0, 0, 0]);
    bytes.extend(payload);
    bytes
}

fn ipv4(protocol: u8, fragment: u16, last: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x45, 0];
    bytes.extend(u16::try_from(20 + body.len()).unwrap().to_be_bytes());
    bytes.extend([0, 1]);
    bytes.extend(fragment.to_be_bytes());
    bytes.extend([64, protocol, 0, 0, 10, 9, 0, last, 10, 9, 1, 7]);
    bytes.extend(body);
    bytes
}

fn ipv6(next: u8, last: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend(u16::try_from(body.len()).unwrap().to_be_bytes());
    bytes.extend([next, 64]);
    bytes.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, last]);
    bytes.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1]);
    bytes.extend(body);
    bytes
}

/// Frames of all kinds that the program of the kernel knows.
fn mixture() -> Vec<Vec<u8>> {
    let tag = [0x81, 0, 0x20, 5];
    let two_tags = [0x88, 0xa8, 0, 7, 0x81, 0, 0, 9];
    let mut frames = Vec::new();
    for n in 0..40_u32 {
        let low = u8::try_from(n).unwrap();
        let port = 40_000 + u16::from(low) % 5;
        let (seq, ack) = (n * 7919, n.wrapping_mul(2_654_435_761));
        let request = tcp(port, 80, seq, ack, b"GET /index.html HTTP/1.1\r\n\r\n");
        let response = tcp(
            80,
            port,
            ack,
            seq + 28,
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        );
        let bare = tcp(port, 80, seq + 28, ack + 38, b"");
        let large = tcp(80, port, ack + 38, seq + 28, &[b'x'; 1300]);
        for segment in [&request, &response, &bare, &large] {
            frames.push(frame(&[], 0x0800, &ipv4(6, 0x4000, low, segment)));
            frames.push(frame(&tag, 0x0800, &ipv4(6, 0, low, segment)));
        }
        frames.push(frame(&two_tags, 0x0800, &ipv4(6, 0, low, &request)));
        frames.push(frame(&[], 0x86dd, &ipv6(6, low, &request)));
        frames.push(frame(&tag, 0x86dd, &ipv6(6, low, &response)));
        let mut option = vec![6, 0, 1, 4, 0, 0, 0, 0];
        option.extend(&request);
        frames.push(frame(&[], 0x86dd, &ipv6(60, low, &option)));
        let datagram = [&[0x9c, 0x40 + low, 0, 53, 0, 12, 0, 0][..], b"name"].concat();
        frames.push(frame(&[], 0x0800, &ipv4(17, 0, low, &datagram)));
        frames.push(frame(&[], 0x0800, &ipv4(6, 0x2000, low, &request)));
        frames.push(frame(&[], 0x0800, &ipv4(6, 0x0004, low, &[low; 40])));
        frames.push(frame(&[], 0x0800, &ipv4(1, 0, low, &[8, 0, 0, 0, 1, low])));
        frames.push(frame(&[], 0x0806, &[low; 28]));
    }
    frames
}

fn hash(bytes: &[u8], link: LinkType) -> u32 {
    TransactionSplitter.hash(&Frame {
        timestamp: Timestamp::ZERO,
        bytes,
        wire_len: u32::try_from(bytes.len()).unwrap(),
        link,
        interface: 0,
    })
}

#[test]
fn every_socket_of_a_group_gets_its_shard() {
    if !is_inside("live::every_socket_of_a_group_gets_its_shard") {
        return;
    }
    veth("one", "other");
    let sent = mixture();
    // What arrives, what leaves, and all interfaces at once.
    for (interface, sockets) in [
        ("other", 2),
        ("other", 3),
        ("other", 4),
        ("one", 3),
        ("any", 3),
    ] {
        let options = LiveOptions {
            sockets: usize::try_from(sockets).unwrap(),
            fanout: Fanout::Transaction,
            ..options(interface)
        };
        let sources = LiveCapture::open(&options).unwrap();
        let out = sender("one");
        sent.iter().for_each(|frame| out.send(frame).unwrap());
        let mut seen: HashMap<Vec<u8>, usize> = HashMap::new();
        for (shard, mut source) in (0..).zip(sources) {
            let mut taken = Taken::default();
            taken.until(&mut source, |taken| taken.idles > 1);
            finish(&options, &mut source, &mut taken);
            assert_eq!(source.drops(), Default::default());
            assert!(taken.frames.len() > sent.len() / 10, "{interface} {shard}");
            for frame in taken.frames {
                let got = hash(&frame.bytes, frame.link) % sockets;
                assert_eq!(got, shard, "{interface} {sockets} {:02x?}", frame.bytes);
                *seen.entry(frame.bytes).or_default() += 1;
            }
        }
        if interface == "any" {
            // Once as it leaves and once as it arrives.
            assert_eq!(seen.values().sum::<usize>(), 2 * sent.len());
            continue;
        }
        let mut left = seen;
        for frame in &sent {
            let count = left.get_mut(frame).expect("a frame that was sent");
            *count -= 1;
        }
        assert!(left.values().all(|count| *count == 0), "{interface}");
    }
}

/// The kernel gives numbers in turn, from 0 when the machine starts: a group of that number is one like others.
#[test]
fn a_group_may_have_the_number_zero() {
    if !is_inside("live::a_group_may_have_the_number_zero") {
        return;
    }
    veth("one", "other");
    let interfaces = interface::interfaces().unwrap();
    let other = interfaces.iter().find(|one| one.name == "other").unwrap();
    let join = |group| {
        let socket = PacketSocket::open(Framing::Link).unwrap();
        socket.bind(other.index).unwrap();
        let joined = socket.join_fanout(group, false).unwrap();
        (socket, joined)
    };
    let (_first, zero) = join(Some(0));
    let (_second, same) = join(Some(0));
    assert_eq!((zero, same), (0, 0));
    let (_third, new) = join(None);
    assert_ne!(new, 0);
}

#[test]
fn frames_are_those_of_tcpdump() {
    if !is_inside("live::frames_are_those_of_tcpdump") {
        return;
    }
    veth("one", "other");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("dump.pcap");
    let dump = Command::new("tcpdump")
        .args([
            "-i",
            "other",
            "-U",
            "-s",
            "2000",
            "-B",
            "16384",
            "--immediate-mode",
            "--time-stamp-precision=nano",
            "-w",
        ])
        .arg(&path)
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut dump) = dump else {
        println!("skipped: frames_are_those_of_tcpdump needs the program tcpdump");
        return;
    };
    let options = options("other");
    let mut source = open(&options);
    // It receives once its header is in the file, if it does not give up then: in a user namespace
    // it cannot become the user that it wants to be.
    let has_begun = || std::fs::metadata(&path).is_ok_and(|meta| meta.len() >= 24);
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(50));
        if has_begun() {
            break;
        }
    }
    std::thread::sleep(Duration::from_millis(200));
    if !has_begun() || dump.try_wait().unwrap().is_some() {
        dump.kill().ok();
        dump.wait().unwrap();
        println!("skipped: frames_are_those_of_tcpdump: tcpdump does not run here");
        return;
    }
    let out = sender("one");
    let sent = mixture();
    sent.iter().for_each(|frame| out.send(frame).unwrap());
    let mut taken = Taken::default();
    taken.until(&mut source, |taken| taken.frames.len() >= sent.len());
    finish(&options, &mut source, &mut taken);
    let expected: usize = 24 + sent.iter().map(|frame| 16 + frame.len()).sum::<usize>();
    for _ in 0..100 {
        if std::fs::metadata(&path).unwrap().len() >= u64::try_from(expected).unwrap() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    dump.kill().unwrap();
    dump.wait().unwrap();
    let mut files = CaptureFiles::open(&[Input::from(path)], ReadOptions::default()).unwrap();
    let mut theirs = Vec::new();
    while let SourceEvent::Batch(batch) = files.next_event().unwrap() {
        for frame in batch.frames() {
            theirs.push((frame.timestamp, frame.bytes.to_vec(), frame.wire_len));
        }
    }
    assert_eq!(theirs.len(), sent.len());
    assert_eq!(taken.frames.len(), sent.len());
    for (ours, (time, bytes, wire_len)) in taken.frames.iter().zip(&theirs) {
        assert_eq!((&ours.bytes, ours.wire_len), (bytes, *wire_len));
        assert_eq!(ours.timestamp, *time, "one stamp for all sockets");
        assert_eq!(ours.link, LinkType::ETHERNET);
    }
}

#[test]
fn the_filter_runs_in_the_kernel() {
    if !is_inside("live::the_filter_runs_in_the_kernel") {
        return;
    }
    veth("one", "other");
    let sent = mixture();
    let of = |interface: &str, filter: &str, snaplen: u32| {
        let options = LiveOptions {
            filter: Some(filter.to_owned()),
            snaplen,
            ..options(interface)
        };
        let mut source = open(&options);
        let out = sender("one");
        sent.iter().for_each(|frame| out.send(frame).unwrap());
        let mut taken = Taken::default();
        taken.until(&mut source, |taken| taken.idles > 1);
        finish(&options, &mut source, &mut taken);
        taken.frames
    };
    assert_eq!(of("other", "udp port 53", 65_535).len(), 40);
    assert_eq!(of("other", "arp", 65_535).len(), 40);
    let tagged = of("other", "vlan", 65_535);
    assert_eq!(tagged.len(), 40 * 6);
    assert!(
        tagged
            .iter()
            .all(|frame| matches!(frame.bytes[12..14], [0x81, 0] | [0x88, 0xa8]))
    );
    let cut = of("other", "icmp", 30);
    assert!(
        cut.iter()
            .all(|frame| frame.bytes.len() == 30 && frame.wire_len == 40),
        "{cut:?}"
    );
    assert_eq!(cut.len(), 40);
    // A tag of a frame that leaves is a part of it, one of a frame that arrives was taken out.
    for (filter, count) in [
        ("udp port 53", 80),
        ("ip6", 200),
        ("link[0:2] != 0 and greater 1", 2 * 680),
    ] {
        let cooked = of("any", filter, 65_535);
        assert_eq!(cooked.len(), count, "{filter}");
        assert!(
            cooked
                .iter()
                .all(|frame| frame.link == LinkType::LINUX_SLL2)
        );
    }
}

#[test]
fn loopback_is_seen_once_and_the_end_loses_nothing() {
    if !is_inside("live::loopback_is_seen_once_and_the_end_loses_nothing") {
        return;
    }
    ip("link set dev lo up");
    for interface in ["lo", "any"] {
        let options = LiveOptions {
            filter: Some("udp".to_owned()),
            ..options(interface)
        };
        let mut source = open(&options);
        let out = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for n in 0..500_u32 {
            out.send_to(&n.to_be_bytes(), "127.0.0.1:9").unwrap();
        }
        // Not one event was asked for before the end.
        let mut taken = Taken::default();
        finish(&options, &mut source, &mut taken);
        let numbers: Vec<u32> = taken
            .frames
            .iter()
            .map(|frame| u32::from_be_bytes(*frame.bytes.last_chunk().unwrap()))
            .collect();
        assert_eq!(numbers, (0..500).collect::<Vec<u32>>(), "{interface}");
        assert!(taken.frames.is_sorted_by_key(|frame| frame.timestamp));
        let now = source.now().unwrap();
        assert!(now.nanos_since(taken.frames[0].timestamp) < 5_000_000_000);
    }
}

#[test]
fn an_interface_may_go_and_come() {
    if !is_inside("live::an_interface_may_go_and_come") {
        return;
    }
    for sockets in [1, 2] {
        veth("one", "other");
        let options = LiveOptions {
            sockets,
            fanout: Fanout::Transaction,
            ..options("other")
        };
        let mut sources = LiveCapture::open(&options).unwrap();
        let mut taken: Vec<Taken> = (0..sockets).map(|_| Taken::default()).collect();
        let mut told = 0;
        let mut expect = |sources: &mut [linkweir_capture::LiveSource], words: &str| {
            taken[0].until(&mut sources[0], |taken| taken.faults.len() > told);
            let fault = &taken[0].faults[told];
            assert!(fault.message.contains(words), "{fault:?}");
            assert_eq!(fault.kind, FaultKind::Interrupted);
            assert_eq!(fault.input, "other");
            told += 1;
            // The others follow, without a word.
            for (source, taken) in sources.iter_mut().zip(&mut taken).skip(1) {
                let idles = taken.idles;
                taken.until(source, |taken| taken.idles > idles + 8);
                assert_eq!(taken.faults.len(), 0);
            }
            // Whatever happened, frames come where they belong, if there is an interface.
            if words.contains("down") || words.contains("gone") {
                return;
            }
            let sent = mixture();
            let out = sender("one");
            sent.iter().for_each(|frame| out.send(frame).unwrap());
            let all = |taken: &[Taken]| taken.iter().map(|taken| taken.frames.len()).sum::<usize>();
            let before = all(&taken);
            // A busy kernel delivers late.
            for _ in 0..ROUNDS {
                for (source, taken) in sources.iter_mut().zip(&mut taken) {
                    let idles = taken.idles;
                    taken.until(source, |taken| taken.idles > idles + 1);
                }
                if all(&taken) >= before + sent.len() {
                    break;
                }
            }
            let after = all(&taken);
            assert_eq!(after - before, sent.len(), "after: {words}");
            for (shard, taken) in (0..).zip(&taken) {
                let count = u32::try_from(sockets).unwrap();
                for frame in &taken.frames {
                    assert_eq!(
                        hash(&frame.bytes, frame.link) % count,
                        shard,
                        "after: {words}"
                    );
                }
            }
        };
        ip("link set dev other mtu 1400");
        expect(&mut sources, "the MTU is 1400 now (1500 before)");
        ip("link set dev other down");
        expect(&mut sources, "the interface went down");
        ip("link set dev other up");
        expect(&mut sources, "is up again");
        ip("link del dev one");
        expect(&mut sources, "the interface is gone");
        veth("one", "other");
        expect(&mut sources, "is back");
        ip("link set dev other down");
        expect(&mut sources, "the interface went down");
        ip("link set dev other name renamed");
        expect(
            &mut sources,
            "is called renamed now; capture goes on while down",
        );
        ip("link set dev renamed up");
        expect(&mut sources, "is up again");
        for (source, taken) in sources.iter_mut().zip(&mut taken) {
            finish(&options, source, taken);
        }
        ip("link del dev one");
    }
}

#[test]
fn what_cannot_be_opened_says_why() {
    if !is_inside("live::what_cannot_be_opened_says_why") {
        return;
    }
    veth("one", "other");
    ip("link set dev one down");
    let refused = |interface: &str, filter: Option<&str>| {
        let options = LiveOptions {
            filter: filter.map(str::to_owned),
            ..options(interface)
        };
        LiveCapture::open(&options).unwrap_err().to_string()
    };
    let missing = refused("eth9", None);
    assert!(
        missing.starts_with("eth9: no such interface (there are: lo, "),
        "{missing}"
    );
    assert_eq!(
        refused("one", None),
        "one: the interface is down (ip link set dev one up)"
    );
    let filter = refused("other", Some("tcp prot 80"));
    assert!(filter.starts_with("-f: filter `tcp prot 80`: "), "{filter}");
}

#[test]
fn af_xdp_gives_the_same_frames() {
    if !is_inside("live::af_xdp_gives_the_same_frames") {
        return;
    }
    veth("one", "other");
    let xdp = |filter: Option<&str>| LiveOptions {
        filter: filter.map(str::to_owned),
        ..options("xdp:other")
    };
    // Twice: the program goes with the source.
    for (filter, count) in [(None, 680), (Some("udp port 53"), 40)] {
        let options = xdp(filter);
        let mut source = open(&options);
        let notices = source.take_notices();
        println!("{notices:?}");
        if notices.iter().any(|notice| notice.contains("CAP_BPF")) {
            println!("skipped: af_xdp_gives_the_same_frames is not allowed here");
            return;
        }
        assert!(
            notices[0].contains("does not reach this machine"),
            "{notices:?}"
        );
        let sent = mixture();
        let out = sender("one");
        let before = linkweir_sys::wait::wall_clock_ns();
        let mut taken = Taken::default();
        for (number, frame) in (0..).zip(&sent) {
            out.send(frame).unwrap();
            if number % 100 == 99 {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        let after = linkweir_sys::wait::wall_clock_ns();
        std::thread::sleep(Duration::from_millis(50));
        taken.until(&mut source, |taken| taken.idles > 1);
        finish(&options, &mut source, &mut taken);
        assert_eq!(source.drops(), Default::default());
        assert_eq!(taken.frames.len(), count);
        if filter.is_none() {
            assert!(taken.frames.iter().map(|frame| &frame.bytes).eq(&sent));
        }
        for frame in &taken.frames {
            let time = frame.timestamp.as_nanos();
            assert!(
                (before..=after).contains(&time),
                "stamped as it came: {before} {time} {after}"
            );
        }
    }
    // An interface that the machine itself uses is left to it.
    ip("addr add 10.9.0.1/24 dev other");
    let mut source = open(&xdp(None));
    let notices = source.take_notices();
    assert!(
        notices[0].contains("has the address 10.9.0.1"),
        "{notices:?}"
    );
    let mut shares = LiveCapture::open(&LiveOptions {
        sockets: 2,
        fanout: Fanout::Transaction,
        ..xdp(None)
    })
    .unwrap();
    assert_eq!(shares.len(), 2);
    let notices = shares[0].take_notices();
    assert!(notices[0].contains("not transactions"), "{notices:?}");
}

#[test]
fn af_xdp_outlives_its_interface() {
    if !is_inside("live::af_xdp_outlives_its_interface") {
        return;
    }
    veth("one", "other");
    let options = options("xdp:other");
    let mut source = open(&options);
    if source.take_notices()[0].contains("AF_PACKET") {
        println!("skipped: af_xdp_outlives_its_interface is not allowed here");
        return;
    }
    let mut taken = Taken::default();
    ip("link del dev one");
    taken.until(&mut source, |taken| taken.faults.len() == 1);
    assert!(
        taken.faults[0].message.contains("is gone"),
        "{:?}",
        taken.faults
    );
    veth("one", "other");
    taken.until(&mut source, |taken| taken.faults.len() == 2);
    assert!(
        taken.faults[1].message.contains("is back"),
        "{:?}",
        taken.faults
    );
    let out = sender("one");
    let sent = mixture();
    sent.iter()
        .take(50)
        .for_each(|frame| out.send(frame).unwrap());
    taken.until(&mut source, |taken| taken.frames.len() == 50);
    finish(&options, &mut source, &mut taken);
}

#[test]
fn without_privileges_an_interface_may_come_back() {
    if !is_inside("live::without_privileges_an_interface_may_come_back") {
        return;
    }
    veth("one", "other");
    let options = LiveOptions {
        hardware_stamps: true,
        ..options("other")
    };
    let mut source = open(&options);
    let notices = source.take_notices();
    assert!(
        notices[0].contains("the interface makes no time stamps"),
        "{notices:?}"
    );
    assert_eq!(source.take_notices(), Vec::<String>::new());
    // The locks bind the thread that captures; this one goes on making interfaces.
    let capturing = std::thread::spawn(move || {
        let restrict = linkweir_sys::privileges::Restrict {
            keep_net: true,
            ..Default::default()
        };
        println!("{:?}", restrict.apply().unwrap());
        let mut taken = Taken::default();
        taken.until(&mut source, |taken| taken.frames.len() == 40);
        (source, taken)
    });
    ip("link del dev one");
    std::thread::sleep(Duration::from_millis(300));
    veth("one", "other");
    std::thread::sleep(Duration::from_millis(300));
    let out = sender("one");
    let sent = mixture();
    sent.iter()
        .take(40)
        .for_each(|frame| out.send(frame).unwrap());
    let (_, taken) = capturing.join().unwrap();
    assert_eq!(taken.faults.len(), 2, "{:?}", taken.faults);
    assert!(
        taken
            .frames
            .iter()
            .map(|frame| &frame.bytes)
            .eq(sent.iter().take(40))
    );
}

/// A reader that the machine does not let run for a second and a half: however little comes, blocks fill by time.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the ring is filled by the time that passes"
)]
fn a_reader_may_stand_still_for_a_second_on_a_quiet_link() {
    if !is_inside("live::a_reader_may_stand_still_for_a_second_on_a_quiet_link") {
        return;
    }
    veth("one", "other");
    let options = LiveOptions {
        interface: "other".to_owned(),
        ..LiveOptions::default()
    };
    let out = sender("one");
    let mut source = open(&options);
    let sent = mixture();
    let mut count = 0;
    for frame in sent.iter().cycle().take(150) {
        out.send(frame).unwrap();
        count += 1;
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut taken = Taken::default();
    taken.until(&mut source, |taken| {
        taken.frames.len() >= count || taken.idles > 3
    });
    assert_eq!((taken.frames.len(), source.drops().kernel), (count, 0));
}

#[test]
fn a_full_ring_is_counted_and_a_flood_can_be_ended() {
    if !is_inside("live::a_full_ring_is_counted_and_a_flood_can_be_ended") {
        return;
    }
    veth("one", "other");
    let options = LiveOptions {
        // The least there is: four blocks.
        buffer_bytes: 1,
        ..options("other")
    };
    let out = sender("one");
    let sent = mixture();
    // What a busy machine drops before any socket sees it (the backlog of a core) nobody here can
    // count: then once more.
    let is_all_accounted_for = (0..8).any(|_| {
        let mut source = open(&options);
        let mut count = 0;
        while count < 20_000 {
            sent.iter().for_each(|frame| out.send(frame).unwrap());
            count += sent.len();
        }
        let mut taken = Taken::default();
        taken.until(&mut source, |taken| taken.idles > 0);
        let drops = source.drops();
        assert!(drops.kernel > 0 && source.times_full() > 0, "{drops:?}");
        let seen = taken.frames.len() + usize::try_from(drops.kernel).unwrap();
        assert!(seen <= count, "{seen} of {count}");
        seen == count
    });
    assert!(is_all_accounted_for);
    // Frames come faster than they are asked for, of which the filter (that of `vlan` runs here)
    // matches none: the source is idle to the stage, and ends when told to.
    let options = LiveOptions {
        filter: Some("vlan 4000".to_owned()),
        ..LiveOptions {
            interface: "other".to_owned(),
            idle: Duration::from_millis(20),
            ..LiveOptions::default()
        }
    };
    let mut source = open(&options);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                sent.iter().for_each(|frame| out.send(frame).unwrap());
            }
        });
        let mut taken = Taken::default();
        taken.until(&mut source, |taken| taken.idles > 3);
        finish(&options, &mut source, &mut taken);
        assert_eq!(taken.frames, []);
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// What programs send is not in one piece of memory: headers here, payload in pages.
#[test]
fn real_connections_are_shared_out_too() {
    use std::io::{Read, Write};
    if !is_inside("live::real_connections_are_shared_out_too") {
        return;
    }
    ip("link set dev lo up");
    for (interface, address) in [
        ("lo", "127.0.0.1:0"),
        ("lo", "[::1]:0"),
        ("any", "127.0.0.1:0"),
    ] {
        let Ok(listener) = std::net::TcpListener::bind(address) else {
            println!("skipped: no {address} here");
            continue;
        };
        let server = listener.local_addr().unwrap();
        let options = LiveOptions {
            sockets: 3,
            fanout: Fanout::Transaction,
            filter: Some("tcp".to_owned()),
            ..options(interface)
        };
        let sources = LiveCapture::open(&options).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for stream in listener.incoming().take(30) {
                    let mut stream = stream.unwrap();
                    let mut request = [0; 18];
                    stream.read_exact(&mut request).unwrap();
                    let body = vec![b'x'; 100_000];
                    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
                    stream.write_all(&body).unwrap();
                }
            });
            for _ in 0..30 {
                let mut stream = std::net::TcpStream::connect(server).unwrap();
                stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
                let mut answer = Vec::new();
                stream.read_to_end(&mut answer).unwrap();
                assert_eq!(answer.len(), 100_019);
            }
        });
        let mut counts = Vec::new();
        for (shard, mut source) in (0..).zip(sources) {
            let mut taken = Taken::default();
            taken.until(&mut source, |taken| taken.idles > 1);
            finish(&options, &mut source, &mut taken);
            for frame in &taken.frames {
                assert_eq!(hash(&frame.bytes, frame.link) % 3, shard, "{interface}");
            }
            counts.push(taken.frames.len());
        }
        println!("{interface} {address}: {counts:?}");
        assert!(counts.iter().sum::<usize>() >= 30 * 9, "{counts:?}");
    }
}
