//! A program at one end of the lane that does what it is told, line by line.
//!
//! It is this test program again, in another namespace: a test whose name is `peer::peer`, which
//! does nothing unless its environment says that it is one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use linkweir_sys::raw_ip::{IpVersion, RawIpSocket};

const IS_PEER: &str = "LINKWEIR_TEST_PEER";
/// What an answer begins with, to be told from what the test program says.
const ANSWER: &str = "> ";
/// For what is to come.
const LONG: Duration = Duration::from_secs(10);
/// For what is not to come.
const SHORT: Duration = Duration::from_millis(300);

/// The end of the wire that gives orders.
pub(crate) struct Peer {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .arg(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "kernel::peer::peer",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(IS_PEER, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            orders: child.stdin.take().unwrap(),
            answers: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    /// Gives an order without waiting for the answer.
    pub(crate) fn tell(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
    }

    /// The answer to the oldest order that has none.
    pub(crate) fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            let len = self.answers.read_line(&mut line).unwrap();
            assert!(len > 0, "the peer has ended");
            if let Some((_, answer)) = line.trim_end().split_once(ANSWER) {
                return answer.to_owned();
            }
        }
    }

    /// Gives an order and waits for the answer.
    pub(crate) fn ask(&mut self, order: &str) -> String {
        self.tell(order);
        self.hear()
    }

    /// The same, where the answer is to be that all is well.
    pub(crate) fn must(&mut self, order: &str) {
        assert_eq!(self.ask(order), "ok", "{order}");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Not a test: what a [`Peer`] runs.
#[test]
fn peer() {
    if std::env::var_os(IS_PEER).is_none() {
        return;
    }
    let mut ends = Ends::default();
    for order in std::io::stdin().lines() {
        let order = order.unwrap();
        let answer = ends
            .carry_out(&order)
            .unwrap_or_else(|error| format!("error {:?}", error.kind()));
        println!("{ANSWER}{answer}");
    }
}

/// What a peer has open.
#[derive(Default)]
struct Ends {
    listener: Option<TcpListener>,
    stream: Option<TcpStream>,
    datagrams: Option<UdpSocket>,
}

impl Ends {
    fn carry_out(&mut self, order: &str) -> std::io::Result<String> {
        let (verb, rest) = order.split_once(' ').unwrap_or((order, ""));
        let (address, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let address = || -> SocketAddr { address.parse().unwrap() };
        match verb {
            "listen" => self.listener = Some(TcpListener::bind(address())?),
            "accept" => self.stream = Some(self.listener.as_ref().unwrap().accept()?.0),
            "connect" => self.stream = Some(TcpStream::connect_timeout(&address(), LONG)?),
            "send" => self.stream.as_ref().unwrap().write_all(rest.as_bytes())?,
            "receive" => return self.receive(LONG),
            "receive-nothing" => return self.receive(SHORT),
            "bind" => self.datagrams = Some(UdpSocket::bind(address())?),
            "datagram" => {
                let socket = self.datagrams.as_ref().unwrap();
                socket.send_to(text.as_bytes(), address())?;
            }
            "flood" => {
                let socket = self.datagrams.as_ref().unwrap();
                for number in 0..text.parse().unwrap() {
                    socket.send_to(&u32::to_be_bytes(number), address())?;
                }
            }
            "datagrams" => return self.datagram(LONG),
            "datagrams-nothing" => return self.datagram(SHORT),
            // A packet in hexadecimal digits.
            "packet" => {
                let digits = text.as_bytes().chunks(2);
                let byte =
                    |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
                let packet: Vec<u8> = digits.map(byte).collect();
                RawIpSocket::open(IpVersion::of(address().ip()))?.send(&packet, address())?;
            }
            _ => panic!("{order}: not known"),
        }
        Ok("ok".to_owned())
    }

    fn receive(&self, limit: Duration) -> std::io::Result<String> {
        let mut stream = self.stream.as_ref().unwrap();
        stream.set_read_timeout(Some(limit))?;
        let mut buffer = [0; 1000];
        let len = stream.read(&mut buffer)?;
        Ok(String::from_utf8_lossy(&buffer[..len]).into_owned())
    }

    fn datagram(&self, limit: Duration) -> std::io::Result<String> {
        let socket = self.datagrams.as_ref().unwrap();
        socket.set_read_timeout(Some(limit))?;
        let mut buffer = [0; 1000];
        let len = socket.recv(&mut buffer)?;
        Ok(String::from_utf8_lossy(&buffer[..len]).into_owned())
    }
}
