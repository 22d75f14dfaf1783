#![allow(clippy::unwrap_used, reason = "a helper that fails is a failed test")]

use std::thread;

use super::*;

const SOON: Duration = Duration::from_secs(10);

fn write(writer: &mut RingWriter, bytes: &[u8]) -> bool {
    let Some(room) = writer.reserve(bytes.len()).unwrap() else {
        return false;
    };
    room.copy_from_slice(bytes);
    writer.commit(bytes.len());
    true
}

#[test]
fn pieces_come_out_whole_over_the_wrap() {
    let mut writer = RingWriter::create(1).unwrap();
    assert_eq!(writer.capacity(), 65_536);
    let mut reader = writer.reader().unwrap();
    let piece: Vec<u8> = (0..50_000_u32).map(|n| (n % 251) as u8).collect();
    for round in 0..20 {
        assert!(write(&mut writer, &piece), "{round}");
        assert!(!write(&mut writer, &piece), "no room for two");
        assert!(reader.readable().unwrap().is_empty(), "not published yet");
        writer.publish();
        assert_eq!(reader.readable().unwrap(), piece);
        assert_eq!(writer.queued(), Ok(50_000));
        reader.release(50_000);
        assert_eq!(writer.queued(), Ok(0));
    }
}

#[test]
fn a_ring_of_another_size_or_without_seals_is_refused() {
    let writer = RingWriter::create(1 << 16).unwrap();
    let other = RingWriter::create(1 << 17).unwrap();
    let (keeper, other) = (writer.keeper().unwrap(), other.keeper().unwrap());
    let [data, control] = keeper.files();
    let opened = RingReader::open(other.files()[0], control);
    assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::InvalidData);
    let plain = rustix::fs::memfd_create("plain", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&plain, 1 << 16).unwrap();
    let opened = RingReader::open(plain.as_fd(), control);
    assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::InvalidData);
    let opened = RingReader::open(data, plain.as_fd());
    assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::InvalidData);
}

#[test]
fn nobody_else_can_write_into_the_data_or_cut_it() {
    let writer = RingWriter::create(1 << 16).unwrap();
    let keeper = writer.keeper().unwrap();
    let [data, control] = keeper.files();
    assert!(Mapping::mirrored(&data, 1 << 16, true).is_err());
    assert!(rustix::fs::ftruncate(data, 0).is_err());
    assert!(rustix::io::write(data, b"x").is_err());
    assert!(rustix::fs::ftruncate(control, 0).is_err());
}

#[test]
fn one_reader_at_a_time() {
    let mut writer = RingWriter::create(1 << 16).unwrap();
    assert!(!writer.has_reader());
    let mut reader = writer.reader().unwrap();
    assert!(writer.has_reader());
    assert_eq!(
        writer.reader().unwrap_err().kind(),
        io::ErrorKind::ResourceBusy
    );
    writer.keeper().unwrap().forget_reader();
    assert!(
        writer.has_reader(),
        "it is in this process, hence not forgotten"
    );
    write(&mut writer, b"onetwo");
    writer.publish();
    assert_eq!(reader.readable().unwrap(), b"onetwo");
    reader.release(3);
    drop(reader);
    assert!(!writer.has_reader());
    assert_eq!(writer.reader().unwrap().readable().unwrap(), b"two");
}

#[test]
fn whatever_the_other_side_writes_into_the_control_page() {
    for wrong in [1, 65_537, u64::MAX, u64::MAX - 7, 1 << 63] {
        let mut writer = RingWriter::create(1 << 16).unwrap();
        let mut reader = writer.reader().unwrap();
        writer.control.reader.0.consumed.store(wrong, Relaxed);
        assert_eq!(writer.queued(), Err(Corrupt));
        assert!(writer.reserve(100_000).is_err());
        let produced = &writer.control.writer.0.produced;
        produced.store(wrong.max(65_537), Relaxed);
        assert_eq!(reader.readable().unwrap_err(), Corrupt);
        assert!(reader.wait_for_data(SOON).is_err());
    }
}

#[test]
fn both_sides_sleep_and_are_woken() {
    const PIECES: u32 = 50_000;
    let mut writer = RingWriter::create(1 << 16).unwrap();
    let mut reader = writer.reader().unwrap();
    let writing = thread::spawn(move || {
        for number in 0..PIECES {
            let piece = [number.to_le_bytes(); 24].concat();
            while !write(&mut writer, &piece) {
                writer.wait_for_room(piece.len(), SOON).unwrap();
            }
            if number % 7 == 0 {
                writer.publish();
            }
            if number % 10_000 == 0 {
                thread::yield_now();
            }
        }
        writer.close(FINISHED);
    });
    let mut next = 0;
    loop {
        let state = reader.state();
        let bytes = reader.readable().unwrap();
        let len = bytes.len();
        for piece in bytes.chunks(96) {
            assert_eq!(piece, [u32::to_le_bytes(next); 24].concat());
            next += 1;
        }
        reader.release(len);
        if len == 0 {
            if state != RUNNING {
                assert_eq!(state, FINISHED);
                break;
            }
            // It may end sooner than a byte comes: by a wake that was meant for the sleep before.
            let begin = crate::wait::monotonic_ns();
            reader.wait_for_data(SOON).unwrap();
            let waited = crate::wait::monotonic_ns() - begin;
            assert!(Duration::from_nanos(waited) < SOON, "a wake was lost");
        }
    }
    assert_eq!(next, PIECES);
    writing.join().unwrap();
}

#[test]
fn a_writer_that_is_gone_says_so() {
    let mut writer = RingWriter::create(1 << 16).unwrap();
    let mut reader = writer.reader().unwrap();
    write(&mut writer, b"last");
    writer.set_note(1, 7);
    drop(writer);
    assert!(reader.wait_for_data(SOON).unwrap());
    assert_eq!(reader.state(), ABANDONED);
    assert_eq!(reader.readable().unwrap(), b"last");
    assert_eq!((reader.writer_note(1), reader.writer_note(99)), (7, 0));
}

#[test]
fn a_position_is_shared_by_address_not_by_luck() {
    // The layout is part of what two versions must agree on.
    assert_eq!(std::mem::offset_of!(Control, writer), 128);
    assert_eq!(std::mem::offset_of!(Control, reader), 256);
    assert_eq!(std::mem::offset_of!(Control, attached), 640);
    assert_eq!(size_of::<Control>(), 768);
}
