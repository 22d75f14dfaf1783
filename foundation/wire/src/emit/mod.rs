//! Building frames.
