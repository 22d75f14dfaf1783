//! The marks of the connections that the kernel tracks (ctnetlink).
//!
//! Works on all connections of this network namespace, IPv4 and IPv6. Where the kernel tracks none,
//! there are none. Needs `CAP_NET_ADMIN`.
//!
//! Source: `linux/netfilter/nfnetlink_conntrack.h`.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use linkweir_sys::netlink::NetfilterSocket;
use thiserror::Error;

use crate::message::{BUFFER_BYTES, DumpError, dump};
use crate::message::{DUMP, Malformed, Message, Messages, Request, acknowledgment, append, number};

/// `NFNL_SUBSYS_CTNETLINK`.
const SUBSYSTEM: u8 = 1;
/// `IPCTNL_MSG_CT_NEW`: also what changes a connection, and how one is reported.
const NEW: u8 = 0;
/// `IPCTNL_MSG_CT_GET`.
const GET: u8 = 1;
/// A connection that is reported, with the subsystem.
const CONNECTION: u16 = (SUBSYSTEM as u16) << 8;
/// `CTA_TUPLE_ORIG`: addresses and ports of the first packet.
const ORIGINAL: u16 = 1;
/// `CTA_MARK`: absent where it is 0.
const MARK: u16 = 8;
/// `CTA_ZONE`: absent where it is 0.
const ZONE: u16 = 18;
/// `CTA_MARK_MASK`: which bits of the mark are meant.
const MARK_MASK: u16 = 21;

const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const EINVAL: i32 = 22;

/// How often a walk is done again because the kernel changed the size of its table meanwhile.
const WALKS: usize = 8;
/// Room for the refusals of all changes that one part of the table leads to.
const REFUSAL_BYTES: u32 = 1 << 20;
/// Tells whether connections are tracked at all.
const COUNTER: &str = "/proc/sys/net/netfilter/nf_conntrack_count";

/// The marks cannot be read or changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConntrackError {
    /// Every message is checked.
    #[error("connection marks: not allowed; it needs CAP_NET_ADMIN: run as root")]
    NotPermitted,
    /// Connections are tracked, and nobody can be asked about them.
    #[error(
        "connection marks: the kernel tracks connections but does not tell of them: load the \
         module nf_conntrack_netlink"
    )]
    Missing,
    /// The table went on changing its size.
    #[error("connection marks: the table of connections did not stay the same for one walk")]
    Unsteady,
    /// Something else failed.
    #[error("connection marks: cannot {action}: {source}")]
    Io {
        /// What was to be done.
        action: &'static str,
        /// Why it was not.
        source: io::Error,
    },
}

/// How many connections have which mark, of its bits only those of `mask`; those with none of them
/// are under 0.
///
/// # Errors
/// [`ConntrackError`].
pub fn count_marks(mask: u32) -> Result<BTreeMap<u32, u64>, ConntrackError> {
    for _ in 0..WALKS {
        let mut counts = BTreeMap::new();
        let is_whole = walk(|part| {
            for connection in connections(part) {
                *counts.entry(connection.mark & mask).or_insert(0) += 1;
            }
            Ok(())
        })?;
        if is_whole {
            return Ok(counts);
        }
    }
    Err(ConntrackError::Unsteady)
}

/// Sets the bits of `mask` to 0 in the mark of every connection that has one of them; nothing else of
/// a connection is touched, nor are other bits. Returns how many were changed.
///
/// A rule that sets marks must be gone before, or it goes on setting them.
///
/// # Errors
/// [`ConntrackError`]. What was changed until then stays so.
pub fn clear_marks(mask: u32) -> Result<u64, ConntrackError> {
    let changes = open()?;
    let mut cleared = 0;
    for _ in 0..WALKS {
        let is_whole = walk(|part| {
            cleared += clear_part(&changes, part, mask)?;
            Ok(())
        })?;
        if is_whole {
            return Ok(cleared);
        }
    }
    Err(ConntrackError::Unsteady)
}

/// Clears the marks of the connections in one part of the table, with one send.
fn clear_part(changes: &NetfilterSocket, part: &[u8], mask: u32) -> Result<u64, ConntrackError> {
    let (mut out, mut asked) = (Vec::new(), 0_u64);
    for connection in connections(part).filter(|one| one.mark & mask != 0) {
        connection.append_clear(&mut out, mask);
        asked += 1;
    }
    if out.is_empty() {
        return Ok(0);
    }
    changes.send(&out).map_err(|source| ConntrackError::Io {
        action: "change marks",
        source,
    })?;
    // The kernel has worked on all of it by now, and says only what it refused.
    let mut buffer = vec![0; BUFFER_BYTES];
    while let Ok(datagram) = changes.receive_one(&mut buffer, Duration::ZERO) {
        for message in Messages::new(datagram).flatten() {
            match refusal(&message) {
                // Over since it was reported.
                Some(ENOENT) => asked = asked.saturating_sub(1),
                Some(code) => return Err(refused("change marks", code)),
                None => {}
            }
        }
    }
    Ok(asked)
}

/// Has the kernel tell all connections, part by part; whether it could tell all in one go.
fn walk(on_part: impl FnMut(&[u8]) -> Result<(), ConntrackError>) -> Result<bool, ConntrackError> {
    const ACTION: &str = "read the table of connections";
    let socket = open()?;
    let mut request = Vec::new();
    let head = Request {
        subsystem: SUBSYSTEM,
        message: GET,
        flags: DUMP,
        sequence: 1,
        family: 0,
        resource: 0,
    };
    append(&mut request, head, |_| {});
    dump(&socket, &request, on_part).or_else(|error| match error {
        DumpError::Refused(EINVAL) if !Path::new(COUNTER).exists() => Ok(true),
        DumpError::Refused(code) => Err(refused(ACTION, code)),
        DumpError::Reader(error) => Err(error),
        DumpError::Socket(source) => Err(ConntrackError::Io {
            action: ACTION,
            source,
        }),
    })
}

/// A connection, as far as a change of its mark needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Connection<'a> {
    family: u8,
    mark: u32,
    original: &'a [u8],
    zone: Option<&'a [u8]>,
}

impl<'a> Connection<'a> {
    fn read(message: &Message<'a>) -> Result<Self, Malformed> {
        let family = *message.body.first().ok_or(Malformed)?;
        let (mut mark, mut original, mut zone) = (0, None, None);
        for attribute in message.attributes() {
            let (kind, value) = attribute?;
            match kind {
                ORIGINAL => original = Some(value),
                MARK => mark = number(value).ok_or(Malformed)?,
                ZONE => zone = Some(value),
                _ => {}
            }
        }
        Ok(Self {
            family,
            mark,
            original: original.ok_or(Malformed)?,
            zone,
        })
    }

    fn append_clear(&self, out: &mut Vec<u8>, mask: u32) {
        let head = Request {
            subsystem: SUBSYSTEM,
            message: NEW,
            // Neither create nor replace: only what is given changes, where it exists.
            flags: 0,
            sequence: 0,
            family: self.family,
            resource: 0,
        };
        append(out, head, |body| {
            body.put_nested(ORIGINAL, self.original);
            if let Some(zone) = self.zone {
                body.put(ZONE, zone);
            }
            body.put(MARK, &0_u32.to_be_bytes());
            body.put(MARK_MASK, &mask.to_be_bytes());
        });
    }
}

/// The connections in a part of the table; what cannot be read is left out.
fn connections(part: &[u8]) -> impl Iterator<Item = Connection<'_>> {
    let messages = Messages::new(part).flatten();
    messages
        .filter(|message| message.kind == CONNECTION && !message.is_cut)
        .filter_map(|message| Connection::read(&message).ok())
}

/// The code of a message that says why not.
fn refusal(message: &Message<'_>) -> Option<i32> {
    acknowledgment(message).filter(|code| *code != 0)
}

fn refused(action: &'static str, code: i32) -> ConntrackError {
    match code {
        EPERM => ConntrackError::NotPermitted,
        EINVAL => ConntrackError::Missing,
        _ => ConntrackError::Io {
            action,
            source: io::Error::from_raw_os_error(code),
        },
    }
}

fn open() -> Result<NetfilterSocket, ConntrackError> {
    let open = || {
        let socket = NetfilterSocket::open()?;
        socket.set_receive_buffer(REFUSAL_BYTES)?;
        Ok(socket)
    };
    open().map_err(|source| ConntrackError::Io {
        action: "open a netlink socket",
        source,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A part of a table: connections of these marks, each with a tuple of these bytes.
    fn part(marks: &[u32], tuple: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let head = Request {
            subsystem: SUBSYSTEM,
            message: NEW,
            flags: 2,
            sequence: 1,
            family: 10,
            resource: 0,
        };
        for mark in marks {
            append(&mut out, head, |body| {
                body.put_nested(ORIGINAL, tuple);
                body.put_nested(2, &[0; 8]);
                if *mark != 0 {
                    body.put(MARK, &mark.to_be_bytes());
                }
                body.put(ZONE, &[0, 3]);
            });
        }
        out
    }

    #[test]
    fn a_change_names_the_connection_and_the_bits() {
        let tuple = [8, 0, 1, 0x80, 1, 2, 3, 4];
        let bytes = part(&[0, 0x2_0001], &tuple);
        let read: Vec<_> = connections(&bytes).collect();
        assert_eq!((read[0].mark, read[1].mark), (0, 0x2_0001));
        let mut out = Vec::new();
        read[1].append_clear(&mut out, 0xffff_0000);
        let message = Messages::new(&out).next().unwrap().unwrap();
        assert_eq!((message.kind, message.flags), (CONNECTION, 1));
        assert_eq!(message.body[0], 10);
        let put: Vec<_> = message.attributes().map(Result::unwrap).collect();
        let expected: [(u16, &[u8]); 4] = [
            (ORIGINAL, &tuple),
            (ZONE, &[0, 3]),
            (MARK, &[0; 4]),
            (MARK_MASK, &[0xff, 0xff, 0, 0]),
        ];
        assert_eq!(put, expected);
    }

    #[test]
    fn a_connection_without_addresses_is_left_out() {
        let mut bytes = part(&[7], &[1; 8]);
        bytes[22] = 99;
        assert_eq!(connections(&bytes).count(), 0);
        let cut = part(&[7, 8], &[1; 8]);
        let read: Vec<_> = connections(&cut[..cut.len() - 4]).collect();
        assert_eq!(read.len(), 1);
    }

    proptest! {
        #[test]
        fn no_table_breaks_it(at in 0_usize..200, value: u8, cut in 0_usize..200) {
            let mut bytes = part(&[1, 0, 0x3_0000], &[5; 12]);
            let at = at % bytes.len();
            bytes[at] = value;
            let cut = &bytes[..cut.min(bytes.len())];
            let mut out = Vec::new();
            for connection in connections(cut) {
                connection.append_clear(&mut out, 1);
            }
            prop_assert!(Messages::new(&out).all(|message| message.is_ok()));
        }
    }
}
