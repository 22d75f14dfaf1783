//! What the AEAD alone takes to open records: the limit of `bench web`.
//!
//! `cargo run --release -p linkweir-keys --example aead -- LENGTHS`, a file with the length of a record of TLS in
//! each line, its tag included. All are sealed with AES-128-GCM first, and then opened in place, in their order; the
//! last line says the bytes and the seconds of the latter.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a tool for developers"
)]

use std::error::Error;
use std::time::Instant;

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// The length of a tag.
const TAG: usize = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("a file of lengths")?;
    let mut lengths = Vec::new();
    for line in std::fs::read_to_string(&path)?.split_whitespace() {
        let length: usize = line.parse()?;
        // Alerts and the like are shorter, and no data.
        if length > TAG {
            lengths.push(length);
        }
    }
    let key = UnboundKey::new(&AES_128_GCM, &[7; 16]).map_err(|_| "no key")?;
    let key = LessSafeKey::new(key);
    let mut records = vec![0; lengths.iter().sum()];
    // What is opened is known, so that a wrong tag is an error here and not a faster limit.
    let mut rest = records.as_mut_slice();
    for (number, length) in lengths.iter().enumerate() {
        let (record, behind) = rest.split_at_mut_checked(*length).ok_or("a record")?;
        let (content, tag) = record
            .split_at_mut_checked(length - TAG)
            .ok_or("a record without a tag")?;
        let sealed = key
            .seal_in_place_separate_tag(nonce(number), Aad::from(header(*length)), content)
            .map_err(|_| "a record cannot be sealed")?;
        tag.copy_from_slice(sealed.as_ref());
        rest = behind;
    }
    let begin = Instant::now();
    let mut rest = records.as_mut_slice();
    for (number, length) in lengths.iter().enumerate() {
        let (record, behind) = rest.split_at_mut_checked(*length).ok_or("a record")?;
        key.open_in_place(nonce(number), Aad::from(header(*length)), record)
            .map_err(|_| "a record cannot be opened")?;
        rest = behind;
    }
    println!(
        "{{\"records\":{},\"bytes\":{},\"seconds\":{:.6}}}",
        lengths.len(),
        records.len(),
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}

/// The nonce of a record (RFC 8446 sec. 5.3), of an IV that is zero.
fn nonce(number: usize) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    let number = u64::try_from(number).unwrap_or_default().to_be_bytes();
    nonce[NONCE_LEN - 8..].copy_from_slice(&number);
    Nonce::assume_unique_for_key(nonce)
}

/// The header of a record of application data, which is authenticated with it.
fn header(length: usize) -> [u8; 5] {
    let [.., high, low] = length.to_be_bytes();
    [23, 3, 3, high, low]
}
