//! `application/x-msnmsgrp2p`: MSNSLP, the later form of invitations, as far as it names a file.
//!
//! A binary header of 48 bytes, then text like that of SIP. An invitation to a file has its name in
//! `Context`: base64 of a structure with lengths and the name in UTF-16. A message of this protocol may be
//! cut into several; the name is near the beginning, so the first one mostly has it.

use super::{Base64, FILE_TRANSFER, field};
use crate::tls::reader::Reader;

/// Of the context: length, version, then the size of the file in eight bytes, a kind, the name.
const SIZE_AT: usize = 8;
const NAME_AT: usize = 20;
/// Room for the name, UTF-16 units.
const NAME_UNITS: usize = 260;

/// The offer of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlpFile<'a> {
    /// In base64, cut perhaps.
    context: &'a [u8],
}

impl<'a> SlpFile<'a> {
    /// Reads the body of such a message; `None` where it is no offer of a file, or not the beginning
    /// of it.
    #[must_use]
    pub fn parse(body: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let _session_and_identifier = reader.array::<8>()?;
        let offset = u64::from_le_bytes(reader.array()?);
        let _total = reader.array::<8>()?;
        let length = u32::from_le_bytes(reader.array()?);
        let _flags_and_acknowledgment = reader.array::<20>()?;
        let (text, _) = reader.take_up_to(usize::try_from(length).ok()?);
        let is_offer = offset == 0
            && text.starts_with(b"INVITE MSNMSGR:")
            && field(text, b"EUF-GUID")
                .is_some_and(|guid| guid.eq_ignore_ascii_case(FILE_TRANSFER));
        let context = field(text, b"Context")?;
        (is_offer && !context.is_empty()).then_some(Self { context })
    }

    /// Length of the file, bytes.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        let mut bytes = Base64::new(self.context).skip(SIZE_AT);
        let mut size = [0; 8];
        for place in &mut size {
            *place = bytes.next()?;
        }
        Some(u64::from_le_bytes(size))
    }

    /// The characters of its name; none where the message is cut before its end.
    pub fn name(&self) -> impl Iterator<Item = char> + use<'a> {
        let units = utf16(Base64::new(self.context).skip(NAME_AT));
        let is_whole = units.clone().take(NAME_UNITS).any(|unit| unit == 0);
        let units = units.take_while(|unit| *unit != 0);
        let length = if is_whole { NAME_UNITS } else { 0 };
        char::decode_utf16(units.take(length))
            .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

/// Units of two bytes, the lower one first.
fn utf16<I: Iterator<Item = u8> + Clone>(mut bytes: I) -> impl Iterator<Item = u16> + Clone {
    std::iter::from_fn(move || Some(u16::from_le_bytes([bytes.next()?, bytes.next()?])))
}
