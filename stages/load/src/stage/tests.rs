//! The stage against a server of a few lines: it acknowledges, answers and finishes.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use linkweir_record::{LoadBatch, RecordBatch as _};
use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{SeqNumber, TcpFlags};

use super::*;
use crate::arrivals::{Even, Limits, Plan, RateSource};
use crate::population::{PopulationOptions, Station};
use crate::script::{SessionPlan, Site, single};

const SERVER_MAC: [u8; 6] = [2, 9, 9, 9, 9, 9];
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const START: Timestamp = Timestamp::from_nanos(1_700_000_000_000_000_000);

/// Never asked: the schedules here are even.
#[derive(Debug)]
struct NoModel;

impl RateSource for NoModel {
    fn next_bin(&mut self) -> f64 {
        0.0
    }
}

fn server() -> SocketAddr {
    "10.9.0.1:80".parse().unwrap()
}

fn stage(sessions: u64, part: Part, index: u32, of: u32) -> LoadStage<NoModel> {
    let population = Population::new(&PopulationOptions {
        clients: vec!["10.16.0.0/24".parse().unwrap()],
        exclude: vec![server().ip()],
        station: Station {
            index,
            of: if part == Part::All { of } else { 1 },
            answers: part != Part::Init,
        },
        seed: 7,
        ..PopulationOptions::default()
    });
    let plan = single("/", &SessionPlan::default());
    let limits = Limits {
        sessions,
        ..Limits::NONE
    };
    LoadStage::new(LoadOptions {
        population: population.unwrap(),
        script: Script::new(&plan, &Site::new("10.9.0.1")).unwrap(),
        schedule: Schedule::new(Plan::Even(Even::new(1000.0)), limits),
        server: server(),
        next_hop: server().ip(),
        tcp: TcpSettings::default(),
        sessions: SessionSettings::default(),
        seed: 7,
        has_records: true,
        part,
        share: Share { index, of },
    })
}

/// What the server sends because of a frame.
fn answers(frame: &[u8]) -> Vec<Vec<u8>> {
    if let Some(reply) = arp_reply(frame) {
        return vec![reply];
    }
    let length = u32::try_from(frame.len()).unwrap();
    let packet = decode(LinkType::ETHERNET, frame, length).unwrap();
    let Transport::Tcp(tcp) = packet.transport else {
        panic!("no TCP: {frame:?}");
    };
    assert_eq!(checksum::verify_tcp(&packet.network, &tcp), Some(true));
    let client = SocketAddr::new(packet.network.src(), tcp.src_port());
    let reply = |seq: u32, ack: SeqNumber, flags: TcpFlags, payload: &[u8]| {
        TcpFrame {
            src_mac: SERVER_MAC,
            seq: SeqNumber(seq),
            ack,
            flags,
            payload,
            ..TcpFrame::new(server(), client)
        }
        .to_vec()
    };
    let flags = tcp.flags();
    if flags.contains(TcpFlags::SYN) {
        let flags = TcpFlags::SYN | TcpFlags::ACK;
        return vec![reply(1000, tcp.seq() + 1, flags, &[])];
    }
    if tcp.payload_len > 0 {
        assert!(
            tcp.payload
                .starts_with(b"GET / HTTP/1.1\r\nHost: 10.9.0.1\r\n")
        );
        return vec![reply(
            1001,
            tcp.seq() + tcp.payload_len,
            TcpFlags::ACK,
            RESPONSE,
        )];
    }
    if flags.contains(TcpFlags::FIN) {
        let last = 1001 + u32::try_from(RESPONSE.len()).unwrap();
        let flags = TcpFlags::FIN | TcpFlags::ACK;
        return vec![reply(last, tcp.seq() + 1, flags, &[])];
    }
    Vec::new()
}

fn arp_reply(frame: &[u8]) -> Option<Vec<u8>> {
    if frame.get(12..14)? != [0x08, 0x06] {
        return None;
    }
    let (asker_mac, asker) = (frame.get(22..28)?, frame.get(28..32)?);
    let mut reply = [asker_mac, &SERVER_MAC, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2]].concat();
    reply.extend_from_slice(&SERVER_MAC);
    reply.extend_from_slice(frame.get(38..42)?);
    reply.extend_from_slice(asker_mac);
    reply.extend_from_slice(asker);
    Some(reply)
}

/// Plays stages against one server until all are done; every frame of the server reaches all of them.
fn play(stages: &mut [LoadStage<NoModel>], for_ms: u64) {
    let mut out = Frames::default();
    let mut to_server: Vec<Vec<u8>> = Vec::new();
    for stage in stages.iter_mut() {
        stage.resolve(START, &mut out);
        let answer = out.iter().find_map(arp_reply).unwrap();
        out.clear();
        stage.on_frame(&answer, Checksum::Unknown, START, START, &mut out);
        stage.begin(START);
    }
    for step in 0..for_ms * 10 {
        let now = START + Duration::from_micros(100 * step);
        for stage in stages.iter_mut() {
            stage.on_tick(now, &mut out);
        }
        while !out.is_empty() {
            to_server.extend(out.iter().map(<[u8]>::to_vec));
            out.clear();
            for answer in to_server.drain(..).flat_map(|frame| answers(&frame)) {
                for stage in stages.iter_mut() {
                    stage.on_frame(&answer, Checksum::Unknown, now, now, &mut out);
                }
            }
        }
        if stages.iter().all(LoadStage::is_done) {
            break;
        }
    }
}

fn clients_of(stage: &mut LoadStage<NoModel>) -> Vec<(u64, IpAddr)> {
    let mut batch = LoadBatch::default();
    stage.measure().take_records(&mut batch);
    let rows = batch
        .views()
        .map(|view| (view.row.session, view.row.client_ip));
    rows.collect()
}

#[test]
fn sessions_run_from_schedule_to_record() {
    let mut stages = [stage(300, Part::All, 0, 1)];
    play(&mut stages, 2000);
    let [stage] = &mut stages;
    assert!(stage.is_done());
    let figures = stage.figures();
    assert_eq!(
        (figures.planned, figures.started, figures.completed),
        (300, 300, 300)
    );
    assert_eq!(figures.failed.total(), 0);
    assert_eq!((figures.responses, figures.connections), (300, 300));
    assert_eq!(stage.tcp_counts().retransmissions, 0);
    let records = clients_of(stage);
    assert_eq!(records.len(), 300);
    // 254 clients: all of them, before one comes again.
    let all: BTreeSet<_> = records.iter().take(254).map(|(_, ip)| ip).collect();
    assert_eq!(all.len(), 254);
}

#[test]
fn one_host_begins_and_another_takes_over() {
    let mut stages = [stage(600, Part::Init, 0, 1), stage(600, Part::Stat, 0, 1)];
    play(&mut stages, 3000);
    let [init, stat] = &mut stages;
    assert_eq!(stat.figures().completed, 600, "{:?}", stat.figures().failed);
    assert_eq!(init.figures().started, 600);
    assert_eq!(
        init.tcp_counts().segments_out,
        600,
        "a SYN each, and nothing else"
    );
    assert_eq!(
        stat.tcp_counts().syn_retransmissions,
        0,
        "no SYN of its own"
    );
    assert_eq!(init.neighbour_counts().answered, 0);
}

#[test]
fn generators_share_sessions_and_clients() {
    let mut stages = [stage(200, Part::All, 0, 2), stage(200, Part::All, 1, 2)];
    play(&mut stages, 2000);
    let [one, other] = &mut stages;
    assert_eq!(
        (one.figures().completed, other.figures().completed),
        (100, 100)
    );
    assert_eq!(one.tcp_counts().strays + other.tcp_counts().strays, 0);
    let (one, other) = (clients_of(one), clients_of(other));
    assert!(one.iter().all(|(session, _)| session % 2 == 0));
    assert!(other.iter().all(|(session, _)| session % 2 == 1));
    let clients = |records: &[(u64, IpAddr)]| -> BTreeSet<IpAddr> {
        records.iter().map(|(_, ip)| *ip).collect()
    };
    assert!(clients(&one).is_disjoint(&clients(&other)));
}

#[test]
fn what_is_for_nobody_is_counted_and_not_answered() {
    let mut stage = stage(1, Part::All, 0, 1);
    let mut out = Frames::default();
    stage.resolve(START, &mut out);
    out.clear();
    let syn = TcpFrame::new(server(), "10.16.0.9:1024".parse().unwrap()).to_vec();
    let mut broken = syn.clone();
    broken[40] ^= 1;
    let elsewhere = TcpFrame::new(server(), "10.17.0.9:1024".parse().unwrap()).to_vec();
    let somebody = "10.9.0.2:80".parse().unwrap();
    let stranger = TcpFrame::new(somebody, "10.16.0.9:1024".parse().unwrap()).to_vec();
    for frame in [&broken, &elsewhere, &stranger, &vec![0; 13]] {
        stage.on_frame(frame, Checksum::Unknown, START, START, &mut out);
    }
    assert!(out.is_empty());
    let counts = stage.frame_counts();
    assert_eq!(
        (counts.bad_checksum, counts.others, counts.malformed),
        (1, 2, 1)
    );
    stage.on_frame(&syn, Checksum::Unknown, START, START, &mut out);
    assert_eq!(out.len(), 1, "a segment of no connection gets a RST");
}

#[test]
fn a_run_that_ends_ends_its_sessions() {
    let mut stage = stage(10, Part::All, 0, 1);
    let mut out = Frames::default();
    stage.resolve(START, &mut out);
    let answer = out.iter().find_map(arp_reply).unwrap();
    stage.on_frame(&answer, Checksum::Unknown, START, START, &mut out);
    stage.begin(START);
    let later = START + Duration::from_secs(1);
    stage.on_tick(later, &mut out);
    assert_eq!(stage.open_sessions(), 10);
    stage.end(later, &mut out);
    assert!(stage.is_done());
    assert_eq!(stage.figures().failed.of(Failure::RunEnded), 10);
    assert_eq!(stage.open_connections(), 0);
}

/// A stage whose next hop is known, and whose schedule begins at [`START`].
fn begun(sessions: u64) -> (LoadStage<NoModel>, Frames) {
    let mut stage = stage(sessions, Part::All, 0, 1);
    let mut out = Frames::default();
    stage.resolve(START, &mut out);
    let answer = out.iter().find_map(arp_reply).unwrap();
    out.clear();
    stage.on_frame(&answer, Checksum::Unknown, START, START, &mut out);
    stage.begin(START);
    (stage, out)
}

#[test]
fn a_schedule_that_is_far_behind_is_caught_up_with_in_steps() {
    let (mut stage, mut out) = begun(3000);
    let late = START + Duration::from_secs(4);
    for round in 1..=3000_usize.div_ceil(STARTS) {
        assert!(stage.is_behind(late));
        // The next moment is not later than now, so nobody sleeps in between.
        assert!(stage.next_deadline().is_some_and(|next| next <= late));
        stage.on_tick(late, &mut out);
        let expected = (round * STARTS).min(3000);
        assert_eq!(stage.open_sessions(), expected);
        assert_eq!(stage.figures().started, expected as u64);
    }
    assert!(!stage.is_behind(late));
}

#[test]
fn behind_a_next_hop_that_falls_silent_sessions_time_out() {
    let (mut stage, mut out) = begun(2000);
    // It never answers again, not even who it is: 1,000 sessions a second go out in vain.
    let at = |ms: u64| START + Duration::from_millis(ms);
    for ms in (0..=1990).step_by(10) {
        stage.on_tick(at(ms), &mut out);
        out.clear();
    }
    let open = stage.open_sessions() as u64;
    stage.end(at(1990), &mut out);
    let failed = |failure| stage.figures().failed.of(failure);
    // Those of the first 490 ms have waited for 1.5 s; of the others nobody knows.
    assert_eq!(failed(Failure::ConnectTimeout), 491);
    assert_eq!(failed(Failure::RunEnded), open - 491);
    assert_eq!(failed(Failure::Unreachable), stage.figures().planned - open);
    assert!(stage.is_done());
}
