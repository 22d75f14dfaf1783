//! Filter expressions of libpcap, compiled once and run on frames in memory.

use std::ffi::{CStr, CString, c_int};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use thiserror::Error;

use crate::cbpf::Instruction;
use crate::libpcap::{self, BpfProgram, Libpcap, PacketHeader, PcapHandle};

/// Why an expression could not be compiled.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BpfError {
    /// The system has no libpcap.
    #[error(
        "filter expressions need libpcap, which is not installed (Debian and Ubuntu: apt-get install libpcap0.8; Fedora: dnf install libpcap)"
    )]
    LibraryMissing,
    /// libpcap refused to start.
    #[error("libpcap cannot compile for link type {link_type}")]
    LinkTypeRefused {
        /// `LINKTYPE_*` value of the capture.
        link_type: u16,
    },
    /// The expression is not valid, or not for this link type.
    #[error("filter `{expression}`: {message}")]
    Invalid {
        /// The expression as given.
        expression: String,
        /// What libpcap says.
        message: String,
    },
}

/// A filter expression compiled for one link type.
///
/// Invariant: `program` was filled by a successful `pcap_compile`, is not changed afterwards and is
/// freed exactly once, on drop.
#[derive(Debug)]
pub struct BpfFilter {
    library: &'static Libpcap,
    program: BpfProgram,
}

// SAFETY: the program is memory of the C heap that only this value refers to; nothing in it is
// bound to a thread.
unsafe impl Send for BpfFilter {}
// SAFETY: through a shared reference the program is only read (`pcap_offline_filter` takes it as
// const and keeps no state).
unsafe impl Sync for BpfFilter {}

/// A handle of `pcap_open_dead`.
///
/// Invariant: open until drop, which closes it once.
struct Handle {
    library: &'static Libpcap,
    pointer: NonNull<PcapHandle>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is open and never used after this.
        unsafe { (self.library.close)(self.pointer.as_ptr()) }
    }
}

impl BpfFilter {
    /// Compiles `expression` for frames of a link type.
    ///
    /// `link_type` is the `LINKTYPE_*` value of capture files; `snaplen` the longest frame in bytes.
    ///
    /// # Errors
    /// Where libpcap is missing, or refuses the expression for this link type.
    pub fn compile(expression: &str, link_type: u16, snaplen: u32) -> Result<Self, BpfError> {
        // Before version 1.8 the compiler had global state, and newer ones still resolve names with
        // functions that share buffers.
        static COMPILER: Mutex<()> = Mutex::new(());
        let invalid = |message: String| BpfError::Invalid {
            expression: expression.to_owned(),
            message,
        };
        let library = libpcap::load().ok_or(BpfError::LibraryMissing)?;
        let text =
            CString::new(expression).map_err(|_| invalid("holds a NUL character".to_owned()))?;
        let _guard = COMPILER.lock().unwrap_or_else(PoisonError::into_inner);
        let snaplen = c_int::try_from(snaplen).unwrap_or(c_int::MAX);
        // SAFETY: takes two numbers, checks them itself, returns null or a new handle.
        let pointer = unsafe { (library.open_dead)(dlt(link_type), snaplen) };
        let handle = Handle {
            library,
            pointer: NonNull::new(pointer).ok_or(BpfError::LinkTypeRefused { link_type })?,
        };
        let mut program = BpfProgram {
            len: 0,
            instructions: std::ptr::null_mut(),
        };
        const OPTIMIZE: c_int = 1;
        const NETMASK_UNKNOWN: u32 = u32::MAX;
        // SAFETY: the handle is open, `program` is writable, `text` ends in NUL and is only read.
        let status = unsafe {
            (library.compile)(
                handle.pointer.as_ptr(),
                &raw mut program,
                text.as_ptr(),
                OPTIMIZE,
                NETMASK_UNKNOWN,
            )
        };
        if status == 0 {
            return Ok(Self { library, program });
        }
        // SAFETY: the handle is open; the text returned belongs to it.
        let message = unsafe { (library.geterr)(handle.pointer.as_ptr()) };
        if message.is_null() {
            return Err(invalid("refused".to_owned()));
        }
        // SAFETY: not null, ends in NUL, and lives as long as the handle, which outlives this use.
        let message = unsafe { CStr::from_ptr(message) };
        Err(invalid(message.to_string_lossy().into_owned()))
    }

    /// The program as the kernel takes it.
    #[must_use]
    pub fn instructions(&self) -> Vec<Instruction> {
        let len = usize::try_from(self.program.len).unwrap_or(0);
        if self.program.instructions.is_null() {
            return Vec::new();
        }
        // SAFETY: a compiled program (type invariant) has `len` instructions at this address, which
        // nothing changes while it is borrowed.
        let compiled = unsafe { std::slice::from_raw_parts(self.program.instructions, len) };
        compiled
            .iter()
            .map(|one| Instruction {
                code: one.code,
                jump_true: one.jump_true,
                jump_false: one.jump_false,
                operand: one.operand,
            })
            .collect()
    }

    /// Whether a frame matches. `wire_len` is its length on the wire, of which `frame` may be the
    /// beginning.
    #[inline]
    #[must_use]
    pub fn matches(&self, frame: &[u8], wire_len: u32) -> bool {
        let header = PacketHeader {
            seconds: 0,
            microseconds: 0,
            captured_len: u32::try_from(frame.len()).unwrap_or(u32::MAX),
            wire_len,
        };
        // SAFETY: the program is a compiled one (type invariant); `captured_len` bytes are readable
        // at `frame`, and the interpreter checks every load against it.
        let verdict = unsafe {
            (self.library.offline_filter)(
                &raw const self.program,
                &raw const header,
                frame.as_ptr(),
            )
        };
        verdict != 0
    }
}

impl Drop for BpfFilter {
    fn drop(&mut self) {
        // SAFETY: the program came from `pcap_compile` and is freed only here.
        unsafe { (self.library.freecode)(&raw mut self.program) }
    }
}

/// The number libpcap uses inside (`DLT_*`) for a link type in a file (`LINKTYPE_*`).
///
/// Both registries agree but for the types whose `DLT_*` differed between systems.
/// Source: libpcap `pcap-common.c`, values of Linux.
const fn dlt(link_type: u16) -> c_int {
    const RAW: c_int = 12;
    match link_type {
        69 => 32,        // Redback SmartEdge
        100 => 11,       // RFC 1483 ATM
        14 | 101 => RAW, // raw IP; 14 is what OpenBSD writers left in files
        102 => 15,       // SLIP of BSD/OS
        103 => 16,       // PPP of BSD/OS
        106 => 19,       // classical IP over ATM
        other => other as c_int,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ethernet, IPv4, TCP to port 80.
    fn http_frame() -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x00]);
        frame.extend([
            0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        frame.extend([
            0xc0, 0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0,
        ]);
        frame
    }

    #[test]
    fn matches_by_link_type() {
        let frame = http_frame();
        let ethernet = BpfFilter::compile("tcp port 80", 1, 262_144).unwrap();
        assert!(ethernet.matches(&frame, 54));
        assert!(!ethernet.matches(&frame[..30], 54));
        assert!(!ethernet.matches(&[], 0));
        let raw = BpfFilter::compile("tcp port 80", 101, 262_144).unwrap();
        assert!(raw.matches(&frame[14..], 40));
        assert!(!raw.matches(&frame, 54));
        let long = BpfFilter::compile("greater 1000", 1, 262_144).unwrap();
        assert!(long.matches(&frame, 1500));
        assert!(!long.matches(&frame, 54));
    }

    #[test]
    fn an_empty_expression_matches_everything() {
        assert!(
            BpfFilter::compile("", 1, 262_144)
                .unwrap()
                .matches(&http_frame(), 54)
        );
    }

    #[test]
    fn says_what_libpcap_says() {
        let error = BpfFilter::compile("tcp prot 80", 1, 262_144).unwrap_err();
        assert!(
            error.to_string().starts_with("filter `tcp prot 80`: "),
            "{error}"
        );
        assert!(error.to_string().contains("syntax error"), "{error}");
        let error = BpfFilter::compile("tcp\0", 1, 262_144).unwrap_err();
        assert!(error.to_string().contains("NUL"), "{error}");
        assert!(BpfFilter::compile("wlan type mgt", 1, 262_144).is_err());
        assert!(BpfFilter::compile("wlan type mgt", 105, 262_144).is_ok());
    }

    #[test]
    fn a_missing_library_names_the_package() {
        assert!(BpfError::LibraryMissing.to_string().contains("libpcap0.8"));
    }

    #[test]
    fn may_cross_threads() {
        let filter = BpfFilter::compile("tcp", 1, 65_535).unwrap();
        let frame = http_frame();
        assert!(
            std::thread::spawn(move || filter.matches(&frame, 54))
                .join()
                .unwrap()
        );
    }
}
