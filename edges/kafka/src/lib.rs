//! A Kafka broker: a producer with a bounded buffer, a consumer of whole topics.
//!
//! Nothing here knows what a record is: keys and values are bytes. The client is librdkafka
//! (`rdkafka`), with TLS and SASL (PLAIN, SCRAM) by the OpenSSL of the system.
#![forbid(unsafe_code)]

mod consumer;
mod producer;
mod reports;
mod settings;

pub use consumer::{Consumer, Message};
pub use producer::{Producer, Sent};
pub use settings::take_timeout;

/// Why there is no client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// A setting that the client does not know, or whose value it does not accept.
    #[error("setting `{name}`: {message}")]
    Setting {
        /// Its name as it was given.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// It could not be started, or the broker could not be asked.
    #[error("{0}")]
    Client(String),
}
