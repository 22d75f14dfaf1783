//! The grammar of a rule.
//!
//! ```text
//! rule    = metric [ "of" scope ] op limit [ "for" N "interval"[s] ] [ "min" N "sample"[s] ]
//! metric  = "p" 1-99 [ "." digits ] | "p999" | "p9999" | "min" | "mean" | "max"
//!         | thing "rate" | part "share" | "drops" | "table" "fill"
//! thing   = "requests" | "responses" | "unanswered" | "4xx" | "5xx" | "packets" | "bits"
//! part    = "4xx" | "5xx" | "unanswered" | "orphans" | "retransmissions"
//! scope   = "host" name | "server" address[:port] | "client" address | "url" template
//! op      = ">" | ">=" | "<" | "<="
//! limit   = number [ unit ]     ns us ms s for times, % for shares and fill, /s for rates
//! ```
//! That is in the words of HTTP; flows and gateways have their own metrics and scopes: see `flow.rs`
//! and `gateway.rs`.

use std::net::{IpAddr, SocketAddr};

use thiserror::Error;

use super::flow::{FlowMetric, Stat};
use super::gateway::GatewayThing;
use super::scan::{Token, tokens};

/// Longest rule, in characters.
const MAX_CHARS: usize = 400;

/// What was wrong with a rule, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("alert rule `{rule}`, column {column}: {message}")]
pub struct RuleError {
    /// The rule as it was written.
    pub rule: String,
    /// Where, in characters from 1.
    pub column: usize,
    /// What, in one sentence without a full stop.
    pub message: String,
}

/// What can be counted per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thing {
    /// Requests.
    Requests,
    /// Final responses.
    Responses,
    /// Requests without a response.
    Unanswered,
    /// Responses with 4xx.
    Errors4xx,
    /// Responses with 5xx.
    Errors5xx,
    /// Packets (of the whole run only).
    Packets,
    /// Bits on the wire (of the whole run only).
    Bits,
}

/// What can be a share of a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// 4xx of all responses.
    Errors4xx,
    /// 5xx of all responses.
    Errors5xx,
    /// Unanswered of all requests.
    Unanswered,
    /// Orphans of all responses.
    Orphans,
    /// Retransmitted heads for every request.
    Retransmissions,
}

/// What a rule measures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Metric {
    /// Response time that this share (0 to 1) of transactions did not exceed.
    Quantile(f64),
    /// Shortest response time.
    Min,
    /// Mean response time.
    Mean,
    /// Longest response time.
    Max,
    /// So many a second.
    Rate(Thing),
    /// A share, percent.
    Share(Part),
    /// Everything lost, whatever the cause.
    Drops,
    /// Fill of the table, percent.
    TableFill,
    /// What only flows have.
    Flow(FlowMetric),
    /// What only gateways have: so many a second.
    Gateway(GatewayThing),
}

impl Metric {
    /// Unit of its values.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Quantile(_) | Self::Min | Self::Mean | Self::Max => "ns",
            Self::Rate(_) | Self::Gateway(_) => "/s",
            Self::Share(_) | Self::TableFill => "%",
            Self::Drops => "",
            Self::Flow(metric) => metric.unit(),
        }
    }

    /// Whether it exists for one host, server, client and so on.
    const fn has_scope(self) -> bool {
        match self {
            Self::Drops | Self::TableFill | Self::Rate(Thing::Packets | Thing::Bits) => false,
            Self::Flow(metric) => metric.has_scope(),
            _ => true,
        }
    }

    /// Samples an interval needs for the value to mean something: a quantile needs as many that one
    /// of them is expected above it (20 for p95, 100 for p99), at least 20; a share and a mean need 20;
    /// counts, minimum and maximum need one or none.
    fn default_min_samples(self) -> u64 {
        match self {
            Self::Quantile(q) | Self::Flow(FlowMetric::Of(Stat::Quantile(q), _)) => one_above(q),
            Self::Mean
            | Self::Share(_)
            | Self::Flow(FlowMetric::Share(_) | FlowMetric::Of(Stat::Mean, _)) => 20,
            Self::Min | Self::Max | Self::Flow(FlowMetric::Of(..)) => 1,
            Self::Rate(_)
            | Self::Gateway(_)
            | Self::Drops
            | Self::TableFill
            | Self::Flow(FlowMetric::Rate(_) | FlowMetric::Active) => 0,
        }
    }
}

/// Samples of which one is expected above a quantile, at least 20.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 20 to 100 000"
)]
fn one_above(q: f64) -> u64 {
    (1.0 / (1.0 - q).max(1e-5)).round().clamp(20.0, 1e5) as u64
}

/// Which records a rule looks at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All.
    Run,
    /// Those with this `Host` (lower case; without a port it matches every port).
    Host(String),
    /// Those of this server, on every port where none is given.
    Server(IpAddr, Option<u16>),
    /// Those of this client.
    Client(IpAddr),
    /// Those with this URL template.
    Url(String),
    /// Flows to a server of this name (lower case), by whatever it is known.
    Name(String),
    /// Flows or events of this application protocol.
    Application(String),
}

/// Whose words a rule is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    Http,
    Flows,
    Gateway,
}

/// How the value relates to the limit when the limit is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `<`
    Below,
    /// `<=`
    AtMost,
}

impl Comparison {
    /// Whether `value` stands so to `limit`.
    #[must_use]
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Above => value > limit,
            Self::AtLeast => value >= limit,
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
        }
    }
}

/// A rule.
///
/// An interval with fewer than `min_samples` samples is judged together with those before it. Samples are
/// complete transactions for times, responses for code and orphan shares, requests for the other shares.
/// Default: for a quantile as many as it takes for one to lie above it, at least 20 (20 for p95, 100
/// for p99, 1000 for p99.9); 20 for mean and shares; 1 for `min` and `max`; 0 for rates and counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// As it was written, spaces joined.
    pub text: String,
    /// What is measured.
    pub metric: Metric,
    /// Over which records.
    pub scope: Scope,
    /// How value and limit stand to each other when the rule is broken.
    pub comparison: Comparison,
    /// The limit, in the unit of the metric.
    pub threshold: f64,
    /// Intervals in a row, at least 1.
    pub intervals: u32,
    /// Samples that a value needs.
    pub min_samples: u64,
}

/// Reads the words of a rule one after the other.
pub(super) struct Parser<'a> {
    words: Words,
    rule: &'a str,
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    end: usize,
}

/// In the words of HTTP.
impl std::str::FromStr for Rule {
    type Err = RuleError;

    fn from_str(rule: &str) -> Result<Self, RuleError> {
        Self::read(rule, Words::Http)
    }
}

impl Rule {
    /// Reads a rule in the words of flows.
    ///
    /// # Errors
    /// Where it is none.
    pub fn of_flows(rule: &str) -> Result<Self, RuleError> {
        Self::read(rule, Words::Flows)
    }

    /// Reads a rule in the words of a gateway.
    ///
    /// # Errors
    /// Where it is none.
    pub fn of_gateway(rule: &str) -> Result<Self, RuleError> {
        Self::read(rule, Words::Gateway)
    }

    fn read(rule: &str, words: Words) -> Result<Self, RuleError> {
        let fault = |column, message: &str| RuleError {
            rule: crate::text::clean(rule.chars().take(MAX_CHARS).collect::<String>().as_bytes()),
            column,
            message: message.to_owned(),
        };
        if rule.chars().nth(MAX_CHARS).is_some() {
            return Err(fault(MAX_CHARS + 1, "a rule has at most 400 characters"));
        }
        if let Some(at) = rule.chars().position(char::is_control) {
            return Err(fault(
                at + 1,
                "a rule is one line without control characters",
            ));
        }
        let tokens =
            tokens(rule).map_err(|column| fault(column, "this quotation mark is not closed"))?;
        let mut parser = Parser {
            words,
            rule,
            tokens: tokens.into_iter().peekable(),
            end: rule.chars().count() + 1,
        };
        parser.rule()
    }
}

impl Parser<'_> {
    pub(super) fn fault<T>(
        &self,
        column: usize,
        message: impl Into<String>,
    ) -> Result<T, RuleError> {
        Err(RuleError {
            rule: self.rule.to_owned(),
            column,
            message: message.into(),
        })
    }

    pub(super) fn column(&mut self) -> usize {
        let end = self.end;
        self.tokens.peek().map_or(end, |token| token.column)
    }

    pub(super) fn next(&mut self, expected: &str) -> Result<Token, RuleError> {
        match self.tokens.next() {
            Some(token) => Ok(token),
            None => self.fault(self.end, format!("expected {expected}, the rule ends here")),
        }
    }

    pub(super) fn keyword(&mut self, word: &str) -> bool {
        self.tokens
            .next_if(|token| !token.is_quoted && token.text.eq_ignore_ascii_case(word))
            .is_some()
    }

    fn rule(&mut self) -> Result<Rule, RuleError> {
        let metric = match self.words {
            Words::Http => self.metric()?,
            Words::Flows => self.flow_metric()?,
            Words::Gateway => self.gateway_metric()?,
        };
        let of = self.column();
        let scope = if self.keyword("of") {
            if !metric.has_scope() {
                return self.fault(of, "this is measured for the whole run only");
            }
            self.scope()?
        } else {
            Scope::Run
        };
        let op = self.next("`>`, `>=`, `<` or `<=`")?;
        let comparison = match op.text.as_str() {
            ">" => Comparison::Above,
            ">=" => Comparison::AtLeast,
            "<" => Comparison::Below,
            "<=" => Comparison::AtMost,
            other => {
                return self.fault(
                    op.column,
                    format!("expected `of`, `>`, `>=`, `<` or `<=`, found `{other}`"),
                );
            }
        };
        let threshold = self.limit(metric)?;
        let mut rule = Rule {
            text: self.rule.split_whitespace().collect::<Vec<_>>().join(" "),
            metric,
            scope,
            comparison,
            threshold,
            intervals: 1,
            min_samples: metric.default_min_samples(),
        };
        if self.keyword("for") {
            let count = self.count("interval", 1, 10_000)?;
            rule.intervals = u32::try_from(count).unwrap_or(u32::MAX);
        }
        if self.keyword("min") {
            rule.min_samples = self.count("sample", 0, 1_000_000_000)?;
        }
        match self.tokens.next() {
            None => Ok(rule),
            Some(rest) => self.fault(
                rest.column,
                format!(
                    "expected `for N intervals`, `min N samples` or the end, found `{}`",
                    rest.text
                ),
            ),
        }
    }

    fn metric(&mut self) -> Result<Metric, RuleError> {
        const EXPECTED: &str =
            "what to measure: p95, mean, max, `requests rate`, `5xx share`, drops, `table fill`...";
        let first = self.next(EXPECTED)?;
        let word = first.text.to_ascii_lowercase();
        if let Some(quantile) = quantile(&word) {
            return Ok(Metric::Quantile(quantile));
        }
        let (rate, share) = match word.as_str() {
            "min" => return Ok(Metric::Min),
            "mean" => return Ok(Metric::Mean),
            "max" => return Ok(Metric::Max),
            "drops" => return Ok(Metric::Drops),
            "table" => {
                let column = self.column();
                return if self.keyword("fill") {
                    Ok(Metric::TableFill)
                } else {
                    self.fault(column, "expected `fill`")
                };
            }
            "requests" => (Some(Thing::Requests), None),
            "responses" => (Some(Thing::Responses), None),
            "packets" => (Some(Thing::Packets), None),
            "bits" => (Some(Thing::Bits), None),
            "4xx" => (Some(Thing::Errors4xx), Some(Part::Errors4xx)),
            "5xx" => (Some(Thing::Errors5xx), Some(Part::Errors5xx)),
            "unanswered" => (Some(Thing::Unanswered), Some(Part::Unanswered)),
            "orphans" => (None, Some(Part::Orphans)),
            "retransmissions" => (None, Some(Part::Retransmissions)),
            _ => {
                return self.fault(
                    first.column,
                    format!("expected {EXPECTED}, found `{}`", first.text),
                );
            }
        };
        let column = self.column();
        if let Some(thing) = rate
            && self.keyword("rate")
        {
            return Ok(Metric::Rate(thing));
        }
        if let Some(part) = share
            && self.keyword("share")
        {
            return Ok(Metric::Share(part));
        }
        self.fault(
            column,
            match (rate, share) {
                (Some(_), Some(_)) => "expected `rate` or `share`",
                (Some(_), None) => "expected `rate`",
                _ => "expected `share`",
            },
        )
    }

    fn scope(&mut self) -> Result<Scope, RuleError> {
        let kinds = match self.words {
            Words::Http => "`host`, `server`, `client` or `url`",
            Words::Flows => "`name`, `server`, `client` or `application`",
            Words::Gateway => "`application`, `server` or `client`",
        };
        let kind = self.next(kinds)?;
        let what = match (self.words, kind.text.to_ascii_lowercase().as_str()) {
            (Words::Http, "host") => "a host name",
            (Words::Flows, "name") => "the name of a server",
            (_, "server") => "an address, with or without a port",
            (_, "client") => "an address",
            (Words::Http, "url") => "a URL template such as shop/cart/{n}",
            (Words::Flows | Words::Gateway, "application") => "an application protocol such as tls",
            (_, other) => {
                return self.fault(kind.column, format!("expected {kinds}, found `{other}`"));
            }
        };
        let name = self.next(what)?;
        if name.text.is_empty() || (!name.is_quoted && name.text.starts_with(['<', '>'])) {
            return self.fault(name.column, format!("expected {what}"));
        }
        let wrong =
            |parser: &Self| parser.fault(name.column, format!("`{}` is not {what}", name.text));
        match kind.text.to_ascii_lowercase().as_str() {
            "host" => Ok(Scope::Host(name.text.to_lowercase())),
            "name" => Ok(Scope::Name(name.text.to_lowercase())),
            "application" => Ok(Scope::Application(name.text.to_lowercase())),
            "url" => Ok(Scope::Url(name.text)),
            "client" => match name.text.parse::<IpAddr>() {
                Ok(address) => Ok(Scope::Client(address.to_canonical())),
                Err(_) => wrong(self),
            },
            _ => {
                if let Ok(address) = name.text.parse::<IpAddr>() {
                    return Ok(Scope::Server(address.to_canonical(), None));
                }
                match name.text.parse::<SocketAddr>() {
                    Ok(socket) => Ok(Scope::Server(
                        socket.ip().to_canonical(),
                        Some(socket.port()),
                    )),
                    Err(_) => wrong(self),
                }
            }
        }
    }

    /// A number and its unit, which may stand apart: `500 ms`, `500ms`, `2%`, `10 /s`, `3`.
    fn limit(&mut self, metric: Metric) -> Result<f64, RuleError> {
        let token = self.next("a number")?;
        let split = token
            .text
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .unwrap_or(token.text.len());
        let (digits, attached) = token.text.split_at(split);
        let number = match digits.parse::<f64>() {
            Ok(number) if number.is_finite() => number,
            _ => {
                return self.fault(
                    token.column,
                    format!("expected a number, found `{}`", token.text),
                );
            }
        };
        let (unit, column) = if attached.is_empty() {
            let column = self.column();
            let apart = self
                .tokens
                .next_if(|next| !next.is_quoted && !matches!(next.text.as_str(), "for" | "min"));
            (apart.map_or_else(String::new, |next| next.text), column)
        } else {
            (attached.to_owned(), token.column + digits.chars().count())
        };
        let factor = match (metric.unit(), unit.as_str()) {
            ("ns", "ns") | ("%", "%") | ("/s", "/s") | ("", "") => 1.0,
            ("ns", "us" | "\u{b5}s" | "\u{3bc}s") => 1e3,
            ("ns", "ms") => 1e6,
            ("ns", "s") => 1e9,
            ("bit/s", "bit/s" | "b/s") => 1.0,
            ("bit/s", "kbit/s" | "kb/s") => 1e3,
            ("bit/s", "Mbit/s" | "Mb/s") => 1e6,
            ("bit/s", "Gbit/s" | "Gb/s") => 1e9,
            ("/s", "k/s") => 1e3,
            ("/s", "M/s") => 1e6,
            ("/s", "G/s") => 1e9,
            ("ns", _) => return self.fault(column, "expected a unit of time: ns, µs, ms or s"),
            ("%", _) => return self.fault(column, "expected `%`"),
            ("bit/s", _) => {
                return self.fault(column, "expected `bit/s`, `kbit/s`, `Mbit/s` or `Gbit/s`");
            }
            ("/s", _) => return self.fault(column, "expected `/s`, `k/s`, `M/s` or `G/s`"),
            _ => return self.fault(column, "this is a count and has no unit"),
        };
        Ok(number * factor)
    }

    /// `N interval[s]`, `N sample[s]`.
    fn count(&mut self, noun: &str, least: u64, most: u64) -> Result<u64, RuleError> {
        let number = self.next("a number")?;
        let count = match number.text.parse::<u64>() {
            Ok(count) if (least..=most).contains(&count) => count,
            _ => {
                return self.fault(
                    number.column,
                    format!(
                        "expected a whole number from {least} to {most}, found `{}`",
                        number.text
                    ),
                );
            }
        };
        let column = self.column();
        if self.keyword(noun) || self.keyword(&format!("{noun}s")) {
            Ok(count)
        } else {
            self.fault(column, format!("expected `{noun}s`"))
        }
    }
}

/// The share of a word such as `p95`, `p99.9` or `p999`.
pub(super) fn quantile(word: &str) -> Option<f64> {
    let digits = word.strip_prefix('p')?;
    if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let (whole, rest) = match digits.split_once('.') {
        Some(parts) => parts,
        // p999 is 99.9 %, p9999 99.99 %.
        None => digits.split_at_checked(2).unwrap_or((digits, "")),
    };
    if whole.is_empty() || whole.len() > 2 {
        return None;
    }
    // Read as one decimal number, so that p99.9 is exactly 0.999.
    let quantile: f64 = format!("0.{whole:0>2}{rest}").parse().ok()?;
    (quantile > 0.0 && quantile < 1.0).then_some(quantile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(rule: &str) -> Rule {
        rule.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn rules_of_the_manual() {
        let rule = parse("p95 of host Shop  > 500 ms for 3 intervals");
        assert_eq!(rule.text, "p95 of host Shop > 500 ms for 3 intervals");
        assert_eq!(rule.metric, Metric::Quantile(0.95));
        assert_eq!(rule.scope, Scope::Host("shop".into()));
        assert_eq!(
            (rule.threshold, rule.intervals, rule.min_samples),
            (5e8, 3, 20)
        );

        let rule = parse("5xx share > 2 %");
        assert_eq!(rule.metric, Metric::Share(Part::Errors5xx));
        assert_eq!(
            (rule.scope, rule.threshold, rule.intervals),
            (Scope::Run, 2.0, 1)
        );

        let rule = parse("requests rate < 10 /s for 5 intervals");
        assert_eq!(rule.metric, Metric::Rate(Thing::Requests));
        assert_eq!(
            (rule.comparison, rule.threshold, rule.min_samples),
            (Comparison::Below, 10.0, 0)
        );

        assert_eq!(parse("drops>0").metric, Metric::Drops);
        let rule = parse("p99 of server 10.0.0.1:80 > 1 s");
        assert_eq!(
            rule.scope,
            Scope::Server("10.0.0.1".parse().unwrap(), Some(80))
        );
        assert_eq!((rule.threshold, rule.min_samples), (1e9, 100));
        let rule = parse("unanswered share of url shop/cart/{n} > 5% min 50 samples");
        assert_eq!(rule.scope, Scope::Url("shop/cart/{n}".into()));
        assert_eq!(rule.min_samples, 50);

        assert_eq!(parse("p999 > 1us").metric, Metric::Quantile(0.999));
        assert_eq!(parse("p99.9 > 1us").metric, parse("p999 > 1us").metric);
        assert_eq!(parse("p999 > 1us").min_samples, 1000);
        assert_eq!(parse("bits rate > 9.5 G/s").threshold, 9.5e9);
        assert_eq!(
            parse("max of server ::1 >= 3ns for 1 interval").scope,
            Scope::Server("::1".parse().unwrap(), None)
        );
        assert_eq!(
            parse("mean of host \"a > b\" <= 1s").scope,
            Scope::Host("a > b".into())
        );
        assert_eq!(parse("table fill > 90 %").metric, Metric::TableFill);
    }

    #[test]
    fn faults_say_where() {
        for (rule, column, part) in [
            ("", 1, "ends here"),
            ("p95", 4, "ends here"),
            ("p0 > 1 s", 1, "what to measure"),
            ("p100. > 1 s", 1, "what to measure"),
            ("p95 of hots shop > 1 s", 8, "`host`"),
            ("p95 of host > 1 s", 13, "host name"),
            ("p95 of server shop > 1 s", 15, "is not an address"),
            ("p95 of client 1.2.3.4:5 > 1 s", 15, "is not an address"),
            ("p95 == 1 s", 5, "found `==`"),
            ("p95 > fast", 7, "a number"),
            ("p95 > 500", 10, "unit of time"),
            ("p95 > 500 for 3 intervals", 11, "unit of time"),
            ("p95 > 500% ", 10, "unit of time"),
            ("5xx > 2 %", 5, "`rate` or `share`"),
            ("requests share > 2 %", 10, "`rate`"),
            ("orphans rate > 2 /s", 9, "`share`"),
            ("drops of host a > 1", 7, "whole run"),
            ("drops > 1 ms", 11, "no unit"),
            ("drops > 1 for 0 intervals", 15, "whole number"),
            ("drops > 1 for 2 minutes", 17, "`intervals`"),
            ("drops > 1 and more", 11, "no unit"),
            ("p95 > 1 s always", 11, "the end"),
            ("p95 > 1.2.3 s", 7, "a number"),
            ("table full > 1 %", 7, "`fill`"),
            ("p95 of host \"a > 1 s", 13, "not closed"),
            ("drops >\n1", 8, "one line"),
        ] {
            let error = rule.parse::<Rule>().expect_err(rule);
            assert_eq!(error.column, column, "{error}");
            assert!(error.message.contains(part), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_rule_or_a_fault_inside_it(text in "[ -~é]{0,60}") {
            if let Err(error) = text.parse::<Rule>() {
                prop_assert!(error.column >= 1 && error.column <= text.chars().count() + 1);
            }
        }

        #[test]
        fn words_of_the_grammar_in_any_order(words in prop::collection::vec(prop::sample::select(vec![
            "p95", "drops", "5xx", "share", "rate", "of", "host", "url", "a", "<", ">", "1", "ms", "s", "%", "for",
            "min", "intervals", "samples", "3",
        ]), 0..12)) {
            let text = words.join(" ");
            if let Ok(rule) = text.parse::<Rule>() {
                let again = rule.text.parse::<Rule>();
                prop_assert_eq!(again, Ok(rule));
            }
        }
    }
}
