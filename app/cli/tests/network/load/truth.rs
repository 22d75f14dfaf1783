//! The same sessions seen four times: by nginx, by the generator, by `linkweir http` on a capture at the
//! server, and by the generator's own capture.

use super::site;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use linkweir_testkit::load::{Place, SERVER};
use linkweir_testkit::netns::until;
use serde_json::Value;
use site::{PATIENCE, Site, number, url};

/// Sessions of the run.
const SESSIONS: usize = 300;
/// Closest two clocks are read of the same moment: both are the kernel's, but a tick of its correction
/// may fall between.
const CORRECTION_NS: u64 = 20_000;
/// What the middle one of the differences may be: two ways through a veth pair, on a busy machine.
const MIDDLE_NS: u64 = 3_000_000;

/// Records of `linkweir http` by the client's socket.
fn transactions(site: &Site, capture: &str) -> BTreeMap<SocketAddr, Value> {
    let records = format!("{capture}.jsonl");
    let words = ["http", "-q", "--ttlb", "-r", capture, "-w", &records];
    let output = site.linkweir(Place::Server, &words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{capture}: {said}");
    let text = fs::read_to_string(site.path(&records)).unwrap();
    let records = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let by_socket: BTreeMap<_, _> = records
        .map(|one: Value| (site::socket(&one), one))
        .collect();
    assert_eq!(by_socket.len(), text.lines().count());
    by_socket
}

/// What tshark says of the packets of a capture that a filter takes, a line each.
fn tshark(site: &Site, capture: &str, filter: &str, fields: &[&str]) -> Vec<String> {
    let output = Command::new("tshark")
        .args(["-n", "-r"])
        .arg(site.path(capture))
        .args([
            "-o",
            "tcp.check_checksum:TRUE",
            "-o",
            "ip.check_checksum:TRUE",
        ])
        .args(["-Y", filter, "-T", "fields"])
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// A wait is never shorter for who is further away, and as a rule not much longer.
#[track_caller]
fn agree(name: &str, pairs: &[(u64, u64)]) {
    let mut differences: Vec<u64> = Vec::new();
    for (near, far) in pairs {
        assert!(
            far + CORRECTION_NS >= *near,
            "{name}: {near} at the server, {far} at the client"
        );
        differences.push(far.saturating_sub(*near));
    }
    differences.sort_unstable();
    let middle = differences[differences.len() / 2];
    assert!(middle < MIDDLE_NS, "{name}: {middle} ns");
}

#[test]
fn four_witnesses_agree_session_by_session() {
    let Some(site) = Site::open(&["tcpdump", "tshark"]) else {
        return;
    };
    site.nginx.put("file", &vec![b'f'; 30_000]).unwrap();
    // Four kinds of sessions of one request each, in turn.
    let script = site.put("script", "/small\n\n/moved\n\n/none\n\n/file\n");
    let tcpdump = site.record("server.pcap");
    let words = format!(
        "--clients 10.128.0.0/12 --arrivals poisson:200 --sessions {SESSIONS} --script {script} --pcap own.pcap"
    );
    let load = site.load("run", &url("/"), &words);
    load.completes(SESSIONS);
    let visits = site.visits(SESSIONS);
    let ends = || tshark(&site, "server.pcap", "tcp", &["frame.number"]).len();
    let own_frames = tshark(&site, "own.pcap", "tcp", &["frame.number"]).len();
    assert!(until(PATIENCE, || ends() >= own_frames));
    tcpdump.finish().unwrap();

    // Every segment that the generator saw the server saw too; the last connections may still be
    // closing when the run is over.
    let closing = ends() - own_frames;
    assert!(closing <= 40, "{closing} more at the server");
    let counted = load.count("tcp.segments_sent") + load.count("tcp.segments_received");
    assert_eq!(u64::try_from(own_frames).unwrap(), counted);

    let records = load.by_socket();
    let server = transactions(&site, "server.pcap");
    let own = transactions(&site, "own.pcap");
    assert_eq!((server.len(), own.len()), (SESSIONS, SESSIONS));
    let (mut first_bytes, mut last_bytes, mut at_nginx) = (Vec::new(), Vec::new(), Vec::new());
    for visit in &visits {
        let socket = SocketAddr::new(visit.client, visit.port);
        let record = records
            .get(&socket)
            .unwrap_or_else(|| panic!("no record of {visit:?}"));
        let (near, far) = (&server[&socket], &own[&socket]);
        for other in [*record, near, far] {
            assert_eq!(
                number(other, "status_code"),
                u64::from(visit.status),
                "{other}"
            );
        }
        assert_eq!(near["uri"], visit.target.as_str());
        assert_eq!(number(record, "response_bytes"), visit.bytes);
        first_bytes.push((
            number(near, "response_time_ns"),
            number(record, "first_byte_ns"),
        ));
        last_bytes.push((number(near, "ttlb_ns"), number(record, "service_time_ns")));
        // nginx rounds to a millisecond, up or down, at both ends.
        let seconds = Duration::from_secs_f64(visit.seconds);
        let seconds = seconds.saturating_sub(Duration::from_millis(2));
        let nanos = u64::try_from(seconds.as_nanos()).unwrap();
        at_nginx.push((nanos, number(record, "service_time_ns")));
    }
    agree("first byte", &first_bytes);
    agree("last byte", &last_bytes);
    agree("nginx", &at_nginx);
}

#[test]
fn tshark_finds_no_fault_where_none_was_emulated() {
    let Some(site) = Site::open(&["tcpdump", "tshark"]) else {
        return;
    };
    site.nginx.put("file", &vec![b'f'; 60_000]).unwrap();
    let script = site.put(
        "script",
        "/page think=0.05\n    /one.png\n    /two.png\n/chunked/file\n\n/file\n/close/file\n/small\n",
    );
    let tcpdump = site.record("server.pcap");
    // Far enough away that the server waits: after a round trip of microseconds it would send
    // again what a generator, on a busy machine, has not come to for some milliseconds.
    let words = format!(
        "--clients 10.128.0.0/16 --arrivals poisson:100 --sessions 60 --script {script} --line rtt=100ms"
    );
    let load = site.load("run", &url("/"), &words);
    load.completes(60);
    tcpdump.finish().unwrap();
    // Everything that the kernel's own TCP would not have done either.
    let faults = "tcp.analysis.flags || tcp.checksum.status == 0 || ip.checksum.status == 0 || \
                  _ws.malformed || tcp.flags.reset == 1";
    let fields = ["frame.number", "ip.src", "tcp.port", "_ws.expert.message"];
    let found = tshark(&site, "server.pcap", faults, &fields);
    // A window update is reported, and is not a fault. Nor is it one that the kernel of the server writes a checksum of zero
    // as 0xffff, the same number in one's complement (RFC 1624): one segment in 65,536 has it.
    let kernels = format!("\t{}\t", SERVER);
    let is_fault = |line: &&String| {
        let is_same_sum = line.contains(&kernels) && line.contains("0xffff instead of 0x0000");
        !line.contains("window update") && !is_same_sum
    };
    let found: Vec<&String> = found.iter().filter(is_fault).collect();
    assert!(found.is_empty(), "{found:#?}");
    let kinds = tshark(
        &site,
        "server.pcap",
        "http.response.code == 200",
        &["frame.number"],
    );
    assert!(kinds.len() >= 60);
    assert_eq!(
        load.count("tcp.retransmissions") + load.count("tcp.out_of_order"),
        0
    );
    assert_eq!(
        load.count("tcp.resets_sent") + load.count("tcp.resets_received"),
        0
    );
}

#[test]
fn what_is_emulated_is_seen() {
    let Some(site) = Site::open(&["tcpdump", "tshark"]) else {
        return;
    };
    site.nginx.put("file", &vec![b'f'; 20_000]).unwrap();
    let tcpdump = site.record("server.pcap");
    // One group far away, and one near.
    let words = "--clients 10.128.0.0/16 --arrivals constant:100 --sessions 100 \
                 --group far:10.128.0.0/17:rtt=80ms,ttl=44 --report run.html";
    let load = site.load("run", &url("/file"), words);
    load.completes(100);
    // In the words that it was asked for.
    let page = fs::read_to_string(site.path("run.html")).unwrap();
    assert!(
        page.contains(">far 10.128.0.0/17: rtt=80ms,ttl=44<"),
        "{page}"
    );
    tcpdump.finish().unwrap();
    let times = tshark(
        &site,
        "server.pcap",
        "ip.dst == 172.31.0.1 && tcp.analysis.initial_rtt && http.request",
        &["ip.src", "tcp.analysis.initial_rtt", "ip.ttl"],
    );
    assert_eq!(times.len(), 100);
    for line in times {
        let cells: Vec<&str> = line.split('\t').collect();
        let [client, seconds, ttl] = cells.as_slice() else {
            panic!("{line}")
        };
        let third: u8 = client.split('.').nth(2).unwrap().parse().unwrap();
        let seconds: f64 = seconds.parse().unwrap();
        if third < 128 {
            assert!(seconds >= 0.079 && *ttl == "44", "{line}");
        } else {
            assert!(*ttl != "44", "{line}");
        }
    }
    for record in &load.records {
        let is_far = record["client_group"] == "far";
        let service = number(record, "service_time_ns");
        assert!(!is_far || service >= 79_000_000, "{record}");
    }
    assert!(
        load.records
            .iter()
            .any(|record| record["client_group"] == "far")
    );
}
