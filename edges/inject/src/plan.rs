//! The way to a target, by the routes of this network namespace, and what could go wrong with it.
