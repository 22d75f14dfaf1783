//! The common name in the first certificate of a `Certificate` message (RFC 5246 sec. 7.4.2,
//! RFC 5280 sec. 4.1; DER: X.690).
//!
//! Only the way to the subject is walked. The bytes may end anywhere behind it.

use super::message_type::CERTIFICATE;
use super::reader::Reader;
use super::{MessageHeader, Parsed};

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
/// The version of a certificate: `[0] EXPLICIT`.
const VERSION: u8 = 0xa0;
/// `id-at-commonName`, 2.5.4.3.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];

/// Relative distinguished names that are looked at.
const MAX_NAMES: usize = 64;

/// Why the walk ended early.
enum Fault {
    /// The bytes end.
    Ends,
    /// It is not a certificate.
    Wrong,
}

/// The next element: its tag, its content as far as it is there, and whether that is all.
fn element<'a>(reader: &mut Reader<'a>) -> Result<(u8, &'a [u8], bool), Fault> {
    let tag = reader.u8().ok_or(Fault::Ends)?;
    let first = reader.u8().ok_or(Fault::Ends)?;
    let len = match first {
        0..=0x7f => usize::from(first),
        0x81..=0x83 => {
            let bytes = reader.take(usize::from(first & 0x7f)).ok_or(Fault::Ends)?;
            bytes
                .iter()
                .fold(0, |len, byte| len << 8 | usize::from(*byte))
        }
        // An indefinite length is not DER; a longer one no certificate.
        _ => return Err(Fault::Wrong),
    };
    let (content, is_whole) = reader.take_up_to(len);
    Ok((tag, content, is_whole))
}

/// An element with this tag that need not be whole.
fn enter<'a>(reader: &mut Reader<'a>, tag: u8) -> Result<(Reader<'a>, bool), Fault> {
    match element(reader)? {
        (found, content, is_whole) if found == tag => Ok((Reader::new(content), is_whole)),
        _ => Err(Fault::Wrong),
    }
}

/// Skips an element, which must be whole.
fn skip(reader: &mut Reader<'_>) -> Result<u8, Fault> {
    match element(reader)? {
        (tag, _, true) => Ok(tag),
        _ => Err(Fault::Ends),
    }
}

/// The common name of the subject, the most specific where there are several (RFC 2818 sec. 3.1);
/// empty where there is none.
///
/// `message` begins with the message's header and may end anywhere: the message is
/// [`Parsed::Complete`] as soon as its first subject is.
#[must_use]
pub fn certificate_name(message: &[u8]) -> Parsed<&[u8]> {
    match subject_name(message) {
        Ok(name) => Parsed::Complete(name),
        Err(Fault::Ends) => Parsed::Partial(&[]),
        Err(Fault::Wrong) => Parsed::Not,
    }
}

/// The first certificate of a `Certificate` message of TLS 1.2 or before, DER, where all of it is there.
#[must_use]
pub fn first_certificate(message: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(message);
    let header = MessageHeader::parse(reader.array()?);
    if header.kind != CERTIFICATE {
        return None;
    }
    let _list_len = reader.u24()?;
    let len = reader.u24()?;
    reader.take(len as usize)
}

/// DNS names of the first certificate's `subjectAltName` (RFC 5280 sec. 4.2.1.6), at most 64; empty where it has none or
/// is not there as a whole.
#[must_use]
pub fn certificate_dns_names(message: &[u8]) -> Vec<&[u8]> {
    first_certificate(message)
        .and_then(|der| dns_names(der).ok())
        .unwrap_or_default()
}

/// The extensions of a certificate: `[3] EXPLICIT`.
const EXTENSIONS: u8 = 0xa3;
const OCTETS: u8 = 0x04;
/// `id-ce-subjectAltName`, 2.5.29.17.
const ALTERNATIVE_NAMES: [u8; 3] = [0x55, 0x1d, 0x11];
/// A DNS name among others: `[2] IMPLICIT`.
const DNS_NAME: u8 = 0x82;

fn dns_names(der: &[u8]) -> Result<Vec<&[u8]>, Fault> {
    let (mut certificate, _) = enter(&mut Reader::new(der), SEQUENCE)?;
    let (mut tbs, _) = enter(&mut certificate, SEQUENCE)?;
    let mut list = loop {
        match element(&mut tbs)? {
            (EXTENSIONS, content, _) => break enter(&mut Reader::new(content), SEQUENCE)?.0,
            (_, _, true) => {}
            _ => return Err(Fault::Ends),
        }
    };
    while !list.is_empty() {
        let (mut extension, _) = enter(&mut list, SEQUENCE)?;
        let (kind, _) = enter(&mut extension, OBJECT_ID)?;
        if kind.rest() != ALTERNATIVE_NAMES {
            continue;
        }
        // Before the octets there may be a flag: critical.
        let octets = loop {
            match element(&mut extension)? {
                (OCTETS, content, _) => break content,
                (_, _, true) => {}
                _ => return Err(Fault::Ends),
            }
        };
        let (mut names, _) = enter(&mut Reader::new(octets), SEQUENCE)?;
        let mut found = Vec::new();
        while !names.is_empty() && found.len() < MAX_NAMES {
            let (tag, name, is_whole) = element(&mut names)?;
            if tag == DNS_NAME && is_whole {
                found.push(name);
            }
        }
        return Ok(found);
    }
    Ok(Vec::new())
}

fn subject_name(message: &[u8]) -> Result<&[u8], Fault> {
    let mut reader = Reader::new(message);
    let header = MessageHeader::parse(reader.array().ok_or(Fault::Ends)?);
    if header.kind != CERTIFICATE {
        return Err(Fault::Wrong);
    }
    if header.len < 6 {
        // An empty list.
        return Ok(&[]);
    }
    let list_len = reader.u24().ok_or(Fault::Ends)?;
    let first_len = reader.u24().ok_or(Fault::Ends)?;
    if list_len > header.len || first_len > list_len {
        return Err(Fault::Wrong);
    }
    let first = reader.take_up_to(first_len as usize).0;
    let (mut certificate, _) = enter(&mut Reader::new(first), SEQUENCE)?;
    let (mut tbs, _) = enter(&mut certificate, SEQUENCE)?;
    // version (absent of version 1), serialNumber, signature, issuer, validity, subject
    if skip(&mut tbs)? == VERSION {
        skip(&mut tbs)?;
    }
    skip(&mut tbs)?;
    skip(&mut tbs)?;
    skip(&mut tbs)?;
    let (mut subject, is_whole) = enter(&mut tbs, SEQUENCE)?;
    if !is_whole {
        return Err(Fault::Ends);
    }
    let mut name: &[u8] = &[];
    for _ in 0..MAX_NAMES {
        if subject.is_empty() {
            break;
        }
        let (mut set, _) = enter(&mut subject, SET)?;
        let (mut pair, _) = enter(&mut set, SEQUENCE)?;
        let (kind, _) = enter(&mut pair, OBJECT_ID)?;
        if kind.rest() == COMMON_NAME {
            (_, name, _) = element(&mut pair)?;
        }
    }
    Ok(name)
}
