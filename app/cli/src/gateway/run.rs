//! `gateway run`: queues, stage, scanner, vault and outputs joined, until a signal.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use linkweir_console::gateway::GatewayStatus;
use linkweir_engine::{Outputs, RunReport};
use linkweir_gateway::Invitations;
use linkweir_netfilter::{Queue, QueueOptions, ResetSender, Waker};
use linkweir_record::{GatewayBatch, GatewayKind, RecordBatch as _};
use linkweir_scan::{Scanner, ScannerOptions};
use linkweir_sink::OutputOptions;
use linkweir_sys::privileges::Restrict;
use linkweir_vault::{Vault, VaultOptions, WhenFull};
use linkweir_wire::Timestamp;

use super::args::RunArgs;
use super::config::{GatewayConfig, RecordSettings, ScannerSettings};
use super::control::{Asked, Control, Offer};
use super::kernel::{standing_numbers, undecided};
use super::notify::Notifier;
use super::shared::{PolicyBoard, Shared, Watched};
use super::snapshot::Snapshot;
use super::status::to_screen;
use super::watchdog;
use super::worker::{Clock, Worker};
use crate::conflicts;
use crate::exit::{Exit, Wrong, say, warn, warn_lines};
use crate::outputs::{self, AtEnd, ToldLosses};
use crate::progress;
use crate::screen;
use crate::signals::Signals;
use crate::view::{Subject, View};

/// Batches of events that wait for the writer; the packet path never waits for it.
const WAITING_BATCHES: usize = 4096;
/// How often the writer looks at everything else.
const TICK: Duration = Duration::from_millis(100);
/// How long who asks for the state waits for what the workers counted since their last report.
const PATIENCE: Duration = Duration::from_millis(50);

/// Runs the command.
pub(super) fn run(args: &RunArgs) -> anyhow::Result<Exit> {
    let signals = Signals::install()?;
    let notifier = Notifier::open();
    let standing = standing_numbers();
    if standing.is_none() {
        warn("no rules are up: the queue gets packets after `linkweir gateway up`");
    }
    let numbers = standing.clone().unwrap_or_default();
    let config = GatewayConfig::read(&args.file.config, &numbers)?;
    let origin = Offer::of(&args.file.config, BTreeMap::new());
    let control = Control::listen(&config.settings.control)?;
    let existing = args.output.store.files.existing(true);
    let summary = AtEnd::open("--summary", args.output.summary.as_deref(), existing)?;
    let shared = Arc::new(Shared {
        policy: PolicyBoard::new(Arc::clone(&config.policy)),
        workers: config
            .settings
            .queues()
            .map(|_| Watched::default())
            .collect(),
        stop: AtomicBool::new(false),
        asked: AtomicU64::new(0),
    });
    let queues = open_queues(&config)?;
    // From here on nothing passes by; what did so before has no mark.
    let undecided = standing.map_or(0, |_| undecided(&config));
    let wakers = queues.iter().map(Queue::waker).collect();
    let resets = queues
        .iter()
        .map(|_| ResetSender::open(None))
        .collect::<Result<Vec<_>, _>>()?;
    give_up_privileges(args, &config)?;
    // They may start threads, which are bound too.
    let mut outputs = open_outputs(args)?;
    let scanner = config.scanner.as_ref().map(start_scanner).transpose()?;
    let vault = config
        .keeps_files()
        .then(|| start_vault(&config.record))
        .transpose()?;
    let view = start_view(args, &config, &signals)?;
    if let Some(live) = view.sink() {
        outputs.add_observer(live);
    }
    if !args.output.quiet {
        say_ready(&config);
    }
    let (sender, events) = sync_channel(WAITING_BATCHES);
    let clock = Clock::start();
    let invitations = Arc::new(Invitations::default());
    let mut threads = Vec::new();
    for (number, (queue, resets)) in queues.into_iter().zip(resets).enumerate() {
        let waker = queue.waker();
        let worker = Worker {
            number,
            queue,
            resets,
            scanner: scanner
                .as_ref()
                .map(|scanner| scanner.client(move || waker.wake())),
            vault: vault.as_ref().map(Vault::client),
            events: sender.clone(),
            invitations: Arc::clone(&invitations),
            shared: Arc::clone(&shared),
            clock,
        };
        let thread = std::thread::Builder::new().name(format!("queue {number}"));
        threads.push(thread.spawn(move || worker.run())?);
    }
    drop(sender);
    let watched = Arc::clone(&shared);
    let patience = config.settings.watchdog;
    let dog = std::thread::Builder::new()
        .name("watchdog".to_owned())
        .spawn(move || watchdog::watch(&watched, patience, &notifier))?;
    let mut running = Running {
        args,
        snapshot: Snapshot::new(&config, Arc::clone(&shared), scanner, vault, undecided),
        config,
        numbers,
        control: Some(control),
        signals,
        outputs,
        losses: ToldLosses::default(),
        view,
        shared,
        wakers,
        clock,
        origin,
        written: 0,
        scanner_answers: None,
        flushed: progress::now(),
    };
    running.write(&events);
    running.shared.stop();
    for thread in threads.into_iter().chain([dog]) {
        if thread.join().is_err() {
            warn("a thread of the gateway has panicked");
        }
    }
    // What the workers said last.
    running.write(&events);
    running.conclude(summary)
}

fn start_view(
    args: &RunArgs,
    config: &GatewayConfig,
    signals: &Signals,
) -> anyhow::Result<View<GatewayKind>> {
    let source = format!("gateway {}", config.path.display());
    View::start(&args.view, &Subject::service(&source), signals)
}

fn say_ready(config: &GatewayConfig) {
    let queues = config.settings.queues().map(|number| number.to_string());
    say(&format!(
        "linkweir: serving queue {} of {}",
        queues.collect::<Vec<_>>().join(", "),
        config.path.display()
    ));
}

/// Everything that the writer's thread looks after.
struct Running<'a> {
    args: &'a RunArgs,
    config: GatewayConfig,
    numbers: BTreeMap<String, u16>,
    /// Taken while it is served.
    control: Option<Control>,
    signals: Signals,
    outputs: Outputs<GatewayKind>,
    losses: ToldLosses,
    view: View<GatewayKind>,
    snapshot: Snapshot,
    shared: Arc<Shared>,
    /// One for each worker.
    wakers: Vec<Waker>,
    clock: Clock,
    /// Where this gateway and its policy are.
    origin: Offer,
    written: u64,
    /// Whether the scanner answered when this was last told.
    scanner_answers: Option<bool>,
    flushed: Instant,
}

impl Running<'_> {
    /// Writes events until the run stops, or all workers have ended.
    fn write(&mut self, events: &Receiver<GatewayBatch>) {
        loop {
            match events.recv_timeout(TICK) {
                Ok(batch) => self.take(&batch),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.flushed.elapsed() >= TICK {
                self.flushed = progress::now();
                self.tick();
            }
            if self.signals.stop() || self.shared.is_stopping() {
                self.shared.stop();
                // The workers end, and with them the channel.
                while let Ok(batch) = events.recv() {
                    self.take(&batch);
                }
                return;
            }
        }
    }

    /// Writes events. The traffic does not depend on it: that no output is left is told at the end.
    fn take(&mut self, batch: &GatewayBatch) {
        self.written += batch.len() as u64;
        let _goes_on = self.outputs.write(batch);
    }

    fn tick(&mut self) {
        let _goes_on = self.outputs.flush();
        self.losses.tell(&self.outputs.losses());
        let status = self.show();
        self.tell_of_scanner(status);
        self.snapshot
            .take_notices()
            .iter()
            .for_each(|notice| warn(notice));
        if self.signals.take_rotate() {
            let _goes_on = self.outputs.rotate();
            let numbers = self.numbers.clone();
            if let Err(error) = self.reload(&numbers) {
                warn_lines(&format!("the policy stays as it was: {error:#}"));
            }
        }
        if let Some(control) = self.control.take() {
            control.serve(|asked| match asked {
                Asked::Status => {
                    serde_json::to_string(&self.state_now()).map_err(|error| error.to_string())
                }
                Asked::Offer(offer) => {
                    let done = self.consider(&offer).map(|()| String::new());
                    done.map_err(|error| format!("{error:#}"))
                }
                Asked::Reload(numbers) => {
                    let known = if numbers.is_empty() {
                        self.numbers.clone()
                    } else {
                        numbers
                    };
                    let done = self.reload(&known).map(|()| String::new());
                    done.map_err(|error| format!("{error:#}"))
                }
            });
            self.control = Some(control);
        }
    }

    /// The state with what was counted up to this moment, also by workers that had nothing to do since.
    #[expect(
        clippy::disallowed_methods,
        reason = "the writer's thread waits, no packet does"
    )]
    fn state_now(&self) -> GatewayStatus {
        let question = self.shared.ask();
        self.wakers.iter().for_each(Waker::wake);
        let asked = progress::now();
        while !self.shared.is_answered(question) && asked.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.snapshot.take()
    }

    /// The state as it was last reported, to the screen and the console too.
    fn show(&mut self) -> GatewayStatus {
        let status = self.snapshot.take();
        let report = self.report(&status);
        self.view.tick(&report);
        self.view.show_status(status.clone());
        status
    }

    /// Says when the scanner is away and when it is back.
    fn tell_of_scanner(&mut self, status: GatewayStatus) {
        let Some(scanner) = status.scanner.filter(|_| status.uptime_s > 1.0) else {
            return;
        };
        let was = self.scanner_answers.replace(scanner.is_reachable);
        match (was, scanner.is_reachable) {
            (None | Some(true), false) => warn(&format!(
                "clamd at {} does not answer: {}",
                scanner.address,
                scanner.last_error.unwrap_or_default()
            )),
            (Some(false), true) => warn(&format!("clamd at {} answers", scanner.address)),
            _ => {}
        }
    }

    /// Whether a policy could be taken: nothing changes.
    fn consider(&self, offer: &Offer) -> anyhow::Result<()> {
        if offer.namespace != self.origin.namespace {
            return Err(anyhow!("this gateway runs in another network namespace"));
        }
        if offer.config != self.origin.config {
            return Err(anyhow!(
                "this gateway runs {}: change that file, or start the gateway anew",
                self.origin.config.display()
            ));
        }
        self.read_again(&offer.numbers).map(|_| ())
    }

    /// The policy as its file is now, where this gateway can take it.
    fn read_again(&self, numbers: &BTreeMap<String, u16>) -> anyhow::Result<GatewayConfig> {
        let new = GatewayConfig::read(&self.config.path, numbers)?;
        let old = &self.config;
        let changes = [
            (new.settings.queues() != old.settings.queues(), "`queues`"),
            (new.policy.marks != old.policy.marks, "`mark-mask`"),
            (
                new.settings.is_fail_open != old.settings.is_fail_open,
                "`fail` of [gateway]",
            ),
            (new.settings.control != old.settings.control, "`control`"),
            (
                new.scanner.is_some() && old.scanner.is_none(),
                "a first scanner",
            ),
            (
                new.keeps_files() && !old.keeps_files(),
                "a first rule that keeps files",
            ),
        ];
        match changes.iter().find(|(is_new, _)| *is_new) {
            Some((_, what)) => Err(anyhow!(
                "{what} needs a new start of the gateway: the policy stays as it was"
            )),
            None => Ok(new),
        }
    }

    /// Loads the policy again: connections that are decided keep their rules.
    fn reload(&mut self, numbers: &BTreeMap<String, u16>) -> anyhow::Result<()> {
        let config = self.read_again(numbers)?;
        self.shared.policy.set(Arc::clone(&config.policy));
        self.numbers = config.plan().rules;
        self.config = config;
        self.snapshot.count_reload();
        Ok(())
    }

    fn report(&self, status: &GatewayStatus) -> RunReport {
        let mut report = RunReport {
            packets: status.packets,
            bytes: status.bytes,
            records: self.written,
            last: Some(self.clock.now()),
            losses: self.outputs.losses(),
            ..RunReport::default()
        };
        report.drops.kernel = lost_packets(status);
        report
    }

    fn conclude(mut self, document: Option<AtEnd>) -> anyhow::Result<Exit> {
        let status = self.show();
        let undelivered = self.view.finish(&self.report(&status));
        let ended = self.outputs.finish();
        let mut losses = self.outputs.losses();
        self.losses.tell(&losses);
        losses.extend(undelivered);
        self.snapshot.finish();
        self.snapshot
            .take_notices()
            .iter()
            .for_each(|notice| warn(notice));
        let status = self.snapshot.take();
        if let Some(document) = document {
            let report = RunReport {
                losses: losses.clone(),
                ..self.report(&status)
            };
            losses.extend(document.write_json(&summary(&status, &report)));
        }
        let mut exit = outputs::exit(ended, &losses);
        if !self.args.output.quiet {
            say(to_screen(&status).trim_end());
        }
        for worker in &self.shared.workers {
            if let Some(why) = worker.report().failed {
                warn(&why);
                exit = exit.max(Exit::Failed);
            }
        }
        let lost: Vec<_> = outputs::lost(&losses).collect();
        if !lost.is_empty() {
            warn(&format!("lost: {}", screen::lost(lost, 6)));
        }
        if lost_packets(&status) + status.events_lost > 0 {
            exit = exit.max(Exit::DataLost);
        }
        Ok(exit)
    }
}

fn lost_packets(status: &GatewayStatus) -> u64 {
    let queues = status.queues.iter();
    queues.map(|queue| queue.dropped + queue.user_dropped).sum()
}

/// The summary: what all commands have, and the status under the key of the stage.
fn summary(status: &GatewayStatus, report: &RunReport) -> serde_json::Value {
    serde_json::json!({
        "packets": status.packets,
        "bytes": status.bytes,
        "first_ts_ns": null,
        "last_ts_ns": report.last.map(Timestamp::as_nanos),
        "elapsed_s": status.uptime_s,
        "dropped": {
            "kernel": report.drops.kernel,
            "queue": status.events_lost,
            "sink": outputs::by_name(&report.losses),
        },
        "decode_errors": {},
        "gateway": status,
    })
}

fn open_outputs(args: &RunArgs) -> anyhow::Result<Outputs<GatewayKind>> {
    let options = OutputOptions {
        rotation: args.output.rotate,
        ..args.output.store.options(true)
    };
    let destinations = outputs::destinations(&args.output.write, args.view.has_top());
    let summary = args.output.summary.as_deref();
    let written = destinations.iter().map(|to| ("-w", *to));
    let written = written.chain(summary.map(|to| ("--summary", to)));
    let written: Vec<_> = written.map(|(flag, to)| (flag, Path::new(to))).collect();
    conflicts::check(&written, &[("--config", args.file.config.as_path())])
        .map_err(|message| anyhow!(Wrong(message)))?;
    outputs::open(&destinations, args.output.format, &options)
}

fn open_queues(config: &GatewayConfig) -> anyhow::Result<Vec<Queue>> {
    let options = QueueOptions {
        max_len: config.settings.queue_length,
        fail_open: config.settings.is_fail_open,
        ..QueueOptions::default()
    };
    let queues = config.settings.queues();
    let queues = queues.map(|number| Queue::open(number, &options));
    Ok(queues.collect::<Result<_, _>>()?)
}

fn start_scanner(settings: &ScannerSettings) -> anyhow::Result<Scanner> {
    let options = ScannerOptions {
        connections: settings.connections,
        timeout: settings.timeout,
        max_scan_bytes: settings.max_scan_bytes,
        memory_bytes: settings.memory_bytes,
        spool_dir: settings.spool.clone(),
        ..ScannerOptions::new(settings.address.clone())
    };
    Ok(Scanner::start(options)?)
}

fn start_vault(settings: &RecordSettings) -> anyhow::Result<Vault> {
    let (folder, quarantine) = vault_folders(settings).context("no folder for files")?;
    let options = VaultOptions {
        max_file_bytes: settings.max_file,
        max_total_bytes: settings.max_total,
        when_full: if settings.is_ring {
            WhenFull::DeleteOldest
        } else {
            WhenFull::Refuse
        },
        ..VaultOptions::new(folder, quarantine)
    };
    Ok(Vault::start(options)?)
}

/// The folder of files that are kept or still come, and that of infected ones. One is made in the
/// other where only one is named.
fn vault_folders(settings: &RecordSettings) -> Option<(PathBuf, PathBuf)> {
    match (&settings.folder, &settings.quarantine) {
        (Some(folder), Some(quarantine)) => Some((folder.clone(), quarantine.clone())),
        (Some(folder), None) => Some((folder.clone(), folder.join("quarantine"))),
        (None, Some(quarantine)) => Some((quarantine.join("passing"), quarantine.clone())),
        (None, None) => None,
    }
}

/// The folders in which files will be made.
fn written_folders(args: &RunArgs, config: &GatewayConfig) -> Vec<PathBuf> {
    let named = args.output.write.iter().filter(|to| !to.contains("://"));
    let named = named.chain(&args.output.summary).map(Path::new);
    let mut folders = outputs::written_folders(named);
    folders.extend(config.settings.control.parent().map(|folder| {
        let here = folder.as_os_str().is_empty();
        if here {
            PathBuf::from(".")
        } else {
            folder.to_owned()
        }
    }));
    folders.extend(
        vault_folders(&config.record)
            .into_iter()
            .flat_map(|(a, b)| [a, b]),
    );
    folders.extend(
        config
            .scanner
            .iter()
            .filter_map(|scanner| scanner.spool.clone()),
    );
    folders
}

/// What was needed to open the queues and sockets is not needed to serve them.
fn give_up_privileges(args: &RunArgs, config: &GatewayConfig) -> anyhow::Result<()> {
    let folders = written_folders(args, config);
    for folder in &folders {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    outputs::give_up_privileges(&Restrict {
        writable: folders,
        keep_net_admin: true,
        ..Restrict::default()
    })
}
