//! Endpoints of servers, by small numbers: connections hold the number.

use std::collections::HashMap;
use std::net::SocketAddr;

/// The endpoints that were connected to; at most 65,536, and none is forgotten.
#[derive(Debug, Default)]
pub(super) struct Remotes {
    endpoints: Vec<SocketAddr>,
    numbers: HashMap<SocketAddr, u16>,
    last: u16,
}

impl Remotes {
    /// The number of an endpoint; `None` where there are too many.
    pub(super) fn number(&mut self, endpoint: SocketAddr) -> Option<u16> {
        // Without flow label and scope, as packets are compared.
        let endpoint = SocketAddr::new(endpoint.ip(), endpoint.port());
        if self.is(self.last, endpoint) {
            return Some(self.last);
        }
        if let Some(number) = self.numbers.get(&endpoint) {
            self.last = *number;
            return Some(*number);
        }
        let number = u16::try_from(self.endpoints.len()).ok()?;
        self.endpoints.push(endpoint);
        self.numbers.insert(endpoint, number);
        self.last = number;
        Some(number)
    }

    /// The endpoint of a number.
    #[inline]
    pub(super) fn get(&self, number: u16) -> Option<SocketAddr> {
        self.endpoints.get(usize::from(number)).copied()
    }

    /// Whether a number is that of an endpoint.
    #[inline]
    pub(super) fn is(&self, number: u16, endpoint: SocketAddr) -> bool {
        self.endpoints
            .get(usize::from(number))
            .is_some_and(|known| *known == endpoint)
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        // The map: endpoint, number and a control byte.
        (self.endpoints.capacity() + self.numbers.capacity()) * size_of::<SocketAddr>()
            + self.numbers.capacity() * 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_have_one_number_each() {
        let mut remotes = Remotes::default();
        let a: SocketAddr = "192.0.2.1:80".parse().unwrap();
        let b: SocketAddr = "[2001:db8::1]:80".parse().unwrap();
        assert_eq!((remotes.number(a), remotes.number(b)), (Some(0), Some(1)));
        assert_eq!((remotes.number(a), remotes.number(a)), (Some(0), Some(0)));
        assert_eq!((remotes.get(1), remotes.get(2)), (Some(b), None));
        for n in 2..=u16::MAX {
            let endpoint = SocketAddr::new("192.0.2.3".parse().unwrap(), n);
            assert_eq!(remotes.number(endpoint), Some(n));
        }
        let more = SocketAddr::new("192.0.2.4".parse().unwrap(), 1);
        assert_eq!(remotes.number(more), None);
    }
}
