//! From a name and a filter to a ring that receives.

use std::io;
use std::time::Duration;

use linkweir_engine::SourceError;
use linkweir_sys::BpfFilter;
use linkweir_sys::cbpf::{Instruction, MAX_INSTRUCTIONS};
use linkweir_sys::interface::{self, Interface};
use linkweir_sys::packet_socket::{Framing, PacketRing, PacketSocket, RingShape};
use linkweir_wire::LinkType;

use super::block::{Layout, RESERVE};
use super::cooked::without_header;
use super::fanout::{Shape, transaction_program};
use super::{ANY, Fanout, LiveOptions};

/// When the kernel hands over a block that is not full: the delay of records on a quiet link.
pub(super) const RETIRE: Duration = Duration::from_millis(10);

/// Blocks that a ring of the usual size has: on a quiet link each is handed over nearly empty after [`RETIRE`],
/// so that the number of blocks is how long the reader may stand still (2.56 s).
const BLOCKS: usize = 256;
const MAX_BLOCK_BYTES: usize = 1 << 20;
const MIN_BLOCKS: usize = 4;
const MIN_BLOCK_BYTES: usize = 128 << 10;

/// A ring that is bound and receives.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) ring: PacketRing,
    /// Number of the interface, 0 for all.
    pub(super) interface: u32,
    pub(super) layout: Layout,
    /// The filter, where the kernel cannot run it.
    pub(super) filter: Option<BpfFilter>,
    pub(super) notices: Vec<String>,
}

/// Opens all sockets of a capture: socket K takes shard K.
///
/// No frame is taken before all have joined their group, for the kernel divides by the number of
/// sockets that there are.
pub(super) fn open_all(options: &LiveOptions) -> Result<Vec<Opened>, SourceError> {
    let target = Target::find(options)?;
    if options.sockets <= 1 {
        let prepared = target.prepare(options)?;
        prepared.admit()?;
        prepared.bind()?;
        return Ok(vec![prepared.finish()]);
    }
    if options.fanout == Fanout::None || options.sockets > MAX_SOCKETS {
        let message = format!("{} sockets cannot share it", options.sockets);
        return Err(wrong(&target.name, message));
    }
    let mut all = Vec::new();
    let mut group = None;
    for number in 0..options.sockets {
        let prepared = target.prepare(options)?;
        prepared.reject()?;
        prepared.bind()?;
        group = Some(prepared.join(group, target.is_loopback)?);
        if number == 0 {
            prepared.set_fanout_program(target.shape())?;
        }
        all.push(prepared);
    }
    all.iter().try_for_each(Prepared::admit)?;
    Ok(all.into_iter().map(Prepared::finish).collect())
}

/// `PACKET_FANOUT_MAX` of Linux before 5.11.
const MAX_SOCKETS: usize = 256;

/// What is captured.
#[derive(Debug)]
pub(super) struct Target {
    name: String,
    pub(super) index: u32,
    layout: Layout,
    is_loopback: bool,
}

/// A socket with its ring and its program, which nothing has reached yet.
#[derive(Debug)]
struct Prepared {
    name: String,
    ring: PacketRing,
    index: u32,
    layout: Layout,
    program: Vec<Instruction>,
    filter: Option<BpfFilter>,
    notices: Vec<String>,
}

const ARPHRD_ETHER: u16 = 1;
const ARPHRD_RAWIP: u16 = 519;
const ARPHRD_LOOPBACK: u16 = 772;
const ARPHRD_NONE: u16 = 0xfffe;

/// What frames of an interface begin with, by its hardware type.
pub(super) const fn layout_of(interface: &Interface) -> Layout {
    match interface.hardware_type {
        ARPHRD_ETHER | ARPHRD_LOOPBACK => Layout::Plain(LinkType::ETHERNET),
        ARPHRD_NONE | ARPHRD_RAWIP => Layout::Plain(LinkType::RAW),
        _ => Layout::Cooked,
    }
}

impl Target {
    /// Looks for the interface.
    pub(super) fn find(options: &LiveOptions) -> Result<Self, SourceError> {
        let name = options.interface.clone();
        if name == ANY {
            return Ok(Self {
                name,
                index: 0,
                layout: Layout::Cooked,
                is_loopback: false,
            });
        }
        let all = interface::interfaces().map_err(|error| wrong(&name, error.to_string()))?;
        let Some(found) = all.iter().find(|one| one.name == name) else {
            return Err(wrong(&name, missing(&all)));
        };
        if !found.is_up() {
            return Err(wrong(
                &name,
                format!("the interface is down (ip link set dev {name} up)"),
            ));
        }
        Ok(Self {
            index: found.index,
            layout: layout_of(found),
            is_loopback: found.is_loopback(),
            name,
        })
    }

    /// Whether frames have an Ethernet header.
    pub(super) fn is_ethernet(&self) -> bool {
        self.layout == Layout::Plain(LinkType::ETHERNET)
    }

    /// How frames of the interface come to the program of a group.
    const fn shape(&self) -> Shape {
        match self.layout {
            Layout::Plain(LinkType::RAW) => Shape::Ip,
            Layout::Plain(_) => Shape::Ethernet,
            Layout::Cooked => Shape::Any,
        }
    }

    /// Everything but the bind: until then no frame can come.
    fn prepare(&self, options: &LiveOptions) -> Result<Prepared, SourceError> {
        let mut notices = Vec::new();
        let (program, filter) = self.compile(options)?;
        let framing = match self.layout {
            Layout::Plain(_) => Framing::Link,
            Layout::Cooked => Framing::Network,
        };
        let failed = |error: &io::Error| wrong(&self.name, reason(error));
        let ring = loop_over_sizes(options.buffer_bytes, &mut notices, |shape| {
            let socket = PacketSocket::open(framing)?;
            socket.into_ring(shape, RESERVE)
        })
        .map_err(|error| failed(&error))?;
        let socket = ring.socket();
        // Without it frames carry the time at which the socket saw them: later, and another one in
        // every socket.
        if let Err(error) = socket.stamp_early() {
            notices.push(format!("time stamps are taken late: {error}"));
        }
        if self.is_loopback {
            // Where the kernel has no such option, the copies are left out when a block is read.
            socket.ignore_outgoing().ok();
        }
        if options.promiscuous
            && self.index != 0
            && !self.is_loopback
            && let Err(error) = socket.set_promiscuous(self.index)
        {
            notices.push(format!("no promiscuous mode: {error}"));
        }
        if options.hardware_stamps
            && let Err(error) = self.stamp_in_hardware(socket)
        {
            notices.push(format!(
                "the interface makes no time stamps ({error}): the kernel's are used"
            ));
        }
        Ok(Prepared {
            name: self.name.clone(),
            ring,
            index: self.index,
            layout: self.layout,
            program,
            filter,
            notices,
        })
    }

    fn stamp_in_hardware(&self, socket: &PacketSocket) -> io::Result<()> {
        interface::enable_hardware_stamps(&self.name)?;
        socket.use_hardware_stamps()
    }

    /// The program for the kernel and, where it cannot decide, the filter to run here.
    fn compile(
        &self,
        options: &LiveOptions,
    ) -> Result<(Vec<Instruction>, Option<BpfFilter>), SourceError> {
        let keep_all = vec![Instruction::keep(options.snaplen)];
        let Some(expression) = options.filter.as_deref() else {
            return Ok((keep_all, None));
        };
        let link = self.layout.link_type();
        let filter = BpfFilter::compile(expression, link.0, options.snaplen)
            .map_err(|error| wrong("-f", error.to_string()))?;
        // The kernel sees frames without their outer tag, hence cannot decide what is asked of it.
        let asks_for_tags = expression
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|word| word == "vlan");
        let program = match self.layout {
            Layout::Plain(_) => Some(filter.instructions()),
            Layout::Cooked => without_header(&filter.instructions()),
        };
        match program {
            Some(program) if !asks_for_tags && program.len() <= MAX_INSTRUCTIONS => {
                Ok((program, None))
            }
            _ => Ok((keep_all, Some(filter))),
        }
    }
}

impl Prepared {
    /// Lets nothing through for now.
    fn reject(&self) -> Result<(), SourceError> {
        self.attach(&[Instruction::keep(0)])
    }

    /// Lets through what the filter matches.
    fn admit(&self) -> Result<(), SourceError> {
        self.attach(&self.program)
    }

    fn attach(&self, program: &[Instruction]) -> Result<(), SourceError> {
        let socket = self.ring.socket();
        socket.attach(program).map_err(|error| {
            wrong(
                &self.name,
                format!("the kernel refused the filter: {error}"),
            )
        })
    }

    /// Starts to receive.
    fn bind(&self) -> Result<(), SourceError> {
        let socket = self.ring.socket();
        socket
            .bind(self.index)
            .map_err(|error| wrong(&self.name, reason(&error)))
    }

    /// Joins the group of the capture, or makes it.
    fn join(&self, group: Option<u16>, is_loopback: bool) -> Result<u16, SourceError> {
        let socket = self.ring.socket();
        let joined = match socket.join_fanout(group, is_loopback) {
            // A kernel that does not know of outgoing copies: they are left out later.
            Err(_) if is_loopback => socket.join_fanout(group, false),
            joined => joined,
        };
        joined.map_err(|error| {
            let message = format!("the sockets cannot share the interface: {error}");
            wrong(&self.name, message)
        })
    }

    fn set_fanout_program(&self, shape: Shape) -> Result<(), SourceError> {
        let socket = self.ring.socket();
        socket
            .set_fanout_program(&transaction_program(shape))
            .map_err(|error| {
                let message = format!("the kernel refused the program that shares out: {error}");
                wrong(&self.name, message)
            })
    }

    fn finish(self) -> Opened {
        Opened {
            ring: self.ring,
            interface: self.index,
            layout: self.layout,
            filter: self.filter,
            notices: self.notices,
        }
    }
}

/// Opens a ring of the size asked for, or the largest for which there is memory.
fn loop_over_sizes(
    buffer_bytes: usize,
    notices: &mut Vec<String>,
    mut open: impl FnMut(RingShape) -> io::Result<PacketRing>,
) -> io::Result<PacketRing> {
    let mut bytes = buffer_bytes;
    loop {
        match open(shape(bytes)) {
            Err(error)
                if error.raw_os_error() == Some(ENOMEM) && bytes > MIN_BLOCKS * MIN_BLOCK_BYTES =>
            {
                bytes /= 2;
            }
            Err(error) => return Err(error),
            Ok(ring) => {
                if bytes != buffer_bytes {
                    notices.push(format!(
                        "no memory for a ring of {} KiB: it has {} KiB",
                        buffer_bytes >> 10,
                        bytes >> 10
                    ));
                }
                return Ok(ring);
            }
        }
    }
}

const ENOMEM: i32 = 12;

/// Blocks of a ring: many, and large ones where there is room for many.
fn shape(buffer_bytes: usize) -> RingShape {
    let block = (buffer_bytes / BLOCKS)
        .max(1)
        .next_power_of_two()
        .clamp(MIN_BLOCK_BYTES, MAX_BLOCK_BYTES);
    let blocks = (buffer_bytes / block).clamp(MIN_BLOCKS, 4096);
    RingShape {
        block_bytes: u32::try_from(block).unwrap_or(1 << 20),
        blocks: u32::try_from(blocks).unwrap_or(4),
        retire: RETIRE,
    }
}

pub(super) fn wrong(input: &str, message: String) -> SourceError {
    SourceError {
        input: input.to_owned(),
        message,
    }
}

fn missing(all: &[Interface]) -> String {
    let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    format!("no such interface (there are: {}, any)", names.join(", "))
}

/// What the system said, and what to do about it.
pub(super) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            let program = std::env::current_exe().unwrap_or_else(|_| "linkweir".into());
            format!(
                "capturing needs the capability CAP_NET_RAW: run as root, or once: sudo setcap cap_net_raw+ep {}",
                program.display()
            )
        }
        io::ErrorKind::NetworkDown => "the interface is down".to_owned(),
        _ => error.to_string(),
    }
}
