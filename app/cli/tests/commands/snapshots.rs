//! What users see, word for word: formats, help, summary.

use crate::common::{demo, golden, http, run, summary};
use serde_json::Value;

#[test]
fn every_format() {
    for format in ["text", "jsonl", "csv", "spreadsheet", "zeek", "zeek-json"] {
        let ran = http(&demo(), &["--format", format]).exits(0);
        let first: Vec<String> = ran
            .stdout
            .lines()
            .take(16)
            .map(|line| match line.split_once('\t') {
                // When the file was opened.
                Some(("#open", _)) => "#open\t(redacted)".to_owned(),
                _ => line.to_owned(),
            })
            .collect();
        golden(&format!("first.{format}"), &(first.join("\n") + "\n"));
        let comments = ran
            .stdout
            .lines()
            .filter(|line| line.starts_with('#'))
            .count();
        let heading = usize::from(matches!(format, "csv" | "spreadsheet"));
        assert_eq!(ran.lines().len() - comments - heading, 800, "{format}");
    }
}

#[test]
fn every_format_with_times_to_last_byte_sorted() {
    for format in ["text", "jsonl", "csv", "zeek"] {
        let ran = http(&demo(), &["--format", format, "--ttlb", "--sort"]).exits(0);
        let records = ran.stdout.lines().filter(|line| !line.starts_with('#'));
        let text: Vec<&str> = records.take(6).collect();
        golden(&format!("sorted.{format}"), &(text.join("\n") + "\n"));
    }
}

#[test]
fn help() {
    golden("help.txt", &run(&["--help"]).exits(0).stdout);
    golden("http-help.txt", &run(&["http", "--help"]).exits(0).stdout);
    let gateway = ["check", "explain", "up", "run", "status", "reload", "down"];
    let mut all = run(&["gateway", "--help"]).exits(0).stdout;
    for command in gateway {
        all.push_str(&run(&["gateway", command, "--help"]).exits(0).stdout);
    }
    golden("gateway-help.txt", &all);
    let mut all = run(&["model", "--help"]).exits(0).stdout;
    for command in ["sessions", "fit", "simulate", "check"] {
        all.push_str(&run(&["model", command, "--help"]).exits(0).stdout);
    }
    golden("model-help.txt", &all);
    golden("http-h.txt", &run(&["http", "-h"]).exits(0).stdout);
}

#[test]
fn help_lists_the_applications() {
    for command in ["flows", "gateway"] {
        let help = run(&[command, "--help"]).exits(0).stdout;
        let (_, list) = help.split_once("Applications ").expect("a list");
        let (list, _) = list.split_once("\n\n").expect("an end");
        let names: Vec<&str> = list.split_ascii_whitespace().collect();
        for application in linkweir_proto::application::Application::ALL {
            assert!(
                names.contains(&application.as_str()),
                "{command}: {application:?}"
            );
        }
    }
}

#[test]
fn help_of_feed_says_what_is_hashed() {
    let help = run(&["feed", "--help"]).exits(0).stdout;
    let help = help.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "the remainder of a hash divided by `--consumers`",
        "- transaction: A request and its response",
        "both ports and the request's acknowledgment number",
        "- paper: As in Vega et al. (2017), Eq. (3), each packet by itself: the XOR of both addresses",
        "- flow: All packets of a TCP connection or UDP flow",
    ] {
        assert!(help.contains(said), "{said}");
    }
}

#[test]
fn help_of_flows_says_when_a_flow_of_one_packet_ends() {
    let help = run(&["flows", "--help"]).exits(0).stdout;
    let help = help.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "one of a single packet ends after `--syn-timeout`",
        "and a UDP flow of one packet, after this time, as Tstat does",
    ] {
        assert!(help.contains(said), "{said}");
    }
}

#[test]
fn the_version() {
    let version = format!("linkweir {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(&["--version"]).exits(0).stdout, version);
}

#[test]
fn the_summary() {
    let mut value = summary(&demo(), &[]);
    assert!(value["elapsed_s"].as_f64().unwrap() > 0.0);
    value["elapsed_s"] = Value::from("(redacted)");
    golden(
        "summary.json",
        &(serde_json::to_string_pretty(&value).unwrap() + "\n"),
    );
}

#[test]
fn the_screen_goes_to_standard_error_unless_quiet() {
    let demo = demo();
    let loud = run(&["http".as_ref(), "-r".as_ref(), demo.as_os_str()]).exits(0);
    for word in [
        "2,869 packets",
        "800 complete",
        "GET 636",
        "transactions",
        "response time",
    ] {
        assert!(loud.stderr.contains(word), "{word}: {}", loud.stderr);
    }
    let quiet = http(&demo, &[]).exits(0);
    assert_eq!(quiet.stderr, "");
    assert_eq!(quiet.stdout, loud.stdout);
}
