//! The kernel's packet queues, verdicts, and the rules that lead packets there.
#![forbid(unsafe_code)]
