//! What application a flow carries: the signatures of `linkweir_proto`, and what is done with the
//! payload of each application.

use linkweir_proto::application::{
    Application, Opening, UdpMemory, Verdict, classify_tcp, classify_udp, has_bittorrent_handshake,
};
use linkweir_proto::http1::{Start, classify};
use linkweir_proto::quic::{Kind, LongHeader};
use linkweir_record::flow::{FlowRow, Protocol};
use linkweir_wire::Side;

use super::handle::Stage;
use super::{Datagram, Ends, Segment};

/// Fills the columns of the label.
pub(super) const fn fill(application: Option<Application>, row: &mut FlowRow) {
    let Some(application) = application else {
        return;
    };
    row.application = application.as_str();
    match row.protocol {
        Protocol::Tcp => {
            row.con_t = application.tstat_con_type();
            row.p2p_t = application.tstat_p2p_type();
        }
        Protocol::Udp => row.con_t = application.tstat_udp_type(),
    }
}

/// What a TCP flow carries, by the first bytes of the side of `segment` and of the other one, in
/// stream order.
pub(super) fn tcp(segment: &Segment<'_>, own: &[u8], other: &[u8]) -> Verdict {
    let (client, server) = match segment.side {
        Side::Client => (own, other),
        Side::Server => (other, own),
    };
    let verdict = classify_tcp(&Opening {
        client,
        server,
        client_port: segment.ends.client.1,
        server_port: segment.ends.server.1,
    });
    if matches!(verdict, Verdict::Is(_) | Verdict::Likely(_)) {
        return verdict;
    }
    // A flow that began before the capture tells itself by a later message.
    if matches!(classify(segment.payload), Start::Request | Start::Response) {
        // The whole line must be one: other protocols have words of HTTP too.
        let alone = classify_tcp(&Opening {
            client: segment.payload,
            server: &[],
            client_port: segment.ends.client.1,
            server_port: segment.ends.server.1,
        });
        if let Verdict::Is(application) | Verdict::Likely(application) = alone {
            return Verdict::Is(application);
        }
    }
    // Peers that first exchange keys and then go on in clear: their first bytes are random.
    if has_bittorrent_handshake(segment.payload) {
        return Verdict::Is(Application::BitTorrent);
    }
    verdict
}

/// What a UDP flow carries, by one datagram more, of which the beginning may be all that was captured.
pub(super) fn udp(
    datagram: &Datagram<'_>,
    side: Side,
    ends: &Ends,
    memory: &mut UdpMemory,
) -> Verdict {
    let Datagram { payload, len, .. } = *datagram;
    // A client that asks for a list of versions has a number that is none; that the datagram has
    // the least length of a first one (RFC 9000 sec. 14.1) tells it from chance.
    if len >= 1200
        && !memory.began_with_stun()
        && LongHeader::parse(payload).is_some_and(|header| header.kind == Kind::Initial)
    {
        return Verdict::Is(Application::Quic);
    }
    let is_from_client = side == Side::Client;
    classify_udp(
        payload,
        is_from_client,
        ends.client.1,
        ends.server.1,
        memory,
    )
}

/// What is done with the payload of a TCP flow.
pub(super) const fn tcp_stage(application: Application) -> Stage {
    match application {
        Application::Http => Stage::Http,
        Application::Tls => Stage::Tls,
        Application::EDonkey => Stage::Ed2k,
        Application::Dns => Stage::Dns,
        _ => Stage::Settled,
    }
}

/// What is done with the datagrams of a UDP flow.
pub(super) const fn udp_stage(application: Application) -> Stage {
    match application {
        Application::Quic => Stage::Quic,
        Application::Dns => Stage::Dns,
        Application::Rtp
        | Application::Rtcp
        | Application::StunRtp
        | Application::StunRtcp
        | Application::StunDtlsRtp
        | Application::StunDtlsRtcp => Stage::Media,
        _ => Stage::Settled,
    }
}
