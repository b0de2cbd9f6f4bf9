//! A checkpoint on its way. What takes long is done by a thread, between turns:
//! making a segment, syncing a whole file system, waiting until a name is durable.
//! What others could meet halfway is done in a turn, and takes no time.

use std::path::PathBuf;
use std::thread::JoinHandle;

use gristmill_core::{Result, StoreError, Timestamp, Token};

use crate::checkpoint::Prepared;
use crate::errors::At;
use crate::held::Held;
use crate::intent::Keep;
use crate::segment::{self, Next};
use crate::snapshot;
use crate::spool::{IDS, INTENT, Spool};

/// A checkpoint, and what a thread is doing for it.
#[derive(Debug)]
pub(crate) struct UnderWay {
    stage: Stage,
    thread: JoinHandle<Result<()>>,
}

#[derive(Debug)]
enum Stage {
    /// The next segment is made aside.
    Segment { next: u64, aside: PathBuf },
    /// It has its name, which is being made durable.
    SegmentNamed { next: u64 },
    /// The files are synced, and the state and the ids written aside.
    Files(Prepared),
    /// The ids have their name, which is being made durable.
    IdsNamed(Prepared),
    /// So has the state.
    StateNamed(Prepared),
}

fn by_thread(stage: Stage, work: impl FnOnce() -> Result<()> + Send + 'static) -> UnderWay {
    UnderWay { stage, thread: std::thread::spawn(work) }
}

/// Syncs a folder's names, by a thread.
fn name(stage: Stage, spool: &Spool, folder: &'static str) -> UnderWay {
    let spool = spool.clone();
    by_thread(stage, move || {
        let folder = if folder.is_empty() { spool.root().to_owned() } else { spool.at(folder) };
        spool.sync_folder(&folder)
    })
}

impl UnderWay {
    /// Begins with the segment that it will lead to.
    pub(crate) fn begin(held: &Held, intent_bytes: u64) -> Result<Self> {
        let spool = held.spool.clone();
        let next = held.intent.position().segment + 1;
        let aside = spool.on_its_way(&format!("segment-{}", Token::random()?));
        let stage = Stage::Segment { next, aside: aside.clone() };
        Ok(by_thread(stage, move || segment::make_spare(&spool, &aside, intent_bytes)))
    }

    /// Goes on, if the thread is done; in a turn. Nothing comes back at the end.
    pub(crate) fn go_on(self, held: &mut Held, now: Timestamp) -> Result<Option<Self>> {
        if !self.thread.is_finished() {
            return Ok(Some(self));
        }
        let done = join(self.thread);
        match self.stage {
            Stage::Segment { next, aside } => {
                done?;
                if held.intent.position().segment + 1 != next {
                    // Another process made one meanwhile.
                    held.spool.unlink(&aside).at(&aside)?;
                    return Ok(None);
                }
                segment::place_spare(&held.spool, next, &aside)?;
                Ok(Some(name(Stage::SegmentNamed { next }, &held.spool, INTENT)))
            }
            Stage::SegmentNamed { next } => {
                done?;
                if held.intent.position().segment + 1 != next {
                    return Ok(None);
                }
                let prepared = held.begin_checkpoint(now, Next::Ready)?;
                let (spool, texts) = (held.spool.clone(), prepared.texts());
                Ok(Some(by_thread(Stage::Files(prepared), move || {
                    sync_everything(&spool)?;
                    texts.write_aside(&spool)
                })))
            }
            Stage::Files(prepared) => {
                if done.is_err() {
                    held.intent.set_unfinished()?;
                    held.take_back(prepared);
                    return Err(StoreError::unavailable(
                        "the files could not be synced".to_owned(),
                    ));
                }
                if snapshot::segment(&held.spool)? >= prepared.segment {
                    // Another process has written a later one.
                    prepared.drop_asides(&held.spool);
                    return Ok(Some(name(Stage::StateNamed(prepared), &held.spool, "")));
                }
                if !prepared.has_ids() {
                    return name_state(held, prepared);
                }
                match prepared.name_ids(&held.spool) {
                    Ok(()) => Ok(Some(name(Stage::IdsNamed(prepared), &held.spool, IDS))),
                    Err(error) => failed(held, prepared, error),
                }
            }
            Stage::IdsNamed(prepared) => match done {
                Ok(()) => name_state(held, prepared),
                Err(error) => failed(held, prepared, error),
            },
            Stage::StateNamed(prepared) => match done {
                Ok(()) => {
                    held.end_checkpoint(&prepared, Keep::Few)?;
                    Ok(None)
                }
                Err(error) => failed(held, prepared, error),
            },
        }
    }

    /// Waits for the thread, because a checkpoint is to be made in one go, or none.
    pub(crate) fn give_up(self) -> GivenUp {
        let _ = join(self.thread);
        GivenUp(self.stage)
    }
}

/// A checkpoint that is not to be.
#[derive(Debug)]
pub(crate) struct GivenUp(Stage);

impl GivenUp {
    /// The next one has to do with what this one was about.
    pub(crate) fn hand_over(self, held: &mut Held) {
        match self.0 {
            Stage::Segment { aside, .. } => {
                let _ = held.spool.unlink(&aside);
            }
            Stage::SegmentNamed { .. } => {}
            Stage::Files(prepared) | Stage::IdsNamed(prepared) | Stage::StateNamed(prepared) => {
                held.touched.set_many();
                held.take_back(prepared);
            }
        }
    }
}

fn join(thread: JoinHandle<Result<()>>) -> Result<()> {
    thread
        .join()
        .unwrap_or_else(|_| Err(StoreError::unavailable("a thread ended early".to_owned())))
}

#[cfg(target_os = "linux")]
fn sync_everything(spool: &Spool) -> Result<()> {
    spool.sync_everything()
}

/// Elsewhere every checkpoint is made in one go.
#[cfg(not(target_os = "linux"))]
fn sync_everything(_: &Spool) -> Result<()> {
    Err(StoreError::unavailable("one file system cannot be synced by itself here".to_owned()))
}

fn name_state(held: &mut Held, prepared: Prepared) -> Result<Option<UnderWay>> {
    let named = match snapshot::segment(&held.spool) {
        Ok(written) if written >= prepared.segment => {
            prepared.drop_asides(&held.spool);
            Ok(())
        }
        Ok(_) => prepared.name_state(&held.spool),
        Err(error) => Err(error),
    };
    match named {
        Ok(()) => Ok(Some(name(Stage::StateNamed(prepared), &held.spool, ""))),
        Err(error) => failed(held, prepared, error),
    }
}

fn failed(held: &mut Held, prepared: Prepared, error: StoreError) -> Result<Option<UnderWay>> {
    prepared.drop_asides(&held.spool);
    held.not_finished(prepared)?;
    Err(error)
}
