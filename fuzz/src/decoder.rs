//! Takes content codings off arbitrary bytes: within the bound, and the same however they are cut.
//!
//! Input: the coding, the size of the pieces, the coded bytes.

use linkweir_gateway::inspect::{Coding, DecodeError, DecodeLimit, Decoder};

const TOTAL: u64 = 300_000;

fn decode(coding: Coding, bytes: &[u8], cut: usize) -> (Vec<u8>, Result<(), DecodeError>, bool) {
    // The ratio counts what was read when a piece came out: it may depend on the cuts.
    let limit = DecodeLimit {
        total: TOTAL,
        ratio: u32::MAX,
    };
    let mut decoder = Decoder::new(coding, limit);
    let mut decoded = Vec::new();
    let mut result = Ok(());
    for piece in bytes.chunks(cut) {
        result = decoder.push(piece, &mut |bytes| decoded.extend_from_slice(bytes));
        if result.is_err() {
            break;
        }
    }
    assert_eq!(decoder.decoded_bytes(), decoded.len() as u64);
    (decoded, result, decoder.is_at_end())
}

pub(crate) fn target(input: &[u8]) {
    let Some((&[coding, cut], bytes)) = input.split_first_chunk::<2>() else {
        return;
    };
    let coding = match coding % 3 {
        0 => Coding::Gzip,
        1 => Coding::Deflate,
        _ => Coding::Identity,
    };
    let whole = decode(coding, bytes, usize::MAX);
    assert!(whole.0.len() as u64 <= TOTAL);
    assert_eq!(decode(coding, bytes, usize::from(cut) + 1), whole);
    let bomb = DecodeLimit {
        total: TOTAL,
        ratio: 20,
    };
    let mut decoder = Decoder::new(coding, bomb);
    let _ = decoder.push(bytes, &mut |_| ());
    assert!(decoder.decoded_bytes() <= DecodeLimit::FREE.max(20 * bytes.len() as u64));
}
