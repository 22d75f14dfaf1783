//! Numbers of any width one behind the other, and numbers of as many bytes as they need.

/// Appends the lowest `width` bits (at most 64) of each number, the first number in the lowest bits of the
/// first byte; the last byte is filled with zeros. Numbers are below 2^`width`.
#[inline]
pub(super) fn pack(numbers: impl Iterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let (mut word, mut used) = (0_u64, 0_u32);
    for number in numbers {
        word |= number << used;
        used += width;
        if used >= u64::BITS {
            out.extend_from_slice(&word.to_le_bytes());
            used -= u64::BITS;
            // What did not fit: its highest `used` bits.
            word = if used == 0 {
                0
            } else {
                number >> (width - used)
            };
        }
    }
    let rest = used.div_ceil(8) as usize;
    out.extend(word.to_le_bytes().into_iter().take(rest));
}

/// Bits that the number needs: 0 for 0.
#[inline]
pub(super) const fn width(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

/// Appends a number in groups of seven bits, the lowest first (unsigned LEB128).
pub(super) fn push_varint(mut number: u64, out: &mut Vec<u8>) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            return out.push(low & 0x7f);
        }
        out.push(low | 0x80);
    }
}

/// Appends a signed number: those near zero, also negative ones, in few bytes.
pub(super) fn push_zigzag(number: i64, out: &mut Vec<u8>) {
    push_varint(((number << 1) ^ (number >> 63)).cast_unsigned(), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lie_one_behind_the_other_at_every_width() {
        for width in 0..=64_u32 {
            let mask = if width == 64 {
                u64::MAX
            } else {
                (1 << width) - 1
            };
            let numbers: Vec<u64> = (1..40_u64)
                .map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask)
                .collect();
            let mut packed = Vec::new();
            pack(numbers.iter().copied(), width, &mut packed);
            assert_eq!(packed.len(), (39 * width as usize).div_ceil(8));
            let bit = |at: usize| u64::from(packed[at / 8] >> (at % 8) & 1);
            for (at, number) in numbers.iter().enumerate() {
                let read = (0..width as usize)
                    .map(|n| bit(at * width as usize + n) << n)
                    .sum::<u64>();
                assert_eq!(read, *number, "width {width}, number {at}");
            }
        }
    }

    #[test]
    fn short_numbers_take_few_bytes() {
        let mut out = Vec::new();
        push_varint(300, &mut out);
        push_zigzag(-1, &mut out);
        push_zigzag(1, &mut out);
        push_zigzag(i64::MIN, &mut out);
        assert_eq!(
            out,
            [
                0xac, 2, 1, 2, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1
            ]
        );
        assert_eq!(
            (width(0), width(1), width(255), width(u64::MAX)),
            (0, 1, 8, 64)
        );
    }
}
