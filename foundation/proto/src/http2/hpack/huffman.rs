//! The Huffman code of string literals (RFC 7541 sec. 5.2, appendix B).
//!
//! The code is canonical: codes of one length follow one another in the order of the bytes, and those of the next
//! length continue behind the last. So the lengths say everything.

/// The bytes by the length of their code, shortest first; ranges are in order.
const BY_LENGTH: &[(u8, &[(u8, u8)])] = &[
    (
        5,
        &[
            (48, 50),
            (97, 97),
            (99, 99),
            (101, 101),
            (105, 105),
            (111, 111),
            (115, 116),
        ],
    ),
    (
        6,
        &[
            (32, 32),
            (37, 37),
            (45, 47),
            (51, 57),
            (61, 61),
            (65, 65),
            (95, 95),
            (98, 98),
            (100, 100),
            (102, 104),
            (108, 110),
            (112, 112),
            (114, 114),
            (117, 117),
        ],
    ),
    (
        7,
        &[
            (58, 58),
            (66, 87),
            (89, 89),
            (106, 107),
            (113, 113),
            (118, 122),
        ],
    ),
    (
        8,
        &[(38, 38), (42, 42), (44, 44), (59, 59), (88, 88), (90, 90)],
    ),
    (10, &[(33, 34), (40, 41), (63, 63)]),
    (11, &[(39, 39), (43, 43), (124, 124)]),
    (12, &[(35, 35), (62, 62)]),
    (
        13,
        &[(0, 0), (36, 36), (64, 64), (91, 91), (93, 93), (126, 126)],
    ),
    (14, &[(94, 94), (125, 125)]),
    (15, &[(60, 60), (96, 96), (123, 123)]),
    (19, &[(92, 92), (195, 195), (208, 208)]),
    (
        20,
        &[
            (128, 128),
            (130, 131),
            (162, 162),
            (184, 184),
            (194, 194),
            (224, 224),
            (226, 226),
        ],
    ),
    (
        21,
        &[
            (153, 153),
            (161, 161),
            (167, 167),
            (172, 172),
            (176, 177),
            (179, 179),
            (209, 209),
            (216, 217),
            (227, 227),
            (229, 230),
        ],
    ),
    (
        22,
        &[
            (129, 129),
            (132, 134),
            (136, 136),
            (146, 146),
            (154, 154),
            (156, 156),
            (160, 160),
            (163, 164),
            (169, 170),
            (173, 173),
            (178, 178),
            (181, 181),
            (185, 187),
            (189, 190),
            (196, 196),
            (198, 198),
            (228, 228),
            (232, 233),
        ],
    ),
    (
        23,
        &[
            (1, 1),
            (135, 135),
            (137, 141),
            (143, 143),
            (147, 147),
            (149, 152),
            (155, 155),
            (157, 158),
            (165, 166),
            (168, 168),
            (174, 175),
            (180, 180),
            (182, 183),
            (188, 188),
            (191, 191),
            (197, 197),
            (231, 231),
            (239, 239),
        ],
    ),
    (
        24,
        &[
            (9, 9),
            (142, 142),
            (144, 145),
            (148, 148),
            (159, 159),
            (171, 171),
            (206, 206),
            (215, 215),
            (225, 225),
            (236, 237),
        ],
    ),
    (25, &[(199, 199), (207, 207), (234, 235)]),
    (
        26,
        &[
            (192, 193),
            (200, 202),
            (205, 205),
            (210, 210),
            (213, 213),
            (218, 219),
            (238, 238),
            (240, 240),
            (242, 243),
            (255, 255),
        ],
    ),
    (
        27,
        &[
            (203, 204),
            (211, 212),
            (214, 214),
            (221, 223),
            (241, 241),
            (244, 248),
            (250, 254),
        ],
    ),
    (
        28,
        &[
            (2, 8),
            (11, 12),
            (14, 21),
            (23, 31),
            (127, 127),
            (220, 220),
            (249, 249),
        ],
    ),
    // And the end of the string, which is never sent as a whole.
    (30, &[(10, 10), (13, 13), (22, 22)]),
];

/// The longest code.
const LONGEST: usize = 30;

/// Codes of one length.
#[derive(Debug, Clone, Copy)]
struct Length {
    /// The first of them.
    first: u32,
    /// How many there are.
    count: u32,
    /// Where their bytes begin in the order of codes.
    at: usize,
}

#[derive(Debug)]
struct Codes {
    /// By the next eight bits: the byte and the length of its code; length 0 where the code is longer.
    short: [(u8, u8); 256],
    /// By length.
    lengths: [Length; LONGEST + 1],
    /// The bytes in the order of their codes.
    bytes: [u8; 256],
}

static CODES: Codes = CODED;
const CODED: Codes = codes();

#[expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "the compiler runs it: what does not fit is not compiled"
)]
const fn codes() -> Codes {
    let mut all = Codes {
        short: [(0, 0); 256],
        lengths: [Length {
            first: 0,
            count: 0,
            at: 0,
        }; LONGEST + 1],
        bytes: [0; 256],
    };
    let (mut code, mut at, mut length, mut group) = (0_u32, 0, 0, 0);
    while group < BY_LENGTH.len() {
        let (bits, ranges) = BY_LENGTH[group];
        code <<= bits - length;
        length = bits;
        all.lengths[bits as usize].first = code;
        all.lengths[bits as usize].at = at;
        let mut range = 0;
        while range < ranges.len() {
            let (mut byte, last) = (ranges[range].0 as u16, ranges[range].1 as u16);
            while byte <= last {
                all.bytes[at] = byte as u8;
                if bits <= 8 {
                    let spare = 8 - bits;
                    let mut filler = 0;
                    while filler < 1 << spare {
                        all.short[((code << spare) | filler) as usize] = (byte as u8, bits);
                        filler += 1;
                    }
                }
                all.lengths[bits as usize].count += 1;
                code += 1;
                at += 1;
                byte += 1;
            }
            range += 1;
        }
        group += 1;
    }
    all
}

/// By the next twelve bits: the bytes of up to two codes of at most eight bits, the length of these codes together, and
/// how many they are; none where the first is longer.
static PAIRS: [[u8; 4]; 1 << PAIR_BITS] = pairs();
const PAIR_BITS: u32 = 12;

#[expect(
    clippy::indexing_slicing,
    reason = "the compiler runs it: what does not fit is not compiled"
)]
const fn pairs() -> [[u8; 4]; 1 << PAIR_BITS] {
    let mut all = [[0; 4]; 1 << PAIR_BITS];
    let mut bits = 0;
    while bits < all.len() {
        let (one, length) = CODED.short[bits >> 4];
        if length > 0 {
            // What is behind the first, as if zeros followed.
            let (two, behind) = CODED.short[(bits << length >> 4) & 0xFF];
            let has_two = behind > 0 && (length + behind) as u32 <= PAIR_BITS;
            all[bits] = match has_two {
                true => [one, two, length + behind, 2],
                false => [one, 0, length, 1],
            };
        }
        bits += 1;
    }
    all
}

/// Decodes `coded` into `into`, instead of what is there.
///
/// Cost: one look-up for two bytes whose codes have twelve bits together, as most in use have.
///
/// `None` where it is not of the code: the end of the string is in it, or it ends in something that is not the
/// beginning of that (RFC 7541 sec. 5.2).
pub(super) fn decode(coded: &[u8], into: &mut Vec<u8>) -> Option<()> {
    // The next bits, highest first; `held` of them are from the string.
    let (mut bits, mut held) = (0_u64, 0_u32);
    let (mut rest, mut at) = (coded, 0);
    // The shortest code has five bits; two bytes are written at a time.
    into.resize(coded.len() * 8 / 5 + 2, 0);
    loop {
        if held <= 32
            && let Some((four, behind)) = rest.split_first_chunk()
        {
            bits |= u64::from(u32::from_be_bytes(*four)) << (32 - held);
            held += 32;
            rest = behind;
        }
        while held <= 56
            && rest.len() < 4
            && let Some((byte, behind)) = rest.split_first()
        {
            bits |= u64::from(*byte) << (56 - held);
            held += 8;
            rest = behind;
        }
        let before = held;
        while held >= PAIR_BITS
            && let Some([one, two, length, count @ 1..=2]) =
                PAIRS.get((bits >> (64 - PAIR_BITS)) as usize)
        {
            *into.get_mut(at..)?.first_chunk_mut()? = [*one, *two];
            at += usize::from(*count);
            bits <<= length;
            held -= u32::from(*length);
        }
        if held < before && !rest.is_empty() {
            continue;
        }
        if held == 0 {
            break;
        }
        let found = match CODES.short.get((bits >> 56) as usize) {
            Some((byte, length @ 1..)) => Some((*byte, u32::from(*length))),
            _ => long(bits),
        };
        match found {
            Some((byte, length)) if length <= held => {
                *into.get_mut(at)? = byte;
                at += 1;
                bits <<= length;
                held -= length;
            }
            // Up to seven ones fill the last byte.
            _ if held < 8 && bits.leading_ones() >= held => break,
            _ => return None,
        }
    }
    into.truncate(at);
    Some(())
}

/// A code of more than eight bits: its byte and length.
#[cold]
fn long(bits: u64) -> Option<(u8, u32)> {
    (9..=LONGEST).find_map(|length| {
        let codes = CODES.lengths.get(length)?;
        let code = u32::try_from(bits >> (64 - length)).ok()?;
        let place = code.checked_sub(codes.first)?;
        if place >= codes.count {
            return None;
        }
        let byte = CODES.bytes.get(codes.at + place as usize)?;
        Some((*byte, u32::try_from(length).ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(hex: &str) -> Option<String> {
        let digits: Vec<char> = hex.chars().collect();
        let bytes: Vec<u8> = digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap())
            .collect();
        let mut text = Vec::new();
        decode(&bytes, &mut text).map(|()| String::from_utf8(text).unwrap())
    }

    #[test]
    fn the_examples_of_the_rfc() {
        for (hex, text) in [
            ("f1e3c2e5f23a6ba0ab90f4ff", "www.example.com"),
            ("a8eb10649cbf", "no-cache"),
            ("25a849e95ba97d7f", "custom-key"),
            ("25a849e95bb8e8b4bf", "custom-value"),
            ("6402", "302"),
            (
                "d07abe941054d444a8200595040b8166e082a62d1bff",
                "Mon, 21 Oct 2013 20:13:21 GMT",
            ),
            ("", ""),
        ] {
            assert_eq!(decoded(hex).as_deref(), Some(text));
        }
    }

    #[test]
    fn every_code_is_its_byte() {
        // The lengths use up all codes but one: the end of the string.
        let used: u64 = (5..=LONGEST)
            .map(|length| u64::from(CODES.lengths[length].count) << (LONGEST - length))
            .sum();
        assert_eq!(used, (1 << LONGEST) - 1);
        for (length, codes) in CODES.lengths.iter().enumerate() {
            for place in 0..codes.count {
                // Ones behind it, up to a whole byte.
                let whole = length.next_multiple_of(8);
                let code = u64::from(codes.first + place) << (64 - length);
                let bits = code | (u64::MAX >> length);
                let mut text = Vec::new();
                decode(&bits.to_be_bytes()[..whole / 8], &mut text).unwrap();
                assert_eq!(text, [CODES.bytes[codes.at + place as usize]], "{length}");
            }
        }
    }

    #[test]
    fn what_does_not_end_as_it_must_is_refused() {
        // A whole byte of padding; padding of zeros; the end of the string.
        for hex in ["6402ff", "00", "ffffffff", "ffffffffff"] {
            assert_eq!(decoded(hex), None, "{hex}");
        }
    }
}
