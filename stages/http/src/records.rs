//! Records as they leave: filters, anonymised addresses, counters.

use linkweir_record::header;
use linkweir_record::{Anonymizer, HttpBatch, HttpRow, PlaceCache, Source, Text, Web};

use crate::config::HttpConfig;
use crate::key::Connection;
use crate::stats::HttpStats;
use crate::trips::Trips;

/// A request as a record needs it; texts borrow from the packet or from the pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestParts<'a> {
    pub(crate) connection: Connection,
    pub(crate) ts_ns: u64,
    pub(crate) vlan: Option<u16>,
    pub(crate) bytes: Option<u64>,
    pub(crate) minor: u8,
    pub(crate) interim_responses: u16,
    pub(crate) retransmissions: u16,
    pub(crate) method: &'a [u8],
    pub(crate) target: &'a [u8],
    pub(crate) host: &'a [u8],
    pub(crate) user_agent: &'a [u8],
    /// As [`Web::fields`] has them.
    pub(crate) fields: &'a [u8],
}

/// A final response as a record needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResponseParts<'a> {
    pub(crate) connection: Connection,
    pub(crate) ts_ns: u64,
    pub(crate) vlan: Option<u16>,
    pub(crate) bytes: Option<u64>,
    pub(crate) minor: u8,
    pub(crate) retransmissions: u16,
    pub(crate) status_code: u16,
    pub(crate) reason_phrase: &'a [u8],
    pub(crate) content_type: &'a [u8],
    /// As [`Web::fields`] has them.
    pub(crate) fields: &'a [u8],
}

/// Where records go.
#[derive(Debug)]
pub(crate) struct Records {
    filter: Filter,
    anonymizer: Option<Anonymizer>,
    places: Option<PlaceCache>,
    pub(crate) stats: HttpStats,
    /// Round trips from here to the servers.
    pub(crate) trips: Trips,
}

/// Which records are wanted.
#[derive(Debug)]
struct Filter {
    host: Vec<u8>,
    url: Vec<u8>,
}

impl Filter {
    #[inline]
    fn passes(&self, text: &Text<'_>) -> bool {
        (self.host.is_empty() && self.url.is_empty()) || self.passes_slowly(text)
    }

    fn passes_slowly(&self, text: &Text<'_>) -> bool {
        let contains = |whole: &[u8], part: &[u8]| {
            part.is_empty() || memchr::memmem::find(whole, part).is_some()
        };
        // Host names have no case (RFC 9110 sec. 4.2.3); paths have.
        contains(&text.host.to_ascii_lowercase(), &self.host)
            && (contains(text.uri, &self.url)
                || contains(&[text.host, text.uri].concat(), &self.url))
    }
}

impl Records {
    pub(crate) fn new(config: &HttpConfig) -> Self {
        Self {
            filter: Filter {
                host: config.host_contains.to_ascii_lowercase(),
                url: config.url_contains.clone(),
            },
            anonymizer: config.anonymizer.clone(),
            places: config.places.clone().map(PlaceCache::new),
            stats: HttpStats::default(),
            trips: Trips::new(config.has_round_trips, config.max_pending),
        }
    }

    /// Whether addresses stay as they are, and nobody says where they are.
    #[inline]
    pub(crate) const fn keeps_addresses(&self) -> bool {
        self.anonymizer.is_none() && self.places.is_none()
    }

    /// Writes a record of HTTP/1.x in clear whose addresses stay as they are, unless the filters hold it back.
    #[inline]
    pub(crate) fn record_clear(&mut self, mut row: HttpRow, text: &Text<'_>, out: &mut HttpBatch) {
        self.stats.count_record(row.version, Source::Clear);
        self.add_trip(&mut row);
        if self.filter.passes(text) {
            out.push(row, text);
        } else {
            self.stats.filtered += 1;
        }
    }

    /// Adds the round trip of its connection to a record.
    #[inline]
    fn add_trip(&self, row: &mut HttpRow) {
        row.rtt_ns = self.trips.of(&Connection::of_row(row));
    }

    /// Writes a record with what only HTTP/2 and TLS have, unless the filters hold it back.
    pub(crate) fn record_web(
        &mut self,
        mut row: HttpRow,
        text: &Text<'_>,
        label: Option<Web<'_>>,
        out: &mut HttpBatch,
    ) {
        let source = label.map_or(Source::Clear, |web| web.source);
        self.stats.count_record(row.version, source);
        if row.version != (3, 0) {
            self.add_trip(&mut row);
        }
        if !self.filter.passes(text) {
            self.stats.filtered += 1;
            return;
        }
        let mut push = |row, text: &Text<'_>, web: Option<Web<'_>>| match web {
            Some(web) => out.push_web(row, text, &web),
            None => out.push(row, text),
        };
        let label = match &mut self.places {
            Some(places) => Some(Web {
                places: [row.client_ip, row.server_ip].map(|address| places.place(address)),
                ..label.unwrap_or_default()
            }),
            None => label,
        };
        let Some(anonymizer) = &self.anonymizer else {
            return push(row, text, label);
        };
        let sni = label.and_then(|web| anonymizer.replace_host(web.sni));
        let fields = label.unwrap_or_default().fields;
        let fields = fields.map(|values| header::anonymized(values, anonymizer));
        let label = label.map(|web| Web {
            sni: sni.as_deref().unwrap_or(web.sni),
            fields: [&fields[0], &fields[1]],
            ..web
        });
        row.client_ip = anonymizer.replace(row.client_ip);
        row.server_ip = anonymizer.replace(row.server_ip);
        // The hash of the real addresses would give them away, and so would a host that is one.
        row.flow_hash = Connection::of_row(&row).flow_hash();
        let Some(host) = anonymizer.replace_host(text.host) else {
            return push(row, text, label);
        };
        let uri = match memchr::memmem::find(text.uri, text.host) {
            Some(at) if text.uri.first() != Some(&b'/') => {
                let (before, rest) = text.uri.split_at(at);
                [
                    before,
                    &host,
                    rest.get(text.host.len()..).unwrap_or_default(),
                ]
                .concat()
            }
            _ => text.uri.to_vec(),
        };
        let text = Text {
            host: &host,
            uri: &uri,
            ..*text
        };
        push(row, &text, label);
    }
}

/// A row that says who talked to whom.
#[inline]
pub(crate) fn row_of(connection: &Connection) -> HttpRow {
    HttpRow {
        client_ip: connection.client.0,
        client_port: connection.client.1,
        server_ip: connection.server.0,
        server_port: connection.server.1,
        flow_hash: connection.flow_hash(),
        ..HttpRow::default()
    }
}
