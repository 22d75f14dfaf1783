//! Prometheus text.
