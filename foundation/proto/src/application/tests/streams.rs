//! Media and what opens the way for it, and what repeats itself.

use super::*;

#[test]
fn rtsp_has_more_methods_than_http() {
    let methods = "OPTIONS DESCRIBE SETUP PLAY PLAY_NOTIFY PAUSE ANNOUNCE RECORD REDIRECT TEARDOWN SET_PARAMETER GET_PARAMETER";
    for method in methods.split(' ') {
        for (target, version) in [("rtsp://example.test/a", 1), ("*", 1), ("*", 2)] {
            let head = format!("{method} {target} RTSP/{version}.0\r\nCSeq: 3\r\n\r\n");
            let head = head.as_bytes();
            assert_eq!(tcp(head, b""), Verdict::Is(A::Rtsp), "{method}");
            // A server asks too.
            assert_eq!(tcp(b"", head), Verdict::Is(A::Rtsp), "{method}");
            for end in 1..method.len() {
                assert_eq!(tcp(&head[..end], b""), Verdict::More, "{method} {end}");
            }
        }
    }
}

#[test]
fn rtp_that_is_captured_twice_is_rtp() {
    let mut memory = UdpMemory::default();
    let mut say = |sequence, source, client| {
        let packet = rtp_packet(sequence, source, 0);
        classify_udp(&packet, client, 20_000, 30_000, &mut memory)
    };
    for sequence in 10..12 {
        for (source, client) in [
            (0xCAFE, true),
            (0xCAFE, true),
            (0xBEEF, false),
            (0xBEEF, false),
        ] {
            assert_eq!(say(sequence, source, client), Verdict::More);
        }
    }
    assert_eq!(say(12, 0xCAFE, true), Verdict::Is(A::Rtp));

    // The same packet again and again is no stream.
    let mut memory = UdpMemory::default();
    let packet = rtp_packet(7, 0xCAFE, 0);
    for _ in 0..20 {
        let verdict = classify_udp(&packet, true, 20_000, 30_000, &mut memory);
        assert_ne!(verdict, Verdict::Is(A::Rtp));
    }
}

#[test]
fn odd_datagrams_do_not_decide_a_flow() {
    // Before, and between: a keep-alive, a word, nothing.
    let odd: [&[u8]; 3] = [b"\0", b"hello", b""];
    for datagram in odd {
        for at in 0..6 {
            let mut memory = UdpMemory::default();
            let mut verdict = Verdict::More;
            for number in 0..6 {
                if number == at {
                    verdict = classify_udp(datagram, true, 20_000, 30_000, &mut memory);
                    assert_eq!(verdict, Verdict::More, "{at}");
                }
                let is_client = number % 2 == 0;
                let packet = rtp_packet(number / 2 + 1, 0xCAFE + u32::from(!is_client), 0);
                verdict = classify_udp(&packet, is_client, 20_000, 30_000, &mut memory);
                if verdict != Verdict::More {
                    break;
                }
            }
            assert_eq!(verdict, Verdict::Is(A::Rtp), "{at}");
        }
    }
}

/// As calls of Discord open: an address asked and answered, keep-alives, reports that are encrypted.
#[test]
fn media_may_come_behind_words_of_its_own() {
    let discovery = |kind| [&[0, kind, 0, 70, 0, 0, 0xAC, 0xE3][..], &[0; 66]].concat();
    let alive = vec![0x13, 0x37, 0xCA, 0xFE, 1, 0, 0, 0];
    let report = [&[0x80, 0xC8, 0, 6, 0, 0, 0xAC, 0xE3][..], &[0xDB; 52]].concat();
    let media = (1..=3).map(|sequence| rtp_packet(sequence, 0xA139, 120));
    let opening = [
        discovery(1),
        discovery(2),
        alive.clone(),
        alive,
        report.clone(),
        report,
    ];
    let mut memory = UdpMemory::default();
    let verdicts: Vec<Verdict> = opening
        .into_iter()
        .chain(media)
        .map(|datagram| classify_udp(&datagram, false, 53_459, 50_004, &mut memory))
        .collect();
    assert_eq!(verdicts[..8], [Verdict::More; 8]);
    assert_eq!(verdicts[8], Verdict::Is(A::Rtp));
}

#[test]
fn stun_and_rtp_go_over_tcp() {
    let stun = [
        &[0, 1, 0, 8, 0x21, 0x12, 0xA4, 0x42][..],
        &[5; 12],
        &[0x80, 0x22, 0, 4, 1, 2, 3, 4],
    ]
    .concat();
    let answer = [&[1][..], &stun[1..]].concat();
    let framed = [&[0, 28][..], &stun].concat();
    for stream in [&stun, &answer, &framed] {
        let shown = stream.escape_ascii();
        assert_eq!(tcp(stream, b""), Verdict::Is(A::Stun), "{shown}");
        assert_eq!(tcp(b"", stream), Verdict::Is(A::Stun), "{shown}");
    }
    let packet = |sequence, source| {
        let packet = rtp_packet(sequence, source, 96);
        [
            &u16::try_from(packet.len()).unwrap().to_be_bytes()[..],
            &packet,
        ]
        .concat()
    };
    let one = packet(65_535, 0xCAFE);
    assert_eq!(tcp(&one, b""), Verdict::More);
    let both = [one.clone(), packet(0, 0xCAFE)].concat();
    assert_eq!(tcp(&both, b""), Verdict::Is(A::Rtp));
    // The length, and the header of the second.
    assert_eq!(tcp(&both[..one.len() + 15], b""), Verdict::Is(A::Rtp));
    let strange = [one, packet(9, 0xBEEF)].concat();
    assert_ne!(tcp(&strange, b""), Verdict::Is(A::Rtp));
}

/// A flow of datagrams, each by a letter: what is said at the last of them.
fn behind_stun(letters: &str) -> Verdict {
    let mut memory = UdpMemory::default();
    let mut sequence = 7;
    let mut verdict = Verdict::More;
    for letter in letters.chars() {
        let datagram = match letter {
            'S' => [&[0, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42][..], &[5; 12]].concat(),
            // A handshake, and data under its keys.
            'D' => [&[22, 0xFE, 0xFD][..], &[0; 9], &[20, 1], &[0; 19]].concat(),
            'd' => [&[23, 0xFE, 0xFD, 0, 1][..], &[0; 7], &[9], &[0xA7; 9]].concat(),
            // An acknowledgement of DTLS 1.3.
            'K' => [&[26, 0xFE, 0xFD][..], &[0; 9], &[2, 0, 0]].concat(),
            'R' => {
                sequence += 1;
                rtp_packet(sequence, 0xCAFE, 111)
            }
            'C' => [
                &[0x80, 201, 0, 1, 1, 2, 3, 4][..],
                &[0x81, 202, 0, 2, 1, 2, 3, 4, 1, 0, 0, 0],
            ]
            .concat(),
            // ZRTP, data of TURN, a short header of DTLS 1.3, and what no rule has a place for.
            'Z' => [&[0x10, 0, 0, 1][..], b"ZRTP", &[7; 40]].concat(),
            'T' => [&[0x40, 0, 0, 8][..], &[3; 8]].concat(),
            'u' => vec![0x2E; 40],
            _ => b"zzzzzzzz".to_vec(),
        };
        assert!(matches!(verdict, Verdict::More | Verdict::Likely(_)));
        verdict = classify_udp(&datagram, true, 20_000, 30_000, &mut memory);
    }
    verdict
}

/// RFC 7983: STUN, DTLS, RTP and RTCP share a flow; it is all that was seen of them.
#[test]
fn what_follows_stun_is_added() {
    let so_far = [
        ("S", A::Stun),
        ("oS", A::Stun),
        ("SSoZTuSoooooooooooooooo", A::Stun),
        ("SRR", A::Stun),
        ("SD", A::StunDtls),
        ("SSSSSSSSSSSSSSSSSSSSD", A::StunDtls),
        ("SK", A::StunDtls),
        ("SDdSddd", A::StunDtls),
        ("SDRR", A::StunDtls),
        ("SC", A::StunRtcp),
        ("SCRR", A::StunRtcp),
        ("SDC", A::StunDtlsRtcp),
        ("SCD", A::StunDtlsRtcp),
    ];
    for (letters, application) in so_far {
        let verdict = behind_stun(letters);
        assert_eq!(verdict, Verdict::Likely(application), "{letters}");
    }
    let all = [
        ("SRRR", A::StunRtp),
        ("SRSRCSR", A::StunRtp),
        ("SCCCCCCRRR", A::StunRtp),
        ("SDRRR", A::StunDtlsRtp),
        ("SDDCCoRRSR", A::StunDtlsRtp),
    ];
    for (letters, application) in all {
        assert_eq!(behind_stun(letters), Verdict::Is(application), "{letters}");
    }
    // What does not begin with it is what it was.
    assert_eq!(behind_stun("D"), Verdict::Is(A::Dtls));
    assert_eq!(behind_stun("RRR"), Verdict::Is(A::Rtp));
    // It is not looked at for ever.
    assert_eq!(behind_stun(&"S".repeat(254)), Verdict::Likely(A::Stun));
    assert_eq!(behind_stun(&"S".repeat(255)), Verdict::Is(A::Stun));
}

#[test]
fn answers_of_the_hash_table_may_repeat_the_question() {
    for question in ["4:ping", "9:find_node", "13:announce_peer"] {
        let answer = format!("d1:q{question}1:rd2:id20:mnopqrstuvwxyz123456e1:t2:aa1:y1:re");
        assert_eq!(
            udp(answer.as_bytes()),
            Verdict::Is(A::BitTorrent),
            "{question}"
        );
    }
    for other in [
        "d1:q4:ping1:t2:aae",
        "d1:q99:ping1:rd2:id20:abc",
        "d1:q:1:rd2:id20:abc",
    ] {
        assert_ne!(udp(other.as_bytes()), Verdict::Is(A::BitTorrent), "{other}");
    }
}
