//! The traffic for the shares: as many transactions as the paper's Table 3 wants, the same in every
//! run.
//!
//! Eight client addresses talk to one server on four kept-alive connections each, all at once. The
//! responses are of 100 to 6000 bytes, which is what makes sequence numbers differ.

use super::super::harness::Chance;
use anyhow::{Context as _, Result};
use linkweir_testkit::capture_writer::{PcapVariant, pcap};
use linkweir_testkit::conversation::{Conversation, Side};
use linkweir_testkit::netns::{CLIENTS, SERVER, client};
use linkweir_testkit::script::Exchange;
use linkweir_wire::LinkType;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Connections of each client.
const CONNECTIONS: u8 = 4;
const PCAP_HEADER: usize = 24;
/// Between the segments of one connection.
const SPACING_NS: u64 = 20_000;
/// Between the exchanges of one connection: more than any of them takes.
const ROUND: Duration = Duration::from_millis(1);

/// A connection and how much it had to say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Talked {
    pub(super) client: SocketAddr,
    pub(super) packets: u64,
    pub(super) transactions: u64,
}

/// The server that all talk to.
pub(super) const fn server() -> SocketAddr {
    SocketAddr::new(SERVER, 80)
}

/// Writes the capture; gives its connections.
pub(super) fn write(path: &Path, transactions: u64) -> Result<Vec<Talked>> {
    let mut random = Chance::new(0x6c77);
    let addresses = (0..CLIENTS).flat_map(|number| (0..CONNECTIONS).map(move |_| client(number)));
    let mut talks: Vec<(Conversation, Talked)> = addresses
        .enumerate()
        .map(|(index, address)| {
            // As a system gives them out: somewhere in the range, mostly not in a row.
            let port = 32_768 + below(&mut random, 28_000);
            let client = SocketAddr::new(address, u16::try_from(port).unwrap_or(40_000));
            let begin = Conversation::START_NS + index as u64 * 1_733;
            let talk = Conversation::between(client, server())
                .numbered(random.word(), random.word())
                .spaced(SPACING_NS)
                .starting_at(begin);
            let talked = Talked {
                client,
                packets: 0,
                transactions: 0,
            };
            (talk, talked)
        })
        .collect();
    let mut file = BufWriter::new(File::create(path).context("create the capture")?);
    let variant = PcapVariant {
        has_nanos: true,
        ..PcapVariant::usual(LinkType::ETHERNET)
    };
    file.write_all(&pcap(&[], variant))?;

    for (talk, _) in &mut talks {
        talk.handshake();
    }
    let mut left = transactions;
    while left > 0 {
        for (talk, talked) in &mut talks {
            if left > 0 {
                exchange(talk, &mut random, talked.transactions);
                talked.transactions += 1;
                left -= 1;
            }
        }
        flush(&mut talks, &mut file, variant)?;
    }
    for (talk, _) in &mut talks {
        talk.fin(Side::Client)
            .fin(Side::Server)
            .acknowledges(Side::Client);
    }
    flush(&mut talks, &mut file, variant)?;
    file.flush().context("write the capture")?;
    Ok(talks.into_iter().map(|(_, talked)| talked).collect())
}

/// One request and its response; every second segment is acknowledged, as TCP does.
fn exchange(talk: &mut Conversation, random: &mut Chance, number: u64) {
    let size = 100.0 * 60.0_f64.powf(fraction(random));
    let size = format!("{size:.0}").parse().unwrap_or(100);
    let exchange = Exchange::get(
        format!("/item/{}?visit={number}", below(random, 5000)),
        size,
    );
    let begin = talk.now_ns();
    talk.client_sends(exchange.request());
    talk.acknowledges(Side::Server);
    for pair in exchange.response().chunks(2 * 1460) {
        talk.server_sends(pair).acknowledges(Side::Client);
    }
    let took = Duration::from_nanos(talk.now_ns() - begin);
    talk.wait(ROUND.saturating_sub(took));
}

/// Writes what has been said since the last time, in the order of time.
fn flush(
    talks: &mut [(Conversation, Talked)],
    file: &mut BufWriter<File>,
    variant: PcapVariant,
) -> Result<()> {
    let mut frames = Vec::new();
    for (talk, talked) in talks {
        talked.packets += talk.segments().len() as u64;
        frames.extend(talk.frames());
        talk.segments_mut().clear();
    }
    frames.sort_by_key(|frame| frame.timestamp_ns);
    let bytes = pcap(&frames, variant);
    file.write_all(bytes.get(PCAP_HEADER..).unwrap_or_default())?;
    Ok(())
}

/// Less than `end`.
fn below(random: &mut Chance, end: u32) -> u32 {
    random.word() % end.max(1)
}

/// From 0 to 1.
fn fraction(random: &mut Chance) -> f64 {
    f64::from(random.word()) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_capture_every_time() {
        let directory = std::env::temp_dir().join(format!("traffic-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (one, two) = (directory.join("one"), directory.join("two"));
        let talked = write(&one, 100).unwrap();
        assert_eq!(talked.len(), 32);
        let sum = |part: fn(&Talked) -> u64| talked.iter().map(part).sum::<u64>();
        assert_eq!(sum(|talk| talk.transactions), 100);
        // Request, acknowledgment, a response of one to five segments, acknowledgments of it.
        assert!((32 * 6 + 400..32 * 6 + 1000).contains(&sum(|talk| talk.packets)));
        write(&two, 100).unwrap();
        assert!(std::fs::read(&one).unwrap() == std::fs::read(&two).unwrap());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
