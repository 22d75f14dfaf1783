//! Taking frames from a packet socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use linkweir_sys::cbpf::Instruction;
use linkweir_sys::packet_socket::{Framing, Inbox, LONGEST, PacketSocket, TAG_ROOM};
use linkweir_sys::wait;
use linkweir_wire::Timestamp;

use crate::PortOptions;
use crate::filter::ONLY_LOAD;

/// What is known of the checksum of a segment without computing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Checksum {
    /// Somebody has verified it: the card, or this kernel when it made the segment.
    Valid,
    /// There is none yet: the segment comes from this machine by an interface that is not a card.
    NotComputed,
    /// Nothing.
    Unknown,
}

/// A frame that was received.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedFrame<'a> {
    /// All of it, with its VLAN tag. A frame that segmentation offload joined (up to 64 KiB) is one.
    pub bytes: &'a [u8],
    /// When it entered the stack, by the clock of the system.
    pub at: Timestamp,
    /// Of its segment.
    pub checksum: Checksum,
}

/// Frames taken with one call.
const BATCH: usize = 64;

/// Calls before the run has its turn again, however much waits.
const CALLS: usize = 16;

/// Both hardware addresses, which stand before a tag.
const MACS: usize = 12;

/// The receiving side of a port.
#[derive(Debug)]
pub(crate) struct Receiver {
    socket: PacketSocket,
    inbox: Inbox,
    buffer: usize,
    frames: u64,
    bytes: u64,
    cut: u64,
    dropped: u64,
}

impl Receiver {
    pub(crate) fn open(options: &PortOptions, interface: u32) -> io::Result<Self> {
        let socket = PacketSocket::open(Framing::Link)?;
        // All before it is bound, so that no frame comes that was not asked for.
        if options.only_load {
            socket.attach(&ONLY_LOAD)?;
        } else {
            socket.attach(&[Instruction::keep(u32::MAX)])?;
        }
        socket.ignore_outgoing()?;
        socket.stamp_early()?;
        socket.note_auxiliary()?;
        let buffer = socket.set_receive_buffer(options.receive_buffer)?;
        socket.bind(interface)?;
        if options.promiscuous {
            socket.set_promiscuous(interface)?;
        }
        Ok(Self {
            socket,
            inbox: Inbox::new(BATCH)?,
            buffer,
            frames: 0,
            bytes: 0,
            cut: 0,
            dropped: 0,
        })
    }

    pub(crate) const fn socket(&self) -> &PacketSocket {
        &self.socket
    }

    /// Memory that the kernel gave.
    pub(crate) const fn buffer(&self) -> usize {
        self.buffer
    }

    /// Frames given out, their bytes, and those longer than any that is taken whole.
    pub(crate) const fn taken(&self) -> (u64, u64, u64) {
        (self.frames, self.bytes, self.cut)
    }

    /// Frames for which the kernel had no memory.
    pub(crate) fn dropped(&mut self) -> u64 {
        // The kernel begins again at 0 whenever it is asked.
        if let Ok(counted) = self.socket.statistics() {
            self.dropped += u64::from(counted.drops);
        }
        self.dropped
    }

    /// Gives out what waits: all of it, or as much as one turn takes.
    pub(crate) fn take(&mut self, each: &mut impl FnMut(ReceivedFrame<'_>)) -> io::Result<usize> {
        let mut given = 0;
        for _ in 0..CALLS {
            let taken = self.inbox.take(&self.socket)?;
            for number in 0..taken {
                given += usize::from(self.give(number, each));
            }
            if taken < BATCH {
                break;
            }
        }
        Ok(given)
    }

    fn give(&mut self, number: usize, each: &mut impl FnMut(ReceivedFrame<'_>)) -> bool {
        let Some(arrived) = self.inbox.frame(number) else {
            return false;
        };
        if arrived.wire_len > LONGEST {
            self.cut += 1;
            return false;
        }
        let note = arrived.note;
        let bytes = match note.tag {
            Some((kind, content)) => with_tag(arrived.room_and_frame, kind, content),
            None => arrived.room_and_frame.get(TAG_ROOM..),
        };
        let Some(bytes) = bytes else {
            return false;
        };
        self.frames += 1;
        self.bytes += bytes.len() as u64;
        each(ReceivedFrame {
            bytes,
            at: Timestamp::from_nanos(note.at_ns.unwrap_or_else(wait::wall_clock_ns)),
            checksum: match (note.checksum_is_missing, note.checksum_is_valid) {
                (true, _) => Checksum::NotComputed,
                (false, true) => Checksum::Valid,
                (false, false) => Checksum::Unknown,
            },
        });
        true
    }

    /// Waits until something can be taken, or until a moment that is met exactly (false).
    pub(crate) fn wait_until(&self, deadline: Timestamp, spin: Duration) -> io::Result<bool> {
        wait::until(&self.socket, deadline.as_nanos(), spin)
    }
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Puts a tag back where the kernel took it out: the room before the frame takes the addresses.
fn with_tag(room_and_frame: &mut [u8], kind: u16, content: u16) -> Option<&[u8]> {
    room_and_frame.copy_within(
        TAG_ROOM..TAG_ROOM + MACS.min(room_and_frame.len().saturating_sub(TAG_ROOM)),
        0,
    );
    let ([a, b], [c, d]) = (kind.to_be_bytes(), content.to_be_bytes());
    *room_and_frame.get_mut(MACS..)?.first_chunk_mut::<4>()? = [a, b, c, d];
    Some(room_and_frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_goes_behind_the_addresses() {
        let mut bytes: Vec<u8> = vec![0xee; 4];
        bytes.extend(1..=12);
        bytes.extend([8, 0, 0x45]);
        let tagged = with_tag(&mut bytes, 0x8100, 0x2005).unwrap();
        let expected: Vec<u8> = (1..=12).chain([0x81, 0, 0x20, 5, 8, 0, 0x45]).collect();
        assert_eq!(tagged, expected);
        let mut short = vec![0xee; 4];
        short.extend([1, 2, 3]);
        assert_eq!(
            with_tag(&mut short, 0x8100, 5),
            None,
            "no addresses to put it behind"
        );
    }
}
