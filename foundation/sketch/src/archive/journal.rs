//! The journal: the rows of one step as they will be, so that writing them can be done again.

use super::bytes::{checksum, put_u32, put_u64, u32_at, u64_at};
use super::header::{JOURNAL_HEAD_BYTES as HEAD_BYTES, Layout};
use super::ladder::Ladder;
use super::row::RowBuffer;

const PLACES: usize = 16;
const SUM: usize = PLACES + 8 * Ladder::MAX_LEVELS;

/// A row of the journal and where it goes.
#[derive(Debug, Clone)]
pub(super) struct Image {
    pub(super) level: usize,
    pub(super) slot: u32,
    pub(super) row: RowBuffer,
}

/// The head for these rows, which are sealed.
pub(super) fn head(writing: u64, images: &[Image]) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    put_u64(&mut head, 0, writing);
    put_u32(&mut head, 8, u32::try_from(images.len()).unwrap_or(0));
    for (place, image) in images.iter().enumerate() {
        let at = PLACES + 8 * place;
        put_u32(
            &mut head,
            at,
            u32::try_from(image.level).unwrap_or(u32::MAX),
        );
        put_u32(&mut head, at + 4, image.slot);
    }
    let sum = head_checksum(&head, images.iter().map(|image| image.row.seal_mark()));
    put_u64(&mut head, SUM, sum);
    head
}

/// The rows of the journal, if it was written whole and everything in it can be. `read` fills a
/// buffer from a place of the file and says whether it could.
pub(super) fn read(
    layout: &Layout,
    mut read: impl FnMut(usize, &mut [u8]) -> bool,
) -> Option<(u64, Vec<Image>)> {
    let mut head = [0; HEAD_BYTES];
    if !read(layout.journal(), &mut head) {
        return None;
    }
    let (writing, count) = (u64_at(&head, 0), u32_at(&head, 8) as usize);
    let levels = layout.ladder.levels();
    if writing == 0 || count == 0 || count > levels.len() {
        return None;
    }
    let mut images = Vec::with_capacity(count);
    for place in 0..count {
        let at = PLACES + 8 * place;
        let level = u32_at(&head, at) as usize;
        let slot = u32_at(&head, at + 4);
        let mut row = RowBuffer::new(&layout.row);
        if slot >= levels.get(level)?.rows || !read(layout.image(place), &mut row.bytes) {
            return None;
        }
        let number = row.number()?;
        if row.writing() != writing || layout.slot_of(level, number) != slot || !row.is_whole() {
            return None;
        }
        images.push(Image { level, slot, row });
    }
    let sum = head_checksum(&head, images.iter().map(|image| image.row.seal_mark()));
    (sum == u64_at(&head, SUM)).then_some((writing, images))
}

fn head_checksum(head: &[u8; HEAD_BYTES], marks: impl Iterator<Item = u64>) -> u64 {
    let first = checksum(2, head.get(..SUM).unwrap_or_default());
    marks.fold(first, |sum, mark| checksum(sum, &mark.to_le_bytes()))
}
