//! How a queue is bound and set up (`NFQNL_MSG_CONFIG`).
//!
//! Source: `linux/netfilter/nfnetlink_queue.h`.

use std::io;

use linkweir_engine::{Answer, Verdict};
use linkweir_sys::netlink::NetfilterSocket;
use thiserror::Error;

use crate::message::{
    ACKNOWLEDGE, AttributeWriter, ERROR, Messages, Request, acknowledgment, append,
};
use crate::queue::{PACKET, Queue, SUBSYSTEM, packet};
use crate::stats;

/// `NFQNL_MSG_CONFIG`.
const CONFIG: u8 = 2;
/// `NFQA_CFG_CMD`.
const COMMAND: u16 = 1;
/// `NFQA_CFG_PARAMS`.
const PARAMETERS: u16 = 2;
/// `NFQA_CFG_QUEUE_MAXLEN`.
const MAX_LEN: u16 = 3;
/// `NFQA_CFG_MASK`: which flags are meant.
const MASK: u16 = 4;
/// `NFQA_CFG_FLAGS`.
const FLAGS: u16 = 5;
/// `NFQNL_CFG_CMD_BIND`.
const BIND: u8 = 1;
/// `NFQNL_CFG_CMD_PF_BIND`: without effect since Linux 3.8, but checked for the capability.
const BIND_FAMILY: u8 = 3;
/// `NFQNL_COPY_PACKET`.
const COPY_PACKET: u8 = 2;
/// `NFQA_CFG_F_FAIL_OPEN`.
const FAIL_OPEN: u32 = 1;
/// `NFQA_CFG_F_GSO`.
const OFFLOAD: u32 = 4;

/// Sequence numbers of the requests.
const ASKED_LEAVE: u32 = 1;
const ASKED_BINDING: u32 = 2;
const ASKED_CHANGE: u32 = 3;

/// How many receives an answer is looked for in: more than it takes to get past the packets before
/// it.
const MOST_RECEIVES: usize = 1 << 16;

/// Opens a socket for a queue.
pub(super) fn open_socket(number: u16) -> Result<NetfilterSocket, QueueError> {
    let socket = NetfilterSocket::open().map_err(|error| match error.raw_os_error() {
        // EPROTONOSUPPORT, EAFNOSUPPORT.
        Some(93 | 97) => QueueError::Missing,
        _ => QueueError::io(number, "open a netlink socket", error),
    })?;
    socket
        .continue_after_overrun()
        .map_err(|error| QueueError::io(number, "prepare the socket", error))?;
    Ok(socket)
}

/// Binds and sets everything with one message.
///
/// Between a binding and the copy mode the kernel drops what comes; in one message that is a moment.
pub(super) fn bind(queue: &mut Queue, options: &QueueOptions) -> Result<(), QueueError> {
    let number = queue.number;
    let mut request = Vec::new();
    append(&mut request, head(number, ASKED_LEAVE), |body| {
        body.put(COMMAND, &[BIND_FAMILY, 0, 0, 0]);
    });
    // The kernel says EPERM both without the capability and where somebody else has the queue. This
    // request touches no queue, so here it can only mean the first.
    asked(queue, &request, ASKED_LEAVE).map_err(|error| match error.raw_os_error() {
        Some(EPERM) => QueueError::NotPermitted { queue: number },
        Some(EINVAL) => QueueError::Missing,
        _ => QueueError::io(number, "ask for leave", error),
    })?;
    request.clear();
    append(&mut request, head(number, ASKED_BINDING), |body| {
        body.put(COMMAND, &[BIND, 0, 0, 0]);
        put_settings(body, options);
    });
    asked(queue, &request, ASKED_BINDING).map_err(|error| match error.raw_os_error() {
        Some(EPERM | EBUSY) => QueueError::Busy {
            queue: number,
            holder: stats::kernel_queue(number).ok().flatten().map(|it| it.port),
        },
        Some(EOPNOTSUPP) => QueueError::Unsupported { queue: number },
        _ => QueueError::io(number, "bind", error),
    })
}

/// Changes what is set, of a queue that is bound.
pub(super) fn change(queue: &mut Queue, options: &QueueOptions) -> Result<(), QueueError> {
    let number = queue.number;
    let mut request = Vec::new();
    append(&mut request, head(number, ASKED_CHANGE), |body| {
        put_settings(body, options);
    });
    asked(queue, &request, ASKED_CHANGE).map_err(|error| match error.raw_os_error() {
        Some(EPERM) => QueueError::NotPermitted { queue: number },
        Some(EOPNOTSUPP) => QueueError::Unsupported { queue: number },
        _ => QueueError::io(number, "change its settings", error),
    })
}

fn put_settings(body: &mut AttributeWriter<'_>, options: &QueueOptions) {
    let [a, b, c, d] = options.copy_range.to_be_bytes();
    body.put(PARAMETERS, &[a, b, c, d, COPY_PACKET]);
    body.put(MAX_LEN, &options.max_len.to_be_bytes());
    let gso = if options.gso { OFFLOAD } else { 0 };
    let fail_open = if options.fail_open { FAIL_OPEN } else { 0 };
    body.put(MASK, &(FAIL_OPEN | OFFLOAD).to_be_bytes());
    body.put(FLAGS, &(gso | fail_open).to_be_bytes());
}

const EPERM: i32 = 1;
const EBUSY: i32 = 16;
const EINVAL: i32 = 22;
const EOPNOTSUPP: i32 = 95;

const fn head(number: u16, sequence: u32) -> Request {
    Request {
        subsystem: SUBSYSTEM,
        message: CONFIG,
        flags: ACKNOWLEDGE,
        sequence,
        family: 0,
        resource: number,
    }
}

/// Sends a request and looks for what the kernel says to it, which is there when a send returns.
///
/// Packets may be there before it. They pass the rules once more and so come again, when somebody
/// looks at them.
fn asked(queue: &mut Queue, request: &[u8], sequence: u32) -> io::Result<()> {
    queue.socket.send(request)?;
    for _ in 0..MOST_RECEIVES {
        match queue.socket.receive(&mut queue.arena) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            received => received?,
        };
        let (mut said, mut early) = (None, Vec::new());
        let from_kernel = queue.arena.datagrams().filter(|one| one.is_from_kernel);
        for message in from_kernel
            .flat_map(|one| Messages::new(one.bytes))
            .flatten()
        {
            if message.kind == ERROR && message.sequence == sequence {
                said = Some(answer_to(acknowledgment(&message)));
            } else if message.kind == PACKET {
                early.extend(packet::decode(&message).map(|decoded| Answer {
                    id: decoded.packet.id,
                    verdict: Verdict::Repeat,
                    mark: None,
                }));
            }
        }
        if !early.is_empty() {
            queue.answer(&early).map_err(io::Error::other)?;
        }
        if let Some(said) = said {
            return said;
        }
    }
    Err(io::Error::other("the kernel's answer found no room"))
}

fn answer_to(code: Option<i32>) -> io::Result<()> {
    match code {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(code)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// What is asked of the kernel for a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueOptions {
    /// Bytes of each packet that are copied; the kernel copies 65 531 at most.
    pub copy_range: u32,
    /// Packets that may wait for their verdict, those held included. One that comes then is dropped,
    /// or passes with `fail_open`.
    pub max_len: u32,
    /// Takes packets as segmentation offload left them, up to 64 KiB and with checksums not yet
    /// filled in; otherwise the kernel cuts them first, which costs seven tenths of the throughput
    /// and more.
    pub gso: bool,
    /// Has packets pass unseen while the queue or the socket is full, in place of dropping them. The kernel
    /// counts those for which the queue had no room nowhere but at the rule that sent them, and they get no number.
    pub fail_open: bool,
    /// Bytes of room at the socket. What finds none is dropped, or passes with `fail_open`; the usual
    /// 208 KiB are a few packets.
    pub receive_buffer: u32,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            copy_range: MAX_COPY_RANGE,
            max_len: 16_384,
            gso: true,
            fail_open: false,
            receive_buffer: 32 << 20,
        }
    }
}

/// The longest value of an attribute: 65 535 less its head.
const MAX_COPY_RANGE: u32 = 65_531;

/// A queue that cannot be opened or served.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The kernel checks the capability for every message, of the opener of the socket and of the
    /// sender.
    #[error(
        "packet queue {queue}: not allowed; it needs CAP_NET_ADMIN: run as root, or give the \
         program that capability"
    )]
    NotPermitted {
        /// Its number.
        queue: u16,
    },
    /// A queue has one reader.
    #[error(
        "packet queue {queue}: another program serves it{}; stop that one, or take another number \
         here and in the rule",
        holder.map(|port| format!(" (netlink port {port}, as a rule its process id)")).unwrap_or_default()
    )]
    Busy {
        /// Its number.
        queue: u16,
        /// The netlink port of who has it, where the kernel's table could be read.
        holder: Option<u32>,
    },
    /// The kernel has no packet queues.
    #[error(
        "the kernel has no packet queues: load the module nfnetlink_queue, or take a kernel with \
         CONFIG_NETFILTER_NETLINK_QUEUE"
    )]
    Missing,
    /// The kernel has queues but not all that was asked for.
    #[error(
        "packet queue {queue}: the kernel does not offer what was asked for (segmentation offload, \
         fail-open): turn it off, or take Linux 3.10 or later"
    )]
    Unsupported {
        /// Its number.
        queue: u16,
    },
    /// Something else failed.
    #[error("packet queue {queue}: cannot {action}: {source}")]
    Io {
        /// Its number.
        queue: u16,
        /// What was to be done.
        action: &'static str,
        /// Why it was not.
        source: io::Error,
    },
}

impl QueueError {
    pub(super) const fn io(queue: u16, action: &'static str, source: io::Error) -> Self {
        Self::Io {
            queue,
            action,
            source,
        }
    }
}
