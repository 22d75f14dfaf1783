//! A small assembler of the classic packet filter.

use linkweir_sys::cbpf::Instruction;

/// A place in the program that can be jumped to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label(usize);

/// A memory slot of the program; there are sixteen.
pub(super) type Slot = u32;

/// Where a load reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    Byte,
    Half,
    Word,
}

/// An arithmetic operation on the accumulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Add,
    Mul,
    Or,
    And,
    Xor,
    ShiftLeft,
    ShiftRight,
}

/// A condition on the accumulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum If {
    Is,
    IsAbove,
    IsAtLeast,
    HasAnyBit,
}

/// What an operation or condition takes besides the accumulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum With {
    /// A constant.
    Value(u32),
    /// The index register.
    Index,
}

const LD: u16 = 0x00;
const LDX: u16 = 0x01;
const ST: u16 = 0x02;
const STX: u16 = 0x03;
const ALU: u16 = 0x04;
const JMP: u16 = 0x05;
const RET_A: u16 = 0x16;
const RET_K: u16 = 0x06;
const TAX: u16 = 0x07;
const TXA: u16 = 0x87;
const IMM: u16 = 0x00;
const ABS: u16 = 0x20;
const IND: u16 = 0x40;
const MEM: u16 = 0x60;
const LEN: u16 = 0x80;
const FROM_X: u16 = 0x08;

impl Size {
    const fn code(self) -> u16 {
        match self {
            Self::Word => 0x00,
            Self::Half => 0x08,
            Self::Byte => 0x10,
        }
    }
}

/// A program in the making.
///
/// A condition jumps over an unconditional jump, whose reach is unlimited: two instructions, but no
/// distance to watch.
#[derive(Debug, Default)]
pub(super) struct Asm {
    code: Vec<Instruction>,
    /// Where labels stand, once they do.
    places: Vec<usize>,
    /// Unconditional jumps and their aims.
    jumps: Vec<(usize, Label)>,
}

impl Asm {
    fn push(&mut self, code: u16, operand: u32) {
        self.code.push(Instruction {
            code,
            jump_true: 0,
            jump_false: 0,
            operand,
        });
    }

    pub(super) fn label(&mut self) -> Label {
        self.places.push(0);
        Label(self.places.len() - 1)
    }

    /// The label stands for the next instruction.
    pub(super) fn place(&mut self, label: Label) {
        if let Some(place) = self.places.get_mut(label.0) {
            *place = self.code.len();
        }
    }

    /// A = bytes of the packet at a fixed offset (or of its description).
    pub(super) fn load(&mut self, size: Size, offset: u32) {
        self.push(LD | ABS | size.code(), offset);
    }

    /// A = bytes of the packet at X + `offset`.
    pub(super) fn load_indexed(&mut self, size: Size, offset: u32) {
        self.push(LD | IND | size.code(), offset);
    }

    /// A = length of the packet.
    pub(super) fn load_len(&mut self) {
        self.push(LD | LEN, 0);
    }

    pub(super) fn load_slot(&mut self, slot: Slot) {
        self.push(LD | MEM, slot);
    }

    pub(super) fn load_value(&mut self, value: u32) {
        self.push(LD | IMM, value);
    }

    pub(super) fn index_value(&mut self, value: u32) {
        self.push(LDX | IMM, value);
    }

    pub(super) fn index_slot(&mut self, slot: Slot) {
        self.push(LDX | MEM, slot);
    }

    pub(super) fn store(&mut self, slot: Slot) {
        self.push(ST, slot);
    }

    pub(super) fn store_index(&mut self, slot: Slot) {
        self.push(STX, slot);
    }

    /// X = A.
    pub(super) fn copy_to_index(&mut self) {
        self.push(TAX, 0);
    }

    /// A = X.
    pub(super) fn copy_from_index(&mut self) {
        self.push(TXA, 0);
    }

    pub(super) fn apply(&mut self, op: Op, with: With) {
        let op = match op {
            Op::Add => 0x00,
            Op::Mul => 0x20,
            Op::Or => 0x40,
            Op::And => 0x50,
            Op::ShiftLeft => 0x60,
            Op::ShiftRight => 0x70,
            Op::Xor => 0xa0,
        };
        self.push_with(ALU | op, with);
    }

    /// A = A op slot. Spends X.
    pub(super) fn apply_slot(&mut self, op: Op, slot: Slot) {
        self.index_slot(slot);
        self.apply(op, With::Index);
    }

    fn push_with(&mut self, code: u16, with: With) {
        match with {
            With::Value(value) => self.push(code, value),
            With::Index => self.push(code | FROM_X, 0),
        }
    }

    pub(super) fn jump(&mut self, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(JMP, 0);
    }

    pub(super) fn jump_if(&mut self, condition: If, with: With, to: Label) {
        self.condition(condition, with, 0, 1);
        self.jump(to);
    }

    pub(super) fn jump_unless(&mut self, condition: If, with: With, to: Label) {
        self.condition(condition, with, 1, 0);
        self.jump(to);
    }

    fn condition(&mut self, condition: If, with: With, jump_true: u8, jump_false: u8) {
        let condition = match condition {
            If::Is => 0x10,
            If::IsAbove => 0x20,
            If::IsAtLeast => 0x30,
            If::HasAnyBit => 0x40,
        };
        self.push_with(JMP | condition, with);
        if let Some(last) = self.code.last_mut() {
            (last.jump_true, last.jump_false) = (jump_true, jump_false);
        }
    }

    pub(super) fn return_value(&mut self, value: u32) {
        self.push(RET_K, value);
    }

    pub(super) fn return_a(&mut self) {
        self.push(RET_A, 0);
    }

    /// The program; every label that is jumped to stands further on.
    pub(super) fn finish(mut self) -> Vec<Instruction> {
        for (at, label) in self.jumps {
            let place = self.places.get(label.0).copied().unwrap_or(0);
            let distance = place.saturating_sub(at + 1);
            if let Some(jump) = self.code.get_mut(at) {
                jump.operand = u32::try_from(distance).unwrap_or(u32::MAX);
            }
        }
        self.code
    }
}
