//! In-order delivery of a stream to its inspector, and packets that wait.
