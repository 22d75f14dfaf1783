//! MSNFTP: one file from one MSN Messenger client to another, over a connection of its own.
//!
//! Source: hypothetic.org, "MSN Messenger Protocol", file transfer. Both sides send lines (`VER`, then the
//! receiver `USR` and `TFR`, the sender `FIL`); then the sender sends blocks. The name of the file is
//! not among it: it was in the invitation.

/// A line, without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command<'a> {
    /// `VER`: versions spoken.
    Version,
    /// `USR`: the receiver says who he is, and shows the cookie of the invitation.
    User {
        /// His handle.
        handle: &'a [u8],
        /// The cookie, decimal digits.
        cookie: &'a [u8],
    },
    /// `FIL`: the sender says how long the file is.
    File {
        /// Bytes.
        size: u64,
    },
    /// `TFR`: the receiver wants it.
    Transfer,
    /// `CCL`: cancelled.
    Cancel,
    /// `BYE`: the end, for better or worse.
    Bye,
}

impl<'a> Command<'a> {
    /// Reads a line; `None` where it is not such a command.
    #[must_use]
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let mut words = line.split(|b| *b == b' ').filter(|word| !word.is_empty());
        let command = match words.next()? {
            b"VER" => Self::Version,
            b"USR" => Self::User {
                handle: words.next()?,
                cookie: words.next()?,
            },
            b"FIL" => Self::File {
                size: str::from_utf8(words.next()?).ok()?.parse().ok()?,
            },
            b"TFR" => Self::Transfer,
            b"CCL" => Self::Cancel,
            b"BYE" => Self::Bye,
            _ => return None,
        };
        Some(command)
    }
}

/// What the three bytes in front of a block say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Block {
    /// So many bytes of the file follow.
    Data(u16),
    /// The file has ended.
    End,
}

impl Block {
    /// Bytes in front of a block.
    pub const HEADER: usize = 3;

    /// Whether a block, and no line, begins with this byte.
    #[must_use]
    pub const fn begins_with(byte: u8) -> bool {
        byte <= 1
    }

    /// Reads them; `None` where the first is neither 0 nor 1.
    #[must_use]
    pub const fn parse(header: [u8; Self::HEADER]) -> Option<Self> {
        match header {
            [0, low, high] => Some(Self::Data(u16::from_le_bytes([low, high]))),
            [1, ..] => Some(Self::End),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let user = Command::User {
            handle: b"a@b",
            cookie: b"7",
        };
        let cases: [(&[u8], Option<Command<'_>>); 9] = [
            (b"VER MSNFTP", Some(Command::Version)),
            (b"USR a@b 7", Some(user)),
            (b"USR a@b", None),
            (b"FIL 11", Some(Command::File { size: 11 })),
            (b"FIL x", None),
            (b"TFR", Some(Command::Transfer)),
            (b"CCL", Some(Command::Cancel)),
            (b"BYE 16777989", Some(Command::Bye)),
            (b"GET /", None),
        ];
        for (line, command) in cases {
            assert_eq!(Command::parse(line), command, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn blocks() {
        assert_eq!(Block::parse([0, 11, 0]), Some(Block::Data(11)));
        assert_eq!(Block::parse([0, 0xFD, 7]), Some(Block::Data(2045)));
        assert_eq!(Block::parse([1, 0, 0]), Some(Block::End));
        assert_eq!(Block::parse([2, 0, 0]), None);
        assert!(Block::begins_with(0) && Block::begins_with(1) && !Block::begins_with(b'B'));
    }
}
