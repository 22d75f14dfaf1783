//! Delays, rates and losses come out as they were asked for.

use std::time::Duration;

use super::*;
use crate::population::{Direction, Group, PopulationOptions, Profile};

const START: Timestamp = Timestamp::from_nanos(1_000_000_000_000);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn population(profile: Profile) -> Population {
    Population::new(&PopulationOptions {
        clients: vec!["10.0.0.0/16".parse().unwrap()],
        profile,
        ..PopulationOptions::default()
    })
    .unwrap()
}

fn limited(bits_per_second: u64, queue: Duration) -> Direction {
    Direction {
        bits_per_second: Some(bits_per_second),
        queue,
        ..Direction::default()
    }
}

/// How long a frame takes that was sent at `now`; `None` where it is lost.
fn taken(fate: Fate, now: Timestamp) -> Option<Duration> {
    match fate {
        Fate::Now => Some(Duration::ZERO),
        Fate::At(at) => Some(Duration::from_nanos(at.nanos_since(now))),
        Fate::Lost => None,
    }
}

#[test]
fn a_line_that_does_nothing_costs_nothing() {
    let clients = population(Profile::default());
    let mut paths = Paths::new(&clients, 1);
    assert!(paths.is_plain());
    assert_eq!(paths.outgoing(&clients, 3, 1500, START), Fate::Now);
    assert_eq!(paths.incoming(&clients, 3, 1500, START), Fate::Now);
    assert_eq!(
        paths.counts(0),
        (PathCounts::default(), PathCounts::default())
    );
}

#[test]
fn half_of_the_rtt_is_each_way() {
    let clients = population(Profile {
        rtt: ms(80),
        ..Profile::default()
    });
    let mut paths = Paths::new(&clients, 1);
    assert_eq!(
        paths.outgoing(&clients, 7, 60, START),
        Fate::At(START + ms(40))
    );
    assert_eq!(
        paths.incoming(&clients, 7, 60, START),
        Fate::At(START + ms(40))
    );
    assert_eq!(paths.counts(0).0.passed, 1);
    assert_eq!(
        format!("{:?}", paths.up.active),
        format!("{:?}", Active::default()),
        "no memory"
    );
}

#[test]
fn jitter_is_uniform_around_the_rtt_and_keeps_order() {
    let profile = Profile {
        rtt: ms(100),
        jitter: ms(40),
        ..Profile::default()
    };
    let clients = population(profile);
    let mut paths = Paths::new(&clients, 1);
    // One frame a second each: none waits for the one before.
    let mut sum = Duration::ZERO;
    let (mut least, mut most) = (Duration::MAX, Duration::ZERO);
    for n in 0..20_000 {
        let now = START + Duration::from_secs(n);
        let there = taken(paths.outgoing(&clients, 1, 60, now), now).unwrap();
        let back = taken(paths.incoming(&clients, 1, 60, now + there), now + there).unwrap();
        let rtt = there + back;
        sum += rtt;
        (least, most) = (least.min(rtt), most.max(rtt));
    }
    let mean = sum / 20_000;
    assert!(
        mean.abs_diff(ms(100)) < Duration::from_micros(400),
        "{mean:?}"
    );
    assert!(least >= ms(80) && least < ms(81), "{least:?}");
    assert!(most <= ms(120) && most > ms(119), "{most:?}");

    // Close together: never one before the other, unless that was asked for.
    let changes = |paths: &mut Paths, clients: &Population| {
        let mut before = Timestamp::ZERO;
        (0..10_000_u64)
            .filter(|n| {
                let now = START + Duration::from_secs(30_000) + Duration::from_micros(*n * 100);
                let Fate::At(at) = paths.outgoing(clients, 1, 60, now) else {
                    panic!()
                };
                std::mem::replace(&mut before, at) > at
            })
            .count()
    };
    assert_eq!(changes(&mut paths, &clients), 0);
    let clients = population(Profile {
        reorder: true,
        ..profile
    });
    assert!(changes(&mut Paths::new(&clients, 1), &clients) > 1000);
}

#[test]
fn bandwidth_is_that_of_each_client_and_its_queue_is_bounded() {
    // 1500 bytes a 1.2 ms: 10 Mbit/s down, a queue of 60 ms.
    let clients = population(Profile {
        rtt: ms(20),
        up: limited(1_000_000, ms(50)),
        down: limited(10_000_000, ms(60)),
        ..Profile::default()
    });
    let mut paths = Paths::new(&clients, 1);
    assert_eq!(
        paths.incoming(&clients, 1, 1500, START),
        Fate::At(START + Duration::from_micros(11_200))
    );
    assert_eq!(
        paths.incoming(&clients, 1, 1500, START),
        Fate::At(START + Duration::from_micros(12_400)),
        "behind the first"
    );
    let other = paths.incoming(&clients, 2, 1500, START);
    assert_eq!(
        other,
        Fate::At(START + Duration::from_micros(11_200)),
        "a line of its own"
    );
    let up = paths.outgoing(&clients, 1, 125, START);
    assert_eq!(
        up,
        Fate::At(START + ms(11)),
        "the other way is free, and slower"
    );

    // Offered ten times as much for ten seconds.
    let from = START + Duration::from_secs(10);
    let mut last = from;
    let (mut arrived, mut lost) = (0_u32, 0_u32);
    for n in 0..83_333_u64 {
        let now = from + Duration::from_micros(n * 120);
        match paths.incoming(&clients, 9, 1500, now) {
            Fate::At(at) => {
                assert!(at > last, "in order");
                let queued = at.nanos_since(now);
                assert!(queued <= 10_000_000 + 60_000_000 + 1_200_000, "{queued}");
                last = at;
                arrived += 1;
            }
            Fate::Now => panic!("it takes its time"),
            Fate::Lost => lost += 1,
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "small")]
    let seconds = (last.nanos_since(from) - 10_000_000) as f64 / 1e9;
    let rate = f64::from(arrived) * 12_000.0 / seconds;
    assert!((rate / 1e7 - 1.0).abs() < 0.001, "{rate} bit/s");
    let (_, down) = paths.counts(0);
    assert_eq!((down.dropped, down.lost), (lost.into(), 0));
    assert_eq!(u64::from(arrived) + 3, down.passed);
}

#[test]
fn losses_are_as_many_as_were_asked_for_in_bursts_by_client() {
    let clients = population(Profile {
        up: Direction {
            loss: 0.05,
            burst: 4.0,
            ..Direction::default()
        },
        down: Direction {
            loss: 0.01,
            ..Direction::default()
        },
        ..Profile::default()
    });
    let mut paths = Paths::new(&clients, 1);
    // Frames of 40 clients by turns, 2000 rounds.
    let mut before = [false; 40];
    let (mut lost_up, mut rows, mut lost_down) = (0_u32, 0_u32, 0_u32);
    for n in 0..400_000_u64 {
        let now = START + Duration::from_micros(n * 10);
        let client = u32::try_from(n % 40).unwrap();
        let is_lost = paths.outgoing(&clients, client, 60, now) == Fate::Lost;
        let was_lost = std::mem::replace(&mut before[client as usize], is_lost);
        lost_up += u32::from(is_lost);
        rows += u32::from(is_lost && !was_lost);
        lost_down += u32::from(paths.incoming(&clients, client, 60, now) == Fate::Lost);
    }
    let share = f64::from(lost_up) / 4e5;
    assert!((share - 0.05).abs() < 0.004, "{share}");
    let burst = f64::from(lost_up) / f64::from(rows);
    assert!((burst - 4.0).abs() < 0.2, "{burst}");
    let share = f64::from(lost_down) / 4e5;
    assert!((share - 0.01).abs() < 0.001, "{share}");
    assert_eq!(paths.counts(0).0.lost, u64::from(lost_up));
}

#[test]
fn groups_have_lines_of_their_own_and_a_seed_repeats_itself() {
    let group = |name: &str, member: &str, loss| Group {
        name: name.to_owned(),
        members: vec![member.parse().unwrap()],
        profile: Profile {
            rtt: ms(30),
            jitter: ms(10),
            up: Direction {
                loss,
                ..Direction::default()
            },
            ..Profile::default()
        },
    };
    let clients = Population::new(&PopulationOptions {
        clients: vec!["10.0.0.0/24".parse().unwrap()],
        groups: vec![group("far", "10.0.0.128/25", 0.3)],
        ..PopulationOptions::default()
    })
    .unwrap();
    let fates = |seed| {
        let mut paths = Paths::new(&clients, seed);
        assert!(!paths.is_plain());
        let fate = |n: u64| {
            let client = u32::try_from(n).unwrap() % clients.len();
            paths.outgoing(&clients, client, 60, START + Duration::from_micros(n))
        };
        let fates: Vec<Fate> = (0..2000).map(fate).collect();
        assert_eq!(paths.counts(0).0, PathCounts::default());
        fates
    };
    let one = fates(1);
    for (client, fate) in (0..clients.len()).cycle().zip(&one) {
        assert_eq!(*fate == Fate::Now, clients.group(client) == 0, "{client}");
    }
    assert_eq!(one, fates(1));
    assert_ne!(one, fates(2));
}
