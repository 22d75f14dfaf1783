//! nginx in the namespace of the server.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Net, Place, SERVER, SERVER_V6};
use crate::netns::{Running, until};
use crate::web;

/// A web server for a directory: ports 80 and 8080, both families.
///
/// What the paths mean: `/plain/FILE` with its length, `/chunked/FILE` in chunks, `/gzip/FILE` coded
/// by gzip and in chunks where the client takes that, `/named/FILE` with the name `report.exe` in
/// `Content-Disposition`.
#[derive(Debug)]
pub struct Nginx {
    directory: PathBuf,
    _running: Running,
}

impl Nginx {
    /// Starts it; what it needs and writes is in `directory`. Answers when it listens.
    ///
    /// # Errors
    /// It is not installed, or does not begin to listen.
    pub fn start(net: &Net, directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory.join("files"))?;
        let mut nginx = net.command(Place::Server, "nginx");
        let running = web::nginx(&mut nginx, directory, &text(directory))?;
        Ok(Self {
            directory: directory.to_path_buf(),
            _running: running,
        })
    }

    /// Puts a file where all paths find it.
    ///
    /// # Errors
    /// The disk's.
    pub fn put(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = self.file(name);
        fs::write(&path, bytes)?;
        Ok(path)
    }

    /// Where a file is that it serves.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join("files").join(name)
    }

    /// The requests it has answered: `address path status bytes` per line. What was `expected` is waited for:
    /// a request is written down when its client has the answer already.
    #[must_use]
    pub fn access_log(&self, expected: &[&str]) -> String {
        let mut log = String::new();
        until(Duration::from_secs(10), || {
            log = fs::read_to_string(self.directory.join("access.log")).unwrap_or_default();
            expected.iter().all(|line| log.contains(line))
        });
        log
    }
}

fn text(directory: &Path) -> String {
    let at = directory.display();
    let temporary = web::temporary_paths(directory);
    // A server-side include could change the length, so nginx does not announce it.
    format!(
        "user root root; daemon off; master_process off; pid {at}/nginx.pid;
        worker_rlimit_nofile 65536;
        events {{ worker_connections 20480; }}
        http {{
            log_format short '$remote_addr $uri $status $body_bytes_sent';
            access_log {at}/access.log short; sendfile on; keepalive_timeout 600;
            default_type application/octet-stream;
            {temporary}
            server {{
                listen {SERVER}:80 backlog=4096; listen {SERVER}:8080;
                listen [{SERVER_V6}]:80; listen [{SERVER_V6}]:8080;
                location /plain/ {{ alias {at}/files/; }}
                location /chunked/ {{ alias {at}/files/; ssi on; ssi_types *; }}
                location /gzip/ {{ alias {at}/files/; gzip on; gzip_types *; }}
                location /named/ {{
                    alias {at}/files/;
                    add_header Content-Disposition 'attachment; filename=\"report.exe\"';
                }}
                location /upload {{ client_max_body_size 0; return 200 \"stored\\n\"; }}
            }}
        }}"
    )
}
