//! What people look at while a run goes on.
#![forbid(unsafe_code)]
