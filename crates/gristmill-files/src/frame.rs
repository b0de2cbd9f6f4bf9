//! What is written to the intent: one frame for all that a group of calls
//! decided, whole or not at all.

use std::io::{self, Read, Write};

use bytes::Bytes;
use gristmill_core::{State, TaskId};
use sha2::{Digest, Sha256};

use crate::fact::Fact;

const MAGIC: &[u8; 4] = b"GMi1";
/// The last bytes of a frame: whether a process was killed while it wrote one is
/// told by whether they are there, because room behind the last frame is zeros.
const END: &[u8; 4] = b"GMi.";
/// Bytes around a frame's body: the mark, its length, the checksum, and the end.
const AROUND: u64 = 4 + 8 + 16 + 4;

/// What a frame's checksum is made with beside its bytes: a secret of the folder
/// and the frame's place. A payload that looks like a frame is none, wherever a
/// search for the next whole one meets it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seal {
    pub(crate) secret: [u8; 16],
    pub(crate) segment: u64,
    pub(crate) offset: u64,
}

impl Seal {
    fn begin(self) -> Sha256 {
        let mut hash = Sha256::new();
        hash.update(self.secret);
        hash.update(self.segment.to_le_bytes());
        hash.update(self.offset.to_le_bytes());
        hash
    }
}

/// One thing that is so from now on. Each says what is true afterwards and not
/// what to change, so that doing it twice is doing it once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Something that is not a task's file.
    Fact(Box<Fact>),
    /// A task's file stands in this folder with these bytes, and in no other.
    File { state: State, id: TaskId, queue: String, header: String, payload: Bytes },
    /// A task's file stands in this folder with the bytes it had.
    Move { state: State, id: TaskId, queue: String },
    /// A task's file is gone.
    Remove { id: TaskId, queue: String },
    /// It goes on in this segment.
    Next(u64),
}

fn put_bytes(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(bytes)
}

fn put_task(to: &mut impl Write, tag: u8, state: State, id: TaskId, queue: &str) -> io::Result<()> {
    let state = State::ALL.iter().position(|known| *known == state).unwrap_or_default();
    to.write_all(&[tag, u8::try_from(state).unwrap_or_default()])?;
    to.write_all(&id.0.to_le_bytes())?;
    put_bytes(to, queue.as_bytes())
}

impl Entry {
    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Entry::Fact(fact) => {
                to.write_all(b"F")?;
                put_bytes(to, &serde_json::to_vec(fact.as_ref())?)
            }
            Entry::File { state, id, queue, header, payload } => {
                put_task(to, b'T', *state, *id, queue)?;
                put_bytes(to, header.as_bytes())?;
                put_bytes(to, payload)
            }
            Entry::Move { state, id, queue } => put_task(to, b'M', *state, *id, queue),
            Entry::Remove { id, queue } => put_task(to, b'X', State::Pending, *id, queue),
            Entry::Next(segment) => {
                to.write_all(b"N")?;
                to.write_all(&segment.to_le_bytes())
            }
        }
    }

    fn read(from: &mut Cursor) -> Option<Entry> {
        let tag = from.array::<1>()?;
        Some(match &tag {
            b"F" => Entry::Fact(Box::new(serde_json::from_slice(&from.bytes()?).ok()?)),
            b"N" => Entry::Next(u64::from_le_bytes(from.array()?)),
            tag => {
                let [state] = from.array::<1>()?;
                let state = *State::ALL.get(usize::from(state))?;
                let id = TaskId(i64::from_le_bytes(from.array()?));
                let queue = from.text()?;
                match tag {
                    b"T" => Entry::File {
                        state,
                        id,
                        queue,
                        header: from.text()?,
                        payload: from.bytes()?,
                    },
                    b"M" => Entry::Move { state, id, queue },
                    b"X" => Entry::Remove { id, queue },
                    _ => return None,
                }
            }
        })
    }
}

/// A frame's body that is being read.
struct Cursor {
    left: Bytes,
}

impl Cursor {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let found = *self.left.first_chunk::<N>()?;
        self.left = self.left.slice(N..);
        Some(found)
    }

    fn bytes(&mut self) -> Option<Bytes> {
        let len = usize::try_from(u64::from_le_bytes(self.array()?)).ok()?;
        (len <= self.left.len()).then(|| self.left.split_to(len))
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }
}

/// Counts and sums up what passes through.
struct Summing<W> {
    to: W,
    hash: Sha256,
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hash.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Appends a frame; returns its length.
pub(crate) fn append(to: &mut impl Write, entries: &[Entry], seal: Seal) -> io::Result<u64> {
    let mut counting = Counting::default();
    for entry in entries {
        entry.write(&mut counting)?;
    }
    to.write_all(MAGIC)?;
    let mut summing = Summing { to: &mut *to, hash: seal.begin() };
    summing.write_all(&counting.0.to_le_bytes())?;
    for entry in entries {
        entry.write(&mut summing)?;
    }
    let sum = summing.hash.finalize();
    to.write_all(sum.get(..16).unwrap_or_default())?;
    to.write_all(END)?;
    Ok(counting.0 + AROUND)
}

/// Counts what would be written.
#[derive(Default)]
struct Counting(u64);

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What stands at a place in the intent.
#[derive(Debug)]
pub(crate) enum Found {
    /// A frame, and its length.
    Whole(Vec<Entry>, u64),
    /// Room for one: zeros.
    Nothing,
    /// The beginning of one: what a killed process leaves at the end.
    Torn,
    /// Something that no process left so.
    Wrong,
}

/// The next frame; `left` bytes follow.
pub(crate) fn read(from: &mut impl Read, left: u64, seal: Seal) -> io::Result<Found> {
    let (mut magic, mut length, mut sum, mut end) = ([0u8; 4], [0u8; 8], [0u8; 16], [0u8; 4]);
    if left < AROUND {
        let mut rest = Vec::new();
        from.take(left).read_to_end(&mut rest)?;
        let nothing = rest.iter().all(|byte| *byte == 0);
        return Ok(if nothing { Found::Nothing } else { Found::Torn });
    }
    from.read_exact(&mut magic)?;
    from.read_exact(&mut length)?;
    let body = u64::from_le_bytes(length);
    if magic == [0; 4] {
        return Ok(Found::Nothing);
    }
    if magic != *MAGIC {
        return Ok(if is_cut(magic, MAGIC) { Found::Torn } else { Found::Wrong });
    }
    if body > left - AROUND {
        return Ok(Found::Torn);
    }
    let mut bytes = vec![0u8; usize::try_from(body).map_err(io::Error::other)?];
    from.read_exact(&mut bytes)?;
    from.read_exact(&mut sum)?;
    from.read_exact(&mut end)?;
    if is_cut(end, END) {
        return Ok(Found::Torn);
    }
    let mut hash = seal.begin();
    hash.update(length);
    hash.update(&bytes);
    if end != *END || !hash.finalize().starts_with(&sum) {
        return Ok(Found::Wrong);
    }
    let mut cursor = Cursor { left: Bytes::from(bytes) };
    let mut entries = Vec::new();
    while !cursor.left.is_empty() {
        let Some(entry) = Entry::read(&mut cursor) else {
            return Err(io::Error::other("a whole frame holds something unknown"));
        };
        entries.push(entry);
    }
    Ok(Found::Whole(entries, body + AROUND))
}

/// Whether only the first of these bytes were written, or none, where zeros were.
fn is_cut(found: [u8; 4], whole: &[u8; 4]) -> bool {
    let written = found.iter().zip(whole).take_while(|(found, whole)| found == whole).count();
    written < whole.len() && found.iter().skip(written).all(|byte| *byte == 0)
}

/// Where the next whole frame begins in these bytes, after the first; `seal` is
/// that of their beginning.
pub(crate) fn next_whole(bytes: &[u8], seal: Seal) -> Option<usize> {
    let mut from = 1;
    loop {
        let rest = bytes.get(from..)?;
        let at = from + rest.windows(MAGIC.len()).position(|four| four == MAGIC)?;
        let mut candidate = bytes.get(at..)?;
        let (left, seal) =
            (candidate.len() as u64, Seal { offset: seal.offset + at as u64, ..seal });
        if matches!(read(&mut candidate, left, seal), Ok(Found::Whole(..)) | Err(_)) {
            return Some(at);
        }
        from = at + 1;
    }
}
