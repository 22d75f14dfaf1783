//! The captures: recorded traffic of few big flows, and made ones of very many.

use super::super::captures::{self as recorded, Plan};
use super::super::repeat;
use crate::shell::grouped;
use anyhow::Result;
use linkweir_testkit::many_flows::ManyFlows;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// A capture.
#[derive(Debug, Clone)]
pub(super) struct Capture {
    pub(super) name: String,
    pub(super) file: recorded::Capture,
    /// Connections, where they were made and not recorded.
    pub(super) flows: Option<u64>,
    /// Seconds from its first to its last packet.
    pub(super) seconds: f64,
}

/// Few big flows: recorded, unless a capture is given.
///
/// # Errors
/// It could not be recorded, or is not a classic little-endian pcap file.
pub(super) fn few(plan: &Plan, walk: &Path, given: Option<&Path>) -> Result<Capture> {
    let file = recorded::recorded(plan, walk, "mix", given)?;
    let (first, last) = repeat::seconds(&file.path)?;
    Ok(Capture {
        name: "few big flows".to_owned(),
        seconds: f64::from(last.saturating_sub(first).max(1)),
        file,
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
            grouped(u64::from(flows)),
            grouped(u64::from(concurrent))
        ),
        flows: Some(u64::from(flows)),
        seconds: shape.packets() as f64 * f64::from(shape.gap_us) * 1e-6,
        file: recorded::Capture {
            path,
            packets: shape.packets(),
            wire_bytes: 0,
            requests: 0,
            responses: 0,
        },
    })
}
