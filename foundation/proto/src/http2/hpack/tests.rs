use super::*;

/// Name and value of a field as text; `?` is not known.
fn text(field: Field<'_>) -> String {
    let part = |part: Option<&[u8]>| match part {
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        None => "?".to_owned(),
    };
    format!("{}: {}", part(field.name), part(field.value))
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> (Vec<String>, Result<Decoded, Fault>) {
    let mut fields = Vec::new();
    let mut strings = Strings::default();
    let decoded = decoder.decode(
        block,
        &mut strings,
        |_| true,
        |field| fields.push(text(field)),
    );
    (fields, decoded)
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    let byte = |pair: &[u32]| u8::try_from(pair[0] << 4 | pair[1]).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// The requests of RFC 7541 appendices C.3 (plain) and C.4 (Huffman).
const REQUESTS: [[&str; 3]; 2] = [
    [
        "828684410f7777772e6578616d706c652e636f6d",
        "828684be58086e6f2d6361636865",
        "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
    ],
    [
        "828684418cf1e3c2e5f23a6ba0ab90f4ff",
        "828684be5886a8eb10649cbf",
        "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
    ],
];

#[test]
fn the_requests_of_the_rfc() {
    for blocks in REQUESTS {
        let mut decoder = Decoder::new();
        let mut all = blocks.map(|block| decode(&mut decoder, &bytes(block)));
        for (fields, decoded) in &all {
            let count = u32::try_from(fields.len()).unwrap();
            assert_eq!(
                decoded.unwrap(),
                Decoded {
                    fields: count,
                    ..Decoded::default()
                }
            );
        }
        assert_eq!(
            all[0].0,
            [
                ":method: GET",
                ":scheme: http",
                ":path: /",
                ":authority: www.example.com"
            ]
        );
        assert_eq!(all[1].0.pop().unwrap(), "cache-control: no-cache");
        assert_eq!(all[1].0, all[0].0);
        assert_eq!(
            all[2].0,
            [
                ":method: GET",
                ":scheme: https",
                ":path: /index.html",
                ":authority: www.example.com",
                "custom-key: custom-value"
            ]
        );
    }
}

/// RFC 7541 appendix C.5: a table of 256 bytes, from which entries are pushed out.
#[test]
fn the_responses_of_the_rfc() {
    let mut decoder = Decoder::new();
    decoder.table.resize(256);
    let first = "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e17\
                 68747470733a2f2f7777772e6578616d706c652e636f6d";
    let third = "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d41\
                 53444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b207665727369\
                 6f6e3d31";
    let (fields, _) = decode(&mut decoder, &bytes(first));
    assert_eq!(fields[0], ":status: 302");
    assert_eq!(fields[3], "location: https://www.example.com");
    // The status takes the place of the oldest entry.
    let (fields, _) = decode(&mut decoder, &bytes("4803333037c1c0bf"));
    assert_eq!(fields[0], ":status: 307");
    assert_eq!(fields[1], "cache-control: private");
    let (fields, decoded) = decode(&mut decoder, &bytes(third));
    assert_eq!(fields[0], ":status: 200");
    assert_eq!(fields[2], "date: Mon, 21 Oct 2013 20:13:22 GMT");
    assert!(fields[5].starts_with("set-cookie: foo=ASDJ"));
    assert_eq!(decoded.unwrap().unknown, 0);
    assert_eq!(decoder.table.size, 215);
}

#[test]
fn who_joins_late_knows_what_came_since() {
    let blocks = REQUESTS[0];
    let mut decoder = Decoder::joined_late();
    // The authority is older; the name of what is inserted is in the static table.
    let (fields, decoded) = decode(&mut decoder, &bytes(blocks[1]));
    assert_eq!(fields[3..], ["?: ?", "cache-control: no-cache"]);
    assert_eq!(decoded.unwrap().unknown, 1);
    let (fields, decoded) = decode(&mut decoder, &bytes(blocks[2]));
    assert_eq!(fields[3..], ["?: ?", "custom-key: custom-value"]);
    assert_eq!(decoded.unwrap().unknown, 1);
    // Inserted under a name that is older: the value is known, there too where it is named again.
    let (fields, _) = decode(&mut decoder, &bytes("7f05 0161 be"));
    assert_eq!(fields, ["?: a", "?: a"]);
    // And what was known has moved by one.
    let (fields, _) = decode(&mut decoder, &bytes("bf c0"));
    assert_eq!(
        fields,
        ["custom-key: custom-value", "cache-control: no-cache"]
    );
}

#[test]
fn nothing_is_guessed_behind_a_block_that_was_missed() {
    let blocks = REQUESTS[0].map(bytes);
    let mut decoder = Decoder::new();
    decode(&mut decoder, &blocks[0]).1.unwrap();
    decoder.forget();
    let (fields, _) = decode(&mut decoder, &blocks[2]);
    assert_eq!(fields[3], "?: ?");
    // Nor behind one that could not be read.
    let mut decoder = Decoder::new();
    decode(&mut decoder, &blocks[0]).1.unwrap();
    let (fields, decoded) = decode(&mut decoder, &bytes("82 80"));
    assert_eq!((fields.len(), decoded), (1, Err(Fault::Index)));
    let (fields, _) = decode(&mut decoder, &bytes("be"));
    assert_eq!(fields, ["?: ?"]);
}

#[test]
fn what_is_no_block_is_refused() {
    for (hex, fault) in [
        ("7f", Fault::Cut),
        ("41", Fault::Cut),
        ("410f7777", Fault::Cut),
        ("ff80808080808001", Fault::Number),
        ("ffffffffff", Fault::Number),
        ("80", Fault::Index),
        ("4184ffffffff", Fault::Huffman),
    ] {
        let (_, decoded) = decode(&mut Decoder::new(), &bytes(hex));
        assert_eq!(decoded, Err(fault), "{hex}");
    }
}

#[test]
fn a_block_that_names_a_large_entry_again_and_again_is_bounded() {
    let mut decoder = Decoder::new();
    // An entry of 4,000 bytes, then 60,000 times its index.
    let mut block = bytes("4001617fa11e");
    block.extend_from_slice(&[b'x'; 4000]);
    block.resize(block.len() + 60_000, 0xBE);
    let mut given = 0;
    let count = |field: Field<'_>| given += field.value.map_or(0, <[u8]>::len);
    let decoded = decoder.decode(&block, &mut Strings::default(), |_| true, count);
    let decoded = decoded.unwrap();
    assert_eq!((decoded.fields, decoded.unknown), (60_001, 0));
    assert!(given <= MAX_FIELDS && decoded.withheld > 59_900);
}

#[test]
fn a_table_stays_within_its_bound() {
    let mut table = Table::of(1000);
    let value = [b'v'; 300];
    for number in 0..10_000_usize {
        let name = number.to_string();
        let value = &value[..number % 300];
        table.insert(Field {
            name: Some(name.as_bytes()),
            value: Some(value),
        });
        assert!(table.size <= 1000 && table.bytes.len() <= 2000);
        let newest = table.get(0).unwrap();
        assert_eq!(
            (newest.name, newest.value),
            (Some(name.as_bytes()), Some(value))
        );
        if let Some(older) = table.get(1) {
            assert_eq!(older.name.unwrap(), (number - 1).to_string().as_bytes());
        }
    }
    // One that is too large empties it (RFC 7541 sec. 4.4).
    table.insert(Field {
        name: Some(&[b'n'; 2000]),
        value: None,
    });
    assert_eq!((table.get(0), table.size), (None, 0));
}

#[test]
fn a_value_that_nobody_wants_is_passed_over_unless_the_table_takes_it() {
    // `server: a` (static name 54) in Huffman code, without indexing; `:status: 307` inserted.
    let block = [0x0F, 39, 0x81, 0x1F, 0x48, 0x83, 0x64, 0x0E, 0xFF];
    let mut decoder = Decoder::new();
    let mut fields = Vec::new();
    let mut strings = Strings::default();
    let decoded = decoder.decode(
        &block,
        &mut strings,
        |_| false,
        |field| fields.push(text(field)),
    );
    assert_eq!(
        decoded.map(|decoded| (decoded.fields, decoded.unknown)),
        Ok((2, 0))
    );
    fields.extend(decode(&mut decoder, &[0xBE]).0);
    assert_eq!(fields, ["server: ", ":status: 307", ":status: 307"]);
}
