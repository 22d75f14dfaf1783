//! What the number of a client leads to, and back.

use std::net::IpAddr;
use std::time::Duration;

use linkweir_record::IpNet;
use proptest::prelude::*;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn options(clients: &[&str]) -> PopulationOptions {
    PopulationOptions {
        clients: clients.iter().map(|text| text.parse().unwrap()).collect(),
        seed: 1,
        ..PopulationOptions::default()
    }
}

fn population(clients: &[&str]) -> Population {
    Population::new(&options(clients)).unwrap()
}

fn error(options: &PopulationOptions) -> String {
    Population::new(options).unwrap_err().to_string()
}

fn group(name: &str, members: &[&str], rtt_ms: u64) -> Group {
    Group {
        name: name.to_owned(),
        members: members.iter().map(|text| text.parse().unwrap()).collect(),
        profile: Profile {
            rtt: Duration::from_millis(rtt_ms),
            ..Profile::default()
        },
    }
}

fn all(population: &Population) -> Vec<IpAddr> {
    (0..population.len())
        .map(|client| population.address(client))
        .collect()
}

#[test]
fn addresses_that_are_no_hosts_are_left_out() {
    assert_eq!(
        all(&population(&["10.0.0.0/30"])),
        [ip("10.0.0.1"), ip("10.0.0.2")]
    );
    assert_eq!(
        all(&population(&["10.0.0.0/31"])),
        [ip("10.0.0.0"), ip("10.0.0.1")]
    );
    assert_eq!(all(&population(&["10.0.0.7"])), [ip("10.0.0.7")]);
    let v6 = population(&["fd00::/126"]);
    assert_eq!(all(&v6), [ip("fd00::1"), ip("fd00::2"), ip("fd00::3")]);
    assert_eq!(
        all(&population(&["fd00::/127"])),
        [ip("fd00::"), ip("fd00::1")]
    );
    assert_eq!(population(&["10.0.0.0/8"]).len(), (1 << 24) - 2);
    assert_eq!(population(&["fd00::/97"]).len(), (1 << 31) - 1);
}

#[test]
fn prefixes_follow_one_another_in_the_order_given() {
    let clients = population(&["10.9.0.0/29", "fd00::8/126", "10.1.0.0/29"]);
    assert_eq!(clients.len(), 6 + 3 + 6);
    assert_eq!(clients.address(0), ip("10.9.0.1"));
    assert_eq!(clients.address(6), ip("fd00::9"));
    assert_eq!(clients.address(14), ip("10.1.0.6"));
    for client in 0..clients.len() {
        assert_eq!(clients.find(clients.address(client)), Some(client));
    }
    assert_eq!(clients.any_like(ip("fd99::1")), Some(6));
    assert_eq!(clients.any_like(ip("1.2.3.4")), Some(0));
    assert_eq!(population(&["10.0.0.1"]).any_like(ip("::2")), None);
    for nobody in [
        "10.9.0.0",
        "10.9.0.7",
        "10.9.0.8",
        "9.255.255.255",
        "fd00::8",
        "fd00::c",
    ] {
        assert_eq!(clients.find(ip(nobody)), None, "{nobody}");
    }
}

#[test]
fn excluded_addresses_are_nobody() {
    let clients = Population::new(&PopulationOptions {
        exclude: [
            "10.0.0.1",
            "10.0.0.4",
            "10.0.0.4",
            "192.168.0.1",
            "10.0.0.0",
        ]
        .map(ip)
        .to_vec(),
        ..options(&["10.0.0.0/29"])
    });
    let clients = clients.unwrap();
    let left = ["10.0.0.2", "10.0.0.3", "10.0.0.5", "10.0.0.6"].map(ip);
    assert_eq!(all(&clients), left);
    assert_eq!(clients.find(ip("10.0.0.4")), None);
    assert_eq!(clients.find(ip("10.0.0.5")), Some(2));
    let none = PopulationOptions {
        exclude: vec![ip("10.0.0.1")],
        ..options(&["10.0.0.1"])
    };
    assert_eq!(
        error(&none),
        "there is no client address (the server, the router and this host are no clients)"
    );
}

#[test]
fn what_cannot_be_a_population_is_said() {
    let refused = |clients: &[&str]| error(&options(clients));
    assert_eq!(
        refused(&[]),
        "there is no client address (the server, the router and this host are no clients)"
    );
    assert_eq!(
        refused(&["10.1.0.0/16", "10.0.0.0/8"]),
        "the client prefixes 10.0.0.0/8 and 10.1.0.0/16 overlap"
    );
    assert_eq!(
        refused(&["fd00::/64"]),
        "more than 2147483648 clients with fd00::/64: take a longer prefix"
    );
    assert_eq!(
        refused(&["fd00::/97", "10.0.0.0/30"]),
        "more than 2147483648 clients with 10.0.0.0/30: take a longer prefix"
    );
    for unusable in [
        "224.0.0.0/24",
        "127.0.0.1",
        "0.0.0.0/0",
        "ff02::/120",
        "::1",
    ] {
        assert!(
            refused(&[unusable]).starts_with("no host can have"),
            "{unusable}"
        );
    }
    let vlan = PopulationOptions {
        vlan: Some(4095),
        ..options(&["10.0.0.1"])
    };
    assert_eq!(error(&vlan), "4095 is no VLAN: 1 to 4094");
}

#[test]
fn the_longest_prefix_decides_the_group() {
    let clients = Population::new(&PopulationOptions {
        groups: vec![
            group("near", &["10.0.0.0/24"], 10),
            group("far", &["10.0.0.128/26", "fd00::/112"], 200),
        ],
        ..options(&["10.0.0.0/23", "fd00::/120"])
    });
    let clients = clients.unwrap();
    let of = |text| clients.group(clients.find(ip(text)).unwrap());
    assert_eq!(of("10.0.0.127"), 1);
    assert_eq!(of("10.0.0.128"), 2);
    assert_eq!(of("10.0.0.191"), 2);
    assert_eq!(of("10.0.0.192"), 1);
    assert_eq!(of("10.0.1.0"), 0);
    assert_eq!(of("fd00::5"), 2);
    let lens: Vec<u32> = (0..3).map(|number| clients.group_len(number)).collect();
    assert_eq!(lens, [255, 255 - 64, 64 + 255]);
    let far = clients.find(ip("10.0.0.130")).unwrap();
    assert_eq!(clients.profile(far).rtt, Duration::from_millis(200));
    assert_eq!(clients.groups()[0].name, "default");
    for client in 0..clients.len() {
        assert_eq!(clients.find(clients.address(client)), Some(client));
    }
}

#[test]
fn groups_are_checked() {
    let with = |groups| {
        error(&PopulationOptions {
            groups,
            ..options(&["10.0.0.0/24"])
        })
    };
    assert_eq!(
        with(vec![group("a", &["10.1.0.0/24"], 1)]),
        "the group \"a\" has no clients: its prefixes are parts of those of the clients"
    );
    let twice = vec![group("a", &["10.0.0.1"], 1), group("a", &["10.0.0.2"], 1)];
    assert_eq!(with(twice), "there are two groups of the name \"a\"");
    let slow = vec![group("slow", &["10.0.0.1"], 61_000)];
    assert_eq!(with(slow), "the group \"slow\": an RTT is at most 60 s");
}

#[test]
fn a_million_clients_take_no_memory() {
    let clients = population(&["10.0.0.0/12"]);
    assert_eq!(clients.ranges.len(), 1);
    let used: std::collections::HashSet<Client> = (0..u64::from(clients.len()))
        .map(|k| clients.pick(k))
        .collect();
    assert_eq!(used.len(), clients.len() as usize);
}

proptest! {
    #[test]
    fn only_addresses_of_clients_are_found(
        address: u32,
        len in 8_u8..=32,
        probe: u32,
        excluded in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let prefix = Prefix(IpNet::new(std::net::Ipv4Addr::from_bits(address).into(), len).unwrap().trunc());
        let IpAddr::V4(first) = prefix.network() else { unreachable!() };
        let near = |low: u8| IpAddr::from(std::net::Ipv4Addr::from_bits(first.to_bits().wrapping_add(low.into())));
        let exclude: Vec<IpAddr> = excluded.into_iter().map(near).collect();
        let made = Population::new(&PopulationOptions {
            clients: vec![prefix],
            exclude: exclude.clone(),
            ..PopulationOptions::default()
        });
        let Ok(clients) = made else { return Ok(()) };
        let probe = if probe % 2 == 0 { near(probe.to_be_bytes()[0]) } else { std::net::Ipv4Addr::from_bits(probe).into() };
        match clients.find(probe) {
            Some(client) => {
                prop_assert!(client < clients.len());
                prop_assert_eq!(clients.address(client), probe);
                prop_assert!(prefix.contains(&probe) && !exclude.contains(&probe));
            }
            None => {
                let is_edge = len <= 30 && (!prefix.contains(&near_of(probe, -1)) || !prefix.contains(&near_of(probe, 1)));
                prop_assert!(!prefix.contains(&probe) || exclude.contains(&probe) || is_edge);
            }
        }
    }
}

fn near_of(address: IpAddr, by: i32) -> IpAddr {
    let IpAddr::V4(v4) = address else {
        unreachable!()
    };
    std::net::Ipv4Addr::from_bits(v4.to_bits().wrapping_add_signed(by)).into()
}
