//! Sockets that see every frame of an interface, and the ring that the kernel writes them to.
//!
//! Source: packet(7), `linux/if_packet.h`, `Documentation/networking/packet_mmap.rst` of Linux.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::cbpf::Instruction;
use crate::mapped_file::Mapping;

mod batches;
mod control;
mod ring;

pub use batches::{Arrived, Inbox, LONGEST, TAG_ROOM};
pub use batches::{BATCH, Outbox};
pub use control::Note;
pub use ring::PacketRing;

/// What a frame of the socket begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// The link header of the interface.
    Link,
    /// The network header: for a socket on interfaces of several kinds.
    Network,
}

/// What the kernel counted since it was last asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketStatistics {
    /// Frames that passed the filter, with those dropped.
    pub packets: u32,
    /// Frames for which the ring had no room.
    pub drops: u32,
    /// How often the ring was found full.
    pub freezes: u32,
}

/// How large a ring is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingShape {
    /// Bytes of a block: a power of two, at least a page.
    pub block_bytes: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// When a block that is not full is handed over.
    pub retire: Duration,
}

/// An `AF_PACKET` socket that receives nothing until it is bound.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
}

/// `htons(ETH_P_ALL)`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a constant of sixteen bits"
)]
const EVERY_PROTOCOL: u16 = (libc::ETH_P_ALL as u16).to_be();

impl PacketSocket {
    /// Opens a socket. No frame reaches it before [`PacketSocket::bind`], so a filter that is
    /// attached in between has seen every frame.
    ///
    /// # Errors
    /// `PermissionDenied` without `CAP_NET_RAW`.
    pub fn open(framing: Framing) -> io::Result<Self> {
        let kind = match framing {
            Framing::Link => libc::SOCK_RAW,
            Framing::Network => libc::SOCK_DGRAM,
        };
        // SAFETY: takes three numbers; the result is checked.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor that has just been opened and that nobody else has.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd })
    }

    /// Starts to receive what passes the interface with this number, or all (0).
    ///
    /// # Errors
    /// What `bind(2)` says: `NetworkDown` for an interface that is down.
    pub fn bind(&self, interface: u32) -> io::Result<()> {
        self.bind_protocol(interface, EVERY_PROTOCOL)
    }

    /// Chooses the interface to send through, without receiving.
    ///
    /// # Errors
    /// What `bind(2)` says.
    pub fn bind_to_send(&self, interface: u32) -> io::Result<()> {
        self.bind_protocol(interface, 0)
    }

    /// Sends a frame as it is, link header included.
    ///
    /// # Errors
    /// What `send(2)` says: `NetworkDown` for an interface that is down.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        rustix::net::send(&self.fd, frame, rustix::net::SendFlags::empty())?;
        Ok(())
    }

    fn bind_protocol(&self, interface: u32, protocol: u16) -> io::Result<()> {
        let address = libc::sockaddr_ll {
            sll_family: crate::socket::family(libc::AF_PACKET),
            sll_protocol: protocol,
            sll_ifindex: interface.cast_signed(),
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        crate::socket::bind(self.as_fd(), &address)
    }

    /// Asks the interface for frames that are not for this machine; ends with the socket.
    ///
    /// # Errors
    /// What `setsockopt(2)` says.
    pub fn set_promiscuous(&self, interface: u32) -> io::Result<()> {
        let request = libc::packet_mreq {
            mr_ifindex: interface.cast_signed(),
            mr_type: PROMISCUOUS,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set(libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    /// Leaves out the copies of frames that leave the machine.
    ///
    /// # Errors
    /// What `setsockopt(2)` says (Linux before 4.20 has no such option).
    pub fn ignore_outgoing(&self) -> io::Result<()> {
        self.set(libc::PACKET_IGNORE_OUTGOING, &1_i32)
    }

    /// Has frames stamped where they enter the stack, by the system's clock.
    ///
    /// # Errors
    /// What `setsockopt(2)` says.
    pub fn stamp_early(&self) -> io::Result<()> {
        crate::socket::set(self.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_i32)
    }

    /// Has the kernel note of every frame its VLAN tag and what is known of its checksum.
    ///
    /// # Errors
    /// What `setsockopt(2)` says.
    pub fn note_auxiliary(&self) -> io::Result<()> {
        self.set(control::AUXDATA, &1_i32)
    }

    /// Hands frames straight to the driver, past the queueing discipline of the interface.
    ///
    /// # Errors
    /// What `setsockopt(2)` says.
    pub fn bypass_queueing(&self) -> io::Result<()> {
        self.set(libc::PACKET_QDISC_BYPASS, &1_i32)
    }

    /// Asks for so many bytes of memory for frames that wait to be taken, counted as the kernel
    /// counts, and returns what it gave: without `CAP_NET_ADMIN` at most `net.core.rmem_max`.
    ///
    /// # Errors
    /// What `setsockopt(2)` says.
    pub fn set_receive_buffer(&self, bytes: usize) -> io::Result<usize> {
        self.set_buffer(bytes, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)
    }

    /// The same for frames that wait to be sent (`net.core.wmem_max`).
    ///
    /// # Errors
    /// What `setsockopt(2)` says.
    pub fn set_send_buffer(&self, bytes: usize) -> io::Result<usize> {
        self.set_buffer(bytes, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)
    }

    fn set_buffer(&self, bytes: usize, forced: i32, plain: i32) -> io::Result<usize> {
        // The kernel doubles the number, for what it keeps beside the frames.
        let wanted = i32::try_from(bytes / 2).unwrap_or(i32::MAX / 2);
        let set = |option| crate::socket::set(self.as_fd(), libc::SOL_SOCKET, option, &wanted);
        if set(forced).is_err() {
            set(plain)?;
        }
        let mut got = 0_i32;
        crate::socket::get(self.as_fd(), libc::SOL_SOCKET, plain, &mut got)?;
        Ok(usize::try_from(got).unwrap_or(0))
    }

    /// Takes the stamps of the network card where a frame has one.
    ///
    /// # Errors
    /// What `setsockopt(2)` says.
    pub fn use_hardware_stamps(&self) -> io::Result<()> {
        let sources = libc::SOF_TIMESTAMPING_RAW_HARDWARE;
        self.set(libc::PACKET_TIMESTAMP, &sources)
    }

    /// Runs a program on every frame: 0 leaves it out, any other number is the bytes to keep.
    /// Replaces the one before in one step.
    ///
    /// # Errors
    /// What `setsockopt(2)` says of a program that is too long or not valid.
    pub fn attach(&self, program: &[Instruction]) -> io::Result<()> {
        let program = Program::new(program)?;
        crate::socket::set(
            self.as_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            &program.raw,
        )
    }

    /// Joins a group of sockets that share the frames of an interface, as its last member. The
    /// socket must be bound. Without a `group` it makes a new one. Returns the number of the group;
    /// 0 is a number like others, that of the first group after the machine has started. With
    /// `ignore_outgoing` the group leaves out the copies of frames that leave the machine.
    ///
    /// # Errors
    /// What `setsockopt(2)` says.
    pub fn join_fanout(&self, group: Option<u16>, ignore_outgoing: bool) -> io::Result<u16> {
        let mut mode = libc::PACKET_FANOUT_CBPF;
        if ignore_outgoing {
            mode |= libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
        }
        if group.is_none() {
            mode |= libc::PACKET_FANOUT_FLAG_UNIQUEID;
        }
        self.set(
            libc::PACKET_FANOUT,
            &(u32::from(group.unwrap_or(0)) | (mode << 16)),
        )?;
        let mut joined = 0_u32;
        crate::socket::get(
            self.as_fd(),
            libc::SOL_PACKET,
            libc::PACKET_FANOUT,
            &mut joined,
        )?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the low half is the number"
        )]
        Ok(joined as u16)
    }

    /// Sets the program of the group: its result, divided by the number of members, has the number
    /// of the receiving one as remainder.
    ///
    /// # Errors
    /// What `setsockopt(2)` says of a program that is too long or not valid.
    pub fn set_fanout_program(&self, program: &[Instruction]) -> io::Result<()> {
        let program = Program::new(program)?;
        self.set(libc::PACKET_FANOUT_DATA, &program.raw)
    }

    /// What the kernel counted since this was last asked.
    ///
    /// # Errors
    /// What `getsockopt(2)` says.
    pub fn statistics(&self) -> io::Result<PacketStatistics> {
        let mut raw = libc::tpacket_stats_v3 {
            tp_packets: 0,
            tp_drops: 0,
            tp_freeze_q_cnt: 0,
        };
        crate::socket::get(
            self.as_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            &mut raw,
        )?;
        Ok(PacketStatistics {
            packets: raw.tp_packets,
            drops: raw.tp_drops,
            freezes: raw.tp_freeze_q_cnt,
        })
    }

    /// Takes the error that waits at the socket (`NetworkDown` where the interface went down).
    ///
    /// # Errors
    /// What `getsockopt(2)` says.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        let mut code = 0_i32;
        crate::socket::get(self.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR, &mut code)?;
        Ok((code != 0).then(|| io::Error::from_raw_os_error(code)))
    }

    /// The interface it is bound to; `None` once that does not exist any more.
    ///
    /// # Errors
    /// What `getsockname(2)` says.
    pub fn interface(&self) -> io::Result<Option<u32>> {
        let mut address = libc::sockaddr_ll {
            sll_family: 0,
            sll_protocol: 0,
            sll_ifindex: 0,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        crate::socket::name(self.as_fd(), &mut address)?;
        Ok(u32::try_from(address.sll_ifindex).ok())
    }

    /// Gives the socket a ring of version 3 with `reserve` bytes of room before every frame.
    ///
    /// # Errors
    /// What the kernel says; `OutOfMemory` where it has not the memory.
    pub fn into_ring(self, shape: RingShape, reserve: u32) -> io::Result<PacketRing> {
        self.set(libc::PACKET_VERSION, &libc::tpacket_versions::TPACKET_V3)?;
        self.set(libc::PACKET_RESERVE, &reserve)?;
        let frames_a_block = shape.block_bytes / FRAME_BYTES;
        let request = libc::tpacket_req3 {
            tp_block_size: shape.block_bytes,
            tp_block_nr: shape.blocks,
            tp_frame_size: FRAME_BYTES,
            tp_frame_nr: frames_a_block.saturating_mul(shape.blocks),
            tp_retire_blk_tov: u32::try_from(shape.retire.as_millis()).unwrap_or(u32::MAX),
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        self.set(libc::PACKET_RX_RING, &request)?;
        let block_bytes = usize::try_from(shape.block_bytes).unwrap_or(0);
        let blocks = usize::try_from(shape.blocks).unwrap_or(0);
        let len = block_bytes
            .checked_mul(blocks)
            .ok_or(io::ErrorKind::InvalidInput)?;
        let mapping = Mapping::shared(self.as_fd(), len, 0)?;
        Ok(PacketRing::new(self, mapping, block_bytes, blocks))
    }

    fn set<T: Copy>(&self, option: i32, value: &T) -> io::Result<()> {
        crate::socket::set(self.as_fd(), libc::SOL_PACKET, option, value)
    }
}

/// `PACKET_MR_PROMISC`.
const PROMISCUOUS: u16 = 1;

/// A size that the kernel checks and, in version 3, does not use.
const FRAME_BYTES: u32 = 2048;

/// A program in the form that `setsockopt` takes; borrows the instructions.
struct Program<'a> {
    raw: libc::sock_fprog,
    _borrowed: std::marker::PhantomData<&'a [Instruction]>,
}

impl<'a> Program<'a> {
    fn new(instructions: &'a [Instruction]) -> io::Result<Self> {
        let len = u16::try_from(instructions.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        Ok(Self {
            raw: libc::sock_fprog {
                len,
                // The kernel only reads it.
                filter: instructions.as_ptr().cast_mut().cast(),
            },
            _borrowed: std::marker::PhantomData,
        })
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for PacketSocket {
    fn as_raw_fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }
}
