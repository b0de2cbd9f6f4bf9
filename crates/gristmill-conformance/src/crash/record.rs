//! One line a step of a child, written before and after every call.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// What a child did or was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    /// It is about to put this payload.
    PutTried { payload: u64 },
    /// The put was acknowledged as this task.
    PutDone { payload: u64, id: i64 },
    /// It was given this task.
    Claimed { payload: u64, id: i64, claims: u32, token: String },
    /// It is about to settle.
    SettleTried { id: i64, claims: u32, how: How },
    /// The settlement was answered.
    SettleDone { id: i64, claims: u32, how: How, answer: Answer },
}

/// How a child settles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Done,
    Retry,
    Release,
    Fail,
}

/// What it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Recorded,
    AlreadyRecorded,
    Gone,
    LeaseLost,
}

/// A record with its time, in microseconds of the machine's clock. All
/// children run on one machine, so their times can be compared.
pub(crate) type Timed = (u64, Record);

macro_rules! words {
    ($type:ident { $($variant:ident = $word:literal),+ }) => {
        impl $type {
            fn word(self) -> &'static str {
                match self { $($type::$variant => $word),+ }
            }
            fn read(word: &str) -> Option<Self> {
                match word { $($word => Some($type::$variant),)+ _ => None }
            }
        }
    };
}
words!(How { Done = "done", Retry = "retry", Release = "release", Fail = "fail" });
words!(Answer { Recorded = "recorded", AlreadyRecorded = "already", Gone = "gone", LeaseLost = "lost" });

impl Record {
    fn line(&self, time: u64) -> String {
        match self {
            Record::PutTried { payload } => format!("{time} put? {payload}\n"),
            Record::PutDone { payload, id } => format!("{time} put! {payload} {id}\n"),
            Record::Claimed { payload, id, claims, token } => {
                format!("{time} claimed {payload} {id} {claims} {token}\n")
            }
            Record::SettleTried { id, claims, how } => {
                format!("{time} settle? {id} {claims} {}\n", how.word())
            }
            Record::SettleDone { id, claims, how, answer } => {
                format!("{time} settle! {id} {claims} {} {}\n", how.word(), answer.word())
            }
        }
    }

    fn read(line: &str) -> Option<Timed> {
        let words: Vec<&str> = line.split(' ').collect();
        let time = words.first()?.parse().ok()?;
        let record = match words.get(1..)? {
            ["put?", payload] => Record::PutTried { payload: payload.parse().ok()? },
            ["put!", payload, id] => {
                Record::PutDone { payload: payload.parse().ok()?, id: id.parse().ok()? }
            }
            ["claimed", payload, id, claims, token] => Record::Claimed {
                payload: payload.parse().ok()?,
                id: id.parse().ok()?,
                claims: claims.parse().ok()?,
                token: (*token).to_owned(),
            },
            ["settle?", id, claims, how] => Record::SettleTried {
                id: id.parse().ok()?,
                claims: claims.parse().ok()?,
                how: How::read(how)?,
            },
            ["settle!", id, claims, how, answer] => Record::SettleDone {
                id: id.parse().ok()?,
                claims: claims.parse().ok()?,
                how: How::read(how)?,
                answer: Answer::read(answer)?,
            },
            _ => return None,
        };
        Some((time, record))
    }
}

/// Appends records to a child's own file. One write a line and no buffer: what
/// was written stands even when the process is killed right after.
pub(crate) struct Recorder(File);

impl Recorder {
    pub(crate) fn open(folder: &Path) -> Self {
        let name = format!("{}-{}.log", now(), std::process::id());
        let file = OpenOptions::new().create(true).append(true).open(folder.join(name));
        Recorder(file.expect("the log can be written"))
    }

    pub(crate) fn note(&mut self, record: &Record) {
        self.0.write_all(record.line(now()).as_bytes()).expect("the log can be written");
    }
}

/// Everything all children wrote, by time. A line cut short by a kill is the
/// last of its file and is left out: nothing after it happened.
pub(crate) fn read_all(folder: &Path) -> Vec<Timed> {
    let mut records = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder of logs") {
        let text = std::fs::read_to_string(entry.expect("a log").path()).expect("a log");
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for line in whole.lines() {
            records.push(Record::read(line).unwrap_or_else(|| panic!("not a record: {line}")));
        }
    }
    records.sort_by_key(|(time, _)| *time);
    records
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    u64::try_from(since.as_micros()).expect("a date before the year 500,000")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_its_line() {
        let token = "00ff".to_owned();
        for record in [
            Record::PutTried { payload: 7 },
            Record::PutDone { payload: 7, id: 1 },
            Record::Claimed { payload: 7, id: 1, claims: 2, token },
            Record::SettleTried { id: 1, claims: 2, how: How::Retry },
            Record::SettleDone { id: 1, claims: 2, how: How::Fail, answer: Answer::LeaseLost },
        ] {
            let line = record.line(5);
            assert_eq!(Record::read(line.trim_end()), Some((5, record)));
        }
    }
}
