//! Claims that take turns between groups.

use gristmill_core::{Queue, Result};

use crate::pick::{Entry, Picked};
use crate::sql::{Sql, at, bind};
use crate::write::Write;

impl Write<'_, '_> {
    /// Goes round the groups of each priority, from behind the one whose turn it was
    /// last, and takes one task of each at a time. `add` says whether it took the task,
    /// and whether nothing more is to be taken.
    pub(crate) fn go_round(
        &self,
        queue: &Queue,
        source: Option<&str>,
        mut add: impl FnMut(Entry, &str) -> Result<(bool, bool)>,
    ) -> Result<()> {
        self.each_level(queue, source, |level| {
            let last: Option<String> = self.db.one(
                Sql::TurnGet,
                bind!(TurnGet { queue: queue.number, priority: level }),
                |row| row.get(at!(TurnGet.grp)),
            )?;
            // Whoever had something may have more; the others have not.
            let mut round: Vec<(String, Entry)> = Vec::new();
            let (mut group, mut wrapped) = (last.clone(), last.is_none());
            loop {
                group = self.next_in_round(queue, level, group.as_deref())?;
                let Some(name) = &group else {
                    if wrapped {
                        break;
                    }
                    wrapped = true;
                    continue;
                };
                if wrapped && last.as_ref().is_some_and(|last| name > last) {
                    break;
                }
                if let Some(entry) = self.next_in_level(queue, level, name, source, None)? {
                    let (taken, full) = add(entry, name)?;
                    if full {
                        return Ok(true);
                    }
                    if taken {
                        round.push((name.clone(), entry));
                    }
                }
            }
            while !round.is_empty() {
                let mut next = Vec::new();
                for (name, behind) in round {
                    let behind = Some(behind);
                    let Some(entry) = self.next_in_level(queue, level, &name, source, behind)?
                    else {
                        continue;
                    };
                    let (taken, full) = add(entry, &name)?;
                    if full {
                        return Ok(true);
                    }
                    if taken {
                        next.push((name, entry));
                    }
                }
                round = next;
            }
            Ok(false)
        })
    }

    /// The next group with tasks in a level, or the first one. Those whose bucket is empty
    /// are passed by: there may be many, and they lose their turn.
    fn next_in_round(
        &self,
        queue: &Queue,
        level: i16,
        after: Option<&str>,
    ) -> Result<Option<String>> {
        match (after, self.empty_between(queue)) {
            (Some(after), Some((open, latest))) => self.db.one(
                Sql::ReadyRoundOpen,
                bind!(ReadyRoundOpen { queue: queue.number, priority: level, after, open, latest }),
                |row| row.get(at!(ReadyRoundOpen.grp)),
            ),
            (Some(after), None) => self.db.one(
                Sql::ReadyRound,
                bind!(ReadyRound { queue: queue.number, priority: level, after }),
                |row| row.get(at!(ReadyRound.grp)),
            ),
            (None, _) => self.db.one(
                Sql::ReadyRoundFirst,
                bind!(ReadyRoundFirst { queue: queue.number, priority: level }),
                |row| row.get(at!(ReadyRoundFirst.grp)),
            ),
        }
    }

    fn next_in_level(
        &self,
        queue: &Queue,
        level: i16,
        group: &str,
        source: Option<&str>,
        behind: Option<Entry>,
    ) -> Result<Option<Entry>> {
        let (_, after_run_at, after_id) = behind.unwrap_or((level, i64::MIN, i64::MIN));
        self.db.one(
            Sql::ReadyFirstInLevel,
            bind!(ReadyFirstInLevel {
                queue: queue.number,
                grp: group,
                priority: level,
                now: self.now.as_micros(),
                after_run_at,
                after_id,
                source
            }),
            |row| {
                Ok((
                    level,
                    row.get(at!(ReadyFirstInLevel.run_at))?,
                    row.get(at!(ReadyFirstInLevel.id))?,
                ))
            },
        )
    }

    /// Takes down whose turn it was, of tasks in the order in which they were picked, and
    /// puts them into the queue's.
    pub(crate) fn note_turns(&self, queue: &Queue, picked: &mut [Picked]) -> Result<()> {
        if !queue.settings.is_fair() {
            return Ok(());
        }
        for level in picked.chunk_by(|a, b| a.task.priority == b.task.priority) {
            let [.., last] = level else { continue };
            let grp = last.task.group.as_deref().unwrap_or_default();
            let priority = last.task.priority;
            self.db.run(Sql::TurnSet, bind!(TurnSet { queue: queue.number, priority, grp }))?;
        }
        picked.sort_by_key(|one| (one.task.priority, one.task.run_at, one.task.id));
        Ok(())
    }
}
