//! The scopes of the alert rules, matched against every record.
//!
//! Cost: a comparison or two per scope and record; what a rule measures is exact, whether or not
//! its host or URL is among the most frequent.

use std::net::IpAddr;

use crate::alert::{Rule, Scope};
use crate::kind::Kind;

/// The distinct scopes of a set of rules, with what is to be met where that is a condition.
#[derive(Debug)]
pub(super) struct Scopes<K: Kind>(Vec<(Scope, Option<K::Condition>)>);

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

impl<K: Kind> Scopes<K> {
    pub(super) fn of(rules: &[Rule]) -> Self {
        let mut scopes = Self(Vec::new());
        for rule in rules {
            if rule.scope != Scope::Run && scopes.position(&rule.scope).is_none() {
                let condition = match &rule.scope {
                    // Rules are read by `Kind::rule`, which has refused what is none.
                    Scope::Where { condition, .. } => K::condition(condition).ok(),
                    _ => None,
                };
                scopes.0.push((rule.scope.clone(), condition));
            }
        }
        scopes
    }

    /// The number of a scope; `None` for the whole run.
    pub(super) fn position(&self, scope: &Scope) -> Option<usize> {
        self.0.iter().position(|(known, _)| known == scope)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The numbers of the scopes that a record belongs to.
    pub(super) fn holding(
        &self,
        view: &K::View<'_>,
        scratch: &K::Scratch,
    ) -> impl Iterator<Item = usize> {
        let holds = |(scope, condition): &(Scope, Option<K::Condition>)| match condition {
            Some(condition) => K::meets(view, condition),
            None => K::is_in(view, scope, scratch),
        };
        let numbered = self.0.iter().enumerate();
        numbered.filter_map(move |(at, scope)| holds(scope).then_some(at))
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
