//! Where messages are: the topic of a broker, as `-w kafka://` names it.

use std::fmt;

/// A topic and the brokers that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    brokers: String,
    name: String,
}

/// A text that names no topic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no topic: kafka://BROKER[:PORT][,BROKER[:PORT]...]/TOPIC")]
pub struct NoTopic(String);

/// The port of a broker where none is named.
const PORT: &str = "9092";

impl Topic {
    /// Reads `kafka://broker[:port][,broker[:port]]/topic`.
    ///
    /// # Errors
    /// Another scheme, a name that is missing, or one with characters that no broker accepts. What
    /// was accepted can stand in a quoted text of SQL as it is.
    pub fn parse(url: &str) -> Result<Self, NoTopic> {
        let no_topic = || NoTopic(url.to_owned());
        let (brokers, name) = url
            .strip_prefix("kafka://")
            .and_then(|rest| rest.split_once('/'))
            .ok_or_else(no_topic)?;
        // Kafka: `Topic.LEGAL_CHARS`, at most 249 of them.
        let is_of_topic = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if name.is_empty() || name.len() > 249 || !name.chars().all(is_of_topic) {
            return Err(no_topic());
        }
        let is_of_host = |c: char| is_of_topic(c) || matches!(c, ':' | '[' | ']');
        let mut list = Vec::new();
        for broker in brokers.split(',') {
            if broker.is_empty() || !broker.chars().all(is_of_host) {
                return Err(no_topic());
            }
            // An IPv6 address stands in brackets, so that its colons are none of a port.
            let after_host = broker.rsplit(']').next().unwrap_or_default();
            list.push(if after_host.contains(':') {
                broker.to_owned()
            } else {
                format!("{broker}:{PORT}")
            });
        }
        Ok(Self {
            brokers: list.join(","),
            name: name.to_owned(),
        })
    }

    /// The brokers with their ports, joined by commas.
    #[must_use]
    pub fn brokers(&self) -> &str {
        &self.brokers
    }

    /// The name of the topic.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Default for Topic {
    /// A topic to be replaced by that of the reader.
    fn default() -> Self {
        Self {
            brokers: format!("broker:{PORT}"),
            name: "linkweir".to_owned(),
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kafka://{}/{}", self.brokers, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_read_as_outputs_are() {
        let topic =
            Topic::parse("kafka://a.example:19092,10.0.0.1,[2001:db8::1],[::1]:9/http-1_x.y")
                .unwrap();
        assert_eq!(
            topic.brokers(),
            "a.example:19092,10.0.0.1:9092,[2001:db8::1]:9092,[::1]:9"
        );
        assert_eq!(topic.name(), "http-1_x.y");
        let again = Topic::parse(&topic.to_string()).unwrap();
        assert_eq!(again, topic);
        let usual = Topic::default();
        assert_eq!(Topic::parse(&usual.to_string()), Ok(usual));
    }

    #[test]
    fn what_is_no_topic_is_refused() {
        for text in [
            "",
            "kafka://",
            "kafka://a:1",
            "kafka://a:1/",
            "kafka:///t",
            "kafka://a:1,/t",
            "kafka://a:1/t/u",
            "kafka://a'b/t",
            "kafka://a/t'; DROP TABLE x",
            "http://a/t",
            "a:1/t",
        ] {
            let error = Topic::parse(text).unwrap_err();
            assert!(error.to_string().contains("kafka://BROKER"), "{text}");
        }
        let long = format!("kafka://a/{}", "t".repeat(250));
        assert!(Topic::parse(&long).is_err());
    }
}
