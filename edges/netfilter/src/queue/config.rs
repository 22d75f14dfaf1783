//! How a queue is bound (`NFQNL_MSG_CONFIG`).
//!
//! Source: `linux/netfilter/nfnetlink_queue.h`.

use std::io;
use std::time::Duration;

use linkweir_engine::{Answer, Verdict};
use linkweir_sys::netlink::NetfilterSocket;

use super::{PACKET, Queue, QueueError, QueueOptions, SUBSYSTEM, packet};
use crate::message::{ACKNOWLEDGE, Acknowledgment, ERROR, Messages, Request, append};
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

/// Sequence numbers of the two requests.
const ASKED_LEAVE: u32 = 1;
const ASKED_BINDING: u32 = 2;

/// The kernel answers before a send returns; this is for one that never does.
const PATIENCE: Duration = Duration::from_secs(5);

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
    let flags =
        if options.gso { OFFLOAD } else { 0 } | if options.fail_open { FAIL_OPEN } else { 0 };
    request.clear();
    append(&mut request, head(number, ASKED_BINDING), |body| {
        body.put(COMMAND, &[BIND, 0, 0, 0]);
        let [a, b, c, d] = options.copy_range.to_be_bytes();
        body.put(PARAMETERS, &[a, b, c, d, COPY_PACKET]);
        body.put(MAX_LEN, &options.max_len.to_be_bytes());
        body.put(MASK, &(FAIL_OPEN | OFFLOAD).to_be_bytes());
        body.put(FLAGS, &flags.to_be_bytes());
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

/// Sends a request and waits for what the kernel says to it.
///
/// Packets may come in before that. They pass the rules once more and so come again, when somebody
/// looks at them.
fn asked(queue: &mut Queue, request: &[u8], sequence: u32) -> io::Result<()> {
    queue.socket.send(request)?;
    loop {
        if !queue.socket.wait(&queue.waker, PATIENCE)?.has_datagrams {
            return Err(io::ErrorKind::TimedOut.into());
        }
        queue.socket.receive(&mut queue.arena)?;
        let (mut said, mut early) = (None, Vec::new());
        let from_kernel = queue.arena.datagrams().filter(|one| one.is_from_kernel);
        for message in from_kernel
            .flat_map(|one| Messages::new(one.bytes))
            .flatten()
        {
            if message.kind == ERROR && message.sequence == sequence {
                said = Some(answer_to(Acknowledgment::of(&message).ok()));
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
}

fn answer_to(said: Option<Acknowledgment<'_>>) -> io::Result<()> {
    match said.map(|said| said.code) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(code)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}
