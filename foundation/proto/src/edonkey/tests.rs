use proptest::prelude::*;

use super::*;

const HASH: [u8; 16] = *b"0123456789abcdef";

fn le16(value: usize) -> [u8; 2] {
    u16::try_from(value).unwrap().to_le_bytes()
}

/// A text as tag, in the long form.
fn text_tag(id: u8, text: &[u8]) -> Vec<u8> {
    [&[2, 1, 0, id][..], &le16(text.len()), text].concat()
}

/// A file with these tags.
fn entry(tags: &[Vec<u8>]) -> Vec<u8> {
    let count = u32::try_from(tags.len()).unwrap().to_le_bytes();
    [&HASH[..], &[1, 2, 3, 4, 5, 6], &count, &tags.concat()].concat()
}

#[test]
fn headers() {
    let header = FrameHeader::parse([0xE3, 0x0B, 1, 0, 0, 0x59]).unwrap();
    assert_eq!(header.dialect, Dialect::EDonkey);
    assert_eq!((header.opcode, header.body_len), (opcode::FILE_NAME, 0x10A));
    assert_eq!(
        FrameHeader::parse([0xC5, 1, 0, 0, 0, 9]).unwrap().body_len,
        0
    );
    assert_eq!(
        FrameHeader::parse([0xD4, 2, 0, 0, 0, 9]).unwrap().dialect,
        Dialect::Packed
    );
    assert_eq!(
        FrameHeader::parse([0xE3, 0, 0, 0, 0, 1]),
        None,
        "no room for the opcode"
    );
    assert_eq!(FrameHeader::parse([0xE4, 1, 0, 0, 0, 1]), None);
}

#[test]
fn files_of_a_list_have_names_and_sizes_in_every_form() {
    let old = entry(&[
        text_tag(1, b"old form.avi"),
        vec![3, 1, 0, 2, 0, 0, 0, 0x40],
    ]);
    let compact = entry(&[
        // The name of 5 bytes in the type, the size in two bytes.
        [&[0x80 | 0x15, 1][..], b"a.mp3"].concat(),
        vec![0x88, 2, 0xE8, 3],
    ]);
    let long = entry(&[
        text_tag(1, b"long.iso"),
        vec![0x83, 2, 1, 0, 0, 0],
        vec![0x89, 0x3A, 2],
    ]);
    let eight = entry(&[vec![0x8B, 2, 0, 0, 0, 0, 1, 0, 0, 0], text_tag(1, b"x")]);
    let others = entry(&[
        [&[0x81, 9][..], &[7; 16]].concat(),
        vec![0x84, 9, 0, 0, 0x80, 0x3F],
        vec![0x85, 9, 1],
        vec![0x86, 9, 9, 0, 0xFF, 0x01],
        vec![0x87, 9, 3, 0, 0, 0, 1, 2, 3],
        vec![0x8A, 9, 2, 1, 2],
        [&[2, 6, 0][..], b"Artist", &[1, 0], b"A"].concat(),
        text_tag(1, b"behind all kinds"),
    ]);
    let body = [&[5, 0, 0, 0][..], &old, &compact, &long, &eight, &others].concat();
    let files: Vec<_> = FileList::new(&body).map(|f| (f.name, f.size)).collect();
    assert_eq!(
        files,
        [
            (&b"old form.avi"[..], Some(0x4000_0000)),
            (b"a.mp3", Some(1000)),
            (b"long.iso", Some(0x2_0000_0001)),
            (b"x", Some(0x1_0000_0000)),
            (b"behind all kinds", None),
        ]
    );
    assert!(FileList::new(&body).all(|file| *file.hash == HASH));
}

#[test]
fn a_list_that_is_cut_gives_what_is_there() {
    let one = entry(&[text_tag(1, b"one"), text_tag(4, b"format")]);
    let body = [&[2, 0, 0, 0][..], &one, &one].concat();
    let names = |body: &[u8]| FileList::new(body).filter(|f| f.name == b"one").count();
    assert_eq!(names(&body), 2);
    assert_eq!(
        names(&body[..body.len() - 1]),
        2,
        "the name of the second is there"
    );
    assert_eq!(names(&body[..body.len() - one.len()]), 1);
    assert_eq!(FileList::new(&[9]).count(), 0);
    // A kind of tag that is not known ends the list.
    let strange = entry(&[text_tag(1, b"one"), vec![0x8C, 1, 1]]);
    assert_eq!(names(&[&[2, 0, 0, 0][..], &strange, &one].concat()), 1);
}

#[test]
fn hellos_have_a_name() {
    let to_server = entry(&[text_tag(1, b"Joe"), vec![0x83, 0x11, 60, 0, 0, 0]]);
    let to_client = [&[16][..], &to_server, &[127, 0, 0, 1, 0x36, 0x12]].concat();
    assert_eq!(hello_name(&to_server), Some(&b"Joe"[..]));
    assert_eq!(hello_name(&to_client), Some(&b"Joe"[..]));
    assert_eq!(hello_name(&entry(&[])), None);
    assert_eq!(hello_name(&to_client[..20]), None);
}

#[test]
fn answers_name_the_file() {
    let name = [&[8, 0][..], b"test.avi"].concat();
    let answer = [&HASH[..], &name].concat();
    assert_eq!(offered_name(&answer), Some((&HASH, &b"test.avi"[..])));
    assert_eq!(offered_name(&answer[..answer.len() - 1]), None);
    let multi = [
        &HASH[..],
        &[0x50, 9, 0, 0xFF, 1],
        &[0x9D],
        &[7; 20],
        &[0x59],
        &name,
    ]
    .concat();
    assert_eq!(multi_packet_name(&multi), Some((&HASH, &b"test.avi"[..])));
    assert_eq!(multi_packet_name(&[&HASH[..], &[0x99]].concat()), None);
    assert_eq!(chat_text(&[2, 0, b'h', b'i', b'!']), Some(&b"hi"[..]));
    assert_eq!(chat_text(&[3, 0, b'h', b'i']), None);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        // An entry has at least 26 bytes.
        prop_assert!(FileList::new(&bytes).count() <= bytes.len() / 26 + 1);
        std::hint::black_box((hello_name(&bytes), offered_name(&bytes), chat_text(&bytes)));
        std::hint::black_box(multi_packet_name(&bytes));
    }
}
