//! What the settings of all experiments have in common.

use std::time::Duration;

use serde::{Deserialize as _, Deserializer, de};

/// A time with its unit, as `20s`.
pub(crate) fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    humantime::parse_duration(&text)
        .map_err(|error| de::Error::custom(format!("`{text}`: {error}; for example `20s`")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Settings {
        #[serde(deserialize_with = "duration")]
        time: Duration,
    }

    #[test]
    fn a_time_has_a_unit() {
        let read = |text: &str| toml::from_str::<Settings>(text);
        let time = Duration::from_millis(1500);
        assert_eq!(read("time = \"1s 500ms\""), Ok(Settings { time }));
        let wrong = read("time = \"20\"").unwrap_err().to_string();
        assert!(wrong.contains("for example `20s`"), "{wrong}");
    }
}
