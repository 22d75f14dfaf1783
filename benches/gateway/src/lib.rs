//! Small programs beside the gateway in `cargo xtask bench gateway`, and what they share: an HTTP
//! client that does the least, on one connection.
//!
//! | program | what it does |
//! | --- | --- |
//! | `redirect_proxy` | takes redirected connections and copies both directions, with the gateway's functions or without: the other way to be in the middle |
//! | `slow_scanner` | speaks clamd's protocol, finds nothing, and takes its time for streams with a marker |
//! | `paced` | small requests at a steady rate; quantiles of the response time |
//! | `fresh` | small requests one after the other, each over a connection of its own |
//! | `flood` | SYNs, datagrams, gaps, heads or windows that are only there to be work |
//! | `crowd` | hundreds of downloads at a time, by several clients from several servers |
//! | `hold` | opens very many connections and keeps them |
//! | `keywords` | the keyword automaton alone, on one core |
#![forbid(unsafe_code)]

mod client;

pub use client::{Client, download, quantile};
