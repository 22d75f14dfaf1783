//! gzip, zlib and deflate of short bodies: literals in the fixed code alone, so that no byte stands as it is.
//!
//! Source: RFC 1950, RFC 1951, RFC 1952.

/// A deflate stream of one block with the fixed code (RFC 1951 sec. 3.2.6).
pub(super) fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut bits = Bits::default();
    // The last block, of type 1.
    bits.push(0b1, 1);
    bits.push(0b10, 2);
    for byte in bytes {
        let literal = u32::from(*byte);
        if literal < 144 {
            bits.push(0x30 + literal, 8);
        } else {
            bits.push(0x190 + literal - 144, 9);
        }
    }
    bits.push(0, 7);
    bits.bytes
}

pub(super) fn zlib(bytes: &[u8]) -> Vec<u8> {
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in bytes {
        low = (low + u32::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    let sum = (high << 16 | low).to_be_bytes();
    [&[0x78, 0x9c], &deflate(bytes)[..], &sum].concat()
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    gzip_with(0, &[], bytes)
}

/// With flags, and the optional field that they announce.
pub(super) fn gzip_with(flags: u8, field: &[u8], bytes: &[u8]) -> Vec<u8> {
    let header = [0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3];
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [
        &header,
        field,
        &deflate(bytes),
        &checksum(bytes).to_le_bytes(),
        &length.to_le_bytes(),
    ]
    .concat()
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = sum >> 1 ^ (0xedb8_8320 * (sum & 1));
        }
    }
    !sum
}

/// Bits of codes, from their highest, filled into bytes from the lowest.
#[derive(Debug, Default)]
struct Bits {
    bytes: Vec<u8>,
    used: u32,
}

impl Bits {
    fn push(&mut self, code: u32, length: u32) {
        for at in (0..length).rev() {
            if self.used == 0 {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut()
                && code >> at & 1 == 1
            {
                *last |= 1 << self.used;
            }
            self.used = (self.used + 1) % 8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    #[test]
    fn gzip_takes_it_off() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut gunzip = Command::new("gzip")
            .args(["-d", "-c"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = gunzip.stdin.take().unwrap();
        stdin.write_all(&gzip(&bytes)).unwrap();
        stdin.write_all(&gzip_with(8, b"name\0", &bytes)).unwrap();
        drop(stdin);
        let output = gunzip.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(output.stdout, [&bytes[..], &bytes].concat());
    }

    #[test]
    fn checksums_are_those_of_the_standards() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
        assert!(zlib(b"Wikipedia").ends_with(&[0x11, 0xe6, 0x03, 0x98]));
    }
}
