//! Frames of Initial packets (RFC 9000 sec. 19): only CRYPTO is read.

use crate::tls::reader::Reader;

/// Frames that are looked at in one packet: more are an attack, not a hello.
const MOST: usize = 512;

/// Gives the offset and the bytes of each CRYPTO frame to `on_crypto`.
pub(super) fn walk<'a>(frames: &'a [u8], mut on_crypto: impl FnMut(u64, &'a [u8])) {
    let mut reader = Reader::new(frames);
    for _ in 0..MOST {
        // PADDING, a byte each
        let padding = reader.rest().iter().take_while(|byte| **byte == 0).count();
        let _ = reader.take(padding);
        let next = match reader.u8() {
            // PING
            Some(0x01) => Some(()),
            Some(kind @ (0x02 | 0x03)) => ack(&mut reader, kind == 0x03),
            // CRYPTO; of Google's Q050 the number is 8, which nothing else in these packets has
            Some(0x06 | 0x08) => crypto(&mut reader, &mut on_crypto),
            _ => None,
        };
        if next.is_none() {
            return;
        }
    }
}

fn crypto<'a>(reader: &mut Reader<'a>, on_crypto: &mut impl FnMut(u64, &'a [u8])) -> Option<()> {
    let offset = reader.varint()?;
    let len = usize::try_from(reader.varint()?).ok()?;
    on_crypto(offset, reader.take(len)?);
    Some(())
}

fn ack(reader: &mut Reader<'_>, has_ecn: bool) -> Option<()> {
    let _largest = reader.varint()?;
    let _delay = reader.varint()?;
    let ranges = reader.varint()?;
    let _first = reader.varint()?;
    for _ in 0..ranges.min(MOST as u64) {
        let _gap = reader.varint()?;
        let _len = reader.varint()?;
    }
    for _ in 0..if has_ecn { 3 } else { 0 } {
        let _count = reader.varint()?;
    }
    Some(())
}
