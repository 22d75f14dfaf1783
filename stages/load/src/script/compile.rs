//! Makes a plan ready to be sent.

use std::collections::HashMap;

use thiserror::Error;

use super::plan::{
    Body, MAX_BODY, MAX_PARALLEL, Method, Plan, RequestPlan, SessionPlan, header_fault,
    target_fault,
};
use super::ready::{Page, Part, Request, Script, SessionScript};

/// What a body of no meaning is made of.
const FILLER: u8 = b'x';
/// Most bytes of all requests that differ.
const MAX_BYTES: usize = 256 << 20;

/// The site that is asked, as every request names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// `Host`: the name or address of the URL, with its port where that is not 80.
    pub host: String,
    /// `User-Agent`.
    pub user_agent: String,
}

impl Site {
    /// A site, asked by `linkweir/VERSION`.
    #[must_use]
    pub fn new(host: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            user_agent: concat!("linkweir/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// Why a plan cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CompileError {
    /// It has no session, or one without a page.
    #[error("a session without a page: name a target, or take the session out")]
    Empty,
    /// A target or header field is none.
    #[error("{0}")]
    Request(String),
    /// A body is too long.
    #[error("a body of {0} bytes: at most {MAX_BODY} are possible")]
    Body(usize),
    /// A session would open no connection, or too many.
    #[error("{0} connections at a time: 1 to {MAX_PARALLEL} are possible")]
    Parallel(u8),
    /// A span cannot be drawn.
    #[error("a think time or pause: {0}")]
    Span(&'static str),
    /// All weights are 0.
    #[error("all weights are 0: give one session a weight")]
    NoWeight,
    /// It is too large.
    #[error(
        "the script has more than 256 MiB of requests, or more than 4 billion: make it smaller"
    )]
    TooLarge,
}

type Result<T> = std::result::Result<T, CompileError>;

impl Script {
    /// Makes a plan ready: equal requests are kept once.
    ///
    /// # Errors
    /// The plan has something that cannot be sent, or is too large.
    pub fn new(plan: &Plan, site: &Site) -> Result<Self> {
        check_field("Host", &site.host)?;
        check_field("User-Agent", &site.user_agent)?;
        let mut writer = Writer::new(site);
        for session in &plan.sessions {
            writer.session(session)?;
        }
        let mut script = writer.script;
        if script.sessions.is_empty() {
            return Err(CompileError::Empty);
        }
        if plan.is_weighted {
            let mut sum = 0;
            for session in &plan.sessions {
                sum += u64::from(session.weight);
                script.weights.push(sum);
            }
            if sum == 0 {
                return Err(CompileError::NoWeight);
            }
        }
        Ok(script)
    }
}

struct Writer<'s> {
    script: Script,
    site: &'s Site,
    /// Numbers of requests by what they are sent as.
    known: HashMap<(Vec<u8>, Option<u64>), u32>,
    tails: HashMap<Vec<u8>, Part>,
}

impl<'s> Writer<'s> {
    fn new(site: &'s Site) -> Self {
        let script = Script {
            bytes: Vec::new(),
            requests: Vec::new(),
            objects: Vec::new(),
            offsets: Vec::new(),
            pages: Vec::new(),
            sessions: Vec::new(),
            weights: Vec::new(),
            host: site.host.clone(),
        };
        Self {
            script,
            site,
            known: HashMap::new(),
            tails: HashMap::new(),
        }
    }

    fn session(&mut self, plan: &SessionPlan) -> Result<()> {
        if plan.pages.is_empty() {
            return Err(CompileError::Empty);
        }
        if !(1..=MAX_PARALLEL).contains(&plan.parallel) {
            return Err(CompileError::Parallel(plan.parallel));
        }
        let first_page = number(self.script.pages.len())?;
        for page in &plan.pages {
            for span in [&page.think, &page.pause] {
                if let Some(fault) = span.fault() {
                    return Err(CompileError::Span(fault));
                }
            }
            let base = self.request(&page.base, plan.keep_alive)?;
            let first_object = number(self.script.objects.len())?;
            for object in &page.objects {
                let object = self.request(object, plan.keep_alive)?;
                self.script.objects.push(object);
            }
            let first_offset = number(self.script.offsets.len())?;
            // One for each object, or none at all.
            let is_timed = page.offsets_ns.len() == page.objects.len();
            let offsets = page.offsets_ns.iter().filter(|_| is_timed);
            self.script.offsets.extend(offsets);
            let found_tail = if page.is_parsed {
                self.tail(&page.base, plan.keep_alive)?
            } else {
                Part::default()
            };
            self.script.pages.push(Page {
                base,
                objects: part(first_object, self.script.objects.len())?,
                offsets: part(first_offset, self.script.offsets.len())?,
                found_tail,
                is_parsed: page.is_parsed,
                think: page.think,
                pause: page.pause,
            });
        }
        self.script.sessions.push(SessionScript {
            pages: part(first_page, self.script.pages.len())?,
            parallel: plan.parallel,
            keep_alive: plan.keep_alive,
        });
        Ok(())
    }

    /// The number of a request; equal ones have one number.
    fn request(&mut self, plan: &RequestPlan, keep_alive: bool) -> Result<u32> {
        if let Some(fault) = target_fault(&plan.target) {
            return Err(CompileError::Request(fault));
        }
        for (name, value) in &plan.headers {
            check_field(name, value)?;
        }
        let body_len = plan.body.len();
        if body_len > MAX_BODY {
            return Err(CompileError::Body(body_len));
        }
        let mut head = format!("{} {}", plan.method.as_str(), plan.target);
        let target_end = number(head.len())?;
        head.push_str(&self.fields(plan, keep_alive, true));
        let mut bytes = head.into_bytes();
        match &plan.body {
            Body::None => {}
            Body::Given(body) => bytes.extend_from_slice(body),
            Body::Filled(len) => bytes.resize(bytes.len() + len, FILLER),
        }
        let key = (bytes, plan.timeout_ns);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let part = self.append(&key.0)?;
        let request = number(self.script.requests.len())?;
        self.script.requests.push(Request {
            from: part.from,
            len: part.len,
            target_end,
            body_len: number(body_len)?,
            method: plan.method,
            timeout_ns: plan.timeout_ns,
        });
        self.known.insert(key, request);
        Ok(request)
    }

    /// What follows the target in requests for objects that are found in the response to `base`.
    fn tail(&mut self, base: &RequestPlan, keep_alive: bool) -> Result<Part> {
        let object = RequestPlan {
            method: Method::Get,
            body: Body::None,
            ..base.clone()
        };
        let tail = self.fields(&object, keep_alive, false).into_bytes();
        if let Some(known) = self.tails.get(&tail) {
            return Ok(*known);
        }
        let part = self.append(&tail)?;
        self.tails.insert(tail, part);
        Ok(part)
    }

    /// The rest of the request line, the fields and the empty line.
    fn fields(&self, plan: &RequestPlan, keep_alive: bool, with_body: bool) -> String {
        let mut text = " HTTP/1.1\r\n".to_owned();
        let connection = if keep_alive { "keep-alive" } else { "close" };
        // `Host` first (RFC 9110 sec. 7.2); `keep-alive` is for servers of HTTP/1.0.
        for (name, value) in [
            ("Host", self.site.host.as_str()),
            ("User-Agent", self.site.user_agent.as_str()),
            ("Accept", "*/*"),
        ] {
            let own = plan
                .headers
                .iter()
                .find(|(own, _)| own.eq_ignore_ascii_case(name));
            let value = own.map_or(value, |(_, own)| own);
            field(&mut text, name, value);
        }
        field(&mut text, "Connection", connection);
        for (name, value) in &plan.headers {
            let is_written = ["Host", "User-Agent", "Accept"]
                .iter()
                .any(|written| written.eq_ignore_ascii_case(name));
            if !is_written {
                field(&mut text, name, value);
            }
        }
        let announces = matches!(plan.method, Method::Post | Method::Put) || !plan.body.is_empty();
        if with_body && announces {
            field(&mut text, "Content-Length", &plan.body.len().to_string());
        }
        text.push_str("\r\n");
        text
    }

    fn append(&mut self, bytes: &[u8]) -> Result<Part> {
        let from = self.script.bytes.len();
        if from + bytes.len() > MAX_BYTES {
            return Err(CompileError::TooLarge);
        }
        self.script.bytes.extend_from_slice(bytes);
        part(number(from)?, self.script.bytes.len())
    }
}

fn field(text: &mut String, name: &str, value: &str) {
    text.extend([name, ": ", value, "\r\n"]);
}

fn check_field(name: &str, value: &str) -> Result<()> {
    header_fault(name, value).map_or(Ok(()), |fault| Err(CompileError::Request(fault)))
}

fn number(len: usize) -> Result<u32> {
    u32::try_from(len).map_err(|_| CompileError::TooLarge)
}

fn part(from: u32, end: usize) -> Result<Part> {
    let len = number(end)?.saturating_sub(from);
    Ok(Part { from, len })
}
