//! The way to a target by the routes of this network namespace, and what of this host could get in the
//! way of emulated clients.
//!
//! The frames of a run do not pass the routes of the kernel: they leave by the interface of the run,
//! and the next hop is all that is to be known.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linkweir_sys::interface;

/// A route of the main table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Name of the interface.
    pub interface: String,
    /// First address of the prefix.
    pub prefix: IpAddr,
    /// Its length in bits.
    pub len: u8,
    /// The router; `None` where the addresses are on the link.
    pub gateway: Option<IpAddr>,
    /// Of two routes of one length the lesser goes.
    pub metric: u32,
}

/// Who has to be asked to reach a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Whether that is the target itself.
    pub is_on_link: bool,
    /// Whose hardware address the frames have.
    pub next_hop: IpAddr,
}

impl Target {
    /// The way to an address through an interface: by its longest route. `None` where the interface has
    /// no route to it.
    #[must_use]
    pub fn find(routes: &[Route], interface: &str, address: IpAddr) -> Option<Self> {
        let through = routes
            .iter()
            .filter(|route| route.interface == interface && route.leads_to(address));
        // The first of equals, as the kernel takes it.
        let best = through.min_by_key(|route| (u8::MAX - route.len, route.metric))?;
        Some(Self {
            is_on_link: best.gateway.is_none(),
            next_hop: best.gateway.unwrap_or(address),
        })
    }
}

impl Route {
    fn leads_to(&self, address: IpAddr) -> bool {
        match (self.prefix, address) {
            (IpAddr::V4(prefix), IpAddr::V4(address)) => {
                let differ = prefix.to_bits() ^ address.to_bits();
                differ.leading_zeros() >= u32::from(self.len)
            }
            (IpAddr::V6(prefix), IpAddr::V6(address)) => {
                let differ = prefix.to_bits() ^ address.to_bits();
                differ.leading_zeros() >= u32::from(self.len)
            }
            _ => false,
        }
    }
}

/// All routes of both versions.
///
/// # Errors
/// Where the system does not show them.
pub fn routes() -> io::Result<Vec<Route>> {
    let mut routes = routes_v4(&std::fs::read_to_string("/proc/thread-self/net/route")?);
    // A kernel without IPv6 has no such file.
    if let Ok(text) = std::fs::read_to_string("/proc/thread-self/net/ipv6_route") {
        routes.extend(routes_v6(&text));
    }
    Ok(routes)
}

/// `RTF_UP`, `RTF_GATEWAY`, `RTF_REJECT`, `RTF_LOCAL` (`linux/route.h`, `linux/ipv6_route.h`).
const UP: u32 = 1;
const GATEWAY: u32 = 2;
const REJECT: u32 = 0x200;
const LOCAL: u32 = 0x8000_0000;

/// The table of `/proc/net/route`: interface, destination, gateway, flags, two counters, metric, mask.
/// Addresses are words in the order of the machine.
fn routes_v4(text: &str) -> Vec<Route> {
    let route = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let &[interface, prefix, gateway, flags, _, _, metric, mask, ..] = fields.as_slice() else {
            return None;
        };
        let word = |text| u32::from_str_radix(text, 16).ok();
        let address = |text| Some(Ipv4Addr::from(word(text)?.to_ne_bytes()));
        let flags = word(flags)?;
        let mask = address(mask)?.to_bits();
        (flags & UP != 0 && flags & REJECT == 0).then_some(Route {
            interface: interface.to_owned(),
            prefix: address(prefix)?.into(),
            len: u8::try_from(mask.leading_ones()).ok()?,
            gateway: match flags & GATEWAY {
                0 => None,
                _ => Some(address(gateway)?.into()),
            },
            metric: metric.parse().ok()?,
        })
    };
    text.lines().skip(1).filter_map(route).collect()
}

/// The table of `/proc/net/ipv6_route`: destination, its length, source, its length, next hop, metric,
/// two counters, flags, interface. All numbers are hexadecimal.
fn routes_v6(text: &str) -> Vec<Route> {
    let route = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let &[
            prefix,
            len,
            _,
            source_len,
            hop,
            metric,
            _,
            _,
            flags,
            interface,
        ] = fields.as_slice()
        else {
            return None;
        };
        let word = |text| u32::from_str_radix(text, 16).ok();
        let address = |text| Some(Ipv6Addr::from_bits(u128::from_str_radix(text, 16).ok()?));
        let flags = word(flags)?;
        // Routes by source are for hosts with several uplinks; they do not say where all frames go.
        let is_usable = flags & UP != 0 && flags & (REJECT | LOCAL) == 0 && word(source_len)? == 0;
        is_usable.then_some(Route {
            interface: interface.to_owned(),
            prefix: address(prefix)?.into(),
            len: u8::try_from(word(len)?).ok()?,
            gateway: match flags & GATEWAY {
                0 => None,
                _ => Some(address(hop)?.into()),
            },
            metric: word(metric)?,
        })
    };
    text.lines().filter_map(route).collect()
}

/// The addresses of this host in this network namespace: no client may have one of them.
///
/// # Errors
/// Where the system does not tell.
pub fn own_addresses() -> io::Result<Vec<IpAddr>> {
    let all = interface::interfaces()?;
    Ok(all.into_iter().flat_map(|one| one.addresses).collect())
}

/// What the kernel would do with frames for others on an interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostSettings {
    /// It sends IPv4 packets on.
    pub forwards_v4: bool,
    /// It sends IPv6 packets on.
    pub forwards_v6: bool,
    /// It answers ARP for others.
    pub proxy_arp: bool,
    /// It answers neighbour discovery for others.
    pub proxy_ndp: bool,
}

impl HostSettings {
    /// Those of an interface. What the system does not tell is off.
    #[must_use]
    pub fn read(interface: &str) -> Self {
        let is_on = |version: &str, setting: &str| {
            let path = format!("/proc/sys/net/{version}/conf/{interface}/{setting}");
            std::fs::read_to_string(path).is_ok_and(|text| text.trim() != "0")
        };
        Self {
            forwards_v4: is_on("ipv4", "forwarding"),
            forwards_v6: is_on("ipv6", "forwarding"),
            proxy_arp: is_on("ipv4", "proxy_arp"),
            proxy_ndp: is_on("ipv6", "proxy_ndp"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        eth0\t00000000\t0100500A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
        eth0\t0000500A\t00000000\t0001\t0\t0\t100\t0000FFFF\t0\t0\t0\n\
        eth0\t0000A8C0\t0200500A\t0003\t0\t0\t50\t0000FFFF\t0\t0\t0\n\
        eth0\t0000A8C0\t0300500A\t0003\t0\t0\t20\t0000FFFF\t0\t0\t0\n\
        eth1\t0001500A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
        *\t000010AC\t00000000\t0201\t0\t0\t0\t0000FFFF\t0\t0\t0\n\
        nonsense\n";

    const V6: &str = "\
fd008000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0
fd008000000000000000000000000011 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000002 00000000 80200001     eth0
fd990000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
";

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// The words of the table are as a machine of the other order has them.
    fn of_this_machine(text: &str) -> Vec<Route> {
        if cfg!(target_endian = "little") {
            routes_v4(text)
        } else {
            Vec::new()
        }
    }

    #[test]
    fn the_longest_route_of_the_interface_leads_to_a_target() {
        let routes = of_this_machine(V4);
        if routes.is_empty() {
            return;
        }
        assert_eq!(
            routes.len(),
            5,
            "those that are rejected or no routes are left out"
        );
        let way = |interface, to| {
            Target::find(&routes, interface, ip(to)).map(|way| (way.is_on_link, way.next_hop))
        };
        assert_eq!(way("eth0", "10.80.3.4"), Some((true, ip("10.80.3.4"))));
        assert_eq!(way("eth0", "192.0.2.1"), Some((false, ip("10.80.0.1"))));
        assert_eq!(
            way("eth0", "192.168.9.9"),
            Some((false, ip("10.80.0.3"))),
            "the lesser metric"
        );
        assert_eq!(way("eth1", "10.80.1.4"), Some((true, ip("10.80.1.4"))));
        assert_eq!(way("eth1", "192.0.2.1"), None);
        assert_eq!(way("eth0", "fd00::1"), None);
    }

    #[test]
    fn routes_of_ipv6_are_read() {
        let routes = routes_v6(V6);
        assert_eq!(routes.len(), 2);
        let way = |to| Target::find(&routes, "eth0", ip(to)).map(|way| way.next_hop);
        assert_eq!(way("fd00:8000::11"), Some(ip("fd00:8000::11")));
        assert_eq!(way("2001:db8::1"), Some(ip("fe80::1")));
    }

    #[test]
    fn this_host_is_read() {
        let own = own_addresses().unwrap();
        routes().unwrap();
        assert!(own.iter().all(|address| !address.is_multicast()));
        assert_eq!(HostSettings::read("no-such-one"), HostSettings::default());
    }
}
