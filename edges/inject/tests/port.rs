//! Ports on interfaces of a network namespace.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests"
)]

use std::process::Command;
use std::time::{Duration, Instant};

use linkweir_inject::{Checksum, Port, PortError, PortOptions, SenderKind, Unwanted};
use linkweir_sys::wait::wall_clock_ns;
use linkweir_testkit::conversation::Side;
use linkweir_testkit::netns::{Running, SERVER, Wire, interface};
use linkweir_wire::{LinkType, SeqNumber, TcpFlags, Timestamp, Transport, decode, emit::TcpFrame};

const INSIDE: &str = "LINKWEIR_TEST_NAMESPACE";
const SENDERS: [SenderKind; 2] = [SenderKind::Packet, SenderKind::Xdp];

/// Whether the caller runs inside a namespace of its own. If not, the test of this name is run there,
/// and its failure is that of the caller.
fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let wire = match Wire::new() {
        Ok(wire) => wire,
        Err(error) => {
            println!("SKIPPED: {test}: {error}");
            return false;
        }
    };
    let mut command = wire.command(Side::Client, std::env::current_exe().unwrap());
    let words = ["--exact", test, "--nocapture", "--test-threads=1"];
    let output = command.args(words).env(INSIDE, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{test} failed in its namespace");
    assert!(text.contains("1 passed"), "{test} was not run");
    false
}

fn ip(words: &str) {
    let output = Command::new("ip").args(words.split(' ')).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {words}: {error}");
}

/// Two interfaces, what leaves one arrives at the other.
fn veth(one: &str, other: &str) {
    ip(&format!("link add {one} type veth peer name {other}"));
    for name in [one, other] {
        ip(&format!("link set dev {name} up"));
    }
}

fn open(interface: &str, sender: SenderKind) -> Port {
    Port::open(&PortOptions {
        sender,
        ..PortOptions::new(interface)
    })
    .unwrap()
}

/// A segment with this much payload, distinguished by its number.
fn segment(number: u32, payload: usize, vlans: &[u16]) -> Vec<u8> {
    let payload: Vec<u8> = number
        .to_be_bytes()
        .into_iter()
        .cycle()
        .take(payload)
        .collect();
    TcpFrame {
        payload: &payload,
        flags: TcpFlags::ACK,
        vlans,
        ..TcpFrame::new(
            "10.0.0.1:1".parse().unwrap(),
            "10.0.0.2:80".parse().unwrap(),
        )
    }
    .to_vec()
}

/// Takes frames until there are so many, or nothing more comes for a while.
fn take(port: &mut Port, count: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while frames.len() < count {
        let limit = Duration::from_secs(2);
        if port
            .receive(limit, |frame| frames.push(frame.bytes.to_vec()))
            .unwrap()
            == 0
        {
            break;
        }
    }
    frames
}

#[test]
fn frames_pass_from_port_to_port_in_order_and_whole() {
    if !is_inside("frames_pass_from_port_to_port_in_order_and_whole") {
        return;
    }
    veth("a0", "b0");
    for kind in SENDERS {
        let (mut a, mut b) = (open("a0", kind), open("b0", SenderKind::Packet));
        assert_eq!((a.sender(), a.mtu()), (kind, 1500));
        assert_ne!(a.mac(), b.mac());
        let vlan: &[u16] = &[5];
        let frames: Vec<Vec<u8>> = (0..3000_u32)
            .map(|n| segment(n, n as usize % 1400, if n % 7 == 0 { vlan } else { &[] }))
            .collect();
        let before = wall_clock_ns();
        let sent = a.send(frames.iter().map(Vec::as_slice)).unwrap();
        assert_eq!((sent.frames, sent.refused), (3000, 0), "{kind}");
        assert_eq!(
            sent.bytes,
            frames.iter().map(|frame| frame.len() as u64).sum::<u64>()
        );
        let mut came = Vec::new();
        while came.len() < 3000 {
            let limit = Duration::from_secs(5);
            let count = b.receive(limit, |frame| {
                assert!((before..=wall_clock_ns()).contains(&frame.at.as_nanos()));
                assert_eq!(frame.checksum, Checksum::Unknown);
                came.push(frame.bytes.to_vec());
            });
            assert_ne!(count.unwrap(), 0, "{} of 3000 came", came.len());
        }
        assert!(came == frames, "{kind}: as they were sent");
        assert_eq!(
            a.receive(Duration::ZERO, |_| {}).unwrap(),
            0,
            "its own are not seen"
        );
        let counts = b.counts();
        assert_eq!((counts.received_frames, counts.dropped), (3000, 0));
        assert_eq!(counts.received_bytes, sent.bytes);
        assert_eq!(a.counts().sent, sent);
    }
}

#[test]
fn long_frames_come_whole_and_too_long_ones_are_refused() {
    if !is_inside("long_frames_come_whole_and_too_long_ones_are_refused") {
        return;
    }
    veth("a0", "b0");
    let mut a = open("a0", SenderKind::Packet);
    let too_long = segment(1, 1461, &[]);
    let fits = segment(2, 1460, &[]);
    let sent = a.send([&too_long[..], &fits, &[], &too_long]).unwrap();
    assert_eq!((sent.frames, sent.refused), (1, 3));
    for name in ["a0", "b0"] {
        ip(&format!("link set dev {name} mtu 65535"));
    }
    let (mut a, mut b) = (
        open("a0", SenderKind::Packet),
        open("b0", SenderKind::Packet),
    );
    // As long as segmentation offload makes them.
    let long = segment(3, 65_535 - 40, &[]);
    let tagged = segment(4, 65_535 - 40, &[9]);
    assert_eq!(a.send([&long[..], &tagged]).unwrap().frames, 2);
    let came = take(&mut b, 2);
    assert!(came == [long, tagged]);
    assert_eq!(b.counts().too_long, 0);
}

#[test]
fn what_is_no_load_is_left_out() {
    if !is_inside("what_is_no_load_is_left_out") {
        return;
    }
    veth("a0", "b0");
    let all = PortOptions {
        only_load: false,
        ..PortOptions::new("b0")
    };
    let (mut a, mut load) = (
        open("a0", SenderKind::Packet),
        open("b0", SenderKind::Packet),
    );
    let mut everything = Port::open(&all).unwrap();
    let tcp = segment(1, 10, &[5]);
    let mut udp = segment(2, 10, &[]);
    udp[23] = 17;
    assert_eq!(a.send([&udp[..], &tcp]).unwrap().frames, 2);
    assert!(take(&mut load, 1) == [tcp.clone()]);
    let came = take(&mut everything, 2);
    assert!(came.contains(&udp) && came.contains(&tcp));
}

#[test]
fn what_is_kept_from_the_stack_comes_all_the_same() {
    if !is_inside("what_is_kept_from_the_stack_comes_all_the_same") {
        return;
    }
    veth("a0", "b0");
    ip("addr add 10.0.0.9/24 dev b0");
    let (mut a, mut b) = (
        open("a0", SenderKind::Packet),
        open("b0", SenderKind::Packet),
    );
    let to = |address: &str| {
        let frame = TcpFrame {
            dst_mac: b.mac(),
            ..TcpFrame::new("10.0.0.1:80".parse().unwrap(), address.parse().unwrap())
        };
        frame.to_vec()
    };
    let (client, own) = (to("10.0.0.2:1024"), to("10.0.0.9:1024"));
    let mut heard = |b: &mut Port, frame: &[u8]| {
        let before = packets_of_the_stack();
        a.send([frame]).unwrap();
        assert!(take(b, 1) == [frame]);
        packets_of_the_stack() - before
    };
    assert_eq!(heard(&mut b, &client), 1);
    let unwanted = Unwanted {
        source: "10.0.0.1".parse().unwrap(),
        destinations: &[("10.0.0.0".parse().unwrap(), 24)],
        except: &["10.0.0.9".parse().unwrap()],
    };
    if let Err(error) = b.keep_from_stack(&unwanted) {
        println!("SKIPPED: keep_from_stack: {error}");
        return;
    }
    assert_eq!([heard(&mut b, &client), heard(&mut b, &own)], [0, 1]);
    drop(b);
    assert_eq!(heard(&mut open("b0", SenderKind::Packet), &client), 1);
}

/// IPv4 packets that IP has received, those for others too.
fn packets_of_the_stack() -> u64 {
    let all = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let mut lines = all.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let mut both = names.split(' ').zip(values.split(' '));
    both.find(|(name, _)| *name == "InReceives")
        .unwrap()
        .1
        .parse()
        .unwrap()
}

#[test]
fn frames_that_the_kernel_dropped_are_counted() {
    if !is_inside("frames_that_the_kernel_dropped_are_counted") {
        return;
    }
    veth("a0", "b0");
    let small = PortOptions {
        receive_buffer: 64 << 10,
        ..PortOptions::new("b0")
    };
    let (mut a, mut b) = (open("a0", SenderKind::Packet), Port::open(&small).unwrap());
    let frame = segment(1, 1000, &[]);
    let sent = a
        .send(std::iter::repeat_n(&frame[..], 1000))
        .unwrap()
        .frames;
    assert_eq!(sent, 1000);
    let mut came = 0;
    while b
        .receive(Duration::from_millis(100), |_| came += 1)
        .unwrap()
        > 0
    {}
    let counts = b.counts();
    assert!(counts.dropped > 0 && came > 0, "{counts:?}");
    assert_eq!(counts.dropped + came, sent);
    assert_eq!(b.counts(), counts, "they are not counted twice");
}

#[test]
fn an_interface_that_goes_is_told() {
    if !is_inside("an_interface_that_goes_is_told") {
        return;
    }
    for kind in SENDERS {
        veth("a0", "b0");
        let mut a = open("a0", kind);
        let frame = segment(1, 10, &[]);
        ip("link set dev a0 down");
        let told = a.receive(Duration::from_secs(5), |_| {}).unwrap_err();
        assert!(
            matches!(&told, PortError::Down(name) if name == "a0"),
            "{told}"
        );
        let told = a.send([&frame[..]]).unwrap_err();
        assert!(matches!(told, PortError::Down(_)), "{kind}: {told}");
        ip("link set dev a0 up");
        assert_eq!(
            a.send([&frame[..]]).unwrap().frames,
            1,
            "{kind}: it is back"
        );
        ip("link del dev a0");
        let told = a.receive(Duration::from_secs(5), |_| {}).unwrap_err();
        assert!(told.is_gone(), "{told}");
        let told = a.send([&frame[..]]).unwrap_err();
        assert!(told.is_gone(), "{kind}: {told}");
        assert_eq!(told.to_string(), "the interface \"a0\" is gone");
    }
}

#[test]
fn what_cannot_be_opened_says_why() {
    if !is_inside("what_cannot_be_opened_says_why") {
        return;
    }
    let told = |name: &str| Port::open(&PortOptions::new(name)).unwrap_err();
    assert!(matches!(told("no-such-one"), PortError::NoInterface(_)));
    assert!(matches!(told("lo"), PortError::NotEthernet(_, 772)));
    ip("link add c0 type veth peer name d0");
    assert!(matches!(told("c0"), PortError::Down(_)));
}

#[test]
fn a_deadline_is_met_and_an_arrival_ends_the_wait() {
    if !is_inside("a_deadline_is_met_and_an_arrival_ends_the_wait") {
        return;
    }
    linkweir_sys::schedule::precise_waits().unwrap();
    veth("a0", "b0");
    let (mut a, mut b) = (
        open("a0", SenderKind::Packet),
        open("b0", SenderKind::Packet),
    );
    let spin = Duration::from_micros(80);
    let in_a_while = |span| Timestamp::from_nanos(wall_clock_ns()) + span;
    let deadline = in_a_while(Duration::from_millis(5));
    // What the kernel says of itself may come in between (neighbour discovery of its own address).
    while b.receive_until(deadline, spin, |_| {}).unwrap() > 0 {}
    assert!(wall_clock_ns() >= deadline.as_nanos(), "never early");
    a.send([&segment(1, 10, &[])[..]]).unwrap();
    let began = Instant::now();
    let far = in_a_while(Duration::from_secs(20));
    assert!(b.receive_until(far, spin, |_| {}).unwrap() > 0);
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// An address that nobody has, on the link of the server.
const CLIENT: &str = "10.80.0.99";
const CLIENT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x77];

/// A server writes to an emulated client: its kernel leaves segments joined and without checksum, and
/// the kernel of the client's host stays out of it.
#[test]
fn segments_that_the_server_left_joined_come_whole() {
    const NAME: &str = "segments_that_the_server_left_joined_come_whole";
    match std::env::var(INSIDE).as_deref() {
        Ok("server") => return serve(),
        Ok(_) => return take_joined_segments(),
        Err(_) => {}
    }
    let wire = match Wire::new() {
        Ok(wire) => wire,
        Err(error) => return println!("SKIPPED: {NAME}: {error}"),
    };
    let near = interface(Side::Server);
    let mut words = vec!["-K", near];
    for offload in ["tx", "sg", "tso", "gso"] {
        words.extend([offload, "on"]);
    }
    wire.must(Side::Server, "ethtool", &words).unwrap();
    let words = [
        "neigh",
        "add",
        CLIENT,
        "lladdr",
        "02:00:00:00:00:77",
        "dev",
        near,
    ];
    wire.must(Side::Server, "ip", &words).unwrap();
    let words = ["--exact", NAME, "--nocapture", "--test-threads=1"];
    let run = |side, role| {
        let mut command = wire.command(side, std::env::current_exe().unwrap());
        command.args(words).env(INSIDE, role);
        command
    };
    let server = Running::start(&mut run(Side::Server, "server")).unwrap();
    let output = run(Side::Client, "client").output().unwrap();
    drop(server);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains("1 passed"));
}

fn serve() {
    use std::io::Write as _;
    let listener = std::net::TcpListener::bind((SERVER, 80)).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    // Until the client has had enough, and resets.
    while stream.write_all(&[b'x'; 65_536]).is_ok() {}
}

fn take_joined_segments() {
    let mut port = open(interface(Side::Client), SenderKind::Auto);
    // Who has the server's address? (RFC 826)
    let mut question = [[0xff; 6], CLIENT_MAC].concat();
    question.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    question.extend(CLIENT_MAC);
    question.extend([10, 80, 0, 99, 0, 0, 0, 0, 0, 0, 10, 80, 0, 1]);
    port.send([&question[..]]).unwrap();
    let answer = take_one(&mut port, |frame| frame[12..14] == [8, 6] && frame[21] == 2).0;
    let server_mac: [u8; 6] = answer[6..12].try_into().unwrap();

    let client = format!("{CLIENT}:40000").parse().unwrap();
    let segment = TcpFrame {
        src_mac: CLIENT_MAC,
        dst_mac: server_mac,
        seq: SeqNumber(1000),
        ..TcpFrame::new(client, (SERVER, 80).into())
    };
    // The server may not listen yet, and refuse.
    let syn = TcpFrame {
        flags: TcpFlags::SYN,
        options: &[2, 4, 5, 180],
        ..segment
    };
    let is_synack = |flags: TcpFlags| flags == TcpFlags::SYN | TcpFlags::ACK;
    let mut synack = None;
    for _ in 0..100 {
        port.send([&syn.to_vec()[..]]).unwrap();
        let (frame, _) = take_one(&mut port, |frame| flags_and_seq(frame).is_some());
        synack = flags_and_seq(&frame).filter(|(flags, _)| is_synack(*flags));
        if synack.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let (_, sequence) = synack.expect("the server listens");
    let ack = TcpFrame {
        seq: SeqNumber(1001),
        ack: SeqNumber(sequence.wrapping_add(1)),
        ..segment
    };
    port.send([&ack.to_vec()[..]]).unwrap();
    let (frame, checksum) = take_one(&mut port, |frame| frame.len() > 1514);
    assert_eq!(checksum, Checksum::NotComputed);
    let packet = decode(
        LinkType::ETHERNET,
        &frame,
        u32::try_from(frame.len()).unwrap(),
    )
    .unwrap();
    let Transport::Tcp(tcp) = packet.transport else {
        panic!("no segment");
    };
    assert!(tcp.payload.len() > 1460 && tcp.payload.iter().all(|&byte| byte == b'x'));
    let reset = TcpFrame {
        flags: TcpFlags::RST,
        ..ack
    };
    port.send([&reset.to_vec()[..]]).unwrap();
}

/// The first frame that is wanted.
fn take_one(port: &mut Port, is_wanted: impl Fn(&[u8]) -> bool) -> (Vec<u8>, Checksum) {
    let began = Instant::now();
    let mut found = None;
    while found.is_none() {
        assert!(began.elapsed() < Duration::from_secs(10), "it did not come");
        port.receive(Duration::from_millis(100), |frame| {
            if found.is_none() && is_wanted(frame.bytes) {
                found = Some((frame.bytes.to_vec(), frame.checksum));
            }
        })
        .unwrap();
    }
    found.unwrap()
}

/// Of a segment to the client's port.
fn flags_and_seq(frame: &[u8]) -> Option<(TcpFlags, u32)> {
    let packet = decode(
        LinkType::ETHERNET,
        frame,
        u32::try_from(frame.len()).unwrap(),
    )
    .ok()?;
    match packet.transport {
        Transport::Tcp(tcp) if tcp.dst_port() == 40_000 => Some((tcp.flags(), tcp.seq().0)),
        _ => None,
    }
}
