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
