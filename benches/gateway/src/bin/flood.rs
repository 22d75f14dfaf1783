//! Traffic whose only purpose is to be work for who stands between, until it is ended.
//!
//! | words | what it sends |
//! | --- | --- |
//! | `flood syn SERVER:PORT RATE INTERFACE` | SYNs, each of another source |
//! | `flood udp SERVER:PORT RATE INTERFACE` | datagrams, each of another source |
//! | `flood gaps SERVER:PORT RATE` | connections that begin with 100 bytes, which the caller's rules must drop, and go on in tiny segments |
//! | `flood heads SERVER:PORT RATE` | connections with 60 KiB of a request's head that does not end |
//! | `flood windows SERVER:PORT RATE PATH` | connections that ask for a file and do not read it |
//! | `flood sink ADDRESS:PORT` | nothing: takes connections and reads what comes |
//!
//! `RATE` is per second. Of connections the newest 4000 stay open.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "a measuring program: it looks at the clock and sleeps"
)]

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use linkweir_sys::packet_socket::{BATCH, Framing, Outbox, PacketSocket};
use linkweir_wire::TcpFlags;
use linkweir_wire::emit::{TcpFrame, UdpFrame};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, connect, setsockopt, socket, sockopt};

/// Connections that are open at once.
const OPEN: usize = 4000;
/// The network of the sources.
const SOURCES: Ipv4Addr = Ipv4Addr::new(10, 88, 1, 0);

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["sink", address] => sink(address.parse()?),
        [kind @ ("syn" | "udp"), server, rate, interface] => {
            packets(*kind == "syn", server.parse()?, rate.parse()?, interface)
        }
        [kind @ ("gaps" | "heads"), server, rate] => {
            let is_gaps = *kind == "gaps";
            connections(rate.parse()?, || {
                let stream = open(server.parse()?, None)?;
                if is_gaps { gap(stream) } else { head(stream) }
            })
        }
        ["windows", server, rate, path] => connections(rate.parse()?, || {
            let mut stream = open(server.parse()?, Some(2048))?;
            stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes())?;
            Ok(stream)
        }),
        _ => bail!("usage: flood syn|udp|gaps|heads|windows|sink ADDRESS:PORT ..."),
    }
}

/// Calls `act` so many times a second.
fn paced(rate: u32, mut act: impl FnMut() -> Result<()>) -> Result<()> {
    let begin = Instant::now();
    let mut done = 0.0;
    loop {
        while done < begin.elapsed().as_secs_f64() * f64::from(rate) {
            act()?;
            done += 1.0;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn packets(is_syn: bool, server: SocketAddr, rate: u32, interface: &str) -> Result<()> {
    let socket = PacketSocket::open(Framing::Link)?;
    socket.bind_to_send(nix::net::if_::if_nametoindex(interface)?)?;
    let router = router(server)?;
    let mut outbox = Outbox::new();
    let mut number = 0_u32;
    let batch = u32::try_from(BATCH)?;
    paced(rate.div_ceil(batch), || {
        let frames: Vec<Vec<u8>> = (0..batch)
            .map(|_| {
                number = number.wrapping_add(1);
                // All sources of a network, then all of them with the next port.
                let [port_high, port_low, _, low] =
                    (number.wrapping_mul(0x9E37_79B1)).to_be_bytes();
                let [a, b, c, _] = SOURCES.octets();
                let source = IpAddr::V4(Ipv4Addr::new(a, b, c, 20 + low % 200));
                let source = SocketAddr::new(source, u16::from_be_bytes([port_high, port_low]));
                if is_syn {
                    let frame = TcpFrame::new(source, server);
                    TcpFrame {
                        dst_mac: router,
                        flags: TcpFlags::SYN,
                        ..frame
                    }
                    .to_vec()
                } else {
                    let frame = UdpFrame::new(source, server);
                    UdpFrame {
                        dst_mac: router,
                        payload: &[0xA5; 32],
                        ..frame
                    }
                    .to_vec()
                }
            })
            .collect();
        let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        // What finds no room is lost, as on any line.
        _ = outbox.send(&socket, &frames);
        Ok(())
    })
}

/// The hardware address of the router on the way to a server.
fn router(server: SocketAddr) -> Result<[u8; 6]> {
    // Whatever the answer is, the router is known after it.
    _ = TcpStream::connect_timeout(&SocketAddr::new(server.ip(), 80), Duration::from_secs(1));
    let table = std::fs::read_to_string("/proc/net/arp")?;
    let line = table.lines().nth(1).context("no neighbour is known")?;
    let words = line
        .split_whitespace()
        .nth(3)
        .context("a line without an address")?;
    let mut address = [0; 6];
    for (byte, word) in address.iter_mut().zip(words.split(':')) {
        *byte = u8::from_str_radix(word, 16)?;
    }
    Ok(address)
}

fn connections(rate: u32, mut open: impl FnMut() -> Result<TcpStream>) -> Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let needed = u64::try_from(OPEN)? + 64;
    if soft < needed {
        setrlimit(Resource::RLIMIT_NOFILE, needed, hard.max(needed))?;
    }
    let mut newest = VecDeque::new();
    paced(rate, || {
        // One that is refused is one less.
        newest.extend(open());
        if newest.len() > OPEN {
            newest.pop_front();
        }
        Ok(())
    })
}

/// Opens a connection, with a receive buffer of so many bytes.
fn open(server: SocketAddr, receive: Option<usize>) -> Result<TcpStream> {
    let SocketAddr::V4(server) = server else {
        bail!("the server's address is of version 4");
    };
    let fd: OwnedFd = socket(
        AddressFamily::Inet,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    if let Some(bytes) = receive {
        setsockopt(&fd, sockopt::RcvBuf, &bytes)?;
    }
    use std::os::fd::AsRawFd as _;
    connect(fd.as_raw_fd(), &nix::sys::socket::SockaddrIn::from(server))?;
    let stream = TcpStream::from(fd);
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// 100 bytes that are lost, and as many tiny segments behind them as the kernel sends.
fn gap(mut stream: TcpStream) -> Result<TcpStream> {
    stream.write_all(&[b'G'; 100])?;
    for _ in 0..9 {
        stream.write_all(b"tiny one")?;
    }
    Ok(stream)
}

/// A head that does not end.
fn head(mut stream: TcpStream) -> Result<TcpStream> {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nX: ")?;
    // What does not fit is not sent.
    _ = stream.write(&[b'x'; 60 * 1024])?;
    Ok(stream)
}

/// Reads what comes on all connections.
fn sink(address: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let mut streams: Vec<TcpStream> = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        while let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true)?;
            streams.push(stream);
        }
        streams.retain(|mut stream| match stream.read(&mut buffer) {
            Ok(read) => read > 0,
            Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
        });
        thread::sleep(Duration::from_millis(20));
    }
}
