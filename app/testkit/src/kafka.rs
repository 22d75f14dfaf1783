//! A real Kafka broker, one node in `KRaft` mode, on ports of 127.0.0.1 that are its own and in a
//! directory that goes with it. It can be stopped, killed, made to stand still, and started again with
//! what it has kept.
//!
//! It needs Java 17 and the jars that `scripts/setup.sh test` puts into `tests/kafka/libs`.

use std::fmt;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::netns::{Running, until};
use crate::temporary::TemporaryDirectory;

/// How long a broker may take to start or to end, on a machine that is busy.
const TIMEOUT: Duration = Duration::from_secs(90);

/// What the log says when it serves.
const READY: &str = "Kafka Server started";

/// Any will do; the directory is formatted with it.
const CLUSTER_ID: &str = "bGlua3dlaXItdGVzdC0wMQ";

/// Who may speak to the listener with TLS.
pub const USER: &str = "probe";
/// That user's password.
pub const PASSWORD: &str = "not-secret";

/// Why there is no broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// For a person who reads that a test did not run.
    pub why: String,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no Kafka broker: {}", self.why)
    }
}

impl std::error::Error for Unavailable {}

impl From<io::Error> for Unavailable {
    fn from(error: io::Error) -> Self {
        Self {
            why: error.to_string(),
        }
    }
}

/// A broker that runs, or did. Dropped, it is killed. It also ends with the thread that started it.
#[derive(Debug)]
pub struct Broker {
    directory: TemporaryDirectory,
    port: u16,
    controller_port: u16,
    tls_port: u16,
    starts: u32,
    running: Option<Running>,
}

impl Broker {
    /// Starts one whose topics have four partitions, and waits until it serves.
    ///
    /// # Errors
    /// Java or the jars are missing, or it does not start.
    pub fn start() -> Result<Self, Unavailable> {
        let mut broker = Self::prepared()?;
        broker.start_again()?;
        Ok(broker)
    }

    /// One that does not run yet: its port is known, and nobody listens there.
    ///
    /// # Errors
    /// Java or the jars are missing, or its directory cannot be formatted.
    pub fn prepared() -> Result<Self, Unavailable> {
        let directory = TemporaryDirectory::new("kafka-")?;
        // Both ports are free at the same moment; whoever takes one meanwhile is bad luck.
        let (a, b, c) = (free_port()?, free_port()?, free_port()?);
        let broker = Self {
            port: a.local_addr()?.port(),
            controller_port: b.local_addr()?.port(),
            tls_port: c.local_addr()?.port(),
            directory,
            starts: 0,
            running: None,
        };
        drop((a, b, c));
        broker.make_certificate()?;
        fs::write(broker.settings(), broker.properties())?;
        let formatted = broker
            .java("kafka.tools.StorageTool")?
            .args(["format", "-t", CLUSTER_ID, "-c"])
            .arg(broker.settings())
            .arg("--add-scram")
            .arg(format!("SCRAM-SHA-256=[name={USER},password={PASSWORD}]"))
            .output()?;
        if formatted.status.success() {
            Ok(broker)
        } else {
            Err(Unavailable {
                why: format!(
                    "its directory cannot be formatted: {}",
                    String::from_utf8_lossy(&formatted.stderr)
                ),
            })
        }
    }

    /// `127.0.0.1:PORT`, the same after every start.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `kafka://127.0.0.1:PORT/TOPIC`. A topic is made when it is first written to.
    #[must_use]
    pub fn url(&self, topic: &str) -> String {
        format!("kafka://{}/{topic}", self.address())
    }

    /// The same topics with TLS and SASL/SCRAM-SHA-256, for [`USER`] and [`PASSWORD`].
    #[must_use]
    pub fn tls_url(&self, topic: &str) -> String {
        format!("kafka://127.0.0.1:{}/{topic}", self.tls_port)
    }

    /// The certificate of the broker, which it has signed itself (PEM).
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.directory.path().join("broker.pem")
    }

    /// Makes a key and its certificate, with a tool that comes with Java.
    fn make_certificate(&self) -> Result<(), Unavailable> {
        let keytool = |words: &[&str]| -> Result<(), Unavailable> {
            let output = Command::new("keytool")
                .args(words)
                .args([
                    "-storepass",
                    PASSWORD,
                    "-keystore",
                    "broker.p12",
                    "-alias",
                    "broker",
                ])
                .arg("-J-XX:TieredStopAtLevel=1")
                .current_dir(self.directory.path())
                .stdin(Stdio::null())
                .output()?;
            if output.status.success() {
                return Ok(());
            }
            Err(Unavailable {
                why: format!("keytool: {}", String::from_utf8_lossy(&output.stdout)),
            })
        };
        keytool(&[
            "-genkeypair",
            "-keyalg",
            "EC",
            "-groupname",
            "secp256r1",
            "-storetype",
            "PKCS12",
            "-dname",
            "CN=broker",
            "-ext",
            "SAN=IP:127.0.0.1",
            "-validity",
            "2",
        ])?;
        keytool(&["-exportcert", "-rfc", "-file", "broker.pem"])
    }

    /// Whether it is running.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Starts it where it does not run, with what it has kept, and waits until it serves.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_again(&mut self) -> Result<(), Unavailable> {
        if self.is_running() {
            return Ok(());
        }
        self.starts += 1;
        let log_path = self.directory.path().join(format!("log-{}", self.starts));
        let log = fs::File::create(&log_path)?;
        let mut command = self.java("kafka.Kafka")?;
        command
            .arg(self.settings())
            .stdout(log.try_clone()?)
            .stderr(log);
        let mut running = Running::start(&mut command)?;
        let port = self.port;
        let mut has_ended = false;
        let is_ready = until(TIMEOUT, || {
            has_ended = !matches!(running.ended(), Ok(None));
            has_ended
                || (fs::read_to_string(&log_path).is_ok_and(|log| log.contains(READY))
                    && TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok())
        });
        if is_ready && !has_ended {
            self.running = Some(running);
            return Ok(());
        }
        let log = fs::read_to_string(&log_path).unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().take(12).collect();
        Err(Unavailable {
            why: format!("it does not start: {}", last.join(" | ")),
        })
    }

    /// Ends it as an administrator does, with SIGTERM, and waits for that.
    pub fn stop(&mut self) {
        if let Some(mut running) = self.running.take() {
            // One that does not end in time, or has ended before, is killed when dropped.
            drop(running.signal("TERM"));
            until(TIMEOUT, || !matches!(running.ended(), Ok(None)));
        }
    }

    /// Kills it (SIGKILL): connections end, nothing else is said.
    pub fn kill(&mut self) {
        drop(self.running.take());
    }

    /// Lets it stand still (SIGSTOP): connections stay, nothing answers.
    ///
    /// # Errors
    /// It does not run.
    pub fn pause(&self) -> io::Result<()> {
        self.signal("STOP")
    }

    /// Ends that (SIGCONT).
    ///
    /// # Errors
    /// It does not run.
    pub fn resume(&self) -> io::Result<()> {
        self.signal("CONT")
    }

    fn signal(&self, name: &str) -> io::Result<()> {
        self.running.as_ref().map_or_else(
            || Err(io::Error::other("the broker does not run")),
            |running| running.signal(name),
        )
    }

    /// Bytes of all messages of a topic as the broker keeps them, compressed.
    ///
    /// # Errors
    /// Its directory cannot be read.
    pub fn stored_bytes(&self, topic: &str) -> io::Result<u64> {
        let mut bytes = 0;
        for entry in fs::read_dir(self.directory.path().join("data"))? {
            // A directory for each partition: the topic's name and the number.
            let partition = entry?;
            let name = partition.file_name();
            let name = name.to_string_lossy();
            if name.rsplit_once('-').map(|(name, _)| name) != Some(topic) {
                continue;
            }
            for file in fs::read_dir(partition.path())? {
                let file = file?;
                if file
                    .path()
                    .extension()
                    .is_some_and(|ending| ending == "log")
                {
                    bytes += file.metadata()?.len();
                }
            }
        }
        Ok(bytes)
    }

    fn settings(&self) -> PathBuf {
        self.directory.path().join("server.properties")
    }

    fn properties(&self) -> String {
        let (port, controller, tls) = (self.port, self.controller_port, self.tls_port);
        let data = self.directory.path().join("data");
        format!(
            "process.roles=broker,controller\n\
             node.id=1\n\
             controller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{tls},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{tls}\n\
             controller.listener.names=CONTROLLER\n\
             listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL\n\
             ssl.keystore.type=PKCS12\n\
             ssl.keystore.location={}\n\
             ssl.keystore.password={PASSWORD}\n\
             ssl.key.password={PASSWORD}\n\
             sasl.enabled.mechanisms=SCRAM-SHA-256\n\
             listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;\n\
             log.dirs={}\n\
             num.partitions=4\n\
             auto.create.topics.enable=true\n\
             offsets.topic.replication.factor=1\n\
             offsets.topic.num.partitions=1\n\
             transaction.state.log.replication.factor=1\n\
             transaction.state.log.min.isr=1\n\
             share.coordinator.state.topic.replication.factor=1\n\
             share.coordinator.state.topic.min.isr=1\n\
             group.initial.rebalance.delay.ms=0\n",
            self.directory.path().join("broker.p12").display(),
            data.display()
        )
    }

    /// A Java program with the broker's jars, which ends with us.
    fn java(&self, class: &str) -> Result<Command, Unavailable> {
        let jars = jars()?;
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--", "java", "-Xms128m", "-Xmx384m"])
            // Two cores are what the machines of tests have; fewer threads start sooner.
            .args([
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-Xshare:auto",
            ])
            .arg("-cp")
            .arg(jars.join("*"))
            .arg(class)
            .current_dir(self.directory.path())
            // A key pressed for the program is not for it.
            .process_group(0)
            .stdin(Stdio::null());
        Ok(command)
    }
}

/// The directory with the jars, where it and Java are there.
fn jars() -> Result<PathBuf, Unavailable> {
    let missing = |why: &str| Unavailable {
        why: format!("{why}; scripts/setup.sh test installs it"),
    };
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kafka/libs");
    let has_broker = fs::read_dir(&directory).is_ok_and(|entries| {
        entries
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().starts_with("kafka_"))
    });
    if !has_broker {
        return Err(missing("the broker's jars are not in tests/kafka/libs"));
    }
    let java = Command::new("java")
        .arg("-version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match java {
        Ok(status) if status.success() => Ok(directory),
        _ => Err(missing(
            "Java is not installed (Debian: openjdk-17-jre-headless)",
        )),
    }
}

fn free_port() -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
}
