//! Virus scanning by clamd, off the packet path.
#![forbid(unsafe_code)]
