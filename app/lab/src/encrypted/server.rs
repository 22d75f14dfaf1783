//! The web server in front of the origin, with a certificate of its own, and its log.

use super::HOST;
use super::plan;
use super::settings::{Protocol, Settings, Software};
use crate::error::LabError;
use crate::testbed::{Testbed, need};
use linkweir_testkit::gateway::{Place, SERVER};
use linkweir_testkit::netns::{Running, until};
use linkweir_testkit::web;
use serde::Deserialize;
use std::collections::HashMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long it may take until something listens.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The certificate of the server, in the directory of the run.
pub(super) const CERTIFICATE: &str = "certificate.pem";
/// Its key.
const KEY: &str = "key.pem";

/// What the log says of a request, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Visit {
    /// From the first byte of the request to the last of the response: `$request_time` of nginx, `duration` of Caddy.
    pub(super) took_s: f64,
}

/// The server and the origin.
#[derive(Debug)]
pub(super) struct Server {
    software: Software,
    log: PathBuf,
    _origin: Running,
    _front: Running,
}

impl Server {
    /// Starts both.
    pub(super) fn start(testbed: &Testbed<'_>, settings: &Settings) -> Result<Self, LabError> {
        certify(testbed)?;
        let directory = testbed.path("");
        let origin = testbed.part(Place::Server, &["origin"]);
        let origin = quiet(testbed, "origin", origin)?;
        let address = testbed.path("address");
        testbed.wait("the origin", TIMEOUT, || address.exists())?;
        let origin_at = fs::read_to_string(&address).map_err(LabError::file(&address))?;
        let log = testbed.path("access.log");
        let front = match settings.server {
            Software::Nginx => {
                let text = nginx_text(&directory.display().to_string(), &origin_at, settings.http);
                let mut command = testbed.command(Place::Server, "nginx");
                web::nginx(&mut command, &directory, &text)
                    .map_err(|error| LabError::program("nginx", error))?
            }
            Software::Caddy => {
                need(&["caddy"])?;
                let text = caddy_text(&directory.display().to_string(), &origin_at, settings.http);
                let path = testbed.put("Caddyfile", text.as_bytes())?;
                let mut command = testbed.command(Place::Server, "caddy");
                command
                    .args(["run", "--adapter", "caddyfile", "--config"])
                    .arg(path);
                for home in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
                    command.env(home, &directory);
                }
                let front = quiet(testbed, "caddy", command)?;
                let error = testbed.path("caddy.err");
                let serves = || {
                    let said = fs::read_to_string(&error).unwrap_or_default();
                    said.contains("serving initial configuration")
                };
                testbed.wait("caddy", TIMEOUT, serves)?;
                front
            }
        };
        Ok(Self {
            software: settings.server,
            log,
            _origin: origin,
            _front: front,
        })
    }

    /// What it has answered so far, by number.
    pub(super) fn visits(&self) -> Result<HashMap<u64, Visit>, LabError> {
        let text = fs::read_to_string(&self.log).map_err(LabError::file(&self.log))?;
        let read = match self.software {
            Software::Nginx => of_nginx,
            Software::Caddy => of_caddy,
        };
        Ok(text.lines().filter_map(read).collect())
    }
}

/// Starts a program whose words go to `NAME.err`.
fn quiet(testbed: &Testbed<'_>, name: &str, mut command: Command) -> Result<Running, LabError> {
    let path = testbed.path(&format!("{name}.err"));
    let file = File::create(&path).map_err(LabError::file(&path))?;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(file);
    let mut running =
        Running::start(&mut command).map_err(|error| LabError::program(name, error))?;
    until(Duration::from_millis(20), || false);
    match running.ended() {
        Ok(None) => Ok(running),
        _ => {
            let said = fs::read_to_string(&path).unwrap_or_default();
            Err(LabError::program(name, said))
        }
    }
}

/// Makes the certificate.
fn certify(testbed: &Testbed<'_>) -> Result<(), LabError> {
    let mut command = testbed.command(Place::Server, "openssl");
    command.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
    ]);
    command.args([
        "-days",
        "30",
        "-subj",
        &format!("/CN={HOST}"),
        "-out",
        CERTIFICATE,
        "-keyout",
        KEY,
    ]);
    command.args(["-addext", &format!("subjectAltName=DNS:{HOST}")]);
    command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    output("openssl req", &mut command).map(drop)
}

/// The hash of the certificate's public key, for Chromium's `--ignore-certificate-errors-spki-list`.
pub(super) fn key_hash(testbed: &Testbed<'_>) -> Result<String, LabError> {
    let script = format!(
        "openssl x509 -in {CERTIFICATE} -pubkey -noout | openssl pkey -pubin -outform der | \
         openssl dgst -sha256 -binary | openssl base64"
    );
    let mut command = testbed.command(Place::Server, "sh");
    let said = output("openssl", command.args(["-c", &script]))?;
    Ok(said.trim().to_owned())
}

fn output(name: &str, command: &mut Command) -> Result<String, LabError> {
    let output = command
        .output()
        .map_err(|error| LabError::program(name, error))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(LabError::program(
            name,
            String::from_utf8_lossy(&output.stderr),
        )),
    }
}

fn nginx_text(at: &str, origin: &str, http: Protocol) -> String {
    let http2 = if http == Protocol::Http2 {
        " http2"
    } else {
        ""
    };
    let temporary = web::temporary_paths(at.as_ref());
    format!(
        "user root root; daemon off; master_process off; pid {at}/nginx.pid;
        events {{ worker_connections 4096; }}
        http {{
            log_format took '$request_time $uri';
            access_log {at}/access.log took;
            {temporary}
            client_max_body_size 64m;
            client_body_buffer_size 1m;
            upstream origin {{ server {origin}; keepalive 64; }}
            server {{
                listen {SERVER}:443 ssl{http2};
                server_name {HOST};
                ssl_certificate {at}/{CERTIFICATE};
                ssl_certificate_key {at}/{KEY};
                ssl_protocols TLSv1.2 TLSv1.3;
                # A client reads the first byte when its record is complete, and one of 16 KiB takes several round trips.
                ssl_buffer_size 4k;
                ssl_session_cache shared:sessions:1m;
                proxy_http_version 1.1;
                proxy_set_header Connection \"\";
                proxy_buffers 16 64k;
                location / {{ proxy_pass http://origin; }}
                location /events/ {{ proxy_pass http://origin; proxy_buffering off; }}
            }}
        }}"
    )
}

fn caddy_text(at: &str, origin: &str, http: Protocol) -> String {
    let protocols = match http {
        Protocol::Http1 => "h1",
        Protocol::Http2 => "h1 h2",
        Protocol::Http3 => "h1 h2 h3",
    };
    format!(
        "{{
            admin off
            auto_https off
            servers {{
                protocols {protocols}
            }}
        }}
        https://{HOST}:443 {{
            bind {SERVER}
            tls {at}/{CERTIFICATE} {at}/{KEY}
            log {{
                output file {at}/access.log
                format json
            }}
            reverse_proxy {origin}
        }}
        "
    )
}

fn of_nginx(line: &str) -> Option<(u64, Visit)> {
    let (took, path) = line.split_once(' ')?;
    let took_s = took.parse().ok()?;
    Some((plan::number(path)?, Visit { took_s }))
}

/// Fields of a line of Caddy's log.
#[derive(Debug, Deserialize)]
struct CaddyLine {
    request: CaddyRequest,
    duration: f64,
}

/// The request in it.
#[derive(Debug, Deserialize)]
struct CaddyRequest {
    uri: String,
}

fn of_caddy(line: &str) -> Option<(u64, Visit)> {
    let line: CaddyLine = serde_json::from_str(line).ok()?;
    let took_s = line.duration;
    Some((plan::number(&line.request.uri)?, Visit { took_s }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_logs_are_read() {
        let visit = Visit { took_s: 0.034 };
        assert_eq!(of_nginx("0.034 /d/30/200/77"), Some((77, visit)));
        assert_eq!(of_nginx("0.034 /page/x"), None);
        let line = r#"{"level":"info","request":{"method":"GET","uri":"/d/30/200/77"},"duration":0.034,"status":200}"#;
        assert_eq!(of_caddy(line), Some((77, visit)));
    }
}
