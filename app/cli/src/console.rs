//! `linkweir console`: many probes, one view. Reads the sketches of all probes and shows them until a signal.

use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use linkweir_kafka::Consumer;
use linkweir_live::alert::Scope;
use linkweir_live::sketch::{MergeOptions, Mergeable, Merger};
use linkweir_record::{FlowKind, HttpKind};

use crate::clock::timestamp;
use crate::common_args::ViewArgs;
use crate::exit::{Exit, Wrong, warn};
use crate::outputs::restrict_reader;
use crate::signals::Signals;
use crate::view::{View, Viewed};
use crate::{sketches, units};

const AFTER: &str = "Examples:
  linkweir http -i eth0 -w kafka://broker/web --probe hall-3       (on each probe)
  linkweir console --from kafka://broker/web                       (one page of all, on 127.0.0.1:8080)
  linkweir console --from kafka://a,b,c/web --kind flows --top
  linkweir console --from kafka://broker/web --probe hall-3        (one of them)
  linkweir console --from kafka://broker/web --since beginning --alert '5xx share > 2 %'

Exit codes:
  0  ended by a signal, or by q in the terminal
  2  invalid usage
  3  the page cannot be served";

/// Show the live statistics of many probes as one.
///
/// Each probe that writes its records to `kafka://BROKER/TOPIC` also sends the sums, histograms and top
/// tables of every interval to the topic `TOPIC.sketches`. Their sum gives the statistics that one probe
/// would have of all packets, with the same page, terminal view, alerts and /metrics.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct ConsoleArgs {
    /// The destination of the probes' records.
    #[arg(long, value_name = "kafka://HOST[:PORT][,HOST...]/TOPIC")]
    pub(crate) from: String,

    /// What the records are.
    #[arg(long, value_name = "http|flows", default_value = "http")]
    pub(crate) kind: Subject,

    /// Begin with new messages, or with the oldest that the topic holds.
    #[arg(long, value_name = "now|beginning", default_value = "now")]
    pub(crate) since: Since,

    /// Show this probe only, by the name that it has in `--probe`; may be repeated. Sketches of others are counted
    /// [default: all probes].
    #[arg(long, value_name = "NAME")]
    pub(crate) probe: Vec<String>,

    /// Maximum time that an interval waits for probes; data that arrives later is counted, and added to the
    /// totals of the run only.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = units::duration)]
    pub(crate) late: Duration,

    /// Set an option of the Kafka client, by librdkafka's name; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = crate::common_args::setting)]
    pub(crate) kafka: Vec<(String, String)>,

    #[command(flatten)]
    pub(crate) view: ViewArgs,
}

/// What the records are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subject {
    /// HTTP transactions.
    Http,
    /// TCP and UDP flows.
    Flows,
}

/// Where to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Since {
    /// With new messages.
    Now,
    /// With the oldest messages of the topic.
    Beginning,
}

/// How often intervals, signals and the view are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Messages between two looks, where there are many.
const BURST: usize = 200;

/// Runs the command.
pub(crate) fn run(args: ConsoleArgs) -> anyhow::Result<Exit> {
    match args.kind {
        Subject::Http => run_of::<HttpKind>(args),
        Subject::Flows => run_of::<FlowKind>(args),
    }
}

fn run_of<K: Viewed + Mergeable>(mut args: ConsoleArgs) -> anyhow::Result<Exit> {
    let signals = Signals::install()?;
    check_rules::<K>(&args.view)?;
    if !args.view.top && args.view.console.is_none() {
        args.view.console = Some("127.0.0.1:8080".to_owned());
    }
    let topic = sketches::address(&args.from)?;
    // Before the client of the broker starts its threads, which are bound too.
    restrict_reader(args.view.written().map(|(_, path)| path))?;
    let topics = [topic.name.as_str()];
    let open = match args.since {
        Since::Now => Consumer::from_end,
        Since::Beginning => Consumer::from_beginning,
    };
    let consumer = open(&topic.brokers, &topics, &args.kafka)
        .map_err(|error| anyhow!(Wrong(format!("{}: {error}", args.from))))?;
    let source = match args.probe.as_slice() {
        [] => args.from.clone(),
        names => format!("{} ({})", args.from, names.join(", ")),
    };
    let mut view = View::<K>::start_merged(&args.view, &source, &signals)?;
    let Some(live) = view.live() else {
        return Err(anyhow!("nothing is shown"));
    };
    let options = MergeOptions {
        late: args.late,
        stale: args.late.max(args.view.interval.unwrap_or_default() * 5),
    };
    let mut reader = Reader {
        consumer,
        merger: Merger::new(live, options).only(args.probe.iter().map(String::as_str)),
        from: args.from,
        told: None,
    };
    while !signals.stop() {
        reader.read(view.is_covered());
        view.look();
    }
    reader.merger.finish(timestamp());
    view.close();
    Ok(Exit::Done)
}

/// Refuses rules about one host, server and so on: sketches have the numbers of all together.
fn check_rules<K: Viewed>(view: &ViewArgs) -> anyhow::Result<()> {
    for text in &view.alert {
        let rule = K::rule(text).map_err(|error| anyhow!(Wrong(format!("--alert: {error}"))))?;
        if rule.scope != Scope::Run {
            let message = format!(
                "--alert: `{text}` is about a part of the traffic, which sketches do not have; give this rule to the probes"
            );
            return Err(anyhow!(Wrong(message)));
        }
    }
    Ok(())
}

/// Hands messages to the merger, and tells what becomes of the broker.
struct Reader<K: Mergeable> {
    consumer: Consumer,
    merger: Merger<K>,
    from: String,
    /// What was said of the broker last.
    told: Option<String>,
}

impl<K: Mergeable> Reader<K> {
    /// Takes what there is, waiting for [`LOOK`] at most where there is nothing, and closes what is due.
    fn read(&mut self, is_covered: bool) {
        let mut wait = LOOK;
        for _ in 0..BURST {
            let Some(message) = self.consumer.poll(wait) else {
                break;
            };
            self.merger.take(&message.value, timestamp());
            wait = Duration::ZERO;
        }
        let trouble = self.consumer.trouble().map(str::to_owned);
        self.merger.set_fault(trouble.clone());
        self.merger.advance(timestamp());
        if is_covered || trouble.is_some() == self.told.is_some() {
            return;
        }
        match &trouble {
            Some(why) => warn(&format!("{}: {why}; tried again until it works", self.from)),
            None => warn(&format!("{}: sketches can be read again", self.from)),
        }
        self.told = trouble;
    }
}
