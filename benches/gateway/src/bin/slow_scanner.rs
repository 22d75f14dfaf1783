//! A scanner that is slow for one kind of file: clamd's protocol, and nothing is ever found.
//!
//! `slow_scanner SOCKET MARKER DELAY_MS`: a stream that has the marker in it is answered after the
//! delay, every other at once. Prints a line `slow` when it begins to wait.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measuring program: it is slow on purpose and says so"
)]

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Longest chunk of a stream that is taken.
const MAX_CHUNK: usize = 16 << 20;

#[derive(Debug)]
struct Slow {
    marker: Vec<u8>,
    delay: Duration,
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [socket, marker, delay] = words.as_slice() else {
        anyhow::bail!("usage: slow_scanner SOCKET MARKER DELAY_MS");
    };
    let slow = Arc::new(Slow {
        marker: marker.clone().into_bytes(),
        delay: Duration::from_millis(delay.parse()?),
    });
    let listener = UnixListener::bind(socket).with_context(|| format!("listen at {socket}"))?;
    for stream in listener.incoming() {
        let (stream, slow) = (stream?, Arc::clone(&slow));
        // A connection that breaks is the gateway's to notice.
        thread::spawn(move || serve(&stream, &slow));
    }
    Ok(())
}

/// Commands in clamd's `z` form, until one ends the connection. Source: clamd(8), COMMANDS.
fn serve(stream: &UnixStream, slow: &Slow) -> io::Result<()> {
    let mut input = BufReader::with_capacity(256 << 10, stream);
    let mut output = stream;
    let (mut is_session, mut number) = (false, 0_u32);
    let (mut command, mut body) = (Vec::new(), Vec::new());
    loop {
        command.clear();
        if input.read_until(0, &mut command)? == 0 {
            return Ok(());
        }
        number += u32::from(is_session);
        let answer = match command.as_slice() {
            b"zIDSESSION\0" => {
                is_session = true;
                continue;
            }
            b"zEND\0" => return Ok(()),
            b"zPING\0" => "PONG",
            b"zVERSION\0" => "ClamAV 0.0.0 (never finds anything)",
            b"zINSTREAM\0" => {
                read_stream(&mut input, &mut body)?;
                if has(&body, &slow.marker) {
                    println!("slow");
                    thread::sleep(slow.delay);
                }
                "stream: OK"
            }
            _ => "UNKNOWN COMMAND",
        };
        let text = if is_session {
            format!("{number}: {answer}\0")
        } else {
            format!("{answer}\0")
        };
        output.write_all(text.as_bytes())?;
        if !is_session {
            return Ok(());
        }
    }
}

/// Chunks with their length before each; one without bytes ends them.
fn read_stream(input: &mut BufReader<&UnixStream>, body: &mut Vec<u8>) -> io::Result<()> {
    body.clear();
    loop {
        let mut length = [0; 4];
        input.read_exact(&mut length)?;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length == 0 {
            return Ok(());
        }
        if length > MAX_CHUNK {
            return Err(io::Error::other("a chunk that is too long"));
        }
        let before = body.len();
        body.resize(before + length, 0);
        input.read_exact(body.get_mut(before..).unwrap_or_default())?;
    }
}

fn has(body: &[u8], marker: &[u8]) -> bool {
    !marker.is_empty() && body.windows(marker.len()).any(|window| window == marker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_within_a_session_are_answered_by_number() {
        let (near, far) = UnixStream::pair().unwrap();
        let slow = Slow {
            marker: b"mark".to_vec(),
            delay: Duration::from_millis(50),
        };
        let serving = thread::spawn(move || serve(&far, &slow).unwrap());
        let mut said = b"zIDSESSION\0zINSTREAM\0\0\0\0\x02ab\0\0\0\0".to_vec();
        said.extend_from_slice(b"zINSTREAM\0\0\0\0\x03xma\0\0\0\x02rk\0\0\0\0zEND\0");
        (&near).write_all(&said).unwrap();
        let begin = std::time::Instant::now();
        let mut answer = String::new();
        (&near).read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "1: stream: OK\x002: stream: OK\0");
        assert!(begin.elapsed() >= Duration::from_millis(50));
        serving.join().unwrap();
    }
}
