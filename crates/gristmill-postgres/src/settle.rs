//! Settling: settlements as the arrays that `settle_many` takes, and its
//! answers.

use std::sync::LazyLock;

use gristmill_core::policy::refused_follow_up::{Instead, faults, instead, taken_back};
use gristmill_core::settings::lease_fault;
use gristmill_core::settlement::need_turns;
use gristmill_core::{
    Became, ExtendAnswer, Extension, FollowUp, Limits, NewTask, Outcome, PutAnswer, QueueName,
    Refusal, Result, SettleAnswer, Settlement, StoreError, TaskId, TaskProgress, Timestamp, When,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::answer::{Answer, column};
use crate::codec::{self, encoding_number, span};
use crate::deadline::Class;
use crate::errors::{Intent, corrupt};
use crate::put::{self, Columns, Patience};
use crate::sql::{Sql, at};
use crate::store::Inner;
use crate::wire::{At, Uuid};

/// Stands for a follow-up that cannot be stored, whose fields may not even be
/// sent.
static BLANK: LazyLock<NewTask> = LazyLock::new(NewTask::default);

/// How often the follow-ups of a call may turn out to be refused: each time it is
/// asked again without those of at least one more task.
const ROUNDS: usize = 1_000;

/// A settlement, and what is recorded instead once a follow-up of it is refused.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    settlement: &'a Settlement,
    refused: Option<(Option<Instead>, Vec<PutAnswer>)>,
}

impl<'a> Asked<'a> {
    pub(crate) fn all(settlements: &'a [Settlement]) -> Vec<Self> {
        settlements.iter().map(|settlement| Asked { settlement, refused: None }).collect()
    }

    fn instead(&self) -> Option<&Instead> {
        self.refused.as_ref().and_then(|(instead, _)| instead.as_ref())
    }

    fn outcome(&self) -> &Outcome {
        self.instead().map_or(&self.settlement.outcome, |instead| &instead.outcome)
    }

    fn error(&self) -> Option<String> {
        match self.instead() {
            Some(instead) => Some(instead.error.clone()),
            None => self.settlement.outcome.error(),
        }
    }

    fn when(&self) -> Option<When> {
        match self.outcome() {
            Outcome::Retry { at, .. } => Some(*at),
            Outcome::Release { at, .. } => *at,
            _ => None,
        }
    }
}

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
    /// Whose each follow-up is, counted from one; negative when it was refused.
    of: Option<Vec<i32>>,
    queues: Option<Vec<&'a str>>,
    /// Nothing for a follow-up that is wrong in itself.
    payloads: Option<Vec<Option<&'a [u8]>>>,
    columns: Columns<'a>,
    own: bool,
    /// A settlement of the store's own does not wait long for somebody else's
    /// open transaction: others wait for the same connection.
    patience: Option<i32>,
    free: i32,
    kept: i32,
    now: Option<At>,
    in_turn: bool,
    /// What handlers returned, where one did.
    results: Option<Vec<Option<&'a [u8]>>>,
    result_encodings: Option<Vec<Option<i16>>>,
}

impl<'a> Settling<'a> {
    pub(crate) fn new(
        settlements: &'a [Settlement],
        asked: &[Asked<'a>],
        limits: &Limits,
        own: bool,
        now: Option<At>,
    ) -> Result<Self> {
        let plain = asked.iter().all(|a| matches!(a.outcome(), Outcome::Done));
        let mut of = Vec::new();
        let mut sent: Vec<(&FollowUp, bool)> = Vec::new();
        for (at, a) in asked.iter().enumerate() {
            let nth = i32::try_from(at + 1).unwrap_or(i32::MAX);
            let sound = faults(&a.settlement.follow_ups, limits);
            for (follow_up, fault) in a.settlement.follow_ups.iter().zip(sound) {
                of.push(if a.refused.is_some() { -nth } else { nth });
                sent.push((follow_up, a.refused.is_none() && fault.is_none()));
            }
        }
        let tasks = sent.iter().map(|(follow_up, fits)| match fits {
            true => &follow_up.task,
            false => &*BLANK,
        });
        let columns = Columns::of(&tasks.collect::<Vec<_>>())?;
        let result = |a: &Asked<'a>| match a.outcome() {
            Outcome::Done => a.settlement.result.as_ref(),
            _ => None,
        };
        let returned = asked.iter().any(|a| result(a).is_some()).then_some(());
        let some = (!sent.is_empty()).then_some(());
        let each = (!plain).then_some(());
        Ok(Settling {
            tokens: asked.iter().map(|a| Uuid(a.settlement.token)).collect(),
            ids: asked.iter().map(|a| a.settlement.id.0).collect(),
            outcomes: each.map(|()| asked.iter().map(|a| a.outcome().end().as_str()).collect()),
            errors: each
                .map(|()| asked.iter().map(|a| a.error().map(|e| limits.cut_error(&e))).collect()),
            ats: each.map(|()| {
                let at = |a: &Asked<'_>| match a.when() {
                    Some(at @ When::At(_)) => Some(At(at.instant(Timestamp::EPOCH))),
                    _ => None,
                };
                asked.iter().map(at).collect()
            }),
            delays: each.map(|()| {
                let delay = |a: &Asked<'_>| match a.when() {
                    Some(When::After(delay)) => Some(span(delay)),
                    _ => None,
                };
                asked.iter().map(delay).collect()
            }),
            started: each.map(|()| {
                let started = |a: &Asked<'_>| match a.outcome() {
                    Outcome::Release { started, .. } => *started,
                    _ => true,
                };
                asked.iter().map(started).collect()
            }),
            of: some.map(|()| of),
            queues: some.map(|()| sent.iter().map(|(f, _)| f.queue.as_str()).collect()),
            payloads: some.map(|()| {
                let bytes = |f: &'a FollowUp| f.task.payload.bytes.as_ref();
                sent.iter().map(|(f, fits)| fits.then(|| bytes(f))).collect()
            }),
            columns,
            own,
            patience: own.then_some(Patience::Turn.millis()),
            free: i32::try_from(limits.started_releases).unwrap_or(i32::MAX),
            kept: i32::try_from(limits.history).unwrap_or(i32::MAX),
            now,
            in_turn: need_turns(settlements),
            results: returned
                .map(|()| asked.iter().map(|a| result(a).map(|r| r.bytes.as_ref())).collect()),
            result_encodings: returned.map(|()| {
                asked.iter().map(|a| result(a).map(|r| encoding_number(r.encoding))).collect()
            }),
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
        let rest: [&(dyn ToSql + Sync); 8] = [
            &self.own,
            &self.patience,
            &self.free,
            &self.kept,
            &self.now,
            &self.in_turn,
            &self.results,
            &self.result_encodings,
        ];
        values.extend(rest);
        values
    }
}

/// What came back, before it is put together.
pub(crate) struct Settled {
    pub(crate) answers: Vec<SettleAnswer>,
    pub(crate) woken: Vec<QueueName>,
    /// Of them, those where something may stand anywhere in the order.
    freed: Vec<QueueName>,
    /// When the first of those falls due that went back.
    earliest: Option<Timestamp>,
}

/// Reads the answers of `settle_many`; nothing when it refused follow-ups, which
/// [`Inner::amend`] reads.
pub(crate) fn settled(row: &impl Answer, asked: &[Asked<'_>]) -> Result<Option<Settled>> {
    if column(row, at!(Settle.is_refused))? {
        return Ok(None);
    }
    let codes: Option<Vec<i16>> = column(row, at!(Settle.answers))?;
    let became: Vec<Option<i16>> =
        column::<Option<_>>(row, at!(Settle.became))?.unwrap_or_default();
    let run_ats: Vec<Option<At>> =
        column::<Option<_>>(row, at!(Settle.run_ats))?.unwrap_or_default();
    let woken: Vec<String> = column::<Option<_>>(row, at!(Settle.woken))?.unwrap_or_default();
    let puts = Puts::read(row)?;
    let mut nth = 0;
    let mut answers = Vec::with_capacity(asked.len());
    for (at, Asked { settlement, refused }) in asked.iter().enumerate() {
        let code = codes.as_ref().and_then(|codes| codes.get(at)).copied().unwrap_or(0);
        let first = nth;
        nth += settlement.follow_ups.len();
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
                let follow_ups = match refused {
                    Some((_, answers)) => answers.clone(),
                    None => settlement
                        .follow_ups
                        .iter()
                        .zip(first..)
                        .map(|(follow_up, nth)| puts.answer(nth, &follow_up.task))
                        .collect::<Result<_>>()?,
                };
                SettleAnswer::Recorded { became, follow_ups }
            }
            1 => SettleAnswer::AlreadyRecorded,
            2 => SettleAnswer::Gone,
            _ => SettleAnswer::LeaseLost,
        });
    }
    let freed: Vec<String> = column::<Option<_>>(row, at!(Settle.freed))?.unwrap_or_default();
    let named = |names: &[String]| -> Result<Vec<QueueName>> {
        names.iter().map(|name| codec::queue_name(name)).collect()
    };
    let earliest = run_ats.iter().flatten().map(|at| at.0).min();
    Ok(Some(Settled { answers, woken: named(&woken)?, freed: named(&freed)?, earliest }))
}

/// The follow-ups' answers, in the order they were sent.
struct Puts {
    outcomes: Vec<Option<i16>>,
    ids: Vec<Option<i64>>,
    run_ats: Vec<Option<At>>,
    sources: Vec<Option<String>>,
    details: Vec<Option<String>>,
    columns: Vec<Option<String>>,
}

impl Puts {
    fn read(row: &impl Answer) -> Result<Self> {
        Ok(Puts {
            outcomes: column::<Option<_>>(row, at!(Settle.follow_ups))?.unwrap_or_default(),
            ids: column::<Option<_>>(row, at!(Settle.follow_ids))?.unwrap_or_default(),
            run_ats: column::<Option<_>>(row, at!(Settle.follow_run_ats))?.unwrap_or_default(),
            sources: column::<Option<_>>(row, at!(Settle.follow_sources))?.unwrap_or_default(),
            details: column::<Option<_>>(row, at!(Settle.follow_details))?.unwrap_or_default(),
            columns: column::<Option<_>>(row, at!(Settle.follow_columns))?.unwrap_or_default(),
        })
    }

    fn answer(&self, nth: usize, task: &NewTask) -> Result<PutAnswer> {
        let outcome = self.outcomes.get(nth).copied().flatten();
        put::answer(
            outcome.ok_or_else(|| corrupt("a follow-up", "it has no answer"))?,
            self.ids.get(nth).copied().flatten(),
            self.run_ats.get(nth).copied().flatten(),
            self.sources.get(nth).cloned().flatten(),
            None,
            task,
            &put::About::default(),
        )
    }

    /// Why this one cannot stand, if it cannot. `fault` is what is wrong with it
    /// in itself; `names` are those of all queues.
    fn refusal(
        &self,
        nth: usize,
        follow_up: &FollowUp,
        fault: Option<Refusal>,
        names: &[String],
    ) -> Result<Option<Refusal>> {
        let text = |list: &'_ [Option<String>]| list.get(nth).cloned().flatten();
        let Some(detail) = text(&self.details) else { return Ok(None) };
        Ok(Some(match (detail.as_str(), fault) {
            ("unknown_queue", _) => put::unknown(&follow_up.queue, names),
            ("refused", Some(fault)) => fault,
            (detail, _) => {
                let (table, column) = (text(&self.sources), text(&self.columns));
                let about = put::About {
                    capacity: None,
                    table: table.as_deref(),
                    column: column.as_deref(),
                };
                put::refusal(
                    detail,
                    self.ids.get(nth).copied().flatten(),
                    follow_up.task.key.as_deref(),
                    &about,
                )?
            }
        }))
    }
}

impl Inner {
    /// Records how attempts ended.
    pub(crate) async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleAnswer>> {
        if settlements.len() > self.limits.settlements {
            return Err(StoreError::invalid(format!(
                "{} settlements in one call and {} are allowed",
                settlements.len(),
                self.limits.settlements
            )));
        }
        if settlements.is_empty() {
            return Ok(Vec::new());
        }
        let settlements: Vec<Settlement> =
            settlements.into_iter().map(|one| one.admitted(&self.limits)).collect();
        let mut asked = Asked::all(&settlements);
        for _ in 0..ROUNDS {
            let settling = Settling::new(&settlements, &asked, &self.limits, true, self.now())?;
            let rows = self.pool.write(Sql::Settle, &settling.values()).await?;
            let row = rows.first().ok_or_else(|| corrupt("a settlement", "it has no answer"))?;
            if let Some(done) = settled(row, &asked)? {
                self.settled_woken(&done);
                return Ok(done.answers);
            }
            self.amend(row, &mut asked).await?;
        }
        Err(StoreError::busy("follow-ups are refused that could stand a moment ago".to_owned()))
    }

    /// Wakes who waits for what settlements brought. Claims begin from the front
    /// again only where something may stand before the place they are at: what
    /// went back mostly stands behind it.
    fn settled_woken(&self, done: &Settled) {
        for queue in &done.woken {
            if done.freed.contains(queue) {
                self.hints.forget(queue);
            } else if let Some(earliest) = done.earliest {
                self.hints.forget_past(queue, earliest);
            }
            self.notifier.tell(queue);
        }
        self.ear.wake.wake(&done.woken);
    }

    /// Decides what the attempts become whose follow-ups the store refused.
    pub(crate) async fn amend(&self, row: &impl Answer, asked: &mut [Asked<'_>]) -> Result<()> {
        let puts = Puts::read(row)?;
        let names = self.queue_names().await?;
        let mut nth = 0;
        for Asked { settlement, refused } in asked {
            let Settlement { outcome, follow_ups, .. } = settlement;
            let mut refusals = Vec::with_capacity(follow_ups.len());
            for (follow_up, fault) in follow_ups.iter().zip(faults(follow_ups, &self.limits)) {
                refusals.push(puts.refusal(nth, follow_up, fault, &names)?);
                nth += 1;
            }
            if refusals.iter().any(Option::is_some) {
                let answers = taken_back(refusals);
                let changed = instead(outcome, follow_ups, &answers, &self.limits);
                *refused = Some((changed, answers));
            }
        }
        Ok(())
    }

    /// Prolongs leases.
    pub(crate) async fn extend(&self, extensions: &[Extension]) -> Result<Vec<ExtendAnswer>> {
        if let Some(fault) = extensions.iter().find_map(|e| lease_fault(e.lease)) {
            return Err(StoreError::invalid(fault));
        }
        let tokens: Vec<Uuid> = extensions.iter().map(|e| Uuid(e.token)).collect();
        let leases: Vec<i64> = extensions.iter().map(|e| span(e.lease)).collect();
        let news: Vec<(Uuid, &TaskProgress)> = extensions
            .iter()
            .flat_map(|e| e.progress.iter().map(|said| (Uuid(e.token), said)))
            .collect();
        let of: Vec<Uuid> = news.iter().map(|(token, _)| *token).collect();
        let ids: Vec<i64> = news.iter().map(|(_, said)| said.id.0).collect();
        let dones: Vec<i64> = news.iter().map(|(_, said)| number(said.progress.done())).collect();
        let totals: Vec<Option<i64>> =
            news.iter().map(|(_, said)| said.progress.total().map(number)).collect();
        let messages: Vec<&str> = news.iter().map(|(_, said)| said.progress.message()).collect();
        let shortest = extensions.iter().map(|e| e.lease).min().unwrap_or_default();
        let deadline = self.pool.deadline(Class::Heartbeat);
        let deadline = deadline.sooner(self.pool.timeouts.of_lease(shortest));
        let now = self.now();
        let values: [&(dyn ToSql + Sync); 8] =
            [&tokens, &leases, &of, &ids, &dones, &totals, &messages, &now];
        let rows = self.pool.query(Sql::Extend, &values, Intent::Write, deadline).await?;
        let tasks = |row: &Row, at| -> Result<Vec<TaskId>> {
            Ok(column::<Vec<i64>>(row, at)?.into_iter().map(TaskId).collect())
        };
        rows.iter()
            .map(|row| {
                Ok(if column(row, at!(Extend.extended))? {
                    ExtendAnswer::Extended {
                        cancelled: tasks(row, at!(Extend.cancelled))?,
                        lost: tasks(row, at!(Extend.lost))?,
                    }
                } else {
                    ExtendAnswer::LeaseLost
                })
            })
            .collect()
    }
}

/// A number as the functions take it.
fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Why the first *done* of these is not, if a follow-up of one was refused:
/// inside the caller's transaction nothing is settled then.
pub(crate) fn not_done(asked: &[Asked<'_>]) -> Option<StoreError> {
    let mut done = asked.iter().filter(|a| matches!(a.settlement.outcome, Outcome::Done));
    let why = done.find_map(Asked::instead)?;
    Some(StoreError::invalid(why.error.clone()))
}
