//! What is loaded: the server's address, and what the requests say of it.

use std::net::{IpAddr, SocketAddr};

use anyhow::anyhow;

use crate::exit::Wrong;

/// A server and a path on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) server: SocketAddr,
    /// The `Host` field.
    pub(super) host: String,
    /// Path and query of the page.
    pub(super) path: String,
}

impl Target {
    /// Reads `http://ADDRESS[:PORT][/PATH]`; `host` is the `Host` field where it is not the address.
    pub(super) fn parse(url: &str, host: Option<&str>) -> anyhow::Result<Self> {
        let wrong = |what: &str| anyhow!(Wrong(format!("{url}: {what}")));
        let rest = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => {
                return Err(wrong("only http: the clients' TCP has no TLS above it"));
            }
            Some((scheme, _)) => return Err(wrong(&format!("only http, not {scheme}"))),
            None => url,
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(wrong("a user name or password is not sent"));
        }
        let server = address(authority).ok_or_else(|| {
            wrong("names are not resolved: give the server's address, and its name with --host")
        })?;
        if server.port() == 0 {
            return Err(wrong("port 0 is none"));
        }
        if path.bytes().any(|byte| !(0x21..0x7f).contains(&byte)) {
            return Err(wrong("blanks and other bytes in a path are written %XX"));
        }
        let path = match path.chars().next() {
            None => "/".to_owned(),
            Some('/') => path.to_owned(),
            Some(_) => format!("/{path}"),
        };
        if let Some(host) = host
            && (host.is_empty() || host.bytes().any(|byte| !(0x21..0x7f).contains(&byte)))
        {
            return Err(anyhow!(Wrong(format!(
                "--host {host:?}: not a valid host name"
            ))));
        }
        Ok(Self {
            server,
            host: host.unwrap_or(authority).to_owned(),
            path,
        })
    }

    /// Whether it may be loaded without being told twice: loopback, private and link-local addresses, and
    /// those for benchmarks (RFC 1918, 2544, 3927, 4193, 4291).
    pub(super) fn is_private(&self) -> bool {
        match self.server.ip().to_canonical() {
            IpAddr::V4(ip) => {
                let [a, b, ..] = ip.octets();
                ip.is_loopback()
                    || ip.is_private()
                    || ip.is_link_local()
                    || (a == 198 && b & 0xfe == 18)
            }
            IpAddr::V6(ip) => {
                ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()
            }
        }
    }
}

/// An address with or without a port, version 6 in brackets.
fn address(authority: &str) -> Option<SocketAddr> {
    if let Ok(with_port) = authority.parse() {
        return Some(with_port);
    }
    let bare = authority
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(authority);
    Some(SocketAddr::new(bare.parse().ok()?, 80))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        for (url, server, host, path) in [
            ("http://10.0.0.1/", "10.0.0.1:80", "10.0.0.1", "/"),
            (
                "http://10.0.0.1:8080",
                "10.0.0.1:8080",
                "10.0.0.1:8080",
                "/",
            ),
            (
                "HTTP://[fd00::1]:81/a?b#c",
                "[fd00::1]:81",
                "[fd00::1]:81",
                "/a?b",
            ),
            ("http://[fd00::1]", "[fd00::1]:80", "[fd00::1]", "/"),
            ("10.0.0.1?x=1", "10.0.0.1:80", "10.0.0.1", "/?x=1"),
        ] {
            let target = Target::parse(url, None).unwrap();
            assert_eq!(target.server.to_string(), server);
            assert_eq!((target.host.as_str(), target.path.as_str()), (host, path));
        }
        let named = Target::parse("http://10.0.0.1/", Some("shop.example")).unwrap();
        assert_eq!(named.host, "shop.example");
    }

    #[test]
    fn what_is_refused() {
        for (url, why) in [
            ("https://10.0.0.1/", "TLS"),
            ("ftp://10.0.0.1/", "only http, not ftp"),
            ("http://shop.example/", "names are not resolved"),
            ("http://10.0.0.1:0/", "port 0"),
            ("http://10.0.0.1:99999/", "names are not resolved"),
            ("http://me@10.0.0.1/", "user name"),
            ("http://10.0.0.1/a b", "%XX"),
            ("", "names are not resolved"),
        ] {
            let said = Target::parse(url, None).unwrap_err().to_string();
            assert!(said.contains(why), "{url}: {said}");
        }
        assert!(Target::parse("http://10.0.0.1/", Some("a b")).is_err());
    }

    #[test]
    fn private_and_public() {
        let private = |url| Target::parse(url, None).unwrap().is_private();
        for url in [
            "http://127.0.0.1/",
            "http://10.1.2.3/",
            "http://172.31.0.1/",
            "http://192.168.0.1/",
            "http://169.254.1.1/",
            "http://198.19.0.1/",
            "http://[::1]/",
            "http://[fd12::1]/",
            "http://[fe80::1]/",
            "http://[::ffff:10.0.0.1]/",
        ] {
            assert!(private(url), "{url}");
        }
        for url in [
            "http://8.8.8.8/",
            "http://172.32.0.1/",
            "http://[2606::1]/",
            "http://100.64.0.1/",
            "http://192.0.2.7/",
            "http://[2001:db8::1]/",
        ] {
            assert!(!private(url), "{url}");
        }
    }
}
