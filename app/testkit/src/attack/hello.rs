//! The first message of a TLS client, with a server name that a policy may be about.
//!
//! Source: RFC 8446 sec. 4.1.2 and 5.1, RFC 6066 sec. 3.

/// How it is put on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    /// Bytes of a record at most.
    pub record: usize,
    /// Bytes of an unknown extension before the name.
    pub before: usize,
    /// The lower byte of the version of its records.
    pub minor: u8,
    /// Whether a record without bytes comes before each.
    pub has_empty: bool,
}

impl Default for Form {
    fn default() -> Self {
        Self {
            record: 1 << 14,
            before: 0,
            minor: 1,
            has_empty: false,
        }
    }
}

/// A `ClientHello` in records.
pub(super) fn hello(name: &[u8], form: Form) -> Vec<u8> {
    let host = [&[0][..], &vector(name)].concat();
    let names = [&[0, 0][..], &vector(&vector(&host))].concat();
    let before = [&[0xfa, 0xfa][..], &vector(&vec![0; form.before])].concat();
    // Behind the name, so that who has it all has the name too.
    let behind = [&[0xfb, 0xfb][..], &vector(&[0; 32])].concat();
    let extensions = vector(&[before, names, behind].concat());
    let body = [
        &[3, 3][..],
        &[7; 32],
        &[0],
        &vector(&[0x13, 1]),
        &[1, 0],
        &extensions,
    ]
    .concat();
    let message = [&[1, 0][..], &vector(&body)].concat();
    let record = |bytes: &[u8]| [&[22, 3, form.minor][..], &vector(bytes)].concat();
    let mut all = Vec::new();
    for part in message.chunks(form.record.max(1)) {
        if form.has_empty {
            all.extend(record(&[]));
        }
        all.extend(record(part));
    }
    all
}

/// Bytes behind their length in two bytes.
fn vector(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    [&length.to_be_bytes()[..], bytes].concat()
}
