use linkweir_record::Prefix;

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
    }
}

#[test]
fn the_first_rule_that_fits_decides() {
    let client: IpAddr = "10.1.2.3".parse().expect("an address");
    let mut first = rule("kazaa of the lab", 1, Action::Drop);
    first.applications = Applications::Of(vec![Label::Known(Application::FastTrack)]);
    first.clients = Networks(vec!["10.1.0.0/16".parse().expect("a network")]);
    let second = rule("all kazaa", 2, Action::Reject);
    let policy = policy(vec![first, second]);
    let name = |label, client: IpAddr| policy.rule(label, client, b"").name.as_str();
    assert_eq!(
        name(Label::Known(Application::FastTrack), client),
        "kazaa of the lab"
    );
    assert_eq!(name(Label::Unknown, client), "all kazaa");
    // Nothing can be said of the lab before the application is known, of others at once.
    assert!(policy.rule_of_any(client).is_none());
    let other = "192.0.2.1".parse().expect("an address");
    assert_eq!(policy.rule_of_any(other).map(|rule| rule.number), Some(2));
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
