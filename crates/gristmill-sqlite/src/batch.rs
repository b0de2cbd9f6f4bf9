//! Tasks of one put that say nothing but their payloads, eight rows a statement.
//!
//! What a statement costs before and after its row (its cursors opened and closed, its
//! values bound) is nearly half of what it costs to insert a task alone. Eight, because
//! of a put's tasks every tenth or so has a key, and one with a key goes alone: what
//! stands for it is looked up first.

use gristmill_core::{NewTask, PutAnswer, Queue, Result, TaskId, Unique};

use crate::checksum;
use crate::moves::Entry;
use crate::row::encoding_number;
use crate::sql::{Sql, bind};
use crate::write::Write;

/// Tasks a statement.
pub(crate) const EIGHT: usize = 8;

/// How many at the front can go together: they say the same of everything but their
/// payloads, and each of them is enqueued whatever stands.
pub(crate) fn alike(tasks: &[NewTask]) -> usize {
    let Some(first) = tasks.first() else { return 0 };
    let goes = |task: &NewTask| {
        let NewTask { payload, key, group, source, priority, start, id, headers, settings } = task;
        key.is_none()
            && group.is_none()
            && source.is_none()
            && id.is_none()
            && headers.is_empty()
            && settings.is_empty()
            && *priority == first.priority
            && *start == first.start
            && payload.encoding == first.payload.encoding
    };
    tasks.iter().take_while(|task| goes(task)).count()
}

impl Write<'_, '_> {
    /// Whether tasks of this queue are enqueued whatever stands, when they have no keys.
    pub(crate) fn takes_eight(&self, queue: &Queue) -> bool {
        self.unentered.is_some()
            && queue.settings.capacity.is_none()
            && queue.settings.bind.is_none()
    }

    /// Puts eight that are alike and within the limits.
    pub(crate) fn put_eight(
        &mut self,
        queue: &Queue,
        tasks: &[NewTask; EIGHT],
    ) -> Result<[PutAnswer; EIGHT]> {
        let [one, ..] = tasks;
        let first = self.next_ids(8)?;
        let run_at = one.start.run_at(self.now);
        let payloads: [&[u8]; EIGHT] = tasks.each_ref().map(|task| task.payload.bytes.as_ref());
        let sums = payloads.map(|payload| checksum::of(one.payload.encoding, payload));
        let [payload_1, payload_2, payload_3, payload_4, ..] = payloads;
        let [.., payload_5, payload_6, payload_7, payload_8] = payloads;
        let [checksum_1, checksum_2, checksum_3, checksum_4, ..] = sums;
        let [.., checksum_5, checksum_6, checksum_7, checksum_8] = sums;
        self.db.run(
            Sql::PutEight,
            bind!(PutEight {
                first: first.0,
                queue: queue.number,
                unique_active: queue.settings.unique == Unique::Active,
                priority: one.priority,
                run_at: run_at.as_micros(),
                created_at: self.now.as_micros(),
                encoding: encoding_number(one.payload.encoding),
                payload_1,
                checksum_1,
                payload_2,
                checksum_2,
                payload_3,
                checksum_3,
                payload_4,
                checksum_4,
                payload_5,
                checksum_5,
                payload_6,
                checksum_6,
                payload_7,
                checksum_7,
                payload_8,
                checksum_8
            }),
        )?;
        let ids: [i64; EIGHT] = [0, 1, 2, 3, 4, 5, 6, 7].map(|nth| first.0 + nth);
        for id in ids {
            let (source, group) = (None, None);
            self.enter_new(queue, &Entry { id, priority: one.priority, run_at, source, group })?;
        }
        Ok(ids.map(|id| PutAnswer::Enqueued { id: TaskId(id) }))
    }
}
