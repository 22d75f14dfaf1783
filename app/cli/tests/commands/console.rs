//! `--console` as browsers and programs meet it: HTTPS and the form for the token, with curl, which checks certificates.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use linkweir_testkit::ran::has;
use serde_json::Value;

use crate::common::{demo, ended, linkweir, run};
use crate::geo::databases;

const TOKEN: &str = "token-of-the-test";

/// A certificate of `localhost` and its key.
fn identity(directory: &Path, name: &str) -> [String; 2] {
    let [certificate, key] = ["crt", "key"].map(|end| {
        directory
            .join(format!("{name}.{end}"))
            .display()
            .to_string()
    });
    let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
                 -addext subjectAltName=DNS:localhost,IP:127.0.0.1";
    let mut openssl = Command::new("openssl");
    openssl.args(words.split_whitespace());
    openssl.args(["-out", &certificate, "-keyout", &key]);
    ended(openssl.output().unwrap()).exits(0);
    [certificate, key]
}

/// A run over the bundled capture that stays for its page, and the address of that.
fn serving(words: &[&str]) -> (Child, String) {
    let mut child = linkweir()
        .args(["http", "-q", "--format", "jsonl", "-r"])
        .arg(demo())
        .args(["--console", "127.0.0.1:0"])
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines();
    let stays = said
        .map(Result::unwrap)
        .find_map(|line| Some(line.split_once("stays at ")?.1.to_owned()));
    let address = stays.unwrap();
    // Without the token, which is its query.
    let (url, _) = address.split_once("/?").unwrap();
    (child, url.to_owned())
}

/// The status code and the answer.
fn curl(words: &[&str]) -> (u16, String) {
    let mut curl = Command::new("curl");
    curl.args(["-s", "-m", "20", "-w", "\n%{http_code}"]);
    let output = curl.args(words).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, code) = text.rsplit_once('\n').unwrap();
    (code.parse().unwrap(), body.to_owned())
}

#[test]
fn everything_comes_by_https_and_a_browser_logs_in_by_a_form() {
    if !has("openssl") || !has("curl") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let [certificate, key] = identity(directory.path(), "one");
    let (_kept, [city, _]) = databases();
    let (mut child, url) = serving(&[
        "--geoip",
        city.to_str().unwrap(),
        "--console-token",
        TOKEN,
        "--console-cert",
        &certificate,
        "--console-key",
        &key,
    ]);
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    let at = |path: &str| format!("{url}{path}");
    let trusting = ["--cacert", &certificate];
    let ask = |words: &[&str]| curl(&[&trusting[..], words].concat());

    // Programs.
    let bearer = format!("Authorization: Bearer {TOKEN}");
    let (status, metrics) = ask(&["-H", &bearer, &at("/metrics")]);
    assert!(status == 200 && metrics.contains("linkweir_http_requests_total"));
    let (status, body) = ask(&["-H", &bearer, &at("/api/snapshot")]);
    assert!(status == 200 && body.contains("\"kind\":\"http\""));
    let (_, top) = ask(&["-H", &bearer, &at("/api/top?by=client&window=all")]);
    let top: Value = serde_json::from_str(&top).unwrap();
    let countries = top["rows"].as_array().unwrap().iter();
    let mut countries: Vec<&str> = countries
        .filter_map(|row| row["country"].as_str())
        .collect();
    countries.sort_unstable();
    countries.dedup();
    assert_eq!(countries, ["ES", "NL"], "{top}");
    assert!(
        top["rows"][0].get("asn").is_none(),
        "no file has it of a client"
    );
    let (_, events) = ask(&["-N", "-H", &bearer, &at("/api/stream?after=0")]);
    assert!(events.contains("event: tick") && events.contains("event: end"));
    assert_eq!(ask(&[&at("/api/snapshot")]).0, 401);
    assert_eq!(
        curl(&[&at("/healthz")]).0,
        0,
        "who does not know the certificate"
    );
    let (status, body) = curl(&[&at("/healthz").replace("https", "http")]);
    assert!(status == 400 && body.contains("use https://"), "{body}");

    // A browser.
    let jar = directory.path().join("cookies").display().to_string();
    let html = "Accept: text/html";
    let (status, form) = ask(&["-H", html, &at("/?x=1")]);
    assert!(
        status == 401 && form.contains("name=\"to\" value=\"/?x=1\""),
        "{form}"
    );
    let token = format!("token={TOKEN}");
    let words = ["-c", &jar, "-b", &jar, "-L", "-H", html];
    let login = [&words[..], &["-d", &token, "-d", "to=/?x=1"]].concat();
    let (status, page) = ask(&[
        &login[..],
        &["-w", "%{url_effective}\n%{http_code}", &at("/login")],
    ]
    .concat());
    assert!(status == 200 && page.contains("app.js"), "{page}");
    assert!(page.contains(&at("/?x=1")), "{page}");
    let cookies = std::fs::read_to_string(&jar).unwrap();
    // The fourth column: only by HTTPS.
    let cookie = cookies.lines().find(|line| line.contains(TOKEN)).unwrap();
    assert_eq!(cookie.split('\t').nth(3), Some("TRUE"), "{cookie}");
    assert_eq!(ask(&["-b", &jar, &at("/api/snapshot")]).0, 200);
    // With a cookie the form would lead on to the page.
    let (status, form) = ask(&[&words[..], &["-d", "", &at("/logout")]].concat());
    assert!(status == 200 && form.contains("name=\"token\""), "{form}");
    child.kill().unwrap();
    child.wait().unwrap();

    // Files that cannot serve are refused before anything is served.
    let [_, other] = identity(directory.path(), "two");
    let demo = demo().display().to_string();
    let refused = |words: &[&str]| {
        let all = ["http", "-q", "-r", &demo, "--console", "127.0.0.1:0"];
        run(&[&all[..], words].concat()).exits(2)
    };
    refused(&["--console-cert", &certificate]).says("--console-key");
    refused(&["--console-key", &key]).says("--console-cert");
    refused(&["--console-cert", "/nowhere", "--console-key", &key]).says("/nowhere");
    refused(&["--console-cert", &certificate, "--console-key", &other])
        .says("is not that of the first certificate");
}
