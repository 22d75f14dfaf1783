//! Builders of traffic and captures for tests and benches.
//!
//! [`conversation`] tells a TCP connection segment by segment, [`script`] an HTTP one from requests
//! and responses; [`capture_writer`] writes frames as files of every format, [`memory`] pushes them
//! through a stage; [`anomalies`] are TCP connections of which it is known what the network did to
//! them, [`many_flows`] a capture of very many connections, [`parts`] packets in IP fragments; [`netns`] joins two network namespaces
//! for traffic that is live, [`gateway`] three of them in a row, [`attack`] what hostile ends send through it, [`load`] those of generators of load
//! and their server; `kafka` is a real broker, [`clamd`] and [`icap`] are real scanners; [`mmdb`] writes databases of addresses; [`peers`] speak the protocols of old file sharing and
//! chat; [`real_captures`] are those beside the repository; [`temporary`] directories do not outlive a
//! program that is killed; [`ran`] is how a program of ours ended.
#![forbid(unsafe_code)]

pub mod anomalies;
pub mod attack;
pub mod capture_writer;
pub mod clamd;
pub mod conversation;
pub mod engines;
pub mod gateway;
pub mod icap;
pub mod kafka;
pub mod load;
pub mod many_flows;
pub mod memory;
pub mod mmdb;
mod namespace;
pub mod netns;
pub mod parts;
pub mod peers;
pub mod quic;
pub mod ran;
pub mod real_captures;
mod running;
pub mod script;
pub mod temporary;
pub mod web;
