//! An MSN switchboard: one conversation of those who come.

use std::io::{self, Write as _};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};

use super::options::Options;
use super::talk::Talk;
use super::{accept, say, strange};

/// Who is there, and where to write to him.
type Room = Mutex<Vec<(String, TcpStream)>>;

pub(super) fn serve(options: &Options) -> io::Result<()> {
    let room = Room::default();
    accept::each(options, |talk| {
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
