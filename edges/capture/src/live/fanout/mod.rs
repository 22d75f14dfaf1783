//! Eq. (3) as a program of the kernel: which socket of a fanout group takes a frame.
//!
//! It computes `linkweir_engine::TransactionSplitter`'s hash; the kernel divides it by the number
//! of sockets and takes the remainder, so socket K gets what the splitter gives shard K. Known are
//! Ethernet with up to two VLAN tags in the frame (and the one that the kernel took out), IPv4 with
//! options, IPv6 with up to four extension headers, TCP, UDP, fragments and all other protocols.
//! What the splitter finds inside tunnels, PPPoE, MPLS and LLC the program does not look for:
//! frames of a tunnel go by its outer addresses, and all that is not IP right behind the Ethernet
//! header goes to socket 0. Both halves of a transaction still meet, for the hash of two addresses is
//! the same in both directions; only the shares are less even.
//!
//! Offsets: of a frame that came in, the program sees the network header first; of one that leaves
//! through a card, the link header. Loads at offsets from the link header (`SKF_LL_OFF`) would not
//! need that distinction, but before Linux 6.16 reach only the part of the packet that is not in
//! page fragments: headers, not the payload.

use linkweir_sys::cbpf::Instruction;

mod asm;
#[cfg(test)]
mod tests;

use asm::{Asm, If, Label, Op, Size, Slot, With};

/// How the kernel hands frames to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Ethernet interfaces and loopback.
    Ethernet,
    /// Interfaces without a link header.
    Ip,
    /// Interfaces of all kinds.
    Any,
}

/// `SKF_AD_OFF` and what the kernel says of a packet from there on (`linux/filter.h`).
const DESCRIPTION: u32 = 0xffff_f000;
const PROTOCOL: u32 = DESCRIPTION;
const PACKET_TYPE: u32 = DESCRIPTION + 4;
const HARDWARE_TYPE: u32 = DESCRIPTION + 28;

const PACKET_OUTGOING: u32 = 4;
const ARPHRD_ETHER: u32 = 1;
const ARPHRD_LOOPBACK: u32 = 772;
const ETHERNET_BYTES: u32 = 14;
const TAG_TYPES: [u32; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
/// VXLAN and its number in Linux, Geneve, GTP-U, Teredo.
const TUNNEL_PORTS: [u32; 9] = [4789, 8472, 4790, 6081, 2152, 3544, 4754, 5072, 5247];
const TAGS: usize = 2;
const EXTENSION_HEADERS: usize = 4;

/// Slots. Offsets count from the first byte the program sees.
const NETWORK: Slot = 0;
const SOURCE: Slot = 1;
const DESTINATION: Slot = 2;
/// First byte behind the packet.
const END: Slot = 3;
const TRANSPORT: Slot = 4;
/// A number of 64 bits.
const LOW: Slot = 5;
const HIGH: Slot = 6;
const T0: Slot = 7;
const T1: Slot = 8;
/// Eq. (1).
const CONNECTION: Slot = 9;
const PORT_SUM: Slot = 10;
const T2: Slot = 11;

/// The places that several parts jump to.
#[derive(Debug, Clone, Copy)]
struct Exits {
    /// Hash 0.
    zero: Label,
    /// The hash of the addresses alone.
    by_addresses: Label,
    /// The hash of addresses and ports, from the slots.
    by_flow: Label,
}

/// The program for frames of one shape.
#[must_use]
pub fn transaction_program(shape: Shape) -> Vec<Instruction> {
    let mut asm = Asm::default();
    let exits = Exits {
        zero: asm.label(),
        by_addresses: asm.label(),
        by_flow: asm.label(),
    };
    let (v4, v6, transport) = (asm.label(), asm.label(), asm.label());
    link(&mut asm, shape, exits, v4, v6);
    asm.place(v4);
    ipv4(&mut asm, exits, transport);
    asm.place(v6);
    ipv6(&mut asm, exits, transport);
    asm.place(transport);
    let (tcp_label, udp_label) = (asm.label(), asm.label());
    asm.jump_if(If::Is, With::Value(6), tcp_label);
    asm.jump_if(If::Is, With::Value(17), udp_label);
    asm.jump(exits.by_addresses);
    asm.place(tcp_label);
    tcp(&mut asm, exits);
    asm.place(udp_label);
    udp(&mut asm, exits);
    asm.place(exits.by_addresses);
    asm.load_value(0);
    asm.store(PORT_SUM);
    asm.load_slot(SOURCE);
    asm.apply_slot(Op::Xor, DESTINATION);
    asm.store(CONNECTION);
    asm.place(exits.by_flow);
    flow_hash(&mut asm);
    asm.place(exits.zero);
    asm.return_value(0);
    asm.finish()
}

/// To the IP header: its offset in X at `v4` or `v6`.
fn link(asm: &mut Asm, shape: Shape, exits: Exits, v4: Label, v6: Label) {
    let ethertype = asm.label();
    match shape {
        Shape::Ip => {
            asm.index_value(0);
            asm.load(Size::Byte, 0);
            asm.apply(Op::ShiftRight, With::Value(4));
            asm.jump_if(If::Is, With::Value(4), v4);
            asm.jump_if(If::Is, With::Value(6), v6);
            asm.jump(exits.zero);
            return;
        }
        Shape::Any => {
            let is_ethernet = asm.label();
            asm.load(Size::Word, HARDWARE_TYPE);
            asm.jump_if(If::Is, With::Value(ARPHRD_ETHER), is_ethernet);
            asm.jump_if(If::Is, With::Value(ARPHRD_LOOPBACK), is_ethernet);
            asm.index_value(0);
            asm.load(Size::Word, PROTOCOL);
            asm.jump(ethertype);
            asm.place(is_ethernet);
        }
        Shape::Ethernet => {}
    }
    let outgoing = asm.label();
    asm.load(Size::Word, PACKET_TYPE);
    asm.jump_if(If::Is, With::Value(PACKET_OUTGOING), outgoing);
    asm.index_value(0);
    asm.load(Size::Word, PROTOCOL);
    asm.jump(ethertype);
    asm.place(outgoing);
    asm.index_value(ETHERNET_BYTES);
    asm.load(Size::Half, ETHERNET_BYTES - 2);
    asm.place(ethertype);
    let known = asm.label();
    for _ in 0..TAGS {
        let tag = asm.label();
        for kind in TAG_TYPES {
            asm.jump_if(If::Is, With::Value(kind), tag);
        }
        asm.jump(known);
        asm.place(tag);
        asm.load_indexed(Size::Half, 2);
        asm.store(T0);
        asm.copy_from_index();
        asm.apply(Op::Add, With::Value(4));
        asm.copy_to_index();
        asm.load_slot(T0);
    }
    asm.place(known);
    asm.jump_if(If::Is, With::Value(0x0800), v4);
    asm.jump_if(If::Is, With::Value(0x86dd), v6);
    asm.jump(exits.zero);
}

/// X is the offset of the header; ends at `transport` with the protocol in A.
fn ipv4(asm: &mut Asm, exits: Exits, transport: Label) {
    asm.store_index(NETWORK);
    asm.load_indexed(Size::Byte, 0);
    asm.apply(Op::ShiftRight, With::Value(4));
    asm.jump_unless(If::Is, With::Value(4), exits.zero);
    asm.load_indexed(Size::Byte, 0);
    asm.apply(Op::And, With::Value(0x0f));
    asm.apply(Op::ShiftLeft, With::Value(2));
    asm.store(T0);
    asm.jump_unless(If::IsAtLeast, With::Value(20), exits.zero);
    // A length of 0 is what segmentation offload leaves: to the end of the frame.
    let (end_known, has_no_len) = (asm.label(), asm.label());
    asm.load_indexed(Size::Half, 2);
    asm.jump_if(If::Is, With::Value(0), has_no_len);
    asm.index_slot(T0);
    asm.jump_unless(If::IsAtLeast, With::Index, exits.zero);
    asm.apply_slot(Op::Add, NETWORK);
    asm.store(END);
    asm.jump(end_known);
    asm.place(has_no_len);
    asm.load_len();
    asm.store(END);
    asm.place(end_known);
    asm.load_slot(T0);
    asm.apply_slot(Op::Add, NETWORK);
    asm.store(TRANSPORT);
    asm.index_slot(END);
    asm.jump_if(If::IsAbove, With::Index, exits.zero);
    beyond_frame(asm, TRANSPORT, exits.zero);
    asm.index_slot(NETWORK);
    asm.load_indexed(Size::Word, 12);
    asm.store(SOURCE);
    asm.load_indexed(Size::Word, 16);
    asm.store(DESTINATION);
    // All parts of a packet go to the socket that puts them together.
    asm.load_indexed(Size::Half, 6);
    asm.jump_if(If::HasAnyBit, With::Value(0x3fff), exits.by_addresses);
    asm.load_indexed(Size::Byte, 9);
    asm.jump(transport);
}

/// X is the offset of the header; falls through to `transport` with the protocol in A.
fn ipv6(asm: &mut Asm, exits: Exits, transport: Label) {
    asm.store_index(NETWORK);
    asm.load_indexed(Size::Byte, 0);
    asm.apply(Op::ShiftRight, With::Value(4));
    asm.jump_unless(If::Is, With::Value(6), exits.zero);
    for (slot, first) in [(SOURCE, 8), (DESTINATION, 24)] {
        asm.load_value(0);
        asm.store(slot);
        for offset in [0, 4, 8, 12] {
            asm.index_slot(NETWORK);
            asm.load_indexed(Size::Word, first + offset);
            asm.apply_slot(Op::Xor, slot);
            asm.store(slot);
        }
    }
    let (end_known, has_no_len) = (asm.label(), asm.label());
    asm.index_slot(NETWORK);
    asm.copy_from_index();
    asm.apply(Op::Add, With::Value(40));
    asm.store(TRANSPORT);
    asm.load_indexed(Size::Half, 4);
    asm.jump_if(If::Is, With::Value(0), has_no_len);
    asm.apply_slot(Op::Add, TRANSPORT);
    asm.store(END);
    asm.jump(end_known);
    asm.place(has_no_len);
    asm.load_len();
    asm.store(END);
    asm.place(end_known);
    asm.index_slot(NETWORK);
    asm.load_indexed(Size::Byte, 6);
    for _ in 0..EXTENSION_HEADERS {
        extension_header(asm, exits, transport);
    }
    // More of them than are followed here.
    for kind in [0, 43, 44, 60, 135, 139, 140] {
        asm.jump_if(If::Is, With::Value(kind), exits.zero);
    }
}

/// A is the kind of the header at TRANSPORT; ends with the kind of the next one in A.
fn extension_header(asm: &mut Asm, exits: Exits, transport: Label) {
    let (plain, fragment, done) = (asm.label(), asm.label(), asm.label());
    for kind in [0, 43, 60, 135, 139, 140] {
        asm.jump_if(If::Is, With::Value(kind), plain);
    }
    asm.jump_if(If::Is, With::Value(44), fragment);
    asm.jump(transport);

    asm.place(plain);
    asm.index_slot(TRANSPORT);
    asm.load_indexed(Size::Byte, 0);
    asm.store(T0);
    asm.load_indexed(Size::Byte, 1);
    asm.apply(Op::Add, With::Value(1));
    asm.apply(Op::ShiftLeft, With::Value(3));
    asm.apply(Op::Add, With::Index);
    asm.store(TRANSPORT);
    asm.index_slot(END);
    asm.jump_if(If::IsAbove, With::Index, exits.zero);
    beyond_frame(asm, TRANSPORT, exits.zero);
    asm.load_slot(T0);
    asm.jump(done);

    asm.place(fragment);
    asm.load_slot(TRANSPORT);
    asm.apply(Op::Add, With::Value(8));
    asm.store(T1);
    asm.index_slot(END);
    asm.jump_if(If::IsAbove, With::Index, exits.zero);
    beyond_frame(asm, T1, exits.zero);
    asm.index_slot(TRANSPORT);
    asm.load_indexed(Size::Half, 2);
    asm.jump_if(If::HasAnyBit, With::Value(0xfff9), exits.by_addresses);
    asm.load_indexed(Size::Byte, 0);
    asm.store(T0);
    asm.load_slot(T1);
    asm.store(TRANSPORT);
    asm.load_slot(T0);
    asm.place(done);
}

/// Ends where the `len` bytes at TRANSPORT are not all there, in the packet or, of a frame that was cut,
/// in the frame.
fn require(asm: &mut Asm, exits: Exits, len: u32) {
    asm.load_slot(TRANSPORT);
    asm.apply(Op::Add, With::Value(len));
    asm.index_slot(END);
    asm.jump_if(If::IsAbove, With::Index, exits.zero);
    asm.store(T1);
    beyond_frame(asm, T1, exits.zero);
}

/// Jumps where the offset in the slot is beyond the end of the frame.
fn beyond_frame(asm: &mut Asm, slot: Slot, to: Label) {
    asm.load_len();
    asm.index_slot(slot);
    let inside = asm.label();
    asm.jump_if(If::IsAtLeast, With::Index, inside);
    asm.jump(to);
    asm.place(inside);
}

/// CONNECTION = Eq. (1).
fn connection(asm: &mut Asm) {
    asm.index_slot(TRANSPORT);
    asm.load_indexed(Size::Half, 0);
    asm.store(T1);
    asm.load_indexed(Size::Half, 2);
    for slot in [T1, SOURCE, DESTINATION] {
        asm.apply_slot(Op::Xor, slot);
    }
    asm.store(CONNECTION);
}

fn tcp(asm: &mut Asm, exits: Exits) {
    require(asm, exits, 20);
    asm.index_slot(TRANSPORT);
    asm.load_indexed(Size::Byte, 12);
    asm.apply(Op::ShiftRight, With::Value(4));
    asm.apply(Op::ShiftLeft, With::Value(2));
    asm.jump_unless(If::IsAtLeast, With::Value(20), exits.zero);
    asm.apply(Op::Add, With::Index);
    asm.store(T0);
    asm.index_slot(END);
    asm.jump_if(If::IsAbove, With::Index, exits.zero);
    connection(asm);
    let (server, client, by_ports, hash) = (asm.label(), asm.label(), asm.label(), asm.label());
    asm.load_slot(T0);
    asm.apply(Op::Add, With::Value(4));
    asm.index_slot(END);
    asm.jump_if(If::IsAbove, With::Index, by_ports);
    asm.store(T1);
    beyond_frame(asm, T1, by_ports);
    asm.index_slot(T0);
    asm.load_indexed(Size::Word, 0);
    asm.jump_if(If::Is, With::Value(u32::from_be_bytes(*b"HTTP")), server);
    asm.apply(Op::ShiftRight, With::Value(24));
    asm.jump_if(If::IsAbove, With::Value(u32::from(b'Z')), by_ports);
    asm.jump_if(If::IsAtLeast, With::Value(u32::from(b'A')), client);
    asm.place(by_ports);
    asm.index_slot(TRANSPORT);
    asm.load_indexed(Size::Half, 2);
    asm.store(T1);
    asm.load_indexed(Size::Half, 0);
    asm.index_slot(T1);
    asm.jump_if(If::IsAtLeast, With::Index, client);
    asm.place(server);
    asm.index_slot(TRANSPORT);
    asm.load_indexed(Size::Word, 4);
    asm.jump(hash);
    asm.place(client);
    asm.index_slot(TRANSPORT);
    asm.load_indexed(Size::Word, 8);
    asm.place(hash);
    // Eq. (3): the four bytes of the number folded into one, then Eq. (2).
    asm.store(T0);
    for shift in [16, 8] {
        asm.copy_to_index();
        asm.apply(Op::ShiftRight, With::Value(shift));
        asm.apply(Op::Xor, With::Index);
    }
    asm.apply(Op::And, With::Value(0xff));
    asm.apply_slot(Op::Xor, T0);
    asm.apply_slot(Op::Xor, CONNECTION);
    asm.return_a();
}

fn udp(asm: &mut Asm, exits: Exits) {
    let good = asm.label();
    require(asm, exits, 8);
    asm.index_slot(TRANSPORT);
    asm.load_indexed(Size::Half, 4);
    asm.jump_if(If::Is, With::Value(0), good);
    asm.jump_unless(If::IsAtLeast, With::Value(8), exits.zero);
    asm.place(good);
    // The ports of a tunnel differ by direction: its frames go by addresses.
    for offset in [0, 2] {
        asm.load_indexed(Size::Half, offset);
        for port in TUNNEL_PORTS {
            asm.jump_if(If::Is, With::Value(port), exits.by_addresses);
        }
    }
    connection(asm);
    asm.index_slot(TRANSPORT);
    asm.load_indexed(Size::Half, 0);
    asm.store(T1);
    asm.load_indexed(Size::Half, 2);
    asm.apply_slot(Op::Add, T1);
    asm.store(PORT_SUM);
    asm.jump(exits.by_flow);
}

/// `linkweir_engine::hash::flow_hash` of the slots, in words of 32 bits.
fn flow_hash(asm: &mut Asm) {
    let no_carry = asm.label();
    asm.load_value(0);
    asm.store(HIGH);
    asm.load_slot(SOURCE);
    asm.apply_slot(Op::Add, DESTINATION);
    asm.store(LOW);
    // X is an addend: the sum is below it where it wrapped.
    asm.jump_if(If::IsAtLeast, With::Index, no_carry);
    asm.load_value(1);
    asm.store(HIGH);
    asm.place(no_carry);
    multiply(asm, 0x9e37_79b9_7f4a_7c15);
    // The sum of the ports has 17 bits; rotated by 40 it lies in the upper word.
    asm.load_slot(PORT_SUM);
    asm.apply(Op::ShiftLeft, With::Value(8));
    asm.apply_slot(Op::Xor, HIGH);
    asm.store(HIGH);
    asm.load_slot(LOW);
    asm.apply_slot(Op::Xor, CONNECTION);
    asm.store(LOW);
    shift_xor(asm, 30);
    multiply(asm, 0xbf58_476d_1ce4_e5b9);
    shift_xor(asm, 27);
    multiply(asm, 0x94d0_49bb_1331_11eb);
    shift_xor(asm, 31);
    asm.load_slot(LOW);
    asm.return_a();
}

/// V = V ^ (V >> shift), for shifts below 32.
fn shift_xor(asm: &mut Asm, shift: u32) {
    asm.load_slot(LOW);
    asm.apply(Op::ShiftRight, With::Value(shift));
    asm.store(T0);
    asm.load_slot(HIGH);
    asm.apply(Op::ShiftLeft, With::Value(32 - shift));
    asm.apply_slot(Op::Or, T0);
    asm.apply_slot(Op::Xor, LOW);
    asm.store(LOW);
    asm.load_slot(HIGH);
    asm.apply(Op::ShiftRight, With::Value(shift));
    asm.apply_slot(Op::Xor, HIGH);
    asm.store(HIGH);
}

/// V = V * factor, the low 64 bits of it. Products of halves of 16 bits fit a word.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the two words of the factor"
)]
fn multiply(asm: &mut Asm, factor: u64) {
    let (low, high) = (factor as u32, (factor >> 32) as u32);
    let (low_half, high_half) = (low & 0xffff, low >> 16);
    let multiplied = |asm: &mut Asm, factor| asm.apply(Op::Mul, With::Value(factor));
    // HIGH * low + LOW * high: their upper halves fall out.
    asm.load_slot(HIGH);
    multiplied(asm, low);
    asm.store(T0);
    asm.load_slot(LOW);
    multiplied(asm, high);
    asm.apply_slot(Op::Add, T0);
    asm.store(HIGH);
    // The upper word of LOW * low. T1: lower half times high_half, with the carry from below.
    asm.load_slot(LOW);
    asm.apply(Op::And, With::Value(0xffff));
    asm.store(T0);
    multiplied(asm, low_half);
    asm.apply(Op::ShiftRight, With::Value(16));
    asm.store(T1);
    asm.load_slot(T0);
    multiplied(asm, high_half);
    asm.apply_slot(Op::Add, T1);
    asm.store(T1);
    // T2: upper half times low_half, with the lower half of T1.
    asm.apply(Op::And, With::Value(0xffff));
    asm.store(T2);
    asm.load_slot(LOW);
    asm.apply(Op::ShiftRight, With::Value(16));
    asm.store(T0);
    multiplied(asm, low_half);
    asm.apply_slot(Op::Add, T2);
    asm.apply(Op::ShiftRight, With::Value(16));
    asm.store(T2);
    asm.load_slot(T0);
    multiplied(asm, high_half);
    asm.apply_slot(Op::Add, T2);
    asm.store(T2);
    asm.load_slot(T1);
    asm.apply(Op::ShiftRight, With::Value(16));
    for slot in [T2, HIGH] {
        asm.apply_slot(Op::Add, slot);
    }
    asm.store(HIGH);
    asm.load_slot(LOW);
    multiplied(asm, low);
    asm.store(LOW);
}
