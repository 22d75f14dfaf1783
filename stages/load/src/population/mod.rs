//! The clients: their addresses, hardware addresses and lines, and which of them a session has.
//!
//! A client is a number ([`Client`]); all there is of it is computed from that number, so that a
//! million clients take no more memory than one. What is kept is a list of ranges of addresses, one
//! for each prefix and more where an address is left out or a group begins.

mod mac;
mod profile;
mod range;
mod sampler;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use linkweir_record::Prefix;

pub use mac::MacPolicy;
pub use profile::{Direction, Group, Profile};

use crate::seam::Client;
use mac::Macs;
use range::Range;
use sampler::Sampler;

/// What a population is made of.
#[derive(Debug, Clone, Default)]
pub struct PopulationOptions {
    /// Prefixes whose addresses are clients. Of IPv4 prefixes up to /30 the first and the last address
    /// are left out (network and broadcast), of IPv6 prefixes up to /126 the first (anycast of the
    /// routers).
    pub clients: Vec<Prefix>,
    /// Addresses in these prefixes that are no clients: those of the server, the gateway, this host.
    pub exclude: Vec<IpAddr>,
    /// The line of clients that are in no group.
    pub profile: Profile,
    /// Shares of the population with lines of their own.
    pub groups: Vec<Group>,
    /// Which hardware addresses clients have.
    pub mac: MacPolicy,
    /// Hardware address of the interface.
    pub interface_mac: [u8; 6],
    /// VLAN of all frames, 1 to 4094; `None` is untagged.
    pub vlan: Option<u16>,
    /// Draws the order of clients and the virtual hardware address.
    pub seed: u64,
    /// Which of several generators this is.
    pub station: Station,
}

/// One of several generators that share the clients of a population on one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Station {
    /// Its number, below `of`. Virtual hardware addresses differ from station to station.
    pub index: u32,
    /// How many there are. Each has the clients whose numbers leave its index, and sessions likewise.
    pub of: u32,
    /// Whether it speaks for its clients: one that does not only sends the first SYNs of sessions
    /// which another host takes over (paper Fig. 1).
    pub answers: bool,
}

impl Default for Station {
    /// The only one.
    fn default() -> Self {
        Self {
            index: 0,
            of: 1,
            answers: true,
        }
    }
}

/// Why there cannot be such a population.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PopulationError {
    /// No address is left.
    #[error("there is no client address (the server, the router and this host are no clients)")]
    Empty,
    /// More than 2^31 with this prefix.
    #[error("more than 2147483648 clients with {0}: take a longer prefix")]
    TooMany(Prefix),
    /// Two prefixes hold the same address.
    #[error("the client prefixes {0} and {1} overlap")]
    Overlap(Prefix, Prefix),
    /// A prefix holds addresses that no host can have.
    #[error("no host can have all addresses of {0}: {1} is reserved")]
    Unusable(Prefix, Prefix),
    /// A group whose prefixes hold no client.
    #[error("the group {0:?} has no clients: its prefixes are parts of those of the clients")]
    EmptyGroup(String),
    /// Two groups of one name, or one that is called as the rest is.
    #[error("there are two groups of the name {0:?}")]
    DoubleGroup(String),
    /// More groups than have numbers.
    #[error("there are more than {} groups", Population::MAX_GROUPS)]
    TooManyGroups,
    /// A line that cannot be.
    #[error("the group {0:?}: {1}")]
    Profile(String, &'static str),
    /// A number that is not a VLAN.
    #[error("{0} is no VLAN: 1 to 4094")]
    Vlan(u16),
    /// A station without a client.
    #[error("{0} clients are too few for {1} generators")]
    TooFew(u32, u32),
}

/// The clients.
#[derive(Debug, Clone, PartialEq)]
pub struct Population {
    /// In the order of the clients.
    ranges: Vec<Range>,
    /// The same in the order of addresses.
    by_address: Vec<Range>,
    count: u32,
    /// The rest first.
    groups: Vec<Group>,
    macs: Macs,
    vlans: Vec<u16>,
    sampler: Sampler,
    station: Station,
}

impl Population {
    /// Name of the group of all clients that are in no other.
    pub const REST: &str = "default";
    /// The most groups beside that of the rest.
    pub const MAX_GROUPS: usize = 1000;

    /// The population of these options.
    ///
    /// # Errors
    /// Where it would be empty, ambiguous, too large, or a value of the options cannot be.
    pub fn new(options: &PopulationOptions) -> Result<Self, PopulationError> {
        if let Some(vlan) = options.vlan
            && !(1..=4094).contains(&vlan)
        {
            return Err(PopulationError::Vlan(vlan));
        }
        let groups = groups(options)?;
        let named = groups.get(1..).unwrap_or_default();
        let (ranges, count) = range::ranges(&options.clients, &options.exclude, named)?;
        for (number, group) in (1_u16..).zip(named) {
            if !ranges.iter().any(|range| range.group == number) {
                return Err(PopulationError::EmptyGroup(group.name.clone()));
            }
        }
        let mut by_address = ranges.clone();
        by_address.sort_unstable_by_key(|range| range.first);
        let station = options.station;
        // How many are this station's.
        let own = count
            .saturating_sub(station.index)
            .div_ceil(station.of.max(1));
        if own == 0 || station.index >= station.of {
            return Err(PopulationError::TooFew(count, station.of));
        }
        let number = u64::from(station.index) << 1 | u64::from(!station.answers);
        let mac_seed = options.seed ^ number << 32;
        Ok(Self {
            ranges,
            by_address,
            count,
            groups,
            macs: Macs::new(options.mac, options.interface_mac, count, mac_seed),
            vlans: options.vlan.into_iter().collect(),
            sampler: Sampler::new(own, options.seed),
            station,
        })
    }

    /// How many clients there are: 1 to 2^31. Their numbers are `0..len`.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.count
    }

    /// Never: there is at least one client.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline]
    fn range(&self, client: Client) -> Option<&Range> {
        let behind = self.ranges.partition_point(|range| range.base <= client);
        self.ranges.get(behind.saturating_sub(1))
    }

    /// The address of a client. Numbers from `len` on are nobody's: theirs has no meaning.
    #[inline]
    #[must_use]
    pub fn address(&self, client: Client) -> IpAddr {
        self.range(client)
            .map_or(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), |range| {
                range.address(client)
            })
    }

    /// Whether this station speaks for a client.
    #[inline]
    const fn is_own(&self, client: Client) -> bool {
        self.station.answers && client % self.station.of == self.station.index
    }

    /// Whether this station speaks for its clients.
    #[must_use]
    pub const fn answers(&self) -> bool {
        self.station.answers
    }

    /// Whether an address is that of a client, of this station or another.
    #[must_use]
    pub fn has(&self, address: IpAddr) -> bool {
        self.find_any(address).is_some()
    }

    /// The client that has this address; `None` where it is nobody's that this station speaks for.
    #[inline]
    #[must_use]
    pub fn find(&self, address: IpAddr) -> Option<Client> {
        self.find_any(address).filter(|client| self.is_own(*client))
    }

    #[inline]
    fn find_any(&self, address: IpAddr) -> Option<Client> {
        let key = range::key(address);
        let behind = self.by_address.partition_point(|range| range.first <= key);
        self.by_address.get(behind.checked_sub(1)?)?.client(key)
    }

    /// A client of this station that has an address of the version of `remote`: who asks for its
    /// hardware address.
    #[must_use]
    pub fn any_like(&self, remote: IpAddr) -> Option<Client> {
        let Station { index, of, .. } = self.station;
        let is_like = |client: &Client| self.address(*client).is_ipv4() == remote.is_ipv4();
        self.ranges
            .iter()
            // The first of the range that is ours.
            .map(|range| (range, range.base.next_multiple_of(of).saturating_add(index)))
            .filter(|(range, client)| u128::from(client - range.base) <= range.last - range.first)
            .map(|(_, client)| client)
            .find(is_like)
    }

    /// The hardware address of a client.
    #[inline]
    #[must_use]
    pub fn mac(&self, client: Client) -> [u8; 6] {
        self.macs.of(client)
    }

    /// Whether a hardware address is that of a client, or of all of them.
    #[inline]
    #[must_use]
    pub fn has_mac(&self, mac: [u8; 6]) -> bool {
        self.macs.has(mac)
    }

    /// The client that has this hardware address for itself ([`MacPolicy::PerClient`]).
    #[must_use]
    pub fn find_mac(&self, mac: [u8; 6]) -> Option<Client> {
        self.macs.find(mac)
    }

    /// VLAN of all frames.
    #[must_use]
    pub fn vlan(&self) -> Option<u16> {
        self.vlans.first().copied()
    }

    /// The same as [`TcpFrame`](linkweir_wire::emit::TcpFrame) takes it.
    #[must_use]
    pub fn vlans(&self) -> &[u16] {
        &self.vlans
    }

    /// The number of a client's group, an index into [`groups`](Self::groups).
    #[inline]
    #[must_use]
    pub fn group(&self, client: Client) -> u16 {
        self.range(client).map_or(0, |range| range.group)
    }

    /// All groups; the first is [`REST`](Self::REST), which may be without clients.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// How many clients a group has.
    #[must_use]
    pub fn group_len(&self, group: u16) -> u32 {
        let ranges = self.ranges.iter().filter(|range| range.group == group);
        ranges
            .map(|range| u32::try_from(range.last - range.first + 1).unwrap_or(0))
            .sum()
    }

    /// The line of a client.
    #[inline]
    #[must_use]
    pub fn profile(&self, client: Client) -> &Profile {
        self.groups
            .get(usize::from(self.group(client)))
            .map_or(&PLAIN, |group| &group.profile)
    }

    /// The client of session number `session`: all clients of the station come once before one comes
    /// again, in an order that looks random and is that of the seed. Session k is station (k mod n)'s.
    #[inline]
    #[must_use]
    pub fn pick(&self, session: u64) -> Client {
        let Station { index, of, .. } = self.station;
        self.sampler.pick(session / u64::from(of)) * of + index
    }
}

/// A host on the link.
static PLAIN: Profile = {
    const DIRECTION: Direction = Direction {
        bits_per_second: None,
        queue: std::time::Duration::ZERO,
        loss: 0.0,
        burst: 1.0,
    };
    Profile {
        rtt: std::time::Duration::ZERO,
        jitter: std::time::Duration::ZERO,
        reorder: false,
        up: DIRECTION,
        down: DIRECTION,
        ttl: 64,
        mtu: None,
    }
};

/// The group of the rest and those of the options, checked.
fn groups(options: &PopulationOptions) -> Result<Vec<Group>, PopulationError> {
    if options.groups.len() > Population::MAX_GROUPS {
        return Err(PopulationError::TooManyGroups);
    }
    let mut groups = vec![Group {
        name: Population::REST.to_owned(),
        members: Vec::new(),
        profile: options.profile,
    }];
    groups.extend(options.groups.iter().cloned());
    let mut names = std::collections::BTreeSet::new();
    for group in &groups {
        if !names.insert(group.name.as_str()) {
            return Err(PopulationError::DoubleGroup(group.name.clone()));
        }
        let checked = group.profile.check();
        checked.map_err(|why| PopulationError::Profile(group.name.clone(), why))?;
    }
    Ok(groups)
}
