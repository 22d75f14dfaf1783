//! The origin behind the web server: its answers take the time that their path names.
//!
//! `/d/MILLISECONDS/BYTES/ID` is so many bytes after so many milliseconds; `/events/COUNT/MILLISECONDS/ID` and
//! `/buffered/...` are so many events with such a time before each, as Server-Sent Events; `/page/NAME` is a file of its directory;
//! a body that is sent to `/report/NAME` becomes a file there. It speaks HTTP/1.1 as a web server does to what is
//! behind it, and is a process of its own in the server's namespace.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Longest time that a path may name, milliseconds.
const LONGEST_MS: u64 = 10_000;
/// Most events that a path may name.
const MOST_EVENTS: u64 = 10_000;
/// Most bytes that a path may name, and that a request may have.
const MOST: usize = 64 << 20;

/// Answers for ever; its address is written to `address` in the directory once it listens.
///
/// # Errors
/// It cannot listen.
pub fn serve(directory: &Path) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?.to_string();
    let (part, whole) = (directory.join("address.part"), directory.join("address"));
    fs::write(&part, address)?;
    fs::rename(part, whole)?;
    let directory = Arc::new(directory.to_path_buf());
    for stream in listener.incoming() {
        let (stream, directory) = (stream?, Arc::clone(&directory));
        // A peer that goes in the middle has nobody to be told.
        thread::spawn(move || drop(answer_all(&stream, &directory)));
    }
    Ok(())
}

/// A request: its path, and its body.
struct Request {
    path: String,
    body: Vec<u8>,
}

fn answer_all(stream: &TcpStream, directory: &Path) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader)? {
        answer(stream, &request, directory)?;
    }
    Ok(())
}

/// The next request of a connection.
fn read(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or("/").to_owned();
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    if length > MOST {
        return Err(io::Error::other("a longer body than any client has"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Request { path, body }))
}

fn answer(mut stream: &TcpStream, request: &Request, directory: &Path) -> io::Result<()> {
    let mut parts = request.path.trim_start_matches('/').split('/');
    let (kind, rest) = (parts.next().unwrap_or(""), parts.by_ref());
    let (status, mime, body) = match kind {
        "d" => {
            let mut number = || rest.next().and_then(|part| part.parse().ok()).unwrap_or(0);
            let (wait, bytes): (u64, u64) = (number(), number());
            pause(wait.min(LONGEST_MS));
            let bytes = usize::try_from(bytes).unwrap_or(MOST).min(MOST);
            ("200 OK", "application/octet-stream", vec![b'o'; bytes])
        }
        "events" | "buffered" => {
            let mut number = || rest.next().and_then(|part| part.parse().ok()).unwrap_or(0);
            let (count, gap): (u64, u64) = (number(), number());
            return send_events(stream, count.min(MOST_EVENTS), gap.min(LONGEST_MS));
        }
        "page" => match rest
            .next()
            .and_then(|name| fs::read(plain(directory, name)?).ok())
        {
            Some(page) => ("200 OK", "text/html", page),
            None => ("404 Not Found", "text/plain", b"no such page\n".to_vec()),
        },
        "report" => {
            if let Some(path) = rest.next().and_then(|name| plain(directory, name)) {
                let part = path.with_extension("part");
                fs::write(&part, &request.body)?;
                fs::rename(part, path)?;
            }
            ("200 OK", "text/plain", b"thanks\n".to_vec())
        }
        _ => ("404 Not Found", "text/plain", b"not here\n".to_vec()),
    };
    // A page that is isolated from others has a clock of microseconds (High Resolution Time, section 3).
    let isolation =
        "Cross-Origin-Opener-Policy: same-origin\r\nCross-Origin-Embedder-Policy: require-corp\r\n";
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {mime}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n{isolation}\r\n",
        body.len()
    );
    // One write: the server in front sends the head on as soon as it has it.
    let mut bytes = head.into_bytes();
    bytes.extend(body);
    stream.write_all(&bytes)
}

#[expect(
    clippy::disallowed_methods,
    reason = "an answer takes the time that was asked for"
)]
fn pause(millis: u64) {
    thread::sleep(Duration::from_millis(millis));
}

/// A chunk for each event, as who generates text sends them.
fn send_events(mut stream: &TcpStream, count: u64, gap_ms: u64) -> io::Result<()> {
    stream.write_all(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\
          Transfer-Encoding: chunked\r\n\r\n",
    )?;
    for number in 0..count {
        pause(gap_ms);
        let event = format!("data: {{\"number\": {number}, \"text\": \" word\"}}\n\n");
        stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())?;
    }
    stream.write_all(b"0\r\n\r\n")
}

/// A file of the directory, if the name is that of one.
fn plain(directory: &Path, name: &str) -> Option<PathBuf> {
    let is_plain = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_plain.then(|| directory.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_one_behind_the_other() {
        let text = "POST /report/x HTTP/1.1\r\ncontent-length: 3\r\n\r\nabcGET /d/1/2/3 HTTP/1.1\r\nHost: a\r\n\r\n";
        let mut reader = text.as_bytes();
        let first = read(&mut reader).unwrap().unwrap();
        assert_eq!(
            (first.path.as_str(), first.body.as_slice()),
            ("/report/x", &b"abc"[..])
        );
        assert_eq!(read(&mut reader).unwrap().unwrap().path, "/d/1/2/3");
        assert!(read(&mut reader).unwrap().is_none());
        assert!(
            read(&mut "GET / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n".as_bytes()).is_err()
        );
    }

    #[test]
    fn only_files_of_the_directory_are_named() {
        let directory = Path::new("/x");
        assert_eq!(plain(directory, "page-1"), Some(PathBuf::from("/x/page-1")));
        for name in ["", "..", "a.b", "%2e%2e"] {
            assert_eq!(plain(directory, name), None, "{name}");
        }
    }
}
