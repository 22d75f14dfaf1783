//! What peers say to one another, recorded by a relay between them, as a capture has it.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::capture_writer::CapturedFrame;
use crate::conversation::{Conversation, Side};
use crate::netns::until;

/// How long the last bytes may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two connections in the capture, nanoseconds.
const APART_NS: u64 = 60_000_000_000;

/// A connection: what was sent, in order, and how many of its two directions have ended.
#[derive(Debug, Default)]
struct Connection {
    sent: Vec<(Side, Vec<u8>)>,
    ended: u8,
}

type Connections = Arc<Mutex<Vec<Connection>>>;

/// Stands between peers on the loopback and writes down what they send.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    connections: Connections,
}

impl Relay {
    /// Takes connections from now on, each of which goes on to `server`.
    ///
    /// # Errors
    /// No port could be opened.
    pub fn start(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let connections = Connections::default();
        let all = Arc::clone(&connections);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                // A peer that is gone is the test's to notice.
                let _over = client.and_then(|client| take(&client, server, &all));
            }
        });
        Ok(Self {
            address,
            connections,
        })
    }

    /// Where clients connect.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The frames of all connections once they have ended, as those of clients of 192.0.2.1 with a server at `port` of
    /// 198.51.100.2.
    #[must_use]
    pub fn frames(&self, port: u16) -> Vec<CapturedFrame> {
        until(PATIENCE, || {
            locked(&self.connections).iter().all(|one| one.ended == 2)
        });
        let connections = locked(&self.connections);
        let frames = (0_u16..)
            .zip(connections.iter())
            .map(|(number, connection)| {
                let client =
                    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 40_000 + number);
                let server = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 2)), port);
                let begin = Conversation::START_NS + u64::from(number) * APART_NS;
                let mut told = Conversation::between(client, server).starting_at(begin);
                told.handshake();
                for (side, bytes) in &connection.sent {
                    told.sends(*side, bytes, &[]);
                }
                told.fin(Side::Client).fin(Side::Server);
                told.frames()
            });
        frames.flatten().collect()
    }
}

fn locked(connections: &Connections) -> MutexGuard<'_, Vec<Connection>> {
    connections.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take(client: &TcpStream, server: SocketAddr, all: &Connections) -> io::Result<()> {
    // It may be about to listen.
    let mut connected = None;
    until(PATIENCE, || {
        connected = TcpStream::connect(server).ok();
        connected.is_some()
    });
    let server = connected.ok_or(io::ErrorKind::ConnectionRefused)?;
    let number = {
        let mut all = locked(all);
        all.push(Connection::default());
        all.len() - 1
    };
    for (side, from, to) in [
        (Side::Client, client, &server),
        (Side::Server, &server, client),
    ] {
        let (from, to, all) = (from.try_clone()?, to.try_clone()?, Arc::clone(all));
        std::thread::spawn(move || {
            // What went wrong the peers see as the end.
            let _over = copy(side, from, to, number, &all);
            if let Some(connection) = locked(&all).get_mut(number) {
                connection.ended += 1;
            }
        });
    }
    Ok(())
}

fn copy(
    side: Side,
    mut from: TcpStream,
    mut to: TcpStream,
    number: usize,
    all: &Connections,
) -> io::Result<()> {
    let mut block = vec![0; 16 << 10];
    loop {
        let length = from.read(&mut block)?;
        let bytes = block.get(..length).unwrap_or_default();
        if bytes.is_empty() {
            return to.shutdown(Shutdown::Write);
        }
        // Before the other one can answer it.
        if let Some(connection) = locked(all).get_mut(number) {
            connection.sent.push((side, bytes.to_vec()));
        }
        to.write_all(bytes)?;
    }
}
