//! `gateway explain`: which rule decided each connection of a capture, and why.

use std::collections::HashMap;
use std::io::{self, IsTerminal as _, Write};
use std::net::IpAddr;

use clap::ValueEnum;
use linkweir_record::human::counted;
use linkweir_record::{GatewayBatch, GatewayEventKind, RecordBatch as _};
use linkweir_wire::SeqNumber;
use serde_json::{Value, json};

use super::args::ExplainArgs;
use super::config::GatewayConfig;
use super::try_out::{self, Five};
use crate::exit::Exit;
use crate::table::lines;

/// Connections that are remembered.
const MOST: usize = 1 << 20;
/// Decisions of a connection that are remembered: each request of HTTP may have its own.
const MOST_DECISIONS: usize = 64;

/// How the explanation is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// A table.
    Table,
    /// One JSON object a line.
    Jsonl,
}

/// Runs the command.
pub(super) fn run(args: &ExplainArgs) -> anyhow::Result<Exit> {
    let config = GatewayConfig::read(&args.file.config, &std::collections::BTreeMap::new())?;
    try_out::explain(args, &config)
}

/// What decided the connections of captures.
#[derive(Debug, Default)]
pub(super) struct Explained {
    /// In the order of their first packets.
    connections: Vec<Connection>,
    /// The last one of each pair of ends.
    known: HashMap<Five, usize>,
    /// Connections beyond those that are remembered.
    more: u64,
}

#[derive(Debug)]
struct Connection {
    client: (IpAddr, u16),
    server: (IpAddr, u16),
    is_tcp: bool,
    /// Number of its SYN.
    seq: Option<SeqNumber>,
    /// Number of its first packet in the captures, from 1.
    first: u64,
    packets: u64,
    has_payload: bool,
    decisions: Vec<Decision>,
}

#[derive(Debug)]
struct Decision {
    packet: u64,
    event: &'static str,
    application: String,
    rule: String,
    action: &'static str,
    why: String,
}

fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

impl Explained {
    /// A packet of a connection; `seq` is that of a SYN without ACK.
    pub(super) fn on_packet(
        &mut self,
        key: Five,
        (src, dst): ((IpAddr, u16), (IpAddr, u16)),
        seq: Option<SeqNumber>,
        has_payload: bool,
        number: u64,
    ) {
        let known = self
            .known
            .get(&key)
            .and_then(|at| self.connections.get_mut(*at));
        if let Some(known) = known
            && (seq.is_none() || seq == known.seq)
        {
            known.packets += 1;
            known.has_payload |= has_payload;
            return;
        }
        if self.connections.len() >= MOST {
            self.more += 1;
            return;
        }
        self.known.insert(key, self.connections.len());
        self.connections.push(Connection {
            client: src,
            server: dst,
            is_tcp: key.2,
            seq,
            first: number,
            packets: 1,
            has_payload,
            decisions: Vec::new(),
        });
    }

    /// What the gateway did at a packet.
    pub(super) fn on_events(&mut self, events: &GatewayBatch, number: u64) {
        for event in (0..events.len()).filter_map(|at| events.get(at)) {
            let row = event.row;
            let client = (row.client_ip, row.client_port);
            let server = (row.server_ip, row.server_port);
            let ends = if client <= server {
                (client, server)
            } else {
                (server, client)
            };
            let key = (ends.0, ends.1, row.protocol == "tcp");
            let at = self.known.get(&key);
            let Some(connection) = at.and_then(|at| self.connections.get_mut(*at)) else {
                continue;
            };
            (connection.client, connection.server) = (client, server);
            let is_shown = !matches!(
                row.event,
                GatewayEventKind::File | GatewayEventKind::Message
            );
            if !is_shown || connection.decisions.len() >= MOST_DECISIONS {
                continue;
            }
            let why = match row.event {
                GatewayEventKind::Decided if event.text.why.is_empty() => b"the rule is for all",
                GatewayEventKind::Decided => event.text.why,
                _ => event.text.detail,
            };
            connection.decisions.push(Decision {
                packet: number,
                event: row.event.as_str(),
                application: text(event.text.application),
                rule: text(event.text.rule),
                action: row.action,
                why: text(why),
            });
        }
    }

    /// Writes it.
    pub(super) fn write(&self, form: Option<Form>, out: &mut impl Write) -> io::Result<()> {
        let is_terminal = io::stdout().is_terminal();
        let form = form.unwrap_or(if is_terminal {
            Form::Table
        } else {
            Form::Jsonl
        });
        match form {
            Form::Table => self.table(out)?,
            Form::Jsonl => {
                for connection in &self.connections {
                    for object in connection.objects() {
                        writeln!(out, "{object}")?;
                    }
                }
            }
        }
        out.flush()
    }

    fn table(&self, out: &mut impl Write) -> io::Result<()> {
        let head = [
            "packet",
            "connection",
            "application",
            "event",
            "rule",
            "action",
            "why",
        ];
        let rows: Vec<Vec<String>> = self.connections.iter().flat_map(Connection::rows).collect();
        for line in lines(&head, &rows) {
            writeln!(out, "{line}")?;
        }
        let undecided = self
            .connections
            .iter()
            .filter(|one| one.decisions.is_empty());
        let (all, undecided) = (self.connections.len() as u64, undecided.count() as u64);
        writeln!(out, "{}, {undecided} undecided", counted(all, "connection"))?;
        if self.more > 0 {
            writeln!(
                out,
                "{} more packets are of connections that are not shown",
                self.more
            )?;
        }
        Ok(())
    }
}

impl Connection {
    /// Why nothing decided it.
    fn undecided(&self) -> &'static str {
        if self.has_payload {
            "too few bytes to know its application, or its request"
        } else {
            "no packet with payload"
        }
    }

    fn protocol(&self) -> &'static str {
        if self.is_tcp { "tcp" } else { "udp" }
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let end = |(address, port): (IpAddr, u16)| {
            std::net::SocketAddr::new(address.to_canonical(), port).to_string()
        };
        let ends = format!(
            "{} {} > {}",
            self.protocol(),
            end(self.client),
            end(self.server)
        );
        if self.decisions.is_empty() {
            let mut row = vec![self.first.to_string(), ends];
            row.extend(["", "undecided", "", "", self.undecided()].map(str::to_owned));
            return vec![row];
        }
        let rows = self.decisions.iter().map(|one| {
            vec![
                one.packet.to_string(),
                ends.clone(),
                one.application.clone(),
                one.event.to_owned(),
                one.rule.clone(),
                one.action.to_owned(),
                one.why.clone(),
            ]
        });
        rows.collect()
    }

    fn objects(&self) -> Vec<Value> {
        let of = |packet: u64, event: &str, [application, rule, action]: [&str; 3], why: &str| {
            json!({
                "packet": packet,
                "first_packet": self.first,
                "packets": self.packets,
                "client_ip": self.client.0.to_canonical().to_string(),
                "client_port": self.client.1,
                "server_ip": self.server.0.to_canonical().to_string(),
                "server_port": self.server.1,
                "protocol": self.protocol(),
                "event": event,
                "application": application,
                "rule": rule,
                "action": action,
                "why": why,
            })
        };
        if self.decisions.is_empty() {
            return vec![of(self.first, "undecided", [""; 3], self.undecided())];
        }
        let objects = self.decisions.iter().map(|one| {
            let words = [one.application.as_str(), one.rule.as_str(), one.action];
            of(one.packet, one.event, words, &one.why)
        });
        objects.collect()
    }
}
