//! `-D`: the interfaces there are.

use std::fmt::Write as _;
use std::io::Write as _;

use linkweir_capture::live::{Interface, interfaces};

use crate::exit::Exit;

/// Prints a line for each interface: name, state, link type, addresses.
pub(crate) fn list() -> anyhow::Result<Exit> {
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
