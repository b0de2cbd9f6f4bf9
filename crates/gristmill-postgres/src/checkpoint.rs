//! What handlers keep for their tasks' next attempts (function/settle.sql).

use gristmill_core::{Checkpoint, CheckpointAnswer, Refusal, Result};

use crate::answer::column;
use crate::errors::corrupt;
use crate::sql::{Sql, at};
use crate::store::Inner;
use crate::wire::Uuid;

impl Inner {
    /// Keeps checkpoints; one answer each.
    pub(crate) async fn checkpoint(&self, all: &[Checkpoint]) -> Result<Vec<CheckpointAnswer>> {
        let refuse = |one: &Checkpoint| self.limits.refuse_checkpoint(&one.state);
        let refused: Vec<Option<Refusal>> = all.iter().map(refuse).collect();
        let fit = all.iter().zip(&refused).filter(|(_, refused)| refused.is_none());
        let fit: Vec<&Checkpoint> = fit.map(|(one, _)| one).collect();
        let mut kept = self.keep(&fit).await?.into_iter();
        let answer = |refused: Option<Refusal>| match refused {
            Some(why) => Ok(CheckpointAnswer::Refused(why)),
            None => kept.next().ok_or_else(|| corrupt("a checkpoint", "an answer is missing")),
        };
        refused.into_iter().map(answer).collect()
    }

    async fn keep(&self, fit: &[&Checkpoint]) -> Result<Vec<CheckpointAnswer>> {
        if fit.is_empty() {
            return Ok(Vec::new());
        }
        let tokens: Vec<Uuid> = fit.iter().map(|one| Uuid(one.token)).collect();
        let ids: Vec<i64> = fit.iter().map(|one| one.id.0).collect();
        let states: Vec<&[u8]> = fit.iter().map(|one| &one.state[..]).collect();
        let rows = self.pool.write(Sql::Checkpoint, &[&tokens, &ids, &states]).await?;
        let row = rows.first().ok_or_else(|| corrupt("a checkpoint", "it has no answer"))?;
        let codes: Vec<i16> = column(row, at!(Checkpoint.answers))?;
        let answer = |code| match code {
            0 => CheckpointAnswer::Kept,
            2 => CheckpointAnswer::Gone,
            _ => CheckpointAnswer::LeaseLost,
        };
        Ok(codes.into_iter().map(answer).collect())
    }
}
