//! libpcap as it is found at run time: the build needs no C library and no header.
//!
//! Source: pcap(3PCAP); the layouts are those of `pcap/bpf.h` and `pcap/pcap.h` since version 0.9,
//! an ABI that libpcap keeps.

use std::ffi::{c_char, c_int, c_uchar, c_uint};
use std::sync::OnceLock;

use libloading::Library;

/// Names under which systems have libpcap: Debian, Fedora and others, with development files.
const NAMES: [&str; 3] = ["libpcap.so.0.8", "libpcap.so.1", "libpcap.so"];

/// `pcap_t`, of which only the address is known.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct PcapHandle {
    _opaque: [u8; 0],
}

/// `struct bpf_program`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct BpfProgram {
    pub(crate) len: c_uint,
    pub(crate) instructions: *mut BpfInstruction,
}

/// `struct bpf_insn`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct BpfInstruction {
    pub(crate) code: u16,
    pub(crate) jump_true: u8,
    pub(crate) jump_false: u8,
    pub(crate) operand: u32,
}

/// `struct pcap_pkthdr`; the time is `struct timeval` of the platform, which is two C longs.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct PacketHeader {
    pub(crate) seconds: std::ffi::c_long,
    pub(crate) microseconds: std::ffi::c_long,
    pub(crate) captured_len: u32,
    pub(crate) wire_len: u32,
}

const _: () = {
    let word = size_of::<usize>();
    assert!(size_of::<BpfInstruction>() == 8);
    assert!(size_of::<BpfProgram>() == 2 * word);
    assert!(size_of::<PacketHeader>() == 2 * word + 8);
    assert!(std::mem::offset_of!(PacketHeader, captured_len) == 2 * word);
};

/// The functions of libpcap that are used.
///
/// Invariant: each pointer comes from a library that is never unloaded (it lives in a static) and
/// has the signature that pcap(3PCAP) documents.
#[derive(Debug)]
pub(crate) struct Libpcap {
    pub(crate) open_dead: unsafe extern "C" fn(c_int, c_int) -> *mut PcapHandle,
    pub(crate) compile:
        unsafe extern "C" fn(*mut PcapHandle, *mut BpfProgram, *const c_char, c_int, u32) -> c_int,
    pub(crate) geterr: unsafe extern "C" fn(*mut PcapHandle) -> *mut c_char,
    pub(crate) close: unsafe extern "C" fn(*mut PcapHandle),
    pub(crate) freecode: unsafe extern "C" fn(*mut BpfProgram),
    pub(crate) offline_filter:
        unsafe extern "C" fn(*const BpfProgram, *const PacketHeader, *const c_uchar) -> c_int,
    _library: Library,
}

/// The library, loaded at the first use; nothing where the system has none.
pub(crate) fn load() -> Option<&'static Libpcap> {
    static LOADED: OnceLock<Option<Libpcap>> = OnceLock::new();
    LOADED
        .get_or_init(|| NAMES.iter().find_map(|name| open(name)))
        .as_ref()
}

fn open(name: &str) -> Option<Libpcap> {
    // SAFETY: libpcap's initialisers only set up its own state; they rely on nothing of ours.
    let library = unsafe { Library::new(name) }.ok()?;
    Some(Libpcap {
        // SAFETY: the signature of `pcap_open_dead` in pcap_open_dead(3PCAP).
        open_dead: *unsafe { library.get(b"pcap_open_dead\0") }.ok()?,
        // SAFETY: the signature of `pcap_compile` in pcap_compile(3PCAP).
        compile: *unsafe { library.get(b"pcap_compile\0") }.ok()?,
        // SAFETY: the signature of `pcap_geterr` in pcap_geterr(3PCAP).
        geterr: *unsafe { library.get(b"pcap_geterr\0") }.ok()?,
        // SAFETY: the signature of `pcap_close` in pcap_close(3PCAP).
        close: *unsafe { library.get(b"pcap_close\0") }.ok()?,
        // SAFETY: the signature of `pcap_freecode` in pcap_freecode(3PCAP).
        freecode: *unsafe { library.get(b"pcap_freecode\0") }.ok()?,
        // SAFETY: the signature of `pcap_offline_filter` in pcap_offline_filter(3PCAP).
        offline_filter: *unsafe { library.get(b"pcap_offline_filter\0") }.ok()?,
        _library: library,
    })
}
