//! What is looked at while a run goes on: live statistics, alerts, lines, the page, the terminal.

mod telling;

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use anyhow::anyhow;
use linkweir_console::otlp::{Otlp, OtlpOptions};
use linkweir_console::top::{self, Top, TopOptions};
use linkweir_console::{
    Console, ConsoleError, ConsoleOptions, Order, Pages, Webhook, WebhookOptions,
};
use linkweir_engine::{IntervalEnd, Loss, RunReport, Sink};
use linkweir_live::alert::{AlertEvent, MAX_RULES, Rule};
use linkweir_live::api::Tick;
use linkweir_live::gateway::{GatewayStatus, StatusBoard};
use linkweir_live::load::{LoadRun, LoadStatus, LoadStep};
use linkweir_live::{Kind, LiveOf, LiveOptions, OfRecords};
use linkweir_record::{GatewayKind, HttpKind};
use linkweir_sys::wait::pause;
use linkweir_wire::Timestamp;

use crate::clock::{timestamp, wall_clock};
use crate::common_args::ViewArgs;
use crate::exit::{Wrong, wants_colours, warn};
use crate::signals::Signals;

/// A kind of record that can be looked at while it comes.
pub(crate) trait Viewed: Kind + top::Shown {
    /// What a line for an interval says after its time and its losses.
    fn parts(tick: &Tick<Self::Figures>) -> Vec<String>;
}

/// How long a signal may wait to be seen.
const LOOK: Duration = Duration::from_millis(100);

/// The run that is looked at.
pub(crate) struct Subject<'a> {
    /// What is read, in words.
    pub(crate) source: &'a str,
    /// Whether it comes from a network now.
    pub(crate) is_live: bool,
    /// Whether the run is for more than looking at it: it goes on where nobody can look any more.
    pub(crate) writes: bool,
    /// Who takes orders from the page, where it may give any.
    pub(crate) orders: Option<Sender<Order>>,
    /// The pages of the archive that the run writes.
    pub(crate) pages: Option<Arc<dyn Pages>>,
    /// Whether its records say where addresses are.
    pub(crate) has_places: bool,
    /// Hosts with series of their own in `/metrics`.
    pub(crate) metrics_hosts: usize,
    /// How long the end of the run waits for `--otlp` and `--webhook` (`--delivery-timeout`).
    pub(crate) end: Duration,
}

impl<'a> Subject<'a> {
    /// A run that writes records to `destinations` and to `files`; what goes to `-` is for whoever looks.
    pub(crate) fn of_run(
        source: &'a str,
        is_live: bool,
        destinations: &[String],
        files: &[(&str, &Path)],
    ) -> Self {
        let files = files.iter().map(|(_, path)| path.as_os_str());
        let mut all = destinations.iter().map(OsStr::new).chain(files);
        Self {
            source,
            is_live,
            writes: all.any(|to| to != "-"),
            orders: None,
            pages: None,
            has_places: false,
            metrics_hosts: 0,
            end: Duration::MAX,
        }
    }

    /// What is done with live traffic whether or not somebody looks.
    pub(crate) const fn service(source: &'a str) -> Self {
        Self {
            source,
            is_live: true,
            writes: true,
            orders: None,
            pages: None,
            has_places: false,
            metrics_hosts: 0,
            end: Duration::MAX,
        }
    }
}

/// The live view of a run, if one was asked for.
#[derive(Debug)]
pub(crate) struct View<K: Viewed = HttpKind>(Option<Shown<K>>);

/// None.
impl<K: Viewed> Default for View<K> {
    fn default() -> Self {
        Self(None)
    }
}

#[derive(Debug)]
struct Shown<K: Viewed> {
    live: LiveOf<K>,
    is_live: bool,
    has_lines: bool,
    /// The terminal is not for messages.
    is_covered: bool,
    reported_tick: u64,
    reported_event: u64,
    /// The clock of the run at the last tick.
    clock: Option<Timestamp>,
    console: Option<Console>,
    /// What of it is printed.
    address: String,
    top: Option<Top>,
    webhook: Option<Webhook>,
    otlp: Option<Otlp>,
    /// Whether it was reported that the receiver of `--otlp` fails.
    reported_otlp: bool,
    /// Whether it was reported that the webhook fails, and the last count of what it did not deliver.
    reported_webhook: bool,
    reported_alerts: u64,
    reported_history: bool,
    #[cfg(feature = "kafka")]
    publisher: Option<linkweir_live::sketch::Publisher>,
}

impl<K: Viewed> View<K> {
    /// Starts what `args` ask for.
    pub(crate) fn start(
        args: &ViewArgs,
        subject: &Subject<'_>,
        signals: &Signals,
    ) -> anyhow::Result<Self> {
        let is_wanted = is_seen(args)
            || args.interval.is_some()
            || args.otlp.is_some()
            || !args.alert.is_empty();
        if !is_wanted {
            return Ok(Self(None));
        }
        Self::show(args, subject, options::<K>(args, subject)?, signals)
    }

    /// Starts what `args` ask for over statistics of these options.
    fn show(
        args: &ViewArgs,
        subject: &Subject<'_>,
        options: LiveOptions,
        signals: &Signals,
    ) -> anyhow::Result<Self> {
        let is_live = options.is_live;
        let live = LiveOf::<K>::new(options);
        let mut shown = Shown {
            live,
            is_live,
            has_lines: args.interval.is_some() && !is_seen(args),
            is_covered: false,
            reported_tick: 0,
            reported_event: 0,
            reported_webhook: false,
            reported_alerts: 0,
            reported_history: false,
            clock: None,
            console: None,
            address: String::new(),
            top: None,
            webhook: None,
            otlp: None,
            reported_otlp: false,
            #[cfg(feature = "kafka")]
            publisher: None,
        };
        if let Some((flag, path)) = args.written() {
            let kept = shown.live.keep_day(path);
            kept.map_err(|error| anyhow!("{flag} {}: {error}", path.display()))?;
        }
        shown.serve(args, subject)?;
        shown.post(args, subject.end)?;
        shown.export(args, subject.end)?;
        // Last: from now on messages would stand in its way.
        shown.draw(args, subject, signals)?;
        Ok(Self(Some(shown)))
    }

    /// Where the records of the run go to be counted.
    pub(crate) fn sink(&self) -> Option<Box<dyn Sink<K>>>
    where
        K: OfRecords,
    {
        self.0
            .as_ref()
            .map(|shown| -> Box<dyn Sink<K>> { shown.live.sink() })
    }

    /// Called between batches.
    pub(crate) fn tick(&mut self, report: &RunReport) {
        if let Some(shown) = &mut self.0 {
            let now = if shown.is_live {
                timestamp()
            } else {
                report.last.unwrap_or_default()
            };
            shown.clock = report.last;
            // Where there is a status, the counters come with it and are more than those of a run.
            if !K::HAS_STATUS {
                shown.live.tick(report, now);
            }
            shown.tell();
        }
    }

    /// Where the interval ends in which the run is, where it is one over packets of files: they come faster than anybody
    /// looks at a clock.
    pub(crate) fn interval_end(&self) -> Option<IntervalEnd> {
        let shown = self.0.as_ref()?;
        (!shown.is_live && !K::HAS_STATUS).then(|| shown.live.interval_end())
    }

    /// The run has ended, its page stays while this does; gives the alerts, metrics and spans that were not delivered.
    pub(crate) fn finish(&mut self, report: &RunReport) -> Vec<Loss> {
        let Some(shown) = self.0.as_mut() else {
            return Vec::new();
        };
        if K::HAS_STATUS {
            shown.live.close();
        } else {
            shown.live.finish(report);
        }
        shown.end();
        if !shown.is_live {
            for (rule, why) in shown.live.unjudged() {
                warn(&format!("alert `{rule}`: never judged: {why}"));
            }
        }
        let (alerts, _) = shown.live.webhook_losses();
        let ([metrics, spans], _) = shown.live.export_counts().losses();
        let lost = [
            ("webhook", alerts),
            ("otlp_metrics", metrics),
            ("otlp_spans", spans),
        ];
        let lost = lost.into_iter().filter(|(_, count)| *count > 0);
        lost.map(|(destination, count)| Loss {
            destination: destination.to_owned(),
            count,
            ..Loss::default()
        })
        .collect()
    }

    /// The alert events behind number `after` that are still kept, with their numbers.
    pub(crate) fn events_after(&self, after: u64) -> Vec<(u64, AlertEvent)> {
        let events = self.0.as_ref().map(|shown| shown.live.events_after(after));
        events.unwrap_or_default()
    }

    /// Waits until somebody asks for the end where there is a page of files, which are read faster than
    /// anybody looks.
    pub(crate) fn stay(&self, signals: &Signals) {
        if let Some(Shown {
            is_live: false,
            console: Some(_),
            address,
            ..
        }) = &self.0
            && !signals.stop()
        {
            warn(&format!("the console stays at {} until Ctrl-C", address));
            while !signals.stop() {
                pause(LOOK);
            }
        }
    }

    /// Whether the terminal is taken: nothing else may write to it.
    pub(crate) fn is_covered(&self) -> bool {
        self.0.as_ref().is_some_and(|shown| shown.is_covered)
    }
}

/// Sketches for a message broker, or from one.
#[cfg(feature = "kafka")]
impl<K: Viewed + linkweir_live::sketch::Mergeable> View<K> {
    /// As [`View::start`]; what closes is also published where records go to a broker, whether or not
    /// somebody looks here.
    pub(crate) fn start_probe(
        args: &ViewArgs,
        (destinations, store): (&[String], &crate::common_args::StoreArgs),
        subject: &Subject<'_>,
        signals: &Signals,
    ) -> anyhow::Result<Self> {
        use linkweir_live::sketch::Publisher;
        let carrier = crate::sketches::carrier(destinations, store, subject.is_live)?;
        let Some((probe, carrier)) = carrier else {
            return Self::start(args, subject, signals);
        };
        let options = LiveOptions {
            is_aligned: true,
            ..options::<K>(args, subject)?
        };
        let mut view = Self::show(args, subject, options, signals)?;
        if let Some(shown) = &mut view.0 {
            shown.publisher = Some(Publisher::start(&shown.live, &probe, carrier)?);
        }
        Ok(view)
    }

    /// Shows statistics that somebody else merges: see [`View::live`].
    pub(crate) fn start_merged(
        args: &ViewArgs,
        source: &str,
        signals: &Signals,
    ) -> anyhow::Result<Self> {
        let subject = Subject {
            writes: false,
            ..Subject::service(source)
        };
        let options = LiveOptions {
            // Those of many probes are more than those of one.
            max_keys: 512,
            ..options::<K>(args, &subject)?
        };
        Self::show(args, &subject, options, signals)
    }

    /// The statistics that are shown.
    pub(crate) fn live(&self) -> Option<LiveOf<K>> {
        self.0.as_ref().map(|shown| shown.live.clone())
    }

    /// Tells what is new in statistics that somebody else writes.
    pub(crate) fn look(&mut self) {
        if let Some(shown) = &mut self.0 {
            shown.tell();
        }
    }

    /// They are closed.
    pub(crate) fn close(mut self) {
        if let Some(shown) = &mut self.0 {
            shown.end();
        }
    }
}

/// A gateway has a status instead of the report of a run.
impl View<GatewayKind> {
    /// Shows the status, also the last one before [`View::finish`]; wanted about once a second.
    ///
    /// Its time is that of the last [`View::tick`], by the clock that the events have their times from:
    /// the wall clock may be set while a gateway runs, and intervals of two clocks would not meet.
    pub(crate) fn show_status(&mut self, status: GatewayStatus) {
        if let Some(shown) = &mut self.0 {
            let now = shown.clock.unwrap_or_else(timestamp);
            StatusBoard::new(shown.live.clone()).show(status, now);
            shown.tell();
        }
    }
}

/// Generators have counted already, and have a status beside it.
impl View<LoadRun> {
    /// Whether anybody looks.
    pub(crate) const fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Counts what a generator did.
    pub(crate) fn take(&self, step: LoadStep) {
        if let Some(shown) = &self.0 {
            shown.live.take(&vec![step]);
        }
    }

    /// Shows where the run stands at `now`; its counters are in `report` once the schedule has begun.
    pub(crate) fn show_load(
        &mut self,
        report: Option<&RunReport>,
        status: LoadStatus,
        now: Timestamp,
    ) {
        if let Some(shown) = &mut self.0 {
            shown.live.set_status(status, now);
            if let Some(report) = report {
                shown.live.tick(report, now);
            }
            shown.tell();
        }
    }
}

/// Whether there is something to look at besides lines.
const fn is_seen(args: &ViewArgs) -> bool {
    args.console.is_some() || args.top
}

fn options<K: Viewed>(args: &ViewArgs, subject: &Subject<'_>) -> anyhow::Result<LiveOptions> {
    Ok(LiveOptions {
        is_live: subject.is_live,
        interval: args.interval.unwrap_or(Duration::from_secs(1)),
        source: subject.source.to_owned(),
        alerts: rules::<K>(&args.alert)?,
        has_archive: subject.pages.is_some(),
        has_places: subject.has_places,
        metrics_hosts: subject.metrics_hosts,
        ..LiveOptions::default()
    })
}

fn rules<K: Viewed>(texts: &[String]) -> anyhow::Result<Vec<Rule>> {
    if texts.len() > MAX_RULES {
        let message = format!("--alert: the maximum is {MAX_RULES} rules");
        return Err(anyhow!(Wrong(message)));
    }
    texts
        .iter()
        .map(|text| K::rule(text))
        .collect::<Result<_, _>>()
        .map_err(|error| anyhow!(Wrong(format!("--alert: {error}"))))
}

/// The address of a console to be printed: a token that stands in a file is not for those who read messages.
fn address(args: &ViewArgs, console: &Console) -> String {
    let url = console.url();
    match url.split_once('?') {
        Some((plain, _)) if args.console_token_file.is_some() => plain.to_owned(),
        _ => url,
    }
}

impl<K: Viewed> Shown<K> {
    fn serve(&mut self, args: &ViewArgs, subject: &Subject<'_>) -> anyhow::Result<()> {
        let Some(listen) = &args.console else {
            return Ok(());
        };
        let options = ConsoleOptions {
            listen: listen.clone(),
            token: args.token()?,
            names: args.console_host.clone(),
            orders: subject.orders.clone(),
            pages: subject.pages.clone(),
            tls: args.tls()?,
        };
        let console = Console::start(&options, self.live.clone()).map_err(|error| match error {
            // Its text has the cause in it.
            ConsoleError::System(_) | ConsoleError::Listen { .. } => anyhow!(error.to_string()),
            wrong => anyhow!(Wrong(wrong.to_string())),
        })?;
        self.address = address(args, &console);
        warn(&format!("console at {}", self.address));
        self.console = Some(console);
        Ok(())
    }

    fn post(&mut self, args: &ViewArgs, end: Duration) -> anyhow::Result<()> {
        let Some(url) = &args.webhook else {
            return Ok(());
        };
        let options = WebhookOptions {
            urls: vec![url.clone()],
            end,
            ..WebhookOptions::default()
        };
        let webhook = Webhook::start(options, self.live.clone())
            .map_err(|error| anyhow!(Wrong(error.to_string())))?;
        self.webhook = Some(webhook);
        Ok(())
    }

    fn export(&mut self, args: &ViewArgs, end: Duration) -> anyhow::Result<()> {
        let Some(url) = &args.otlp else {
            return Ok(());
        };
        let options = OtlpOptions {
            url: url.clone(),
            interval: args.otlp_interval,
            clock: wall_clock,
            end,
        };
        let otlp = Otlp::start(options, self.live.clone(), args.spans.clone())
            .map_err(|error| anyhow!(Wrong(format!("--otlp: {error}"))))?;
        self.otlp = Some(otlp);
        Ok(())
    }

    fn draw(
        &mut self,
        args: &ViewArgs,
        subject: &Subject<'_>,
        signals: &Signals,
    ) -> anyhow::Result<()> {
        if !args.top {
            return Ok(());
        }
        let options = TopOptions {
            is_coloured: wants_colours(),
            // A file is read faster than anybody looks.
            stays: !self.is_live,
            is_all: !subject.writes && args.console.is_none() && args.alert.is_empty(),
            ..TopOptions::default()
        };
        let top = Top::start(self.live.clone(), options, signals.stop_flag())?;
        self.is_covered = top.is_fullscreen();
        self.top = Some(top);
        Ok(())
    }

    /// The statistics are closed: shows their end.
    fn end(&mut self) {
        if let Some(top) = self.top.take() {
            top.finish();
            self.is_covered = false;
        }
        // Both send what is left first, at the same time.
        let (mut webhook, mut otlp) = (self.webhook.take(), self.otlp.take());
        if let Some(webhook) = &mut webhook {
            webhook.stop();
        }
        if let Some(otlp) = &mut otlp {
            otlp.stop();
        }
        drop((webhook, otlp));
        self.tell();
        self.tell_of_webhook(true);
        self.tell_of_otlp(true);
        #[cfg(feature = "kafka")]
        if let Some(publisher) = self.publisher.take() {
            let lost = publisher.finish().lost;
            if lost > 0 {
                warn(&format!("{lost} live sketches did not reach the broker"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use linkweir_record::gateway::{GatewayBatch, GatewayEventKind, GatewayRow, GatewayText};

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        view: ViewArgs,
    }

    fn began(flags: &[&str]) -> View<GatewayKind> {
        let flags = std::iter::once(&"view").chain(flags);
        let flags = Flags::try_parse_from(flags).expect("flags of a view");
        let subject = Subject::service("gateway.toml");
        View::start(&flags.view, &subject, &Signals::default()).expect("a view")
    }

    #[test]
    fn a_run_writes_what_is_not_for_whoever_looks() {
        let writes = |to: &[&str], files: &[&str]| {
            let to: Vec<String> = to.iter().map(|to| (*to).to_owned()).collect();
            let files: Vec<_> = files.iter().map(|to| ("--report", Path::new(to))).collect();
            Subject::of_run("eth0", true, &to, &files).writes
        };
        assert!(!writes(&[], &[]));
        assert!(!writes(&["-"], &["-"]));
        assert!(writes(&["-", "kafka://broker/topic"], &[]));
        assert!(writes(&[], &["-", "page.html"]));
    }

    /// The wall clock was set back or forward after the gateway began: its events do not know.
    #[test]
    fn intervals_of_a_gateway_have_the_clock_of_its_events() {
        const S: u64 = 1_000_000_000;
        const BEGAN: u64 = 1_000_000 * S;
        let mut view = began(&["--interval", "1s", "--alert", "infected rate > 0 /s"]);
        let mut sink = view.sink().expect("something counts the events");
        for n in 0..40 {
            let now = BEGAN + n * S / 10;
            let mut batch = GatewayBatch::default();
            let row = GatewayRow {
                ts_ns: now,
                event: GatewayEventKind::Infected,
                ..GatewayRow::default()
            };
            batch.push(row, &GatewayText::default());
            sink.write(&batch).expect("counted");
            sink.flush().expect("counted");
            let report = RunReport {
                last: Some(Timestamp::from_nanos(now)),
                ..RunReport::default()
            };
            view.tick(&report);
            view.show_status(GatewayStatus::default());
        }
        let shown = view.0.as_ref().expect("it was asked for");
        let ticks = shown.live.ticks_after(0);
        let seen: Vec<u64> = ticks.iter().map(|tick| tick.kind("infected")).collect();
        assert_eq!(seen, [10, 10, 10]);
        assert_eq!(shown.reported_event, 1, "one alert, reported once");
    }

    #[test]
    fn nothing_is_counted_where_nobody_looks() {
        assert!(began(&[]).sink().is_none());
    }
}
