//! A topic of a Kafka cluster: `kafka://broker[:port][,broker[:port]...]/topic`.

use std::fmt;
use std::net::Ipv6Addr;

/// The port of a broker where none is given: Kafka's own default.
const DEFAULT_PORT: u16 = 9092;

/// Maximum length of a name (`org.apache.kafka.common.internals.Topic`).
const LONGEST_TOPIC: usize = 249;

/// A topic, and some brokers of the cluster that has it. Both can stand in a quoted text of SQL as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// `host:port` of each broker, joined by commas: librdkafka's `bootstrap.servers`.
    pub brokers: String,
    /// Its name.
    pub name: String,
}

/// What is wrong with an address, and which part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    /// It does not begin with `kafka://`.
    #[error("not a topic: kafka://BROKER[:PORT][,BROKER...]/TOPIC")]
    Scheme,
    /// Nothing follows the brokers.
    #[error("has no topic; it follows the brokers: kafka://{0}/TOPIC")]
    NoTopic(String),
    /// Kafka does not accept this name.
    #[error(
        "topic `{topic}`: {why}; a topic has 1 to 249 letters of A-Z a-z 0-9 . _ - and is not `.` or `..`"
    )]
    Topic {
        /// The name.
        topic: String,
        /// What Kafka does not accept.
        why: String,
    },
    /// A host that cannot be one.
    #[error("broker {number} `{broker}`: {why}")]
    Broker {
        /// Which of them, from 1.
        number: usize,
        /// As it is written.
        broker: String,
        /// What is wrong with it.
        why: String,
    },
}

impl std::str::FromStr for Topic {
    type Err = TopicError;

    fn from_str(text: &str) -> Result<Self, TopicError> {
        let rest = text.strip_prefix("kafka://").ok_or(TopicError::Scheme)?;
        let (list, topic) = rest.split_once('/').unwrap_or((rest, ""));
        let mut brokers = Vec::new();
        for (number, broker) in (1..).zip(list.split(',')) {
            brokers.push(endpoint(broker).map_err(|why| TopicError::Broker {
                number,
                broker: broker.to_owned(),
                why,
            })?);
        }
        if topic.is_empty() {
            return Err(TopicError::NoTopic(list.to_owned()));
        }
        Ok(Self {
            brokers: brokers.join(","),
            name: legal_topic(topic)?.to_owned(),
        })
    }
}

/// `host:port`, with the default port where there is none.
fn endpoint(text: &str) -> Result<String, String> {
    let (host, port) = if let Some(after) = text.strip_prefix('[') {
        let (inside, after) = after
            .split_once(']')
            .ok_or("the bracket of its IPv6 address is not closed")?;
        let address: Ipv6Addr = inside
            .parse()
            .map_err(|_| format!("`{inside}` is not an IPv6 address"))?;
        let port = match after.strip_prefix(':') {
            Some(port) => Some(port),
            None if after.is_empty() => None,
            None => return Err(format!("`{after}` after the bracket is not `:port`")),
        };
        (format!("[{address}]"), port)
    } else {
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        };
        if port.is_some_and(|port| port.contains(':')) {
            return Err("an IPv6 address stands in brackets: [2001:db8::1]:9092".to_owned());
        }
        (legal_host(host)?.to_owned(), port)
    };
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => port
            .parse::<u16>()
            .ok()
            .filter(|number| *number > 0 && port.bytes().all(|b| b.is_ascii_digit()))
            .ok_or_else(|| format!("port `{port}` is not a number from 1 to 65535"))?,
    };
    Ok(format!("{host}:{port}"))
}

fn legal_host(host: &str) -> Result<&str, String> {
    if host.is_empty() {
        return Err("has no name".to_owned());
    }
    if host.contains('@') {
        return Err("user names are not part of the address".to_owned());
    }
    let wrong = |letter: &char| !(letter.is_ascii_alphanumeric() || "-._".contains(*letter));
    match host.chars().find(wrong) {
        Some(letter) => Err(format!("`{}` in its name", letter.escape_default())),
        None => Ok(host),
    }
}

fn legal_topic(topic: &str) -> Result<&str, TopicError> {
    let wrong = |letter: &char| !(letter.is_ascii_alphanumeric() || "._-".contains(*letter));
    let why = if let Some(letter) = topic.chars().find(wrong) {
        format!("`{}` in it", letter.escape_default())
    } else if topic.len() > LONGEST_TOPIC {
        format!("has {} letters", topic.len())
    } else if matches!(topic, "." | "..") {
        "is not a name".to_owned()
    } else {
        return Ok(topic);
    };
    Err(TopicError::Topic {
        topic: topic.to_owned(),
        why,
    })
}

impl Default for Topic {
    /// A topic to be replaced by that of the reader.
    fn default() -> Self {
        Self {
            brokers: format!("broker:{DEFAULT_PORT}"),
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

    fn brokers(text: &str) -> String {
        text.parse::<Topic>().unwrap().brokers
    }

    #[test]
    fn brokers_and_topic() {
        let both: Topic = "kafka://a.example:9093,10.0.0.7/web.records-1"
            .parse()
            .unwrap();
        assert_eq!(both.brokers, "a.example:9093,10.0.0.7:9092");
        assert_eq!(both.name, "web.records-1");
        assert_eq!(both.to_string().parse(), Ok(both));
        let usual = Topic::default();
        assert_eq!(usual.to_string().parse(), Ok(usual));
        assert_eq!(brokers("kafka://[2001:DB8::1]:1/t"), "[2001:db8::1]:1");
        assert_eq!(
            brokers("kafka://[::1],localhost:65535/t"),
            "[::1]:9092,localhost:65535"
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("http://a/t", "kafka://BROKER"),
            ("kafka://a:1", "no topic"),
            ("kafka://a:1/", "kafka://a:1/TOPIC"),
            ("kafka:///t", "broker 1 ``: has no name"),
            ("kafka://a:1,/t", "broker 2 ``: has no name"),
            ("kafka://a,b:0/t", "broker 2 `b:0`: port `0`"),
            ("kafka://a:65536/t", "port `65536`"),
            ("kafka://a:+1/t", "port `+1`"),
            ("kafka://a:/t", "port ``"),
            ("kafka://::1/t", "brackets"),
            ("kafka://[::1/t", "not closed"),
            ("kafka://[::g]:1/t", "`::g` is not an IPv6"),
            ("kafka://[::1]9/t", "`9` after the bracket"),
            ("kafka://u:p@h:1/t", "broker 1"),
            ("kafka://u@h/t", "user names"),
            ("kafka://a'b/t", "in its name"),
            ("kafka://a/it's", "in it"),
            ("kafka://a b/t", "` ` in its name"),
            ("kafka://a/x/y", "topic `x/y`: `/` in it"),
            ("kafka://a/..", "topic `..`: is not a name"),
            ("kafka://a/t\u{e9}", "`\\u{e9}` in it"),
        ] {
            let error = text.parse::<Topic>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        let long = format!("kafka://a/{}", "t".repeat(250));
        let error = long.parse::<Topic>().unwrap_err().to_string();
        assert!(error.contains("has 250 letters"), "{error}");
    }
}
