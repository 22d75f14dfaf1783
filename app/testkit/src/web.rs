//! nginx with a configuration of ours, wherever a command puts it.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::running::{Running, until};

/// How long it may take until it listens.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The directories that nginx wants for what it does not keep in memory, as directives.
#[must_use]
pub fn temporary_paths(directory: &Path) -> String {
    let at = directory.display();
    format!(
        "client_body_temp_path {at}/t1; proxy_temp_path {at}/t2; fastcgi_temp_path {at}/t3;
            uwsgi_temp_path {at}/t4; scgi_temp_path {at}/t5;"
    )
}

/// Starts it by a command that ends in its name; what it needs and writes is in `directory`, and the
/// configuration must say `pid DIRECTORY/nginx.pid`. Answers when it listens.
///
/// # Errors
/// It is not installed, or does not begin to listen; the error has its last words.
pub fn nginx(command: &mut Command, directory: &Path, configuration: &str) -> io::Result<Running> {
    let path = directory.join("nginx.conf");
    fs::write(&path, configuration)?;
    let log = directory.join("error.log");
    command.arg("-e").arg(&log).arg("-p").arg(directory);
    command.arg("-c").arg(&path).stdout(Stdio::null());
    let mut running = Running::start(command)?;
    // Its number is written once its sockets listen.
    let pid = directory.join("nginx.pid");
    let is_there = until(TIMEOUT, || {
        fs::metadata(&pid).is_ok_and(|file| file.len() > 0) || !matches!(running.ended(), Ok(None))
    });
    if is_there && running.ended()?.is_none() {
        return Ok(running);
    }
    let said = fs::read_to_string(&log).unwrap_or_default();
    let last = said.lines().last().unwrap_or("it says nothing");
    Err(io::Error::other(format!("nginx does not start: {last}")))
}
