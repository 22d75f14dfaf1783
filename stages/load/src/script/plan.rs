//! What sessions ask for, as plain data: what the readers of script files make.
//!
//! The script where none is given.
//!
//! Faults of script files, with their place.

use super::span::Span;
use serde::Deserialize;
use std::fmt::Display;
use thiserror::Error;

/// Most connections of a session at a time.
pub const MAX_PARALLEL: u8 = 64;
/// Connections of a session at a time where the script says nothing: what browsers open to a host.
pub const DEFAULT_PARALLEL: u8 = 6;
/// Longest request target, bytes (RFC 9110 sec. 4.1 asks recipients for 8,000).
pub const MAX_TARGET: usize = 8000;
/// Longest body of a request, bytes.
pub const MAX_BODY: usize = 16 << 20;

/// The sessions of a script and how they are chosen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// The sessions.
    pub sessions: Vec<SessionPlan>,
    /// Whether a session is drawn by weight; else they take turns in the order of the script.
    pub is_weighted: bool,
}

/// Pages, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionPlan {
    /// How often it is drawn, against the others.
    pub weight: u32,
    /// Most connections at a time, 1 to [`MAX_PARALLEL`].
    pub parallel: u8,
    /// Whether a connection is used again; else each request has one of its own.
    pub keep_alive: bool,
    /// The pages.
    pub pages: Vec<PagePlan>,
}

impl Default for SessionPlan {
    fn default() -> Self {
        Self {
            weight: 1,
            parallel: DEFAULT_PARALLEL,
            keep_alive: true,
            pages: Vec::new(),
        }
    }
}

/// A base request, and what is asked for when its response is complete.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PagePlan {
    /// The base request.
    pub base: RequestPlan,
    /// The objects of the page.
    pub objects: Vec<RequestPlan>,
    /// For replayed pages: when each object begins, nanoseconds from the planned begin of the session,
    /// whether or not the base is complete. Empty: objects follow the base.
    pub offsets_ns: Vec<u64>,
    /// Whether objects are also looked for in the response, where it is HTML.
    pub is_parsed: bool,
    /// Between the end of the page and the next one.
    pub think: Span,
    /// Before each object, from when its turn comes.
    pub pause: Span,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestPlan {
    /// Its method.
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// Own header fields.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Body,
    /// How long the response may take, nanoseconds; `None`: as the run says.
    pub timeout_ns: Option<u64>,
}

impl RequestPlan {
    /// `GET` of a target.
    #[must_use]
    pub fn get(target: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            ..Self::default()
        }
    }
}

impl Default for RequestPlan {
    fn default() -> Self {
        Self {
            method: Method::Get,
            target: "/".to_owned(),
            headers: Vec::new(),
            body: Body::None,
            timeout_ns: None,
        }
    }
}

/// Bytes behind the head of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Body {
    /// None.
    None,
    /// These.
    Given(Vec<u8>),
    /// So many, which mean nothing.
    Filled(usize),
}

impl Body {
    /// Its length, bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Given(bytes) => bytes.len(),
            Self::Filled(len) => *len,
        }
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The methods that scripts may use (RFC 9110 sec. 9.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// `GET`.
    #[default]
    Get,
    /// `HEAD`: the response has no body.
    Head,
    /// `POST`: not repeated on another connection, for it is not idempotent (RFC 9110 sec. 9.2.2).
    Post,
    /// `PUT`.
    Put,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Get, Self::Head, Self::Post, Self::Put];

    /// The token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }

    /// The method of a token.
    #[must_use]
    pub fn of(token: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|method| method.as_str() == token)
    }

    /// Whether repeating it does no harm.
    #[must_use]
    pub const fn is_idempotent(self) -> bool {
        !matches!(self, Self::Post)
    }
}

/// What is wrong with a target, and what to write; `None` where it is one.
#[must_use]
pub fn target_fault(target: &str) -> Option<String> {
    if target.contains("://") && !target.starts_with('/') {
        return Some("write the path only: the host is that of the URL of the run".to_owned());
    }
    if !target.starts_with('/') {
        return Some(format!(
            "`{}` is not a path: it must begin with `/`",
            target.escape_debug()
        ));
    }
    if target.len() > MAX_TARGET {
        return Some(format!("a target has at most {MAX_TARGET} bytes"));
    }
    let odd = target
        .chars()
        .find(|c| !c.is_ascii_graphic() || *c == '#')?;
    Some(format!(
        "`{}` cannot stand in a target: write it as % and two hexadecimal digits",
        odd.escape_debug()
    ))
}

/// Fields that the generator writes itself: with others, request and connection would contradict.
const OWN_FIELDS: [&str; 5] = [
    "connection",
    "content-length",
    "transfer-encoding",
    "upgrade",
    "expect",
];

/// What is wrong with a header field, and what to write; `None` where it is one (RFC 9110 sec. 5.5, 5.6.2).
#[must_use]
pub fn header_fault(name: &str, value: &str) -> Option<String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Some(format!(
            "`{}` is not a valid header field name",
            name.escape_debug()
        ));
    }
    if OWN_FIELDS.iter().any(|own| name.eq_ignore_ascii_case(own)) {
        return Some(format!(
            "`{name}` is written by the generator: leave it out, see keep_alive and body"
        ));
    }
    let odd = value.chars().find(|c| c.is_control() && *c != '\t')?;
    Some(format!(
        "the value of `{name}` has `{}` in it: leave it out",
        odd.escape_debug()
    ))
}

/// One `GET` of a target, in a session like the given one.
#[must_use]
pub fn single(target: &str, like: &SessionPlan) -> Plan {
    let page = PagePlan {
        base: RequestPlan::get(target),
        ..PagePlan::default()
    };
    Plan {
        sessions: vec![SessionPlan {
            pages: vec![page],
            ..like.clone()
        }],
        is_weighted: false,
    }
}

/// What is wrong in a script file: `LINE:COLUMN: what, and what to do`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{line}:{column}: {what}")]
pub struct ScriptError {
    /// Line, from 1 on.
    pub line: usize,
    /// Character in the line, from 1 on.
    pub column: usize,
    /// What it is, and what to do.
    pub what: String,
}

impl ScriptError {
    /// An error of the reader of TOML, in the words of TOML.
    pub(super) fn toml(text: &str, error: &toml::de::Error) -> Self {
        const WORDS: [(&str, &str); 9] = [
            ("unknown field", "unknown key"),
            ("unknown variant", "unknown value"),
            ("missing field", "missing key"),
            (
                "expected a sequence",
                "expected a list: [ ... ] or [[ ... ]]",
            ),
            ("expected a string", "expected a string in quotes"),
            ("expected a boolean", "expected true or false"),
            ("expected i64", "expected a whole number"),
            (
                "expected u32",
                "expected a whole number from 0 to 4294967295",
            ),
            ("expected f64", "expected a number"),
        ];
        let what = error.message().replace('\n', " ");
        let what = WORDS
            .iter()
            .find(|(serde, _)| what.contains(serde))
            .map(|(serde, own)| what.replacen(serde, own, 1))
            .unwrap_or(what);
        Self::at(text, error.span().unwrap_or_default().start, what)
    }

    /// A fault at a byte of a text.
    pub(super) fn at(text: &str, byte: usize, what: impl Display) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before.get(start..).map_or(0, |part| part.chars().count()) + 1,
            what: what.to_string(),
        }
    }
}
