//! Reads arbitrary blocks behind a sound pcapng section header, in chunks of any size.
//!
//! Input: two bytes that give the chunk size (big endian), whose lowest bit also gives the byte
//! order; then the blocks behind the section header and one interface description.

use crate::capture_run;

const LITTLE: &[u8] = &[
    0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255,
    255, 255, 255, 255, 28, 0, 0, 0, // section header
    1, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 4, 0, 20, 0, 0, 0, // interface
];
const BIG: &[u8] = &[
    0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 28, 0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 255, 255, 255, 255,
    255, 255, 255, 255, 0, 0, 0, 28, // section header
    0, 0, 0, 1, 0, 0, 0, 20, 0, 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 20, // interface
];

pub(crate) fn target(data: &[u8]) {
    let Some((&[high, low], blocks)) = data.split_first_chunk::<2>() else {
        return;
    };
    let chunk = usize::from(u16::from_be_bytes([high, low])) + 1;
    let head = if low & 1 == 0 { LITTLE } else { BIG };
    capture_run::compare([head, blocks].concat(), chunk);
}
