//! A table of the kernel, told part by part (`NLM_F_DUMP`).

use std::io;
use std::time::Duration;

use linkweir_sys::netlink::NetfilterSocket;

use crate::message::{DONE, DUMP_INTERRUPTED, ERROR, Messages, acknowledgment};

/// How long the kernel may take for the next part of its table.
const PATIENCE: Duration = Duration::from_secs(10);
/// Enough for a part of the table, which the kernel limits to 32 KiB.
pub(crate) const BUFFER_BYTES: usize = 64 * 1024;

/// Why a table was not told to its end.
#[derive(Debug)]
pub(crate) enum DumpError<E> {
    /// The socket failed, or the kernel said nothing for ten seconds.
    Socket(io::Error),
    /// The kernel refused, with this `errno`.
    Refused(i32),
    /// Whoever read the parts.
    Reader(E),
}

/// Asks for a table; gives `on_part` every datagram of it. Returns whether the table stayed the same
/// meanwhile: if not, entries may be missing or there twice.
pub(crate) fn dump<E>(
    socket: &NetfilterSocket,
    request: &[u8],
    mut on_part: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<bool, DumpError<E>> {
    socket.send(request).map_err(DumpError::Socket)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut is_whole = true;
    loop {
        let part = socket
            .receive_one(&mut buffer, PATIENCE)
            .map_err(DumpError::Socket)?;
        let mut is_last = false;
        for message in Messages::new(part) {
            let Ok(message) = message else { break };
            is_whole &= message.flags & DUMP_INTERRUPTED == 0;
            if matches!(message.kind, ERROR | DONE) {
                match acknowledgment(&message) {
                    Some(code) if code != 0 => return Err(DumpError::Refused(code)),
                    _ => is_last |= message.kind == DONE,
                }
            }
        }
        on_part(part).map_err(DumpError::Reader)?;
        if is_last {
            return Ok(is_whole);
        }
    }
}
