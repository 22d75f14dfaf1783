//! Elements of our sets, and what was queued, as the kernel tells them (`nf_tables`), without `nft`: a gateway
//! that runs may start no program. Asking takes `CAP_NET_ADMIN`, which it keeps for its verdicts anyway.
//!
//! Source: `linux/netfilter/nf_tables.h`; comments as libnftnl writes them (`libnftnl/udata.h`).

use std::io;

use linkweir_sys::netlink::NetfilterSocket;
use thiserror::Error;

use crate::message::{Attributes, DUMP, Messages, Request, append};
use crate::message::{DumpError, dump};

/// `NFNL_SUBSYS_NFTABLES`.
const SUBSYSTEM: u8 = 10;
/// `NFT_MSG_NEWSETELEM`, with the subsystem: how elements are reported.
const ELEMENTS: u16 = ((SUBSYSTEM as u16) << 8) | 12;
/// `NFT_MSG_GETSETELEM`.
const GET: u8 = 13;
/// `NFT_MSG_NEWRULE`, with the subsystem: how rules are reported.
const RULES: u16 = ((SUBSYSTEM as u16) << 8) | 6;
/// `NFT_MSG_GETRULE`.
const GET_RULES: u8 = 7;
/// `NFPROTO_INET`.
const INET: u8 = 1;
/// `NFPROTO_IPV4`, `NFPROTO_IPV6`: tables of iptables and of ip6tables.
const IP_FAMILIES: [u8; 2] = [2, 10];
/// `NFTA_RULE_TABLE`, `_CHAIN`, `_EXPRESSIONS`.
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;
/// `NFTA_TARGET_NAME`.
const TARGET_NAME: u16 = 1;
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
    ask(
        socket,
        (GET, INET),
        [(LIST_TABLE, table), (LIST_SET, set)],
        |part, all| {
            let room = MOST_ELEMENTS - all.len();
            all.extend(read(part).take(room));
        },
    )
}

/// Packets that rules of a chain of iptables and ip6tables have sent to queues since the chain was made; `None`
/// where there is no such rule, also where iptables keeps its rules elsewhere (`iptables-legacy`).
///
/// A packet counts here whether or not a queue had room for it.
pub(super) fn queued(
    socket: &NetfilterSocket,
    table: &str,
    chain: &str,
) -> Result<Option<u64>, StandingError> {
    let mut counts = Vec::new();
    for family in IP_FAMILIES {
        let told = ask(
            socket,
            (GET_RULES, family),
            [(RULE_TABLE, table), (RULE_CHAIN, chain)],
            |part, all| all.extend(read_queued(part)),
        );
        counts.extend(told?.into_iter().flatten());
    }
    Ok((!counts.is_empty()).then(|| counts.iter().sum()))
}

/// Asks for what is reported part by part; `None` where the kernel does not have it.
fn ask<T>(
    socket: &NetfilterSocket,
    (message, family): (u8, u8),
    names: [(u16, &str); 2],
    read: impl Fn(&[u8], &mut Vec<T>),
) -> Result<Option<Vec<T>>, StandingError> {
    let head = Request {
        subsystem: SUBSYSTEM,
        message,
        flags: DUMP,
        sequence: 1,
        family,
        resource: 0,
    };
    let mut request = Vec::new();
    append(&mut request, head, |body| {
        for (kind, name) in names {
            // Names end with a zero (NLA_STRING).
            body.put(kind, format!("{name}\0").as_bytes());
        }
    });
    for _ in 0..DUMPS {
        let mut all = Vec::new();
        let told = dump(socket, &request, |part| {
            read(part, &mut all);
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

/// What each rule counts in a part of a chain that sends packets to a queue; other rules are left out.
fn read_queued(part: &[u8]) -> impl Iterator<Item = u64> {
    Messages::new(part)
        .flatten()
        .filter(|message| message.kind == RULES && !message.is_cut)
        .filter_map(|message| {
            let mut attributes = message.attributes().flatten();
            let (_, list) = attributes.find(|(kind, _)| *kind == RULE_EXPRESSIONS)?;
            let expressions = || Attributes::new(list).flatten().map(|(_, one)| one);
            expressions().any(is_queue).then_some(())?;
            expressions().find_map(read_counter)
        })
        .map(|(packets, _)| packets)
}

/// Whether an expression is a queue: that of nft, or the target of iptables.
fn is_queue(expression: &[u8]) -> bool {
    let target = || find(find(expression, EXPRESSION_DATA)?, TARGET_NAME);
    match find(expression, EXPRESSION_NAME) {
        Some(b"queue\0") => true,
        Some(b"target\0") => target().is_some_and(|name| name.starts_with(b"NFQUEUE\0")),
        _ => false,
    }
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
    use crate::message::AttributeWriter;

    /// Attributes as bytes.
    fn nest(all: &[(u16, &[u8])]) -> Vec<u8> {
        let whole = message(0, 0, |body| {
            for (kind, value) in all {
                body.put(*kind, value);
            }
        });
        whole[20..].to_vec()
    }

    /// A message of the kernel with these attributes.
    fn message(message: u8, family: u8, fill: impl FnOnce(&mut AttributeWriter<'_>)) -> Vec<u8> {
        let mut out = Vec::new();
        let head = Request {
            subsystem: SUBSYSTEM,
            message,
            flags: 2,
            sequence: 1,
            family,
            resource: 0,
        };
        append(&mut out, head, fill);
        out
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
        message(12, INET, |body| {
            body.put(LIST_TABLE, b"linkweir\0");
            body.put_nested(LIST_ELEMENTS, &list);
        })
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

    /// Rules with these expressions, each counting one packet more than the one before.
    fn rules(which: &[&[(u16, &[u8])]]) -> Vec<u8> {
        let mut out = Vec::new();
        for (last, packets) in which.iter().zip(7_u64..) {
            let numbers = nest(&[
                (COUNTER_PACKETS, &packets.to_be_bytes()),
                (COUNTER_BYTES, &[0; 8]),
            ]);
            let counter = nest(&[(EXPRESSION_NAME, b"counter\0"), (EXPRESSION_DATA, &numbers)]);
            let list = nest(&[(1, &counter), (1, &nest(last))]);
            out.extend(message(6, 2, |body| {
                body.put(RULE_CHAIN, b"LINKWEIR-DECIDE\0");
                body.put_nested(RULE_EXPRESSIONS, &list);
            }));
        }
        out
    }

    #[test]
    fn what_was_queued_is_counted_whoever_made_the_rule() {
        let target = nest(&[(TARGET_NAME, b"NFQUEUE\0"), (2, &[0, 0, 0, 3])]);
        let mark = nest(&[(TARGET_NAME, b"CONNMARK\0")]);
        let name = |name: &'static [u8]| (EXPRESSION_NAME, name);
        let bytes = rules(&[
            &[name(b"target\0"), (EXPRESSION_DATA, &mark)],
            &[name(b"target\0"), (EXPRESSION_DATA, &target)],
            &[name(b"queue\0")],
            &[name(b"immediate\0")],
        ]);
        assert_eq!(read_queued(&bytes).collect::<Vec<_>>(), [8, 9]);
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
            bytes.extend(rules(&[&[(EXPRESSION_NAME, b"queue\0")]]));
            let at = at % bytes.len();
            bytes[at] = value;
            let bytes = &bytes[..cut.min(bytes.len())];
            prop_assert!(read(bytes).count() + read_queued(bytes).count() <= bytes.len() / 4);
        }
    }
}
