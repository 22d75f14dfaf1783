//! Taking connections.

use std::io;
use std::net::TcpListener;

use super::options::Options;
use super::say;
use super::talk::Talk;

/// Takes connections for ever, each on a thread of its own.
pub(super) fn each(
    options: &Options,
    serve: impl Fn(Talk) -> io::Result<()> + Send + Sync,
) -> io::Result<()> {
    let listener = TcpListener::bind(options.address("listen")?)?;
    say(format_args!("listening {}", listener.local_addr()?));
    std::thread::scope(|scope| {
        for stream in listener.incoming() {
            let talk = Talk::new(stream?, options)?;
            let serve = &serve;
            scope.spawn(move || {
                if let Err(error) = serve(talk) {
                    say(format_args!("connection failed: {error}"));
                }
            });
        }
        Ok(())
    })
}

/// Takes one connection.
pub(super) fn one(options: &Options) -> io::Result<Talk> {
    let listener = TcpListener::bind(options.address("listen")?)?;
    say(format_args!("listening {}", listener.local_addr()?));
    Talk::new(listener.accept()?.0, options)
}
