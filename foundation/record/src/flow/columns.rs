//! The columns of a flow: Tstat's, in Tstat's order and units, and what it does not have.

use crate::flow::quic::{self, Halves, QuicRow};
use crate::flow::row::{Anomaly, Protocol};
use crate::flow::{Evidence, Flow, FlowKind, History};
use crate::remembered;
use crate::schema::{RecordKind as _, Value, columns};

fn flag(is_set: bool) -> Value<'static> {
    Value::U64(u64::from(is_set))
}

fn millis(nanos: Option<u64>) -> Value<'static> {
    nanos.map_or(Value::Null, Value::Millis)
}

fn span(first: Option<u64>, last: Option<u64>) -> Option<u64> {
    Some(last?.saturating_sub(first?))
}

fn text(part: &[u8]) -> Value<'_> {
    if part.is_empty() {
        Value::Null
    } else {
        Value::Text(part)
    }
}

/// A text that only flows of one protocol have in this column.
fn text_of<'a>(flow: &Flow<'_>, protocol: Protocol, part: &'a [u8]) -> Value<'a> {
    if flow.row.protocol == protocol {
        text(part)
    } else {
        Value::Null
    }
}

fn application(name: &'static str) -> &'static str {
    if name.is_empty() { "unknown" } else { name }
}

fn evidence(set: u8) -> Value<'static> {
    if set == 0 {
        Value::Null
    } else {
        Value::Word(Evidence::words(set))
    }
}

fn history(of: History) -> Value<'static> {
    if of.is_empty() {
        Value::Null
    } else {
        Value::Short(of.text())
    }
}

columns!(FIELDS, read_column, v: Flow, {
    c_ip: Ip, "", Some(8), "Address of the client." => Value::Ip(v.row.client.ip);
    c_port: Port, "", Some(7), "Port of the client." => Value::Port(v.row.client.port);
    c_pkts_all: U64, "packets", None, "Packets from the client." => Value::U64(v.row.client.pkts_all);
    c_rst_cnt: U64, "packets", None, "Packets with RST from the client." => Value::U64(v.row.client.rst_cnt);
    c_ack_cnt: U64, "packets", None, "Packets with ACK from the client." => Value::U64(v.row.client.ack_cnt);
    c_ack_cnt_p: U64, "packets", None, "Pure ACKs from the client: no payload, SYN, FIN or RST." => Value::U64(v.row.client.ack_cnt_p);
    c_bytes_uniq: U64, "bytes", None, "Payload from the client, each byte once." => Value::U64(v.row.client.bytes_uniq);
    c_pkts_data: U64, "packets", None, "Packets with payload from the client." => Value::U64(v.row.client.pkts_data);
    c_bytes_all: U64, "bytes", None, "Payload from the client, with retransmissions." => Value::U64(v.row.client.bytes_all);
    c_pkts_retx: U64, "packets", None, "Packets from the client with bytes seen before." => Value::U64(v.row.client.pkts_retx);
    c_bytes_retx: U64, "bytes", None, "Payload from the client seen before." => Value::U64(v.row.client.bytes_retx);
    c_pkts_ooo: U64, "packets", None, "Packets from the client that came after later ones." => Value::U64(v.row.client.pkts_ooo);
    c_syn_cnt: U64, "packets", None, "Packets with SYN from the client." => Value::U64(v.row.client.syn_cnt);
    c_fin_cnt: U64, "packets", None, "Packets with FIN from the client." => Value::U64(v.row.client.fin_cnt);
    s_ip: Ip, "", Some(12), "Address of the server." => Value::Ip(v.row.server.ip);
    s_port: Port, "", Some(11), "Port of the server." => Value::Port(v.row.server.port);
    s_pkts_all: U64, "packets", None, "Packets from the server." => Value::U64(v.row.server.pkts_all);
    s_rst_cnt: U64, "packets", None, "Packets with RST from the server." => Value::U64(v.row.server.rst_cnt);
    s_ack_cnt: U64, "packets", None, "Packets with ACK from the server." => Value::U64(v.row.server.ack_cnt);
    s_ack_cnt_p: U64, "packets", None, "Pure ACKs from the server: no payload, SYN, FIN or RST." => Value::U64(v.row.server.ack_cnt_p);
    s_bytes_uniq: U64, "bytes", None, "Payload from the server, each byte once." => Value::U64(v.row.server.bytes_uniq);
    s_pkts_data: U64, "packets", None, "Packets with payload from the server." => Value::U64(v.row.server.pkts_data);
    s_bytes_all: U64, "bytes", None, "Payload from the server, with retransmissions." => Value::U64(v.row.server.bytes_all);
    s_pkts_retx: U64, "packets", None, "Packets from the server with bytes seen before." => Value::U64(v.row.server.pkts_retx);
    s_bytes_retx: U64, "bytes", None, "Payload from the server seen before." => Value::U64(v.row.server.bytes_retx);
    s_pkts_ooo: U64, "packets", None, "Packets from the server that came after later ones." => Value::U64(v.row.server.pkts_ooo);
    s_syn_cnt: U64, "packets", None, "Packets with SYN from the server." => Value::U64(v.row.server.syn_cnt);
    s_fin_cnt: U64, "packets", None, "Packets with FIN from the server." => Value::U64(v.row.server.fin_cnt);
    first: TimeMillis, "ms since 1970", Some(323), "First packet of the flow, of a partial record of its period." => Value::Millis(v.row.first_ns);
    last: TimeMillis, "ms since 1970", None, "Last packet." => Value::Millis(v.row.last_ns);
    durat: Millis, "ms", None, "First to last packet." => Value::Millis(v.row.duration_ns());
    c_first: Millis, "ms", None, "First payload of the client, since the first packet of the flow." => millis(v.row.client.first_ns);
    s_first: Millis, "ms", None, "First payload of the server, since the first packet of the flow." => millis(v.row.server.first_ns);
    c_last: Millis, "ms", None, "Last payload of the client, since the first packet of the flow." => millis(v.row.client.last_ns);
    s_last: Millis, "ms", None, "Last payload of the server, since the first packet of the flow." => millis(v.row.server.last_ns);
    c_first_ack: Millis, "ms", None, "First ACK without SYN of the client, since the first packet of the flow." => millis(v.row.client.first_ack_ns);
    s_first_ack: Millis, "ms", None, "First ACK without SYN of the server, since the first packet of the flow." => millis(v.row.server.first_ack_ns);
    c_isint: U64, "", None, "1 where the address of the client is internal." => flag(v.row.client.is_internal);
    s_isint: U64, "", None, "1 where the address of the server is internal." => flag(v.row.server.is_internal);
    c_iscrypto: U64, "", None, "1 where the address of the client was replaced (--anonymize)." => flag(v.row.client.is_encrypted);
    s_iscrypto: U64, "", None, "1 where the address of the server was replaced (--anonymize)." => flag(v.row.server.is_encrypted);
    con_t: U64, "", None, "Application protocols as Tstat's bit mask." => Value::U64(u64::from(v.row.con_t));
    p2p_t: U64, "", None, "Peer-to-peer protocol as Tstat's number." => Value::U64(u64::from(v.row.p2p_t));
    http_t: U64, "", None, "Class of the first HTTP request as Tstat's number and one: 1 GET, 2 POST, others by the domain of the host." => Value::U64(u64::from(v.row.http_t));
    c_rtt_avg: Millis, "ms", None, "Mean round-trip time between the capture point and the server, of what the client sent." => Value::Millis(v.row.client.rtt.avg_ns);
    c_rtt_min: Millis, "ms", None, "Smallest round-trip time between the capture point and the server, of what the client sent." => Value::Millis(v.row.client.rtt.min_ns);
    c_rtt_max: Millis, "ms", None, "Largest round-trip time between the capture point and the server, of what the client sent." => Value::Millis(v.row.client.rtt.max_ns);
    c_rtt_std: Millis, "ms", None, "Standard deviation of the round-trip time between the capture point and the server, of what the client sent." => Value::Millis(v.row.client.rtt.std_ns);
    c_rtt_cnt: U64, "", None, "Samples of that round-trip time." => Value::U64(u64::from(v.row.client.rtt.count));
    c_ttl_min: U64, "hops", Some(52), "Smallest time to live or hop limit from the client." => Value::U64(u64::from(v.row.client.ttl_min));
    c_ttl_max: U64, "hops", Some(53), "Largest time to live or hop limit from the client." => Value::U64(u64::from(v.row.client.ttl_max));
    s_rtt_avg: Millis, "ms", None, "Mean round-trip time between the capture point and the client, of what the server sent." => Value::Millis(v.row.server.rtt.avg_ns);
    s_rtt_min: Millis, "ms", None, "Smallest round-trip time between the capture point and the client, of what the server sent." => Value::Millis(v.row.server.rtt.min_ns);
    s_rtt_max: Millis, "ms", None, "Largest round-trip time between the capture point and the client, of what the server sent." => Value::Millis(v.row.server.rtt.max_ns);
    s_rtt_std: Millis, "ms", None, "Standard deviation of the round-trip time between the capture point and the client, of what the server sent." => Value::Millis(v.row.server.rtt.std_ns);
    s_rtt_cnt: U64, "", None, "Samples of that round-trip time." => Value::U64(u64::from(v.row.server.rtt.count));
    s_ttl_min: U64, "hops", None, "Smallest time to live or hop limit from the server." => Value::U64(u64::from(v.row.server.ttl_min));
    s_ttl_max: U64, "hops", None, "Largest time to live or hop limit from the server." => Value::U64(u64::from(v.row.server.ttl_max));
    p2p_st: U64, "", None, "Kind of peer-to-peer message as Tstat's number; always 0: it is of the last command that Tstat's search found." => Value::U64(u64::from(v.row.p2p_st));
    ed2k_data: U64, "messages", None, "eDonkey messages: data." => Value::U64(u64::from(v.row.ed2k[0]));
    ed2k_sig: U64, "messages", None, "eDonkey messages: signalling." => Value::U64(u64::from(v.row.ed2k[1]));
    ed2k_c2s: U64, "messages", None, "eDonkey messages: client to server." => Value::U64(u64::from(v.row.ed2k[2]));
    ed2k_c2c: U64, "messages", None, "eDonkey messages: client to client." => Value::U64(u64::from(v.row.ed2k[3]));
    ed2k_chat: U64, "messages", None, "eDonkey messages: chat." => Value::U64(u64::from(v.row.ed2k[4]));
    c_f1323_opt: U64, "", None, "1 where the client offered window scaling." => flag(v.row.client.has_window_scale);
    c_tm_opt: U64, "", None, "1 where the client sent timestamps." => flag(v.row.client.has_timestamps);
    c_win_scl: U64, "bits", None, "Window scale of the client: a shift." => Value::U64(u64::from(v.row.client.window_scale));
    c_sack_opt: U64, "", None, "1 where the client offered selective acknowledgments." => flag(v.row.client.has_sack);
    c_sack_cnt: U64, "packets", None, "Packets with selective acknowledgments from the client." => Value::U64(v.row.client.sack_cnt);
    c_mss: U64, "bytes", None, "Maximum segment size that the client announced." => Value::U64(u64::from(v.row.client.mss));
    c_mss_max: U64, "bytes", None, "Longest payload of the client." => Value::U64(u64::from(v.row.client.mss_max));
    c_mss_min: U64, "bytes", None, "Shortest payload of the client." => Value::U64(u64::from(v.row.client.mss_min));
    c_win_max: U64, "bytes", None, "Largest window that the client announced, scaled." => Value::U64(u64::from(v.row.client.win_max));
    c_win_min: U64, "bytes", None, "Smallest window but zero that the client announced, scaled." => Value::U64(u64::from(v.row.client.win_min));
    c_win_0: U64, "packets", None, "Packets from the client that announced a window of zero." => Value::U64(v.row.client.win_0);
    c_cwin_max: U64, "bytes", None, "Most bytes in flight from the client." => Value::U64(u64::from(v.row.client.cwin_max));
    c_cwin_min: U64, "bytes", None, "Fewest bytes in flight from the client, but zero." => Value::U64(u64::from(v.row.client.cwin_min));
    c_cwin_ini: U64, "bytes", None, "Bytes in flight from the client before the first acknowledgment." => Value::U64(u64::from(v.row.client.cwin_ini));
    c_pkts_rto: U64, "packets", None, "Segments of the client retransmitted by the timer." => Value::U64(v.row.client.anomaly(Anomaly::Rto));
    c_pkts_fs: U64, "packets", None, "Segments of the client fast-retransmitted." => Value::U64(v.row.client.anomaly(Anomaly::FastRetransmit));
    c_pkts_reor: U64, "packets", None, "Segments of the client reordered by the network." => Value::U64(v.row.client.anomaly(Anomaly::Reordering));
    c_pkts_dup: U64, "packets", None, "Segments of the client duplicated by the network." => Value::U64(v.row.client.anomaly(Anomaly::NetworkDuplicate));
    c_pkts_unk: U64, "packets", None, "Segments of the client out of sequence for no known reason." => Value::U64(v.row.client.anomaly(Anomaly::Unknown));
    c_pkts_fc: U64, "packets", None, "Segments of the client probing a closed window or keeping alive." => Value::U64(v.row.client.anomaly(Anomaly::FlowControl));
    c_pkts_unrto: U64, "packets", None, "Segments of the client retransmitted by the timer though received." => Value::U64(v.row.client.anomaly(Anomaly::UnnecessaryRto));
    c_pkts_unfs: U64, "packets", None, "Segments of the client fast-retransmitted though received." => Value::U64(v.row.client.anomaly(Anomaly::UnnecessaryFastRetransmit));
    c_syn_retx: U64, "packets", None, "Retransmitted SYNs of the client." => Value::U64(v.row.client.syn_retx);
    s_f1323_opt: U64, "", None, "1 where the server offered window scaling." => flag(v.row.server.has_window_scale);
    s_tm_opt: U64, "", None, "1 where the server sent timestamps." => flag(v.row.server.has_timestamps);
    s_win_scl: U64, "bits", None, "Window scale of the server: a shift." => Value::U64(u64::from(v.row.server.window_scale));
    s_sack_opt: U64, "", None, "1 where the server offered selective acknowledgments." => flag(v.row.server.has_sack);
    s_sack_cnt: U64, "packets", None, "Packets with selective acknowledgments from the server." => Value::U64(v.row.server.sack_cnt);
    s_mss: U64, "bytes", None, "Maximum segment size that the server announced." => Value::U64(u64::from(v.row.server.mss));
    s_mss_max: U64, "bytes", None, "Longest payload of the server." => Value::U64(u64::from(v.row.server.mss_max));
    s_mss_min: U64, "bytes", None, "Shortest payload of the server." => Value::U64(u64::from(v.row.server.mss_min));
    s_win_max: U64, "bytes", None, "Largest window that the server announced, scaled." => Value::U64(u64::from(v.row.server.win_max));
    s_win_min: U64, "bytes", None, "Smallest window but zero that the server announced, scaled." => Value::U64(u64::from(v.row.server.win_min));
    s_win_0: U64, "packets", None, "Packets from the server that announced a window of zero." => Value::U64(v.row.server.win_0);
    s_cwin_max: U64, "bytes", None, "Most bytes in flight from the server." => Value::U64(u64::from(v.row.server.cwin_max));
    s_cwin_min: U64, "bytes", None, "Fewest bytes in flight from the server, but zero." => Value::U64(u64::from(v.row.server.cwin_min));
    s_cwin_ini: U64, "bytes", None, "Bytes in flight from the server before the first acknowledgment." => Value::U64(u64::from(v.row.server.cwin_ini));
    s_pkts_rto: U64, "packets", None, "Segments of the server retransmitted by the timer." => Value::U64(v.row.server.anomaly(Anomaly::Rto));
    s_pkts_fs: U64, "packets", None, "Segments of the server fast-retransmitted." => Value::U64(v.row.server.anomaly(Anomaly::FastRetransmit));
    s_pkts_reor: U64, "packets", None, "Segments of the server reordered by the network." => Value::U64(v.row.server.anomaly(Anomaly::Reordering));
    s_pkts_dup: U64, "packets", None, "Segments of the server duplicated by the network." => Value::U64(v.row.server.anomaly(Anomaly::NetworkDuplicate));
    s_pkts_unk: U64, "packets", None, "Segments of the server out of sequence for no known reason." => Value::U64(v.row.server.anomaly(Anomaly::Unknown));
    s_pkts_fc: U64, "packets", None, "Segments of the server probing a closed window or keeping alive." => Value::U64(v.row.server.anomaly(Anomaly::FlowControl));
    s_pkts_unrto: U64, "packets", None, "Segments of the server retransmitted by the timer though received." => Value::U64(v.row.server.anomaly(Anomaly::UnnecessaryRto));
    s_pkts_unfs: U64, "packets", None, "Segments of the server fast-retransmitted though received." => Value::U64(v.row.server.anomaly(Anomaly::UnnecessaryFastRetransmit));
    s_syn_retx: U64, "packets", None, "Retransmitted SYNs of the server." => Value::U64(v.row.server.syn_retx);
    http_req_cnt: U64, "", None, "HTTP requests." => Value::U64(u64::from(v.row.http_requests));
    http_res_cnt: U64, "", None, "HTTP responses." => Value::U64(u64::from(v.row.http_responses));
    http_res: U64, "", None, "Status code of the first HTTP response; 0 where there is none." => Value::U64(u64::from(v.row.http_status));
    c_pkts_push: U64, "packets", None, "Packets with payload and PSH from the client." => Value::U64(v.row.client.pkts_push);
    s_pkts_push: U64, "packets", None, "Packets with payload and PSH from the server." => Value::U64(v.row.server.pkts_push);
    c_tls_SNI: Text, "", None, "Server name of the TLS ClientHello." => text_of(v, Protocol::Tcp, v.text.sni);
    s_tls_SCN: Text, "", None, "Common name of the server's certificate." => text(v.text.certificate_name);
    c_npnalpn: Text, "", None, "Application protocols that the client offered." => text(v.text.client_alpn);
    s_npnalpn: Text, "", None, "Application protocol that the server chose." => text(v.text.server_alpn);
    tls_session_stat: U64, "", None, "TLS session: 0 new, 1 resumed by id, 2 by ticket or pre-shared key." => Value::U64(u64::from(v.row.tls_session));
    c_last_handshakeT: Millis, "ms", None, "Last packet of the TLS handshake from the client, since the first packet of the flow." => millis(v.row.client.last_handshake_ns);
    s_last_handshakeT: Millis, "ms", None, "Last packet of the TLS handshake from the server, since the first packet of the flow." => millis(v.row.server.last_handshake_ns);
    c_appdataT: Millis, "ms", None, "First TLS application data from the client, since the first packet of the flow." => millis(v.row.client.appdata_ns);
    s_appdataT: Millis, "ms", None, "First TLS application data from the server, since the first packet of the flow." => millis(v.row.server.appdata_ns);
    c_appdataB: U64, "bytes", None, "TLS application data from the client." => Value::U64(v.row.client.appdata_bytes);
    s_appdataB: U64, "bytes", None, "TLS application data from the server." => Value::U64(v.row.server.appdata_bytes);
    fqdn: Text, "", None, "Name that the client last resolved to the address of the server." => text(v.text.fqdn);
    dns_rslv: Ip, "", None, "Resolver that named the server." => v.row.dns_resolver.map_or(Value::Null, Value::Ip);
    req_tm: TimeMillis, "ms since 1970", None, "When the client asked for the name." => millis(v.row.dns_request_ns);
    res_tm: TimeMillis, "ms since 1970", None, "When the name was answered." => millis(v.row.dns_response_ns);
    http_hostname: Text, "", None, "Host of the first HTTP request." => text(v.text.http_host);
    c_TLSvers: Word, "", None, "TLS version of the client, for example 1.3." => crate::tls::version(v.row.client.tls_version);
    s_TLSvers: Word, "", None, "TLS version of the server, for example 1.3." => crate::tls::version(v.row.server.tls_version);
    dns_enc: U64, "", None, "1 where the address of the resolver was replaced." => flag(v.row.client.is_encrypted && v.row.dns_resolver.is_some());
    c_first_abs: TimeMillis, "ms", None, "First packet of the client, since 1970." => millis(v.row.client.first_packet_ns);
    c_durat: Millis, "ms", None, "First to last packet of the client." => millis(span(v.row.client.first_packet_ns, v.row.client.last_packet_ns));
    c_type: U64, "", None, "Tstat's number of the application protocol." => Value::U64(u64::from(v.row.con_t));
    s_first_abs: TimeMillis, "ms", None, "First packet of the server, since 1970." => millis(v.row.server.first_packet_ns);
    s_durat: Millis, "ms", None, "First to last packet of the server." => millis(span(v.row.server.first_packet_ns, v.row.server.last_packet_ns));
    s_type: U64, "", None, "Tstat's number of the application protocol." => Value::U64(u64::from(v.row.con_t));
    quic_SNI: Text, "", None, "Server name of the QUIC ClientHello." => text_of(v, Protocol::Udp, v.text.sni);
    quic_UA: Text, "", None, "User agent in the transport parameters of QUIC." => text(v.text.quic_user_agent);
    quic_c_vers: U64, "", None, "QUIC version of the client." => Value::U64(u64::from(v.row.client.quic_version));
    quic_s_vers: U64, "", None, "QUIC version of the server." => Value::U64(u64::from(v.row.server.quic_version));
    quic_zero_rtt: U64, "", None, "1 where 0-RTT packets were seen." => flag(v.row.has_zero_rtt);
    quic_ech: U64, "", None, "1 where the ClientHello had the extension of an encrypted one." => flag(v.row.has_ech);
    protocol: Word, "", Some(4), "tcp or udp." => Value::Word(v.row.protocol.as_str());
    record: Word, "", None, "final, or partial (--periodic): what was added since the record before." => Value::Word(v.row.extent.as_str());
    state: Word, "", None, "closed, reset, idle, unanswered (only SYNs), open (when the input ended), evicted or reused." => Value::Word(v.row.state.as_str());
    conn_state: Word, "", None, "The state in Zeek's words: S0, S1, S2, S3, SF, REJ, RSTO, RSTR, RSTOS0, RSTRH, SH, SHR or OTH." => Value::Word(v.row.conn_state());
    has_syn: U64, "", None, "1 where the first SYN of the connection was seen; 0 for flows that were met in the middle." => flag(v.row.has_syn);
    flow_id: U64, "", Some(148), "Names the flow in all of its records." => Value::U64(v.row.flow_id);
    vlan: U16, "", Some(58), "Outermost VLAN id." => v.row.vlan.map_or(Value::Null, |id| Value::U64(u64::from(id)));
    application: Word, "", Some(96), "Application protocol; unknown where nothing was recognised. Of a UDP flow that begins with STUN also what follows, joined by commas: stun,dtls,rtp." => Value::Word(application(v.row.application));
    sni: Text, "", None, "Server name of the ClientHello, of TLS or QUIC." => text(v.text.sni);
    classifier_evidence: Word, "", None, "What decided the classes of out-of-sequence segments, joined by commas." => evidence(v.row.evidence);
    c_pkts_tlp: U64, "packets", None, "Segments of the client that are tail loss probes." => Value::U64(v.row.client.anomaly(Anomaly::TailLossProbe));
    s_pkts_tlp: U64, "packets", None, "Segments of the server that are tail loss probes." => Value::U64(v.row.server.anomaly(Anomaly::TailLossProbe));
    c_dup_acks: U64, "packets", None, "Duplicate ACKs from the client." => Value::U64(v.row.client.dup_acks);
    s_dup_acks: U64, "packets", None, "Duplicate ACKs from the server." => Value::U64(v.row.server.dup_acks);
    c_ip_bytes: U64, "bytes", None, "Bytes of IP packets from the client, headers included." => Value::U64(v.row.client.ip_bytes);
    s_ip_bytes: U64, "bytes", None, "Bytes of IP packets from the server, headers included." => Value::U64(v.row.server.ip_bytes);
    syn_ack: Millis, "ms", None, "SYN to SYN-ACK." => millis(v.row.syn_ack_ns);
    ack_dat: Millis, "ms", None, "SYN-ACK to the first ACK of the client." => millis(v.row.ack_dat_ns);
    community_id: Text, "", None, "Community ID (version 1, seed 0): the name that other monitors give the flow too." => remembered::community_id(v.row.protocol, FlowKind::endpoints(v));
    ja4: Text, "", None, "JA4 of the client: fingerprint of what it offers in its ClientHello; empty where that was not seen whole." => text(v.text.ja4);
    uid: Text, "", None, "Name of the connection by its addresses, ports and protocol, for joins with other records; later connections of the same ports have the same." => remembered::uid_of(v.row.protocol, FlowKind::endpoints(v));
    history: Text, "", None, "What happened for the first time, in Zeek's letters and in order: S SYN, H SYN-ACK, A ACK alone, D payload, F FIN, R RST, T retransmission, W window of zero, G gap; upper case from the client, lower case from the server; ^ first where the first packet came from the server." => history(v.row.history);
    missed_bytes: U64, "bytes", None, "Payload that the capture missed: gaps in the sequence numbers of both sides." => Value::U64(v.row.client.missed_bytes + v.row.server.missed_bytes);
    client_country: Text, "", None, "Country of the address of the client (--geoip), by its two letters (ISO 3166-1)." => v.row.client.place.country();
    client_asn: U32, "", None, "Number of the autonomous system of the client (--geoip)." => v.row.client.place.asn();
    server_country: Text, "", None, "Country of the address of the server (--geoip)." => v.row.server.place.country();
    server_asn: U32, "", None, "Number of the autonomous system of the server (--geoip)." => v.row.server.place.asn();
    quic_rtt_ns: SpanNs, "ns", None, "Round-trip time of the QUIC handshake, processing of both ends included: the sum of the next two." => quic::span(v, QuicRow::rtt_ns);
    c_quic_rtt_ns: SpanNs, "ns", None, "The client's Initial packet to the server's first one: between the capture point and the server." => quic::span(v, |quic| quic.initial_ns);
    s_quic_rtt_ns: SpanNs, "ns", None, "The server's first Handshake packet to the client's first one: between the capture point and the client." => quic::span(v, |quic| quic.handshake_ns);
    spin_rtt_ns: SpanNs, "ns", None, "Smallest round-trip time by the spin bit of QUIC; empty unless spin_valid is ok." => quic::span(v, |quic| quic.spin.map(Halves::sum));
    c_spin_rtt_ns: SpanNs, "ns", None, "The part of spin_rtt_ns between the capture point and the server." => quic::span(v, |quic| quic.spin.map(|spin| spin.server_ns));
    s_spin_rtt_ns: SpanNs, "ns", None, "The part of spin_rtt_ns between the capture point and the client." => quic::span(v, |quic| quic.spin.map(|spin| spin.client_ns));
    spin_rtt_cnt: U64, "", None, "Samples of the round-trip time by the spin bit." => quic::count(v, |quic| quic.spin_count);
    spin_valid: Word, "", None, "What the spin bit is worth: off (a side never changes it), random, app_limited (its period is that of the application) or ok; empty where that cannot be decided." => quic::verdict(v);
    quic_retries: U64, "packets", None, "Retry packets of a QUIC server." => quic::count(v, |quic| quic.retries);
    quic_version_negotiations: U64, "packets", None, "Version Negotiation packets of a QUIC server." => quic::count(v, |quic| quic.version_negotiations);
    quic_migrated: U64, "", None, "1 where the flow continues a QUIC connection from another address or port of the client, as its connection id shows." => quic::count(v, |quic| u32::from(quic.is_migrated));
});
