//! Constant against correlated arrivals at the same mean rate, far from the server's limit and near it:
//! the contrast of Table 2 of the paper of the Raw Packet Sender.
//!
//! The server is made slow by what it has to do for an answer of `/work`, so that its processor is the
//! limit, as in the paper. What it can do is found by the generator itself: a volley of sessions, far
//! more in a second than the server can answer, and the processor time that it took for them (see
//! [`play`]).
//!
//! Then come two pairs of runs. In each the MMPP goes first, because nobody knows before what mean a
//! path of it will have, and the constant gaps have just that mean. The same seed takes the same path
//! through the model at every rate; so what the first pair's path had more or less than its model is
//! known when the second comes, whose rate is chosen so that its *realised* mean is the part of the
//! limit that is wanted. Without that a path with a few bursts more would be above the limit, where
//! even constant gaps have a queue without end.
//!
//! An answer costs more processor time when other programs of the machine share caches and cores with the
//! server, and some of the time it is kept from its core; then its limit is lower than was found. So the
//! limit follows the dearest of the runs before, and the scheduler's counts say how much of the core a
//! run has really used. A pair near the limit that left the server less than half of what it should have
//! left is run again with what was learnt; where the machine is never quiet enough, the pair is shown and
//! not judged.
//!
//! What a scenario of this kind says.

use crate::error::LabError;
use crate::program::{watch, watch_with};
use crate::report::Report;
use crate::services::Web;
use crate::settings::duration;
use crate::testbed::{Testbed, go_first};
use linkweir_testkit::load as servers;
use play::{Job, Played, Player};
use serde::Deserialize;
use std::time::Duration;

mod play;
mod seen;
mod tables;

/// The model that comes with the program.
const MODEL: &str = include_str!("../../scenarios/web.model.json");
/// How long the last lines of the log may take.
const SETTLE: Duration = Duration::from_secs(10);

/// Two runs with the same mean rate.
#[derive(Debug)]
struct Pair {
    mmpp: Played,
    constant: Played,
    /// The limit by which the rate was chosen, answers a second.
    assumed: f64,
}

impl Pair {
    /// Part of the constant run in which the server ran or was kept from its core: how near to its limit
    /// it really was. 0 where nobody counts.
    fn used(&self) -> f64 {
        let run = &self.constant;
        run.busy().unwrap_or(0.0) + run.denied().unwrap_or(0.0)
    }

    /// The limit by what the answers of these runs cost.
    fn limit(&self) -> f64 {
        let runs = [&self.mmpp, &self.constant];
        let limits = runs.into_iter().filter_map(play::by_core);
        limits.fold(f64::INFINITY, f64::min)
    }
}

/// Runs it.
pub(crate) fn run(settings: &Settings, testbed: &mut Testbed<'_>) -> Result<Report, LabError> {
    testbed.tell("the web server");
    let server = servers::Settings {
        work: settings.work,
        ..servers::Settings::default()
    };
    let web = Web::start(testbed, &server)?;
    go_first(testbed, web.id());
    testbed.route(play::CLIENTS)?;
    let model = testbed.put("model.json", MODEL.as_bytes())?;
    let model = model.display().to_string();
    let http = watch_with(testbed, "http", "http", &["--ttlb"])?;
    let flows = watch(testbed, "flows", "flows")?;
    for (name, page) in [("http", http.console), ("flows", flows.console)] {
        if let Some(address) = page {
            testbed.tell(&format!("watch {name}: http://{address}/"));
        }
    }

    let mut player = Player::new(testbed, &web);
    player.testbed.tell("the server's limit");
    let (limit, volley) = play::find(&mut player)?;
    player
        .testbed
        .tell(&format!("it answers {limit:.0} a second"));
    let far = pair(&mut player, settings, &model, "far", (limit, settings.far))?;
    let realised = rate(&far.mmpp, settings);
    // More than the model's mean, or less: so it will be again.
    let surplus = realised / (settings.far * limit);
    if surplus <= 0.0 {
        return Err(LabError::program(
            "the run far from the limit",
            "no session in it",
        ));
    }
    let mut limit_now = limit.min(far.limit());
    let mut near: Vec<Pair> = Vec::new();
    for round in 1..=settings.rounds.max(1) {
        let (name, part) = (format!("near{round}"), settings.near / surplus);
        near.push(pair(
            &mut player,
            settings,
            &model,
            &name,
            (limit_now, part),
        )?);
        let Some(last) = near.last() else { break };
        if settings.is_quiet(last) {
            break;
        }
        limit_now = limit_now.min(last.limit());
    }
    near.sort_by(|a, b| a.used().total_cmp(&b.used()));

    testbed.tell("the last frames");
    let mut near = near.into_iter();
    let judged = near.next();
    let is_quiet = judged.as_ref().is_some_and(|pair| settings.is_quiet(pair));
    let assumed = judged.as_ref().map_or(limit, |pair| pair.assumed);
    let pairs = std::iter::once(far).chain(judged).chain(near);
    let mut runs: Vec<Played> = pairs.flat_map(|pair| [pair.mmpp, pair.constant]).collect();
    runs.push(volley);
    let expected: u64 = runs
        .iter()
        .map(|run| run.load.count("load/responses"))
        .sum();
    // What the log lacks in the end is a finding.
    drop(testbed.wait("the log", SETTLE, || {
        u64::try_from(web.visits().len()).is_ok_and(|lines| lines >= expected)
    }));
    let (http, flows) = (http.finish()?, flows.finish()?);
    let seen = seen::read(testbed, &runs, &web.visits())?;
    let observations = tables::Observations {
        settings,
        limits: [limit, assumed],
        runs: &runs,
        seen: &seen,
        is_quiet,
        http: &http,
        flows: &flows,
    };
    let mut report = observations.report();
    report.pictures = tables::all(&seen);
    Ok(report)
}

impl Settings {
    /// Whether constant gaps left the server at least half of what they should have left it.
    fn is_quiet(&self, pair: &Pair) -> bool {
        pair.used() <= f64::midpoint(1.0, self.near)
    }
}

/// Runs the model at this part of a limit, and then constant gaps at the mean that came of it.
fn pair(
    player: &mut Player<'_, '_>,
    settings: &Settings,
    model: &str,
    name: &str,
    (limit, part): (f64, f64),
) -> Result<Pair, LabError> {
    let wanted = part * limit;
    let duration = settings.duration;
    let until = format!("{}ms", duration.as_millis());
    let bin = format!("{}ns", settings.model_bin.as_nanos());
    player
        .testbed
        .tell(&format!("{wanted:.0} sessions a second, MMPP"));
    let mmpp = player.play(Job {
        name: format!("{name}-mmpp"),
        arrivals: format!("mmpp:{model}@{wanted:.3}"),
        words: ["--duration", &until, "--model-bin", &bin]
            .map(str::to_owned)
            .to_vec(),
        duration,
    })?;
    let realised = rate(&mmpp, settings);
    player
        .testbed
        .tell(&format!("{realised:.0} sessions a second, constant"));
    let constant = player.play(Job {
        name: format!("{name}-constant"),
        arrivals: format!("constant:{realised:.3}"),
        words: ["--duration", &until].map(str::to_owned).to_vec(),
        duration,
    })?;
    Ok(Pair {
        mmpp,
        constant,
        assumed: limit,
    })
}

/// Sessions a second that the schedule had.
fn rate(run: &Played, settings: &Settings) -> f64 {
    run.planned() as f64 / settings.duration.as_secs_f64()
}

/// Constant and correlated arrivals, far from the server's limit and near it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// Sessions start during this time, in each of the runs.
    #[serde(deserialize_with = "duration")]
    pub duration: Duration,
    /// Part of the server's limit that is far from it.
    pub far: f64,
    /// Part of the server's limit that is near it, below 1.
    pub near: f64,
    /// How often the runs near the limit are repeated, at most, while other programs take the server's
    /// core away.
    pub rounds: u32,
    /// Commands that the server works off for an answer: about a microsecond each.
    pub work: u32,
    /// Duration of a bin of the model: how fast it is played.
    #[serde(deserialize_with = "duration")]
    pub model_bin: Duration,
}
