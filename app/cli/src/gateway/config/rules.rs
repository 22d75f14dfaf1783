//! The lists `[[rule]]` and `[[signature]]`.

use std::collections::BTreeSet;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::str::FromStr;

use linkweir_gateway::policy::{
    Action, Applications, Conditions, Fail, Hold, Inspect, Keywords, Label, NamePattern,
    NamePatterns, Networks, OnMatch, Pattern, Ports, Rule, ScanSettings, Signature, Times,
};
use linkweir_geo::Databases;
use linkweir_netfilter::rules::ClientRate;
use linkweir_proto::application::Application;
use linkweir_record::Prefix;
use linkweir_scan::Protocol;
use serde::Deserialize;
use toml::Spanned;

use super::conditions::{
    self, Bytes, BytesPerSecond, BytesPerTime, ConditionKeys, PerSecond, PortRange, WeekTimes,
};
use super::regions::{Asn, Keys};
use super::values::{List, Parsed, Place, WordOr, nearest};
use super::{RecordSettings, ScannerSettings, read_list};
use crate::exit::Wrong;

/// One `[[signature]]`, as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct SignatureTable {
    name: Spanned<String>,
    client: Option<Parsed<Pattern>>,
    server: Option<Parsed<Pattern>>,
}

/// One `[[rule]]`, as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RuleTable {
    name: Spanned<String>,
    action: Action,
    shape: Option<Parsed<Rate>>,
    client_rate: Option<Spanned<Parsed<BytesPerSecond>>>,
    client_burst: Option<Spanned<Parsed<Bytes>>>,
    proxy_port: Option<Spanned<NonZeroU16>>,
    page: Option<Spanned<String>>,
    location: Option<Spanned<String>>,
    #[serde(default)]
    application: List<String>,
    #[serde(default)]
    clients: List<Parsed<Prefix>>,
    #[serde(default)]
    servers: List<Parsed<Prefix>>,
    #[serde(default)]
    server_ports: List<PortRange>,
    #[serde(default)]
    times: List<Parsed<WeekTimes>>,
    #[serde(default)]
    sni: List<String>,
    #[serde(default)]
    ja4: List<String>,
    #[serde(default)]
    alpn: List<String>,
    #[serde(default)]
    certificate: List<String>,
    ech: Option<bool>,
    #[serde(default)]
    hosts: List<String>,
    #[serde(default)]
    urls: List<String>,
    #[serde(default)]
    methods: List<String>,
    #[serde(default)]
    user_agents: List<String>,
    #[serde(default)]
    mime_types: List<String>,
    min_body: Option<Parsed<Bytes>>,
    quota: Option<Spanned<Parsed<BytesPerTime>>>,
    new_connections: Option<Spanned<Parsed<PerSecond>>>,
    #[serde(default)]
    client_country: List<String>,
    #[serde(default)]
    server_country: List<String>,
    #[serde(default)]
    client_asn: List<Asn>,
    #[serde(default)]
    server_asn: List<Asn>,
    fail: Option<Fail>,
    #[serde(default)]
    keywords: List<String>,
    #[serde(default)]
    keywords_file: List<PathBuf>,
    #[serde(default)]
    file_names: List<String>,
    #[serde(default)]
    file_names_file: List<PathBuf>,
    /// `"clamd"` or `"icap"`, or `{ with = "clamd", hold = "file" }`.
    scan: Option<Spanned<WordOr<ScannerName, ScanTable>>>,
    #[serde(default)]
    audit: bool,
    #[serde(default)]
    record: bool,
    #[serde(default)]
    quarantine: bool,
    #[serde(default)]
    on_match: OnMatch,
}

/// The scanners that there are.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ScannerName {
    Clamd,
    Icap,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ScanTable {
    with: Option<ScannerName>,
    #[serde(default)]
    hold: Hold,
}

/// Signatures of the policy's own.
pub(super) fn signatures(
    tables: Vec<Spanned<SignatureTable>>,
    place: Place<'_>,
) -> Result<Vec<Signature>, Wrong> {
    let mut all: Vec<Signature> = Vec::new();
    for table in tables {
        let at = table.span();
        let SignatureTable {
            name,
            client,
            server,
        } = table.into_inner();
        let text = name.get_ref();
        let is_taken = all.iter().any(|one| one.name == *text)
            || Application::from_name(text).is_some()
            || matches!(text.as_str(), "unknown" | "*" | "");
        if is_taken {
            return Err(place.wrong(&name.span(), format!("the name `{text}` is in use")));
        }
        if client.is_none() && server.is_none() {
            let what = "a signature needs a pattern: `client`, `server` or both";
            return Err(place.wrong(&at, what));
        }
        all.push(Signature {
            name: name.into_inner(),
            client: client.map(|pattern| pattern.0),
            server: server.map(|pattern| pattern.0),
        });
    }
    Ok(all)
}

/// A rule, and the rate of its class.
pub(super) struct ReadRule {
    pub(super) rule: Rule,
    /// Bit/s.
    pub(super) shape: Option<u64>,
    /// Of each client.
    pub(super) client_rate: Option<ClientRate>,
    /// Where a local proxy listens.
    pub(super) proxy_port: Option<u16>,
}

/// What rules refer to.
pub(super) struct Reader<'a> {
    place: Place<'a>,
    signatures: &'a [Signature],
    scanner: Option<&'a ScannerSettings>,
    record: &'a RecordSettings,
    /// Of the gateway as a whole: what a rule that does not say gets.
    fail: Fail,
    /// What the gateway knows of addresses.
    databases: Option<&'a Databases>,
    names: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(
        place: Place<'a>,
        signatures: &'a [Signature],
        scanner: Option<&'a ScannerSettings>,
        record: &'a RecordSettings,
        fail: Fail,
        databases: Option<&'a Databases>,
    ) -> Self {
        Self {
            place,
            signatures,
            scanner,
            record,
            fail,
            databases,
            names: BTreeSet::new(),
        }
    }

    pub(super) fn rule(&mut self, table: Spanned<RuleTable>) -> Result<ReadRule, Wrong> {
        let place = self.place;
        let at = table.span();
        let table = table.into_inner();
        let name = table.name.get_ref();
        if name.is_empty() || name.contains(char::is_control) {
            let what = "a `name` is at least one character, and none of them a control character";
            return Err(place.wrong(&table.name.span(), what));
        }
        if name == "default" || !self.names.insert(name.clone()) {
            let what = format!("the name `{name}` is in use");
            return Err(place.wrong(&table.name.span(), what));
        }
        let applications = self.applications(&table.application)?;
        if table.shape.is_some() && table.action.stops() {
            let what = format!("rule `{name}` lets nothing pass: there is nothing to shape");
            return Err(place.wrong(&at, what));
        }
        let client_rate = self.client_rate(&table)?;
        let proxy_port = self.proxy_port(&table)?;
        let inspect = self.inspect(&table)?;
        let client_regions = Keys {
            rule: name,
            countries: ("client-country", &table.client_country),
            asns: ("client-asn", &table.client_asn),
        };
        let server_regions = Keys {
            rule: name,
            countries: ("server-country", &table.server_country),
            asns: ("server-asn", &table.server_asn),
        };
        let client_regions = client_regions.read(self.databases, place)?;
        let server_regions = server_regions.read(self.databases, place)?;
        let clients = table.clients.0.into_iter();
        let whose = (name.as_str(), table.action, &applications);
        let reply = conditions::reply(table.page, table.location, whose, place)?;
        let mut rule = Rule {
            number: 0,
            applications,
            clients: Networks(clients.map(|one| one.into_inner().0).collect()),
            client_regions,
            server_regions,
            servers: Networks::default(),
            server_ports: Ports::default(),
            times: Times::default(),
            conditions: Conditions::default(),
            action: table.action,
            reply,
            quota: None,
            fail: table.fail.unwrap_or(self.fail),
            inspect,
            name: table.name.into_inner(),
        };
        let keys = ConditionKeys {
            servers: table.servers,
            server_ports: table.server_ports,
            times: table.times,
            sni: table.sni,
            ja4: table.ja4,
            alpn: table.alpn,
            certificate: table.certificate,
            ech: table.ech,
            hosts: table.hosts,
            urls: table.urls,
            methods: table.methods,
            user_agents: table.user_agents,
            mime_types: table.mime_types,
            min_body: table.min_body,
            quota: table.quota,
            new_connections: table.new_connections,
        };
        keys.put(&mut rule, &at, place)?;
        Ok(ReadRule {
            rule,
            shape: table.shape.map(|rate| rate.0.0),
            client_rate,
            proxy_port,
        })
    }

    /// The rate of each client; a burst that is not said is 200 ms of it, and at least two long packets.
    fn client_rate(&self, table: &RuleTable) -> Result<Option<ClientRate>, Wrong> {
        const LEAST_BURST: u64 = 128 << 10;
        let name = table.name.get_ref();
        let burst = table.client_burst.as_ref();
        let Some(rate) = &table.client_rate else {
            let Some(burst) = burst else { return Ok(None) };
            let what = format!("rule `{name}`: `client-burst` needs `client-rate`");
            return Err(self.place.wrong(&burst.span(), what));
        };
        if table.action.stops() {
            let what = format!("rule `{name}` lets nothing pass: there is no rate to limit");
            return Err(self.place.wrong(&rate.span(), what));
        }
        let rate_bytes = rate.get_ref().0.0;
        let burst_bytes = burst.map_or_else(
            || (rate_bytes / 5).max(LEAST_BURST).min(u32::MAX.into()),
            |burst| burst.get_ref().0.0,
        );
        Ok(Some(ClientRate {
            rule: 0,
            rate_bytes,
            burst_bytes,
        }))
    }

    fn proxy_port(&self, table: &RuleTable) -> Result<Option<u16>, Wrong> {
        let name = table.name.get_ref();
        match (&table.proxy_port, table.action) {
            (Some(port), Action::Redirect) if table.location.is_some() => {
                let what = format!("rule `{name}`: `proxy-port` and `location` exclude each other");
                Err(self.place.wrong(&port.span(), what))
            }
            (None, Action::Redirect) if table.location.is_some() => Ok(None),
            (Some(port), Action::Redirect) => Ok(Some(port.get_ref().get())),
            (None, Action::Redirect) => {
                let what = format!(
                    "rule `{name}`: action redirect needs `proxy-port`, the port on which a transparent proxy of this machine listens, or `location`, the URL that clients of http are sent to"
                );
                Err(self.place.wrong(&table.name.span(), what))
            }
            (Some(port), _) => {
                let what = format!("rule `{name}`: `proxy-port` needs action = \"redirect\"");
                Err(self.place.wrong(&port.span(), what))
            }
            (None, _) => Ok(None),
        }
    }

    fn applications(&self, words: &List<String>) -> Result<Applications, Wrong> {
        let is_any = |word: &Spanned<String>| matches!(word.get_ref().as_str(), "*" | "any");
        if words.0.is_empty() || words.0.iter().any(is_any) {
            return Ok(Applications::Any);
        }
        let labels = words.0.iter().map(|word| {
            let name = word.get_ref();
            let label = self.label(name);
            label.ok_or_else(|| self.place.wrong(&word.span(), self.no_such(name)))
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
            Some(one) => format!("did you mean `{one}`? Valid names"),
            None => "valid names".to_owned(),
        };
        format!(
            "unknown application `{name}`; {there}: * unknown {}",
            all.join(" ")
        )
    }

    /// The lines of files that a rule names.
    fn lines(&self, files: &List<PathBuf>) -> Result<Vec<String>, Wrong> {
        let mut lines = Vec::new();
        for file in &files.0 {
            let read = read_list(&self.place.resolve(file.get_ref()));
            let wrong = |error| self.place.wrong(&file.span(), format!("{error:#}"));
            lines.extend(read.map_err(wrong)?);
        }
        Ok(lines)
    }

    fn inspect(&self, table: &RuleTable) -> Result<Inspect, Wrong> {
        let name = table.name.get_ref();
        let wrong = |what: &str| {
            let what = format!("rule `{name}`: {what}");
            self.place.wrong(&table.name.span(), what)
        };
        let words = table.keywords.0.iter();
        let mut words: Vec<String> = words.map(|word| word.get_ref().clone()).collect();
        words.extend(self.lines(&table.keywords_file)?);
        let mut names: Vec<NamePattern> = table.file_names.0.iter().map(pattern).collect();
        let listed = self.lines(&table.file_names_file)?;
        names.extend(listed.iter().map(|text| NamePattern::new(text)));
        let keywords = (!words.is_empty())
            .then(|| Keywords::new(words))
            .transpose()
            .map_err(|error| wrong(&error.to_string()))?;
        let inspect = Inspect {
            keywords,
            file_names: NamePatterns(names),
            scan: table
                .scan
                .as_ref()
                .map(|scan| self.scan(scan))
                .transpose()?,
            audit: table.audit,
            record: table.record,
            quarantine: table.quarantine,
            on_match: table.on_match,
        };
        let looks = inspect.keywords.is_some()
            || !inspect.file_names.0.is_empty()
            || inspect.scan.is_some()
            || inspect.audit
            || inspect.record;
        if inspect.record && self.record.directory.is_none() {
            return Err(wrong(
                "`record` needs a directory: [record] directory = \"...\"",
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
        match (table.action, looks) {
            (Action::Inspect, false) => Err(wrong(
                "action inspect needs something to look at: keywords, file-names, scan, audit or record",
            )),
            (Action::Inspect, true) | (_, false) => Ok(inspect),
            (_, true) => Err(wrong(
                "keywords, file-names, scan, audit and record need action = \"inspect\"",
            )),
        }
    }

    fn scan(&self, scan: &Spanned<WordOr<ScannerName, ScanTable>>) -> Result<ScanSettings, Wrong> {
        let Some(scanner) = self.scanner else {
            let what =
                "no scanner is configured: add [scanner.clamd] or [scanner.icap] with its address";
            return Err(self.place.wrong(&scan.span(), what));
        };
        let (name, hold) = match scan.get_ref() {
            WordOr::Word(name) => (Some(*name), Hold::Packet),
            WordOr::Table(table) => (table.with, table.hold),
        };
        let is_icap = matches!(scanner.protocol, Protocol::Icap { .. });
        if name.is_some_and(|name| matches!(name, ScannerName::Icap) != is_icap) {
            let what = if is_icap {
                "the scanner is [scanner.icap]: write scan = \"icap\""
            } else {
                "the scanner is [scanner.clamd]: write scan = \"clamd\""
            };
            return Err(self.place.wrong(&scan.span(), what));
        }
        Ok(ScanSettings {
            hold,
            ..scanner.scan
        })
    }
}

pub(super) fn pattern(word: &Spanned<String>) -> NamePattern {
    NamePattern::new(word.get_ref())
}

/// A rate as `tc` writes it: `10mbit`, `512kbit`, `1gbit`, bit/s.
#[derive(Debug, Clone, Copy)]
struct Rate(u64);

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        rate(text).map(Self)
    }
}

fn rate(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!("`{text}` is not a valid rate; write 512kbit, 10mbit or 1gbit (bits per second)")
    };
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
