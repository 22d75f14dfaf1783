//! The link: answers for the clients, and finds the hardware address of the next hop.
//!
//! Every address of the population is answered for, by ARP and by neighbour discovery, and no other.
//! The questions for a next hop are asked in the name of a client, so that the addresses of this
//! host do not appear.

use crate::frames::Frames;
use crate::population::Population;
use arp::{Arp, BROADCAST, Link, Operation, is_host};
use hop::{Due, Hop, Question};
use linkweir_wire::Timestamp;
use ndp::{Kind, Message, Read};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

mod arp;
mod hop;
mod ndp;
#[cfg(test)]
mod tests;

/// Whether a remote address can be sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NeighbourState {
    /// The hardware address of its next hop is known.
    Resolved,
    /// It is being asked for.
    Asking,
    /// Nobody answered within 5 s, or nobody can be asked. It goes on being asked for.
    Failed,
}

/// What happened on the link, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NeighbourCounts {
    /// Questions for a client that were answered.
    pub answered: u64,
    /// Questions for addresses that are no client's.
    pub not_ours: u64,
    /// Messages that are not valid, and were ignored.
    pub malformed: u64,
    /// Messages in which another host claims the address of a client: it should be excluded.
    pub conflicts: u64,
    /// Questions that were asked for a next hop.
    pub asked: u64,
    /// Times that a next hop failed: all questions without an answer.
    pub failed: u64,
    /// Times that a next hop came to have another hardware address.
    pub moved: u64,
}

/// A next hop that came to have another hardware address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// The next hop.
    pub address: IpAddr,
    /// Its hardware address until then.
    pub from: [u8; 6],
    /// Its hardware address since then.
    pub to: [u8; 6],
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mac = |mac: [u8; 6]| mac.map(|byte| format!("{byte:02x}")).join(":");
        let Self { address, from, to } = *self;
        let (from, to) = (mac(from), mac(to));
        write!(f, "next hop {address} is now at {to}; it was at {from}")
    }
}

/// The neighbours on the link.
#[derive(Debug, Clone, Default)]
pub struct Neighbours {
    hops: Vec<Hop>,
    /// Remote addresses in order, with the place of their hop.
    routes: Vec<(IpAddr, usize)>,
    counts: NeighbourCounts,
    last_move: Option<Moved>,
}

impl Neighbours {
    /// The most remote addresses; more are [`NeighbourState::Failed`].
    pub const MAX_REMOTES: usize = 1024;

    /// Sends frames for `remote` by way of `hop` from now on: itself where it is on the link, or a
    /// router. Asks for the hop's hardware address where it is not known.
    pub fn resolve(
        &mut self,
        remote: IpAddr,
        hop: IpAddr,
        now: Timestamp,
        population: &Population,
        out: &mut Frames,
    ) -> NeighbourState {
        let can_ask = hop.is_ipv4() == remote.is_ipv4()
            && !population.has(hop)
            && population.any_like(hop).is_some();
        let place = self.routes.binary_search_by_key(&remote, |route| route.0);
        if !can_ask || (place.is_err() && self.routes.len() >= Self::MAX_REMOTES) {
            return NeighbourState::Failed;
        }
        let known = self.hops.iter().position(|one| one.address == hop);
        let number = known.unwrap_or_else(|| {
            self.hops.push(Hop::new(hop, now));
            self.hops.len() - 1
        });
        match place {
            Ok(place) => {
                if let Some(route) = self.routes.get_mut(place) {
                    route.1 = number;
                }
            }
            Err(place) => self.routes.insert(place, (remote, number)),
        }
        self.on_tick(now, population, out);
        self.state(remote)
    }

    #[inline]
    fn hop(&self, remote: IpAddr) -> Option<&Hop> {
        let place = self.routes.binary_search_by_key(&remote, |route| route.0);
        self.hops.get(self.routes.get(place.ok()?)?.1)
    }

    /// The hardware address to which frames for `remote` go; `None` where it is not known.
    #[inline]
    #[must_use]
    pub fn next_hop(&self, remote: IpAddr) -> Option<[u8; 6]> {
        self.hop(remote)?.mac
    }

    /// Whether `remote` can be sent to. One that was never resolved has failed.
    #[must_use]
    pub fn state(&self, remote: IpAddr) -> NeighbourState {
        match self.hop(remote) {
            Some(hop) if hop.mac.is_some() => NeighbourState::Resolved,
            Some(hop) if !hop.has_failed() => NeighbourState::Asking,
            _ => NeighbourState::Failed,
        }
    }

    /// What happened so far.
    #[must_use]
    pub const fn counts(&self) -> NeighbourCounts {
        self.counts
    }

    /// The last time that a next hop came to have another hardware address.
    #[must_use]
    pub const fn last_move(&self) -> Option<Moved> {
        self.last_move
    }

    /// When [`on_tick`](Self::on_tick) has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.hops.iter().map(Hop::due).min()
    }

    /// Asks what is due.
    pub fn on_tick(&mut self, now: Timestamp, population: &Population, out: &mut Frames) {
        for hop in &mut self.hops {
            match hop.on_tick(now) {
                Due::Nothing => {}
                Due::Failed => self.counts.failed += 1,
                Due::Ask(question) => {
                    self.counts.asked += 1;
                    ask(hop.address, question, population, out);
                }
            }
        }
    }

    /// Looks at a frame. True for ARP and neighbour discovery in the VLAN of the population: nobody
    /// else need look at it. Answers are appended to `out`.
    pub fn on_frame(
        &mut self,
        frame: &[u8],
        now: Timestamp,
        population: &Population,
        out: &mut Frames,
    ) -> bool {
        let Some(link) = Link::read(frame, population.vlan()) else {
            return false;
        };
        match link.ethertype {
            arp::ETHERTYPE => match Arp::read(link.payload) {
                Some(arp) => self.on_arp(&link, &arp, now, population, out),
                None => self.counts.malformed += 1,
            },
            ndp::ETHERTYPE => match ndp::read(link.payload) {
                Read::Other => return false,
                Read::Invalid => self.counts.malformed += 1,
                Read::Message(message) => self.on_ndp(&link, &message, now, population, out),
            },
            _ => return false,
        }
        true
    }

    fn on_arp(
        &mut self,
        link: &Link<'_>,
        arp: &Arp,
        now: Timestamp,
        population: &Population,
        out: &mut Frames,
    ) {
        let is_for_us = link.dst == BROADCAST || population.has_mac(link.dst);
        if !is_for_us || is_own(arp.sender_mac, population) {
            return;
        }
        if !is_host(arp.sender_mac) {
            self.counts.malformed += 1;
            return;
        }
        if population.has(arp.sender.into()) {
            self.count_conflict(arp.sender.into(), population);
            return;
        }
        // A request tells the address of its sender as a reply does (RFC 826, "merge flag"); an
        // announcement is how a standby that takes over makes itself known.
        if !arp.sender.is_unspecified() {
            self.learn(arp.sender.into(), arp.sender_mac, now);
        }
        if arp.operation != Operation::Request || arp.sender == arp.target {
            return;
        }
        let Some(client) = population.find(arp.target.into()) else {
            self.counts.not_ours += 1;
            return;
        };
        let mac = population.mac(client);
        self.counts.answered += 1;
        out.push_with(|out| {
            let vlan = population.vlan();
            arp::write(out, arp.sender_mac, mac, vlan, arp::ETHERTYPE);
            let reply = Arp {
                operation: Operation::Reply,
                sender_mac: mac,
                sender: arp.target,
                target_mac: arp.sender_mac,
                target: arp.sender,
            };
            reply.append_to(out);
        });
    }

    fn on_ndp(
        &mut self,
        link: &Link<'_>,
        message: &Message,
        now: Timestamp,
        population: &Population,
        out: &mut Frames,
    ) {
        let is_for_us = is_group(link.dst) || population.has_mac(link.dst);
        if !is_for_us || is_own(link.src, population) {
            return;
        }
        if message.link.is_some_and(|mac| !is_host(mac)) || !is_host(link.src) {
            self.counts.malformed += 1;
            return;
        }
        match message.kind {
            Kind::Advertisement { overrides, .. } => {
                if population.has(message.target.into()) {
                    self.count_conflict(message.target.into(), population);
                } else {
                    self.on_advertisement(message, overrides, now);
                }
            }
            Kind::Solicitation => self.on_solicitation(link, message, now, population, out),
        }
    }

    /// Without the override flag an advertisement does not replace what is known (RFC 4861
    /// sec. 7.2.5); without the option it confirms it.
    fn on_advertisement(&mut self, message: &Message, overrides: bool, now: Timestamp) {
        let target = message.target.into();
        let known = self.hops.iter().find(|hop| hop.address == target);
        let Some(known) = known.map(|hop| hop.mac) else {
            return;
        };
        match (message.link, known) {
            (Some(mac), Some(old)) if mac != old && !overrides => {}
            (Some(mac), _) | (None, Some(mac)) => self.learn(target, mac, now),
            (None, None) => {}
        }
    }

    fn on_solicitation(
        &mut self,
        link: &Link<'_>,
        message: &Message,
        now: Timestamp,
        population: &Population,
        out: &mut Frames,
    ) {
        if population.has(message.src.into()) {
            self.count_conflict(message.src.into(), population);
            return;
        }
        if let Some(mac) = message.link {
            self.learn(message.src.into(), mac, now);
        }
        let Some(client) = population.find(message.target.into()) else {
            self.counts.not_ours += 1;
            return;
        };
        let group = ndp::solicited_node(message.target);
        if message.dst != group && message.dst != message.target {
            self.counts.malformed += 1;
            return;
        }
        // Who probes for a duplicate has no address yet: the answer goes to all (RFC 4861 sec. 7.2.4).
        let is_probe = message.src.is_unspecified();
        let (dst, dst_mac) = if is_probe {
            (ndp::ALL_NODES, ndp::group_mac(ndp::ALL_NODES))
        } else {
            (message.src, message.link.unwrap_or(link.src))
        };
        let mac = population.mac(client);
        let answer = Message {
            src: message.target,
            dst,
            kind: Kind::Advertisement {
                is_solicited: !is_probe,
                overrides: true,
            },
            target: message.target,
            link: Some(mac),
        };
        self.counts.answered += 1;
        out.push_with(|out| {
            arp::write(out, dst_mac, mac, population.vlan(), ndp::ETHERTYPE);
            answer.append_to(out);
        });
    }

    /// Somebody else speaks for a client: another station may, for its own.
    fn count_conflict(&mut self, address: IpAddr, population: &Population) {
        self.counts.conflicts += u64::from(population.find(address).is_some());
    }

    /// Takes the hardware address of a next hop; others are not kept.
    fn learn(&mut self, address: IpAddr, mac: [u8; 6], now: Timestamp) {
        if let Some(hop) = self.hops.iter_mut().find(|hop| hop.address == address) {
            if let Some(from) = hop.mac.filter(|old| *old != mac) {
                self.counts.moved += 1;
                self.last_move = Some(Moved {
                    address,
                    from,
                    to: mac,
                });
            }
            hop.heard(mac, now);
        }
    }
}

fn is_group(mac: [u8; 6]) -> bool {
    let [first, ..] = mac;
    first & 1 == 1
}

/// Whether a client sent it: a frame of ours that came back. With the interface's own hardware
/// address ([`MacPolicy::Interface`](crate::population::MacPolicy)) so does what the host asks.
fn is_own(mac: [u8; 6], population: &Population) -> bool {
    population.has_mac(mac)
}

/// Asks for the hardware address of a next hop, as a client.
fn ask(hop: IpAddr, question: Question, population: &Population, out: &mut Frames) {
    let Some(client) = population.any_like(hop) else {
        return;
    };
    let (mac, vlan) = (population.mac(client), population.vlan());
    let owner = match question {
        Question::Group => None,
        Question::Owner(mac) => Some(mac),
    };
    // Who does not answer for the client must not be taken for it: then the question is a probe, without
    // a sender (RFC 5227 sec. 2.1.1; RFC 4861 sec. 7.2.2, unspecified source).
    let is_probe = !population.answers();
    match (population.address(client), hop) {
        (IpAddr::V4(sender), IpAddr::V4(target)) => out.push_with(|out| {
            let sender = if is_probe {
                Ipv4Addr::UNSPECIFIED
            } else {
                sender
            };
            arp::write(out, owner.unwrap_or(BROADCAST), mac, vlan, arp::ETHERTYPE);
            let request = Arp {
                operation: Operation::Request,
                sender_mac: mac,
                sender,
                target_mac: owner.unwrap_or([0; 6]),
                target,
            };
            request.append_to(out);
        }),
        (IpAddr::V6(src), IpAddr::V6(target)) => out.push_with(|out| {
            let src = if is_probe { Ipv6Addr::UNSPECIFIED } else { src };
            let group: Ipv6Addr = ndp::solicited_node(target);
            let (dst, dst_mac) = match owner {
                Some(mac) => (target, mac),
                None => (group, ndp::group_mac(group)),
            };
            arp::write(out, dst_mac, mac, vlan, ndp::ETHERTYPE);
            let solicitation = Message {
                src,
                dst,
                kind: Kind::Solicitation,
                target,
                link: (!is_probe).then_some(mac),
            };
            solicitation.append_to(out);
        }),
        _ => {}
    }
}
