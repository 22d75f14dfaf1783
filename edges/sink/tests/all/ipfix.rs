//! IPFIX against programs of others: nfcapd takes the flows and nfdump reads them back, tshark takes
//! every message apart.
#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and waits for programs of others by the clock"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use linkweir_engine::{Sink, SinkError};
use linkweir_record::flow::{
    Extent, FlowBatch, FlowKind, FlowRow, FlowSide, FlowState, FlowText, Protocol, RttRow,
};
use linkweir_record::{HttpKind, RecordBatch};
use linkweir_sink::{OutputOptions, open_ipfix, open_sink};

/// The time of the flows of the tests, seconds since the epoch.
const START_S: u64 = 1_700_000_000;

fn wall_clock_ns() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap().as_nanos().try_into().unwrap()
}

fn options() -> OutputOptions {
    OutputOptions {
        wall_clock_ns,
        ..OutputOptions::default()
    }
}

/// Whether programs are there; says loudly what is not tested where they are not.
fn has(programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_missing = |program: &&&str| {
        !std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
    };
    let missing: Vec<_> = programs.iter().filter(is_missing).collect();
    if !missing.is_empty() {
        eprintln!("SKIPPED: needs {missing:?} (scripts/setup.sh test installs them)");
    }
    missing.is_empty()
}

/// Ends a child by its id, if a test fails before it does.
struct Ends(Child);

impl Ends {
    fn terminate(&mut self) {
        let pid = self.0.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
        self.0.wait().unwrap();
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_there() {
        assert!(Instant::now() < end, "{what} does not come");
        thread::sleep(Duration::from_millis(20));
    }
}

fn side(ip: IpAddr, port: u16, n: u64, is_tcp: bool) -> FlowSide {
    FlowSide {
        ip,
        port,
        pkts_all: 3 + n,
        ip_bytes: 1_000 + 1_500 * n,
        syn_cnt: u64::from(is_tcp),
        ack_cnt: if is_tcp { 2 + n } else { 0 },
        fin_cnt: u64::from(is_tcp && n.is_multiple_of(2)),
        ttl_min: 57,
        ttl_max: 64,
        pkts_retx: n % 5,
        rtt: RttRow {
            count: 7,
            avg_ns: 25_000_000 + n * 1_000,
            min_ns: 20_000_000,
            max_ns: 90_000_000,
            std_ns: 1_000_000,
        },
        anomalies: std::array::from_fn(|class| class as u64 + n % 3),
        ..FlowSide::default()
    }
}

/// Flow `n`: TCP and UDP, IPv4 and IPv6 in turn.
fn flow(n: u16) -> FlowRow {
    let is_tcp = n.is_multiple_of(2);
    let [client, server]: [IpAddr; 2] = if n % 4 < 2 {
        let [high, low] = n.to_be_bytes();
        [
            Ipv4Addr::new(10, 1, high, low).into(),
            Ipv4Addr::new(192, 0, 2, low).into(),
        ]
    } else {
        let address = |group| Ipv6Addr::new(0x2001, 0xdb8, group, 0, 0, 0, 0, n + 1);
        [address(1).into(), address(2).into()]
    };
    let start_ns = (START_S * 1_000 + u64::from(n) * 10) * 1_000_000;
    FlowRow {
        flow_id: 0x1000_0000_0000 + u64::from(n),
        first_ns: start_ns,
        start_ns,
        last_ns: start_ns + (1_000 + u64::from(n)) * 1_000_000,
        protocol: if is_tcp { Protocol::Tcp } else { Protocol::Udp },
        state: if is_tcp {
            FlowState::Closed
        } else {
            FlowState::Idle
        },
        has_syn: is_tcp,
        client: side(client, 20_000 + n, n.into(), is_tcp),
        server: side(
            server,
            if is_tcp { 443 } else { 53 },
            u64::from(n) * 3,
            is_tcp,
        ),
        vlan: Some(7),
        application: if is_tcp { "tls" } else { "dns" },
        syn_ack_ns: is_tcp.then_some(21_000_000),
        ..FlowRow::default()
    }
}

const COUNT: u16 = 400;

fn write_all(sink: &mut dyn Sink<FlowKind>, rows: impl Iterator<Item = FlowRow>) {
    let mut batch = FlowBatch::default();
    for row in rows {
        batch.clear();
        let text = FlowText {
            sni: b"www.example.org",
            ..FlowText::default()
        };
        batch.push(row, &text);
        sink.write(&batch).unwrap();
    }
}

/// Takes messages on a port of its own and passes them on to a collector, so that both the collector
/// and tshark see the same.
struct Relay {
    socket: UdpSocket,
    to: Option<u16>,
}

impl Relay {
    fn new(to: Option<u16>) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        Self { socket, to }
    }

    fn destination(&self) -> String {
        format!("ipfix://{}", self.socket.local_addr().unwrap())
    }

    /// The messages until `is_done` and nothing comes any more.
    fn run(&self, is_done: &AtomicBool) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        let mut buffer = vec![0; 65_536];
        loop {
            let ended = is_done.load(Ordering::Acquire);
            match self.socket.recv(&mut buffer) {
                Ok(length) => {
                    let message = buffer[..length].to_vec();
                    if let Some(port) = self.to {
                        self.socket.send_to(&message, ("127.0.0.1", port)).unwrap();
                    }
                    messages.push(message);
                }
                Err(_) if ended => return messages,
                Err(_) => {}
            }
        }
    }
}

/// Runs `work` with a sink to a relay; gives what was sent.
fn relayed(
    to: Option<u16>,
    options: OutputOptions,
    work: impl FnOnce(&mut dyn Sink<FlowKind>),
) -> Vec<Vec<u8>> {
    let relay = Relay::new(to);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let messages = scope.spawn(|| relay.run(&is_done));
        let mut sink = open_ipfix(&relay.destination(), options).unwrap();
        work(&mut *sink);
        sink.finish().unwrap();
        assert_eq!(sink.losses().count, 0);
        is_done.store(true, Ordering::Release);
        messages.join().unwrap()
    })
}

fn free_udp_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

fn is_bound(port: u16) -> bool {
    let wanted = format!(":{port:04X} ");
    fs::read_to_string("/proc/net/udp")
        .unwrap()
        .contains(&wanted)
}

/// Messages as a capture of raw IPv4 packets to UDP port 4739.
fn write_pcap(path: &Path, messages: &[Vec<u8>]) {
    let mut pcap = Vec::new();
    let header: [u32; 6] = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101];
    pcap.extend(header.iter().flat_map(|word| word.to_le_bytes()));
    for message in messages {
        let udp = u16::try_from(message.len() + 8).unwrap();
        let mut packet = vec![0x45, 0];
        packet.extend((udp + 20).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        packet.extend([0x9c, 0x40, 0x12, 0x83]);
        packet.extend(udp.to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(message);
        let length = u32::try_from(packet.len()).unwrap();
        let record = [u32::try_from(START_S).unwrap(), 0, length, length];
        pcap.extend(record.iter().flat_map(|word| word.to_le_bytes()));
        pcap.extend(packet);
    }
    fs::write(path, pcap).unwrap();
}

fn tshark(pcap: &Path, arguments: &[&str]) -> String {
    let output = Command::new("tshark")
        .args(["-n", "-d", "udp.port==4739,cflow", "-r"])
        .arg(pcap)
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What both directions of a flow carried, by addresses and ports.
type Carried = BTreeMap<(String, String, u16, u16), [u64; 4]>;

fn expected(rows: impl Iterator<Item = FlowRow>) -> Carried {
    rows.map(|row| {
        let (c, s) = (row.client, row.server);
        let key = (c.ip.to_string(), s.ip.to_string(), c.port, s.port);
        (key, [c.pkts_all, c.ip_bytes, s.pkts_all, s.ip_bytes])
    })
    .collect()
}

#[test]
fn nfcapd_takes_every_flow_in_both_directions() {
    if !has(&["nfcapd", "nfdump"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let port = free_udp_port();
    let mut collector = Ends(
        Command::new("nfcapd")
            .args([
                "-b",
                "127.0.0.1",
                "-p",
                &port.to_string(),
                "-B",
                "4000000",
                "-w",
            ])
            .arg(directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    wait_for("nfcapd", || is_bound(port));
    relayed(Some(port), options(), |sink| {
        write_all(sink, (0..COUNT).map(flow));
    });
    // nfcapd reads on while it is reported to end; what is in its socket by then it has read.
    wait_for("the end of its queue", || {
        let wanted = format!(":{port:04X} ");
        let table = fs::read_to_string("/proc/net/udp").unwrap();
        table
            .lines()
            .find(|line| line.contains(&wanted))
            .and_then(|line| line.split_whitespace().nth(4))
            .is_some_and(|queues| queues.ends_with(":00000000"))
    });
    collector.terminate();
    let output = Command::new("nfdump")
        .args([
            "-q",
            "-6",
            "-N",
            "-o",
            "fmt:%sa,%da,%sp,%dp,%ipkt,%ibyt,%opkt,%obyt,%pr,%flg,%ts,%te,%svln",
            "-R",
        ])
        .arg(directory.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut seen = Carried::new();
    for line in text.lines().filter(|line| line.contains(',')) {
        let cells: Vec<_> = line.split(',').map(str::trim).collect();
        let number = |at: usize| {
            cells[at]
                .parse::<u64>()
                .unwrap_or_else(|_| panic!("{line}"))
        };
        let ip = |at: usize| cells[at].parse::<IpAddr>().unwrap().to_string();
        let port = |at: usize| number(at) as u16;
        let counts = [number(4), number(5), number(6), number(7)];
        let is_new = seen
            .insert((ip(0), ip(1), port(2), port(3)), counts)
            .is_none();
        assert!(is_new, "twice: {line}");
        let n = port(2) - 20_000;
        let row = flow(n);
        assert_eq!(number(8), u64::from(row.protocol.number()), "{line}");
        if row.protocol == Protocol::Tcp {
            assert_eq!(cells[9], "...A..SF", "{line}");
        }
        assert!(
            cells[10].ends_with(&format!(".{:03}", u64::from(n) * 10 % 1_000)),
            "{line}"
        );
        assert_eq!(number(12), 7, "{line}");
    }
    assert_eq!(
        seen.len(),
        usize::from(COUNT),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(seen, expected((0..COUNT).map(flow)));
}

/// Every value that tshark finds for a field, over all messages.
fn values(pcap: &Path, field: &str) -> Vec<String> {
    tshark(
        pcap,
        &[
            "-T",
            "fields",
            "-E",
            "occurrence=a",
            "-E",
            "aggregator=,",
            "-e",
            field,
        ],
    )
    .lines()
    .flat_map(|line| line.split(','))
    .filter(|value| !value.is_empty())
    .map(str::to_owned)
    .collect()
}

#[test]
fn tshark_finds_nothing_wrong_and_every_field() {
    if !has(&["tshark"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let pcap = directory.path().join("messages.pcap");
    let messages = relayed(None, options(), |sink| {
        write_all(sink, (0..COUNT).map(flow));
    });
    assert!(messages.iter().all(|message| message.len() <= 1_400));
    write_pcap(&pcap, &messages);
    // Among the warnings: malformed data, unknown templates, gaps in the sequence numbers.
    let expert = tshark(&pcap, &["-q", "-z", "expert"]);
    assert_eq!(expert.trim(), "", "{expert}");
    let rows: Vec<_> = (0..COUNT).map(flow).collect();
    let of = |is_v6: bool| {
        rows.iter()
            .filter(move |row| row.client.ip.is_ipv6() == is_v6)
    };
    let texts = |values: Vec<u64>| values.iter().map(u64::to_string).collect::<Vec<_>>();
    let addresses = |is_v6| {
        of(is_v6)
            .map(|row| row.client.ip.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(values(&pcap, "cflow.srcaddr"), addresses(false));
    assert_eq!(values(&pcap, "cflow.srcaddrv6"), addresses(true));
    let ports = rows.iter().map(|row| row.server.port.into()).collect();
    assert_eq!(values(&pcap, "cflow.dstport"), texts(ports));
    let octets = rows
        .iter()
        .flat_map(|row| [row.client.ip_bytes, row.server.ip_bytes]);
    assert_eq!(values(&pcap, "cflow.octets"), texts(octets.collect()));
    let packets = rows
        .iter()
        .flat_map(|row| [row.client.pkts_all, row.server.pkts_all]);
    assert_eq!(values(&pcap, "cflow.packets"), texts(packets.collect()));
    let ids = rows.iter().map(|row| row.flow_id).collect();
    assert_eq!(values(&pcap, "cflow.flow_id"), texts(ids));
    let names = rows
        .iter()
        .map(|row| row.application.to_owned())
        .collect::<Vec<_>>();
    assert_eq!(values(&pcap, "cflow.appl_name"), names);
    // What the exporter says at its end: every flow went out.
    let exported = values(&pcap, "cflow.flowsexp");
    assert_eq!(exported.last(), Some(&COUNT.to_string()));
    // Round-trip times in microseconds, as elements of an enterprise.
    let private = values(&pcap, "cflow.enterprise_private_entry");
    let mean = 25_000_u32
        .to_be_bytes()
        .map(|byte| format!("{byte:02x}"))
        .concat();
    assert!(
        private.iter().any(|value| value.replace(':', "") == mean),
        "{private:?}"
    );
    let sni = b"www.example.org"
        .map(|byte| format!("{byte:02x}"))
        .concat();
    assert!(private.iter().any(|value| value.replace(':', "") == sni));
}

#[test]
fn partial_records_go_out_instead_of_final_ones() {
    if !has(&["tshark"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let pcap = directory.path().join("messages.pcap");
    let rows = || {
        let partial = |n| FlowRow {
            extent: Extent::Partial,
            state: FlowState::Open,
            ..flow(n)
        };
        [partial(1), partial(1), flow(1)].into_iter()
    };
    for (has_partial_records, reasons) in [(true, ["2", "2"].as_slice()), (false, &["1"])] {
        let options = OutputOptions {
            has_partial_records,
            ..options()
        };
        let messages = relayed(None, options, |sink| write_all(sink, rows()));
        write_pcap(&pcap, &messages);
        assert_eq!(values(&pcap, "cflow.flow_end_reason"), reasons);
    }
}

#[test]
fn templates_come_again_by_time_and_by_messages() {
    use std::sync::atomic::AtomicU64;
    static NOW_S: AtomicU64 = AtomicU64::new(START_S);
    let clock = OutputOptions {
        wall_clock_ns: || NOW_S.load(Ordering::Relaxed) * 1_000_000_000,
        ..options()
    };
    let has_template = |message: &Vec<u8>| message[16..18] == [0, 2];
    let messages = relayed(None, clock.clone(), |sink| {
        for step in [0, 1, 599, 1, 1] {
            NOW_S.fetch_add(step, Ordering::Relaxed);
            write_all(sink, [flow(1)].into_iter());
            sink.flush().unwrap();
            // Sent before the clock goes on.
            thread::sleep(Duration::from_millis(40));
        }
    });
    let starts: Vec<_> = messages.iter().map(has_template).collect();
    let sets: Vec<_> = starts.iter().filter(|is| **is).collect();
    assert!(sets.len() >= 2, "{starts:?}");
    let export: Vec<_> = messages
        .iter()
        .filter(|message| has_template(message))
        .map(|message| u32::from_be_bytes(message[4..8].try_into().unwrap()))
        .map(|at| u64::from(at) - START_S)
        .collect();
    assert!(
        export.contains(&0) && export.contains(&600) && !export.contains(&601),
        "{export:?}"
    );
    let messages = relayed(None, clock, |sink| {
        // At most sixteen such flows fit into a message.
        for _ in 0..160 {
            write_all(sink, std::iter::repeat_n(flow(1), 100));
            sink.flush().unwrap();
            thread::sleep(Duration::from_millis(1));
        }
    });
    let again = messages
        .iter()
        .skip(900)
        .filter(|message| has_template(message));
    assert!(again.count() >= 1);
}

#[test]
fn a_collector_that_is_away_is_counted_and_told_once() {
    let port = free_udp_port();
    let mut sink = open_ipfix(&format!("ipfix://127.0.0.1:{port}"), options()).unwrap();
    for n in 0..10 {
        write_all(&mut *sink, [flow(n)].into_iter());
        sink.flush().unwrap();
        // A message each.
        thread::sleep(Duration::from_millis(5));
    }
    wait_for("the refusal", || sink.losses().count > 0);
    let losses = sink.losses();
    assert!(losses.count > 0 && losses.count <= 10, "{losses:?}");
    let first = losses.first.unwrap();
    assert!(
        first.contains("refused") && first.contains(&port.to_string()),
        "{first}"
    );
    // It comes up late, and understands what it gets from then on.
    let late = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    late.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    write_all(&mut *sink, [flow(1)].into_iter());
    sink.flush().unwrap();
    let mut buffer = [0; 2_000];
    late.recv(&mut buffer).unwrap();
    assert_eq!(buffer[16..18], [0, 2], "the templates first");
    sink.finish().unwrap();
}

#[test]
fn tcp_carries_the_same_and_comes_back_after_a_break() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut sink = open_ipfix(&format!("ipfix+tcp://{address}"), options()).unwrap();
    let (first, _) = listener.accept().unwrap();
    drop(first);
    // The system needs a write to notice, the next one fails.
    wait_for("the break", || {
        write_all(&mut *sink, (0..4).map(flow));
        sink.flush().unwrap();
        thread::sleep(Duration::from_millis(5));
        sink.losses().count > 0
    });
    let lost = sink.losses().count;
    let reader = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        all
    });
    write_all(&mut *sink, (0..COUNT).map(flow));
    sink.finish().unwrap();
    assert_eq!(
        sink.losses().count,
        lost,
        "what comes after the break waits"
    );
    drop(sink);
    let all = reader.join().unwrap();
    let mut messages = Vec::new();
    let mut left = all.as_slice();
    while !left.is_empty() {
        let length = usize::from(u16::from_be_bytes([left[2], left[3]]));
        let (message, rest) = left.split_at(length);
        messages.push(message.to_vec());
        left = rest;
    }
    assert_eq!(messages[0][8..12], [0; 4], "a new session counts from zero");
    if has(&["tshark"]) {
        let directory = tempfile::tempdir().unwrap();
        let pcap = directory.path().join("messages.pcap");
        write_pcap(&pcap, &messages);
        assert_eq!(tshark(&pcap, &["-q", "-z", "expert"]).trim(), "");
        let ids = values(&pcap, "cflow.flow_id");
        let last = ids.iter().rev().take(usize::from(COUNT)).rev();
        assert!(
            last.eq((0..COUNT)
                .map(|n| flow(n).flow_id.to_string())
                .collect::<Vec<_>>()
                .iter())
        );
    }
}

#[test]
fn what_cannot_be_exported_is_refused() {
    let refused = |destination: &str| match open_ipfix(destination, options()) {
        Err(SinkError::Refused { message, .. }) => message,
        Err(error) => panic!("{error:?}"),
        Ok(_) => panic!("{destination} is opened"),
    };
    for wrong in [
        "ipfix://",
        "ipfix://host",
        "ipfix://host:",
        "ipfix://host:0",
        "ipfix://::1:99",
        "ipfix://:4739",
    ] {
        assert!(refused(wrong).contains("host:port"), "{wrong}");
    }
    let other = open_sink::<HttpKind>("ftp://host:1", None, options());
    assert!(
        matches!(other, Err(SinkError::Refused { message, .. }) if message.contains("there are elasticsearch, "))
    );
    let near = open_sink::<HttpKind>("elastic://host/web", None, options());
    assert!(
        matches!(near, Err(SinkError::Refused { message, .. }) if message.contains("did you mean `elasticsearch://`"))
    );
    let http = open_sink::<HttpKind>("ipfix://127.0.0.1:4739", None, options());
    assert!(matches!(http, Err(SinkError::Refused { message, .. }) if message.contains("http")));
    let nobody = open_ipfix("ipfix+tcp://127.0.0.1:1", options());
    assert!(matches!(nobody, Err(SinkError::Io { .. })));
    let v6 = open_ipfix("ipfix://[::1]:4739/", options());
    assert!(
        v6.is_ok() || matches!(v6, Err(SinkError::Io { .. })),
        "{:?}",
        v6.err()
    );
}
