//! Which tasks of a put go to the database, and all their answers in order.

use gristmill_core::{Limits, NewTask, PutAnswer, PutReport, Refusal, Result};

use crate::errors::corrupt;

/// A put whose impossible tasks are set apart: they need no database.
#[derive(Debug)]
pub(crate) struct Sifted<'a> {
    /// Those that go to the database, in order.
    pub(crate) fit: Vec<&'a NewTask>,
    /// The others' answers, by position.
    refused: Vec<Option<Refusal>>,
}

impl<'a> Sifted<'a> {
    pub(crate) fn new(tasks: &'a [NewTask], limits: &Limits) -> Self {
        let refused: Vec<Option<Refusal>> = tasks.iter().map(|task| limits.refuse(task)).collect();
        let fit = tasks.iter().zip(&refused).filter(|(_, why)| why.is_none());
        Sifted { fit: fit.map(|(task, _)| task).collect(), refused }
    }

    pub(crate) fn refused(&self) -> i32 {
        i32::try_from(self.refused.len() - self.fit.len()).unwrap_or(i32::MAX)
    }

    /// All answers in order, given those of the database.
    pub(crate) fn whole(self, answers: Vec<PutAnswer>) -> Result<PutReport> {
        // Where those stand that the database was asked about.
        let asked: Vec<usize> = (self.refused.iter().enumerate())
            .filter(|(_, refused)| refused.is_none())
            .map(|(at, _)| at)
            .collect();
        let mut answers = answers.into_iter();
        let whole = self.refused.into_iter().map(|refused| match refused {
            Some(why) => Ok(PutAnswer::Refused(why)),
            None => answers.next().ok_or_else(|| corrupt("a put", "an answer is missing")),
        });
        let mut report = PutReport { answers: whole.collect::<Result<_>>()? };
        let fault = report.answers.iter().position(|answer| match answer {
            PutAnswer::Duplicate { .. } => true,
            PutAnswer::Refused(why) => !matches!(why, Refusal::Undone { .. }),
            _ => false,
        });
        for answer in &mut report.answers {
            match answer {
                PutAnswer::Refused(Refusal::Undone { because }) => *because = fault.unwrap_or(0),
                PutAnswer::Refused(Refusal::Twin { of }) => {
                    *of = asked.get(*of).copied().unwrap_or(*of);
                }
                _ => {}
            }
        }
        Ok(report)
    }
}
