//! What sessions ask for and when they start, from the command line and the files it names.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::anyhow;
use linkweir_load::arrivals::{
    Even, Exact, Limits, Modulated, Plan as Arrival, Poisson, Replay, Schedule, Word, rate_factor,
};
use linkweir_load::script::replay::{RecordedRequest, ReplaySettings, sessions_of};
use linkweir_load::script::surge::Surge;
use linkweir_load::script::{Plan, Script, SessionPlan, Site, Span, file, single, wsesslog};
use linkweir_model::{Model, Random, Sampler};
use linkweir_record::human::counted;
use linkweir_wire::nanos;

use super::args::{LoadArgs, Preset};
use super::target::Target;
use crate::exit::{Wrong, warn};
use crate::files;

/// Bytes of the largest file of records to replay.
const MAX_RECORDS: u64 = 2 << 30;
/// Bytes of the largest model, script or list of targets; a page of a script takes about 1.4 kB of memory.
const MAX_FILE: u64 = 16 << 20;
/// A recorded client that was silent for so long begins a new session.
const SESSION_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Parts of the seed: each use of random numbers has a sequence of its own.
const PART_OF_ARRIVALS: u64 = 1;
const PART_OF_MODEL: u64 = 2;
const PART_OF_PRESET: u64 = 3;

/// When sessions start, and what they ask for.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) schedule: Schedule<Sampler>,
    pub(super) script: Script,
}

/// Reads everything that the command line names.
pub(super) fn read(args: &LoadArgs, target: &Target) -> anyhow::Result<Work> {
    let like = SessionPlan {
        parallel: args.sessions.parallel_or_default(),
        keep_alive: args.sessions.keeps_alive().unwrap_or(true),
        ..SessionPlan::default()
    };
    let is_replay = matches!(args.schedule.arrivals, Word::Replay { .. });
    if args.schedule.duration.is_none() && args.schedule.sessions.is_none() && !is_replay {
        let what = "when does it end? --duration or --sessions";
        return Err(anyhow!(Wrong(what.to_owned())));
    }
    let mut recorded = None;
    let arrival = match &args.schedule.arrivals {
        Word::Constant { rate } => Arrival::Even(Even::new(*rate)),
        Word::Poisson { rate } => {
            let random = Random::part(args.schedule.seed, PART_OF_ARRIVALS);
            Arrival::Poisson(Poisson::new(*rate, random))
        }
        Word::Model {
            path,
            rate: Some(rate),
            is_exact: true,
        } => Arrival::Exact(exact(args, path, *rate)?),
        Word::Model { path, rate, .. } => Arrival::Modulated(modulated(args, path, *rate)?),
        Word::Replay { path } => {
            let (plan, replay) = replayed(path, &like)?;
            recorded = plan;
            Arrival::Replay(replay)
        }
    };
    let limits = Limits {
        duration_ns: args.schedule.duration.map_or(u64::MAX, nanos),
        sessions: args.schedule.sessions.unwrap_or(u64::MAX),
    };
    let plan = plan(args, target, &like, recorded)?;
    let script = Script::new(&plan, &Site::new(target.host.clone()))
        .map_err(|error| anyhow!(Wrong(error.to_string())))?;
    Ok(Work {
        schedule: Schedule::new(arrival, limits),
        script,
    })
}

fn modulated(args: &LoadArgs, path: &str, rate: Option<f64>) -> anyhow::Result<Modulated<Sampler>> {
    let (model, bin_ns) = model(args, path)?;
    let factor = rate.map_or(1.0, |rate| rate_factor(model.mean(), bin_ns, rate));
    let random = Random::part(args.schedule.seed, PART_OF_ARRIVALS);
    Ok(Modulated::new(
        sampler(args, &model),
        bin_ns,
        factor,
        random,
    ))
}

/// As many sessions as `rate` has in the duration, spread as the path of the model has them.
fn exact(args: &LoadArgs, path: &str, rate: f64) -> anyhow::Result<Exact<Sampler>> {
    let wrong = |what: &str| anyhow!(Wrong(format!("--arrivals mmpp:{path}@={rate}: {what}")));
    let duration = args.schedule.duration;
    let duration = duration.ok_or_else(|| wrong("the mean is that of the run: give --duration"))?;
    let (model, bin_ns) = model(args, path)?;
    let random = Random::part(args.schedule.seed, PART_OF_ARRIVALS);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and a rate is above 0"
    )]
    let sessions = (rate * duration.as_secs_f64()).round() as u64;
    let source = sampler(args, &model);
    Exact::new(source, bin_ns, nanos(duration), sessions, random).ok_or_else(|| {
        wrong("the model has no arrivals in this duration, or 2^24 bins and more; try another --seed or --model-bin")
    })
}

/// A model, and the length of its bins as it is played.
fn model(args: &LoadArgs, path: &str) -> anyhow::Result<(Model, u64)> {
    let text = text_of(Path::new(path), MAX_FILE)?;
    let model =
        Model::from_json(&text).map_err(|error| anyhow!(Wrong(format!("{path}: {error}"))))?;
    let own = Duration::try_from_secs_f64(model.bin_s()).unwrap_or(Duration::MAX);
    let bin_ns = nanos(args.schedule.model_bin.unwrap_or(own));
    Ok((model, bin_ns))
}

fn sampler(args: &LoadArgs, model: &Model) -> Sampler {
    model.sampler(Random::part(args.schedule.seed, PART_OF_MODEL).bits())
}

/// Sessions with their times, where the file has records; only the times, where it is a list of them.
fn replayed(path: &str, like: &SessionPlan) -> anyhow::Result<(Option<Plan>, Replay)> {
    let text = text_of(Path::new(path), MAX_RECORDS)?;
    if !text.trim_start().starts_with('{') {
        let replay =
            Replay::parse(&text).map_err(|error| anyhow!(Wrong(format!("{path}:{error}"))))?;
        return Ok((None, replay));
    }
    let mut records = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim().is_empty() {
            continue;
        }
        let record: Transaction = serde_json::from_str(line)
            .map_err(|error| anyhow!(Wrong(format!("{path}:{number}: {error}"))))?;
        records.extend(record.request());
    }
    let settings = ReplaySettings {
        timeout_ns: nanos(SESSION_TIMEOUT),
        keeps_hosts: false,
        like: like.clone(),
    };
    let replayed = sessions_of(records, &settings);
    if replayed.skipped > 0 {
        warn(&format!(
            "{path}: {} omitted: methods or targets that cannot be replayed",
            counted(replayed.skipped, "request")
        ));
    }
    if replayed.plan.sessions.is_empty() {
        return Err(anyhow!(Wrong(format!("{path}: no request to play"))));
    }
    Ok((Some(replayed.plan), Replay::new(replayed.starts_ns)))
}

/// What is read of a record of `linkweir http`; an orphan response has no request.
#[derive(serde::Deserialize)]
struct Transaction {
    client_ip: IpAddr,
    request_ts_ns: Option<u64>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    host: Option<String>,
}

impl Transaction {
    fn request(self) -> Option<RecordedRequest> {
        Some(RecordedRequest {
            at_ns: self.request_ts_ns?,
            client: self.client_ip,
            method: self.method?,
            target: self.uri?,
            host: self.host.unwrap_or_default(),
        })
    }
}

fn plan(
    args: &LoadArgs,
    target: &Target,
    like: &SessionPlan,
    recorded: Option<Plan>,
) -> anyhow::Result<Plan> {
    let sessions = &args.sessions;
    let has_script = sessions.script.is_some() || sessions.preset.is_some();
    let mut plan = match (&sessions.script, sessions.preset, recorded) {
        (_, _, Some(_)) if has_script => {
            let what = "recorded requests are played as they are: neither --script nor --preset";
            return Err(anyhow!(Wrong(what.to_owned())));
        }
        (_, _, Some(recorded)) => recorded,
        (Some(path), ..) => script(path, like, sessions.think)?,
        (None, Some(Preset::Surge), None) => {
            let targets = match &sessions.targets {
                Some(path) => lines_of(path)?,
                None => vec![target.path.clone()],
            };
            let seed = Random::part(args.schedule.seed, PART_OF_PRESET).bits();
            Surge::default().plan(&targets, like, seed)
        }
        (None, None, None) => single(&target.path, like),
    };
    for session in &mut plan.sessions {
        // What the command line says wins over a script.
        session.keep_alive = sessions.keeps_alive().unwrap_or(session.keep_alive);
        session.parallel = sessions.parallel.unwrap_or(session.parallel);
        for page in &mut session.pages {
            page.is_parsed |= sessions.embedded;
        }
    }
    Ok(plan)
}

fn script(path: &Path, like: &SessionPlan, think: Option<Duration>) -> anyhow::Result<Plan> {
    let text = text_of(path, MAX_FILE)?;
    let is_toml = path.extension().is_some_and(|ending| ending == "toml");
    let parsed = if is_toml {
        file::parse(&text)
    } else {
        let think = think.map_or_else(Span::default, |think| Span::Constant(nanos(think)));
        wsesslog::parse(&text, like, think)
    };
    parsed.map_err(|error| anyhow!(Wrong(format!("{}:{error}", path.display()))))
}

fn lines_of(path: &Path) -> anyhow::Result<Vec<String>> {
    let text = text_of(path, MAX_FILE)?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    if lines.is_empty() {
        return Err(anyhow!(Wrong(format!("{}: no path in it", path.display()))));
    }
    Ok(lines)
}

fn text_of(path: &Path, most: u64) -> anyhow::Result<String> {
    let text = files::read_text(path, most);
    text.map_err(|error| anyhow!(Wrong(format!("{}: {error}", path.display()))))
}
