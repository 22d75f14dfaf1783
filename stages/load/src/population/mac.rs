//! Hardware addresses of clients, and why they are not those of the interface.
//!
//! # How the host's own stack stays out
//! The frames for the clients arrive at an interface that belongs to this machine too, whose kernel
//! would look at them: forward them, where it is a router, or let netfilter see them. A frame whose
//! destination is another hardware address than the interface's is to the kernel a frame for another
//! host (`PACKET_OTHERHOST`), which it drops before IP sees it, while a packet socket sees it all the
//! same. So by default the clients share one virtual address that no interface has. It is locally
//! administered (IEEE 802, second bit of the first byte) and derived from the seed: two generators on
//! one link need different seeds.
//!
//! Nor does the kernel answer for the clients by itself: it answers ARP and neighbour discovery only
//! for its own addresses (and as a proxy where told to), none of which may be a client's; the plan of
//! a run checks that.
//!
//! A network card has to be in promiscuous mode to take frames for such an address. Where a switch
//! allows one hardware address a port only (wireless links, some virtual switches), there is
//! [`MacPolicy::Interface`]: then forwarding must be off, or the kernel sends the frames on.

use linkweir_model::Random;

use crate::seam::Client;

/// Which hardware addresses clients have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum MacPolicy {
    /// One for all, which no interface has.
    #[default]
    Virtual,
    /// That of the interface.
    Interface,
    /// One for each: `02:xx` with `xx` from the seed, and the number of the client. A switch must have
    /// room for all of them.
    PerClient,
}

/// The addresses that a policy comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Macs {
    One([u8; 6]),
    PerClient { second: u8, clients: u32 },
}

/// Not for a group of receivers, locally administered.
const LOCAL: u8 = 0x02;

impl Macs {
    pub(super) fn new(policy: MacPolicy, interface: [u8; 6], clients: u32, seed: u64) -> Self {
        let [a, b, c, d, e, ..] = Random::part(seed, u64::from_be_bytes(*b"mac addr"))
            .bits()
            .to_be_bytes();
        match policy {
            MacPolicy::Interface => Self::One(interface),
            MacPolicy::PerClient => Self::PerClient { second: a, clients },
            MacPolicy::Virtual => {
                let drawn = [LOCAL, a, b, c, d, e];
                if drawn == interface {
                    return Self::One([LOCAL, a, b, c, d, e ^ 1]);
                }
                Self::One(drawn)
            }
        }
    }

    #[inline]
    pub(super) fn of(&self, client: Client) -> [u8; 6] {
        match *self {
            Self::One(mac) => mac,
            Self::PerClient { second, .. } => {
                let [a, b, c, d] = client.to_be_bytes();
                [LOCAL, second, a, b, c, d]
            }
        }
    }

    #[inline]
    pub(super) fn has(&self, mac: [u8; 6]) -> bool {
        match *self {
            Self::One(one) => one == mac,
            Self::PerClient { .. } => self.find(mac).is_some(),
        }
    }

    pub(super) fn find(&self, mac: [u8; 6]) -> Option<Client> {
        let [LOCAL, its_second, a, b, c, d] = mac else {
            return None;
        };
        let client = Client::from_be_bytes([a, b, c, d]);
        match *self {
            Self::PerClient { second, clients } if its_second == second && client < clients => {
                Some(client)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERFACE: [u8; 6] = [0x52, 0x54, 0, 1, 2, 3];

    #[test]
    fn the_virtual_address_is_local_and_no_interface_has_it() {
        let Macs::One(drawn) = Macs::new(MacPolicy::Virtual, INTERFACE, 10, 1) else {
            panic!("one for all");
        };
        assert_eq!(drawn[0] & 0b11, 0b10, "local, for one receiver");
        let evaded = Macs::new(MacPolicy::Virtual, drawn, 10, 1);
        assert!(!evaded.has(drawn), "that of the interface is avoided");
        assert_ne!(
            Macs::new(MacPolicy::Virtual, INTERFACE, 10, 2),
            Macs::One(drawn),
            "another seed has another one"
        );
        assert_eq!(Macs::One(drawn).find(drawn), None);
    }

    #[test]
    fn one_for_each_leads_back_to_its_client() {
        let macs = Macs::new(MacPolicy::PerClient, INTERFACE, 1_000_000, 1);
        for client in [0, 1, 255, 256, 999_999] {
            let mac = macs.of(client);
            assert_eq!(mac[0], 2);
            assert_eq!(macs.find(mac), Some(client));
            assert!(macs.has(mac));
        }
        assert_eq!(macs.find(macs.of(1_000_000)), None, "no such client");
        assert!(!macs.has(INTERFACE));
    }

    #[test]
    fn the_interface_lends_its_own() {
        let macs = Macs::new(MacPolicy::Interface, INTERFACE, 10, 1);
        assert_eq!(macs.of(9), INTERFACE);
        assert!(macs.has(INTERFACE));
    }
}
