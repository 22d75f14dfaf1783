//! The whole circle: traffic with a known model is recorded, a model is fitted to the record, and that
//! is played and recorded again.
//!
//! ```text
//! known model ─ load ─► wire ─ http ─► records ─ model sessions ─► counts ─ model fit ─► fitted model
//!                                                                                            │
//!               counts ◄─ model sessions ─ records ◄─ http ─ wire ◄─ load ───────────────────┘
//! ```
//! Sessions and requests are the same at every step, exactly. The statistics are those of the models as
//! far as two paths of half a minute can have them: `spread` says how far that is.
//!
//! The known model is that which comes with the program. Its source with a memory changes only twice in
//! 50,000 bins; in bins short enough for that to be seen in half a minute hardly a session begins. So it
//! is made to change more often, by a stated factor, with the same rates in proportion and the same
//! shares of the time.
//!
//! What a scenario of this kind says.

use crate::error::LabError;
use crate::program::output;
use crate::report::Report;
use crate::services::Web;
use crate::settings::duration;
use crate::testbed::Testbed;
use generation::{Generation, Play};
use linkweir_testkit::gateway::Place;
use linkweir_testkit::load as servers;
use model::Model;
use moments::{FIT_LAGS, LAGS};
use serde::Deserialize;
use spread::{PATHS, Spread};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

mod check;
mod generation;
mod model;
mod moments;
mod spread;
mod tables;

/// The model that comes with the program.
const MODEL: &str = include_str!("../../scenarios/web.model.json");
/// Sources with a memory of the fitted model, as many as the known one has. Left to itself the fit takes
/// what a path of half a minute has by chance for another time scale.
const SOURCES: &str = "1";

/// Runs it.
pub(crate) fn run(settings: &Settings, testbed: &mut Testbed<'_>) -> Result<Report, LabError> {
    let seed = testbed.order.seed;
    testbed.tell("the web server");
    let web = Web::start(testbed, &servers::Settings::default())?;
    testbed.route(generation::CLIENTS)?;
    let known = testbed.path("known.json");
    let bin_s = settings.bin.as_secs_f64();
    let text = model::faster(MODEL, bin_s, settings.rate * bin_s, settings.changes)
        .map_err(|error| LabError::program("the model that comes with the program", error))?;
    std::fs::write(&known, text).map_err(LabError::file(&known))?;
    let first = Play {
        name: "first",
        model: &known,
        seed,
        clients: Ipv4Addr::new(10, 16, 0, 0),
    };
    let first = Generation::play(testbed, &web, settings, &first)?;

    testbed.tell("a model is fitted to the record");
    let fitted = testbed.path("fitted.json");
    fit(testbed, settings, &first.path, &fitted)?;
    let second = Play {
        name: "second",
        model: &fitted,
        seed: seed.wrapping_add(1),
        clients: Ipv4Addr::new(10, 24, 0, 0),
    };
    let second = Generation::play(testbed, &web, settings, &second)?;

    testbed.tell("how far paths of the models are from them");
    let check = check::Checked::of(testbed, &fitted, &second.path)?;
    let lags = check::all_lags();
    let models = [Model::read(&known)?, Model::read(&fitted)?].map(|model| model.moments(&lags));
    let observations = tables::Observations {
        settings,
        known: &spread(testbed, settings, &known, seed.wrapping_add(2))?,
        fitted: &spread(testbed, settings, &fitted, seed.wrapping_add(3))?,
        first: &first,
        second: &second,
        check: &check,
        models: &models,
    };
    let mut report = observations.report();
    report.pictures = tables::all(&observations, &lags);
    Ok(report)
}

/// `linkweir model fit`.
fn fit(
    testbed: &Testbed<'_>,
    settings: &Settings,
    counts: &Path,
    model: &Path,
) -> Result<(), LabError> {
    let (counts, model) = (counts.display().to_string(), model.display().to_string());
    let (bin, lags) = (
        format!("{}us", settings.bin.as_micros()),
        FIT_LAGS.to_string(),
    );
    let words = [
        "model",
        "fit",
        &counts,
        "--bin",
        &bin,
        "--sources",
        SOURCES,
        "--lags",
        &lags,
        "-q",
        "-o",
        &model,
    ];
    output(testbed, Place::Client, &words).map(drop)
}

/// Draws a long path of a model, and says how far its parts are from it.
fn spread(
    testbed: &Testbed<'_>,
    settings: &Settings,
    model: &Path,
    seed: u64,
) -> Result<Spread, LabError> {
    let bins = settings.bins();
    let mut drawn = PathBuf::from(model);
    drawn.set_extension("drawn.csv");
    let (model_word, drawn_word) = (model.display().to_string(), drawn.display().to_string());
    let (many, seed) = ((bins * PATHS).to_string(), seed.to_string());
    let words = [
        "model",
        "simulate",
        &model_word,
        "--bins",
        &many,
        "--seed",
        &seed,
        "-q",
        "-w",
        &drawn_word,
    ];
    output(testbed, Place::Client, &words)?;
    let long = spread::read_counts(&drawn)?;
    Ok(Spread::new(&Model::read(model)?, &long, bins, &LAGS))
}

/// Traffic recorded, a model fitted to the record, and that model played and recorded again.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// Sessions start during this time, in each of the two generations.
    #[serde(deserialize_with = "duration")]
    pub duration: Duration,
    /// Mean sessions per second of the known model.
    pub rate: f64,
    /// Duration of a bin in which sessions are counted.
    #[serde(deserialize_with = "duration")]
    pub bin: Duration,
    /// How many times as often as in the model that comes with the program its sources change.
    pub changes: f64,
    /// A request begins a new session when nothing came from its client for longer than this.
    #[serde(deserialize_with = "duration")]
    pub timeout: Duration,
}

impl Settings {
    /// Bins of a generation.
    fn bins(&self) -> usize {
        let bin = self.bin.max(Duration::from_nanos(1));
        let bins = self.duration.as_nanos() / bin.as_nanos();
        usize::try_from(bins).unwrap_or(usize::MAX).max(1)
    }
}
