//! Which local port a connection gets.

use super::keys::Keys;
use crate::seam::Client;

/// How far each client has come in its own sequence of ports: 2 bytes each.
///
/// A client begins at a place that follows from the seed and goes up by one, around the range, so
/// that the port of its n-th connection is a function of seed, client and n, and a port rests for as
/// long as possible before it is used again (as RFC 6056 sec. 3.3.3 does it).
#[derive(Debug)]
pub(super) struct Ports {
    /// Ports taken so far, modulo the size of the range.
    taken: Vec<u16>,
    first: u16,
    /// Ports in the range: 1 to 65,536.
    len: u32,
}

impl Ports {
    pub(super) fn new(clients: u32, first: u16, last: u16) -> Self {
        Self {
            taken: vec![0; clients as usize],
            first: first.max(1),
            len: u32::from(last.saturating_sub(first.max(1))) + 1,
        }
    }

    /// How many clients have them.
    pub(super) fn clients(&self) -> u32 {
        u32::try_from(self.taken.len()).unwrap_or(u32::MAX)
    }

    /// Bytes of memory.
    pub(super) const fn memory_bytes(&self) -> usize {
        self.taken.len() * size_of::<u16>()
    }

    /// The next port of a client; `None` where there is no such client.
    pub(super) fn next(&mut self, keys: &Keys, client: Client) -> Option<u16> {
        let taken = self.taken.get_mut(client as usize)?;
        let offset = (keys.first_port(client, self.len) + u32::from(*taken)) % self.len;
        // Modulo at most 65,536: fits.
        *taken = u16::try_from((u32::from(*taken) + 1) % self.len).unwrap_or(0);
        u16::try_from(u32::from(self.first) + offset).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_client_goes_around_the_whole_range() {
        let keys = Keys::new(3);
        for (first, last) in [(1024, u16::MAX), (0, u16::MAX), (5000, 5009), (7, 7)] {
            let mut ports = Ports::new(3, first, last);
            let len = ports.len as usize;
            for client in 0..3 {
                let once: Vec<u16> = (0..len)
                    .map(|_| ports.next(&keys, client).unwrap())
                    .collect();
                assert!(once.iter().all(|port| (first.max(1)..=last).contains(port)));
                assert_eq!(once.iter().collect::<HashSet<_>>().len(), len);
                assert_eq!(
                    ports.next(&keys, client),
                    Some(once[0]),
                    "from the beginning"
                );
            }
            assert_eq!(ports.next(&keys, 3), None);
        }
    }
}
