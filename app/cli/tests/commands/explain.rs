//! `gateway explain`: the rule that decided, by which value, at which packet of the capture.

use linkweir_testkit::capture_writer::CapturedFrame;
use linkweir_wire::emit::UdpFrame;
use serde_json::Value;

use crate::common::{demo, demo_frames, plain, run};

#[test]
fn each_decision_names_its_packet_and_the_value_that_matched() {
    let directory = tempfile::tempdir().unwrap();
    let policy = directory.path().join("gateway.toml");
    let text =
        "[[rule]]\nname = \"posts\"\nmethods = \"POST\"\naction = \"reject\"\npage = \"No.\"\n";
    std::fs::write(&policy, text).unwrap();
    let (policy, demo) = (policy.to_str().unwrap(), demo());
    let words = [
        "gateway",
        "explain",
        "-c",
        policy,
        "-r",
        demo.to_str().unwrap(),
    ];
    let said = run(&words).exits(0).stdout;
    let decisions: Vec<Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let frames = demo_frames();
    let (mut posts, mut others) = (0, 0);
    for decision in &decisions {
        if decision["rule"] == "posts" {
            assert_eq!(decision["why"], "methods=POST (post)");
            let number = usize::try_from(decision["packet"].as_u64().unwrap()).unwrap();
            let frame = &frames[number - 1].bytes;
            assert!(
                frame.windows(5).any(|bytes| bytes == b"POST "),
                "{decision}"
            );
            posts += 1;
        } else if decision["event"] == "decided" {
            assert_eq!(
                (&decision["rule"], &decision["why"]),
                (&"default".into(), &"no rule matches".into())
            );
            others += 1;
        }
    }
    assert!(posts > 10 && others > 10, "{posts} {others}");
    let table = run(&[&words[..], &["--format", "table"]].concat())
        .exits(0)
        .stdout;
    assert!(
        table
            .lines()
            .next()
            .unwrap()
            .trim_start()
            .starts_with("packet"),
        "{table}"
    );
    assert!(
        table.lines().last().unwrap().contains(" undecided"),
        "{table}"
    );
}

/// Plays frames through a policy: the rows of `explain`.
fn explain(policy: &str, frames: &[CapturedFrame]) -> Vec<Value> {
    let directory = tempfile::tempdir().unwrap();
    let [settings, capture] = ["gateway.toml", "a.pcap"].map(|name| directory.path().join(name));
    std::fs::write(&settings, policy).unwrap();
    std::fs::write(&capture, plain(frames)).unwrap();
    let [settings, capture] = [&settings, &capture].map(|path| path.to_str().unwrap());
    let words = ["gateway", "explain", "-c", settings, "-r", capture];
    let said = run(&words).exits(0).stdout;
    let rows = said.lines().map(|line| serde_json::from_str(line).unwrap());
    rows.collect()
}

/// Queries of DNS, each of a client port of its own, among the first packets of the demo.
fn queries_and_requests() -> Vec<CapturedFrame> {
    let demo = demo_frames().into_iter().take(120);
    let frames = (40_000..).zip(demo).flat_map(|(port, frame)| {
        let query = UdpFrame {
            payload: b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x04test\0\0\x01\0\x01",
            ..UdpFrame::new(([10, 80, 0, 9], port).into(), ([10, 80, 0, 1], 53).into())
        };
        let bytes = query.to_vec();
        let query = CapturedFrame {
            wire_len: u32::try_from(bytes.len()).unwrap(),
            bytes,
            ..frame
        };
        [query, frame]
    });
    frames.collect()
}

#[test]
fn what_a_later_rule_asks_of_requests_leaves_no_query_undecided() {
    let frames = queries_and_requests();
    let names = "[[rule]]\nname = \"dns\"\napplication = \"dns\"\naction = \"allow\"\n";
    for (later, default) in [
        ("", "allow"),
        ("application = \"http\"\nhosts = [\"*.ads.test\"]", "allow"),
        ("methods = [\"PUT\"]", "allow"),
        ("mime-types = [\"video/*\"]", "drop"),
        ("sni = [\"*.ads.test\"]", "allow"),
        ("application = \"bittorrent\"", "allow"),
    ] {
        let mut policy = format!("[gateway]\ndefault = \"{default}\"\n{names}");
        if !later.is_empty() {
            policy += &format!("[[rule]]\nname = \"ads\"\n{later}\naction = \"reject\"\n");
        }
        let rows = explain(&policy, &frames);
        let queries: Vec<&Value> = rows.iter().filter(|row| row["server_port"] == 53).collect();
        assert_eq!(queries.len(), 120, "{later}");
        for (number, row) in queries.into_iter().enumerate() {
            let said = ["event", "application", "rule", "why"].map(|key| &row[key]);
            assert_eq!(
                said,
                ["decided", "dns", "dns", "application=dns"],
                "{later}"
            );
            assert_eq!(row["packet"], 2 * number + 1, "{later}");
        }
        let packets: Vec<u64> = rows
            .iter()
            .map(|row| row["packet"].as_u64().unwrap())
            .collect();
        assert!(packets.is_sorted(), "{packets:?}");
    }
}

#[test]
fn what_is_missing_is_said_and_what_no_rule_needs_has_no_application() {
    let videos = "[[rule]]\nname = \"videos\"\nmime-types = [\"video/*\"]\naction = \"reject\"\n";
    let frames = queries_and_requests();
    // Of a request without its response.
    let is_request = |frame: &CapturedFrame| frame.bytes.windows(4).any(|bytes| bytes == b"GET ");
    let until = frames.iter().position(is_request).unwrap();
    let rows = explain(videos, &frames[..=until]);
    let waits = rows
        .iter()
        .find(|row| row["event"] == "undecided" && row["application"] == "http");
    let waits = waits.expect("a request");
    assert_eq!(
        [&waits["rule"], &waits["action"], &waits["why"]],
        [
            &Value::from("default"),
            &Value::Null,
            &"more packets needed: rule `videos` is still possible".into()
        ]
    );
    let empty = rows
        .iter()
        .find(|row| row["why"] == "no packet with payload");
    assert!(
        empty.is_some_and(|row| row["application"].is_null()),
        "{rows:?}"
    );

    let ports = "[[rule]]\nname = \"names\"\nserver-ports = [53]\naction = \"drop\"\n";
    let rows = explain(ports, &frames);
    assert!(rows.len() > 120, "{}", rows.len());
    for row in &rows {
        let (rule, why) = match row["server_port"].as_u64() {
            Some(53) => ("names", "server-ports=53"),
            _ => ("default", "no rule matches"),
        };
        let why = format!("{why}; not classified: no rule needs it");
        let said = [&row["application"], &row["rule"], &row["why"]];
        assert_eq!(said, [&Value::Null, &rule.into(), &why.into()]);
    }
}

#[test]
fn a_decision_comes_before_what_was_found_at_its_packet() {
    let policy = "[[rule]]\nname = \"words\"\nmethods = [\"GET\"]\naction = \"inspect\"\nkeywords = [\"http\"]\n";
    let rows = explain(policy, &demo_frames());
    let events: Vec<(&Value, &Value)> = rows
        .iter()
        .map(|row| (&row["packet"], &row["event"]))
        .collect();
    let both = events.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    let both: Vec<_> = both
        .filter(|pair| pair[0].1 == "decided" || pair[1].1 == "decided")
        .collect();
    assert!(both.len() > 10, "{}", both.len());
    assert!(both.iter().all(|pair| pair[0].1 == "decided"), "{both:?}");
}

/// The rate of each client, as the kernel would keep it: one that all fit in, and one that none does.
#[test]
fn packets_beyond_the_rate_of_a_client_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gateway.toml");
    let (policy, demo) = (path.to_str().unwrap(), demo());
    let explained = |rate: &str, form: &str| {
        let text = format!(
            "[[rule]]\nname = \"rated\"\napplication = \"http\"\naction = \"allow\"\nclient-rate = {rate}\n"
        );
        std::fs::write(&path, text).unwrap();
        let capture = demo.to_str().unwrap();
        let words = [
            "gateway", "explain", "-c", policy, "-r", capture, "--format", form,
        ];
        run(&words).exits(0).stdout
    };
    let sum = |rate: &str, field: &str| -> u64 {
        let said = explained(rate, "jsonl");
        let lines = said
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let rated: Vec<Value> = lines.filter(|one| one["rule"] == "rated").collect();
        assert!(rated.len() > 10, "{said}");
        let count = |one: &Value| one[field].as_u64().unwrap_or_else(|| panic!("{one}"));
        rated.iter().map(count).sum()
    };
    let slow = "\"1kB/s\"\nclient-burst = \"1B\"";
    assert_eq!(sum("\"12500MB/s\"", "over_rate_packets"), 0);
    let (packets, bytes) = (sum(slow, "over_rate_packets"), sum(slow, "over_rate_bytes"));
    assert!(packets > 100 && bytes > 100_000, "{packets} {bytes}");
    let table = explained(slow, "table");
    assert!(table.contains("would have been dropped"), "{table}");
}
