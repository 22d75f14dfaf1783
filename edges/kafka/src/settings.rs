//! The settings of a client: ours, and over them the user's.

use std::time::Duration;

use linkweir_engine::DeliveryTimeout;
use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;

use crate::ClientError;

/// Settings of a producer. Chosen so that nothing is lost or doubled by a broker that goes away and
/// comes back, and so that its memory is bounded.
const PRODUCER: &[(&str, &str)] = &[
    // The broker drops what a retry sends twice; this needs acks=all and keeps the order.
    ("enable.idempotence", "true"),
    ("acks", "all"),
    ("compression.codec", "lz4"),
    // What waits for the broker: with 500 bytes a record both limits are reached about together.
    ("queue.buffering.max.messages", "500000"),
    ("queue.buffering.max.kbytes", "262144"),
    // Larger batches compress better and cost the broker less; a record waits this long at most.
    ("linger.ms", "40"),
    ("batch.num.messages", "10000"),
    // A message is not given up for its age: the caller limits the waiting.
    ("message.timeout.ms", "0"),
    // Nor because its topic is not there yet. The time counts from the first record, so that of a broker that comes
    // later than the default of 30 s would have run out before it can create a topic.
    ("topic.metadata.propagation.max.ms", "300000"),
    // The partition that a Java client would choose for the same key, so that topics can be joined.
    ("partitioner", "murmur2_random"),
    // The pause between attempts to connect doubles up to this.
    ("reconnect.backoff.max.ms", "2000"),
    // A connection that dies silently is noticed.
    ("socket.keepalive.enable", "true"),
];

/// Settings of a consumer that assigns partitions to itself and remembers nothing on the broker.
const CONSUMER: &[(&str, &str)] = &[
    ("group.id", "linkweir"),
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("auto.offset.reset", "earliest"),
    ("reconnect.backoff.max.ms", "2000"),
    ("socket.keepalive.enable", "true"),
];

/// Names that mean the same.
const ALIASES: &[(&str, &str)] = &[
    ("metadata.broker.list", "bootstrap.servers"),
    ("request.required.acks", "acks"),
    ("compression.type", "compression.codec"),
    ("queue.buffering.max.ms", "linger.ms"),
    ("delivery.timeout.ms", "message.timeout.ms"),
];

/// Names that begin so are settings of our own, for those who use a client.
const OWN: &str = "linkweir.";

/// What the user cannot set, and why.
const FIXED: &[(&str, &str)] = &[
    ("bootstrap.servers", "the brokers are those of the address"),
    ("transactional.id", "messages are sent without transactions"),
    (
        "delivery.report.only.error",
        "every delivery is counted, so all are reported",
    ),
    ("enabled_events", "events are for the program itself"),
    ("log.queue", "events are for the program itself"),
];

/// The configuration of a producer.
pub(crate) fn producer(
    brokers: &str,
    given: &[(String, String)],
) -> Result<ClientConfig, ClientError> {
    merged(brokers, PRODUCER, given)
}

/// The configuration of a consumer.
pub(crate) fn consumer(
    brokers: &str,
    given: &[(String, String)],
) -> Result<ClientConfig, ClientError> {
    merged(brokers, CONSUMER, given)
}

fn merged(
    brokers: &str,
    ours: &[(&str, &str)],
    given: &[(String, String)],
) -> Result<ClientConfig, ClientError> {
    let mut config = ClientConfig::new();
    config.set("client.id", "linkweir");
    for (name, value) in ours {
        config.set(*name, *value);
    }
    for (name, value) in given.iter().filter(|(name, _)| !name.starts_with(OWN)) {
        let real = real_name(name);
        if let Some((_, why)) = FIXED.iter().find(|(fixed, _)| *fixed == real) {
            return Err(ClientError::Setting {
                name: name.clone(),
                message: format!("cannot be set: {why}"),
            });
        }
        // The client keeps its settings in no order, so one thing must have one name.
        config.set(real, value.as_str());
    }
    config.set("bootstrap.servers", brokers);
    config
        .create_native_config()
        .map_err(|error| of_client(&error))?;
    Ok(config)
}

fn real_name(name: &str) -> &str {
    let found = ALIASES.iter().find(|(alias, _)| *alias == name);
    found.map_or(name, |(_, real)| real)
}

/// What the client says about a setting, or about itself.
pub(crate) fn of_client(error: &KafkaError) -> ClientError {
    match error {
        KafkaError::ClientConfig(_, message, name, value) => {
            let message = if message.contains("No such configuration property") {
                "there is no such setting (librdkafka's CONFIGURATION.md lists all)".to_owned()
            } else {
                format!("`{value}` is not taken: {message}")
            };
            ClientError::Setting {
                name: name.clone(),
                message,
            }
        }
        KafkaError::ClientCreation(message) => ClientError::Client(message.clone()),
        other => ClientError::Client(other.to_string()),
    }
}

/// The one setting that is ours and not librdkafka's; milliseconds.
const TIMEOUT_SETTING: &str = "linkweir.patience.ms";

/// Takes its own setting, `linkweir.patience.ms`, out of those of the client, and gives the timeout with
/// the other settings: `usual` where the setting is not there.
///
/// # Errors
/// The setting is not a number, or another one has its prefix.
pub fn take_timeout(
    given: &[(String, String)],
    usual: DeliveryTimeout,
) -> Result<(DeliveryTimeout, Vec<(String, String)>), String> {
    let mut timeout = usual;
    let mut others = Vec::new();
    for (name, value) in given {
        if name == TIMEOUT_SETTING {
            let given = value.parse().map(Duration::from_millis).map_err(|_| {
                format!("--kafka: setting `{name}`: `{value}` is not a number of milliseconds")
            })?;
            timeout = DeliveryTimeout::given(given);
        } else if name.starts_with(OWN) {
            return Err(format!(
                "--kafka: setting `{name}`: there is only `{TIMEOUT_SETTING}`"
            ));
        } else {
            others.push((name.clone(), value.clone()));
        }
    }
    Ok((timeout, others))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(name: &str, value: &str) -> Vec<(String, String)> {
        vec![(name.to_owned(), value.to_owned())]
    }

    #[test]
    fn a_given_setting_wins_under_any_of_its_names() {
        let config = producer("b:1", &given("compression.type", "zstd")).unwrap();
        assert_eq!(config.get("compression.codec"), Some("zstd"));
        assert_eq!(config.get("compression.type"), None);
        let config = producer("b:1", &given("queue.buffering.max.ms", "7")).unwrap();
        assert_eq!(config.get("linger.ms"), Some("7"));
        assert_eq!(config.get("bootstrap.servers"), Some("b:1"));
    }

    #[test]
    fn errors_name_the_setting() {
        for (name, value, says) in [
            ("no.such.thing", "1", "no such setting"),
            ("linger.ms", "soon", "`soon` is not taken"),
            ("acks", "many", "`many` is not taken"),
            ("metadata.broker.list", "x", "those of the address"),
            ("security.protocol", "tls", "`tls` is not taken"),
            ("compression.codec", "brotli", "`brotli` is not taken"),
        ] {
            let error = producer("b:1", &given(name, value)).unwrap_err();
            let text = error.to_string();
            let named = matches!(&error, ClientError::Setting { .. });
            assert!(named && text.contains(says), "{name}: {text}");
        }
    }

    #[test]
    fn tls_and_scram_are_built_in() {
        for (name, value) in [
            ("security.protocol", "sasl_ssl"),
            ("ssl.ca.location", "/etc/ssl/certs"),
            ("sasl.mechanism", "SCRAM-SHA-512"),
        ] {
            assert!(producer("b:1", &given(name, value)).is_ok(), "{name}");
        }
    }

    #[test]
    fn every_compression_is_built_in() {
        for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
            assert!(producer("b:1", &given("compression.codec", codec)).is_ok());
        }
    }

    #[test]
    fn the_timeout_is_a_setting() {
        let given = |value: &str| vec![(TIMEOUT_SETTING.to_owned(), value.to_owned())];
        let usual = DeliveryTimeout::of_run(false);
        let (timeout, others) = take_timeout(&given("1500"), usual).unwrap();
        assert!(others.is_empty());
        assert_eq!(timeout.of(false).as_millis(), 1500);
        assert_eq!(timeout.of(true).as_millis(), 1500);
        let (of_files, _) = take_timeout(&[], usual).unwrap();
        assert_eq!(of_files, usual);
        assert!(take_timeout(&given("long"), usual).is_err());
    }
}
