//! `gateway run`: queues, stage, scanner, file store and outputs joined, until a signal.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use linkweir_engine::{Loss, Outputs, RunReport};
use linkweir_files::{FileStore, FileStoreOptions};
use linkweir_gateway::policy::{Action, Fail};
use linkweir_live::gateway::GatewayStatus;
use linkweir_netfilter::stats::QueueTable;
use linkweir_netfilter::{Queue, QueueOptions, ResetSender, Waker};
use linkweir_record::human::{counted, span};
use linkweir_record::{
    GatewayBatch, GatewayEventKind, GatewayKind, GatewayRow, GatewayText, RecordBatch as _,
};
use linkweir_scan::{Scanner, ScannerOptions};
use linkweir_sink::OutputOptions;
use linkweir_sys::privileges::{Account, Calls, Restrict};
use linkweir_wire::Timestamp;

use super::args::RunArgs;
use super::config::{GatewayConfig, RecordSettings, ScannerSettings};
use super::control::{self, Asked, Control, Offer};
use super::directories::{self, file_directories};
use super::kernel::{is_of_another_policy, standing_numbers, undecided};
use super::shared::{PolicyBoard, Shared, Watched};
use super::snapshot::Snapshot;
use super::status::to_screen;
use super::watchdog;
use super::watchdog::Notifier;
use super::worker::{self, Clock};
use crate::clock;
use crate::conflicts;
use crate::exit::{Exit, Wrong, say, warn, warn_lines};
use crate::outputs::{self, AtEnd, ReportedLosses};
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
    if is_of_another_policy(&config) {
        warn(
            "THE KERNEL RULES BELONG TO ANOTHER POLICY: they decide what passes without the gateway, and what is shaped; run \
             `linkweir gateway reload`, or `down` and `up`",
        );
    }
    let origin = Offer::of(&args.file.config, BTreeMap::new());
    control::must_be_free(&config.settings.control)?;
    let user = args.user.as_deref().map(directories::account).transpose()?;
    let directories = directories::written(args, &config);
    directories::make(&directories, user.as_ref())?;
    let (control, summary) = open_files(args, &config, &directories, user.as_ref())?;
    let shared = share(&config);
    let resets = config
        .settings
        .queues()
        .map(|_| ResetSender::open(None))
        .collect::<Result<Vec<_>, _>>()?;
    let queue_table = QueueTable::open().ok();
    give_up_privileges(directories, user)?;
    // They may start threads, which are bound too.
    let mut outputs = open_outputs(args)?;
    let scanner = config.scanner.as_ref().map(start_scanner).transpose()?;
    let file_store = config
        .keeps_files()
        .then(|| start_file_store(&config.record))
        .transpose()?;
    let view = start_view(args, &config, &signals)?;
    if let Some(live) = view.sink() {
        outputs.add_observer(live);
    }
    // Last, since packets wait from here on: whatever came before may have taken its time.
    let queues = open_queues(&config)?;
    // What passed by before has no mark.
    let undecided = standing.map_or(0, |_| undecided(&config));
    let wakers = queues.iter().map(Queue::waker).collect();
    if !args.output.quiet {
        say_ready(&config);
    }
    let (sender, events) = sync_channel(WAITING_BATCHES);
    let clock = Clock::start();
    let offered = (scanner.as_ref(), file_store.as_ref());
    let queues = queues.into_iter().zip(resets);
    let mut threads = worker::start(
        queues,
        offered,
        &sender,
        &shared,
        clock,
        args.wait_for_scans,
    )?;
    drop(sender);
    let watched = Arc::clone(&shared);
    let timeout = config.settings.watchdog;
    let dog = std::thread::Builder::new()
        .name("watchdog".to_owned())
        .spawn(move || watchdog::watch(&watched, timeout, &notifier))?;
    let mut running = Running {
        args,
        snapshot: Snapshot::new(
            &config,
            Arc::clone(&shared),
            queue_table,
            scanner,
            file_store,
            undecided,
        ),
        config,
        numbers,
        control: Some(control),
        signals,
        outputs,
        losses: ReportedLosses::default(),
        view,
        shared,
        wakers,
        clock,
        origin,
        written: 0,
        scanner_answers: None,
        flushed: clock::now(),
    };
    running.write(&events);
    running.shared.stop();
    threads.push(dog);
    for thread in threads {
        if thread.join().is_err() {
            warn("a thread of the gateway has panicked");
        }
    }
    // What the workers said last.
    running.write(&events);
    running.conclude(summary)
}

/// Opens what the user owns. What the user may not do is said before a packet waits.
fn open_files(
    args: &RunArgs,
    config: &GatewayConfig,
    directories: &[PathBuf],
    user: Option<&Account>,
) -> anyhow::Result<(Control, Option<AtEnd>)> {
    directories::acting(user, || {
        if let Some(user) = user {
            directories::check(user, directories, config)?;
        }
        let control = Control::listen(&config.settings.control)?;
        let existing = args.output.store.files.existing(true);
        let summary = AtEnd::open("--summary", args.output.summary.as_deref(), existing)?;
        Ok((control, summary))
    })
}

/// What the threads have in common.
fn share(config: &GatewayConfig) -> Arc<Shared> {
    let workers = config.settings.queues().map(|_| Watched::default());
    Arc::new(Shared {
        policy: PolicyBoard::new(Arc::clone(&config.policy)),
        workers: workers.collect(),
        stop: AtomicBool::new(false),
        asked: AtomicU64::new(0),
    })
}

fn start_view(
    args: &RunArgs,
    config: &GatewayConfig,
    signals: &Signals,
) -> anyhow::Result<View<GatewayKind>> {
    let source = format!("gateway {}", config.path.display());
    let subject = Subject {
        end: args.output.store.end(),
        ..Subject::service(&source)
    };
    View::start(&args.view, &subject, signals)
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
    losses: ReportedLosses,
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
                self.flushed = clock::now();
                self.tick();
            }
            if self.signals.stop() || self.shared.is_stopping() {
                // The last look while the queues are there.
                self.show();
                self.shared.stop();
                // The workers end, and with them the channel.
                while let Ok(batch) = events.recv() {
                    self.take(&batch);
                }
                return;
            }
        }
    }

    /// Writes events. The traffic does not depend on it: that no output is left is reported at the end.
    fn take(&mut self, batch: &GatewayBatch) {
        self.written += batch.len() as u64;
        let _goes_on = self.outputs.write(batch);
    }

    fn tick(&mut self) {
        let _goes_on = self.outputs.flush();
        let losses = self.lost();
        self.losses.tell(&losses);
        let status = self.show();
        self.tell_of_scanner(status);
        self.tell_of_unseen(false);
        self.snapshot
            .take_notices()
            .iter()
            .for_each(|notice| warn(notice));
        if self.signals.take_rotate() {
            let _goes_on = self.outputs.rotate();
            self.reload_alone();
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
    fn state_now(&mut self) -> GatewayStatus {
        let question = self.shared.ask();
        self.wakers.iter().for_each(Waker::wake);
        let asked = clock::now();
        while !self.shared.is_answered(question) && asked.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.state()
    }

    /// The state as it was last reported.
    fn state(&mut self) -> GatewayStatus {
        self.snapshot.set_losses(&self.outputs.losses());
        self.snapshot.take()
    }

    /// What outputs have lost, and recorded files.
    fn lost(&self) -> Vec<Loss> {
        let mut losses = self.outputs.losses();
        losses.extend(self.snapshot.lost_files());
        losses
    }

    /// The state as it was last reported, to the screen and the console too.
    fn show(&mut self) -> GatewayStatus {
        let status = self.state();
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

    /// Tells of packets that passed unseen, with the rules that were to let nothing pass unseen.
    fn tell_of_unseen(&mut self, is_end: bool) {
        let Some(spell) = self.snapshot.take_unseen(is_end) else {
            return;
        };
        let nanos = linkweir_wire::nanos(spell.lasted());
        let what = format!(
            "{} passed unseen in {}: a queue of the kernel was full",
            counted(spell.packets, "packet"),
            span(nanos)
        );
        let policy = self.shared.policy.get();
        let rules = policy.rules.iter().filter(|rule| rule.fail == Fail::Closed);
        let mut void: Vec<&str> = rules.map(|rule| rule.name.as_str()).collect();
        if void.is_empty() {
            warn(&what);
            void.push("");
        } else {
            warn(&format!("{what}; void meanwhile: {}", void.join(", ")));
        }
        let row = GatewayRow {
            ts_ns: self.clock.now().as_nanos(),
            event: GatewayEventKind::Unseen,
            action: Action::Allow.as_str(),
            ..GatewayRow::default()
        };
        let mut batch = GatewayBatch::default();
        for rule in void {
            let text = GatewayText {
                rule: rule.as_bytes(),
                detail: what.as_bytes(),
                ..GatewayText::default()
            };
            batch.push(row, &text);
        }
        self.snapshot.count_unseen_events(batch.len() as u64);
        self.take(&batch);
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
                new.settings.is_fail_open() != old.settings.is_fail_open(),
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
                "a change of {what} requires a restart of the gateway"
            )),
            None => Ok(new),
        }
    }

    /// Loads the policy again without the kernel's part, and says what that leaves undone.
    fn reload_alone(&mut self) {
        let (numbers, before) = (self.numbers.clone(), self.config.plan());
        match self.reload(&numbers) {
            Err(error) => warn_lines(&format!("the policy is unchanged: {error:#}")),
            Ok(()) if self.config.plan() == before => say("linkweir: policy reloaded"),
            Ok(()) => warn(
                "policy reloaded; run `linkweir gateway reload` to change rules and rates in the kernel",
            ),
        }
    }

    /// Loads the policy again: connections that are decided keep their rules.
    fn reload(&mut self, numbers: &BTreeMap<String, u16>) -> anyhow::Result<()> {
        let mut config = self.read_again(numbers)?;
        // What clients have used they have used.
        if let (Some(old), Some(_)) = (&self.config.policy.quotas, &config.policy.quotas) {
            Arc::make_mut(&mut config.policy).quotas = Some(Arc::clone(old));
        }
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
        report.drops.kernel = status.lost_packets();
        report
    }

    fn conclude(mut self, document: Option<AtEnd>) -> anyhow::Result<Exit> {
        self.show();
        self.tell_of_unseen(true);
        self.snapshot.finish();
        self.snapshot
            .take_notices()
            .iter()
            .for_each(|notice| warn(notice));
        let status = self.show();
        let undelivered = self.view.finish(&self.report(&status));
        let ended = self.outputs.finish();
        let mut losses = self.lost();
        self.losses.tell(&losses);
        losses.extend(undelivered);
        let status = self.state();
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
        if status.lost_packets() + status.events_lost > 0 {
            exit = exit.max(Exit::DataLost);
        }
        Ok(exit)
    }
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
            "queue": status.events_lost - status.not_written.values().sum::<u64>(),
            "sink": outputs::by_name(&report.losses),
        },
        "decode_errors": {},
        "gateway": status,
    })
}

fn open_outputs(args: &RunArgs) -> anyhow::Result<Outputs<GatewayKind>> {
    args.output.store.choice.prepare();
    let options = OutputOptions {
        rotation: args.output.rotate,
        ..args.output.store.options(true)
    };
    let destinations = outputs::destinations(&args.output.write, args.view.top);
    let summary = args.output.summary.as_deref();
    let written = destinations.iter().map(|to| ("-w", *to));
    let written = written.chain(summary.map(|to| ("--summary", to)));
    let written = written.map(|(flag, to)| (flag, Path::new(to)));
    let written: Vec<_> = written.chain(args.view.written()).collect();
    conflicts::check(&written, &[("--config", args.file.config.as_path())])
        .map_err(|message| anyhow!(Wrong(message)))?;
    outputs::open(&destinations, args.output.format, &options)
}

fn open_queues(config: &GatewayConfig) -> anyhow::Result<Vec<Queue>> {
    let options = QueueOptions {
        max_len: config.settings.queue_length,
        fail_open: config.settings.is_fail_open(),
        ..QueueOptions::default()
    };
    let queues = config.settings.queues();
    let queues = queues.map(|number| Queue::open(number, &options));
    Ok(queues.collect::<Result<_, _>>()?)
}

fn start_scanner(settings: &ScannerSettings) -> anyhow::Result<Scanner> {
    let options = ScannerOptions {
        protocol: settings.protocol.clone(),
        connections: settings.connections,
        timeout: settings.timeout,
        max_scan_bytes: settings.max_scan_bytes,
        memory_bytes: settings.memory_bytes,
        spool_dir: settings.spool.clone(),
        ..ScannerOptions::new(settings.address.clone())
    };
    Ok(Scanner::start(options)?)
}

fn start_file_store(settings: &RecordSettings) -> anyhow::Result<FileStore> {
    let (directory, quarantine) = file_directories(settings).context("no directory for files")?;
    let options = FileStoreOptions {
        max_file_bytes: settings.max_file,
        max_total_bytes: settings.max_total,
        when_full: settings.when_full,
        ..FileStoreOptions::new(directory, quarantine)
    };
    Ok(FileStore::start(options)?)
}

/// What was needed to open the queues and sockets is not needed to serve them.
fn give_up_privileges(directories: Vec<PathBuf>, user: Option<Account>) -> anyhow::Result<()> {
    outputs::give_up_privileges(&Restrict {
        writable: directories,
        keep_net_admin: true,
        calls: Calls::OfService,
        user,
        ..Restrict::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link in a directory of its own is neither beyond its rights nor outside its directories.
    #[test]
    fn a_gateway_makes_only_calls_of_a_service() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().to_owned();
        let given_up = std::thread::spawn(move || {
            let link = |name: &str| std::os::unix::fs::symlink("/", at.join(name));
            link("before").unwrap();
            give_up_privileges(vec![at.clone()], None).unwrap();
            std::fs::write(at.join("file"), "text").unwrap();
            assert_eq!(
                link("after").unwrap_err().kind(),
                std::io::ErrorKind::PermissionDenied
            );
        });
        given_up.join().unwrap();
    }
}
