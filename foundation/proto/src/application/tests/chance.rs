//! What chance, or a header that looks alike, must never be taken for: labels by which a policy drops.

use super::*;

/// The peer-to-peer applications.
const PEERS: [A; 7] = [
    A::BitTorrent,
    A::Utp,
    A::EDonkey,
    A::Kad,
    A::Gnutella,
    A::FastTrack,
    A::DirectConnect,
];

/// These bytes were not taken for a peer-to-peer application.
#[track_caller]
fn assert_no_peer(verdict: Verdict, bytes: &[u8]) {
    let is_peer = matches!(verdict, Verdict::Is(application) if PEERS.contains(&application));
    assert!(!is_peer, "{verdict:?}: {}", bytes.escape_ascii());
}

/// Bytes that look like nothing: xorshift, always the same.
struct Random(u64);

impl Random {
    const fn new() -> Self {
        Self(0x2545_F491_4F6C_DD1D)
    }

    const fn word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.word().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

#[test]
fn random_datagrams_of_every_length_are_no_peers() {
    let mut random = Random::new();
    let mut bytes = [0; 1500];
    let lengths = (0..210_000).map(|round| 1 + round % 1500);
    // Short ones are many: a length that a message has must not be enough.
    for length in lengths.chain((0..300_000).map(|round| 16 + round % 48)) {
        let datagram = &mut bytes[..length];
        random.fill(datagram);
        assert_no_peer(udp(datagram), datagram);
    }
}

/// The first byte and the opcode are the protocol's, all else is chance, at every length that a message
/// of a fixed length may have: one datagram in 10^9 of all, so one in 15,000 of these.
#[test]
fn two_bytes_and_a_length_are_no_peer() {
    let mut random = Random::new();
    let mut bytes = [0; 160];
    for protocol in [0xC5, 0xE3, 0xE4, 0xE5] {
        for opcode in 0..=255 {
            for round in 0..159 * 4 {
                let datagram = &mut bytes[..2 + round % 159];
                random.fill(datagram);
                datagram[0] = protocol;
                datagram[1] = opcode;
                assert_no_peer(udp(datagram), datagram);
            }
        }
    }
}

/// No contacts, or one, are what a random byte says too.
#[test]
fn lists_of_hardly_any_contacts_are_no_peers() {
    for opcode in [0x28, 0x29] {
        for count in 0..4 {
            let contacts = vec![5; 25 * usize::from(count)];
            let list = [&[0xE4, opcode][..], &[7; 16], &[count], &contacts].concat();
            assert_eq!(udp(&list) == Verdict::Is(A::Kad), count >= 2, "{count}");
        }
    }
}

/// Flows whose datagrams all have the same two bytes in front, from one side.
#[test]
fn a_stream_of_datagrams_alike_assert_no_peer() {
    let mut random = Random::new();
    let mut bytes = [0; 64];
    for protocol in [0xC5, 0xE3, 0xE4, 0xE5, 0x47, 0x27, 0x00, 0x13, b'd'] {
        for opcode in 0..=255 {
            for length in 2..64 {
                let mut memory = UdpMemory::default();
                for _ in 0..4 {
                    let datagram = &mut bytes[..length];
                    random.fill(datagram);
                    datagram[0] = protocol;
                    datagram[1] = opcode;
                    let verdict = classify_udp(datagram, true, 4000, 5000, &mut memory);
                    assert_no_peer(verdict, datagram);
                }
            }
        }
    }
}

#[test]
fn flows_of_random_datagrams_are_no_peers() {
    let mut random = Random::new();
    let mut bytes = [0; 256];
    for _ in 0..30_000 {
        let mut memory = UdpMemory::default();
        for _ in 0..16 {
            let word = random.word();
            let datagram = &mut bytes[..1 + (word & 0xFF) as usize];
            random.fill(datagram);
            let verdict = classify_udp(datagram, word >> 63 == 0, 4000, 5000, &mut memory);
            assert_no_peer(verdict, datagram);
            if verdict != Verdict::More {
                break;
            }
        }
    }
}

/// A header of uTP has no mark, and most of it may be anything: the packets of one side go on in time with one
/// identifier, those of the other have the one beside it.
#[test]
fn headers_like_those_of_utp_that_do_not_agree_are_no_peers() {
    let mut random = Random::new();
    for _ in 0..30_000 {
        let mut memory = UdpMemory::default();
        for _ in 0..16 {
            let word = random.word();
            let mut datagram = [0; 24];
            random.fill(&mut datagram);
            // Data, in a window that is sane.
            datagram[..2].copy_from_slice(&[1, 0]);
            datagram[12] = 0;
            let verdict = classify_udp(&datagram, word >> 63 == 0, 4000, 5000, &mut memory);
            assert_no_peer(verdict, &datagram);
            if verdict != Verdict::More {
                break;
            }
        }
    }
}

/// A policy drops by what is added too: nothing is, by whatever goes on in a flow that began with STUN.
#[test]
fn chance_adds_nothing_to_stun() {
    let mut random = Random::new();
    let stun = [&[0, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42][..], &[5; 12]].concat();
    let mut bytes = [0; 256];
    for _ in 0..2000 {
        let mut memory = UdpMemory::default();
        let mut say = |datagram: &[u8]| {
            let verdict = classify_udp(datagram, true, 4000, 5000, &mut memory);
            let shown = datagram.escape_ascii();
            assert_eq!(verdict, Verdict::Likely(A::Stun), "{shown}");
        };
        say(&stun);
        for _ in 2..255 {
            let datagram = &mut bytes[..1 + (random.word() & 0xFF) as usize];
            random.fill(datagram);
            say(datagram);
        }
    }
}

/// Zeros, ones, counters: what counts and pads has no identifiers.
#[test]
fn datagrams_of_padding_are_no_peers() {
    let mut random = Random::new();
    for length in 1..=1500_usize {
        for fill in [0x00, 0x01, 0x20, 0x30, 0xFF] {
            let datagram = vec![fill; length];
            assert_no_peer(udp(&datagram), &datagram);
        }
        for zeros in [4, 7, 8, 12] {
            let mut datagram = vec![0; length];
            let head = length.saturating_sub(zeros);
            random.fill(&mut datagram[..head]);
            let mut memory = UdpMemory::default();
            for _ in 0..4 {
                let verdict = classify_udp(&datagram, true, 4000, 5000, &mut memory);
                assert_no_peer(verdict, &datagram);
            }
        }
    }
}

/// What a flow says of itself whose datagrams have the header of Gnutella's messages, without a body.
fn said_by_headers(id: [u8; 16], time_to_live: u8) -> Verdict {
    let mut memory = UdpMemory::default();
    let mut verdict = Verdict::More;
    for kind in [0x00, 0x01, 0x02, 0x30, 0x31, 0x40, 0x80, 0x81] {
        let datagram = [&id[..], &[kind, time_to_live], &[0; 5]].concat();
        verdict = classify_udp(&datagram, true, 4000, 5000, &mut memory);
        if let Verdict::Is(_) = verdict {
            break;
        }
    }
    verdict
}

/// Padding in front of a small counter, and a small counter in front of padding.
#[test]
fn counters_in_padding_are_no_peers() {
    let id = *b"identifier of it";
    assert_eq!(said_by_headers(id, 1), Verdict::Is(A::Gnutella));
    for fill in [0x00, 0x01, 0x20, 0x30, 0xFF] {
        assert_no_peer(said_by_headers([fill; 16], 1), &[fill]);
    }
    assert_no_peer(said_by_headers(id, 0), b"no time to live");
}

#[test]
fn random_openings_of_tcp_are_no_peers() {
    let mut random = Random::new();
    let mut bytes = [0; 1500];
    for round in 0..210_000_usize {
        let own = &mut bytes[..1 + round % 1500];
        random.fill(own);
        for verdict in [tcp(own, b""), tcp(b"", own), tcp(own, own)] {
            assert_no_peer(verdict, own);
        }
    }
    // A first byte of eDonkey, and a length that the segment has.
    let mut bytes = [0; 256];
    for protocol in [0xC5, 0xD4, 0xE3] {
        for opcode in 0..=255 {
            for length in 6..256 {
                let own = &mut bytes[..length];
                random.fill(own);
                own[0] = protocol;
                own[1..5].copy_from_slice(&u32::try_from(length - 5).unwrap().to_le_bytes());
                own[5] = opcode;
                assert_no_peer(tcp(own, b""), own);
            }
        }
    }
}

/// One field or one word of a target, as other programs have it too.
#[test]
fn one_sign_in_a_head_of_http_is_http() {
    let heads: [&[u8]; 22] = [
        b"GET / HTTP/1.1\r\nHost: a\r\nX-Queue: jobs\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX-Queue: 0.1\r\n\r\n",
        b"GET /get/3/orders HTTP/1.1\r\nHost: a\r\nX-Queue: jobs\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Queue: position=1\r\n\r\n",
        b"GET /uri-res/N2R?urn:nbn:de:101:1-201102033592 HTTP/1.1\r\nHost: nbn-resolving.example\r\n\r\n",
        b"GET /uri-res/N2R?urn:isbn:0451450523 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /uri-res/N2R?urn:sha1:short HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: Morpheus/4.1 (monitoring)\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: LimeWire/4.2.6\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: Shareaza\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nServer: BearShare\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/x-gnutella-packets\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-URN: urn:sha1:PLSTHIPQGSSZTS5FJUPAKUZWUGYQYPFB\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: h\r\nX-Kazaa-Username: u\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: h\r\nX-Kazaa-Username: u\r\nX-Kazaa-Username: v\r\n\r\n",
        b"GET /a HTTP/1.1\r\nUserAgent: KazaaClient Nov  3 2002\r\n\r\n",
        b"HTTP/1.1 206 Partial\r\nServer: KazaaClient Nov  3 2002\r\n\r\n",
        b"GET /.hash=0123456789 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /.hash=0123456789abcdef0123456789abcdef0123456789abcdef HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /search?info_hash=0123456789abcdef0123456789abcdef01234567 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /announce?text=hello&peer_id=1 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /a?info_hash=1 HTTP/1.1\r\nHost: a\r\nX-Ultrapeer: no\r\n\r\n",
    ];
    for head in heads {
        let shown = head.escape_ascii();
        assert_eq!(tcp(head, b""), Verdict::Is(A::Http), "{shown}");
        assert_eq!(tcp(b"", head), Verdict::Is(A::Http), "{shown}");
    }
}

/// 200,000 openings of random bytes: hardly one has a label, and that by two bytes that fit.
#[test]
fn random_bytes_are_nothing() {
    let mut random = Random::new();
    let mut labels = [0; 2];
    for _ in 0..200_000 {
        let mut bytes = [[0; 64]; 3];
        random.fill(bytes.as_flattened_mut());
        let [client, server, _] = &bytes;
        labels[0] += usize::from(matches!(tcp(client, server), Verdict::Is(_)));
        let mut memory = UdpMemory::default();
        for datagram in &bytes {
            let verdict = classify_udp(datagram, true, 4000, 5000, &mut memory);
            labels[1] += usize::from(matches!(verdict, Verdict::Is(_)));
        }
    }
    assert!(labels[0] <= 2, "{labels:?}");
    assert!(labels[1] <= 20, "{labels:?}");
}
