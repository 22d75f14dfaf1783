//! Commands that read and write files: no network, nobody else's service.
#![allow(
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a helper that fails is a failed test"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../../stages/http/tests/all/common/mod.rs"]
#[allow(dead_code, reason = "the tests of the stage use the rest")]
mod http_runs;

mod archive;
mod archive_soak;
mod audit;
mod captures;
mod choice;
mod console;
mod damaged_columns;
mod elasticsearch;
mod estimates;
mod explain;
mod faults;
mod feed;
mod finished;
mod flow_anomalies;
mod flow_headers;
mod flow_kinds;
mod flow_names;
mod flow_quic;
mod flow_streams;
mod flow_truth;
mod flow_unknown;
mod geo;
mod habits;
mod halves;
mod headers;
mod hostile;
mod http_streams;
mod intervals;
mod load_words;
mod media;
mod merge;
mod model;
mod otlp;
mod packets;
mod privileges;
mod report;
mod report_inputs;
mod sample;
mod settings;
mod signals;
mod snapshots;
mod syslog;
mod tshark;
mod units;
mod web;
mod workers;
