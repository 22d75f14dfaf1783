//! The flags of `linkweir gateway`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use linkweir_sink::{Format, Rotation};

use super::explain::Form;
use crate::common_args::{ChoiceArgs, StoreArgs, ViewArgs, applications, formats};
use crate::files::OverwriteArgs;

const POLICY: &str = "A policy:
  [gateway]
  interfaces = [\"lan0\", \"wan0\"]     # traffic through these
  fail = \"open\"                     # without the gateway traffic passes; or closed
  default = \"allow\"                 # what no rule matches; or drop, reject
  [scanner.clamd]
  address = \"/run/clamav/clamd.ctl\"
  [[rule]]                          # the first rule that matches decides
  name = \"ads\"
  hosts = [\"*.ads.example\"]         # of HTTP in clear; or urls, methods, user-agents, mime-types
  sni = [\"*.ads.example\"]           # of TLS and QUIC; or ja4, alpn, certificate, ech
  action = \"reject\"                 # or allow, drop, inspect, redirect
  [[rule]]
  name = \"torrents\"
  application = [\"bittorrent\", \"utp\"]
  clients = [\"10.1.0.0/16\"]         # default: all
  action = \"allow\"
  shape = \"10mbit\"
  [[rule]]
  name = \"downloads\"
  application = \"http\"
  action = \"inspect\"                # needs one of: keywords, file-names, scan, audit, record
  file-names = [\"*.exe\"]
  keywords = [\"secret plan\"]
  scan = \"clamd\"
  audit = true                      # events of messages and files
";

const EXAMPLES: &str = "
Examples:
  linkweir gateway check --config gateway.toml -r capture.pcap
  linkweir gateway up --config gateway.toml && linkweir gateway run --config gateway.toml -w events.jsonl

Exit codes:
  0  success
  1  success, but data was lost (packets dropped by the kernel, events that no output took), or a check failed
  2  invalid usage or configuration
  3  an input, an output or a rule of the kernel failed

Every key of a policy, with its default: linkweir gateway check --example";

/// Filter traffic on a router by application: allow, drop, reject, shape, inspect, redirect to a proxy.
///
/// Connections are classified by their first bytes (at most 8 packets or 2 KiB of a direction), whatever
/// their ports; decided connections are left to the kernel. Inspected connections are reassembled:
/// keywords, file names, virus scanning by clamd while the last packet is held, an audit of messages and
/// files, recording and quarantine. Packets of a connection that waits for a scan are held; all others
/// pass.
///
/// `up` creates the kernel rules (iptables, nft, tc; chains LINKWEIR-*, table `inet linkweir`, HTB on the
/// interfaces), `run` serves the queues, `down` removes all rules. The policy is a file; see
/// docs/gateway.md for a worked example.
#[derive(Debug, Args)]
#[command(after_help = [POLICY, applications().as_str(), EXAMPLES].join("\n"))]
pub(crate) struct GatewayArgs {
    #[command(subcommand)]
    pub(crate) command: GatewayCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GatewayCommand {
    Check(CheckArgs),
    Explain(ExplainArgs),
    Up(UpArgs),
    Run(Box<RunArgs>),
    Status(StatusArgs),
    Reload(ConfigArgs),
    Down(DownArgs),
}

/// Where the policy is.
#[derive(Debug, Args)]
pub(crate) struct ConfigFile {
    /// The policy.
    #[arg(short = 'c', long, value_name = "FILE", default_value = "/etc/linkweir/gateway.toml", value_hint = ValueHint::FilePath)]
    pub(crate) config: PathBuf,
}

/// Check a policy, print its meaning, and try it on captures.
///
/// Errors are reported with line and column. With `-r` the packets of captures go through the policy as
/// they would through the kernel queue (nothing is scanned or stored), and the result is what would be
/// allowed, dropped and found.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir gateway check --config gateway.toml
  linkweir gateway check --config gateway.toml -r capture.pcap -w events.jsonl
  linkweir gateway check --example >gateway.toml

Exit codes: 0 the policy is valid; 1 a capture is damaged, or one of several outputs failed; 2 the policy is invalid; 3 an input or output failed")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) file: ConfigFile,

    /// Print an example policy with every key and its default, and exit.
    #[arg(long, exclusive = true)]
    pub(crate) example: bool,

    /// Try the policy on this capture; may be repeated.
    #[arg(short = 'r', long = "read", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) read: Vec<PathBuf>,

    /// Write the events of the trial to this path, or to standard output (`-`) [default: not written].
    #[arg(short = 'w', long = "write", value_name = "DEST", requires = "read", value_hint = ValueHint::FilePath)]
    pub(crate) write: Vec<String>,

    /// Format of the events [default: by the extension: .jsonl .json .ndjson, .csv, .zeek, .txt .text .log;
    /// on a terminal table; otherwise text].
    #[arg(long, value_name = "FORMAT", value_parser = formats(), requires = "write")]
    pub(crate) format: Option<Format>,

    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,

    #[command(flatten)]
    pub(crate) files: OverwriteArgs,
}

/// Show which rule decides each connection of a capture, and why.
///
/// The packets go through the policy as with `check -r`. Each decision has the number of the packet that caused it and the
/// conditions of the rule that matched, with their values; `blocked`, `keyword` and other findings follow. Connections that
/// no rule decided are listed too: by the default, or undecided where the capture has too little of them, with what is missing. Rows
/// are in the order of the packets.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir gateway explain -r capture.pcap -c gateway.toml
  linkweir gateway explain -r capture.pcap -c gateway.toml | jq 'select(.rule == \"ads\")'

Exit codes: 0 success; 1 a capture is damaged; 2 the policy is invalid; 3 an input or output failed

Every key of a policy, with its default: linkweir gateway check --example")]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) file: ConfigFile,

    /// The capture; may be repeated.
    #[arg(short = 'r', long = "read", value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) read: Vec<PathBuf>,

    /// Format of the explanation [default: on a terminal table, otherwise jsonl].
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) format: Option<Form>,
}

/// Create the kernel rules.
///
/// From then on packets of undecided connections wait for `linkweir gateway run`; without it they pass
/// (fail = "open") or are dropped (fail = "closed").
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir gateway up --config gateway.toml --dry-run
  linkweir gateway up --config gateway.toml

Exit codes: 0 created, or present already; 2 the policy is invalid; 3 a rule failed (all are removed again)")]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) file: ConfigFile,

    /// Print the commands without running them.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Serve the kernel queues until a signal.
///
/// Events (`gateway_event`, see `linkweir schema gateway_event`) are written to `-w` like other records.
/// SIGHUP begins new output files and reloads the policy, except for the kernel rules (rates, numbers of
/// new rules); `linkweir gateway reload` changes both. A run that ends releases the packets it holds.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir gateway run --config gateway.toml -w /var/log/linkweir/events.jsonl --rotate 1d
  linkweir gateway run --config gateway.toml --console 127.0.0.1:8080

Exit codes:
  0  success (SIGINT, SIGTERM)
  1  success, but data was lost (packets dropped by the kernel, events that no output took)
  2  invalid usage or configuration
  3  a queue cannot be served, or no output was left
SIGINT or SIGTERM ends the run; a second one aborts.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) file: ConfigFile,

    #[command(flatten)]
    pub(crate) output: EventArgs,

    #[command(flatten)]
    pub(crate) view: ViewArgs,

    /// Serve the queues as this user, which needs to read the policy and to write to the output
    /// directories; missing directories are created and owned by it [default: the user that starts it].
    #[arg(long, value_name = "NAME", value_hint = ValueHint::Username, help_heading = "Privileges")]
    pub(crate) user: Option<String>,

    /// For comparison: take no packet of a queue while a scan goes on.
    #[arg(long, hide = true)]
    pub(crate) wait_for_scans: bool,
}

/// Where events go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct EventArgs {
    /// Write the events to this path, or to standard output (`-`); may be repeated. A file appears under
    /// its name when it is complete; until then it is `.NAME.partial`, and if the run is killed, the next
    /// one keeps that [default: `-`; none with `--top`].
    #[arg(short = 'w', long = "write", value_name = "DEST", value_hint = ValueHint::FilePath)]
    pub(crate) write: Vec<String>,

    /// Format of the events [default: by the extension: .jsonl .json .ndjson, .csv, .zeek, .txt .text .log;
    /// on a terminal table; otherwise text].
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub(crate) format: Option<Format>,

    /// Begin a new file after this size (`100MB`, `64MiB`) or time (`300s`, `1h`) [default: one file;
    /// after a SIGHUP numbered].
    #[arg(long, value_name = "SIZE|DURATION")]
    pub(crate) rotate: Option<Rotation>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Write the totals of the run as one JSON object; `-` is standard output.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) summary: Option<String>,

    /// Suppress the summary.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Show the status of the running gateway: connections, packets, bytes and verdicts per application; held
/// packets, queues, scanner.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir gateway status --config gateway.toml
  linkweir gateway status --config gateway.toml --json | jq .applications

Exit codes: 0 success; 2 the policy is invalid; 3 no gateway is running")]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) file: ConfigFile,

    /// Print one JSON object instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reload the policy, in the kernel and in the running gateway. Decided connections keep their rules; no
/// connection is interrupted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir gateway reload --config gateway.toml
  linkweir gateway check --config new.toml && cp new.toml gateway.toml && linkweir gateway reload --config gateway.toml

Exit codes: 0 success; 2 the policy is invalid (the old one stays); 3 no gateway is running, the policy requires a restart
(the old one stays), or a kernel rule failed")]
pub(crate) struct ConfigArgs {
    #[command(flatten)]
    pub(crate) file: ConfigFile,
}

/// Remove every rule, class and mark that `up` created, also after a crash. Rules of others are kept.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir gateway down
  linkweir gateway down --config gateway.toml

Exit codes: 0 removed, or nothing to remove; 3 something could not be removed")]
pub(crate) struct DownArgs {
    /// The policy. It is not read: rules are found without it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
}
