//! What the tests with a broker share: runs beside the test, and messages as objects.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use linkweir_kafka::Message;
use linkweir_testkit::kafka::{Broker, Unavailable};
use linkweir_testkit::many_flows::ManyFlows;
use linkweir_testkit::netns::{Running, until};
use serde_json::{Map, Value};

use crate::common::{linkweir, skipped};

/// The keys before those of the record.
pub(crate) const OWN_KEYS: [&str; 4] = ["kind", "schema_version", "probe", "record_id"];

/// How long a run may take on a machine that is busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A broker, or a loud word that the test did not do its work.
pub(crate) fn broker_or_skip(started: Result<Broker, Unavailable>) -> Option<Broker> {
    match started {
        Ok(broker) => Some(broker),
        Err(unavailable) => {
            skipped(&unavailable.to_string());
            None
        }
    }
}

/// Does something with the one broker of this test binary.
pub(crate) fn with_shared_broker(act: impl FnOnce(&Broker)) {
    /// A broker ends with the thread that started it; this one stays.
    static BROKER: LazyLock<Mutex<Option<Broker>>> = LazyLock::new(|| {
        let (give, take) = channel();
        std::thread::spawn(move || {
            give.send(Broker::start()).unwrap();
            loop {
                std::thread::park();
            }
        });
        Mutex::new(broker_or_skip(take.recv().unwrap()))
    });
    let broker = BROKER.lock().unwrap_or_else(PoisonError::into_inner);
    match broker.as_ref() {
        Some(broker) => act(broker),
        None => skipped("no Kafka broker"),
    }
}

/// Records that did not reach the outputs, by a summary.
pub(crate) fn lost_records(summary: &Value) -> u64 {
    let outputs = summary["dropped"]["sink"].as_object().unwrap();
    outputs.values().map(|count| count.as_u64().unwrap()).sum()
}

/// The value of a message as an object.
pub(crate) fn object(message: &Message) -> Map<String, Value> {
    match serde_json::from_slice(&message.value).unwrap() {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

/// The fields of the record alone.
pub(crate) fn record(message: &Message) -> Map<String, Value> {
    let mut object = object(message);
    object.retain(|key, _| !OWN_KEYS.contains(&key.as_str()));
    object
}

/// `record_id` as the run and the number.
pub(crate) fn id(message: &Message) -> (String, u64) {
    let object = object(message);
    let (run, number) = object["record_id"]
        .as_str()
        .unwrap()
        .split_once('-')
        .unwrap();
    assert_eq!(run.len(), 16, "{run}");
    (run.to_owned(), number.parse().unwrap())
}

/// The numbers of the records of each run; messages that came twice count once.
pub(crate) fn numbers(messages: &[Message]) -> BTreeMap<String, BTreeSet<u64>> {
    let mut runs: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for message in messages {
        let (run, number) = id(message);
        runs.entry(run).or_default().insert(number);
    }
    runs
}

/// A capture with two transactions of each of so many connections.
pub(crate) fn capture(directory: &Path, flows: u32) -> PathBuf {
    let path = directory.join(format!("{flows}.pcap"));
    let many = ManyFlows {
        flows,
        concurrent: 200,
        ..ManyFlows::default()
    };
    let file = std::fs::File::create(&path).unwrap();
    many.write(std::io::BufWriter::new(file)).unwrap();
    path
}

/// A run of `linkweir http` beside the test.
pub(crate) struct Run {
    running: Running,
    summary: PathBuf,
    said: PathBuf,
}

impl Run {
    /// Starts one; the words say what it reads and where it writes.
    pub(crate) fn start(directory: &Path, name: &str, words: &[&str], stdin: Stdio) -> Self {
        let summary = directory.join(format!("{name}.json"));
        let said = directory.join(format!("{name}.stderr"));
        let mut command = linkweir();
        command
            .args(["http", "-q"])
            .args(words)
            .arg("--summary")
            .arg(&summary)
            .stdin(stdin)
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&said).unwrap());
        Self {
            running: Running::start(&mut command).unwrap(),
            summary,
            said,
        }
    }

    /// What it has said so far.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap()
    }

    /// Waits until it says something.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) {
        assert!(
            until(PATIENCE, || self.said().contains(text)),
            "never said `{text}`: {}",
            self.said()
        );
    }

    /// Sends it a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        self.running.signal(name).unwrap();
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> ExitStatus {
        let mut status = None;
        let has_ended = until(PATIENCE, || {
            status = self.running.ended().unwrap();
            status.is_some()
        });
        assert!(has_ended, "does not end: {}", self.said());
        status.unwrap()
    }

    /// Waits for its end, which must be with this exit code; gives the summary.
    #[track_caller]
    pub(crate) fn ends_with(&mut self, code: i32) -> Value {
        let status = self.ends();
        assert_eq!(status.code(), Some(code), "{}", self.said());
        serde_json::from_slice(&std::fs::read(&self.summary).unwrap()).unwrap()
    }
}
