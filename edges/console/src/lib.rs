//! What people look at while a run goes on: `Console` serves the statistics of [`linkweir_live`] to
//! browsers and to Prometheus, [`top`] shows them in a terminal, `Webhook` posts alerts, [`otlp`] sends metrics and spans to a collector.
#![forbid(unsafe_code)]

mod background;
pub mod otlp;
mod served;
mod server;
pub mod top;
mod webhook;

pub use server::{Console, ConsoleError, ConsoleOptions, Order, Page, Pages, Pem, Tls, TlsError};
pub use webhook::{Webhook, WebhookError, WebhookOptions};
