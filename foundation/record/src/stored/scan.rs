//! The text of a line of `jsonl` (RFC 8259): strings, numbers, and what is passed over.

use thiserror::Error;

/// Deepest nesting of what is passed over.
const MAX_DEPTH: usize = 32;

/// What is wrong with a line, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("byte {at}: {message}")]
pub struct LineError {
    /// Where, in bytes from 1.
    pub at: usize,
    /// What, without a full stop.
    pub message: String,
    /// Whether the line ends before its object does.
    pub is_cut: bool,
}

/// A line, and how far it has been read.
pub(super) struct Scan<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Scan<'a> {
    /// At the beginning of a line.
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(super) fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// The line ends too early.
    pub(super) fn cut(&self) -> LineError {
        LineError {
            at: self.at + 1,
            message: "the line ends before its object".to_owned(),
            is_cut: true,
        }
    }

    fn expected(&self, what: &str) -> LineError {
        match self.peek() {
            None => self.cut(),
            Some(_) => LineError {
                at: self.at + 1,
                message: format!("expected {what}"),
                is_cut: false,
            },
        }
    }

    pub(super) fn mark(&mut self, mark: u8, what: &str) -> Result<(), LineError> {
        self.skip_spaces();
        if self.peek() != Some(mark) {
            return Err(self.expected(what));
        }
        self.at += 1;
        self.skip_spaces();
        Ok(())
    }

    pub(super) fn next_is(&mut self, mark: u8) -> bool {
        self.skip_spaces();
        let is_it = self.peek() == Some(mark);
        self.at += usize::from(is_it);
        is_it
    }

    pub(super) fn word(&mut self, word: &[u8]) -> Result<(), LineError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        if word.starts_with(rest) {
            self.at = self.bytes.len();
            return Err(self.cut());
        }
        Err(self.expected("a value"))
    }

    /// That nothing follows.
    pub(super) fn end(&mut self) -> Result<(), LineError> {
        self.skip_spaces();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("the end of the line")),
        }
    }

    /// The characters of a number.
    pub(super) fn number(&mut self) -> &'a [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let is_of_it = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
        let length = rest.iter().take_while(|byte| is_of_it(byte)).count();
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    /// A string, without its escapes.
    pub(super) fn string(&mut self, out: &mut Vec<u8>) -> Result<(), LineError> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a string"));
        }
        self.at += 1;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'));
            let Some(plain) = plain else {
                self.at = self.bytes.len();
                return Err(self.cut());
            };
            out.extend_from_slice(rest.get(..plain).unwrap_or_default());
            self.at += plain + 1;
            if rest.get(plain) == Some(&b'"') {
                return Ok(());
            }
            self.escape(out)?;
        }
    }

    /// What stands behind a backslash.
    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), LineError> {
        let byte = self.peek().ok_or_else(|| self.cut())?;
        let plain = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 8,
            b'f' => 12,
            b'u' => {
                self.at += 1;
                return self.code_point(out);
            }
            _ => return Err(self.expected("an escape")),
        };
        self.at += 1;
        out.push(plain);
        Ok(())
    }

    /// Four hexadecimal digits, and those of a second half where they are a first one.
    fn code_point(&mut self, out: &mut Vec<u8>) -> Result<(), LineError> {
        let mut code = self.four_digits()?;
        if (0xd800..0xdc00).contains(&code) {
            if self.bytes.get(self.at..self.at + 2) != Some(b"\\u") {
                return Err(self.expected("the second half of a character"));
            }
            self.at += 2;
            let low = self.four_digits()?;
            if !(0xdc00..0xe000).contains(&low) {
                return Err(self.expected("the second half of a character"));
            }
            code = 0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        }
        let letter = char::from_u32(code).ok_or_else(|| self.expected("a character"))?;
        out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn four_digits(&mut self) -> Result<u32, LineError> {
        let Some(digits) = self.bytes.get(self.at..self.at + 4) else {
            self.at = self.bytes.len();
            return Err(self.cut());
        };
        let text = std::str::from_utf8(digits).unwrap_or_default();
        let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
        let code = u32::from_str_radix(text, 16).ok().filter(|_| is_hex);
        let code = code.ok_or_else(|| self.expected("four hexadecimal digits"))?;
        self.at += 4;
        Ok(code)
    }

    /// Passes over a value.
    pub(super) fn pass_over(&mut self, depth: usize) -> Result<(), LineError> {
        self.skip_spaces();
        match self.peek() {
            None => Err(self.cut()),
            Some(b'"') => self.pass_over_string(),
            Some(b'n') => self.word(b"null"),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'0'..=b'9' | b'-') => {
                self.number();
                Ok(())
            }
            Some(open @ (b'{' | b'[')) if depth < MAX_DEPTH => {
                self.at += 1;
                let close = if open == b'{' { b'}' } else { b']' };
                if self.next_is(close) {
                    return Ok(());
                }
                loop {
                    if open == b'{' {
                        self.pass_over_string()?;
                        self.mark(b':', "`:`")?;
                    }
                    self.pass_over(depth + 1)?;
                    if self.next_is(close) {
                        return Ok(());
                    }
                    self.mark(b',', "`,`")?;
                }
            }
            Some(_) => Err(self.expected("a value")),
        }
    }

    fn pass_over_string(&mut self) -> Result<(), LineError> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a string"));
        }
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1 + usize::from(byte == b'\\');
            if byte == b'"' {
                return Ok(());
            }
        }
        self.at = self.bytes.len();
        Err(self.cut())
    }
}
