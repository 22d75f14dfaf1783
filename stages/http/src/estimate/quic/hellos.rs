//! Hellos of QUIC that are not whole: few at a time, and the oldest gives way.

use linkweir_proto::quic::ClientInitials;

use crate::key::Connection;

/// Hellos at once, of 8 KiB each.
const PLACES: usize = 256;

/// A place for a hello, which may have gone to another connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct HelloId(u16);

#[derive(Debug)]
struct Place {
    owner: Option<Connection>,
    client: Box<ClientInitials>,
}

/// The hellos that are being gathered.
#[derive(Debug, Default)]
pub(in crate::estimate) struct Hellos {
    places: Vec<Place>,
    free: Vec<u16>,
    /// Who gives way next.
    next: u16,
}

impl Hellos {
    /// A place for this connection, empty.
    pub(super) fn take(&mut self, owner: Connection) -> HelloId {
        let at = match self.free.pop() {
            Some(at) => at,
            None if self.places.len() < PLACES => {
                self.places.push(Place {
                    owner: None,
                    client: Box::default(),
                });
                u16::try_from(self.places.len() - 1).unwrap_or(0)
            }
            None => {
                let at = self.next;
                self.next = (at + 1) % u16::try_from(PLACES).unwrap_or(1);
                at
            }
        };
        if let Some(place) = self.places.get_mut(usize::from(at)) {
            place.client.clear();
            place.owner = Some(owner);
        }
        HelloId(at)
    }

    /// What was gathered of this connection.
    pub(super) fn get(&mut self, id: HelloId, owner: &Connection) -> Option<&mut ClientInitials> {
        let place = self.places.get_mut(usize::from(id.0))?;
        (place.owner == Some(*owner)).then_some(&mut *place.client)
    }

    /// Gives the place back, if it is still that of this connection.
    pub(super) fn release(&mut self, id: HelloId, owner: &Connection) {
        if let Some(place) = self.places.get_mut(usize::from(id.0))
            && place.owner == Some(*owner)
        {
            place.owner = None;
            self.free.push(id.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_gives_way() {
        let of = |port: u16| Connection {
            client: ([10, 0, 0, 1].into(), port),
            server: ([10, 0, 0, 2].into(), 443),
        };
        let mut hellos = Hellos::default();
        let ids: Vec<_> = (0..=256).map(|port| hellos.take(of(port))).collect();
        assert_eq!(hellos.places.len(), PLACES);
        assert!(hellos.get(ids[0], &of(0)).is_none(), "it gave way");
        assert!(hellos.get(ids[256], &of(256)).is_some());
        hellos.release(ids[0], &of(0));
        assert!(hellos.get(ids[256], &of(256)).is_some(), "not the owner's");
        hellos.release(ids[5], &of(5));
        assert_eq!(hellos.take(of(1000)), ids[5]);
    }
}
