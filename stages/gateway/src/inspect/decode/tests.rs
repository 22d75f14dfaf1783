use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("to memory");
    encoder.finish().expect("to memory")
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("to memory");
    encoder.finish().expect("to memory")
}

fn raw(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("to memory");
    encoder.finish().expect("to memory")
}

/// A member with every optional field of the header.
fn gzip_with_all_fields(bytes: &[u8]) -> Vec<u8> {
    let mut member = vec![0x1F, 0x8B, 8, 4 | 8 | 16 | 2, 1, 2, 3, 4, 0, 255];
    member.extend_from_slice(b"\x05\x00extra");
    member.extend_from_slice(b"name.txt\0a comment\0");
    member.extend_from_slice(&[0xAB, 0xCD]);
    member.extend_from_slice(&raw(bytes));
    member.extend_from_slice(&[0; 8]);
    member
}

/// What comes out, how it went, and whether the end was seen.
fn decode_with(
    coding: Coding,
    limit: DecodeLimit,
    bytes: &[u8],
    cut: usize,
) -> (Vec<u8>, Result<(), DecodeError>, bool) {
    let mut decoder = Decoder::new(coding, limit);
    let mut decoded = Vec::new();
    let mut result = Ok(());
    for piece in bytes.chunks(cut) {
        result = decoder.push(piece, &mut |bytes| {
            assert!(bytes.len() <= PIECE.max(piece.len()));
            decoded.extend_from_slice(bytes);
        });
        if result.is_err() {
            break;
        }
    }
    assert_eq!(decoder.decoded_bytes(), decoded.len() as u64);
    (decoded, result, decoder.is_at_end())
}

fn decode(coding: Coding, bytes: &[u8], cut: usize) -> (Vec<u8>, Result<(), DecodeError>, bool) {
    decode_with(coding, DecodeLimit::default(), bytes, cut)
}

#[test]
fn names_of_codings() {
    for (value, want) in [
        ("", Coding::Identity),
        ("identity", Coding::Identity),
        ("gzip", Coding::Gzip),
        ("X-GZip", Coding::Gzip),
        (" deflate ", Coding::Deflate),
        ("identity, gzip", Coding::Gzip),
        ("gzip,", Coding::Gzip),
        ("br", Coding::Other),
        ("zstd", Coding::Other),
        ("gzip, gzip", Coding::Other),
        ("deflate, br", Coding::Other),
    ] {
        assert_eq!(Coding::of(value.as_bytes()), want, "{value}");
    }
}

#[test]
fn every_kind_of_stream_byte_by_byte() {
    let text = b"a keyword, and a keyword again".repeat(500);
    for (coding, bytes) in [
        (Coding::Identity, text.clone()),
        (Coding::Other, text.clone()),
        (Coding::Gzip, gzip(&text)),
        (Coding::Gzip, gzip_with_all_fields(&text)),
        (Coding::Deflate, zlib(&text)),
        (Coding::Deflate, raw(&text)),
    ] {
        for cut in [1, 7, 1448, usize::MAX] {
            assert_eq!(decode(coding, &bytes, cut), (text.clone(), Ok(()), true));
        }
        let cut_short = &bytes[..bytes.len() / 2];
        let is_coded = !matches!(coding, Coding::Identity | Coding::Other);
        let (decoded, result, is_at_end) = decode(coding, cut_short, 100);
        assert!(text.starts_with(&decoded) && !decoded.is_empty());
        assert_eq!((result, is_at_end), (Ok(()), !is_coded));
    }
}

#[test]
fn members_and_garbage_behind_them() {
    let members = [gzip(b"one "), gzip_with_all_fields(b"two "), gzip(b"three")].concat();
    let want = b"one two three".to_vec();
    for cut in [1, 5, 1000] {
        assert_eq!(
            decode(Coding::Gzip, &members, cut),
            (want.clone(), Ok(()), true)
        );
        for garbage in [&b"\0\0\0\0"[..], b"\x1F", b"\x1Fx", b"text \x1F\x8B\x08"] {
            let bytes = [&members, garbage].concat();
            assert_eq!(
                decode(Coding::Gzip, &bytes, cut),
                (want.clone(), Ok(()), true)
            );
        }
    }
    let bytes = [zlib(b"page"), b"garbage".to_vec()].concat();
    assert_eq!(
        decode(Coding::Deflate, &bytes, 3),
        (b"page".to_vec(), Ok(()), true)
    );
}

#[test]
fn what_is_not_of_its_coding() {
    for bytes in [
        &b"<html>"[..],
        b"\x1F\x8B\x07\0",
        b"\x1F\x8B\x08\xE0",
        b"\x1F\x8B\x08\0\0\0\0\0\0\0\xFF\xFF",
    ] {
        let (decoded, result, is_at_end) = decode(Coding::Gzip, bytes, 1);
        assert_eq!((result, is_at_end), (Err(DecodeError::Malformed), false));
        assert!(decoded.is_empty());
    }
    let (_, result, _) = decode(Coding::Deflate, b"\x78\xBB\0\0\0\0", 1);
    assert_eq!(result, Err(DecodeError::Dictionary));
    let endless = [&[0x1F, 0x8B, 8, 8, 0, 0, 0, 0, 0, 0][..], &[b'n'; 70_000]].concat();
    let (_, result, _) = decode(Coding::Gzip, &endless, 4096);
    assert_eq!(result, Err(DecodeError::Malformed));
}

#[test]
fn what_is_in_front_of_a_fault_comes_out() {
    // A byte-aligned empty block is in front of what is not a block.
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder
        .write_all(b"shown before the fault")
        .expect("to memory");
    encoder.flush().expect("to memory");
    let mut bytes = encoder.get_ref().clone();
    bytes.extend_from_slice(&[0xFF; 4]);
    for cut in [1, 1000] {
        let (decoded, result, _) = decode(Coding::Deflate, &bytes, cut);
        assert_eq!(decoded, b"shown before the fault");
        assert_eq!(result, Err(DecodeError::Malformed));
    }
}

#[test]
fn an_error_stays() {
    let mut decoder = Decoder::new(Coding::Gzip, DecodeLimit::default());
    assert_eq!(decoder.push(b"x", &mut |_| ()), Err(DecodeError::Malformed));
    let good = gzip(b"good");
    let again = decoder.push(&good, &mut |_| panic!("nothing comes out"));
    assert_eq!(again, Err(DecodeError::Malformed));
}

#[test]
fn bombs_stop_at_their_bounds() {
    let bomb = gzip(&vec![0; 10_000_000]);
    let limit = DecodeLimit {
        total: 1_000_000,
        ratio: 2000,
    };
    let (decoded, result, _) = decode_with(Coding::Gzip, limit, &bomb, 100);
    assert_eq!(
        (decoded.len(), result),
        (1_000_000, Err(DecodeError::TooLong))
    );
    let limit = DecodeLimit {
        total: u64::MAX,
        ratio: 100,
    };
    let (decoded, result, _) = decode_with(Coding::Gzip, limit, &bomb, 100);
    assert_eq!(result, Err(DecodeError::Bomb));
    assert!(decoded.len() <= 100 * bomb.len());
    // A member for each: the ratio counts over all of them.
    let members = gzip(&[0; 60_000]).repeat(200);
    let (_, result, _) = decode_with(Coding::Gzip, limit, &members, 1448);
    assert_eq!(result, Err(DecodeError::Bomb));
    let (decoded, result, _) = decode_with(
        Coding::Identity,
        DecodeLimit {
            total: 10,
            ratio: 1,
        },
        b"more than ten bytes",
        4,
    );
    assert_eq!((decoded.len(), result), (10, Err(DecodeError::TooLong)));
}

#[test]
fn a_decoder_is_small() {
    assert!(size_of::<Decoder>() <= 256, "{}", size_of::<Decoder>());
}

proptest! {
    #[test]
    fn cuts_change_nothing(
        text in proptest::collection::vec(any::<u8>(), 0..3000),
        repeat in 1_usize..30,
        kind in 0_usize..4,
        cuts in proptest::collection::vec(1_usize..2000, 1..20),
    ) {
        let text = text.repeat(repeat);
        let (coding, coded) = match kind {
            0 => (Coding::Gzip, gzip(&text)),
            1 => (Coding::Gzip, [gzip_with_all_fields(&text), gzip(b"")].concat()),
            2 => (Coding::Deflate, zlib(&text)),
            _ => (Coding::Deflate, raw(&text)),
        };
        let mut decoder = Decoder::new(coding, DecodeLimit::default());
        let mut decoded = Vec::new();
        let mut rest = &coded[..];
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            decoder.push(piece, &mut |bytes| decoded.extend_from_slice(bytes)).expect("well formed");
            rest = after;
        }
        prop_assert!(decoded == text);
        prop_assert!(decoder.is_at_end());
    }

    #[test]
    fn arbitrary_bytes_stay_within_bounds(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        has_magic: bool,
        is_gzip: bool,
        cut in 1_usize..50,
    ) {
        let coding = if is_gzip { Coding::Gzip } else { Coding::Deflate };
        let head: &[u8] = if has_magic { &[0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0] } else { b"" };
        let bytes = [head, &bytes].concat();
        let limit = DecodeLimit { total: 5000, ratio: 50 };
        let whole = decode_with(coding, limit, &bytes, usize::MAX);
        prop_assert!(whole.0.len() <= 5000);
        let pieces = decode_with(coding, limit, &bytes, cut);
        prop_assert_eq!(whole, pieces);
    }
}
