//! Bodies: where they end, and what of them is the file.

use linkweir_proto::http1::{BodyLength, ChunkPiece, ChunkedDecoder};

use super::multipart::Multipart;
use crate::inspect::{FileInfo, Found, Side};

/// A body that is under way.
#[derive(Debug)]
pub(in crate::inspect) struct Body {
    length: Length,
    /// The parts of a form, whose names are reported.
    form: Option<Box<Multipart>>,
}

#[derive(Debug)]
enum Length {
    /// So many bytes are to come.
    Known(u64),
    Chunked(ChunkedDecoder),
    UntilClose,
}

/// How far a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::inspect) enum Progress {
    /// It goes on.
    More,
    /// It has ended where it should.
    Done,
    /// It is not framed as it said.
    Fault(&'static str),
}

impl Body {
    /// A body of this length; `None` where it has no bytes.
    pub(in crate::inspect) fn new(
        length: BodyLength,
        form: Option<Box<Multipart>>,
    ) -> Option<Self> {
        let length = match length {
            BodyLength::Known(0) => return None,
            BodyLength::Known(length) => Length::Known(length),
            BodyLength::Chunked => Length::Chunked(ChunkedDecoder::default()),
            BodyLength::UntilClose => Length::UntilClose,
        };
        Some(Self { length, form })
    }

    /// Whether the end of the connection is its end.
    pub(super) const fn ends_with_connection(&self) -> bool {
        matches!(self.length, Length::UntilClose)
    }

    /// How many of the next bytes are the file's and frame nothing.
    pub(super) const fn left(&self) -> u64 {
        match (&self.length, &self.form) {
            (Length::Known(left), None) => *left,
            (Length::UntilClose, None) => u64::MAX,
            (Length::Chunked(_), _) | (_, Some(_)) => 0,
        }
    }

    /// Takes bytes; gives those behind the body.
    pub(in crate::inspect) fn feed<'a, F: Found>(
        &mut self,
        sender: Side,
        bytes: &'a [u8],
        found: &mut F,
    ) -> (&'a [u8], Progress) {
        let form = &mut self.form;
        match &mut self.length {
            Length::UntilClose => {
                data(form, sender, bytes, found);
                (&[], Progress::More)
            }
            Length::Known(left) => {
                let here = usize::try_from(*left).unwrap_or(usize::MAX);
                let (here, rest) = bytes.split_at_checked(here).unwrap_or((bytes, &[]));
                *left -= here.len() as u64;
                let is_done = *left == 0;
                data(form, sender, here, found);
                let progress = if is_done {
                    Progress::Done
                } else {
                    Progress::More
                };
                (rest, progress)
            }
            Length::Chunked(decoder) => {
                let mut rest = bytes;
                loop {
                    match decoder.next(&mut rest) {
                        Ok(ChunkPiece::Data(bytes)) => data(form, sender, bytes, found),
                        Ok(ChunkPiece::Text(bytes)) => found.text(sender, bytes),
                        Ok(ChunkPiece::More) => return (rest, Progress::More),
                        Ok(ChunkPiece::End) => return (rest, Progress::Done),
                        // What cannot be read as chunks is text.
                        Err(fault) => return (rest, Progress::Fault(fault.as_str())),
                    }
                }
            }
        }
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.form.as_ref().map_or(0, |form| form.held_bytes())
    }
}

/// Bytes of the file; names of the parts of a form are reported where they stand.
fn data<F: Found>(form: &mut Option<Box<Multipart>>, sender: Side, bytes: &[u8], found: &mut F) {
    let Some(form) = form else {
        found.file_data(sender, bytes);
        return;
    };
    let mut rest = bytes;
    while !rest.is_empty() {
        let used = form.push(rest);
        let (here, after) = rest.split_at_checked(used).unwrap_or((rest, &[]));
        found.file_data(sender, here);
        rest = after;
        form.take_name(|name, host| {
            let file = FileInfo {
                name,
                host,
                ..FileInfo::default()
            };
            found.file_named(sender, &file);
        });
    }
}
