//! `linkweir model sessions`: logs of several kinds to the starts of sessions.

use super::*;

/// A line of a log, `minutes` after noon.
pub(super) fn line(client: &str, minutes: u64, seconds: u64) -> String {
    let (hour, minute) = (12 + minutes / 60, minutes % 60);
    format!(
        "{client} - - [10/Oct/2000:{hour:02}:{minute:02}:{seconds:02} +0000] \"GET / HTTP/1.1\" 200 5\n"
    )
}

/// Three clients; with a timeout of half an hour 5 sessions, of ten minutes 7.
pub(super) fn log() -> Vec<String> {
    vec![
        line("10.0.0.1", 0, 0),
        line("2001:db8::1", 0, 5),
        line("10.0.0.1", 5, 0),
        // 15 minutes after its last.
        line("10.0.0.1", 20, 0),
        // Half an hour to the second belongs to the session.
        line("2001:db8::1", 30, 5),
        line("pc7.example.net", 31, 0),
        // Written late: it came a second before the line above.
        line("pc8.example.net", 30, 59),
        line("10.0.0.1", 50, 1),
        line("PC7.example.net", 62, 0),
    ]
}

const STARTS: &str = "session_start
2000-10-10T12:00:00Z
2000-10-10T12:00:05Z
2000-10-10T12:30:59Z
2000-10-10T12:31:00Z
2000-10-10T12:50:01Z
2000-10-10T13:02:00Z
";

#[test]
fn sessions_of_a_log() {
    let directory = Directory::new();
    let path = directory.with("a.log", log().concat());
    let summary = directory.at("s.json");
    let ran = model(&["sessions", &path, "--summary", &summary]).exits(0);
    assert_eq!(ran.stdout, STARTS);
    ran.says("9 of 4 clients")
        .says("6, 1.5 requests each (timeout 30m)");
    let object = directory.json("s.json");
    let model_part = &object["model"];
    assert_eq!(model_part["requests"], 9);
    assert_eq!(model_part["clients"], 4);
    assert_eq!(model_part["sessions"], 6);
    assert_eq!(model_part["late_requests"], 0);
    assert_eq!(object["first_ts_ns"], 971_179_200_000_000_000_u64);
    assert_eq!(object["last_ts_ns"], 971_182_920_000_000_000_u64);
    // Shorter: 10.0.0.1 comes back three times, 2001:db8::1 and pc7 once.
    let short = model(&["sessions", &path, "--timeout", "10m", "-q"]).exits(0);
    assert_eq!((short.lines().len() - 1, short.stderr.as_str()), (8, ""));
    let bins = model(&["sessions", &path, "--bin", "30m", "-q"]).exits(0);
    assert_eq!(
        bins.stdout,
        "bin_start,count\n2000-10-10T12:00:00Z,2\n2000-10-10T12:30:00Z,3\n2000-10-10T13:00:00Z,1\n"
    );
    let part = [
        "--from",
        "2000-10-10 12:30:30",
        "--to",
        "2000-10-10 12:50:00",
    ];
    let part = model(&[&["sessions", &path, "-q"], &part[..]].concat()).exits(0);
    assert_eq!(part.lines().len(), 1 + 2);
}

#[test]
fn one_wrong_year_in_an_input_does_not_become_bins() {
    let directory = Directory::new();
    let mut lines = log();
    lines.push(line("10.0.0.9", 21, 0).replace("/2000:", "/2010:"));
    let path = directory.with("a.log", lines.concat());
    let counts = "bin_start,count\n2000-10-10 12:00,2\n2000-10-10 12:30,3\n2010-10-10 13:00,1\n";
    let counts = directory.with("counts.csv", counts);
    let events = "time\n2000-10-10 12:00\n2000-10-10 12:30\n2010-10-10 13:00\n";
    let events = directory.with("events.csv", events);
    let model_path = directory.at("m.json");
    let fit = |input| ["fit", input, "--bin", "30m", "-o", &model_path].map(str::to_owned);
    let sessions = ["sessions", &path, "--bin", "30m"].map(str::to_owned);
    let events_flag = ["--events".to_owned()];
    for words in [
        sessions.to_vec(),
        fit(&path).to_vec(),
        fit(&counts).to_vec(),
        [&fit(&events)[..], &events_flag].concat(),
    ] {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ran = model(&words).exits(2);
        assert_eq!(ran.stdout, "", "{words:?}");
        ran.says("no arrivals from 2000-10-10 1")
            .says("--max-gap 36");
        assert!(!Path::new(&model_path).exists(), "{words:?}");
    }
    let asked = ["sessions", &path, "--bin", "30m", "-q", "--max-gap"];
    let ran = model(&[&asked[..], &["3653d"]].concat()).exits(0);
    assert_eq!(
        ran.lines().len(),
        1 + 3652 * 48 + 1,
        "{:?}",
        ran.lines().last()
    );
    // What is beyond the gap covers nothing: the bins end with the lines before it.
    let part = ["--from", "2000-10-10", "--to", "2000-10-11"];
    let ran = model(&[&asked[..5], &part[..]].concat()).exits(0);
    assert_eq!(ran.lines().len(), 1 + 3, "from noon to one o'clock");
}

#[test]
fn a_wrong_year_is_told_with_its_line() {
    let directory = Directory::new();
    let mut lines = log();
    lines.insert(7, line("10.0.0.9", 21, 0).replace("/2000:", "/2011:"));
    let later = directory.with("later.log", lines.concat());
    let mut lines = log();
    lines.insert(4, line("10.0.0.9", 21, 0).replace("/2000:", "/1999:"));
    let earlier = directory.with("earlier.log", lines.concat());
    let out = directory.at("out.csv");
    // With bins; with bins that would be too many; with the beginning of the time that is meant.
    for (bin, more, fits) in [
        ("30m", &[][..], true),
        ("10s", &[], false),
        ("30m", &["--from", "2000-01-01"], true),
    ] {
        let words = ["sessions", &later, "-w", &out, "--bin", bin];
        let ran = model(&[&words[..], more].concat()).exits(2);
        let ran = ran
            .says("no arrivals from 2000-10-10 13:02:00 UTC (")
            .says("later.log:10) to 2011-10-10 12:21:00 UTC (")
            .says("later.log:8 stands alone: is its time wrong?")
            .says("Leave it out with --to 2011-10-10T12:21:00Z");
        assert!(!ran.stderr.contains("longer --bin"), "{}", ran.stderr);
        // What is advised has to work.
        assert_eq!(ran.stderr.contains("--max-gap 40"), fits, "{}", ran.stderr);
        assert!(!Path::new(&out).exists(), "{more:?}");
    }
    let left_out = ["--to", "2011-10-10T12:21:00Z", "--bin", "10s", "-q"];
    model(&[&["sessions", &later], &left_out[..]].concat()).exits(0);
    let early = model(&["sessions", &earlier, "-q", "--bin", "30m"])
        .exits(2)
        .says("earlier.log:5) to 2000-10-10 12:00:00 UTC (")
        .says("earlier.log:1): ")
        .says("earlier.log:5 stands alone")
        .says("with --from 2000-10-10T12:00:00Z, or");
    assert!(!early.stderr.contains("earlier.log:1 stands"));
    // Without bins nothing is filled, and every session has its line.
    let starts = model(&["sessions", &later, "-q"]).exits(0);
    assert_eq!(starts.lines().len(), 1 + 6 + 1);
    // More than one on either side; one between two others.
    let mut lines = log();
    lines.extend([20, 21].map(|at| line("10.0.0.9", at, 0).replace("/2000:", "/2011:")));
    let two = directory.with("two.log", lines.concat());
    model(&["sessions", &two, "--bin", "30m"])
        .exits(2)
        .says("Leave out 2 requests with --to 2011-10-10T12:20:00Z");
    lines.extend([line("10.0.0.9", 30, 0).replace("/2000:", "/2005:")]);
    let between = directory.with("between.log", lines.concat());
    model(&["sessions", &between, "--bin", "30m"])
        .exits(2)
        .says("between.log:12 stands alone: is its time wrong? Take it out of the log");
    // It is left out as the message says, and fills nothing.
    let words = [
        "sessions",
        &earlier,
        "-q",
        "--bin",
        "10s",
        "--from",
        "2000-01-01",
    ];
    let ran = model(&words);
    assert_eq!(
        ran.lines().len(),
        1 + 62 * 6 + 1,
        "from 12:00:00 to 13:02:00"
    );
    assert!(
        ran.stdout
            .starts_with("bin_start,count\n2000-10-10T12:00:00Z,2\n")
    );
    let starts = model(&["sessions", &later, "-q", "--to", "2000-12-31"]).exits(0);
    assert_eq!(starts.stdout, STARTS);
}

#[test]
fn bins_most_of_which_are_empty_are_told() {
    let directory = Directory::new();
    let mut lines = log();
    let full = directory.with("full.log", lines.concat());
    lines.push(line("10.0.0.9", 0, 0).replace("10/Oct", "25/Oct"));
    let empty = directory.with("empty.log", lines.concat());
    let out = directory.at("out.csv");
    let bins = |path: &str| {
        let words = ["sessions", path, "--bin", "30m", "-w", &out, "--overwrite"];
        model(&words).exits(0)
    };
    bins(&empty)
        .says("717 of 721 bins are empty; the longest time without a session is from 2000-10-10 13:00:00 UTC to 2000-10-25 12:00:00 UTC");
    assert!(!bins(&full).stderr.contains("empty;"));
}

#[test]
fn a_log_may_come_in_pieces_compressed_and_through_a_pipe() {
    let directory = Directory::new();
    let lines = log();
    let newer = directory.with("new.log", lines[5..].concat());
    let mut gzip = std::process::Command::new("gzip")
        .arg("-c")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let older = lines[..5].concat();
    gzip.stdin
        .take()
        .unwrap()
        .write_all(older.as_bytes())
        .unwrap();
    let packed = gzip.wait_with_output().unwrap().stdout;
    let older = directory.with("old.log.1", &packed);
    // In the wrong order.
    assert_eq!(
        model(&["sessions", &newer, &older, "-q"]).exits(0).stdout,
        STARTS
    );
    let piped = model_stdin(&["sessions", "-", "-q"], lines.concat().as_bytes());
    assert_eq!(piped.exits(0).stdout, STARTS);
    // What is before the damage counts.
    let cut = directory.with("cut.gz", &packed[..packed.len() - 4]);
    let ran = model(&["sessions", &cut])
        .exits(1)
        .says("what is before it was read");
    assert_eq!(ran.lines().len(), 1 + 2);
}

#[test]
fn lines_that_cannot_be_read_are_counted_by_cause() {
    let directory = Directory::new();
    let mut lines = log();
    lines.insert(1, "10.0.0.9 - - [yesterday] \"GET /\" 200 5\n".to_owned());
    lines.insert(
        3,
        "10.0.0.9 - - [10/Oct/2000:12:00:00 +0000] GET / 200 5\n".to_owned(),
    );
    lines.push("\u{1b}[31mrubbish\n".to_owned());
    lines.push("10.0.0.9 - - [10/Oct/2000:12:00:00 +0000] \"-\" 408 -\n".to_owned());
    let path = directory.with("a.log", lines.concat());
    let summary = directory.at("s.json");
    let ran = model(&["sessions", &path, "--summary", &summary]).exits(1);
    assert_eq!(ran.stdout, STARTS);
    let ran = ran
        .says("1 line not read (time), the first is line 2")
        .says("1 line not read (request), the first is line 4")
        .says("1 line not read (client), the first is line 12");
    assert!(!ran.stderr.contains('\u{1b}'));
    let object = directory.json("s.json");
    assert_eq!(object["model"]["not_read"].as_array().unwrap().len(), 4);
    // A connection without a request does not count as damage.
    let path = directory.with("b.log", lines[lines.len() - 1].clone() + &log().concat());
    model(&["sessions", &path, "-q"]).exits(0);
    // A log that is not sorted at all.
    let mut lines = log();
    lines.reverse();
    let path = directory.with("c.log", lines.concat());
    model(&["sessions", &path, "-q"])
        .exits(1)
        .says("sort the log");
}

/// A record of the World Cup logs.
fn record(time: u32, client: u32) -> Vec<u8> {
    let mut bytes = time.to_be_bytes().to_vec();
    bytes.extend(client.to_be_bytes());
    bytes.extend([0, 0, 0, 1, 0, 0, 1, 0, 0, 2, 1, 33]);
    bytes
}

#[test]
fn sessions_of_world_cup_records() {
    let directory = Directory::new();
    let start = 897_343_200;
    let mut bytes = Vec::new();
    for (seconds, client) in [(0, 1), (3, 2), (12, 1), (1812, 1), (1813, 2), (1900, 3)] {
        bytes.extend(record(start + seconds, client));
    }
    let path = directory.with("wc_day45_1", &bytes);
    let ran = model(&["sessions", &path, "-q", "--bin", "1h"]).exits(0);
    // 1 and 2 begin; 2 again after 1810 s, 1 not after 1800 s; 3 begins.
    assert_eq!(ran.stdout, "bin_start,count\n1998-06-08T22:00:00Z,4\n");
    bytes.pop();
    let path = directory.with("cut", &bytes);
    let ran = model(&["sessions", &path, "--bin", "1h", "-w", "/dev/null"]);
    ran.exits(1)
        .says("1 line not read (truncated), the first is line 6");
    // A time beyond the event is taken where the form is stated.
    let path = directory.with("late", record(1_000_000_000, 1));
    model(&["sessions", &path])
        .exits(3)
        .says("no log in a known form");
    model(&["sessions", &path, "--format", "wc98", "-q"]).exits(0);
}

#[test]
fn sessions_of_http_records_are_the_same_in_every_form() {
    let directory = Directory::new();
    let mut outputs = Vec::new();
    let capture = demo();
    for form in ["jsonl", "csv", "text", "parquet", "arrow"] {
        let records = directory.at(form);
        let words = [
            "http",
            "-q",
            "-r",
            capture.to_str().unwrap(),
            "-w",
            &records,
        ];
        run(&[&words[..], &["--format", form]].concat()).exits(0);
        let summary = directory.at("s.json");
        let words = [
            "sessions",
            &records,
            "--timeout",
            "5ms",
            "--overwrite",
            "--summary",
            &summary,
        ];
        outputs.push(model(&words).exits(0).stdout);
        assert_eq!(directory.json("s.json")["model"]["requests"], 800, "{form}");
    }
    assert!(outputs[0].lines().count() > 5, "{}", outputs[0]);
    assert!(outputs.iter().all(|output| *output == outputs[0]));

    // A stream needs no file; several inputs of several forms are merged by time.
    let stream = fs::read(directory.at("arrow")).unwrap();
    let ran = model_stdin(&["sessions", "-", "--timeout", "5ms", "-q"], &stream).exits(0);
    assert_eq!(ran.stdout, outputs[0]);
    let both = [directory.at("parquet"), directory.at("jsonl")];
    let summary = directory.at("both.json");
    let words = [
        "sessions",
        &both[0],
        &both[1],
        "--timeout",
        "5ms",
        "--summary",
        &summary,
    ];
    assert_eq!(model(&words).exits(0).stdout, outputs[0]);
    assert_eq!(directory.json("both.json")["model"]["requests"], 1600);

    let counts = [
        "fit",
        &both[0],
        "--bin",
        "10ms",
        "--timeout",
        "5ms",
        "--json",
        "-o",
    ];
    let of_columns = model(&[&counts[..], &[&directory.at("m.json")]].concat()).exits(0);
    let arrivals: Value = serde_json::from_str(&of_columns.stdout).unwrap();
    assert_eq!(arrivals["arrivals"], outputs[0].lines().count() - 1);
}

#[test]
fn columns_that_are_damaged_or_of_something_else_are_told_by_name() {
    let directory = Directory::new();
    let capture = demo();
    let capture = capture.to_str().unwrap();
    let records = |command: &str, name: &str| {
        let path = directory.at(name);
        run(&[command, "-q", "-r", capture, "-w", &path]).exits(0);
        path
    };
    for name in ["flows.parquet", "flows.arrow"] {
        let flows = records("flows", name);
        model(&["sessions", &flows])
            .exits(3)
            .says(name)
            .says("no column `client_ip`; there are: c_ip, c_port,");
    }
    let parquet = records("http", "http.parquet");
    let bytes = fs::read(&parquet).unwrap();
    let _no_file = model_stdin(&["sessions", "-"], &bytes)
        .exits(3)
        .says("standard input")
        .says("no pipe");
    let cut = directory.with("cut.parquet", &bytes[..bytes.len() / 2]);
    model(&["sessions", &cut]).exits(3).says("cut.parquet");
    // A stream that ends in the middle: what is before the damage counts.
    let stream = fs::read(records("http", "http.arrow")).unwrap();
    let cut = directory.with("cut.arrow", &stream[..stream.len() - 5000]);
    model(&["sessions", &cut, "-q"]).exits(1).says("cut.arrow");
    let feather = directory.with("x.feather", b"ARROW1\0\0 and more");
    model(&["sessions", &feather])
        .exits(3)
        .says("has to be a stream");
}
