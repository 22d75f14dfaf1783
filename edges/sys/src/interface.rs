//! The network interfaces of the machine (of the network namespace of the caller).

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// What the kernel says of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its number; never given to another one while the system runs.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Hardware type, an `ARPHRD_*` value.
    pub hardware_type: u16,
    /// Hardware address, where it has one of six bytes.
    pub hardware_address: Option<[u8; 6]>,
    /// `IFF_*` flags.
    pub flags: u32,
    /// Addresses of IP, version 4 first as the kernel lists them.
    pub addresses: Vec<IpAddr>,
}

impl Interface {
    /// Whether it is up (set so by the administrator).
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.flags & libc::IFF_UP.cast_unsigned() != 0
    }

    /// Whether it has a link.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.flags & libc::IFF_RUNNING.cast_unsigned() != 0
    }

    /// Whether it is the loopback interface.
    #[must_use]
    pub const fn is_loopback(&self) -> bool {
        self.flags & libc::IFF_LOOPBACK.cast_unsigned() != 0
    }
}

/// The list of `getifaddrs`.
///
/// Invariant: the head of a list that `getifaddrs` made, freed once, on drop.
struct List(NonNull<libc::ifaddrs>);

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the head came from `getifaddrs` and is not used after this.
        unsafe { libc::freeifaddrs(self.0.as_ptr()) }
    }
}

/// All interfaces, in the order of their numbers.
///
/// # Errors
/// What `getifaddrs(3)` says.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut head = std::ptr::null_mut();
    // SAFETY: `head` is writable; the list is freed by `List`.
    if unsafe { libc::getifaddrs(&raw mut head) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let Some(head) = NonNull::new(head) else {
        return Ok(Vec::new());
    };
    let list = List(head);
    let mut found: Vec<Interface> = Vec::new();
    let mut addresses: Vec<(String, IpAddr)> = Vec::new();
    let mut next = Some(list.0);
    while let Some(entry) = next {
        // SAFETY: an entry of the list, which lives until `list` is dropped and is only read.
        let entry = unsafe { entry.as_ref() };
        next = NonNull::new(entry.ifa_next);
        // SAFETY: every entry has a name that ends in NUL and lives as long as the list.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        let name = name.to_string_lossy().into_owned();
        let Some(address) = NonNull::new(entry.ifa_addr) else {
            // One without a hardware address, as tunnels are.
            if !found.iter().any(|one| one.name == name)
                && let Some(index) = index_of(&name)
                && let Some(hardware_type) = hardware_type_of(&name)
            {
                found.push(Interface {
                    index,
                    name,
                    hardware_type,
                    hardware_address: None,
                    flags: entry.ifa_flags,
                    addresses: Vec::new(),
                });
            }
            continue;
        };
        // SAFETY: every address begins with its family; only that is read here.
        let family = unsafe { address.as_ref() }.sa_family;
        match i32::from(family) {
            libc::AF_PACKET => {
                // SAFETY: an address of this family is a `sockaddr_ll`.
                let link = unsafe { address.cast::<libc::sockaddr_ll>().as_ref() };
                let hardware = link.sll_addr.first_chunk::<6>();
                found.push(Interface {
                    index: link.sll_ifindex.cast_unsigned(),
                    name,
                    hardware_type: link.sll_hatype,
                    hardware_address: hardware.copied().filter(|_| link.sll_halen == 6),
                    flags: entry.ifa_flags,
                    addresses: Vec::new(),
                });
            }
            libc::AF_INET => {
                // SAFETY: an address of this family is a `sockaddr_in`.
                let inet = unsafe { address.cast::<libc::sockaddr_in>().as_ref() };
                let bits = u32::from_be(inet.sin_addr.s_addr);
                addresses.push((name, IpAddr::V4(Ipv4Addr::from_bits(bits))));
            }
            libc::AF_INET6 => {
                // SAFETY: an address of this family is a `sockaddr_in6`.
                let inet = unsafe { address.cast::<libc::sockaddr_in6>().as_ref() };
                let bytes = inet.sin6_addr.s6_addr;
                addresses.push((name, IpAddr::V6(Ipv6Addr::from(bytes))));
            }
            _ => {}
        }
    }
    for (name, address) in addresses {
        // A label (`eth0:1`) belongs to the interface before the colon.
        let owner = name.split(':').next().unwrap_or(&name);
        if let Some(interface) = found.iter_mut().find(|one| one.name == owner) {
            interface.addresses.push(address);
        }
    }
    found.sort_by_key(|one| one.index);
    Ok(found)
}

/// The number of the interface with this name.
#[must_use]
pub fn index_of(name: &str) -> Option<u32> {
    let socket = any_socket().ok()?;
    rustix::net::netdevice::name_to_index(&socket, name).ok()
}

/// The name that the interface with this number has now.
#[must_use]
pub fn name_of(index: u32) -> Option<String> {
    let socket = any_socket().ok()?;
    rustix::net::netdevice::index_to_name(&socket, index).ok()
}

/// The hardware type of the interface with this name, an `ARPHRD_*` value.
fn hardware_type_of(name: &str) -> Option<u16> {
    let mut request = request(name)?;
    ioctl(libc::SIOCGIFHWADDR, &mut request).ok()?;
    // SAFETY: the answer to this request is this member.
    Some(unsafe { request.ifr_ifru.ifru_hwaddr }.sa_family)
}

/// The longest packet of the interface with this name, in bytes without the link header.
#[must_use]
pub fn mtu_of(name: &str) -> Option<u32> {
    let mut request = request(name)?;
    ioctl(libc::SIOCGIFMTU, &mut request).ok()?;
    // SAFETY: the answer to this request is this member.
    u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).ok()
}

/// `struct ethtool_channels` of `linux/ethtool.h`.
#[repr(C)]
struct Channels {
    command: u32,
    at_most: [u32; 4],
    receiving: u32,
    sending: u32,
    other: u32,
    combined: u32,
}

/// Number of receive queues of the interface with this name; 1 where the driver does not tell.
#[must_use]
pub fn receive_queues_of(name: &str) -> u32 {
    const SIOCETHTOOL: libc::Ioctl = 0x8946;
    const GET_CHANNELS: u32 = 0x3c;
    let mut channels = Channels {
        command: GET_CHANNELS,
        at_most: [0; 4],
        receiving: 0,
        sending: 0,
        other: 0,
        combined: 0,
    };
    let Some(mut request) = request(name) else {
        return 1;
    };
    request.ifr_ifru.ifru_data = (&raw mut channels).cast();
    match ioctl(SIOCETHTOOL, &mut request) {
        Ok(()) => channels.receiving.saturating_add(channels.combined).max(1),
        Err(_) => 1,
    }
}

/// `struct hwtstamp_config` of `linux/net_tstamp.h`.
#[repr(C)]
struct StampConfig {
    flags: i32,
    sent: i32,
    received: i32,
}

/// Has the network card stamp every frame that it receives.
///
/// # Errors
/// What the driver says; `PermissionDenied` without `CAP_NET_ADMIN`.
pub fn enable_hardware_stamps(name: &str) -> io::Result<()> {
    const SIOCSHWTSTAMP: libc::Ioctl = 0x89b0;
    const EVERY_FRAME: i32 = 1;
    let mut config = StampConfig {
        flags: 0,
        sent: 0,
        received: EVERY_FRAME,
    };
    let mut request = request(name).ok_or(io::ErrorKind::InvalidInput)?;
    request.ifr_ifru.ifru_data = (&raw mut config).cast();
    ioctl(SIOCSHWTSTAMP, &mut request)?;
    if config.received == EVERY_FRAME {
        Ok(())
    } else {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A request about the interface with this name; nothing where no interface can have it.
fn request(name: &str) -> Option<libc::ifreq> {
    // SAFETY: a structure of integers and one pointer, for all of which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.get_mut(..libc::IFNAMSIZ - 1)?;
    if name.len() > room.len() {
        return None;
    }
    for (to, from) in room.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    Some(request)
}

/// Asks the kernel; the pointer in the request, where one is used, must be good for the call.
fn ioctl(what: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    let socket = any_socket()?;
    let request: *mut libc::ifreq = request;
    // SAFETY: `request` is a whole `ifreq`, whose name ends in NUL.
    if unsafe { libc::ioctl(socket.as_raw_fd(), what, request) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn any_socket() -> rustix::io::Result<std::os::fd::OwnedFd> {
    rustix::net::socket_with(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::DGRAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_there() {
        let all = interfaces().unwrap();
        let lo = all.iter().find(|one| one.name == "lo").unwrap();
        assert!(lo.is_loopback());
        assert_eq!(lo.hardware_type, libc::ARPHRD_LOOPBACK);
        assert_eq!(index_of("lo"), Some(lo.index));
        assert_eq!(name_of(lo.index).as_deref(), Some("lo"));
        assert!(mtu_of("lo").unwrap() > 1000);
        assert_eq!(mtu_of("no-such-one"), None);
        assert_eq!(index_of("no-such-one"), None);
        assert_eq!(name_of(u32::MAX / 2), None);
        assert_eq!(hardware_type_of("lo"), Some(libc::ARPHRD_LOOPBACK));
    }
}
