//! Opens what a passive command reads.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::keys;
use anyhow::anyhow;
use linkweir_capture::live::{
    ANY, Fanout, Interface, LiveCapture, LiveOptions, LiveSource, XDP_PREFIX, interfaces,
};
use linkweir_capture::{CaptureFiles, Input, ReadOptions};
use linkweir_engine::SourceError;

use super::args::InputArgs;
use crate::exit::{Exit, Wrong, warn};
use crate::signals::Signals;

/// What was opened.
#[derive(Debug)]
pub(crate) enum Opened {
    /// Capture files, one after another.
    Files(Box<CaptureFiles>),
    /// Interfaces, as one source or as several that the kernel distributes to.
    Live(Vec<LiveSource>),
}

/// Opens `-r` or `-i`; interfaces as `sockets` sources.
pub(crate) fn open(args: &InputArgs, sockets: usize, signals: &Signals) -> anyhow::Result<Opened> {
    check_interfaces(&args.interface).map_err(|message| anyhow!(Wrong(message)))?;
    let opened = match args.interface.is_empty() {
        false => open_live(args, sockets, signals).map(Opened::Live),
        true if args.read.is_empty() => {
            return Err(anyhow!(Wrong(
                "nothing to read: name a capture with -r, an interface with -i or (http, flows) a feeder with --feed"
                    .to_owned()
            )));
        }
        true => open_files(args, signals.stop_flag()).map(|files| Opened::Files(Box::new(files))),
    };
    opened.map_err(unopened)
}

/// An input that could not be opened: a wrong filter is wrong usage.
pub(crate) fn unopened(error: SourceError) -> anyhow::Error {
    if error.input == "-f" {
        anyhow!(Wrong(error.to_string()))
    } else {
        error.into()
    }
}

/// Opens `-r`.
pub(crate) fn open_files(
    args: &InputArgs,
    stop: Arc<AtomicBool>,
) -> Result<CaptureFiles, SourceError> {
    let inputs: Vec<Input> = args.read.iter().cloned().map(Input::from).collect();
    let options = ReadOptions {
        filter: args.filter.clone(),
        stop,
        chunk_bytes: usize::try_from(args.read_size).unwrap_or(usize::MAX),
        on_secrets: keys::from_captures(&args.secrets),
        ..ReadOptions::default()
    };
    CaptureFiles::open(&inputs, options)
}

/// Refuses interfaces whose packets would come twice.
fn check_interfaces(names: &[String]) -> Result<(), String> {
    let plain = |name: &str| name.strip_prefix(XDP_PREFIX).unwrap_or(name).to_owned();
    let mut seen = Vec::new();
    for name in names {
        if seen.contains(&plain(name)) {
            return Err(format!("-i {name}: the interface is named twice"));
        }
        seen.push(plain(name));
    }
    if names.len() > 1 && names.iter().any(|name| plain(name) == ANY) {
        return Err(format!(
            "-i {ANY} has the packets of all interfaces: name no other"
        ));
    }
    Ok(())
}

fn open_live(
    args: &InputArgs,
    sockets: usize,
    signals: &Signals,
) -> Result<Vec<LiveSource>, SourceError> {
    let options = LiveOptions {
        filter: args.filter.clone(),
        snaplen: match args.snaplen {
            0 => LiveOptions::default().snaplen,
            some => some,
        },
        promiscuous: !args.no_promiscuous,
        buffer_bytes: (args.buffer_size.max(1024) as usize) << 10,
        fanout: if sockets > 1 {
            Fanout::Transaction
        } else {
            Fanout::None
        },
        sockets,
        stop: signals.stop_flag(),
        ..LiveOptions::default()
    };
    let mut sources = LiveCapture::open_all(&args.interface, &options)?;
    for notice in sources.iter_mut().flat_map(LiveSource::take_notices) {
        warn(&notice);
    }
    Ok(sources)
}

/// Prints a line for each interface: name, state, link type, addresses.
pub(crate) fn list_interfaces() -> anyhow::Result<Exit> {
    let all = interfaces()?;
    let widest = all.iter().map(|one| one.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for one in &all {
        let addresses: Vec<String> = one.addresses.iter().map(ToString::to_string).collect();
        writeln!(
            text,
            "{:widest$}  {:4}  {:12}  {}",
            one.name,
            state(one),
            link(one),
            addresses.join(" ")
        )?;
    }
    let any = "any";
    writeln!(text, "{any:widest$}        all of them at once")?;
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(Exit::Done),
    }
}

const fn state(interface: &Interface) -> &'static str {
    match (interface.is_up(), interface.is_running()) {
        (true, true) => "up",
        (true, false) => "idle",
        (false, _) => "down",
    }
}

fn link(interface: &Interface) -> String {
    // ARPHRD_* of the kernel's if_arp.h.
    match interface.hardware_type {
        1 => "Ethernet".to_owned(),
        512 => "PPP".to_owned(),
        772 => "loopback".to_owned(),
        0xfffe => "IP".to_owned(),
        other => format!("type {other}"),
    }
}
