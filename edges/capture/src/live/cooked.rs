//! Programs for cooked frames, made to run in the kernel, which sees frames without the header.

use linkweir_sys::cbpf::Instruction;

/// Bytes of the header of `LINUX_SLL2`.
const HEADER_BYTES: u32 = 20;

/// `SKF_AD_OFF` and the fields behind it that stand in the header (`linux/filter.h`).
const DESCRIPTION: u32 = 0xffff_f000;
const PROTOCOL: u32 = DESCRIPTION;
const PACKET_TYPE: u32 = DESCRIPTION + 4;
const INTERFACE: u32 = DESCRIPTION + 8;
const HARDWARE_TYPE: u32 = DESCRIPTION + 28;

const CLASS: u16 = 0x07;
const LD: u16 = 0x00;
const LDX: u16 = 0x01;
const MODE: u16 = 0xe0;
const SIZE: u16 = 0x18;
const ABS: u16 = 0x20;
const IND: u16 = 0x40;
const LEN: u16 = 0x80;
const MSH: u16 = 0xa0;
const WORD: u16 = 0x00;
const HALF: u16 = 0x08;
const BYTE: u16 = 0x10;

/// The program with its offsets from the network header; nothing where it reads what the kernel
/// cannot tell (the address of the sender, the length with the header).
pub(super) fn without_header(program: &[Instruction]) -> Option<Vec<Instruction>> {
    program.iter().map(|one| translate(*one)).collect()
}

fn translate(mut one: Instruction) -> Option<Instruction> {
    if !matches!(one.code & CLASS, LD | LDX) {
        return Some(one);
    }
    match one.code & MODE {
        LEN => return None,
        ABS | IND | MSH => {}
        _ => return Some(one),
    }
    one.operand = match one.operand.checked_sub(HEADER_BYTES) {
        Some(offset) => offset,
        None if one.code & MODE != ABS => return None,
        None => match (one.operand, one.code & SIZE) {
            (0, HALF) => PROTOCOL,
            (4, WORD) => INTERFACE,
            (8, HALF) => HARDWARE_TYPE,
            (10, BYTE) => PACKET_TYPE,
            _ => return None,
        },
    };
    Some(one)
}

#[cfg(test)]
mod tests {
    use linkweir_sys::BpfFilter;

    use super::*;

    fn compiled(expression: &str) -> Option<Vec<Instruction>> {
        let filter = BpfFilter::compile(expression, 276, 262_144).unwrap();
        without_header(&filter.instructions())
    }

    #[test]
    fn offsets_count_from_the_network_header() {
        let program = compiled("ip and tcp port 80").unwrap();
        assert_eq!(program[0].operand, PROTOCOL);
        assert!(program.iter().any(|one| one.operand == 9), "{program:?}");
        assert!(
            program
                .iter()
                .any(|one| one.code == 0xb1 && one.operand == 0),
            "the length of the IP header: {program:?}"
        );
    }

    #[test]
    fn what_only_the_header_tells_is_left_to_the_caller() {
        assert!(compiled("link[12:4] = 1").is_none());
        assert!(compiled("greater 100").is_none());
        assert!(compiled("inbound").is_some());
    }
}
