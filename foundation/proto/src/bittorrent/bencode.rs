//! Bencoding (BEP 3): integers, byte strings, lists and dictionaries, read where they lie.

/// A value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number that fits 64 bits.
    Integer(i64),
    /// A string of any bytes.
    Bytes(&'a [u8]),
    /// A list.
    List(Items<'a>),
    /// A dictionary.
    Dictionary(Entries<'a>),
}

impl<'a> Value<'a> {
    /// The value in front, and what follows it; `None` where it is cut, broken, or nested deeper than
    /// any that exists.
    #[must_use]
    pub fn take(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (first, inner) = bytes.split_first()?;
        match first {
            b'l' => Some((Self::List(Items(inner)), skip(bytes)?)),
            b'd' => Some((Self::Dictionary(Entries(inner)), skip(bytes)?)),
            b'i' => take_integer(inner).map(|(number, rest)| (Self::Integer(number), rest)),
            _ => take_bytes(bytes).map(|(text, rest)| (Self::Bytes(text), rest)),
        }
    }

    /// The number, where it is one and not negative.
    #[must_use]
    pub fn number(self) -> Option<u64> {
        match self {
            Self::Integer(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }

    /// The string, where it is one.
    #[must_use]
    pub const fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The list, where it is one.
    #[must_use]
    pub const fn list(self) -> Option<Items<'a>> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// The dictionary, where it is one.
    #[must_use]
    pub const fn dictionary(self) -> Option<Entries<'a>> {
        match self {
            Self::Dictionary(entries) => Some(entries),
            _ => None,
        }
    }
}

/// The values of a list, up to its end or where it is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Items<'a>(&'a [u8]);

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        let (value, rest) = Value::take(self.0)?;
        self.0 = rest;
        Some(value)
    }
}

/// Keys and values of a dictionary, up to its end or where it is broken or cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entries<'a>(&'a [u8]);

impl<'a> Entries<'a> {
    /// The entries of a dictionary of which perhaps only the beginning is there.
    #[must_use]
    pub fn of_prefix(bytes: &'a [u8]) -> Option<Self> {
        bytes.strip_prefix(b"d").map(Self)
    }

    /// The value of a key.
    #[must_use]
    pub fn get(mut self, key: &[u8]) -> Option<Value<'a>> {
        self.find(|(name, _)| *name == key).map(|(_, value)| value)
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a [u8], Value<'a>);

    fn next(&mut self) -> Option<(&'a [u8], Value<'a>)> {
        let (key, rest) = take_bytes(self.0)?;
        let (value, rest) = Value::take(rest)?;
        self.0 = rest;
        Some((key, value))
    }
}

/// A number and its end, behind the `i`.
fn take_integer(bytes: &[u8]) -> Option<(i64, &[u8])> {
    /// Longer ones do not fit 64 bits.
    const DIGITS: usize = 20;
    let end = bytes.iter().take(DIGITS + 1).position(|b| *b == b'e')?;
    let (digits, rest) = bytes.split_at_checked(end)?;
    let number = str::from_utf8(digits).ok()?.parse().ok()?;
    Some((number, rest.get(1..)?))
}

/// A string: its length, a colon, its bytes.
fn take_bytes(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    const DIGITS: usize = 9;
    let colon = bytes.iter().take(DIGITS + 1).position(|b| *b == b':')?;
    let (digits, rest) = bytes.split_at_checked(colon)?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let length = str::from_utf8(digits).ok()?.parse().ok()?;
    rest.get(1..)?.split_at_checked(length)
}

/// What follows a list or dictionary.
fn skip(bytes: &[u8]) -> Option<&[u8]> {
    /// Torrents nest four deep, or with a tree of files (BEP 52) as deep as its directories.
    const DEEPEST: usize = 64;
    let mut rest = bytes;
    let mut depth = 0_usize;
    loop {
        let (first, inner) = rest.split_first()?;
        rest = match first {
            b'l' | b'd' => {
                depth += 1;
                inner
            }
            b'e' => {
                depth = depth.checked_sub(1)?;
                inner
            }
            b'i' => take_integer(inner)?.1,
            _ => take_bytes(rest)?.1,
        };
        if depth == 0 {
            return Some(rest);
        }
        if depth > DEEPEST {
            return None;
        }
    }
}
