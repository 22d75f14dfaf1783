//! What a rule asks of a connection besides application and client: servers, ports, times, and what it carries.

use std::fmt;
use std::str::FromStr;

use linkweir_gateway::policy::{
    Action, Applications, Conditions, Label, NamePatterns, Ports, Quota, Reply, RequestConditions,
    ResponseConditions, Rule, Times, TlsConditions, WEEK_MINUTES,
};
use linkweir_record::Prefix;
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use toml::Spanned;

use super::rules::pattern;
use super::values::{List, Parsed, Place};
use crate::exit::Wrong;
use crate::units;

/// Bytes of the longest text of a page, and of the longest URL.
const MAX_PAGE: usize = 4000;
const MAX_URL: usize = 1000;

/// These keys of a `[[rule]]`, as they are written.
#[derive(Debug, Default)]
pub(super) struct ConditionKeys {
    pub(super) servers: List<Parsed<Prefix>>,
    pub(super) server_ports: List<PortRange>,
    pub(super) times: List<Parsed<WeekTimes>>,
    pub(super) sni: List<String>,
    pub(super) ja4: List<String>,
    pub(super) alpn: List<String>,
    pub(super) certificate: List<String>,
    pub(super) ech: Option<bool>,
    pub(super) hosts: List<String>,
    pub(super) urls: List<String>,
    pub(super) methods: List<String>,
    pub(super) user_agents: List<String>,
    pub(super) mime_types: List<String>,
    pub(super) min_body: Option<Parsed<Bytes>>,
    pub(super) quota: Option<Spanned<Parsed<BytesPerTime>>>,
    pub(super) new_connections: Option<Spanned<Parsed<PerSecond>>>,
}

fn patterns(words: &List<String>) -> NamePatterns {
    NamePatterns(words.0.iter().map(pattern).collect())
}

impl ConditionKeys {
    /// Sets them in a rule whose applications are known.
    pub(super) fn put(
        self,
        rule: &mut Rule,
        at: &std::ops::Range<usize>,
        place: Place<'_>,
    ) -> Result<(), Wrong> {
        let name = rule.name.clone();
        let wrong = |at: &std::ops::Range<usize>, what: &str| {
            Err(place.wrong(at, format!("rule `{name}`: {what}")))
        };
        for host in &self.hosts.0 {
            if host.get_ref().contains(['/', ':']) {
                let what = "`hosts` are names without scheme, port and path, as \"*.ads.example\"; for paths write `urls`";
                return wrong(&host.span(), what);
            }
        }
        for url in &self.urls.0 {
            if url.get_ref().contains("://") {
                let what =
                    "`urls` are without scheme: host, path and query, as \"ads.example/banner/*\"";
                return wrong(&url.span(), what);
            }
        }
        for ja4 in &self.ja4.0 {
            let text = ja4.get_ref();
            if text.split('_').count() != 3 && !text.contains('*') {
                let what = "a JA4 has three parts, as \"t13d1516h2_8daaf6152771_02713d6af862\"; `*` stands for any characters";
                return wrong(&ja4.span(), what);
            }
        }
        for kind in &self.mime_types.0 {
            if !kind.get_ref().contains(['/', '*']) {
                let what = "`mime-types` have two parts, as \"video/*\" or \"application/zip\"";
                return wrong(&kind.span(), what);
            }
        }
        let conditions = Conditions {
            tls: TlsConditions {
                server_names: patterns(&self.sni),
                ja4: patterns(&self.ja4),
                alpn: patterns(&self.alpn),
                certificates: patterns(&self.certificate),
                has_ech: self.ech,
            },
            request: RequestConditions {
                hosts: patterns(&self.hosts),
                urls: patterns(&self.urls),
                methods: patterns(&self.methods),
                user_agents: patterns(&self.user_agents),
            },
            response: ResponseConditions {
                mime_types: patterns(&self.mime_types),
                min_body: self.min_body.map(|size| size.0.0),
            },
        };
        if let (Applications::Of(labels), false) = (&rule.applications, conditions.is_any()) {
            let has = |label: &Label| {
                label.is_tls() && !conditions.tls.is_any()
                    || label.is_http() && conditions.has_http()
            };
            if !labels.iter().all(has) {
                let what = match (conditions.tls.is_any(), conditions.has_http()) {
                    (false, false) => {
                        "`sni` is of tls and quic, as are `ja4`, `alpn`, `certificate` and `ech`: a rule with them is for these"
                    }
                    (true, _) => {
                        "`hosts` is of http, as are `urls`, `methods`, `user-agents`, `mime-types` and `min-body`: a rule with them is for these applications"
                    }
                    (false, true) => "a rule with `hosts` and `sni` is for http, tls and quic",
                };
                return wrong(at, what);
            }
        }
        let keys = [
            self.quota.as_ref().map(Spanned::span),
            self.new_connections.as_ref().map(Spanned::span),
        ];
        if let Some(at) = keys.into_iter().flatten().next() {
            if rule.action.stops() {
                let what = "`quota` and `new-connections` are what a client may use: action allow or inspect; what happens beyond them, say in a rule behind";
                return wrong(&at, what);
            }
            rule.quota = Some(Quota {
                index: 0,
                bytes: self.quota.map(|quota| quota.into_inner().0.0),
                connections: self.new_connections.map(|rate| rate.into_inner().0.0),
            });
        }
        let servers = self.servers.0.into_iter();
        rule.servers.0.extend(servers.map(|one| one.into_inner().0));
        let ports = self.server_ports.0.into_iter();
        rule.server_ports = Ports(ports.map(|one| one.into_inner().0).collect());
        let times = self.times.0.into_iter();
        rule.times = Times(times.flat_map(|one| one.into_inner().0.0).collect());
        rule.conditions = conditions;
        Ok(())
    }
}

/// What a client of HTTP gets, by `page` or `location`.
pub(super) fn reply(
    page: Option<Spanned<String>>,
    location: Option<Spanned<String>>,
    (rule, action, applications): (&str, Action, &Applications),
    place: Place<'_>,
) -> Result<Option<Reply>, Wrong> {
    let (key, value) = match (page, location) {
        (None, None) => return Ok(None),
        (Some(page), None) => ("page", page),
        (None, Some(location)) => ("location", location),
        (Some(_), Some(location)) => {
            let what = format!("rule `{rule}`: `page` and `location` exclude each other");
            return Err(place.wrong(&location.span(), what));
        }
    };
    let (at, text) = (value.span(), value.into_inner());
    let wrong = |what: &str| Err(place.wrong(&at, format!("rule `{rule}`: {what}")));
    if let Applications::Of(labels) = applications
        && !labels.iter().any(|label| label.is_http())
    {
        return wrong(&format!("`{key}` is for http, which the rule is not for"));
    }
    if key == "page" {
        return match action {
            Action::Reject if text.trim().is_empty() || text.len() > MAX_PAGE => {
                wrong("`page` is a text of 1 to 4000 bytes")
            }
            Action::Reject => Ok(Some(Reply::Page(text))),
            _ => wrong("`page` needs action = \"reject\""),
        };
    }
    let is_url = ["http://", "https://"].iter().any(|scheme| {
        let host = text.strip_prefix(scheme);
        host.is_some_and(|host| !host.is_empty() && !host.starts_with('/'))
    });
    match action {
        Action::Redirect
            if is_url
                && text.len() <= MAX_URL
                && text.bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            Ok(Some(Reply::Location(text)))
        }
        Action::Redirect => wrong(
            "`location` is a URL in ASCII of at most 1000 bytes, as \"http://portal.example/blocked\"",
        ),
        _ => wrong("`location` needs action = \"redirect\""),
    }
}

/// A size with a unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes(pub(super) u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match units::size(text)? {
            0 => Err("a size of at least 1B".to_owned()),
            bytes => Ok(Self(bytes)),
        }
    }
}

/// Bytes in an hour or a day, and that in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct BytesPerTime((u64, u64));

impl FromStr for BytesPerTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const HOUR_NS: u64 = 3_600_000_000_000;
        let parts = text.split_once('/');
        let period = parts.and_then(|(_, period)| match period.trim() {
            "hour" => Some(HOUR_NS),
            "day" => Some(24 * HOUR_NS),
            _ => None,
        });
        let (Some((bytes, _)), Some(period)) = (parts, period) else {
            return Err(format!(
                "`{text}` is not a valid quota: write \"500MB/day\" or \"100MiB/hour\""
            ));
        };
        match units::size(bytes.trim())? {
            0 => Err("a quota of at least 1B".to_owned()),
            bytes => Ok(Self((bytes, period))),
        }
    }
}

/// Bytes in a second.
#[derive(Debug, Clone, Copy)]
pub(super) struct BytesPerSecond(pub(super) u64);

impl FromStr for BytesPerSecond {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let size = text.strip_suffix("/s").map(|size| size.trim());
        let size = size.ok_or_else(|| {
            format!("`{text}` is not a valid rate: write \"500kB/s\" or \"2MiB/s\"")
        })?;
        units::size(size).map(Self)
    }
}

/// New connections in a second.
#[derive(Debug, Clone, Copy)]
pub(super) struct PerSecond(u32);

impl FromStr for PerSecond {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text
            .strip_suffix("/s")
            .and_then(|number| number.trim().parse().ok());
        let number = number.filter(|number| *number > 0);
        number
            .map(Self)
            .ok_or_else(|| format!("`{text}` is not a valid rate: write \"20/s\""))
    }
}

/// A port, or the first and the last of a range.
#[derive(Debug, Clone, Copy)]
pub(super) struct PortRange((u16, u16));

impl FromStr for PortRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let ports = first.trim().parse().ok().zip(last.trim().parse().ok());
        let ports = ports.filter(|(first, last)| first <= last);
        ports.map(Self).ok_or_else(|| {
            format!("`{text}` is not a valid port: write 443, or \"8000-8999\" for a range")
        })
    }
}

impl<'de> Deserialize<'de> for PortRange {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Ports;

        impl Visitor<'_> for Ports {
            type Value = PortRange;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a port from 0 to 65535, or \"8000-8999\" for a range")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<PortRange, E> {
                let port = u16::try_from(number);
                let port = port.map_err(|_| E::custom(format!("{number} is not a valid port")))?;
                Ok(PortRange((port, port)))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<PortRange, E> {
                let number = u64::try_from(number);
                let number = number.map_err(|_| E::custom("a port is not negative"))?;
                self.visit_u64(number)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<PortRange, E> {
                text.parse().map_err(E::custom)
            }
        }

        from.deserialize_any(Ports)
    }
}

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const DAY: u16 = 24 * 60;

/// Times of a week: `mon-fri 08:00-17:00`, `sat`, `22:00-06:00`.
#[derive(Debug, Clone)]
pub(super) struct WeekTimes(Vec<(u16, u16)>);

impl FromStr for WeekTimes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a valid time: write \"mon-fri 08:00-17:00\", \"sat-sun\" or \"22:00-06:00\""
            )
        };
        let (mut days, mut hours) = ((0, 6), (0, DAY));
        let words: Vec<&str> = text.split_whitespace().collect();
        match *words.as_slice() {
            [one] if one.contains(':') => hours = hours_of(one).ok_or_else(wrong)?,
            [one] => days = days_of(one).ok_or_else(wrong)?,
            [first, second] => {
                days = days_of(first).ok_or_else(wrong)?;
                hours = hours_of(second).ok_or_else(wrong)?;
            }
            _ => return Err(wrong()),
        }
        let (first, last) = days;
        let count = (last + 7 - first) % 7 + 1;
        let (from, until) = hours;
        // One that ends at or before its start ends on the next day.
        let length = if until > from {
            until - from
        } else {
            until + DAY - from
        };
        let times = (0..count).map(|day| {
            let from = (first + day) % 7 * DAY + from;
            (from, (from + length) % WEEK_MINUTES)
        });
        Ok(Self(times.collect()))
    }
}

fn days_of(text: &str) -> Option<(u16, u16)> {
    let day = |word: &str| {
        let word = word.to_ascii_lowercase();
        let at = DAYS.iter().position(|day| *day == word)?;
        u16::try_from(at).ok()
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((day(first)?, day(last)?))
}

fn hours_of(text: &str) -> Option<(u16, u16)> {
    let minute = |text: &str| {
        let (hour, minute) = text.split_once(':')?;
        let is_two = |digits: &str| digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit());
        let (hour, minute): (u16, u16) = (is_two(hour) && is_two(minute))
            .then(|| hour.parse().ok().zip(minute.parse().ok()))
            .flatten()?;
        (minute < 60 && hour * 60 + minute <= DAY).then_some(hour * 60 + minute)
    };
    let (from, until) = text.split_once('-')?;
    let (from, until) = (minute(from)?, minute(until)?);
    (from != until && from < DAY).then_some((from, until))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_days_hours_or_both() {
        let times = |text: &str| text.parse::<WeekTimes>().map(|times| Times(times.0));
        for (text, day, minute, holds) in [
            ("mon-fri 08:00-17:00", 0, 8 * 60, true),
            ("mon-fri 08:00-17:00", 4, 17 * 60, false),
            ("mon-fri 08:00-17:00", 5, 9 * 60, false),
            ("sat", 5, 0, true),
            ("sat", 6, 0, false),
            ("fri-mon", 6, 700, true),
            ("fri-mon", 1, 700, false),
            ("22:00-06:00", 6, 23 * 60, true),
            ("22:00-06:00", 0, 5 * 60, true),
            ("sun 22:00-06:00", 0, 5 * 60, true),
            ("sun 22:00-06:00", 1, 5 * 60, false),
            ("08:00-24:00", 3, 1439, true),
        ] {
            let times = times(text).expect(text);
            assert_eq!(
                times.hold(day * DAY + minute),
                holds,
                "{text} {day} {minute}"
            );
        }
        for text in [
            "",
            "mo",
            "8:00-9:00",
            "08:00",
            "08:00-08:00",
            "25:00-26:00",
            "mon 1 2",
            "mon-fri 08:60-09:00",
        ] {
            assert!(times(text).is_err(), "{text}");
        }
    }
}
