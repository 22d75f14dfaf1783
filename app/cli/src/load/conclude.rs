//! What is said when a run is over, and how it ended.

use std::time::Duration;

use anyhow::anyhow;
use linkweir_engine::Loss;
use linkweir_inject::{Port, PortCounts};
use linkweir_load::measure::{Figures, Generator, Limits};
use linkweir_load::outcome::Failure;
use linkweir_load::population::Population;
use linkweir_load::stage::LoadStage;
use linkweir_load::tcp::TcpCounts;
use linkweir_model::Sampler;
use linkweir_record::human::counted;
use linkweir_wire::Timestamp;
use serde_json::{Value, json};

use super::args::{LoadArgs, Role};
use super::group;
use super::records::Missing;
use super::report::{Files, Header, Rates, Report};
use super::roles::Gathered;
use super::target::Target;
use crate::exit::{Exit, Wrong, say, warn};
use crate::outputs;
use crate::screen;

/// Among the counts beside the sessions: how often the next hop came to have another hardware address.
const NEXT_HOP_MOVED: &str = "next_hop_moved";

/// What the run is, for the head of its reports.
pub(super) fn header(
    args: &LoadArgs,
    target: &Target,
    here: Option<(&Population, &Port)>,
) -> Header {
    let mut header = Header::default();
    header.push("program", concat!("linkweir ", env!("CARGO_PKG_VERSION")));
    header.push("target", format!("http://{}{}", target.server, target.path));
    header.push("host", &target.host);
    header.push("arrivals", &args.schedule.arrivals);
    header.push("seed", args.schedule.seed);
    if let Some(duration) = args.schedule.duration {
        header.push("duration", format!("{duration:?}"));
    }
    if let Some(sessions) = args.schedule.sessions {
        header.push("sessions", sessions);
    }
    header.push("drain", format!("{:?}", args.schedule.drain));
    match (&args.sessions.script, args.sessions.preset) {
        (Some(script), _) => header.push("script", script.display()),
        (None, Some(preset)) => header.push("preset", format!("{preset:?}").to_lowercase()),
        (None, None) => {}
    }
    header.push("timeout", format!("{:?}", args.sessions.timeout));
    let prefixes = args.clients.clients.iter().map(ToString::to_string);
    header.push("client prefixes", prefixes.collect::<Vec<_>>().join(", "));
    for one in &args.clients.group {
        let members = one.members.iter().map(ToString::to_string);
        let members = members.collect::<Vec<_>>().join(", ");
        let line = match group::words(&one.profile) {
            line if line.is_empty() => "as on the link".to_owned(),
            line => line,
        };
        header.push("group", format!("{} {members}: {line}", one.name));
    }
    header.push("lag limit", format!("{:?}", args.sending.lag_limit));
    if let Some((population, port)) = here {
        header.push("clients", population.len());
        header.push(
            "interface",
            args.link.interface.as_deref().unwrap_or_default(),
        );
        header.push("sender", port.sender());
        header.push("spin_us", args.sending.spin_us);
    }
    if let Ok(kernel) = std::fs::read_to_string("/proc/sys/kernel/osrelease") {
        header.push("kernel", kernel.trim());
    }
    if let Some(processor) = processor() {
        header.push("processor", processor);
    }
    header
}

/// The name that the kernel has for the processor.
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Refuses what a controller cannot do, before anybody is waited for.
pub(super) fn may_control(args: &LoadArgs) -> anyhow::Result<()> {
    if args.output.write.is_empty() && args.output.pcap.is_none() {
        return Ok(());
    }
    let what = "a controller sends nothing: -w and --pcap are for its workers";
    Err(anyhow!(Wrong(what.to_owned())))
}

/// Reports for the workers of a controller, which have ended.
pub(super) fn for_workers(
    args: &LoadArgs,
    mut header: Header,
    gathered: &Gathered,
    files: Files,
    undelivered: Vec<Loss>,
) -> anyhow::Result<Exit> {
    let lines = gathered.workers.iter();
    let lines: Vec<String> = lines
        .map(|(peer, brought)| format!("{peer}: {brought}"))
        .collect();
    if !args.output.quiet {
        lines
            .iter()
            .for_each(|line| say(&format!("  worker {line}")));
    }
    header.push("workers", lines.join("; "));
    let mut beside = Beside::default();
    beside.missing.outputs.extend(undelivered);
    let exit = report(args, &header, &gathered.figures, &mut beside, files);
    Ok(exit.max(missing(gathered)))
}

/// Says who is missing.
pub(super) fn missing(gathered: &Gathered) -> Exit {
    gathered
        .missing
        .iter()
        .for_each(|who| warn(&format!("results are missing: {who}")));
    if gathered.missing.is_empty() {
        Exit::Done
    } else {
        Exit::Failed
    }
}

/// What a run counted that is none of its figures.
#[derive(Default)]
pub(super) struct Beside {
    pub(super) port: PortCounts,
    pub(super) malformed: u64,
    pub(super) missing: Missing,
    pub(super) lost_frames: u64,
    /// When the schedule began.
    pub(super) begun: Option<Timestamp>,
    /// Whether a signal ended it.
    pub(super) is_interrupted: bool,
}

impl Beside {
    /// The summary of a run.
    pub(super) fn summary(&self, report: Report<'_>) -> Value {
        let port = self.port;
        json!({
            "packets": port.sent.frames + port.received_frames,
            "bytes": port.sent.bytes + port.received_bytes,
            "elapsed_s": report.figures.open.seconds(),
            "schedule_begin_ts_ns": self.begun.map(Timestamp::as_nanos),
            "dropped": {
                "kernel": port.dropped,
                "queue": self.missing.queue,
                "sink": outputs::by_name(&self.missing.outputs),
                "pcap": self.lost_frames,
            },
            "decode_errors": { "malformed": self.malformed },
            "interrupted": self.is_interrupted,
            "intermediate": report.is_intermediate,
            "load": report.summary(),
        })
    }
}

/// What a run must keep to.
pub(super) fn limits(args: &LoadArgs) -> Limits {
    Limits {
        lag_p99_ns: linkweir_wire::nanos(args.sending.lag_limit),
    }
}

/// Writes and says what was measured.
pub(super) fn report(
    args: &LoadArgs,
    header: &Header,
    figures: &Figures,
    beside: &mut Beside,
    mut files: Files,
) -> Exit {
    let verdict = figures.verdict(&limits(args));
    let report = Report {
        header,
        figures,
        verdict: &verdict,
        rates: Rates::of(args, figures).filter(|_| !beside.is_interrupted),
        is_intermediate: false,
    };
    if !args.output.quiet {
        say(report.to_screen().trim_end());
    }
    beside.missing.outputs.extend(files.write(report));
    let failed = files.write_summary(|| beside.summary(report));
    beside.missing.outputs.extend(failed);
    warn_of(figures);
    let lost: Vec<_> = outputs::lost(&beside.missing.outputs).collect();
    let is_written = lost.is_empty();
    if !is_written {
        warn(&format!("lost: {}", screen::lost(lost, 6)));
    }
    let lost = [
        (beside.missing.queue, "record", "of sessions"),
        (beside.lost_frames, "frame", "of --pcap"),
    ];
    for (count, what, of) in lost.iter().filter(|(count, ..)| *count > 0) {
        let what = counted(*count, what);
        warn(&format!(
            "{what} {of} not written: the output did not keep up"
        ));
    }
    let failed = failed_percent(figures);
    let is_within = match args.output.max_failed {
        Some(most) => failed <= most,
        None => figures.completed > 0 || figures.failed.total() == 0,
    };
    if !is_within {
        warn(&format!(
            "{failed:.2} % of the sessions failed: more than --max-failed allows"
        ));
    }
    let is_kept = is_written && beside.missing.queue + beside.lost_frames == 0;
    if is_within && verdict.is_valid() && is_kept {
        Exit::Done
    } else {
        Exit::DataLost
    }
}

impl Rates {
    /// Of a schedule that was asked for a rate and ended with its time; nothing for a generator that had
    /// a share of the sessions.
    fn of(args: &LoadArgs, figures: &Figures) -> Option<Self> {
        let schedule = &args.schedule;
        let is_cut = schedule
            .sessions
            .is_some_and(|most| figures.planned >= most);
        if is_cut || args.roles.role == Role::Worker {
            return None;
        }
        Some(Self {
            asked_per_s: schedule.arrivals.rate()?,
            drawn_per_s: per_second(figures.planned, schedule.duration?),
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn per_second(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

/// Sessions that failed, of those that were planned, percent.
#[expect(clippy::cast_precision_loss, reason = "for people")]
fn failed_percent(figures: &Figures) -> f64 {
    100.0 * figures.failed.total() as f64 / figures.planned.max(1) as f64
}

/// What the figures mean that a newcomer may not see in them.
fn warn_of(figures: &Figures) {
    if figures.planned == 0 {
        warn("the schedule had no session in this time: longer, or at a higher rate?");
    }
    let moves = figures.tcp.get(NEXT_HOP_MOVED).copied().unwrap_or(0);
    let unanswered = figures.failed.of(Failure::ConnectTimeout);
    if unanswered > 0 && moves > 0 {
        warn(&format!(
            "{} never got a SYN ACK, and the next hop came to have another hardware address ({}): is somebody \
             else there who takes its address (ARP or neighbour discovery)?",
            counted(unanswered, "session"),
            counted(moves, "time")
        ));
    } else if unanswered > 0 && unanswered * 20 >= figures.planned {
        warn(&format!(
            "{} never got a SYN ACK: does the server have a route back to the clients? \
             With more than about 1000 clients on its own link its neighbour table is full (Linux: \
             net.ipv4.neigh.default.gc_thresh3): route their prefix by one address that is a client too, \
             as in the help",
            counted(unanswered, "session")
        ));
    }
}

/// What is counted beside the sessions, from the begin of the run.
pub(super) struct Counts {
    tcp: Vec<(&'static str, u64)>,
    generator: Generator,
}

/// What was counted beside the sessions so far.
pub(super) fn counts(stage: &LoadStage<Sampler>, port: &PortCounts) -> Counts {
    let frames = stage.frame_counts();
    let stats = stage.session_stats();
    let others = [
        ("bad_checksum", frames.bad_checksum),
        ("malformed_frames", frames.malformed),
        ("requests_sent_again", stats.retries),
        ("idle_connections_closed", stats.idle_closed),
        (NEXT_HOP_MOVED, stage.neighbour_counts().moved),
    ];
    Counts {
        tcp: tcp_counts(stage.tcp_counts())
            .into_iter()
            .chain(others)
            .collect(),
        generator: Generator {
            send_stalls: port.sent.stalls,
            send_errors: port.sent.refused,
            receive_drops: port.dropped + port.too_long,
            emulator_overflow: stage.overflows(),
        },
    }
}

impl Counts {
    /// Puts them into the figures, in place of earlier ones.
    pub(super) fn add_to(self, figures: &mut Figures) {
        let tcp = self.tcp.into_iter();
        figures
            .tcp
            .extend(tcp.map(|(name, count)| (name.to_owned(), count)));
        figures.generator = self.generator;
    }
}

fn tcp_counts(counts: &TcpCounts) -> [(&'static str, u64); 17] {
    [
        ("segments_sent", counts.segments_out),
        ("segments_received", counts.segments_in),
        ("syn_retransmissions", counts.syn_retransmissions),
        ("retransmissions", counts.retransmissions),
        ("fast_retransmits", counts.fast_retransmits),
        ("timeouts", counts.timeouts),
        ("duplicate_acks", counts.duplicate_acks),
        ("out_of_order", counts.out_of_order),
        ("not_held", counts.not_held),
        ("duplicates", counts.duplicates),
        ("resets_received", counts.resets_in),
        ("resets_sent", counts.resets_out),
        ("strays", counts.strays),
        ("challenge_acks", counts.challenge_acks),
        ("window_probes", counts.window_probes),
        ("time_wait_answers", counts.time_wait_answers),
        ("time_wait_evicted", counts.time_wait_evicted),
    ]
}
