//! Frames dealt to consumer processes through rings in shared memory.
#![forbid(unsafe_code)]
