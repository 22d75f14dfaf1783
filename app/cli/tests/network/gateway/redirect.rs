//! `linkweir gateway`: connections of an application go to a local proxy.

use super::site;

use linkweir_testkit::gateway::{Place, SERVER, SERVER_V6};
use linkweir_testkit::netns::{Running, until};
use linkweir_testkit::peers;
use site::{CURL_RESET, PATIENCE, Site, noise, same, url};
use std::fs::{self, File};

const POLICY: &str = r#"
    [[rule]]
    name = "web"
    application = ["http"]
    action = "redirect"
    proxy-port = 3129
"#;

/// The proxy; what it says goes to `proxied`.
fn proxy(site: &Site) -> Running {
    let words = ["serve", "proxy", "--listen", "[::]:3129"];
    let mut proxy = site.peer(Place::Gateway, &words);
    proxy.stdout(File::create(site.path("proxied")).unwrap());
    let proxy = Running::start(&mut proxy).unwrap();
    // 0A: listening.
    let listens = || {
        let table = site.net.table("tcp6");
        table
            .lines()
            .any(|line| line.contains(":0C39 ") && line.contains(" 0A "))
    };
    assert!(until(PATIENCE, listens));
    proxy
}

fn proxied(site: &Site) -> Vec<String> {
    let said = fs::read_to_string(site.path("proxied")).unwrap();
    let lines = said.lines().filter(|line| line.starts_with("proxied "));
    lines.map(str::to_owned).collect()
}

#[test]
fn the_next_connection_of_a_client_goes_to_the_proxy() {
    let Some(site) = Site::open(&["nft", "ip"]) else {
        return;
    };
    let gateway = site.gateway(POLICY);
    let _proxy = proxy(&site);
    let bytes = noise(3_000_000);
    site.nginx.put("page", &bytes).unwrap();
    let target = url("plain/page");
    let six = format!("http://[{SERVER_V6}]/plain/page");
    // Each learns for itself: that 11 was redirected is nothing to 12.
    for (number, target) in [(0, &target), (1, &target), (0, &six)] {
        let before = proxied(&site).len();
        assert_eq!(site.curl(number, target, "out", &[]).0, CURL_RESET);
        assert_eq!(proxied(&site).len(), before);
        for more in 1..=2 {
            let (code, out) = site.curl(number, target, "out", &[]);
            assert_eq!((code, proxied(&site).len()), (0, before + more));
            same(&out, &bytes);
        }
    }
    let said = proxied(&site);
    assert!(
        said[0].starts_with("proxied [::ffff:10.88.1.11]:"),
        "{said:?}"
    );
    assert!(
        said[0].ends_with(&format!(" to [::ffff:{SERVER}]:80")),
        "{said:?}"
    );
    assert!(
        said[5].ends_with(&format!(" to [{SERVER_V6}]:80")),
        "{said:?}"
    );
    // nginx got what the proxy asked for, from the gateway's address.
    let log = site.nginx.access_log(&[]);
    assert!(
        log.lines().count() >= 6 && !log.contains("10.88.1."),
        "{log}"
    );

    // What the proxy does not speak goes another way, and another port of the server is another.
    let file = site.put("other", &bytes);
    let at = format!("{SERVER}:4000");
    let words = [
        "serve",
        "raw",
        "--listen",
        &at,
        "--file",
        file.to_str().unwrap(),
    ];
    let _server = site.serve(Place::Server, &words);
    let words = [
        "fetch",
        "raw",
        "--connect",
        &at,
        "--say",
        "x",
        "--out",
        "out",
    ];
    assert_eq!(site.fetch(&words).0, peers::COMPLETE);
    same(&site.path("out"), &bytes);
    assert_eq!(proxied(&site).len(), 6);

    let status = gateway.status();
    assert!(status.contains("web"), "{status}");
    let events = gateway.end();
    let redirected = events
        .decisions()
        .into_iter()
        .filter(|one| *one == ("http", "redirect"));
    assert_eq!(redirected.count(), 3);
    // Everything is as before: what was learned, and the rule of routing.
    assert_eq!(site.curl(0, &target, "out", &[]).0, 0);
    assert_eq!(proxied(&site).len(), 6);
    let mut rules = site.net.command(Place::Gateway, "ip");
    let rules = rules.args(["rule", "show"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&rules.stdout).contains("19543"));
}

#[test]
fn without_its_proxy_nothing_passes() {
    let Some(site) = Site::open(&["nft", "ip"]) else {
        return;
    };
    let gateway = site.gateway(POLICY);
    site.nginx.put("page", b"page").unwrap();
    for _ in 0..3 {
        assert_eq!(site.curl(0, &url("plain/page"), "out", &[]).0, CURL_RESET);
    }
    let proxy = proxy(&site);
    assert_eq!(site.curl(0, &url("plain/page"), "out", &[]).0, 0);
    drop(proxy);
    assert_eq!(site.curl(0, &url("plain/page"), "out", &[]).0, CURL_RESET);
    // A policy without the rule: nothing is led there any more.
    gateway.reload("[[rule]]\nname = \"web\"\naction = \"allow\"\n");
    assert_eq!(site.curl(0, &url("plain/page"), "out", &[]).0, 0);
    gateway.end();
}
