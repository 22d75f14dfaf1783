//! Who may connect: checks of the `Host` field and of the token.
//!
//! A page of a stranger can make a browser ask a server on loopback by giving its own name the
//! address 127.0.0.1 (DNS rebinding). The request then carries the stranger's name in `Host`: only
//! addresses we listen on, `localhost` and names the user gave are answered.

use std::net::{IpAddr, SocketAddr};

/// What the checks know.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    local: SocketAddr,
    names: Vec<String>,
    token: Option<String>,
    /// Whether requests come by HTTPS only.
    is_tls: bool,
}

/// What a request may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may ask.
    Pass,
    /// It may ask, by the cookie of a browser.
    PassByCookie,
    /// It may ask, and brought the token in the address: a cookie is to keep it.
    SetCookie,
    /// It has no token or a wrong one.
    Unauthorized,
    /// It asks under a name that is not ours.
    WrongHost,
}

impl Guard {
    pub(super) fn new(
        local: SocketAddr,
        names: &[String],
        token: Option<String>,
        is_tls: bool,
    ) -> Self {
        Self {
            local,
            names: names.iter().map(|name| name.to_ascii_lowercase()).collect(),
            token,
            is_tls,
        }
    }

    /// Judges a request by its `Host` field, `Authorization` field, `Cookie` field, and the token of
    /// its query. All of them are as a stranger wrote them.
    pub(super) fn judge(
        &self,
        host: Option<&str>,
        authorization: Option<&str>,
        cookie: Option<&str>,
        query_token: Option<&str>,
    ) -> Verdict {
        if !host.is_some_and(|host| self.is_ours(host)) {
            return Verdict::WrongHost;
        }
        let Some(token) = &self.token else {
            return Verdict::Pass;
        };
        let bearer = authorization.and_then(|field| {
            let (scheme, rest) = field.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| rest.trim())
        });
        let wanted = self.cookie_name();
        let from_cookie = cookie.and_then(|field| {
            field
                .split(';')
                .filter_map(|pair| pair.trim().split_once('='))
                .find_map(|(name, value)| (name == wanted).then_some(value))
        });
        let is_it = |given: Option<&str>| given.is_some_and(|given| is_equal(given, token));
        if is_it(query_token) {
            Verdict::SetCookie
        } else if is_it(bearer) {
            Verdict::Pass
        } else if is_it(from_cookie) {
            Verdict::PassByCookie
        } else {
            Verdict::Unauthorized
        }
    }

    /// Whether requests need a token at all.
    pub(super) const fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Whether this is the token.
    pub(super) fn knows(&self, given: &str) -> bool {
        let token = self.token.as_deref();
        token.is_some_and(|token| is_equal(given, token))
    }

    /// Whether a `Host` field, or the host of an origin, names us.
    pub(super) fn is_ours(&self, host: &str) -> bool {
        let Some(name) = name_of(host) else {
            return false;
        };
        let name = name.to_ascii_lowercase();
        if self.names.contains(&name) {
            return true;
        }
        match name.parse::<IpAddr>() {
            // An address in `Host` cannot come from a rebound name; listening on all, all are ours.
            Ok(address) => {
                self.local.ip().is_unspecified()
                    || address.to_canonical() == self.local.ip().to_canonical()
                    || (self.local.ip().is_loopback() && address.is_loopback())
            }
            Err(_) => name == "localhost",
        }
    }

    /// The field that makes a browser keep the token.
    pub(super) fn cookie(&self) -> Option<String> {
        Some(self.cookie_of(self.token.as_ref()?, ""))
    }

    /// The field that makes a browser drop the token.
    pub(super) fn no_cookie(&self) -> String {
        self.cookie_of("", "; Max-Age=0")
    }

    fn cookie_of(&self, value: &str, age: &str) -> String {
        let name = self.cookie_name();
        let secure = if self.is_tls { "; Secure" } else { "" };
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{age}")
    }

    /// Cookies know no ports: two consoles of one host must not take each other's away.
    fn cookie_name(&self) -> String {
        format!("linkweir_token_{}", self.local.port())
    }
}

/// The name in a `Host` field, without the brackets of an IPv6 address. The port does not matter: it
/// is another one at the near end of a tunnel, and no page can choose the name by it.
fn name_of(host: &str) -> Option<&str> {
    let (name, port) = if let Some(rest) = host.strip_prefix('[') {
        rest.split_once(']')?
    } else {
        let end = host.find(':').unwrap_or(host.len());
        host.split_at_checked(end)?
    };
    if port.is_empty() {
        return Some(name);
    }
    let digits = port.strip_prefix(':')?;
    let is_port = digits.len() <= 5 && digits.bytes().all(|b| b.is_ascii_digit());
    is_port.then_some(name)
}

/// Compares without telling by its time where two texts of equal length differ.
fn is_equal(a: &str, b: &str) -> bool {
    let difference = a
        .bytes()
        .zip(b.bytes())
        .fold(0, |sum, (a, b)| sum | (a ^ b));
    a.len() == b.len() && std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn guard(local: &str, names: &[&str], token: Option<&str>) -> Guard {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Guard::new(
            local.parse().unwrap(),
            &names,
            token.map(str::to_owned),
            false,
        )
    }

    #[test]
    fn names_that_are_ours() {
        let loopback = guard("127.0.0.1:8080", &["Mon.Example"], None);
        for (host, ours) in [
            ("127.0.0.1:8080", true),
            ("localhost:8080", true),
            ("LOCALHOST:8080", true),
            ("[::1]:8080", true),
            ("127.0.0.2:8080", true),
            ("mon.example", true),
            ("mon.example:443", true),
            ("127.0.0.1", true),
            ("localhost:9000", true),
            ("evil.example:8080", false),
            ("evil.example", false),
            ("localhost.evil.example:8080", false),
            ("10.0.0.1:8080", false),
            ("127.0.0.1:8080@evil", false),
            ("127.0.0.1:+8080", false),
            ("[::1", false),
            ("", false),
        ] {
            assert_eq!(loopback.is_ours(host), ours, "{host}");
        }
        let all = guard("[::]:80", &[], None);
        assert!(all.is_ours("192.0.2.7") && all.is_ours("[2001:db8::1]:80"));
        assert!(!all.is_ours("rebound.example"));
    }

    #[test]
    fn tokens() {
        let guard = guard("127.0.0.1:1", &[], Some("secret"));
        let judge = |auth, cookie, query| guard.judge(Some("localhost:1"), auth, cookie, query);
        assert_eq!(judge(None, None, None), Verdict::Unauthorized);
        assert_eq!(judge(Some("Bearer secret"), None, None), Verdict::Pass);
        assert_eq!(judge(Some("bearer  secret"), None, None), Verdict::Pass);
        assert_eq!(
            judge(Some("Basic secret"), None, None),
            Verdict::Unauthorized
        );
        assert_eq!(
            judge(Some("Bearer secre"), None, None),
            Verdict::Unauthorized
        );
        assert_eq!(
            judge(None, Some("a=b; linkweir_token_1=secret"), None),
            Verdict::PassByCookie
        );
        assert_eq!(
            judge(None, Some("xlinkweir_token_1=secret"), None),
            Verdict::Unauthorized
        );
        assert_eq!(judge(None, None, Some("secret")), Verdict::SetCookie);
        assert_eq!(judge(None, None, Some("secreT")), Verdict::Unauthorized);
        let verdict = guard.judge(Some("evil:1"), Some("Bearer secret"), None, None);
        assert_eq!(verdict, Verdict::WrongHost);
        assert_eq!(
            guard.judge(None, Some("Bearer secret"), None, None),
            Verdict::WrongHost
        );
        let cookie = guard.cookie().unwrap();
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"));
        assert!(guard.knows("secret") && !guard.knows("secre") && !guard.knows(""));
    }

    proptest! {
        #[test]
        fn only_equal_texts_are_equal(a in "[a-c]{0,4}", b in "[a-c]{0,4}") {
            prop_assert_eq!(is_equal(&a, &b), a == b);
        }

        #[test]
        fn any_host_is_judged(host in ".{0,40}") {
            let guard = guard("127.0.0.1:8080", &[], None);
            if guard.is_ours(&host) {
                let name = host.to_ascii_lowercase();
                prop_assert!(name.starts_with("localhost") || name.starts_with("127.") || name.starts_with('['));
            }
        }
    }
}
