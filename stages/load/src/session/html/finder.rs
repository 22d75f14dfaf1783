//! Finds in a page of HTML what a browser would ask for to show it.
//!
//! A tokenizer of tags and attributes, after the states of the HTML standard (sec. 13.2.5) as far as
//! these matter: comments, declarations, quoted and bare values, and the raw text of scripts and styles.

use memchr::memchr;

/// Longest link that is kept, bytes; a longer one is passed over.
pub(super) const MAX_LINK: usize = 2048;
/// Longest name of an element or attribute that matters.
const NAME: usize = 8;

/// What a link is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// An object of the page.
    Object,
    /// What the links after it are relative to.
    Base,
}

/// Where the tokenizer stands: bounded by one link.
#[derive(Debug, Default)]
pub struct Finder {
    state: State,
    element: Name,
    attribute: Name,
    /// Value of the attribute that is being read, where it matters.
    value: Vec<u8>,
    is_value_kept: bool,
    /// The link of this tag.
    link: Vec<u8>,
    has_link: bool,
    /// Whether `rel` names something that is fetched.
    is_fetched: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// Behind `<`.
    TagOpen,
    /// Behind `<!`, so many dashes.
    Markup(u8),
    /// Behind so many dashes, at most 2.
    Comment(u8),
    /// Until `>`.
    Declaration,
    ElementName,
    BeforeAttribute,
    AttributeName,
    AfterAttributeName,
    BeforeValue,
    /// Until this quote, or white space or `>` where it is 0.
    Value(u8),
    /// In a script or style.
    Raw,
    /// Behind `<` in it: so many bytes of `/name` matched.
    RawEnd(u8),
}

/// A name in lower case; one that is too long is none that matters.
#[derive(Debug, Default, Clone, Copy)]
struct Name {
    bytes: [u8; NAME],
    len: u8,
}

impl Name {
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(usize::from(self.len)) {
            *place = byte.to_ascii_lowercase();
        }
        self.len = self.len.saturating_add(1);
    }

    fn get(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl Finder {
    /// For the next page.
    pub fn reset(&mut self) {
        self.state = State::Text;
        self.end_tag();
    }

    /// Takes the next bytes of the page; `on_link` gets each link as it stands there.
    pub fn feed(&mut self, bytes: &[u8], mut on_link: impl FnMut(Link, &[u8])) {
        let mut rest = bytes;
        while let Some((&byte, behind)) = rest.split_first() {
            rest = match self.state {
                State::Text => self.skip_to(rest, b'<', State::TagOpen),
                State::Raw => self.skip_to(rest, b'<', State::RawEnd(0)),
                State::Declaration => self.skip_to(rest, b'>', State::Text),
                State::Comment(0) => self.skip_to(rest, b'-', State::Comment(1)),
                State::Value(quote) => self.value(rest, quote),
                _ => {
                    let is_taken = self.step(byte, &mut on_link);
                    // Else it is read again in the next state.
                    if is_taken { behind } else { rest }
                }
            };
        }
    }

    /// Takes a byte where each counts; says whether it belongs to this state.
    fn step(&mut self, byte: u8, on_link: &mut impl FnMut(Link, &[u8])) -> bool {
        let (state, is_taken) = match self.state {
            State::TagOpen => match byte {
                b'!' => (State::Markup(0), true),
                b'/' | b'?' => (State::Declaration, true),
                _ if byte.is_ascii_alphabetic() => {
                    self.element = Name::default();
                    (State::ElementName, false)
                }
                _ => (State::Text, false),
            },
            State::Markup(dashes) => match (byte, dashes) {
                (b'-', 0) => (State::Markup(1), true),
                // `<!-->` is a comment that ends.
                (b'-', _) => (State::Comment(2), true),
                _ => (State::Declaration, false),
            },
            State::Comment(dashes) => match byte {
                b'-' => (State::Comment((dashes + 1).min(2)), true),
                b'>' if dashes == 2 => (State::Text, true),
                _ => (State::Comment(0), true),
            },
            State::ElementName if is_name_end(byte) => (State::BeforeAttribute, false),
            State::ElementName => {
                self.element.push(byte);
                (State::ElementName, true)
            }
            State::BeforeAttribute => match byte {
                b'>' => (self.tag(on_link), true),
                b'/' => (State::BeforeAttribute, true),
                _ if byte.is_ascii_whitespace() => (State::BeforeAttribute, true),
                _ => {
                    self.attribute = Name::default();
                    self.attribute.push(byte);
                    (State::AttributeName, true)
                }
            },
            State::AttributeName | State::AfterAttributeName => match byte {
                b'=' => (State::BeforeValue, true),
                _ if byte.is_ascii_whitespace() => (State::AfterAttributeName, true),
                _ if is_name_end(byte) || self.state == State::AfterAttributeName => {
                    (State::BeforeAttribute, false)
                }
                _ => {
                    self.attribute.push(byte);
                    (State::AttributeName, true)
                }
            },
            State::BeforeValue => match byte {
                b'>' => (self.tag(on_link), true),
                _ if byte.is_ascii_whitespace() => (State::BeforeValue, true),
                quote => {
                    self.value.clear();
                    self.is_value_kept = self.matters();
                    let is_quote = matches!(quote, b'"' | b'\'');
                    (State::Value(if is_quote { quote } else { 0 }), is_quote)
                }
            },
            State::RawEnd(matched) => {
                let due = match matched.checked_sub(1) {
                    None => Some(b'/'),
                    Some(at) => self.element.get().get(usize::from(at)).copied(),
                };
                match due {
                    Some(due) if byte.to_ascii_lowercase() == due => {
                        (State::RawEnd(matched + 1), true)
                    }
                    None if is_name_end(byte) => (State::Declaration, false),
                    _ => (State::Raw, false),
                }
            }
            // These take more than a byte.
            state @ (State::Text | State::Raw | State::Declaration | State::Value(_)) => {
                (state, true)
            }
        };
        self.state = state;
        is_taken
    }

    /// Takes bytes of a value up to its end; gives those that are left.
    fn value<'a>(&mut self, rest: &'a [u8], quote: u8) -> &'a [u8] {
        let end = if quote == 0 {
            rest.iter()
                .position(|byte| *byte == b'>' || byte.is_ascii_whitespace())
        } else {
            memchr(quote, rest)
        };
        let (piece, behind) = rest
            .split_at_checked(end.unwrap_or(rest.len()))
            .unwrap_or((rest, &[]));
        self.keep(piece);
        if end.is_none() {
            return behind;
        }
        self.attribute_end();
        self.state = State::BeforeAttribute;
        match quote {
            0 => behind,
            _ => behind.get(1..).unwrap_or_default(),
        }
    }

    /// Passes everything up to and with `byte`; then the state is `then`.
    fn skip_to<'a>(&mut self, rest: &'a [u8], byte: u8, then: State) -> &'a [u8] {
        let Some(at) = memchr(byte, rest) else {
            return &[];
        };
        self.state = then;
        rest.get(at + 1..).unwrap_or_default()
    }

    /// Whether the value of this attribute is wanted.
    fn matters(&self) -> bool {
        match self.element.get() {
            b"img" | b"script" | b"iframe" | b"frame" | b"embed" | b"input" => {
                self.attribute.get() == b"src"
            }
            b"link" => matches!(self.attribute.get(), b"href" | b"rel"),
            b"base" => self.attribute.get() == b"href",
            _ => false,
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        if !self.is_value_kept {
            return;
        }
        if self.value.len() + piece.len() > MAX_LINK {
            self.is_value_kept = false;
            return;
        }
        self.value.extend_from_slice(piece);
    }

    fn attribute_end(&mut self) {
        if !self.is_value_kept {
            return;
        }
        if self.attribute.get() == b"rel" {
            self.is_fetched = self
                .value
                .split(u8::is_ascii_whitespace)
                .any(is_fetched_relation);
        } else if !self.has_link {
            // Of equal attributes the first counts.
            std::mem::swap(&mut self.link, &mut self.value);
            self.has_link = true;
        }
    }

    /// The end of a start tag; gives the state behind it.
    fn tag(&mut self, on_link: &mut impl FnMut(Link, &[u8])) -> State {
        let is_wanted = self.element.get() != b"link" || self.is_fetched;
        if self.has_link && is_wanted {
            let link = if self.element.get() == b"base" {
                Link::Base
            } else {
                Link::Object
            };
            on_link(link, &self.link);
        }
        self.end_tag();
        match self.element.get() {
            b"script" | b"style" | b"textarea" | b"title" => State::Raw,
            _ => State::Text,
        }
    }

    fn end_tag(&mut self) {
        self.has_link = false;
        self.is_fetched = false;
        self.link.clear();
        self.value.clear();
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.value.capacity() + self.link.capacity()
    }
}

const fn is_name_end(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>')
}

/// Relations of `<link>` that browsers fetch to show the page.
fn is_fetched_relation(relation: &[u8]) -> bool {
    [
        &b"stylesheet"[..],
        b"icon",
        b"preload",
        b"modulepreload",
        b"manifest",
    ]
    .iter()
    .any(|fetched| relation.eq_ignore_ascii_case(fetched))
}
