//! Scenarios: files that say what is done.
//!
//! Those that come with the program are files too, in `app/lab/scenarios`; `linkweir lab --print NAME`
//! prints one, to be changed and run.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::error::LabError;
use crate::{encrypted, failover, overload, p2p, regenerate, traffic};

/// What comes with the program: name and text.
const BUILT_IN: &[(&str, &str)] = &[
    ("web", include_str!("../scenarios/web.toml")),
    ("loss", include_str!("../scenarios/loss.toml")),
    ("p2p", include_str!("../scenarios/p2p.toml")),
    (
        "capture-to-model",
        include_str!("../scenarios/capture-to-model.toml"),
    ),
    ("overload", include_str!("../scenarios/overload.toml")),
    ("failover", include_str!("../scenarios/failover.toml")),
    ("tls", include_str!("../scenarios/tls.toml")),
    ("h2", include_str!("../scenarios/h2.toml")),
    ("h3", include_str!("../scenarios/h3.toml")),
    ("sse", include_str!("../scenarios/sse.toml")),
];

/// Longest file of a scenario, bytes.
const LONGEST: u64 = 1 << 20;

/// What is done.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Name of the scenario, or of its file.
    pub name: String,
    /// In one line.
    pub title: String,
    /// In a few.
    pub about: String,
    /// Which experiment, with its figures.
    pub kind: Kind,
}

/// Which experiment.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Load through the gateway, and everybody counts.
    Traffic(traffic::Settings),
    /// File sharing and chat, by application.
    P2p(p2p::Settings),
    /// Traffic recorded, a model fitted to it, and that played and recorded.
    Regenerate(regenerate::Settings),
    /// Constant against correlated arrivals near the limit of the server.
    Overload(overload::Settings),
    /// Parts killed in the middle of traffic.
    Failover(failover::Settings),
    /// Response times of HTTPS without keys.
    Encrypted(encrypted::Settings),
}

/// The text of a file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    title: String,
    #[serde(default)]
    about: String,
    traffic: Option<traffic::Settings>,
    p2p: Option<p2p::Settings>,
    regenerate: Option<regenerate::Settings>,
    overload: Option<overload::Settings>,
    failover: Option<failover::Settings>,
    encrypted: Option<encrypted::Settings>,
}

impl Scenario {
    /// Names and titles of those that come with the program.
    #[must_use]
    pub fn built_in() -> Vec<(&'static str, String)> {
        let title = |name: &str, text: &str| read(name, text).map(|scenario| scenario.title);
        let all = BUILT_IN.iter();
        all.map(|(name, text)| (*name, title(name, text).unwrap_or_default()))
            .collect()
    }

    /// The text of one that comes with the program.
    #[must_use]
    pub fn text(name: &str) -> Option<&'static str> {
        let found = BUILT_IN.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| *text)
    }

    /// The scenario of this name, or of the file at this path.
    ///
    /// # Errors
    /// There is neither, or the file is not as it should be.
    pub fn find(name: &str) -> Result<Self, LabError> {
        if let Some(text) = Self::text(name) {
            return read(name, text);
        }
        let wrong = |why: String| LabError::Scenario {
            name: name.to_owned(),
            why,
        };
        if !name.contains(['/', '.']) {
            let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            return Err(wrong(format!(
                "no such scenario: {}, or a file",
                names.join(", ")
            )));
        }
        let path = Path::new(name);
        let file = fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
        if !file.is_file() || file.len() > LONGEST {
            return Err(wrong("a scenario is a file of at most 1 MiB".to_owned()));
        }
        let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        read(name, &text)
    }

    /// That its figures are such that it can be run.
    ///
    /// # Errors
    /// They are not; the error says which.
    pub fn check(&self) -> Result<(), LabError> {
        let checked = match &self.kind {
            Kind::Traffic(settings) => settings.check(),
            Kind::Encrypted(settings) => settings.check(),
            _ => Ok(()),
        };
        checked.map_err(|why| LabError::Scenario {
            name: self.name.clone(),
            why,
        })
    }

    /// Another duration of what is generated, where the scenario has one.
    pub fn set_duration(&mut self, duration: Duration) {
        match &mut self.kind {
            Kind::Traffic(settings) => settings.duration = duration,
            Kind::P2p(settings) => settings.duration = duration,
            Kind::Regenerate(settings) => settings.duration = duration,
            Kind::Overload(settings) => settings.duration = duration,
            Kind::Failover(settings) => settings.set_duration(duration),
            Kind::Encrypted(settings) => settings.duration = duration,
        }
    }

    /// Another rate of sessions, 1/s, where the scenario has one.
    pub fn set_rate(&mut self, rate: f64) {
        match &mut self.kind {
            Kind::Traffic(settings) => settings.rate = rate,
            Kind::P2p(settings) => settings.rate = rate,
            Kind::Regenerate(settings) => settings.rate = rate,
            Kind::Failover(settings) => settings.rate = rate,
            // The server says what it can do; clients ask one thing after the other.
            Kind::Overload(_) | Kind::Encrypted(_) => {}
        }
    }
}

fn read(name: &str, text: &str) -> Result<Scenario, LabError> {
    let wrong = |why: String| LabError::Scenario {
        name: name.to_owned(),
        why,
    };
    let file: File = toml::from_str(text).map_err(|error| wrong(located(text, &error)))?;
    let kinds = [
        file.traffic.map(Kind::Traffic),
        file.p2p.map(Kind::P2p),
        file.regenerate.map(Kind::Regenerate),
        file.overload.map(Kind::Overload),
        file.failover.map(Kind::Failover),
        file.encrypted.map(Kind::Encrypted),
    ];
    let mut kinds = kinds.into_iter().flatten();
    let (Some(kind), None) = (kinds.next(), kinds.next()) else {
        return Err(wrong(
            "a scenario has exactly one table that says what is done: [traffic], [p2p], [regenerate], [overload], [failover], [encrypted]".to_owned(),
        ));
    };
    if file.title.contains(char::is_control) {
        return Err(wrong("the title is more than one line of text".to_owned()));
    }
    let scenario = Scenario {
        name: name.to_owned(),
        title: file.title,
        about: file.about,
        kind,
    };
    scenario.check()?;
    Ok(scenario)
}

/// What is wrong with a file, and where, in one line.
fn located(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let Some(before) = before else {
        return error.message().to_owned();
    };
    let line = before.matches('\n').count() + 1;
    let column = before
        .chars()
        .rev()
        .take_while(|letter| *letter != '\n')
        .count()
        + 1;
    format!("line {line}, column {column}: {}", error.message())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_with_the_program_can_be_read() {
        for (name, title) in Scenario::built_in() {
            let scenario = Scenario::find(name).unwrap();
            assert_eq!(scenario.name, name);
            assert!(!title.is_empty() && !scenario.about.is_empty(), "{name}");
        }
    }

    #[test]
    fn a_wrong_file_says_where() {
        let why = |text: &str| read("x.toml", text).unwrap_err().to_string();
        let wrong = why("title = \"t\"\n[traffic]\nduratoin = \"3s\"\n");
        assert!(
            wrong.contains("line 3") && wrong.contains("duratoin"),
            "{wrong}"
        );
        assert!(why("title = \"t\"\n").contains("exactly one table"));
        let wrong = Scenario::find("wbe").unwrap_err().to_string();
        assert!(wrong.contains("no such scenario: web"), "{wrong}");
        let web = Scenario::text("web").unwrap();
        for (from, to) in [
            ("rate = 1500.0", "rate = nan"),
            ("rate = 1500.0", "rate = 0.0"),
            ("rate = 1500.0", "rate = 1e308"),
            ("duration = \"20s\"", "duration = \"0s\""),
            ("model-bin = \"20ms\"", "model-bin = \"1000y\""),
            ("10.16.0.0/14", "10.16.0.0/33"),
            ("10.16.0.0/14", "10.88.0.0/16"),
            ("10.30.0.0/16", "10.17.0.0/16"),
            ("10.30.0.0/16", "fd00::/64"),
            ("10.30.0.0/16", "10.30.0.1/32"),
            ("title = \"", "title = \"\\u001b["),
        ] {
            let changed = web.replace(from, to);
            assert_ne!(changed, web, "{from}");
            assert!(read("x.toml", &changed).is_err(), "{to}");
        }
        assert!(Scenario::find("/dev/zero").is_err());
        let wrong = Scenario::find("./none.toml").unwrap_err().to_string();
        assert!(wrong.contains("No such file"), "{wrong}");
    }
}
