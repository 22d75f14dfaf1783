//! `tls_handshake`: one record per handshake of TLS, in TCP or QUIC.

use std::net::{IpAddr, Ipv6Addr};

use crate::flow::Protocol;
use crate::line::{Cell, ENDS, LineCell};
use crate::remembered;
use crate::rows::Rows;
use crate::schema::{
    Endpoint, Field, RecordBatch, RecordKind, Value, ZeekColumn, columns, opt, text,
};

/// The numbers of a handshake (RFC 8446, RFC 5246).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsRow {
    /// Address and port of the client.
    pub client: Endpoint,
    /// Address and port of the server.
    pub server: Endpoint,
    /// What it went over: TCP, or UDP where it is that of QUIC.
    pub protocol: Protocol,
    /// When the first message of the client was seen, of the server where that is missing, nanoseconds since the
    /// epoch.
    pub begin_ns: u64,
    /// From then to the first application data of the client: the handshake is over.
    pub handshake_ns: Option<u64>,
    /// The version chosen, or offered where nothing was chosen; as on the wire, 0 is not known.
    pub version: u16,
    /// The suite chosen, as on the wire.
    pub suite: Option<u16>,
    /// The group of the key exchange that the server chose (RFC 8446 sec. 4.2.7), as on the wire.
    pub group: Option<u16>,
    /// Whether an earlier session was resumed: 1 by id, 2 by ticket or pre-shared key.
    pub resumed: u8,
    /// Whether both sides went on to send data.
    pub is_established: bool,
    /// Whether the client encrypted its hello, or its server name (ECH, ESNI).
    pub has_ech: bool,
    /// The last alert in clear: its description (RFC 8446 sec. 6).
    pub alert: Option<u8>,
    /// Validity of the server's certificate, seconds since the epoch.
    pub validity: Option<[i64; 2]>,
    /// The flow's, as in its record.
    pub flow_id: u64,
}

impl Default for TlsRow {
    fn default() -> Self {
        let nobody = (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);
        Self {
            client: nobody,
            server: nobody,
            protocol: Protocol::Tcp,
            begin_ns: 0,
            handshake_ns: None,
            version: 0,
            suite: None,
            group: None,
            resumed: 0,
            is_established: false,
            has_ech: false,
            alert: None,
            validity: None,
            flow_id: 0,
        }
    }
}

/// The texts of a handshake; empty where unknown. Bytes as they came from the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TlsText<'a> {
    /// Server name that the client asked for (RFC 6066 sec. 3).
    pub sni: &'a [u8],
    /// Application protocols that the client offered, joined by commas (RFC 7301).
    pub client_alpn: &'a [u8],
    /// The one that the server chose.
    pub alpn: &'a [u8],
    /// Distinguished name of the subject of the server's certificate, as RFC 4514 writes it.
    pub subject: &'a [u8],
    /// That of its issuer.
    pub issuer: &'a [u8],
    /// Its alternative names (RFC 5280 sec. 4.2.1.6), joined by commas.
    pub names: &'a [u8],
    /// JA4 of the client.
    pub ja4: &'a [u8],
}

/// One handshake, borrowed from its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsHandshake<'a> {
    /// Its numbers.
    pub row: &'a TlsRow,
    /// Its texts.
    pub text: TlsText<'a>,
}

/// Handshakes in the order in which they ended.
#[derive(Debug, Clone, Default)]
pub struct TlsBatch(Rows<TlsRow, 7>);

impl TlsBatch {
    /// Appends a handshake.
    pub fn push(&mut self, row: TlsRow, text: &TlsText<'_>) {
        let texts = [
            text.sni,
            text.client_alpn,
            text.alpn,
            text.subject,
            text.issuer,
            text.names,
            text.ja4,
        ];
        self.0.push(row, texts);
    }
}

impl RecordBatch<TlsKind> for TlsBatch {
    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn get(&self, at: usize) -> Option<TlsHandshake<'_>> {
        let (row, [sni, client_alpn, alpn, subject, issuer, names, ja4]) = self.0.get(at)?;
        let text = TlsText {
            sni,
            client_alpn,
            alpn,
            subject,
            issuer,
            names,
            ja4,
        };
        Some(TlsHandshake { row, text })
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn push_view(&mut self, view: &TlsHandshake<'_>) {
        self.push(*view.row, &view.text);
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}

/// The kind `tls_handshake`.
#[derive(Debug, Clone, Copy)]
pub struct TlsKind;

/// The version of TLS by its number on the wire (RFC 8446 sec. 4.1.2).
pub(crate) const fn version(number: u16) -> Value<'static> {
    match number {
        0 => Value::Null,
        0x0200 => Value::Word("ssl2"),
        0x0300 => Value::Word("ssl3"),
        0x0301 => Value::Word("1.0"),
        0x0302 => Value::Word("1.1"),
        0x0303 => Value::Word("1.2"),
        0x0304 => Value::Word("1.3"),
        _ => Value::Word("other"),
    }
}

/// A suite by its name (IANA registry "TLS Cipher Suites"): those that clients of today offer, and the common ones
/// before them.
#[must_use]
pub const fn suite_name(suite: u16) -> Option<&'static str> {
    Some(match suite {
        0x0004 => "TLS_RSA_WITH_RC4_128_MD5",
        0x0005 => "TLS_RSA_WITH_RC4_128_SHA",
        0x000a => "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
        0x0016 => "TLS_DHE_RSA_WITH_3DES_EDE_CBC_SHA",
        0x002f => "TLS_RSA_WITH_AES_128_CBC_SHA",
        0x0033 => "TLS_DHE_RSA_WITH_AES_128_CBC_SHA",
        0x0035 => "TLS_RSA_WITH_AES_256_CBC_SHA",
        0x0039 => "TLS_DHE_RSA_WITH_AES_256_CBC_SHA",
        0x003c => "TLS_RSA_WITH_AES_128_CBC_SHA256",
        0x003d => "TLS_RSA_WITH_AES_256_CBC_SHA256",
        0x0067 => "TLS_DHE_RSA_WITH_AES_128_CBC_SHA256",
        0x006b => "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256",
        0x008c => "TLS_PSK_WITH_AES_128_CBC_SHA",
        0x008d => "TLS_PSK_WITH_AES_256_CBC_SHA",
        0x009c => "TLS_RSA_WITH_AES_128_GCM_SHA256",
        0x009d => "TLS_RSA_WITH_AES_256_GCM_SHA384",
        0x009e => "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256",
        0x009f => "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384",
        0x00a8 => "TLS_PSK_WITH_AES_128_GCM_SHA256",
        0x00a9 => "TLS_PSK_WITH_AES_256_GCM_SHA384",
        0x1301 => "TLS_AES_128_GCM_SHA256",
        0x1302 => "TLS_AES_256_GCM_SHA384",
        0x1303 => "TLS_CHACHA20_POLY1305_SHA256",
        0x1304 => "TLS_AES_128_CCM_SHA256",
        0x1305 => "TLS_AES_128_CCM_8_SHA256",
        0xc007 => "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
        0xc009 => "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
        0xc00a => "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
        0xc011 => "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
        0xc012 => "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
        0xc013 => "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
        0xc014 => "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
        0xc023 => "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
        0xc024 => "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384",
        0xc027 => "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
        0xc028 => "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384",
        0xc02b => "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        0xc02c => "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        0xc02f => "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        0xc030 => "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        0xc09c => "TLS_RSA_WITH_AES_128_CCM",
        0xc09d => "TLS_RSA_WITH_AES_256_CCM",
        0xc0ac => "TLS_ECDHE_ECDSA_WITH_AES_128_CCM",
        0xc0ad => "TLS_ECDHE_ECDSA_WITH_AES_256_CCM",
        0xcca8 => "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        0xcca9 => "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        0xccaa => "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        _ => return None,
    })
}

/// A group of the key exchange by its name (IANA registry "TLS Supported Groups").
#[must_use]
pub const fn group_name(group: u16) -> Option<&'static str> {
    Some(match group {
        23 => "secp256r1",
        24 => "secp384r1",
        25 => "secp521r1",
        29 => "x25519",
        30 => "x448",
        256 => "ffdhe2048",
        257 => "ffdhe3072",
        258 => "ffdhe4096",
        0x11eb => "SecP256r1MLKEM768",
        0x11ec => "X25519MLKEM768",
        0x11ed => "SecP384r1MLKEM1024",
        0x6399 => "X25519Kyber768Draft00",
        _ => return None,
    })
}

/// An alert by its name (RFC 8446 sec. 6, RFC 5246 sec. 7.2).
#[must_use]
pub const fn alert_name(alert: u8) -> &'static str {
    match alert {
        0 => "close_notify",
        10 => "unexpected_message",
        20 => "bad_record_mac",
        21 => "decryption_failed",
        22 => "record_overflow",
        30 => "decompression_failure",
        40 => "handshake_failure",
        41 => "no_certificate",
        42 => "bad_certificate",
        43 => "unsupported_certificate",
        44 => "certificate_revoked",
        45 => "certificate_expired",
        46 => "certificate_unknown",
        47 => "illegal_parameter",
        48 => "unknown_ca",
        49 => "access_denied",
        50 => "decode_error",
        51 => "decrypt_error",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        86 => "inappropriate_fallback",
        90 => "user_canceled",
        100 => "no_renegotiation",
        109 => "missing_extension",
        110 => "unsupported_extension",
        112 => "unrecognized_name",
        113 => "bad_certificate_status_response",
        115 => "unknown_psk_identity",
        116 => "certificate_required",
        120 => "no_application_protocol",
        121 => "ech_required",
        _ => "unknown",
    }
}

fn word(name: Option<&'static str>) -> Value<'static> {
    name.map_or(Value::Null, Value::Word)
}

/// A moment of a certificate; before 1970 none.
fn moment(row: &TlsRow, end: fn([i64; 2]) -> i64) -> Value<'static> {
    let seconds = row.validity.map(end).and_then(|at| u64::try_from(at).ok());
    let ns = seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000));
    ns.map_or(Value::Null, Value::TimeNs)
}

columns!(FIELDS, read_column, v: TlsHandshake, {
    begin_ts_ns: TimeNs, "ns since 1970", None, "First message of the client, or of the server where that is missing." => Value::TimeNs(v.row.begin_ns);
    handshake_time_ns: SpanNs, "ns", None, "From the first message of the client to its first application data (of TLS 1.3 the end of its handshake counts as such)." => v.row.handshake_ns.map_or(Value::Null, Value::SpanNs);
    client_ip: Ip, "", Some(8), "Address of the client." => Value::Ip(v.row.client.0);
    client_port: Port, "", Some(7), "Port of the client." => Value::Port(v.row.client.1);
    server_ip: Ip, "", Some(12), "Address of the server." => Value::Ip(v.row.server.0);
    server_port: Port, "", Some(11), "Port of the server." => Value::Port(v.row.server.1);
    protocol: Word, "", Some(4), "tcp, or udp: the handshake of QUIC." => Value::Word(v.row.protocol.as_str());
    tls_version: Word, "", None, "Version chosen, or offered where the server chose none." => version(v.row.version);
    cipher_suite: U16, "", None, "Cipher suite chosen: its number." => opt(v.row.suite.map(u64::from));
    cipher: Word, "", None, "Cipher suite chosen, by the name that IANA gives it." => word(v.row.suite.and_then(suite_name));
    group: Word, "", None, "Group of the key exchange that the server chose, by the name that IANA gives it." => word(v.row.group.and_then(group_name));
    sni: Text, "", None, "Server name that the client asked for." => text(v.text.sni);
    alpn: Text, "", None, "Application protocol that the server chose; of TLS 1.3 it is encrypted." => text(v.text.alpn);
    client_alpn: Text, "", None, "Application protocols that the client offered, joined by commas." => text(v.text.client_alpn);
    resumed: U16, "", None, "An earlier session: 0 no, 1 by its id, 2 by ticket or pre-shared key." => Value::U64(u64::from(v.row.resumed));
    established: U16, "", None, "1 where both sides went on to send application data." => Value::U64(u64::from(v.row.is_established));
    ech: U16, "", None, "1 where the client offers an encrypted hello or server name (ECH, ESNI); some clients do so without having one." => Value::U64(u64::from(v.row.has_ech));
    alert: Word, "", None, "Last alert in clear." => word(v.row.alert.map(alert_name));
    subject: Text, "", None, "Subject of the server's certificate; of TLS 1.3 it is encrypted." => text(v.text.subject);
    issuer: Text, "", None, "Issuer of the server's certificate." => text(v.text.issuer);
    names: Text, "", None, "Alternative names of the server's certificate, joined by commas." => text(v.text.names);
    not_before_ns: TimeNs, "ns since 1970", None, "Begin of the validity of the server's certificate." => moment(v.row, |[from, _]| from);
    not_after_ns: TimeNs, "ns since 1970", None, "End of the validity of the server's certificate." => moment(v.row, |[_, to]| to);
    flow_id: U64, "", Some(148), "Names the flow, as in its record." => Value::U64(v.row.flow_id);
    community_id: Text, "", None, "Community ID (version 1, seed 0): the name that other monitors give the flow too." => remembered::community_id(v.row.protocol, [v.row.client, v.row.server]);
    ja4: Text, "", None, "JA4 of the client: fingerprint of what it offers in its ClientHello; empty where that was not seen whole." => text(v.text.ja4);
    uid: Text, "", None, "Name of the connection by its addresses, ports and protocol, for joins with other records; later connections of the same ports have the same." => remembered::uid_of(v.row.protocol, [v.row.client, v.row.server]);
});

impl RecordKind for TlsKind {
    type View<'a> = TlsHandshake<'a>;
    type Batch = TlsBatch;
    const NAME: &'static str = "tls_handshake";
    const VERSION: u16 = 2;
    const ZEEK_PATH: &'static str = "ssl";

    fn fields() -> &'static [Field] {
        FIELDS
    }

    #[inline]
    fn value<'a>(view: &TlsHandshake<'a>, column: usize) -> Value<'a>
    where
        'a: 'a,
    {
        read_column(view, column)
    }

    fn text_line() -> &'static [&'static str] {
        &[
            "client_ip",
            "client_port",
            "server_ip",
            "server_port",
            "begin_ts_ns",
            "handshake_time_ns",
            "tls_version",
            "cipher",
            "sni",
            "alpn",
            "established",
        ]
    }

    fn line() -> &'static [LineCell] {
        const CELLS: &[LineCell] = &[
            LineCell::new("time", 12, Cell::Moment(&["begin_ts_ns"])),
            ENDS,
            LineCell::new("handshake", 9, Cell::Span("handshake_time_ns")),
            LineCell::optional("", 10, Cell::Bar("handshake_time_ns")),
            LineCell::new("version", 7, Cell::First(&["tls_version"])),
            LineCell::new("protocol", 8, Cell::First(&["alpn"])),
            LineCell::new("server name", 20, Cell::First(&["sni"])),
        ];
        CELLS
    }

    fn zeek_columns() -> &'static [(&'static str, ZeekColumn)] {
        const fn column(name: &'static str, kind: &'static str) -> ZeekColumn {
            ZeekColumn { name, kind }
        }
        const COLUMNS: &[(&str, ZeekColumn)] = &[
            ("begin_ts_ns", column("ts", "time")),
            ("uid", column("uid", "string")),
            ("client_ip", column("id.orig_h", "addr")),
            ("client_port", column("id.orig_p", "port")),
            ("server_ip", column("id.resp_h", "addr")),
            ("server_port", column("id.resp_p", "port")),
            ("tls_version", column("version", "string")),
            ("cipher", column("cipher", "string")),
            ("group", column("curve", "string")),
            ("sni", column("server_name", "string")),
            ("resumed", column("resumed", "bool")),
            ("alert", column("last_alert", "string")),
            ("alpn", column("next_protocol", "string")),
            ("established", column("established", "bool")),
            ("", column("ssl_history", "string")),
            ("", column("cert_chain_fps", "vector[string]")),
            ("", column("client_cert_chain_fps", "vector[string]")),
            ("subject", column("subject", "string")),
            ("issuer", column("issuer", "string")),
            ("", column("client_subject", "string")),
            ("", column("client_issuer", "string")),
            ("", column("sni_matches_cert", "bool")),
            // Ours, behind Zeek's.
            ("handshake_time_ns", column("handshake_time", "interval")),
            ("client_alpn", column("client_alpn", "string")),
            ("names", column("san", "string")),
            ("not_before_ns", column("not_valid_before", "time")),
            ("not_after_ns", column("not_valid_after", "time")),
            ("flow_id", column("flow_id", "count")),
            ("community_id", column("community_id", "string")),
            ("ja4", column("ja4", "string")),
        ];
        COLUMNS
    }

    fn time_ns(view: &TlsHandshake<'_>) -> u64 {
        view.row.begin_ns
    }

    #[inline]
    fn endpoints(view: &TlsHandshake<'_>) -> [Endpoint; 2] {
        [view.row.client, view.row.server]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_column() {
        let names: Vec<_> = FIELDS.iter().map(|field| field.name).collect();
        for name in TlsKind::text_line() {
            assert!(names.contains(name), "{name}");
        }
        for (name, _) in TlsKind::zeek_columns() {
            assert!(name.is_empty() || names.contains(name), "{name}");
        }
    }

    #[test]
    fn values_of_a_handshake() {
        let mut batch = TlsBatch::default();
        let row = TlsRow {
            begin_ns: 5,
            version: 0x0303,
            suite: Some(0xc02f),
            group: Some(29),
            alert: Some(48),
            validity: Some([-1, 2]),
            ..TlsRow::default()
        };
        let text = TlsText {
            sni: b"a.example",
            subject: b"CN=a.example",
            ..TlsText::default()
        };
        batch.push(row, &text);
        let view = batch.get(0).unwrap();
        assert_eq!(view.text, text);
        let value = |name: &str| TlsKind::value(&view, TlsKind::column(name).unwrap());
        let suite = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
        assert_eq!(value("cipher"), Value::Word(suite));
        assert_eq!(value("tls_version"), Value::Word("1.2"));
        assert_eq!(value("group"), Value::Word("x25519"));
        assert_eq!(value("alert"), Value::Word("unknown_ca"));
        assert_eq!(value("not_before_ns"), Value::Null);
        assert_eq!(value("not_after_ns"), Value::TimeNs(2_000_000_000));
        assert_eq!(value("issuer"), Value::Null);
    }
}
