//! Lines from a file or a stream, which may be quiet for a while: whoever reads can say
//! how long it waits for the next one.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Result};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Bytes read in one go.
const BUFFER: usize = 1 << 16;

/// What came next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A line, or the beginning of one that is too long.
    Line(Vec<u8>),
    /// Nothing for as long as was to be waited. What came of a line is kept.
    Quiet,
    /// Nothing, ever.
    End,
}

/// Where lines come from.
pub(crate) struct LineSource {
    read: BufReader<Box<dyn Read + Send>>,
    /// What may keep us waiting.
    stream: Option<OwnedFd>,
    /// What came of the next line.
    line: Vec<u8>,
}

impl LineSource {
    /// Lines of a file, which keeps nobody waiting.
    pub(crate) fn file(file: File) -> Self {
        Self::of(Box::new(file), None)
    }

    /// Lines of standard input.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn input() -> Result<Self> {
        // Not through the buffer of `stdin()`: what stood in there would be no reason
        // for the stream to be ready.
        let stream = std::io::stdin().as_fd().try_clone_to_owned()?;
        let read = File::from(stream.try_clone()?);
        Ok(Self::of(Box::new(read), Some(stream)))
    }

    fn of(read: Box<dyn Read + Send>, stream: Option<OwnedFd>) -> Self {
        LineSource { read: BufReader::with_capacity(BUFFER, read), stream, line: Vec::new() }
    }

    /// Whether it may be quiet.
    pub(crate) const fn is_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// The next line without its end, waited for no longer than `patience`; one of more
    /// than `most` bytes is not read to its end.
    pub(crate) fn next(&mut self, patience: Option<Duration>, most: usize) -> Result<Next> {
        loop {
            if let (Some(patience), Some(stream)) = (patience, &self.stream)
                && self.read.buffer().is_empty()
                && !is_ready(stream, patience)?
            {
                return Ok(Next::Quiet);
            }
            let available = match self.read.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if available.is_empty() {
                let line = std::mem::take(&mut self.line);
                return Ok(if line.is_empty() { Next::End } else { Next::Line(line) });
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
            self.line.extend_from_slice(part);
            let used = part.len() + usize::from(end.is_some());
            self.read.consume(used);
            if end.is_some() || self.line.len() > most {
                return Ok(Next::Line(std::mem::take(&mut self.line)));
            }
        }
    }
}

/// Whether there is something to read, or an end, within this time.
fn is_ready(stream: &OwnedFd, patience: Duration) -> Result<bool> {
    let wait = Timespec::try_from(patience).map_err(|_| ErrorKind::InvalidInput)?;
    match poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&wait)) {
        Ok(ready) => Ok(ready > 0),
        // Some signal: to look once more is no harm.
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn of_a_pipe() -> (std::io::PipeWriter, LineSource) {
        let (read, write) = std::io::pipe().unwrap();
        let stream = OwnedFd::from(read);
        let file = File::from(stream.try_clone().unwrap());
        (write, LineSource::of(Box::new(file), Some(stream)))
    }

    #[test]
    fn a_quiet_stream_keeps_what_came_of_a_line() {
        let (mut write, mut source) = of_a_pipe();
        let soon = Some(Duration::from_millis(1));
        assert_eq!(source.next(soon, 100).unwrap(), Next::Quiet);
        write.write_all(b"one\ntw").unwrap();
        assert_eq!(source.next(soon, 100).unwrap(), Next::Line(b"one".to_vec()));
        assert_eq!(source.next(soon, 100).unwrap(), Next::Quiet);
        write.write_all(b"o\nthree").unwrap();
        assert_eq!(source.next(soon, 100).unwrap(), Next::Line(b"two".to_vec()));
        drop(write);
        assert_eq!(source.next(soon, 100).unwrap(), Next::Line(b"three".to_vec()));
        assert_eq!(source.next(soon, 100).unwrap(), Next::End);
    }

    #[test]
    fn a_line_is_not_read_without_end() {
        let (mut write, mut source) = of_a_pipe();
        write.write_all(&[b'x'; 300]).unwrap();
        let Next::Line(line) = source.next(None, 100).unwrap() else { panic!("a line") };
        assert!(line.len() > 100);
    }
}
