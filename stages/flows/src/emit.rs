//! From the state of a flow to its record.

use linkweir_record::Anonymizer;
use linkweir_record::flow::{
    DnsEntry, Event, Extent, FlowBatch, FlowRow, FlowSide, FlowState, FlowText, Protocol,
};

use crate::flow::Flow;
use crate::stage::FlowsStage;

impl FlowsStage {
    /// Writes the final record of a flow, and before it the last partial one where there are any.
    pub(crate) fn write(&mut self, slot: u32, state: Option<FlowState>, out: &mut FlowBatch) {
        let mut row = FlowRow::default();
        self.fill(slot, &mut row);
        if let Some(flow) = self.flows.get(slot)
            && self
                .partial
                .get(flow.partial)
                .is_some_and(|part| part.has_news(&row))
        {
            self.write_partial(slot, row, row.last_ns, out);
        }
        if let Some(flow) = self.flows.get(slot) {
            row.state = state.unwrap_or_else(|| flow.state_at(self.now, &self.timeouts));
        }
        self.push(slot, &mut row, out);
    }

    /// Writes a partial record where the period is over and something came in it. Called before a
    /// packet is counted: it belongs to the next period.
    pub(crate) fn tell_if_due(&mut self, slot: u32, period: u64, now: u64, out: &mut FlowBatch) {
        let Some(flow) = self.flows.get(slot) else {
            return;
        };
        let (start, partial) = (flow.start_ns, flow.partial);
        let Some(since) = self.partial.get(partial).map(|part| part.since) else {
            return;
        };
        if now < since.saturating_add(period) {
            return;
        }
        // Periods count from the flow's first packet.
        let next = start + now.saturating_sub(start) / period * period;
        let mut row = FlowRow::default();
        self.fill(slot, &mut row);
        let has_news = self
            .partial
            .get(partial)
            .is_some_and(|part| part.has_news(&row));
        if has_news {
            self.write_partial(slot, row, next, out);
        } else if let Some(part) = self.partial.get_mut(partial) {
            part.since = next;
        }
    }

    fn write_partial(&mut self, slot: u32, mut row: FlowRow, next_ns: u64, out: &mut FlowBatch) {
        let Some(flow) = self.flows.get(slot) else {
            return;
        };
        let Some(part) = self.partial.get_mut(flow.partial) else {
            return;
        };
        part.take(&mut row, next_ns);
        row.extent = Extent::Partial;
        row.state = FlowState::Open;
        self.push(slot, &mut row, out);
    }

    /// Fills an empty record with the numbers of a flow so far, as of the whole.
    fn fill(&self, slot: u32, row: &mut FlowRow) {
        let Some(flow) = self.flows.get(slot) else {
            return;
        };
        row.flow_id = flow.key.id(flow.start_ns);
        row.first_ns = flow.start_ns;
        row.last_ns = flow.last_ns;
        row.start_ns = flow.start_ns;
        row.protocol = flow.protocol();
        row.has_syn = flow.has_syn();
        row.vlan = flow.vlan();
        row.evidence = flow.evidence;
        row.application = "unknown";
        row.history = flow.history;
        let [client, server] = &flow.directions;
        for (direction, side, is_client) in [
            (client, &mut row.client, true),
            (server, &mut row.server, false),
        ] {
            (side.ip, side.port) = flow.key.end(flow.client_is_low() == is_client);
            direction.fill(flow.start_ns, side);
            if let Some(extras) = self.pools.extras.get(direction.extras) {
                extras.fill(side);
            }
            if flow.protocol() == Protocol::Udp {
                as_datagrams(side, flow);
            }
        }
        (row.client.is_internal, row.server.is_internal) = flow.internal();
        if flow.protocol() == Protocol::Udp {
            // The first datagram is the client's, and there is nothing else to tell.
            row.history.push(Event::Data, true);
            if server.pkts_all > 0 {
                row.history.push(Event::Data, false);
            }
        }
        let syn_ack_at = self
            .pools
            .extras
            .get(server.extras)
            .and_then(|extras| extras.syn_ack_at)
            .unwrap_or(flow.syn_ack_at);
        handshake(flow, syn_ack_at, row);
        self.layer7.fill(flow.layer7, row);
    }

    fn push(&mut self, slot: u32, row: &mut FlowRow, out: &mut FlowBatch) {
        let Some(flow) = self.flows.get(slot) else {
            return;
        };
        if row.extent == Extent::Final && self.layer7.has_streams(flow.layer7) {
            self.push_streams(slot, row, out);
        }
        let Some(flow) = self.flows.get(slot) else {
            return;
        };
        if row.extent == Extent::Final {
            let ends = flow.ends();
            self.layer7
                .end_handshake(flow.layer7, &ends, row.protocol, out);
        }
        let text = self.layer7.text(flow.layer7);
        self.stats.record(row);
        if let Some(recorder) = &mut self.recorder
            && row.extent == Extent::Final
        {
            recorder.on_flow(row, &text);
        }
        if let Some(places) = &mut self.places {
            for side in [&mut row.client, &mut row.server] {
                side.place = places.place(side.ip);
            }
        }
        match &self.anonymizer {
            None => out.push(*row, &text),
            Some(anonymizer) => {
                hide(row, anonymizer);
                let host = anonymizer.replace_host(text.http_host);
                let text = FlowText {
                    http_host: host.as_deref().unwrap_or(text.http_host),
                    ..text
                };
                out.push(*row, &text);
            }
        }
        if row.extent == Extent::Final && self.listener.is_some() {
            self.note_unknown(slot, row);
        }
    }

    /// The streams of a flow that has ended.
    #[inline(never)]
    fn push_streams(&mut self, slot: u32, row: &FlowRow, out: &mut FlowBatch) {
        let Some(flow) = self.flows.get(slot) else {
            return;
        };
        let (recorder, anonymizer) = (&mut self.recorder, &self.anonymizer);
        self.layer7.streams(flow.layer7, row, |mut stream| {
            if let Some(recorder) = recorder {
                recorder.on_stream(&stream);
            }
            if let Some(anonymizer) = anonymizer {
                for end in [&mut stream.client, &mut stream.server] {
                    end.ip = anonymizer.replace(end.ip);
                    end.is_encrypted = true;
                }
            }
            out.push_stream(stream);
        });
        // What was still in the windows.
        self.record_samples(slot);
    }

    /// Completes the lines of DNS from number `from` on, of the flow in `slot`.
    #[inline(never)]
    pub(crate) fn finish_dns(&self, slot: u32, from: usize, out: &mut FlowBatch) {
        let Some(flow) = self.flows.get(slot) else {
            return;
        };
        let (client, server) = flow.internal();
        let opened_by = flow.ends().client;
        for row in out.dns_from(from) {
            row.is_internal = if row.client == opened_by {
                [client, server]
            } else {
                [server, client]
            };
            let Some(anonymizer) = &self.anonymizer else {
                continue;
            };
            row.is_encrypted = true;
            for address in [&mut row.client.0, &mut row.server.0] {
                *address = anonymizer.replace(*address);
            }
            if let DnsEntry::Address(address) = &mut row.entry {
                *address = anonymizer.replace(*address);
            }
        }
    }

    /// Replaces the addresses of the messages from number `from` on.
    #[inline]
    pub(crate) fn hide_messages(&self, from: usize, out: &mut FlowBatch) {
        let Some(anonymizer) = &self.anonymizer else {
            return;
        };
        for message in out.messages_from(from) {
            message.client.0 = anonymizer.replace(message.client.0);
            message.server.0 = anonymizer.replace(message.server.0);
        }
    }
}

fn hide(row: &mut FlowRow, anonymizer: &Anonymizer) {
    for side in [&mut row.client, &mut row.server] {
        side.ip = anonymizer.replace(side.ip);
        side.is_encrypted = true;
    }
    row.dns_resolver = row
        .dns_resolver
        .map(|resolver| anonymizer.replace(resolver));
}

/// What the fields of a direction mean for UDP: payload has no acknowledgments, and first and last
/// payload are first and last packet.
fn as_datagrams(side: &mut FlowSide, flow: &Flow) {
    side.first_packet_ns = side.first_ns.map(|since| flow.start_ns + since);
    side.last_packet_ns = side.last_ns.map(|since| flow.start_ns + since);
    side.ack_cnt = 0;
    (side.first_ns, side.last_ns) = (None, None);
}

/// The times of the handshake, where the SYN was sent once.
fn handshake(flow: &Flow, syn_ack_at: u64, row: &mut FlowRow) {
    let [client, server] = &flow.directions;
    if syn_ack_at == 0 || !flow.has_syn() || client.syn != 1 {
        return;
    }
    row.syn_ack_ns = Some(syn_ack_at.saturating_sub(flow.start_ns));
    if server.syn == 1 && client.first_ack >= syn_ack_at {
        row.ack_dat_ns = Some(client.first_ack - syn_ack_at);
    }
}
