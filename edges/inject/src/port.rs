//! [`Port`]: an interface, opened for sending and receiving.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use linkweir_sys::ingress::{IngressDrop, Unwanted};
use linkweir_sys::interface;
use linkweir_sys::wait::wall_clock_ns;
use linkweir_wire::Timestamp;

use crate::receiver::Receiver;
use crate::sender::{BATCH, Sender};
use crate::{PortError, PortOptions, ReceivedFrame, SenderKind, Sent};

/// `ARPHRD_ETHER`.
const ETHERNET: u16 = 1;

/// What passed a port so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortCounts {
    /// What was sent, and what was not.
    pub sent: Sent,
    /// Frames received.
    pub received_frames: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames for which the kernel had no memory while they waited to be taken.
    pub dropped: u64,
    /// Frames too long to be taken whole (IPv6 jumbograms of segmentation offload), left out.
    pub too_long: u64,
}

/// An interface, opened for sending and receiving frames.
#[derive(Debug)]
pub struct Port {
    name: String,
    index: u32,
    mac: [u8; 6],
    mtu: u32,
    /// What the stack of this machine does not see.
    dropped: Option<IngressDrop>,
    sender: Sender,
    receiver: Receiver,
    sent: Sent,
    linger: Duration,
    /// When frames were last taken.
    last_arrival: Timestamp,
    notes: Vec<String>,
}

impl Port {
    /// Opens an interface.
    ///
    /// # Errors
    /// Where there is none of this name, it is down or not an Ethernet interface, or permission is missing.
    pub fn open(options: &PortOptions) -> Result<Self, PortError> {
        let name = options.interface.clone();
        let fault = |doing| move |error| PortError::of(error, doing, &options.interface, None);
        let all = interface::interfaces().map_err(fault("listing interfaces"))?;
        let Some(found) = all.into_iter().find(|one| one.name == name) else {
            return Err(PortError::NoInterface(name));
        };
        let (ETHERNET, Some(mac)) = (found.hardware_type, found.hardware_address) else {
            return Err(PortError::NotEthernet(name, found.hardware_type));
        };
        if !found.is_up() {
            return Err(PortError::Down(name));
        }
        let receiver = Receiver::open(options, found.index).map_err(fault("opening a receiver"))?;
        let mut notes = Vec::new();
        if receiver.buffer() < options.receive_buffer {
            notes.push(format!(
                "the kernel gives {} KiB for frames that wait, {} were asked for (net.core.rmem_max)",
                receiver.buffer() >> 10,
                options.receive_buffer >> 10
            ));
        }
        let (sender, note) = Sender::open(options, found.index)?;
        notes.extend(note);
        Ok(Self {
            mtu: interface::mtu_of(&name).unwrap_or(1500),
            name,
            index: found.index,
            mac,
            dropped: None,
            sender,
            receiver,
            sent: Sent::default(),
            linger: options.linger,
            last_arrival: Timestamp::ZERO,
            notes,
        })
    }

    /// From now on only the ports (and captures) of this interface take the packets that are unwanted here; the
    /// stack of this machine, which would look for a route for each of them, does not see them.
    ///
    /// # Errors
    /// Where the kernel has no such means or does not allow it ([`IngressDrop::attach`]): the stack sees them, and all
    /// else is the same.
    pub fn keep_from_stack(&mut self, unwanted: &Unwanted<'_>) -> io::Result<()> {
        self.dropped = Some(IngressDrop::attach(self.index, unwanted)?);
        Ok(())
    }

    /// The hardware address of the interface.
    #[must_use]
    pub const fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// The longest packet of the interface, in bytes without the link header, when it was opened.
    #[must_use]
    pub const fn mtu(&self) -> u32 {
        self.mtu
    }

    /// How frames are sent: never [`SenderKind::Auto`].
    #[must_use]
    pub const fn sender(&self) -> SenderKind {
        self.sender.kind()
    }

    /// What is not as it was asked for, a sentence each: less memory, another sender.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Sends frames, in order and in batches. A queue that is full is waited for, up to 100 ms; what it
    /// does not take then is counted as refused.
    ///
    /// # Errors
    /// Where the interface went down or is gone. What was sent before is in [`Port::counts`].
    pub fn send<'a>(
        &mut self,
        frames: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Sent, PortError> {
        let mut frames = frames.into_iter();
        let mut sent = Sent::default();
        let mut batch: [&[u8]; BATCH] = [&[]; BATCH];
        loop {
            let mut count = 0;
            for (slot, frame) in batch.iter_mut().zip(&mut frames) {
                *slot = frame;
                count += 1;
            }
            let filled = batch.get(..count).unwrap_or_default();
            if filled.is_empty() {
                break;
            }
            if let Err(error) = self.sender.send(filled, &mut sent, &self.name) {
                self.sent.add(sent);
                return Err(error);
            }
            if count < BATCH {
                break;
            }
        }
        self.sent.add(sent);
        Ok(sent)
    }

    /// Gives out the frames that wait to be taken. Where there are none, waits for the first, for `limit`
    /// at most. Returns how many there were; 0 is the limit, or a signal.
    ///
    /// # Errors
    /// Where the interface went down or is gone.
    pub fn receive(
        &mut self,
        limit: Duration,
        each: impl FnMut(ReceivedFrame<'_>),
    ) -> Result<usize, PortError> {
        self.receive_until(clock() + limit, Duration::ZERO, each)
    }

    /// The same until a moment of the clock of the system, which is met exactly: the last `spin` before
    /// it is not slept but spun. See [`linkweir_sys::wait::until`].
    ///
    /// # Errors
    /// Where the interface went down or is gone.
    pub fn receive_until(
        &mut self,
        deadline: Timestamp,
        spin: Duration,
        mut each: impl FnMut(ReceivedFrame<'_>),
    ) -> Result<usize, PortError> {
        let taken = self.take(&mut each)?;
        if taken > 0 || deadline <= self.last_arrival {
            return Ok(taken);
        }
        let lingering = deadline.min(self.last_arrival + self.linger);
        let came = self
            .receiver
            .wait_until(lingering, self.linger)
            .and_then(|came| Ok(came || self.receiver.wait_until(deadline, spin)?))
            .map_err(|error| self.fault(error))?;
        if came { self.take(&mut each) } else { Ok(0) }
    }

    fn take(&mut self, each: &mut impl FnMut(ReceivedFrame<'_>)) -> Result<usize, PortError> {
        let taken = self
            .receiver
            .take(each)
            .map_err(|error| self.fault(error))?;
        if taken > 0 {
            self.last_arrival = clock();
        }
        Ok(taken)
    }

    fn fault(&self, error: io::Error) -> PortError {
        PortError::of(error, "receiving", &self.name, Some(self.receiver.socket()))
    }

    /// What passed so far. Asks the kernel what it dropped.
    pub fn counts(&mut self) -> PortCounts {
        let (received_frames, received_bytes, too_long) = self.receiver.taken();
        PortCounts {
            sent: self.sent,
            received_frames,
            received_bytes,
            dropped: self.receiver.dropped(),
            too_long,
        }
    }
}

/// What the clock of the system says.
fn clock() -> Timestamp {
    Timestamp::from_nanos(wall_clock_ns())
}

impl AsFd for Port {
    /// Can be read when frames wait to be taken.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}
