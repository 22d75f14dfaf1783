//! Numbers in bytes, little-endian, and the checksum. Places outside read as zero and are not
//! written: layouts are checked once, when the file is opened.

/// The bytes from `at` on.
#[inline]
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let part = bytes.get(at..).and_then(|rest| rest.first_chunk::<N>());
    part.copied().unwrap_or([0; N])
}

#[inline]
fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    let part = bytes.get_mut(at..).and_then(|r| r.first_chunk_mut::<N>());
    if let Some(part) = part {
        *part = value;
    }
}

/// A number of 4 bytes.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

/// A number of 8 bytes.
#[inline]
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

/// A number of 16 bytes.
pub(super) fn u128_at(bytes: &[u8], at: usize) -> u128 {
    u128::from_le_bytes(array(bytes, at))
}

/// Writes a number of 4 bytes.
pub(super) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    put(bytes, at, value.to_le_bytes());
}

/// Writes a number of 8 bytes.
#[inline]
pub(super) fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    put(bytes, at, value.to_le_bytes());
}

/// Writes a number of 16 bytes.
pub(super) fn put_u128(bytes: &mut [u8], at: usize, value: u128) {
    put(bytes, at, value.to_le_bytes());
}

/// Bytes of a bucket.
pub(super) const BUCKET_BYTES: usize = 5;

/// The most values of a bucket: 12 million flows a second for a day.
const MAX_COUNT: u64 = (1 << (8 * BUCKET_BYTES)) - 1;

/// The values of a bucket.
#[inline]
pub(super) fn bucket(bytes: &[u8; BUCKET_BYTES]) -> u64 {
    let [a, b, c, d, e] = *bytes;
    u64::from_le_bytes([a, b, c, d, e, 0, 0, 0])
}

/// Adds to a bucket.
#[inline]
pub(super) fn add_to_bucket(bytes: &mut [u8; BUCKET_BYTES], more: u64) {
    let sum = bucket(bytes).saturating_add(more).min(MAX_COUNT);
    let [a, b, c, d, e, ..] = sum.to_le_bytes();
    *bytes = [a, b, c, d, e];
}

/// A checksum against torn writes: every bit of every word changes it. Not against forgery.
#[must_use]
pub fn checksum(seed: u64, bytes: &[u8]) -> u64 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    // Four lanes, so that the multiplications do not wait for each other.
    let mut lanes = [seed ^ ODD, seed.rotate_left(17), !seed, seed ^ (ODD >> 7)];
    let (blocks, rest) = bytes.as_chunks::<32>();
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = step(*lane, u64::from_le_bytes(*word));
        }
    }
    let (words, tail) = rest.as_chunks::<8>();
    let mut last = [0_u8; 8];
    for (to, from) in last.iter_mut().zip(tail) {
        *to = *from;
    }
    let mut sum = bytes.len() as u64;
    for word in words.iter().chain([&last]) {
        sum = step(sum, u64::from_le_bytes(*word));
    }
    for lane in lanes {
        sum = step(sum, lane);
    }
    sum ^ (sum >> 29)
}

#[inline]
const fn step(lane: u64, word: u64) -> u64 {
    (lane ^ word)
        .wrapping_mul(0xD6E8_FEB8_6659_FD93)
        .rotate_left(31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_saturate() {
        let mut one = [0; BUCKET_BYTES];
        add_to_bucket(&mut one, 300);
        add_to_bucket(&mut one, 1 << 33);
        assert_eq!(bucket(&one), 300 + (1 << 33));
        add_to_bucket(&mut one, u64::MAX);
        assert_eq!(bucket(&one), MAX_COUNT);
    }

    #[test]
    fn every_bit_changes_the_checksum() {
        let plain: Vec<u8> = (0..77).collect();
        let sum = checksum(1, &plain);
        assert_ne!(sum, checksum(2, &plain));
        assert_ne!(sum, checksum(1, plain.get(..76).unwrap()));
        for bit in 0..77 * 8 {
            let mut other = plain.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(sum, checksum(1, &other), "bit {bit}");
        }
    }

    #[test]
    fn places_outside_are_nothing() {
        let mut bytes = [1_u8; 8];
        assert_eq!(u64_at(&bytes, 1), 0);
        put_u64(&mut bytes, 1, 7);
        assert_eq!(bytes, [1; 8]);
    }
}
