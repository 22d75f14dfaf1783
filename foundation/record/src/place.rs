//! Where an address is: its country and autonomous system, as a database of the user has them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use crate::schema::{Value, text};

/// What is known of an address.
///
/// Shape: 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Place {
    country: [u8; 2],
    /// Number of its autonomous system (RFC 6793); 0 is not known.
    asn: u32,
}

impl Place {
    /// A country by its two letters (ISO 3166-1), and a number; what is something else is not known.
    #[must_use]
    pub const fn new(country: &str, asn: u32) -> Self {
        let country = match country.as_bytes() {
            [a, b] if a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric() => [*a, *b],
            _ => [0; 2],
        };
        Self { country, asn }
    }

    /// The country, where it is known.
    #[must_use]
    pub const fn country_code(self) -> Option<[u8; 2]> {
        match self.country {
            [0, 0] => None,
            code => Some(code),
        }
    }

    /// The number of the autonomous system, where it is known.
    #[must_use]
    pub const fn as_number(self) -> Option<u32> {
        match self.asn {
            0 => None,
            number => Some(number),
        }
    }

    /// The column of the country.
    pub(crate) fn country(&self) -> Value<'_> {
        text(if self.country == [0; 2] {
            &[]
        } else {
            &self.country
        })
    }

    /// The column of the number.
    pub(crate) const fn asn(&self) -> Value<'static> {
        match self.asn {
            0 => Value::Null,
            number => Value::U64(number as u64),
        }
    }
}

/// Who knows where addresses are.
pub trait Places: Send + Sync + std::fmt::Debug {
    /// What is known of an address; of most records, so that it must not take long.
    fn place(&self, address: IpAddr) -> Place;
}

/// Addresses that are remembered: a power of two.
const REMEMBERED: usize = 1024;

/// Asks once for what comes again soon.
///
/// Shape: 32 KiB. One look-up for each end of a record that is written.
#[derive(Debug, Clone)]
pub struct PlaceCache {
    places: Arc<dyn Places>,
    known: Vec<(IpAddr, Place)>,
}

impl PlaceCache {
    /// An empty one.
    #[must_use]
    pub fn new(places: Arc<dyn Places>) -> Self {
        let nobody = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), Place::default());
        Self {
            places,
            known: vec![nobody; REMEMBERED],
        }
    }

    /// What is known of an address; of a mapped one, that of the address of IPv4.
    pub fn place(&mut self, address: IpAddr) -> Place {
        let address = address.to_canonical();
        let bits = match address {
            IpAddr::V4(v4) => u64::from(v4.to_bits()),
            IpAddr::V6(v6) => {
                let [a, b, c, d, e, f, g, h] = v6.segments().map(u64::from);
                (a << 48 | b << 32 | c << 16 | d) ^ (e << 48 | f << 32 | g << 16 | h)
            }
        };
        let hash = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let at = usize::try_from(hash).unwrap_or_default() % REMEMBERED;
        match self.known.get_mut(at) {
            Some((known, place)) if *known == address => *place,
            Some(entry) => {
                let place = self.places.place(address);
                *entry = (address, place);
                place
            }
            None => self.places.place(address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[derive(Debug, Default)]
    struct Counting(AtomicU32);

    impl Places for Counting {
        fn place(&self, address: IpAddr) -> Place {
            let asked = self.0.fetch_add(1, Ordering::Relaxed);
            let country = if address.is_ipv4() { "NL" } else { "Atlantis" };
            Place::new(country, asked)
        }
    }

    #[test]
    fn an_address_is_looked_up_once() {
        let counting = Arc::new(Counting::default());
        let mut cache = PlaceCache::new(Arc::<Counting>::clone(&counting));
        let address = |text: &str| -> IpAddr { text.parse().unwrap() };
        let first = cache.place(address("192.0.2.1"));
        assert_eq!(
            (first.country(), first.asn()),
            (Value::Text(b"NL"), Value::Null)
        );
        assert_eq!(cache.place(address("192.0.2.1")), first);
        assert_eq!(cache.place(address("::ffff:192.0.2.1")), first);
        assert_eq!(counting.0.load(Ordering::Relaxed), 1);
        let second = cache.place(address("2001:db8::1"));
        assert_eq!(
            (second.country(), second.asn()),
            (Value::Null, Value::U64(1))
        );
        // More than there is room for.
        for number in 0..5000_u32 {
            let v4 = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number));
            assert_eq!(cache.place(v4), cache.place(v4));
        }
    }
}
