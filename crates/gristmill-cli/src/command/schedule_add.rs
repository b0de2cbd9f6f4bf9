//! `schedules add`: a schedule in one line.

use gristmill::port::policy::next_fire::FireTimes;
use gristmill::port::{
    Limits, Missed, NewTask, Overlap, Rule, ScheduleDeclaration, ScheduleName, TaskOptions,
};
use gristmill::{Mill, QueueName};
use jiff::tz::TimeZone;

use super::schedules::{as_json, next_fire, rule_text};
use super::{Session, put, text};
use crate::args::{MissedArg, OverlapArg, ScheduleAddArgs};
use crate::contracts::{Contracts, fit};
use crate::failure::Failure;
use crate::output::time;
use crate::when;
use gristmill_contract::duration;

/// Declare it, or say it anew.
#[derive(Debug)]
pub(crate) struct Add {
    declaration: ScheduleDeclaration,
}

impl Add {
    pub(crate) fn meant(args: ScheduleAddArgs) -> Result<Self, Failure> {
        let zone = args.zone.unwrap_or_else(own_zone);
        let rule = match (args.cron, args.every) {
            (Some(cron), _) => Rule::Cron(cron),
            (None, every) => {
                let every = duration::parse(&every.unwrap_or_default());
                Rule::Every(every.map_err(|why| Failure::usage(format!("--every: {why}")))?)
            }
        };
        FireTimes::new(&rule, &zone).map_err(|why| {
            let like = match rule {
                Rule::Cron(_) if TimeZone::get(&zone).is_ok() => {
                    "; write it like '0 7 * * 1-5' (minute, hour, day, month, weekday)"
                }
                _ => "",
            };
            Failure::usage(format!("{why}{like}"))
        })?;
        let key = args.key.map(|key| text("--key", key)).transpose()?;
        let payload = put::payload(args.payload.into_bytes(), None)?;
        if let Some(refusal) = Limits::default().refuse(&NewTask::new(payload.clone())) {
            return Err(put::refused(&refusal));
        }
        let declaration = ScheduleDeclaration {
            name: ScheduleName::new(&args.name)?,
            queue: QueueName::new(&args.queue)?,
            rule,
            zone,
            payload: Some(payload),
            options: TaskOptions { key, ..TaskOptions::default() },
            missed: match args.missed {
                MissedArg::Once => Missed::Once,
                MissedArg::Skip => Missed::Skip,
                MissedArg::All => Missed::All,
            },
            overlap: match args.overlap {
                OverlapArg::Allow => Overlap::Allow,
                OverlapArg::Skip => Overlap::Skip,
            },
        };
        Ok(Add { declaration })
    }

    pub(super) async fn run(self, mill: &Mill, session: &Session) -> Result<(), Failure> {
        let Add { mut declaration } = self;
        mill.inspect().queue(declaration.queue.as_str()).await?;
        let contracts = Contracts::of(mill).await?;
        let payload = declaration.payload.take().unwrap_or_default();
        let task = fit(contracts.get(&declaration.queue), NewTask::new(payload), false);
        declaration.payload = Some(task.map_err(|refusal| put::refused(&refusal))?.payload);
        let before = mill.store().schedules().await?;
        let before = before.into_iter().find(|known| known.declared.name == declaration.name);
        let what = match &before {
            None => "added",
            Some(known) if known.declared == declaration => "stood already",
            Some(_) => "changed",
        };
        let schedule = mill.store().declare_schedule(declaration).await?;
        let now = time::now();
        if session.output.json {
            return session.output.value(&as_json(&schedule, now));
        }
        let declared = &schedule.declared;
        let next = next_fire(&schedule, now).map_or_else(
            || "it is paused".to_owned(),
            |at| format!("next {}", when::shown(at, &zone_of(&declared.zone))),
        );
        let (name, rule, zone) = (&declared.name, rule_text(&declared.rule), &declared.zone);
        session.output.line(format_args!("schedule {name} {what}: {rule} in {zone}, {next}"))
    }
}

/// The name of this machine's zone, or of the one that TZ says.
fn own_zone() -> String {
    TimeZone::system().iana_name().unwrap_or("UTC").to_owned()
}

fn zone_of(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap_or(TimeZone::UTC)
}
