//! Live statistics: intervals, windows, top tables, alerts; written by one run, read by many.
//!
//! ```text
//! run ─ sink(): records ─┐                       ┌─ snapshot(), ticks_after(), wait_tick()
//!     └ tick(): counters ┴► intervals ─► board ──┼─ top(), ccdf()
//!                                                └─ metrics(), events_after()
//! ```
//! The writer works under a lock that readers hold only briefly: what they get are shared copies
//! (closed intervals and parts never change), and they merge and sort on their own time.
//!
//! Time is capture time. Of an interface an interval closes a quarter of a second after its end, of a
//! file as soon as all its records have come; a file that is read a hundred times faster than it was
//! captured gives its intervals a hundred times faster.
//!
//! Memory, whatever the traffic: 3,600 closed intervals of about 1 KiB (more with many codes and
//! rules) and 5 MB for all before them; at most 33 parts of five minutes, of 1.7 MB each with 256 keys a
//! table where all are in use, and one of four times as many keys for the whole run; 140 KiB of
//! histograms by server, 5 KiB for each host in the metrics where any is wanted. 70 MB at the very worst, one or two in a small network.
#![forbid(unsafe_code)]

mod about;
pub mod alert;
pub mod api;
mod dashboard;
pub mod day;
mod download;
pub mod export;
mod exposition;
mod figure;
mod figures;
mod flow;
mod flow_facts;
mod flow_metrics;
pub mod gateway;
mod gateway_kind;
mod gateway_line;
mod gateway_metrics;
mod history;
mod hosts;
mod http;
mod interval;
mod kept;
mod kind;
mod last;
mod live;
pub mod load;
mod load_metrics;
mod metrics;
mod part;
mod points;
mod recent;
mod scopes;
mod servers;
pub mod sketch;
pub mod text;
mod url_template;
mod values;
mod windows;
mod words;
mod writer;

#[cfg(test)]
mod flow_tests;
#[cfg(test)]
mod gateway_tests;
#[cfg(test)]
mod load_tests;
#[cfg(test)]
mod tests;

pub use about::{About, AboutRow};
pub use dashboard::{ALERT_RULES, Exposing, grafana_dashboard};
pub use download::What;
pub use exposition::{Family, METRICS_CONTENT_TYPE, Samples};
pub use figure::{Class, Classes, Codes, Columns, Derived, Figure, Hidden, Names};
pub use figures::{Counts, Keyed};
pub use flow::{FlowScratch, FlowSeries};
pub use gateway_kind::{GatewayScratch, GatewaySeries};
pub use hosts::Hosts;
pub use http::{HttpRun, HttpScratch};
pub use interval::LiveOptions;
pub use kind::{Behind, Clock, Fed, KeyShape, KeyTable, Kind, OfRecords, Records};
pub use live::{FlowLive, GatewayLive, Live, LiveOf, LoadLive, MAX_TICKS, SNAPSHOT_TICKS};
pub use metrics::metrics_markdown;
pub use points::{Metric, Point, PointValue};
pub use recent::{Chunks, Found, MAX_RECORDS, RecentOrder, Ring};
pub use servers::Servers;
pub use url_template::{MAX_TEMPLATE_BYTES, url_template};
pub use writer::TABLES_EVERY;
