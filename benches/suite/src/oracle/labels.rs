//! `oracle labels`: the applications that `linkweir flows` recognises, against nDPI's.
//!
//! nDPI's own captures come with its label for every flow. Where its label is a protocol that we have
//! too, the two are compared flow by flow. nDPI also names services (by addresses, names and
//! certificates) and protocols that we do not have: those flows are only counted where we say
//! something that cannot be.
//!
//! Differences that [`EXPLAINED`] does not name are listed, and fail.

use crate::Outcome;
use crate::shell::{grouped, print_table};
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Command;

/// Where nDPI's labels are below the directory of captures, and the captures.
const LABELS: &str = "expected/ntop__nDPI/tests/cfgs/default/result";
const PCAPS: &str = "pcaps/ntop__nDPI/tests/cfgs/default/pcap";

/// nDPI's name of a protocol, and ours for the same (or what we tell apart where it does not).
const SAME: &[(&str, &[&str])] = &[
    ("HTTP", &["http"]),
    ("HTTP_Connect", &["http"]),
    ("HTTP_Proxy", &["http"]),
    ("WebSocket", &["http"]),
    ("TLS", &["tls"]),
    ("DoH_DoT", &["tls"]),
    ("QUIC", &["quic"]),
    ("DNS", &["dns"]),
    ("BitTorrent", &["bittorrent", "utp"]),
    ("eDonkey", &["edonkey", "kad"]),
    ("Gnutella", &["gnutella"]),
    ("Jabber", &["xmpp"]),
    ("IRC", &["irc"]),
    ("SSH", &["ssh"]),
    ("SMTP", &["smtp"]),
    ("SMTPS", &["smtp", "tls"]),
    ("POP3", &["pop3"]),
    ("POPS", &["pop3", "tls"]),
    ("IMAP", &["imap"]),
    ("IMAPS", &["imap", "tls"]),
    ("FTP_CONTROL", &["ftp"]),
    ("FTPS", &["ftp", "tls"]),
    ("RTP", &["rtp"]),
    ("SRTP", &["rtp"]),
    ("RTCP", &["rtcp", "rtp"]),
    ("RTSP", &["rtsp"]),
    ("RTMP", &["rtmp"]),
    ("SIP", &["sip"]),
    ("STUN", &["stun"]),
    ("DTLS", &["dtls"]),
    ("MDNS", &["mdns"]),
    ("LLMNR", &["llmnr"]),
    ("SSDP", &["ssdp"]),
    ("DHCP", &["dhcp"]),
    ("DHCPV6", &["dhcp"]),
    ("NTP", &["ntp"]),
    ("SNMP", &["snmp"]),
    ("NetBIOS", &["netbios"]),
    ("SMBv1", &["smb"]),
    ("SMBv23", &["smb"]),
    ("RDP", &["rdp"]),
    ("VNC", &["vnc"]),
    ("MySQL", &["mysql"]),
    ("PostgreSQL", &["postgresql"]),
    ("MQTT", &["mqtt"]),
    ("LDAP", &["ldap"]),
    ("Kerberos", &["kerberos"]),
    ("BGP", &["bgp"]),
    ("Syslog", &["syslog"]),
    ("TFTP", &["tftp"]),
    ("WireGuard", &["wireguard"]),
    ("Telnet", &["telnet"]),
    ("ETHEREUM", &["ethereum"]),
    ("Source_Engine", &["sourceengine"]),
    ("BACnet", &["bacnet"]),
    ("COAP", &["coap"]),
    ("Kafka", &["kafka"]),
    ("WSD", &["wsd"]),
    ("RMCP", &["rmcp"]),
    ("RakNet", &["raknet"]),
    ("DCERPC", &["dcerpc"]),
    ("EthernetIP", &["enip"]),
    ("NAT-PMP", &["natpmp"]),
    ("Munin", &["munin"]),
    ("LDP", &["ldp"]),
    ("PTPv2", &["ptp"]),
    ("DLEP", &["dlep"]),
    ("HSRP", &["hsrp"]),
    ("MGCP", &["mgcp"]),
    ("Nats", &["nats"]),
    ("SOMEIP", &["someip"]),
    ("Service_Location_Protocol", &["slp"]),
    ("TINC", &["tinc"]),
    ("IPSec", &["ike"]),
    ("Diameter", &["diameter"]),
    ("FINS", &["fins"]),
    ("GTP", &["gtp"]),
    ("HART-IP", &["hartip"]),
    ("HL7", &["hl7"]),
    ("IEEE-C37118", &["c37118"]),
    ("KNXnet_IP", &["knx"]),
    ("Modbus", &["modbus"]),
    ("MPEG_TS", &["mpegts"]),
    ("Usenet", &["nntp"]),
    ("OpenVPN", &["openvpn"]),
    ("Oracle", &["tns"]),
    ("RSYNC", &["rsync"]),
    ("RTPS", &["rtps"]),
    ("sFlow", &["sflow"]),
    ("SMPP", &["smpp"]),
    ("SOCKS", &["socks"]),
    ("STOMP", &["stomp"]),
    ("Tailscale", &["tailscale"]),
    ("XDMCP", &["xdmcp"]),
];

/// Stands for nDPI's label of a flow in which it recognised nothing but the port.
const GUESS: &str = "(port)";

/// A difference that is understood: capture, nDPI's label, ours (empty: unknown), why.
type Explained = (&'static str, &'static str, &'static str, &'static str);

const EXPLAINED: &[Explained] = &[
    (
        "jabber.pcap",
        "Jabber",
        "",
        "a binary protocol on 5223; no XMPP in it",
    ),
    (
        "coap_mqtt.pcap",
        "MQTT",
        "",
        "begins in the middle: PUBLISH has no mark",
    ),
    (
        "gquic_only_from_server.pcap",
        "QUIC",
        "",
        "the client, which sends the version, is missing",
    ),
    ("rdp2.pcap", "RDP", "", "RDP over UDP is not among ours"),
    (
        "sip_hello.pcapng",
        "SIP",
        "",
        "`hello`, a keep-alive on the port of SIP, and nothing else",
    ),
    (
        "rsh-syslog-false-positive.pcap",
        "Syslog",
        "",
        "syslog over TCP is not among ours",
    ),
    (
        "syslog.pcap",
        "Syslog",
        "",
        "syslog over TCP is not among ours",
    ),
    (
        "websocket.pcap",
        "WebSocket",
        "",
        "begins in the middle, behind the upgrade",
    ),
    (
        "dlep.pcapng",
        "DLEP",
        "",
        "begins in the middle: a message over TCP has no mark",
    ),
    (
        "ethereum.pcap",
        "ETHEREUM",
        "",
        "one half of the handshake, which alone has no mark",
    ),
    ("fins.pcap", "FINS", "", "FINS over UDP has no mark"),
    (
        "hart_ip.pcap",
        "HART-IP",
        "",
        "between ports of the client's choice",
    ),
    (
        "raknet.pcap",
        "RakNet",
        "",
        "begins in the middle: only messages outside of a connection have the mark",
    ),
    (
        "roblox.pcapng",
        "RakNet",
        "",
        "messages of its own, without RakNet's mark",
    ),
    ("tinc.pcap", "TINC", "", "packets over UDP are encrypted"),
    (
        "tunnelbear.pcap",
        "WireGuard.TunnelBear",
        "",
        "messages of other lengths than WireGuard's",
    ),
];

/// Both ends and the protocol of a flow, whoever opened it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ends {
    is_tcp: bool,
    low: (IpAddr, u16),
    high: (IpAddr, u16),
}

impl Ends {
    fn new(is_tcp: bool, a: (IpAddr, u16), b: (IpAddr, u16)) -> Self {
        Self {
            is_tcp,
            low: a.min(b),
            high: a.max(b),
        }
    }
}

/// How often the two said what of one application.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    agree: u64,
    we_unknown: u64,
    we_other: u64,
    they_unknown: u64,
    they_other: u64,
    explained: u64,
}

/// Compares the labels of all flows of nDPI's captures; `binary` is the `linkweir` to run.
///
/// # Errors
/// A file of labels cannot be read, or the binary cannot be run.
pub(super) fn labels(binary: &Path, captures: &Path) -> Outcome {
    let directory = captures.join(LABELS);
    if !directory.is_dir() {
        println!(
            "** ORACLE OF LABELS SKIPPED: no labels of nDPI in {}",
            directory.display()
        );
        return Ok(true);
    }
    let mut names: Vec<String> = std::fs::read_dir(&directory)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".out")?.to_owned()))
        .collect();
    names.sort();
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    let mut open = Vec::new();
    let mut used = vec![false; EXPLAINED.len()];
    let mut missing = 0_u64;
    let mut files = 0_u64;
    for name in &names {
        let capture = captures.join(PCAPS).join(name);
        if !capture.is_file() {
            continue;
        }
        files += 1;
        let text = std::fs::read_to_string(directory.join(format!("{name}.out")))
            .with_context(|| format!("read the labels of {name}"))?;
        let ours = ours(binary, &capture).with_context(|| format!("run on {name}"))?;
        let theirs: Vec<(Ends, String)> = text.lines().filter_map(label).collect();
        for (ends, theirs) in &theirs {
            let Some(ours) = ours.get(ends) else {
                missing += 1;
                continue;
            };
            if !judge(name, theirs, ours, &mut tallies, &mut used) {
                open.push((name.clone(), *ends, theirs.clone(), ours.clone()));
            }
        }
    }
    print(&tallies, files, missing);
    for (name, ends, theirs, ours) in &open {
        let kind = if ends.is_tcp { "TCP" } else { "UDP" };
        let (low, high) = (SocketAddr::from(ends.low), SocketAddr::from(ends.high));
        println!(
            "{name}: {kind} {low} {high}: nDPI {theirs}, we {}",
            shown(ours)
        );
    }
    let stale: Vec<_> = EXPLAINED
        .iter()
        .zip(&used)
        .filter(|(_, used)| !**used)
        .collect();
    for ((file, theirs, ours, _), _) in &stale {
        println!(
            "explanation no longer applies: {file}: nDPI {theirs}, we {}",
            shown(ours)
        );
    }
    Ok(open.is_empty() && stale.is_empty())
}

const fn shown(label: &str) -> &str {
    if label.is_empty() { "unknown" } else { label }
}

/// Counts one flow; `false` where it is a difference that nobody explained.
fn judge(
    file: &str,
    theirs: &str,
    ours: &str,
    tallies: &mut BTreeMap<String, Tally>,
    used: &mut [bool],
) -> bool {
    let explained = EXPLAINED
        .iter()
        .zip(used)
        .find(|((f, t, o, _), _)| *f == file && *t == theirs && *o == ours);
    let is_explained = explained.is_some();
    if let Some((_, used)) = explained {
        *used = true;
    }
    let same = same(theirs);
    let application = same.and_then(|same| same.first()).copied().unwrap_or(ours);
    if application.is_empty() {
        // Neither knows it, or it is none of ours.
        return true;
    }
    // Of several, what the flow goes on as, or what it begins with.
    let agrees = same.is_some_and(|same| ours.split(',').any(|one| same.contains(&one)));
    let shown = if agrees { ours } else { application };
    let tally = tallies.entry(shown.to_owned()).or_default();
    let count = match (same, ours) {
        _ if agrees => &mut tally.agree,
        _ if is_explained => &mut tally.explained,
        (Some(_), "") => &mut tally.we_unknown,
        (Some(_), _) => &mut tally.we_other,
        (None, _) if matches!(theirs, "Unknown" | GUESS) => &mut tally.they_unknown,
        // A service, over the protocol that we name.
        (None, _) => &mut tally.they_other,
    };
    *count += 1;
    agrees || is_explained || same.is_none()
}

/// Ours for a label of nDPI: the protocol, or the application behind the dot where that is what the
/// bytes are.
fn same(theirs: &str) -> Option<&'static [&'static str]> {
    let of = |name: &str| {
        SAME.iter()
            .find(|(theirs, _)| *theirs == name)
            .map(|(_, ours)| *ours)
    };
    match theirs.split_once('.') {
        Some(("HTTP", application @ ("Gnutella" | "BitTorrent"))) => of(application),
        // SMB over the session of NetBIOS, or its datagrams with a mail slot.
        Some(("NetBIOS", _)) => Some(&["smb", "netbios"]),
        Some((protocol, _)) => of(protocol),
        None => of(theirs),
    }
}

/// The ends of a flow and its label, from a line of nDPI's report: `N TCP a:p <-> b:q [proto:
/// 91.126/TLS.Google]...`.
fn label(line: &str) -> Option<(Ends, String)> {
    let mut words = line.strip_prefix('\t')?.split_ascii_whitespace();
    words.next()?.parse::<u32>().ok()?;
    let is_tcp = match words.next()? {
        "TCP" => true,
        "UDP" => false,
        _ => return None,
    };
    let from = words.next()?;
    words.next()?;
    let to = words.next()?;
    let (_, proto) = line.split_once("[proto: ")?;
    let (proto, _) = proto.split_once(']')?;
    // `CAPWAP:91/TLS` within a tunnel.
    let (_, name) = proto.rsplit_once('/')?;
    // A guess by the port is no finding: we would have to say unknown.
    let is_guess = line.contains("[Confidence: Match by port]");
    let name = if is_guess { GUESS } else { name };
    Some((Ends::new(is_tcp, end(from)?, end(to)?), name.to_owned()))
}

fn end(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.rsplit_once(':')?;
    let address = address.trim_start_matches('[').trim_end_matches(']');
    Some((address.parse().ok()?, port.parse().ok()?))
}

/// Our label of every flow of a capture; of several flows of the same ends, the first that has one.
fn ours(binary: &Path, capture: &Path) -> Result<BTreeMap<Ends, String>> {
    let mut command = Command::new(binary);
    command.arg("flows").arg("-r").arg(capture);
    command.args(["--format", "jsonl", "-w", "-"]);
    // What it says of itself is of no interest here; that a capture is damaged is no error.
    command.stderr(std::process::Stdio::null());
    let result = command.output().context("run linkweir")?;
    if !matches!(result.status.code(), Some(0 | 1)) {
        anyhow::bail!("linkweir ended with {}", result.status);
    }
    let mut flows = BTreeMap::new();
    for line in String::from_utf8_lossy(&result.stdout).lines() {
        let record: Value = serde_json::from_str(line).context("a record that is no JSON")?;
        let Some((ends, application)) = record_label(&record) else {
            continue;
        };
        let label: &mut String = flows.entry(ends).or_default();
        if label.is_empty() {
            *label = application;
        }
    }
    Ok(flows)
}

fn record_label(record: &Value) -> Option<(Ends, String)> {
    let text = |name: &str| record.get(name).and_then(Value::as_str);
    let port = |name: &str| u16::try_from(record.get(name)?.as_u64()?).ok();
    let is_tcp = text("protocol")? == "tcp";
    let client = (text("c_ip")?.parse().ok()?, port("c_port")?);
    let server = (text("s_ip")?.parse().ok()?, port("s_port")?);
    let application = text("application").filter(|label| *label != "unknown");
    let application = application.unwrap_or_default().to_owned();
    Some((Ends::new(is_tcp, client, server), application))
}

fn print(tallies: &BTreeMap<String, Tally>, files: u64, missing: u64) {
    let mut table = vec![
        [
            "application",
            "agree",
            "we unknown",
            "we another",
            "they unknown",
            "they a service",
            "explained",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    let mut total = [0; 6];
    for (application, tally) in tallies {
        let figures = [
            tally.agree,
            tally.we_unknown,
            tally.we_other,
            tally.they_unknown,
            tally.they_other,
            tally.explained,
        ];
        for (sum, figure) in total.iter_mut().zip(figures) {
            *sum += figure;
        }
        let mut row = vec![application.clone()];
        row.extend(figures.map(grouped));
        table.push(row);
    }
    let mut row = vec![format!("{files} captures")];
    row.extend(total.map(grouped));
    table.push(row);
    print_table(&table);
    println!(
        "({} flows of nDPI have no record of ours with the same ends)",
        grouped(missing)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_ndpi_is_read() {
        let line = "\t12\tTCP 192.168.1.3:52915 <-> 198.51.100.9:443 [proto: 91.126/TLS.Google][IP: 0/Unknown]";
        let (ends, name) = label(line).unwrap();
        assert!(ends.is_tcp);
        assert_eq!(ends.low, ("192.168.1.3".parse().unwrap(), 52915));
        assert_eq!(name, "TLS.Google");
        assert_eq!(same(&name), Some(&["tls"][..]));
        let line = "\t1\tUDP [fe80::1]:5353 -> [ff02::fb]:5353 [VLAN: 7][proto: GTP:8/MDNS][x]";
        let (ends, name) = label(line).unwrap();
        assert_eq!(
            (ends.is_tcp, ends.low.1, name.as_str()),
            (false, 5353, "MDNS")
        );
        assert_eq!(
            label("\t1\tICMP 10.0.0.1:0 -> 10.0.0.2:0 [proto: 81/ICMP]"),
            None
        );
        assert_eq!(label("BitTorrent\t299\t305728\t24"), None);
    }

    #[test]
    fn applications_over_http_are_themselves() {
        assert_eq!(same("HTTP.Gnutella"), Some(&["gnutella"][..]));
        assert_eq!(same("HTTP.Google"), Some(&["http"][..]));
        assert_eq!(same("WhatsApp"), None);
    }
}
