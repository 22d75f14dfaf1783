//! A transparent proxy: takes connections to addresses that are not its own, and copies.

use super::options::Options;
use super::say;
use nix::sys::socket::{setsockopt, sockopt::IpTransparent};
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

/// Takes what the kernel leads here (`IP_TRANSPARENT`), connects to where each connection was going, and says
/// `proxied CLIENT to SERVER`.
pub(super) fn serve(options: &Options) -> io::Result<()> {
    let listener = TcpListener::bind(options.address("listen")?)?;
    setsockopt(&listener, IpTransparent, &true)?;
    for client in listener.incoming() {
        let client = client?;
        let wanted = client.local_addr()?;
        say(format_args!("proxied {} to {wanted}", client.peer_addr()?));
        let server = TcpStream::connect(wanted)?;
        let back = (server.try_clone()?, client.try_clone()?);
        // Who ends first ends both; what fails the ends notice.
        thread::spawn(move || copy(&client, &server));
        thread::spawn(move || copy(&back.0, &back.1));
    }
    Ok(())
}

fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    io::copy(&mut from, &mut to).ok();
    to.shutdown(Shutdown::Write).ok();
}
