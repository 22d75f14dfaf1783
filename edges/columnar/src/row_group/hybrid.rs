//! Keys of a dictionary, in runs of equal ones and of different ones ("RLE/bit-packing hybrid").

use super::bits::{pack, push_varint};

/// Keys are packed by so many; a run of equal ones is worth its head from here on.
const PACKED: usize = 8;

/// Appends keys below 2^`width`.
pub(super) fn push_keys(keys: &[u32], width: u32, out: &mut Vec<u8>) {
    // `rest` begins with `different` keys that are to be packed, a multiple of 8.
    let (mut rest, mut different) = (keys, 0);
    loop {
        let (packed, next) = rest.split_at_checked(different).unwrap_or((rest, &[]));
        let equal = match next {
            [first, others @ ..] => 1 + others.iter().take_while(|key| *key == first).count(),
            [] => 0,
        };
        if equal < PACKED && next.len() > PACKED {
            different += PACKED;
            continue;
        }
        if equal < PACKED {
            // The end: the last eight are filled with zeros, which readers know by the number of values.
            push_packed(rest, width, out);
            return;
        }
        push_packed(packed, width, out);
        if let [first, ..] = next {
            push_varint((equal as u64) << 1, out);
            let bytes = width.div_ceil(8) as usize;
            out.extend(first.to_le_bytes().into_iter().take(bytes));
        }
        rest = next.get(equal..).unwrap_or_default();
        different = 0;
    }
}

fn push_packed(keys: &[u32], width: u32, out: &mut Vec<u8>) {
    if keys.is_empty() {
        return;
    }
    let groups = keys.len().div_ceil(PACKED);
    push_varint((groups as u64) << 1 | 1, out);
    let filling = groups * PACKED - keys.len();
    let keys = keys.iter().map(|key| u64::from(*key));
    pack(keys.chain(std::iter::repeat_n(0, filling)), width, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads as the format says.
    fn read(bytes: &[u8], width: u32, count: usize) -> Vec<u32> {
        let (mut at, mut keys) = (0, Vec::new());
        while keys.len() < count {
            let mut head = 0;
            for shift in (0..).step_by(7) {
                head |= u64::from(bytes[at] & 0x7f) << shift;
                at += 1;
                if bytes[at - 1] < 0x80 {
                    break;
                }
            }
            let length = usize::try_from(head >> 1).unwrap();
            let number = |from: usize, bits: usize| {
                (0..bits)
                    .map(|n| u32::from(bytes[(from + n) / 8] >> ((from + n) % 8) & 1) << n)
                    .sum::<u32>()
            };
            let width = width as usize;
            if head & 1 == 1 {
                keys.extend((0..length * 8).map(|n| number(at * 8 + n * width, width)));
                at += length * width;
            } else {
                keys.extend(std::iter::repeat_n(number(at * 8, width), length));
                at += width.div_ceil(8);
            }
        }
        assert_eq!(at, bytes.len());
        assert!(keys.drain(count..).all(|filling| filling == 0));
        keys
    }

    #[test]
    fn keys_are_had_back_whatever_their_runs() {
        let mut seed = 1_u64;
        let mut chance = move |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % bound
        };
        for _ in 0..2000 {
            let width = u32::try_from(chance(33)).unwrap();
            let mut keys: Vec<u32> = Vec::new();
            for _ in 0..chance(12) {
                let key = u32::try_from(chance(1 << width)).unwrap();
                let longest = if chance(2) == 0 { 3 } else { 40 };
                keys.extend(std::iter::repeat_n(
                    key,
                    usize::try_from(chance(longest)).unwrap(),
                ));
            }
            let mut out = Vec::new();
            push_keys(&keys, width, &mut out);
            assert_eq!(read(&out, width, keys.len()), keys);
        }
        // One run: a head of two bytes and the key.
        let mut out = Vec::new();
        push_keys(&[5; 1000], 3, &mut out);
        assert_eq!(out, [0xd0, 0x0f, 5]);
    }
}
