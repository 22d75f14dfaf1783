//! `linkweir load`: HTTP load from many emulated clients.

pub(crate) mod args;
mod clients;
mod conclude;
mod control;
mod group;
mod interim;
mod live;
mod pcap;
mod records;
mod report;
mod roles;
mod run;
mod schedule;
mod table;
mod target;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use linkweir_inject::{Port, PortOptions, SenderKind};
use linkweir_load::frames::Frames;
use linkweir_load::session::SessionSettings;
use linkweir_load::stage::{LoadOptions, LoadStage, Part, Share};
use linkweir_load::tcp::TcpSettings;
use linkweir_sink::Document;
use linkweir_sys::privileges::Restrict;
use linkweir_sys::schedule as priority;
use linkweir_wire::Timestamp;

use self::args::ReportFile;
use self::args::{LoadArgs, Role, Sender};
use self::interim::Interim;
use self::live::{Board, LoadView, Lookout};
use self::pcap::Pcap;
use self::records::Records;
use self::report::Files;
use self::roles::{Link, terms};
use self::run::{Pace, ReportedMoves, Runner};
use self::table::Table;
use self::target::Target;
use crate::clock::timestamp;
use crate::conflicts;
use crate::exit::{Exit, Wrong, say, warn};
use crate::files;
use crate::outputs;
use crate::signals::Signals;
use crate::view::View;

/// From when everything is ready to the first session.
const HEAD_START: Duration = Duration::from_millis(20);

/// How often a run is looked at, where nothing else is said.
const INTERVAL: Duration = Duration::from_secs(1);

/// Runs the command.
pub(crate) fn run(args: &LoadArgs) -> anyhow::Result<Exit> {
    let signals = Signals::install()?;
    let target = Target::parse(&args.url, args.sessions.host.as_deref())?;
    check(args, &target)?;
    let stop = || signals.stop();
    let files = Files::open(&args.output)?;
    if args.roles.role == Role::Controller {
        return control::control(args, &target, files, &signals);
    }
    let work = schedule::read(args, &target)?;
    let interface = args.link.interface.as_deref().unwrap_or_default();
    let mut port = open_port(args, interface)?;
    let link = Link::open(&args.roles, &terms(args)?, &stop)?;
    let share = link.as_ref().map_or(Share::ALL, Link::share);
    let population = clients::population(args, &target, share, port.mac())?;
    let next_hop = clients::next_hop(args, &target, &population)?;
    clients::keep_the_kernel_out(args, interface, &target)?;
    clients::keep_from_stack(args, &target, &mut port)?;
    let pcap = open_pcap(args)?;
    // Whoever has given up its privileges may not ask for it.
    if args.sending.rt
        && let Err(error) = priority::realtime()
    {
        warn(&format!("no real-time priority (CAP_SYS_NICE): {error}"));
    }
    outputs::give_up_privileges(&Restrict {
        writable: written_directories(args),
        ..Restrict::default()
    })?;
    // It has a thread, which is bound too.
    let records = Records::start(&args.output)?;
    let view: LoadView = View::start(&args.view, &control::subject(args), &signals)?;
    let is_viewed = view.is_wanted();
    let lookout = lookout(args, view, link.as_ref())?;
    let header = conclude::header(args, &target, Some((&population, &port)));
    let mtu = port.mtu();
    let mut runner = Runner {
        port,
        stage: LoadStage::new(LoadOptions {
            tcp: TcpSettings {
                max_connections: args.sessions.max_connections,
                mss: mss(mtu),
                ..TcpSettings::default()
            },
            sessions: SessionSettings {
                max_sessions: args.sessions.max_sessions,
                max_connections: args.sessions.max_connections,
                timeout_ns: linkweir_wire::nanos(args.sessions.timeout),
                ..SessionSettings::default()
            },
            script: work.script,
            schedule: work.schedule,
            server: target.server,
            next_hop,
            seed: args.schedule.seed,
            has_records: records.are_wanted(),
            part: part(args),
            share,
            population,
        }),
        frames: Frames::default(),
        pace: Pace::default(),
        pcap,
        records,
        signals: &signals,
        link,
        // What looks better than a table has its place.
        table: Table::start(
            args.output.quiet || is_viewed && !args.output.progress,
            args.output.progress,
            args.schedule.duration,
        ),
        spin: Duration::from_micros(args.sending.spin_us.into()),
        duration: args.schedule.duration,
        drain: args.schedule.drain,
        moves: ReportedMoves::default(),
        interim: Interim::start(args, &header, files)?,
        lookout,
    };
    runner.resolve(interface, next_hop)?;
    if !args.output.quiet {
        say(&format!(
            "linkweir: clients of {interface} that load {}: {}",
            target.server,
            linkweir_record::human::thousands(runner.stage.population().len().into())
        ));
    }
    if let Err(error) = priority::precise_waits() {
        warn(&format!("timers may be 50 us late: {error}"));
    }
    let begin = match &mut runner.link {
        None => timestamp() + HEAD_START,
        Some(link) => agree(link, args.output.quiet)?,
    };
    let played = runner.play(begin);
    runner.conclude(args, &header, played)
}

/// Refuses what may not be loaded, and outputs that could not be written.
fn check(args: &LoadArgs, target: &Target) -> anyhow::Result<()> {
    if !target.is_private() && !args.link.may_be_public() {
        let what = format!(
            "{} is a public address: load only what you own or may, and say so with --allow-public, twice",
            target.server.ip()
        );
        return Err(anyhow!(Wrong(what)));
    }
    for directory in written_directories(args) {
        if !directory.exists() {
            return Err(anyhow!(
                "{}: no such directory to write to",
                directory.display()
            ));
        }
    }
    conflicts::check(&written(args), &[]).map_err(|what| anyhow!(Wrong(what)))
}

fn open_pcap(args: &LoadArgs) -> anyhow::Result<Option<Pcap>> {
    let Some(path) = &args.output.pcap else {
        return Ok(None);
    };
    let existing = args.output.store.files.existing(true);
    let file = Document::open_in_pieces(&path.to_string_lossy(), existing, warn);
    let begun = file.map_err(files::refused).and_then(Pcap::begin);
    begun.map(Some).context("--pcap")
}

/// The begin that all generators agree upon.
fn agree(link: &mut Link<'_>, quiet: bool) -> anyhow::Result<Timestamp> {
    let start = link.agree()?;
    if !quiet && start.clock.error_ns > 0 {
        say(&format!(
            "linkweir: the clocks are compared to {}",
            linkweir_record::human::span(start.clock.error_ns)
        ));
    }
    Ok(start.at)
}

const fn part(args: &LoadArgs) -> Part {
    match args.roles.role {
        Role::Init => Part::Init,
        Role::Stat => Part::Stat,
        Role::All | Role::Controller | Role::Worker => Part::All,
    }
}

fn open_port(args: &LoadArgs, interface: &str) -> anyhow::Result<Port> {
    let port = Port::open(&PortOptions {
        sender: match args.sending.sender {
            Sender::Auto => SenderKind::Auto,
            Sender::Xdp => SenderKind::Xdp,
            Sender::Packet => SenderKind::Packet,
        },
        ..PortOptions::new(interface)
    })?;
    if !args.output.quiet {
        port.notes().iter().for_each(|note| warn(note));
    }
    Ok(port)
}

/// The maximum segment size of IPv4 on an interface (RFC 9293 sec. 3.7.1).
fn mss(mtu: u32) -> u16 {
    u16::try_from(mtu.saturating_sub(40))
        .unwrap_or(u16::MAX)
        .max(536)
}

/// Who looks at the run while it goes on: here, or where a controller is.
fn lookout(args: &LoadArgs, view: LoadView, link: Option<&Link<'_>>) -> anyhow::Result<Lookout> {
    let reported = link.and_then(Link::progress);
    let board = view.is_wanted().then(|| {
        let capacity = args.sessions.max_sessions.into();
        let mut board = Board::new(args, view, link.map_or("all", Link::name), capacity);
        board.add(args.link.interface.clone().unwrap_or_default());
        board
    });
    let shown = board.is_some();
    let own = args.view.interval.unwrap_or(INTERVAL);
    let interval = match reported {
        Some(reported) if shown => reported.min(own),
        Some(reported) => reported,
        None => own,
    };
    Lookout::start(board, interval)
}

/// What the run writes, with the flag that named it.
fn written(args: &LoadArgs) -> Vec<(&'static str, &Path)> {
    fn named<'a>(
        flag: &'static str,
        paths: impl IntoIterator<Item = &'a (impl AsRef<Path> + ?Sized + 'a)>,
    ) -> impl Iterator<Item = (&'static str, &'a Path)> {
        paths.into_iter().map(move |path| (flag, path.as_ref()))
    }
    let output = &args.output;
    named("-w", &output.write)
        .chain(named(
            "--report",
            output.report.iter().map(ReportFile::name),
        ))
        .chain(named("--series", &output.series))
        .chain(named("--summary", &output.summary))
        .chain(named("--pcap", &output.pcap))
        .chain(args.view.written())
        .collect()
}

fn written_directories(args: &LoadArgs) -> Vec<std::path::PathBuf> {
    outputs::written_directories(written(args).into_iter().map(|(_, path)| path))
}
