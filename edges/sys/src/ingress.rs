//! Frames that the stack of this machine is not to see, dropped where they would enter it: behind the packet
//! sockets, which have them all the same, and before IP.
//!
//! Source: `Documentation/bpf/libbpf/program_types.rst` of Linux (`tcx/ingress`, Linux 6.6), `linux/bpf.h`.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use crate::ebpf::{self, Extended, op};

/// Packets that are dropped: those from one address to any of these prefixes.
#[derive(Debug, Clone, Copy)]
pub struct Unwanted<'a> {
    /// Who sends them.
    pub source: IpAddr,
    /// First address and length in bits; those of the other version of IP do not count.
    pub destinations: &'a [(IpAddr, u8)],
    /// Addresses in them that are not meant.
    pub except: &'a [IpAddr],
}

/// The program on an interface; gone with this value, or the process.
#[derive(Debug)]
pub struct IngressDrop {
    _link: OwnedFd,
}

/// Addresses that a program may name: each is looked at for each frame.
const ADDRESSES: usize = 64;

impl IngressDrop {
    /// Drops what is unwanted at an interface from now on.
    ///
    /// # Errors
    /// What the kernel says: `PermissionDenied` without `CAP_NET_ADMIN` and `CAP_BPF`, `InvalidInput` before Linux
    /// 6.6 and where there are more than 64 addresses.
    pub fn attach(interface: u32, unwanted: &Unwanted<'_>) -> io::Result<Self> {
        const SCHED_CLS: u32 = 3;
        const TCX_INGRESS: u32 = 46;
        let program = program(unwanted).ok_or(io::ErrorKind::InvalidInput)?;
        let program = ebpf::load(SCHED_CLS, &program)?;
        Ok(Self {
            _link: ebpf::link(&program, interface, TCX_INGRESS, 0)?,
        })
    }
}

/// Where a frame has what is compared, and where the last of it ends.
struct Layout {
    ethertype: u16,
    source: i16,
    destination: i16,
    end: i32,
}

const V4: Layout = Layout {
    ethertype: 0x0800,
    source: 26,
    destination: 30,
    end: 34,
};
const V6: Layout = Layout {
    ethertype: 0x86dd,
    source: 22,
    destination: 38,
    end: 54,
};

const LOAD_WORD: u8 = 0x61;
const LOAD_HALF: u8 = 0x69;
const MOVE: u8 = 0xbf;
const MOVE_WORD: u8 = 0xbc;
const MOVE_CONSTANT: u8 = 0xb7;
const ADD_CONSTANT: u8 = 0x07;
const AND_WORD: u8 = 0x54;
const JUMP: u8 = 0x05;
const JUMP_IF_ABOVE: u8 = 0x2d;
const JUMP_IF_NOT: u8 = 0x55;
const JUMP_IF_WORD_NOT: u8 = 0x56;
const EXIT: u8 = 0x95;

/// The first register of the destination; a word each.
const DESTINATION: u8 = 6;

/// Each comparison of a block leads behind it where the addresses differ.
fn skip(block: &mut [Extended]) {
    let len = block.len();
    for (at, one) in block.iter_mut().enumerate() {
        if one.code == JUMP_IF_WORD_NOT {
            one.offset = i16::try_from(len - 1 - at).unwrap_or(0);
        }
    }
}

/// `None` where it would be too long.
fn program(unwanted: &Unwanted<'_>) -> Option<Vec<Extended>> {
    const DATA: i16 = 76;
    const DATA_END: i16 = 80;
    const DROP: i32 = 2;
    const NEXT: i32 = -1;
    let is_same = |address: IpAddr| address.is_ipv4() == unwanted.source.is_ipv4();
    let layout = if unwanted.source.is_ipv4() { V4 } else { V6 };
    let source = words(unwanted.source);
    let destinations = unwanted.destinations.iter().filter(|(to, _)| is_same(*to));
    let except = unwanted.except.iter().filter(|not| is_same(**not));
    if destinations.clone().count() + except.clone().count() > ADDRESSES {
        return None;
    }
    // Jumps with these targets are given their offsets at the end.
    const TO_NEXT: i16 = i16::MAX;
    const TO_DROP: i16 = i16::MIN;
    let mut all = vec![
        op(LOAD_WORD, 2, 1, DATA, 0),
        op(LOAD_WORD, 3, 1, DATA_END, 0),
        op(MOVE, 4, 2, 0, 0),
        op(ADD_CONSTANT, 4, 0, 0, layout.end),
        op(JUMP_IF_ABOVE, 4, 3, TO_NEXT, 0),
        op(LOAD_HALF, 5, 2, 12, 0),
        op(JUMP_IF_NOT, 5, 0, TO_NEXT, layout.ethertype.to_be().into()),
    ];
    let places = || (0_u8..).zip((0_i16..).step_by(4));
    for (word, (_, place)) in source.iter().zip(places()) {
        all.push(op(LOAD_WORD, 5, 2, layout.source + place, 0));
        all.push(op(JUMP_IF_WORD_NOT, 5, 0, TO_NEXT, *word));
    }
    for (number, place) in places().take(source.len()) {
        let at = layout.destination + place;
        all.push(op(LOAD_WORD, DESTINATION + number, 2, at, 0));
    }
    for address in except {
        let words = words(*address);
        let compare = words.iter().zip(DESTINATION..);
        let mut block: Vec<Extended> = compare
            .map(|(word, register)| op(JUMP_IF_WORD_NOT, register, 0, 0, *word))
            .collect();
        block.push(op(JUMP, 0, 0, TO_NEXT, 0));
        skip(&mut block);
        all.extend(block);
    }
    for (address, bits) in destinations {
        let mut block = Vec::new();
        let masks = words(mask(*address, *bits));
        for ((word, mask), register) in words(*address).iter().zip(masks).zip(DESTINATION..) {
            if mask != 0 {
                block.push(op(MOVE_WORD, 0, register, 0, 0));
                block.push(op(AND_WORD, 0, 0, 0, mask));
                block.push(op(JUMP_IF_WORD_NOT, 0, 0, 0, word & mask));
            }
        }
        block.push(op(JUMP, 0, 0, TO_DROP, 0));
        skip(&mut block);
        all.extend(block);
    }
    let next = all.len();
    all.extend([op(MOVE_CONSTANT, 0, 0, 0, NEXT), op(EXIT, 0, 0, 0, 0)]);
    let drop = all.len();
    all.extend([op(MOVE_CONSTANT, 0, 0, 0, DROP), op(EXIT, 0, 0, 0, 0)]);
    for (at, one) in all.iter_mut().enumerate() {
        let target = match one.offset {
            TO_NEXT => next,
            TO_DROP => drop,
            _ => continue,
        };
        one.offset = i16::try_from(target - at - 1).ok()?;
    }
    Some(all)
}

/// An address as a frame has it, in words of this machine.
fn words(address: IpAddr) -> Vec<i32> {
    let octets = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let words = octets.as_chunks().0.iter();
    words.map(|word| i32::from_ne_bytes(*word)).collect()
}

/// The mask of a prefix, as an address of the same version.
fn mask(address: IpAddr, bits: u8) -> IpAddr {
    let bits = u32::from(bits);
    match address {
        IpAddr::V4(_) => IpAddr::V4((!u32::MAX.checked_shr(bits).unwrap_or(0)).into()),
        IpAddr::V6(_) => IpAddr::V6((!u128::MAX.checked_shr(bits).unwrap_or(0)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the program says of a packet, by the rules of the machine: whether it is dropped.
    fn drops(program: &[Extended], frame: &[u8]) -> bool {
        const BASE: u64 = 1 << 20;
        let mut registers = [0_u64; 11];
        let mut at = 0_usize;
        loop {
            let one = program[at];
            at += 1;
            let (to, from) = (
                usize::from(one.registers & 15),
                usize::from(one.registers >> 4),
            );
            let load = |len: usize| {
                if from == 1 {
                    return BASE
                        + if one.offset == 80 {
                            frame.len() as u64
                        } else {
                            0
                        };
                }
                let start = usize::try_from(one.offset).unwrap();
                let mut bytes = [0; 8];
                bytes[..len].copy_from_slice(&frame[start..start + len]);
                u64::from_ne_bytes(bytes)
            };
            let low = registers[to] & 0xffff_ffff;
            let word = u64::from(one.constant.cast_unsigned());
            let jumps = match one.code {
                LOAD_WORD => {
                    registers[to] = load(4);
                    false
                }
                LOAD_HALF => {
                    registers[to] = load(2);
                    false
                }
                MOVE => {
                    registers[to] = registers[from];
                    false
                }
                MOVE_WORD => {
                    registers[to] = registers[from] & 0xffff_ffff;
                    false
                }
                MOVE_CONSTANT => {
                    registers[to] = word;
                    false
                }
                ADD_CONSTANT => {
                    registers[to] += word;
                    false
                }
                AND_WORD => {
                    registers[to] = low & word;
                    false
                }
                JUMP => true,
                JUMP_IF_ABOVE => registers[to] > registers[from],
                JUMP_IF_NOT => registers[to] != word,
                JUMP_IF_WORD_NOT => low != word,
                _ => return registers[0] == 2,
            };
            if jumps {
                at += usize::try_from(one.offset).unwrap();
            }
        }
    }

    fn frame(source: &str, destination: &str) -> Vec<u8> {
        let (source, destination): (IpAddr, IpAddr) =
            (source.parse().unwrap(), destination.parse().unwrap());
        let layout = if source.is_ipv4() { V4 } else { V6 };
        let mut bytes = vec![0; 60];
        bytes[12..14].copy_from_slice(&layout.ethertype.to_be_bytes());
        for (address, at) in [(source, layout.source), (destination, layout.destination)] {
            let at = usize::try_from(at).unwrap();
            for (place, word) in words(address).into_iter().enumerate() {
                bytes[at + 4 * place..][..4].copy_from_slice(&word.to_ne_bytes());
            }
        }
        bytes
    }

    #[test]
    fn what_goes_from_the_server_to_clients_is_dropped_and_nothing_else() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let destinations = [
            (address("10.128.0.0"), 12),
            (address("192.0.2.7"), 32),
            (address("fd00:2::"), 64),
            (address("fd00:3::"), 47),
        ];
        let except = [address("10.128.0.9"), address("fd00:2::9")];
        let rules = |source| {
            let unwanted = Unwanted {
                source: address(source),
                destinations: &destinations,
                except: &except,
            };
            program(&unwanted).unwrap()
        };
        let (four, six) = (rules("172.31.0.1"), rules("fd00:31::1"));
        for (to, is_dropped) in [
            ("10.128.0.1", true),
            ("10.143.255.255", true),
            ("10.128.0.9", false),
            ("10.144.0.0", false),
            ("192.0.2.7", true),
            ("192.0.2.6", false),
        ] {
            assert_eq!(drops(&four, &frame("172.31.0.1", to)), is_dropped, "{to}");
            assert!(!drops(&four, &frame("172.31.0.2", to)), "{to}");
            assert!(!drops(&six, &frame("172.31.0.1", to)), "{to}");
        }
        for (to, is_dropped) in [
            ("fd00:2::1", true),
            ("fd00:2::ffff:0:0:1", true),
            ("fd00:2::9", false),
            ("fd00:2:0:1::1", false),
            ("fd00:3:1::1", true),
            ("fd00:3:2::1", false),
        ] {
            assert_eq!(drops(&six, &frame("fd00:31::1", to)), is_dropped, "{to}");
            assert!(!drops(&six, &frame("fd00:31::2", to)), "{to}");
        }
        assert!(
            !drops(&four, &frame("172.31.0.1", "10.128.0.1")[..33]),
            "cut"
        );
        let many = [address("10.0.0.1"); ADDRESSES];
        let unwanted = Unwanted {
            source: address("172.31.0.1"),
            destinations: &destinations,
            except: &many,
        };
        assert!(program(&unwanted).is_none(), "it would take too long");
    }

    #[test]
    fn a_mask_has_as_many_bits_as_the_prefix() {
        let of = |text: &str, bits| mask(text.parse().unwrap(), bits).to_string();
        assert_eq!(of("10.0.0.0", 12), "255.240.0.0");
        assert_eq!(
            [of("10.0.0.0", 0), of("10.0.0.0", 32)],
            ["0.0.0.0", "255.255.255.255"]
        );
        assert_eq!([of("::", 0), of("::", 64)], ["::", "ffff:ffff:ffff:ffff::"]);
    }
}
