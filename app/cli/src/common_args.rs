//! Flags and formats that several commands have.

use std::fs::File;
use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use chrono::TimeZone as _;
use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use linkweir_engine::DeliveryTimeout;
use linkweir_proto::application::Application;
use linkweir_record::{HeaderNames, HttpKind};
use linkweir_sink::{Format, OutputOptions, Partition, TableOptions, TimeStyle};

use crate::clock::{begun_ns, wall_clock};
use crate::exit::{Wrong, wants_colours, warn};
use crate::files::OverwriteArgs;
use crate::signals::is_stopping;
use crate::units;
use linkweir_console::otlp::SpanQueue;
use linkweir_console::{Pem, Tls};

/// Bytes that are read of a file with a token.
const MAX_TOKEN_FILE: u64 = 4096;

/// What can be looked at while a command runs.
#[derive(Debug, Args)]
#[command(next_help_heading = "Live view")]
pub(crate) struct ViewArgs {
    /// Interval of the live statistics; without `--console` and `--top`, each interval is printed as a line
    /// on standard error [default: 1s, and no lines].
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub(crate) interval: Option<Duration>,

    /// Serve a web page with live statistics, and `/metrics` for Prometheus, at this address, for example
    /// `127.0.0.1:8080`. Any address but loopback requires a token. `stdin`: standard input is a listening
    /// socket, as passed by systemd.
    #[arg(long, value_name = "ADDR", value_hint = ValueHint::Other)]
    pub(crate) console: Option<String>,

    /// Require this token for the page and `/metrics`, as `?token=` or `Authorization: Bearer` [default:
    /// none on loopback; otherwise generated and printed].
    #[arg(long, value_name = "TEXT", requires = "console")]
    pub(crate) console_token: Option<String>,

    /// Require the token in this file, the first line of it, as `--console-token` does: other users of the machine see the
    /// arguments of a program, and not a file that they may not read [default: as `--console-token`].
    #[arg(long, value_name = "FILE", requires = "console", conflicts_with = "console_token", value_hint = ValueHint::FilePath)]
    pub(crate) console_token_file: Option<PathBuf>,

    /// Accept this host name from browsers, besides the address; may be repeated.
    #[arg(long, value_name = "HOST", requires = "console")]
    pub(crate) console_host: Vec<String>,

    /// Serve the page and `/metrics` by HTTPS only, with the certificate in this PEM file, followed there by those that it is
    /// signed by; TLS 1.2 and 1.3. The file is read once, before privileges are given up [default: HTTP].
    #[arg(long, value_name = "FILE", requires = "console", requires = "console_key", value_parser = pem(), value_hint = ValueHint::FilePath)]
    pub(crate) console_cert: Option<Pem>,

    /// Take the private key of `--console-cert` from this PEM file, without a password [default: HTTP].
    #[arg(long, value_name = "FILE", requires = "console_cert", value_parser = pem(), value_hint = ValueHint::FilePath)]
    pub(crate) console_key: Option<Pem>,

    /// Keep the intervals of the last day in this file of 36 MB, so that the page still shows them after a restart:
    /// 1 hour in steps of 5 s, 6 hours in steps of 30 s, 24 hours in steps of 2 min. A file that is there is continued
    /// [default: the page begins with the run].
    #[arg(long, value_name = "FILE", requires = "console", value_hint = ValueHint::FilePath)]
    pub(crate) console_history: Option<PathBuf>,

    /// Show live statistics in the terminal; q ends the run.
    #[arg(long)]
    pub(crate) top: bool,

    /// Alert when this rule holds; may be repeated. A rule is METRIC [of WHAT NAME | where (CONDITION)] COMPARISON
    /// LIMIT [for N intervals] [min N samples], with a condition as in `--where`, for example (http) `p95 of host shop.test > 500 ms for 3 intervals`,
    /// `5xx share > 2 %`, `p99 where (method = POST and host ~ shop) > 1 s`; (flows) `p95 of rtt of server 10.0.0.1 > 200 ms`, `retransmissions share > 3 %`;
    /// (gateway) `infected rate of client 10.0.0.7 > 0 /s`.
    ///
    /// Metrics of http: p50 p90 p95 p99 p999 mean max, 4xx|5xx|unanswered share, requests rate, of
    /// host|server|url. Metrics of flows: p50... of rtt|client rtt|server
    /// rtt|handshake|throughput|duration, flows|resets|packets|bits rate (`/s`),
    /// retransmissions|resets|unanswered share, active flows, of server|client|name|application. Of both:
    /// table fill. Metrics of a gateway: events|blocked|infected|keyword|unscanned rate (`/s`), and
    /// decided|message|file|limit|malformed|unseen rate, of application|client|server, packets|bits rate.
    /// Metrics of load: p50... of response|service|connect|lag, sessions|completed|failed|requests|responses rate,
    /// failed|`no_room`|4xx|5xx share, table fill. Of all: drops.
    ///
    /// A value requires samples: 20 for shares, mean and percentiles up to p95, 100 for p99, 1000 for p999,
    /// none for rates, unless the rule ends with `min N samples`. An interval with fewer samples is
    /// combined with those before it, up to the last N (at least 10); if these are too few as well, the
    /// rule has `no data`, which is not `resolved`.
    ///
    /// Alerts go to standard error, `/metrics` and `--webhook`.
    #[arg(long, value_name = "RULE")]
    pub(crate) alert: Vec<String>,

    /// Send alerts as JSON to this URL, by POST.
    #[arg(long, value_name = "URL", requires = "alert", value_hint = ValueHint::Url)]
    pub(crate) webhook: Option<String>,

    /// Send the metrics of `/metrics` to this receiver of OpenTelemetry (OTLP over HTTP), for example
    /// `http://127.0.0.1:4318`, to which `/v1/metrics` is added; `linkweir http` also sends a span of each transaction
    /// with a request to `/v1/traces` (with `--sample 1/N`, of the sample). What is not delivered is counted; a run
    /// never waits for it, but at its end at most 5 s.
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) otlp: Option<String>,

    /// How often metrics are sent to `--otlp`.
    #[arg(long, value_name = "DURATION", value_parser = units::duration, default_value = "10s", requires = "otlp")]
    pub(crate) otlp_interval: Duration,

    /// Where spans wait for `--otlp`.
    #[arg(skip)]
    pub(crate) spans: SpanQueue,
}

impl ViewArgs {
    /// What the view writes, with the flag that names it.
    pub(crate) fn written(&self) -> Option<(&'static str, &Path)> {
        Some(("--console-history", self.console_history.as_deref()?))
    }

    /// What the console serves HTTPS with, where it does.
    pub(crate) fn tls(&self) -> anyhow::Result<Option<Tls>> {
        let (Some(certificate), Some(key)) = (&self.console_cert, &self.console_key) else {
            return Ok(None);
        };
        let tls = Tls::new(certificate, key)
            .map_err(|error| anyhow!(Wrong(format!("--console-cert: {error}"))))?;
        Ok(Some(tls))
    }

    /// The token that the console requires, from wherever it was given.
    pub(crate) fn token(&self) -> anyhow::Result<Option<String>> {
        let Some(path) = &self.console_token_file else {
            return Ok(self.console_token.clone());
        };
        let fault = |why: &dyn std::fmt::Display| {
            anyhow!(Wrong(format!(
                "--console-token-file {}: {why}",
                path.display()
            )))
        };
        let mut text = String::new();
        let file = File::open(path).map_err(|error| fault(&error))?;
        // A token is shorter, and a device has no end.
        let read = file.take(MAX_TOKEN_FILE).read_to_string(&mut text);
        read.map_err(|error| fault(&error))?;
        let line = text.lines().next().unwrap_or_default().trim();
        if line.is_empty() {
            return Err(fault(&"no token in its first line"));
        }
        Ok(Some(line.to_owned()))
    }
}

/// Reads a PEM file: while the command line is read, the process still has the privileges that the key may need.
fn pem() -> impl TypedValueParser<Value = Pem> {
    PathBufValueParser::new().try_map(|path| Pem::read(&path))
}

/// Header fields in records of HTTP transactions.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct HeaderArgs {
    /// Add the columns `req_NAME` and `resp_NAME` with the header field NAME of the request and of the final response (letters
    /// in lower case, `_` for other characters than letters and digits), in every format but text; may be repeated, up to 16
    /// times. Several lines of one name are joined by `, `, and a value is cut at 1,024 bytes. Values are written as sent: those
    /// of `Cookie` and `Authorization` are secrets.
    #[arg(long, value_name = "NAME")]
    pub(crate) header: Vec<String>,
}

impl HeaderArgs {
    /// The names, which are columns of all records from now on.
    pub(crate) fn choose(&self) -> anyhow::Result<HeaderNames> {
        let wrong = |why: &str| anyhow!(Wrong(format!("--header: {why}")));
        let names = HeaderNames::new(&self.header).map_err(|error| wrong(&error.to_string()))?;
        if !names.is_empty() && !HttpKind::choose_headers(&names) {
            return Err(wrong("other columns were chosen before"));
        }
        Ok(names)
    }
}

/// Which records are written, what of them, and how they look on a terminal.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ChoiceArgs {
    /// Write only records that match this expression over the columns (`linkweir schema`), for example
    /// `status >= 500 and response_time > 1s and host ~ "shop"`: `=` `!=` `<` `<=` `>` `>=`, `~` (regular
    /// expression, ignoring case), `in (A, B)`, `and` `or` `not` and parentheses; a column alone asks whether it has a
    /// value, a comparison with an empty column is false. The beginning of a name up to a `_` is enough where it is
    /// the only one; an address may be a network; times and bytes take a unit (`500ms`, `64KiB`), without one they are
    /// in that of the column, nanoseconds for most times; a point in time may be a date (RFC 3339: `request_ts >=
    /// 2026-11-01T00:00:00Z`). Text in quotes is compared letter by letter. Totals, the live view
    /// and reports still take everything.
    #[arg(long = "where", value_name = "EXPR")]
    pub(crate) condition: Option<String>,

    /// Write only these columns, in this order; in `table`, `text`, `jsonl`, `csv`, `spreadsheet` and messages of syslog
    /// [default: those of the format].
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    pub(crate) fields: Vec<String>,

    /// Write at most this many records. The run ends soon after the last one, and totals are of what was read until then:
    /// of files up to 512 records more, so that small ones are read to their end. It goes on where something else takes
    /// all records, such as a report or the live view. Several workers that share the packets may write others first
    /// [default: all].
    #[arg(long, value_name = "RECORDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) head: Option<u64>,

    /// Show times in a table as time of day here (`local`) or in UTC (`utc`), in seconds since 1970 (`epoch`), or since
    /// the first packet that was read (`relative`; with `-` where a later input begins before the first one); an error where no
    /// table is written, as other formats have times of their own [default: local].
    #[arg(long, value_name = "local|utc|epoch|relative", value_parser = time_style())]
    pub(crate) time: Option<TimeStyle>,
}

impl ChoiceArgs {
    /// Reads where this is, before privileges are given up: local time comes from files.
    pub(crate) fn prepare(&self) {
        offset_s(wall_clock());
    }

    /// The options of an output with them.
    pub(crate) fn on(&self, options: OutputOptions) -> OutputOptions {
        OutputOptions {
            condition: self.condition.clone(),
            head: self.head,
            fields: self.fields.clone(),
            table: TableOptions {
                width: terminal_width(),
                is_coloured: std::io::stdout().is_terminal() && wants_colours(),
                time: self.time,
                offset_s,
                first_ns: begun_ns,
            },
            is_shown: std::io::stdout().is_terminal(),
            ..options
        }
    }
}

/// Columns of the terminal on standard output, if that is one.
pub(crate) fn terminal_width() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let size = terminal_size::terminal_size_of(std::io::stdout());
    size.map(|(terminal_size::Width(columns), _)| usize::from(columns))
}

/// How far local time is ahead of UTC at a moment, seconds.
fn offset_s(nanos: u64) -> i32 {
    let seconds = i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX);
    let local = chrono::Local.timestamp_opt(seconds, 0).earliest();
    local.map_or(0, |moment| moment.offset().local_minus_utc())
}

pub(crate) fn time_style() -> impl TypedValueParser<Value = TimeStyle> {
    PossibleValuesParser::new(TimeStyle::ALL.map(TimeStyle::as_str))
        .try_map(|name| TimeStyle::from_name(&name).ok_or("no such style"))
}

/// What destinations of records want to know.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct StoreArgs {
    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,

    #[command(flatten)]
    pub(crate) files: OverwriteArgs,

    /// Partition Parquet files into directories by the time of their records (UTC): `-w` then names a
    /// directory, in which files such as `date=2026-11-22/hour=07/part-000001.parquet` are written
    /// [default: one file].
    #[arg(long, value_name = "hour|day", value_parser = partition)]
    pub(crate) partition: Option<Partition>,

    /// Maximum size of all files of a partitioned output (`100GB`); above it the oldest are deleted, with a
    /// message [default: no limit].
    #[arg(long, value_name = "SIZE", value_parser = units::size, requires = "partition")]
    pub(crate) budget: Option<u64>,

    /// Name of this probe in messages of `kafka://` [default: the host name].
    #[arg(long, value_name = "NAME")]
    pub(crate) probe: Option<String>,

    /// Maximum time to wait for a destination over the network (`kafka://`, `elasticsearch://`, `syslog://`,
    /// `ipfix://`) that takes nothing,
    /// in the middle of files and at the end of any run; then its records are counted as lost. At most 30 s once you have asked to stop,
    /// and 5 s for `--otlp` and `--webhook`
    /// [default: 5min for files, 30s otherwise].
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub(crate) delivery_timeout: Option<Duration>,

    /// Set an option of the Kafka client, by librdkafka's name, for example `compression.codec=zstd`; may
    /// be repeated. `queue.buffering.max.messages` and `.kbytes` limit what is queued for a broker
    /// [default: 500000 and 262144]; `linkweir.patience.ms` takes the place of
    /// `--delivery-timeout` for it.
    ///
    /// A VALUE `@FILE` is the first line of a file, so that a secret is not in the process list:
    /// `--kafka security.protocol=sasl_ssl --kafka sasl.mechanism=SCRAM-SHA-512 --kafka sasl.username=probe --kafka
    /// sasl.password=@/etc/linkweir/kafka.password`. The file is read before privileges are given up.
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) kafka: Vec<(String, String)>,

    /// Set an option of `elasticsearch://`: `api-key`, `user`, `password`, `ca-file` (PEM, certificates to trust instead of the system's),
    /// `compression` (`gzip` or `none`) [default: none]; may be repeated. A VALUE `@FILE` is the first line of a file; else
    /// the key and the password come from `LINKWEIR_ELASTICSEARCH_API_KEY` and `LINKWEIR_ELASTICSEARCH_PASSWORD`.
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) elasticsearch: Vec<(String, String)>,
}

/// Settings that may come from the environment, which other users cannot see.
const FROM_ENVIRONMENT: [(&str, &str); 2] = [
    ("api-key", "LINKWEIR_ELASTICSEARCH_API_KEY"),
    ("password", "LINKWEIR_ELASTICSEARCH_PASSWORD"),
];

impl StoreArgs {
    /// How long the end of a run waits for those whom it only tells of itself.
    pub(crate) fn end(&self) -> Duration {
        self.delivery_timeout.unwrap_or(Duration::MAX)
    }

    /// How long a destination over the network is waited for.
    pub(crate) fn timeout(&self, is_live: bool) -> DeliveryTimeout {
        let given = self.delivery_timeout.map(DeliveryTimeout::given);
        given.unwrap_or_else(|| DeliveryTimeout::of_run(is_live))
    }

    /// The settings of Elasticsearch; what is given goes before the environment.
    fn elasticsearch(&self) -> Vec<(String, String)> {
        let from_environment = FROM_ENVIRONMENT.iter().filter_map(|(name, variable)| {
            Some(((*name).to_owned(), std::env::var(variable).ok()?))
        });
        from_environment.chain(self.elasticsearch.clone()).collect()
    }

    /// The options of an output; `is_live` where records come from an interface.
    pub(crate) fn options(&self, is_live: bool) -> OutputOptions {
        self.choice.on(OutputOptions {
            wall_clock_ns: wall_clock,
            is_live,
            existing: self.files.existing(is_live),
            partition: self.partition,
            budget: self.budget,
            probe: self.probe.clone().unwrap_or_else(host_name),
            timeout: self.timeout(is_live),
            kafka: self.kafka.clone(),
            elasticsearch: self.elasticsearch(),
            is_stopping,
            announce: warn,
            ..OutputOptions::default()
        })
    }
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

fn partition(word: &str) -> Result<Partition, String> {
    match word {
        "hour" => Ok(Partition::Hour),
        "day" => Ok(Partition::Day),
        _ => Err("one of hour, day".to_owned()),
    }
}

pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| "NAME=VALUE, for example compression.codec=zstd".to_owned())?;
    let value = match value.strip_prefix('@') {
        Some(path) => {
            let content = std::fs::read_to_string(path)
                .map_err(|error| format!("cannot read {path}: {error}"))?;
            content.lines().next().unwrap_or_default().to_owned()
        }
        None => value.to_owned(),
    };
    Ok((name.to_owned(), value))
}

/// What a help text says of applications: all their names.
pub(crate) fn applications() -> String {
    let mut names: Vec<&str> = Application::ALL.iter().map(|one| one.as_str()).collect();
    names.sort_unstable();
    let mut text =
        "Applications (anything else is unknown; a rule for http also matches http2 and grpc, one for stun or\n  dtls also stun,dtls):"
            .to_owned();
    let mut column = usize::MAX;
    for name in names {
        column = column.saturating_add(1 + name.len());
        if column > LINE {
            text.push_str("\n ");
            column = 2 + name.len();
        }
        text.push(' ');
        text.push_str(name);
    }
    text
}

/// Columns of a line of help.
const LINE: usize = 100;

/// The names of formats.
pub(crate) fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::as_str))
        .try_map(|name| Format::from_name(&name).ok_or("no such format"))
}
