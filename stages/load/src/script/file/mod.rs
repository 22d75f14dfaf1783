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

mod section;
mod span;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use self::section::{Result, Section, Value};
use super::fault::ScriptError;
use super::plan::{
    Body, DEFAULT_PARALLEL, MAX_BODY, MAX_PARALLEL, Method, PagePlan, Plan, RequestPlan,
    SessionPlan, header_fault, target_fault,
};
use super::span::Span;

/// Reads a script.
///
/// # Errors
/// What cannot be read or is not known, with its line and column.
pub fn parse(text: &str) -> Result<Plan> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().unwrap_or_default();
        ScriptError::at(text, at.start, error.message().replace('\n', " "))
    })?;
    let mut file = Section::new(text, table);
    let is_weighted = match file.word("order")? {
        None => false,
        Some(order) => match order.get_ref().as_str() {
            "weighted" => true,
            "turns" => false,
            _ => {
                return Err(
                    file.wrong_at(&order.span(), "`order` must be \"turns\" or \"weighted\"")
                );
            }
        },
    };
    let mut defaults = Given::default();
    if let Some(value) = file.take("defaults") {
        let mut section = Section::of(text, value, "defaults")?;
        defaults.read(&mut section)?;
        section.end()?;
    }
    let mut plan = Plan {
        is_weighted,
        ..Plan::default()
    };
    for value in file.list("session")? {
        let section = Section::of(text, value, "session")?;
        plan.sessions.push(session(section, defaults.clone())?);
    }
    if plan.sessions.is_empty() {
        return Err(file.wrong("no session: write [[session]] and in it [[session.page]]"));
    }
    if is_weighted && plan.sessions.iter().all(|session| session.weight == 0) {
        return Err(file.wrong("all weights are 0: give one session a weight"));
    }
    file.end()?;
    Ok(plan)
}

/// What is given at one level for the ones below.
#[derive(Debug, Clone)]
struct Given {
    parallel: u8,
    keep_alive: bool,
    think: Span,
    pause: Span,
    request: GivenRequest,
}

#[derive(Debug, Clone, Default)]
struct GivenRequest {
    timeout_ns: Option<u64>,
    headers: Vec<(String, String)>,
}

impl Default for Given {
    fn default() -> Self {
        Self {
            parallel: DEFAULT_PARALLEL,
            keep_alive: true,
            think: Span::ZERO,
            pause: Span::ZERO,
            request: GivenRequest::default(),
        }
    }
}

impl Given {
    fn read(&mut self, section: &mut Section<'_>) -> Result<()> {
        if let Some(parallel) = section.whole("parallel", 1, u32::from(MAX_PARALLEL))? {
            self.parallel = u8::try_from(parallel).unwrap_or(MAX_PARALLEL);
        }
        self.keep_alive = section.flag("keep_alive")?.unwrap_or(self.keep_alive);
        self.read_spans(section)?;
        self.request.read(section)
    }

    fn read_spans(&mut self, section: &mut Section<'_>) -> Result<()> {
        self.think = span::read(section, "think")?.unwrap_or(self.think);
        self.pause = span::read(section, "pause")?.unwrap_or(self.pause);
        Ok(())
    }
}

impl GivenRequest {
    fn read(&mut self, section: &mut Section<'_>) -> Result<()> {
        self.timeout_ns = span::read_fixed(section, "timeout")?.or(self.timeout_ns);
        let Some(value) = section.take("headers") else {
            return Ok(());
        };
        let fields = Section::of(section.text(), value, "headers")?;
        for (name, value) in fields.into_pairs() {
            let at = name.span();
            let text = section.word_of(name.get_ref(), &value)?;
            if let Some(fault) = header_fault(name.get_ref(), text.get_ref()) {
                return Err(section.wrong_at(&at, fault));
            }
            self.headers
                .retain(|(other, _)| !other.eq_ignore_ascii_case(name.get_ref()));
            self.headers.push((name.into_inner(), text.into_inner()));
        }
        Ok(())
    }
}

fn session(mut section: Section<'_>, mut given: Given) -> Result<SessionPlan> {
    let weight = section.whole("weight", 0, u32::MAX)?.unwrap_or(1);
    given.read(&mut section)?;
    let mut pages = Vec::new();
    for value in section.list("page")? {
        let text = section.text();
        pages.push(page(Section::of(text, value, "page")?, given.clone())?);
    }
    if pages.is_empty() {
        return Err(
            section.wrong("a session without a page: write [[session.page]] and in it a target")
        );
    }
    section.end()?;
    Ok(SessionPlan {
        weight,
        parallel: given.parallel,
        keep_alive: given.keep_alive,
        pages,
    })
}

fn page(mut section: Section<'_>, mut given: Given) -> Result<PagePlan> {
    given.read_spans(&mut section)?;
    let is_parsed = section.flag("parse")?.unwrap_or(false);
    let objects = section
        .list("objects")?
        .into_iter()
        .map(|value| object(&section, value, &given.request))
        .collect::<Result<Vec<RequestPlan>>>()?;
    let base = request(section, given.request)?;
    Ok(PagePlan {
        base,
        objects,
        offsets_ns: Vec::new(),
        is_parsed,
        think: given.think,
        pause: given.pause,
    })
}

/// An object: a target alone, or a table.
fn object<'i>(page: &Section<'i>, value: Value<'i>, given: &GivenRequest) -> Result<RequestPlan> {
    if matches!(value.get_ref(), DeValue::Table(_)) {
        let section = Section::of(page.text(), value, "objects")?;
        return request(section, given.clone());
    }
    let target = page.word_of("objects", &value)?;
    check_target(page, &target)?;
    Ok(RequestPlan {
        timeout_ns: given.timeout_ns,
        headers: given.headers.clone(),
        ..RequestPlan::get(target.into_inner())
    })
}

/// Takes what belongs to a request; nothing else may be left.
fn request(mut section: Section<'_>, mut given: GivenRequest) -> Result<RequestPlan> {
    given.read(&mut section)?;
    let Some(target) = section.word("target")? else {
        return Err(section.wrong("it needs `target`, a path like \"/index.html\""));
    };
    check_target(&section, &target)?;
    let method = match section.word("method")? {
        None => Method::Get,
        Some(word) => Method::of(word.get_ref()).ok_or_else(|| {
            section.wrong_at(&word.span(), "`method` must be GET, HEAD, POST or PUT")
        })?,
    };
    let most = u32::try_from(MAX_BODY).unwrap_or(u32::MAX);
    let text = section.word("body")?;
    let bytes = section.whole("body_bytes", 0, most)?;
    let body = match (text, bytes) {
        (None, None) => Body::None,
        (None, Some(len)) => Body::Filled(usize::try_from(len).unwrap_or(0)),
        (Some(text), None) if text.get_ref().len() <= MAX_BODY => {
            Body::Given(text.into_inner().into_bytes())
        }
        (Some(text), None) => {
            return Err(section.wrong_at(&text.span(), "a body has at most 16 MiB"));
        }
        (Some(text), Some(_)) => {
            let what = "`body` and `body_bytes`: leave one of them out";
            return Err(section.wrong_at(&text.span(), what));
        }
    };
    section.end()?;
    Ok(RequestPlan {
        method,
        target: target.into_inner(),
        headers: given.headers,
        body,
        timeout_ns: given.timeout_ns,
    })
}

fn check_target(section: &Section<'_>, target: &Spanned<String>) -> Result<()> {
    match target_fault(target.get_ref()) {
        Some(fault) => Err(section.wrong_at(&target.span(), fault)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
