//! `gateway explain`: which rule decided each connection of a capture, and why.

use std::collections::HashMap;
use std::io::{self, IsTerminal as _, Write};
use std::net::IpAddr;

use clap::ValueEnum;
use linkweir_gateway::Undecided;
use linkweir_netfilter::rules::ClientRate;
use linkweir_record::human::{counted, thousands};
use linkweir_record::{GatewayBatch, GatewayEventKind, RecordBatch as _};
use linkweir_wire::{SeqNumber, Timestamp};
use serde_json::{Value, json};

use super::args::ExplainArgs;
use super::buckets::Buckets;
use super::config::GatewayConfig;
use super::try_out::{self, Five};
use crate::exit::Exit;
use crate::table::lines;

/// Connections that are remembered.
const MOST: usize = 1 << 20;
/// Decisions of a connection that are remembered: each request of HTTP may have its own.
const MOST_DECISIONS: usize = 64;

/// Why nothing decided a connection of which the gateway took no payload.
const NOT_SEEN: &str = "more packets needed: its application is not known";

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
    buckets: Buckets,
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
    /// Where nothing decided it.
    undecided: Decision,
    /// The one before it between the same ends.
    before: Option<usize>,
    /// Packets and IP bytes that its client's rate would have dropped; `None` where no rule gives it one.
    over_rate: Option<(u64, u64)>,
}

/// A row of a connection; what is empty is absent.
#[derive(Debug)]
struct Decision {
    packet: u64,
    event: &'static str,
    application: String,
    rule: String,
    action: &'static str,
    why: String,
}

impl Decision {
    fn undecided(packet: u64, why: &str) -> Self {
        Self {
            packet,
            event: "undecided",
            application: String::new(),
            rule: String::new(),
            action: "",
            why: why.to_owned(),
        }
    }

    /// The decision comes before what was found at the same packet.
    fn is_finding(&self) -> bool {
        self.event != GatewayEventKind::Decided.as_str()
    }
}

/// What connections are told apart by: their ends, the lower one first, and whether they are TCP.
pub(super) fn five(one: (IpAddr, u16), other: (IpAddr, u16), is_tcp: bool) -> Five {
    (one.min(other), one.max(other), is_tcp)
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
        let before = self.known.get(&key).copied();
        let known = before.and_then(|at| self.connections.get_mut(at));
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
            undecided: Decision::undecided(number, NOT_SEEN),
            before,
            over_rate: None,
        });
    }

    /// Connections that went undecided at a packet.
    pub(super) fn on_undecided(&mut self, undecided: Vec<Undecided>, number: u64) {
        for one in undecided {
            let key = five(one.client, one.server, one.is_tcp);
            let mut at = self.known.get(&key).copied();
            // A SYN between the same ends is of the next one.
            let next = at.and_then(|at| self.connections.get(at));
            if let Some(next) = next.filter(|next| next.first == number) {
                at = next.before;
            }
            let Some(connection) = at.and_then(|at| self.connections.get_mut(at)) else {
                continue;
            };
            (connection.client, connection.server) = (one.client, one.server);
            connection.undecided = Decision {
                application: one.application.unwrap_or_default(),
                rule: one.rule.unwrap_or_default(),
                ..Decision::undecided(connection.first, &one.why)
            };
        }
    }

    /// A packet of a connection under a rule with a rate for each client, after it was decided.
    pub(super) fn on_rated(
        &mut self,
        (key, src): (Five, (IpAddr, u16)),
        rate: &ClientRate,
        bytes: usize,
        now: Timestamp,
    ) {
        let at = self.known.get(&key);
        let Some(connection) = at.and_then(|at| self.connections.get_mut(*at)) else {
            return;
        };
        let client = connection.client;
        let (packets, sum) = connection.over_rate.get_or_insert_default();
        if (self.buckets).exceeds(rate, (client.0, src == client), bytes, now) {
            *packets += 1;
            *sum += bytes as u64;
        }
    }

    /// What the gateway did at a packet.
    pub(super) fn on_events(&mut self, events: &GatewayBatch, number: u64) {
        for event in (0..events.len()).filter_map(|at| events.get(at)) {
            let row = event.row;
            let client = (row.client_ip, row.client_port);
            let server = (row.server_ip, row.server_port);
            let key = five(client, server, row.protocol == "tcp");
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
                for (connection, one) in self.in_order() {
                    writeln!(out, "{}", connection.object(one))?;
                }
            }
        }
        out.flush()
    }

    /// All rows by their packets.
    fn in_order(&self) -> Vec<(&Connection, &Decision)> {
        let of = |connection| Connection::decisions(connection).map(move |one| (connection, one));
        let mut all: Vec<_> = self.connections.iter().flat_map(of).collect();
        all.sort_by_key(|(_, one)| (one.packet, one.is_finding()));
        all
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
        let rows = self.in_order().into_iter();
        let rows: Vec<Vec<String>> = rows.map(|(connection, one)| connection.row(one)).collect();
        for line in lines(&head, &rows) {
            writeln!(out, "{line}")?;
        }
        let undecided = self
            .connections
            .iter()
            .filter(|one| one.decisions.is_empty());
        let (all, undecided) = (self.connections.len() as u64, undecided.count() as u64);
        writeln!(out, "{}, {undecided} undecided", counted(all, "connection"))?;
        let rated = self.connections.iter().filter_map(|one| one.over_rate);
        let over = rated.clone().filter(|(packets, _)| *packets > 0);
        let sum = |all: (u64, u64), one: (u64, u64)| (all.0 + one.0, all.1 + one.1);
        let (packets, bytes) = over.clone().fold((0, 0), sum);
        let (rated, over) = (rated.count() as u64, over.count());
        if rated > 0 {
            writeln!(
                out,
                "{} with a rate for the client: {}, {} bytes, of {} would have been dropped",
                counted(rated, "connection"),
                counted(packets, "packet"),
                thousands(bytes),
                thousands(over as u64),
            )?;
        }
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
    /// What decided it, or why nothing did.
    fn decisions(&self) -> impl Iterator<Item = &Decision> {
        let undecided = self.decisions.is_empty().then_some(&self.undecided);
        self.decisions.iter().chain(undecided)
    }

    /// Why a row is what it is.
    fn why<'a>(&self, one: &'a Decision) -> &'a str {
        if self.decisions.is_empty() && !self.has_payload {
            "no packet with payload"
        } else {
            &one.why
        }
    }

    fn protocol(&self) -> &'static str {
        if self.is_tcp { "tcp" } else { "udp" }
    }

    fn row(&self, one: &Decision) -> Vec<String> {
        let end = |(address, port): (IpAddr, u16)| {
            std::net::SocketAddr::new(address.to_canonical(), port).to_string()
        };
        let ends = format!(
            "{} {} > {}",
            self.protocol(),
            end(self.client),
            end(self.server)
        );
        vec![
            one.packet.to_string(),
            ends,
            one.application.clone(),
            one.event.to_owned(),
            one.rule.clone(),
            one.action.to_owned(),
            self.why(one).to_owned(),
        ]
    }

    fn object(&self, one: &Decision) -> Value {
        let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        json!({
            "packet": one.packet,
            "first_packet": self.first,
            "packets": self.packets,
            "client_ip": self.client.0.to_canonical().to_string(),
            "client_port": self.client.1,
            "server_ip": self.server.0.to_canonical().to_string(),
            "server_port": self.server.1,
            "protocol": self.protocol(),
            "event": one.event,
            "application": known(&one.application),
            "rule": known(&one.rule),
            "action": known(one.action),
            "why": self.why(one),
            "over_rate_packets": self.over_rate.map(|(packets, _)| packets),
            "over_rate_bytes": self.over_rate.map(|(_, bytes)| bytes),
        })
    }
}
