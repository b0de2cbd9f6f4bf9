//! A schedule as it is shown, and what a fire by hand came to.

use gristmill::port::policy::next_fire::FireTimes;
use gristmill::port::{
    FireAnswer, Rule, Schedule, ScheduleDeclaration, ScheduleName, SettingsError,
};
use gristmill::{Payload, Timestamp};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::answer::PutOut;
use super::fields::{millis, queue, span, text};
use crate::problem::{Answer, Problem};

/// A schedule.
#[derive(Debug, Serialize)]
pub(crate) struct ScheduleOut<'a> {
    schedule: &'a str,
    queue: &'a str,
    cron: Option<&'a str>,
    every_ms: Option<u64>,
    zone: &'a str,
    missed: &'static str,
    overlap: &'static str,
    /// Code decides what it puts.
    finder: bool,
    paused: bool,
    paused_by: Option<&'a str>,
    last_fire: Option<String>,
    next_fire: Option<String>,
    created_at: String,
}

impl<'a> ScheduleOut<'a> {
    pub(crate) fn of(schedule: &'a Schedule, now: Timestamp) -> Self {
        let declared = &schedule.declared;
        let (cron, every_ms) = match &declared.rule {
            Rule::Cron(expression) => (Some(expression.as_str()), None),
            Rule::Every(every) => (None, Some(millis(*every))),
        };
        let times = FireTimes::new(&declared.rule, &declared.zone).ok();
        let next = times
            .filter(|_| !schedule.paused)
            .and_then(|times| times.after(now.max(schedule.decided_until)));
        ScheduleOut {
            schedule: declared.name.as_str(),
            queue: declared.queue.as_str(),
            cron,
            every_ms,
            zone: &declared.zone,
            missed: declared.missed.as_str(),
            overlap: declared.overlap.as_str(),
            finder: declared.payload.is_none(),
            paused: schedule.paused,
            paused_by: schedule.paused_by.as_deref(),
            last_fire: schedule.last_fire.map(|at| at.to_string()),
            next_fire: next.map(|at| at.to_string()),
            created_at: schedule.created_at.to_string(),
        }
    }
}

/// A schedule as it is declared, or what is to change of it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScheduleIn {
    queue: Option<String>,
    cron: Option<String>,
    every: Option<String>,
    zone: Option<String>,
    #[serde(default, deserialize_with = "said")]
    payload: Option<Box<RawValue>>,
    key: Option<String>,
    missed: Option<String>,
    overlap: Option<String>,
}

/// A payload of `null` is a payload.
fn said<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(reader).map(Some)
}

impl ScheduleIn {
    /// The schedule that is meant: what is not said is as it stands, or as by default.
    pub(crate) fn meant(
        self,
        name: ScheduleName,
        standing: Option<ScheduleDeclaration>,
    ) -> Answer<ScheduleDeclaration> {
        let needs = |field: &'static str| {
            move || Problem::field(field, format!("a schedule needs '{field}'"))
        };
        let queue = self.queue.map(|text| queue("queue", &text)).transpose()?;
        let known = standing.as_ref();
        let queue = queue.or_else(|| known.map(|known| known.queue.clone()));
        let rule = match (self.cron, self.every) {
            (Some(_), Some(_)) => {
                return Err(Problem::field("every", "'cron' and 'every' exclude each other"));
            }
            (Some(cron), None) => Some(("cron", Rule::Cron(cron))),
            (None, Some(every)) => Some(("every", Rule::Every(span("every", &every)?))),
            (None, None) => known.map(|known| ("cron", known.rule.clone())),
        };
        let (field, rule) = rule.ok_or_else(needs("cron"))?;
        // Read in UTC here, so that its own mistakes are told at its place.
        FireTimes::new(&rule, "UTC").map_err(|why| Problem::field(field, why.to_string()))?;
        let zone = self.zone.or_else(|| known.map(|known| known.zone.clone()));
        let zone = zone.unwrap_or_else(|| "UTC".to_owned());
        FireTimes::new(&rule, &zone).map_err(|why| Problem::field("zone", why.to_string()))?;
        let payload = self.payload.map(|json| Payload::json(json.get().to_owned().into_bytes()));
        // One with a finder has none, and keeps its finder.
        let payload = match (payload, known) {
            (Some(payload), _) => Some(payload),
            (None, Some(known)) => known.payload.clone(),
            (None, None) => return Err(needs("payload")()),
        };
        let key = self.key.map(|key| text("key", key, 512)).transpose()?;
        let mut options = known.map(|known| known.options.clone()).unwrap_or_default();
        options.key = key.or(options.key);
        let word = |field: &'static str| move |why: SettingsError| Problem::field(field, why.0);
        let missed = self.missed.map(|word| word.parse()).transpose().map_err(word("missed"))?;
        let overlap = self.overlap.map(|word| word.parse()).transpose().map_err(word("overlap"))?;
        Ok(ScheduleDeclaration {
            name,
            queue: queue.ok_or_else(needs("queue"))?,
            rule,
            zone,
            payload,
            options,
            missed: missed.or_else(|| known.map(|known| known.missed)).unwrap_or_default(),
            overlap: overlap.or_else(|| known.map(|known| known.overlap)).unwrap_or_default(),
        })
    }
}

/// What a fire by hand came to.
#[derive(Debug, Serialize)]
pub(crate) struct FiredOut {
    schedule: String,
    /// `fired`, or `asked`: whoever has the finder's code runs it.
    outcome: &'static str,
    answers: Vec<PutOut>,
}

impl FiredOut {
    pub(crate) fn of(schedule: &str, answer: FireAnswer) -> Self {
        let (outcome, answers) = match answer {
            FireAnswer::Fired(answers) => ("fired", answers),
            _ => ("asked", Vec::new()),
        };
        let answers = answers.into_iter().map(PutOut::from).collect();
        FiredOut { schedule: schedule.to_owned(), outcome, answers }
    }
}
