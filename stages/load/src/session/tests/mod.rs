//! Sessions against a made-up TCP.

mod faults;
mod pages;
mod rig;
mod walk;
