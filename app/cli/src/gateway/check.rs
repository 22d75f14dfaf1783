//! `gateway check`: is the policy right, what does it say, and what would it do to a capture?

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;

use anyhow::Context;
use linkweir_gateway::policy::{
    Action, Applications, Fail, Hold, Label, Pattern, Regions, Reply, Rule, ScanMode,
};

use linkweir_record::human::{counted, scaled};
use linkweir_scan::Protocol;

use super::args::CheckArgs;
use super::config::GatewayConfig;
use super::try_out;
use crate::exit::Exit;
use crate::files::print;
use crate::outputs::restrict_reader;
use crate::table::lines;

/// The policy of the package, with every key.
const EXAMPLE: &str = include_str!("../../../../packaging/gateway.toml");

/// Runs the command.
pub(super) fn run(args: &CheckArgs) -> anyhow::Result<Exit> {
    if args.example {
        print(EXAMPLE)?;
        return Ok(Exit::Done);
    }
    restrict_reader(&args.write)?;
    let config = GatewayConfig::read(&args.file.config, &BTreeMap::new())?;
    if !args.read.is_empty() {
        return try_out::run(args, &config);
    }
    let mut out = std::io::stdout().lock();
    for line in describe(&config) {
        writeln!(out, "{line}").context("standard output")?;
    }
    Ok(Exit::Done)
}

/// The policy as a table.
#[expect(clippy::too_many_lines, reason = "a row, column by column")]
fn describe(config: &GatewayConfig) -> Vec<String> {
    let policy = &config.policy;
    let rows: Vec<Vec<String>> = policy
        .rules
        .iter()
        .chain([&policy.default])
        .map(|rule| {
            let applications = match &rule.applications {
                Applications::Any => "any".to_owned(),
                Applications::Of(labels) => {
                    let names: Vec<&str> = labels.iter().map(|label| policy.name(*label)).collect();
                    names.join(" ")
                }
            };
            let rate = config.rates.iter().find(|one| one.rule == rule.number);
            let rate = rate.map(|rate| {
                let rate = scaled(rate.rate_bytes as f64, "B/s");
                format!("{rate} a client and direction")
            });
            let conditions = [asks_for(rule)].into_iter().filter(|said| !said.is_empty());
            let conditions: Vec<String> = conditions.chain(rate).collect();
            let conditions = conditions.join("; ");
            let applications = match conditions.as_str() {
                "" => applications,
                some => format!("{applications} ({some})"),
            };
            let networks = match rule.clients.0.len() {
                0 => "any".to_owned(),
                1 | 2 => {
                    let clients = rule.clients.0.iter();
                    let clients: Vec<_> = clients.map(ToString::to_string).collect();
                    clients.join(" ")
                }
                many => format!("{many} networks"),
            };
            let clients = ends_of(rule, networks);
            let shape = config
                .shapes
                .get(&rule.number)
                .map_or_else(String::new, |rate| scaled(*rate as f64, "bit/s"));
            vec![
                rule.name.clone(),
                applications,
                clients,
                match config.redirects.iter().find(|one| one.rule == rule.number) {
                    Some(redirect) => format!("redirect :{}", redirect.port),
                    None => match &rule.reply {
                        Some(Reply::Page(_)) => format!("{} with page", rule.action.as_str()),
                        Some(Reply::Location(url)) => format!("{} {url}", rule.action.as_str()),
                        None => rule.action.as_str().to_owned(),
                    },
                },
                shape,
                looks_at(rule, policy.limits.held_bytes),
                // Without its proxy, what a rule redirects is rejected.
                if rule.fail == Fail::Closed
                    || rule.action == Action::Redirect && rule.reply.is_none()
                {
                    "closed"
                } else {
                    "open"
                }
                .to_owned(),
            ]
        })
        .collect();
    let head = [
        "rule",
        "applications",
        "clients",
        "action",
        "shape",
        "looks at",
        "fail",
    ];
    let settings = &config.settings;
    let interfaces = match settings.interfaces.as_slice() {
        [] => "all".to_owned(),
        some => some.join(" "),
    };
    let queues = match settings.queues().into_inner() {
        (first, last) if first == last => format!("queue {first}"),
        (first, last) => format!("queues {first} to {last}"),
    };
    let mut all = vec![format!(
        "interfaces {interfaces}; {queues}; without the gateway traffic {}{}",
        if settings.is_fail_open() {
            "passes"
        } else {
            "stops"
        },
        config
            .scanner
            .as_ref()
            .map_or_else(String::new, |one| match &one.protocol {
                Protocol::Clamd => format!("; clamd at {}", one.address),
                Protocol::Icap { service } => format!("; icap://{}/{service}", one.address),
            }),
    )];
    all.extend(lines(&head, &rows));
    all.extend(unreachable(config));
    all.extend(passes_undecided(config));
    all.extend(without_files(config));
    all.push(format!(
        "policy OK: {}, {} ({})",
        counted(policy.rules.len() as u64, "rule"),
        counted(policy.signatures.len() as u64, "signature"),
        config.path.display(),
    ));
    all
}

/// Clients of a rule, and where they and their servers are.
fn ends_of(rule: &Rule, networks: String) -> String {
    let mut said = Vec::new();
    if !rule.clients.0.is_empty() || (rule.client_regions.is_any() && rule.server_regions.is_any())
    {
        said.push(networks);
    }
    said.extend(region("in", &rule.client_regions));
    said.extend(region("to", &rule.server_regions));
    said.join(" ")
}

/// A region in a few words, where a rule names one: `in NL DE AS64500`.
fn region(word: &str, regions: &Regions) -> Option<String> {
    let few = |names: Vec<String>, what: &str| match names.len() {
        0 => None,
        1..=6 => Some(names.join(" ")),
        many => Some(format!("{many} {what}")),
    };
    let countries = regions.countries.iter();
    let countries = countries.map(|code| String::from_utf8_lossy(code).into_owned());
    let asns = regions.asns.iter().map(|asn| format!("AS{asn}"));
    let parts = [
        few(countries.collect(), "countries"),
        few(asns.collect(), "AS numbers"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("{word} {}", parts.join(" of ")))
}

/// What a rule asks of what a connection carries, of its server and of the time.
fn asks_for(rule: &Rule) -> String {
    let (tls, request) = (&rule.conditions.tls, &rule.conditions.request);
    let response = &rule.conditions.response;
    let patterns = [
        ("sni", &tls.server_names),
        ("ja4", &tls.ja4),
        ("alpn", &tls.alpn),
        ("certificate", &tls.certificates),
        ("hosts", &request.hosts),
        ("urls", &request.urls),
        ("methods", &request.methods),
        ("user-agents", &request.user_agents),
        ("mime-types", &response.mime_types),
    ];
    let mut said = Vec::new();
    for (key, patterns) in patterns {
        let names = patterns.0.iter();
        let names: Vec<_> = names
            .map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned())
            .collect();
        match names.as_slice() {
            [] => {}
            few @ ([_] | [_, _] | [_, _, _]) => said.push(format!("{key} {}", few.join(" "))),
            many => said.push(format!("{} {key}", many.len())),
        }
    }
    said.extend(tls.has_ech.map(|ech| format!("ech {ech}")));
    said.extend(response.min_body.map(|bytes| format!("min-body {bytes}")));
    if !rule.servers.0.is_empty() {
        let servers: Vec<_> = rule.servers.0.iter().map(ToString::to_string).collect();
        said.push(format!("servers {}", servers.join(" ")));
    }
    if !rule.server_ports.0.is_empty() {
        let ports = rule
            .server_ports
            .0
            .iter()
            .map(|(first, last)| match first == last {
                true => first.to_string(),
                false => format!("{first}-{last}"),
            });
        said.push(format!("port {}", ports.collect::<Vec<_>>().join(" ")));
    }
    if !rule.times.0.is_empty() {
        said.push("at times".to_owned());
    }
    if let Some(quota) = &rule.quota {
        said.extend(quota.bytes.map(|(bytes, period)| {
            let hours = period / 3_600_000_000_000;
            format!("{bytes} bytes a client in {}", counted(hours, "hour"))
        }));
        let rate = quota.connections;
        said.extend(rate.map(|rate| format!("{rate} new connections a client and second")));
    }
    said.join("; ")
}

fn looks_at(rule: &Rule, held_bytes: usize) -> String {
    let inspect = &rule.inspect;
    let mut parts = Vec::new();
    if let Some(keywords) = &inspect.keywords {
        parts.push(format!("{} keywords", keywords.len()));
    }
    if !inspect.file_names.0.is_empty() {
        parts.push(format!("{} names", inspect.file_names.0.len()));
    }
    if let Some(scan) = inspect.scan {
        let what = match scan.mode {
            ScanMode::Window { bytes, .. } => format!("{} KiB windows", bytes.div_ceil(1024)),
            ScanMode::File => "whole files".to_owned(),
        };
        let held = match (scan.hold, scan.mode) {
            (Hold::Packet, ScanMode::Window { .. }) => ", last packet of each held".to_owned(),
            (Hold::Packet, ScanMode::File) => ", only the last packet held".to_owned(),
            (Hold::File, _) => format!(
                ", held until the verdict up to {} KiB",
                held_bytes.div_ceil(1024)
            ),
        };
        parts.push(format!("viruses ({what}{held})"));
    }
    for (is_on, word) in [
        (inspect.audit, "audit"),
        (inspect.record, "record"),
        (inspect.quarantine, "quarantine"),
    ] {
        if is_on {
            parts.push(word.to_owned());
        }
    }
    parts.join(", ")
}

/// Rules that decide only after packets have passed.
fn passes_undecided(config: &GatewayConfig) -> Vec<String> {
    let policy = &config.policy;
    let most = format!(
        "{} packets or {} bytes of a direction may pass before",
        policy.limits.classify_packets, policy.limits.classify_bytes
    );
    let mut said = Vec::new();
    for rule in policy
        .rules
        .iter()
        .filter(|rule| rule.action == Action::Redirect && rule.reply.is_none())
    {
        said.push(format!(
            "note: rule `{}` rejects the first connection of a client to an address and port, and UDP; the next TCP connections there go to the proxy",
            rule.name
        ));
    }
    for signature in &policy.signatures {
        let patterns = [&signature.client, &signature.server];
        let mut patterns = patterns.into_iter().flatten();
        if patterns.any(|pattern| matches!(pattern, Pattern::Regex(_))) {
            said.push(format!(
                "note: signature `{}` is a regular expression, which further bytes may fit: {most} a connection that is allowed otherwise, or unknown, is decided; one that another rule inspects, drops or rejects is decided at once",
                signature.name
            ));
        }
    }
    let strict = policy.rules.iter().chain([&policy.default]);
    for rule in strict.filter(|rule| rule.action != Action::Allow) {
        let is_for_unknown = match &rule.applications {
            Applications::Any => Arc::ptr_eq(rule, &policy.default),
            Applications::Of(labels) => labels.contains(&Label::Unknown),
        };
        if is_for_unknown {
            let keywords = match rule.inspect.keywords {
                Some(_) => "; a keyword in them is reported, and the rest is blocked",
                None => "",
            };
            said.push(format!(
                "note: rule `{}` is for `unknown`: {most} a connection is known to be that{keywords}",
                rule.name
            ));
        }
    }
    said
}

/// Rules that look for files in applications whose files are not followed.
fn without_files(config: &GatewayConfig) -> Vec<String> {
    let policy = &config.policy;
    let mut said = Vec::new();
    for rule in &policy.rules {
        let Applications::Of(labels) = &rule.applications else {
            continue;
        };
        let without = |has: fn(Label) -> bool| {
            let names: Vec<&str> = (labels.iter().filter(|label| !has(**label)))
                .map(|label| policy.name(*label))
                .collect();
            names.join(", ")
        };
        let inspect = &rule.inspect;
        let (names, files) = (without(Label::has_file_names), without(Label::has_files));
        if !inspect.file_names.0.is_empty() && !names.is_empty() {
            said.push(format!(
                "warning: rule `{}`: `file-names` finds nothing in {names}: no names of files are read there",
                rule.name
            ));
        }
        if (inspect.scan.is_some() || inspect.record) && !files.is_empty() {
            said.push(format!(
                "warning: rule `{}`: nothing of {files} is scanned or recorded: files are not followed there",
                rule.name
            ));
        }
    }
    said
}

/// Rules that never decide, because an earlier one fits everything that they fit.
fn unreachable(config: &GatewayConfig) -> Vec<String> {
    let covers = |earlier: &Rule, later: &Rule| {
        let all_applications = match (&earlier.applications, &later.applications) {
            (Applications::Any, _) => true,
            (Applications::Of(_), Applications::Any) => false,
            (Applications::Of(first), Applications::Of(second)) => second
                .iter()
                .all(|label| first.iter().any(|one| label.includes(*one))),
        };
        all_applications
            && earlier.clients.covers(&later.clients)
            && earlier.client_regions.covers(&later.client_regions)
            && earlier.server_regions.covers(&later.server_regions)
            && earlier.servers.covers(&later.servers)
            && earlier.server_ports.covers(&later.server_ports)
            && earlier.times.0.is_empty()
            && earlier.quota.is_none()
            && earlier.conditions.is_any()
    };
    let rules = &config.policy.rules;
    let mut said = Vec::new();
    for (at, later) in rules.iter().enumerate() {
        if let Some(earlier) = rules.iter().take(at).find(|earlier| covers(earlier, later)) {
            said.push(format!(
                "warning: rule `{}` is unreachable: shadowed by `{}`",
                later.name, earlier.name
            ));
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_testkit::mmdb;

    /// A policy as if it stood in a file.
    fn read(text: &str) -> GatewayConfig {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, kind, value) in [
            ("country.mmdb", "GeoLite2-Country", mmdb::country("AQ")),
            ("asn.mmdb", "GeoLite2-ASN", mmdb::asn(64_500)),
        ] {
            let bytes = mmdb::database(kind, &[("192.0.2.0/24", value)]);
            std::fs::write(directory.path().join(name), bytes).expect("written");
        }
        let path = directory.path().join("gateway.toml");
        std::fs::write(&path, text).expect("written");
        GatewayConfig::read(&path, &BTreeMap::new()).expect("a policy")
    }

    #[test]
    fn a_rule_that_another_one_shadows_is_named() {
        let rule = |name: &str, clients: &str, action: &str| {
            let clients = match clients {
                "" => String::new(),
                some => format!("clients = [{some}]\n"),
            };
            format!(
                "[[rule]]\nname = \"{name}\"\napplication = \"http\"\n{clients}action = \"{action}\"\n"
            )
        };
        let shadowed = |first: &str, second: &str| {
            let text = rule("one", first, "allow") + &rule("two", second, "drop");
            unreachable(&read(&text))
        };
        for (first, second) in [
            ("", ""),
            ("", "\"10.0.0.0/8\""),
            ("\"10.0.0.0/8\"", "\"10.1.0.0/16\", \"10.2.3.4\""),
        ] {
            let said = shadowed(first, second);
            assert_eq!(
                said,
                ["warning: rule `two` is unreachable: shadowed by `one`"]
            );
        }
        for (first, second) in [
            ("\"10.0.0.0/8\"", ""),
            ("\"10.1.0.0/16\"", "\"10.0.0.0/8\""),
            ("\"10.0.0.0/8\"", "\"10.1.0.0/16\", \"2001:db8::/32\""),
        ] {
            assert!(shadowed(first, second).is_empty(), "{first} {second}");
        }
    }

    #[test]
    fn a_rule_is_shown_with_its_countries_and_shadows_no_other_country() {
        let geoip = "[gateway]\ngeoip = [\"country.mmdb\", \"asn.mmdb\"]\n";
        let rule = |name: &str, keys: &str| {
            format!("[[rule]]\nname = \"{name}\"\naction = \"drop\"\n{keys}\n")
        };
        let policy = |first: &str, second: &str| {
            read(&(geoip.to_owned() + &rule("one", first) + &rule("two", second)))
        };
        for (first, second, is_shadowed) in [
            ("", "client-country = \"AQ\"", true),
            ("client-country = \"AQ\"", "", false),
            ("client-country = \"AQ\"", "client-country = \"NL\"", false),
            ("client-country = \"AQ\"", "server-country = \"AQ\"", false),
            (
                "client-country = [\"AQ\", \"NL\"]",
                "client-country = \"NL\"",
                true,
            ),
            ("server-asn = [1, 2]", "server-asn = 2", true),
            ("server-asn = 1", "server-asn = [1, 2]", false),
        ] {
            let said = unreachable(&policy(first, second));
            assert_eq!(!said.is_empty(), is_shadowed, "{first} {second}");
        }
        let keys = "clients = \"10.0.0.0/8\"\nclient-country = [\"AQ\", \"nl\"]";
        let shown = describe(&policy(keys, "server-country = \"DE\"\nserver-asn = 64500"));
        let has = |part: &str| shown.iter().any(|line| line.contains(part));
        assert!(has("10.0.0.0/8 in AQ NL"), "{shown:#?}");
        assert!(has("to DE of AS64500"), "{shown:#?}");
    }

    #[test]
    fn the_example_is_a_policy_with_its_defaults_too() {
        // What is commented out begins `# key = ` or `# [table]`.
        let all = EXAMPLE.lines().map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.starts_with('[') => rest,
            Some(rest)
                if rest
                    .split_once(" = ")
                    .is_some_and(|(key, _)| !key.contains(' ')) =>
            {
                rest
            }
            _ => line,
        });
        let all: Vec<&str> = all.collect();
        for text in [EXAMPLE.to_owned(), all.join("\n")] {
            let config = read(&text);
            let is_whole = text != EXAMPLE;
            assert_eq!(config.policy.rules.len(), 4 + 7 * usize::from(is_whole));
            assert_eq!(config.policy.signatures.len(), usize::from(is_whole));
            let named = |rule: &&Arc<Rule>| rule.name == "downloads";
            let downloads = config.policy.rules.iter().find(named).expect("the rule");
            assert_eq!(downloads.inspect.keywords.is_some(), is_whole);
        }
    }
}
