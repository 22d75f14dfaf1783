//! A Kafka broker: a producer with a bounded buffer, and a consumer.
#![forbid(unsafe_code)]
