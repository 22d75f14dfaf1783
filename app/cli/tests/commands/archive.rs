//! `linkweir archive` on an archive of known content.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::common::{demo, run};
use linkweir_sketch::Step;
use linkweir_sketch::cells::{Direction, Measure, SeriesId, Transport};
use linkweir_sketch::step::{HISTOGRAMS, HistogramId, LEFT_OUT};
use linkweir_tstat::archive::ArchiveSink;
use serde_json::Value;

/// 2026-11-14 00:00 UTC, in steps of 300 s.
const FIRST: u64 = 1_794_614_400 / 300;

/// Three hours, with half an hour missing; flows in these directions.
fn write(path: &Path, directions: &[Direction]) {
    let mut sink = ArchiveSink::open(path, Duration::from_secs(300)).unwrap();
    for number in (FIRST..FIRST + 36).filter(|number| !(FIRST + 12..FIRST + 18).contains(number)) {
        let mut step = Step {
            number,
            span_ns: 300_000_000_000,
            shards: 1,
            ..Step::default()
        };
        for direction in directions {
            let throughput = SeriesId::distribution(Measure::TcpThroughput, *direction).unwrap();
            for flow in 1..=100 {
                step.cells.add(throughput, flow * 10_000);
            }
            step.cells
                .add(SeriesId::bytes(Transport::Tcp, *direction), 3_000);
        }
        sink.put(&step).unwrap();
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_capture_that_is_read_again_is_not_counted_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.lwa");
    let capture = demo();
    let words = ["flows", "-q", "--no-output", "-r", text(&capture)];
    let read = || run(&[&words[..], &["--archive", text(&path)]].concat());
    let dump = || run(&["archive", "dump", text(&path)]).exits(0).stdout;
    read().exits(0);
    let once = dump();
    assert!(once.lines().count() > 1, "{once}");
    let again = read().says("was measured by an earlier run already");
    assert_ne!(again.code, Some(0));
    assert!(dump() == once);
}

#[test]
fn an_archive_is_dumped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.lwa");
    write(&path, &[Direction::In, Direction::Out]);
    let all = ["archive", "dump", text(&path)];
    let dump = |more: &[&str]| run(&[&all, more].concat()).exits(0).stdout;
    let csv = dump(&["--series", "tcp_throughput", "--level", "30min"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("series,unit,level,time,start_ns,"));
    // Five half hours of three directions.
    assert_eq!(lines.len(), 1 + 5 * 3);
    assert!(lines[1].starts_with(
        "tcp_throughput_in,bit/s,30min,2026-11-14T00:00:00Z,1794614400000000000,1800000000000,6,600,303000000,505000,10000,1000000,"
    ));
    let jsonl = dump(&[
        "--series",
        "tcp_throughput_in",
        "--series",
        "bitrate_tcp_in",
        "--level",
        "1day",
        "--format",
        "jsonl",
    ]);
    let values: Vec<Value> = jsonl
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [bits, throughput] = &values[..] else {
        panic!("{jsonl}");
    };
    // 3,000 bytes in 300 s.
    assert_eq!(
        (&bits["series"], &bits["avg"]),
        (&"bitrate_tcp_in".into(), &80.into())
    );
    assert_eq!(
        (&bits["sum"], &bits["steps"]),
        (&(30 * 24_000).into(), &30.into())
    );
    assert!(bits.get("p95").is_none());
    // The percentile of a day is that of all its values, within a bucket.
    let p95 = throughput["p95"].as_f64().unwrap();
    assert!((p95 / 950_000.0 - 1.0).abs() < 0.0625, "{p95}");
    let part = dump(&[
        "--series",
        "flows_active_tcp",
        "--level",
        "5min",
        "--from",
        "2026-11-14 00:50",
        "--to",
        "2026-11-14T01:40:00Z",
    ]);
    assert_eq!(part.lines().count(), 1 + 4, "{part}");
    let list = dump(&["--list"]);
    assert!(list.contains("level 2h rows 775") && list.contains("series tcp_rtt_avg_in unit ns"));
    let out = directory.path().join("out.csv");
    dump(&["-o", text(&out)]);
    assert!(std::fs::read_to_string(&out).unwrap().lines().count() > 1000);
}

#[test]
fn an_archive_is_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.lwa");
    write(&path, &[Direction::In, Direction::Out]);
    let svg = run(&["archive", "plot", text(&path), "-o", "-"])
        .exits(0)
        .stdout;
    for part in [
        "Last hour",
        "Last month",
        "99th percentile",
        "above in: to internal",
        "bit/s",
        "\u{202f}k",
        "02:10",
    ] {
        assert!(svg.contains(part), "{part}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("nothing was measured"));
    let file = directory.path().join("a.svg");
    for more in [
        ["--span", "day"],
        ["--scale", "log"],
        ["--span", "all"],
        ["--series", "bitrate_tcp"],
    ] {
        let all = [
            "archive",
            "plot",
            text(&path),
            "-o",
            text(&file),
            "--overwrite",
        ];
        run(&[&all[..], &more[..]].concat()).exits(0);
        let picture = std::fs::read(&file).unwrap();
        assert!(picture.starts_with(b"<svg xmlns"));
        assert!(picture.len() > 5_000, "{more:?}");
    }
    let early = [
        "archive",
        "plot",
        text(&path),
        "-o",
        "-",
        "--span",
        "hour",
        "--end",
        "2026-11-01",
    ];
    assert!(
        run(&early)
            .exits(0)
            .stdout
            .contains("nothing was measured in this time")
    );
}

#[test]
fn without_internal_networks_what_is_local_is_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.lwa");
    write(&path, &[Direction::Loc]);
    let svg = run(&["archive", "plot", text(&path), "-o", "-"])
        .exits(0)
        .stdout;
    assert!(svg.contains("loc: between internal") && !svg.contains("to external"));
}

#[test]
fn what_cannot_be_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.lwa");
    write(&path, &[Direction::In]);
    let file = text(&path);
    let says = |words: &[&str], code: i32, what: &str| {
        let ran = run(&[&["archive"], words].concat()).exits(code);
        assert!(ran.stderr.contains(what), "{}", ran.stderr);
    };
    says(
        &["dump", file, "--series", "tcp_rt"],
        2,
        "no series `tcp_rt`",
    );
    says(
        &["dump", file, "--level", "3h"],
        2,
        "available: 5min, 30min, 2h, 1day",
    );
    says(
        &["dump", file, "--from", "yesterday"],
        2,
        "give a time such as 2026-11-14",
    );
    says(&["plot", file, "-o", "a.png"], 2, "a picture ends in .svg");
    says(
        &["plot", file, "-o", "-", "--series", "tcp"],
        2,
        "no series `tcp` by direction",
    );
    says(
        &["dump", "/nowhere/a.lwa"],
        3,
        "/nowhere/a.lwa: No such file",
    );
    let not = directory.path().join("b.lwa");
    std::fs::write(&not, "something else").unwrap();
    says(&["plot", text(&not), "-o", "-"], 3, "b.lwa: not an archive");
    // One row damaged: the others are still there, and it is said.
    let mut bytes = std::fs::read(&path).unwrap();
    let len = bytes.len();
    let rows = bytes
        .chunks_exact_mut(64)
        .position(|chunk| chunk.starts_with(&(FIRST + 1).to_le_bytes()));
    let at = rows.unwrap() * 64 + 40;
    bytes[at] ^= 1;
    assert!(at < len);
    std::fs::write(&path, &bytes).unwrap();
    let ran = run(&[
        "archive",
        "dump",
        file,
        "--series",
        "bytes_tcp_in",
        "--level",
        "5min",
    ])
    .exits(1);
    assert!(
        ran.stderr.contains("1 row damaged and omitted"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.stdout.lines().count(), 1 + 29);
}

#[test]
fn the_archive_is_not_replaced_by_what_is_made_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.svg");
    write(&path, &[Direction::In]);
    let link = directory.path().join("b.svg");
    std::fs::hard_link(&path, &link).unwrap();
    let before = std::fs::read(&path).unwrap();
    for output in [&path, &link] {
        for command in ["dump", "plot"] {
            run(&["archive", command, text(&path), "-o", text(output)])
                .exits(2)
                .says("name another file");
        }
    }
    assert!(std::fs::read(&path).unwrap() == before);
}

/// Of what Tstat writes, this much can hold anything here; the rest is left out with its reason, and the
/// documents say so.
#[test]
fn what_of_tstats_histograms_is_measured() {
    let filled = linkweir_flows::step::filled();
    let all = (0..).map(HistogramId).take(HISTOGRAMS.len());
    let measured = all.filter(|id| id.is_measured()).collect::<BTreeSet<_>>();
    assert_eq!(filled, measured, "LEFT_OUT is not what nothing fills");
    let stock = linkweir_tstat::rrd::stock().len();
    let series = linkweir_tstat::rrd::measured().len();
    assert_eq!((HISTOGRAMS.len(), stock), (349, 1_491));
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let counts = [
        format!("{} of Tstat's 349", measured.len()),
        format!("{} of the 1,491", with_comma(series)),
    ];
    let rows = LEFT_OUT.iter().map(|one| {
        let names = one.names.iter().map(|name| format!("`{name}`"));
        let names = names.collect::<Vec<_>>().join(", ");
        format!("| {names} | {} | {} |", one.count(), one.reason)
    });
    let rows = rows.collect::<Vec<_>>();
    for (document, lines) in [("flows.md", rows), ("papers.md", Vec::new())] {
        let text = std::fs::read_to_string(docs.join(document)).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in counts.iter().chain(&lines) {
            assert!(text.contains(words), "{document} does not say: {words}");
        }
    }
}

fn with_comma(number: usize) -> String {
    if number < 1_000 {
        return number.to_string();
    }
    format!("{},{:03}", number / 1_000, number % 1_000)
}

#[test]
fn distributions_of_any_time_are_dumped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.lwa");
    write(&path, &[Direction::In, Direction::Out]);
    let dump = |more: &[&str]| {
        let all = ["archive", "dump", text(&path), "--distribution"];
        let ran = run(&[&all[..], &["--format", "jsonl"], more].concat()).exits(0);
        let lines = ran.stdout.lines();
        lines
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .collect::<Vec<Value>>()
    };
    let count = |lines: &[Value]| {
        lines
            .iter()
            .map(|one| one["count"].as_u64().unwrap())
            .sum::<u64>()
    };
    let all = dump(&["--series", "tcp_throughput_in"]);
    // 30 steps were measured, of 100 flows from 10 kbit/s to 1 Mbit/s each.
    assert_eq!((count(&all), &all[0]["steps"]), (3_000, &30.into()));
    assert_eq!(all[0]["from"], "2026-11-14T00:00:00Z");
    assert_eq!(all[0]["to"], "2026-11-14T03:00:00Z");
    let mut area = 0.0;
    for line in &all {
        let of = |name: &str| line[name].as_f64().unwrap();
        area += of("density") * (of("high") - of("low"));
        // Of evenly spread values, as many are above a value as there are.
        let above = (100.0 - ((of("high") - 1.0) / 10_000.0).floor()).max(0.0) / 100.0;
        assert!((of("ccdf") - above).abs() < 1e-6, "{line}");
    }
    assert!((area - 1.0).abs() < 1e-4, "{area}");
    // Two times, the second one beside a gap.
    let two = dump(&[
        "--series",
        "tcp_throughput",
        "--from",
        "2026-11-14 00:10",
        "--to",
        "2026-11-14 00:20",
        "--against",
        "2026-11-14 01:00..2026-11-14 01:35",
    ]);
    let (against, first): (Vec<Value>, Vec<Value>) = two
        .into_iter()
        .partition(|line| line["from"] == "2026-11-14T01:30:00Z");
    assert_eq!((count(&first), count(&against)), (2 * 200, 200));
    assert_eq!(first[0]["to"], "2026-11-14T00:20:00Z");
    // Of counters the rates of steps.
    let bits = dump(&["--series", "bitrate_tcp_in"]);
    let [bits] = &bits[..] else {
        panic!("{bits:?}");
    };
    assert_eq!(
        (&bits["count"], &bits["level"]),
        (&30.into(), &"5min".into())
    );
    assert!(bits["low"].as_f64().unwrap() <= 80.0 && bits["high"].as_f64().unwrap() > 80.0);
    let csv = run(&["archive", "dump", text(&path), "--distribution"])
        .exits(0)
        .stdout;
    assert!(csv.starts_with(
        "series,unit,level,from,to,from_ns,to_ns,steps,low,high,count,share,density,ccdf\n"
    ));
    let columns = |line: &str| line.split(',').count();
    assert!(csv.lines().all(|line| columns(line) == 14) && csv.lines().count() > 100);
}

#[test]
fn distributions_are_drawn_beside_the_course() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.lwa");
    write(&path, &[Direction::In, Direction::Out]);
    let plot = |more: &[&str]| {
        let all = ["archive", "plot", text(&path), "-o", "-"];
        run(&[&all[..], more].concat()).exits(0).stdout
    };
    let says = |svg: &str, parts: &[&str]| {
        for part in parts {
            assert!(svg.contains(part), "{part}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    };
    let svg = plot(&["--distribution", "ccdf"]);
    says(
        &svg,
        &[
            "Last hour",
            "Last month",
            "a point is 30min",
            "in: 3,000 values",
            "out: 1,200 values",
        ],
    );
    assert_eq!(svg.matches(">CCDF<").count(), 4);
    let svg = plot(&["--distribution", "pdf", "--span", "all", "--scale", "log"]);
    says(
        &svg,
        &[">PDF<", "density per decade", "out: 3,000 values", "p99"],
    );
    let svg = plot(&[
        "--distribution",
        "ccdf",
        "--from",
        "2026-11-14 00:00",
        "--to",
        "2026-11-14 01:00",
        "--against",
        "2026-11-14 02:00..2026-11-14 02:05",
    ]);
    says(
        &svg,
        &[
            "Chosen time",
            "2026-11-14 02:00 to 2026-11-14 02:05; a point is 5min",
            "in: 1,200 values",
            "out, compared: 100 values",
            "bit/s; 2026-11-14 00:00 to 2026-11-14 01:00, compared with 2026-11-14 02:00 to 2026-11-14 02:05",
            "share of values above",
        ],
    );
    let svg = plot(&[
        "--distribution",
        "ccdf",
        "--series",
        "bitrate_tcp",
        "--against",
        "2026-11-14..2026-11-15",
    ]);
    says(
        &svg,
        &[
            "CCDF of rates, a value is 5min",
            "in: 30 values",
            "in, compared: 30 values",
        ],
    );
    // Without a distribution, a time of one's own is a panel.
    let svg = plot(&["--from", "2026-11-14 02:00"]);
    says(
        &svg,
        &[
            "2026-11-14 02:00 to 2026-11-14 03:00, a point is 5min",
            "95th percentile",
        ],
    );
}

#[test]
fn times_that_cannot_be_are_said() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.lwa");
    write(&path, &[Direction::In]);
    for (wrong, what) in [
        (
            &["--against", "2026-11-14..2026-11-15"][..],
            "--distribution",
        ),
        (
            &["--distribution", "ccdf", "--against", "2026-11-14"],
            "give two times such as",
        ),
        (
            &[
                "--distribution",
                "ccdf",
                "--against",
                "2026-11-14..2026-11-14",
            ],
            "must be after the first",
        ),
        (
            &["--from", "2026-11-14", "--span", "day"],
            "cannot be used with",
        ),
    ] {
        let all = ["archive", "plot", text(&path), "-o", "-"];
        let ran = run(&[&all[..], wrong].concat()).exits(2);
        assert!(ran.stderr.contains(what), "{}", ran.stderr);
    }
}
