//! A proxy that does nothing but copy: what port redirection costs (paper sec. 5.5).
//!
//! `copy_proxy PORT`: takes connections that netfilter's REDIRECT sent to the port, connects to where
//! each was going (`SO_ORIGINAL_DST`) and copies both directions, a thread for each.
#![forbid(unsafe_code)]

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::thread;

use anyhow::{Context as _, Result};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::OriginalDst;

/// Bytes copied at a time.
const BLOCK: usize = 64 << 10;

fn main() -> Result<()> {
    let port: u16 = std::env::args()
        .nth(1)
        .context("usage: copy_proxy PORT")?
        .parse()?;
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
    for client in listener.incoming() {
        let client = client?;
        // A connection that fails is the client's to notice.
        thread::spawn(move || serve(&client));
    }
    Ok(())
}

fn serve(client: &TcpStream) -> io::Result<()> {
    let wanted = getsockopt(client, OriginalDst)?;
    let address = Ipv4Addr::from(u32::from_be(wanted.sin_addr.s_addr));
    let server = TcpStream::connect(SocketAddrV4::new(address, u16::from_be(wanted.sin_port)))?;
    for side in [client, &server] {
        side.set_nodelay(true)?;
    }
    let back = (server.try_clone()?, client.try_clone()?);
    let other = thread::spawn(move || copy(&back.0, &back.1));
    // Both directions end before the connection does; what went wrong in one the other sees as its end.
    let forth = copy(client, &server);
    other.join().ok();
    forth
}

fn copy(mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    let copied = loop {
        match from.read(&mut block) {
            Ok(0) => break Ok(()),
            Ok(length) => {
                if let Err(error) = to.write_all(block.get(..length).unwrap_or_default()) {
                    break Err(error);
                }
            }
            Err(error) => break Err(error),
        }
    };
    // It may be closed already.
    to.shutdown(Shutdown::Write).ok();
    from.shutdown(Shutdown::Read).ok();
    copied
}
