//! What a connection costs the TCP client: connect, request, response, close, over and over, with a
//! server that is a few lines and no network.
//!
//! `cargo run --release -p linkweir-load --example tcp_cycle [CYCLES [OPEN]]`, where `OPEN`
//! connections stand open beside. Time is that of the processor, so that other programs do not count.
//! The frames are in it: the client's are built, as they are when they are sent, and those of the
//! server are built and decoded. A second line gives that alone, measured without the client.

use std::net::SocketAddr;
use std::time::Duration;

use linkweir_load::seam::{Client, ConnId, Listener, SegmentOut, TcpEvent};
use linkweir_load::tcp::{Opening, TcpClients, TcpSettings};
use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{LinkType, SeqNumber, TcpFlags, TcpOption, Timestamp, Transport, decode};

const REQUEST: &[u8] = b"GET /index.html HTTP/1.1\r\nHost: server.test\r\nUser-Agent: x\r\n\r\n";
const RESPONSE: &[u8] = &[b'x'; 350];
const CLIENTS: u32 = 1024;

/// The last segment that was sent, as a frame, and its timestamp.
#[derive(Default)]
struct Out {
    frame: Vec<u8>,
    segments: u64,
}

impl SegmentOut for Out {
    fn segment(&mut self, _client: Client, frame: &TcpFrame<'_>, _now: Timestamp) {
        self.frame.clear();
        frame.append_to(&mut self.frame);
        self.segments += 1;
    }
}

#[derive(Default)]
struct Ear {
    bytes: u64,
    closed: u64,
}

impl Listener for Ear {
    fn on_event(&mut self, _conn: ConnId, _user: u32, event: TcpEvent<'_>, _at: Timestamp) {
        match event {
            TcpEvent::Data(bytes) => self.bytes += bytes.len() as u64,
            TcpEvent::Closed(_) => self.closed += 1,
            _ => {}
        }
    }
}

/// What the server has seen of a connection.
#[derive(Clone, Copy)]
struct Seen {
    from: SocketAddr,
    to: SocketAddr,
    seq: SeqNumber,
    len: u32,
    stamp: u32,
}

fn see(frame: &[u8]) -> Option<Seen> {
    let packet = decode(LinkType::ETHERNET, frame, u32::try_from(frame.len()).ok()?).ok()?;
    let Transport::Tcp(tcp) = packet.transport else {
        return None;
    };
    let stamp = tcp.options().find_map(|option| match option {
        TcpOption::Timestamps { value, .. } => Some(value),
        _ => None,
    })?;
    Some(Seen {
        from: SocketAddr::new(packet.network.src(), tcp.src_port()),
        to: SocketAddr::new(packet.network.dst(), tcp.dst_port()),
        seq: tcp.seq(),
        len: tcp.sequence_len(),
        stamp,
    })
}

struct Server {
    frame: Vec<u8>,
}

impl Server {
    /// Writes an answer to what was seen.
    fn answer(&mut self, seen: &Seen, at: u32, flags: TcpFlags, payload: &[u8]) {
        let [a, b, c, d] = seen.stamp.to_be_bytes();
        let stamps = [1, 1, 8, 10, 0, 0, 0, 9, a, b, c, d];
        let mut all = [
            2, 4, 5, 180, 1, 1, 4, 2, 1, 3, 3, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        if let Some(place) = all.last_chunk_mut() {
            *place = stamps;
        }
        let options = if flags.contains(TcpFlags::SYN) {
            &all[..]
        } else {
            &stamps
        };
        self.frame.clear();
        TcpFrame {
            seq: SeqNumber(at),
            ack: seen.seq + seen.len,
            flags: flags | TcpFlags::ACK,
            options,
            payload,
            ..TcpFrame::new(seen.to, seen.from)
        }
        .append_to(&mut self.frame);
    }
}

struct Rig {
    tcp: TcpClients,
    out: Out,
    ear: Ear,
    server: Server,
    now: Timestamp,
}

impl Rig {
    fn hear(&mut self, client: Client) -> Option<()> {
        let frame = &self.server.frame;
        let packet = decode(LinkType::ETHERNET, frame, u32::try_from(frame.len()).ok()?).ok()?;
        self.now = self.now + Duration::from_nanos(200);
        self.tcp.on_segment(
            &packet,
            client,
            self.now,
            self.now,
            &mut self.out,
            &mut self.ear,
        );
        Some(())
    }

    fn connect(&mut self, client: Client) -> Option<ConnId> {
        let opening = Opening {
            client,
            local: std::net::Ipv4Addr::from_bits(0x0a00_0000 + client).into(),
            remote: SocketAddr::from(([192, 0, 2, 1], 80)),
            user: client,
            mss: None,
            sends_syn: true,
        };
        let conn = self.tcp.connect(&opening, self.now, &mut self.out).ok()?;
        let syn = see(&self.out.frame)?;
        self.server.answer(&syn, 1000, TcpFlags::SYN, b"");
        self.hear(client)?;
        Some(conn)
    }

    /// One connection from SYN to the last ACK; the server closes first, as with
    /// `Connection: close`.
    fn cycle(&mut self, client: Client) -> Option<()> {
        let conn = self.connect(client)?;
        if !self.tcp.send(conn, REQUEST, self.now, &mut self.out) {
            return None;
        }
        let request = see(&self.out.frame)?;
        self.server
            .answer(&request, 1001, TcpFlags::PSH | TcpFlags::FIN, RESPONSE);
        self.hear(client)?;
        self.tcp.close(conn, self.now, &mut self.out);
        let fin = see(&self.out.frame)?;
        self.server.answer(&fin, 1352, TcpFlags::ACK, b"");
        self.hear(client)?;
        self.tcp.on_tick(self.now, &mut self.out, &mut self.ear);
        Some(())
    }
}

/// Building and decoding the frames of a cycle, without the client.
fn frames_alone(rig: &mut Rig, seen: &Seen) -> u64 {
    let mut bytes = 0;
    for (flags, payload) in [
        (TcpFlags::SYN, &b""[..]),
        (TcpFlags::PSH | TcpFlags::FIN, RESPONSE),
        (TcpFlags::ACK, b""),
    ] {
        rig.server.answer(seen, 1, flags, payload);
        let frame = &rig.server.frame;
        // Once as the client's frame is seen by the server, once as the server's by the client.
        for _ in 0..2 {
            bytes += see(frame).map_or(0, |seen| u64::from(seen.len));
        }
    }
    // And the four frames that the client builds.
    for payload in [&b""[..], b"", REQUEST, b""] {
        rig.out.segment(
            0,
            &TcpFrame {
                payload,
                ..TcpFrame::new(seen.from, seen.to)
            },
            rig.now,
        );
        bytes += rig.out.frame.len() as u64;
    }
    bytes
}

/// Nanoseconds of processor time so far, as the kernel counts them.
fn cpu_ns() -> Result<u64, &'static str> {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|line| line.split(' ').next()?.parse().ok())
        .ok_or("no /proc/thread-self/schedstat")
}

#[expect(clippy::print_stdout, reason = "it says what it measured")]
fn main() -> Result<(), &'static str> {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse().unwrap_or(0));
    let cycles: u32 = args.next().unwrap_or(1_000_000).max(1);
    let open: u32 = args.next().unwrap_or(0);
    let settings = TcpSettings {
        max_connections: open + 16,
        ..TcpSettings::default()
    };
    let mut rig = Rig {
        tcp: TcpClients::new(settings, 1, CLIENTS),
        out: Out::default(),
        ear: Ear::default(),
        server: Server { frame: Vec::new() },
        now: Timestamp::from_nanos(1_790_000_000_000_000_000),
    };
    for n in 0..open {
        rig.connect(n % CLIENTS).ok_or("a connection failed")?;
    }
    let before = rig.out.segments;
    let start = cpu_ns()?;
    for n in 0..cycles {
        rig.cycle(n % CLIENTS).ok_or("a cycle failed")?;
    }
    let each = (cpu_ns()? - start) / u64::from(cycles);
    if rig.ear.closed != u64::from(cycles) || rig.ear.bytes != u64::from(cycles) * 350 {
        return Err("not every cycle was complete");
    }
    let segments = (rig.out.segments - before) / u64::from(cycles);
    let seen = see(&rig.out.frame).ok_or("no frame")?;
    let start = cpu_ns()?;
    let mut bytes = 0;
    for _ in 0..cycles {
        bytes += frames_alone(&mut rig, &seen);
    }
    let alone = (cpu_ns()? - start) / u64::from(cycles);
    println!(
        "{each} ns a cycle with {open} open: {} cycles/s, {segments} segments out, {} bytes of memory",
        1_000_000_000 / each.max(1),
        rig.tcp.memory_bytes()
    );
    println!("{alone} ns of them for building and decoding frames ({bytes} bytes)");
    Ok(())
}
