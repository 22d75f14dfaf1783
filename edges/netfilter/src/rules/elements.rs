//! Elements of our sets as the kernel tells them (`nf_tables`), without `nft`: a gateway that runs may start
//! no program. Asking takes `CAP_NET_ADMIN`, which it keeps for its verdicts anyway.
//!
//! Source: `linux/netfilter/nf_tables.h`; comments as libnftnl writes them (`libnftnl/udata.h`).

use std::io;

use linkweir_sys::netlink::NetfilterSocket;
use thiserror::Error;

use crate::dump::{DumpError, dump};
use crate::message::{Attributes, DUMP, Messages, Request, append};

/// `NFNL_SUBSYS_NFTABLES`.
const SUBSYSTEM: u8 = 10;
/// `NFT_MSG_NEWSETELEM`, with the subsystem: how elements are told.
const ELEMENTS: u16 = ((SUBSYSTEM as u16) << 8) | 12;
/// `NFT_MSG_GETSETELEM`.
const GET: u8 = 13;
/// `NFPROTO_INET`.
const INET: u8 = 1;
/// `NFTA_SET_ELEM_LIST_TABLE`, `_SET`, `_ELEMENTS`.
const LIST_TABLE: u16 = 1;
const LIST_SET: u16 = 2;
const LIST_ELEMENTS: u16 = 3;
/// `NFTA_SET_ELEM_KEY`, `_USERDATA`, `_EXPR`.
const KEY: u16 = 1;
const USERDATA: u16 = 6;
const EXPRESSION: u16 = 7;
/// `NFTA_DATA_VALUE`.
const VALUE: u16 = 1;
/// `NFTA_EXPR_NAME`, `_DATA`.
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
/// `NFTA_COUNTER_BYTES`, `_PACKETS`.
const COUNTER_BYTES: u16 = 1;
const COUNTER_PACKETS: u16 = 2;
/// `NFTNL_UDATA_SET_ELEM_COMMENT`.
const COMMENT: u8 = 0;

const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const EINVAL: i32 = 22;

/// How often a set is asked for again because somebody changed rules meanwhile.
const DUMPS: usize = 8;
/// Elements that are taken of a set; ours have at most 4096.
const MOST_ELEMENTS: usize = 1 << 14;

/// The kernel does not say what is up.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StandingError {
    /// Every question is checked.
    #[error("rules of the kernel: not allowed; it needs CAP_NET_ADMIN: run as root")]
    NotPermitted,
    /// Rules went on changing.
    #[error("rules of the kernel: they did not stay the same for one reading")]
    Unsteady,
    /// Something else failed.
    #[error("rules of the kernel: cannot read them: {0}")]
    Io(#[from] io::Error),
}

/// An element whose key is a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Element {
    pub key: u32,
    pub comment: Option<String>,
    /// Packets and bytes, where it counts.
    pub count: Option<(u64, u64)>,
}

/// The elements of a set of the table `inet TABLE`; `None` where there is no such set.
pub(super) fn elements(
    socket: &NetfilterSocket,
    table: &str,
    set: &str,
) -> Result<Option<Vec<Element>>, StandingError> {
    let head = Request {
        subsystem: SUBSYSTEM,
        message: GET,
        flags: DUMP,
        sequence: 1,
        family: INET,
        resource: 0,
    };
    let mut request = Vec::new();
    append(&mut request, head, |body| {
        // Names end with a zero (NLA_STRING).
        body.put(LIST_TABLE, format!("{table}\0").as_bytes());
        body.put(LIST_SET, format!("{set}\0").as_bytes());
    });
    for _ in 0..DUMPS {
        let mut all = Vec::new();
        let told = dump(socket, &request, |part| {
            let room = MOST_ELEMENTS - all.len();
            all.extend(read(part).take(room));
            Ok::<_, StandingError>(())
        });
        match told {
            Ok(true) => return Ok(Some(all)),
            Ok(false) => {}
            // No such table or set; a kernel without nf_tables.
            Err(DumpError::Refused(ENOENT | EINVAL)) => return Ok(None),
            Err(DumpError::Refused(EPERM)) => return Err(StandingError::NotPermitted),
            Err(DumpError::Refused(code)) => {
                return Err(io::Error::from_raw_os_error(code).into());
            }
            Err(DumpError::Socket(error)) => return Err(error.into()),
            Err(DumpError::Reader(error)) => return Err(error),
        }
    }
    Err(StandingError::Unsteady)
}

/// The elements in a part of a set; what cannot be read is left out.
fn read(part: &[u8]) -> impl Iterator<Item = Element> {
    Messages::new(part)
        .flatten()
        .filter(|message| message.kind == ELEMENTS && !message.is_cut)
        .flat_map(|message| message.attributes())
        .flatten()
        .filter(|(kind, _)| *kind == LIST_ELEMENTS)
        // Whatever their number (NFTA_LIST_ELEM).
        .flat_map(|(_, list)| Attributes::new(list).flatten())
        .filter_map(|(_, element)| read_element(element))
}

fn read_element(element: &[u8]) -> Option<Element> {
    let (mut key, mut comment, mut count) = (None, None, None);
    for (kind, value) in Attributes::new(element).flatten() {
        match kind {
            KEY => key = find(value, VALUE)?.try_into().ok().map(u32::from_ne_bytes),
            USERDATA => comment = read_comment(value),
            EXPRESSION => count = read_counter(value),
            _ => {}
        }
    }
    Some(Element {
        key: key?,
        comment,
        count,
    })
}

/// Kind, length and value, one byte each but the last; texts end with a zero.
fn read_comment(mut userdata: &[u8]) -> Option<String> {
    loop {
        let (&[kind, len], rest) = userdata.split_first_chunk()?;
        let (value, rest) = rest.split_at_checked(usize::from(len))?;
        if kind == COMMENT {
            let text = value.strip_suffix(b"\0").unwrap_or(value);
            return String::from_utf8(text.to_vec()).ok();
        }
        userdata = rest;
    }
}

fn read_counter(expression: &[u8]) -> Option<(u64, u64)> {
    if find(expression, EXPRESSION_NAME)? != b"counter\0" {
        return None;
    }
    let data = find(expression, EXPRESSION_DATA)?;
    let number = |kind| Some(u64::from_be_bytes(find(data, kind)?.try_into().ok()?));
    Some((number(COUNTER_PACKETS)?, number(COUNTER_BYTES)?))
}

fn find(all: &[u8], wanted: u16) -> Option<&[u8]> {
    Attributes::new(all)
        .find_map(|one| one.ok().filter(|(kind, _)| *kind == wanted))
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Attributes as bytes.
    fn nest(all: &[(u16, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        let head = Request {
            subsystem: 0,
            message: 0,
            flags: 0,
            sequence: 0,
            family: 0,
            resource: 0,
        };
        append(&mut out, head, |body| {
            for (kind, value) in all {
                body.put(*kind, value);
            }
        });
        out.split_off(20)
    }

    fn part() -> Vec<u8> {
        let key = |mark: u32| nest(&[(VALUE, &mark.to_ne_bytes())]);
        let numbers = nest(&[
            (COUNTER_BYTES, &180_u64.to_be_bytes()),
            (COUNTER_PACKETS, &3_u64.to_be_bytes()),
        ]);
        let counter = nest(&[(EXPRESSION_NAME, b"counter\0"), (EXPRESSION_DATA, &numbers)]);
        let counting = nest(&[(KEY, &key(0x9_0000)), (EXPRESSION, &counter)]);
        let named = nest(&[
            (KEY, &key(0x8_0000)),
            (3, &[0, 0, 0, 0]),
            (USERDATA, b"\x01\x02ab\x00\x05http\0"),
        ]);
        let keyless = nest(&[(USERDATA, b"\0\x02x\0")]);
        let list = nest(&[(1, &counting), (1, &named), (1, &keyless)]);
        let mut out = Vec::new();
        let head = Request {
            subsystem: SUBSYSTEM,
            message: 12,
            flags: 2,
            sequence: 1,
            family: INET,
            resource: 0,
        };
        append(&mut out, head, |body| {
            body.put(LIST_TABLE, b"linkweir\0");
            body.put_nested(LIST_ELEMENTS, &list);
        });
        out
    }

    #[test]
    fn counters_and_comments_are_read() {
        let counting = Element {
            key: 0x9_0000,
            comment: None,
            count: Some((3, 180)),
        };
        let named = Element {
            key: 0x8_0000,
            comment: Some("http".to_owned()),
            count: None,
        };
        assert_eq!(read(&part()).collect::<Vec<_>>(), [counting, named]);
    }

    #[test]
    fn a_comment_that_lies_about_its_length_is_none() {
        assert_eq!(read_comment(b"\0\x09http\0"), None);
        assert_eq!(read_comment(b"\x01\0"), None);
        assert_eq!(read_comment(b"\0\x01\xff"), None);
        assert_eq!(read_comment(b"\0\x02ab"), Some("ab".to_owned()));
    }

    proptest! {
        #[test]
        fn no_set_breaks_it(at in 0_usize..300, value: u8, cut in 0_usize..300) {
            let mut bytes = part();
            let at = at % bytes.len();
            bytes[at] = value;
            let all = read(&bytes[..cut.min(bytes.len())]).count();
            prop_assert!(all <= bytes.len() / 4);
        }
    }
}
