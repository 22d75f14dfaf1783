//! JA4: what a client offers in its `ClientHello`, as a text that is the same for all connections of one program.
//!
//! Three parts, joined by underscores: `t13d1516h2` are the carrier, the highest version, whether there is a server
//! name, how many suites and extensions there are, and the first protocol of ALPN; then 12 digits of a hash of the
//! suites, and 12 of one of the extensions and signature algorithms. Values of GREASE (RFC 8701) are passed over.
//!
//! Source: `FoxIO`, "JA4: TLS Client Fingerprinting" (the part under BSD-3).

use sha2::{Digest as _, Sha256};

use super::MessageHeader;
use super::hello::extension;
use super::message_type::CLIENT_HELLO;
use super::reader::Reader;

/// Bytes of a fingerprint.
pub const JA4_BYTES: usize = 36;

/// Digits of each of the two hashes.
const DIGITS: usize = 12;

/// What a hello goes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// TLS over TCP.
    Tcp,
    /// QUIC.
    Quic,
}

/// The fingerprint of a client.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ja4([u8; JA4_BYTES]);

impl Ja4 {
    /// Of a `ClientHello` with its message header, at the start of `message`; `None` of one that is cut or not one.
    #[must_use]
    pub fn of(carrier: Carrier, message: &[u8]) -> Option<Self> {
        let offer = Offer::read(message)?;
        let mut out = Text::new();
        out.push(match carrier {
            Carrier::Tcp => b"t",
            Carrier::Quic => b"q",
        });
        out.push(offer.version());
        out.push(if offer.has_server_name { b"d" } else { b"i" });
        out.push(&count(offer.suites.len()));
        out.push(&count(offer.extensions.len()));
        out.push(&ends(offer.protocol));
        out.push(b"_");
        out.push(&offer.suites_hash());
        out.push(b"_");
        out.push(&offer.extensions_hash());
        Some(Self(out.bytes))
    }

    /// Its text: ASCII.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; JA4_BYTES] {
        &self.0
    }
}

impl std::fmt::Debug for Ja4 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

/// The text as it grows.
struct Text {
    bytes: [u8; JA4_BYTES],
    len: usize,
}

impl Text {
    const fn new() -> Self {
        Self {
            bytes: [0; JA4_BYTES],
            len: 0,
        }
    }

    fn push(&mut self, part: &[u8]) {
        let end = self.len + part.len();
        if let Some(room) = self.bytes.get_mut(self.len..end) {
            room.copy_from_slice(part);
            self.len = end;
        }
    }
}

/// What of a hello the fingerprint is made of.
#[derive(Default)]
struct Offer<'a> {
    legacy_version: u16,
    /// Highest of `supported_versions`.
    highest: Option<u16>,
    has_server_name: bool,
    /// In ascending order, as the extensions.
    suites: Vec<u16>,
    extensions: Vec<u16>,
    /// First protocol of ALPN.
    protocol: &'a [u8],
    /// In the order of the client.
    signatures: Vec<u16>,
}

impl<'a> Offer<'a> {
    /// Reads a whole hello (RFC 8446 sec. 4.1.2).
    fn read(message: &'a [u8]) -> Option<Self> {
        let (header, rest) = message.split_first_chunk::<{ MessageHeader::LEN }>()?;
        let header = MessageHeader::parse(*header);
        if header.kind != CLIENT_HELLO {
            return None;
        }
        let mut body = Reader::new(rest.get(..header.len as usize)?);
        let mut offer = Self {
            legacy_version: body.u16()?,
            ..Self::default()
        };
        let _random = body.array::<32>()?;
        let _session_id = body.vector8()?;
        offer.suites = numbers(body.vector16()?).collect();
        offer.suites.sort_unstable();
        let _compression = body.vector8()?;
        if !body.is_empty() {
            let mut list = Reader::new(body.vector16()?);
            while !list.is_empty() {
                let kind = list.u16()?;
                offer.read_extension(kind, list.vector16()?);
            }
        }
        offer.extensions.sort_unstable();
        Some(offer)
    }

    fn read_extension(&mut self, kind: u16, content: &'a [u8]) {
        if is_grease(kind) {
            return;
        }
        self.extensions.push(kind);
        let mut content = Reader::new(content);
        match kind {
            extension::SERVER_NAME => self.has_server_name = true,
            extension::ALPN => {
                let names = content.vector16().unwrap_or_default();
                self.protocol = Reader::new(names).vector8().unwrap_or_default();
            }
            extension::SUPPORTED_VERSIONS => {
                self.highest = numbers(content.vector8().unwrap_or_default()).max();
            }
            extension::SIGNATURE_ALGORITHMS => {
                self.signatures = numbers(content.vector16().unwrap_or_default()).collect();
            }
            _ => {}
        }
    }

    const fn version(&self) -> &'static [u8; 2] {
        let version = match self.highest {
            Some(highest) => highest,
            None => self.legacy_version,
        };
        match version {
            0x0304 => b"13",
            0x0303 => b"12",
            0x0302 => b"11",
            0x0301 => b"10",
            0x0300 => b"s3",
            0x0002 => b"s2",
            _ => b"00",
        }
    }

    fn suites_hash(&self) -> [u8; DIGITS] {
        let mut list = List::default();
        list.extend(&self.suites);
        list.digits()
    }

    /// Server name and ALPN have their place in the first part.
    fn extensions_hash(&self) -> [u8; DIGITS] {
        let mut list = List::default();
        for kind in &self.extensions {
            if !matches!(*kind, extension::SERVER_NAME | extension::ALPN) {
                list.push(*kind);
            }
        }
        if !self.signatures.is_empty() {
            list.end(b"_");
            list.extend(&self.signatures);
        }
        list.digits()
    }
}

/// Numbers of two bytes, but those of GREASE.
fn numbers(bytes: &[u8]) -> impl Iterator<Item = u16> {
    let (pairs, _) = bytes.as_chunks::<2>();
    let numbers = pairs.iter().map(|pair| u16::from_be_bytes(*pair));
    numbers.filter(|number| !is_grease(*number))
}

/// Whether a value is one of those that clients send to keep servers tolerant (RFC 8701): `0x0a0a`, `0x1a1a` and so on.
const fn is_grease(number: u16) -> bool {
    number & 0x0f0f == 0x0a0a && number >> 8 == number & 0xff
}

/// Two digits.
fn count(number: usize) -> [u8; 2] {
    let number = u8::try_from(number).unwrap_or(99).min(99);
    [b'0' + number / 10, b'0' + number % 10]
}

/// First and last character of a protocol; where either is not a letter or digit, first and last of its hexadecimal
/// digits.
fn ends(protocol: &[u8]) -> [u8; 2] {
    let (Some(first), Some(last)) = (protocol.first(), protocol.last()) else {
        return *b"00";
    };
    if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
        [*first, *last]
    } else {
        [digit(first >> 4), digit(last & 15)]
    }
}

/// A hexadecimal digit, of a number below 16.
const fn digit(number: u8) -> u8 {
    match number {
        0..=9 => b'0' + number,
        _ => b'a' - 10 + number,
    }
}

/// The hash of a list of numbers of four digits, joined by commas.
#[derive(Default)]
struct List {
    hash: Sha256,
    is_joined: bool,
    has_some: bool,
}

impl List {
    fn push(&mut self, number: u16) {
        if std::mem::replace(&mut self.is_joined, true) {
            self.hash.update(b",");
        }
        self.has_some = true;
        let [high, low] = number.to_be_bytes();
        self.hash
            .update([high >> 4, high & 15, low >> 4, low & 15].map(digit));
    }

    fn extend(&mut self, numbers: &[u16]) {
        for number in numbers {
            self.push(*number);
        }
    }

    /// Ends a list; the next begins behind this.
    fn end(&mut self, with: &[u8]) {
        self.hash.update(with);
        self.is_joined = false;
    }

    /// The first digits of the hash; zeros of nothing.
    fn digits(self) -> [u8; DIGITS] {
        let mut digits = [b'0'; DIGITS];
        if self.has_some {
            let hash = self.hash.finalize();
            let (pairs, _) = digits.as_chunks_mut::<2>();
            for ([high, low], byte) in pairs.iter_mut().zip(hash) {
                (*high, *low) = (digit(byte >> 4), digit(byte & 15));
            }
        }
        digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(numbers: &[u16]) -> Vec<u8> {
        numbers.iter().flat_map(|n| n.to_be_bytes()).collect()
    }

    fn vector16(content: &[u8]) -> Vec<u8> {
        let len = u16::try_from(content.len()).unwrap();
        [len.to_be_bytes().as_slice(), content].concat()
    }

    /// A hello with these suites and extensions; those that are read have the content given, others none.
    fn hello(suites: &[u16], extensions: &[u16], protocol: &[u8], signatures: &[u16]) -> Vec<u8> {
        let content = |kind| match kind {
            16 => {
                let len = u8::try_from(protocol.len()).unwrap();
                vector16(&[&[len], protocol, b"\x08http/1.1"].concat())
            }
            13 => vector16(&bytes(signatures)),
            // GREASE, 1.2, 1.3
            43 => [&[6][..], &bytes(&[0xfafa, 0x0303, 0x0304])].concat(),
            _ => Vec::new(),
        };
        let extensions: Vec<u8> = extensions
            .iter()
            .flat_map(|kind| [kind.to_be_bytes().to_vec(), vector16(&content(*kind))].concat())
            .collect();
        let body = [
            &[3, 3][..],
            &[7; 32],
            &[0],
            &vector16(&bytes(suites)),
            &[1, 0],
            &vector16(&extensions),
        ]
        .concat();
        let len = u32::try_from(body.len()).unwrap().to_be_bytes();
        [&[1], &len[1..], &body].concat()
    }

    fn text(message: &[u8]) -> String {
        let ja4 = Ja4::of(Carrier::Tcp, message).unwrap();
        String::from_utf8(ja4.as_bytes().to_vec()).unwrap()
    }

    const SUITES: [u16; 16] = [
        0x2a2a, 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013,
        0xc014, 0x009c, 0x009d, 0x002f, 0x0035,
    ];
    const SIGNATURES: [u16; 8] = [
        0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601,
    ];
    const EXTENSIONS: [u16; 18] = [
        0x1a1a, 0x001b, 0x0000, 0x0033, 0x0010, 0x4469, 0x0017, 0x002d, 0x000d, 0x0005, 0x0023,
        0x0012, 0x002b, 0xff01, 0x000b, 0x000a, 0x0015, 0xeaea,
    ];

    /// The example of the description, with GREASE in all lists.
    #[test]
    fn the_published_example() {
        let message = hello(&SUITES, &EXTENSIONS, b"h2", &SIGNATURES);
        assert_eq!(text(&message), "t13d1516h2_8daaf6152771_e5627efa2ab1");
        let quic = Ja4::of(Carrier::Quic, &message).unwrap();
        assert!(quic.as_bytes().starts_with(b"q13d1516h2_8daa"));
        // Its list without signature algorithms.
        let message = hello(&SUITES, &EXTENSIONS, b"h2", &[]);
        assert_eq!(text(&message), "t13d1516h2_8daaf6152771_6d807ffa2a79");
        let greasy = [&[0x9a9a], &SIGNATURES[..], &[0x0a0a]].concat();
        let message = hello(&SUITES, &EXTENSIONS, b"h2", &greasy);
        assert!(text(&message).ends_with("_e5627efa2ab1"));
    }

    #[test]
    fn what_is_not_there_is_zeros() {
        let message = hello(&[], &[], b"", &[]);
        assert_eq!(text(&message), "t12i000000_000000000000_000000000000");
        let message = hello(&[0x0a0a], &[0, 16], b"", &[]);
        assert_eq!(text(&message), "t12d000200_000000000000_000000000000");
        // No extensions at all, as in SSL 3.
        let mut message = hello(&[0x0005, 0x0004], &[], b"", &[]);
        message.truncate(message.len() - 2);
        message[3] -= 2;
        message[5] = 0;
        assert!(text(&message).starts_with("ts3i020000_"));
        // No version that anybody knows.
        message[5] = 9;
        assert!(text(&message).starts_with("t00i0200"));
    }

    #[test]
    fn counts_end_at_99() {
        let many: Vec<u16> = (1..=120).collect();
        assert!(text(&hello(&many, &[], b"", &[])).starts_with("t12i990000_"));
    }

    #[test]
    fn first_and_last_of_a_protocol() {
        for (protocol, wanted) in [
            (&b""[..], b"00"),
            (b"h2", b"h2"),
            (b"http/1.1", b"h1"),
            (b"x", b"xx"),
            (&[0xab], b"ab"),
            (&[0xab, 0xcd], b"ad"),
            (&[0x30, 0xab], b"3b"),
            (&[0x30, 0x31, 0xab, 0xcd], b"3d"),
            (&[0x30, 0xab, 0xcd, 0x31], b"01"),
        ] {
            assert_eq!(&ends(protocol), wanted, "{protocol:?}");
        }
    }

    #[test]
    fn grease_is_sixteen_values() {
        let values: Vec<u16> = (0..=u16::MAX).filter(|n| is_grease(*n)).collect();
        assert_eq!(values.len(), 16);
        assert_eq!((values[0], values[15]), (0x0a0a, 0xfafa));
    }

    #[test]
    fn of_a_cut_hello_there_is_none() {
        let message = hello(&SUITES, &EXTENSIONS, b"h2", &SIGNATURES);
        for len in 0..message.len() {
            assert_eq!(Ja4::of(Carrier::Tcp, &message[..len]), None, "{len}");
        }
        let behind = [&message[..], b"more"].concat();
        assert_eq!(text(&behind), text(&message));
        // An extension that ends behind its list.
        let mut wrong = message;
        let last = wrong.len() - 1;
        wrong[last] = 1;
        assert_eq!(Ja4::of(Carrier::Tcp, &wrong), None);
        assert_eq!(Ja4::of(Carrier::Tcp, b"GET / HTTP/1.1"), None);
    }

    proptest! {
        /// Whatever the bytes are, and however the client orders what it offers.
        #[test]
        fn neither_bytes_nor_order_matter(
            noise in proptest::collection::vec(any::<u8>(), 0..200),
            turn in 0_usize..16,
        ) {
            let _any = Ja4::of(Carrier::Tcp, &noise);
            let (mut suites, mut extensions) = (SUITES, EXTENSIONS);
            suites.rotate_left(turn);
            extensions.rotate_left(turn);
            let message = hello(&suites, &extensions, b"h2", &SIGNATURES);
            prop_assert_eq!(text(&message), "t13d1516h2_8daaf6152771_e5627efa2ab1");
        }
    }
}
