//! Records of a part of a flow, so that long ones are seen before they end.

use linkweir_record::flow::{FlowRow, FlowSide, QuicRow};

/// What was already written of a flow, to make records of parts.
#[derive(Debug, Clone, Default)]
pub(crate) struct PartialState {
    /// When the current period began, nanoseconds since the epoch.
    pub(crate) since: u64,
    /// The numbers at that moment.
    client: FlowSide,
    server: FlowSide,
    http_requests: u32,
    http_responses: u32,
    quic: QuicRow,
}

impl PartialState {
    pub(crate) fn begin(start_ns: u64) -> Self {
        Self {
            since: start_ns,
            ..Self::default()
        }
    }

    /// Whether the flow has moved since.
    pub(crate) const fn has_news(&self, row: &FlowRow) -> bool {
        row.client.pkts_all > self.client.pkts_all || row.server.pkts_all > self.server.pkts_all
    }

    /// Makes a record of the whole flow so far one of what was added, and remembers it.
    pub(crate) fn take(&mut self, row: &mut FlowRow, next_ns: u64) {
        let whole = (
            row.client,
            row.server,
            row.http_requests,
            row.http_responses,
        );
        subtract(&mut row.client, &self.client);
        subtract(&mut row.server, &self.server);
        row.http_requests -= self.http_requests.min(row.http_requests);
        row.http_responses -= self.http_responses.min(row.http_responses);
        row.first_ns = self.since;
        (self.client, self.server) = (whole.0, whole.1);
        (self.http_requests, self.http_responses) = (whole.2, whole.3);
        if let Some(quic) = &mut row.quic {
            let whole = *quic;
            quic.subtract(&self.quic);
            self.quic = whole;
        }
        self.since = next_ns;
    }
}

/// Counters become differences; minima, maxima, times and options stay those of the flow so far.
fn subtract(side: &mut FlowSide, written: &FlowSide) {
    for (now, before) in [
        (&mut side.pkts_all, written.pkts_all),
        (&mut side.rst_cnt, written.rst_cnt),
        (&mut side.ack_cnt, written.ack_cnt),
        (&mut side.ack_cnt_p, written.ack_cnt_p),
        (&mut side.bytes_uniq, written.bytes_uniq),
        (&mut side.missed_bytes, written.missed_bytes),
        (&mut side.pkts_data, written.pkts_data),
        (&mut side.bytes_all, written.bytes_all),
        (&mut side.pkts_retx, written.pkts_retx),
        (&mut side.bytes_retx, written.bytes_retx),
        (&mut side.pkts_ooo, written.pkts_ooo),
        (&mut side.syn_cnt, written.syn_cnt),
        (&mut side.fin_cnt, written.fin_cnt),
        (&mut side.ip_bytes, written.ip_bytes),
        (&mut side.sack_cnt, written.sack_cnt),
        (&mut side.win_0, written.win_0),
        (&mut side.syn_retx, written.syn_retx),
        (&mut side.pkts_push, written.pkts_push),
        (&mut side.dup_acks, written.dup_acks),
        (&mut side.appdata_bytes, written.appdata_bytes),
    ] {
        *now = now.saturating_sub(before);
    }
    for (now, before) in side.anomalies.iter_mut().zip(written.anomalies) {
        // A class may have been corrected since.
        *now = now.saturating_sub(before);
    }
    let sum = |side: &FlowSide| u128::from(side.rtt.avg_ns) * u128::from(side.rtt.count);
    let (whole, before) = (sum(side), sum(written));
    side.rtt.count = side.rtt.count.saturating_sub(written.rtt.count);
    let mean = whole
        .saturating_sub(before)
        .checked_div(u128::from(side.rtt.count));
    side.rtt.avg_ns = mean.map_or(0, |mean| u64::try_from(mean).unwrap_or(u64::MAX));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up() {
        let mut row = FlowRow::default();
        row.client.pkts_all = 10;
        row.client.bytes_all = 1000;
        row.client.rtt.count = 2;
        row.client.rtt.avg_ns = 30;
        let mut written = PartialState::begin(5);
        assert!(written.has_news(&row));
        let mut first = row;
        written.take(&mut first, 105);
        assert_eq!((first.client.pkts_all, first.first_ns), (10, 5));
        assert!(!written.has_news(&row));
        row.client.pkts_all = 25;
        row.client.bytes_all = 1700;
        row.client.rtt.count = 4;
        row.client.rtt.avg_ns = 40;
        let mut second = row;
        written.take(&mut second, 205);
        assert_eq!((second.client.pkts_all, second.first_ns), (15, 105));
        assert_eq!(second.client.bytes_all, 700);
        assert_eq!((second.client.rtt.count, second.client.rtt.avg_ns), (2, 50));
    }
}
