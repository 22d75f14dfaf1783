//! What the operating system offers, behind safe types: every `unsafe` block of the project.
//!
//! Mechanism only, no policy. Each type owns what it holds and states the invariant its blocks
//! rely on.
#![allow(
    unsafe_code,
    reason = "this crate exists to hold the project's unsafe code behind safe types"
)]

mod ebpf;
mod libpcap;
mod pipe;
mod socket;
pub mod wait;

pub mod bpf;
pub mod cbpf;
pub mod ingress;
pub mod interface;
mod lock;
pub mod mapped_file;
pub mod netlink;
pub mod packet_socket;
pub mod privileges;
pub mod raw_ip;
pub mod schedule;
pub mod shm;
pub mod signals;
pub mod xdp;

pub use bpf::{BpfError, BpfFilter};
pub use lock::{open_without_waiting, rename_new, try_lock};
pub use pipe::widen_pipe;
