//! Commands on interfaces, in network namespaces of their own.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper that fails is a failed test"
)]

#[path = "../common/mod.rs"]
mod common;

/// `linkweir gateway` between real hosts.
mod gateway {
    mod accounts;
    mod applications;
    mod attacks;
    mod bittorrent;
    mod content;
    mod crowd;
    mod files;
    mod kernel;
    mod privileges;
    mod rates;
    mod redirect;
    mod regions;
    mod rules;
    mod scan;
    pub(crate) mod site;
    mod steps;
    mod tls;
}
/// `linkweir load` between real hosts.
mod load {
    mod arrivals;
    mod basic;
    mod faults;
    mod live;
    mod roles;
    mod sessions;
    mod site;
    mod truth;
}
mod privileges;
