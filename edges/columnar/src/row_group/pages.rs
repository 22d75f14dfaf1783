//! The complete pages of a column.

use parquet::basic::{Compression, Encoding, PageType, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescPtr;

use super::levels::Levels;
use super::signed;
use crate::error::ColumnarError;

/// Zstandard's level: the next ones take more time than they save bytes.
const LEVEL: i32 = 1;

/// Compresses pages with one memory for all of them.
pub(super) struct Compressor {
    zstd: zstd::bulk::Compressor<'static>,
    /// Memory for a page that is being put together.
    body: Vec<u8>,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

impl Compressor {
    pub(super) fn new() -> Result<Self, ColumnarError> {
        Ok(Self {
            zstd: zstd::bulk::Compressor::new(LEVEL)?,
            body: Vec::new(),
        })
    }
}

/// The data pages of a column so far, compressed.
#[derive(Default)]
pub(super) struct Pages {
    pages: Vec<CompressedPage>,
    bytes: usize,
    rows: usize,
    values: usize,
}

impl std::fmt::Debug for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pages")
            .field("bytes", &self.bytes)
            .field("rows", &self.rows)
            .field("values", &self.values)
            .finish_non_exhaustive()
    }
}

impl Pages {
    /// Bytes of all pages, but for their heads.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Rows without a value.
    pub(super) const fn nulls(&self) -> u64 {
        (self.rows - self.values) as u64
    }

    /// Adds a page of the rows in `levels`, which begin anew; `write` appends their values.
    pub(super) fn push(
        &mut self,
        encoding: Encoding,
        levels: &mut Levels,
        compressor: &mut Compressor,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), ColumnarError> {
        let Compressor { zstd, body } = compressor;
        let rows = levels.rows();
        self.rows += rows;
        self.values += levels.values();
        body.clear();
        levels.take(body);
        write(body);
        // What was taken for the worst case goes back: pages wait for the end of their row group.
        let mut compressed = zstd.compress(body)?;
        compressed.shrink_to_fit();
        self.bytes += compressed.len();
        let page = Page::DataPage {
            buf: compressed.into(),
            num_values: u32::try_from(rows).unwrap_or(u32::MAX),
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        self.pages.push(CompressedPage::new(page, body.len()));
        Ok(())
    }

    /// Writes the dictionary, where there is one (its bytes, and how many values it has), and all
    /// pages; there are none then. The first byte that `writer` wrote was byte `start` of the file.
    pub(super) fn close(
        &mut self,
        column: &ColumnDescPtr,
        dictionary: Option<(Vec<u8>, usize)>,
        statistics: Option<Statistics>,
        compressor: &mut Compressor,
        writer: &mut impl PageWriter,
        start: u64,
    ) -> Result<ColumnChunkMetaData, ColumnarError> {
        let (mut compressed_size, mut size) = (0, 0);
        let mut write = |page: CompressedPage| -> Result<u64, ColumnarError> {
            let written = writer.write_page(page)?;
            compressed_size += written.compressed_size;
            size += written.uncompressed_size;
            Ok(start + written.offset)
        };
        let mut kinds: Vec<PageEncodingStats> = Vec::new();
        let mut dictionary_offset = None;
        if let Some((bytes, values)) = dictionary {
            let page = Page::DictionaryPage {
                buf: compressor.zstd.compress(&bytes)?.into(),
                num_values: u32::try_from(values).unwrap_or(u32::MAX),
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            dictionary_offset = Some(signed(write(CompressedPage::new(page, bytes.len()))?));
            kinds.push(PageEncodingStats {
                page_type: PageType::DICTIONARY_PAGE,
                encoding: Encoding::PLAIN,
                count: 1,
            });
        }
        let mut first = None;
        for page in self.pages.drain(..) {
            let encoding = page.encoding();
            let offset = write(page)?;
            first.get_or_insert(offset);
            let of_kind = |kind: &&mut PageEncodingStats| {
                kind.page_type == PageType::DATA_PAGE && kind.encoding == encoding
            };
            match kinds.iter_mut().find(of_kind) {
                Some(kind) => kind.count += 1,
                None => kinds.push(PageEncodingStats {
                    page_type: PageType::DATA_PAGE,
                    encoding,
                    count: 1,
                }),
            }
        }
        let mut encodings: Vec<Encoding> = kinds.iter().map(|kind| kind.encoding).collect();
        encodings.push(Encoding::RLE);
        let mut builder = ColumnChunkMetaData::builder(column.clone())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
            .set_encodings(encodings)
            .set_page_encoding_stats(kinds)
            .set_num_values(signed(self.rows as u64))
            .set_total_compressed_size(signed(compressed_size as u64))
            .set_total_uncompressed_size(signed(size as u64))
            .set_dictionary_page_offset(dictionary_offset)
            .set_data_page_offset(signed(first.unwrap_or(start)));
        if let Some(statistics) = statistics {
            builder = builder.set_statistics(statistics);
        }
        *self = Self::default();
        Ok(builder.build()?)
    }
}
