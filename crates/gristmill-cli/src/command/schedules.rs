//! `schedules`: what fires when, and pausing, resuming, firing and removing.

use comfy_table::Cell;
use gristmill::Mill;
use gristmill::port::name::did_you_mean;
use gristmill::port::policy::next_fire::FireTimes;
use gristmill::port::{FireAnswer, PutAnswer, Rule, Schedule, ScheduleName, Timestamp};
use serde_json::{Value, json};

use gristmill_server::Deed;

use super::schedule_add::Add;
use super::{Session, tell, who};
use crate::args::{ScheduleArgs, SchedulePauseArgs, SchedulesArgs, SchedulesCommand};
use crate::failure::{Exit, Failure};
use crate::output::{table, time};
use crate::store::Missing;
use gristmill_contract::duration;

/// Something about schedules.
#[derive(Debug)]
pub(crate) enum Schedules {
    List,
    Add(Box<Add>),
    Pause { name: ScheduleName, paused: bool, by: String },
    Fire(ScheduleName),
    Remove(ScheduleName),
}

impl Schedules {
    pub(crate) fn meant(args: SchedulesArgs) -> Result<Self, Failure> {
        let pause = |args: SchedulePauseArgs, paused| -> Result<Self, Failure> {
            let name = ScheduleName::new(&args.name)?;
            Ok(Schedules::Pause { name, paused, by: who(args.by)? })
        };
        let name = |args: ScheduleArgs| ScheduleName::new(&args.name);
        Ok(match args.command {
            None | Some(SchedulesCommand::List) => Schedules::List,
            Some(SchedulesCommand::Add(args)) => Schedules::Add(Box::new(Add::meant(args)?)),
            Some(SchedulesCommand::Pause(args)) => pause(args, true)?,
            Some(SchedulesCommand::Resume(args)) => pause(args, false)?,
            Some(SchedulesCommand::Fire(args)) => Schedules::Fire(name(args)?),
            Some(SchedulesCommand::Remove(args)) => Schedules::Remove(name(args)?),
        })
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        let done = self.act(&mill, session).await;
        mill.close().await?;
        done
    }

    async fn act(self, mill: &Mill, session: &Session) -> Result<(), Failure> {
        let schedules = mill.store().schedules().await?;
        match self {
            Schedules::List => list(&schedules, session),
            Schedules::Add(add) => add.run(mill, session).await,
            Schedules::Pause { name, paused, by } => {
                known(&schedules, &name)?;
                mill.store().pause_schedule(&name, paused, &by).await?;
                let action = if paused { "schedules.pause" } else { "schedules.resume" };
                tell(mill, &by, action, deed(&schedules, &name)).await;
                let line = if paused {
                    format!("{name} is paused until 'gristmill schedules resume {name}'")
                } else {
                    format!("{name} goes on")
                };
                session.output.either(&json!({ "schedule": name.as_str(), "paused": paused }), line)
            }
            Schedules::Fire(name) => {
                known(&schedules, &name)?;
                let answer = mill.fire_schedule(name.as_str()).await?;
                if matches!(answer, FireAnswer::Fired(_) | FireAnswer::Asked) {
                    tell(mill, &who(None)?, "schedules.fire", deed(&schedules, &name)).await;
                }
                tell_fired(&name, &answer, session)
            }
            Schedules::Remove(name) => {
                known(&schedules, &name)?;
                mill.store().remove_schedule(&name).await?;
                tell(mill, &who(None)?, "schedules.remove", deed(&schedules, &name)).await;
                let value = json!({ "schedule": name.as_str(), "removed": true });
                session.output.either(&value, format_args!("{name} is removed; its tasks stay"))
            }
        }
    }
}

/// What the audit log says it was about.
fn deed(schedules: &[Schedule], name: &ScheduleName) -> Deed {
    let queue = schedules.iter().find(|known| known.declared.name == *name);
    Deed {
        target: Some(name.to_string()),
        queue: queue.map(|known| known.declared.queue.to_string()),
        ..Deed::default()
    }
}

fn known<'a>(schedules: &'a [Schedule], name: &ScheduleName) -> Result<&'a Schedule, Failure> {
    schedules.iter().find(|schedule| schedule.declared.name == *name).ok_or_else(|| {
        let names = schedules.iter().map(|schedule| schedule.declared.name.as_str());
        let hint = match did_you_mean(name.as_str(), names) {
            Some(near) => format!("did you mean '{near}'?"),
            None => "'gristmill schedules' lists them".to_owned(),
        };
        let why = format!("there is no schedule '{name}'; {hint}");
        Failure::new(Exit::Refused, "unknown_schedule", why)
    })
}

fn tell_fired(name: &ScheduleName, answer: &FireAnswer, session: &Session) -> Result<(), Failure> {
    match answer {
        FireAnswer::Fired(answers) => match answers.first() {
            Some(PutAnswer::Refused(why)) => {
                Err(Failure::new(Exit::Refused, "refused", format!("{name} did not fire: {why}")))
            }
            first => {
                let id = first.and_then(PutAnswer::id).map(|id| id.0);
                let shown = id.map_or_else(|| "nothing".to_owned(), |id| format!("task {id}"));
                let value = json!({ "schedule": name.as_str(), "fired": true, "id": id });
                session.output.either(&value, format_args!("{name} fired: {shown}"))
            }
        },
        FireAnswer::Asked => {
            let value = json!({
                "schedule": name.as_str(), "fired": false, "asked": true, "id": Value::Null
            });
            let line = format_args!(
                "{name} is asked for: it has a finder, which the program with its code runs \
                 within two seconds, or once it is started"
            );
            session.output.either(&value, line)
        }
        FireAnswer::Overlapped(id) => Err(Failure::new(
            Exit::Refused,
            "overlaps",
            format!("{name} did not fire: task {id} of the fire before still stands"),
        )),
        // By hand it is never decided before, paused or early.
        FireAnswer::AlreadyDecided
        | FireAnswer::Paused
        | FireAnswer::NotYet(_)
        | FireAnswer::Unknown => {
            Err(Failure::new(Exit::Refused, "unknown_schedule", format!("{name} is gone")))
        }
    }
}

fn list(schedules: &[Schedule], session: &Session) -> Result<(), Failure> {
    let now = time::now();
    if session.output.json {
        let all: Vec<Value> = schedules.iter().map(|schedule| as_json(schedule, now)).collect();
        return session.output.value(&all);
    }
    if schedules.is_empty() {
        return session.output.line("no schedules yet: declare one in gristmill.yaml, in code or with 'gristmill schedules add'");
    }
    let mut table =
        table::new(&["schedule", "rule", "zone", "queue", "last fire", "next fire", "paused"]);
    for schedule in schedules {
        let declared = &schedule.declared;
        let relative =
            |at: Option<Timestamp>| at.map_or_else(|| "-".to_owned(), |at| time::relative(at, now));
        table.add_row(vec![
            Cell::new(&declared.name),
            Cell::new(rule_text(&declared.rule)),
            Cell::new(&declared.zone),
            Cell::new(&declared.queue),
            Cell::new(relative(last_fire(schedule))),
            match schedule.asked() {
                Some(_) => table::warning("asked for"),
                None => Cell::new(relative(next_fire(schedule, now))),
            },
            match (&schedule.paused_by, schedule.paused) {
                (Some(by), true) => table::warning(&format!("by {by}")),
                (None, true) => table::warning("yes"),
                (_, false) => Cell::new("-"),
            },
        ]);
    }
    session.output.line(table::text(&table))
}

/// `every 10s`, or the cron expression.
pub(crate) fn rule_text(rule: &Rule) -> String {
    match rule {
        Rule::Cron(expression) => expression.clone(),
        Rule::Every(every) => format!("every {}", duration::show(*every)),
    }
}

/// The last fire. A finder's puts are its own: its last fire is the last
/// instant that was decided.
fn last_fire(schedule: &Schedule) -> Option<Timestamp> {
    if schedule.declared.payload.is_some() {
        return schedule.last_fire;
    }
    Some(schedule.decided_until).filter(|decided| *decided > schedule.created_at)
}

pub(super) fn next_fire(schedule: &Schedule, now: Timestamp) -> Option<Timestamp> {
    if schedule.paused {
        return None;
    }
    let times = FireTimes::new(&schedule.declared.rule, &schedule.declared.zone).ok()?;
    times.after(now.max(schedule.decided_until))
}

pub(super) fn as_json(schedule: &Schedule, now: Timestamp) -> Value {
    let declared = &schedule.declared;
    let (cron, every_ms) = match &declared.rule {
        Rule::Cron(expression) => (Some(expression.as_str()), None),
        Rule::Every(every) => (None, Some(u64::try_from(every.as_millis()).unwrap_or(u64::MAX))),
    };
    json!({
        "schedule": declared.name.as_str(),
        "queue": declared.queue.as_str(),
        "cron": cron,
        "every_ms": every_ms,
        "zone": declared.zone,
        "finder": declared.payload.is_none(),
        "missed": declared.missed.as_str(),
        "overlap": declared.overlap.as_str(),
        "last_fire": last_fire(schedule).map(|at| at.to_string()),
        "next_fire": next_fire(schedule, now).map(|at| at.to_string()),
        "asked": schedule.asked().map(|at| at.to_string()),
        "paused": schedule.paused,
        "paused_by": schedule.paused_by,
    })
}
