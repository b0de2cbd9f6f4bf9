//! Settling: settlements as the arrays that `settle_many` takes, and its
//! answers.

use std::collections::HashSet;
use std::sync::LazyLock;

use gristmill_core::settings::lease_fault;
use gristmill_core::{
    Became, ExtendAnswer, Extension, FollowUp, Limits, NewTask, Outcome, PutAnswer, QueueName,
    Result, SettleAnswer, Settlement, StoreError, TaskId, When,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::answer::{Answer, column};
use crate::codec::{self, span};
use crate::errors::corrupt;
use crate::held::Patience;
use crate::put::{Columns, follow_up};
use crate::sql::Sql;
use crate::store::Inner;
use crate::wire::{At, Uuid};

/// Stands for a follow-up that cannot be stored, whose fields may not even be
/// sent.
static BLANK: LazyLock<NewTask> = LazyLock::new(NewTask::default);

/// Settlements as columns; what no settlement says is absent.
#[derive(Debug)]
pub(crate) struct Settling<'a> {
    tokens: Vec<Uuid>,
    ids: Vec<i64>,
    outcomes: Option<Vec<&'static str>>,
    errors: Option<Vec<Option<String>>>,
    ats: Option<Vec<Option<At>>>,
    delays: Option<Vec<Option<i64>>>,
    started: Option<Vec<bool>>,
    of: Option<Vec<i32>>,
    queues: Option<Vec<&'a str>>,
    /// Nothing for a follow-up that the limits refuse: it is only counted.
    payloads: Option<Vec<Option<&'a [u8]>>>,
    columns: Columns<'a>,
    sent: Vec<(usize, &'a FollowUp)>,
    own: bool,
    /// A settlement of the store's own does not wait long for somebody else's
    /// open transaction: others wait for the same connection.
    patience: Option<i32>,
    free: i32,
    kept: i32,
    now: Option<At>,
}

impl<'a> Settling<'a> {
    pub(crate) fn new(
        settlements: &'a [Settlement],
        limits: &Limits,
        own: bool,
        now: Option<At>,
    ) -> Result<Self> {
        // All at once, unless a task is named twice: then the order counts.
        let plain = settlements
            .iter()
            .all(|s| matches!(s.outcome, Outcome::Done) && s.follow_ups.is_empty())
            && settlements.iter().map(|s| s.id).collect::<HashSet<_>>().len() == settlements.len();
        let sent: Vec<(usize, &FollowUp)> = settlements
            .iter()
            .enumerate()
            .flat_map(|(at, s)| s.follow_ups.iter().map(move |follow_up| (at, follow_up)))
            .collect();
        let fits = |follow_up: &FollowUp| limits.refuse(&follow_up.task).is_none();
        let tasks = sent.iter().map(|(_, follow_up)| match fits(follow_up) {
            true => &follow_up.task,
            false => &*BLANK,
        });
        let columns = Columns::of(&tasks.collect::<Vec<_>>())?;
        let some = (!sent.is_empty()).then_some(());
        let each = |plain: bool| (!plain).then_some(());
        let when = |s: &Settlement| match &s.outcome {
            Outcome::Retry { at, .. } => Some(*at),
            Outcome::Release { at, .. } => *at,
            _ => None,
        };
        Ok(Settling {
            tokens: settlements.iter().map(|s| Uuid(s.token)).collect(),
            ids: settlements.iter().map(|s| s.id.0).collect(),
            outcomes: each(plain)
                .map(|()| settlements.iter().map(|s| s.outcome.end().as_str()).collect()),
            errors: each(plain).map(|()| {
                let cut = |s: &Settlement| s.outcome.error().map(|e| limits.cut_error(&e));
                settlements.iter().map(cut).collect()
            }),
            ats: each(plain).map(|()| {
                let at = |s: &Settlement| match when(s) {
                    Some(at @ When::At(_)) => {
                        Some(At(at.instant(gristmill_core::Timestamp::EPOCH)))
                    }
                    _ => None,
                };
                settlements.iter().map(at).collect()
            }),
            delays: each(plain).map(|()| {
                let delay = |s: &Settlement| match when(s) {
                    Some(When::After(delay)) => Some(span(delay)),
                    _ => None,
                };
                settlements.iter().map(delay).collect()
            }),
            started: each(plain).map(|()| {
                let started = |s: &Settlement| match s.outcome {
                    Outcome::Release { started, .. } => started,
                    _ => true,
                };
                settlements.iter().map(started).collect()
            }),
            of: some.map(|()| {
                sent.iter().map(|(at, _)| i32::try_from(at + 1).unwrap_or(i32::MAX)).collect()
            }),
            queues: some.map(|()| sent.iter().map(|(_, f)| f.queue.as_str()).collect()),
            payloads: some.map(|()| {
                let bytes = |f: &'a FollowUp| fits(f).then(|| f.task.payload.bytes.as_ref());
                sent.iter().map(|(_, f)| bytes(f)).collect()
            }),
            columns,
            sent,
            own,
            patience: own.then_some(Patience::Turn.millis()),
            free: i32::try_from(limits.started_releases).unwrap_or(i32::MAX),
            kept: i32::try_from(limits.history).unwrap_or(i32::MAX),
            now,
        })
    }

    pub(crate) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![
            &self.tokens,
            &self.ids,
            &self.outcomes,
            &self.errors,
            &self.ats,
            &self.delays,
            &self.started,
            &self.of,
            &self.queues,
            &self.payloads,
        ];
        values.extend(self.columns.values().into_iter().skip(1));
        let rest: [&(dyn ToSql + Sync); 5] =
            [&self.own, &self.patience, &self.free, &self.kept, &self.now];
        values.extend(rest);
        values
    }
}

/// What came back, before it is put together.
pub(crate) struct Settled {
    pub(crate) answers: Vec<SettleAnswer>,
    pub(crate) woken: Vec<QueueName>,
    /// Where a follow-up's queue is unknown: settlement, follow-up.
    pub(crate) unknown: Vec<(usize, usize)>,
}

/// Reads the answers of `settle_many`.
pub(crate) fn settled(
    row: &impl Answer,
    settlements: &[Settlement],
    settling: &Settling<'_>,
    limits: &Limits,
) -> Result<Settled> {
    let codes: Option<Vec<i16>> = column(row, 0)?;
    let became: Vec<Option<i16>> = column::<Option<_>>(row, 1)?.unwrap_or_default();
    let run_ats: Vec<Option<At>> = column::<Option<_>>(row, 2)?.unwrap_or_default();
    let woken: Vec<String> = column::<Option<_>>(row, 3)?.unwrap_or_default();
    let mut put = Puts::read(row, settling)?;
    let mut unknown = Vec::new();
    let mut answers = Vec::with_capacity(settlements.len());
    for (at, settlement) in settlements.iter().enumerate() {
        let code = codes.as_ref().and_then(|codes| codes.get(at)).copied().unwrap_or(0);
        answers.push(match code {
            0 => {
                let run_at = run_ats.get(at).copied().flatten();
                let became = match became.get(at).copied().flatten().unwrap_or(0) {
                    0 => Became::Done,
                    1 => Became::Pending {
                        run_at: run_at.ok_or_else(|| corrupt("a settlement", "no time"))?.0,
                    },
                    2 => Became::Failed,
                    _ => Became::Cancelled,
                };
                let mut follow_ups = Vec::with_capacity(settlement.follow_ups.len());
                for (nth, follow_up) in settlement.follow_ups.iter().enumerate() {
                    // An unknown queue is told before what the limits say.
                    let answer = match (put.next(&follow_up.task)?, limits.refuse(&follow_up.task))
                    {
                        (Some(_), Some(why)) => Some(PutAnswer::Refused(why)),
                        (answer, _) => answer,
                    };
                    follow_ups.push(answer.unwrap_or_else(|| {
                        unknown.push((at, nth));
                        PutAnswer::Refused(crate::put::unknown(&follow_up.queue, &[]))
                    }));
                }
                SettleAnswer::Recorded { became, follow_ups }
            }
            other => {
                put.skip(at);
                match other {
                    1 => SettleAnswer::AlreadyRecorded,
                    2 => SettleAnswer::Gone,
                    _ => SettleAnswer::LeaseLost,
                }
            }
        });
    }
    let woken = woken.iter().map(|name| codec::queue_name(name)).collect::<Result<_>>()?;
    Ok(Settled { answers, woken, unknown })
}

/// The follow-ups' answers, in the order they were sent.
struct Puts<'a> {
    sent: &'a [(usize, &'a FollowUp)],
    at: usize,
    outcomes: Vec<Option<i16>>,
    ids: Vec<Option<i64>>,
    run_ats: Vec<Option<At>>,
    sources: Vec<Option<String>>,
    details: Vec<Option<String>>,
}

impl<'a> Puts<'a> {
    fn read(row: &impl Answer, settling: &'a Settling<'a>) -> Result<Self> {
        Ok(Puts {
            sent: &settling.sent,
            at: 0,
            outcomes: column::<Option<_>>(row, 4)?.unwrap_or_default(),
            ids: column::<Option<_>>(row, 5)?.unwrap_or_default(),
            run_ats: column::<Option<_>>(row, 6)?.unwrap_or_default(),
            sources: column::<Option<_>>(row, 7)?.unwrap_or_default(),
            details: column::<Option<_>>(row, 8)?.unwrap_or_default(),
        })
    }

    fn next(&mut self, task: &NewTask) -> Result<Option<PutAnswer>> {
        let at = self.at;
        self.at += 1;
        let outcome = self.outcomes.get(at).copied().flatten();
        let outcome = outcome.ok_or_else(|| corrupt("a follow-up", "it has no answer"))?;
        let detail = self.details.get(at).and_then(Option::as_deref);
        follow_up(
            outcome,
            self.ids.get(at).copied().flatten(),
            self.run_ats.get(at).copied().flatten(),
            self.sources.get(at).cloned().flatten(),
            detail,
            task,
        )
    }

    /// Passes over the follow-ups of a settlement that was not recorded.
    fn skip(&mut self, of: usize) {
        while self.sent.get(self.at).is_some_and(|(at, _)| *at == of) {
            self.at += 1;
        }
    }
}

impl Inner {
    /// Records how attempts ended.
    pub(crate) async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleAnswer>> {
        if settlements.len() > self.limits.settlements {
            return Err(StoreError::Invalid(format!(
                "{} settlements in one call and {} are allowed",
                settlements.len(),
                self.limits.settlements
            )));
        }
        if settlements.is_empty() {
            return Ok(Vec::new());
        }
        let settling = Settling::new(&settlements, &self.limits, true, self.now())?;
        let rows = self.pool.write(Sql::Settle, &settling.values()).await?;
        let row = rows.first().ok_or_else(|| corrupt("a settlement", "it has no answer"))?;
        let mut done = settled(row, &settlements, &settling, &self.limits)?;
        self.name_unknown(&mut done, &settlements).await?;
        self.woken(&done.woken);
        Ok(done.answers)
    }

    /// Suggests a name where a follow-up's queue is unknown.
    pub(crate) async fn name_unknown(
        &self,
        done: &mut Settled,
        settlements: &[Settlement],
    ) -> Result<()> {
        if done.unknown.is_empty() {
            return Ok(());
        }
        let names = self.queue_names().await?;
        for (at, nth) in &done.unknown {
            let follow_up = settlements.get(*at).and_then(|s| s.follow_ups.get(*nth));
            if let Some(SettleAnswer::Recorded { follow_ups, .. }) = done.answers.get_mut(*at)
                && let (Some(answer), Some(follow_up)) = (follow_ups.get_mut(*nth), follow_up)
            {
                *answer = PutAnswer::Refused(crate::put::unknown(&follow_up.queue, &names));
            }
        }
        Ok(())
    }

    /// Prolongs leases.
    pub(crate) async fn extend(&self, extensions: &[Extension]) -> Result<Vec<ExtendAnswer>> {
        if let Some(fault) = extensions.iter().find_map(|e| lease_fault(e.lease)) {
            return Err(StoreError::Invalid(fault));
        }
        let tokens: Vec<Uuid> = extensions.iter().map(|e| Uuid(e.token)).collect();
        let leases: Vec<i64> = extensions.iter().map(|e| span(e.lease)).collect();
        let rows = self.pool.write(Sql::Extend, &[&tokens, &leases, &self.now()]).await?;
        let ids = |row: &Row, at| -> Result<Vec<TaskId>> {
            Ok(column::<Vec<i64>>(row, at)?.into_iter().map(TaskId).collect())
        };
        rows.iter()
            .map(|row| {
                Ok(if column(row, 0)? {
                    ExtendAnswer::Extended { cancelled: ids(row, 1)?, lost: ids(row, 2)? }
                } else {
                    ExtendAnswer::LeaseLost
                })
            })
            .collect()
    }
}
