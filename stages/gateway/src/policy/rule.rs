//! One rule of the policy.

use std::net::IpAddr;

use linkweir_proto::application::Application;
use linkweir_record::Prefix;
use serde::Deserialize;

use super::conditions::{Conditions, Ports, Reply, Shown, Times, Why};
use super::{Keywords, Quota, Regions};
use crate::connection::Ends;

/// What is done with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// It passes; the kernel asks no more.
    Allow,
    /// Its packets are dropped.
    Drop,
    /// It is reset.
    Reject,
    /// It passes while it is inspected.
    Inspect,
    /// It is reset, and what its client next opens to the same address and port goes to a local proxy.
    Redirect,
}

impl Action {
    /// Whether nothing of the connection passes.
    #[must_use]
    pub const fn stops(self) -> bool {
        matches!(self, Self::Drop | Self::Reject | Self::Redirect)
    }
}

impl Action {
    /// The name in settings and records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Drop => "drop",
            Self::Reject => "reject",
            Self::Inspect => "inspect",
            Self::Redirect => "redirect",
        }
    }
}

/// What happens when something that should inspect the traffic cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fail {
    /// It passes.
    #[default]
    Open,
    /// It does not.
    Closed,
}

/// What happens to a connection in which something was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnMatch {
    /// It is reset at both ends.
    #[default]
    Reject,
    /// Its packets are dropped from then on.
    Drop,
    /// It goes on; only the event is written.
    Event,
}

/// How much is scanned at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanMode {
    /// Windows of so many bytes, each with the last `tail` bytes of the one before (paper sec. 3.5.2).
    Window {
        /// Bytes that are new in a window.
        bytes: usize,
        /// Bytes repeated from the window before: the longest signature less one, at least.
        tail: usize,
    },
    /// The whole file at its end; its last packet waits for the verdict.
    File,
}

/// What waits for a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    /// The packets of what is being scanned: a window, or the last one of a file.
    #[default]
    Packet,
    /// The whole file. The gateway acknowledges it in the name of its receiver.
    File,
}

/// How files are scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanSettings {
    /// How much at a time.
    pub mode: ScanMode,
    /// How long a packet waits for the scanner, nanoseconds.
    pub timeout_ns: u64,
    /// What waits for the verdict.
    pub hold: Hold,
}

/// What is inspected in a connection.
#[derive(Debug, Clone, Default)]
pub struct Inspect {
    /// Keywords in messages, heads, names and bodies.
    pub keywords: Option<Keywords>,
    /// Names of files that are not to pass.
    pub file_names: NamePatterns,
    /// Whether and how files are scanned.
    pub scan: Option<ScanSettings>,
    /// Whether messages and files are recorded as events.
    pub audit: bool,
    /// Whether files are kept.
    pub record: bool,
    /// Whether infected files are kept apart.
    pub quarantine: bool,
    /// What a keyword or a file name leads to. A virus never passes.
    pub on_match: OnMatch,
}

/// Which applications a rule is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applications {
    /// All, the unknown too.
    Any,
    /// These.
    Of(Vec<Label>),
}

/// A rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its name in events and in the status.
    pub name: String,
    /// Its number in marks.
    pub number: u16,
    /// Applications it is for.
    pub applications: Applications,
    /// Clients it is for.
    pub clients: Networks,
    /// Where its clients are.
    pub client_regions: Regions,
    /// Where its servers are.
    pub server_regions: Regions,
    /// Servers it is for.
    pub servers: Networks,
    /// Ports of servers it is for.
    pub server_ports: Ports,
    /// When it holds, by the time at which a connection begins.
    pub times: Times,
    /// What it asks of what the connection carries.
    pub conditions: Conditions,
    /// What is done.
    pub action: Action,
    /// What a client of HTTP gets, where nothing passes.
    pub reply: Option<Reply>,
    /// What a client may use: beyond, the rule is not for it.
    pub quota: Option<Quota>,
    /// What is inspected, where the action is to inspect.
    pub inspect: Inspect,
    /// What happens when something cannot be inspected.
    pub fail: Fail,
}

impl Rule {
    /// A rule that does `action` to everything.
    #[must_use]
    pub fn any(name: &str, number: u16, action: Action) -> Self {
        Self {
            name: name.to_owned(),
            number,
            applications: Applications::Any,
            clients: Networks::default(),
            client_regions: Regions::default(),
            server_regions: Regions::default(),
            servers: Networks::default(),
            server_ports: Ports::default(),
            times: Times::default(),
            conditions: Conditions::default(),
            action,
            reply: None,
            quota: None,
            inspect: Inspect::default(),
            fail: Fail::default(),
        }
    }

    /// Whether it may be for a connection, as far as its addresses and the time show.
    pub(super) fn is_for(&self, ends: &Ends) -> bool {
        let [client, server] = ends.places;
        self.clients.holds(ends.client.0)
            && self.servers.holds(ends.server.0)
            && self.server_ports.hold(ends.server.1)
            && self.times.hold(ends.minute)
            && self
                .quota
                .is_none_or(|quota| ends.used_up & quota.bit() == 0)
            && self.client_regions.holds(client)
            && self.server_regions.holds(server)
    }

    /// Whether it is for a connection, as far as that shows before its first request.
    pub(super) fn matches(&self, label: Label, ends: &Ends, shown: &Shown) -> bool {
        self.is_for_application(label)
            && self.is_for(ends)
            && self.match_shown(label, shown, &mut Why::unasked())
    }

    /// Whether it is for an application, whatever it asks besides.
    pub(super) fn is_for_application(&self, label: Label) -> bool {
        match &self.applications {
            Applications::Any => true,
            Applications::Of(labels) => labels.iter().any(|one| label.includes(*one)),
        }
    }

    /// Whether datagrams may turn out to be what it is for, as far as its applications and conditions say.
    pub(super) fn may_be_for_datagrams(&self) -> bool {
        let asks = !self.conditions.is_any();
        // Of what is sent in datagrams only QUIC shows what conditions ask for; requests are never in clear.
        if asks && self.conditions.tls.is_any() {
            return false;
        }
        let may = |label: &Label| match label {
            Label::Known(application) if asks => Application::Quic.includes(*application),
            Label::Known(application) => application.is_over_udp(),
            Label::Own(_) => !asks,
            // What goes on behind something known says nothing of itself.
            Label::Unknown => false,
        };
        match &self.applications {
            Applications::Any => true,
            Applications::Of(labels) => labels.iter().any(may),
        }
    }

    fn match_shown(&self, label: Label, shown: &Shown, why: &mut Why<'_>) -> bool {
        if self.conditions.is_any() {
            return true;
        }
        if label.is_http() {
            self.conditions.has_http()
        } else {
            label.is_tls() && !self.conditions.tls.is_any() && self.conditions.match_tls(shown, why)
        }
    }

    /// Whether requests decide if it is for a connection of this application.
    pub(crate) fn asks_requests(&self, label: Label) -> bool {
        label.is_http() && self.conditions.has_http()
    }

    /// Whether it needs no look at a connection that its addresses make its own.
    pub(super) fn is_for_any(&self) -> bool {
        self.applications == Applications::Any
            && self.conditions.is_any()
            && self.reply.is_none()
            && !self.counts_bytes()
            && self.action != Action::Inspect
    }

    /// Whether the bytes of its connections are counted, so that they all come to user space.
    pub(crate) fn counts_bytes(&self) -> bool {
        self.quota.is_some_and(|quota| quota.bytes.is_some())
    }

    /// Says which of its conditions a connection matched, as far as that shows before its first request.
    pub(crate) fn explain(
        &self,
        name: &str,
        ends: &Ends,
        (label, shown): (Label, &Shown),
        why: &mut Why<'_>,
    ) {
        if self.applications != Applications::Any {
            why.add("application", name.as_bytes(), b"");
        }
        for (key, networks, address) in [
            ("clients", &self.clients, ends.client.0),
            ("servers", &self.servers, ends.server.0),
        ] {
            if let Some(network) = networks.find(address) {
                let (address, network) = (address.to_canonical().to_string(), network.to_string());
                why.add(key, address.as_bytes(), network.as_bytes());
            }
        }
        if !self.server_ports.0.is_empty() {
            why.add("server-ports", ends.server.1.to_string().as_bytes(), b"");
        }
        if !self.times.0.is_empty() {
            const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
            let (day, minute) = (ends.minute / 1440, ends.minute % 1440);
            let day = DAYS.get(usize::from(day)).copied().unwrap_or_default();
            let time = format!("{day} {:02}:{:02}", minute / 60, minute % 60);
            why.add("times", time.as_bytes(), b"");
        }
        let [client, server] = ends.places;
        for (end, regions, place) in [
            ("client", &self.client_regions, client),
            ("server", &self.server_regions, server),
        ] {
            if let Some(code) = place
                .country_code()
                .filter(|_| !regions.countries.is_empty())
            {
                why.add(&format!("{end}-country"), &code, b"");
            }
            if let Some(asn) = place.as_number().filter(|_| !regions.asns.is_empty()) {
                why.add(&format!("{end}-asn"), asn.to_string().as_bytes(), b"");
            }
        }
        if self.quota.is_some() {
            why.add("quota", b"left", b"");
        }
        self.match_shown(label, shown, why);
    }
}

// What a connection carries, by the signatures.

/// What was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Label {
    /// An application that the program knows.
    Known(Application),
    /// A signature of the policy, by its place in it.
    Own(u16),
    /// Nothing.
    Unknown,
}

impl Label {
    /// Whether a rule for `other` is for this: a connection of several applications (`stun,dtls`) is each of
    /// them.
    #[must_use]
    pub fn includes(self, other: Self) -> bool {
        match (self, other) {
            (Self::Known(one), Self::Known(other)) => one.includes(other),
            _ => self == other,
        }
    }

    /// Whether it is HTTP, whose requests can be read.
    #[must_use]
    pub const fn is_http(self) -> bool {
        matches!(
            self,
            Self::Known(
                Application::Http
                    | Application::Http2
                    | Application::Grpc
                    | Application::FastTrack
                    | Application::Gnutella
            )
        )
    }

    /// Whether its handshake is that of TLS.
    #[must_use]
    pub const fn is_tls(self) -> bool {
        matches!(self, Self::Known(Application::Tls | Application::Quic))
    }

    /// Whether files in its connections are followed, so that they can be scanned and recorded.
    #[must_use]
    pub const fn has_files(self) -> bool {
        self.is_http() || matches!(self, Self::Known(Application::MsnFtp))
    }

    /// Whether names of files are read in its connections.
    #[must_use]
    pub const fn has_file_names(self) -> bool {
        self.has_files()
            || matches!(
                self,
                Self::Known(Application::Msn | Application::EDonkey | Application::BitTorrent)
            )
    }
}

// Patterns of names: `*` stands for any bytes, `?` for one; letters match in both cases.

/// A pattern of a file or server name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern(Vec<u8>);

impl NamePattern {
    /// A pattern from its source.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.to_ascii_lowercase().into_bytes())
    }

    /// The pattern as text, in lower case.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether it matches all of `name`. Cost: at most the product of the two lengths.
    #[must_use]
    pub fn matches(&self, name: &[u8]) -> bool {
        let mut pattern = self.0.as_slice();
        let mut rest = name;
        // Where to go on when a guess about the last `*` was wrong.
        let mut retry: Option<(&[u8], &[u8])> = None;
        loop {
            match (pattern.split_first(), rest.split_first()) {
                (Some((b'*', after)), _) => {
                    retry = Some((after, rest));
                    pattern = after;
                    continue;
                }
                (Some((want, after)), Some((have, tail)))
                    if *want == b'?' || *want == have.to_ascii_lowercase() =>
                {
                    pattern = after;
                    rest = tail;
                    continue;
                }
                (None, None) => return true,
                _ => {}
            }
            let Some((after, [_, tail @ ..])) = retry else {
                return false;
            };
            retry = Some((after, tail));
            pattern = after;
            rest = tail;
        }
    }
}

/// Several patterns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamePatterns(pub Vec<NamePattern>);

impl NamePatterns {
    /// The first pattern that matches.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<&NamePattern> {
        self.0.iter().find(|pattern| pattern.matches(name))
    }
}

// Sets of networks.

/// A set of networks; empty means every address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(pub Vec<Prefix>);

impl Networks {
    /// Whether an address is in one of them.
    #[must_use]
    pub fn holds(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.is_empty() || self.0.iter().any(|network| network.contains(&address))
    }

    /// The network of an address, if any was named for it.
    #[must_use]
    pub fn find(&self, address: IpAddr) -> Option<&Prefix> {
        let address = address.to_canonical();
        self.0.iter().find(|network| network.contains(&address))
    }

    /// Whether each address of another set is in this one, as far as single networks show.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let is_within = |inner: &Prefix| self.0.iter().any(|outer| outer.contains(&inner.0));
        self.0.is_empty() || !other.0.is_empty() && other.0.iter().all(is_within)
    }
}
