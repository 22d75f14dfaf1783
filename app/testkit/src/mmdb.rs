//! A writer of small databases of addresses in the format of `MaxMind`, because none may be committed.
//!
//! Source: "`MaxMind` DB File Format Specification", version 2.0.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a builder that fails is a failed test"
)]

use std::net::IpAddr;

/// A value of the data section.
#[derive(Debug, Clone)]
pub enum Value {
    /// UTF-8.
    Text(&'static str),
    /// 16 bits.
    U16(u16),
    /// 32 bits.
    U32(u32),
    /// 64 bits.
    U64(u64),
    /// Values by their names.
    Map(Vec<(&'static str, Self)>),
    /// Values in their order.
    Array(Vec<Self>),
}

/// What a database of countries or cities says of a network.
#[must_use]
pub fn country(code: &'static str) -> Value {
    let country = Value::Map(vec![("iso_code", Value::Text(code))]);
    Value::Map(vec![("country", country)])
}

/// What a database of autonomous systems says of a network.
#[must_use]
pub fn asn(number: u32) -> Value {
    Value::Map(vec![
        ("autonomous_system_number", Value::U32(number)),
        (
            "autonomous_system_organization",
            Value::Text("An organization whose name is longer than 28 bytes"),
        ),
    ])
}

/// Type and size in front of a value.
fn control(out: &mut Vec<u8>, kind: u8, size: usize) {
    let (short, more) = match u8::try_from(size) {
        Ok(size @ 0..29) => (size, None),
        Ok(size) => (29, Some(size - 29)),
        Err(_) => panic!("values of the test are short"),
    };
    match kind {
        0..=7 => out.push(kind << 5 | short),
        _ => out.extend([short, kind - 7]),
    }
    out.extend(more);
}

fn push(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Text(text) => {
            control(out, 2, text.len());
            out.extend(text.bytes());
        }
        Value::U16(number) => {
            control(out, 5, 2);
            out.extend(number.to_be_bytes());
        }
        Value::U32(number) => {
            control(out, 6, 4);
            out.extend(number.to_be_bytes());
        }
        Value::U64(number) => {
            control(out, 9, 8);
            out.extend(number.to_be_bytes());
        }
        Value::Map(entries) => {
            control(out, 7, entries.len());
            for (name, value) in entries {
                push(out, &Value::Text(name));
                push(out, value);
            }
        }
        Value::Array(values) => {
            control(out, 11, values.len());
            for value in values {
                push(out, value);
            }
        }
    }
}

/// Where a bit leads.
#[derive(Clone, Copy)]
enum Child {
    Nothing,
    Node(usize),
    Data(usize),
}

/// A database of this type (`GeoLite2-City`) with these networks, which do not overlap.
///
/// # Panics
/// Where a network is none.
#[must_use]
pub fn database(kind: &'static str, networks: &[(&str, Value)]) -> Vec<u8> {
    let mut nodes = vec![[Child::Nothing; 2]];
    let mut data = Vec::new();
    for (network, value) in networks {
        let (address, length) = network.split_once('/').expect("ADDRESS/LENGTH");
        let length: usize = length.parse().expect("a length");
        // Networks of IPv4 are in `::/96`.
        let (bits, length) = match address.parse().expect("an address") {
            IpAddr::V4(v4) => (u128::from(v4.to_bits()), 96 + length),
            IpAddr::V6(v6) => (v6.to_bits(), length),
        };
        let mut at = 0;
        for depth in 0..length {
            let bit = usize::from(bits >> (127 - depth) & 1 == 1);
            if depth + 1 == length {
                nodes[at][bit] = Child::Data(data.len());
            } else if let Child::Node(next) = nodes[at][bit] {
                at = next;
            } else {
                nodes[at][bit] = Child::Node(nodes.len());
                at = nodes.len();
                nodes.push([Child::Nothing; 2]);
            }
        }
        push(&mut data, value);
    }
    let count = nodes.len();
    let mut out = Vec::new();
    for child in nodes.as_flattened() {
        let record = match child {
            Child::Nothing => count,
            Child::Node(node) => *node,
            Child::Data(offset) => count + 16 + offset,
        };
        let [.., a, b, c] = u32::try_from(record)
            .expect("a small database")
            .to_be_bytes();
        out.extend([a, b, c]);
    }
    out.extend([0; 16]);
    out.extend(data);
    out.extend(b"\xab\xcd\xefMaxMind.com");
    let count = u32::try_from(count).expect("a small database");
    let metadata = Value::Map(vec![
        ("binary_format_major_version", Value::U16(2)),
        ("binary_format_minor_version", Value::U16(0)),
        ("build_epoch", Value::U64(1_700_000_000)),
        ("database_type", Value::Text(kind)),
        (
            "description",
            Value::Map(vec![("en", Value::Text("of a test"))]),
        ),
        ("ip_version", Value::U16(6)),
        ("languages", Value::Array(vec![Value::Text("en")])),
        ("node_count", Value::U32(count)),
        ("record_size", Value::U16(24)),
    ]);
    push(&mut out, &metadata);
    out
}
