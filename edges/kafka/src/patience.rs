//! How long a run waits for a broker that takes nothing.
//!
//! Time counts from the last message that was delivered: however slow a broker is, it is waited for
//! while it takes messages. The records of a file can wait, so they do for minutes, in which a broker
//! is started again; at the end of a live run, or once the user has asked to stop, somebody is waiting
//! for us.

use std::time::Duration;

/// For the records of files.
const OF_FILES: Duration = Duration::from_secs(300);

/// At the end of a live run, and once the user has asked to stop.
const OF_USERS: Duration = Duration::from_secs(30);

/// The one setting that is for us and not for librdkafka; milliseconds.
const SETTING: &str = "linkweir.patience.ms";

/// How long to wait without progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    usual: Duration,
    stopping: Duration,
}

impl Patience {
    /// Takes its own setting, `linkweir.patience.ms`, out of those of the client, and gives the others
    /// back. `is_live`: the run reads an interface.
    ///
    /// # Errors
    /// The setting is no number, or there is another one of that prefix.
    pub fn among(
        given: &[(String, String)],
        is_live: bool,
    ) -> Result<(Self, Vec<(String, String)>), String> {
        let mut patience = Self {
            usual: if is_live { OF_USERS } else { OF_FILES },
            stopping: OF_USERS,
        };
        let mut others = Vec::new();
        for (name, value) in given {
            if name == SETTING {
                let span = value.parse().map(Duration::from_millis).map_err(|_| {
                    format!("--kafka: setting `{name}`: `{value}` is no number of milliseconds")
                })?;
                patience = Self {
                    usual: span,
                    stopping: span.min(OF_USERS),
                };
            } else if name.starts_with("linkweir.") {
                return Err(format!(
                    "--kafka: setting `{name}`: there is only `{SETTING}`"
                ));
            } else {
                others.push((name.clone(), value.clone()));
            }
        }
        Ok((patience, others))
    }

    /// How long, now that the user has asked to stop or has not.
    #[must_use]
    pub const fn span(&self, is_stopping: bool) -> Duration {
        if is_stopping {
            self.stopping
        } else {
            self.usual
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_a_setting() {
        let given = |value: &str| vec![(SETTING.to_owned(), value.to_owned())];
        let (patience, others) = Patience::among(&given("1500"), false).unwrap();
        assert!(others.is_empty());
        assert_eq!(patience.span(false).as_millis(), 1500);
        assert_eq!(patience.span(true).as_millis(), 1500);
        let (patience, _) = Patience::among(&given("600000"), false).unwrap();
        assert_eq!(patience.span(true).as_secs(), 30);
        let (of_files, _) = Patience::among(&[], false).unwrap();
        assert_eq!(of_files.span(false).as_secs(), 300);
        assert!(Patience::among(&given("long"), false).is_err());
    }
}
