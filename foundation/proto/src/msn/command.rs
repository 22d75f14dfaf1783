//! Command lines: `CMD TrID argument...`.

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
            .and_then(super::mime::number)
            .and_then(|length| u32::try_from(length).ok());
        match length {
            Some(length) => Payload::Length(length),
            None if &self.verb == b"MSG" => Payload::Unknown,
            None => Payload::None,
        }
    }
}
