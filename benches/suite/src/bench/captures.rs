//! The captures: recorded by `benches/record_http.sh`, kept in memory.

use super::programs::compile;
use super::repeat::head;
use crate::shell::{self, passes, root};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packets for tshark, which would take minutes for all of them.
const HEAD_PACKETS: u64 = 200_000;

/// What is asked for.
#[derive(Debug)]
pub(super) struct Plan {
    /// Packets of each capture.
    pub(super) packets: u64,
    /// Captures to use instead of recording them.
    pub(super) mix: Option<PathBuf>,
    pub(super) tiny: Option<PathBuf>,
    /// Where they go and what is written meanwhile.
    pub(super) dir: PathBuf,
    /// Whether the folder stays.
    pub(super) keep: bool,
}

/// A capture and what the walk found in it.
#[derive(Debug)]
pub(super) struct Capture {
    pub(super) path: PathBuf,
    pub(super) packets: u64,
    pub(super) wire_bytes: u64,
    pub(super) requests: u64,
    pub(super) responses: u64,
}

/// All of them, and the program that is the limit.
#[derive(Debug)]
pub(super) struct Captures {
    pub(super) mix: Capture,
    pub(super) tiny: Capture,
    pub(super) head: Capture,
    /// The bundled capture, unpacked.
    pub(super) small: PathBuf,
    pub(super) walk: PathBuf,
}

/// Where the captures of the benchmark go by default.
pub(super) fn default_dir() -> PathBuf {
    shell::memory_folder("bench")
}

/// Removes the folder of a plan.
pub(super) fn remove(dir: &Path) -> Result<()> {
    std::fs::remove_dir_all(dir).with_context(|| format!("remove {}", dir.display()))
}

/// Makes what is not there yet.
///
/// # Errors
/// Something could not be recorded or compiled.
pub(super) fn prepare(plan: &Plan) -> Result<Captures> {
    let Plan {
        dir, packets, keep, ..
    } = plan;
    if !keep && dir.is_dir() {
        remove(dir)?;
    }
    std::fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
    let walk = dir.join("pcapwalk");
    compile(&root().join("benches/limits/pcapwalk.c"), &walk)?;

    let recorded = |mode: &str, given: Option<&PathBuf>| -> Result<Capture> {
        if let Some(path) = given {
            return examine(&walk, path);
        }
        let path = dir.join(format!("{mode}-{packets}.pcap"));
        if !path.is_file() {
            println!(
                "recording {} packets: {}",
                shell::grouped(*packets),
                path.display()
            );
            let mut script = Command::new(root().join("benches/record_http.sh"));
            if !passes(script.arg(&path).arg(packets.to_string()).arg(mode))? {
                bail!("benches/record_http.sh failed");
            }
        }
        examine(&walk, &path)
    };
    let mix = recorded("mix", plan.mix.as_ref())?;
    let tiny = recorded("tiny", plan.tiny.as_ref())?;
    let head_path = dir.join("head.pcap");
    head(&mix.path, &head_path, HEAD_PACKETS)?;
    let head = examine(&walk, &head_path)?;
    let small = dir.join("small.pcap");
    let bundled = root().join("app/testkit/captures/nginx-demo.pcap.gz");
    std::fs::write(&small, shell::read_unpacked(&bundled)?)?;
    Ok(Captures {
        mix,
        tiny,
        head,
        small,
        walk,
    })
}

/// Lets the walk count a capture.
fn examine(walk: &Path, path: &Path) -> Result<Capture> {
    let line = shell::output(Command::new(walk).arg(path))?;
    let line = String::from_utf8(line)?;
    let number = |name: &str| -> Result<u64> {
        let value = line
            .split_whitespace()
            .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        value
            .and_then(|value| value.parse().ok())
            .with_context(|| format!("the walk names no {name}"))
    };
    let capture = Capture {
        path: path.to_path_buf(),
        packets: number("packets")?,
        wire_bytes: number("wire_bytes")?,
        requests: number("requests")?,
        responses: number("responses")?,
    };
    if capture.requests == 0 {
        bail!(
            "{}: no HTTP in it (a classic little-endian pcap file is needed)",
            path.display()
        );
    }
    Ok(capture)
}
