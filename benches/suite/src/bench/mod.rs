//! `cargo xtask bench`: speed and memory beside other programs. One harness, and a table for each bench.

mod captures;
mod compressed;
mod flows;
mod gateway;
pub(crate) mod harness;
mod http;
mod live;
mod load;
mod model;
mod programs;
mod repeat;
mod sinks;
mod web;
mod workers;

use crate::{Outcome, usage};

pub(crate) use flows::made;
pub(crate) use harness::cost::measured;
pub(crate) use repeat::repeated;

/// `bench http ...` and the others.
pub(crate) fn run(args: &[String]) -> Outcome {
    let (what, rest) = args.split_first().ok_or_else(|| usage("bench what?"))?;
    match what.as_str() {
        "http" => http::run(rest, false),
        "record" => http::run(rest, true),
        "flows" => flows::run(rest),
        "gateway" => gateway::run(rest),
        "live" => live::run(rest),
        "load" => load::run(rest),
        "model" => model::run(rest),
        "sinks" => sinks::run(rest),
        "web" => web::run(rest),
        other => Err(usage(&format!("no benchmark `{other}`"))),
    }
}
