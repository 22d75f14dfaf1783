//! `linkweir gateway`: rules by what requests and handshakes ask for; pages and other URLs in place of a response.

use super::site;

use std::fs;

use linkweir_testkit::gateway::{Place, SERVER, client};
use site::Site;

const RULES: &str = r#"
[[rule]]
name = "ads"
hosts = ["*.ads.example"]
action = "reject"
page = "Advertising is <blocked> here. Ask the helpdesk."

[[rule]]
name = "games"
urls = ["files.example/plain/games/*"]
clients = ["10.88.1.0/24"]
server-ports = [80, "8000-8999"]
action = "redirect"
location = "http://portal.example/plain/portal"

[[rule]]
name = "large downloads"
hosts = ["files.example"]
mime-types = ["application/octet-stream"]
min-body = "64KiB"
action = "reject"
page = "Too large."

[[rule]]
name = "no video"
sni = ["*.video.example"]
action = "reject"

[[rule]]
name = "allowance"
application = "http"
clients = ["10.88.1.14"]
quota = "200KB/day"
action = "allow"

[[rule]]
name = "beyond the allowance"
clients = ["10.88.1.14"]
application = "http"
action = "reject"
page = "You have used up today's allowance."
"#;

/// curl with several URLs over as few connections as it can; the code, the number of new connections and the size of each.
fn curl(site: &Site, urls: &[&str], words: &[&str]) -> (Vec<String>, String) {
    curl_of(site, 1, urls, words)
}

/// The same of a client.
fn curl_of(site: &Site, number: u8, urls: &[&str], words: &[&str]) -> (Vec<String>, String) {
    let out = site.path("out");
    drop(fs::remove_file(&out));
    let mut curl = site.net.command(Place::Client, "curl");
    curl.args([
        "-s",
        "-k",
        "-m",
        "15",
        "-w",
        "%{http_code} %{num_connects}\n",
    ])
    .args(["--interface", &client(number).to_string()]);
    for host in [
        "www.ads.example",
        "files.example",
        "portal.example",
        "x.video.example",
    ] {
        for port in [80, 8080] {
            curl.args(["--resolve", &format!("{host}:{port}:{SERVER}")]);
        }
    }
    for url in urls {
        curl.arg("-o").arg(&out).arg(url);
    }
    let output = curl.args(words).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let lines = said.lines().map(str::to_owned).collect();
    (lines, fs::read_to_string(&out).unwrap_or_default())
}

#[test]
fn requests_get_pages_and_other_urls() {
    let Some(site) = Site::open(&[]) else { return };
    let gateway = site.gateway(RULES);
    site.nginx.put("small", b"small").unwrap();
    site.nginx.put("portal", b"You are on the portal.").unwrap();
    site.nginx.put("large", &vec![b'x'; 100_000]).unwrap();

    let (said, page) = curl(&site, &["http://www.ads.example/plain/small"], &[]);
    assert_eq!(said, ["403 1"]);
    assert!(
        page.contains("Advertising is &lt;blocked&gt; here. Ask the helpdesk."),
        "{page}"
    );

    // The second request of a connection, after one that passed.
    let urls = [
        "http://files.example/plain/small",
        "http://files.example/plain/%67ames/x",
    ];
    let (said, _) = curl(&site, &urls, &[]);
    assert_eq!(said, ["200 1", "302 0"]);
    let (said, portal) = curl(&site, &[urls[1]], &["-L"]);
    assert_eq!(said, ["200 2"]);
    assert_eq!(portal, "You are on the portal.");
    // Another port is another rule's.
    let (said, _) = curl(&site, &["http://files.example:8080/plain/games/x"], &[]);
    assert_eq!(said, ["302 1"]);

    let (said, page) = curl(&site, &["http://files.example/plain/large"], &[]);
    assert_eq!(said, ["403 1"]);
    assert!(page.contains("Too large."), "{page}");

    // TLS has no page: a RST before the server answers.
    let (said, _) = curl(&site, &["https://x.video.example:8080/"], &[]);
    assert_eq!(said, ["000 1"]);

    // A quota is counted in user space, over several connections, and cuts one; then the next rule decides.
    site.nginx.put("part", &vec![b'x'; 120_000]).unwrap();
    let part = ["http://portal.example/plain/part"];
    let (said, _) = curl_of(&site, 3, &part, &[]);
    assert_eq!(said, ["200 1"]);
    let (said, cut) = curl_of(&site, 3, &part, &[]);
    assert_eq!(said, ["200 1"]);
    assert!(cut.len() < 120_000, "{}", cut.len());
    let (said, page) = curl_of(&site, 3, &part, &[]);
    assert_eq!(said, ["403 1"]);
    assert!(page.contains("used up today"), "{page}");
    let status: serde_json::Value =
        serde_json::from_str(&gateway.status_with(&["--json"])).unwrap();
    assert_eq!(status["counts"]["quota_used_up"], 1, "{status}");

    let log = site.nginx.access_log(&[]);
    assert!(
        !log.contains("games"),
        "nothing of it came to the server: {log}"
    );
    let events = gateway.end();
    let why = |rule: &str| {
        let decided = events.of("decided");
        let found = decided.iter().find(|event| event["rule"] == rule);
        found.map(|event| event["why"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(
        why("ads").as_deref(),
        Some("hosts=www.ads.example (*.ads.example)")
    );
    let games = why("games").expect("it decided");
    assert!(
        games.contains("clients=10.88.1.12 (10.88.1.0/24)"),
        "{games}"
    );
    assert!(
        games.contains("urls=files.example/plain/games/x (files.example/plain/games/*)"),
        "{games}"
    );
    let large = why("large downloads").expect("it decided");
    assert!(large.contains("min-body=100000 (65536)"), "{large}");
    let video = events.one("decided", "rule", "no video");
    assert_eq!(
        (&video["host"], &video["ech"]),
        (&"x.video.example".into(), &"false".into())
    );
    assert_eq!(video["why"], "sni=x.video.example (*.video.example)");
}
