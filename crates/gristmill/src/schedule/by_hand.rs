//! Firing a schedule by hand, now, whatever its rule says.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gristmill_core::name::did_you_mean;
use gristmill_core::policy::next_fire::FireTimes;
use gristmill_core::{
    Clock, Fire, FireAnswer, Schedule, ScheduleName, StoreError, SystemClock, WorkerId,
};

use super::engine::fired;
use super::finder::Find;
use super::lease::{DueFind, FindEnd};
use crate::timer::Timer;
use crate::{Error, Mill};

/// The code of finders, by the name of their schedule, with how long their
/// lease holds.
#[derive(Default)]
pub(crate) struct Finders(Mutex<HashMap<ScheduleName, (Find, Duration)>>);

impl std::fmt::Debug for Finders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Finders").finish_non_exhaustive()
    }
}

impl Finders {
    pub(super) fn know(&self, name: ScheduleName, find: Find, hold: Duration) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(name, (find, hold));
    }

    fn get(&self, name: &ScheduleName) -> Option<(Find, Duration)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

/// Runs a finder that this program has, under its schedule's lease; one of
/// another program is asked for.
async fn find(mill: &Mill, known: &Schedule) -> Result<FireAnswer, Error> {
    let name = &known.declared.name;
    let Some((find, hold)) = mill.finders().get(name) else {
        let instant = SystemClock::default().now();
        let ask = Fire { schedule: name.clone(), instant, tasks: Vec::new(), by_hand: true };
        return Ok(mill.store().fire(ask).await?);
    };
    let times = FireTimes::new(&known.declared.rule, &known.declared.zone)
        .map_err(|error| StoreError::invalid(error.to_string()))?;
    let find = DueFind {
        mill: mill.clone(),
        name: name.clone(),
        queue: known.declared.queue.clone(),
        times,
        find,
        who: WorkerId::random()?,
        hold,
        now: SystemClock::default().now(),
        timer: Timer::default(),
        by_hand: true,
    };
    match find.run().await? {
        FindEnd::Ran { .. } => Ok(FireAnswer::Fired(Vec::new())),
        FindEnd::Elsewhere | FindEnd::Decided | FindEnd::Lost => {
            Err(StoreError::invalid(format!("the finder of '{name}' runs already")).into())
        }
    }
}

/// Fires a schedule. Decides nothing: the next fire by the
/// rule comes as if this had not been.
pub(crate) async fn fire(mill: &Mill, name: &str) -> Result<FireAnswer, Error> {
    let schedules = mill.store().schedules().await?;
    let Some(known) = schedules.iter().find(|known| known.declared.name.as_str() == name) else {
        let names = schedules.iter().map(|known| known.declared.name.as_str());
        let hint = did_you_mean(name, names)
            .map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
        return Err(StoreError::invalid(format!("there is no schedule '{name}'{hint}")).into());
    };
    let Some(task) = known.declared.task() else {
        return find(mill, known).await;
    };
    let instant = SystemClock::default().now();
    let schedule = known.declared.name.clone();
    let tasks = vec![fired(mill, &known.declared, task, instant)];
    Ok(mill.store().fire(Fire { schedule, instant, tasks, by_hand: true }).await?)
}
