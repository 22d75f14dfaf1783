//! The scopes of the alert rules, matched against every record.
//!
//! Cost: a comparison or two per scope and record; what a rule measures is exact, whether or not
//! its host or URL is among the most frequent.

use std::net::IpAddr;

use crate::alert::{Rule, Scope};

/// The distinct scopes of a set of rules.
#[derive(Debug, Default)]
pub(super) struct Scopes(Vec<Scope>);

/// Whether two addresses are the same, in whatever form.
pub(super) fn is_same(a: IpAddr, b: IpAddr) -> bool {
    a.to_canonical() == b.to_canonical()
}

/// Whether the host field `field` names `host`: equal, or equal without its port where `host` has
/// none.
pub(super) fn names_host(field: &[u8], host: &[u8]) -> bool {
    match field.strip_prefix(host) {
        Some([]) => true,
        Some([b':', port @ ..]) => !port.is_empty() && port.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Whether a label is that of an application, or has it among several: `stun,dtls` is `dtls` too.
pub(super) fn is_application(label: &[u8], name: &str) -> bool {
    let is_it = |word: &[u8]| word.eq_ignore_ascii_case(name.as_bytes());
    is_it(label) || label.split(|byte| *byte == b',').any(is_it)
}

impl Scopes {
    pub(super) fn of(rules: &[Rule]) -> Self {
        let mut scopes: Vec<Scope> = Vec::new();
        for rule in rules {
            if rule.scope != Scope::Run && !scopes.contains(&rule.scope) {
                scopes.push(rule.scope.clone());
            }
        }
        Self(scopes)
    }

    /// The number of a scope; `None` for the whole run.
    pub(super) fn position(&self, scope: &Scope) -> Option<usize> {
        self.0.iter().position(|known| known == scope)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The scopes with their numbers.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (usize, &Scope)> {
        self.0.iter().enumerate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_of_several_is_each() {
        for name in ["stun", "DTLS", "rtp", "stun,dtls,rtp"] {
            assert!(is_application(b"stun,dtls,rtp", name), "{name}");
        }
        for name in ["tls", "stun,rtp", "", "unknown"] {
            assert!(!is_application(b"stun,dtls,rtp", name), "{name}");
        }
    }

    #[test]
    fn a_host_without_a_port_matches_every_port() {
        assert!(names_host(b"shop", b"shop"));
        assert!(names_host(b"shop:8080", b"shop"));
        assert!(!names_host(b"shop:8080", b"shop:80"));
        assert!(!names_host(b"shop:", b"shop"));
        assert!(!names_host(b"shop.example", b"shop"));
        assert!(!names_host(b"shop", b"shop:80"));
    }
}
