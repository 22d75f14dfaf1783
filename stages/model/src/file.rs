//! The model file: JSON, read strictly.
//!
//! ```json
//! {"format": "linkweir-model", "version": 1, "bin_s": 10.0,
//!  "sources": [{"rates": [0.0, 85.6], "P": [[0.99, 0.01], [0.2, 0.8]]}],
//!  "profile": {"bins": 17280, "every": 22, "factors": [0.4, 0.5]},
//!  "provenance": {"source": "access.log", "bins": 17280, "mean": 32.57, "lags": 300,
//!                 "date": "2026-01-31", "program": "linkweir 0.1.0"}}
//! ```
//!
//! `rates` are arrivals per bin in each state, `P` the rows of the transition matrix. `profile` may be
//! absent. A name that is not known here is an error, as is a version other than 1.

use crate::model::{Model, NotPositive};
use crate::profile::{Profile, ProfileError};
use crate::provenance::{Provenance, Statistics};
use crate::source::{Source, SourceError};
use crate::superposition::{MAX_SOURCES, Superposition, SuperpositionError};
use serde::{Deserialize, Serialize};

/// Longest file in bytes.
pub const MAX_BYTES: usize = 64 << 20;
/// Most states of one source in a file.
const MAX_FILE_STATES: usize = 256;
const FORMAT: &str = "linkweir-model";
const VERSION: u32 = 1;

/// Why a text is no model.
#[derive(Debug, thiserror::Error)]
pub enum ModelFileError {
    /// More than [`MAX_BYTES`].
    #[error("{0} bytes are more than the {MAX_BYTES} of the largest model file")]
    TooLong(usize),
    /// No JSON, or not of this shape; says line and column.
    #[error("not a model file: {0}")]
    Json(#[from] serde_json::Error),
    /// Another kind of file.
    #[error("format: {0:?} is not {FORMAT:?}")]
    Format(String),
    /// Of another version.
    #[error("version: {0} is not known here, only {VERSION} is")]
    Version(u32),
    /// The bin length is none.
    #[error("bin_s: {0}")]
    Bin(NotPositive),
    /// A source is none.
    #[error("sources[{source_number}]: {fault}")]
    Source {
        /// Which, from 0 on.
        source_number: usize,
        /// What is wrong with it.
        fault: SourceError,
    },
    /// A source has more states than a file may hold.
    #[error(
        "sources[{source_number}]: {states} states are more than the {MAX_FILE_STATES} of a source in a file"
    )]
    States {
        /// Which, from 0 on.
        source_number: usize,
        /// How many it has.
        states: usize,
    },
    /// The sources together are too many.
    #[error("sources: {0}")]
    Sources(SuperpositionError),
    /// The profile is none.
    #[error("profile: {0}")]
    Profile(ProfileError),
    /// A number of the provenance is none.
    #[error("provenance.{0}: it is not a number that can be")]
    Provenance(&'static str),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    version: u32,
    bin_s: f64,
    sources: Vec<FileSource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    profile: Option<FileProfile>,
    provenance: Provenance,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSource {
    rates: Vec<f64>,
    #[serde(rename = "P")]
    rows: Vec<Vec<f64>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileProfile {
    bins: u32,
    every: u32,
    factors: Vec<f64>,
}

impl Model {
    /// Reads a model file.
    ///
    /// # Errors
    /// [`ModelFileError`] says where in the text, or in which field, and what is wrong.
    pub fn from_json(text: &str) -> Result<Self, ModelFileError> {
        if text.len() > MAX_BYTES {
            return Err(ModelFileError::TooLong(text.len()));
        }
        let file: File = serde_json::from_str(text)?;
        if file.format != FORMAT {
            return Err(ModelFileError::Format(file.format));
        }
        if file.version != VERSION {
            return Err(ModelFileError::Version(file.version));
        }
        if file.sources.len() > MAX_SOURCES {
            let fault = SuperpositionError::Sources(file.sources.len());
            return Err(ModelFileError::Sources(fault));
        }
        let mut sources = Vec::with_capacity(file.sources.len());
        for (source_number, source) in file.sources.into_iter().enumerate() {
            let states = source.rates.len();
            if states > MAX_FILE_STATES {
                return Err(ModelFileError::States {
                    source_number,
                    states,
                });
            }
            let made = Source::new(source.rates, &source.rows);
            sources.push(made.map_err(|fault| ModelFileError::Source {
                source_number,
                fault,
            })?);
        }
        let superposition = Superposition::new(sources).map_err(ModelFileError::Sources)?;
        let profile = file
            .profile
            .map(|p| Profile::new(p.bins, p.every, p.factors));
        let profile = profile.transpose().map_err(ModelFileError::Profile)?;
        if file.provenance.mean < 0.0 {
            return Err(ModelFileError::Provenance("mean"));
        }
        Self::new(file.bin_s, superposition, profile, file.provenance).map_err(ModelFileError::Bin)
    }

    /// The model file, on one line. What is read from it again is the same model, digit by digit.
    #[must_use]
    pub fn to_json(&self) -> String {
        let sources = self.superposition().sources().iter();
        let file = File {
            format: FORMAT.to_owned(),
            version: VERSION,
            bin_s: self.bin_s(),
            sources: sources
                .map(|source| FileSource {
                    rates: source.rates().to_vec(),
                    rows: source.rows().map(<[f64]>::to_vec).collect(),
                })
                .collect(),
            profile: self.profile().map(|profile| FileProfile {
                bins: profile.bins(),
                every: profile.every(),
                factors: profile.factors().to_vec(),
            }),
            provenance: writable(self.provenance().clone()),
        };
        // Strings, finite numbers and lists: there is nothing in it that cannot be written.
        let mut text = serde_json::to_string(&file).unwrap_or_default();
        text.push('\n');
        text
    }
}

/// JSON has finite numbers only.
fn writable(provenance: Provenance) -> Provenance {
    let finite = |value: f64| if value.is_finite() { value } else { 0.0 };
    let statistics = provenance.statistics.map(|given| Statistics {
        mean_error: finite(given.mean_error),
        total_variation: finite(given.total_variation),
        autocovariance: given.autocovariance.finite(),
        autocovariance_with_lag0: given.autocovariance_with_lag0.finite(),
        log_likelihood: given.log_likelihood.filter(|value| value.is_finite()),
        ..given
    });
    Provenance {
        mean: finite(provenance.mean),
        statistics,
        ..provenance
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Agreement;
    use proptest::prelude::*;

    fn model() -> Model {
        let sources = vec![
            Source::two_state(0.951_234_567_891_234_5, 85.612_345_678_901_23, 0.999_6).unwrap(),
            Source::memoryless(vec![0.1, 1.0 / 3.0, 8.0], &[0.25, 0.5, 0.25]).unwrap(),
        ];
        let provenance = Provenance {
            source: "a \"log\"".to_owned(),
            bins: 17_280,
            mean: 32.57,
            lags: 300,
            date: "2026-01-31".to_owned(),
            program: "linkweir 0.1.0".to_owned(),
            statistics: Some(Statistics {
                lags: 300,
                mean_error: 0.0,
                total_variation: 0.04,
                autocovariance: Agreement {
                    ic: 0.007,
                    theil: 0.0035,
                },
                autocovariance_with_lag0: Agreement {
                    ic: 0.01,
                    theil: 0.005,
                },
                log_likelihood: Some(-69_976.0),
            }),
        };
        let profile = Profile::new(10, 4, vec![0.3, 1.7, 0.9]).unwrap();
        let superposition = Superposition::new(sources).unwrap();
        Model::new(10.0, superposition, Some(profile), provenance).unwrap()
    }

    #[test]
    fn what_was_written_is_read() {
        let model = model();
        let text = model.to_json();
        let again = Model::from_json(&text).unwrap();
        assert_eq!(again.to_json(), text);
        assert_eq!(again.provenance(), model.provenance());
        assert_eq!(again.profile(), model.profile());
        assert_eq!(again.simulate(300, 1), model.simulate(300, 1));
    }

    #[test]
    fn numbers_that_json_has_not_are_left_out() {
        let mut provenance = model().provenance().clone();
        provenance.mean = f64::NAN;
        if let Some(statistics) = &mut provenance.statistics {
            statistics.log_likelihood = Some(f64::NEG_INFINITY);
            statistics.autocovariance.ic = f64::INFINITY;
        }
        let again = Model::from_json(&model().with_provenance(provenance).to_json()).unwrap();
        assert_eq!(again.provenance().mean, 0.0);
        let statistics = again.provenance().statistics.unwrap();
        assert_eq!(statistics.log_likelihood, None);
        assert_eq!(statistics.autocovariance.ic, 0.0);
    }

    /// What the reader says of the model's text with `from` replaced.
    fn fault(from: &str, to: &str) -> String {
        let text = model().to_json();
        assert!(text.contains(from), "{from} in {text}");
        Model::from_json(&text.replacen(from, to, 1))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn faults_say_where() {
        assert!(fault("\"version\":1", "\"version\":2").starts_with("version: 2"));
        assert!(fault("linkweir-model", "other").starts_with("format: \"other\""));
        assert!(fault("\"bin_s\":10.0", "\"bin_s\":-1").starts_with("bin_s: "));
        let row = "[0.25,0.5,0.25]";
        assert!(fault(row, "[0.25,0.5,0.5]").starts_with("sources[1]: row 0 sums to"));
        assert!(fault(row, "[0.25,0.5]").starts_with("sources[1]: row 0 has 2 entries"));
        assert!(fault("85.61", "-85.61").starts_with("sources[0]: rate -85.6"));
        assert!(fault("\"every\":4", "\"every\":0").starts_with("profile: a period"));
        assert!(fault("\"mean\":32.57", "\"mean\":-1").starts_with("provenance.mean"));
        let unknown = fault("\"bin_s\"", "\"width\"");
        assert!(unknown.contains("line 1 column"), "{unknown}");
        let cut = Model::from_json("{\"format\":").unwrap_err().to_string();
        assert!(cut.contains("line 1 column"), "{cut}");
        assert!(fault("10.0", "1e999").contains("out of range"));
    }

    #[test]
    fn sizes_are_bounded() {
        let source = r#"{"rates":[1.0],"P":[[1.0]]}"#;
        let of = |sources: &str| {
            format!(
                r#"{{"format":"linkweir-model","version":1,"bin_s":1,"sources":[{sources}],
                "provenance":{{"source":"","bins":0,"mean":0,"lags":0,"date":"","program":""}}}}"#
            )
        };
        assert!(Model::from_json(&of(source)).is_ok());
        assert!(matches!(
            Model::from_json(&of("")),
            Err(ModelFileError::Sources(_))
        ));
        let many = vec![source; 17].join(",");
        assert!(matches!(
            Model::from_json(&of(&many)),
            Err(ModelFileError::Sources(_))
        ));
        let wide = format!(r#"{{"rates":[{}],"P":[]}}"#, vec!["1"; 257].join(","));
        assert!(matches!(
            Model::from_json(&of(&wide)),
            Err(ModelFileError::States {
                source_number: 0,
                states: 257
            })
        ));
        let long = " ".repeat(MAX_BYTES + 1);
        assert!(matches!(
            Model::from_json(&long),
            Err(ModelFileError::TooLong(_))
        ));
    }

    proptest! {
        #[test]
        fn any_text_is_an_error(text in ".{0,200}") {
            prop_assert!(Model::from_json(&text).is_err());
        }

        /// A byte of a good file replaced by any other: read or refused, and what was read can run.
        #[test]
        fn a_changed_file_is_a_model_or_an_error(place in 0_usize..2000, byte in 32_u8..127) {
            let mut bytes = model().to_json().into_bytes();
            let place = place % bytes.len();
            bytes[place] = byte;
            let text = String::from_utf8(bytes).unwrap();
            if let Ok(model) = Model::from_json(&text) {
                let mut sampler = model.sampler(1);
                prop_assert!((0..50).all(|_| sampler.next_rate().is_finite()));
            }
        }
    }
}
