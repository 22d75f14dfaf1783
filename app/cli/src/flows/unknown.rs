//! The flows of no known application (`--unknown`): as JSON and as a table.

use std::net::{IpAddr, SocketAddr};

use linkweir_flows::{UnknownFlows, UnknownGroup};
use linkweir_record::escape::hex_digits;
use linkweir_record::flow::Protocol;
use linkweir_record::human::{counted, moment, thousands};
use serde_json::{Value, json};

use crate::table;

/// The object of the summary.
pub(super) fn to_json(unknown: &UnknownFlows) -> Value {
    let groups: Vec<Value> = unknown.top().iter().map(group).collect();
    json!({
        "flows": unknown.flows(),
        "packets": unknown.packets(),
        "bytes": unknown.bytes(),
        "groups": unknown.len(),
        "top": groups,
    })
}

fn group(group: &UnknownGroup<'_>) -> Value {
    let example = group.counts.example.map(|example| {
        json!({
            "start_ns": example.start_ns,
            "client": example.client.0,
            "client_port": example.client.1,
            "server": example.server.0,
            "server_port": example.server.1,
        })
    });
    json!({
        "protocol": word(group.protocol),
        "server_port": group.server_port,
        "client_hex": hex_digits(group.client),
        "client_text": text(group.client),
        "server_hex": hex_digits(group.server),
        "server_text": text(group.server),
        "flows": group.flows,
        "flows_error": group.error,
        "packets": group.counts.packets,
        "bytes": group.counts.bytes,
        "example": example,
    })
}

/// The row of all of them.
pub(super) fn row(unknown: &UnknownFlows) -> String {
    format!(
        "{}, {}, {} with payload of no known application",
        counted(unknown.flows(), "flow"),
        counted(unknown.packets(), "packet"),
        counted(unknown.bytes(), "byte"),
    )
}

/// The most frequent groups; `None` where there are none.
pub(super) fn table(unknown: &UnknownFlows) -> Option<String> {
    const HEAD: [&str; 8] = [
        "protocol",
        "port",
        "flows",
        "packets",
        "bytes",
        "client sends",
        "server sends",
        "for example",
    ];
    let rows: Vec<Vec<String>> = unknown.top().iter().map(cells).collect();
    (!rows.is_empty()).then(|| table::lines(&HEAD, &rows).join("\n"))
}

fn cells(group: &UnknownGroup<'_>) -> Vec<String> {
    let end = |(address, port): (IpAddr, u16)| SocketAddr::new(address, port);
    let example = group.counts.example.map(|example| {
        let (client, server) = (end(example.client), end(example.server));
        format!("{client} > {server}, {}", moment(example.start_ns))
    });
    // Of more groups than are kept, the least that it can be.
    let flows = thousands(group.flows);
    vec![
        word(group.protocol).to_owned(),
        group.server_port.to_string(),
        if group.error > 0 {
            format!(">={flows}")
        } else {
            flows
        },
        thousands(group.counts.packets),
        thousands(group.counts.bytes),
        both(group.client),
        both(group.server),
        example.unwrap_or_default(),
    ]
}

const fn word(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
    }
}

/// Hexadecimal and text beside one another, each as wide as it can be.
fn both(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "-".to_owned();
    }
    format!("{:16} {:8}", hex_digits(bytes), text(bytes))
}

/// What is printable ASCII; a point for the rest.
fn text(bytes: &[u8]) -> String {
    let shown = |byte: &u8| match byte {
        b' '..=b'~' => char::from(*byte),
        _ => '.',
    };
    bytes.iter().map(shown).collect()
}
