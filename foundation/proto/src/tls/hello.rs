//! The two hellos: what the client offers and what the server chooses.

use super::message_type::{CLIENT_HELLO, ENCRYPTED_EXTENSIONS, SERVER_HELLO};
use super::reader::Reader;
use super::{MessageHeader, Parsed};

/// Extensions that are read (IANA registry "TLS `ExtensionType` Values").
pub(super) mod extension {
    pub(in crate::tls) const SERVER_NAME: u16 = 0;
    pub(in crate::tls) const SIGNATURE_ALGORITHMS: u16 = 13;
    pub(in crate::tls) const ALPN: u16 = 16;
    pub(in crate::tls) const ENCRYPT_THEN_MAC: u16 = 22;
    pub(in crate::tls) const SESSION_TICKET: u16 = 35;
    pub(in crate::tls) const PRE_SHARED_KEY: u16 = 41;
    pub(in crate::tls) const EARLY_DATA: u16 = 42;
    pub(in crate::tls) const SUPPORTED_VERSIONS: u16 = 43;
    pub(in crate::tls) const KEY_SHARE: u16 = 51;
    pub(in crate::tls) const QUIC_PARAMETERS: u16 = 57;
    /// NPN, which ALPN replaced: in the server's hello the list of its protocols.
    pub(in crate::tls) const NEXT_PROTOCOL: u16 = 0x3374;
    pub(in crate::tls) const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
    /// Encrypted server name, the draft before it.
    pub(in crate::tls) const ENCRYPTED_SERVER_NAME: u16 = 0xffce;
    /// QUIC transport parameters of drafts before 33.
    pub(in crate::tls) const QUIC_PARAMETERS_DRAFT: u16 = 0xffa5;
}

/// Names of application protocols: an iterator over them (RFC 7301 sec. 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Alpn<'a>(&'a [u8]);

impl<'a> Iterator for Alpn<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let mut reader = Reader::new(self.0);
        let name = reader.vector8();
        self.0 = name.map(|_| reader.rest()).unwrap_or_default();
        name.filter(|name| !name.is_empty())
    }
}

/// What a client offers. Slices borrow from the message; absent ones are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientHello<'a> {
    /// Highest version offered, as on the wire: of `supported_versions` where it is there. Drafts
    /// of TLS 1.3 count as it.
    pub version: u16,
    /// By which a key log has the secrets (RFC 9850).
    pub random: [u8; 32],
    /// Id of the session to resume; of TLS 1.3 without meaning.
    pub session_id: &'a [u8],
    /// Host name of the `server_name` extension (RFC 6066 sec. 3).
    pub server_name: &'a [u8],
    /// Protocols offered.
    pub alpn: Alpn<'a>,
    /// Whether it carries a ticket (RFC 5077).
    pub has_ticket: bool,
    /// Whether it offers MACs of the ciphertext (RFC 7366).
    pub encrypts_then_mac: bool,
    /// Whether data may follow before the answer (RFC 8446 sec. 4.2.10).
    pub has_early_data: bool,
    /// Whether it offers pre-shared keys (RFC 8446 sec. 4.2.11).
    pub has_pre_shared_key: bool,
    /// Whether it has the extension of an encrypted hello (RFC 9849), which some clients send with
    /// random content too.
    pub has_ech: bool,
    /// Transport parameters of QUIC (RFC 9001 sec. 8.2).
    pub quic_parameters: &'a [u8],
}

/// What a server chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerHello<'a> {
    /// Version chosen, as on the wire; drafts of TLS 1.3 count as it.
    pub version: u16,
    /// Random of the server.
    pub random: [u8; 32],
    /// Cipher suite, as on the wire.
    pub suite: u16,
    /// Group of the key exchange, as on the wire; of TLS 1.2 it stands in another message.
    pub group: Option<u16>,
    /// Whether MACs are of the ciphertext (RFC 7366).
    pub encrypts_then_mac: bool,
    /// Id of the session.
    pub session_id: &'a [u8],
    /// The protocol chosen; empty of TLS 1.3, where it is encrypted.
    pub alpn: Alpn<'a>,
    /// Whether a pre-shared key was accepted.
    pub has_pre_shared_key: bool,
    /// Whether it asks for another `ClientHello` (RFC 8446 sec. 4.1.4).
    pub is_retry: bool,
}

/// The random of a `HelloRetryRequest`: SHA-256 of that word (RFC 8446 sec. 4.1.3).
const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// The body of a message of this kind, and whether it is whole.
fn body(message: &[u8], kind: u8) -> Option<(Reader<'_>, bool)> {
    let (header, rest) = message.split_first_chunk::<{ MessageHeader::LEN }>()?;
    let header = MessageHeader::parse(*header);
    if header.kind != kind {
        return None;
    }
    let (body, is_whole) = Reader::new(rest).take_up_to(header.len as usize);
    Some((Reader::new(body), is_whole))
}

/// A version, where it is one: values of GREASE (RFC 8701) are none.
fn known_version(version: u16) -> Option<u16> {
    match version {
        0x0300..=0x0304 => Some(version),
        // Drafts of TLS 1.3, Facebook's and Google's among them.
        0x7f00..=0x7f1f | 0x7e01..=0x7e04 | 0xfb17..=0xfb1c => Some(0x0304),
        _ => None,
    }
}

/// Walks over the extensions at the end of a hello, as far as it is there; the last one may be cut.
fn extensions<'a>(reader: &mut Reader<'a>, mut on_extension: impl FnMut(u16, &'a [u8])) {
    let Some(len) = reader.u16() else {
        return;
    };
    let mut list = Reader::new(reader.take_up_to(usize::from(len)).0);
    while let (Some(kind), Some(len)) = (list.u16(), list.u16()) {
        let (content, _) = list.take_up_to(usize::from(len));
        on_extension(kind, content);
    }
}

/// The names of an ALPN extension.
fn alpn_of(content: &[u8]) -> Alpn<'_> {
    let mut reader = Reader::new(content);
    let len = reader.u16().unwrap_or_default();
    Alpn(reader.take_up_to(usize::from(len)).0)
}

/// The first host name of a `server_name` extension; of a cut one nothing.
fn server_name(content: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(content);
    let len = reader.u16()?;
    let mut list = Reader::new(reader.take_up_to(usize::from(len)).0);
    loop {
        let kind = list.u8()?;
        let name = list.vector16()?;
        if kind == 0 {
            return Some(name);
        }
    }
}

/// Parses a `ClientHello` with its message header, at the start of `message`.
#[must_use]
pub fn parse_client_hello(message: &[u8]) -> Parsed<ClientHello<'_>> {
    let Some((mut reader, is_whole)) = body(message, CLIENT_HELLO) else {
        return Parsed::Not;
    };
    let mut hello = ClientHello::default();
    match read_client_hello(&mut reader, &mut hello) {
        Some(()) if is_whole => Parsed::Complete(hello),
        None if is_whole || (hello.version == 0 && message.len() >= 6) => Parsed::Not,
        _ => Parsed::Partial(hello),
    }
}

/// The random of the `ClientHello` that `message` begins with, as soon as it is there.
#[must_use]
pub fn client_random(message: &[u8]) -> Option<[u8; 32]> {
    // Type, length and version before it.
    let hello = parse_client_hello(message.get(..4 + 2 + 32)?).seen()?;
    Some(hello.random)
}

/// Reads fields until the bytes end: `None` where they end within what is not an extension.
fn read_client_hello<'a>(reader: &mut Reader<'a>, hello: &mut ClientHello<'a>) -> Option<()> {
    hello.version = known_version(reader.u16()?)?;
    hello.random = reader.array()?;
    hello.session_id = reader.vector8().filter(|id| id.len() <= 32)?;
    let _cipher_suites = reader.vector16()?;
    let _compression = reader.vector8()?;
    extensions(reader, |kind, content| match kind {
        extension::SERVER_NAME => hello.server_name = server_name(content).unwrap_or_default(),
        extension::ALPN => hello.alpn = alpn_of(content),
        extension::ENCRYPT_THEN_MAC => hello.encrypts_then_mac = true,
        extension::EARLY_DATA => hello.has_early_data = true,
        extension::SESSION_TICKET => hello.has_ticket = !content.is_empty(),
        extension::PRE_SHARED_KEY => hello.has_pre_shared_key = true,
        extension::SUPPORTED_VERSIONS => {
            let (_, list) = content.split_first().unwrap_or((&0, &[]));
            let (pairs, _) = list.as_chunks::<2>();
            let offered = pairs
                .iter()
                .filter_map(|pair| known_version(u16::from_be_bytes(*pair)));
            hello.version = offered.max().unwrap_or(hello.version);
        }
        extension::ENCRYPTED_CLIENT_HELLO | extension::ENCRYPTED_SERVER_NAME => {
            hello.has_ech = true;
        }
        extension::QUIC_PARAMETERS | extension::QUIC_PARAMETERS_DRAFT => {
            hello.quic_parameters = content;
        }
        _ => {}
    });
    Some(())
}

/// Parses a `ServerHello` with its message header, at the start of `message`.
#[must_use]
pub fn parse_server_hello(message: &[u8]) -> Parsed<ServerHello<'_>> {
    let Some((mut reader, is_whole)) = body(message, SERVER_HELLO) else {
        return Parsed::Not;
    };
    let mut hello = ServerHello::default();
    match read_server_hello(&mut reader, &mut hello) {
        Some(()) if is_whole => Parsed::Complete(hello),
        None if is_whole || (hello.version == 0 && message.len() >= 6) => Parsed::Not,
        _ => Parsed::Partial(hello),
    }
}

/// The protocol that a server of TLS 1.3 chooses, of its `EncryptedExtensions` (RFC 8446 sec. 4.3.1) with their message
/// header.
#[must_use]
pub fn parse_encrypted_extensions(message: &[u8]) -> Parsed<Alpn<'_>> {
    let Some((mut reader, is_whole)) = body(message, ENCRYPTED_EXTENSIONS) else {
        return Parsed::Not;
    };
    let mut alpn = Alpn::default();
    extensions(&mut reader, |kind, content| {
        if kind == extension::ALPN {
            alpn = alpn_of(content);
        }
    });
    if is_whole {
        Parsed::Complete(alpn)
    } else {
        Parsed::Partial(alpn)
    }
}

fn read_server_hello<'a>(reader: &mut Reader<'a>, hello: &mut ServerHello<'a>) -> Option<()> {
    hello.version = known_version(reader.u16()?)?;
    hello.random = reader.array()?;
    hello.is_retry = hello.random == RETRY_RANDOM;
    hello.session_id = reader.vector8().filter(|id| id.len() <= 32)?;
    hello.suite = reader.u16()?;
    let _compression = reader.u8()?;
    extensions(reader, |kind, content| match kind {
        extension::ALPN => hello.alpn = alpn_of(content),
        extension::NEXT_PROTOCOL if hello.alpn == Alpn::default() => hello.alpn = Alpn(content),
        extension::ENCRYPT_THEN_MAC => hello.encrypts_then_mac = true,
        extension::PRE_SHARED_KEY => hello.has_pre_shared_key = true,
        extension::KEY_SHARE => hello.group = Reader::new(content).u16(),
        extension::SUPPORTED_VERSIONS => {
            if let Some(version) = Reader::new(content).u16().and_then(known_version) {
                hello.version = version;
            }
        }
        _ => {}
    });
    Some(())
}
