//! What is known of a client beside its counts: where it is, and what it offers in TLS. Shown in the tables of clients.
//!
//! Cost: nothing for a client of which neither is known; 48 bytes for each row of a table of clients of which it is.

use linkweir_record::Place;
use serde::{Deserialize, Serialize};

/// Bytes of a JA4.
const JA4_BYTES: usize = 36;

/// The newest that was known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Newest {
    place: Option<Place>,
    ja4: Option<[u8; JA4_BYTES]>,
}

/// What is kept with a client.
#[derive(Debug, Clone, Default)]
pub struct About(Option<Box<Newest>>);

/// What readers get of it, and what is sent of it; what is not known is not there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AboutRow {
    /// Of clients, the country where one is by the last record that said so; its two letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// Of clients, the number of the autonomous system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asn: Option<u32>,
    /// Of clients, the JA4 of the last `ClientHello` that was seen whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ja4: Option<String>,
}

impl AboutRow {
    /// Names of its fields, in order.
    pub(crate) const COLUMNS: [&'static str; 3] = ["country", "asn", "ja4"];
}

impl About {
    /// Notes what a record says of its client.
    pub(crate) fn note(&mut self, place: Option<Place>, ja4: &[u8]) {
        let place = place.filter(|place| *place != Place::default());
        let ja4 = ja4.first_chunk().filter(|_| ja4.len() == JA4_BYTES);
        if place.is_none() && ja4.is_none() {
            return;
        }
        let newest = self.0.get_or_insert_default();
        newest.place = place.or(newest.place);
        newest.ja4 = ja4.copied().or(newest.ja4);
    }

    /// Takes what a later part knows.
    pub(crate) fn merge(&mut self, later: &Self) {
        if let Some(later) = &later.0 {
            let newest = self.0.get_or_insert_default();
            newest.place = later.place.or(newest.place);
            newest.ja4 = later.ja4.or(newest.ja4);
        }
    }

    /// Forgets it.
    pub(crate) fn reset(&mut self) {
        self.0 = None;
    }

    pub(crate) fn row(&self) -> AboutRow {
        let Some(newest) = &self.0 else {
            return AboutRow::default();
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        AboutRow {
            country: newest
                .place
                .and_then(Place::country_code)
                .map(|code| text(&code)),
            asn: newest.place.and_then(Place::as_number),
            ja4: newest.ja4.map(|ja4| text(&ja4)),
        }
    }

    pub(crate) fn send(&self) -> Option<AboutRow> {
        self.0.as_ref().map(|_| self.row())
    }

    /// As it came; `None` where it is nothing that a probe could have sent.
    pub(crate) fn take(sent: Option<&AboutRow>) -> Option<Self> {
        let Some(sent) = sent else {
            return Some(Self::default());
        };
        let place = Place::new(
            sent.country.as_deref().unwrap_or_default(),
            sent.asn.unwrap_or_default(),
        );
        let ja4 = sent.ja4.as_deref().unwrap_or_default();
        let is_ja4 = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if !ja4.bytes().all(is_ja4) {
            return None;
        }
        let mut taken = Self::default();
        taken.note(Some(place), ja4.as_bytes());
        // What was left out was not right.
        (taken.row() == *sent).then_some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JA4: &[u8; JA4_BYTES] = b"t13d1516h2_8daaf6152771_02713d6af862";

    #[test]
    fn the_newest_is_kept_and_nothing_costs_nothing() {
        let mut about = About::default();
        about.note(None, b"");
        about.note(Some(Place::default()), b"short");
        assert!(about.0.is_none() && about.send().is_none());
        about.note(Some(Place::new("NL", 64_500)), b"");
        let mut later = About::default();
        later.note(None, JA4);
        about.merge(&later);
        about.merge(&About::default());
        let row = about.row();
        assert_eq!(
            (row.country.as_deref(), row.asn),
            (Some("NL"), Some(64_500))
        );
        assert_eq!(row.ja4.as_deref().map(str::as_bytes), Some(&JA4[..]));
        about.note(Some(Place::new("DE", 0)), b"");
        let row = about.row();
        assert_eq!((row.country.as_deref(), row.asn), (Some("DE"), None));
        about.reset();
        assert_eq!(about.row(), AboutRow::default());
    }

    #[test]
    fn what_was_sent_comes_back_and_what_no_probe_sends_is_refused() {
        let mut about = About::default();
        about.note(Some(Place::new("NL", 64_500)), JA4);
        let sent = about.send();
        assert_eq!(About::take(sent.as_ref()).map(|taken| taken.row()), sent);
        assert!(About::take(None).is_some_and(|taken| taken.0.is_none()));
        for wrong in [
            r#"{"country":"<b"}"#,
            r#"{"country":"NLD"}"#,
            r#"{"asn":0}"#,
            r#"{"ja4":"t13d"}"#,
            r#"{"ja4":"t13d1516h2_8daaf6152771_<script>alert"}"#,
        ] {
            let sent: AboutRow = serde_json::from_str(wrong).unwrap();
            assert!(About::take(Some(&sent)).is_none(), "{wrong}");
        }
    }
}
