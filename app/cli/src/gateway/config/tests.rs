use std::collections::BTreeMap;
use std::path::Path;

use linkweir_gateway::policy::{Action, Applications, Fail, Hold, Label, OnMatch, ScanMode};
use linkweir_proto::application::Application;

use super::values::Place;
use super::{GatewayConfig, parse};

fn read(text: &str) -> Result<GatewayConfig, String> {
    let place = Place {
        path: Path::new("gateway.toml"),
        text,
    };
    parse(place, &BTreeMap::new()).map_err(|wrong| wrong.to_string())
}

const FULL: &str = r#"
[gateway]
queues = 4
first-queue = 10
interfaces = ["lan0", "wan0"]
fail = "closed"
default = "drop"
mark-mask = 0xfff

[limits]
held-bytes = "2MiB"
idle-timeout = "3s"
at-limit = "pass"

[scanner.clamd]
address = "/run/clamd.ctl"
window = "20KiB"
tail = "100B"

[record]
directory = "files"
quarantine = "/var/quarantine"

[[signature]]
name = "game"
client = "hex:01 02"

[[rule]]
name = "slow"
application = ["bittorrent", "game"]
clients = "10.0.0.0/8"
action = "allow"
shape = "1.5mbit"

[[rule]]
name = "look"
application = "http"
action = "inspect"
keywords = ["secret"]
scan = "clamd"
quarantine = true
on-match = "event"
fail = "closed"
"#;

#[test]
fn a_policy_says_what_it_says() {
    let config = read(FULL).expect("a policy");
    assert_eq!(config.settings.queues(), 10..=13);
    assert!(!config.settings.is_fail_open());
    assert_eq!(config.policy.marks.mask(), 0xfff);
    assert_eq!(config.policy.default.action, Action::Drop);
    assert_eq!(config.policy.default.fail, Fail::Closed);
    assert_eq!(config.policy.limits.held_bytes, 2 << 20);
    assert_eq!(config.policy.limits.idle_timeout_ns, 3_000_000_000);
    let [slow, look] = config.policy.rules.as_slice() else {
        panic!("two rules");
    };
    assert_eq!(
        slow.applications,
        Applications::Of(vec![Label::Known(Application::BitTorrent), Label::Own(0)])
    );
    assert_eq!(config.shapes.get(&slow.number), Some(&1_500_000));
    assert_eq!(
        (look.fail, look.inspect.on_match),
        (Fail::Closed, OnMatch::Event)
    );
    assert_eq!(
        look.inspect.scan.map(|scan| scan.mode),
        Some(ScanMode::Window {
            bytes: 20 * 1024,
            tail: 100
        })
    );
    assert!(config.keeps_files());
    let older = FULL.replace("directory = \"files\"", "folder = \"files\"");
    let older = read(&older).expect("the name that the key had before");
    assert_eq!(older.record.directory, config.record.directory);
    let plan = config.plan();
    assert_eq!(plan.check(), Ok(()));
    assert_eq!(plan.rules.len(), 2);
}

#[test]
fn a_client_has_a_rate_and_a_burst() {
    let rates = |keys: &str| {
        let keys = format!("shape = \"1.5mbit\"\n{keys}\n");
        let config = read(&FULL.replace("shape = \"1.5mbit\"\n", &keys))?;
        let number = config.policy.rules.first().map(|rule| rule.number);
        let plan = config.plan();
        assert_eq!(plan.rates, config.rates);
        plan.check().map_err(|error| error.to_string())?;
        assert!(config.rates.iter().all(|rate| Some(rate.rule) == number));
        let rates = config.rates.iter();
        Ok::<_, String>(
            rates
                .map(|rate| (rate.rate_bytes, rate.burst_bytes))
                .collect::<Vec<_>>(),
        )
    };
    for (keys, expected) in [
        ("", vec![]),
        ("client-rate = \"1MB/s\"", vec![(1_000_000, 200_000)]),
        ("client-rate = \"20kB/s\"", vec![(20_000, 131_072)]),
        (
            "client-rate = \"2MiB/s\"\nclient-burst = \"1KiB\"",
            vec![(2 << 20, 1024)],
        ),
    ] {
        assert_eq!(rates(keys).as_ref(), Ok(&expected), "{keys}");
    }
    for (keys, part) in [
        ("client-rate = \"1MB\"", "write \"500kB/s\""),
        ("client-rate = \"0/s\"", "out of range"),
        ("client-rate = \"999/s\"", "not a valid rate"),
        ("client-burst = \"1MB\"", "needs `client-rate`"),
        (
            "client-rate = \"1kB/s\"\nclient-burst = \"1MB\"",
            "a burst of at most 120 seconds",
        ),
    ] {
        let wrong = rates(keys).expect_err(keys);
        assert!(wrong.contains(part), "{keys}: {wrong}");
    }
    let stops = FULL.replace(
        "action = \"inspect\"",
        "action = \"drop\"\nclient-rate = \"1MB/s\"",
    );
    let wrong = read(&stops).expect_err("nothing passes");
    assert!(wrong.contains("there is no rate to limit"), "{wrong}");
}

#[test]
fn a_scan_may_hold_the_file() {
    let scan = |words: &str| {
        let text = FULL.replace("scan = \"clamd\"", &format!("scan = {words}"));
        let rule = read(&text)?.policy.rules.last().cloned();
        Ok::<_, String>(
            rule.and_then(|rule| rule.inspect.scan)
                .map(|scan| scan.hold),
        )
    };
    for (words, hold) in [
        ("\"clamd\"", Hold::Packet),
        ("{}", Hold::Packet),
        ("{ hold = \"file\" }", Hold::File),
        ("{ with = \"clamd\", hold = \"packet\" }", Hold::Packet),
    ] {
        assert_eq!(scan(words), Ok(Some(hold)), "{words}");
    }
    for (words, wrong) in [
        ("{ hold = \"all\" }", "expected `packet` or `file`"),
        ("{ with = \"other\" }", "expected `clamd` or `icap`"),
        (
            "\"icap\"",
            "the scanner is [scanner.clamd]: write scan = \"clamd\"",
        ),
        ("{ holds = \"file\" }", "unknown key `holds`"),
        ("7", "a string in quotes"),
    ] {
        let said = scan(words).expect_err(words);
        assert!(said.contains(wrong), "{words}: {said}");
    }
}

#[test]
fn numbers_stay_with_names() {
    let known = BTreeMap::from([("look".to_owned(), 7)]);
    let place = Place {
        path: Path::new("gateway.toml"),
        text: FULL,
    };
    let config = parse(place, &known).expect("a policy");
    let number = |name: &str| config.plan().rules.get(name).copied();
    assert_eq!(number("look"), Some(7));
    assert_ne!(number("slow"), Some(7));
}

#[test]
fn a_fault_is_told_with_its_line_and_column() {
    let rule = |line: &str| format!("[[rule]]\nname = \"a\"\naction = \"allow\"\n{line}\n");
    for (text, expected) in [
        (
            "[gateway]\nqueue = 1\n".to_owned(),
            "gateway.toml:2:1: unknown key `queue`, expected one of `first-queue`, `queues`",
        ),
        (
            "[gateway]\nqueues = 0\n".to_owned(),
            "gateway.toml:2:10: `queues` is a whole number from 1 to 64",
        ),
        (
            "[gateway]\nfail = \"maybe\"\n".to_owned(),
            "gateway.toml:2:8: unknown value `maybe`, expected `open` or `closed`",
        ),
        ("[gateway\n".to_owned(), "gateway.toml:1:9:"),
        (
            "[gateway]\nmark-mask = 0x7\n".to_owned(),
            "gateway.toml:2:13: a mark mask has exactly 12 bits",
        ),
        (
            "[gateway]\nfirst-queue = 65535\nqueues = 2\n".to_owned(),
            "gateway.toml:3:10: the last queue would be 65536",
        ),
        (
            "[gate]\n".to_owned(),
            "gateway.toml:1:2: unknown key `gate`",
        ),
        (
            rule("application = \"qqq\""),
            "gateway.toml:4:15: unknown application `qqq`; valid names: * unknown",
        ),
        (
            rule("application = [\"http\", \"bitorent\"]"),
            "unknown application `bitorent`; did you mean `bittorrent`? Valid names: * unknown",
        ),
        (
            rule("application = \"SMPT\""),
            "unknown application `SMPT`; did you mean `smtp`?",
        ),
        (
            rule("clients = [\"10.0.0.0/8\", \"10/8\"]"),
            "gateway.toml:4:26: \"10/8\" is not a valid network",
        ),
        (
            rule("shape = \"10mb\""),
            "gateway.toml:4:9: `10mb` is not a valid rate",
        ),
        (rule("keywords = [\"x\"]"), "need action = \"inspect\""),
        (
            rule("[[rule]]\nname = \"a\"\naction = \"drop\""),
            "gateway.toml:5:8: the name `a` is in use",
        ),
        (rule("clients = []"), "gateway.toml:4:11: the list is empty"),
        (
            rule("application = [\"tls\", \"ssh\"]\nsni = [\"*.test\"]"),
            "`sni` is of tls and quic",
        ),
        (
            "[rule]\nname = \"a\"\n[rule]\nname = \"b\"\n".to_owned(),
            "rules are [[rule]]",
        ),
        (
            "[rule]\nname = \"a\"\naction = \"drop\"\n".to_owned(),
            "expected a list; rules are [[rule]]",
        ),
        (
            "[[rule]]\nname = \"a\"\n".to_owned(),
            "gateway.toml:1:1: missing key `action`",
        ),
        (
            "[[rule]]\nname = \"a\"\naction = \"inspect\"\n".to_owned(),
            "needs something to look at",
        ),
        (
            "[[rule]]\nname = \"a\"\naction = \"inspect\"\nscan = \"clamd\"\n".to_owned(),
            "gateway.toml:4:8: no scanner",
        ),
        (
            "[[rule]]\nname = \"a\"\naction = \"drop\"\nshape = \"1mbit\"\n".to_owned(),
            "nothing to shape",
        ),
        (
            "[[signature]]\nname = \"http\"\nclient = \"text:x\"\n".to_owned(),
            "gateway.toml:2:8: the name `http` is in use",
        ),
        (
            "[[signature]]\nname = \"x\"\nclient = \"regex:(\"\n".to_owned(),
            "gateway.toml:3:10: regex parse error",
        ),
    ] {
        says(&text, expected);
    }
}

#[test]
fn an_icap_service_scans_in_place_of_clamd() {
    let icap = FULL
        .replace(
            "[scanner.clamd]",
            "[scanner.icap]\nservice = \"virus_scan\"",
        )
        .replace("/run/clamd.ctl", "127.0.0.1:1344")
        .replace("scan = \"clamd\"", "scan = \"icap\"");
    let config = read(&icap).expect("a policy");
    let protocol = config.scanner.map(|scanner| scanner.protocol);
    let service = "virus_scan".to_owned();
    assert_eq!(protocol, Some(linkweir_scan::Protocol::Icap { service }));
    for (change, expected) in [
        (
            ("service = \"virus_scan\"\n", ""),
            "[scanner.icap] needs `service`",
        ),
        (
            ("\"virus_scan\"", "\"a b\""),
            "gateway.toml:16:11: [scanner.icap] needs `service`",
        ),
        (
            ("scan = \"icap\"", "scan = \"clamd\""),
            "write scan = \"icap\"",
        ),
        (
            ("[scanner.icap]", "[scanner.clamd]"),
            "`service` is of [scanner.icap]",
        ),
    ] {
        says(&icap.replace(change.0, change.1), expected);
    }
}

#[test]
fn conditions_are_read_and_their_faults_located() {
    let rule = |lines: &str| format!("[[rule]]\nname = \"a\"\naction = \"reject\"\n{lines}\n");
    let good = rule(
        "application = [\"http\", \"tls\"]\nhosts = [\"*.ads.example\"]\nsni = \"*.ads.example\"\nech = true\n\
         servers = \"192.0.2.0/24\"\nserver-ports = [80, \"8000-8999\"]\ntimes = \"mon-fri 08:00-17:00\"\n\
         mime-types = \"video/*\"\nmin-body = \"10MiB\"\npage = \"No\"",
    );
    let config = read(&good).expect("a policy");
    let a = &config.policy.rules[0];
    assert_eq!(a.server_ports.0, [(80, 80), (8000, 8999)]);
    assert_eq!(a.times.0.len(), 5);
    assert_eq!(a.conditions.response.min_body, Some(10 << 20));
    assert!(a.conditions.tls.has_ech == Some(true) && a.reply.is_some());
    assert!(config.policy.local_minute.is_some());
    for (lines, expected) in [
        (
            "hosts = \"http://a/\"",
            "gateway.toml:4:9: rule `a`: `hosts` are names without scheme",
        ),
        (
            "urls = \"http://a/*\"",
            "gateway.toml:4:8: rule `a`: `urls` are without scheme",
        ),
        (
            "ja4 = \"t13d\"",
            "gateway.toml:4:7: rule `a`: a JA4 has three parts",
        ),
        (
            "mime-types = \"video\"",
            "gateway.toml:4:14: rule `a`: `mime-types` have two parts",
        ),
        (
            "server-ports = 70000",
            "gateway.toml:4:16: 70000 is not a valid port",
        ),
        (
            "server-ports = \"9-8\"",
            "gateway.toml:4:16: `9-8` is not a valid port",
        ),
        (
            "times = \"monday\"",
            "gateway.toml:4:9: `monday` is not a valid time: write",
        ),
        (
            "min-body = \"0B\"",
            "gateway.toml:4:12: `0B` is out of range",
        ),
        (
            "application = \"tls\"\nhosts = \"a\"",
            "rule `a`: `hosts` is of http",
        ),
        (
            "application = \"http\"\nsni = \"a\"",
            "rule `a`: `sni` is of tls and quic",
        ),
        (
            "quota = \"1GB/day\"",
            "gateway.toml:4:9: rule `a`: `quota` and `new-connections` are what a client may use",
        ),
        (
            "quota = \"1GB\"",
            "gateway.toml:4:9: `1GB` is not a valid quota: write \"500MB/day\"",
        ),
        (
            "new-connections = \"5/m\"",
            "gateway.toml:4:19: `5/m` is not a valid rate: write \"20/s\"",
        ),
        (
            "page = \" \"",
            "gateway.toml:4:8: rule `a`: `page` is a text of 1 to 4000 bytes",
        ),
        (
            "application = \"tls\"\npage = \"a\"",
            "`page` is for http, which the rule is not for",
        ),
        (
            "location = \"http://a\"",
            "gateway.toml:4:12: rule `a`: `location` needs action = \"redirect\"",
        ),
    ] {
        says(&rule(lines), expected);
    }
    let redirect = |lines: &str| rule(lines).replace("\"reject\"", "\"redirect\"");
    says(
        &redirect("location = \"portal\""),
        "rule `a`: `location` is a URL in ASCII",
    );
    says(
        &redirect("location = \"http://a\"\nproxy-port = 1"),
        "`proxy-port` and `location` exclude each other",
    );
    let config = read(&redirect("location = \"http://a\"")).expect("a policy");
    assert!(config.redirects.is_empty());
}

#[test]
fn a_redirect_has_a_port() {
    let rule = |rest: &str| format!("[[rule]]\nname = \"a\"\naction = {rest}\n");
    for (rest, expected) in [
        (
            "\"redirect\"",
            "gateway.toml:2:8: rule `a`: action redirect needs `proxy-port`",
        ),
        (
            "\"drop\"\nproxy-port = 3129",
            "gateway.toml:4:14: rule `a`: `proxy-port` needs action",
        ),
        ("\"redirect\"\nproxy-port = 0", "gateway.toml:4:14: "),
        (
            "\"redirect\"\nproxy-port = 3129\nshape = \"1mbit\"",
            "nothing to shape",
        ),
    ] {
        says(&rule(rest), expected);
    }
    let config = read(&rule("\"redirect\"\nproxy-port = 3129")).expect("a policy");
    let plan = config.plan();
    assert_eq!(plan.redirects.len(), 1);
    assert_eq!(plan.redirects[0].port, 3129);
    assert_eq!(plan.rules.get("a"), Some(&plan.redirects[0].rule));
}

#[test]
fn a_list_is_a_file_of_a_bounded_length() {
    for (list, wrong) in [
        ("/dev/zero", "not a regular file"),
        ("/nowhere/words", "No such file"),
    ] {
        let text = FULL.replace("[[rule]]", &format!("[[rule]]\nkeywords-file = \"{list}\""));
        let error = read(&text).expect_err(list);
        assert!(error.contains(wrong), "{error}");
    }
}

#[test]
fn what_a_value_may_be_is_said() {
    for (text, expected) in [
        ("[gateway]\nqueue = 1\n", "; did you mean `queues`?"),
        (
            "[[rule]]\nname = \"a\"\naction = \"drop\"\nhost-names = [\"a.test\"]\n",
            "; did you mean `hosts`?",
        ),
        (
            "[gateway]\nqueues = \"two\"\n",
            "gateway.toml:2:10: invalid type: string \"two\", expected a whole number",
        ),
        (
            "[limits]\nhalf-open = 0\n",
            "gateway.toml:2:13: invalid value: integer `0`, expected a whole number from 1 to 16777215",
        ),
        (
            "[limits]\nidle-timeout = 3\n",
            "gateway.toml:2:16: invalid type: integer `3`, expected a string in quotes",
        ),
        (
            "[limits]\nidle-timeout = \"3 weeks ago\"\n",
            "such as 60s, 500ms or 1h30m",
        ),
        (
            "[gateway]\ndefault = \"inspect\"\n",
            "gateway.toml:2:11: `default` is allow, drop or reject",
        ),
        (
            "[scanner.clamd]\nwindow = \"1KiB\"\n",
            "gateway.toml:1:1: missing key `address`",
        ),
        (
            "[scanner.clamd]\naddress = \"/s\"\nwindow = \"1KiB\"\n",
            "gateway.toml:1:1: `tail` must be shorter than `window`",
        ),
        (
            "[scanner.clamd]\naddress = \"/s\"\nwindow = \"1\"\n",
            "gateway.toml:3:10: a size from 64 bytes to 16MiB, or `file`",
        ),
        (
            "[record]\nwhen-full = \"stop\"\n",
            "gateway.toml:2:13: unknown value `stop`, expected `refuse` or `delete-oldest`",
        ),
        (
            "[[rule]]\nname = \"a\\u001b[2J\"\naction = \"drop\"\n",
            "none of them a control character",
        ),
    ] {
        says(text, expected);
    }
}

fn says(text: &str, expected: &str) {
    let said = read(text).err().unwrap_or_default();
    assert!(
        said.contains(expected),
        "{text}\nsaid: {said}\nnot: {expected}"
    );
}

#[test]
fn a_policy_that_allows_everything_says_so() {
    for empty in ["", "# nothing yet\n"] {
        let error = read(empty).unwrap_err();
        assert!(error.contains("the policy is empty"), "{error}");
    }
    let config = read("[gateway]\ndefault = \"allow\"\n").expect("a policy");
    assert_eq!(config.policy.default.action, Action::Allow);
    assert!(config.policy.rules.is_empty());
}

/// A policy with files of countries and of AS numbers, as `geoip` says.
fn read_with_databases(geoip: &str, keys: &str) -> Result<GatewayConfig, String> {
    use linkweir_testkit::mmdb;
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(directory.path().join(name), bytes).expect("written");
    };
    let networks = [("192.0.2.0/24", mmdb::country("NL"))];
    write(
        "country.mmdb",
        &mmdb::database("GeoLite2-Country", &networks),
    );
    let networks = [("192.0.2.0/24", mmdb::asn(64_500))];
    write("asn.mmdb", &mmdb::database("GeoLite2-ASN", &networks));
    write("other.mmdb", b"not a database");
    let text = format!("[gateway]\n{geoip}\n[[rule]]\nname = \"far\"\naction = \"drop\"\n{keys}\n");
    let path = directory.path().join("gateway.toml");
    let place = Place {
        path: &path,
        text: &text,
    };
    let read = parse(place, &BTreeMap::new());
    let at = format!("{}/", directory.path().display());
    read.map_err(|wrong| wrong.to_string().replace(&at, ""))
}

#[test]
fn countries_and_systems_of_both_ends() {
    let keys = "client-country = [\"NL\", \"de\"]\nserver-country = \"FR\"\nclient-asn = 64500\nserver-asn = [1, 4294967295]";
    let both = "geoip = [\"country.mmdb\", \"asn.mmdb\"]";
    let config = read_with_databases(both, keys).expect("a policy");
    let [rule] = config.policy.rules.as_slice() else {
        panic!("one rule");
    };
    assert_eq!(rule.client_regions.countries, [*b"NL", *b"DE"]);
    assert_eq!(rule.server_regions.countries, [*b"FR"]);
    assert_eq!(rule.client_regions.asns, [64_500]);
    assert_eq!(rule.server_regions.asns, [1, 4_294_967_295]);
    let places = config.policy.places.as_ref().expect("a database");
    let place = places.place("192.0.2.9".parse().expect("an address"));
    assert_eq!(place, linkweir_record::Place::new("NL", 64_500));
    let without = read_with_databases("", "").expect("a policy");
    assert!(without.policy.places.is_none());
}

#[test]
fn a_country_without_its_database_is_an_error_where_it_stands() {
    let country = "geoip = \"country.mmdb\"";
    for (geoip, keys, wrong) in [
        (
            "",
            "client-country = \"NL\"",
            "gateway.toml:6:18: rule `far`: `client-country` needs a database of countries: write `geoip",
        ),
        (
            "",
            "server-asn = 64500",
            "gateway.toml:6:14: rule `far`: `server-asn` needs a database of AS numbers: write `geoip",
        ),
        (
            country,
            "client-asn = [64500]",
            "gateway.toml:6:15: rule `far`: `client-asn` needs a database of AS numbers: no file of `geoip` has",
        ),
        (
            "geoip = \"asn.mmdb\"",
            "server-country = [\"NL\"]",
            "`server-country` needs a database of countries: no file",
        ),
        (
            country,
            "client-country = [\"NL\", \"XX\"]",
            "gateway.toml:6:25: `XX` is not a valid country",
        ),
        (country, "client-country = \"UK\"", "did you mean `GB`?"),
        (
            country,
            "client-country = \"Netherlands\"",
            "not a valid country",
        ),
        (country, "client-country = []", "the list is empty"),
        (
            "geoip = \"asn.mmdb\"",
            "client-asn = 0",
            "a whole number from 1 to 4294967295",
        ),
        (
            "geoip = \"asn.mmdb\"",
            "client-asn = \"AS64500\"",
            "a whole number from 1 to 4294967295",
        ),
        (
            "geoip = [\"country.mmdb\", \"other.mmdb\"]",
            "",
            "gateway.toml:2:26: other.mmdb: ",
        ),
        (
            "geoip = \"missing.mmdb\"",
            "",
            "gateway.toml:2:9: missing.mmdb: ",
        ),
        ("geoip = \".\"", "", "a regular file of at most"),
    ] {
        let error = read_with_databases(geoip, keys).err();
        let error = error.unwrap_or_default();
        assert!(error.contains(wrong), "{geoip} {keys}: {error}");
    }
}
