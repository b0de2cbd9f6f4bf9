//! A fresh store of whatever kind is measured, for rows that are the same on all.

use gristmill::Mill;

use super::load::{BenchError, Grain};
use super::{Plan, Target, files, postgres, sqlite};

/// A store with nothing in it. Its files go with it.
pub(super) struct Fresh {
    pub(super) mill: Mill,
    _file: Option<sqlite::Round>,
    _spool: Option<files::Round>,
}

impl Target {
    /// A store for one round of a measurement of this name.
    pub(super) async fn fresh(&self, name: &str, round: usize) -> Result<Fresh, BenchError> {
        let (mut _file, mut _spool) = (None, None);
        let mill = match self {
            Target::Memory => {
                let mill = Mill::open("memory:").await?;
                mill.declare::<Grain>().await?;
                mill
            }
            Target::Sqlite(folder) => {
                _file.insert(sqlite::Round::new(folder, name, round)).mill().await?
            }
            Target::Files(folder) => {
                _spool.insert(files::Round::new(folder, name, round)).mill().await?
            }
            Target::Postgres(url) => postgres::fresh(url).await?,
        };
        Ok(Fresh { mill, _file, _spool })
    }

    /// One more handle on it, as another process has one; none where there can be none.
    pub(super) async fn again(&self, fresh: &Fresh) -> Result<Option<Mill>, BenchError> {
        Ok(match (self, &fresh._file, &fresh._spool) {
            (Target::Postgres(url), ..) => Some(postgres::again(url).await?),
            (_, Some(file), _) => Some(file.mill().await?),
            (_, _, Some(spool)) => Some(spool.mill().await?),
            _ => None,
        })
    }

    /// Whether an answer survives a power cut.
    pub(super) const fn is_durable(&self) -> bool {
        !matches!(self, Target::Memory)
    }

    /// How many tasks it is measured with where each is put, claimed and settled often.
    pub(super) fn some_tasks(&self, plan: Plan) -> usize {
        match self {
            // Its tasks are files: a tenth of the others' load.
            Target::Files(_) => (plan.tasks / 10).max(200),
            _ => (plan.tasks / 4).max(sqlite::BATCH),
        }
    }
}
