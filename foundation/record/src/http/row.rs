//! The numbers of a transaction.

use std::net::{IpAddr, Ipv6Addr};

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpState {
    /// Request and final response were paired.
    #[default]
    Complete,
    /// No response was matched to this request.
    Unanswered,
    /// No request was matched to this response.
    Orphan,
}

impl HttpState {
    /// The word in the `state` field.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Unanswered => "unanswered",
            Self::Orphan => "orphan",
        }
    }
}

/// The numbers of a transaction: everything of fixed size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpRow {
    /// Who sent the request; IPv4 as the mapped address.
    pub client_ip: IpAddr,
    /// Who sent the response.
    pub server_ip: IpAddr,
    /// Time of the first packet of the request, nanoseconds since the epoch.
    pub request_ts_ns: Option<u64>,
    /// Time of the first packet of the final response, nanoseconds since the epoch.
    pub response_ts_ns: Option<u64>,
    /// Time from the first packet of the request to the packet of the response's last byte.
    pub ttlb_ns: Option<u64>,
    /// Head and declared body of the request.
    pub request_bytes: Option<u64>,
    /// Head and declared body of the final response.
    pub response_bytes: Option<u64>,
    /// Symmetric hash of the 4-tuple.
    pub flow_hash: u32,
    /// Round trip from the capture to the server, by the handshake of the connection.
    pub rtt_ns: Option<u32>,
    /// TCP port of the client.
    pub client_port: u16,
    /// TCP port of the server.
    pub server_port: u16,
    /// Status code of the final response.
    pub status_code: Option<u16>,
    /// Interim (1xx) responses before the final one.
    pub interim_responses: u16,
    /// Retransmitted heads of this transaction seen before the record was written.
    pub retransmissions: u16,
    /// Outermost VLAN id.
    pub vlan: Option<u16>,
    /// HTTP version of the response, of the request where there is no response: major and minor; zeros where it is not
    /// known.
    pub version: (u8, u8),
    /// What became of it.
    pub state: HttpState,
}

impl Default for HttpRow {
    fn default() -> Self {
        Self {
            client_ip: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            server_ip: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            request_ts_ns: None,
            response_ts_ns: None,
            ttlb_ns: None,
            request_bytes: None,
            response_bytes: None,
            flow_hash: 0,
            rtt_ns: None,
            client_port: 0,
            server_port: 0,
            status_code: None,
            interim_responses: 0,
            retransmissions: 0,
            vlan: None,
            version: (1, 1),
            state: HttpState::Complete,
        }
    }
}

impl HttpRow {
    /// Nanoseconds from the first packet of the request to the first packet of the final response.
    ///
    /// Zero where the capture saw them the other way round.
    #[must_use]
    pub fn response_time_ns(&self) -> Option<u64> {
        Some(self.response_ts_ns?.saturating_sub(self.request_ts_ns?))
    }

    /// What of the response time is not the network between the capture and the server, nanoseconds: the rest of the request,
    /// where it has content, and the server. `None` where the round trip of the handshake took longer than the response.
    #[must_use]
    pub fn server_time_ns(&self) -> Option<u64> {
        let rtt_ns = u64::from(self.rtt_ns?);
        self.response_time_ns()?.checked_sub(rtt_ns)
    }
}
