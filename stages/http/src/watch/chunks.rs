//! A chunked body that is followed to its end, because requests wait for what is behind it.

use linkweir_proto::http1::{ChunkPiece, ChunkedDecoder};
use linkweir_table::Id;
use linkweir_wire::SeqNumber;

use super::{Found, Purpose, WatchList};
use crate::key::Connection;
use crate::segment::Segment;

/// Sequence numbers tell no more than this from what is behind.
const TELLABLE: u64 = 1 << 31;

/// A body of which the chunks are followed.
#[derive(Debug)]
pub(super) struct Chunks {
    /// Where its response begins.
    link: u32,
    /// The next byte that matters: data within a chunk is passed over.
    pub(super) next: SeqNumber,
    decoder: ChunkedDecoder,
}

impl Chunks {
    /// Reads on. Gives the bytes behind the body's end; `None` where it goes on, behind `end` and what is
    /// left of a chunk.
    ///
    /// # Errors
    /// These are no chunks, or longer ones than can be told.
    fn read<'a>(&mut self, mut bytes: &'a [u8], end: SeqNumber) -> Result<Option<&'a [u8]>, ()> {
        loop {
            match self.decoder.next(&mut bytes).map_err(|_| ())? {
                ChunkPiece::Data(_) | ChunkPiece::Text(_) => {}
                ChunkPiece::End => return Ok(Some(bytes)),
                ChunkPiece::More => break,
            }
        }
        let left = self.decoder.pass_data();
        let left = u32::try_from(left)
            .ok()
            .filter(|left| u64::from(*left) < TELLABLE);
        self.next = SeqNumber(end.0.wrapping_add(left.ok_or(())?));
        Ok(None)
    }
}

impl WatchList {
    /// Follows the chunks that begin with `body`, which ends before `end`, of the response at `link`;
    /// whether that is possible.
    pub(crate) fn follow_chunks(
        &mut self,
        direction: Connection,
        link: u32,
        body: &[u8],
        end: SeqNumber,
        now_ns: u64,
    ) -> bool {
        let mut chunks = Chunks {
            link,
            next: end,
            decoder: ChunkedDecoder::default(),
        };
        if !self.sees_all || !matches!(chunks.read(body, end), Ok(None)) {
            return false;
        }
        self.expect(direction, Purpose::Chunks(chunks), now_ns)
    }

    /// Whether the chunks of the response at `link` are being followed.
    pub(crate) fn follows_chunks(&self, direction: &Connection, link: u32) -> bool {
        let watched = self.find(direction).and_then(|id| self.table.get(id));
        watched.is_some_and(
            |watched| matches!(&watched.purpose, Purpose::Chunks(chunks) if chunks.link == link),
        )
    }

    /// A segment with the next byte that matters of chunks, `known` bytes into it.
    pub(super) fn on_chunks(&mut self, id: Id, segment: &Segment<'_>, known: usize) -> Found {
        let Some(watched) = self.table.get_mut(id) else {
            return Found::Nothing;
        };
        let Purpose::Chunks(chunks) = &mut watched.purpose else {
            return Found::Nothing;
        };
        let bytes = segment.payload.get(known..).unwrap_or_default();
        if segment.is_cut() || bytes.is_empty() {
            self.give_up(id);
            return Found::Nothing;
        }
        watched.changed_ns = watched.changed_ns.max(segment.ts_ns);
        match chunks.read(bytes, segment.end()) {
            Ok(None) => {
                self.table.refresh(id);
                Found::Taken
            }
            Ok(Some(behind)) => {
                let link = chunks.link;
                watched.purpose = Purpose::Idle;
                Found::EndOfChunks(link, segment.payload.len().saturating_sub(behind.len()))
            }
            Err(()) => {
                self.give_up(id);
                Found::Nothing
            }
        }
    }
}
