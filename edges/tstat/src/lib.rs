//! What Tstat leaves behind, for flows: its tree of logs and histograms ([`open_tstat`]), its round-robin
//! files by rrdtool ([`rrd`]), and an archive of constant size in their place ([`archive`]).
#![forbid(unsafe_code)]

pub mod archive;
mod dns;
mod dump;
mod http;
mod lines;
mod log;
mod multimedia;
mod periodic;
pub mod rrd;
mod sink;
mod steps;
mod tree;

pub use sink::{open_histograms, open_tstat};
pub use tree::TstatOptions;
