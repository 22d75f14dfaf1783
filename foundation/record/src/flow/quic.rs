//! What a flow of QUIC shows of its round trips and of its path, without keys.

use super::Flow;
use crate::schema::Value;

/// Whether the spin bit of a flow (RFC 9000 sec. 17.4) gives its round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SpinVerdict {
    /// A side never changes it: it takes no part.
    Off,
    /// It changes by chance, from packet to packet.
    Random,
    /// It spins, but the sides wait before they send: a turn is longer than the round trip.
    AppLimited,
    /// It spins with the round trip.
    Ok,
}

impl SpinVerdict {
    /// The word in the `spin_valid` field.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Random => "random",
            Self::AppLimited => "app_limited",
            Self::Ok => "ok",
        }
    }
}

/// Both halves of one round trip, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Halves {
    /// From the capture point to the server and back.
    pub server_ns: u64,
    /// From the capture point to the client and back.
    pub client_ns: u64,
}

impl Halves {
    /// The whole of it.
    #[must_use]
    pub const fn sum(self) -> u64 {
        self.server_ns.saturating_add(self.client_ns)
    }
}

/// What is known of a flow of QUIC beside its versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicRow {
    /// The client's Initial to the server's first one, nanoseconds.
    pub initial_ns: Option<u64>,
    /// The server's first Handshake packet to the client's first one, nanoseconds.
    pub handshake_ns: Option<u64>,
    /// The shortest turn of the spin bit; only where the verdict is [`SpinVerdict::Ok`].
    pub spin: Option<Halves>,
    /// Turns that were measured, whatever the verdict.
    pub spin_count: u32,
    /// What the spin bit is worth, where that is known.
    pub spin_verdict: Option<SpinVerdict>,
    /// Retry packets of the server.
    pub retries: u32,
    /// Version Negotiation packets of the server.
    pub version_negotiations: u32,
    /// Whether it continues a connection that had another address or port of the client.
    pub is_migrated: bool,
}

impl QuicRow {
    /// The round-trip time of the handshake, where both halves of it were seen.
    #[must_use]
    pub fn rtt_ns(&self) -> Option<u64> {
        Some(self.initial_ns?.saturating_add(self.handshake_ns?))
    }

    /// Takes the counters of an earlier moment off: what was added since.
    pub const fn subtract(&mut self, before: &Self) {
        self.spin_count = self.spin_count.saturating_sub(before.spin_count);
        self.retries = self.retries.saturating_sub(before.retries);
        self.version_negotiations = self
            .version_negotiations
            .saturating_sub(before.version_negotiations);
    }
}

/// A time of a flow of QUIC.
pub(super) fn span(v: &Flow<'_>, of: impl FnOnce(&QuicRow) -> Option<u64>) -> Value<'static> {
    let value = v.row.quic.as_ref().and_then(of);
    value.map_or(Value::Null, Value::SpanNs)
}

/// A count of a flow of QUIC.
pub(super) fn count(v: &Flow<'_>, of: impl FnOnce(&QuicRow) -> u32) -> Value<'static> {
    let value = v.row.quic.as_ref().map(of);
    value.map_or(Value::Null, |count| Value::U64(u64::from(count)))
}

/// What the spin bit of a flow of QUIC is worth.
pub(super) fn verdict(v: &Flow<'_>) -> Value<'static> {
    let verdict = v.row.quic.as_ref().and_then(|quic| quic.spin_verdict);
    verdict.map_or(Value::Null, |verdict| Value::Word(verdict.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{FlowBatch, FlowKind, FlowRow, FlowText};
    use crate::schema::{RecordBatch, RecordKind};

    #[test]
    fn columns_are_empty_but_of_quic() {
        let mut batch = FlowBatch::default();
        batch.push(FlowRow::default(), &FlowText::default());
        let quic = QuicRow {
            initial_ns: Some(30),
            handshake_ns: Some(4),
            spin: Some(Halves {
                server_ns: 20,
                client_ns: 3,
            }),
            spin_count: 7,
            spin_verdict: Some(SpinVerdict::Ok),
            retries: 1,
            version_negotiations: 0,
            is_migrated: true,
        };
        let row = FlowRow {
            quic: Some(quic),
            ..FlowRow::default()
        };
        batch.push(row, &FlowText::default());
        let expected = [
            ("quic_rtt_ns", Value::SpanNs(34)),
            ("c_quic_rtt_ns", Value::SpanNs(30)),
            ("s_quic_rtt_ns", Value::SpanNs(4)),
            ("spin_rtt_ns", Value::SpanNs(23)),
            ("c_spin_rtt_ns", Value::SpanNs(20)),
            ("s_spin_rtt_ns", Value::SpanNs(3)),
            ("spin_rtt_cnt", Value::U64(7)),
            ("spin_valid", Value::Word("ok")),
            ("quic_retries", Value::U64(1)),
            ("quic_version_negotiations", Value::U64(0)),
            ("quic_migrated", Value::U64(1)),
        ];
        for (name, value) in expected {
            let column = FlowKind::column(name).unwrap();
            let [plain, quic] = [0, 1].map(|at| batch.get(at).unwrap());
            assert_eq!(FlowKind::value(&plain, column), Value::Null, "{name}");
            assert_eq!(FlowKind::value(&quic, column), value, "{name}");
        }
    }

    #[test]
    fn parts_of_a_flow_add_up() {
        let before = QuicRow {
            spin_count: 3,
            retries: 1,
            ..QuicRow::default()
        };
        let mut now = QuicRow {
            spin_count: 10,
            retries: 1,
            version_negotiations: 2,
            initial_ns: Some(5),
            ..QuicRow::default()
        };
        now.subtract(&before);
        assert_eq!(
            (now.spin_count, now.retries, now.version_negotiations),
            (7, 0, 2)
        );
        assert_eq!((now.initial_ns, now.rtt_ns()), (Some(5), None));
    }
}
