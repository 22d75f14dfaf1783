//! Which rows of a page have a value ("definition levels" of columns that are not nested).

use super::bits::push_varint;

/// A bit for each row of a page.
#[derive(Debug, Default)]
pub(super) struct Levels {
    words: Vec<u64>,
    rows: usize,
    values: usize,
}

impl Levels {
    /// Rows so far.
    pub(super) const fn rows(&self) -> usize {
        self.rows
    }

    /// Rows with a value.
    pub(super) const fn values(&self) -> usize {
        self.values
    }

    /// Appends `rows` (1 to 64), of which those whose bit is set have a value.
    #[inline]
    pub(super) fn push(&mut self, present: u64, rows: usize) {
        let used = self.rows % 64;
        match self.words.last_mut() {
            Some(last) if used > 0 => {
                *last |= present << used;
                if used + rows > 64 {
                    self.words.push(present >> (64 - used));
                }
            }
            _ => self.words.push(present),
        }
        self.rows += rows;
        self.values += present.count_ones() as usize;
    }

    /// Appends them as they stand before the values of a page, and begins anew.
    pub(super) fn take(&mut self, out: &mut Vec<u8>) {
        let length = out.len();
        out.extend_from_slice(&[0; 4]);
        if self.values == 0 || self.values == self.rows {
            // One run.
            push_varint((self.rows as u64) << 1, out);
            out.push(u8::from(self.values > 0));
        } else {
            let bytes = self.rows.div_ceil(8);
            push_varint((bytes as u64) << 1 | 1, out);
            out.extend(
                self.words
                    .iter()
                    .flat_map(|word| word.to_le_bytes())
                    .take(bytes),
            );
        }
        let size = u32::try_from(out.len() - length - 4).unwrap_or(0);
        if let Some(place) = out.get_mut(length..length + 4) {
            place.copy_from_slice(&size.to_le_bytes());
        }
        self.words.clear();
        (self.rows, self.values) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_in_groups_of_any_size() {
        let mut levels = Levels::default();
        let mut out = Vec::new();
        levels.push(0b101, 3);
        levels.push(u64::MAX, 64);
        levels.push(0, 2);
        assert_eq!((levels.rows(), levels.values()), (69, 66));
        levels.take(&mut out);
        // Nine bytes: 1 0 1, then 64 ones, then two zeros.
        assert_eq!(
            out,
            [
                10,
                0,
                0,
                0,
                19,
                0b1111_1101,
                255,
                255,
                255,
                255,
                255,
                255,
                255,
                0b0000_0111
            ]
        );
        out.clear();
        levels.push(0b111, 3);
        levels.take(&mut out);
        assert_eq!(out, [2, 0, 0, 0, 6, 1]);
        out.clear();
        levels.push(0, 64);
        levels.take(&mut out);
        assert_eq!(out, [3, 0, 0, 0, 0x80, 1, 0]);
        assert_eq!(levels.rows(), 0);
    }
}
