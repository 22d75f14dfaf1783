//! What sessions ask for.
//!
//! A session is pages, one after the other; a page is a base request and then its objects, over at most
//! so many connections at a time. [`Plan`] says it as data; it is read from httperf's format ([`wsesslog`])
//! or TOML ([`file`](mod@file)), made in the manner of SURGE ([`surge`]), or grouped from recorded requests
//! ([`replay`]). [`Script::new`] makes a plan ready: every request as the bytes that go out, so that
//! sending one costs nothing but a copy.

mod compile;
pub mod file;
mod plan;
pub mod replay;

mod ready;
mod span;
pub mod surge;
pub mod wsesslog;

pub use compile::{CompileError, Site};
pub use plan::{
    Body, DEFAULT_PARALLEL, MAX_BODY, MAX_PARALLEL, MAX_TARGET, Method, PagePlan, Plan,
    RequestPlan, ScriptError, SessionPlan, header_fault, single, target_fault,
};
pub use ready::{Page, Request, Script, SessionScript};
pub use span::Span;

#[cfg(test)]
mod tests;
