//! The files items come in: a JSON array of objects, read in constant memory.
//!
//! ```json
//! [{"id": 1001, "name": "Oak table", "price_cents": 24900}, ...]
//! ```
//!
//! Fields that are not named here are passed over. The array is never held
//! whole: its items are handed on in chunks while it is read.

use std::fmt;
use std::io::{BufReader, Read};

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};

use crate::error::Result;

/// One item of a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct FeedItem {
    /// The market's number for it.
    pub(crate) id: i64,
    /// What it is called.
    pub(crate) name: String,
    /// What it costs now.
    pub(crate) price_cents: u32,
}

/// Hands the items of a file on, `size` at a time, the rest at the end. Ends at
/// the first error: the chunks before it were handed on, the begun one is not.
pub(crate) fn read_chunks(
    input: impl Read,
    size: usize,
    mut sink: impl FnMut(&[FeedItem]) -> Result<()>,
) -> Result<()> {
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(input));
    let mut failed = None;
    let chunks = Chunks { size, sink: &mut sink, failed: &mut failed };
    let read = json.deserialize_seq(chunks);
    // The sink's own error says more than the one that carried it out.
    if let Some(error) = failed {
        return Err(error);
    }
    read?;
    Ok(json.end()?)
}

struct Chunks<'a, F> {
    size: usize,
    sink: &'a mut F,
    failed: &'a mut Option<crate::error::Error>,
}

impl<F: FnMut(&[FeedItem]) -> Result<()>> Chunks<'_, F> {
    fn hand_on<E: serde::de::Error>(&mut self, chunk: &mut Vec<FeedItem>) -> Result<(), E> {
        let taken = (self.sink)(chunk);
        chunk.clear();
        taken.map_err(|error| {
            *self.failed = Some(error);
            E::custom("the chunk was not taken")
        })
    }
}

impl<'de, F: FnMut(&[FeedItem]) -> Result<()>> Visitor<'de> for Chunks<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of items")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let mut chunk = Vec::with_capacity(self.size);
        while let Some(item) = items.next_element::<FeedItem>()? {
            if item.name.is_empty() {
                return Err(A::Error::custom(format_args!("item {} has no name", item.id)));
            }
            chunk.push(item);
            if chunk.len() == self.size {
                self.hand_on(&mut chunk)?;
            }
        }
        if chunk.is_empty() { Ok(()) } else { self.hand_on(&mut chunk) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str, size: usize) -> (Vec<usize>, Result<()>) {
        let mut sizes = Vec::new();
        let read = read_chunks(text.as_bytes(), size, |chunk| {
            sizes.push(chunk.len());
            Ok(())
        });
        (sizes, read)
    }

    fn items(count: usize) -> String {
        let items: Vec<String> = (0..count)
            .map(|id| format!(r#"{{"id":{id},"name":"n","price_cents":1,"more":[1]}}"#))
            .collect();
        items.join(",")
    }

    #[test]
    fn items_come_in_chunks() {
        for (count, expected) in [(0, vec![]), (2, vec![2]), (3, vec![3]), (7, vec![3, 3, 1])] {
            let (sizes, read) = sizes(&format!("[{}]", items(count)), 3);
            assert!(read.is_ok(), "{read:?}");
            assert_eq!(sizes, expected);
        }
    }

    #[test]
    fn a_fault_ends_the_reading_and_names_its_place() {
        let begun = items(4);
        for fault in [
            format!("[{begun},\n{{\"id\":5}}]"),
            format!("[{begun},\n{{\"id\":5,\"name\":\"\",\"price_cents\":1}}]"),
            format!("[{begun},\n{{\"id\":5,\"name\":\"n\",\"price_cents\":-1}}]"),
            format!("[{begun},\n"),
        ] {
            let (sizes, read) = sizes(&fault, 3);
            let error = read.expect_err(&fault).to_string();
            assert!(error.contains("line 2"), "{error}");
            assert_eq!(sizes, [3], "the begun chunk is not handed on");
        }
        assert!(sizes("{}", 3).1.is_err());
        assert!(sizes("[] []", 3).1.is_err());
    }

    #[test]
    fn the_sinks_own_error_comes_out() {
        let text = format!("[{}]", items(9));
        let mut calls = 0;
        let read = read_chunks(text.as_bytes(), 3, |_| {
            calls += 1;
            if calls == 2 { Err("the database is gone".into()) } else { Ok(()) }
        });
        assert_eq!(read.expect_err("an error").to_string(), "the database is gone");
        assert_eq!(calls, 2, "nothing is read after it");
    }
}
