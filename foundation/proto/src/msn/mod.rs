//! MSN Messenger (MSNP): command lines, and the MIME messages that follow some of them.
//!
//! Sources: draft-movva-msn-messenger-protocol-00 (MSNP2); for later versions and for invitations the
//! public documentation of the protocol (hypothetic.org, "MSN Messenger Protocol"). A command is a
//! line; the payload of a command is counted, never searched for its end.

use crate::tls::reader::Reader;

/// What names the transfer of a file in invitations, in both of their forms.
const FILE_TRANSFER: &[u8] = b"{5D3E02AB-6190-11D3-BBBB-00C04F795683}";

// Command lines: `CMD TrID argument...`.

/// A command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command<'a> {
    verb: [u8; 3],
    arguments: &'a [u8],
}

/// What follows the line of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// The next line.
    None,
    /// So many bytes.
    Length(u32),
    /// Bytes, and the line does not say how many.
    Unknown,
}

impl<'a> Command<'a> {
    /// Reads a line, given without its end: three capital letters or digits (an error), then
    /// arguments between spaces.
    #[must_use]
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let (verb, arguments) = line.split_first_chunk()?;
        let is_verb = verb
            .iter()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        let is_separate = matches!(arguments.first(), None | Some(b' '));
        (is_verb && is_separate).then_some(Self {
            verb: *verb,
            arguments,
        })
    }

    /// The command.
    #[must_use]
    pub const fn verb(&self) -> &[u8; 3] {
        &self.verb
    }

    /// The arguments, the transaction's number among them.
    pub fn arguments(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.arguments
            .split(|byte| *byte == b' ')
            .filter(|argument| !argument.is_empty())
    }

    /// One of them, from 0.
    #[must_use]
    pub fn argument(&self, index: usize) -> Option<&'a [u8]> {
        self.arguments().nth(index)
    }

    /// Whether bytes follow the line. Their number is the last argument of a few commands, in the
    /// forms that have enough arguments: the same commands come without payload as answers.
    #[must_use]
    pub fn payload(&self) -> Payload {
        let least = match &self.verb {
            b"NOT" | b"IPG" => 1,
            // The other direction of these has a number and a word, or a number alone.
            b"MSG" | b"UUX" | b"UBX" | b"GCF" | b"ADL" | b"RML" | b"FQY" | b"SDG" | b"PUT"
            | b"DEL" | b"NFY" => 2,
            b"QRY" | b"UBN" => 3,
            b"UUN" | b"UUM" | b"UBM" => 4,
            _ => return Payload::None,
        };
        let length = self
            .arguments()
            .skip(least - 1)
            .last()
            .and_then(number)
            .and_then(|length| u32::try_from(length).ok());
        match length {
            Some(length) => Payload::Length(length),
            None if &self.verb == b"MSG" => Payload::Unknown,
            None => Payload::None,
        }
    }
}

// The payload of `MSG`: fields, an empty line, a body (RFC 2045 in part).

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MimeMessage<'a> {
    head: &'a [u8],
    /// Behind the empty line; has no end of line of its own.
    pub body: &'a [u8],
}

impl<'a> MimeMessage<'a> {
    /// Divides a payload. Without an empty line all of it is head.
    #[must_use]
    pub fn parse(payload: &'a [u8]) -> Self {
        let mut rest = payload;
        while let Some((line, behind)) = take_line(rest) {
            if line.is_empty() {
                let head = payload.len() - rest.len();
                let head = payload.get(..head).unwrap_or_default();
                return Self { head, body: behind };
            }
            rest = behind;
        }
        Self {
            head: payload,
            body: &[],
        }
    }

    /// The value of a field; names are equal whatever their case.
    #[must_use]
    pub fn field(&self, name: &[u8]) -> Option<&'a [u8]> {
        field(self.head, name)
    }

    /// The media type without its parameters; empty where none is given.
    #[must_use]
    pub fn media_type(&self) -> &'a [u8] {
        let value = self.field(b"Content-Type").unwrap_or_default();
        let end = memchr::memchr(b';', value).unwrap_or(value.len());
        value.get(..end).unwrap_or_default().trim_ascii()
    }

    /// Whether the body is coded in base64 (RFC 2045 sec. 6.8).
    #[must_use]
    pub fn is_base64(&self) -> bool {
        self.field(b"Content-Transfer-Encoding")
            .is_some_and(|coding| coding.eq_ignore_ascii_case(b"base64"))
    }
}

/// The value of the first field of this name among `lines`, without the spaces around it.
#[must_use]
pub fn field<'a>(lines: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    lines.split(|byte| *byte == b'\n').find_map(|line| {
        let (key, value) = line.split_at_checked(name.len())?;
        let value = value.strip_prefix(b":")?;
        key.eq_ignore_ascii_case(name).then_some(value.trim_ascii())
    })
}

/// A decimal number: digits and nothing else.
fn number(digits: &[u8]) -> Option<u64> {
    let is_plain = digits.iter().all(u8::is_ascii_digit);
    let text = str::from_utf8(digits).ok().filter(|_| is_plain)?;
    text.parse().ok()
}

/// The line in front, without its end, and what follows; `None` where it has no end.
fn take_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b'\n', bytes)?;
    let (line, rest) = bytes.split_at_checked(end)?;
    Some((line.strip_suffix(b"\r").unwrap_or(line), rest.get(1..)?))
}

// Base64 as MIME has it (RFC 2045 sec. 6.8), as an iterator: nothing is allocated.

/// The bytes that a text stands for, as far as it is whole.
///
/// White space between the letters is passed over; the end is the padding, any other byte, or the
/// end of the text.
#[derive(Debug, Clone)]
pub struct Base64<'a> {
    letters: std::slice::Iter<'a, u8>,
    /// Bits that were read and not given yet, the lowest ones.
    bits: u32,
    /// How many: fewer than 8.
    count: u32,
}

impl<'a> Base64<'a> {
    /// Decodes `text`.
    #[must_use]
    pub fn new(text: &'a [u8]) -> Self {
        Self {
            letters: text.iter(),
            bits: 0,
            count: 0,
        }
    }

    /// Six bits of the next letter.
    fn next_bits(&mut self) -> Option<u32> {
        let letter = self.letters.find(|letter| !letter.is_ascii_whitespace())?;
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => {
                self.letters = [].iter();
                return None;
            }
        };
        Some(u32::from(value))
    }
}

impl Iterator for Base64<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        while self.count < 8 {
            self.bits = (self.bits << 6 | self.next_bits()?) & 0x3fff;
            self.count += 6;
        }
        self.count -= 8;
        let [.., byte] = (self.bits >> self.count).to_be_bytes();
        Some(byte)
    }
}

// `text/x-msmsgsinvite`: one client invites another to something outside of the session.

/// What an invitation's message does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvitationCommand {
    /// Offers.
    Invite,
    /// Agrees, or says where to connect to.
    Accept,
    /// Withdraws or declines.
    Cancel,
}

impl InvitationCommand {
    fn of(word: &[u8]) -> Option<Self> {
        let words: [(&[u8], Self); 3] = [
            (b"INVITE", Self::Invite),
            (b"ACCEPT", Self::Accept),
            (b"CANCEL", Self::Cancel),
        ];
        let mut words = words.into_iter();
        let found = words.find(|(name, _)| word.eq_ignore_ascii_case(name));
        found.map(|(_, command)| command)
    }
}

/// A message of an invitation. Absent texts are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invitation<'a> {
    /// What it does.
    pub command: InvitationCommand,
    /// What is the same in all messages of an invitation.
    pub cookie: &'a [u8],
    /// Whether it is the offer of a file.
    pub is_file: bool,
    /// Name of the file, UTF-8.
    pub file_name: &'a [u8],
    /// Its length, bytes.
    pub file_size: Option<u64>,
    /// Of the side that will listen: what the other one is to show when it connects.
    pub auth_cookie: &'a [u8],
}

impl<'a> Invitation<'a> {
    /// Reads the body of such a message; `None` without command or cookie.
    #[must_use]
    pub fn parse(body: &'a [u8]) -> Option<Self> {
        let text = |name: &[u8]| field(body, name).unwrap_or_default();
        let command = InvitationCommand::of(text(b"Invitation-Command"))?;
        let cookie = text(b"Invitation-Cookie");
        let file_name = text(b"Application-File");
        // Some clients leave the application's identifier out.
        let is_file =
            text(b"Application-GUID").eq_ignore_ascii_case(FILE_TRANSFER) || !file_name.is_empty();
        (!cookie.is_empty()).then_some(Self {
            command,
            cookie,
            is_file,
            file_name,
            file_size: number(text(b"Application-FileSize")),
            auth_cookie: text(b"AuthCookie"),
        })
    }
}

// `application/x-msnmsgrp2p`: MSNSLP, the later form of invitations, as far as it names a file.
//
// A binary header of 48 bytes, then text like that of SIP. An invitation to a file has its name in
// `Context`: base64 of a structure with lengths and the name in UTF-16. A message of this protocol may be
// cut into several; the name is near the beginning, so the first one mostly has it.

/// Of the context: length, version, then the size of the file in eight bytes, a kind, the name.
const SIZE_AT: usize = 8;
const NAME_AT: usize = 20;
/// Room for the name, UTF-16 units.
const NAME_UNITS: usize = 260;

/// The offer of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlpFile<'a> {
    /// In base64, cut perhaps.
    context: &'a [u8],
}

impl<'a> SlpFile<'a> {
    /// Reads the body of such a message; `None` where it is not an offer of a file, or not the beginning
    /// of it.
    #[must_use]
    pub fn parse(body: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let _session_and_identifier = reader.array::<8>()?;
        let offset = u64::from_le_bytes(reader.array()?);
        let _total = reader.array::<8>()?;
        let length = u32::from_le_bytes(reader.array()?);
        let _flags_and_acknowledgment = reader.array::<20>()?;
        let (text, _) = reader.take_up_to(usize::try_from(length).ok()?);
        let is_offer = offset == 0
            && text.starts_with(b"INVITE MSNMSGR:")
            && field(text, b"EUF-GUID")
                .is_some_and(|guid| guid.eq_ignore_ascii_case(FILE_TRANSFER));
        let context = field(text, b"Context")?;
        (is_offer && !context.is_empty()).then_some(Self { context })
    }

    /// Length of the file, bytes.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        let mut bytes = Base64::new(self.context).skip(SIZE_AT);
        let mut size = [0; 8];
        for place in &mut size {
            *place = bytes.next()?;
        }
        Some(u64::from_le_bytes(size))
    }

    /// The characters of its name; none where the message is cut before its end.
    pub fn name(&self) -> impl Iterator<Item = char> + use<'a> {
        let units = utf16(Base64::new(self.context).skip(NAME_AT));
        let is_whole = units.clone().take(NAME_UNITS).any(|unit| unit == 0);
        let units = units.take_while(|unit| *unit != 0);
        let length = if is_whole { NAME_UNITS } else { 0 };
        char::decode_utf16(units.take(length))
            .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

/// Units of two bytes, the lower one first.
fn utf16<I: Iterator<Item = u8> + Clone>(mut bytes: I) -> impl Iterator<Item = u16> + Clone {
    std::iter::from_fn(move || Some(u16::from_le_bytes([bytes.next()?, bytes.next()?])))
}

#[cfg(test)]
mod tests;
