//! The program by which the kernel leaves out what is not load.

use linkweir_sys::cbpf::{Instruction, RETURN};

/// `BPF_LD | BPF_ABS`, of two bytes and of one.
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
/// `BPF_JMP | BPF_JEQ`.
const IF_EQUAL: u16 = 0x15;

const fn op(code: u16, operand: u32, jump_true: u8, jump_false: u8) -> Instruction {
    Instruction {
        code,
        jump_true,
        jump_false,
        operand,
    }
}

/// Keeps ARP, TCP over IPv4 and IPv6, and neighbour solicitations and advertisements, all of them
/// whole. VLAN tags are no matter: the kernel takes the outer one out before the program runs.
pub(crate) const ONLY_LOAD: [Instruction; 14] = [
    op(LOAD_HALF, 12, 0, 0),
    op(IF_EQUAL, 0x0806, 11, 0),
    op(IF_EQUAL, 0x0800, 0, 2),
    op(LOAD_BYTE, 23, 0, 0),
    op(IF_EQUAL, 6, 8, 7),
    op(IF_EQUAL, 0x86dd, 0, 6),
    op(LOAD_BYTE, 20, 0, 0),
    op(IF_EQUAL, 6, 5, 0),
    op(IF_EQUAL, 58, 0, 3),
    op(LOAD_BYTE, 54, 0, 0),
    op(IF_EQUAL, 135, 2, 0),
    op(IF_EQUAL, 136, 1, 0),
    op(RETURN, 0, 0, 0),
    op(RETURN, u32::MAX, 0, 0),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// What the program keeps, by the rules of the machine (a load behind the end keeps nothing).
    fn keeps(frame: &[u8]) -> bool {
        let (mut at, mut accumulator) = (0_usize, 0_u32);
        loop {
            let one = ONLY_LOAD[at];
            let from = one.operand as usize;
            at += 1;
            match one.code {
                LOAD_HALF => match frame.get(from..from + 2) {
                    Some(half) => accumulator = u32::from(u16::from_be_bytes([half[0], half[1]])),
                    None => return false,
                },
                LOAD_BYTE => match frame.get(from) {
                    Some(&byte) => accumulator = byte.into(),
                    None => return false,
                },
                IF_EQUAL if accumulator == one.operand => at += usize::from(one.jump_true),
                IF_EQUAL => at += usize::from(one.jump_false),
                _ => return one.operand != 0,
            }
        }
    }

    fn frame(ethertype: u16, at: &[(usize, u8)]) -> Vec<u8> {
        let mut bytes = vec![0; 80];
        bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
        for &(place, value) in at {
            bytes[place] = value;
        }
        bytes
    }

    #[test]
    fn load_is_kept_and_nothing_else() {
        assert!(keeps(&frame(0x0806, &[])), "ARP");
        assert!(keeps(&frame(0x0800, &[(23, 6)])), "TCP");
        assert!(keeps(&frame(0x86dd, &[(20, 6)])), "TCP over IPv6");
        assert!(
            keeps(&frame(0x86dd, &[(20, 58), (54, 135)])),
            "solicitation"
        );
        assert!(
            keeps(&frame(0x86dd, &[(20, 58), (54, 136)])),
            "advertisement"
        );
        assert!(!keeps(&frame(0x0800, &[(23, 17)])), "UDP");
        assert!(!keeps(&frame(0x0800, &[(23, 1)])), "ICMP");
        assert!(!keeps(&frame(0x86dd, &[(20, 17)])), "UDP over IPv6");
        assert!(!keeps(&frame(0x86dd, &[(20, 58), (54, 128)])), "echo");
        assert!(!keeps(&frame(0x88cc, &[])), "LLDP");
        assert!(!keeps(&[0; 10]), "cut");
    }
}
