//! The flags of `linkweir load`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum, ValueHint};
use linkweir_load::arrivals::Word;
use linkweir_load::population::{Group, MacPolicy, Profile};
use linkweir_load::script::{DEFAULT_PARALLEL, MAX_PARALLEL};
use linkweir_record::Prefix;
use linkweir_sink::{Format, Rotation};

use super::group;
use crate::common_args::{StoreArgs, ViewArgs, formats};
use crate::units;

/// Port on which generators meet, where none is given.
pub(super) const MEETING_PORT: u16 = 7433;

const AFTER_HELP: &str = r#"Examples:
  linkweir load http://10.9.0.1/ -i veth0 --clients 10.9.0.0/16 --arrivals poisson:500 --duration 60s
  linkweir load http://10.9.0.1/shop -i eth1 --clients 10.10.0.0/16 --gateway 10.9.0.254 --arrivals mmpp:model.json@993 --duration 1h --seed 7 --group dsl:10.10.0.0/17:rtt=30ms,down=16mbit,up=1mbit,loss=0.1% --report run.html --report run.json -w sessions.jsonl

A laboratory of two namespaces, a million clients (as root). The server reaches them by one route, to an
address that is a client too; on its own link it would have room for about 1000 neighbours:
  ip netns add clients; ip netns add server
  ip -n clients link add load0 type veth peer name web0 netns server
  ip -n clients link set load0 up; ip -n server link set web0 up
  ip -n server addr add 10.9.0.1/16 dev web0; ip -n server route add 10.16.0.0/12 via 10.9.0.254
  ip netns exec server nginx
  ip netns exec clients linkweir load http://10.9.0.1/ -i load0 --clients 10.16.0.0/12,10.9.0.254/32 --arrivals poisson:2000 --duration 10s

A script in httperf's format (--wsesslog), and one in TOML (.toml):
  /index.html think=0.5            [[session]]
      /style.css                   think = { distribution = "exponential", mean = "2s" }
      /logo.png                    [[session.page]]
  /search method=POST contents='q' target = "/index.html"
                                   objects = ["/style.css", "/logo.png"]
  /next-session.html               parse = true     # and what the HTML names

Exit codes:
  0  success, also where some sessions failed (see --max-failed)
  1  success, but all sessions failed, or more than --max-failed allows, or INVALID: the generator itself was the bottleneck (schedule lag, sessions without room,
     frames that could not be sent or were not fetched in time), or an output lost records
  2  invalid usage or configuration; also a target outside of loopback and private ranges
  3  the interface, the target, another generator, a report or all outputs failed
SIGINT or SIGTERM ends a run early with everything written; a second one aborts. SIGUSR1 writes reports, series and summary as they are now,
marked `intermediate`, and prints the figures; the run goes on, and its end replaces them."#;

/// Load a web server with HTTP sessions of many emulated clients, on a schedule.
///
/// Each client has its own address, TCP and access link; their traffic bypasses the network stack of the
/// kernel. The schedule is an open loop: sessions start on time whatever the server does, and response
/// times count from when a request was due, including the time it waited (no coordinated omission). The
/// same seed gives the same schedule.
///
/// At the end: minimum, maximum, mean, standard deviation, median, percentiles and rate of the response
/// times, stages, status codes, failures by cause, TCP events, schedule lag, and Little's law as a check. A
/// run that measured the generator instead of the server is marked INVALID. See docs/load.md.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct LoadArgs {
    /// URL to load: `http://ADDRESS[:PORT][/PATH]`. Names are not resolved: see `--host`.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: String,

    #[command(flatten)]
    pub(crate) link: LinkArgs,

    #[command(flatten)]
    pub(crate) clients: ClientArgs,

    #[command(flatten)]
    pub(crate) schedule: ScheduleArgs,

    #[command(flatten)]
    pub(crate) sessions: SessionArgs,

    #[command(flatten)]
    pub(crate) sending: SendingArgs,

    #[command(flatten)]
    pub(crate) roles: RoleArgs,

    #[command(flatten)]
    pub(crate) view: ViewArgs,

    #[command(flatten)]
    pub(crate) output: LoadOutputArgs,
}

/// Where frames leave.
#[derive(Debug, Args)]
#[command(next_help_heading = "Link")]
pub(crate) struct LinkArgs {
    /// Interface through which the clients reach the server (Ethernet). Requires `CAP_NET_RAW`. Not used by
    /// a controller.
    #[arg(short = 'i', long, value_name = "IFACE", value_hint = ValueHint::Other, required_unless_present_any = ["generators"])]
    pub(crate) interface: Option<String>,

    /// Address of the router to the server [default: the server is on the link].
    #[arg(long, value_name = "ADDR")]
    pub(crate) gateway: Option<IpAddr>,

    /// VLAN of all frames, 1 to 4094 [default: untagged].
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(1..=4094))]
    pub(crate) vlan: Option<u16>,

    /// Hardware addresses of the clients: one `virtual` address for all, that of the `interface` (if a
    /// switch allows no other), or one `per-client`.
    #[arg(long, value_name = "WHICH", default_value = "virtual")]
    pub(crate) mac: MacChoice,

    /// Load a server outside of loopback, private, link-local and benchmark ranges. Must be given twice, to
    /// confirm. Test only servers you are allowed to test.
    #[arg(long, action = ArgAction::Count)]
    pub(crate) allow_public: u8,
}

/// Who asks.
#[derive(Debug, Args)]
#[command(next_help_heading = "Clients")]
pub(crate) struct ClientArgs {
    /// Use the addresses of these prefixes as clients, for example `10.9.0.0/16` or `fd09::/112`; separated
    /// by commas, or repeated. The server, the router and this host are omitted.
    #[arg(long, value_name = "CIDR", value_delimiter = ',', value_parser = group::prefix, required_unless_present_any = ["generators"])]
    pub(crate) clients: Vec<Prefix>,

    /// Access link of clients that are in no group, as in `--group`: `rtt=20ms,loss=0.1%` [default: a host
    /// on the link].
    #[arg(long, value_name = "LINE", value_parser = group::line)]
    pub(crate) line: Option<Profile>,

    /// Give some clients an access link and statistics of their own; may be repeated:
    /// `NAME:CIDR[,CIDR]:LINE`. LINE is a list of `rtt=50ms`, `jitter=5ms` (at most twice the RTT),
    /// `reorder` (jitter may change the order), `down=10mbit`, `up=1mbit`, `queue=100ms` (maximum queueing
    /// time), `loss=1%` (each way; or `loss-down=`, `loss-up=`), `burst=3` (mean number of consecutive
    /// losses), `ttl=64`, `mtu=1492`. Omitted items are those of a host on the link.
    #[arg(long, value_name = "GROUP", value_parser = group::group)]
    pub(crate) group: Vec<Group>,
}

/// When sessions start.
#[derive(Debug, Args)]
#[command(next_help_heading = "Schedule")]
pub(crate) struct ScheduleArgs {
    /// Start sessions by this process, RATE in sessions per second: `constant:RATE`, `poisson:RATE`,
    /// `mmpp:MODEL.json[@RATE]` (a model of `linkweir model fit`, at its own mean rate or scaled to RATE;
    /// `@=RATE` makes RATE the mean of this run, whatever path the seed draws),
    /// `replay:FILE` (requests of `linkweir http`, jsonl, with their times and targets; or a list of times
    /// in seconds, one per line).
    #[arg(long, value_name = "ARRIVALS")]
    pub(crate) arrivals: Word,

    /// Start no session after this time. This or `--sessions` is required, except with `replay`.
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub(crate) duration: Option<Duration>,

    /// Maximum number of sessions.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) sessions: Option<u64>,

    /// Random seed. The same seed reproduces the schedule, clients, ports, think times and losses.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Duration of one bin of an `mmpp` model [default: that of the model]. A shorter one plays the model
    /// faster, with as many sessions per bin.
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub(crate) model_bin: Option<Duration>,

    /// Maximum time that open sessions continue after the end of the schedule; then they fail as
    /// `run_ended`.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = units::duration)]
    pub(crate) drain: Duration,
}

/// What sessions ask for.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sessions")]
pub(crate) struct SessionArgs {
    /// Pages, objects and think times of the sessions: TOML (`.toml`), or the format of httperf's
    /// `--wsesslog` [default: one request for the URL].
    #[arg(long, value_name = "FILE", conflicts_with = "preset", value_hint = ValueHint::FilePath)]
    pub(crate) script: Option<PathBuf>,

    /// Sessions of a preset: `surge` (pages with Pareto many objects and think times, in the manner of
    /// Barford and Crovella 1998; where its numbers come from is in docs/load.md).
    #[arg(long, value_name = "NAME")]
    pub(crate) preset: Option<Preset>,

    /// Paths that the preset requests, one per line, the most popular first [default: that of the URL].
    #[arg(long, value_name = "FILE", requires = "preset", value_hint = ValueHint::FilePath)]
    pub(crate) targets: Option<PathBuf>,

    /// Also fetch the objects that an HTML page names (images, scripts, style sheets) from the same
    /// server.
    #[arg(long, conflicts_with = "preset")]
    pub(crate) embedded: bool,

    /// Think time between pages of a `--wsesslog` script that gives none.
    #[arg(long, value_name = "DURATION", requires = "script", value_parser = units::duration)]
    pub(crate) think: Option<Duration>,

    /// The `Host` field [default: that of the URL].
    #[arg(long, value_name = "NAME", value_hint = ValueHint::Hostname)]
    pub(crate) host: Option<String>,

    /// Use a connection for several requests of a session; this is the default, and takes precedence over a
    /// script.
    #[arg(long, overrides_with = "close")]
    pub(crate) keep_alive: bool,

    /// Use a new connection for each request.
    #[arg(long, overrides_with = "keep_alive")]
    pub(crate) close: bool,

    /// Maximum number of concurrent connections of a session, 1 to 64 [default: as in the script, or 6].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=i64::from(MAX_PARALLEL)))]
    pub(crate) parallel: Option<u8>,

    /// Maximum time from a request to its complete response; then the session fails as `response_timeout`.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = units::duration)]
    pub(crate) timeout: Duration,

    /// Maximum number of concurrent sessions. Beyond it a session fails as `no_room`, and the run is
    /// INVALID.
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub(crate) max_sessions: u32,

    /// Maximum number of concurrent connections; each takes about 128 bytes, plus data in flight.
    #[arg(long, value_name = "N", default_value_t = 250_000, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub(crate) max_connections: u32,
}

/// How the schedule is kept.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sending")]
pub(crate) struct SendingArgs {
    /// Send frames by `xdp` (`AF_XDP`, requires `CAP_BPF` and `CAP_NET_ADMIN`) or a `packet` socket; `auto`
    /// uses the first that works.
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) sender: Sender,

    /// Sleep until this many microseconds before the next deadline, and spin for the rest: a sleep wakes 15
    /// to 20 us late. 0 never spins.
    #[arg(long, value_name = "US", default_value_t = 80, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub(crate) spin_us: u32,

    /// Run the sending thread with real-time priority (`SCHED_FIFO`). Requires `CAP_SYS_NICE`.
    #[arg(long)]
    pub(crate) rt: bool,

    /// Maximum schedule lag: if more than 1 % of the sessions start later than this, the run is INVALID.
    #[arg(long, value_name = "DURATION", default_value = "1ms", value_parser = units::duration)]
    pub(crate) lag_limit: Duration,
}

/// Several hosts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Roles")]
pub(crate) struct RoleArgs {
    /// Role of this process. `all`: everything. `init` starts the sessions on schedule (SYN), `stat` takes
    /// them over, measures and reports: two hosts on one link. `controller` gives each of its `worker`s a
    /// share of the sessions and reports for all. Both sides of a pair must have the same seed, arrivals,
    /// script and clients.
    #[arg(long, value_name = "ROLE", default_value = "all")]
    pub(crate) role: Role,

    /// Address of the other side. `init`, `worker`: address and port at which the `stat` or `controller`
    /// listens. `stat`: address of the `init`, the only one it accepts a connection from [default port:
    /// 7433].
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = peer, required_if_eq_any = [("role", "init"), ("role", "stat"), ("role", "worker")])]
    pub(crate) peer: Option<SocketAddr>,

    /// Address at which a `stat` or `controller` listens [default: all addresses; port of `--peer`, or
    /// 7433].
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = peer)]
    pub(crate) listen: Option<SocketAddr>,

    /// Number of workers that a controller waits for.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), required_if_eq("role", "controller"))]
    pub(crate) generators: Option<u32>,

    /// Let the page of a controller's `--console` start the workers, once all are ready, and end them early. They
    /// wait for it. The page then requires a token on any address [default: it only shows them].
    #[arg(long, requires_all = ["console", "generators"])]
    pub(crate) console_control: bool,

    /// Maximum time to wait for the other side, at the beginning and at the end.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = units::duration)]
    pub(crate) peer_wait: Duration,
}

/// What is written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct LoadOutputArgs {
    /// Write the records of the sessions (`load_session`) to this path, or to standard output (`-`); may be
    /// repeated. A file appears under its name when it is complete; until then it is `.NAME.partial`, and
    /// if the run is killed, the next one keeps that [default: not written].
    #[arg(short = 'w', long = "write", value_name = "DEST", value_hint = ValueHint::FilePath)]
    pub(crate) write: Vec<String>,

    /// Format of the records [default: by the extension: .jsonl .json .ndjson, .csv, .parquet, .arrow, .zeek,
    /// .txt .text .log; otherwise text].
    #[arg(long, value_name = "FORMAT", value_parser = formats(), requires = "write")]
    pub(crate) format: Option<Format>,

    /// Begin a new file after this size (`100MB`, `64MiB`) or time (`300s`, `1h`) [default: one file].
    #[arg(long, value_name = "SIZE|DURATION")]
    pub(crate) rotate: Option<Rotation>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Write a report: everything as one JSON object (`.json`), or a self-contained page with plots
    /// (`.html`); may be repeated.
    #[arg(long, value_name = "FILE.json|FILE.html", value_hint = ValueHint::FilePath)]
    pub(crate) report: Vec<ReportFile>,

    /// Write the counts of each second as CSV; `-` is standard output. Runs of more than 4096 seconds have
    /// rows of 2, 4, 8... seconds.
    #[arg(long, value_name = "FILE.csv", value_hint = ValueHint::FilePath)]
    pub(crate) series: Option<String>,

    /// Write the totals of the run as one JSON object; `-` is standard output.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) summary: Option<String>,

    /// Write all frames sent and received to a capture (pcap, nanoseconds), as they pass the interface:
    /// without the delay and loss of the access links of `--group`.
    #[arg(long, value_name = "FILE.pcap", value_hint = ValueHint::FilePath)]
    pub(crate) pcap: Option<PathBuf>,

    /// Exit with 1 if more than this percentage of the sessions failed [default: if all failed].
    #[arg(long, value_name = "PERCENT")]
    pub(crate) max_failed: Option<f64>,

    /// Print a line each second even if standard error is not a terminal.
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) progress: bool,

    /// Suppress the table on standard error, during the run and at the end.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Read flags from a TOML file: keys are the long flag names (`clients = ["10.9.0.0/16"]`); the command
    /// line takes precedence.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
}

/// Which hardware addresses clients have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MacChoice {
    /// One for all, which no interface has.
    Virtual,
    /// That of the interface.
    Interface,
    /// One for each.
    PerClient,
}

impl From<MacChoice> for MacPolicy {
    fn from(choice: MacChoice) -> Self {
        match choice {
            MacChoice::Virtual => Self::Virtual,
            MacChoice::Interface => Self::Interface,
            MacChoice::PerClient => Self::PerClient,
        }
    }
}

/// Sessions that need no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// Pages with objects and think times.
    Surge,
}

/// How frames are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sender {
    /// The first that works.
    Auto,
    /// `AF_XDP`.
    Xdp,
    /// A packet socket.
    Packet,
}

/// What this process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Everything.
    All,
    /// Starts sessions.
    Init,
    /// Takes them over, measures and reports.
    Stat,
    /// Has workers, and reports for them.
    Controller,
    /// Has a share of the sessions of a controller.
    Worker,
}

impl SessionArgs {
    /// Whether connections are kept, where the command line says so.
    pub(crate) const fn keeps_alive(&self) -> Option<bool> {
        match (self.keep_alive, self.close) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }

    /// Connections of a session where neither flag nor script says.
    pub(crate) fn parallel_or_default(&self) -> u8 {
        self.parallel.unwrap_or(DEFAULT_PARALLEL)
    }
}

impl LinkArgs {
    /// Whether it was confirmed, by giving the flag twice, that the server may be anywhere.
    pub(crate) const fn may_be_public(&self) -> bool {
        self.allow_public >= 2
    }
}

/// An address with or without a port.
fn peer(text: &str) -> Result<SocketAddr, String> {
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(text);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, MEETING_PORT));
    }
    text.parse().map_err(|_| {
        format!("`{text}` is not a valid address: write 10.0.0.2, 10.0.0.2:7433 or [fd00::2]:7433")
    })
}

/// A report and its kind, which its name says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReportFile {
    /// One JSON object; `-` is standard output.
    Json(String),
    /// A page.
    Html(String),
}

impl ReportFile {
    /// Where it goes.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Json(name) | Self::Html(name) => name,
        }
    }
}

impl FromStr for ReportFile {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let ending = std::path::Path::new(name).extension();
        match ending.and_then(|ending| ending.to_str()) {
            _ if name == "-" => Ok(Self::Json(name.to_owned())),
            Some("json") => Ok(Self::Json(name.to_owned())),
            Some("html" | "htm") => Ok(Self::Html(name.to_owned())),
            _ => Err("a report ends in .json or .html".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::load::schedule;
    use crate::load::target::Target;

    #[derive(Debug, Parser)]
    struct Words {
        #[command(flatten)]
        load: LoadArgs,
    }

    fn parse(words: &str) -> Result<LoadArgs, String> {
        Words::try_parse_from(std::iter::once("load").chain(words.split_whitespace()))
            .map(|words| words.load)
            .map_err(|error| error.to_string())
    }

    const LEAST: &str =
        "http://10.9.0.1/ -i veth0 --clients 10.9.0.0/16 --arrivals poisson:500 --duration 60s";

    #[test]
    fn the_least_and_its_defaults() {
        let args = parse(LEAST).unwrap();
        assert_eq!(args.schedule.arrivals, Word::Poisson { rate: 500.0 });
        assert_eq!(args.clients.clients.len(), 1);
        assert_eq!((args.schedule.seed, args.sending.spin_us), (1, 80));
        assert_eq!(args.sending.lag_limit, Duration::from_millis(1));
        assert_eq!(args.roles.role, Role::All);
        assert_eq!(
            (
                args.sessions.keeps_alive(),
                args.sessions.parallel_or_default()
            ),
            (None, 6)
        );
        assert!(!args.link.may_be_public());
    }

    #[test]
    fn the_example_of_the_help_parses() {
        let example = AFTER_HELP
            .lines()
            .find(|line| line.contains("mmpp"))
            .unwrap();
        let args = parse(example.trim().strip_prefix("linkweir load ").unwrap()).unwrap();
        assert_eq!(args.clients.group.len(), 1);
        assert_eq!(
            args.output.report,
            [
                ReportFile::Html("run.html".to_owned()),
                ReportFile::Json("run.json".to_owned())
            ]
        );
    }

    #[test]
    fn public_targets_are_to_be_told_twice() {
        let may = |more: &str| {
            parse(&format!("{LEAST} {more}"))
                .unwrap()
                .link
                .may_be_public()
        };
        assert!(!may("--allow-public"));
        assert!(may("--allow-public --allow-public"));
    }

    #[test]
    fn roles_need_their_peers() {
        assert!(
            parse(&format!("{LEAST} --role init"))
                .unwrap_err()
                .contains("--peer")
        );
        let args = parse(&format!("{LEAST} --role stat --peer fd00::2")).unwrap();
        assert_eq!(args.roles.peer, Some("[fd00::2]:7433".parse().unwrap()));
        let args = parse(&format!("{LEAST} --role init --peer 10.0.0.2:99")).unwrap();
        assert_eq!(args.roles.peer, Some("10.0.0.2:99".parse().unwrap()));
        let url = "http://10.9.0.1/ --arrivals constant:5 --sessions 10";
        assert!(
            parse(&format!("{url} --role controller"))
                .unwrap_err()
                .contains("--generators")
        );
        assert!(parse(&format!("{url} --role controller --generators 2")).is_ok());
        assert!(parse(&format!("{LEAST} --role init --peer nobody")).is_err());
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for (more, why) in [
            ("--report run.pdf", ".json or .html"),
            ("--vlan 4095", "4095"),
            ("--parallel 65", "65"),
            ("--group dsl", "NAME:CIDR"),
            ("--timeout 5", "unit"),
            ("--script a --preset surge", "cannot be used with"),
            ("--format csv", "--write"),
        ] {
            let said = parse(&format!("{LEAST} {more}")).unwrap_err();
            assert!(said.contains(why), "{more}: {said}");
        }
    }

    #[test]
    fn a_schedule_that_never_ends_is_refused() {
        let endless = "http://10.9.0.1/ -i veth0 --clients 10.9.0.0/16 --arrivals poisson:500";
        let target = Target::parse("http://10.9.0.1/", None).unwrap();
        let read = |words: &str| schedule::read(&parse(words).unwrap(), &target);
        let said = read(endless).unwrap_err().to_string();
        assert!(said.contains("--duration or --sessions"), "{said}");
        assert!(read(LEAST).is_ok());
        assert!(read(&format!("{endless} --sessions 5")).is_ok());
    }

    #[test]
    fn the_last_of_two_opposites_wins() {
        let keeps = |more: &str| {
            parse(&format!("{LEAST} {more}"))
                .unwrap()
                .sessions
                .keeps_alive()
        };
        assert_eq!(keeps("--close"), Some(false));
        assert_eq!(keeps("--close --keep-alive"), Some(true));
        assert_eq!(keeps("--keep-alive --close"), Some(false));
    }
}
