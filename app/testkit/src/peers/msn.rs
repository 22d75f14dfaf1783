//! A participant of an MSN conversation: chat messages, an invitation to a file, its transfer.
//!
//! An MSN switchboard: one conversation of those who come.

use super::options::{Options, Shared};
use super::talk::Talk;
use super::{msnftp, say, strange, talk};
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, PoisonError};

/// Names the invitation on the switchboard.
const INVITATION: u32 = 33267;
/// What the other connection shows.
const COOKIE: u32 = 93301;

pub(super) fn chat(options: &Options) -> io::Result<()> {
    let handle: String = options.get("as")?;
    let offered = options.has("offer").then(|| options.shared("offer"));
    let mut chat = Chat {
        talk: Talk::connect(options.address("connect")?, options)?,
        next_id: 1,
        heard: 0,
        is_file_open: offered.is_some() || options.has("accept"),
        offered: offered.transpose()?,
        handle,
        options,
    };
    chat.join()?;
    for text in options.all("say") {
        chat.say(text)?;
    }
    if let Some(file) = &chat.offered {
        let (name, size) = (&file.name, file.bytes.len());
        let fields = [
            "Application-Name: File Transfer",
            "Application-GUID: {5D3E02AB-6190-11d3-BBBB-00C04F795683}",
            "Invitation-Command: INVITE",
            &format!("Invitation-Cookie: {INVITATION}"),
            &format!("Application-File: {name}"),
            &format!("Application-FileSize: {size}"),
            "Connectivity: N",
        ];
        let fields = fields.join("\r\n");
        chat.invite(&fields)?;
    }
    chat.hear(options.find("hear")?.unwrap_or(0))?;
    if let Some(text) = options.all("reply").next() {
        chat.say(text)?;
        chat.hear(options.find("then")?.unwrap_or(0))?;
    }
    chat.talk.send(b"OUT\r\n")?;
    chat.talk.close()
}

struct Chat<'a> {
    talk: Talk,
    next_id: u32,
    heard: usize,
    /// Whether a file is still to be sent or received.
    is_file_open: bool,
    offered: Option<Shared>,
    handle: String,
    options: &'a Options,
}

impl Chat<'_> {
    fn command(&mut self, words: &str) -> io::Result<()> {
        let (command, rest) = words.split_once(' ').unwrap_or((words, ""));
        let line = format!("{command} {} {rest}\r\n", self.next_id);
        self.next_id += 1;
        self.talk.send(line.as_bytes())
    }

    /// Lines until one that begins so.
    fn until(&mut self, begin: &str) -> io::Result<String> {
        loop {
            let line = self.talk.must_line()?;
            if line.starts_with(begin) {
                return Ok(line);
            }
        }
    }

    /// Enters the conversation; returns when the other one is there.
    fn join(&mut self) -> io::Result<()> {
        let handle = self.handle.clone();
        if self.options.has("answer") {
            self.command(&format!("ANS {handle} 849102291.520491932 17342299"))?;
            // Somebody is there, or comes.
            while !["IRO ", "JOI "].contains(&self.talk.must_line()?.get(..4).unwrap_or("")) {}
            return Ok(());
        }
        let other: String = self.options.get("to")?;
        self.command(&format!("USR {handle} 17262740.1050826919.32308"))?;
        self.until("USR ")?;
        self.command(&format!("CAL {other}"))?;
        self.until("JOI ")?;
        Ok(())
    }

    /// Waits for so many messages more, and for the file.
    fn hear(&mut self, count: usize) -> io::Result<()> {
        let expected = self.heard + count;
        while self.heard < expected || self.is_file_open {
            let (from, payload) = self.message()?;
            self.take(&from, &payload)?;
        }
        Ok(())
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.send(&format!(
            "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=UTF-8\r\n\
             X-MMS-IM-Format: FN=MS%20Sans%20Serif; EF=; CO=0; CS=0; PF=0\r\n\r\n{text}"
        ))
    }

    fn invite(&mut self, fields: &str) -> io::Result<()> {
        self.send(&format!(
            "MIME-Version: 1.0\r\nContent-Type: text/x-msmsgsinvite; charset=UTF-8\r\n\r\n{fields}\r\n"
        ))
    }

    fn send(&mut self, payload: &str) -> io::Result<()> {
        let line = format!("MSG {} N {}\r\n", self.next_id, payload.len());
        self.next_id += 1;
        let mut bytes = line.into_bytes();
        bytes.extend(payload.as_bytes());
        self.talk.send(&bytes)
    }

    /// The next message, whoever comes or goes before it.
    fn message(&mut self) -> io::Result<(String, String)> {
        let line = self.until("MSG ")?;
        let mut words = line.split(' ').skip(1);
        let from = words.next().unwrap_or_default().to_owned();
        let length = words.nth(1).and_then(|length| length.parse().ok());
        let payload = self.talk.exact(length.ok_or_else(|| strange(&line))?)?;
        let payload = String::from_utf8(payload).map_err(|_| strange("no UTF-8"))?;
        Ok((from, payload))
    }

    fn take(&mut self, from: &str, payload: &str) -> io::Result<()> {
        let (head, body) = payload
            .split_once("\r\n\r\n")
            .ok_or_else(|| strange("no body"))?;
        if head.contains("text/plain") {
            self.heard += 1;
            say(format_args!("heard {from}: {body}"));
            return Ok(());
        }
        if !head.contains("text/x-msmsgsinvite") {
            return Ok(());
        }
        let field = |name: &str| {
            let mut lines = body.lines().filter_map(|line| line.split_once(": "));
            lines.find_map(|(key, value)| (key == name).then(|| value.to_owned()))
        };
        let number = |name| field(name).and_then(|text| text.parse().ok());
        match field("Invitation-Command").as_deref() {
            Some("INVITE") if self.options.has("accept") => {
                let name = field("Application-File").unwrap_or_default();
                say(format_args!("offered {name}"));
                let cookie = field("Invitation-Cookie").unwrap_or_default();
                self.invite(&accepted(&cookie, ""))
            }
            Some("ACCEPT") if self.offered.is_some() => self.give(),
            Some("ACCEPT") => {
                let ip = field("IP-Address").and_then(|ip| ip.parse().ok());
                let port = number("Port").and_then(|port: u32| u16::try_from(port).ok());
                match (ip, port, number("AuthCookie")) {
                    (Some(ip), Some(port), Some(cookie)) => {
                        self.get(SocketAddr::new(ip, port), cookie)
                    }
                    _ => Err(strange("no address")),
                }
            }
            _ => Ok(()),
        }
    }

    /// Says where the file is, and sends it to who comes.
    fn give(&mut self) -> io::Result<()> {
        let Some(file) = self.offered.take() else {
            return Ok(());
        };
        let listener = TcpListener::bind(self.options.address("listen")?)?;
        let address = listener.local_addr()?;
        let (ip, port) = (address.ip(), address.port());
        let more = format!("\r\nIP-Address: {ip}\r\nPort: {port}\r\nAuthCookie: {COOKIE}");
        self.invite(&accepted(&INVITATION.to_string(), &more))?;
        let talk = Talk::new(listener.accept()?.0, self.options)?;
        msnftp::send(talk, &file, COOKIE)?;
        say(format_args!("sent {}", file.name));
        self.is_file_open = false;
        Ok(())
    }

    fn get(&mut self, address: SocketAddr, cookie: u32) -> io::Result<()> {
        let talk = Talk::connect(address, self.options)?;
        let out = self.options.create("accept")?;
        let length = msnftp::receive(talk, &self.handle, cookie, out)?;
        say(format_args!("received {length}"));
        self.is_file_open = false;
        Ok(())
    }
}

fn accepted(cookie: &str, more: &str) -> String {
    format!(
        "Invitation-Command: ACCEPT\r\nInvitation-Cookie: {cookie}\r\nLaunch-Application: FALSE\r\n\
         Request-Data: IP-Address:{more}"
    )
}

/// Who is there, and where to write to him.
type Room = Mutex<Vec<(String, TcpStream)>>;

pub(super) fn serve(options: &Options) -> io::Result<()> {
    let room = Room::default();
    talk::each(options, |talk| {
        let mut handle = String::new();
        let end = seat(talk, &room, &mut handle);
        leave(&room, &handle);
        end
    })
}

/// One participant, until he goes.
fn seat(mut talk: Talk, room: &Room, handle: &mut String) -> io::Result<()> {
    while let Some(line) = talk.line()? {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["USR", id, who, _cookie] => {
                (*who).clone_into(handle);
                talk.send(format!("USR {id} OK {who} {who}\r\n").as_bytes())?;
                enter(room, who, talk.writer()?);
            }
            ["CAL", id, who] => {
                talk.send(format!("CAL {id} RINGING 17342299\r\n").as_bytes())?;
                let is_there = others(room, handle).iter().any(|other| other == who);
                if is_there {
                    talk.send(format!("JOI {who} {who}\r\n").as_bytes())?;
                }
                // Who waits for the caller speaks only now, when the caller can hear him.
                tell(
                    room,
                    handle,
                    format!("JOI {handle} {handle}\r\n").as_bytes(),
                );
            }
            ["ANS", id, who, _cookie, _session] => {
                (*who).clone_into(handle);
                enter(room, who, talk.writer()?);
                let there = others(room, handle);
                for (at, other) in there.iter().enumerate() {
                    let (at, all) = (at + 1, there.len());
                    talk.send(format!("IRO {id} {at} {all} {other} {other}\r\n").as_bytes())?;
                }
                talk.send(format!("ANS {id} OK\r\n").as_bytes())?;
                tell(room, who, format!("JOI {who} {who}\r\n").as_bytes());
            }
            ["MSG", _id, _kind, length] => {
                let length = length.parse().map_err(|_| strange("a length"))?;
                let payload = talk.exact(length)?;
                let mut bytes = format!("MSG {handle} {handle} {length}\r\n").into_bytes();
                bytes.extend(payload);
                tell(room, handle, &bytes);
            }
            ["OUT"] => break,
            _ => return Err(strange(&line)),
        }
    }
    leave(room, handle);
    talk.close()
}

fn enter(room: &Room, handle: &str, writer: TcpStream) {
    say(format_args!("{handle} comes"));
    let mut room = room.lock().unwrap_or_else(PoisonError::into_inner);
    room.push((handle.to_owned(), writer));
}

fn leave(room: &Room, handle: &str) {
    let mut seats = room.lock().unwrap_or_else(PoisonError::into_inner);
    let before = seats.len();
    seats.retain(|seat| seat.0 != handle);
    let is_gone = seats.len() < before;
    drop(seats);
    if is_gone {
        tell(room, handle, format!("BYE {handle}\r\n").as_bytes());
    }
}

fn others(room: &Room, handle: &str) -> Vec<String> {
    let room = room.lock().unwrap_or_else(PoisonError::into_inner);
    let others = room.iter().filter(|seat| seat.0 != handle);
    others.map(|seat| seat.0.clone()).collect()
}

/// To everybody but one. Who cannot be reached is found to be gone by his own thread.
fn tell(room: &Room, from: &str, bytes: &[u8]) {
    let room = room.lock().unwrap_or_else(PoisonError::into_inner);
    for (_, writer) in room.iter().filter(|seat| seat.0 != from) {
        let mut writer: &TcpStream = writer;
        drop(writer.write_all(bytes));
    }
}
