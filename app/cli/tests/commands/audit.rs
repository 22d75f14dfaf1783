//! What `linkweir gateway check` audits of a capture is what tshark sees in it: connections by protocol, names of files and
//! chat messages.
//!
//! The captures are made here by scripted peers; those of others are compared where they are beside the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};

use linkweir_testkit::peers::{self, record::Relay};
use linkweir_testkit::real_captures;
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::common::{ended, installed, linkweir, plain};

/// Everything is audited, whatever it is.
const POLICY: &str = "[[rule]]\nname = \"audit\"\naction = \"inspect\"\naudit = true\n";

/// tshark's names of protocols, and ours.
const PROTOCOLS: [(&str, &[&str]); 6] = [
    ("bittorrent", &["bittorrent"]),
    ("bt-dht", &["bittorrent"]),
    ("bt-utp", &["utp", "bittorrent"]),
    ("edonkey", &["edonkey"]),
    ("gnutella", &["gnutella"]),
    ("msnms", &["msn"]),
];

/// Parts of the names of captures that are compared.
const COMPARED: [&str; 10] = [
    "bittorrent",
    "bt-",
    "bt_",
    "torrent",
    "gnutella",
    "msnms",
    "edonkey",
    "emule",
    "fasttrack",
    "kazaa",
];

/// What is not the same of captures of others, and why: capture, difference, reason.
const DIFFERENCES: [(&str, &str, &str); 8] = [
    (
        "bt-http.pcapng",
        "1 TCP connections of bittorrent that we alone see",
        "a tracker by HTTP, which is HTTP for tshark",
    ),
    (
        "bt_search.pcap",
        "1 UDP connections of bittorrent that we alone see",
        "local service discovery, a protocol of its own for tshark",
    ),
    (
        "gnutella.pcap",
        "51 TCP connections of gnutella that we alone see",
        "tshark goes by port 6346: 48 begin with GNUTELLA CONNECT, 3 are transfers by HTTP",
    ),
    (
        "gnutella.pcap",
        "584 UDP connections of gnutella that we alone see",
        "tshark reads no datagrams: 309 begin with a message of their length, 203 with GND",
    ),
    (
        "gnutella.pcap",
        "1 connections that are bittorrent for tshark and tls for us",
        "tshark goes by port 6888; the bytes are TLS",
    ),
    (
        "msnms.pcap",
        "2 connections that are msnms for tshark and unknown for us",
        "they begin before the capture; tshark goes by port 1863",
    ),
    (
        "msnms.pcap",
        "1 messages that tshark alone sees",
        "in one of these two",
    ),
    (
        "tracker.pcap",
        "1 TCP connections of bittorrent that we alone see",
        "a tracker by HTTP, which is HTTP for tshark",
    ),
];

/// The two ends of a connection in either order, and whether it is TCP.
type Ends = (BTreeSet<SocketAddr>, bool);

/// What one side says of a capture.
#[derive(Debug, Default)]
struct Audited {
    /// Protocols by connection.
    connections: BTreeMap<Ends, String>,
    /// Names and hashes of files.
    names: BTreeSet<String>,
    /// Chat messages, as often as they were said.
    messages: BTreeMap<String, u32>,
    /// Of tshark: everything that may hold a name.
    texts: Vec<String>,
}

impl Audited {
    /// What `gateway check` says.
    fn ours(capture: &Path, directory: &TempDir) -> Self {
        let config = directory.path().join("gateway.toml");
        std::fs::write(&config, POLICY).unwrap();
        let ran = ended(
            linkweir()
                .args([
                    "gateway", "check", "--format", "jsonl", "-w", "-", "--config",
                ])
                .arg(&config)
                .arg("-r")
                .arg(capture)
                .output()
                .unwrap(),
        );
        let mut audited = Self::default();
        for line in ran.stdout.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
            match event["event"].as_str().unwrap() {
                "decided" => {
                    let end = |address: &str, port: &str| {
                        let address: IpAddr = text(address).parse().unwrap();
                        SocketAddr::new(address, event[port].as_u64().unwrap() as u16)
                    };
                    let ends = [
                        end("client_ip", "client_port"),
                        end("server_ip", "server_port"),
                    ];
                    let ends = (ends.into(), text("protocol") == "tcp");
                    audited.connections.insert(ends, text("application"));
                }
                "file" => {
                    let name = match text("file_name") {
                        // Of a torrent the hash is known before its name.
                        none if none.is_empty() && text("application") == "bittorrent" => {
                            text("detail")
                        }
                        name => name,
                    };
                    audited
                        .names
                        .extend(Some(name).filter(|name| !name.is_empty()));
                }
                "message" => *audited.messages.entry(text("message")).or_default() += 1,
                _ => {}
            }
        }
        audited
    }

    /// What tshark says.
    fn tshark(capture: &Path) -> Self {
        const FIELDS: [&str; 16] = [
            "frame.protocols",
            "ip.src",
            "ipv6.src",
            "ip.dst",
            "ipv6.dst",
            "tcp.srcport",
            "udp.srcport",
            "tcp.dstport",
            "udp.dstport",
            "bittorrent.info_hash",
            "edonkey.message.type",
            "edonkey.string",
            "gnutella.query.search",
            "gnutella.queryhit.hit.name",
            "http.request.uri",
            "tcp.payload",
        ];
        let filter: Vec<&str> = PROTOCOLS.iter().map(|(name, _)| *name).collect();
        let output = Command::new("tshark")
            .args(["-n", "-o", "tcp.desegment_tcp_streams:FALSE"])
            .args(["-Y", &format!("http or {}", filter.join(" or "))])
            .args(["-T", "fields", "-E", "aggregator=|", "-r"])
            .arg(capture)
            .args(FIELDS.iter().flat_map(|field| ["-e", field]))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let mut audited = Self::default();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let cells: Vec<&str> = line.split('\t').collect();
            let cell = |name: &str| {
                let at = FIELDS.iter().position(|field| *field == name).unwrap();
                cells.get(at).copied().unwrap_or_default()
            };
            let all = |name| cell(name).split('|').filter(|text| !text.is_empty());
            let end = |which: &str, way: &str| {
                let address = [format!("ip.{which}"), format!("ipv6.{which}")];
                let address = address
                    .iter()
                    .find_map(|name| cell(name).parse::<IpAddr>().ok());
                let port = [format!("tcp.{way}"), format!("udp.{way}")];
                let port = port.iter().find_map(|name| cell(name).parse::<u16>().ok());
                Some(SocketAddr::new(address?, port?))
            };
            let Some(ends) = end("src", "srcport").zip(end("dst", "dstport")) else {
                continue;
            };
            let ends = ([ends.0, ends.1].into(), !cell("tcp.srcport").is_empty());
            let is_of = |name: &str| cell("frame.protocols").split(':').any(|one| one == name);
            if let Some((name, _)) = PROTOCOLS.iter().find(|(name, _)| is_of(name)) {
                audited.connections.insert(ends, (*name).to_owned());
            }
            audited
                .names
                .extend(all("bittorrent.info_hash").map(str::to_owned));
            // They are compared with the policy, and not recorded.
            for field in ["gnutella.query.search", "gnutella.queryhit.hit.name"] {
                audited.texts.extend(all(field).map(str::to_owned));
            }
            let strings = || all("edonkey.string").map(str::to_owned);
            match cell("edonkey.message.type") {
                // "File name answer" and "client message".
                "0x59" => audited.names.extend(strings()),
                "0x4e" => {
                    for text in strings() {
                        *audited.messages.entry(text).or_default() += 1;
                    }
                }
                _ => {}
            }
            audited.texts.extend(strings());
            audited
                .texts
                .extend(all("http.request.uri").map(str::to_owned));
            let payload: Vec<u8> = (0..cell("tcp.payload").len() / 2)
                .filter_map(|at| cell("tcp.payload").get(2 * at..2 * at + 2))
                .filter_map(|digits| u8::from_str_radix(digits, 16).ok())
                .collect();
            if is_of("msnms") {
                for text in chat(&payload) {
                    *audited.messages.entry(text).or_default() += 1;
                }
            }
            // Fields of heads, and what else has a name in it.
            audited
                .texts
                .push(String::from_utf8_lossy(&payload).into_owned());
        }
        audited
    }

    fn differences(&self, theirs: &Self) -> Vec<String> {
        let mut differences = BTreeMap::<String, u32>::new();
        let mut differ = |what: String| *differences.entry(what).or_default() += 1;
        for (ends, name) in &theirs.connections {
            let (_, same) = PROTOCOLS.iter().find(|(known, _)| known == name).unwrap();
            match self.connections.get(ends) {
                Some(ours) if same.contains(&ours.as_str()) => {}
                Some(ours) => differ(format!(
                    "connections that are {name} for tshark and {ours} for us"
                )),
                None => differ(format!("connections of {name} that tshark alone sees")),
            }
        }
        for (ends, ours) in &self.connections {
            let is_known = PROTOCOLS
                .iter()
                .any(|(_, same)| same.contains(&ours.as_str()));
            if is_known && !theirs.connections.contains_key(ends) {
                let kind = if ends.1 { "TCP" } else { "UDP" };
                differ(format!("{kind} connections of {ours} that we alone see"));
            }
        }
        for name in &theirs.names {
            if !self.names.contains(name) {
                differ("names that tshark alone sees".to_owned());
            }
        }
        for name in &self.names {
            let is_there = theirs.names.contains(name);
            if !is_there && !theirs.texts.iter().any(|text| text.contains(name)) {
                differ("names that we alone see".to_owned());
            }
        }
        let texts: BTreeSet<&String> = self.messages.keys().chain(theirs.messages.keys()).collect();
        for text in texts {
            let [ours, shown] =
                [self, theirs].map(|one| one.messages.get(text).copied().unwrap_or(0));
            (shown..ours).for_each(|_| differ("messages that we alone see".to_owned()));
            (ours..shown).for_each(|_| differ("messages that tshark alone sees".to_owned()));
        }
        let all = differences.into_iter();
        all.map(|(what, count)| format!("{count} {what}")).collect()
    }
}

/// Texts of the chat messages in a payload that begins with a command.
fn chat(mut payload: &[u8]) -> Vec<String> {
    let mut texts = Vec::new();
    let find = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).position(|part| part == what);
    while let Some(end) = find(payload, b"\r\n") {
        let (line, rest) = payload.split_at(end + 2);
        let line = String::from_utf8_lossy(line).into_owned();
        let words: Vec<&str> = line.split_whitespace().collect();
        let length = match words.as_slice() {
            ["MSG", .., length] => length.parse().unwrap_or(0).min(rest.len()),
            _ => 0,
        };
        let (message, rest) = rest.split_at(length);
        if let Some(head) = find(message, b"\r\n\r\n")
            && String::from_utf8_lossy(&message[..head]).contains("Content-Type: text/plain")
        {
            texts.push(String::from_utf8_lossy(&message[head + 4..]).into_owned());
        }
        payload = rest;
    }
    texts
}

/// A free address of the loopback.
fn free() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// Runs a peer on a thread; gives its code.
fn peer(words: &[&str]) -> std::thread::JoinHandle<u8> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    std::thread::spawn(move || peers::run(&words))
}

/// A capture of transfers and talk of the scripted peers.
fn made(directory: &TempDir) -> std::path::PathBuf {
    let path = |name: &str| directory.path().join(name).display().to_string();
    let mut frames = Vec::new();
    for (protocol, port, more) in [
        (
            "edonkey",
            4662,
            vec!["--size", "20000", "--say", "is it the whole song?"],
        ),
        ("gnutella", 6346, vec![]),
        ("fasttrack", 1214, vec![]),
        ("msnftp", 6891, vec![]),
    ] {
        let file = path(&format!("{protocol}-song.mp3"));
        std::fs::write(&file, vec![b'x'; 20_000]).unwrap();
        let server = free();
        let at = server.to_string();
        drop(peer(&["serve", protocol, "--listen", &at, "--file", &file]));
        let relay = Relay::start(server).unwrap();
        let (to, out) = (relay.address().to_string(), path("out"));
        let mut words = vec!["fetch", protocol, "--connect", &to, "--out", &out];
        words.extend(more);
        assert_eq!(peer(&words).join().unwrap(), peers::COMPLETE, "{protocol}");
        frames.extend(relay.frames(port));
    }
    let board = free();
    let at = board.to_string();
    drop(peer(&["serve", "msn", "--listen", &at]));
    let relay = Relay::start(board).unwrap();
    let to = relay.address().to_string();
    let bob = peer(&[
        "chat",
        "--connect",
        &to,
        "--as",
        "bob@example.test",
        "--answer",
        "--hear",
        "2",
    ]);
    let alice = [
        "chat",
        "--connect",
        &to,
        "--as",
        "alice@example.test",
        "--to",
        "bob@example.test",
        "--say",
        "good morning",
        "--say",
        "gr\u{fc}\u{df}e",
        "--hear",
        "0",
    ];
    assert_eq!(peer(&alice).join().unwrap(), peers::COMPLETE);
    assert_eq!(bob.join().unwrap(), peers::COMPLETE);
    frames.extend(relay.frames(1863));
    frames.sort_by_key(|frame| frame.timestamp_ns);
    let capture = directory.path().join("peers.pcap");
    std::fs::write(&capture, plain(&frames)).unwrap();
    capture
}

#[test]
fn peers_are_audited_as_tshark_sees_them() {
    let directory = tempdir().unwrap();
    let capture = made(&directory);
    let ours = Audited::ours(&capture, &directory);
    let applications: BTreeSet<&str> = ours.connections.values().map(String::as_str).collect();
    let all = ["edonkey", "fasttrack", "gnutella", "msn", "msnftp"];
    assert!(applications.iter().copied().eq(all), "{ours:#?}");
    for protocol in ["edonkey", "gnutella", "fasttrack"] {
        let name = format!("{protocol}-song.mp3");
        assert!(ours.names.contains(&name), "{protocol}: {ours:#?}");
    }
    // What alice said, heard by bob too: two connections of one board.
    let said = ["good morning", "gr\u{fc}\u{df}e"].map(|text| (text.to_owned(), 2));
    for (text, count) in said {
        assert_eq!(ours.messages.get(&text), Some(&count), "{ours:#?}");
    }
    if installed("tshark") {
        let theirs = Audited::tshark(&capture);
        assert_eq!(theirs.connections.len(), 4 + 1, "{theirs:#?}");
        // The cookie of MSNFTP, which tshark does not know.
        let differences = ["1 names that we alone see"];
        assert!(ours.names.contains("4711"));
        assert_eq!(
            ours.differences(&theirs),
            differences,
            "{ours:#?}\n{theirs:#?}"
        );
    }
}

#[test]
fn captures_of_others_are_audited_as_tshark_sees_them() {
    let Some(captures) = real_captures::for_test() else {
        return;
    };
    if !installed("tshark") {
        return;
    }
    let directory = tempdir().unwrap();
    let mut differ = Vec::new();
    for capture in captures {
        let name = capture.file_name().unwrap().to_string_lossy().into_owned();
        let whole = capture.to_string_lossy();
        if !COMPARED
            .iter()
            .any(|part| name.contains(part) || whole.contains(&format!("/{part}/")))
        {
            continue;
        }
        let (ours, theirs) = (
            Audited::ours(&capture, &directory),
            Audited::tshark(&capture),
        );
        let said: u32 = ours.messages.values().sum();
        println!(
            "{name}: tshark sees {} connections and {} names, we {} names and {said} messages",
            theirs.connections.len(),
            theirs.names.len(),
            ours.names.len()
        );
        differ.extend(
            ours.differences(&theirs)
                .into_iter()
                .map(|what| (name.clone(), what)),
        );
    }
    let explained = DIFFERENCES.map(|(name, what, _)| (name.to_owned(), what.to_owned()));
    assert_eq!(differ, explained);
}
