//! Scripts in TOML.
//!
//! ```toml
//! order = "weighted"             # or "turns" (the default): sessions in the order of the file
//!
//! [defaults]                     # every key may be left out, and stand in [[session]] as well
//! parallel = 6                   # connections of a session at a time, 1 to 64
//! keep_alive = true              # false: one connection for each request
//! timeout = "30s"                # of a response; without it, that of the run
//! think = "2s"                   # between the end of a page and the next one
//! pause = 0                      # before each object of a page
//! headers = { Accept-Language = "pl" }
//!
//! [[session]]
//! weight = 3                     # with order = "weighted"; 1 where it is not given
//! think = { distribution = "pareto", scale = "1s", shape = 1.5, cap = "60s" }
//!
//! [[session.page]]
//! target = "/index.html"         # path and query
//! objects = ["/style.css", { target = "/count", method = "HEAD" }]
//! parse = true                   # ask also for what the HTML names: images, scripts, styles, frames
//!
//! [[session.page]]
//! method = "POST"                # GET, HEAD, POST or PUT
//! target = "/order"
//! body = "item=7"                # or body_bytes = 1000: so many that mean nothing
//! headers = { Content-Type = "application/x-www-form-urlencoded" }
//! ```
//!
//! Spans are numbers of seconds or texts with ns, us, ms, s, m or h. `think` and `pause` may be drawn:
//! `distribution` is `exponential` (`mean`; `cap` is 20 times the mean where it is not given), `pareto`
//! (`scale`, `shape`, `cap`), `weibull` (`scale`, `shape`, `cap`) or `lognormal` (`mu`, `sigma` of the logarithm
//! of seconds, `cap`); what is drawn beyond the cap is drawn again. `think` and `pause` may stand in a page,
//! `timeout` and `headers` in a page or an object; headers add to those above, of equal names the inner one
//! counts.

use self::values::{Headers, PageObject, Seconds, Whole};
use super::plan::{
    Body, DEFAULT_PARALLEL, MAX_BODY, MAX_PARALLEL, Method, PagePlan, Plan, RequestPlan,
    ScriptError, SessionPlan, header_fault, target_fault,
};
use super::span::Span;
use serde::Deserialize;
use toml::Spanned;

mod values;

type Result<T> = std::result::Result<T, ScriptError>;

const PARALLEL: i64 = MAX_PARALLEL as i64;
#[expect(clippy::cast_possible_wrap, reason = "16 MiB")]
const BODY_BYTES: i64 = MAX_BODY as i64;

/// The file, as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    order: Order,
    #[serde(default)]
    defaults: Defaults,
    #[serde(default)]
    session: Vec<Spanned<SessionTable>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Order {
    #[default]
    Turns,
    Weighted,
}

/// `[defaults]`: what holds where a session, page or object says nothing else.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Defaults {
    parallel: Option<Whole<1, PARALLEL>>,
    keep_alive: Option<bool>,
    think: Option<Span>,
    pause: Option<Span>,
    timeout: Option<Timeout>,
    #[serde(default)]
    headers: Headers,
}

/// `[[session]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionTable {
    weight: Option<u32>,
    parallel: Option<Whole<1, PARALLEL>>,
    keep_alive: Option<bool>,
    think: Option<Span>,
    pause: Option<Span>,
    timeout: Option<Timeout>,
    #[serde(default)]
    headers: Headers,
    #[serde(default)]
    page: Vec<PageTable>,
}

/// `[[session.page]]`: its base request, and what else it says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PageTable {
    target: Spanned<String>,
    #[serde(default)]
    method: Method,
    body: Option<Spanned<String>>,
    body_bytes: Option<Whole<0, BODY_BYTES>>,
    timeout: Option<Timeout>,
    #[serde(default)]
    headers: Headers,
    #[serde(default)]
    objects: Vec<Spanned<PageObject>>,
    #[serde(default)]
    parse: bool,
    think: Option<Span>,
    pause: Option<Span>,
}

/// A request that is a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestTable {
    target: Spanned<String>,
    #[serde(default)]
    method: Method,
    body: Option<Spanned<String>>,
    body_bytes: Option<Whole<0, BODY_BYTES>>,
    timeout: Option<Timeout>,
    #[serde(default)]
    headers: Headers,
}

/// How long a response may take.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "Seconds")]
struct Timeout {
    nanos: u64,
}

impl TryFrom<Seconds> for Timeout {
    type Error = &'static str;

    fn try_from(seconds: Seconds) -> std::result::Result<Self, Self::Error> {
        match seconds.nanos() {
            0 => Err("a timeout must be above 0: leave it out for that of the run"),
            nanos => Ok(Self { nanos }),
        }
    }
}

/// Reads a script.
///
/// # Errors
/// What cannot be read or is not known, with its line and column.
pub fn parse(text: &str) -> Result<Plan> {
    let file: File = toml::from_str(text).map_err(|error| ScriptError::toml(text, &error))?;
    let reader = Reader { text };
    let defaults = file.defaults;
    let given = Given {
        think: defaults.think.unwrap_or(Span::ZERO),
        pause: defaults.pause.unwrap_or(Span::ZERO),
        request: reader.given(
            &GivenRequest::default(),
            defaults.timeout,
            &defaults.headers,
        )?,
    };
    let mut plan = Plan {
        is_weighted: file.order == Order::Weighted,
        ..Plan::default()
    };
    for session in file.session {
        let at = session.span().start;
        let session = session.into_inner();
        if session.page.is_empty() {
            let what = "a session without a page: write [[session.page]] and in it a target";
            return Err(ScriptError::at(text, at, what));
        }
        let parallel = session.parallel.or(defaults.parallel);
        let keep_alive = session.keep_alive.or(defaults.keep_alive);
        let given = Given {
            think: session.think.unwrap_or(given.think),
            pause: session.pause.unwrap_or(given.pause),
            request: reader.given(&given.request, session.timeout, &session.headers)?,
        };
        let pages = session.page.into_iter();
        plan.sessions.push(SessionPlan {
            weight: session.weight.unwrap_or(1),
            parallel: parallel.map_or(DEFAULT_PARALLEL, Whole::in_a_byte),
            keep_alive: keep_alive.unwrap_or(true),
            pages: pages
                .map(|page| reader.page(page, &given))
                .collect::<Result<_>>()?,
        });
    }
    if plan.sessions.is_empty() {
        let what = "no session: write [[session]] and in it [[session.page]]";
        return Err(ScriptError::at(text, 0, what));
    }
    if plan.is_weighted && plan.sessions.iter().all(|session| session.weight == 0) {
        let what = "all weights are 0: give one session a weight";
        return Err(ScriptError::at(text, 0, what));
    }
    Ok(plan)
}

/// What is given at one level for the ones below.
#[derive(Debug, Clone)]
struct Given {
    think: Span,
    pause: Span,
    request: GivenRequest,
}

#[derive(Debug, Clone, Default)]
struct GivenRequest {
    timeout_ns: Option<u64>,
    headers: Vec<(String, String)>,
}

/// Makes a plan of what was read; the text is for errors.
struct Reader<'t> {
    text: &'t str,
}

impl Reader<'_> {
    fn wrong(&self, value: &Spanned<String>, what: impl std::fmt::Display) -> ScriptError {
        ScriptError::at(self.text, value.span().start, what)
    }

    /// What is given for a request, with what one level more says.
    fn given(
        &self,
        outer: &GivenRequest,
        timeout: Option<Timeout>,
        headers: &Headers,
    ) -> Result<GivenRequest> {
        let mut given = outer.clone();
        given.timeout_ns = timeout.map(|timeout| timeout.nanos).or(given.timeout_ns);
        for (name, value) in &headers.0 {
            if let Some(fault) = header_fault(name.get_ref(), value) {
                return Err(self.wrong(name, fault));
            }
            given
                .headers
                .retain(|(other, _)| !other.eq_ignore_ascii_case(name.get_ref()));
            given.headers.push((name.get_ref().clone(), value.clone()));
        }
        Ok(given)
    }

    fn page(&self, page: PageTable, given: &Given) -> Result<PagePlan> {
        let objects = page.objects.into_iter().map(|object| {
            let at = object.span();
            let table = match object.into_inner() {
                PageObject::Target(target) => RequestTable {
                    target: Spanned::new(at, target),
                    method: Method::Get,
                    body: None,
                    body_bytes: None,
                    timeout: None,
                    headers: Headers::default(),
                },
                PageObject::Table(table) => table,
            };
            self.request(table, &given.request)
        });
        Ok(PagePlan {
            objects: objects.collect::<Result<_>>()?,
            base: self.request(
                RequestTable {
                    target: page.target,
                    method: page.method,
                    body: page.body,
                    body_bytes: page.body_bytes,
                    timeout: page.timeout,
                    headers: page.headers,
                },
                &given.request,
            )?,
            offsets_ns: Vec::new(),
            is_parsed: page.parse,
            think: page.think.unwrap_or(given.think),
            pause: page.pause.unwrap_or(given.pause),
        })
    }

    fn request(&self, table: RequestTable, given: &GivenRequest) -> Result<RequestPlan> {
        if let Some(fault) = target_fault(table.target.get_ref()) {
            return Err(self.wrong(&table.target, fault));
        }
        let body = match (table.body, table.body_bytes) {
            (None, None) => Body::None,
            (None, Some(len)) => Body::Filled(usize::try_from(len.0).unwrap_or(0)),
            (Some(text), None) if text.get_ref().len() <= MAX_BODY => {
                Body::Given(text.into_inner().into_bytes())
            }
            (Some(text), None) => return Err(self.wrong(&text, "a body has at most 16 MiB")),
            (Some(text), Some(_)) => {
                let what = "`body` and `body_bytes`: leave one of them out";
                return Err(self.wrong(&text, what));
            }
        };
        let given = self.given(given, table.timeout, &table.headers)?;
        Ok(RequestPlan {
            method: table.method,
            target: table.target.into_inner(),
            headers: given.headers,
            body,
            timeout_ns: given.timeout_ns,
        })
    }
}

#[cfg(test)]
mod tests;
