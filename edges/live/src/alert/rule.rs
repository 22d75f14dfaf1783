//! The grammar of a rule.
//!
//! ```text
//! rule     = metric [ "of" scope | "where" "(" filter ")" ] op limit [ "for" N "interval"[s] ] [ "min" N "sample"[s] ]
//! metric   = stat [ "of" quantity ] | thing "rate" | part "share" | "drops" | "table" "fill" | "active" "flows"
//! stat     = "p" 1-99 [ "." digits ] | "p999" | "p9999" | "min" | "mean" | "max"
//! quantity =
//!   flows:   "rtt" | "server" "rtt" | "client" "rtt" | "handshake" | "throughput" | "duration"
//!   load:    "response" | "service" | "connect" | "lag"
//! thing    = "packets" | "bits"
//!   http:    | "requests" | "responses" | "unanswered" | "4xx" | "5xx"
//!   flows:   | "flows" | "new" "flows" | "resets" | "unanswered" | "retransmissions"
//!   load:    | "sessions" | "completed" | "failed" | "requests" | "responses" | "unanswered" | "4xx" | "5xx"
//!   gateway: | "events" | "blocked" | a kind of event: "infected", "keyword", "unscanned"...
//! part     =
//!   http:    "4xx" | "5xx" | "unanswered" | "orphans" | "retransmissions"
//!   flows:   "retransmissions" | "resets" | "unanswered" | a class of anomalies
//!   load:    "failed" | "no_room" | "4xx" | "5xx"
//! scope    = "server" address[:port] | "client" address
//!   http:    | "host" name | "url" template
//!   flows:   | "name" name | "application" name
//!   gateway: | "application" name
//! op       = ">" | ">=" | "<" | "<="
//! limit    = number [ unit ]     ns us ms s for times, % for shares and fill, /s for rates, bit/s for throughput
//! ```
//! A quantity is named of flows and load, which have several; a gateway has no stat and no table, load no scope.
//! The filter is that of `--where`, over the columns of the records.

use std::net::{IpAddr, SocketAddr};

use linkweir_record::scan::{MARKS, Token, tokens};
use thiserror::Error;

use super::sample::Stat;
use super::words::{Measured, Words};
use crate::api::HttpCounts;

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

/// What a rule measures.
#[derive(Debug, Clone, PartialEq)]
pub enum Metric {
    /// A figure of a distribution: its place among those of the kind, and its unit.
    Of(Stat, usize, &'static str),
    /// So many a second.
    Rate(String),
    /// A share, percent.
    Share(String),
    /// Everything lost, whatever the cause.
    Drops,
    /// Fill of the table, percent.
    TableFill,
    /// Entries in the table.
    Active,
}

impl Metric {
    /// Unit of its values.
    #[must_use]
    pub const fn unit(&self) -> &'static str {
        match self {
            Self::Of(_, _, unit) => unit,
            Self::Rate(_) => "/s",
            Self::Share(_) | Self::TableFill => "%",
            Self::Drops | Self::Active => "",
        }
    }

    /// Whether it exists for one host, server, client and so on.
    fn has_scope(&self) -> bool {
        match self {
            Self::Drops | Self::TableFill | Self::Active => false,
            Self::Rate(word) => !matches!(word.as_str(), "packets" | "bits" | "new flows"),
            _ => true,
        }
    }

    /// Samples an interval needs for the value to mean something: a quantile needs as many that one
    /// of them is expected above it (20 for p95, 100 for p99), at least 20; a share and a mean need 20;
    /// counts, minimum and maximum need one or none.
    fn default_min_samples(&self) -> u64 {
        match self {
            Self::Of(Stat::Quantile(q), ..) => one_above(*q),
            Self::Of(Stat::Mean, ..) | Self::Share(_) => 20,
            Self::Of(..) => 1,
            Self::Rate(_) | Self::Drops | Self::TableFill | Self::Active => 0,
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
    /// Those that meet this condition.
    Where {
        /// As it was written.
        condition: String,
        /// Where in the rule it begins, in characters from 1.
        column: usize,
    },
}

/// A rule without its condition: spaces stand in its place, so that columns stay those of the rule.
///
/// # Errors
/// Where a quotation mark or a parenthesis is not closed, and which.
fn without_condition(rule: &str) -> Result<(String, Option<Scope>), (usize, &'static str)> {
    let tokens =
        tokens(rule, MARKS).map_err(|column| (column, "this quotation mark is not closed"))?;
    let is = |token: &Token, text: &str| !token.is_quoted && token.text.eq_ignore_ascii_case(text);
    let mut pairs = tokens.iter().zip(tokens.iter().skip(1));
    let Some((word, open)) = pairs.find(|(word, open)| is(word, "where") && is(open, "(")) else {
        return Ok((rule.to_owned(), None));
    };
    let mut depth = 0_usize;
    let inside = tokens.iter().filter(|token| token.column >= open.column);
    let close = inside.into_iter().find(|token| {
        depth += usize::from(is(token, "("));
        depth -= usize::from(is(token, ")"));
        depth == 0
    });
    let Some(close) = close else {
        return Err((open.column, "this parenthesis is not closed"));
    };
    let part = |from: usize, to: usize| rule.chars().skip(from).take(to - from);
    let gap = std::iter::repeat_n(' ', close.column + 1 - word.column);
    let rest = part(0, word.column - 1)
        .chain(gap)
        .chain(rule.chars().skip(close.column));
    let scope = Scope::Where {
        condition: part(open.column, close.column - 1).collect(),
        column: open.column + 1,
    };
    Ok((rest.collect(), Some(scope)))
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
struct Parser<'a> {
    words: Words,
    rule: &'a str,
    /// What `where` says.
    condition: Option<Scope>,
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    end: usize,
}

/// In the words of HTTP.
impl std::str::FromStr for Rule {
    type Err = RuleError;

    fn from_str(rule: &str) -> Result<Self, RuleError> {
        Self::read::<HttpCounts>(rule)
    }
}

/// `a`, `b` or `c`.
fn listed(all: impl IntoIterator<Item = &'static str>) -> String {
    let mut all: Vec<String> = all.into_iter().map(|word| format!("`{word}`")).collect();
    let last = all.pop().unwrap_or_default();
    if all.is_empty() {
        last
    } else {
        format!("{} or {last}", all.join(", "))
    }
}

impl Rule {
    /// Reads a rule over counts of this kind.
    ///
    /// # Errors
    /// Where it is not one.
    pub fn read<C: Measured>(rule: &str) -> Result<Self, RuleError> {
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
        let (rest, condition) =
            without_condition(rule).map_err(|(column, message)| fault(column, message))?;
        let tokens = tokens(&rest, "<>")
            .map_err(|column| fault(column, "this quotation mark is not closed"))?;
        let mut parser = Parser {
            words: C::WORDS,
            rule,
            condition,
            tokens: tokens.into_iter().peekable(),
            end: rule.chars().count() + 1,
        };
        parser.rule::<C>()
    }
}

impl Parser<'_> {
    fn fault<T>(&self, column: usize, message: impl Into<String>) -> Result<T, RuleError> {
        Err(RuleError {
            rule: self.rule.to_owned(),
            column,
            message: message.into(),
        })
    }

    fn column(&mut self) -> usize {
        let end = self.end;
        self.tokens.peek().map_or(end, |token| token.column)
    }

    fn next(&mut self, expected: &str) -> Result<Token, RuleError> {
        match self.tokens.next() {
            Some(token) => Ok(token),
            None => self.fault(self.end, format!("expected {expected}, the rule ends here")),
        }
    }

    fn keyword(&mut self, word: &str) -> bool {
        self.tokens
            .next_if(|token| !token.is_quoted && token.text.eq_ignore_ascii_case(word))
            .is_some()
    }

    fn rule<C: Measured>(&mut self) -> Result<Rule, RuleError> {
        let metric = self.metric::<C>()?;
        let of = self.column();
        let condition = self.condition.take();
        let has_of = self.keyword("of");
        let has_scope = metric.has_scope() && !self.words.scopes.is_empty();
        let scope = match condition {
            Some(_) if has_of => {
                return self.fault(
                    of,
                    "a rule has `of` or `where`: write this into the condition",
                );
            }
            Some(Scope::Where { column, .. }) if !has_scope => {
                return self.fault(column, "this is measured for the whole run only");
            }
            Some(condition) => condition,
            None if has_of && !has_scope => {
                return self.fault(of, "this is measured for the whole run only");
            }
            None if has_of => self.scope()?,
            None => Scope::Run,
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
                    format!("expected `of`, `where (`, `>`, `>=`, `<` or `<=`, found `{other}`"),
                );
            }
        };
        let threshold = self.limit(&metric)?;
        let mut rule = Rule {
            text: self.rule.split_whitespace().collect::<Vec<_>>().join(" "),
            min_samples: metric.default_min_samples(),
            metric,
            scope,
            comparison,
            threshold,
            intervals: 1,
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

    fn metric<C: Measured>(&mut self) -> Result<Metric, RuleError> {
        let expected = self.words.expected;
        let first = self.next(expected)?;
        let mut word = first.text.to_ascii_lowercase();
        let stat = match word.as_str() {
            "min" => Some(Stat::Min),
            "mean" => Some(Stat::Mean),
            "max" => Some(Stat::Max),
            _ => quantile(&word).map(Stat::Quantile),
        };
        match (stat, self.words.quantities) {
            (None, _) | (_, []) => {}
            (Some(stat), [(_, unit)]) => return Ok(Metric::Of(stat, 0, unit)),
            (Some(stat), _) => {
                self.expect("of", ", as in `p95 of rtt`")?;
                let (at, unit) = self.quantity()?;
                return Ok(Metric::Of(stat, at, unit));
            }
        }
        let none = C::default();
        match word.as_str() {
            "drops" => return Ok(Metric::Drops),
            "table" if self.words.has_table => {
                return self.expect("fill", "").map(|()| Metric::TableFill);
            }
            "active" if self.words.has_active => {
                return self.expect("flows", "").map(|()| Metric::Active);
            }
            "new" if none.rate("new flows").is_some() => {
                self.expect("flows", "")?;
                word.push_str(" flows");
            }
            _ => {}
        }
        let has_rate = matches!(word.as_str(), "packets" | "bits") || none.rate(&word).is_some();
        let has_share = none.share(&word).is_some();
        let column = self.column();
        if has_rate && self.keyword("rate") {
            return Ok(Metric::Rate(word));
        }
        if has_share && self.keyword("share") {
            return Ok(Metric::Share(word));
        }
        let message = match (has_rate, has_share) {
            (true, true) => "expected `rate` or `share`",
            (true, false) => "expected `rate`",
            (false, true) => "expected `share`",
            (false, false) => {
                let message = format!("expected {expected}, found `{}`", first.text);
                return self.fault(first.column, message);
            }
        };
        self.fault(column, message)
    }

    /// The next word, which must be this one.
    fn expect(&mut self, word: &str, example: &str) -> Result<(), RuleError> {
        let column = self.column();
        if self.keyword(word) {
            Ok(())
        } else {
            self.fault(column, format!("expected `{word}`{example}"))
        }
    }

    /// The place of a quantity, and its unit.
    fn quantity(&mut self) -> Result<(usize, &'static str), RuleError> {
        let all = self.words.quantities;
        let expected = listed(all.iter().map(|(name, _)| *name));
        let token = self.next(&expected)?;
        let word = token.text.to_ascii_lowercase();
        for (at, (name, unit)) in all.iter().enumerate() {
            let (first, second) = name.split_once(' ').unwrap_or((name, ""));
            if first == word {
                if !second.is_empty() {
                    self.expect(second, "")?;
                }
                return Ok((at, unit));
            }
        }
        self.fault(token.column, format!("expected {expected}, found `{word}`"))
    }

    fn scope(&mut self) -> Result<Scope, RuleError> {
        let kinds = listed(self.words.scopes.iter().copied());
        let kind = self.next(&kinds)?;
        let word = kind.text.to_ascii_lowercase();
        let what = match word.as_str() {
            word if !self.words.scopes.contains(&word) => {
                return self.fault(kind.column, format!("expected {kinds}, found `{word}`"));
            }
            "host" => "a host name",
            "name" => "the name of a server",
            "client" => "an address",
            "url" => "a URL template such as shop/cart/{n}",
            "application" => "an application protocol such as tls",
            _ => "an address, with or without a port",
        };
        let name = self.next(what)?;
        if name.text.is_empty() || (!name.is_quoted && name.text.starts_with(['<', '>'])) {
            return self.fault(name.column, format!("expected {what}"));
        }
        let wrong =
            |parser: &Self| parser.fault(name.column, format!("`{}` is not {what}", name.text));
        match word.as_str() {
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
    fn limit(&mut self, metric: &Metric) -> Result<f64, RuleError> {
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
fn quantile(word: &str) -> Option<f64> {
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
    use crate::api::GatewayCounts;
    use proptest::prelude::*;

    fn parse(rule: &str) -> Rule {
        rule.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn rules_of_the_manual() {
        let rule = parse("p95 of host Shop  > 500 ms for 3 intervals");
        assert_eq!(rule.text, "p95 of host Shop > 500 ms for 3 intervals");
        assert_eq!(rule.metric, Metric::Of(Stat::Quantile(0.95), 0, "ns"));
        assert_eq!(rule.scope, Scope::Host("shop".into()));
        assert_eq!(
            (rule.threshold, rule.intervals, rule.min_samples),
            (5e8, 3, 20)
        );

        let rule = parse("5xx share > 2 %");
        assert_eq!(rule.metric, Metric::Share("5xx".into()));
        assert_eq!(
            (rule.scope, rule.threshold, rule.intervals),
            (Scope::Run, 2.0, 1)
        );

        let rule = parse("requests rate < 10 /s for 5 intervals");
        assert_eq!(rule.metric, Metric::Rate("requests".into()));
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

        assert_eq!(
            parse("p999 > 1us").metric,
            Metric::Of(Stat::Quantile(0.999), 0, "ns")
        );
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
            ("p95 where (status = 1 > 1 s", 11, "not closed"),
            ("p95 where status > 1 s", 5, "`where (`"),
            ("p95 of host a where (status) > 1 s", 5, "`of` or `where`"),
            ("drops where (status) > 1", 14, "whole run"),
        ] {
            let error = rule.parse::<Rule>().expect_err(rule);
            assert_eq!(error.column, column, "{error}");
            assert!(error.message.contains(part), "{error}");
        }
    }

    #[test]
    fn a_condition_is_that_of_records() {
        use crate::kind::Kind as _;
        use linkweir_record::HttpKind;
        let text = "p95 where (status >= 500 and (host ~ \"a (b)\")) > 500 ms for 3 intervals";
        let rule = HttpKind::rule(text).expect("a rule");
        let condition = "status >= 500 and (host ~ \"a (b)\")".to_owned();
        assert_eq!(
            rule.scope,
            Scope::Where {
                condition,
                column: 12
            }
        );
        assert_eq!((rule.threshold, rule.intervals), (5e8, 3));
        // It may stand at the end, as people say it.
        let last = HttpKind::rule("5xx share > 2 % where (host = shop)").expect("a rule");
        assert!(matches!(last.scope, Scope::Where { .. }) && last.threshold == 2.0);
        let wrong =
            HttpKind::rule("p95 where (status >= 500 and hots = a) > 1 s").expect_err("no column");
        assert_eq!(wrong.column, 30, "{wrong}");
        assert!(wrong.message.contains("hots"), "{wrong}");
    }

    #[test]
    fn rules_of_a_gateway() {
        let rule =
            Rule::read::<GatewayCounts>("infected rate of client 10.0.0.7 > 0 /s").expect("a rule");
        assert_eq!(rule.metric, Metric::Rate("infected".into()));
        assert_eq!(rule.scope, Scope::Client([10, 0, 0, 7].into()));
        assert_eq!(rule.min_samples, 0, "a rate of nothing is a rate");
        let application =
            Rule::read::<GatewayCounts>("Blocked rate of application MSN > 5 /s for 2 intervals");
        let application = application.expect("a rule");
        assert_eq!(application.scope, Scope::Application("msn".into()));
        assert_eq!(application.metric, Metric::Rate("blocked".into()));
        for (rule, column, message) in [
            ("p95 > 1 ms", 1, "expected what to measure: `infected rate`"),
            ("table fill > 1 %", 1, "expected what to measure"),
            ("infected share > 1 %", 10, "expected `rate`"),
            (
                "infected rate of host a > 1 /s",
                18,
                "expected `application`, `server` or `client`",
            ),
            ("drops of client 10.0.0.1 > 1", 7, "for the whole run only"),
            ("infected rate > 1 %", 19, "expected `/s`"),
        ] {
            let error = Rule::read::<GatewayCounts>(rule).expect_err(rule);
            assert!(error.message.contains(message), "{rule}: {error}");
            assert_eq!(error.column, column, "{rule}: {error}");
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
