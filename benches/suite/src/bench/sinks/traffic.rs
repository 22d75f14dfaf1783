//! The capture: HTTP and little else, so that records are what costs.
//!
//! Connections that are kept alive, many at once, each packet at its time: handshake, request, response,
//! acknowledgment, and two FINs. Of bodies the first bytes are in the capture, as behind a filter, so a
//! record comes with some four packets of 300 bytes.

use super::super::harness::Chance;
use super::population::{Exchange, Population};
use anyhow::{Context as _, Result};
use linkweir_testkit::capture_writer::{PcapVariant, pcap};
use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{LinkType, SeqNumber, TcpFlags};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::path::Path;

/// Connections at once.
const CONCURRENT: usize = 2_000;
/// When the capture begins, nanoseconds since the epoch.
const START_NS: u64 = 1_790_000_000_000_000_000;
/// Requests of a connection: at least one, the average six.
const KEEP_ALIVE: (u64, u64) = (5, 6);
/// Between two requests of a connection, at least.
const THINK_NS: u64 = 20_000_000;
/// Between a segment and the next of a handshake.
const STEP_NS: u64 = 100_000;

/// What comes next on a connection.
#[derive(Debug)]
enum Next {
    Syn,
    SynAck,
    Established,
    Request,
    Response(Exchange),
    Acknowledgment,
    ClientFin,
    ServerFin,
    Over,
}

#[derive(Debug)]
struct Connection {
    client: SocketAddr,
    server: SocketAddr,
    client_number: u64,
    site: u64,
    client_next: u32,
    server_next: u32,
    next: Next,
}

impl Connection {
    fn new(population: &Population, chance: &mut Chance) -> Self {
        let (client_number, client, site, server) = population.visit(chance);
        Self {
            client,
            server,
            client_number,
            site,
            client_next: chance.word(),
            server_next: chance.word(),
            next: Next::Syn,
        }
    }
}

/// Writes a capture of so many transactions.
///
/// # Errors
/// The file could not be written.
pub(super) fn write(path: &Path, transactions: u64) -> Result<()> {
    let file = File::create(path).with_context(|| format!("create {}", path.display()))?;
    let mut file = BufWriter::with_capacity(1 << 20, file);
    let variant = PcapVariant {
        has_nanos: true,
        ..PcapVariant::usual(LinkType::ETHERNET)
    };
    file.write_all(&pcap(&[], variant))?;
    let population = Population::new();
    let mut writer = Writer {
        chance: Chance::new(0x6c77),
        population,
        left: transactions,
        record: Vec::new(),
    };
    let mut open: Vec<Connection> = Vec::new();
    let mut due = BinaryHeap::new();
    for number in 0..CONCURRENT {
        open.push(Connection::new(&writer.population, &mut writer.chance));
        due.push(Reverse((
            START_NS + writer.chance.below(1_000_000_000),
            number,
        )));
    }
    while let Some(Reverse((now, number))) = due.pop() {
        let Some(connection) = open.get_mut(number) else {
            continue;
        };
        let pause = writer.step(connection, now);
        file.write_all(&writer.record)?;
        if matches!(connection.next, Next::Over) {
            if writer.left == 0 {
                continue;
            }
            *connection = Connection::new(&writer.population, &mut writer.chance);
        }
        due.push(Reverse((now + pause, number)));
    }
    file.flush().context("write the capture")
}

struct Writer {
    population: Population,
    chance: Chance,
    /// Transactions to come.
    left: u64,
    record: Vec<u8>,
}

impl Writer {
    /// Makes the next packet of a connection; gives the time until the one behind it.
    fn step(&mut self, connection: &mut Connection, now: u64) -> u64 {
        let ack = TcpFlags::ACK;
        let push = ack | TcpFlags::PSH;
        let next = std::mem::replace(&mut connection.next, Next::Over);
        let think = self.chance.tail(THINK_NS, 4);
        let (by_client, flags, payload, unseen, next, pause) = match next {
            Next::Syn => (true, TcpFlags::SYN, Vec::new(), 1, Next::SynAck, STEP_NS),
            Next::SynAck => (
                false,
                TcpFlags::SYN | ack,
                Vec::new(),
                1,
                Next::Established,
                STEP_NS,
            ),
            Next::Established => (true, ack, Vec::new(), 0, Next::Request, STEP_NS),
            Next::Request if self.left > 0 => {
                self.left -= 1;
                let Connection {
                    client_number,
                    site,
                    ..
                } = *connection;
                let mut exchange = self
                    .population
                    .exchange(client_number, site, &mut self.chance);
                let request = std::mem::take(&mut exchange.request);
                let took = exchange.took_ns;
                (true, push, request, 0, Next::Response(exchange), took)
            }
            Next::Response(exchange) => {
                let Exchange {
                    response, unseen, ..
                } = exchange;
                (false, push, response, unseen, Next::Acknowledgment, STEP_NS)
            }
            Next::Acknowledgment => {
                let (of, all) = KEEP_ALIVE;
                let next = if self.chance.is(of, all) {
                    Next::Request
                } else {
                    Next::ClientFin
                };
                (true, ack, Vec::new(), 0, next, think)
            }
            Next::Request | Next::ClientFin => (
                true,
                TcpFlags::FIN | ack,
                Vec::new(),
                1,
                Next::ServerFin,
                STEP_NS,
            ),
            Next::ServerFin | Next::Over => {
                (false, TcpFlags::FIN | ack, Vec::new(), 1, Next::Over, think)
            }
        };
        connection.next = next;
        let (src, dst, seq, acknowledged) = if by_client {
            (
                connection.client,
                connection.server,
                connection.client_next,
                connection.server_next,
            )
        } else {
            (
                connection.server,
                connection.client,
                connection.server_next,
                connection.client_next,
            )
        };
        let frame = TcpFrame {
            seq: SeqNumber(seq),
            ack: SeqNumber(if flags.contains(ack) { acknowledged } else { 0 }),
            flags,
            window: 64_240,
            payload: &payload,
            ..TcpFrame::new(src, dst)
        };
        self.put(now, &frame);
        let takes = u32::try_from(payload.len())
            .unwrap_or(0)
            .wrapping_add(unseen);
        let own = if by_client {
            &mut connection.client_next
        } else {
            &mut connection.server_next
        };
        *own = own.wrapping_add(takes);
        pause
    }

    /// The frame as a record of the file.
    fn put(&mut self, now_ns: u64, frame: &TcpFrame<'_>) {
        self.record.clear();
        self.record.resize(16, 0);
        frame.append_to(&mut self.record);
        let length = u32::try_from(self.record.len() - 16).unwrap_or(0);
        let seconds = u32::try_from(now_ns / 1_000_000_000).unwrap_or(0);
        let nanos = u32::try_from(now_ns % 1_000_000_000).unwrap_or(0);
        for (field, value) in self
            .record
            .chunks_exact_mut(4)
            .zip([seconds, nanos, length, length])
        {
            field.copy_from_slice(&value.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_transactions_in_the_order_of_time() {
        let path = std::env::temp_dir().join(format!("sinks-traffic-{}", std::process::id()));
        write(&path, 3_000).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (mut at, mut last, mut requests, mut responses) = (24, (0, 0), 0, 0);
        while at < bytes.len() {
            let time = (word(at), word(at + 4));
            assert!(time >= last);
            last = time;
            let end = at + 16 + usize::try_from(word(at + 8)).unwrap();
            let payload = &bytes[at + 16 + 54..end];
            requests += usize::from(payload.windows(11).any(|w| w == b" HTTP/1.1\r\n"));
            responses += usize::from(payload.starts_with(b"HTTP/1.1 "));
            at = end;
        }
        assert_eq!((requests, responses), (3_000, 3_000));
    }
}
