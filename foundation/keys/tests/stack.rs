//! Against other implementations: rustls talks to itself, `OpenSSL` was recorded; what was said is read from their records
//! and key logs.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops where it fails"
)]

use std::sync::{Arc, Mutex};

use linkweir_keys::{About, Connection, ConnectionCounters, Due, Listener, LiveLog, Shared};
use linkweir_wire::Side;
use rustls::crypto::{CryptoProvider, SupportedKxGroup, ring};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection,
    SupportedCipherSuite, SupportedProtocolVersion, version,
};

/// The key log as rustls writes it.
#[derive(Debug, Default)]
struct Written(Mutex<String>);

impl rustls::KeyLog for Written {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| {
            bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        self.0.lock().unwrap().push_str(&line);
    }
}

/// What two ends agree on, and what they said.
struct Ends {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    log: Arc<Written>,
}

#[derive(Clone, Copy)]
struct Offer {
    versions: &'static [&'static SupportedProtocolVersion],
    suite: Option<CipherSuite>,
    /// Of the server; the client offers a share of the first of rustls.
    group: Option<&'static dyn SupportedKxGroup>,
    early: u32,
}

const THIRTEEN: Offer = Offer {
    versions: &[&version::TLS13],
    suite: None,
    group: None,
    early: 0,
};
const TWELVE: Offer = Offer {
    versions: &[&version::TLS12],
    ..THIRTEEN
};

fn provider(
    suite: Option<CipherSuite>,
    group: Option<&'static dyn SupportedKxGroup>,
) -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    if let Some(suite) = suite {
        let is_it = |offered: &SupportedCipherSuite| offered.suite() == suite;
        provider.cipher_suites.retain(is_it);
    }
    if let Some(group) = group {
        provider.kx_groups = vec![group];
    }
    Arc::new(provider)
}

fn ends(offer: Offer) -> Ends {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let log = Arc::new(Written::default());
    let mut server = ServerConfig::builder_with_provider(provider(None, offer.group))
        .with_protocol_versions(offer.versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    server.max_early_data_size = offer.early;
    server.send_half_rtt_data = false;
    let mut client = ClientConfig::builder_with_provider(provider(offer.suite, None))
        .with_protocol_versions(offer.versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.enable_early_data = offer.early > 0;
    client.key_log = Arc::clone(&log) as Arc<dyn rustls::KeyLog>;
    Ends {
        client: Arc::new(client),
        server: Arc::new(server),
        log,
    }
}

/// Bytes on the wire, in their order.
type Wire = Vec<(Side, Vec<u8>)>;

/// A conversation.
struct Talk {
    client: ClientConnection,
    server: ServerConnection,
    wire: Wire,
    /// What was said, by side.
    said: [Vec<u8>; 2],
}

const fn index(side: Side) -> usize {
    match side {
        Side::Client => 0,
        Side::Server => 1,
    }
}

impl Talk {
    fn new(ends: &Ends) -> Self {
        let name = ServerName::try_from("localhost").unwrap();
        Self {
            client: ClientConnection::new(Arc::clone(&ends.client), name).unwrap(),
            server: ServerConnection::new(Arc::clone(&ends.server)).unwrap(),
            wire: Wire::new(),
            said: [Vec::new(), Vec::new()],
        }
    }

    /// Carries over whatever either end wants to send.
    fn carry(&mut self) {
        loop {
            let mut bytes = Vec::new();
            let side = if self.client.wants_write() {
                self.client.write_tls(&mut bytes).unwrap();
                Side::Client
            } else if self.server.wants_write() {
                self.server.write_tls(&mut bytes).unwrap();
                Side::Server
            } else {
                return;
            };
            self.wire.push((side, bytes.clone()));
            let mut rest = bytes.as_slice();
            let mut heard = Vec::new();
            while !rest.is_empty() {
                match side {
                    Side::Client => {
                        self.server.read_tls(&mut rest).unwrap();
                        self.server.process_new_packets().unwrap();
                        if let Some(mut early) = self.server.early_data() {
                            drop(std::io::copy(&mut early, &mut heard));
                        }
                        drop(std::io::copy(&mut self.server.reader(), &mut heard));
                    }
                    Side::Server => {
                        self.client.read_tls(&mut rest).unwrap();
                        self.client.process_new_packets().unwrap();
                        drop(std::io::copy(&mut self.client.reader(), &mut heard));
                    }
                }
            }
            self.said[index(side)].extend(heard);
        }
    }

    fn say(&mut self, side: Side, bytes: &[u8]) {
        use std::io::Write as _;
        match side {
            Side::Client => self.client.writer().write_all(bytes).unwrap(),
            Side::Server => self.server.writer().write_all(bytes).unwrap(),
        }
        self.carry();
    }

    /// A request, and an answer of many records, several times.
    fn web(mut self) -> (Wire, [Vec<u8>; 2]) {
        self.carry();
        for turn in 0..4_u8 {
            self.say(
                Side::Client,
                format!("GET /{turn} HTTP/1.1\r\n\r\n").as_bytes(),
            );
            self.say(Side::Server, &text(turn, 3000 + 14_000 * usize::from(turn)));
        }
        (self.wire, self.said)
    }
}

/// Bytes of which no part stands twice within a record's length.
fn text(seed: u8, len: usize) -> Vec<u8> {
    (0..len / 8)
        .flat_map(|number| format!("{seed:02}{number:06}").into_bytes())
        .collect()
}

/// What an observer reads.
#[derive(Debug, Default)]
struct Heard {
    said: [Vec<u8>; 2],
    losses: u32,
    /// Whether of each [`EVERY`] bytes of the server only the first nine are of use, and the pieces of them.
    peeks: bool,
    pieces: Vec<Vec<u8>>,
}

const EVERY: usize = 1009;

impl Listener for Heard {
    fn due(&mut self, side: Side) -> Due {
        let place = self.said[index(side)].len() % EVERY;
        match side {
            Side::Server if self.peeks && place < 9 => Due::Bytes(9 - place),
            Side::Server if self.peeks => Due::Length(EVERY - place),
            _ => Due::All,
        }
    }

    fn passed(&mut self, _: &About, side: Side, len: u32, _: u64) {
        let said = &mut self.said[index(side)];
        said.resize(said.len() + len as usize, 0);
    }

    fn data(&mut self, _: &About, side: Side, bytes: &[u8], _: u64) {
        self.said[index(side)].extend_from_slice(bytes);
        self.pieces.push(bytes.to_vec());
    }

    fn lost(&mut self, _: Side) {
        self.losses += 1;
    }
}

/// What of a direction comes to the observer: `None` is lost.
fn observed(
    wire: &[(Side, Option<&[u8]>, usize)],
    log: &str,
) -> (Heard, ConnectionCounters, usize) {
    heard_by(Heard::default(), wire, log)
}

fn heard_by(
    mut heard: Heard,
    wire: &[(Side, Option<&[u8]>, usize)],
    log: &str,
) -> (Heard, ConnectionCounters, usize) {
    let keys = LiveLog::new();
    keys.push(log.as_bytes());
    let (mut held, mut scratch) = (0, Vec::new());
    let mut shared = Shared {
        log: &keys,
        held: &mut held,
        max_held: 1 << 20,
        scratch: &mut scratch,
    };
    let mut connection = Connection::new();
    for (at, (side, bytes, len)) in wire.iter().enumerate() {
        match bytes {
            Some(bytes) => connection.push(*side, bytes, at as u64, &mut shared, &mut heard),
            None => {
                let len = u32::try_from(*len).unwrap();
                connection.gap(*side, len, &mut shared, &mut heard);
            }
        }
    }
    let counters = connection.counters();
    connection.end(&mut shared);
    (heard, counters, held)
}

/// Segments of at most `size` bytes, of which those that `is_lost` names are lost.
fn segments(
    wire: &Wire,
    size: usize,
    is_lost: impl Fn(usize) -> bool,
) -> Vec<(Side, Option<&[u8]>, usize)> {
    let all = wire
        .iter()
        .flat_map(|(side, bytes)| bytes.chunks(size).map(move |segment| (*side, segment)));
    all.enumerate()
        .map(|(at, (side, segment))| (side, (!is_lost(at)).then_some(segment), segment.len()))
        .collect()
}

#[test]
fn every_suite_of_both_versions() {
    for provided in ring::default_provider().cipher_suites {
        let offer = if provided.version() == &version::TLS13 {
            THIRTEEN
        } else {
            TWELVE
        };
        // The certificate has an elliptic curve.
        if format!("{:?}", provided.suite()).contains("RSA") {
            continue;
        }
        let ends = ends(Offer {
            suite: Some(provided.suite()),
            ..offer
        });
        let talk = Talk::new(&ends);
        let (wire, said) = talk.web();
        let log = ends.log.0.lock().unwrap().clone();
        let (heard, counters, _) = observed(&segments(&wire, 1448, |_| false), &log);
        assert!(heard.said == said, "{:?}: {counters:?}", provided.suite());
        assert_eq!((counters.refused, counters.without_secret), (0, 0));
    }
}

#[test]
fn segments_of_any_length() {
    for offer in [THIRTEEN, TWELVE] {
        let ends = ends(offer);
        let talk = Talk::new(&ends);
        let (wire, said) = talk.web();
        let log = ends.log.0.lock().unwrap().clone();
        for size in [1, 7, 100, 1448, 1 << 20] {
            let (heard, counters, held) = observed(&segments(&wire, size, |_| false), &log);
            assert_eq!((heard.losses, held), (0, 0), "{size}: {counters:?}");
            assert!(heard.said == said, "{size}: {counters:?}");
        }
    }
}

#[test]
fn of_long_records_only_what_is_of_use_is_decrypted() {
    let ends = ends(THIRTEEN);
    let (wire, said) = Talk::new(&ends).web();
    let log = ends.log.0.lock().unwrap().clone();
    let peeking = || Heard {
        peeks: true,
        ..Heard::default()
    };
    for size in [1, 100, 1448, 1 << 20] {
        let (heard, counters, held) = heard_by(peeking(), &segments(&wire, size, |_| false), &log);
        assert_eq!((heard.losses, held), (0, 0), "{size}: {counters:?}");
        assert_eq!(heard.said[0], said[0], "{size}");
        assert_eq!(heard.said[1].len(), said[1].len(), "{size}");
        let mut passed = 0;
        for (at, (heard, said)) in heard.said[1].iter().zip(&said[1]).enumerate() {
            if *heard != *said {
                assert!(*heard == 0 && at % EVERY >= 9, "{size}: {at}");
                passed += 1;
            }
        }
        assert!(passed > said[1].len() / 2, "{size}: {passed}");
    }
    // Behind a loss it goes on; nothing is said that was not.
    let (whole, counters, _) = heard_by(peeking(), &segments(&wire, 1448, |_| false), &log);
    for lost in 8..40 {
        let (heard, after, held) =
            heard_by(peeking(), &segments(&wire, 1448, |at| at == lost), &log);
        assert_eq!(held, 0);
        assert!(
            after.opened + 3 > counters.opened,
            "{lost}: {after:?} {counters:?}"
        );
        assert!(heard.pieces.len() * 2 > whole.pieces.len(), "{lost}");
        for piece in &heard.pieces {
            let mut places = said.iter().flat_map(|said| said.windows(piece.len()));
            assert!(places.any(|said| said == piece), "{lost}: {piece:?}");
        }
    }
}

#[test]
fn a_server_that_asks_for_another_hello() {
    let ends = ends(Offer {
        group: Some(ring::kx_group::SECP384R1),
        ..THIRTEEN
    });
    let talk = Talk::new(&ends);
    let (wire, said) = talk.web();
    let log = ends.log.0.lock().unwrap().clone();
    let (heard, counters, _) = observed(&segments(&wire, 500, |_| false), &log);
    assert!(heard.said == said, "{counters:?}");
}

#[test]
fn sessions_that_are_resumed_and_early_data() {
    for offer in [
        THIRTEEN,
        TWELVE,
        Offer {
            early: 4096,
            ..THIRTEEN
        },
    ] {
        let ends = ends(offer);
        Talk::new(&ends).web();
        let mut talk = Talk::new(&ends);
        if offer.early > 0 {
            use std::io::Write as _;
            let mut early = talk.client.early_data().expect("the ticket allows it");
            early.write_all(b"GET /early HTTP/1.1\r\n\r\n").unwrap();
        }
        let (wire, said) = talk.web();
        assert_eq!(said[0].starts_with(b"GET /early"), offer.early > 0);
        let log = ends.log.0.lock().unwrap().clone();
        let (heard, counters, _) = observed(&segments(&wire, 500, |_| false), &log);
        assert!(heard.said == said, "{counters:?}");
        assert_eq!((counters.refused, heard.losses), (0, 0), "{counters:?}");
    }
}

#[test]
fn early_data_that_the_server_refuses() {
    let ends = ends(Offer {
        early: 4096,
        ..THIRTEEN
    });
    Talk::new(&ends).web();
    // A server that knows nothing of the ticket.
    let mut other = ServerConfig::clone(&ends.server);
    other.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    let other = Ends {
        client: Arc::clone(&ends.client),
        server: Arc::new(other),
        log: Arc::clone(&ends.log),
    };
    let mut talk = Talk::new(&other);
    {
        use std::io::Write as _;
        let mut early = talk.client.early_data().expect("the ticket allows it");
        early.write_all(b"GET /early HTTP/1.1\r\n\r\n").unwrap();
    }
    let (wire, said) = talk.web();
    assert!(!talk_has(&said[0], b"early"), "the server took it");
    let all = ends.log.0.lock().unwrap().clone();
    let is_early = |line: &&str| line.starts_with("CLIENT_EARLY");
    // With the secret of the early data it is read too, as the client sent it; without it is passed over.
    let without: String = all
        .lines()
        .filter(|line| !is_early(line))
        .map(|line| format!("{line}\n"))
        .collect();
    for (log, has_early) in [(&all, true), (&without, false)] {
        let (heard, counters, _) = observed(&segments(&wire, 500, |_| false), log);
        assert_eq!(
            talk_has(&heard.said[0], b"GET /early"),
            has_early,
            "{counters:?}"
        );
        assert!(heard.said[0].ends_with(&said[0]), "{counters:?}");
        assert!(heard.said[1] == said[1], "{counters:?}");
    }
}

fn talk_has(said: &[u8], text: &[u8]) -> bool {
    said.windows(text.len()).any(|part| part == text)
}

#[test]
fn keys_that_change_on_the_way() {
    let ends = ends(THIRTEEN);
    let mut talk = Talk::new(&ends);
    talk.carry();
    for turn in 0..6_u8 {
        talk.say(Side::Client, &text(turn, 400));
        talk.say(Side::Server, &text(turn, 4000));
        match turn {
            1 | 3 => talk.client.refresh_traffic_keys().unwrap(),
            2 | 4 => talk.server.refresh_traffic_keys().unwrap(),
            _ => {}
        }
    }
    let log = ends.log.0.lock().unwrap().clone();
    let (heard, counters, _) = observed(&segments(&talk.wire, 700, |_| false), &log);
    assert!(heard.said == talk.said, "{counters:?}");
    // Without one of the segments the rest is found again.
    let count = segments(&talk.wire, 700, |_| false).len();
    for lost in 12..count {
        let (heard, counters, _) = observed(&segments(&talk.wire, 700, |at| at == lost), &log);
        assert_eq!(counters.given_up, 0, "{lost}");
        for (heard, said) in heard.said.iter().zip(&talk.said) {
            is_part_of(heard, said);
            assert!(heard.len() + 5000 > said.len(), "{lost}: {counters:?}");
        }
    }
}

/// Whole units of `text` in their order, some of them missing.
fn is_part_of(heard: &[u8], said: &[u8]) {
    let mut rest = said;
    for unit in heard.chunks(8) {
        let at = rest.windows(unit.len()).position(|place| place == unit);
        let at = at.unwrap_or_else(|| panic!("never said: {}", String::from_utf8_lossy(unit)));
        rest = &rest[at..];
    }
}

#[test]
fn without_its_secrets_nothing_is_read_and_it_is_counted() {
    for offer in [THIRTEEN, TWELVE] {
        let ends = ends(offer);
        let (wire, _) = Talk::new(&ends).web();
        let (heard, counters, held) = observed(&segments(&wire, 500, |_| false), "");
        assert_eq!((&heard.said, held), (&[Vec::new(), Vec::new()], 0));
        assert!(
            counters.without_secret > 8 && counters.opened == 0,
            "{counters:?}"
        );
    }
}

#[test]
fn any_segment_may_be_lost() {
    for offer in [THIRTEEN, TWELVE] {
        let ends = ends(offer);
        let (wire, said) = Talk::new(&ends).web();
        let log = ends.log.0.lock().unwrap().clone();
        let all = segments(&wire, 1000, |_| false).len();
        let mut whole = 0;
        for lost in 0..all {
            let (heard, counters, held) = observed(&segments(&wire, 1000, |at| at == lost), &log);
            assert_eq!(held, 0);
            assert!(heard.losses > 0);
            // Never what was not said; requests and answers have other bytes, so each is looked for in its own.
            is_part_of(&heard.said[1], &said[1]);
            // Behind the handshake what is missing is a record or two.
            if heard.said[1].len() + 2 * 16_500 > said[1].len() {
                whole += 1;
            } else {
                assert!(lost < 8, "{lost} of {all}: {counters:?}");
            }
        }
        assert!(whole + 8 >= all, "{whole} of {all}");
    }
}

/// What rustls does not have: CBC, with the MAC of the ciphertext and with that of the text. The client said two lines,
/// the server the same backwards.
#[test]
fn records_of_openssl_in_cbc() {
    for text in [
        include_str!("openssl/aes128-sha-etm.txt"),
        include_str!("openssl/aes256-sha384-etm.txt"),
        include_str!("openssl/aes128-sha256.txt"),
        include_str!("openssl/aes256-sha.txt"),
    ] {
        let (mut log, mut wire) = (String::new(), Wire::new());
        for line in text.lines() {
            let (kind, rest) = line.split_once(' ').unwrap();
            let bytes = || {
                rest.as_bytes()
                    .chunks(2)
                    .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            };
            match kind {
                "K" => log = format!("{rest}\n"),
                "C" => wire.push((Side::Client, bytes().collect())),
                "S" => wire.push((Side::Server, bytes().collect())),
                _ => {}
            }
        }
        let x = "x".repeat(100);
        let said = [
            format!("what is said\n{x}\n"),
            format!("dias si tahw\n{x}\n"),
        ];
        for size in [1, 7, 1 << 20] {
            let (heard, counters, _) = observed(&segments(&wire, size, |_| false), &log);
            assert_eq!(
                heard
                    .said
                    .each_ref()
                    .map(|bytes| String::from_utf8_lossy(bytes)),
                said
            );
            assert_eq!(
                (counters.refused, counters.without_secret),
                (0, 0),
                "{text:.60}"
            );
        }
    }
}

/// What was encrypted before anybody saw the hellos, or by a version that is not opened, is counted.
#[test]
fn a_connection_that_was_joined_late_is_counted() {
    let ends = ends(THIRTEEN);
    let (wire, _) = Talk::new(&ends).web();
    let log = ends.log.0.lock().unwrap().clone();
    // Both hellos are in the first two parts.
    let late = wire.get(2..).unwrap().to_vec();
    let (heard, counters, _) = observed(&segments(&late, 1448, |_| false), &log);
    assert_eq!((heard.said, counters.opened), ([Vec::new(), Vec::new()], 0));
    assert!(
        counters.without_secret > 8 && heard.losses > 8,
        "{counters:?}"
    );
}
