//! The flags of `linkweir gateway`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use linkweir_sink::{Format, Rotation};

use crate::common_args::{StoreArgs, ViewArgs, applications, formats};
use crate::files::OverwriteArgs;

const POLICY: &str = "A policy:
  [gateway]
  interfaces = [\"lan0\", \"wan0\"]  # traffic through these
  fail = \"open\"                   # without the gateway traffic passes; or closed
  [scanner.clamd]
  address = \"/run/clamav/clamd.ctl\"
  [[rule]]                          # the first rule that fits decides
  name = \"torrents\"
  application = [\"bittorrent\", \"utp\"]
  clients = [\"10.1.0.0/16\"]       # left out: all
  action = \"allow\"                # or drop, reject, inspect
  shape = \"10mbit\"
  [[rule]]
  name = \"downloads\"
  application = \"http\"
  action = \"inspect\"              # needs one of: keywords, file-names, scan, audit, record
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
  0  done
  1  done, but data was lost (packets that the kernel dropped, events that no output took), or a check failed
  2  wrong usage or configuration
  3  an input, an output or a rule of the kernel failed";

/// Controls what passes a router, by application: allows, drops, resets, shapes, inspects.
///
/// Connections are classified by their first bytes (at most 8 packets or 2 KiB of a direction), whatever
/// their ports; what is decided is left to the kernel. Inspected connections are followed in order:
/// keywords, names of files, virus scanning by clamd while the last packet waits, an audit of messages
/// and files, recording and quarantine. Packets of a connection that waits for a scan are held; all
/// others go on.
///
/// `up` makes the rules of the kernel (iptables, nft, tc; chains LINKWEIR-*, table `inet linkweir`, HTB on
/// the interfaces), `run` serves its queues, `down` removes every rule again. The policy is a file; see
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
    #[arg(long, value_name = "FILE", default_value = "/etc/linkweir/gateway.toml", value_hint = ValueHint::FilePath)]
    pub(crate) config: PathBuf,
}

/// Checks a policy, shows what it says, and tries it on captures.
///
/// Errors are reported with line and column. With `-r` the packets of captures go through the policy
/// as they would through the kernel's queue (nothing is scanned or kept): what would be allowed,
/// dropped, found.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir gateway check --config gateway.toml
  linkweir gateway check --config gateway.toml -r capture.pcap -w events.jsonl
  linkweir gateway check --example >gateway.toml

Exit codes: 0 the policy is right; 1 a capture is damaged, or one of several outputs failed; 2 the policy is wrong; 3 an input or output failed")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) file: ConfigFile,

    /// Print an example policy with every key and its default, and exit.
    #[arg(long, exclusive = true)]
    pub(crate) example: bool,

    /// Capture to try the policy on; may be given several times.
    #[arg(short = 'r', long = "read", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) read: Vec<PathBuf>,

    /// Where the events of the trial go: a path, or `-` for standard output [default: nowhere].
    #[arg(short = 'w', long = "write", value_name = "DEST", requires = "read", value_hint = ValueHint::FilePath)]
    pub(crate) write: Vec<String>,

    /// Format of the events [default: by the ending: .jsonl .json .ndjson, .csv, .zeek, .txt .text .log;
    /// text where there is none].
    #[arg(long, value_name = "FORMAT", value_parser = formats(), requires = "write")]
    pub(crate) format: Option<Format>,

    #[command(flatten)]
    pub(crate) files: OverwriteArgs,
}

/// Makes the rules of the kernel.
///
/// From then on packets of undecided connections wait for `linkweir gateway run`; without it they pass
/// (fail = "open") or do not (fail = "closed").
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir gateway up --config gateway.toml --dry-run
  linkweir gateway up --config gateway.toml

Exit codes: 0 made, or there already; 2 the policy is wrong; 3 a rule failed (all are removed again)")]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) file: ConfigFile,

    /// Print the commands and run none.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Serves the queues of the kernel until a signal.
///
/// Events (`gateway_event`, see `linkweir schema gateway_event`) go to `-w` like any records. SIGHUP begins new output
/// files and loads the policy again, without the kernel's part (rates, numbers of new rules): `linkweir gateway
/// reload` changes both. A run that ends lets go what it holds.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir gateway run --config gateway.toml -w /var/log/linkweir/events.jsonl --rotate 1d
  linkweir gateway run --config gateway.toml --console 127.0.0.1:8080

Exit codes:
  0  done (SIGINT, SIGTERM)
  1  done, but data was lost (packets that the kernel dropped, events that no output took)
  2  wrong usage or configuration
  3  a queue cannot be served, or no output was left
SIGINT or SIGTERM ends the run; a second one aborts.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) file: ConfigFile,

    #[command(flatten)]
    pub(crate) output: EventArgs,

    #[command(flatten)]
    pub(crate) view: ViewArgs,

    /// Serve the queues as this user, who needs to read the policy and to write where files are made;
    /// directories that are missing are made and given to it [default: who starts it].
    #[arg(long, value_name = "NAME", value_hint = ValueHint::Username, help_heading = "Privileges")]
    pub(crate) user: Option<String>,
}

/// Where events go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct EventArgs {
    /// Where the events go: a path, or `-` for standard output; may be given several times. A
    /// file appears under its name when it is complete; until then it is `.NAME.partial`, and if the run is
    /// killed, the next one keeps that [default: `-`; nowhere with `--top`].
    #[arg(short = 'w', long = "write", value_name = "DEST", value_hint = ValueHint::FilePath)]
    pub(crate) write: Vec<String>,

    /// Format of the events [default: by the ending: .jsonl .json .ndjson, .csv, .zeek, .txt .text .log;
    /// text where there is none].
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

    /// No summary on standard error.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Shows what the running gateway does: per application connections, packets, bytes and verdicts; held
/// packets, queues, scanner.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir gateway status --config gateway.toml
  linkweir gateway status --config gateway.toml --json | jq .applications

Exit codes: 0 shown; 2 the policy is wrong; 3 no gateway runs")]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) file: ConfigFile,

    /// One JSON object in place of tables.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Loads the policy again, in the kernel and in the running gateway. Connections that are decided keep
/// their rules; none is broken.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir gateway reload --config gateway.toml
  linkweir gateway check --config new.toml && cp new.toml gateway.toml && linkweir gateway reload --config gateway.toml

Exit codes: 0 done; 2 the policy is wrong (the old one stays); 3 no gateway runs, it cannot take the policy without a new
start (the old one stays), or a rule of the kernel failed")]
pub(crate) struct ConfigArgs {
    #[command(flatten)]
    pub(crate) file: ConfigFile,
}

/// Removes every rule, class and mark that `up` made, also after a crash. What others made stays.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir gateway down
  linkweir gateway down --config gateway.toml

Exit codes: 0 removed, or nothing was there; 3 something could not be removed")]
pub(crate) struct DownArgs {
    /// The policy. It is not read: what was made is found without it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
}
