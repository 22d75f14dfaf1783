//! Sessions against a made-up TCP.

mod faults;
mod pages;
mod responses;
mod rig;
mod walk;
