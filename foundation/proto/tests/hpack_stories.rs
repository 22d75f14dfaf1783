//! What eight encoders made of real requests and responses (the collection `hpack-test-case`), where it is at hand:
//! read whole, joined late, and with blocks missing. Without it the tests say so and end.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a helper that fails is a failed test, and one that is left out says so"
)]

use linkweir_proto::http2::hpack::{Decoder, Field, Strings};
use serde_json::Value;
use std::path::{Path, PathBuf};

type Fields = Vec<(Vec<u8>, Vec<u8>)>;
/// As they are read; `None` is not known.
type Found = Vec<(Option<Vec<u8>>, Option<Vec<u8>>)>;

struct Case {
    block: Vec<u8>,
    fields: Fields,
}

/// Every story: its name and its blocks, in order.
fn stories() -> Vec<(String, Vec<Case>)> {
    let directory = std::env::var_os("LINKWEIR_HPACK_STORIES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/suites/hpack-test-case"),
        PathBuf::from,
    );
    let Ok(encoders) = std::fs::read_dir(&directory) else {
        eprintln!("SKIPPED: {} is not there", directory.display());
        return Vec::new();
    };
    let mut stories = Vec::new();
    for encoder in encoders.map(|entry| entry.unwrap().path()) {
        for file in std::fs::read_dir(&encoder).into_iter().flatten() {
            let path = file.unwrap().path();
            let story: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            let cases = story["cases"].as_array().unwrap();
            let name = path.strip_prefix(&directory).unwrap();
            stories.push((name.display().to_string(), cases.iter().map(case).collect()));
        }
    }
    assert!(stories.len() > 100, "{}", stories.len());
    stories
}

fn case(case: &Value) -> Case {
    let hex = case["wire"].as_str().unwrap();
    let digits: Vec<u32> = hex
        .chars()
        .map(|digit| digit.to_digit(16).unwrap())
        .collect();
    let pairs = case["headers"].as_array().unwrap().iter();
    let bytes = |text: &str| text.as_bytes().to_vec();
    Case {
        block: digits
            .chunks(2)
            .map(|pair| u8::try_from(pair[0] << 4 | pair[1]).unwrap())
            .collect(),
        fields: pairs
            .flat_map(|pair| pair.as_object().unwrap())
            .map(|(name, value)| (bytes(name), bytes(value.as_str().unwrap())))
            .collect(),
    }
}

fn read(decoder: &mut Decoder, block: &[u8]) -> Found {
    let mut found = Found::new();
    let own = |part: Option<&[u8]>| part.map(<[u8]>::to_vec);
    let take = |field: Field<'_>| found.push((own(field.name), own(field.value)));
    let decoded = decoder
        .decode(block, &mut Strings::default(), |_| true, take)
        .unwrap();
    assert_eq!(decoded.withheld, 0);
    found
}

/// How many parts are not known; that none is wrong is asserted.
fn unknown(found: &Found, truth: &Fields, place: &str) -> usize {
    assert_eq!(found.len(), truth.len(), "{place}");
    let mut unknown = 0;
    for ((name, value), true_one) in found.iter().zip(truth) {
        for (part, true_part) in [(name, &true_one.0), (value, &true_one.1)] {
            match part {
                Some(part) => assert_eq!(part, true_part, "{place}"),
                None => unknown += 1,
            }
        }
    }
    unknown
}

#[test]
fn every_story_is_read() {
    for (name, cases) in stories() {
        let mut decoder = Decoder::new();
        for (at, case) in cases.iter().enumerate() {
            let place = format!("{name}, block {at}");
            let found = read(&mut decoder, &case.block);
            assert_eq!(unknown(&found, &case.fields, &place), 0, "{place}");
        }
    }
}

#[test]
fn who_joins_a_story_late_reads_nothing_wrong() {
    let (mut fields, mut not_known) = (0, 0);
    for (name, cases) in stories() {
        for from in 1..cases.len() {
            let mut decoder = Decoder::joined_late();
            for (at, case) in cases.iter().enumerate().skip(from) {
                let place = format!("{name} from block {from}, block {at}");
                not_known += unknown(&read(&mut decoder, &case.block), &case.fields, &place);
                fields += 2 * case.fields.len();
            }
        }
    }
    eprintln!("joined late: {not_known} of {fields} names and values are not known");
    assert!(not_known * 4 <= fields);
}

#[test]
fn a_story_without_some_of_its_blocks_is_read_without_an_error() {
    let (mut fields, mut not_known) = (0, 0);
    for (name, cases) in stories() {
        for missing in 2..7 {
            let mut decoder = Decoder::new();
            for (at, case) in cases.iter().enumerate() {
                if at % missing == missing - 1 {
                    decoder.forget();
                    continue;
                }
                let place = format!("{name} without every block {missing}, block {at}");
                not_known += unknown(&read(&mut decoder, &case.block), &case.fields, &place);
                fields += 2 * case.fields.len();
            }
        }
    }
    eprintln!("blocks missing: {not_known} of {fields} names and values are not known");
}
