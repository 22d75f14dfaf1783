//! The program on the interface, and the map from queues to sockets.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use super::XdpSocket;
use crate::ebpf::{self, Extended, bpf, number, op, open};

/// Where the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attach {
    /// In the driver, before a packet of the stack is made.
    Driver,
    /// In the stack: every driver, but no faster than a packet socket.
    Generic,
}

/// A program that redirects the frames of an interface; gone with this value, or the process.
#[derive(Debug)]
pub struct XdpProgram {
    map: OwnedFd,
    // The link holds the program; both go when the last descriptor is closed.
    _link: OwnedFd,
}

/// What the program puts before a frame: time and [`MAGIC`].
pub(super) const STAMP_BYTES: usize = 16;

/// Tells a stamp from what else may stand there.
const MAGIC: u64 = 0x6c77_7374_616d_7031;

/// The time in the bytes before a frame.
pub(super) fn stamp(bytes: [u8; STAMP_BYTES]) -> Option<u64> {
    let (time, magic) = bytes.split_first_chunk::<8>()?;
    let magic = magic.first_chunk::<8>()?;
    (u64::from_ne_bytes(*magic) == MAGIC).then_some(u64::from_ne_bytes(*time))
}

/// The program: stamps the frame if the driver leaves room for it, then redirects it to the socket
/// of its queue, or lets it pass where there is none.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "the two words of a constant"
)]
const fn program(map: i32) -> [Extended; 20] {
    const LOAD_CONSTANT: u8 = 0x18;
    const MAP: u8 = 1;
    const LOAD_WORD: u8 = 0x61;
    const STORE_DOUBLE: u8 = 0x7b;
    const MOVE: u8 = 0xbf;
    const MOVE_CONSTANT: u8 = 0xb7;
    const ADD_CONSTANT: u8 = 0x07;
    const JUMP_IF_NOT: u8 = 0x55;
    const JUMP_IF_ABOVE: u8 = 0x2d;
    const CALL: u8 = 0x85;
    const EXIT: u8 = 0x95;
    const KTIME_GET_NS: i32 = 5;
    const REDIRECT_MAP: i32 = 51;
    const ADJUST_META: i32 = 54;
    const XDP_PASS: i32 = 2;
    [
        op(MOVE, 6, 1, 0, 0),
        op(MOVE_CONSTANT, 2, 0, 0, -(STAMP_BYTES as i32)),
        op(CALL, 0, 0, 0, ADJUST_META),
        op(JUMP_IF_NOT, 0, 0, 10, 0),
        op(CALL, 0, 0, 0, KTIME_GET_NS),
        op(LOAD_WORD, 1, 6, 8, 0),
        op(LOAD_WORD, 2, 6, 0, 0),
        op(MOVE, 3, 1, 0, 0),
        op(ADD_CONSTANT, 3, 0, 0, STAMP_BYTES as i32),
        op(JUMP_IF_ABOVE, 3, 2, 4, 0),
        op(STORE_DOUBLE, 1, 0, 0, 0),
        op(LOAD_CONSTANT, 4, 0, 0, MAGIC as i32),
        op(0, 0, 0, 0, (MAGIC >> 32) as i32),
        op(STORE_DOUBLE, 1, 4, 8, 0),
        // Both jumps lead here.
        op(LOAD_WORD, 2, 6, 16, 0),
        op(LOAD_CONSTANT, 1, MAP, 0, map),
        op(0, 0, 0, 0, 0),
        op(MOVE_CONSTANT, 3, 0, 0, XDP_PASS),
        op(CALL, 0, 0, 0, REDIRECT_MAP),
        op(EXIT, 0, 0, 0, 0),
    ]
}

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    _padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

impl XdpProgram {
    /// Puts the program on an interface of so many receive queues. Until sockets are added it lets
    /// every frame pass.
    ///
    /// # Errors
    /// What the kernel says: `PermissionDenied` without `CAP_NET_ADMIN` and `CAP_BPF`,
    /// `ResourceBusy` where another program is on the interface, `Unsupported` where the driver
    /// takes none.
    pub fn attach(interface: u32, queues: u32, how: Attach) -> io::Result<Self> {
        const MAP_CREATE: i32 = 0;
        const XSKMAP: u32 = 17;
        const XDP: u32 = 6;
        const ATTACH_XDP: u32 = 37;
        let map = open(
            MAP_CREATE,
            &MapCreate {
                kind: XSKMAP,
                key_size: 4,
                value_size: 4,
                entries: queues,
                flags: 0,
            },
        )?;
        let instructions = program(map.as_raw_fd());
        let loaded = ebpf::load(XDP, &instructions)?;
        let flags = match how {
            Attach::Generic => 1 << 1,
            Attach::Driver => 1 << 2,
        };
        let link = ebpf::link(&loaded, interface, ATTACH_XDP, flags)?;
        Ok(Self { map, _link: link })
    }

    /// From now on the frames of this queue go to this socket.
    ///
    /// # Errors
    /// What the kernel says, as where the socket is bound to something else.
    pub fn add(&self, queue: u32, socket: &XdpSocket) -> io::Result<()> {
        const MAP_UPDATE: i32 = 2;
        let value = socket.as_fd().as_raw_fd();
        let (key, value): (*const u32, *const i32) = (&raw const queue, &raw const value);
        bpf(
            MAP_UPDATE,
            &MapUpdate {
                map: number(&self.map),
                _padding: 0,
                key: key.expose_provenance() as u64,
                value: value.expose_provenance() as u64,
                flags: 0,
            },
        )?;
        Ok(())
    }
}
