//! `linkweir gateway`: which application of which client is dropped or rejected, and nothing else.

use super::site;

use std::process::{Command, Stdio};
use std::time::Duration;

use linkweir_testkit::gateway::{Place, SERVER, SERVER_V6};
use linkweir_testkit::netns::{Running, until};
use linkweir_testkit::peers;
use serde_json::Value;
use site::{CURL_RESET, CURL_TIME, PATIENCE, Site, at, noise, same, timed, url};

/// A reset comes at once; without one, a client would wait for much longer.
const AT_ONCE: Duration = Duration::from_secs(3);

#[test]
fn http_is_rejected_for_a_network() {
    let Some(site) = Site::open(&[]) else { return };
    let policy = r#"
        [[rule]]
        name = "no-web"
        application = ["http"]
        clients = ["10.88.1.12/31", "fd00:88:1::/64"]
        action = "reject"
    "#;
    let gateway = site.gateway(policy);
    let bytes = noise(100_000);
    site.nginx.put("page", &bytes).unwrap();
    // .12 and .13 are of the network, .11 and .14 are not.
    for (number, is_rejected) in [(0, false), (1, true), (2, true), (3, false)] {
        let fetch = || site.curl(number, &url("plain/page"), "out", &[]);
        let (took, (code, out)) = timed(fetch);
        if is_rejected {
            assert_eq!(code, CURL_RESET, "client {number}");
            assert!(took < AT_ONCE, "client {number} waits for {took:?}");
        } else {
            assert_eq!(code, 0, "client {number}");
            same(&out, &bytes);
        }
    }
    let six = format!("http://[{SERVER_V6}]/plain/page");
    let (took, (code, _)) = timed(|| site.curl(0, &six, "out", &[]));
    assert_eq!(code, CURL_RESET);
    assert!(took < AT_ONCE, "{took:?}");
    // Another application of a client of the network.
    let file = site.put("other", &bytes);
    let server = [
        "serve",
        "raw",
        "--listen",
        &at(80),
        "--file",
        file.to_str().unwrap(),
    ];
    let server = server.map(|word| {
        if word == at(80) {
            "10.88.2.2:4000"
        } else {
            word
        }
    });
    let _server = site.serve(Place::Server, &server);
    let words = [
        "fetch",
        "raw",
        "--connect",
        "10.88.2.2:4000",
        "--say",
        "x",
        "--out",
        "out",
    ];
    assert_eq!(site.fetch(&words).0, peers::COMPLETE);
    same(&site.path("out"), &bytes);

    // The server did not get to know of what was rejected, or not its end.
    let line = "10.88.1.14 /plain/page 200 100000";
    let log = site.nginx.access_log(&[line]);
    let events = gateway.end();
    assert!(log.contains(line), "{log}");
    let rejected = events.decisions();
    let rejected = rejected.iter().filter(|(_, action)| *action == "reject");
    assert_eq!(rejected.count(), 3, "{:?}", events.decisions());
}

#[test]
fn http_is_dropped() {
    let Some(site) = Site::open(&[]) else { return };
    let policy = r#"
        [[rule]]
        name = "web"
        application = ["http"]
        clients = ["10.88.1.11"]
        action = "drop"
    "#;
    let gateway = site.gateway(policy);
    site.nginx.put("page", b"a page").unwrap();
    let (code, out) = site.curl(0, &url("plain/page"), "out", &["-m", "1"]);
    assert_eq!((code, out.exists()), (CURL_TIME, false));
    assert_eq!(site.curl(1, &url("plain/page"), "out", &[]).0, 0);
    let events = gateway.end();
    let event = events.one("decided", "action", "drop");
    assert_eq!(event["rule"], "web");
    assert_eq!(event["client_ip"], "10.88.1.11");
}

/// Each of the old protocols by its bytes, on ports of nobody; the others pass.
#[test]
fn file_sharing_is_rejected_by_its_bytes() {
    let Some(site) = Site::open(&[]) else { return };
    let file = site.put("song.mp3", &noise(50_000));
    let file = file.to_str().unwrap();
    let protocols = ["fasttrack", "gnutella", "msnftp", "edonkey", "raw"];
    let ports = [5001, 5002, 5003, 5004, 5005];
    let _servers: Vec<Running> = protocols
        .iter()
        .zip(ports)
        .map(|(protocol, port)| {
            let words = ["serve", protocol, "--listen", &at(port), "--file", file];
            site.serve(Place::Server, &words)
        })
        .collect();
    let fetch = |protocol: &str, port| {
        let address = at(port);
        let words = ["fetch", protocol, "--connect", &address, "--out", "out"];
        let more: &[&str] = match protocol {
            "edonkey" => &["--size", "50000"],
            "raw" => &["--say", "something"],
            _ => &[],
        };
        timed(|| site.fetch(&[&words[..], more].concat()))
    };
    let policy = |rejected: &str| {
        format!("[[rule]]\nname = \"one\"\napplication = [\"{rejected}\"]\naction = \"reject\"\n")
    };
    let gateway = site.gateway(&policy("fasttrack"));
    for rejected in &protocols[..4] {
        gateway.reload(&policy(rejected));
        for (protocol, port) in protocols.iter().zip(ports) {
            let (took, (code, said)) = fetch(protocol, port);
            let expected = if protocol == rejected {
                peers::RESET
            } else {
                peers::COMPLETE
            };
            assert_eq!(code, expected, "{protocol} without {rejected}: {said}");
            assert!(took < AT_ONCE, "{protocol}: {took:?}");
        }
    }
    gateway.end();
}

#[test]
fn tls_is_rejected_by_its_server_name() {
    let Some(site) = Site::open(&["openssl"]) else {
        return;
    };
    let _server = tls_server(&site);
    let policy = r#"
        [[rule]]
        name = "names"
        application = ["tls"]
        sni = ["*.blocked.test", "blocked.test"]
        action = "reject"
    "#;
    let gateway = site.gateway(policy);
    let ask = |host: &str| {
        let resolve = format!("{host}:443:{SERVER}");
        let url = format!("https://{host}/");
        let words = ["--resolve", &resolve, "-m", "5"];
        timed(|| site.curl(0, &url, "out", &words).0)
    };
    assert!(until(PATIENCE, || ask("good.test").1 == 0), "no TLS");
    for host in ["www.blocked.test", "blocked.test", "WWW.Blocked.TEST"] {
        let (took, code) = ask(host);
        // While it shakes hands, curl says 35 of a reset.
        assert!([35, CURL_RESET].contains(&code), "{host}: {code}");
        assert!(took < AT_ONCE, "{host}: {took:?}");
    }
    for host in ["notblocked.test", "blocked.test.example"] {
        assert_eq!(ask(host).1, 0, "{host}");
    }
    let events = gateway.end();
    events.one("decided", "host", "blocked.test");
}

/// `openssl s_server` with a certificate of its own on port 443.
fn tls_server(site: &Site) -> Running {
    let (key, certificate) = (site.path("key.pem"), site.path("certificate.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"])
        .args([
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-subj",
            "/CN=test",
        ])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .stderr(Stdio::null())
        .status();
    assert!(made.unwrap().success());
    let mut server = site.net.command(Place::Server, "openssl");
    server
        .args(["s_server", "-accept", "443", "-www", "-quiet", "-key"])
        .arg(&key)
        .arg("-cert")
        .arg(&certificate)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Running::start(&mut server).unwrap()
}

#[test]
fn a_signature_of_ones_own() {
    let Some(site) = Site::open(&[]) else { return };
    let policy = r#"
        [[signature]]
        name = "game"
        client = "hex:00 01 02 ff"
        [[signature]]
        name = "telemetry"
        client = "regex:^HELLO tele/[0-9]"
        server = "regex:^OK"
        [[rule]]
        name = "work"
        application = ["game", "telemetry"]
        action = "reject"
    "#;
    let gateway = site.gateway(policy);
    let bytes = [b"OK ", noise(30_000).as_slice()].concat();
    let file = site.put("answer", &bytes);
    let server = [
        "serve",
        "raw",
        "--listen",
        &at(7000),
        "--file",
        file.to_str().unwrap(),
    ];
    let _server = site.serve(Place::Server, &server);
    let send = |more: [&str; 2]| {
        let words = ["fetch", "raw", "--connect", &at(7000), "--out", "out"];
        site.fetch(&[&words[..], &more].concat()).0
    };
    for more in [["--hex", "000102ff00"], ["--say", "HELLO tele/2"]] {
        assert_eq!(send(more), peers::RESET, "{more:?}");
    }
    for more in [["--hex", "000102fe00"], ["--say", "HELLO tele/x"]] {
        assert_eq!(send(more), peers::COMPLETE, "{more:?}");
        same(&site.path("out"), &bytes);
    }
    let events = gateway.end();
    for name in ["game", "telemetry"] {
        assert_eq!(events.one("decided", "application", name)["rule"], "work");
    }
}

/// The default is for what no rule matches, also for what nobody knows.
#[test]
fn what_no_rule_matches_is_rejected_by_default() {
    let Some(site) = Site::open(&[]) else { return };
    let policy = "default = \"reject\"\n[[rule]]\nname = \"web\"\napplication = [\"http\"]\n\
                  action = \"allow\"\n";
    let gateway = site.gateway(policy);
    let bytes = noise(50_000);
    site.nginx.put("page", &bytes).unwrap();
    let (code, out) = site.curl(0, &url("plain/page"), "out", &[]);
    assert_eq!(code, 0);
    same(&out, &bytes);
    let file = site.put("answer", &bytes);
    let server = [
        "serve",
        "fasttrack",
        "--listen",
        &at(7001),
        "--file",
        file.to_str().unwrap(),
    ];
    let _server = site.serve(Place::Server, &server);
    let words = ["fetch", "fasttrack", "--connect", &at(7001), "--out", "out"];
    assert_eq!(site.fetch(&words).0, peers::RESET);
    let events = gateway.end();
    assert_eq!(events.of("malformed"), [] as [&Value; 0]);
}
