//! The lists `[[rule]]` and `[[signature]]`.

use std::collections::BTreeSet;

use linkweir_gateway::policy::{
    Action, Applications, Fail, Hold, Inspect, Keywords, Label, NamePattern, NamePatterns, Network,
    Networks, OnMatch, Pattern, Rule, ScanSettings, Signature,
};
use linkweir_proto::application::Application;

use super::section::{Section, Word, nearest};
use super::{RecordSettings, ScannerSettings, read_list};
use crate::exit::Wrong;

/// What is done where no rule fits.
pub(super) fn default_action(section: &mut Section<'_, '_>) -> Result<Action, Wrong> {
    let words = [
        ("allow", Action::Allow),
        ("drop", Action::Drop),
        ("reject", Action::Reject),
    ];
    section.choice("default", Action::Allow, &words)
}

/// Signatures of the policy's own.
pub(super) fn read_signatures(sections: Vec<Section<'_, '_>>) -> Result<Vec<Signature>, Wrong> {
    let mut all: Vec<Signature> = Vec::new();
    for mut section in sections {
        let place = section.place();
        let Some(name) = section.word("name")? else {
            return Err(section.wrong("a signature needs a `name`"));
        };
        let is_taken = all.iter().any(|one| one.name == name.text)
            || Application::from_name(&name.text).is_some()
            || matches!(name.text.as_str(), "unknown" | "*" | "");
        if is_taken {
            let what = format!("the name `{}` is taken", name.text);
            return Err(place.wrong(&name.at, what));
        }
        let mut pattern = |key| -> Result<Option<Pattern>, Wrong> {
            let Some(word) = section.word(key)? else {
                return Ok(None);
            };
            let parsed = word.text.parse();
            parsed
                .map(Some)
                .map_err(|error| place.wrong(&word.at, format!("`{key}`: {error}")))
        };
        let (client, server) = (pattern("client")?, pattern("server")?);
        if client.is_none() && server.is_none() {
            section.no_others()?;
            let what = "a signature needs a pattern: `client`, `server` or both";
            return Err(section.wrong(what));
        }
        all.push(Signature {
            name: name.text,
            client,
            server,
        });
        section.end()?;
    }
    Ok(all)
}

/// A rule, and the rate of its class.
pub(super) struct ReadRule {
    pub(super) rule: Rule,
    pub(super) shape: Option<u64>,
}

/// What rules refer to.
pub(super) struct Reader<'a> {
    signatures: &'a [Signature],
    scanner: Option<&'a ScannerSettings>,
    record: &'a RecordSettings,
    /// Of the gateway as a whole: what a rule that does not say gets.
    fail: Fail,
    names: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(
        signatures: &'a [Signature],
        scanner: Option<&'a ScannerSettings>,
        record: &'a RecordSettings,
        fail: Fail,
    ) -> Self {
        Self {
            signatures,
            scanner,
            record,
            fail,
            names: BTreeSet::new(),
        }
    }

    pub(super) fn rule(&mut self, mut section: Section<'_, '_>) -> Result<ReadRule, Wrong> {
        let place = section.place();
        let Some(name) = section.word("name")? else {
            return Err(section.wrong("a rule needs a `name`"));
        };
        if name.text.is_empty() || name.text == "default" || !self.names.insert(name.text.clone()) {
            return Err(place.wrong(&name.at, format!("the name `{}` is taken", name.text)));
        }
        let words = [
            ("allow", Some(Action::Allow)),
            ("drop", Some(Action::Drop)),
            ("reject", Some(Action::Reject)),
            ("inspect", Some(Action::Inspect)),
        ];
        let Some(action) = section.choice("action", None, &words)? else {
            return Err(section.wrong(format!("rule `{}` has no `action`", name.text)));
        };
        let shape = section.word("shape")?;
        let shape = shape
            .map(|word| rate(&word.text).map_err(|what| place.wrong(&word.at, what)))
            .transpose()?;
        let mut clients = Vec::new();
        for word in section.words("clients")? {
            let network: Result<Network, _> = word.text.parse();
            clients.push(network.map_err(|error| place.wrong(&word.at, error))?);
        }
        let rule = Rule {
            number: 0,
            applications: self.applications(&mut section)?,
            clients: Networks(clients),
            server_names: patterns(&section.words("sni")?),
            action,
            fail: section.choice(
                "fail",
                self.fail,
                &[("open", Fail::Open), ("closed", Fail::Closed)],
            )?,
            inspect: self.inspect(&mut section, &name, action)?,
            name: name.text,
        };
        let has_names =
            |label: &Label| matches!(label, Label::Known(Application::Tls | Application::Quic));
        if let Applications::Of(labels) = &rule.applications
            && !rule.server_names.0.is_empty()
            && !labels.iter().all(has_names)
        {
            let what = "`sni` is of tls and quic: a rule with it is for these";
            return Err(section.wrong(what));
        }
        if shape.is_some() && matches!(action, Action::Drop | Action::Reject) {
            let what = format!(
                "rule `{}` lets nothing pass: there is nothing to shape",
                rule.name
            );
            return Err(section.wrong(what));
        }
        section.end()?;
        Ok(ReadRule { rule, shape })
    }

    fn applications(&self, section: &mut Section<'_, '_>) -> Result<Applications, Wrong> {
        let words = section.words("application")?;
        if words.is_empty()
            || words
                .iter()
                .any(|word| matches!(word.text.as_str(), "*" | "any"))
        {
            return Ok(Applications::Any);
        }
        let place = section.place();
        let labels = words.iter().map(|word| {
            self.label(&word.text)
                .ok_or_else(|| place.wrong(&word.at, self.no_such(&word.text)))
        });
        Ok(Applications::Of(labels.collect::<Result<_, _>>()?))
    }

    fn label(&self, name: &str) -> Option<Label> {
        if name == "unknown" {
            return Some(Label::Unknown);
        }
        let own = self.signatures.iter().position(|one| one.name == name);
        own.and_then(|at| u16::try_from(at).ok())
            .map(Label::Own)
            .or_else(|| Application::from_name(name).map(Label::Known))
    }

    fn no_such(&self, name: &str) -> String {
        let mut all: Vec<&str> = Application::ALL.iter().map(|one| one.as_str()).collect();
        all.extend(self.signatures.iter().map(|one| one.name.as_str()));
        all.sort_unstable();
        let there = match nearest(name, &[&all[..], &["unknown"]].concat()) {
            Some(one) => format!("did you mean `{one}`? There"),
            None => "there".to_owned(),
        };
        format!(
            "no application is called `{name}`; {there} are * unknown {}",
            all.join(" ")
        )
    }

    fn inspect(
        &self,
        section: &mut Section<'_, '_>,
        name: &Word,
        action: Action,
    ) -> Result<Inspect, Wrong> {
        let place = section.place();
        let mut words: Vec<String> = texts(section.words("keywords")?);
        for word in section.words("keywords-file")? {
            let list = read_list(&place.resolve(&word.text));
            words.extend(list.map_err(|error| place.wrong(&word.at, format!("{error:#}")))?);
        }
        let mut names = patterns(&section.words("file-names")?);
        for word in section.words("file-names-file")? {
            let list = read_list(&place.resolve(&word.text));
            let list = list.map_err(|error| place.wrong(&word.at, format!("{error:#}")))?;
            names
                .0
                .extend(list.iter().map(|text| NamePattern::new(text)));
        }
        let scan = self.scan(section)?;
        let keywords = (!words.is_empty())
            .then(|| Keywords::new(words))
            .transpose()
            .map_err(|error| place.wrong(&name.at, format!("rule `{}`: {error}", name.text)))?;
        let inspect = Inspect {
            keywords,
            file_names: names,
            scan,
            audit: section.flag("audit", false)?,
            record: section.flag("record", false)?,
            quarantine: section.flag("quarantine", false)?,
            on_match: section.choice(
                "on-match",
                OnMatch::Reject,
                &[
                    ("reject", OnMatch::Reject),
                    ("drop", OnMatch::Drop),
                    ("event", OnMatch::Event),
                ],
            )?,
        };
        section.no_others()?;
        let wrong = |what: &str| place.wrong(&name.at, format!("rule `{}`: {what}", name.text));
        let looks = inspect.keywords.is_some()
            || !inspect.file_names.0.is_empty()
            || inspect.scan.is_some()
            || inspect.audit
            || inspect.record;
        if inspect.record && self.record.folder.is_none() {
            return Err(wrong(
                "`record` needs a directory: [record] folder = \"...\"",
            ));
        }
        if inspect.quarantine && self.record.quarantine.is_none() {
            return Err(wrong(
                "`quarantine` needs a directory: [record] quarantine = \"...\"",
            ));
        }
        if inspect.quarantine && inspect.scan.is_none() {
            return Err(wrong("`quarantine` is for infected files: it needs `scan`"));
        }
        match (action, looks) {
            (Action::Inspect, false) => Err(wrong(
                "action inspect needs something to look at: keywords, file-names, scan, audit or record",
            )),
            (Action::Inspect, true) | (_, false) => Ok(inspect),
            (_, true) => Err(wrong(
                "keywords, file-names, scan, audit and record need action = \"inspect\"",
            )),
        }
    }

    /// `scan = "clamd"`, or `scan = { with = "clamd", hold = "file" }`.
    fn scan(&self, section: &mut Section<'_, '_>) -> Result<Option<ScanSettings>, Wrong> {
        let place = section.place();
        let (word, at, hold) = if section.is_table("scan") {
            let Some(mut scan) = section.section("scan")? else {
                return Ok(None);
            };
            let at = scan.at.clone();
            let word = scan.word("with")?;
            let holds = [("packet", Hold::Packet), ("file", Hold::File)];
            let hold = scan.choice("hold", Hold::Packet, &holds)?;
            scan.end()?;
            (word, at, hold)
        } else {
            let Some(word) = section.word("scan")? else {
                return Ok(None);
            };
            let at = word.at.clone();
            (Some(word), at, Hold::Packet)
        };
        if let Some(word) = word
            && word.text != "clamd"
        {
            let what = "`scan` must be \"clamd\", or { hold = \"file\" }";
            return Err(place.wrong(&word.at, what));
        }
        let Some(scanner) = self.scanner else {
            let what = "no scanner of this name: add [scanner.clamd] with its address";
            return Err(place.wrong(&at, what));
        };
        Ok(Some(ScanSettings {
            hold,
            ..scanner.scan
        }))
    }
}

fn texts(words: Vec<Word>) -> Vec<String> {
    words.into_iter().map(|word| word.text).collect()
}

fn patterns(words: &[Word]) -> NamePatterns {
    let patterns = words.iter().map(|word| NamePattern::new(&word.text));
    NamePatterns(patterns.collect())
}

/// A rate as `tc` writes it: `10mbit`, `512kbit`, `1gbit`, bit/s.
fn rate(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no rate; write 512kbit, 10mbit or 1gbit (bits per second)");
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text
        .split_at_checked(at.ok_or_else(wrong)?)
        .ok_or_else(wrong)?;
    let scale = match unit.trim() {
        "bit" => 1,
        "kbit" => 1_000,
        "mbit" => 1_000_000,
        "gbit" => 1_000_000_000_u64,
        _ => return Err(wrong()),
    };
    // Whole numbers of bits: a fraction is cut.
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let mut rate = whole.checked_mul(scale).ok_or_else(wrong)?;
    let mut place = scale;
    for digit in part.bytes() {
        place /= 10;
        rate += u64::from(digit.wrapping_sub(b'0').min(9)) * place;
    }
    if (8_000..=100_000_000_000).contains(&rate) {
        Ok(rate)
    } else {
        Err(format!("{text} is not between 8kbit and 100gbit"))
    }
}
