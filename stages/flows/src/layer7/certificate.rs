//! What a certificate says, for records of handshakes.

use std::net::{Ipv4Addr, Ipv6Addr};

use x509_parser::objects::{oid_registry, oid2abbrev};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate, X509Name};

/// Bytes of a text that are kept.
const LONGEST: usize = 1024;

/// The texts and the validity of a certificate (RFC 5280 sec. 4.1).
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Certificate {
    pub(super) subject: String,
    pub(super) issuer: String,
    /// Alternative names, joined by commas.
    pub(super) names: String,
    /// Seconds since the epoch.
    pub(super) validity: [i64; 2],
}

impl Certificate {
    /// Reads a certificate; `None` where it is none.
    pub(super) fn parse(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let alternative = certificate.subject_alternative_name().ok().flatten();
        let names = alternative.map(|names| names.value.general_names.as_slice());
        let names = names.unwrap_or_default().iter().filter_map(general_name);
        let validity = certificate.validity();
        Some(Self {
            subject: distinguished_name(certificate.subject()),
            issuer: distinguished_name(certificate.issuer()),
            names: joined(names),
            validity: [
                validity.not_before.timestamp(),
                validity.not_after.timestamp(),
            ],
        })
    }
}

/// As many of them as there is room for.
fn joined(parts: impl Iterator<Item = String>) -> String {
    let mut out = String::new();
    for part in parts {
        if out.len() + 1 + part.len() > LONGEST {
            break;
        }
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(&part);
    }
    out
}

/// RFC 4514: the most specific part first.
fn distinguished_name(name: &X509Name<'_>) -> String {
    let parts = name.iter_rdn().map(|part| {
        let pairs = part.iter().map(|pair| {
            let kind = oid2abbrev(pair.attr_type(), oid_registry());
            let kind = kind.map_or_else(|_| pair.attr_type().to_id_string(), str::to_owned);
            format!(
                "{kind}={}",
                escaped(&String::from_utf8_lossy(pair.as_slice()))
            )
        });
        pairs.collect::<Vec<_>>().join("+")
    });
    let mut parts: Vec<String> = parts.collect();
    parts.reverse();
    joined(parts.into_iter())
}

/// RFC 4514 sec. 2.4.
fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for character in value.chars() {
        if matches!(character, '"' | '+' | ',' | ';' | '<' | '>' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
    out
}

fn general_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) | GeneralName::RFC822Name(name) | GeneralName::URI(name) => {
            Some(name.replace('\\', "\\x5c").replace(',', "\\x2c"))
        }
        GeneralName::IPAddress(bytes) => match <[u8; 4]>::try_from(*bytes) {
            Ok(v4) => Some(Ipv4Addr::from(v4).to_string()),
            Err(_) => {
                let v6 = <[u8; 16]>::try_from(*bytes).ok()?;
                Some(Ipv6Addr::from(v6).to_string())
            }
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_validity_are_those_that_it_was_made_with() {
        let mut wanted = rcgen::CertificateParams::new(vec![
            "a.example".to_owned(),
            "*.b.example".to_owned(),
            "192.0.2.7".to_owned(),
        ])
        .unwrap();
        let mut name = rcgen::DistinguishedName::new();
        name.push(rcgen::DnType::OrganizationName, "Weir, Ltd");
        name.push(rcgen::DnType::CommonName, "a.example");
        wanted.distinguished_name = name;
        wanted.not_before = rcgen::date_time_ymd(2026, 1, 2);
        wanted.not_after = rcgen::date_time_ymd(2027, 1, 2);
        let key = rcgen::KeyPair::generate().unwrap();
        let made = wanted.self_signed(&key).unwrap();
        let read = Certificate::parse(made.der()).unwrap();
        let expected = Certificate {
            subject: "CN=a.example,O=Weir\\, Ltd".to_owned(),
            issuer: "CN=a.example,O=Weir\\, Ltd".to_owned(),
            names: "a.example,*.b.example,192.0.2.7".to_owned(),
            validity: [1_767_312_000, 1_798_848_000],
        };
        assert_eq!(read, expected);
        assert_eq!(
            Certificate::parse(&made.der()[..made.der().len() - 1]),
            None
        );
        assert_eq!(Certificate::parse(b""), None);
    }
}
