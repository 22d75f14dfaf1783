//! The namespaces, the server in them and what is done to it, with programs that are no generator.

use std::process::Output;
use std::time::Duration;

use tempfile::tempdir;

use super::*;
use crate::netns::until;
use crate::ran::has;

const CABLE: Links = Links {
    has_offloads: false,
    mtu: 1500,
};

fn net(generators: u8) -> Option<Net> {
    Net::with(generators, CABLE)
        .map_err(|error| eprintln!("SKIPPED: {error}"))
        .ok()
}

/// curl at a generator: what came.
fn curl(net: &Net, number: u8, words: &[&str]) -> Output {
    let mut curl = net.command(Place::Generator(number), "curl");
    curl.args(["-s", "-g", "-m", "10"]).args(words);
    curl.output().unwrap()
}

#[test]
fn nginx_answers_every_generator_at_every_address() {
    if !has("nginx") || !has("curl") {
        return;
    }
    let Some(net) = net(2) else { return };
    let directory = tempdir().unwrap();
    let nginx = Nginx::start(&net, directory.path(), &Settings::default()).unwrap();
    nginx.put("file", &[b'f'; 5000]).unwrap();
    let mut expected = Vec::new();
    for number in [0, 1] {
        for (server, client) in [
            (format!("{SERVER}"), generator(number)),
            (format!("{BEHIND}"), generator(number)),
            (format!("[{SERVER_V6}]"), generator_v6(number)),
            (format!("[{BEHIND_V6}]"), generator_v6(number)),
        ] {
            let url = format!("http://{server}/chunked/file");
            let came = curl(&net, number, &[&url]).stdout;
            assert_eq!(came, [b'f'; 5000], "{url} from {number}");
            expected.push((client, 200, "/chunked/file".to_owned()));
        }
    }
    for (path, status) in [
        ("/broken", 500),
        ("/moved", 302),
        ("/none", 404),
        ("/small", 200),
    ] {
        curl(&net, 0, &[&format!("http://{SERVER}{path}")]);
        expected.push((generator(0), status, path.to_owned()));
    }
    assert!(until(Duration::from_secs(5), || nginx.visits().len()
        >= expected.len()));
    let visits = nginx.visits().into_iter();
    let seen: Vec<_> = visits
        .map(|visit| (visit.client, visit.status, visit.target))
        .collect();
    assert_eq!(seen, expected);
}

#[test]
fn the_page_has_what_it_is_said_to_have() {
    if !has("nginx") || !has("curl") {
        return;
    }
    let Some(net) = net(1) else { return };
    let directory = tempdir().unwrap();
    let nginx = Nginx::start(&net, directory.path(), &Settings::default()).unwrap();
    let page = curl(&net, 0, &[&format!("http://{SERVER}/page")]).stdout;
    let page = String::from_utf8(page).unwrap();
    let urls: Vec<String> = EMBEDDED.map(|name| format!("http://{SERVER}{name}")).into();
    let words: Vec<&str> = urls
        .iter()
        .flat_map(|url| ["-o", "/dev/null", url])
        .collect();
    for name in EMBEDDED {
        assert_eq!(page.matches(name).count(), 1, "{name}");
    }
    curl(&net, 0, &words);
    assert!(until(Duration::from_secs(5), || nginx.visits().len() == 5));
    let visits = nginx.visits();
    assert!(visits.iter().all(|visit| visit.status == 200), "{visits:?}");
    // curl keeps its connection for all of them.
    let numbers: Vec<u64> = visits
        .iter()
        .map(|visit| visit.request_of_connection)
        .collect();
    assert_eq!(numbers, [1, 1, 2, 3, 4]);
    let busy = curl(&net, 0, &[&format!("http://{SERVER}/work")]).stdout;
    assert_eq!(busy, b"done\n");
}

/// A SYN from an emulated client is answered towards it: asked for, or by way of its generator. Nobody
/// has the address, so what shows is a neighbour that the server looks for, and segments on the cable.
#[test]
fn the_server_knows_the_way_to_emulated_clients() {
    let Some(net) = net(2) else { return };
    let route = |address: &str| {
        let mut ip = net.command(Place::Server, "ip");
        let output = ip.args(["route", "get", address]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(route("10.1.7.7").starts_with("10.1.7.7 dev srv0 src 172.31.0.1"));
    assert!(route("10.128.7.7").contains("via 172.31.0.11 dev srv0"));
    assert!(route("10.144.7.7").contains("via 172.31.0.12 dev srv0"));
    assert!(route("fd00:1::7").contains("dev srv0") && !route("fd00:1::7").contains("via"));
    assert!(route("fd00:2:1::7").contains("via fd00:31::12"));
}

#[test]
fn what_is_swallowed_never_comes_and_what_is_lost_comes_again() {
    if ["nginx", "curl", "iptables"]
        .iter()
        .any(|program| !has(program))
    {
        return;
    }
    let Some(net) = net(1) else { return };
    let directory = tempdir().unwrap();
    let _nginx = Nginx::start(&net, directory.path(), &Settings::default()).unwrap();
    let upload = directory.path().join("upload");
    fs::write(&upload, vec![b'u'; 500_000]).unwrap();
    if let Err(error) = net.swallow(81, "SYN").and_then(|()| net.lose(0.05)) {
        eprintln!("SKIPPED: {error}");
        return;
    }
    let swallowed = curl(&net, 0, &["-m", "1", &format!("http://{SERVER}:81/")]);
    assert_eq!(
        swallowed.status.code(),
        Some(28),
        "a time limit and no refusal"
    );
    let data = format!("@{}", upload.display());
    let url = format!("http://{SERVER}/upload");
    let came = curl(
        &net,
        0,
        &["-m", "60", "-H", "Expect:", "--data-binary", &data, &url],
    )
    .stdout;
    assert_eq!(came, b"stored\n");
    let again = net.counter(Place::Generator(0), "TcpRetransSegs");
    assert!(again.unwrap() > 0);
    net.set("net.ipv4.tcp_syncookies=2").unwrap();
    assert_eq!(net.counter(Place::Server, "TcpExtNoSuchCounter"), None);
    assert!(net.is_listening(80) && !net.is_listening(81));
}
