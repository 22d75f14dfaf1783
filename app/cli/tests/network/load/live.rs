//! A load while it goes on: its reports, its console, and a controller whose page starts and stops its workers.

use super::site;

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;

use linkweir_testkit::load::{Place, generator, routed};
use linkweir_testkit::netns::{Running, until};
use serde_json::Value;
use site::{PATIENCE, Site, url};

/// Where consoles listen: each namespace has its own loopback.
const CONSOLE: &str = "127.0.0.1:8099";
const TOKEN: &str = "token-of-the-test";

/// Asks the console of the first generator; the status code, 0 where nobody listens, and the answer.
fn ask(site: &Site, target: &str, fields: &[&str]) -> (u16, String) {
    let mut curl = site.net.command(Place::Generator(0), "curl");
    curl.args(["-s", "-m", "10", "-w", "\n%{http_code}"]);
    for field in fields {
        curl.args(["-H", field]);
    }
    let output = curl
        .arg(format!("http://{CONSOLE}{target}"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, code) = text.rsplit_once('\n').unwrap();
    (code.parse().unwrap(), body.to_owned())
}

/// A JSON file of the test, once it is whole.
fn read(site: &Site, name: &str) -> Option<Value> {
    serde_json::from_str(&fs::read_to_string(site.path(name)).ok()?).ok()
}

fn count(value: &Value, way: &str) -> u64 {
    let found = value.pointer(way).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("no {way} in {value}"))
}

#[test]
fn asked_in_the_middle_it_reports_as_it_stands() {
    let Some(site) = Site::open(&[]) else { return };
    let words = "--clients 10.128.0.0/16 --arrivals constant:200 --sessions 300 \
                 --report report.json --report page.html --series series.csv";
    let mut command = site.load_command(0, "run", &url("/small"), words);
    let running = Running::start(&mut command).unwrap();
    assert!(until(PATIENCE, || site.nginx.visits().len() >= 50));
    assert_eq!(
        read(&site, "run.json"),
        None,
        "written before it was asked for"
    );
    running.signal("USR1").unwrap();
    assert!(until(PATIENCE, || read(&site, "run.json").is_some()));
    let there_are = site.nginx.visits().len() as u64;
    let (now, report) = (
        read(&site, "run.json").unwrap(),
        read(&site, "report.json").unwrap(),
    );
    let page = fs::read_to_string(site.path("page.html")).unwrap();
    let series = fs::read_to_string(site.path("series.csv")).unwrap();
    let load = site.loaded("run", running);
    assert_eq!(load.code, Some(0), "{}", load.stderr);
    // It is what the end would write, as it was then.
    assert_eq!(now["intermediate"], true);
    assert_eq!(report["intermediate"], true);
    assert_eq!(report["load"], now["load"]);
    let [planned, started, completed, responses] = ["planned", "started", "completed", "responses"]
        .map(|key| count(&now, &format!("/load/{key}")));
    assert!((50..300).contains(&completed), "{completed}");
    assert!(planned >= started && started >= completed && responses >= completed);
    assert!(completed <= there_are, "{completed} of {there_are}");
    assert_eq!(now["load"]["response_time_s"]["count"], responses);
    assert!(count(&now, "/packets") > 0 && count(&now, "/load/tcp/segments_sent") > 0);
    assert!(page.contains("intermediate") && series.lines().count() > 1);
    // The end has taken its place.
    load.completes(300);
    let (end, report) = (
        read(&site, "run.json").unwrap(),
        read(&site, "report.json").unwrap(),
    );
    assert_eq!(
        (&end["intermediate"], &report["intermediate"]),
        (&false.into(), &false.into())
    );
    assert_eq!(report["load"], end["load"]);
    assert_eq!(end["load"]["completed"], 300);
    let all = fs::read_dir(site.path("")).unwrap();
    let left = all.filter(|one| {
        let name = one.as_ref().unwrap().file_name();
        name.to_string_lossy().contains("partial")
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn the_console_has_what_the_summary_and_the_server_have() {
    let Some(site) = Site::open(&["curl"]) else {
        return;
    };
    // Two kinds of answers and two groups; the page is asked while it runs.
    let words = format!(
        "--clients 10.128.0.0/16 --arrivals constant:200 --sessions 300 --console {CONSOLE} \
         --interval 200ms --group a:10.128.0.0/17 --script s.txt"
    );
    site.put("s.txt", "/small\n/none\n");
    let mut command = site.load_command(0, "run", &url("/small"), &words);
    let running = Running::start(&mut command).unwrap();
    assert!(until(PATIENCE, || ask(&site, "/healthz", &[]).0 == 200));
    let mut stream = site.net.command(Place::Generator(0), "curl");
    stream
        .args([
            "-s",
            "-N",
            "-m",
            "60",
            &format!("http://{CONSOLE}/api/stream?after=0"),
        ])
        .stdout(Stdio::piped());
    let stream = Running::start(&mut stream).unwrap();
    assert!(until(PATIENCE, || site.nginx.visits().len() >= 100));
    let (_, metrics) = ask(&site, "/metrics", &[]);
    let (_, status) = ask(&site, "/api/status", &[]);
    let (_, groups) = ask(&site, "/api/top?by=group&sort=sessions&window=all", &[]);
    let load = site.loaded("run", running);
    load.completes(300);
    let visits = site.visits(600);
    let text = String::from_utf8(stream.output().unwrap().stdout).unwrap();
    assert!(text.contains("event: end"), "{text}");
    let ticks: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .filter(|tick: &Value| tick["started"].is_u64())
        .collect();
    let sum = |way: &str| -> u64 {
        let all = ticks.iter().filter_map(|tick| tick.pointer(way)?.as_u64());
        all.sum()
    };
    for key in [
        "planned",
        "started",
        "completed",
        "requests",
        "responses",
        "response_bytes",
    ] {
        assert_eq!(sum(&format!("/{key}")), load.count(key), "{key}");
    }
    let by_code = |code: u16| visits.iter().filter(|one| one.status == code).count() as u64;
    assert_eq!(
        (sum("/codes/200"), sum("/codes/404")),
        (by_code(200), by_code(404))
    );
    assert_eq!((sum("/codes/200"), sum("/codes/404")), (300, 300));
    let bytes: u64 = visits.iter().map(|visit| visit.bytes).sum();
    assert_eq!(sum("/response_bytes"), bytes);
    assert_eq!(sum("/response_time_ns/count"), 600);
    assert_eq!(sum("/service_time_ns/count"), 600);
    assert_eq!(sum("/schedule_lag_ns/count"), 300);
    // 200 sessions a second by intervals of a fifth: however late the loop was, a look counts in an interval of the
    // schedule and has what was due until then.
    let at = |tick: &Value| count(tick, "/t_ms");
    let mut planned = 0;
    let (end, intervals) = ticks.split_last().unwrap();
    for tick in intervals {
        planned += count(tick, "/planned");
        let since = at(tick) - at(&ticks[0]);
        assert_eq!(since % 200, 0, "{ticks:#?}");
        assert!(planned >= (since / 200 * 40 + 40).min(300), "{ticks:#?}");
    }
    assert_eq!(planned + count(end, "/planned"), 300);
    assert!(intervals.len() >= 2, "{ticks:#?}");
    // What was seen on the way is consistent.
    let samples: BTreeMap<&str, f64> = metrics
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name, value.parse().unwrap())
        })
        .collect();
    let started = samples["linkweir_load_sessions_started_total"];
    assert!((1.0..=300.0).contains(&started), "{metrics}");
    let count = samples["linkweir_load_response_time_seconds_count"];
    let inf = samples["linkweir_load_response_time_seconds_bucket{le=\"+Inf\"}"];
    let codes = ["200", "404"]
        .map(|code| samples[&*format!("linkweir_load_responses_total{{code=\"{code}\"}}")]);
    assert!(
        count > 0.0 && (count - inf).abs() < 0.5 && (codes.iter().sum::<f64>() - count).abs() < 0.5
    );
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["status"]["generators"][0]["state"], "running");
    assert_eq!(status["status"]["may_control"], false);
    // Its rows come with the first part of the window, after five seconds.
    let groups: Value = serde_json::from_str(&groups).unwrap();
    assert_eq!(groups["by"], "group");
}

#[test]
fn the_page_of_a_controller_starts_and_stops_its_workers() {
    let Some(site) = Site::open_with(2, &["curl"]) else {
        return;
    };
    let all = "--arrivals poisson:200 --duration 10m --seed 9";
    let small = url("/small");
    let words = format!(
        "load {small} --lag-limit 1h --summary controller.json --role controller --generators 2 \
         --console {CONSOLE} --console-control --console-token {TOKEN} --interval 200ms {all}"
    );
    let words: Vec<&str> = words.split_whitespace().collect();
    let controller = Running::start(&mut site.linkweir(Place::Generator(0), &words)).unwrap();
    let token = format!("Authorization: Bearer {TOKEN}");
    let status = || -> Option<Value> {
        let (code, text) = ask(&site, "/api/status", &[&token]);
        (code == 200).then(|| serde_json::from_str(&text).unwrap())
    };
    // The page is there before anybody else.
    assert!(until(PATIENCE, || status().is_some()));
    let worker = |number: u8| {
        let words = format!(
            "{all} --clients {} --role worker --peer {}",
            routed(number),
            generator(0)
        );
        let mut command = site.load_command(number, &format!("worker{number}"), &small, &words);
        Running::start(&mut command).unwrap()
    };
    let (first, second) = (worker(0), worker(1));
    let states = |want: [&str; 2]| {
        let all = status().map(|all| all["status"]["generators"].clone());
        let all = all.as_ref().and_then(Value::as_array);
        all.is_some_and(|all| all.iter().map(|one| &one["state"]).eq(want.iter()))
    };
    assert!(until(PATIENCE, || states(["waiting"; 2])));
    let start = "X-Linkweir-Order: start";
    let post = |target: &str, fields: &[&str]| {
        let all: Vec<&str> = fields
            .iter()
            .copied()
            .chain(["Content-Length: 0"])
            .collect();
        let mut curl = site.net.command(Place::Generator(0), "curl");
        curl.args(["-s", "-X", "POST", "-o", "/dev/null", "-w", "%{http_code}"]);
        all.iter().for_each(|field| {
            curl.args(["-H", field]);
        });
        let output = curl
            .arg(format!("http://{CONSOLE}{target}"))
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(post("/api/start", &[start]), "401");
    assert_eq!(post("/api/start", &[&token]), "403");
    assert_eq!(site.nginx.visits().len(), 0);
    assert_eq!(post("/api/start", &[&token, start]), "202");
    assert!(until(PATIENCE, || states(["running"; 2])));
    assert!(until(PATIENCE, || site.nginx.visits().len() >= 60));
    // Both are seen at work, and the report of both comes when it is asked for.
    let both = |status: Value| {
        let all = status["status"]["generators"].as_array().unwrap().clone();
        all.iter().all(|one| one["started"].as_u64() > Some(0))
    };
    assert!(until(PATIENCE, || status().is_some_and(both)));
    controller.signal("USR1").unwrap();
    assert!(until(PATIENCE, || read(&site, "controller.json").is_some()));
    let now = read(&site, "controller.json").unwrap();
    assert_eq!(now["intermediate"], true);
    assert!(count(&now, "/load/completed") > 20, "{now}");
    assert!(count(&now, "/load/tcp/segments_sent") > 0);
    assert_eq!(
        post("/api/stop", &[&token, "X-Linkweir-Order: stop"]),
        "202"
    );
    let first = site.loaded("worker0", first);
    let second = site.loaded("worker1", second);
    let merged = site.loaded("controller", controller);
    for load in [&first, &second, &merged] {
        assert_eq!(load.code, Some(0), "{}", load.stderr);
    }
    assert!(
        merged.stderr.contains("the page starts them"),
        "{}",
        merged.stderr
    );
    let started = merged.count("started");
    assert_eq!(first.count("started") + second.count("started"), started);
    assert!(first.count("started") > 0 && second.count("started") > 0);
    assert!(started >= 60 && merged.count("completed") <= started);
}
