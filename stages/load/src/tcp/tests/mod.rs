//! A scripted server, rule by rule; and a model of one behind a bad line.

mod acknowledging;
mod channel;
mod closing;
mod handshake;
mod harness;
mod memory;
mod receiving;
mod sending;
mod strangers;
