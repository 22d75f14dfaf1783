use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const RESOLVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 53));
const PORT: u16 = 40_000;

fn name(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in text.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

fn message(id: u16, flags: u16, asked: &str, answers: &[(&str, u16, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let count = u16::try_from(answers.len()).unwrap();
    for word in [id, flags, 1, count, 0, 0] {
        bytes.extend(word.to_be_bytes());
    }
    bytes.extend(name(asked));
    bytes.extend([0, 1, 0, 1]);
    for (owner, kind, data) in answers {
        bytes.extend(name(owner));
        bytes.extend(kind.to_be_bytes());
        bytes.extend([0, 1, 0, 0, 0, 60]);
        bytes.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        bytes.extend(data);
    }
    bytes
}

fn v4(last: u8) -> (IpAddr, Vec<u8>) {
    let address = Ipv4Addr::new(192, 0, 2, last);
    (IpAddr::V4(address), address.octets().to_vec())
}

#[test]
fn an_answer_names_its_addresses_for_its_client() {
    let mut cache = DnsCache::new(100, 7);
    let (server, data) = v4(7);
    cache.hear(
        CLIENT,
        PORT,
        RESOLVER,
        &message(5, 0x0100, "WWW.example.com", &[]),
        1_000,
    );
    assert!(cache.lookup(CLIENT, server).is_none());
    let answer = message(
        5,
        0x8180,
        "www.example.com",
        &[("www.example.com", 1, data)],
    );
    cache.hear(CLIENT, PORT, RESOLVER, &answer, 9_000);
    let named = cache.lookup(CLIENT, server).unwrap();
    assert_eq!(named.name, b"www.example.com");
    assert_eq!(named.resolver, RESOLVER);
    assert_eq!((named.request_ns, named.response_ns), (Some(1_000), 9_000));
    // Another client was not told.
    assert!(cache.lookup(RESOLVER, server).is_none());
    // The question was answered: a second answer has none.
    cache.hear(CLIENT, PORT, RESOLVER, &answer, 9_500);
    assert_eq!(cache.lookup(CLIENT, server).unwrap().request_ns, None);
    assert_eq!(cache.counters().answers, 2);
}

#[test]
fn aliases_lead_from_the_name_that_was_asked() {
    let mut cache = DnsCache::new(100, 7);
    let (server, data) = v4(8);
    let (stranger, other) = v4(9);
    let v6: IpAddr = "2001:db8::5".parse().unwrap();
    let IpAddr::V6(v6_data) = v6 else {
        panic!("{v6}")
    };
    let answer = message(
        1,
        0x8180,
        "shop.example",
        &[
            ("shop.example", 5, name("a.cdn.example")),
            ("unrelated.example", 1, other),
            ("A.cdn.example", 5, name("b.cdn.example")),
            ("b.cdn.example", 1, data),
            ("b.cdn.example", 28, v6_data.octets().to_vec()),
        ],
    );
    cache.hear(CLIENT, PORT, RESOLVER, &answer, 5);
    for address in [server, v6] {
        assert_eq!(cache.lookup(CLIENT, address).unwrap().name, b"shop.example");
    }
    assert!(cache.lookup(CLIENT, stranger).is_none());
}

#[test]
fn the_last_answer_counts() {
    let mut cache = DnsCache::new(100, 7);
    let (server, data) = v4(10);
    for (time, asked) in [(1, "one.example"), (2, "two.example")] {
        let answer = message(1, 0x8180, asked, &[(asked, 1, data.clone())]);
        cache.hear(CLIENT, PORT, RESOLVER, &answer, time);
    }
    let named = cache.lookup(CLIENT, server).unwrap();
    assert_eq!((named.name, named.response_ns), (&b"two.example"[..], 2));
    assert_eq!(cache.len(), 1);
}

#[test]
fn answers_that_name_nothing_change_nothing() {
    let mut cache = DnsCache::new(100, 7);
    let (server, data) = v4(11);
    let record = [("x.example", 1, data)];
    let zero = [("x.example", 1, vec![0, 0, 0, 0])];
    cache.hear(
        CLIENT,
        PORT,
        RESOLVER,
        &message(1, 0x8183, "x.example", &record),
        1,
    );
    cache.hear(
        CLIENT,
        PORT,
        RESOLVER,
        &message(1, 0x8180, "x.example", &zero),
        1,
    );
    cache.hear(
        CLIENT,
        PORT,
        RESOLVER,
        &message(1, 0xA800, "x.example", &record),
        1,
    );
    cache.hear(CLIENT, PORT, RESOLVER, b"short", 1);
    assert!(cache.lookup(CLIENT, server).is_none() && cache.is_empty());
    assert_eq!(cache.counters().malformed, 1);
}

#[test]
fn a_question_that_is_repeated_keeps_its_first_time() {
    let mut cache = DnsCache::new(100, 7);
    let (server, data) = v4(12);
    let question = message(9, 0x0100, "x.example", &[]);
    cache.hear(CLIENT, PORT, RESOLVER, &question, 1_000);
    cache.hear(CLIENT, PORT, RESOLVER, &question, 5_000_000_000);
    let answer = message(9, 0x8180, "x.example", &[("x.example", 1, data)]);
    cache.hear(CLIENT, PORT, RESOLVER, &answer, 5_100_000_000);
    assert_eq!(
        cache.lookup(CLIENT, server).unwrap().request_ns,
        Some(1_000)
    );
}

#[test]
fn a_full_cache_forgets_the_oldest() {
    const ENTRIES: u32 = 50;
    let mut cache = DnsCache::new(ENTRIES as usize, 7);
    let client = |number: u32| IpAddr::V4(Ipv4Addr::from_bits(0x0A00_0000 + number));
    let (server, data) = v4(13);
    for number in 0..3 * ENTRIES {
        let asked = format!("host{number}.example");
        let answer = message(1, 0x8180, &asked, &[(&asked, 1, data.clone())]);
        cache.hear(
            client(number),
            PORT,
            RESOLVER,
            &message(1, 0x0100, &asked, &[]),
            1,
        );
        cache.hear(client(number), PORT, RESOLVER, &answer, 2);
    }
    assert_eq!(cache.len(), ENTRIES as usize);
    assert_eq!(cache.counters().evicted, u64::from(2 * ENTRIES));
    assert!(cache.lookup(client(0), server).is_none());
    let last = cache.lookup(client(3 * ENTRIES - 1), server).unwrap();
    assert_eq!(last.name, b"host149.example");
}

#[test]
fn questions_without_answers_are_bounded() {
    let mut cache = DnsCache::new(100_000, 7);
    for number in 0..3 * QUESTIONS {
        let id = u16::try_from(number).unwrap();
        cache.hear(
            CLIENT,
            PORT,
            RESOLVER,
            &message(id, 0x0100, "x.example", &[]),
            1,
        );
    }
    assert_eq!(cache.questions.len(), QUESTIONS);
    assert_eq!(cache.counters().questions_evicted, 2 * QUESTIONS as u64);
}

#[test]
fn an_entry_is_as_small_as_promised() {
    // And 16 bytes of links, 8 for "nothing there".
    assert!(size_of::<Entry>() <= 72);
}

proptest! {
    #[test]
    fn any_message_is_heard_without_panic(
        messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 1..20),
        at in 0_usize..60, value: u8,
    ) {
        let mut cache = DnsCache::new(4, 7);
        let mut damaged = message(1, 0x8180, "a.b", &[("a.b", 5, name("c.d")), ("c.d", 1, vec![1, 2, 3, 4])]);
        if let Some(byte) = damaged.get_mut(at) {
            *byte = value;
        }
        for bytes in messages.iter().chain([&damaged]) {
            cache.hear(CLIENT, PORT, RESOLVER, bytes, 3);
        }
        prop_assert!(cache.len() <= 4);
        std::hint::black_box(cache.lookup(CLIENT, RESOLVER));
    }
}

proptest! {
    /// Against all names ever written: one that is there is right, and the newest are there.
    #[test]
    fn names_are_whole_or_gone(lengths in proptest::collection::vec(0_usize..255, 1..60)) {
        let mut ring = NameRing::new(1024);
        let mut all = Vec::new();
        for (number, length) in lengths.into_iter().enumerate() {
            let name = vec![u8::try_from(number).unwrap_or(0); length];
            all.push((ring.push(&name), name));
            for (id, name) in &all {
                prop_assert!(ring.get(*id).is_none_or(|found| found == name));
            }
            let newest: usize = all
                .iter()
                .rev()
                .take_while(|(id, _)| ring.get(*id).is_some())
                .map(|(_, name)| name.len() + 1)
                .sum();
            let total: usize = all.iter().map(|(_, name)| name.len() + 1).sum();
            prop_assert!(newest >= total.min(1024 - 2 * MAX_BYTES));
        }
        prop_assert_eq!(ring.get(NameId::default()), None);
    }
}
