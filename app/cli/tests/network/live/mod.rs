//! The passive commands on an interface.

mod traffic;

mod flows;
mod http;
