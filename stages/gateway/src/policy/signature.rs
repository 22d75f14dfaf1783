//! Signatures of the policy's own: bytes or a regular expression over what a side sends first.

use regex::bytes::{Regex, RegexBuilder};
use thiserror::Error;

/// Memory of one compiled expression, bytes.
const MAX_REGEX: usize = 1 << 20;

/// What the first bytes of a side must be.
#[derive(Debug, Clone)]
pub enum Pattern {
    /// They begin with these.
    Bytes(Vec<u8>),
    /// The expression matches in them; `^` is their beginning.
    Regex(Box<Regex>),
}

/// Why a string is not a valid pattern.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatternError {
    /// It does not say what it is.
    #[error("a pattern begins with `hex:`, `text:` or `regex:`")]
    Kind,
    /// Bytes that are none.
    #[error("after `hex:` come pairs of hexadecimal digits; `{0}` is none")]
    Hex(String),
    /// Nothing to look for.
    #[error("an empty pattern would match everything")]
    Empty,
    /// An expression that does not compile.
    #[error("{0}")]
    Regex(String),
}

impl std::str::FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if let Some(expression) = text.strip_prefix("regex:") {
            let expression = RegexBuilder::new(expression)
                .unicode(false)
                .size_limit(MAX_REGEX)
                .build()
                .map_err(|error| PatternError::Regex(error.to_string()))?;
            if expression.is_match(b"") {
                return Err(PatternError::Empty);
            }
            return Ok(Self::Regex(Box::new(expression)));
        }
        let bytes = if let Some(digits) = text.strip_prefix("hex:") {
            hex(digits)?
        } else if let Some(text) = text.strip_prefix("text:") {
            text.as_bytes().to_vec()
        } else {
            return Err(PatternError::Kind);
        };
        if bytes.is_empty() {
            return Err(PatternError::Empty);
        }
        Ok(Self::Bytes(bytes))
    }
}

fn hex(text: &str) -> Result<Vec<u8>, PatternError> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let (pairs, rest) = digits.as_chunks::<2>();
    let pair = |pair: &[u8; 2]| {
        let text = str::from_utf8(pair).ok()?;
        let is_hex = pair.iter().all(u8::is_ascii_hexdigit);
        is_hex.then(|| u8::from_str_radix(text, 16).ok())?
    };
    if rest.is_empty()
        && let Some(bytes) = pairs.iter().map(pair).collect()
    {
        return Ok(bytes);
    }
    Err(PatternError::Hex(text.trim().to_owned()))
}

/// What a pattern says of the bytes so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    Yes,
    No,
    /// More bytes may decide.
    Open,
}

impl Pattern {
    fn fit(&self, bytes: &[u8]) -> Fit {
        match self {
            Self::Bytes(want) if bytes.starts_with(want) => Fit::Yes,
            Self::Bytes(want) if want.starts_with(bytes) => Fit::Open,
            Self::Bytes(_) => Fit::No,
            Self::Regex(regex) if regex.is_match(bytes) => Fit::Yes,
            Self::Regex(_) => Fit::Open,
        }
    }
}

/// A signature: the patterns that there are must all fit.
#[derive(Debug, Clone)]
pub struct Signature {
    /// Name of the application it stands for.
    pub name: String,
    /// What the client sends first.
    pub client: Option<Pattern>,
    /// What the server sends first.
    pub server: Option<Pattern>,
}

impl Signature {
    /// What it says of the first bytes of client and server, of which at most `most` are inspected.
    pub(crate) fn fit(&self, client: &[u8], server: &[u8], most: usize) -> Fit {
        let mut all = Fit::Yes;
        for (pattern, bytes) in [(&self.client, client), (&self.server, server)] {
            let Some(pattern) = pattern else { continue };
            match pattern.fit(bytes) {
                Fit::Yes => {}
                // A side that has sent all that is inspected will not match any more.
                Fit::Open if bytes.len() < most => all = Fit::Open,
                Fit::Open | Fit::No => return Fit::No,
            }
        }
        all
    }
}
