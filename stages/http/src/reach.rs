//! Which sequence numbers are due next in both directions of a connection. A request that begins behind them has
//! others before it that are missing.

use linkweir_wire::SeqNumber;

use crate::key::ConnectionHash;
use crate::segment::Place;

/// Connections whose numbers are kept; the next one with the same remainder takes the place.
const SLOTS: usize = 4096;
/// Bytes of the shortest request, `A / HTTP/1.0` with its line ends: less between two is no request.
pub(crate) const SHORTEST: i32 = 16;
/// More than this is not missing before a request: the numbers are those of another connection.
const FAR: i32 = 1 << 20;

/// What is due next of the connections that were heard last, of the client and of the server.
#[derive(Debug)]
pub(crate) struct Reach {
    /// The hash of a connection and both numbers; nothing of a connection that has the hash zero.
    slots: Box<[[u32; 3]]>,
}

impl Default for Reach {
    fn default() -> Self {
        Self {
            slots: vec![[0; 3]; SLOTS].into_boxed_slice(),
        }
    }
}

impl Reach {
    /// Notes what is due next of a connection, of the client and of the server.
    #[inline]
    pub(crate) fn note(&mut self, hash: ConnectionHash, client: u32, server: u32) {
        let connection = hash.home();
        if let Some(slot) = self.slots.get_mut(connection as usize % SLOTS) {
            *slot = [connection, client, server];
        }
    }

    #[inline]
    fn get(&self, hash: ConnectionHash) -> Option<(u32, u32)> {
        let connection = hash.home();
        let [noted, client, server] = *self.slots.get(connection as usize % SLOTS)?;
        (noted == connection).then_some((client, server))
    }

    /// Notes the first numbers of a connection, unless it has come further already.
    pub(crate) fn begin(&mut self, hash: ConnectionHash, client: u32, server: u32) {
        let is_late = self.get(hash).is_some_and(|(reached, _)| {
            (0..FAR).contains(&(SeqNumber(reached) - SeqNumber(client)))
        });
        if !is_late {
            self.note(hash, client, server);
        }
    }

    /// Forgets a connection: what is due next of it is not known any more.
    #[inline]
    pub(crate) fn forget(&mut self, hash: ConnectionHash) {
        if let Some(slot) = self.slots.get_mut(hash.home() as usize % SLOTS) {
            *slot = [0; 3];
        }
    }

    /// Where the request begins that is missing before the one at `place`: the client had sent more by then than
    /// is known of it, and had nothing more of the server.
    #[inline]
    pub(crate) fn missing_before(&self, hash: ConnectionHash, place: &Place) -> Option<SeqNumber> {
        let (client, server) = self.get(hash)?;
        let is_missing = (SHORTEST..FAR).contains(&(place.seq - SeqNumber(client)))
            && (0..FAR).contains(&(SeqNumber(server) - SeqNumber(place.ack)));
        is_missing.then_some(SeqNumber(client))
    }
}
