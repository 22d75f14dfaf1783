//! Load through the gateway, while everybody counts.
//!
//! Those who look at the wire behind the gateway.

use crate::error::LabError;
use crate::gateway::{self, Gateway};
use crate::line::Line;
use crate::program::{Ended, Program};
use crate::report::{Report, Rule};
use crate::services::{Web, url};
use crate::testbed::{Testbed, need};
use linkweir_testkit::gateway::{Place, WAN};
use linkweir_testkit::load as servers;
use planted::Planted;
use std::net::SocketAddr;
use std::time::Duration;
use std::{fs, iter};

mod losses;
mod planted;
mod settings;
mod tables;
mod times;

pub use settings::Settings;

/// The model that comes with the program: two days of the World Cup 1998 log. Source: fitted by
/// `cargo xtask bench model`.
const MODEL: &str = include_str!("../../scenarios/web.model.json");
/// Sessions in turn: a page with its objects, one small answer, a redirection, nothing, a file.
const SCRIPT: &str = "/page\n    /style.css\n    /script.js\n    /one.png\n    /two.png\n\n\
                      /small\n\n/moved\n\n/none\n\n/file\n";
/// Bytes of `/file`.
const FILE: usize = 30_000;
/// How long sessions may go on when no more begin.
const DRAIN: Duration = Duration::from_secs(10);
/// How long the last frames and lines may take.
const SETTLE: Duration = Duration::from_secs(10);
/// How long before its end, at least, a generator may have taken its last frame.
const LEAD: Duration = Duration::from_millis(200);
/// How long the server may go on to close: it sends a FIN again after 0.2, 0.6, 1.4 and 3 s.
const LAST_WORDS: Duration = Duration::from_secs(4);

/// Runs it.
pub(crate) fn run(settings: &Settings, testbed: &mut Testbed<'_>) -> Result<Report, LabError> {
    need(&["nft", "tc"])?;
    testbed.tell("the web server");
    let web = Web::start(testbed, &servers::Settings::default())?;
    web.put("file", &vec![b'f'; FILE])?;
    let planted = Planted::plan(settings, testbed, &web)?;
    for cidr in [&settings.clients, &settings.guests, settings::CARRIERS] {
        testbed.route(cidr)?;
    }
    testbed.tell("the gateway");
    let gateway = Gateway::start(testbed, &policy(testbed, settings, &planted))?;
    let observers = Observers::start(testbed)?;
    for (name, address) in observers.consoles().chain(gateway.console()) {
        testbed.tell(&format!("watch {name}: http://{address}/"));
    }

    let line = settings.line.map(|line| Line::lay(testbed, line.into()));
    let line = line.transpose()?;
    let (server, lost_before) = (
        losses::Server::read(testbed)?,
        losses::Undelivered::read(testbed),
    );
    let sessions = format!(
        "sessions: {:.0} a second for {:?}, from {} and, inspected, {}",
        settings.rate, settings.duration, settings.clients, settings.guests
    );
    testbed.tell_of(&sessions, settings.duration);
    let load = load(settings, testbed)?;
    let carriers = planted.send(testbed)?;
    // What the line holds back is sent before the generator ends and arrives after.
    let delay = settings.line.map_or(Duration::ZERO, |line| line.delay);
    let mut leaving = losses::Leaving::new(testbed, LEAD + delay)?;
    let load = load.wait_and(testbed, settings.duration + DRAIN, || leaving.look(testbed))?;
    let leaving = leaving.earlier();
    let carriers = carriers
        .into_iter()
        .map(|carrier| carrier.wait(testbed, SETTLE))
        .collect::<Result<Vec<_>, _>>()?;
    testbed.tell("the last frames");
    let expected = load.count("load/responses");
    // What the log lacks in the end is a finding.
    drop(testbed.wait("the log", SETTLE, || {
        u64::try_from(web.visits().len()).is_ok_and(|lines| lines >= expected)
    }));

    // Nor what the server's kernel still wants to say.
    drop(testbed.wait("the server", LAST_WORDS, || {
        testbed.net.open_connections(Place::Server) == 0
    }));
    let counted = losses::Server::read(testbed)?;
    let undelivered = losses::Undelivered::read(testbed).since(lost_before);
    let seen = observers.finish()?;
    let line = line.map(Line::finish).transpose()?;
    let gateway = gateway.finish(testbed)?;
    let observations = tables::Observations {
        settings,
        load: &load,
        carriers: &carriers,
        without: planted.without.as_deref(),
        visits: &web.visits(),
        seen: &seen,
        gateway: &gateway,
    };
    let mut report = observations.report();
    let again = losses::Observations {
        loads: iter::once(&load).chain(&carriers).collect(),
        http: &seen.http,
        gateway: &gateway,
        flows: losses::Flows::read(testbed)?,
        server: counted.since(&server),
        unheard: leaving.until(&counted),
        undelivered,
    };
    report.tables.extend(again.tables(line.as_ref()));
    // How long a client waits behind a line is the work of one more process; and where the generator
    // says INVALID, the machine had no time for anybody.
    let apart = if settings.line.is_some() || observations.invalid().is_some() {
        Rule::Shown
    } else {
        Rule::Within(times::APART_S)
    };
    times::compare(testbed, &mut report, apart)?;
    Ok(report)
}

/// What is inspected is that of the guests, and of those who carry what is planted.
fn policy(testbed: &Testbed<'_>, settings: &Settings, planted: &Planted) -> String {
    let (scanner, scan) = planted.scanner().map_or_else(Default::default, |scanner| {
        (scanner.policy(), "scan = \"clamd\"\n")
    });
    format!(
        "{}{scanner}\n\
         [[rule]]\nname = \"guests\"\napplication = \"http\"\nclients = [\"{}\", \"{}\"]\n\
         action = \"inspect\"\nkeywords = [\"{}\"]\non-match = \"reject\"\n{scan}\
         fail = \"closed\"\n\n\
         [[rule]]\nname = \"web\"\napplication = \"http\"\naction = \"allow\"\n",
        gateway::head(testbed),
        settings.guests,
        settings::CARRIERS,
        planted::KEYWORD
    )
}

/// Starts the generator.
fn load(settings: &Settings, testbed: &Testbed<'_>) -> Result<Program, LabError> {
    let script = testbed.put("script", SCRIPT.as_bytes())?;
    let model = match settings.model.as_str() {
        "web" => testbed.put("model.json", MODEL.as_bytes())?,
        path if fs::metadata(path).is_ok_and(|file| !file.is_file()) => {
            return Err(LabError::program(path, "a model is a file"));
        }
        path => fs::canonicalize(path).map_err(LabError::file(path.as_ref()))?,
    };
    let arrivals = format!("mmpp:{}@{}", model.display(), settings.rate);
    let (duration, bin, drain) = (
        format!("{}ms", settings.duration.as_millis()),
        format!("{}ns", settings.model_bin.as_nanos()),
        format!("{}s", DRAIN.as_secs()),
    );
    let script = script.display().to_string();
    let clients = format!("{},{}", settings.clients, settings.guests);
    // In figures of their own.
    let guests = format!("guests:{}:ttl=64", settings.guests);
    let more = [
        "--group",
        &guests,
        "--model-bin",
        &bin,
        "--duration",
        &duration,
        "--drain",
        &drain,
        "--script",
        &script,
        "--lag-limit",
        "20ms",
    ];
    Program::load(
        testbed,
        "load",
        &url("/small"),
        (&clients, &arrivals),
        testbed.order.seed,
        &more,
    )
}

/// How long they may take until they capture.
const TIMEOUT: Duration = Duration::from_secs(20);

/// `linkweir http` and `linkweir flows`.
struct Observers {
    http: Program,
    flows: Program,
}

/// What they found.
struct Seen {
    http: Ended,
    flows: Ended,
}

impl Observers {
    /// Starts both, and waits until they capture.
    fn start(testbed: &Testbed<'_>) -> Result<Self, LabError> {
        let words = ["http", "-i", WAN, "-w", "http.jsonl"];
        let http = Program::start_seen(testbed, Place::Gateway, "http", &words)?;
        let words = ["flows", "-i", WAN, "-w", "flows.jsonl"];
        let flows = Program::start_seen(testbed, Place::Gateway, "flows", &words)?;
        let mut observers = Self { http, flows };
        let both = [&mut observers.http, &mut observers.flows];
        for program in both {
            let id = program.id();
            testbed.wait("the capture", TIMEOUT, || {
                program.has_ended() || testbed.net.packet_sockets_of(Place::Gateway, id) > 0
            })?;
            program.must_run()?;
        }
        Ok(observers)
    }

    /// Where their pages are.
    fn consoles(&self) -> impl Iterator<Item = (&'static str, SocketAddr)> + use<> {
        let pages = [("http", self.http.console), ("flows", self.flows.console)];
        pages
            .into_iter()
            .filter_map(|(name, console)| Some((name, console?)))
    }

    /// Ends both.
    fn finish(self) -> Result<Seen, LabError> {
        Ok(Seen {
            http: self.http.finish()?,
            flows: self.flows.finish()?,
        })
    }
}
