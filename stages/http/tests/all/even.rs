//! Shards get even shares, whatever the traffic is made of, and a connection never sticks for long.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::common::frame_of;
use linkweir_engine::split::shard_of;
use linkweir_engine::{Splitter, TransactionSplitter};
use linkweir_http::{Balance, GroupCounts, GroupsConfig, TransactionGroups};
use linkweir_testkit::conversation::{Conversation, Side};
use linkweir_testkit::script::{Exchange, Framing, tell};
use linkweir_wire::LinkType;

const CLIENTS: u8 = 8;
const CONNECTIONS: u16 = 4;

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 33) % sides) as usize
    }
}

/// A name and an exchange.
type Kind = (&'static str, fn() -> Exchange);

/// Packets and requests of each shard.
type Shares = Vec<(u64, u64)>;

/// Distributes `count` exchanges over all connections to 2, 3, 4 and 8 shards.
fn distribute(
    count: usize,
    splitter: &mut impl Splitter,
    mut make: impl FnMut(usize, &mut Dice) -> Exchange,
) -> Vec<Shares> {
    let mut dice = Dice(7);
    let mut all: Vec<Shares> = [2, 3, 4, 8].map(|shards| vec![(0, 0); shards]).into();
    let each = count / usize::from(CLIENTS) / usize::from(CONNECTIONS);
    for client in 0..CLIENTS {
        for connection in 0..CONNECTIONS {
            let from = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2 + client));
            let to = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
            let mut talk = Conversation::between(
                SocketAddr::new(from, 40_000 + connection),
                SocketAddr::new(to, 80),
            )
            .numbered(dice.roll(1 << 31) as u32, dice.roll(1 << 31) as u32)
            .spaced(1000);
            talk.handshake();
            let mut left = each;
            while left > 0 {
                // Piece by piece: the whole would be gigabytes.
                let now = left.min(250);
                left -= now;
                for _ in 0..now {
                    tell(&mut talk, &[make(left, &mut dice)]);
                    talk.acknowledges(Side::Client);
                }
                for frame in talk.frames_as_listed() {
                    let hash = splitter.hash(&frame_of(&frame, LinkType::ETHERNET));
                    let payload = frame.bytes.get(54..).unwrap_or_default();
                    let is_request = matches!(payload.first(), Some(b'G' | b'P' | b'H'))
                        && !payload.starts_with(b"HTTP");
                    for shares in &mut all {
                        let shard = shard_of(hash, shares.len() as u32) as usize;
                        shares[shard].0 += 1;
                        shares[shard].1 += u64::from(is_request);
                    }
                }
                talk.segments_mut().clear();
            }
        }
    }
    all
}

/// The largest distance from an even share in percentage points: of packets, and of requests.
fn uneven(shares: &Shares) -> (f64, f64) {
    let worst = |of: fn(&(u64, u64)) -> u64| {
        let total: u64 = shares.iter().map(of).sum();
        let even = 100.0 / shares.len() as f64;
        shares
            .iter()
            .map(|share| (100.0 * of(share) as f64 / total as f64 - even).abs())
            .fold(0.0, f64::max)
    };
    (worst(|share| share.0), worst(|share| share.1))
}

fn groups(balance: Balance) -> TransactionGroups {
    TransactionGroups::new(&GroupsConfig {
        balance,
        ..GroupsConfig::default()
    })
}

fn check(
    name: &str,
    count: usize,
    bound: f64,
    make: impl FnMut(usize, &mut Dice) -> Exchange,
) -> GroupCounts {
    let mut splitter = groups(Balance::Mixed);
    for shares in distribute(count, &mut splitter, make) {
        let (packets, requests) = uneven(&shares);
        println!(
            "{name}: {} shards, packets {packets:.3} pp, transactions {requests:.3} pp from even",
            shares.len()
        );
        assert!(packets < bound && requests < bound, "{name}: {shares:?}");
    }
    *splitter.counts()
}

/// Sizes as a site has them: many small, some of 20 KB.
fn mixed(_: usize, dice: &mut Dice) -> Exchange {
    let body = match dice.roll(10) {
        0..5 => dice.roll(800),
        5..9 => dice.roll(6000),
        _ => dice.roll(20_000),
    };
    let mut exchange = Exchange::get(format!("/{}", "p".repeat(dice.roll(60))), body);
    match dice.roll(12) {
        0 => exchange.method = "HEAD",
        1 => exchange.status = 304,
        2 => (exchange.method, exchange.upload) = ("POST", dice.roll(5000)),
        3 => exchange.framing = Framing::Chunked,
        _ => {}
    }
    exchange
}

#[test]
fn two_hundred_thousand_transactions_are_even() {
    let counts = check("mixed", 200_000, 0.5, mixed);
    assert_eq!(counts.requests, 200_000);
    assert_eq!(counts.connections, 32);
    // Every request but the first of each connection begins a group; where a segment ends within a
    // last chunk nobody sees that it was the last.
    assert_eq!(
        counts.groups + counts.unfinished,
        200_000 - 32,
        "{counts:?}"
    );
    assert!(counts.unfinished < 100, "{counts:?}");
}

#[test]
fn every_kind_of_exchange_spreads() {
    let kinds: [Kind; 7] = [
        ("get", || Exchange::get("/", 0)),
        ("get of one size", || Exchange::get("/static", 4096)),
        ("post", || Exchange {
            method: "POST",
            upload: 700,
            ..Exchange::get("/", 200)
        }),
        ("long post", || Exchange {
            method: "POST",
            upload: 9000,
            ..Exchange::get("/", 200)
        }),
        ("head", || Exchange {
            method: "HEAD",
            ..Exchange::get("/", 5000)
        }),
        ("not modified", || Exchange {
            status: 304,
            ..Exchange::get("/", 5000)
        }),
        ("chunked", || Exchange {
            framing: Framing::Chunked,
            ..Exchange::get("/", 5000)
        }),
    ];
    for (name, make) in kinds {
        let counts = check(name, 16_000, 1.6, |_, _| make());
        assert_eq!(counts.groups, 16_000 - 32, "{name}: {counts:?}");
    }
    let long = "c".repeat(2000);
    let counts = check("long heads", 16_000, 1.6, |_, _| Exchange {
        agent: long.clone(),
        ..Exchange::get("/", 3000)
    });
    assert_eq!(counts.groups, 16_000 - 32, "{counts:?}");
    let counts = check("continue", 16_000, 1.6, |_, _| Exchange {
        method: "POST",
        upload: 3000,
        interim: true,
        ..Exchange::get("/", 3000)
    });
    assert_eq!(counts.groups, 16_000 - 32, "{counts:?}");
}

/// Why the mixed hash is the default: figures, not a promise.
#[test]
fn the_hash_of_the_paper_on_messages_of_one_size() {
    for size in [0_usize, 100, 200, 4096] {
        let make = |_: usize, _: &mut Dice| Exchange::get("/static", size);
        let paper = distribute(16_000, &mut groups(Balance::Paper), make);
        let stateless = distribute(16_000, &mut TransactionSplitter, make);
        for (paper, stateless) in paper.iter().zip(&stateless) {
            println!(
                "bodies of {size}: {} shards, Eq. (3) by groups {:?} pp, by packet {:?} pp from even",
                paper.len(),
                uneven(paper),
                uneven(stateless),
            );
        }
    }
}
