//! `xdp:IFACE`: frames from the driver of a network card, past the stack (`AF_XDP`).
//!
//! A frame that is redirected to a socket does not reach the stack, and the kernel has no way to do
//! both. That is right for a card at a mirror port or a tap, and cuts a machine off everywhere else.
//! An interface that has addresses, or carries a bridge, bond or VLAN, is therefore captured through
//! `AF_PACKET` instead, with a message. So is one whose kernel, driver or MTU does not do, and a
//! capture that shares out transactions, since a socket only ever gets the frames of its receive
//! queue.
//!
//! Frames are copied out of the memory that the card or the kernel writes to, some thousand bytes
//! at a time: the chunk is free again at once, so a slow stage never starves the card of memory that
//! it merely looks at. The program stamps each frame as it sees it; where a driver leaves no room
//! for that, the time is that of reading.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linkweir_engine::{Batch, Drops, FrameRef, SourceError, SourceEvent};
use linkweir_sys::BpfFilter;
use linkweir_sys::interface::{self, Interface};
use linkweir_sys::packet_socket::{Framing, PacketSocket};
use linkweir_sys::wait::{any_readable, monotonic_ns, pause, wall_clock_ns};
use linkweir_sys::xdp::{Attach, MAX_FRAME_BYTES, Transfer, XdpProgram, XdpSocket};
use linkweir_wire::{LinkType, Timestamp};

use super::group::Group;
use super::open::{Target, reason, wrong};
use super::watch::{Change, Watch};
use super::{Fanout, LiveOptions};

/// What stands before the name of an interface that is captured this way.
pub const PREFIX: &str = "xdp:";

const STATISTICS_EVERY_NS: u64 = 100_000_000;
/// Frames a batch takes of one queue.
const BATCH_FRAMES: u32 = 256;
const CHUNK_BYTES: usize = 4096;
const ETHERNET_BYTES: u32 = 14 + 2 * 4;
/// How often and how long a queue that is still in use is waited for: closing takes a moment.
const BUSY_TRIES: u32 = 25;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// The sockets of one source.
#[derive(Debug)]
pub(super) struct OpenedXdp {
    sockets: Vec<XdpSocket>,
    /// What was counted of each when last asked.
    counted: Vec<u64>,
    /// Keeps the redirection, for all sources of the capture.
    _program: Arc<XdpProgram>,
    /// Keeps the interface promiscuous; receives nothing.
    _promiscuous: Option<Arc<PacketSocket>>,
    interface: u32,
    /// Frames that fit the ring of one socket.
    chunks: u32,
    notices: Vec<String>,
}

impl OpenedXdp {
    /// Frames that all rings hold at most.
    fn capacity(&self) -> u32 {
        let sockets = u32::try_from(self.sockets.len()).unwrap_or(u32::MAX);
        self.chunks.saturating_mul(sockets)
    }
}

/// Frames of some receive queues of an interface.
#[derive(Debug)]
pub(super) struct XdpSource {
    group: Arc<Group<OpenedXdp>>,
    member: usize,
    opened: Option<OpenedXdp>,
    watch: Watch,
    buffer: Vec<u8>,
    frames: Vec<FrameRef>,
    filter: Option<BpfFilter>,
    snaplen: usize,
    notices: Vec<String>,
    drops: Drops,
    statistics_due_ns: u64,
    idle: Duration,
    retry: Duration,
    reopen_due_ns: u64,
    stop: Arc<AtomicBool>,
    /// After the stop: frames that may have been there when it came.
    left: Option<u32>,
    /// Since when frames came of which none matched.
    quiet_since_ns: Option<u64>,
}

/// Why an interface is not captured this way; it can be another way.
pub(super) enum Refusal {
    /// The reason, in words that follow "it is not used:".
    Unsuitable(String),
    /// It cannot be captured at all.
    Wrong(SourceError),
}

impl From<SourceError> for Refusal {
    fn from(error: SourceError) -> Self {
        Self::Wrong(error)
    }
}

impl XdpSource {
    /// All sources of a capture. `options` names the interface without the prefix.
    pub(super) fn open(options: &LiveOptions) -> Result<Vec<Self>, Refusal> {
        let target = Target::find(options)?;
        let found = suitable(&target, options)?;
        check(&found).map_err(Refusal::Unsuitable)?;
        let opened = open_all(options).map_err(|error| Refusal::Unsuitable(error.message))?;
        let group = Arc::new(Group::new(options, open_all));
        let mut sources = Vec::new();
        for (member, mut opened) in opened.into_iter().enumerate() {
            let filter = options
                .filter
                .as_deref()
                .map(|text| BpfFilter::compile(text, LinkType::ETHERNET.0, options.snaplen))
                .transpose()
                .map_err(|error| wrong("-f", error.to_string()))?;
            sources.push(Self {
                group: Arc::clone(&group),
                member,
                watch: Watch::new(&options.interface, opened.interface, member == 0),
                notices: std::mem::take(&mut opened.notices),
                opened: Some(opened),
                buffer: Vec::new(),
                frames: Vec::new(),
                filter,
                snaplen: usize::try_from(options.snaplen).unwrap_or(usize::MAX),
                drops: Drops::default(),
                statistics_due_ns: 0,
                idle: options.idle,
                retry: options.retry,
                reopen_due_ns: 0,
                stop: Arc::clone(&options.stop),
                left: None,
                quiet_since_ns: None,
            });
        }
        Ok(sources)
    }

    pub(super) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    pub(super) const fn drops(&self) -> Drops {
        self.drops
    }

    /// The sockets, for whoever waits for several.
    pub(super) fn files(&self) -> Vec<BorrowedFd<'_>> {
        let opened = self.opened.iter();
        opened
            .flat_map(|opened| opened.sockets.iter().map(AsFd::as_fd))
            .collect()
    }

    pub(super) fn next_event(&mut self) -> Result<SourceEvent<'_>, SourceError> {
        loop {
            if let Some(fault) = self.watch.take_fault() {
                return Ok(SourceEvent::Fault(fault));
            }
            let is_stopped = self.stop.load(Ordering::Relaxed);
            if is_stopped && self.left.is_none() {
                self.left = Some(self.opened.as_ref().map_or(0, OpenedXdp::capacity));
            }
            let taken = if self.left == Some(0) {
                0
            } else {
                self.take_frames()
            };
            if let Some(left) = &mut self.left {
                *left = left.saturating_sub(taken);
            }
            if !self.frames.is_empty() {
                self.quiet_since_ns = None;
                return Ok(SourceEvent::Batch(Batch::new(&self.buffer, &self.frames)));
            }
            if taken > 0 {
                // Nothing that matches: for the stage that is as if nothing came.
                let now = monotonic_ns();
                let since = *self.quiet_since_ns.get_or_insert(now);
                if u128::from(now.saturating_sub(since)) >= self.idle.as_nanos() {
                    self.quiet_since_ns = None;
                    return Ok(SourceEvent::Idle);
                }
                continue;
            }
            if is_stopped {
                self.count_drops();
                return Ok(SourceEvent::End);
            }
            let Some(opened) = &self.opened else {
                self.reopen();
                if self.opened.is_none() {
                    pause(self.idle);
                    return Ok(SourceEvent::Idle);
                }
                continue;
            };
            if any_readable(&opened.sockets, self.idle).unwrap_or(false) {
                continue;
            }
            self.count_drops();
            if self.watch.is_due(self.retry) && self.watch.look_by_number() == Change::Vanished {
                self.opened = None;
            }
            if !self.watch.has_fault() {
                self.quiet_since_ns = None;
                return Ok(SourceEvent::Idle);
            }
        }
    }

    /// Copies what has arrived, leaves in the index what the filter matches, and says how many
    /// frames there were.
    fn take_frames(&mut self) -> u32 {
        self.buffer.clear();
        self.frames.clear();
        let Some(opened) = &mut self.opened else {
            return 0;
        };
        let now = wall_clock_ns();
        // What the clock of the stamps is behind that of captures.
        let behind = now.saturating_sub(monotonic_ns());
        let mut taken = 0;
        for socket in &mut opened.sockets {
            let frames = &mut self.frames;
            taken += socket.receive(BATCH_FRAMES, self.snaplen, &mut self.buffer, |one, wire| {
                let stamp = one.monotonic_ns.map(|time| time.saturating_add(behind));
                frames.push(FrameRef {
                    // One that is not of this moment was left by an earlier frame in the chunk.
                    timestamp: Timestamp::from_nanos(
                        stamp
                            .filter(|time| now.abs_diff(*time) < 10_000_000_000)
                            .unwrap_or(now),
                    ),
                    offset: u32::try_from(one.offset).unwrap_or(u32::MAX),
                    captured_len: u32::try_from(one.len).unwrap_or(0),
                    wire_len: wire,
                    link: LinkType::ETHERNET,
                    interface: 0,
                });
            });
        }
        if taken == 0 {
            return 0;
        }
        if opened.sockets.len() > 1 {
            self.frames.sort_by_key(|frame| frame.timestamp);
        }
        if let Some(filter) = &self.filter {
            let buffer = &self.buffer;
            self.frames.retain(|one| {
                Batch::new(buffer, std::slice::from_ref(one))
                    .frames()
                    .any(|frame| filter.matches(frame.bytes, frame.wire_len))
            });
        }
        if now >= self.statistics_due_ns {
            self.count_drops();
            if self.watch.is_due(self.retry) {
                self.watch.look_by_number();
            }
        }
        taken
    }

    fn count_drops(&mut self) {
        self.statistics_due_ns = wall_clock_ns().saturating_add(STATISTICS_EVERY_NS);
        let Some(opened) = &mut self.opened else {
            return;
        };
        for (socket, counted) in opened.sockets.iter().zip(&mut opened.counted) {
            let Ok(now) = socket.statistics() else {
                continue;
            };
            // The driver keeps a frame for which there is no chunk, or drops it as its own loss:
            // that count is of tries, not of frames.
            let lost = now.dropped.saturating_add(now.ring_full);
            self.drops.ring += lost.saturating_sub(*counted);
            *counted = lost;
        }
    }

    fn reopen(&mut self) {
        let now = monotonic_ns();
        if now < self.reopen_due_ns {
            return;
        }
        let retry_ns = linkweir_wire::nanos(self.retry);
        self.reopen_due_ns = now.saturating_add(retry_ns);
        match self.group.reopen(self.member) {
            Ok(opened) => {
                self.watch.is_back(opened.interface);
                self.opened = Some(opened);
            }
            Err(error) => self.watch.is_still_away(&error.message),
        }
    }
}

/// Whether the interface is one for `AF_XDP`; if so, what it is.
fn suitable(target: &Target, options: &LiveOptions) -> Result<Interface, Refusal> {
    let no = |message: &str| Err(Refusal::Unsuitable(message.to_owned()));
    if options.sockets > 1 && options.fanout == Fanout::Transaction {
        return no("it gives a worker whole receive queues of the card, not transactions");
    }
    let all =
        interface::interfaces().map_err(|error| wrong(&options.interface, error.to_string()))?;
    let Some(found) = all.into_iter().find(|one| one.index == target.index) else {
        return no("it takes one interface, not all");
    };
    if !target.is_ethernet() || found.is_loopback() {
        return no("the interface is not a network card");
    }
    Ok(found)
}

/// What speaks against it.
fn check(found: &Interface) -> Result<(), String> {
    // A link-local address comes by itself.
    let own = found.addresses.iter().find(|address| match address {
        IpAddr::V4(v4) => !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_unicast_link_local(),
    });
    if let Some(address) = own {
        return Err(format!(
            "the interface has the address {address}, and frames taken this way do not reach this machine any more"
        ));
    }
    if let Some(upper) = user_of(&found.name) {
        return Err(format!(
            "the interface carries {upper}, and frames taken this way do not reach it any more"
        ));
    }
    let longest = interface::mtu_of(&found.name)
        .unwrap_or(0)
        .saturating_add(ETHERNET_BYTES);
    if longest > MAX_FRAME_BYTES {
        return Err(format!(
            "frames of {longest} bytes are too long, {MAX_FRAME_BYTES} is the most"
        ));
    }
    Ok(())
}

/// The bridge, bond or VLAN interface of this machine that lives on this one, if there is any.
fn user_of(name: &str) -> Option<String> {
    let entries = std::fs::read_dir(format!("/sys/class/net/{name}")).ok()?;
    entries.flatten().find_map(|entry| {
        let file = entry.file_name();
        file.to_str()?.strip_prefix("upper_").map(str::to_owned)
    })
}

/// Opens all receive queues, distributed to the sources, in the best way that the driver has.
fn open_all(options: &LiveOptions) -> Result<Vec<OpenedXdp>, SourceError> {
    let target = Target::find(options)?;
    let name = &options.interface;
    let queues = interface::receive_queues_of(name).min(1024);
    let count = u32::try_from(options.sockets.max(1)).unwrap_or(u32::MAX);
    if count > queues {
        let message = format!("{count} sources, but {queues} receive queues of the card");
        return Err(wrong(name, message));
    }
    let promiscuous = options
        .promiscuous
        .then(|| {
            let socket = PacketSocket::open(Framing::Link)?;
            socket.set_promiscuous(target.index)?;
            Ok::<_, io::Error>(Arc::new(socket))
        })
        .transpose()
        .map_err(|error| wrong(name, reason(&error)))?;
    let share = options.buffer_bytes / CHUNK_BYTES / usize::try_from(queues).unwrap_or(1);
    // The largest power of two that is not above the share.
    let chunks = 1_u32 << share.clamp(512, 1 << 16).ilog2();
    let ways = [
        (Attach::Driver, Transfer::ZeroCopy, "without a copy"),
        (
            Attach::Driver,
            Transfer::Copy,
            "with a copy, for the driver has no other way",
        ),
        (
            Attach::Generic,
            Transfer::Copy,
            "in the stack: the driver has no other way (AF_PACKET is as fast)",
        ),
    ];
    let mut refused = None;
    for (attach, transfer, how) in ways {
        match open_queues(&target, chunks, queues, attach, transfer) {
            Ok((program, sockets)) => {
                let mut sources: Vec<OpenedXdp> = (0..count)
                    .map(|_| OpenedXdp {
                        sockets: Vec::new(),
                        counted: Vec::new(),
                        _program: Arc::clone(&program),
                        _promiscuous: promiscuous.clone(),
                        interface: target.index,
                        chunks,
                        notices: Vec::new(),
                    })
                    .collect();
                let members = usize::try_from(count).unwrap_or(1);
                for (queue, socket) in sockets.into_iter().enumerate() {
                    if let Some(source) = sources.get_mut(queue % members) {
                        source.sockets.push(socket);
                        source.counted.push(0);
                    }
                }
                if let Some(first) = sources.first_mut() {
                    first.notices.push(format!(
                        "AF_XDP takes {queues} receive queues {how}; what arrives at {name} does not reach this machine while it is captured"
                    ));
                }
                return Ok(sources);
            }
            Err(error) => {
                refused.get_or_insert(error);
            }
        }
    }
    let message = refused.map_or_else(String::new, |error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "it needs the capabilities CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF".to_owned()
        }
        io::ErrorKind::ResourceBusy => "another program has the interface".to_owned(),
        _ => error.to_string(),
    });
    Err(wrong(name, message))
}

fn open_queues(
    target: &Target,
    chunks: u32,
    queues: u32,
    attach: Attach,
    transfer: Transfer,
) -> io::Result<(Arc<XdpProgram>, Vec<XdpSocket>)> {
    let program = XdpProgram::attach(target.index, queues, attach)?;
    let sockets = (0..queues)
        .map(|queue| open_when_free(target.index, queue, transfer, chunks))
        .collect::<io::Result<Vec<_>>>()?;
    // All or none: a frame is taken from the stack only when every queue has its reader.
    for (queue, socket) in (0..).zip(&sockets) {
        program.add(queue, socket)?;
    }
    Ok((Arc::new(program), sockets))
}

fn open_when_free(
    interface: u32,
    queue: u32,
    transfer: Transfer,
    chunks: u32,
) -> io::Result<XdpSocket> {
    let mut tries = 0;
    loop {
        match XdpSocket::open(interface, queue, transfer, chunks) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && tries < BUSY_TRIES => {
                tries += 1;
                pause(BUSY_PAUSE);
            }
            opened => return opened,
        }
    }
}
