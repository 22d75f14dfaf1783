//! Instructions of the classic packet filter, as the kernel takes them.
//!
//! Source: `linux/filter.h` and `linux/bpf_common.h`.

/// One instruction, `struct sock_filter`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Class, size, mode or operation, source.
    pub code: u16,
    /// Instructions to skip where a jump's condition holds.
    pub jump_true: u8,
    /// Instructions to skip where it does not.
    pub jump_false: u8,
    /// Constant, offset or slot.
    pub operand: u32,
}

/// `BPF_RET | BPF_K`: ends with a constant, the number of bytes to keep.
pub const RETURN: u16 = 0x06;

/// The most instructions that the kernel takes (`BPF_MAXINSNS`).
pub const MAX_INSTRUCTIONS: usize = 4096;

impl Instruction {
    /// The program that keeps the first `bytes` of every frame; none at all for 0.
    #[must_use]
    pub const fn keep(bytes: u32) -> Self {
        Self {
            code: RETURN,
            jump_true: 0,
            jump_false: 0,
            operand: bytes,
        }
    }
}

const _: () = {
    assert!(size_of::<Instruction>() == size_of::<libc::sock_filter>());
    assert!(align_of::<Instruction>() == align_of::<libc::sock_filter>());
};
