//! Neighbour discovery of IPv6: solicitations and advertisements.
//!
//! Source: RFC 4861 sec. 4.3, 4.4, 7.1; RFC 4291 sec. 2.7.1 (solicited-node address); RFC 2464
//! sec. 7 (hardware addresses of groups).

use std::net::Ipv6Addr;

use linkweir_wire::checksum::{self, Sum};

/// The Ethernet type of IPv6.
pub(super) const ETHERTYPE: u16 = 0x86dd;

/// All nodes of the link.
pub(super) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

const ICMPV6: u8 = 58;
/// Only the link itself can have sent a packet that still has it (RFC 4861 sec. 7.1).
const HOP_LIMIT: u8 = 255;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const SOURCE_LINK: u8 = 1;
const TARGET_LINK: u8 = 2;
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;
/// Type, code, checksum, flags, target.
const BODY: usize = 24;

/// Whether a message asks or tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Asks for the target's hardware address.
    Solicitation,
    /// Tells it.
    Advertisement {
        /// It answers a solicitation.
        is_solicited: bool,
        /// It replaces what is known.
        overrides: bool,
    },
}

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) src: Ipv6Addr,
    pub(super) dst: Ipv6Addr,
    pub(super) kind: Kind,
    pub(super) target: Ipv6Addr,
    /// The link-layer address option: of the sender in a solicitation, of the target in an
    /// advertisement.
    pub(super) link: Option<[u8; 6]>,
}

/// What a packet of IPv6 is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// Not of this protocol.
    Other,
    /// Of it, but not valid (RFC 4861 sec. 7.1.1, 7.1.2): must be ignored.
    Invalid,
    /// Valid.
    Message(Message),
}

/// Reads a packet of IPv6. Extension headers are not looked behind: no host puts any before these
/// messages, and fragments are forbidden (RFC 6980).
#[inline]
pub(super) fn read(packet: &[u8]) -> Read {
    let Some((header, rest)) = packet.split_first_chunk::<40>() else {
        return Read::Other;
    };
    let is_ours = header.first().is_some_and(|first| first >> 4 == 6)
        && header.get(6) == Some(&ICMPV6)
        && matches!(rest.first(), Some(&(SOLICITATION | ADVERTISEMENT)));
    if !is_ours {
        return Read::Other;
    }
    checked(header, rest).map_or(Read::Invalid, Read::Message)
}

fn checked(header: &[u8; 40], rest: &[u8]) -> Option<Message> {
    let [_, _, _, _, len_high, len_low, _, hop_limit, addresses @ ..] = header;
    let (&src, dst) = addresses.split_first_chunk::<16>()?;
    let (src, dst) = (
        Ipv6Addr::from(src),
        Ipv6Addr::from(*dst.first_chunk::<16>()?),
    );
    let len = u16::from_be_bytes([*len_high, *len_low]);
    let body = rest.get(..usize::from(len))?;
    let sum = Sum::new().pseudo_header(src.into(), dst.into(), ICMPV6, len.into());
    if *hop_limit != HOP_LIMIT || sum.bytes(body).finish() != 0 {
        return None;
    }
    let (&[kind, code, _, _, flags, _, _, _], body) = body.split_first_chunk::<8>()?;
    let (&target, options) = body.split_first_chunk::<16>()?;
    let target = Ipv6Addr::from(target);
    if code != 0 || target.is_multicast() {
        return None;
    }
    let (kind, wanted) = if kind == SOLICITATION {
        (Kind::Solicitation, SOURCE_LINK)
    } else {
        let kind = Kind::Advertisement {
            is_solicited: flags & SOLICITED != 0,
            overrides: flags & OVERRIDE != 0,
        };
        (kind, TARGET_LINK)
    };
    let link = option(options, wanted)?;
    let is_valid = match kind {
        // A probe for a duplicate is sent to the group and names no sender.
        Kind::Solicitation if src.is_unspecified() => {
            link.is_none() && dst == solicited_node(target)
        }
        Kind::Solicitation => true,
        Kind::Advertisement { is_solicited, .. } => !(is_solicited && dst.is_multicast()),
    };
    is_valid.then_some(Message {
        src,
        dst,
        kind,
        target,
        link,
    })
}

/// The Ethernet address in the first option of a type. `None` where an option has no length or is cut.
#[expect(
    clippy::option_option,
    reason = "not valid, valid without, valid with one"
)]
fn option(mut options: &[u8], wanted: u8) -> Option<Option<[u8; 6]>> {
    let mut found = None;
    while let Some((&[kind, units], _)) = options.split_first_chunk::<2>() {
        let (one, behind) = options.split_at_checked(usize::from(units) * 8)?;
        let value = one.get(2..)?;
        if kind == wanted && found.is_none() {
            found = value.first_chunk::<6>().copied();
        }
        options = behind;
    }
    options.is_empty().then_some(found)
}

impl Message {
    /// Appends the packet.
    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        let (kind, flags, option) = match self.kind {
            Kind::Solicitation => (SOLICITATION, 0, SOURCE_LINK),
            Kind::Advertisement {
                is_solicited,
                overrides,
            } => {
                let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
                let flags = bit(is_solicited, SOLICITED) | bit(overrides, OVERRIDE);
                (ADVERTISEMENT, flags, TARGET_LINK)
            }
        };
        let len: u8 = if self.link.is_some() { 32 } else { 24 };
        out.extend_from_slice(&[0x60, 0, 0, 0, 0, len, ICMPV6, HOP_LIMIT]);
        out.extend_from_slice(&self.src.octets());
        out.extend_from_slice(&self.dst.octets());
        let start = out.len();
        out.extend_from_slice(&[kind, 0, 0, 0, flags, 0, 0, 0]);
        out.extend_from_slice(&self.target.octets());
        debug_assert_eq!(
            out.len(),
            start + BODY,
            "type, code, checksum, flags, target"
        );
        if let Some(mac) = self.link {
            out.extend_from_slice(&[option, 1]);
            out.extend_from_slice(&mac);
        }
        let body = out.get(start..).unwrap_or_default();
        let sum = checksum::of_segment(self.src.into(), self.dst.into(), ICMPV6, body);
        if let Some(field) = out.get_mut(start + 2..start + 4) {
            field.copy_from_slice(&sum.to_be_bytes());
        }
    }
}

/// The group that a host joins for its address.
pub(super) const fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::new(
        0xff02,
        0,
        0,
        0,
        0,
        1,
        0xff00 | a as u16,
        u16::from_be_bytes([b, c]),
    )
}

/// The hardware address of a group.
pub(super) const fn group_mac(group: Ipv6Addr) -> [u8; 6] {
    let [.., a, b, c, d] = group.octets();
    [0x33, 0x33, a, b, c, d]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ip(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    fn solicitation() -> Message {
        Message {
            src: ip("fd00::1"),
            dst: solicited_node(ip("fd00::12:3456")),
            kind: Kind::Solicitation,
            target: ip("fd00::12:3456"),
            link: Some([2, 0, 0, 0, 0, 1]),
        }
    }

    fn bytes(message: &Message) -> Vec<u8> {
        let mut out = Vec::new();
        message.append_to(&mut out);
        out
    }

    /// The packet with changes and a checksum that holds again.
    fn changed(message: &Message, change: impl FnOnce(&mut Vec<u8>)) -> Read {
        let mut out = bytes(message);
        change(&mut out);
        out[42..44].fill(0);
        let sum = checksum::of_segment(message.src.into(), message.dst.into(), ICMPV6, &out[40..]);
        out[42..44].copy_from_slice(&sum.to_be_bytes());
        read(&out)
    }

    #[test]
    fn groups_of_an_address() {
        // RFC 4291 sec. 2.7.1 has this example.
        let group = solicited_node(ip("4037::01:800:200e:8c6c"));
        assert_eq!(group, ip("ff02::1:ff0e:8c6c"));
        assert_eq!(group_mac(group), [0x33, 0x33, 0xff, 0x0e, 0x8c, 0x6c]);
        assert_eq!(group_mac(ALL_NODES), [0x33, 0x33, 0, 0, 0, 1]);
    }

    #[test]
    fn what_is_written_is_read() {
        let advertisement = Message {
            kind: Kind::Advertisement {
                is_solicited: true,
                overrides: false,
            },
            dst: ip("fd00::7"),
            ..solicitation()
        };
        let probe = Message {
            src: Ipv6Addr::UNSPECIFIED,
            link: None,
            ..solicitation()
        };
        for message in [solicitation(), advertisement, probe] {
            assert_eq!(read(&bytes(&message)), Read::Message(message));
        }
    }

    #[test]
    fn what_the_rfc_forbids_is_invalid() {
        let good = solicitation();
        assert_eq!(changed(&good, |_| {}), Read::Message(good));
        assert_eq!(
            changed(&good, |out| out[7] = 254),
            Read::Invalid,
            "from behind a router"
        );
        assert_eq!(changed(&good, |out| out[41] = 1), Read::Invalid, "code");
        assert_eq!(
            changed(&good, |out| out[48] = 0xff),
            Read::Invalid,
            "a group as target"
        );
        assert_eq!(
            changed(&good, |out| out[65] = 0),
            Read::Invalid,
            "an option without length"
        );
        assert_eq!(
            changed(&good, |out| out[65] = 2),
            Read::Invalid,
            "an option that is cut"
        );
        let mut wrong = bytes(&good);
        wrong[43] ^= 1;
        assert_eq!(read(&wrong), Read::Invalid, "checksum");
        assert_eq!(read(&bytes(&good)[..71]), Read::Invalid, "cut");
        let probe = Message {
            src: Ipv6Addr::UNSPECIFIED,
            ..good
        };
        assert_eq!(
            read(&bytes(&probe)),
            Read::Invalid,
            "a probe that names its sender"
        );
        let shouted = Message {
            kind: Kind::Advertisement {
                is_solicited: true,
                overrides: true,
            },
            dst: ALL_NODES,
            ..good
        };
        assert_eq!(
            read(&bytes(&shouted)),
            Read::Invalid,
            "an answer to a group"
        );
        let mut echo = bytes(&good);
        echo[40] = 128;
        assert_eq!(read(&echo), Read::Other);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut packet in prop::collection::vec(any::<u8>(), 0..120), is_near: bool) {
            if is_near {
                let mut near = bytes(&solicitation());
                for pair in packet.chunks_exact(2) {
                    let at = usize::from(pair[0]) % near.len();
                    near[at] = pair[1];
                }
                packet = near;
            }
            if let Read::Message(message) = read(&packet) {
                prop_assert!(!message.target.is_multicast());
            }
        }
    }
}
