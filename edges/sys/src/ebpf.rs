//! Programs of the kernel (`bpf(2)`) that are made here, and the links that put them on an interface.
//!
//! Source: `linux/bpf.h`, `Documentation/bpf/standardization/instruction-set.rst` of Linux.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `struct bpf_insn`: code, registers (destination low), offset, constant.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Extended {
    pub(crate) code: u8,
    pub(crate) registers: u8,
    pub(crate) offset: i16,
    pub(crate) constant: i32,
}

pub(crate) const fn op(
    code: u8,
    destination: u8,
    source: u8,
    offset: i16,
    constant: i32,
) -> Extended {
    Extended {
        code,
        registers: destination | source << 4,
        offset,
        constant,
    }
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

/// `bpf(2)`; pointers in the attributes must be good for the call.
pub(crate) fn bpf<T>(command: i32, attributes: &T) -> io::Result<i32> {
    let attributes: *const T = attributes;
    // SAFETY: `size_of::<T>()` bytes are readable; what is behind them counts as zero.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<T>()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(i32::try_from(result).unwrap_or(-1))
}

/// `bpf(2)` for a command that opens a descriptor.
pub(crate) fn open<T>(command: i32, attributes: &T) -> io::Result<OwnedFd> {
    let fd = bpf(command, attributes)?;
    // SAFETY: a descriptor that has just been opened and that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(crate) fn number(fd: &OwnedFd) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

/// Has the kernel check and take a program of this kind (`enum bpf_prog_type`).
pub(crate) fn load(kind: u32, instructions: &[Extended]) -> io::Result<OwnedFd> {
    const PROG_LOAD: i32 = 5;
    let license = c"Dual MIT/GPL";
    open(
        PROG_LOAD,
        &ProgramLoad {
            kind,
            count: u32::try_from(instructions.len()).unwrap_or(0),
            instructions: instructions.as_ptr().expose_provenance() as u64,
            license: license.as_ptr().expose_provenance() as u64,
            log_level: 0,
            log_size: 0,
            log: 0,
        },
    )
}

/// Puts a program on an interface (`enum bpf_attach_type`) for as long as the descriptor is open: it holds
/// the program, and both go with it.
pub(crate) fn link(
    program: &OwnedFd,
    interface: u32,
    attach_type: u32,
    flags: u32,
) -> io::Result<OwnedFd> {
    const LINK_CREATE: i32 = 28;
    open(
        LINK_CREATE,
        &LinkCreate {
            program: number(program),
            interface,
            attach_type,
            flags,
        },
    )
}
