//! The stage without a kernel: a client, a server, a queue between them and a scanner that looks for
//! bytes.

mod bed;
mod bounds;
mod deciding;
mod evasion;
mod handshake;
mod holding;
mod property;
mod relay;
mod requests;
mod undecided;
