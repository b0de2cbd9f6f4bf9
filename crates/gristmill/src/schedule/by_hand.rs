//! Firing a schedule by hand, now, whatever its rule says.

use gristmill_core::name::did_you_mean;
use gristmill_core::{Clock, Fire, FireAnswer, StoreError, SystemClock};

use super::engine::task;
use crate::{Error, Mill};

/// Fires a schedule that has a payload. Decides nothing: the next fire by the
/// rule comes as if this had not been.
pub(crate) async fn fire(mill: &Mill, name: &str) -> Result<FireAnswer, Error> {
    let schedules = mill.store().schedules().await?;
    let Some(known) = schedules.iter().find(|known| known.declared.name.as_str() == name) else {
        let names = schedules.iter().map(|known| known.declared.name.as_str());
        let hint = did_you_mean(name, names)
            .map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
        return Err(StoreError::Invalid(format!("there is no schedule '{name}'{hint}")).into());
    };
    let Some(payload) = &known.declared.payload else {
        let why = format!(
            "schedule '{name}' has a finder: only the program that has its code can run it"
        );
        return Err(StoreError::Invalid(why).into());
    };
    let instant = SystemClock::default().now();
    let schedule = known.declared.name.clone();
    let tasks = vec![task(&schedule, payload, instant)];
    Ok(mill.store().fire(Fire { schedule, instant, tasks, by_hand: true }).await?)
}
