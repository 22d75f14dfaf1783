//! A process beside a series: what is compared and how long its fit took.
//!
//! The recorded series that models are fitted to.

use anyhow::{Context as _, Result};
use linkweir_model::baseline::{self, HmmOptions};
use linkweir_model::check::{self, Check};
use linkweir_model::counts::{Spread, spread};
use linkweir_model::{Agreement, Counts, FitOptions, Model, fit};
use std::path::Path;
use std::time::Instant;

/// How often a quick fit is timed; the median counts.
const TIMES: usize = 5;

/// A row of the table.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) model: Model,
    /// Over the most lags.
    pub(super) check: Check,
    /// A simulated path was compared, not the equations.
    pub(super) is_realised: bool,
    /// Median time of the fit; `None` where it is that of the row before.
    pub(super) fit_s: Option<f64>,
}

impl Row {
    /// By its equations.
    fn analytic(
        name: &str,
        counts: &Counts,
        lags: usize,
        times: usize,
        fit: impl Fn() -> Result<Model>,
    ) -> Result<Self> {
        let mut seconds = Vec::with_capacity(times);
        let model = loop {
            let begin = Instant::now();
            let model = fit()?;
            seconds.push(begin.elapsed().as_secs_f64());
            if seconds.len() >= times {
                break model;
            }
        };
        Ok(Self {
            name: name.to_owned(),
            check: check::analytic(&model, counts, lags)?,
            model,
            is_realised: false,
            fit_s: Some(super::median(&seconds)),
        })
    }

    pub(super) fn poisson(counts: &Counts, lags: usize) -> Result<Self> {
        Self::analytic("Poisson", counts, lags, 1, || {
            Ok(baseline::poisson(counts)?)
        })
    }

    pub(super) fn hidden_markov(counts: &Counts, lags: usize) -> Result<Self> {
        let options = HmmOptions::default();
        let name = format!("Poisson HMM, {} states (Baum-Welch)", options.states);
        Self::analytic(&name, counts, lags, 1, || {
            Ok(baseline::hidden_markov(counts, options)?)
        })
    }

    pub(super) fn fitted(
        name: &str,
        counts: &Counts,
        lags: usize,
        options: &FitOptions,
    ) -> Result<Self> {
        Self::analytic(
            name,
            counts,
            lags,
            TIMES,
            || Ok(fit(counts, options)?.model),
        )
    }

    /// A path of the row's model, as long as the series.
    pub(super) fn realised(&self, counts: &Counts, seed: u64) -> Result<Self> {
        Ok(Self {
            name: format!("  one path of it (seed {seed})"),
            model: self.model.clone(),
            check: check::realised(&self.model, counts, self.check.lags, seed)?,
            is_realised: true,
            fit_s: None,
        })
    }

    /// The autocovariances from lag 1 to `lags`.
    pub(super) fn agreement(&self, lags: usize) -> Agreement {
        let part = |all: &[f64]| all.get(1..=lags).unwrap_or_default().to_vec();
        Agreement::of(&part(&self.check.counted), &part(&self.check.model))
    }

    /// The cells of the table; `fitted` are the lags that were fitted.
    pub(super) fn cells(&self, lags: &[usize], fitted: usize) -> Vec<String> {
        let percent = |value: f64| format!("{:.2}", value * 100.0);
        let mut cells = vec![
            self.name.clone(),
            self.model.superposition().states().to_string(),
        ];
        cells.extend(lags.iter().map(|lags| percent(self.agreement(*lags).ic)));
        cells.push(percent(self.agreement(fitted).theil));
        cells.push(percent(self.check.mean_error));
        cells.push(format!("{:.3}", self.check.total_variation));
        cells.push(match self.check.log_likelihood {
            Some(value) if !self.is_realised => format!("{value:.0}"),
            _ => String::new(),
        });
        cells.push(self.fit_s.map_or_else(String::new, |s| format!("{s:.3}")));
        cells
    }
}

/// A fit over these lags.
pub(super) fn over(lags: usize) -> FitOptions {
    FitOptions {
        lags: Some(lags),
        ..FitOptions::default()
    }
}

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
