//! A real Kafka broker.

mod site;

mod faults;
mod live;
mod probes;
mod records;
