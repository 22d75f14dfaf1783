//! Real HTTP between two namespaces: nginx, and what asks it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use linkweir_testkit::conversation::Side;
use linkweir_testkit::netns::{Running, SERVER, Wire, client, interface, until};
use linkweir_testkit::ran::installed;

use crate::common::skipped;

/// How long anything may take that takes a moment.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// A wire with a web server on it.
pub(crate) struct Site {
    pub wire: Wire,
    pub directory: PathBuf,
    _server: Running,
}

/// Programs that the tests need.
const NEEDED: [&str; 4] = ["nginx", "curl", "wrk", "tcpdump"];

impl Site {
    /// A wire and nginx on it, or a loud word about why there is none.
    pub(crate) fn open(directory: &Path) -> Option<Self> {
        if let Some(missing) = NEEDED.iter().find(|program| installed(program).is_none()) {
            skipped(&format!("{missing} is not installed"));
            return None;
        }
        let wire = Wire::new()
            .map_err(|error| skipped(&error.to_string()))
            .ok()?;
        let server = serve(&wire, directory);
        let site = Self {
            wire,
            directory: directory.to_path_buf(),
            _server: server,
        };
        assert!(
            until(PATIENCE, || site.ask(0, &[])),
            "nginx does not answer"
        );
        Some(site)
    }

    /// Asks for a page from a client's address; whether it came.
    pub(crate) fn ask(&self, number: u8, words: &[&str]) -> bool {
        let url = format!("http://{SERVER}/page?from={number}");
        let mut curl = self.curl(number);
        let status = curl.args(words).arg(url).status().unwrap();
        status.success()
    }

    fn curl(&self, number: u8) -> Command {
        let mut curl = self.wire.command(Side::Client, "curl");
        curl.args(["-s", "-f", "-m", "3", "-o", "/dev/null", "--interface"])
            .arg(client(number).to_string())
            .stdout(Stdio::null());
        curl
    }

    /// wrk at a bounded rate for so many seconds; beside it, until it ends, curl with what wrk
    /// cannot do: HEAD, and an upload that waits for `100 Continue`.
    pub(crate) fn load(&self, seconds: u32) {
        let script = self.directory.join("mix.lua");
        std::fs::write(&script, MIX).unwrap();
        let mut wrk = self.wire.command(Side::Client, "wrk");
        wrk.args(["-t", "1", "-c", "8", "-d", &format!("{seconds}s"), "-s"])
            .arg(&script)
            .arg(format!("http://{SERVER}/"))
            .stdout(Stdio::null());
        let mut wrk = Running::start(&mut wrk).unwrap();
        let upload = self.directory.join("upload");
        std::fs::write(&upload, vec![b'u'; 20_000]).unwrap();
        let mut number = 0;
        while wrk.ended().unwrap().is_none() {
            let urls = (0..10).map(|page| format!("http://{SERVER}/page/{page}"));
            assert!(
                self.curl(number)
                    .arg("-I")
                    .args(urls)
                    .status()
                    .unwrap()
                    .success()
            );
            let mut waiting = self.curl(number);
            waiting
                .args(["-H", "Expect: 100-continue", "--data-binary"])
                .arg(format!("@{}", upload.display()))
                .arg(format!("http://{SERVER}/form"));
            assert!(waiting.status().unwrap().success());
            number += 1;
        }
    }

    /// Records the server's interface to a file, time stamps to the nanosecond: by tcpdump. Where that
    /// finds itself to be the root of a user namespace it insists on changing users, which the kernel
    /// refuses; there it is dumpcap.
    pub(crate) fn record(&self, path: &Path) -> Option<Running> {
        let interface = interface(Side::Server);
        let mut recorder = if !self.wire.is_unprivileged() {
            let mut tcpdump = self.wire.command(Side::Server, "tcpdump");
            tcpdump.args([
                "-i", interface, "-n", "-s", "0", "-B", "65536", "-Z", "root",
            ]);
            tcpdump.args(["--time-stamp-precision=nano", "-w"]);
            tcpdump
        } else if installed("dumpcap").is_some() {
            let mut dumpcap = self.wire.command(Side::Server, "dumpcap");
            dumpcap.args(["-q", "-B", "64", "-i", interface, "-w"]);
            dumpcap
        } else {
            skipped("dumpcap is not installed");
            return None;
        };
        recorder
            .arg(path)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        Some(self.listening(&mut recorder, 1))
    }

    /// The binary in the namespace of the server.
    pub(crate) fn linkweir(&self) -> Command {
        let mut command = self
            .wire
            .command(Side::Server, env!("CARGO_BIN_EXE_linkweir"));
        command
            .env("LC_ALL", "C")
            .current_dir(&self.directory)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    /// Starts a program and waits until it has opened so many sockets for packets.
    pub(crate) fn listening(&self, command: &mut Command, sockets: usize) -> Running {
        let mut running = Running::start(command).unwrap();
        let mut is_running = true;
        let so = until(PATIENCE, || {
            is_running = matches!(running.ended(), Ok(None));
            !is_running || self.wire.packet_sockets_of(Side::Server, running.id()) >= sockets
        });
        if !so || !is_running {
            let output = running.finish().unwrap();
            panic!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        running
    }

    /// Until all that was sent has been handed over: what the kernel holds back in a block that is
    /// not full comes after a second at most (libpcap's; ours is faster).
    pub(crate) fn settle() {
        pause(Duration::from_millis(1300));
    }
}

/// Lets others go on.
#[expect(
    clippy::disallowed_methods,
    reason = "another process has no clock of ours"
)]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

fn serve(wire: &Wire, directory: &Path) -> Running {
    let at = directory.display();
    let root = directory.join("www");
    std::fs::create_dir_all(&root).unwrap();
    for (index, size) in [200, 700, 1500, 4000, 12_000].into_iter().enumerate() {
        std::fs::write(root.join(format!("file{index}")), vec![b'x'; size]).unwrap();
    }
    let configuration = directory.join("nginx.conf");
    std::fs::write(
        &configuration,
        format!(
            "user root root; daemon off; master_process off; pid {at}/nginx.pid; error_log {at}/error.log crit;
            events {{ worker_connections 256; }}
            http {{
                access_log off; keepalive_requests 25; sendfile off; default_type text/plain;
                client_body_temp_path {at}/t1; proxy_temp_path {at}/t2; fastcgi_temp_path {at}/t3;
                uwsgi_temp_path {at}/t4; scgi_temp_path {at}/t5;
                server {{
                    listen {SERVER}:80; root {at}/www;
                    location /page {{ return 200 \"a page\\n\"; }}
                    location /form {{ return 200 \"stored\\n\"; }}
                    location /moved {{ return 302 /page; }}
                    location /fresh {{ return 304; }}
                    location /broken {{ return 500; }}
                }}
            }}"
        ),
    )
    .unwrap();
    let mut nginx = wire.command(Side::Server, "nginx");
    nginx
        .arg("-e")
        .arg(directory.join("error.log"))
        .arg("-p")
        .arg(directory)
        .arg("-c")
        .arg(&configuration)
        .stdout(Stdio::null());
    Running::start(&mut nginx).unwrap()
}

/// Eight connections that think for some milliseconds before each request.
const MIX: &str = r#"
local paths = { "/file0", "/file1", "/file2", "/file3", "/file4", "/page?q=%d", "/moved", "/fresh/%d",
  "/broken", "/lost/%d", "/form" }
local count = 0
function delay() return math.random(1, 9) end
function request()
  count = count + 1
  local path = paths[math.random(#paths)]:gsub("%%d", count)
  local headers = { ["Host"] = "site" .. math.random(4) .. ".example.test", ["User-Agent"] = "load | generator" }
  if path == "/form" then return wrk.format("POST", path, headers, string.rep("k=v&", math.random(200))) end
  return wrk.format("GET", path, headers)
end
"#;
