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
mod tests;
