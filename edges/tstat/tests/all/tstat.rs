//! Tstat's tree as users of its logs read it: by the names in the headers.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use linkweir_engine::{Sink, SinkError};
use linkweir_record::flow::{
    Extent, FlowBatch, FlowKind, FlowRow, FlowSide, FlowState, FlowText, MessageKind, MessageRow,
    Protocol, RttRow,
};
use linkweir_sink::Existing;
use linkweir_sketch::Step;
use linkweir_sketch::step::HistogramId;
use linkweir_tstat::{TstatOptions, open_histograms, open_tstat};

const SECOND: u64 = 1_000_000_000;
/// 2026-11-21 00:50:22 UTC.
const START: u64 = 1_795_222_222 * SECOND;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The flow of the sample in our notes on Tstat's logs.
fn sample() -> FlowRow {
    let first_ns = 1_795_222_198_122_188_000;
    let side = |address: &str, port| FlowSide {
        ip: ip(address),
        port,
        is_internal: true,
        syn_cnt: 1,
        fin_cnt: 1,
        ..FlowSide::default()
    };
    FlowRow {
        first_ns,
        start_ns: first_ns,
        last_ns: 1_795_222_198_259_855_000,
        state: FlowState::Closed,
        has_syn: true,
        con_t: 1,
        client: FlowSide {
            pkts_all: 45,
            ack_cnt: 44,
            ack_cnt_p: 3,
            bytes_uniq: 3418,
            pkts_data: 40,
            bytes_all: 3418,
            first_ns: Some(210_000),
            ..side("10.77.0.9", 45044)
        },
        server: FlowSide {
            pkts_all: 43,
            ack_cnt: 43,
            ack_cnt_p: 1,
            bytes_uniq: 9624,
            pkts_data: 40,
            bytes_all: 9624,
            ..side("10.77.0.1", 80)
        },
        ..FlowRow::default()
    }
}

fn flow_at(end_ns: u64) -> FlowRow {
    FlowRow {
        first_ns: end_ns - SECOND,
        start_ns: end_ns - SECOND,
        last_ns: end_ns,
        ..sample()
    }
}

/// Columns of each line of a log by the names in its header, which must be as many.
fn read(path: &Path, separator: char) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let header = lines.next().unwrap();
    let names: Vec<_> = header
        .trim_start_matches(|c: char| c == '#' || c.is_ascii_digit())
        .split(separator)
        .zip(1..)
        .map(|(column, number)| {
            let (name, n) = column.split_once(':').unwrap();
            assert_eq!(n.parse::<usize>().unwrap(), number, "{header}");
            name.to_owned()
        })
        .collect();
    lines
        .map(|line| {
            let columns: Vec<_> = line.split(separator).map(str::to_owned).collect();
            assert_eq!(columns.len(), names.len(), "{}: {line}", path.display());
            assert!(columns.iter().all(|column| !column.is_empty()), "{line}");
            names.iter().cloned().zip(columns).collect()
        })
        .collect()
}

fn directories(dir: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    all.sort();
    all
}

fn names(dir: &Path) -> Vec<String> {
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    directories(dir).iter().map(name).collect()
}

fn write(dir: &Path, options: TstatOptions, batches: &[FlowBatch]) {
    let mut sink = open_tstat(dir, options).unwrap();
    for batch in batches {
        sink.write(batch).unwrap();
    }
    sink.finish().unwrap();
    sink.finish().unwrap();
}

fn batch(rows: &[FlowRow]) -> FlowBatch {
    let mut batch = FlowBatch::default();
    for row in rows {
        batch.push(*row, &FlowText::default());
    }
    batch
}

#[test]
fn lines_are_those_of_tstat() {
    let dir = tempfile::tempdir().unwrap();
    let mut open = sample();
    open.state = FlowState::Open;
    write(
        dir.path(),
        TstatOptions::default(),
        &[batch(&[sample(), open])],
    );
    assert_eq!(names(dir.path()), ["2026_11_21_00_49.out"]);
    let directory = &directories(dir.path())[0];
    assert_eq!(
        names(directory),
        [
            "log_dns_complete",
            "log_http_complete",
            "log_mm_complete",
            "log_tcp_complete",
            "log_tcp_nocomplete",
            "log_udp_complete"
        ]
    );
    let text = fs::read_to_string(directory.join("log_tcp_complete")).unwrap();
    let core = "10.77.0.9 45044 45 0 44 3 3418 40 3418 0 0 0 1 1 10.77.0.1 80 43 0 43 1 9624 40 9624 \
                0 0 0 1 1 1795222198122.187988 1795222198259.854980 137.667000 0.210000 0.000000 \
                0.000000 0.000000 0.000000 0.000000 1 1 0 0 1 0 0";
    let end_to_end = format!("{}{}", " 0.000000".repeat(4), " 0".repeat(3));
    let layer7 = " --- 0 0 - - 0 0 0 0.000000 0.000000 0.000000 0.000000 0 0 - - 0.0 0.0 - - - 0";
    let rest = format!("{end_to_end}{end_to_end}{}{layer7}\n", " 0".repeat(54));
    let line = text.lines().nth(1).unwrap();
    assert_eq!(format!("{line}\n"), format!("{core}{rest}"));
    assert!(text.starts_with("#31#c_ip:1 c_port:2 c_pkts_all:3 "));
    assert!(
        text.lines()
            .next()
            .unwrap()
            .ends_with(" s_TLSvers:133 dns_enc:134")
    );
    let text = fs::read_to_string(directory.join("log_tcp_nocomplete")).unwrap();
    assert_eq!(text.lines().nth(1), Some(core));
    let header = "#31#c_ip:1 c_port:2 c_pkts_all:3 c_rst_cnt:4 c_ack_cnt:5 c_ack_cnt_p:6 c_bytes_uniq:7 c_pkts_data:8 c_bytes_all:9 c_pkts_retx:10 c_bytes_retx:11 c_pkts_ooo:12 c_syn_cnt:13 c_fin_cnt:14 s_ip:15 s_port:16 s_pkts_all:17 s_rst_cnt:18 s_ack_cnt:19 s_ack_cnt_p:20 s_bytes_uniq:21 s_pkts_data:22 s_bytes_all:23 s_pkts_retx:24 s_bytes_retx:25 s_pkts_ooo:26 s_syn_cnt:27 s_fin_cnt:28 first:29 last:30 durat:31 c_first:32 s_first:33 c_last:34 s_last:35 c_first_ack:36 s_first_ack:37 c_isint:38 s_isint:39 c_iscrypto:40 s_iscrypto:41 con_t:42 p2p_t:43 http_t:44";
    assert_eq!(text.lines().next(), Some(header));
    let text = fs::read_to_string(directory.join("log_udp_complete")).unwrap();
    let header = "#c_ip:1 c_port:2 c_first_abs:3 c_durat:4 c_bytes_all:5 c_pkts_all:6 c_isint:7 c_iscrypto:8 c_type:9 s_ip:10 s_port:11 s_first_abs:12 s_durat:13 s_bytes_all:14 s_pkts_all:15 s_isint:16 s_iscrypto:17 s_type:18 fqdn:19 quic_SNI:20 quic_UA:21 quic_c_vers:22 quic_s_vers:23 quic_zero_rtt:24 quic_ech:25\n";
    assert_eq!(text, header);
}

/// A row with a different number in every column that Tstat has.
fn full() -> FlowRow {
    let side = |n: u64, address: &str| {
        let small = u32::try_from(n).unwrap();
        FlowSide {
            ip: ip(address),
            port: 1000 + u16::try_from(n).unwrap(),
            pkts_all: n + 1,
            syn_cnt: 1,
            bytes_all: n + 2,
            first_packet_ns: Some(START),
            last_packet_ns: Some(START + 1_500_000_000),
            rtt: RttRow {
                count: small + 3,
                avg_ns: 5_000_000,
                ..RttRow::default()
            },
            mss: 1460,
            win_max: small + 4,
            cwin_ini: small + 5,
            anomalies: std::array::from_fn(|class| class as u64 + n),
            syn_retx: n + 6,
            tls_version: 0x0304,
            quic_version: 1,
            ..FlowSide::default()
        }
    };
    FlowRow {
        first_ns: START,
        start_ns: START - 2 * SECOND,
        last_ns: START + SECOND,
        state: FlowState::Reset,
        client: side(100, "2001:db8::1"),
        server: side(200, "192.0.2.1"),
        http_requests: 3,
        http_status: 204,
        tls_session: 2,
        dns_resolver: Some(ip("192.0.2.53")),
        dns_request_ns: Some(START - SECOND),
        has_zero_rtt: true,
        ed2k: [1, 2, 3, 4, 5],
        ..FlowRow::default()
    }
}

#[test]
fn columns_have_what_their_names_say() {
    let dir = tempfile::tempdir().unwrap();
    let text = FlowText {
        sni: b"a b\n\\c\xff.example",
        client_alpn: b"h2,http/1.1",
        server_alpn: b"imap",
        fqdn: b"b.example",
        quic_user_agent: b"Chrome/1 x\t",
        ..FlowText::default()
    };
    let mut all = FlowBatch::default();
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        for extent in [Extent::Final, Extent::Partial] {
            let row = FlowRow {
                protocol,
                extent,
                ..full()
            };
            all.push(row, &text);
        }
    }
    let options = TstatOptions {
        has_partial_records: true,
        ..TstatOptions::default()
    };
    write(dir.path(), options, &[all]);
    let directory = &directories(dir.path())[0];
    let check = |log: &str, expected: &[(&str, &str)]| {
        let lines = read(&directory.join(log), ' ');
        assert_eq!(lines.len(), 1, "{log}");
        for (name, value) in expected {
            assert_eq!(
                lines[0].get(*name).map(String::as_str),
                Some(*value),
                "{log} {name}"
            );
        }
        lines[0].len()
    };
    let sni = "a\\x20b\\x0a\\x5cc\\xff.example";
    let columns = check(
        "log_tcp_complete",
        &[
            ("c_ip", "2001:db8::1"),
            ("s_port", "1200"),
            ("c_rtt_avg", "5.000000"),
            ("s_rtt_cnt", "203"),
            ("ed2k_chat", "5"),
            ("c_mss", "1460"),
            ("s_win_max", "204"),
            ("c_cwin_ini", "105"),
            ("c_pkts_rto", "100"),
            ("c_pkts_unk", "212"),
            ("s_pkts_unfs", "207"),
            ("s_syn_retx", "206"),
            ("http_req_cnt", "3"),
            ("http_res", "204"),
            ("c_tls_SNI", sni),
            ("c_npnalpn", "160"),
            ("s_npnalpn", "16"),
            ("tls_session_stat", "2"),
            ("fqdn", "b.example"),
            ("dns_rslv", "192.0.2.53"),
            ("res_tm", "0.000000"),
            ("s_TLSvers", "1.3"),
            ("dns_enc", "0"),
        ],
    );
    assert_eq!(columns, 134);
    let columns = check(
        "log_udp_complete",
        &[
            ("c_durat", "1.500000"),
            ("c_first_abs", "1795222222000.000000"),
            ("s_bytes_all", "202"),
            ("quic_SNI", sni),
            ("quic_UA", "Chrome%2f1+x%09"),
            ("quic_c_vers", "0x00000001"),
            ("quic_zero_rtt", "1"),
            ("quic_ech", "0"),
        ],
    );
    assert_eq!(columns, 25);
    let columns = check(
        "log_tcp_periodic",
        &[
            ("time_rel_start", "2000.000000"),
            ("time_rel_end", "3000.000000"),
            ("bin_duration", "1000.000000"),
            ("s_pkts_all", "201"),
            ("s_rtt_cnt", "203"),
        ],
    );
    assert_eq!(columns, 46);
    let columns = check(
        "log_udp_periodic",
        &[("s_ip", "192.0.2.1"), ("s_bytes_all", "202")],
    );
    assert_eq!(columns, 16);
}

#[test]
fn http_messages_keep_their_columns_whatever_the_peers_send() {
    let dir = tempfile::tempdir().unwrap();
    let mut all = FlowBatch::default();
    let row = |kind, status| MessageRow {
        kind,
        time_ns: START + 1_500_000,
        client: (ip("10.0.0.1"), 4000),
        server: (ip("10.0.0.2"), 80),
        status,
    };
    let texts: [&[u8]; 8] = [
        b"GET",
        b"h.example",
        b"/a\tb\nc",
        b"",
        b"Agent 1",
        b"k=v",
        b"1",
        b"dns.example",
    ];
    all.push_message(row(MessageKind::Request, 0), texts);
    let texts: [&[u8]; 8] = [b"12", b"text/html", b"", b"", b"/x", b"", b"", b""];
    all.push_message(row(MessageKind::Response, 302), texts);
    write(dir.path(), TstatOptions::default(), &[all]);
    let text = fs::read_to_string(directories(dir.path())[0].join("log_http_complete")).unwrap();
    let expected = "#C#c_ip:1\tc_port:2\ts_ip:3\ts_port:4\ttime_abs:5\tmethod:6\thostname:7\tfqdn:8\tpath:9\treferer:10\tuser_agent:11\tcookie:12\tdnt:13\n\
        #S#c_ip:1\tc_port:2\ts_ip:3\ts_port:4\ttime_abs:5\tHTTP:6\tresponse:7\tcontent_len:8\tcontent_type:9\tserver:10\trange:11\tlocation:12\tset_cookie:13\n\
        10.0.0.1\t4000\t10.0.0.2\t80\t1795222222.001500\tGET\th.example\tdns.example\t/a\\x09b\\x0ac\t-\tAgent 1\tk=v\t1\n\
        10.0.0.1\t4000\t10.0.0.2\t80\t1795222222.001500\tHTTP\t302\t12\ttext/html\t-\t-\t/x\t-\n";
    assert_eq!(text, expected);
}

fn step(number: u64, shard: u32, shards: u32, is_last: bool) -> Step {
    let span_ns = 300 * SECOND;
    let mut step = Step {
        number,
        span_ns,
        shard,
        shards,
        is_last,
        from_ns: number * span_ns,
        to_ns: (number + 1) * span_ns,
        ..Step::default()
    };
    let id = HistogramId::named("ip_ttl_in").unwrap();
    step.histograms.add_n(id, 64, u64::from(shard) + 1);
    step
}

#[test]
fn steps_of_shards_merge_and_directories_follow_the_clock() {
    let dir = tempfile::tempdir().unwrap();
    let first = START / (300 * SECOND);
    let mut sink = open_tstat(dir.path(), TstatOptions::default()).unwrap();
    let mut give = |shard, number, is_last| {
        let mut batch = batch(&[flow_at(number * 300 * SECOND + 150 * SECOND)]);
        batch.push_step(step(number, shard, 2, is_last));
        sink.write(&batch).unwrap();
    };
    // The second shard lags behind, then both reach the next directory.
    give(0, first, false);
    give(0, first + 1, false);
    give(1, first, false);
    give(1, first + 1, false);
    give(0, first + 12, false);
    give(1, first + 11, false);
    give(1, first + 12, false);
    give(0, first + 13, true);
    give(1, first + 13, true);
    sink.finish().unwrap();
    assert_eq!(
        names(dir.path()),
        ["2026_11_21_00_50.out", "2026_11_21_01_50.out"]
    );
    let all = directories(dir.path());
    let (old, new) = (&all[0], &all[1]);
    let steps = |directory: &Path| {
        let mut all = names(directory);
        all.retain(|name| !name.starts_with("log_"));
        all
    };
    assert_eq!(steps(old), ["000", "001", "011"]);
    assert_eq!(steps(new), ["000", "LAST"]);
    let ttl = |directory: PathBuf| fs::read_to_string(directory.join("ip_ttl_in")).unwrap();
    let range = "#IP TTL - incoming packets\n#RANGE: min=0 bin_size=1 max=255\n";
    assert_eq!(ttl(old.join("000")), format!("{range}64 3\n"));
    assert_eq!(ttl(old.join("011")), format!("{range}64 2\n"));
    assert_eq!(ttl(new.join("LAST")), format!("{range}64 3\n"));
    // No line is lost, and each is in the directory of its time.
    assert_eq!(read(&old.join("log_tcp_complete"), ' ').len(), 5);
    assert_eq!(read(&new.join("log_tcp_complete"), ' ').len(), 4);
}

#[test]
fn a_flow_stands_where_it_was_known_to_have_ended() {
    let dir = tempfile::tempdir().unwrap();
    let begin = START / (300 * SECOND) * 300 * SECOND;
    let end_of_directory = begin + 3600 * SECOND;
    let mut idle = flow_at(end_of_directory - 100 * SECOND);
    idle.state = FlowState::Idle;
    let mut closed = idle;
    closed.state = FlowState::Closed;
    let late = flow_at(begin + 2 * SECOND);
    let rows = [
        flow_at(begin + SECOND),
        idle,
        closed,
        flow_at(begin + 3 * 3600 * SECOND),
        late,
    ];
    write(dir.path(), TstatOptions::default(), &[batch(&rows)]);
    let lines: Vec<_> = directories(dir.path())
        .iter()
        .map(|directory| read(&directory.join("log_tcp_complete"), ' ').len())
        .collect();
    // The late one comes when its directory is closed: it goes to the oldest that is open.
    assert_eq!(lines, [2, 2, 1]);
}

#[test]
fn an_earlier_run_is_replaced_where_that_is_said_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let with = |existing| TstatOptions {
        existing,
        ..TstatOptions::default()
    };
    let mut one = batch(&[flow_at(START), flow_at(START)]);
    one.push_step(step(START / (300 * SECOND), 0, 1, true));
    write(dir.path(), with(Existing::Refuse), &[one]);
    let directory = directories(dir.path())[0].clone();
    fs::write(directory.join("notes"), "mine").unwrap();
    assert!(directory.join("LAST/ip_ttl_in").exists());
    let lines = |directory: &Path| read(&directory.join("log_tcp_complete"), ' ').len();

    let next = batch(&[flow_at(START)]);
    let mut refused = open_tstat(dir.path(), with(Existing::Refuse)).unwrap();
    let error = refused.write(&next).unwrap_err().to_string();
    assert!(error.contains("00_50.out: exists; --overwrite"), "{error}");
    for _ in 0..2 {
        write(
            dir.path(),
            with(Existing::Keep),
            std::slice::from_ref(&next),
        );
    }
    let kept = directories(dir.path());
    assert_eq!(
        kept.iter().map(|one| lines(one)).collect::<Vec<_>>(),
        [2, 1, 1]
    );
    assert_eq!(
        names(dir.path())[1..].join(" "),
        "2026_11_21_00_50.out.1 2026_11_21_00_50.out.2"
    );
    assert!(directory.join("LAST").exists());

    write(dir.path(), with(Existing::Replace), &[next]);
    assert_eq!(lines(&directory), 1);
    assert!(directory.join("notes").exists());
    assert!(!directory.join("LAST").exists());
}

#[test]
fn histograms_alone_make_no_logs_and_local_time_names_directories() {
    let dir = tempfile::tempdir().unwrap();
    let options = TstatOptions {
        step: Duration::from_secs(300),
        utc_offset_s: |_| 3600,
        ..TstatOptions::default()
    };
    // The directory is made, but none above it.
    assert!(open_histograms(&dir.path().join("a/b"), options).is_err());
    let mut sink = open_histograms(&dir.path().join("a"), options).unwrap();
    let mut all = batch(&[flow_at(START)]);
    all.push_step(step(START / (300 * SECOND), 0, 1, true));
    sink.write(&all).unwrap();
    sink.flush().unwrap();
    sink.finish().unwrap();
    let tree = dir.path().join("a");
    assert_eq!(names(&tree), ["2026_11_21_01_50.out"]);
    assert_eq!(names(&directories(&tree)[0]), ["LAST"]);
}

#[test]
fn what_cannot_be_written_is_an_error_with_a_name() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = open_tstat(&file, TstatOptions::default()).err().unwrap();
    assert!(error.to_string().contains("name a directory"), "{error}");

    let mut sink: Box<dyn Sink<FlowKind>> =
        open_tstat(&dir.path().join("tree"), TstatOptions::default()).unwrap();
    sink.write(&batch(&[flow_at(START)])).unwrap();
    // The place of the next directory is taken.
    let next = dir.path().join("tree/2026_11_21_01_50.out");
    fs::write(&next, "").unwrap();
    let error = sink
        .write(&batch(&[flow_at(START + 3600 * SECOND)]))
        .err()
        .unwrap();
    assert!(matches!(error, SinkError::Io { .. }));
    assert!(
        error.to_string().contains("2026_11_21_01_50.out"),
        "{error}"
    );
    let again = sink.write(&batch(&[flow_at(START)])).err().unwrap();
    assert!(
        again.to_string().contains("earlier write failed"),
        "{again}"
    );
}
