use std::io::{BufRead as _, BufReader, Write as _};
use std::thread;

use super::*;
use crate::load::report::samples::figures;

const NEVER: &dyn Fn() -> bool = &|| false;

/// An address on loopback at which nobody listens.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

fn args(role: Role, at: SocketAddr, generators: u32) -> RoleArgs {
    let listens = matches!(role, Role::Stat | Role::Controller);
    RoleArgs {
        role,
        peer: (role != Role::Controller).then_some(at),
        listen: listens.then_some(at),
        generators: Some(generators),
        peer_wait: Duration::from_secs(20),
        console_control: false,
    }
}

fn terms(seed: u64) -> Terms {
    let terms = [
        ("seed", seed.to_string()),
        ("arrivals", "poisson:500".to_owned()),
    ];
    terms
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect()
}

/// Says lines without understanding any; gives the answers.
fn raw(at: SocketAddr, lines: &[&str], answers: usize) -> (TcpStream, Vec<String>) {
    let until = now() + Duration::from_secs(10);
    let mut stream = loop {
        match TcpStream::connect(at) {
            Ok(stream) => break stream,
            Err(error) => assert!(now() < until, "{error}"),
        }
        thread::park_timeout(PAUSE);
    };
    for line in lines {
        stream.write_all(line.as_bytes()).unwrap();
        stream.write_all(b"\n").unwrap();
    }
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let answers = (0..answers).map(|_| {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line
    });
    let answers = answers.collect();
    (stream, answers)
}

fn hello(protocol: u32, role: &str, seed: u64) -> String {
    let terms = terms(seed);
    serde_json::json!({"hello": {"protocol": protocol, "role": role, "terms": terms}}).to_string()
}

#[test]
fn alone_there_is_no_link() {
    let alone = args(Role::All, free_address(), 1);
    assert!(Link::open(&alone, &terms(1), NEVER).unwrap().is_none());
}

#[test]
fn a_pair_starts_together_and_reports_once() {
    let at = free_address();
    let init = thread::spawn(move || {
        let mut link = Link::open(&args(Role::Init, at, 1), &terms(7), NEVER)
            .unwrap()
            .unwrap();
        let start = link.agree().unwrap();
        assert!(!link.must_stop());
        let gathered = link.finish(&figures(50, 0, 1)).unwrap();
        assert!(gathered.is_none());
        start
    });
    let mut link = Link::open(&args(Role::Stat, at, 1), &terms(7), NEVER)
        .unwrap()
        .unwrap();
    let start = link.agree().unwrap();
    let mut own = figures(100, 0, 1);
    own.stages.lag = linkweir_load::measure::Times::default();
    let gathered = link.finish(&own).unwrap().unwrap();
    let there = init.join().unwrap();
    // One clock: both have the same time, as well as it could be asked.
    let apart = start
        .at
        .nanos_since(there.at)
        .max(there.at.nanos_since(start.at));
    assert!(
        apart <= there.clock.error_ns + 1_000_000,
        "{apart} ns, {:?}",
        there.clock
    );
    assert!(gathered.missing.is_empty());
    // The lag is that of the one that sent, everything else that of the one that measured.
    assert_eq!(gathered.figures.stages.lag.count(), 50);
    assert_eq!(gathered.figures.planned, 100);
}

#[test]
fn a_controller_merges_the_shares_of_its_workers() {
    let at = free_address();
    let workers: Vec<_> = (0..2)
        .map(|_| {
            thread::spawn(move || {
                let mut link = Link::open(&args(Role::Worker, at, 2), &terms(7), NEVER)
                    .unwrap()
                    .unwrap();
                link.agree().unwrap();
                let share = link.share();
                let own = figures(300, share.index.into(), share.of as usize);
                assert!(link.finish(&own).unwrap().is_none());
                share.index
            })
        })
        .collect();
    // A controller knows a part of the terms.
    let known = terms(7)
        .into_iter()
        .filter(|(name, _)| name == "seed")
        .collect();
    let mut link = Link::open(&args(Role::Controller, at, 2), &known, NEVER)
        .unwrap()
        .unwrap();
    link.agree().unwrap();
    let gathered = link.finish(&Figures::default()).unwrap().unwrap();
    let mut shares: Vec<u32> = workers.into_iter().map(|one| one.join().unwrap()).collect();
    shares.sort_unstable();
    assert_eq!(shares, [0, 1]);
    assert!(gathered.missing.is_empty(), "{:?}", gathered.missing);
    let whole = figures(300, 0, 1);
    assert_eq!(gathered.figures.stages, whole.stages);
    assert_eq!(gathered.figures.failed, whole.failed);
    assert_eq!(
        (gathered.figures.planned, gathered.figures.open.now()),
        (300, 0)
    );
}

#[test]
fn other_terms_are_refused_on_both_sides() {
    let at = free_address();
    let stat =
        thread::spawn(move || Link::open(&args(Role::Stat, at, 1), &terms(7), NEVER).map(|_| ()));
    let Err(init) = Link::open(&args(Role::Init, at, 1), &terms(8), NEVER) else {
        panic!("refused");
    };
    let stat = stat.join().unwrap().unwrap_err();
    for error in [init, stat] {
        assert!(error.downcast_ref::<Wrong>().is_some());
        let said = error.to_string();
        assert!(said.contains("seed is `7` here and `8` there"), "{said}");
    }
}

#[test]
fn workers_must_agree_with_one_another() {
    let at = free_address();
    let controller = thread::spawn(move || {
        let known = Terms::new();
        Link::open(&args(Role::Controller, at, 2), &known, NEVER).map(|_| ())
    });
    let (_first, welcome) = raw(at, &[&hello(PROTOCOL, "worker", 1)], 1);
    assert_eq!(
        welcome,
        ["{\"welcome\":{\"index\":0,\"of\":2,\"progress_ns\":0}}\n"]
    );
    let (_second, refused) = raw(at, &[&hello(PROTOCOL, "worker", 2)], 1);
    assert!(
        refused[0].contains("seed is `1` here and `2` there"),
        "{refused:?}"
    );
    // The controller goes on, and takes one that fits in its place.
    let (_third, welcome) = raw(at, &[&hello(PROTOCOL, "worker", 1)], 1);
    assert_eq!(
        welcome,
        ["{\"welcome\":{\"index\":1,\"of\":2,\"progress_ns\":0}}\n"]
    );
    controller.join().unwrap().unwrap();
}

#[test]
fn another_version_is_refused() {
    let at = free_address();
    let stat =
        thread::spawn(move || Link::open(&args(Role::Stat, at, 1), &terms(7), NEVER).map(|_| ()));
    let (_stream, answers) = raw(at, &[&hello(1, "init", 7)], 1);
    assert!(answers[0].contains("version 1, ours is 2"), "{answers:?}");
    assert!(
        stat.join()
            .unwrap()
            .unwrap_err()
            .to_string()
            .contains("version 1")
    );
}

#[test]
fn strangers_are_turned_away_and_the_right_one_is_waited_for() {
    let at = free_address();
    let stat =
        thread::spawn(move || Link::open(&args(Role::Stat, at, 1), &terms(7), NEVER).map(|_| ()));
    let long = "x".repeat(wire::SHORT_LINE + (32 << 10));
    for said in ["GET / HTTP/1.1", "\"alive\"", "{\"hello\": 7}", &long] {
        let (stream, _) = raw(at, &[], 0);
        let mut stream = stream;
        // The other side may hang up before it has heard everything.
        let _hung_up = stream
            .write_all(said.as_bytes())
            .and_then(|()| stream.write_all(b"\n"));
    }
    let (_right, answers) = raw(at, &[&hello(PROTOCOL, "init", 7)], 1);
    assert!(answers[0].contains("welcome"), "{answers:?}");
    stat.join().unwrap().unwrap();
}

#[test]
fn nobody_comes() {
    let at = free_address();
    let mut wait = args(Role::Controller, at, 3);
    wait.peer_wait = Duration::from_millis(100);
    let error = Link::open(&wait, &terms(7), NEVER).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("only 0 of 3"), "{error}");
    let mut join = args(Role::Worker, at, 1);
    join.peer_wait = Duration::from_millis(100);
    let error = Link::open(&join, &terms(7), NEVER).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("no connection"), "{error}");
    let stopped = Link::open(&args(Role::Stat, at, 1), &terms(7), &|| true).map(|_| ());
    assert!(stopped.unwrap_err().to_string().contains("stopped"));
}

#[test]
fn a_silent_one_is_not_waited_for_for_ever() {
    let at = free_address();
    let silent = thread::spawn(move || raw(at, &[&hello(PROTOCOL, "init", 7)], 1));
    let mut args = args(Role::Stat, at, 1);
    args.peer_wait = Duration::from_secs(2);
    let mut link = Link::open(&args, &terms(7), NEVER).unwrap().unwrap();
    let _stays_open = silent.join().unwrap();
    link.timeout = Duration::from_millis(200);
    let error = link.agree().map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("silent"), "{error}");
}

#[test]
fn one_that_dies_in_the_middle_is_missing() {
    let at = free_address();
    let workers: Vec<_> = (0..2)
        .map(|_| {
            thread::spawn(move || {
                let mut link = Link::open(&args(Role::Worker, at, 2), &terms(7), NEVER)
                    .unwrap()
                    .unwrap();
                link.agree().unwrap();
                let share = link.share();
                if share.index == 0 {
                    // Its connection closes with it.
                    return;
                }
                link.finish(&figures(300, 1, 2)).unwrap();
            })
        })
        .collect();
    let mut link = Link::open(&args(Role::Controller, at, 2), &terms(7), NEVER)
        .unwrap()
        .unwrap();
    link.agree().unwrap();
    let gathered = link.finish(&Figures::default()).unwrap().unwrap();
    workers.into_iter().for_each(|one| one.join().unwrap());
    assert_eq!(gathered.missing.len(), 1, "{:?}", gathered.missing);
    assert!(
        gathered.missing[0].contains("closed the connection"),
        "{:?}",
        gathered.missing
    );
    assert_eq!(gathered.figures.planned, 150);
    // The table says which of them it was.
    let [(dead, missing), (alive, brought)] = gathered.workers.as_slice() else {
        panic!("{:?}", gathered.workers);
    };
    assert!(gathered.missing[0].starts_with(&dead.to_string()));
    assert_eq!(missing, "missing");
    assert_ne!(dead, alive);
    assert_eq!(brought, "150 planned, 120 completed, 30 failed (reset 30)");
}

#[test]
fn a_pair_ends_when_its_other_half_is_gone() {
    let at = free_address();
    let init = thread::spawn(move || {
        let mut link = Link::open(&args(Role::Init, at, 1), &terms(7), NEVER)
            .unwrap()
            .unwrap();
        link.agree().unwrap();
    });
    let mut link = Link::open(&args(Role::Stat, at, 1), &terms(7), NEVER)
        .unwrap()
        .unwrap();
    link.agree().unwrap();
    init.join().unwrap();
    let until = now() + Duration::from_secs(10);
    while !link.must_stop() {
        assert!(now() < until, "it must be noticed");
        thread::park_timeout(PAUSE);
    }
}

#[test]
fn figures_that_contradict_themselves_are_not_merged() {
    let at = free_address();
    let liar = thread::spawn(move || {
        let (mut stream, _) = raw(at, &[&hello(PROTOCOL, "worker", 7)], 1);
        writeln!(stream, "{{\"ready\":{{\"error_ns\":0}}}}").unwrap();
        let text = serde_json::to_string(&figures(10, 0, 1)).unwrap();
        let lie = text.replace("\"extremes\":[20000,20000]", "\"extremes\":[7,9]");
        assert_ne!(text, lie);
        writeln!(stream, "{{\"result\":{lie}}}").unwrap();
        stream
    });
    let mut link = Link::open(&args(Role::Controller, at, 1), &terms(7), NEVER)
        .unwrap()
        .unwrap();
    link.agree().unwrap();
    let gathered = link.finish(&Figures::default()).unwrap().unwrap();
    let _stream = liar.join().unwrap();
    assert_eq!(gathered.figures, Figures::default());
    assert!(
        gathered.missing[0].contains("do not belong together"),
        "{:?}",
        gathered.missing
    );
}

/// Notes what it sees; orders the start when two have come, and asks for a report and then for the end.
#[derive(Default)]
struct Notes {
    came: usize,
    asked: u32,
    started: u64,
    lags: u64,
    interim: u64,
    ended: Vec<usize>,
}

impl Operator for Notes {
    fn came(&mut self, _peer: SocketAddr) {
        self.came += 1;
    }

    fn progress(&mut self, _worker: usize, progress: Progress) {
        self.started += progress.started;
        self.lags += progress.recent.lag.count();
    }

    fn interim(&mut self, _worker: usize, figures: Figures) {
        self.interim += figures.planned;
    }

    fn ended(&mut self, worker: usize, with: Result<Figures, &str>) {
        assert!(with.is_ok(), "{with:?}");
        self.ended.push(worker);
    }

    fn ask(&mut self) -> Asked {
        self.asked += 1;
        Asked {
            start: self.came == 2,
            stop: self.interim >= 200,
            report: self.started == 60 && self.interim < 200,
        }
    }
}

#[test]
fn a_controller_starts_watches_and_stops_its_workers() {
    let at = free_address();
    let workers: Vec<_> = (0..2)
        .map(|_| {
            thread::spawn(move || {
                let mut link = Link::open(&args(Role::Worker, at, 2), &terms(7), NEVER)
                    .unwrap()
                    .unwrap();
                assert_eq!(link.progress(), Some(Duration::from_millis(250)));
                link.agree().unwrap();
                let mut progress = Progress {
                    started: 30,
                    ..Progress::default()
                };
                progress.recent.lag.record(5);
                link.tell(Box::new(progress));
                let until = now() + Duration::from_secs(10);
                while !link.must_stop() {
                    assert!(now() < until, "it is never told to stop");
                    if link.take_report() {
                        link.report(Box::new(figures(100, 0, 1)));
                    }
                    thread::park_timeout(Duration::from_millis(5));
                }
                assert!(link.finish(&figures(300, 0, 1)).unwrap().is_none());
            })
        })
        .collect();
    let mut notes = Notes::default();
    let interval = Duration::from_millis(250);
    let args = args(Role::Controller, at, 2);
    let link = Link::open_with(&args, &terms(7), NEVER, interval, &mut notes).unwrap();
    let mut link = link.unwrap();
    link.agree_with(true, &mut notes).unwrap();
    let gathered = link.finish_with(&Figures::default(), &mut notes).unwrap();
    workers.into_iter().for_each(|one| one.join().unwrap());
    assert_eq!(gathered.unwrap().figures.planned, 600);
    notes.ended.sort_unstable();
    assert_eq!((notes.came, notes.ended.as_slice()), (2, &[0, 1][..]));
    assert_eq!((notes.started, notes.lags), (60, 2));
    // Asked once or twice before both had answered.
    assert!(notes.interim >= 200 && notes.interim.is_multiple_of(100));
}
