//! Numbers by their distance from the one before (`DELTA_BINARY_PACKED`).

use super::bits::{pack, push_varint, push_zigzag, width};

/// Numbers of a block, which has one smallest distance.
const BLOCK: usize = 128;

/// Numbers of a part of a block, which has one width.
const PART: usize = 32;

/// Appends numbers.
pub(super) fn push_deltas(numbers: &[i64], out: &mut Vec<u8>) {
    for count in [BLOCK, BLOCK / PART, numbers.len()] {
        push_varint(count as u64, out);
    }
    let Some((first, others)) = numbers.split_first() else {
        return push_zigzag(0, out);
    };
    push_zigzag(*first, out);
    let mut before = *first;
    for block in others.chunks(BLOCK) {
        // Distances modulo 2^64, as readers add them up.
        let mut deltas = [0_i64; BLOCK];
        for (delta, number) in deltas.iter_mut().zip(block) {
            *delta = number.wrapping_sub(before);
            before = *number;
        }
        let deltas = deltas.get(..block.len()).unwrap_or_default();
        let least = deltas.iter().copied().min().unwrap_or(0);
        push_zigzag(least, out);
        push_parts(deltas, least, out);
    }
}

/// Appends what distances are above the least one: the width of every part, then the parts that have
/// numbers, the last one filled with zeros.
fn push_parts(deltas: &[i64], least: i64, out: &mut Vec<u8>) {
    let above = |delta: &i64| delta.wrapping_sub(least).cast_unsigned();
    let parts = deltas.chunks(PART);
    let widths = out.len();
    out.resize(widths + BLOCK / PART, 0);
    for (at, part) in parts.enumerate() {
        let bits = width(part.iter().map(above).fold(0, |all, number| all | number));
        if let Some(byte) = out.get_mut(widths + at) {
            *byte = u8::try_from(bits).unwrap_or(64);
        }
        let filling = std::iter::repeat_n(0, PART - part.len());
        pack(part.iter().map(above).chain(filling), bits, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_format() {
        // Encodings.md: 1 to 5, and 7 5 3 1 2 3 4 5 with the widths of its mini-blocks.
        let mut out = Vec::new();
        push_deltas(&[1, 2, 3, 4, 5], &mut out);
        assert_eq!(out, [0x80, 1, 4, 5, 2, 2, 0, 0, 0, 0]);
        out.clear();
        push_deltas(&[7, 5, 3, 1, 2, 3, 4, 5], &mut out);
        assert_eq!(
            out,
            [
                0x80,
                1,
                4,
                8,
                14,
                3,
                2,
                0,
                0,
                0,
                0b1100_0000,
                0b0011_1111,
                0,
                0,
                0,
                0,
                0,
                0
            ]
        );
        out.clear();
        push_deltas(&[], &mut out);
        assert_eq!(out, [0x80, 1, 4, 0, 0]);
    }
}
