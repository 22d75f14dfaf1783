use linkweir_engine::{Frame, Splitter, TransactionSplitter};
use linkweir_wire::{LinkType, Timestamp};
use proptest::prelude::*;

use super::*;

/// What the kernel says of a packet besides its bytes.
#[derive(Debug, Clone, Copy)]
struct Context {
    protocol: u32,
    packet_type: u32,
    hardware_type: u32,
}

/// The classic packet filter as the kernel runs it: a load beyond the end ends the program with 0.
fn run(program: &[Instruction], packet: &[u8], context: Context) -> u32 {
    let (mut a, mut x, mut slots, mut at) = (0_u32, 0_u32, [0_u32; 16], 0_usize);
    let mut steps = 0;
    loop {
        steps += 1;
        assert!(steps <= program.len(), "it only goes forward");
        let one = program[at];
        at += 1;
        let k = one.operand;
        let operand = if one.code & 0x08 == 0 { k } else { x };
        match one.code & 0x07 {
            0 => match one.code & 0xe0 {
                0x00 => a = k,
                0x20 if k == PROTOCOL => a = context.protocol,
                0x20 if k == PACKET_TYPE => a = context.packet_type,
                0x20 if k == HARDWARE_TYPE => a = context.hardware_type,
                0x20 | 0x40 => {
                    let offset = if one.code & 0xe0 == 0x20 {
                        k
                    } else {
                        x.wrapping_add(k)
                    };
                    let len = [4, 2, 1][usize::from(one.code >> 3 & 3)];
                    let Some(bytes) = packet.get(offset as usize..).and_then(|r| r.get(..len))
                    else {
                        return 0;
                    };
                    a = bytes
                        .iter()
                        .fold(0, |sum, byte| sum << 8 | u32::from(*byte));
                }
                0x60 => a = slots[k as usize],
                0x80 => a = u32::try_from(packet.len()).unwrap(),
                other => panic!("load {other:#x}"),
            },
            1 => match one.code & 0xe0 {
                0x00 => x = k,
                0x60 => x = slots[k as usize],
                other => panic!("load of X {other:#x}"),
            },
            2 => slots[k as usize] = a,
            3 => slots[k as usize] = x,
            4 => {
                a = match one.code & 0xf0 {
                    0x00 => a.wrapping_add(operand),
                    0x20 => a.wrapping_mul(operand),
                    0x40 => a | operand,
                    0x50 => a & operand,
                    0x60 => a << operand,
                    0x70 => a >> operand,
                    0xa0 => a ^ operand,
                    other => panic!("operation {other:#x}"),
                }
            }
            5 => {
                let holds = match one.code & 0xf0 {
                    0x00 => {
                        at += k as usize;
                        continue;
                    }
                    0x10 => a == operand,
                    0x20 => a > operand,
                    0x30 => a >= operand,
                    0x40 => a & operand != 0,
                    other => panic!("condition {other:#x}"),
                };
                at += usize::from(if holds { one.jump_true } else { one.jump_false });
            }
            6 => return if one.code == 0x16 { a } else { k },
            _ if one.code == 0x07 => x = a,
            _ => a = x,
        }
    }
}

/// A frame and what is right of it: the hash of the Rust code, and what every program says.
fn agree(frame: &[u8]) -> Result<u32, TestCaseError> {
    let wire_len = u32::try_from(frame.len()).unwrap();
    let of = |link, bytes| {
        TransactionSplitter.hash(&Frame {
            timestamp: Timestamp::ZERO,
            bytes,
            wire_len,
            link,
            interface: 0,
        })
    };
    let expected = of(LinkType::ETHERNET, frame);
    let field = |at: usize| u32::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
    let outgoing = Context {
        protocol: 0xffff,
        packet_type: PACKET_OUTGOING,
        hardware_type: ARPHRD_ETHER,
    };
    let incoming = Context {
        protocol: field(12),
        packet_type: 0,
        hardware_type: ARPHRD_LOOPBACK,
    };
    for shape in [Shape::Ethernet, Shape::Any] {
        let program = transaction_program(shape);
        prop_assert_eq!(run(&program, frame, outgoing), expected);
        prop_assert_eq!(run(&program, &frame[14..], incoming), expected);
        if TAG_TYPES.contains(&field(12)) {
            // The tag taken out by the card.
            let inner = Context {
                protocol: field(16),
                ..incoming
            };
            prop_assert_eq!(run(&program, &frame[18..], inner), expected);
        }
    }
    if matches!(field(12), 0x0800 | 0x86dd) && frame.len() > 14 {
        let is_right = frame[14] >> 4 == if field(12) == 0x0800 { 4 } else { 6 };
        let expected = if is_right {
            expected
        } else {
            of(LinkType::RAW, &frame[14..])
        };
        let program = transaction_program(Shape::Ip);
        prop_assert_eq!(run(&program, &frame[14..], incoming), expected);
    }
    Ok(expected)
}

fn tags() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec((prop::sample::select(&TAG_TYPES[..]), any::<u16>()), 0..=2).prop_map(
        |tags| {
            tags.into_iter()
                .flat_map(|(kind, id)| {
                    let [a, b] = u16::try_from(kind).unwrap().to_be_bytes();
                    let [c, d] = id.to_be_bytes();
                    [a, b, c, d]
                })
                .collect()
        },
    )
}

/// A port that no tunnel has.
fn port() -> impl Strategy<Value = u16> {
    prop_oneof![Just(80), Just(443), 10_000_u16..]
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        Just(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()),
        Just(b"HTT".to_vec()),
        prop::collection::vec(any::<u8>(), 0..12),
    ]
}

fn transport() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let tcp = (port(), port(), any::<[u32; 2]>(), 0_u8..16, payload()).prop_map(
        |(src, dst, numbers, words, payload)| {
            let mut bytes = [src.to_be_bytes(), dst.to_be_bytes()].concat();
            bytes.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
            // Mostly headers that are right.
            let words = if words < 3 { words } else { words.max(5) };
            bytes.extend([words << 4, 0x18, 0, 0, 0, 0, 0, 0]);
            bytes.extend(vec![1; usize::from(words.saturating_sub(5)) * 4]);
            bytes.extend(payload);
            (6, bytes)
        },
    );
    let udp = (port(), port(), payload(), prop::option::of(0_u16..12)).prop_map(
        |(src, dst, payload, len)| {
            let len = len.unwrap_or_else(|| 8 + u16::try_from(payload.len()).unwrap());
            let fields = [src, dst, len, 0].map(u16::to_be_bytes);
            (17, [fields.concat(), payload].concat())
        },
    );
    let other = (prop::sample::select(&[1_u8, 2, 50, 58, 132][..]), payload());
    prop_oneof![6 => tcp, 2 => udp, 1 => other]
}

fn ipv4() -> impl Strategy<Value = Vec<u8>> {
    (
        transport(),
        any::<[u8; 8]>(),
        5_u8..8,
        prop_oneof![6 => Just(0_u16), 1 => Just(0x4000), 1 => Just(0x2000), 1 => any::<u16>()],
        prop_oneof![8 => Just(None), 1 => (0_u16..80).prop_map(Some)],
    )
        .prop_map(|((protocol, body), addresses, words, fragment, total)| {
            let len = usize::from(words) * 4 + body.len();
            let total = total.unwrap_or_else(|| u16::try_from(len).unwrap());
            let mut bytes = vec![0x40 | words, 0];
            bytes.extend(total.to_be_bytes());
            bytes.extend([0, 1]);
            bytes.extend(fragment.to_be_bytes());
            bytes.extend([64, protocol, 0, 0]);
            bytes.extend(addresses);
            bytes.extend(vec![1; usize::from(words - 5) * 4]);
            bytes.extend(body);
            bytes
        })
}

fn ipv6() -> impl Strategy<Value = Vec<u8>> {
    let header = (
        prop::sample::select(&[0_u8, 43, 44, 60, 135][..]),
        0_u8..3,
        prop_oneof![4 => Just(0_u16), 1 => Just(1), 1 => any::<u16>()],
    );
    (
        transport(),
        any::<[u8; 32]>(),
        prop::collection::vec(header, 0..=4),
        prop_oneof![8 => Just(None), 1 => (0_u16..80).prop_map(Some)],
    )
        .prop_map(|((protocol, body), addresses, headers, len)| {
            let mut kinds: Vec<u8> = headers.iter().map(|(kind, ..)| *kind).collect();
            kinds.push(protocol);
            let mut rest = Vec::new();
            for (header, next) in headers.iter().zip(&kinds[1..]) {
                let (kind, units, fragment) = *header;
                let units = if kind == 44 { 0 } else { units };
                let [a, b] = fragment.to_be_bytes();
                rest.extend([*next, units, a, b, 0, 0, 0, 0]);
                rest.extend(vec![0; usize::from(units) * 8]);
            }
            rest.extend(body);
            let len = len.unwrap_or_else(|| u16::try_from(rest.len()).unwrap());
            let mut bytes = vec![0x60, 0, 0, 0];
            bytes.extend(len.to_be_bytes());
            bytes.extend([kinds[0], 64]);
            bytes.extend(addresses);
            bytes.extend(rest);
            bytes
        })
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    let ip = prop_oneof![
        3 => ipv4().prop_map(|ip| ([0x08, 0x00], ip)),
        2 => ipv6().prop_map(|ip| ([0x86, 0xdd], ip)),
        1 => payload().prop_map(|bytes| ([0x08, 0x06], bytes)),
    ];
    (tags(), ip, 0_usize..20).prop_map(|(tags, (kind, ip), padding)| {
        let mut bytes = vec![2; 12];
        bytes.extend(tags);
        bytes.extend(kind);
        bytes.extend(ip);
        bytes.extend(vec![b'A'; padding]);
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn the_program_computes_the_hash_of_the_splitter(frame in frame()) {
        agree(&frame)?;
    }

    #[test]
    fn cut_frames_are_no_exception(frame in frame(), cut in 18_usize..120) {
        agree(&frame[..cut.min(frame.len())])?;
    }
}

#[test]
fn it_is_a_program_that_the_kernel_takes() {
    for shape in [Shape::Ethernet, Shape::Ip, Shape::Any] {
        let program = transaction_program(shape);
        assert!(
            program.len() < linkweir_sys::cbpf::MAX_INSTRUCTIONS,
            "{}",
            program.len()
        );
        for (at, one) in program.iter().enumerate() {
            if one.code & 7 == 5 {
                let far = if one.code & 0xf0 == 0 {
                    one.operand as usize
                } else {
                    usize::from(one.jump_true.max(one.jump_false))
                };
                assert!(at + 1 + far < program.len());
            }
        }
    }
}
