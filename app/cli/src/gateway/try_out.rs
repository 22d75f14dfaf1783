//! A policy tried on captures: packets go to the stage as they would from the kernel's queue, and the
//! marks it gives lead the rest of each connection around it as the kernel's rules would.

use std::collections::HashMap;
use std::io::{ErrorKind, Write as _};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use linkweir_capture::{CaptureFiles, Input, ReadOptions};
use linkweir_engine::effect::{Decision, QueuedPacket};
use linkweir_engine::{Effects, FaultKind, Frame, Outputs, Source, SourceEvent};
use linkweir_gateway::policy::{Policy, Rule};
use linkweir_gateway::{GatewayStage, Invitations, Stats};
use linkweir_netfilter::rules::ClientRate;
use linkweir_record::human::{counted, thousands};
use linkweir_record::{GatewayEventKind, GatewayKind, RecordBatch as _};
use linkweir_sink::OutputOptions;
use linkweir_wire::{Fragments, Network, Packet, TcpFlags, Timestamp, Transport, decode};

use super::args::{CheckArgs, ExplainArgs};
use super::config::GatewayConfig;
use super::explain::{Explained, five};
use crate::clock;
use crate::exit::{Exit, say, warn};
use crate::outputs::{self, ReportedLosses};
use crate::signals::Signals;
use crate::table::lines;

/// How far packets of a capture may be out of order, nanoseconds.
const MOST_BACK_NS: u64 = 10_000_000_000;
/// Connections whose mark is remembered.
const MOST: usize = 1 << 22;

pub(super) type Five = ((IpAddr, u16), (IpAddr, u16), bool);

/// Runs the trial.
pub(super) fn run(args: &CheckArgs, config: &GatewayConfig) -> anyhow::Result<Exit> {
    let mut trial = Trial::new(config, open_outputs(args)?);
    let mut exit = trial.play(&args.read)?;
    let (stats, written) = trial.finish(exit == Exit::Done);
    exit = exit.max(written);
    // Standard output is for the events, where they go there.
    if args.write.iter().any(|to| to == "-") {
        result(&stats).iter().for_each(|line| say(line));
        return Ok(exit);
    }
    let mut out = std::io::stdout().lock();
    for line in result(&stats) {
        writeln!(out, "{line}").context("standard output")?;
    }
    Ok(exit)
}

/// Runs the trial and says what decided each connection.
pub(super) fn explain(args: &ExplainArgs, config: &GatewayConfig) -> anyhow::Result<Exit> {
    let nowhere = outputs::open(&[], None, &OutputOptions::default())?;
    let mut trial = Trial::new(config, nowhere);
    trial.explained = Some(Explained::default());
    trial.stage.keep_undecided();
    let exit = trial.play(&args.read)?;
    trial.stage.finish(trial.last, &mut trial.effects);
    trial.put_away();
    let explained = trial.explained.take().unwrap_or_default();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    match explained.write(args.format, &mut out) {
        // Whoever reads it has enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(exit),
        written => written.context("standard output").map(|()| exit),
    }
}

fn open_outputs(args: &CheckArgs) -> anyhow::Result<Outputs<GatewayKind>> {
    let options = args.choice.on(OutputOptions {
        wall_clock_ns: clock::wall_clock,
        announce: warn,
        existing: args.files.existing(false),
        ..OutputOptions::default()
    });
    let destinations = outputs::destinations(&args.write, true);
    let mut outputs = outputs::open(&destinations, args.format, &options)?;
    if args.files.overwrite {
        outputs.keep_unless_read();
    }
    Ok(outputs)
}

struct Trial {
    stage: GatewayStage,
    policy: Arc<Policy>,
    effects: Effects<GatewayKind>,
    marks: HashMap<Five, u32>,
    /// Connections of packets that have no answer yet.
    waiting: HashMap<u32, Five>,
    next_id: u32,
    last: Timestamp,
    fragments: Fragments,
    outputs: Outputs<GatewayKind>,
    /// Frames of the captures so far.
    frames: u64,
    /// What decided each connection, where that is asked for.
    explained: Option<Explained>,
    /// Rates of clients, by rule.
    rates: HashMap<u16, ClientRate>,
}

impl Trial {
    fn new(config: &GatewayConfig, outputs: Outputs<GatewayKind>) -> Self {
        let mut policy = Policy::clone(&config.policy);
        // Nothing is scanned or kept.
        for rule in &mut policy.rules {
            let mut inspect = rule.inspect.clone();
            inspect.scan = None;
            inspect.record = false;
            inspect.quarantine = false;
            *rule = Arc::new(Rule {
                inspect,
                ..Rule::clone(rule)
            });
        }
        let policy = Arc::new(policy);
        Self {
            stage: GatewayStage::new(Arc::clone(&policy), 0, Arc::new(Invitations::default())),
            policy,
            effects: Effects::default(),
            marks: HashMap::new(),
            waiting: HashMap::new(),
            next_id: 0,
            last: Timestamp::ZERO,
            fragments: Fragments::default(),
            outputs,
            frames: 0,
            explained: None,
            rates: config.rates.iter().map(|one| (one.rule, *one)).collect(),
        }
    }

    /// Plays captures.
    fn play(&mut self, paths: &[PathBuf]) -> anyhow::Result<Exit> {
        let signals = Signals::install()?;
        let inputs: Vec<Input> = paths.iter().cloned().map(Input::from).collect();
        let options = ReadOptions {
            stop: signals.stop_flag(),
            ..ReadOptions::default()
        };
        let mut source = CaptureFiles::open(&inputs, options)?;
        let mut exit = Exit::Done;
        loop {
            match source.next_event()? {
                SourceEvent::Batch(batch) => {
                    for frame in batch.frames() {
                        self.frames += 1;
                        match decode(frame.link, frame.bytes, frame.wire_len) {
                            Ok(packet) if packet.is_fragment => self.on_fragment(&frame),
                            Ok(packet) => self.on_packet(&packet, frame.bytes, frame.timestamp),
                            Err(_) => {}
                        }
                    }
                    self.put_away();
                }
                SourceEvent::Idle => {}
                SourceEvent::Fault(fault) => {
                    warn(&format!("{}: {}", fault.input, fault.message));
                    exit = exit.max(match fault.kind {
                        FaultKind::Unusable => Exit::Failed,
                        FaultKind::Damaged | FaultKind::Interrupted => Exit::DataLost,
                        FaultKind::Skipped => Exit::Done,
                    });
                }
                SourceEvent::End => return Ok(exit),
            }
        }
    }

    /// Conntrack puts fragments together before it queues what they make, and drops those of which a
    /// part is missing.
    fn on_fragment(&mut self, frame: &Frame<'_>) {
        let mut fragments = std::mem::take(&mut self.fragments);
        let parts = (frame.link, frame.bytes, frame.wire_len);
        fragments.on_frame(parts, frame.timestamp, |joined| {
            if let Ok(packet) = &joined.packet
                && !packet.is_fragment
            {
                self.on_packet(packet, joined.bytes, joined.timestamp);
            }
        });
        self.fragments = fragments;
    }

    fn on_packet(&mut self, packet: &Packet<'_>, frame: &[u8], time: Timestamp) {
        let (ports, is_opening) = match packet.transport {
            Transport::Tcp(tcp) => (
                (tcp.src_port(), tcp.dst_port(), true),
                tcp.flags().contains(TcpFlags::SYN) && !tcp.flags().contains(TcpFlags::ACK),
            ),
            Transport::Udp(udp) => ((udp.src_port(), udp.dst_port(), false), false),
            _ => return,
        };
        let Some(bytes) = ip_bytes(packet, frame) else {
            return;
        };
        let src = (packet.network.src(), ports.0);
        let dst = (packet.network.dst(), ports.1);
        let key = five(src, dst, ports.2);
        if is_opening {
            self.marks.remove(&key);
        }
        if let Some(explained) = &mut self.explained {
            let (seq, has_payload) = match packet.transport {
                Transport::Tcp(tcp) => (is_opening.then(|| tcp.seq()), tcp.payload_len > 0),
                _ => (None, true),
            };
            explained.on_packet(key, (src, dst), seq, has_payload, self.frames);
        }
        let mark = self.marks.get(&key).copied().unwrap_or(0);
        let read = self.policy.marks.read(mark);
        if let Some(explained) = &mut self.explained
            && matches!(read.decision, Decision::Pass | Decision::Inspect)
            && let Some(rate) = self.rates.get(&read.rule)
        {
            explained.on_rated((key, src), rate, bytes.len(), time);
        }
        if !matches!(read.decision, Decision::Undecided | Decision::Inspect) {
            return;
        }
        // Captures may be of other days: what comes from an earlier one is not of the time of the later.
        if time.nanos_since(self.last) > 0 || self.last.nanos_since(time) > MOST_BACK_NS {
            self.last = time;
        }
        self.next_id = self.next_id.wrapping_add(1);
        let id = self.next_id;
        self.waiting.insert(id, key);
        let packet = QueuedPacket {
            id,
            mark,
            bytes,
            wire_len: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            is_checksum_open: false,
        };
        self.stage.on_packet(&packet, self.last, &mut self.effects);
        self.answer();
    }

    /// Marks connections as the kernel would.
    fn answer(&mut self) {
        for answer in self.effects.answers.drain(..) {
            let key = self.waiting.remove(&answer.id);
            if let (Some(key), Some(mark)) = (key, answer.mark)
                && self.marks.len() < MOST
            {
                self.marks.insert(key, mark);
            }
        }
        self.effects.resets.clear();
        self.effects.segments.clear();
        if let Some(explained) = &mut self.explained {
            explained.on_events(&self.effects.records, self.frames);
            explained.on_undecided(self.stage.take_undecided(), self.frames);
            self.effects.records.clear();
        }
    }

    fn put_away(&mut self) {
        self.stage.on_tick(self.last, &mut self.effects);
        self.answer();
        // The trial does not depend on them: that none is left is reported at the end.
        let _later = self.outputs.write(&self.effects.records);
        self.effects.records.clear();
    }

    /// What came of it, and how it went with the outputs.
    fn finish(mut self, is_sound: bool) -> (Stats, Exit) {
        self.stage.finish(self.last, &mut self.effects);
        self.put_away();
        let is_unread = self.last == Timestamp::ZERO && !is_sound;
        let ended = self.outputs.finish_after(is_unread);
        let losses = self.outputs.losses();
        ReportedLosses::default().tell(&losses);
        (self.stage.stats(), outputs::exit(ended, &losses))
    }
}

/// The bytes of a frame from the innermost IP header on, without what pads it.
fn ip_bytes<'a>(packet: &Packet<'_>, frame: &'a [u8]) -> Option<&'a [u8]> {
    let (header, len) = match packet.network {
        Network::V4(header) => (
            header.as_slice(),
            usize::from(u16::from_be_bytes([header[2], header[3]])),
        ),
        Network::V6(header) => (
            header.as_slice(),
            usize::from(u16::from_be_bytes([header[4], header[5]])) + 40,
        ),
        Network::None => return None,
    };
    let at = (header.as_ptr() as usize).checked_sub(frame.as_ptr() as usize)?;
    let rest = frame.get(at..)?;
    Some(rest.get(..len).unwrap_or(rest))
}

fn result(stats: &Stats) -> Vec<String> {
    let rows: Vec<Vec<String>> = stats
        .applications
        .iter()
        .filter(|(_, one)| one.connections > 0)
        .map(|(name, one)| {
            let numbers = [
                one.connections,
                one.allowed,
                one.inspected,
                one.dropped,
                one.rejected,
                one.blocked,
            ];
            let first = std::iter::once(name.clone());
            first.chain(numbers.map(thousands)).collect()
        })
        .collect();
    let head = [
        "application",
        "connections",
        "allowed",
        "inspected",
        "dropped",
        "rejected",
        "blocked",
    ];
    let mut all = lines(&head, &rows);
    let events: Vec<String> = GatewayEventKind::ALL
        .iter()
        .map(|event| (event.as_str(), stats.events_of(*event)))
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{} {}", thousands(count), name.replace('_', " ")))
        .collect();
    if !events.is_empty() {
        all.push(format!("  events: {}", events.join(", ")));
    }
    if stats.undecided > 0 {
        all.push(format!(
            "  undecided at the end: {}, of which the capture has too little",
            counted(stats.undecided, "connection")
        ));
    }
    if stats.packets == 0 {
        all.push("  no packet of TCP or UDP was read".to_owned());
    }
    all
}
