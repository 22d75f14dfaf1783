use proptest::prelude::*;

use super::*;

#[test]
fn a_handshake_has_the_hash() {
    let mut rest = [0; Handshake::REST];
    rest[8..28].fill(0x33);
    rest[28..].copy_from_slice(b"-TR3000-abcdefghijkl");
    let handshake = Handshake::parse(&rest).unwrap();
    assert_eq!(handshake.info_hash, [0x33; 20]);
    assert_eq!(&handshake.peer_id, b"-TR3000-abcdefghijkl");
}

#[test]
fn values_are_read_where_they_lie() {
    let (value, rest) = Value::take(b"d1:ai-7e1:bl4:spami3eee!").unwrap();
    assert_eq!(rest, b"!");
    let entries = value.dictionary().unwrap();
    assert_eq!(entries.get(b"a"), Some(Value::Integer(-7)));
    let items: Vec<_> = entries.get(b"b").unwrap().list().unwrap().collect();
    assert_eq!(items, [Value::Bytes(b"spam"), Value::Integer(3)]);
    assert_eq!(entries.get(b"c"), None);
    assert_eq!(Value::Integer(-7).number(), None);
}

#[test]
fn what_is_broken_or_cut_is_no_value() {
    let cases: [&[u8]; 13] = [
        b"",
        b"i",
        b"ie",
        b"i1",
        b"i99999999999999999999e",
        b"4:abc",
        b":",
        b"-1:",
        b"+1:a",
        b"l",
        b"li1e",
        b"d1:a",
        b"e",
    ];
    for bytes in cases {
        assert_eq!(Value::take(bytes), None, "{}", bytes.escape_ascii());
    }
    let deep = [vec![b'l'; 65], vec![b'e'; 65]].concat();
    assert_eq!(Value::take(&deep), None);
    assert!(Value::take(&deep[1..129]).is_some());
}

#[test]
fn extension_messages() {
    let id = |payload: &[u8]| ExtensionHandshake::parse(payload).map(|h| h.metadata_id);
    let hello = b"d1:ei0e1:md11:ut_metadatai2e6:ut_pexi1ee13:metadata_sizei31235e1:v2:xxe";
    assert_eq!(id(hello), Some(Some(2)));
    assert_eq!(id(b"d1:mdee"), Some(None));
    assert_eq!(id(b"d1:md11:ut_metadatai0eee"), Some(None));
    assert_eq!(id(b"i1e"), None);
    let piece = MetadataPiece::parse(b"d8:msg_typei1e5:piecei3e10:total_sizei34256eexxxx").unwrap();
    assert_eq!(
        (piece.index, piece.total, piece.bytes),
        (3, Some(34256), &b"xxxx"[..])
    );
    assert_eq!(
        MetadataPiece::parse(b"d8:msg_typei0e5:piecei0ee"),
        None,
        "a request"
    );
}

#[test]
fn the_name_is_read_from_the_beginning() {
    let single = b"d6:lengthi99e4:name8:some.iso12:piece lengthi16384e6:pieces20:";
    let info = TorrentInfo::of_prefix(single).unwrap();
    assert_eq!((info.name, info.length), (&b"some.iso"[..], Some(99)));
    assert_eq!(info.files().count(), 0);
    assert_eq!(
        TorrentInfo::of_prefix(&single[..26]),
        None,
        "cut in the name"
    );
    let several =
        b"d5:filesld6:lengthi5e4:pathl3:sub5:a.txteed6:lengthi7e4:pathl5:b.txteee4:name3:dire";
    let info = TorrentInfo::of_prefix(several).unwrap();
    assert_eq!((info.name, info.length), (&b"dir"[..], None));
    let files: Vec<_> = info.files().map(|file| (file.name, file.length)).collect();
    assert_eq!(files, [(&b"a.txt"[..], Some(5)), (b"b.txt", Some(7))]);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Some((_, rest)) = Value::take(&bytes) {
            prop_assert!(rest.len() < bytes.len());
        }
        std::hint::black_box((ExtensionHandshake::parse(&bytes), MetadataPiece::parse(&bytes)));
    }

    #[test]
    fn anything_like_a_value_is_read_without_panic(text in "[dlie0-9:a-c]{0,60}") {
        if let Some((value, _)) = Value::take(text.as_bytes()) {
            std::hint::black_box(value.list().map(Iterator::count));
            std::hint::black_box(value.dictionary().map(Iterator::count));
        }
        if let Some(info) = TorrentInfo::of_prefix(text.as_bytes()) {
            prop_assert!(info.files().count() <= text.len());
        }
    }
}
