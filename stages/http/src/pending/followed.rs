//! The queue of a pipeline that is followed: its requests are told by their turn, not by a link.

use linkweir_table::Id;
use linkweir_wire::SeqNumber;

use super::{Half, MAX_PIPELINE, Pending, low};
use crate::key::{Connection, ConnectionHash, Meaning};

/// The turn of a request that has come before others which are before it: it is not known yet.
pub(crate) const NO_TURN: u32 = u32::MAX;

impl Pending {
    /// Files a request as one of a pipeline that is followed.
    pub(crate) fn file_followed(&mut self, id: Id, hash: ConnectionHash) {
        self.table.rehash(id, low(hash.with(Meaning::Followed, 0)));
    }

    /// The request of a followed pipeline that has waited longest.
    pub(crate) fn find_followed(
        &self,
        connection: &Connection,
        hash: ConnectionHash,
    ) -> Option<Id> {
        self.table
            .find(low(hash.with(Meaning::Followed, 0)), |waiting| {
                waiting.connection == *connection
                    && waiting.turn().is_some()
                    && matches!(&waiting.half, Half::Request(request) if request.leads)
            })
    }

    /// Does something to the requests of a queue, in their order: where each begins, where it ends if that is
    /// known, and its turn.
    pub(crate) fn each_in_queue(
        &mut self,
        leader: Id,
        mut each: impl FnMut(SeqNumber, Option<SeqNumber>, &mut u32),
    ) {
        let mut at = Some(leader);
        for _ in 0..=MAX_PIPELINE {
            let Some(id) = at else {
                return;
            };
            let bytes = self.get(id).and_then(|waiting| waiting.bytes);
            let Some(request) = self.request_mut(id) else {
                return;
            };
            let end = bytes
                .and_then(|bytes| u32::try_from(bytes).ok())
                .map(|bytes| SeqNumber(request.seq.0.wrapping_add(bytes)));
            each(request.seq, end, &mut request.turn);
            at = request.behind;
        }
    }
}
