//! The recorded series that models are fitted to.

use anyhow::{Context as _, Result};
use linkweir_model::Counts;
use linkweir_model::counts::{Spread, spread};
use std::path::Path;

/// Arrivals per bin in the paper: 562776 sessions in 17280 bins.
const PAPER_MEAN: f64 = 32.57;

/// 48 hours of the World Cup log from 22:00 on 8 June 1998, in bins of 10 s. A surrogate of the
/// paper's series: requests and not sessions, spread from minutes, scaled to the paper's mean.
pub(super) fn world_cup(directory: &Path, seed: u64) -> Result<Counts> {
    let text = read(&directory.join("wc98_48h_permin.csv"))?;
    let minutes = text.lines().skip(1).map(|line| {
        let (_, count) = line.split_once(',').context("minute,requests")?;
        Ok(count.trim().parse()?)
    });
    let minutes = minutes.collect::<Result<Vec<u64>>>()?;
    let how = Spread {
        from_bin_s: 60.0,
        bin_s: 10.0,
        mean: Some(PAPER_MEAN),
        seed,
    };
    Ok(spread(&minutes, how)?)
}

/// An hour of requests to a service by their times, in bins of 0.2 s.
pub(super) fn requests(directory: &Path) -> Result<Counts> {
    let text = read(&directory.join("azure_llm_code.csv"))?;
    let times = text.lines().skip(1).map(|line| {
        let time = line.get(11..27).context("hh:mm:ss.fffffff")?;
        let mut parts = time.split(':').map(str::parse::<f64>);
        parts.try_fold(0.0, |sum, part| Ok(sum * 60.0 + part?))
    });
    let times = times.collect::<Result<Vec<f64>>>()?;
    let first = *times.first().context("no requests")?;
    Ok(Counts::of_times(first, 0.2, &times)?)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))
}
