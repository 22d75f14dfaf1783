//! The names that are hashes of the ends of a connection, remembered: its records come again and again.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv6Addr};

use crate::community_id::CommunityId;
use crate::flow::Protocol;
use crate::schema::{Endpoint, Value};
use crate::short::Short;
use crate::uid::uid;

/// Connections whose names a thread remembers, a power of two: 200 KB, and more connections than send records at once.
const REMEMBERED: usize = 2048;

/// A connection and its names; a name is empty until a record asks for it.
#[derive(Clone, Copy)]
struct Remembered {
    protocol: Protocol,
    ends: [Endpoint; 2],
    community_id: Short,
    uid: Short,
}

impl Remembered {
    const fn of(protocol: Protocol, ends: [Endpoint; 2]) -> Self {
        Self {
            protocol,
            ends,
            community_id: Short::EMPTY,
            uid: Short::EMPTY,
        }
    }

    #[inline]
    fn community_id(&mut self) -> Short {
        if self.community_id.as_bytes().is_empty() {
            let [one, other] = self.ends;
            let id = CommunityId::of_ports(0, self.protocol.number(), one, other);
            self.community_id = id.text();
        }
        self.community_id
    }

    #[inline]
    fn uid(&mut self) -> Short {
        if self.uid.as_bytes().is_empty() {
            let [one, other] = self.ends;
            self.uid = uid(self.protocol, one, other);
        }
        self.uid
    }
}

thread_local! {
    /// Those that came last to each place; none before the first record.
    static LAST: RefCell<Vec<Remembered>> = const { RefCell::new(Vec::new()) };
}

/// Where the names of these ends are remembered.
#[inline]
fn place_of(ends: &[Endpoint; 2]) -> usize {
    let low = |address: IpAddr| match address {
        IpAddr::V4(v4) => v4.to_bits(),
        IpAddr::V6(v6) => {
            let [.., a, b, c, d] = v6.octets();
            u32::from_be_bytes([a, b, c, d])
        }
    };
    let [(one, one_port), (other, other_port)] = *ends;
    let ports = u32::from(one_port) << 16 | u32::from(other_port);
    let mixed = (low(one) ^ low(other).rotate_left(13) ^ ports).wrapping_mul(0x9e37_79b1);
    // The high bits depend on all of them.
    (mixed >> (u32::BITS - REMEMBERED.trailing_zeros())) as usize
}

/// A name of the ends that stand in a record. Some records keep addresses of IPv4 as mapped ones.
#[inline]
fn column(
    protocol: Protocol,
    ends: [Endpoint; 2],
    name: impl Fn(&mut Remembered) -> Short,
) -> Value<'static> {
    let ends = ends.map(|(address, port)| (address.to_canonical(), port));
    let known = LAST.try_with(|last| {
        let mut last = last.try_borrow_mut().ok()?;
        if last.is_empty() {
            let nobody = (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);
            last.resize(REMEMBERED, Remembered::of(Protocol::Tcp, [nobody; 2]));
        }
        let place = last.get_mut(place_of(&ends))?;
        if place.protocol != protocol || place.ends != ends {
            *place = Remembered::of(protocol, ends);
        }
        Some(name(place))
    });
    // Without what a thread has, when it is about to end.
    let known = known.ok().flatten();
    Value::Short(known.unwrap_or_else(|| name(&mut Remembered::of(protocol, ends))))
}

/// The column `community_id`, with the seed 0.
pub(crate) fn community_id(protocol: Protocol, ends: [Endpoint; 2]) -> Value<'static> {
    column(protocol, ends, Remembered::community_id)
}

/// The column `uid`.
pub(crate) fn uid_of(protocol: Protocol, ends: [Endpoint; 2]) -> Value<'static> {
    column(protocol, ends, Remembered::uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(address: &str, port: u16) -> Endpoint {
        (address.parse().unwrap(), port)
    }

    #[test]
    fn a_column_remembers_and_never_mistakes() {
        let text_of = |value: Value<'_>| match value {
            Value::Short(text) => text,
            other => panic!("{other:?}"),
        };
        // Twice around, so that places are taken over and found again; each protocol has its own.
        for _ in 0..2 {
            for port in 1..5000 {
                let ends = [end("10.0.0.1", port), end("::ffff:10.0.0.2", 443)];
                let plain = [end("10.0.0.1", port), end("10.0.0.2", 443)];
                for protocol in [Protocol::Tcp, Protocol::Udp] {
                    let made = CommunityId::of_ports(0, protocol.number(), plain[0], plain[1]);
                    let name = uid(protocol, plain[0], plain[1]);
                    for ends in [ends, plain, [plain[1], plain[0]]] {
                        assert_eq!(text_of(community_id(protocol, ends)), made.text(), "{port}");
                        assert_eq!(text_of(uid_of(protocol, ends)), name, "{port}");
                    }
                }
            }
        }
    }

    #[test]
    fn ends_that_are_nothing_have_names_too() {
        let nobody = end("::", 0);
        let Value::Short(name) = uid_of(Protocol::Tcp, [nobody; 2]) else {
            panic!("no name");
        };
        assert_eq!(name, uid(Protocol::Tcp, nobody, nobody));
    }
}
