//! What people look at while a run goes on: live statistics, alerts, metrics, the web page and the
//! terminal view.
//!
//! [`Live`] takes records and counters of a run and keeps intervals, windows and top tables in bounded
//! memory; [`alert`] watches them by rules of the configuration. With the feature `web`, [`Console`]
//! serves them to browsers and to Prometheus; with the feature `webhook`, [`Webhook`] posts alerts.
#![forbid(unsafe_code)]

pub mod alert;
pub mod api;
pub mod live;
pub mod text;
mod url_template;

pub use live::{Live, LiveOptions};
pub use url_template::{MAX_TEMPLATE_BYTES, url_template};
