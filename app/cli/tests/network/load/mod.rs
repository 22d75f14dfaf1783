//! `linkweir load` between real hosts.

mod site;

mod arrivals;
mod basic;
mod faults;
mod roles;
mod sessions;
mod truth;
