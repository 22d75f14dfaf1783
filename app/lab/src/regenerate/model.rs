//! A model file, as far as its equations for the mean and the autocovariance need it.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::moments::Moments;
use crate::error::LabError;

/// Steps in which a chain forgets where it began, at most.
const STEPS: u32 = 1_000_000;
/// What probabilities may still change in a step when it has.
const STILL: f64 = 1e-15;

/// Chains side by side; what they send adds up.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Model {
    sources: Vec<Source>,
}

/// A chain and the rate of each of its states.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Source {
    rates: Vec<f64>,
    #[serde(rename = "P")]
    rows: Vec<Vec<f64>>,
}

impl Model {
    /// Reads a file of `linkweir model fit`.
    pub(super) fn read(path: &Path) -> Result<Self, LabError> {
        let text = fs::read(path).map_err(LabError::file(path))?;
        serde_json::from_slice(&text).map_err(|error| wrong(path, &error.to_string()))
    }

    /// Mean and autocovariance of the counts at these lags, in bins: the sources' rates add up, and to
    /// the variance, lag 0, comes that of the Poisson number around the rate, which is the mean.
    pub(super) fn moments(&self, lags: &[usize]) -> Moments {
        let most = lags.iter().max().map_or(0, |lag| lag + 1);
        let mut mean = 0.0;
        let mut all = vec![0.0; most];
        for source in &self.sources {
            let of_rate = source.autocovariance(most);
            all.iter_mut()
                .zip(of_rate)
                .for_each(|(sum, one)| *sum += one);
            mean += source.mean();
        }
        if let Some(variance) = all.first_mut() {
            *variance += mean;
        }
        let covariances = lags.iter().filter_map(|lag| all.get(*lag).copied());
        Moments {
            mean,
            covariances: covariances.collect(),
        }
    }
}

impl Source {
    fn mean(&self) -> f64 {
        dot(&self.stationary(), &self.rates)
    }

    /// Share of the time in each state: where the chain is when it has forgotten its beginning.
    fn stationary(&self) -> Vec<f64> {
        let states = self.rates.len();
        let mut now = vec![1.0 / states.max(1) as f64; states];
        for _ in 0..STEPS {
            let mut next = vec![0.0; states];
            for (share, row) in now.iter().zip(&self.rows) {
                next.iter_mut()
                    .zip(row)
                    .for_each(|(sum, p)| *sum += share * p);
            }
            let moved = next.iter().zip(&now).map(|(a, b)| (a - b).abs());
            let moved = moved.fold(0.0, f64::max);
            now = next;
            if moved < STILL {
                break;
            }
        }
        now
    }

    /// Of the rate, from lag 0 on: what the rate now says about the rate expected so many steps later.
    fn autocovariance(&self, lags: usize) -> Vec<f64> {
        let shares = self.stationary();
        let square = dot(&shares, &self.rates).powi(2);
        let weighted: Vec<f64> = shares.iter().zip(&self.rates).map(|(a, b)| a * b).collect();
        let mut expected = self.rates.clone();
        let mut all = Vec::with_capacity(lags);
        for _ in 0..lags {
            all.push(dot(&weighted, &expected) - square);
            expected = self.rows.iter().map(|row| dot(row, &expected)).collect();
        }
        all
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The text of a model with bins of another length, with this mean in a bin, and whose sources with a
/// memory change so many times as often: the same rates in proportion, and the same shares of the time.
pub(super) fn faster(
    text: &str,
    bin_s: f64,
    mean: f64,
    changes: f64,
) -> Result<String, serde_json::Error> {
    let mut file: Value = serde_json::from_str(text)?;
    let was: Model = serde_json::from_str(text)?;
    let factor = mean / was.moments(&[0]).mean;
    let sources = was.sources.into_iter().map(|source| {
        let rows = source.rows.iter().enumerate();
        let rows = rows.map(|(state, row)| hurry(row, state, source.changes(changes)));
        let rates = source.rates.iter().map(|rate| rate * factor);
        json!({ "rates": rates.collect::<Vec<f64>>(), "P": rows.collect::<Vec<_>>() })
    });
    let sources: Value = sources.collect();
    if let Some(file) = file.as_object_mut() {
        file.insert("bin_s".to_owned(), json!(bin_s));
        file.insert("sources".to_owned(), sources);
        if let Some(Value::Object(from)) = file.get_mut("provenance") {
            from.insert(
                "source".to_owned(),
                json!(format!("web, {changes} times as fast")),
            );
            from.insert("mean".to_owned(), json!(mean));
            from.remove("statistics");
        }
    }
    serde_json::to_string(&file)
}

impl Source {
    /// How many times as often it changes: one without memory, whose rows are all the same, does so as
    /// often as can be.
    fn changes(&self, wanted: f64) -> f64 {
        let first = self.rows.first();
        let has_memory = self.rows.iter().any(|row| Some(row) != first);
        // No more than a change in each bin.
        let most = self.rows.iter().enumerate().map(|(state, row)| {
            let leaving: f64 = 1.0 - row.get(state).copied().unwrap_or(1.0);
            if leaving > 0.0 { 1.0 / leaving } else { wanted }
        });
        if has_memory {
            most.fold(wanted, f64::min)
        } else {
            1.0
        }
    }
}

/// A row of a chain that leaves its state so many times as often.
fn hurry(row: &[f64], state: usize, changes: f64) -> Vec<f64> {
    let places = row.iter().enumerate();
    let others = places.clone().filter(|(place, _)| *place != state);
    let leaving: f64 = others.map(|(_, p)| p * changes).sum();
    places
        .map(|(place, p)| {
            if place == state {
                1.0 - leaving
            } else {
                p * changes
            }
        })
        .collect()
}

fn wrong(path: &Path, why: &str) -> LabError {
    LabError::file(path)(io::Error::new(ErrorKind::InvalidData, why.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that is at 0 for 3/4 of the time and at 8 otherwise, and one without memory.
    const TEXT: &str = r#"{"format":"x","bin_s":10.0,"sources":[
        {"rates":[0.0,8.0],"P":[[0.99,0.01],[0.03,0.97]]},
        {"rates":[1.0,3.0],"P":[[0.5,0.5],[0.5,0.5]]}],"provenance":{"source":"s"}}"#;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn moments_follow_from_the_chains() {
        let model: Model = serde_json::from_str(TEXT).unwrap();
        let moments = model.moments(&[0, 1, 10]);
        assert!(close(moments.mean, 4.0));
        // 64 p (1 - p) of the first, which keeps 0.96 of it in each step; 1 of the second.
        let slow = 64.0 * 0.25 * 0.75;
        assert!(close(moments.covariances[0], slow + 1.0 + 4.0));
        assert!(close(moments.covariances[1], slow * 0.96));
        assert!(close(moments.covariances[2], slow * 0.96_f64.powi(10)));
    }

    #[test]
    fn a_faster_model_remembers_less_and_is_the_same_otherwise() {
        let text = faster(TEXT, 0.01, 2.0, 10.0).unwrap();
        let model: Model = serde_json::from_str(&text).unwrap();
        let moments = model.moments(&[0, 1]);
        assert!(close(moments.mean, 2.0));
        let slow = 64.0 * 0.25 * 0.75 / 4.0;
        assert!(close(moments.covariances[0], slow + 0.25 + 2.0));
        assert!(close(moments.covariances[1], slow * 0.6));
        let file: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(file["bin_s"], 0.01);
        // No chain changes more than once in a bin.
        let text = faster(TEXT, 0.01, 2.0, 1e6).unwrap();
        let model: Model = serde_json::from_str(&text).unwrap();
        assert!(
            model.sources[0]
                .rows
                .iter()
                .flatten()
                .all(|p| (0.0..=1.0).contains(p))
        );
    }
}
