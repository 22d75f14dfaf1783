//! What is done with which application of which client.
//!
//! A [`Policy`] is compiled once and shared; a reload makes a new one. The first rule that matches decides
//! a connection, and a connection keeps the rule it got.

mod conditions;
mod keywords;
mod possible;
mod quota;
mod region;
mod rule;
mod signature;

use std::net::IpAddr;
use std::sync::Arc;

use linkweir_engine::effect::MarkLayout;
use linkweir_proto::application::Application;
use linkweir_record::Places;
use linkweir_wire::Timestamp;
use serde::Deserialize;

use crate::connection::Ends;
pub use conditions::{
    Conditions, Ports, Reply, RequestConditions, ResponseConditions, Times, TlsConditions,
    WEEK_MINUTES,
};
pub(crate) use conditions::{Requested, Shown, Why};
pub use keywords::{KeywordState, Keywords, KeywordsError};
pub(crate) use possible::Wait;
pub use quota::{MAX_QUOTAS, Quota, QuotaCounts, QuotaTable, client_network};
pub use region::Regions;
pub use rule::{
    Action, Applications, Fail, Hold, Inspect, Label, NamePattern, NamePatterns, Networks, OnMatch,
    Rule, ScanMode, ScanSettings,
};
pub(crate) use signature::Fit;
pub use signature::{Pattern, PatternError, Signature};

/// Everything that decides what happens to traffic.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Where our bits of a mark are.
    pub marks: MarkLayout,
    /// Bounds of what is kept.
    pub limits: Limits,
    /// Signatures of the policy's own, tried before those of the program.
    pub signatures: Vec<Signature>,
    /// The rules in their order.
    pub rules: Vec<Arc<Rule>>,
    /// What holds where no rule matches; its number is 0.
    pub default: Arc<Rule>,
    /// Says where addresses are, for rules and events. Asked when a connection begins.
    pub places: Option<Arc<dyn Places>>,
    /// The minute of the week of a time, local time, since Monday 00:00; where a rule asks for it.
    pub local_minute: Option<fn(Timestamp) -> u16>,
    /// What clients have used, where a rule has a quota; shared by all workers and kept over a reload.
    pub quotas: Option<Arc<QuotaTable>>,
}

impl Policy {
    /// The rules with a quota that a client has no more of at this time, each by the bit of its quota.
    pub(crate) fn used_up(&self, client: IpAddr, now: Timestamp) -> u64 {
        let Some(table) = &self.quotas else { return 0 };
        let quotas = self
            .rules
            .iter()
            .filter_map(|rule| Some((rule, rule.quota.as_ref()?)));
        let used = quotas.filter(|(rule, quota)| table.is_used_up(rule.number, client, quota, now));
        used.fold(0, |all, (_, quota)| all | quota.bit())
    }

    /// A client opens a connection: the rules with a quota for which it is one too many in this second.
    pub(crate) fn opens(&self, ends: &Ends, now: Timestamp) -> u64 {
        let Some(table) = &self.quotas else { return 0 };
        let quotas = self
            .rules
            .iter()
            .filter_map(|rule| Some((rule, rule.quota.as_ref()?)));
        let over = quotas.filter(|(rule, quota)| {
            quota.connections.is_some()
                && rule.is_for(ends)
                && table.opens(rule.number, ends.client.0, quota, now)
        });
        over.fold(0, |all, (_, quota)| all | quota.bit())
    }

    /// Whether a rule lets nothing pass that could not be inspected: then what cannot be classified must not
    /// pass either, since the rule may be the one for it.
    pub(crate) fn may_fail_closed(&self) -> bool {
        let mut rules = self.rules.iter().chain([&self.default]);
        rules.any(|rule| rule.fail == Fail::Closed)
    }

    /// The rule for an application between two ends, as far as that shows before its first request.
    pub(crate) fn rule(&self, label: Label, ends: &Ends, shown: &Shown) -> &Arc<Rule> {
        self.rules
            .iter()
            .find(|rule| !rule.asks_requests(label) && rule.matches(label, ends, shown))
            .unwrap_or(&self.default)
    }

    /// The rules that single requests may get instead, in their order: those before [`Policy::rule`].
    pub(crate) fn rules_of_requests<'a>(
        &'a self,
        label: Label,
        ends: &'a Ends,
        shown: &'a Shown,
    ) -> impl Iterator<Item = &'a Arc<Rule>> + 'a {
        let last = self.rule(label, ends, shown);
        let before = self
            .rules
            .iter()
            .take_while(|rule| !Arc::ptr_eq(rule, last));
        before.filter(move |rule| rule.asks_requests(label) && rule.matches(label, ends, shown))
    }

    /// Whether requests have to be read to know what happens to a connection.
    pub(crate) fn reads_requests(&self, label: Label, ends: &Ends, shown: &Shown) -> bool {
        label.is_http()
            && (self.rule(label, ends, shown).reply.is_some()
                || self.rules_of_requests(label, ends, shown).next().is_some())
    }

    /// The rule of two ends whose applications all get the same, so that nothing has to be inspected.
    pub(crate) fn rule_of_any(&self, ends: &Ends) -> Option<&Arc<Rule>> {
        match self.rules.iter().find(|rule| rule.is_for(ends)) {
            Some(rule) => rule.is_for_any().then_some(rule),
            None => Some(&self.default),
        }
    }

    /// Whether some of what may be sent between two ends is not just allowed.
    pub(crate) fn is_strict(&self, ends: &Ends) -> bool {
        let mut rules = self.rules.iter().filter(|rule| rule.is_for(ends));
        rules.any(|rule| rule.action != Action::Allow) || self.default.action != Action::Allow
    }

    /// Whether a rule holds files until their verdict.
    pub(crate) fn holds_files(&self) -> bool {
        let mut scans = self.rules.iter().filter_map(|rule| rule.inspect.scan);
        scans.any(|scan| scan.hold == Hold::File)
    }

    /// Whether a rule asks for something of the handshake of TLS.
    pub(crate) fn asks_tls(&self) -> bool {
        self.rules.iter().any(|rule| !rule.conditions.tls.is_any())
    }

    /// Whether a rule asks for more of the client's hello than the server name.
    pub(crate) fn asks_hello(&self) -> bool {
        let mut all = self.rules.iter().map(|rule| &rule.conditions.tls);
        all.any(TlsConditions::needs_hello)
    }

    /// Whether a rule for two ends asks for the server's certificate.
    pub(crate) fn asks_certificate(&self, ends: &Ends) -> bool {
        let mut rules = self.rules.iter().filter(|rule| rule.is_for(ends));
        rules.any(|rule| !rule.conditions.tls.certificates.0.is_empty())
    }

    /// Whether a rule names an application.
    #[must_use]
    pub fn names(&self, application: Application) -> bool {
        let label = Label::Known(application);
        self.rules.iter().any(|rule| match &rule.applications {
            Applications::Any => false,
            Applications::Of(labels) => labels.contains(&label),
        })
    }

    /// The rule of a number, as a mark names it.
    #[must_use]
    pub fn numbered(&self, number: u16) -> Option<&Arc<Rule>> {
        if number == self.default.number {
            return Some(&self.default);
        }
        self.rules.iter().find(|rule| rule.number == number)
    }

    /// The name of what a connection carries.
    #[must_use]
    pub fn name(&self, label: Label) -> &str {
        match label {
            Label::Known(application) => application.as_str(),
            Label::Own(at) => self
                .signatures
                .get(usize::from(at))
                .map_or("unknown", |signature| signature.name.as_str()),
            Label::Unknown => "unknown",
        }
    }
}

// Bounds of what the gateway keeps, and what happens at them.

/// What happens to a packet that would have to be held at a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AtLimit {
    /// It is dropped; its sender sends it again.
    #[default]
    Drop,
    /// It passes, and so does the rest of its connection, unseen.
    Pass,
}

/// Bounds. Each is for one worker (one kernel queue).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections that are being classified or inspected; beyond, the one that was silent longest is
    /// forgotten: its packets pass or not as its rule's `fail` says.
    pub connections: usize,
    /// Connections of which only the handshake was seen.
    pub half_open: usize,
    /// Packets with payload after which a connection is unknown (paper sec. 3.2: eight).
    pub classify_packets: u8,
    /// Bytes of one direction after which a connection is unknown.
    pub classify_bytes: usize,
    /// Packets held of one direction of a connection.
    pub held_packets: usize,
    /// Payload bytes kept of one direction of a connection: of packets that wait, of what has passed ahead
    /// of a gap, and of what its receiver has not acknowledged.
    pub held_bytes: usize,
    /// Packets held of all connections; one address may have as many as are free.
    pub total_held_packets: usize,
    /// Payload bytes kept of all connections; one address may have as many as are free.
    pub total_held_bytes: usize,
    /// How long an inspected connection may be silent, nanoseconds.
    pub idle_timeout_ns: u64,
    /// What happens at a bound of held packets.
    pub at_limit: AtLimit,
    /// Bytes of memory for scan windows and decoders of all files that pass; a file beyond is one that
    /// cannot be inspected.
    pub inspect_bytes: usize,
    /// Bytes that a coded body (gzip, deflate) may decode to.
    pub decoded_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 65_536,
            half_open: 65_536,
            classify_packets: 8,
            classify_bytes: 2048,
            held_packets: 256,
            held_bytes: 8 << 20,
            total_held_packets: 8192,
            total_held_bytes: 64 << 20,
            idle_timeout_ns: 300_000_000_000,
            at_limit: AtLimit::Drop,
            inspect_bytes: 256 << 20,
            decoded_bytes: 256 << 20,
        }
    }
}

#[cfg(test)]
mod tests {
    use linkweir_record::{Place, Prefix};

    use super::*;
    use crate::policy::signature::Fit;

    fn rule(name: &str, number: u16, action: Action) -> Rule {
        Rule::any(name, number, action)
    }

    fn policy(rules: Vec<Rule>) -> Policy {
        Policy {
            marks: MarkLayout::default(),
            limits: Limits::default(),
            signatures: Vec::new(),
            rules: rules.into_iter().map(Arc::new).collect(),
            default: Arc::new(rule("default", 0, Action::Allow)),
            places: None,
            local_minute: None,
            quotas: None,
        }
    }

    /// A connection of this client, where the database has its ends.
    fn ends(client: &str, places: [Place; 2]) -> Ends {
        let server = ("198.51.100.1".parse().expect("an address"), 80);
        let client = (client.parse().expect("an address"), 40_000);
        Ends {
            places,
            ..Ends::opened_by(client, server, crate::inspect::Side::Client)
        }
    }

    #[test]
    fn a_country_decides_before_anything_is_known_of_the_application() {
        let mut out = rule("to nl", 1, Action::Drop);
        out.server_regions.countries = vec![*b"NL"];
        let mut system = rule("of a system", 2, Action::Reject);
        system.client_regions.asns = vec![64_500];
        let mut http = rule("web of de", 3, Action::Drop);
        http.applications = Applications::Of(vec![Label::Known(Application::Http)]);
        http.client_regions.countries = vec![*b"DE"];
        let policy = policy(vec![out, system, http]);
        let at = |client: (&str, u32), server: (&str, u32)| {
            let places = [client, server].map(|(country, asn)| Place::new(country, asn));
            ends("10.1.2.3", places)
        };
        let nowhere = ("", 0);
        for (ends, number) in [
            (at(nowhere, ("NL", 0)), Some(1)),
            (at(("DE", 64_500), ("NL", 0)), Some(1)),
            (at(("NL", 0), nowhere), Some(0)),
            (at(("", 64_500), nowhere), Some(2)),
            (at(nowhere, ("", 64_500)), Some(0)),
            (at(("DE", 0), ("FR", 0)), None),
            (at(nowhere, nowhere), Some(0)),
        ] {
            let decided = policy.rule_of_any(&ends).map(|rule| rule.number);
            assert_eq!(decided, number, "{ends:?}");
        }
        let german = at(("DE", 0), nowhere);
        let decides = |ends, application| {
            policy
                .rule(Label::Known(application), ends, &Shown::default())
                .number
        };
        assert_eq!(decides(&german, Application::Http), 3);
        assert_eq!(decides(&german, Application::Tls), 0);
        assert!(policy.is_strict(&german));
        let unknown = at(nowhere, nowhere);
        assert_eq!(decides(&unknown, Application::Http), 0);
        assert!(!policy.is_strict(&unknown));
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let client = ends("10.1.2.3", [Place::default(); 2]);
        let mut first = rule("kazaa of the lab", 1, Action::Drop);
        first.applications = Applications::Of(vec![Label::Known(Application::FastTrack)]);
        first.clients = Networks(vec!["10.1.0.0/16".parse().expect("a network")]);
        let second = rule("all kazaa", 2, Action::Reject);
        let policy = policy(vec![first, second]);
        let none = Shown::default();
        let name = |label, ends: &Ends| policy.rule(label, ends, &none).name.as_str();
        assert_eq!(
            name(Label::Known(Application::FastTrack), &client),
            "kazaa of the lab"
        );
        assert_eq!(name(Label::Unknown, &client), "all kazaa");
        // Nothing can be said of the lab before the application is known, of others at once.
        assert!(policy.rule_of_any(&client).is_none());
        let other = ends("192.0.2.1", [Place::default(); 2]);
        assert_eq!(policy.rule_of_any(&other).map(|rule| rule.number), Some(2));
    }

    #[test]
    fn networks_hold_what_begins_with_their_bits() {
        let network = |text: &str| text.parse::<Prefix>();
        let holds = |text: &str, address: &str| {
            let networks = Networks(vec![network(text).expect("a network")]);
            networks.holds(address.parse().expect("an address"))
        };
        assert!(holds("10.0.0.0/8", "10.255.0.1"));
        assert!(!holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("0.0.0.0/0", "203.0.113.9"));
        assert!(!holds("0.0.0.0/0", "2001:db8::1"));
        assert!(holds("2001:db8::/33", "2001:db8:7fff::1"));
        assert!(!holds("2001:db8::/33", "2001:db8:8000::1"));
        assert!(holds("192.0.2.7", "192.0.2.7"));
        for text in ["10.0.0.0/8", "2001:db8::/33", "192.0.2.7/32"] {
            assert_eq!(
                network(text).map(|network| network.to_string()),
                Ok(text.to_owned())
            );
        }
        for wrong in ["", "10.0.0.0/33", "::/129", "10.0.0", "10.0.0.0/-1", "a/8"] {
            assert!(network(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_pattern_fits_a_whole_name() {
        let fits = |pattern: &str, name: &str| NamePattern::new(pattern).matches(name.as_bytes());
        assert!(fits("*.exe", "Setup.EXE"));
        assert!(!fits("*.exe", "setup.exe.txt"));
        assert!(fits("*se*ret*.d?c", "my-secret-plan.doc"));
        assert!(fits("a*b*c", "aXbXbYc"));
        assert!(!fits("a*b*c", "aXcXb"));
        assert!(fits("*", ""));
        assert!(!fits("?", ""));
    }

    #[test]
    fn keywords_are_found_across_pieces_in_every_encoding() {
        let keywords = Keywords::new(vec!["secret plan".into(), "GEHEIM".into(), "größe".into()])
            .expect("a small automaton");
        let utf16: Vec<u8> = "die Größe"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        for (text, word) in [
            (&b"a SeCrEt PLAN b"[..], "secret plan"),
            (b"streng geheim", "GEHEIM"),
            ("DIE GRÖSSE".as_bytes(), "größe"),
            (&utf16, "größe"),
        ] {
            for cut in 0..text.len() {
                let (first, second) = text.split_at(cut);
                let mut state = keywords.start();
                let found = keywords
                    .find(&mut state, first)
                    .map(str::to_owned)
                    .or_else(|| keywords.find(&mut state, second).map(str::to_owned));
                assert_eq!(found.as_deref(), Some(word), "cut at {cut}");
            }
        }
        assert_eq!(
            Keywords::new(vec![String::new()]).err(),
            Some(KeywordsError::Empty)
        );
    }

    #[test]
    fn a_signature_needs_all_its_patterns() {
        let signature = Signature {
            name: "game".into(),
            client: Some("hex:00 01 ff".parse().expect("bytes")),
            server: Some("regex:^OK [0-9]+\\n".parse().expect("an expression")),
        };
        let fit = |client: &[u8], server: &[u8]| signature.fit(client, server, 16);
        assert_eq!(fit(b"", b""), Fit::Open);
        assert_eq!(fit(b"\x00\x01", b""), Fit::Open);
        assert_eq!(fit(b"\x00\x02", b""), Fit::No);
        assert_eq!(fit(b"\x00\x01\xffabc", b"OK 4"), Fit::Open);
        assert_eq!(fit(b"\x00\x01\xffabc", b"OK 42\n"), Fit::Yes);
        assert_eq!(fit(b"\x00\x01\xffabc", b"no such answer!!"), Fit::No);
        for wrong in [
            "", "abc", "hex:", "hex:0", "hex:0g", "regex:(", "regex:a*", "text:",
        ] {
            assert!(wrong.parse::<Pattern>().is_err(), "{wrong}");
        }
    }
}
