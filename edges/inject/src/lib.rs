//! Frames to an interface and from it: sending on schedule, receiving with the kernel's time stamps.

#![forbid(unsafe_code)]
