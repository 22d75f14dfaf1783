//! A link with a server, a router, hosts that ask, and hosts that lie.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::population::{MacPolicy, PopulationOptions};

const SERVER_MAC: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
const OTHER_MAC: [u8; 6] = [0x52, 0x54, 0, 0, 0, 9];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn options(vlan: Option<u16>) -> PopulationOptions {
    PopulationOptions {
        clients: vec![
            "10.0.0.0/24".parse().unwrap(),
            "fd00::/120".parse().unwrap(),
        ],
        exclude: vec![ip("10.0.0.1"), ip("fd00::1")],
        mac: MacPolicy::PerClient,
        vlan,
        seed: 1,
        ..PopulationOptions::default()
    }
}

struct Net {
    population: Population,
    neighbours: Neighbours,
    now: Timestamp,
}

impl Net {
    fn new() -> Self {
        Self::with(&options(None))
    }

    fn with(options: &PopulationOptions) -> Self {
        Self {
            population: Population::new(options).unwrap(),
            neighbours: Neighbours::default(),
            now: Timestamp::from_nanos(1_000_000_000_000),
        }
    }

    fn say(&mut self, frame: &[u8]) -> (bool, Vec<Vec<u8>>) {
        let mut out = Frames::default();
        let was_ours = self
            .neighbours
            .on_frame(frame, self.now, &self.population, &mut out);
        (was_ours, out.iter().map(<[u8]>::to_vec).collect())
    }

    fn resolve(&mut self, remote: &str, hop: &str) -> (NeighbourState, Vec<Vec<u8>>) {
        let mut out = Frames::default();
        let state =
            self.neighbours
                .resolve(ip(remote), ip(hop), self.now, &self.population, &mut out);
        (state, out.iter().map(<[u8]>::to_vec).collect())
    }

    /// Goes on to the next deadline and says how far that was and what was sent.
    fn tick(&mut self) -> (Duration, Vec<Vec<u8>>) {
        let due = self.neighbours.next_deadline().unwrap();
        let waited = Duration::from_nanos(due.nanos_since(self.now));
        self.now = due;
        let mut out = Frames::default();
        self.neighbours
            .on_tick(self.now, &self.population, &mut out);
        (waited, out.iter().map(<[u8]>::to_vec).collect())
    }

    fn mac_of(&self, client: &str) -> [u8; 6] {
        self.population
            .mac(self.population.find(ip(client)).unwrap())
    }
}

fn arp(operation: Operation, mac: [u8; 6], sender: &str, target: &str) -> Vec<u8> {
    let mut out = Vec::new();
    arp::write(&mut out, BROADCAST, mac, None, arp::ETHERTYPE);
    let packet = Arp {
        operation,
        sender_mac: mac,
        sender: sender.parse().unwrap(),
        target_mac: [0; 6],
        target: target.parse().unwrap(),
    };
    packet.append_to(&mut out);
    out.resize(60, 0);
    out
}

fn ndp(mac: [u8; 6], message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    arp::write(
        &mut out,
        ndp::group_mac(message.dst),
        mac,
        None,
        ndp::ETHERTYPE,
    );
    message.append_to(&mut out);
    out
}

fn solicitation(src: &str, target: &str, link: Option<[u8; 6]>) -> Message {
    let target = target.parse().unwrap();
    Message {
        src: src.parse().unwrap(),
        dst: ndp::solicited_node(target),
        kind: Kind::Solicitation,
        target,
        link,
    }
}

fn advertisement(target: &str, link: Option<[u8; 6]>, overrides: bool) -> Message {
    Message {
        src: target.parse().unwrap(),
        dst: ndp::ALL_NODES,
        kind: Kind::Advertisement {
            is_solicited: false,
            overrides,
        },
        target: target.parse().unwrap(),
        link,
    }
}

fn read_arp(frame: &[u8]) -> (Link<'_>, Arp) {
    let link = Link::read(frame, None).unwrap();
    (link, Arp::read(link.payload).unwrap())
}

fn read_ndp(frame: &[u8]) -> (Link<'_>, Message) {
    let link = Link::read(frame, None).unwrap();
    let Read::Message(message) = ndp::read(link.payload) else {
        panic!("no message: {frame:02x?}");
    };
    (link, message)
}

#[test]
fn every_client_is_answered_for_by_arp_and_nobody_else() {
    let mut net = Net::new();
    for low in 0..=255 {
        let asked = format!("10.0.0.{low}");
        let (was_ours, answers) = net.say(&arp(Operation::Request, SERVER_MAC, "10.0.0.1", &asked));
        assert!(was_ours);
        if [0, 1, 255].contains(&low) {
            assert!(answers.is_empty(), "{asked} is no client");
            continue;
        }
        let (link, reply) = read_arp(&answers[0]);
        let mac = net.mac_of(&asked);
        assert_eq!((link.dst, link.src), (SERVER_MAC, mac));
        assert_eq!(reply.operation, Operation::Reply);
        assert_eq!(
            (IpAddr::from(reply.sender), reply.sender_mac),
            (ip(&asked), mac)
        );
        assert_eq!(
            (IpAddr::from(reply.target), reply.target_mac),
            (ip("10.0.0.1"), SERVER_MAC)
        );
    }
    let counts = net.neighbours.counts();
    // The third is the server's announcement of its own address: no question.
    assert_eq!((counts.answered, counts.not_ours), (253, 2));
    // RFC 5227: who probes has no address yet, and hears that this one is taken.
    let (_, answers) = net.say(&arp(Operation::Request, OTHER_MAC, "0.0.0.0", "10.0.0.2"));
    assert_eq!(read_arp(&answers[0]).1.target_mac, OTHER_MAC);
}

#[test]
fn every_client_is_answered_for_by_neighbour_discovery() {
    let mut net = Net::new();
    for low in 0..=255 {
        let asked = format!("fd00::{low:x}");
        let question = solicitation("fe80::1", &asked, Some(SERVER_MAC));
        let (was_ours, answers) = net.say(&ndp(SERVER_MAC, &question));
        assert!(was_ours);
        if low < 2 {
            assert!(answers.is_empty(), "{asked} is no client");
            continue;
        }
        let (link, answer) = read_ndp(&answers[0]);
        assert_eq!((link.dst, link.src), (SERVER_MAC, net.mac_of(&asked)));
        assert_eq!(answer.link, Some(net.mac_of(&asked)));
        assert_eq!((answer.src, answer.dst), (answer.target, question.src));
        let expected = Kind::Advertisement {
            is_solicited: true,
            overrides: true,
        };
        assert_eq!(
            (answer.kind, IpAddr::from(answer.target)),
            (expected, ip(&asked))
        );
    }
    // RFC 4862 sec. 5.4.3: the probe for a duplicate is answered to all nodes.
    let (_, answers) = net.say(&ndp(OTHER_MAC, &solicitation("::", "fd00::7", None)));
    let (link, answer) = read_ndp(&answers[0]);
    assert_eq!(
        (link.dst, answer.dst),
        ([0x33, 0x33, 0, 0, 0, 1], ndp::ALL_NODES)
    );
    // A question to the address itself, without the option: the frame says who asked.
    let mut direct = solicitation("fe80::1", "fd00::7", None);
    direct.dst = direct.target;
    let mut frame = ndp(OTHER_MAC, &direct);
    frame[..6].copy_from_slice(&net.mac_of("fd00::7"));
    let (_, answers) = net.say(&frame);
    assert_eq!(read_ndp(&answers[0]).0.dst, OTHER_MAC);
}

#[test]
fn frames_for_others_and_lies_are_not_answered() {
    let mut net = Net::new();
    let question = arp(Operation::Request, SERVER_MAC, "10.0.0.1", "10.0.0.2");
    let mut to_another = question.clone();
    to_another[..6].copy_from_slice(&OTHER_MAC);
    let mut nobody = question.clone();
    nobody[22..28].fill(0xff);
    let mut short = question.clone();
    short.truncate(40);
    let mut token_ring = question.clone();
    token_ring[15] = 6;
    for frame in [&to_another, &nobody, &short, &token_ring] {
        assert_eq!(net.say(frame), (true, vec![]), "{frame:02x?}");
    }
    assert_eq!(net.neighbours.counts().malformed, 3);
    // Somebody else has a client's address, and announces it.
    assert_eq!(
        net.say(&arp(Operation::Request, OTHER_MAC, "10.0.0.2", "10.0.0.2")),
        (true, vec![])
    );
    assert_eq!(
        net.say(&arp(Operation::Reply, OTHER_MAC, "10.0.0.3", "10.0.0.1")),
        (true, vec![])
    );
    net.say(&ndp(
        OTHER_MAC,
        &advertisement("fd00::5", Some(OTHER_MAC), true),
    ));
    assert_eq!(net.neighbours.counts().conflicts, 3);
    // A frame of ours that a switch sent back.
    let mac = net.mac_of("10.0.0.9");
    assert_eq!(
        net.say(&arp(Operation::Request, mac, "10.0.0.9", "10.0.0.2")),
        (true, vec![])
    );
    assert_eq!(net.neighbours.counts().conflicts, 3);
    // What is not of these protocols is left to others.
    let mut tcp = question;
    tcp[12..14].copy_from_slice(&[8, 0]);
    assert_eq!(net.say(&tcp), (false, vec![]));
    assert_eq!(net.say(&[]), (false, vec![]));
}

#[test]
fn only_the_vlan_of_the_population_is_heard() {
    let mut net = Net::with(&options(Some(7)));
    let plain = arp(Operation::Request, SERVER_MAC, "10.0.0.1", "10.0.0.2");
    let tagged = |tag: [u8; 2]| [&plain[..12], &[0x81, 0], &tag, &plain[12..]].concat();
    assert_eq!(net.say(&plain), (false, vec![]));
    assert_eq!(net.say(&tagged([0, 8])), (false, vec![]));
    // The upper bits are a priority.
    let (was_ours, answers) = net.say(&tagged([0x60, 7]));
    assert!(was_ours);
    assert_eq!(answers[0][12..18], [0x81, 0, 0, 7, 8, 6]);
    let mut untagged = Net::new();
    assert_eq!(untagged.say(&tagged([0, 7])), (false, vec![]));
    assert_eq!(untagged.say(&tagged([0, 0])).1.len(), 1, "VLAN 0 is none");
}

#[test]
fn a_server_on_the_link_is_asked_for_and_found() {
    let mut net = Net::new();
    let (state, asked) = net.resolve("10.0.0.1", "10.0.0.1");
    assert_eq!(state, NeighbourState::Asking);
    let (link, request) = read_arp(&asked[0]);
    assert_eq!((link.dst, link.src), (BROADCAST, net.population.mac(0)));
    assert_eq!(IpAddr::from(request.sender), net.population.address(0));
    assert_eq!(IpAddr::from(request.target), ip("10.0.0.1"));
    assert_eq!(net.neighbours.next_hop(ip("10.0.0.1")), None);
    net.say(&arp(Operation::Reply, SERVER_MAC, "10.0.0.1", "10.0.0.2"));
    assert_eq!(net.neighbours.next_hop(ip("10.0.0.1")), Some(SERVER_MAC));
    assert_eq!(
        net.neighbours.state(ip("10.0.0.1")),
        NeighbourState::Resolved
    );
    // Another server behind the same hop is known already.
    let (state, asked) = net.resolve("192.0.2.1", "10.0.0.1");
    assert_eq!((state, asked.len()), (NeighbourState::Resolved, 0));
    assert_eq!(
        net.neighbours.state(ip("192.0.2.2")),
        NeighbourState::Failed,
        "nobody resolved it"
    );
}

#[test]
fn a_router_is_asked_for_by_neighbour_discovery() {
    let mut net = Net::new();
    let (_, asked) = net.resolve("2001:db8::80", "fe80::1");
    let (link, question) = read_ndp(&asked[0]);
    assert_eq!(link.dst, [0x33, 0x33, 0xff, 0, 0, 1]);
    assert_eq!(question.kind, Kind::Solicitation);
    let client = net.population.any_like(ip("fe80::1")).unwrap();
    assert_eq!(IpAddr::from(question.src), net.population.address(client));
    assert_eq!(question.link, Some(net.population.mac(client)));
    net.say(&ndp(
        SERVER_MAC,
        &advertisement("fe80::1", Some(SERVER_MAC), false),
    ));
    assert_eq!(
        net.neighbours.next_hop(ip("2001:db8::80")),
        Some(SERVER_MAC)
    );
}

#[test]
fn silence_is_a_failure_after_five_seconds_and_asking_goes_on() {
    let mut net = Net::new();
    net.resolve("10.0.0.1", "10.0.0.1");
    let waits: Vec<(u64, usize)> = (0..5)
        .map(|_| net.tick())
        .map(|(waited, asked)| (waited.as_secs(), asked.len()))
        .collect();
    // Two more questions, the failure, and then a question every five seconds.
    assert_eq!(waits, [(1, 1), (2, 1), (2, 0), (5, 1), (5, 1)]);
    assert_eq!(net.neighbours.state(ip("10.0.0.1")), NeighbourState::Failed);
    let counts = net.neighbours.counts();
    assert_eq!((counts.asked, counts.failed), (5, 1));
    net.say(&arp(Operation::Reply, SERVER_MAC, "10.0.0.1", "10.0.0.2"));
    assert_eq!(
        net.neighbours.state(ip("10.0.0.1")),
        NeighbourState::Resolved,
        "it came back"
    );
}

#[test]
fn an_answer_is_asked_for_again_before_it_is_old() {
    let mut net = Net::new();
    net.resolve("10.0.0.1", "10.0.0.1");
    net.say(&arp(Operation::Reply, SERVER_MAC, "10.0.0.1", "10.0.0.2"));
    let (waited, asked) = net.tick();
    assert_eq!(
        (waited.as_secs(), read_arp(&asked[0]).0.dst),
        (3, SERVER_MAC)
    );
    net.say(&arp(Operation::Reply, SERVER_MAC, "10.0.0.1", "10.0.0.2"));
    assert_eq!(net.tick().0.as_secs(), 3, "confirmed");
    // Now it is silent: twice more alone, then everybody is asked, and the old answer is in use.
    let dsts: Vec<[u8; 6]> = (0..5).map(|_| read_arp(&net.tick().1[0]).0.dst).collect();
    assert_eq!(
        dsts,
        [SERVER_MAC, SERVER_MAC, BROADCAST, BROADCAST, BROADCAST]
    );
    assert_eq!(net.neighbours.next_hop(ip("10.0.0.1")), Some(SERVER_MAC));
    net.tick();
    assert_eq!(net.neighbours.next_hop(ip("10.0.0.1")), None);
}

#[test]
fn a_standby_that_takes_over_is_followed() {
    let mut net = Net::new();
    net.resolve("10.0.0.1", "10.0.0.1");
    net.say(&arp(Operation::Reply, SERVER_MAC, "10.0.0.1", "10.0.0.2"));
    // A gratuitous ARP (RFC 5227 sec. 3: a request for its own address).
    net.say(&arp(Operation::Request, OTHER_MAC, "10.0.0.1", "10.0.0.1"));
    assert_eq!(net.neighbours.next_hop(ip("10.0.0.1")), Some(OTHER_MAC));
    assert_eq!(net.neighbours.counts().moved, 1);

    net.resolve("fd00::1", "fd00::1");
    net.say(&ndp(
        SERVER_MAC,
        &advertisement("fd00::1", Some(SERVER_MAC), false),
    ));
    net.say(&ndp(
        OTHER_MAC,
        &advertisement("fd00::1", Some(OTHER_MAC), false),
    ));
    assert_eq!(
        net.neighbours.next_hop(ip("fd00::1")),
        Some(SERVER_MAC),
        "it does not override"
    );
    net.say(&ndp(
        OTHER_MAC,
        &advertisement("fd00::1", Some(OTHER_MAC), true),
    ));
    assert_eq!(net.neighbours.next_hop(ip("fd00::1")), Some(OTHER_MAC));
    net.say(&ndp(OTHER_MAC, &advertisement("fd00::1", None, true)));
    assert_eq!(
        net.neighbours.next_hop(ip("fd00::1")),
        Some(OTHER_MAC),
        "confirmed"
    );
    assert_eq!(net.neighbours.counts().moved, 2);
    let moved = net.neighbours.last_move().unwrap();
    assert_eq!((moved.from, moved.to), (SERVER_MAC, OTHER_MAC));
    assert!(moved.to_string().starts_with("next hop fd00::1 is now at "));
}

#[test]
fn what_cannot_be_asked_for_has_failed() {
    let mut net = Net::new();
    for (remote, hop) in [("192.0.2.1", "10.0.0.5"), ("192.0.2.1", "fd00::1")] {
        assert_eq!(net.resolve(remote, hop), (NeighbourState::Failed, vec![]));
    }
    let mut only_v4 = Net::with(&PopulationOptions {
        clients: vec!["10.0.0.0/24".parse().unwrap()],
        ..PopulationOptions::default()
    });
    assert_eq!(
        only_v4.resolve("fd00::1", "fd00::1"),
        (NeighbourState::Failed, vec![])
    );
    for low in 0..Neighbours::MAX_REMOTES {
        net.resolve(&format!("172.16.{}.{}", low / 256, low % 256), "10.0.0.1");
    }
    assert_eq!(
        net.resolve("192.0.2.1", "10.0.0.1").0,
        NeighbourState::Failed
    );
    assert_eq!(net.neighbours.hops.len(), 1);
}

proptest! {
    #[test]
    fn noise_is_never_answered_for_others(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        is_v6: bool,
        cut in 0_usize..100,
    ) {
        let mut net = Net::new();
        net.resolve("10.0.0.1", "10.0.0.1");
        let mut frame = if is_v6 {
            ndp(SERVER_MAC, &solicitation("fe80::1", "fd00::7", Some(SERVER_MAC)))
        } else {
            arp(Operation::Request, SERVER_MAC, "10.0.0.1", "10.0.0.2")
        };
        for (at, value) in places {
            let at = at.index(frame.len());
            frame[at] = value;
        }
        frame.truncate(100 - cut);
        let (was_ours, answers) = net.say(&frame);
        prop_assert!(answers.len() <= usize::from(was_ours));
        for answer in answers {
            let link = Link::read(&answer, None).unwrap();
            let of = match Arp::read(link.payload) {
                Some(arp) => IpAddr::from(arp.sender),
                None => read_ndp(&answer).1.target.into(),
            };
            prop_assert!(net.population.find(of).is_some());
        }
    }
}
