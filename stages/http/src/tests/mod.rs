//! The stage in virtual time, by subject: scripted conversations in, records and counters out.

mod bounds;
mod carriers;
mod estimates;
mod estimates_quic;
mod headers;
mod heads;
mod http2;
mod interim;
mod invariants;
mod last_byte;
mod lossy_pipelines;
mod output;
mod pairing;
mod pipelines;
mod random;
mod retransmissions;
mod sequence;
mod streams;
mod support;
