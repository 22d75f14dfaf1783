//! What stands between client and server: rules of the kernel, and the programs behind them.

use super::Plan;
use super::policy::{Policy, Scanner, WINDOW_KIB};
use super::programs::Programs;
use super::rows::{KEPT, NAMES, Row, SCANNED, Stands, WORDS};
use super::site::{Site, filled};
use crate::bench::harness::{ready, text};
use anyhow::{Context as _, Result, bail};
use linkweir_testkit::netns::Running;
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where redirected connections go.
const PORT: &str = "3128";

/// What all measurements need.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounds<'a> {
    pub(super) plan: &'a Plan,
    pub(super) programs: &'a Programs,
    /// Socket and process of clamd, where it runs.
    pub(super) clamd: Option<(&'a Path, u32)>,
}

impl Rounds<'_> {
    /// Whether all that a row needs is installed.
    pub(super) fn has(&self, row: &Row) -> bool {
        (self.clamd.is_some() || !row.how.scans)
            && match row.how.stands {
                Stands::Squid { has_icap } => {
                    self.programs.squid.is_some() && (!has_icap || self.programs.icap.is_some())
                }
                _ => true,
            }
    }

    /// clamd, where it runs, with the usual window.
    pub(super) fn scanner(&self) -> Option<Scanner<'_>> {
        self.clamd.map(|(socket, _)| Scanner {
            socket,
            window_kib: WINDOW_KIB,
        })
    }
}

/// A running `linkweir gateway`, and the rules that lead packets to it.
#[derive(Debug)]
pub(super) struct Gateway<'a> {
    site: &'a Site,
    linkweir: PathBuf,
    policy: PathBuf,
    running: Running,
}

impl<'a> Gateway<'a> {
    /// Makes the rules and starts it; answers when it serves all its queues.
    pub(super) fn start(rounds: &Rounds<'_>, site: &'a Site, policy: &Policy<'_>) -> Result<Self> {
        let (queues, waits) = (usize::from(policy.queues), policy.waits_for_scans);
        let policy = policy.write(site)?;
        let linkweir = rounds.programs.linkweir.clone();
        let words = |word| -> Result<Command> {
            let mut command = site.gateway(&linkweir);
            command.args(["gateway", word, "--config"]).arg(&policy);
            Ok(command)
        };
        done(words("up")?)?;
        let mut run = words("run")?;
        run.arg("-q").arg("-w").arg(site.path("events.jsonl"));
        run.args(waits.then_some("--wait-for-scans"));
        let running = start(site, run, "gateway", |_| {
            site.net().queues().len() >= queues
        })?;
        Ok(Self {
            site,
            linkweir,
            policy,
            running,
        })
    }

    /// Its process.
    pub(super) const fn id(&self) -> u32 {
        self.running.id()
    }

    /// What it says of itself.
    pub(super) fn status(&self) -> Result<Value> {
        let mut status = self.site.gateway(&self.linkweir);
        status
            .args(["gateway", "status", "--json", "--config"])
            .arg(&self.policy);
        let output = status.output().context("run linkweir gateway status")?;
        serde_json::from_slice(&output.stdout).with_context(|| {
            let said = String::from_utf8_lossy(&output.stderr);
            format!("linkweir gateway status: {}", said.trim())
        })
    }

    /// Ends it and removes its rules; that it lost something is an error.
    pub(super) fn finish(self) -> Result<()> {
        self.end(&[0])
    }

    /// The same where the row says what was lost (exit code 1): more came than a queue holds.
    pub(super) fn finish_overloaded(self) -> Result<()> {
        self.end(&[0, 1])
    }

    fn end(self, may_be: &[i32]) -> Result<()> {
        let output = self.running.finish()?;
        if !output
            .status
            .code()
            .is_some_and(|code| may_be.contains(&code))
        {
            let said = fs::read_to_string(self.site.path("gateway.log")).unwrap_or_default();
            bail!("linkweir gateway run: {}: {}", output.status, said.trim());
        }
        let mut down = self.site.gateway(&self.linkweir);
        down.args(["gateway", "down", "--config"]).arg(&self.policy);
        done(down)?;
        remove_kept(self.site)
    }
}

/// What a row recorded.
fn remove_kept(site: &Site) -> Result<()> {
    let kept = site.path("kept");
    if kept.is_dir() {
        fs::remove_dir_all(&kept)?;
    }
    Ok(())
}

/// What a row puts there.
#[derive(Debug)]
pub(super) struct Between<'a> {
    site: &'a Site,
    gateway: Option<Gateway<'a>>,
    programs: Vec<Running>,
}

impl<'a> Between<'a> {
    /// Puts it there.
    pub(super) fn start(rounds: &Rounds<'_>, site: &'a Site, row: &Row) -> Result<Self> {
        let mut between = Self {
            site,
            gateway: None,
            programs: Vec::new(),
        };
        match row.how.stands {
            Stands::Gateway(_) => {
                let policy = Policy::of(row, rounds.plan.queues, rounds.scanner())?;
                between.gateway = Some(Gateway::start(rounds, site, &policy)?);
            }
            Stands::Nat => nat(site)?,
            Stands::Accept => accept(&mut between, rounds)?,
            Stands::Proxy(looks) => proxy(&mut between, rounds, looks)?,
            Stands::Squid { has_icap } => squid(&mut between, rounds, has_icap)?,
            Stands::Nothing | Stands::Automaton | Stands::Clamd => {}
        }
        Ok(between)
    }

    /// The processes that do the work.
    pub(super) fn ids(&self) -> Vec<u32> {
        let gateway = self.gateway.iter().map(Gateway::id);
        gateway
            .chain(self.programs.iter().map(Running::id))
            .collect()
    }

    /// Takes it away; a gateway may have lost something, as the row says.
    pub(super) fn finish_overloaded(mut self) -> Result<()> {
        match self.gateway.take() {
            Some(gateway) => gateway.finish_overloaded(),
            None => self.finish(),
        }
    }

    /// Takes it away.
    pub(super) fn finish(self) -> Result<()> {
        if let Some(gateway) = self.gateway {
            return gateway.finish();
        }
        self.site.must("iptables -F FORWARD")?;
        self.site.must("iptables -t nat -F")?;
        for program in self.programs {
            // Not SIGINT: what a shell starts in the background inherits that ignored.
            program.signal("TERM")?;
            program.output()?;
        }
        remove_kept(self.site)
    }

    fn redirect(&mut self, proxy: Command, name: &str) -> Result<()> {
        let site = self.site;
        self.programs
            .push(start(site, proxy, name, |_| site.listens("0C38"))?);
        let rule = "iptables -t nat -A PREROUTING -i lan0 -p tcp --dport 80 -j REDIRECT --to-ports";
        site.must(&format!("{rule} {PORT}"))
    }
}

/// The kernel translates addresses.
fn nat(site: &Site) -> Result<()> {
    site.must("iptables -t nat -A POSTROUTING -o wan0 -j MASQUERADE")
}

/// Every packet goes to a program that accepts it.
fn accept(between: &mut Between<'_>, rounds: &Rounds<'_>) -> Result<()> {
    let site = between.site;
    let last = rounds.plan.queues.saturating_sub(1);
    for number in 0..=last {
        let mut accept = site.gateway(rounds.programs.example("accept"));
        accept.args(["--queue", &number.to_string()]);
        let is_there = |_| site.net().queues().len() > usize::from(number);
        let accept = start(site, accept, "accept", is_there)?;
        between.programs.push(accept);
    }
    let queues = if last == 0 {
        "--queue-num 0".to_owned()
    } else {
        format!("--queue-balance 0:{last}")
    };
    site.must(&format!("iptables -A FORWARD -j NFQUEUE {queues}"))
}

/// Our proxy behind a port redirection, which does what the lines of a rule say.
fn proxy(between: &mut Between<'_>, rounds: &Rounds<'_>, looks: &[&str]) -> Result<()> {
    let site = between.site;
    let mut proxy = site.gateway(rounds.programs.own("redirect_proxy"));
    proxy.arg(PORT);
    for look in looks {
        match *look {
            NAMES => proxy.args(["--file-names", "*.exe,*.scr"]),
            WORDS => proxy.arg("--keywords").arg(site.path("keywords")),
            KEPT => proxy.arg("--record").arg(site.path("kept")),
            SCANNED => {
                let scanner = rounds.scanner().context("clamd does not run")?;
                proxy.arg("--scan").arg(scanner.socket);
                proxy.args([scanner.window_bytes(), scanner.tail_bytes()].map(|n| n.to_string()))
            }
            other => bail!("{other}: not a function of the proxy"),
        };
    }
    between.redirect(proxy, "redirect_proxy")
}

/// What squid is to ask of c-icap.
const ICAP: &str = "icap_enable on\nicap_service_failure_limit -1\n\
                    icap_service scan respmod_precache bypass=off icap://127.0.0.1:1344/virus_scan\n\
                    adaptation_access scan allow all\n";

/// squid behind a port redirection, and the service that scans for it.
fn squid(between: &mut Between<'_>, rounds: &Rounds<'_>, has_icap: bool) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let squid = rounds.programs.squid.as_ref();
    let squid = squid.context("squid is not installed")?;
    if has_icap {
        icap(between, rounds)?;
    }
    let dir = between.site.path("squid");
    fs::create_dir_all(&dir)?;
    // It gives up being root, and writes its log after that.
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777))?;
    let configuration = dir.join("squid.conf");
    filled(
        "squid.conf",
        &configuration,
        &[
            ("DIRECTORY", &text(&dir)?),
            ("PORT", PORT),
            ("ICAP\n", if has_icap { ICAP } else { "" }),
        ],
    )?;
    let mut command = between.site.gateway(squid);
    // In the foreground, one process.
    command.arg("-N").arg("-f").arg(configuration);
    between.redirect(command, "squid")
}

/// c-icap in front of clamd.
fn icap(between: &mut Between<'_>, rounds: &Rounds<'_>) -> Result<()> {
    let site = between.site;
    let program = rounds.programs.icap.as_ref();
    let program = program.context("c-icap is not installed")?;
    let scanner = rounds.scanner().context("clamd does not run")?;
    let dir = site.path("c-icap");
    fs::create_dir_all(&dir)?;
    let configuration = dir.join("c-icap.conf");
    filled(
        "c-icap.conf",
        &configuration,
        &[
            ("DIRECTORY", &text(&dir)?),
            ("SOCKET", &text(scanner.socket)?),
        ],
    )?;
    let mut command = site.gateway(program);
    // In the foreground.
    command.arg("-N").arg("-f").arg(configuration);
    let icap = start(site, command, "c-icap", |_| site.listens("0540"))?;
    between.programs.push(icap);
    Ok(())
}

/// Starts a program and waits until it is ready; what it says goes to a file that an error shows.
pub(super) fn start(
    site: &Site,
    mut command: Command,
    name: &str,
    is_ready: impl FnMut(u32) -> bool,
) -> Result<Running> {
    let log = site.path(&format!("{name}.log"));
    let said = File::create(&log).with_context(|| format!("create {}", log.display()))?;
    command.stdout(said.try_clone()?).stderr(said);
    let running = Running::start(&mut command).with_context(|| format!("start {name}"))?;
    let said = |_| fs::read_to_string(&log).unwrap_or_default();
    ready(name, running, is_ready, said)
}

/// Runs a short command; what it said is in the error.
fn done(mut command: Command) -> Result<()> {
    let output = command.stdout(Stdio::null()).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let words: Vec<_> = command
            .get_args()
            .map(|word| word.to_string_lossy())
            .collect();
        bail!("{}: {}: {}", words.join(" "), output.status, said.trim());
    }
    Ok(())
}
