//! MSNFTP: one file, its name known from the invitation.
//!
//! Lines are text. What the blocks carry is the file; the three bytes in front of each are neither,
//! so that nothing stands between the bytes of the file.

use linkweir_proto::msnftp::{Block, Command};

use super::gather::{LineBuffer, LineState, Message, bounded};
use super::{FileInfo, Found, Side};

/// State of the connection.
#[derive(Debug, Default)]
pub struct MsnFtpInspector {
    client: Direction,
    server: Direction,
    /// Of the side that gets the file: who he is, and by what he knows the invitation.
    receiver: Vec<u8>,
    cookie: Vec<u8>,
    is_opaque: bool,
}

/// What is coming from one side.
#[derive(Debug, Default)]
struct Direction {
    phase: Phase,
    line: LineBuffer,
    header: Message,
    /// Bytes of the file that are still to come, while it is under way.
    file: Option<u64>,
    /// Whether the length of a file was announced, so that blocks may come.
    has_announced: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// At the beginning of a line or a block.
    #[default]
    Between,
    Line,
    Header,
    /// Bytes of a block that are still to come.
    Block(u16),
}

impl MsnFtpInspector {
    /// The next bytes of a side.
    pub fn feed<F: Found>(&mut self, sender: Side, mut bytes: &[u8], found: &mut F) {
        while let Some(first) = bytes.first() {
            if self.is_opaque {
                found.text(sender, bytes);
                return;
            }
            let direction = self.direction(sender);
            bytes = match direction.phase {
                Phase::Between => {
                    let is_block = direction.has_announced && Block::begins_with(*first);
                    if is_block {
                        direction.header.begin(Block::HEADER as u64, Block::HEADER);
                    }
                    direction.phase = if is_block { Phase::Header } else { Phase::Line };
                    bytes
                }
                Phase::Line => self.take_line(sender, bytes, found),
                Phase::Header => self.take_header(sender, bytes, found),
                Phase::Block(left) => self.take_block(sender, left, bytes, found),
            };
        }
    }

    /// A side has sent all it will.
    pub fn finish<F: Found>(&mut self, sender: Side, found: &mut F) {
        self.cut(sender, found);
    }

    const fn direction(&mut self, sender: Side) -> &mut Direction {
        match sender {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    fn take_line<'a, F: Found>(
        &mut self,
        sender: Side,
        bytes: &'a [u8],
        found: &mut F,
    ) -> &'a [u8] {
        let (taken, rest, state) = self.direction(sender).line.take(bytes);
        found.text(sender, taken);
        match state {
            LineState::Partial => {}
            LineState::TooLong => self.give_up(sender, "a line of MSNFTP is too long", found),
            LineState::Whole => {
                let mut line = std::mem::take(&mut self.direction(sender).line);
                match Command::parse(line.line()) {
                    Some(command) => self.on_command(sender, command, found),
                    None => self.give_up(sender, "not a command of MSNFTP", found),
                }
                line.clear();
                let direction = self.direction(sender);
                direction.line = line;
                direction.phase = Phase::Between;
            }
        }
        rest
    }

    fn on_command<F: Found>(&mut self, sender: Side, command: Command<'_>, found: &mut F) {
        match command {
            Command::Version | Command::Transfer => {}
            Command::User { handle, cookie } => {
                self.receiver = bounded(handle).to_vec();
                self.cookie = bounded(cookie).to_vec();
            }
            Command::File { size } => self.begin_file(sender, size, found),
            // Either side may end it for both.
            Command::Cancel | Command::Bye => {
                self.cut(sender, found);
                self.cut(sender.other(), found);
            }
        }
    }

    fn begin_file<F: Found>(&mut self, sender: Side, size: u64, found: &mut F) {
        self.cut(sender, found);
        let (mut name, mut from, mut to) = (Vec::new(), Vec::new(), self.receiver.clone());
        found.invited(&self.cookie, &mut |file| {
            name = file.name.to_vec();
            from = file.from.to_vec();
            if to.is_empty() {
                to = file.to.to_vec();
            }
        });
        let file = FileInfo {
            name: &name,
            announced_size: Some(size),
            identifier: &self.cookie,
            from: &from,
            to: &to,
            ..FileInfo::default()
        };
        found.file_begin(sender, &file);
        let direction = self.direction(sender);
        direction.has_announced = true;
        direction.file = Some(size);
        self.end_if_whole(sender, found);
    }

    fn take_header<'a, F: Found>(
        &mut self,
        sender: Side,
        bytes: &'a [u8],
        found: &mut F,
    ) -> &'a [u8] {
        let direction = self.direction(sender);
        let (_, rest) = direction.header.take(bytes);
        if !direction.header.is_whole() {
            return rest;
        }
        direction.phase = Phase::Between;
        let header = direction.header.bytes().first_chunk().copied();
        match header.and_then(Block::parse) {
            Some(Block::Data(0)) | None => {}
            Some(Block::Data(length)) => direction.phase = Phase::Block(length),
            Some(Block::End) => self.cut(sender, found),
        }
        rest
    }

    fn take_block<'a, F: Found>(
        &mut self,
        sender: Side,
        left: u16,
        bytes: &'a [u8],
        found: &mut F,
    ) -> &'a [u8] {
        let direction = self.direction(sender);
        let Some(of_file) = direction.file.filter(|left| *left > 0) else {
            self.give_up(sender, "more bytes than the file has", found);
            return bytes;
        };
        let length = usize::try_from(of_file).unwrap_or(usize::MAX);
        let length = length.min(usize::from(left));
        let (data, rest) = bytes.split_at_checked(length).unwrap_or((bytes, &[]));
        // At most `left`.
        let taken = u16::try_from(data.len()).unwrap_or(left);
        direction.file = Some(of_file - u64::from(taken));
        direction.phase = match left - taken {
            0 => Phase::Between,
            left => Phase::Block(left),
        };
        found.file_data(sender, data);
        self.end_if_whole(sender, found);
        rest
    }

    /// Ends the file where its last byte is, and not where its end is said: who holds the last packet
    /// back until the file is judged must not wait for another.
    fn end_if_whole<F: Found>(&mut self, sender: Side, found: &mut F) {
        let file = &mut self.direction(sender).file;
        if *file == Some(0) {
            *file = None;
            found.file_end(sender, true);
        }
    }

    /// Ends the file of a side, if one is under way.
    fn cut<F: Found>(&mut self, sender: Side, found: &mut F) {
        if self.direction(sender).file.take().is_some() {
            found.file_end(sender, false);
        }
    }

    fn give_up<F: Found>(&mut self, sender: Side, why: &'static str, found: &mut F) {
        self.cut(sender, found);
        self.cut(sender.other(), found);
        *self = Self {
            is_opaque: true,
            ..Self::default()
        };
        found.malformed(sender, why);
    }
}

#[cfg(test)]
mod tests {
    use linkweir_proto::application::Application;
    use proptest::prelude::*;

    use super::*;
    use crate::inspect::recorder::{Event, File, Recorder};
    use Side::{Client, Server};

    /// The receiver has connected; the sender, who listened, sends this file in blocks of this length.
    fn transfer(file: &[u8], announced: usize, block: usize) -> Vec<(Side, Vec<u8>)> {
        let mut connection = vec![
            (Client, b"VER MSNFTP\r\n".to_vec()),
            (Server, b"VER MSNFTP\r\n".to_vec()),
            (Client, b"USR anna@example.test 93301\r\n".to_vec()),
            (Server, format!("FIL {announced}\r\n").into_bytes()),
            (Client, b"TFR\r\n".to_vec()),
        ];
        for data in file.chunks(block) {
            let length = u16::try_from(data.len())
                .expect("a short block")
                .to_le_bytes();
            connection.push((Server, [&[0], &length[..], data].concat()));
        }
        connection.push((Server, vec![1, 0, 0]));
        connection.push((Client, b"BYE 16777989\r\n".to_vec()));
        connection
    }

    fn file(name: &str, size: u64) -> File {
        File {
            name: name.to_owned(),
            size: Some(size),
            identifier: "93301".to_owned(),
            to: "anna@example.test".to_owned(),
            ..File::default()
        }
    }

    #[test]
    fn blocks_are_taken_apart() {
        let found = Recorder::of(Application::MsnFtp, &transfer(b"hello world", 11, 4));
        assert_eq!(found.data[1], b"hello world");
        assert_eq!(
            found.events,
            [Event::Begin(Server, file("", 11)), Event::End(Server, true)]
        );
        assert_eq!(
            found.texts[0],
            b"VER MSNFTP\r\nUSR anna@example.test 93301\r\nTFR\r\nBYE 16777989\r\n"
        );
        assert_eq!(found.texts[1], b"VER MSNFTP\r\nFIL 11\r\n");
    }

    #[test]
    fn the_sender_may_be_the_one_who_connected() {
        let swapped: Vec<_> = transfer(b"hello world", 11, 2045)
            .into_iter()
            .map(|(side, bytes)| (side.other(), bytes))
            .collect();
        let found = Recorder::of(Application::MsnFtp, &swapped);
        assert_eq!(found.data[0], b"hello world");
        assert_eq!(found.events.last(), Some(&Event::End(Client, true)));
    }

    #[test]
    fn the_invitation_knows_the_name() {
        let mut recorder = Recorder::default();
        let offered = File {
            from: "bob@example.test".to_owned(),
            ..file("a.txt", 5)
        };
        recorder.offers.push(("93301".to_owned(), offered.clone()));
        let found = recorder.watch(Application::MsnFtp, &transfer(b"hello", 5, 5), &[]);
        assert_eq!(found.events[0], Event::Begin(Server, offered));
    }

    #[test]
    fn the_end_is_where_the_last_byte_is() {
        let connection = transfer(b"hello", 5, 5);
        let until_last_byte = &connection[..6];
        let found = Recorder::of(Application::MsnFtp, until_last_byte);
        assert_eq!(found.events.last(), Some(&Event::End(Server, true)));
        let empty = Recorder::of(Application::MsnFtp, &transfer(b"", 0, 5));
        assert_eq!(
            empty.events,
            [Event::Begin(Server, file("", 0)), Event::End(Server, true)]
        );
    }

    #[test]
    fn what_ends_early_is_incomplete() {
        let mut cancelled = transfer(b"hello", 10, 5);
        cancelled.truncate(6);
        let cut = Recorder::of(Application::MsnFtp, &cancelled);
        cancelled.push((Client, b"CCL\r\n".to_vec()));
        let by_receiver = Recorder::of(Application::MsnFtp, &cancelled);
        let by_sender = Recorder::of(Application::MsnFtp, &transfer(b"hello", 10, 5));
        for found in [cut, by_receiver, by_sender] {
            assert_eq!(
                found.events,
                [
                    Event::Begin(Server, file("", 10)),
                    Event::End(Server, false)
                ]
            );
            assert_eq!(found.data[1], b"hello");
        }
    }

    #[test]
    fn bytes_beyond_the_file_are_text() {
        let found = Recorder::of(Application::MsnFtp, &transfer(b"hello world", 5, 11));
        assert_eq!(found.data[1], b"hello");
        assert_eq!(
            found.events[1..],
            [
                Event::End(Server, true),
                Event::Malformed(Server, "more bytes than the file has"),
            ]
        );
        assert!(found.texts[1].ends_with(b" world\x01\0\0"));
    }

    #[test]
    fn what_is_not_msnftp_is_malformed_once_and_text() {
        let connection = [
            (Client, b"VER MSNFTP\r\nHELO\r\nmore".to_vec()),
            (Server, vec![0; 100]),
        ];
        let found = Recorder::of(Application::MsnFtp, &connection);
        assert_eq!(
            found.events,
            [Event::Malformed(Client, "not a command of MSNFTP")]
        );
        assert_eq!(found.texts[0], Recorder::sent(&connection, Client));
        assert_eq!(found.texts[1], Recorder::sent(&connection, Server));
    }

    proptest! {
        #[test]
        fn how_it_is_cut_changes_nothing(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            block in 1_usize..90,
            pieces in proptest::collection::vec(1_usize..50, 1..20),
        ) {
            let connection = transfer(&bytes, bytes.len(), block);
            let found = Recorder::default().watch(Application::MsnFtp, &connection, &pieces);
            prop_assert_eq!(&found.data[1], &bytes);
            prop_assert_eq!(found, Recorder::of(Application::MsnFtp, &connection));
        }

        #[test]
        fn any_bytes_are_found_at_most_once(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            pieces in proptest::collection::vec(1_usize..50, 1..20),
        ) {
            let connection = [(Server, [b"FIL 200\r\n", &bytes[..]].concat()), (Client, bytes.clone())];
            let found = Recorder::default().watch(Application::MsnFtp, &connection, &pieces);
            prop_assert!(found.data[1].len() + found.texts[1].len() <= bytes.len() + 9);
            let ends = found.events.iter().filter(|event| matches!(event, Event::End(..)));
            let begins = found.events.iter().filter(|event| matches!(event, Event::Begin(..)));
            prop_assert_eq!(ends.count(), begins.count());
            prop_assert_eq!(found, Recorder::of(Application::MsnFtp, &connection));
        }
    }
}
