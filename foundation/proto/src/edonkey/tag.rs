//! Tags: named values, of files and of clients.

use crate::tls::reader::Reader;

/// What a tag is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagName<'a> {
    /// One byte, given a meaning by the protocol.
    Id(u8),
    /// A word.
    Text(&'a [u8]),
}

impl TagName<'_> {
    /// Name of a file, or of a client.
    pub const NAME: Self = Self::Id(0x01);
    /// Length of a file; of a long one its lower half.
    pub const FILE_SIZE: Self = Self::Id(0x02);
    /// The upper half of it.
    pub const FILE_SIZE_HIGH: Self = Self::Id(0x3A);
}

/// What a tag says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagValue<'a> {
    /// A text.
    Text(&'a [u8]),
    /// A number of one to eight bytes.
    Number(u64),
    /// Something else, passed over.
    Other,
}

/// A tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag<'a> {
    /// What it is called.
    pub name: TagName<'a>,
    /// What it says.
    pub value: TagValue<'a>,
}

/// A list of tags: an iterator over them that ends where they do, or where they are cut or of a kind
/// that is not known.
#[derive(Debug, Clone, Copy)]
pub struct Tags<'a> {
    reader: Reader<'a>,
    left: u32,
}

impl<'a> Tags<'a> {
    /// The list in front: its length, then the tags.
    pub(super) fn read(mut reader: Reader<'a>) -> Option<Self> {
        let left = number(&mut reader)?;
        Some(Self { reader, left })
    }

    /// What follows the list; `None` where it did not end well. Only after the last tag.
    pub(super) fn rest(&self) -> Option<Reader<'a>> {
        (self.left == 0).then_some(self.reader)
    }
}

impl<'a> Iterator for Tags<'a> {
    type Item = Tag<'a>;

    fn next(&mut self) -> Option<Tag<'a>> {
        if self.left == 0 {
            return None;
        }
        let tag = read_tag(&mut self.reader)?;
        self.left -= 1;
        Some(tag)
    }
}

/// In four bytes.
pub(super) fn number(reader: &mut Reader<'_>) -> Option<u32> {
    reader.array().map(u32::from_le_bytes)
}

/// A text with its length in two bytes.
pub(super) fn text<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    let length = u16::from_le_bytes(reader.array()?);
    reader.take(usize::from(length))
}

fn read_tag<'a>(reader: &mut Reader<'a>) -> Option<Tag<'a>> {
    /// Says that the name is one byte and its length left out.
    const SHORT: u8 = 0x80;
    let kind = reader.u8()?;
    let name = if kind & SHORT != 0 {
        TagName::Id(reader.u8()?)
    } else {
        match text(reader)? {
            [id] => TagName::Id(*id),
            word => TagName::Text(word),
        }
    };
    let value = read_value(reader, kind & !SHORT)?;
    Some(Tag { name, value })
}

fn read_value<'a>(reader: &mut Reader<'a>, kind: u8) -> Option<TagValue<'a>> {
    let skipped = match kind {
        0x02 => return text(reader).map(TagValue::Text),
        0x03 => return number(reader).map(u64::from).map(TagValue::Number),
        0x08 => {
            return reader
                .array()
                .map(u16::from_le_bytes)
                .map(u64::from)
                .map(TagValue::Number);
        }
        0x09 => return reader.u8().map(u64::from).map(TagValue::Number),
        0x0B => return reader.array().map(u64::from_le_bytes).map(TagValue::Number),
        // Texts of 1 to 16 bytes, and of up to 22 which old clients took too.
        0x11..=0x26 => return reader.take(usize::from(kind - 0x10)).map(TagValue::Text),
        // A hash, a real number, a truth.
        0x01 => 16,
        0x04 => 4,
        0x05 => 1,
        // Truths, eight in a byte and always one byte more.
        0x06 => usize::from(u16::from_le_bytes(reader.array()?) / 8) + 1,
        0x07 => usize::try_from(number(reader)?).ok()?,
        0x0A => usize::from(reader.u8()?),
        _ => return None,
    };
    reader.take(skipped).map(|_| TagValue::Other)
}
