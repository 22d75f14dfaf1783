//! Lines of `log_dns_complete`: questions and records of answers.

use std::io::Write as _;

use linkweir_record::flow::{DnsEntry, DnsLine};
use linkweir_sink::number::{push_ip, push_seconds6, push_u64};

use crate::lines::{push_all, push_header, push_text};

const COLUMNS: [&str; 22] = [
    "c_ip",
    "c_port",
    "c_isint",
    "c_iscrypto",
    "s_ip",
    "s_port",
    "s_isint",
    "s_iscrypto",
    "time",
    "entry",
    "trans_id",
    "query",
    "ttl",
    "class",
    "type",
    "answer",
    "flags",
    "qdcount",
    "ancount",
    "nscount",
    "arcount",
    "pkt_size",
];

pub(crate) fn header(out: &mut Vec<u8>) {
    push_header(out, "#", b' ', COLUMNS.into_iter());
}

const fn class(class: u16) -> &'static str {
    match class {
        0 => "-",
        1 => "IN",
        3 => "CH",
        4 => "HS",
        254 => "NONE",
        255 => "ANY",
        _ => "OTHER",
    }
}

/// A type by its name, of those that Tstat names; another by its number (RFC 3597 section 5).
fn push_type(out: &mut Vec<u8>, kind: u16) {
    let name = match kind {
        0 => "-",
        1 => "A",
        2 => "NS",
        5 => "CNAME",
        6 => "SOA",
        12 => "PTR",
        13 => "HINFO",
        15 => "MX",
        16 => "TXT",
        17 => "RP",
        28 => "AAAA",
        29 => "LOC",
        32 => "NB",
        33 => "SRV",
        35 => "NAPTR",
        39 => "DNAME",
        43 => "DS",
        44 => "SSHFP",
        46 => "RRSIG",
        47 => "NSEC",
        48 => "DNSKEY",
        50 => "NSEC3",
        51 => "NSEC3PARAM",
        64 => "SVCB",
        65 => "HTTPS",
        99 => "SPF",
        _ => {
            let _never_fails = write!(out, " TYPE{kind}");
            return;
        }
    };
    push_text(out, name.as_bytes());
}

/// Response codes of RFC 1035 and RFC 2136.
const fn fault(code: u16) -> &'static str {
    match code {
        1 => "FORMERR",
        2 => "SERVFAIL",
        3 => "NXDOMAIN",
        4 => "NOTIMPL",
        5 => "REFUSED",
        6 => "YXDOMAIN",
        7 => "YXRRSET",
        8 => "NXRRSET",
        9 => "NOTAUTH",
        10 => "NOTZONE",
        _ => "UNKNOWN-ERROR",
    }
}

/// Tstat's order of the flags: CD, AD, RA, RD, TC, AA from the lowest bit.
fn flags(header: u16) -> u16 {
    [4, 5, 7, 8, 9, 10]
        .into_iter()
        .zip(0..)
        .fold(0, |bits, (from, to)| bits | (header >> from & 1) << to)
}

/// The line of a question or record.
pub(crate) fn line(out: &mut Vec<u8>, line: &DnsLine<'_>) {
    let row = line.row;
    let [query, target] = line.texts;
    let [client, server] = row.is_internal;
    for (number, (end, is_internal)) in [(row.client, client), (row.server, server)]
        .into_iter()
        .enumerate()
    {
        if number > 0 {
            out.push(b' ');
        }
        push_ip(out, end.0);
        let numbers = [
            u64::from(end.1),
            u64::from(is_internal),
            u64::from(row.is_encrypted),
        ];
        push_all(out, numbers);
    }
    out.push(b' ');
    push_seconds6(out, row.time_ns);
    let entry = match row.entry {
        DnsEntry::Question => "REQ",
        DnsEntry::Fault(_) => "RESP_ERR",
        DnsEntry::Address(_) | DnsEntry::Name | DnsEntry::Other => "RESP",
    };
    let _never_fails = write!(out, " {entry} 0x{:04x}", row.id);
    push_text(out, query);
    match row.entry {
        DnsEntry::Question | DnsEntry::Fault(_) => out.extend_from_slice(b" -"),
        _ => push_all(out, [u64::from(row.ttl)]),
    }
    push_text(out, class(row.class).as_bytes());
    push_type(out, row.kind);
    match row.entry {
        DnsEntry::Address(address) => {
            out.push(b' ');
            push_ip(out, address);
        }
        DnsEntry::Fault(code) => push_text(out, fault(code).as_bytes()),
        DnsEntry::Question | DnsEntry::Name | DnsEntry::Other => push_text(out, target),
    }
    let _never_fails = write!(out, " 0x{:02x}", flags(row.flags));
    push_all(out, row.counts.map(u64::from));
    out.push(b' ');
    push_u64(out, u64::from(row.size));
    out.push(b'\n');
}
