//! Places for connections: so many at once, and of one address no more than a part of them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// One address may have one of so many places.
const PART: usize = 4;

/// The places of a console.
#[derive(Debug)]
pub(super) struct Places {
    all: Arc<Semaphore>,
    /// Connections by address; as many entries as there are places at most.
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
    most: usize,
    /// Whoever is on this machine may use all of them: without a token there is nobody else.
    is_loopback_free: bool,
}

/// A place, given back when dropped.
#[derive(Debug)]
pub(super) struct Place {
    _place: OwnedSemaphorePermit,
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
    from: IpAddr,
}

impl Places {
    pub(super) fn new(connections: usize, has_token: bool) -> Self {
        Self {
            all: Arc::new(Semaphore::new(connections)),
            taken: Arc::default(),
            most: (connections / PART).max(1),
            is_loopback_free: !has_token,
        }
    }

    /// A place for a connection of an address; none where all are taken, or its part of them.
    pub(super) fn take(&self, from: IpAddr) -> Option<Place> {
        let from = owner(from);
        let place = Arc::clone(&self.all).try_acquire_owned().ok()?;
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = self.is_loopback_free && from.is_loopback();
        if !is_free && taken.get(&from).is_some_and(|count| *count >= self.most) {
            return None;
        }
        *taken.entry(from).or_default() += 1;
        Some(Place {
            _place: place,
            taken: Arc::clone(&self.taken),
            from,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.from) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.from);
            }
        }
    }
}

/// Whose an address is: of IPv6 one has the whole network of 64 bits (RFC 4291 sec. 2.5.4).
fn owner(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let network = address.to_bits() >> 64 << 64;
            Ipv6Addr::from_bits(network).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_has_a_part_of_the_places() {
        let places = Places::new(8, true);
        let take = |from: &str| places.take(from.parse().unwrap());
        let one: Vec<Place> = (0..2).filter_map(|_| take("::ffff:192.0.2.1")).collect();
        assert_eq!(one.len(), 2);
        assert!(take("192.0.2.1").is_none());
        let network = [take("2001:db8::1"), take("2001:db8::2")];
        assert!(network.iter().all(Option::is_some));
        assert!(take("2001:db8::3").is_none());
        let own = [take("127.0.0.1"), take("127.0.0.1")];
        assert!(own.iter().all(Option::is_some) && take("127.0.0.1").is_none());
        drop(one);
        let again = [take("192.0.2.1"), take("192.0.2.1")];
        assert!(again.iter().all(Option::is_some));
        // All of them.
        let last = [take("2001:db8:1::1"), take("2001:db8:1::1")];
        assert!(last.iter().all(Option::is_some) && take("2001:db8:2::1").is_none());

        let places = Places::new(8, false);
        let own = std::array::from_fn::<_, 8, _>(|_| places.take("127.0.0.1".parse().unwrap()));
        assert!(own.iter().all(Option::is_some));
        assert!(places.take("127.0.0.1".parse().unwrap()).is_none());
    }
}
