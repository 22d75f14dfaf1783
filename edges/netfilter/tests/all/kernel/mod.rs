//! What the kernel does with verdicts, marks and resets: measured, in namespaces that each test makes
//! for itself. As root only; each says so where it is skipped.
//!
//! ```text
//! client 10.81.1.2, fd00:81:1::2 <cli0> gateway: the test <srv0> server 10.81.2.2, fd00:81:2::2
//! ```

mod conntrack;
mod lane;
mod marks;
mod peer;
mod queue;
mod reset;
mod service;
