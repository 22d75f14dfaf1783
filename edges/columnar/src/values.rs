//! Numbers and bytes of columns, whatever types an engine has given them.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampNanosecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrowPrimitiveType, RecordBatch};
use arrow_schema::{DataType, TimeUnit};

use crate::select::{SelectError, at_places, values_of};

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a dyn Array, SelectError> {
    let array = batch.column_by_name(name).map(AsRef::as_ref);
    array.ok_or_else(|| SelectError::Missing {
        name: name.to_owned(),
        found: batch
            .schema_ref()
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect::<Vec<_>>()
            .join(", "),
    })
}

fn wrong(array: &dyn Array, name: &str, wanted: &'static str) -> SelectError {
    SelectError::Type {
        name: name.to_owned(),
        found: array.data_type().to_string(),
        wanted,
    }
}

/// The numbers of a column; nothing where a row has none.
///
/// # Errors
/// [`SelectError::Missing`], or [`SelectError::Type`] where they are no numbers from 0 on: integers of any
/// size, decimals without a fraction, or moments in nanoseconds.
pub(crate) fn numbers(batch: &RecordBatch, name: &str) -> Result<Vec<Option<u64>>, SelectError> {
    let array = column(batch, name)?;
    of_numbers(array).ok_or_else(|| wrong(array, name, "whole numbers from 0 on"))
}

fn of_numbers(array: &dyn Array) -> Option<Vec<Option<u64>>> {
    let (values, places) = values_of(array);
    match values.data_type() {
        DataType::Int8 => primitives::<Int8Type>(values, places),
        DataType::Int16 => primitives::<Int16Type>(values, places),
        DataType::Int32 => primitives::<Int32Type>(values, places),
        DataType::Int64 => primitives::<Int64Type>(values, places),
        DataType::UInt8 => primitives::<UInt8Type>(values, places),
        DataType::UInt16 => primitives::<UInt16Type>(values, places),
        DataType::UInt32 => primitives::<UInt32Type>(values, places),
        DataType::UInt64 => primitives::<UInt64Type>(values, places),
        // What Spark makes of unsigned numbers of 64 bits.
        DataType::Decimal128(_, 0) => primitives::<Decimal128Type>(values, places),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            primitives::<TimestampNanosecondType>(values, places)
        }
        DataType::Null => Some(vec![None; array.len()]),
        _ => None,
    }
}

/// Values as numbers; nothing where one is negative or too large.
fn primitives<T: ArrowPrimitiveType>(
    array: &dyn Array,
    places: Vec<Option<usize>>,
) -> Option<Vec<Option<u64>>>
where
    T::Native: TryInto<u64>,
{
    let values = at_places(&array.as_primitive_opt::<T>()?, places);
    values
        .into_iter()
        .map(|value| match value {
            None => Some(None),
            Some(value) => value.try_into().ok().map(Some),
        })
        .collect()
}

/// The bytes of a column; nothing where a row has none.
///
/// # Errors
/// [`SelectError::Missing`], or [`SelectError::Type`] where they are no bytes.
pub(crate) fn bytes<'a>(
    batch: &'a RecordBatch,
    name: &str,
) -> Result<Vec<Option<&'a [u8]>>, SelectError> {
    let array = column(batch, name)?;
    of_bytes(array).ok_or_else(|| wrong(array, name, "bytes"))
}

fn of_bytes(array: &dyn Array) -> Option<Vec<Option<&[u8]>>> {
    let (values, places) = values_of(array);
    match values.data_type() {
        DataType::Binary => Some(at_places(&values.as_binary_opt::<i32>()?, places)),
        DataType::LargeBinary => Some(at_places(&values.as_binary_opt::<i64>()?, places)),
        DataType::BinaryView => Some(at_places(&values.as_binary_view_opt()?, places)),
        DataType::Null => Some(vec![None; array.len()]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::{
        ArrayRef, BinaryArray, BinaryViewArray, Decimal128Array, DictionaryArray, Float64Array,
        Int64Array, LargeBinaryArray, UInt8Array, UInt64Array,
    };

    use super::*;

    fn batch(array: ArrayRef) -> RecordBatch {
        RecordBatch::try_from_iter([("x", array)]).unwrap()
    }

    #[test]
    fn numbers_of_every_type() {
        let decimals = Decimal128Array::from(vec![Some(5), None]);
        let decimals = decimals.with_precision_and_scale(20, 0).unwrap();
        let keys = arrow_array::Int8Array::from(vec![Some(0), None]);
        let values: ArrayRef = Arc::new(Int64Array::from(vec![5]));
        let arrays: [ArrayRef; 5] = [
            Arc::new(UInt8Array::from(vec![Some(5), None])),
            Arc::new(Int64Array::from(vec![Some(5), None])),
            Arc::new(UInt64Array::from(vec![Some(5), None])),
            Arc::new(decimals),
            Arc::new(DictionaryArray::<Int8Type>::new(keys, values)),
        ];
        for array in arrays {
            assert_eq!(numbers(&batch(array), "x").unwrap(), [Some(5), None]);
        }
        for array in [
            Arc::new(Float64Array::from(vec![1.0])) as ArrayRef,
            Arc::new(Int64Array::from(vec![-1])),
        ] {
            assert!(numbers(&batch(array), "x").is_err());
        }
        let other = batch(Arc::new(UInt8Array::from(vec![1])));
        let error = numbers(&other, "y").unwrap_err().to_string();
        assert_eq!(error, "no column `y`; there are: x");
    }

    #[test]
    fn bytes_of_every_type() {
        let values = vec![Some(&b"a"[..]), None];
        let arrays: [ArrayRef; 3] = [
            Arc::new(BinaryArray::from(values.clone())),
            Arc::new(LargeBinaryArray::from(values.clone())),
            Arc::new(BinaryViewArray::from(values)),
        ];
        for array in arrays {
            assert_eq!(bytes(&batch(array), "x").unwrap(), [Some(&b"a"[..]), None]);
        }
    }
}
