//! The captures: recorded traffic of few big flows, and made ones of very many.

use super::super::captures::remove;
use super::super::programs::compile;
use super::super::repeat;
use crate::shell::{self, passes, root};
use anyhow::{Context as _, Result, bail};
use linkweir_testkit::many_flows::ManyFlows;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is asked for.
#[derive(Debug)]
pub(super) struct Plan {
    /// Packets of the recorded capture.
    pub(super) packets: u64,
    /// A capture to use instead of recording one.
    pub(super) few: Option<PathBuf>,
    /// Where captures go and what is written meanwhile.
    pub(super) dir: PathBuf,
    /// Whether the folder stays.
    pub(super) keep: bool,
}

/// A capture.
#[derive(Debug, Clone)]
pub(super) struct Capture {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) packets: u64,
    /// Connections, where they were made and not recorded.
    pub(super) flows: Option<u64>,
    /// Seconds from its first to its last packet.
    pub(super) seconds: f64,
}

/// Makes the folder and the limit; gives the limit.
///
/// # Errors
/// The limit does not compile.
pub(super) fn prepare(plan: &Plan) -> Result<PathBuf> {
    if !plan.keep && plan.dir.is_dir() {
        remove(&plan.dir)?;
    }
    std::fs::create_dir_all(&plan.dir).with_context(|| format!("create {}", plan.dir.display()))?;
    let walk = plan.dir.join("pcapwalk");
    compile(&root().join("benches/limits/pcapwalk.c"), &walk)?;
    Ok(walk)
}

/// Few big flows: recorded, unless one is given.
///
/// # Errors
/// It could not be recorded, or is no classic little-endian pcap file.
pub(super) fn few(plan: &Plan, walk: &Path) -> Result<Capture> {
    let path = match &plan.few {
        Some(path) => path.clone(),
        None => plan.dir.join(format!("mix-{}.pcap", plan.packets)),
    };
    if !path.is_file() {
        println!("recording {} packets", shell::grouped(plan.packets));
        let mut script = Command::new(root().join("benches/record_http.sh"));
        script.arg(&path).arg(plan.packets.to_string()).arg("mix");
        if !passes(&mut script)? {
            bail!("benches/record_http.sh failed");
        }
    }
    let line = String::from_utf8(shell::output(Command::new(walk).arg(&path))?)?;
    let packets = line
        .split_whitespace()
        .find_map(|pair| pair.strip_prefix("packets=")?.parse().ok())
        .context("the walk names no packets")?;
    let (first, last) = repeat::seconds(&path)?;
    Ok(Capture {
        name: "few big flows".to_owned(),
        seconds: f64::from(last.saturating_sub(first).max(1)),
        path,
        packets,
        flows: None,
    })
}

/// Very many flows: made, unless it is there.
///
/// # Errors
/// It could not be written.
pub(super) fn many(dir: &Path, shape: ManyFlows) -> Result<Capture> {
    let ManyFlows {
        flows, concurrent, ..
    } = shape;
    let path = dir.join(format!("flows-{flows}-{concurrent}.pcap"));
    if !path.is_file() {
        let part = dir.join("part");
        shape.write(BufWriter::with_capacity(1 << 20, File::create(&part)?))?;
        std::fs::rename(&part, &path)?;
    }
    Ok(Capture {
        name: format!(
            "{} flows, {} at once",
            shell::grouped(u64::from(flows)),
            shell::grouped(u64::from(concurrent))
        ),
        packets: shape.packets(),
        flows: Some(u64::from(flows)),
        seconds: shape.packets() as f64 * f64::from(shape.gap_us) * 1e-6,
        path,
    })
}
