//! The first datagram of a client of HTTP/3.

/// A datagram of 1,200 bytes with an Initial of QUIC version 1: the hello of RFC 9001 appendix A.2 with `h3` as its
/// application protocol, sealed with the keys of appendix A.1. The server name is `example.com`, the client's connection
/// id has eight bytes.
///
/// # Panics
/// If the file that has it is damaged.
#[must_use]
pub fn initial() -> Vec<u8> {
    let digits: Vec<u8> = include_str!("../captures/initial-h3.hex")
        .chars()
        .filter_map(|digit| u8::try_from(digit.to_digit(16)?).ok())
        .collect();
    let (pairs, _) = digits.as_chunks::<2>();
    let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
    assert_eq!(bytes.len(), 1200);
    bytes
}
