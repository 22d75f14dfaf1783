//! Golden lines of every format, and what comes back when they are read.

use linkweir_engine::Sink;
use linkweir_record::flow::{Event, FlowText, History, Protocol};
use linkweir_record::{
    FlowBatch, FlowKind, FlowRow, HttpBatch, HttpKind, HttpRow, HttpState, RecordKind, Text,
};
use linkweir_sink::{Format, OutputOptions, TableOptions, open_sink};

/// 2023-11-14T22:13:20.25Z
const T0: u64 = 1_700_000_000_250_000_000;

fn row() -> HttpRow {
    HttpRow {
        client_ip: "10.0.0.7".parse().unwrap(),
        client_port: 40_000,
        server_ip: "::ffff:192.168.255.1".parse().unwrap(),
        server_port: 80,
        request_ts_ns: Some(T0),
        response_ts_ns: Some(T0 + 104_130_000),
        status_code: Some(200),
        request_bytes: Some(78),
        flow_hash: 123_456,
        ..HttpRow::default()
    }
}

/// A plain record, a hostile one, an unanswered one over IPv6, an orphan.
fn records() -> HttpBatch {
    let mut batch = HttpBatch::default();
    batch.push(
        row(),
        &Text {
            method: b"GET",
            uri: b"/index.html?a=1",
            host: b"example.org",
            user_agent: b"curl/8.0 (x; y)",
            reason_phrase: b"OK",
            content_type: b"text/html; charset=utf-8",
        },
    );
    batch.push(
        HttpRow {
            ttlb_ns: Some(1),
            vlan: Some(7),
            ..row()
        },
        &Text {
            method: b"GET",
            uri: b"/a|b\\x41\t,\"q\"\n",
            host: "h\u{e9}te".as_bytes(),
            user_agent: b"\xff\x00-",
            reason_phrase: b"-",
            content_type: b"(empty)",
        },
    );
    batch.push(
        HttpRow {
            client_ip: "2001:db8::7".parse().unwrap(),
            server_ip: "2001:db8::1".parse().unwrap(),
            response_ts_ns: None,
            status_code: None,
            request_bytes: None,
            state: HttpState::Unanswered,
            ..row()
        },
        &Text {
            method: b"POST",
            uri: b"*",
            ..Text::default()
        },
    );
    batch.push(
        HttpRow {
            request_ts_ns: None,
            request_bytes: None,
            status_code: Some(404),
            state: HttpState::Orphan,
            ..row()
        },
        &Text {
            reason_phrase: b"Not Found",
            ..Text::default()
        },
    );
    batch
}

fn written(format: Format) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let options = OutputOptions {
        wall_clock_ns: || T0,
        ..OutputOptions::default()
    };
    let mut sink: Box<dyn Sink<HttpKind>> =
        open_sink(path.to_str().unwrap(), Some(format), options).unwrap();
    sink.write(&records()).unwrap();
    sink.finish().unwrap();
    let bytes = std::fs::read(path).unwrap();
    bytes.iter().map(|b| char::from(*b)).collect()
}

#[test]
fn text_is_the_line_of_the_paper() {
    let expected = "\
10.0.0.7|40000|192.168.255.1|80|1700000000.250000000|1700000000.354130000|0.104130000|OK|200|GET|curl/8.0 (x; y)|example.org|/index.html?a=1
10.0.0.7|40000|192.168.255.1|80|1700000000.250000000|1700000000.354130000|0.104130000|-|200|GET|\\xff\\x00-|h\\xc3\\xa9te|/a\\x7cb\\x5cx41\\x09,\"q\"\\x0a
2001:db8::7|40000|2001:db8::1|80|1700000000.250000000|||||POST|||*
10.0.0.7|40000|192.168.255.1|80||1700000000.354130000||Not Found|404||||
";
    assert_eq!(written(Format::Text), expected);
}

#[test]
fn local_time_may_be_before_1970() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let options = OutputOptions {
        table: TableOptions {
            offset_s: |_| -5 * 3600,
            ..TableOptions::default()
        },
        ..OutputOptions::default()
    };
    let mut sink =
        open_sink::<HttpKind>(path.to_str().unwrap(), Some(Format::Table), options).unwrap();
    let mut batch = HttpBatch::default();
    for time in [1_500_000_000, 5 * 3600 * 1_000_000_000] {
        let at = HttpRow {
            request_ts_ns: Some(time),
            ..row()
        };
        batch.push(at, &Text::default());
    }
    sink.write(&batch).unwrap();
    sink.finish().unwrap();
    let table = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[1], "-- 1969-12-31, UTC-05:00");
    assert!(lines[2].starts_with("19:00:01.500 "), "{table}");
    assert_eq!(lines[3], "-- 1970-01-01, UTC-05:00");
    assert!(lines[4].starts_with("00:00:00.000 "), "{table}");
}

#[test]
fn jsonl_lines_are_whole_objects() {
    let text = written(Format::Jsonl);
    let first = text.lines().next().unwrap();
    let expected = concat!(
        r#"{"client_ip":"10.0.0.7","client_port":40000,"server_ip":"192.168.255.1","server_port":80,"#,
        r#""request_ts_ns":1700000000250000000,"response_ts_ns":1700000000354130000,"response_time_ns":104130000,"#,
        r#""status_code":200,"reason_phrase":"OK","method":"GET","user_agent":"curl/8.0 (x; y)","host":"example.org","#,
        r#""uri":"/index.html?a=1","version":"1.1","state":"complete","request_bytes":78,"response_bytes":null,"#,
        r#""ttlb_ns":null,"content_type":"text/html; charset=utf-8","interim_responses":0,"retransmissions":0,"vlan":null,"flow_hash":123456,"#,
        r#""http_version":"1.1","source":"clear","names":"whole","rtt_ns":null,"server_time_ns":null,"#,
        r#""community_id":"1:uDuc6VIwHmDYyJzSFU3I7fjhWdQ=","uid":"C8Z9kpFuTPOB"}"#
    );
    assert_eq!(first, expected);

    // `written` gives bytes as Latin-1; back to bytes.
    let bytes: Vec<u8> = text
        .chars()
        .map(|c| u8::try_from(u32::from(c)).unwrap())
        .collect();
    let objects: Vec<serde_json::Value> = bytes
        .split(|b| *b == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(objects.len(), 4);
    let hostile = objects.get(1).unwrap();
    assert_eq!(hostile["uri"], "/a|b\\x5cx41\t,\"q\"\n");
    assert_eq!(hostile["host"], "h\u{e9}te");
    assert_eq!(hostile["user_agent"], "\\xff\0-");
    assert_eq!(hostile["ttlb_ns"], 1);
    // Of HTTP/1.x in clear.
    let names = HttpKind::fields().iter().enumerate();
    let names = names.filter(|(at, _)| HttpKind::has_column(0, *at));
    let names: Vec<&str> = names.map(|(_, field)| field.name).collect();
    for object in &objects {
        assert_eq!(object.as_object().unwrap().len(), names.len());
        assert!(names.iter().all(|name| object.get(name).is_some()));
    }
    let unanswered = objects.get(2).unwrap();
    assert_eq!(unanswered["state"], "unanswered");
    assert!(unanswered["status_code"].is_null() && unanswered["host"].is_null());
}

/// A reader of RFC 4180, for the test.
fn parse_csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                field.push('"');
                chars.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            c => field.push(c),
        }
    }
    assert!(row.is_empty() && field.is_empty());
    rows
}

#[test]
fn csv_comes_back() {
    let text = written(Format::Csv);
    assert!(text.starts_with("client_ip,client_port,server_ip,server_port,request_ts_ns,"));
    assert_eq!(
        text.lines().nth(1).unwrap(),
        "10.0.0.7,40000,192.168.255.1,80,1700000000250000000,1700000000354130000,104130000,200,OK,GET,\
         curl/8.0 (x; y),example.org,/index.html?a=1,1.1,complete,78,,,text/html; charset=utf-8,0,0,,123456,1.1,clear,whole,,,,,,,,,,,,,,,,,\
         1:uDuc6VIwHmDYyJzSFU3I7fjhWdQ=,C8Z9kpFuTPOB,,,,,,,,,,,,,,,"
    );
    let rows = parse_csv(&text);
    assert_eq!(rows.len(), 5);
    assert!(rows.iter().all(|row| row.len() == HttpKind::fields().len()));
    let column = HttpKind::column("uri").unwrap();
    assert_eq!(rows[2][column], "/a|b\\x5cx41\\x09,\"q\"\\x0a");
    assert_eq!(
        rows[4][HttpKind::column("reason_phrase").unwrap()],
        "Not Found"
    );
    assert_eq!(rows[4][HttpKind::column("request_ts_ns").unwrap()], "");
}

/// What `zeek-cut` does: finds the separator and the columns in the header, cuts them out.
fn zeek_cut(log: &str, names: &[&str]) -> Vec<Vec<String>> {
    let (mut columns, mut rows) = (Vec::new(), Vec::new());
    for line in log.lines() {
        if let Some(rest) = line.strip_prefix("#separator ") {
            assert_eq!(rest, "\\x09");
        } else if let Some(rest) = line.strip_prefix("#fields\t") {
            let all: Vec<&str> = rest.split('\t').collect();
            columns = names
                .iter()
                .map(|name| all.iter().position(|field| field == name).unwrap())
                .collect();
        } else if !line.starts_with('#') {
            let fields: Vec<&str> = line.split('\t').collect();
            rows.push(columns.iter().map(|at| fields[*at].to_owned()).collect());
        }
    }
    rows
}

#[test]
fn zeek_logs_are_read_by_zeek_cut() {
    let log = written(Format::Zeek);
    let expected = "\
#separator \\x09
#set_separator\t,
#empty_field\t(empty)
#unset_field\t-
#path\thttp
#open\t2023-11-14-22-13-20
#fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\ttrans_depth\tmethod\thost\turi\treferrer\tversion\tuser_agent\torigin\trequest_body_len\tresponse_body_len\tstatus_code\tstatus_msg\tinfo_code\tinfo_msg\ttags\tusername\tpassword\tproxied\torig_fuids\torig_filenames\torig_mime_types\tresp_fuids\tresp_filenames\tresp_mime_types\tresponse_time\tttlb\tstate\trequest_bytes\tresponse_bytes\tcontent_type\tinterim_responses\tretransmissions\tvlan\tsource\tconfidence\trtt\tserver_time\tja4\tcommunity_id\tclient_country\tclient_asn\tserver_country\tserver_asn\tfirst_event\tevents\tevent_gap_p50\tevent_gap_p99\tevent_gap_max\tcoalesced\tstalls\tbuffered\ttrace_id\tparent_id\tforwarded_for
#types\ttime\tstring\taddr\tport\taddr\tport\tcount\tstring\tstring\tstring\tstring\tstring\tstring\tstring\tcount\tcount\tcount\tstring\tcount\tstring\tset[enum]\tstring\tstring\tset[string]\tvector[string]\tvector[string]\tvector[string]\tvector[string]\tvector[string]\tvector[string]\tinterval\tinterval\tstring\tcount\tcount\tstring\tcount\tcount\tint\tstring\tstring\tinterval\tinterval\tstring\tstring\tstring\tcount\tstring\tcount\tinterval\tcount\tinterval\tinterval\tinterval\tcount\tcount\tstring\tstring\tstring\tstring
1700000000.250000\tC8Z9kpFuTPOB\t10.0.0.7\t40000\t192.168.255.1\t80\t-\tGET\texample.org\t/index.html?a=1\t-\t1.1\tcurl/8.0 (x; y)\t-\t-\t-\t200\tOK\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\ttext/html\t0.104130\t-\tcomplete\t78\t-\ttext/html; charset=utf-8\t0\t0\t-\tclear\t-\t-\t-\t-\t1:uDuc6VIwHmDYyJzSFU3I7fjhWdQ=\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-
";
    assert!(log.starts_with(expected), "{log}");
    assert!(log.ends_with("\n#close\t2023-11-14-22-13-20\n"));
    let columns = HttpKind::zeek_columns().len();
    assert!(
        log.lines()
            .filter(|line| !line.starts_with('#'))
            .all(|line| line.split('\t').count() == columns)
    );
    let cut = zeek_cut(
        &log,
        &["uri", "host", "user_agent", "status_msg", "resp_mime_types"],
    );
    assert_eq!(
        cut[1],
        [
            "/a|b\\x5cx41\\x09,\"q\"\\x0a",
            "h\\xc3\\xa9te",
            "\\xff\\x00-",
            "\\x2d",
            "\\x28empty)"
        ]
    );
    assert_eq!(cut[3], ["-", "-", "-", "Not Found", "-"]);
    // A response without request has the time of what was seen: Zeek's `ts` is never unset.
    assert_eq!(zeek_cut(&log, &["ts"])[3], ["1700000000.354130"]);
}

#[test]
fn zeek_json_is_what_zeek_writes() {
    let text = written(Format::ZeekJson);
    assert_eq!(
        text.lines().next().unwrap(),
        concat!(
            r#"{"ts":1700000000.250000,"uid":"C8Z9kpFuTPOB","id.orig_h":"10.0.0.7","id.orig_p":40000,"#,
            r#""id.resp_h":"192.168.255.1","id.resp_p":80,"method":"GET","host":"example.org","#,
            r#""uri":"/index.html?a=1","version":"1.1","user_agent":"curl/8.0 (x; y)","status_code":200,"#,
            r#""status_msg":"OK","resp_mime_types":["text/html"],"response_time":0.104130,"state":"complete","#,
            r#""request_bytes":78,"content_type":"text/html; charset=utf-8","interim_responses":0,"retransmissions":0,"#,
            r#""source":"clear","community_id":"1:uDuc6VIwHmDYyJzSFU3I7fjhWdQ="}"#
        )
    );
    let bytes: Vec<u8> = text
        .chars()
        .map(|c| u8::try_from(u32::from(c)).unwrap())
        .collect();
    let objects: Vec<serde_json::Value> = bytes
        .split(|b| *b == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(objects.len(), 4);
    assert_eq!(objects[1]["uri"], "/a|b\\x5cx41\t,\"q\"\n");
    assert_eq!(objects[1]["user_agent"], "\\xff\0-");
    assert_eq!(objects[1]["status_msg"], "-");
    assert_eq!(objects[1]["vlan"], 7);
    // What is not there has no key, and no value is null.
    for object in &objects {
        let object = object.as_object().unwrap();
        assert!(!object.contains_key("referrer") && object.values().all(|value| !value.is_null()));
    }
    assert!(objects[3].get("method").is_none());
    assert_eq!(objects[3]["ts"], 1_700_000_000.354_13);
}

/// Flows over TLS and of a protocol nobody knows, as conn.log.
fn flows(format: Format) -> String {
    let options = OutputOptions {
        has_internal_networks: true,
        ..OutputOptions::default()
    };
    flows_with(format, options)
}

fn flows_with(format: Format, options: OutputOptions) -> String {
    let mut batch = FlowBatch::default();
    let mut row = FlowRow {
        first_ns: T0,
        last_ns: T0 + 1_500_000_000,
        application: "tls",
        flow_id: 99,
        ..FlowRow::default()
    };
    row.client.is_internal = true;
    row.client.pkts_all = 3;
    row.client.missed_bytes = 7;
    for (event, is_client) in [
        (Event::Syn, true),
        (Event::SynAck, false),
        (Event::Ack, true),
        (Event::Data, false),
    ] {
        row.history.push(event, is_client);
    }
    (row.client.bytes_all, row.client.bytes_uniq) = (700, 500);
    batch.push(row, &FlowText::default());
    row.flow_id = u64::MAX;
    row.client.missed_bytes = 0;
    row.history = History::default();
    row.protocol = Protocol::Udp;
    row.client.bytes_uniq = 700;
    row.application = "";
    batch.push(row, &FlowText::default());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let mut sink: Box<dyn Sink<FlowKind>> =
        open_sink(path.to_str().unwrap(), Some(format), options).unwrap();
    sink.write(&batch).unwrap();
    sink.finish().unwrap();
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn conn_logs_have_zeek_s_words() {
    let names = [
        "ts",
        "proto",
        "service",
        "duration",
        "conn_state",
        "local_orig",
        "local_resp",
        "missed_bytes",
        "history",
        "orig_pkts",
        "ip_proto",
        "record",
    ];
    let cut = zeek_cut(&flows(Format::Zeek), &names);
    let expected = [
        "1700000000.250000 tcp ssl 1.500000 OTH T F 7 ShAd 3 6 final",
        "1700000000.250000 udp - 1.500000 S0 T F 0 - 3 17 final",
    ];
    assert_eq!(
        cut.iter().map(|row| row.join(" ")).collect::<Vec<_>>(),
        expected
    );

    let text = flows(Format::ZeekJson);
    let objects: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(objects[0]["service"], "ssl");
    assert_eq!(
        (&objects[0]["local_orig"], &objects[0]["local_resp"]),
        (&true.into(), &false.into())
    );
    assert_eq!(objects[1]["ip_proto"], 17);
    assert!(objects[1].get("service").is_none() && objects[1].get("history").is_none());
}

/// Where no networks are named, nobody knows what is local.
#[test]
fn conn_logs_do_not_guess_what_is_local() {
    let log = flows_with(Format::Zeek, OutputOptions::default());
    assert_eq!(
        zeek_cut(&log, &["local_orig", "local_resp"]),
        [["-", "-"], ["-", "-"]]
    );
    let json = flows_with(Format::ZeekJson, OutputOptions::default());
    assert!(!json.is_empty() && !json.contains("local_"), "{json}");
}

/// Zeek takes the bytes of TCP from sequence numbers (`Conn::Info`), so that none counts twice.
#[test]
fn conn_logs_count_each_byte_once() {
    let names = ["proto", "orig_bytes", "resp_bytes"];
    let cut = zeek_cut(&flows(Format::Zeek), &names);
    assert_eq!(cut, [["tcp", "500", "0"], ["udp", "700", "0"]]);
    let json = flows(Format::ZeekJson);
    for (line, bytes) in json.lines().zip([500, 700]) {
        assert!(line.contains(&format!("\"orig_bytes\":{bytes},")), "{line}");
    }
}

/// A table has the columns of both protocols; what is not of a flow's own is empty, and is not zero.
#[test]
fn csv_leaves_columns_of_the_other_protocol_empty() {
    for format in [Format::Csv, Format::Spreadsheet] {
        let rows = parse_csv(&flows(format).replace("\r\n", "\n"));
        let [_, tcp, udp] = rows.as_slice() else {
            panic!("two flows, not {rows:?}");
        };
        let json = flows(Format::Jsonl);
        for (row, line) in [(tcp, 0), (udp, 1)] {
            let object: serde_json::Value =
                serde_json::from_str(json.lines().nth(line).unwrap()).unwrap();
            for (at, field) in FlowKind::fields().iter().enumerate() {
                let is_there = object.get(field.name).is_some_and(|value| !value.is_null());
                assert_eq!(!row[at].is_empty(), is_there, "{}", field.name);
            }
        }
        let at = |name| FlowKind::column(name).unwrap();
        assert_eq!((&*tcp[at("c_rst_cnt")], &*udp[at("c_rst_cnt")]), ("0", ""));
        assert_eq!((&*tcp[at("c_type")], &*udp[at("c_type")]), ("", "0"));
        assert_eq!(udp[at("c_bytes_all")], "700");
    }
}

#[test]
fn lines_leave_columns_of_the_other_protocol_empty() {
    let text = flows(Format::Text);
    let at = |name| FlowKind::text_line().iter().position(|one| *one == name);
    for (line, wanted) in text.lines().zip([["0", "0.000000000"], ["", ""]]) {
        let cells: Vec<&str> = line.split('|').collect();
        assert_eq!(cells.len(), FlowKind::text_line().len());
        let found = ["c_pkts_retx", "s_rtt_avg"].map(|name| cells[at(name).unwrap()]);
        assert_eq!(found, wanted);
    }
}

#[test]
fn spreadsheets_round_and_run_nothing() {
    let text = written(Format::Spreadsheet);
    assert!(text.starts_with(
        "client_ip,client_port,server_ip,server_port,request_ts,response_ts,response_time_ns,"
    ));
    assert!(text.lines().count() == 5 && text.matches("\r\n").count() == 5);
    assert_eq!(
        text.lines().nth(1).unwrap(),
        "10.0.0.7,40000,192.168.255.1,80,2023-11-14T22:13:20.250000000Z,2023-11-14T22:13:20.354130000Z,104130000,\
         200,OK,GET,curl/8.0 (x; y),example.org,/index.html?a=1,1.1,complete,78,,,text/html; charset=utf-8,0,0,,123456,1.1,clear,whole,,,,,,,,,,,,,,,,,\
         1:uDuc6VIwHmDYyJzSFU3I7fjhWdQ=,C8Z9kpFuTPOB,,,,,,,,,,,,,,,"
    );
    let rows = parse_csv(&text.replace("\r\n", "\n"));
    assert_eq!(rows[2][HttpKind::column("reason_phrase").unwrap()], "'-");
    for row in rows.iter().skip(1) {
        assert_eq!(row.len(), HttpKind::fields().len());
        for cell in row {
            // Nothing is run, and no number has more digits than a double keeps.
            assert!(!cell.starts_with(['=', '+', '-', '@']), "{cell}");
            assert!(cell.len() <= 15 || cell.parse::<f64>().is_err(), "{cell}");
        }
    }
    // A number of 20 digits stays one of 20 digits, as text.
    let rows = parse_csv(&flows(Format::Spreadsheet).replace("\r\n", "\n"));
    let flow_id = FlowKind::column("flow_id").unwrap();
    assert_eq!(rows[1][flow_id], "99");
    assert_eq!(rows[2][flow_id], "'18446744073709551615");
    assert_eq!(
        rows[1][FlowKind::column("first").unwrap()],
        "2023-11-14T22:13:20.250000000Z"
    );
    assert_eq!(rows[1][FlowKind::column("durat").unwrap()], "1500.000000");
}
