//! What people look at while a run goes on: live statistics, alerts, metrics, the web page and the
//! terminal view.
//!
//! [`LiveOf`] ([`Live`] of HTTP, [`FlowLive`] of flows, [`GatewayLive`] of a gateway) takes records
//! and counters of a run and keeps intervals, windows and top tables in bounded memory; [`alert`] watches them by rules of the configuration. With the feature `web`, `Console`
//! serves them to browsers and to Prometheus; with the feature `webhook`, `Webhook` posts alerts.
#![forbid(unsafe_code)]

pub mod alert;
pub mod api;
mod download;
pub mod gateway;
pub mod live;
#[cfg(feature = "web")]
mod served;
#[cfg(feature = "web")]
mod server;
pub mod text;
#[cfg(feature = "tui")]
pub mod top;
mod url_template;
#[cfg(feature = "webhook")]
mod webhook;

pub use download::What;
pub use live::sketch;
pub use live::{FlowLive, GatewayLive, Kind, Live, LiveOf, LiveOptions};
#[cfg(feature = "web")]
pub use server::{Console, ConsoleError, ConsoleOptions};
pub use url_template::{MAX_TEMPLATE_BYTES, url_template};
#[cfg(feature = "webhook")]
pub use webhook::{Webhook, WebhookError, WebhookOptions};
