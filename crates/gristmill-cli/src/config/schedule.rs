//! Schedules in the configuration.

use std::time::Duration;

use gristmill::Payload;
use gristmill::port::name::did_you_mean;
use gristmill::port::policy::next_fire::FireTimes;
use gristmill::port::{
    Limits, Missed, NewTask, Overlap, QueueName, Rule, ScheduleDeclaration, ScheduleName,
    TaskOptions,
};

use gristmill_contract::yaml::{Fields, Mistakes, Node};

use super::{Config, contracts, own};
use gristmill_contract::duration;

const FIELDS: &[&str] = &[
    "name",
    "queue",
    "cron",
    "every",
    "zone",
    "payload",
    "key",
    "missed",
    "overlap",
    "timeout",
    "max_attempts",
    "backoff",
];

/// Reads one schedule.
pub(crate) fn read(node: &Node, config: &mut Config, mistakes: &mut Mistakes) {
    let Some(mut fields) = Fields::of(node, "a schedule", mistakes) else { return };
    let before = mistakes.count();
    let name = fields.required_text("name", mistakes).and_then(|(name, at)| {
        let read = ScheduleName::new(&name);
        let read = read.map_err(|error| mistakes.add(at, error.to_string())).ok()?;
        if config.schedules.iter().any(|known| known.name == read) {
            mistakes.add(at, format!("schedule '{read}' is declared twice: keep one"));
        }
        Some(read)
    });
    let queue = fields
        .required_text("queue", mistakes)
        .and_then(|(name, at)| queue(&name, at, config, mistakes));
    let rule = rule(&mut fields, node, mistakes);
    let zone = zone(&mut fields, rule.as_ref().map(|(_, at)| *at), mistakes);
    let payload = payload(&fields, node, queue.as_ref(), config, mistakes);
    let missed = choice(
        &mut fields,
        "missed",
        &[("once", Missed::Once), ("skip", Missed::Skip), ("all", Missed::All)],
        mistakes,
    );
    let overlap = choice(
        &mut fields,
        "overlap",
        &[("allow", Overlap::Allow), ("skip", Overlap::Skip)],
        mistakes,
    );
    let key = fields.text("key", mistakes);
    let settings = own::read(&fields, mistakes);
    fields.done(FIELDS, mistakes);
    // Rule and zone together say whether it can ever fire.
    if mistakes.count() == before
        && let Some((rule, at)) = &rule
        && let Err(why) = FireTimes::new(rule, &zone)
    {
        mistakes.add(at, why.to_string());
    }
    if let (Some(name), Some(queue), Some((rule, _)), Some(payload)) = (name, queue, rule, payload)
        && mistakes.count() == before
    {
        let payload = Some(payload);
        config.schedules.push(ScheduleDeclaration {
            name,
            queue,
            rule,
            zone,
            payload,
            options: TaskOptions { key, settings, ..TaskOptions::default() },
            missed,
            overlap,
        });
    }
}

fn queue(name: &str, at: &Node, config: &Config, mistakes: &mut Mistakes) -> Option<QueueName> {
    let found = config.queues.iter().find(|queue| queue.name.as_str() == name);
    if found.is_none() {
        let known = config.queues.iter().map(|queue| queue.name.as_str());
        let hint = did_you_mean(name, known)
            .map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
        mistakes.add(at, format!("there is no queue '{name}' in this file{hint}"));
    }
    found.map(|queue| queue.name.clone())
}

fn rule<'a>(
    fields: &mut Fields<'a>,
    node: &'a Node,
    mistakes: &mut Mistakes,
) -> Option<(Rule, &'a Node)> {
    match (fields.node("cron"), fields.node("every")) {
        (Some(_), Some(at)) => {
            mistakes.add(at, "a schedule has a cron expression or an interval: choose one".into());
            None
        }
        (None, None) => {
            mistakes.add(node, "a schedule needs a field 'cron' or 'every'".to_owned());
            None
        }
        (Some(at), None) => {
            // Read in UTC here, so that its own mistakes are told at its place.
            let rule = Rule::Cron(fields.text("cron", mistakes)?);
            let read = FireTimes::new(&rule, "UTC");
            let like = "write it like 0 7 * * 1-5 (minute, hour, day, month, weekday)";
            read.map_err(|why| mistakes.add(at, format!("cron: {why}; {like}"))).ok()?;
            Some((rule, at))
        }
        (None, Some(at)) => {
            let text = at.scalar().unwrap_or_default();
            let every: Result<Duration, String> = duration::parse(&text);
            let every = every.map_err(|why| mistakes.add(at, format!("every: {why}"))).ok()?;
            let rule = Rule::Every(every);
            let read = FireTimes::new(&rule, "UTC");
            read.map_err(|why| mistakes.add(at, why.to_string())).ok().map(|_| (rule, at))
        }
    }
}

fn zone(fields: &mut Fields<'_>, rule: Option<&Node>, mistakes: &mut Mistakes) -> String {
    let Some(zone) = fields.text("zone", mistakes) else { return "UTC".to_owned() };
    // Any rule that works everywhere shows whether there is such a zone.
    let probe = FireTimes::new(&Rule::Every(Duration::from_secs(60)), &zone);
    if let (Err(why), Some(at)) = (probe, fields.node("zone").or(rule)) {
        mistakes.add(at, why.to_string());
    }
    zone
}

fn payload(
    fields: &Fields<'_>,
    node: &Node,
    queue: Option<&QueueName>,
    config: &Config,
    mistakes: &mut Mistakes,
) -> Option<Payload> {
    let Some(at) = fields.node("payload") else {
        mistakes.add(node, "a schedule needs a field 'payload'".to_owned());
        return None;
    };
    let payload = contracts::payload(at, queue, config, mistakes);
    if let Some(refusal) = Limits::default().refuse(&NewTask::new(payload.clone())) {
        mistakes.add(at, refusal.to_string());
    }
    Some(payload)
}

/// A field that is one of a few words; the first is the default.
fn choice<T: Copy + Default>(
    fields: &mut Fields<'_>,
    name: &str,
    words: &[(&str, T)],
    mistakes: &mut Mistakes,
) -> T {
    let Some(node) = fields.node(name) else { return T::default() };
    let said = node.scalar().unwrap_or_default();
    let found = words.iter().find(|(word, _)| *word == said).map(|(_, value)| *value);
    found.unwrap_or_else(|| {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        mistakes.add(node, format!("{name} is one of {}, not '{said}'", known.join(", ")));
        T::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn schedules_are_read() {
        let text = "
queues:
  - name: emails
schedules:
  - {name: morning, queue: emails, cron: '0 7 * * *', zone: Europe/Athens, payload: {to: all}}
  - {name: tick, queue: emails, every: 10s, payload: null, missed: all, overlap: skip,
     timeout: 5s, max_attempts: unlimited, backoff: {base: 1s}}
";
        let config = parse(text).expect("a configuration");
        let [morning, tick] = config.schedules.as_slice() else { panic!("two schedules") };
        assert_eq!(morning.rule, Rule::Cron("0 7 * * *".to_owned()));
        assert_eq!((morning.zone.as_str(), morning.missed), ("Europe/Athens", Missed::Once));
        assert_eq!(morning.payload, Some(Payload::json("{\"to\":\"all\"}")));
        assert_eq!(tick.rule, Rule::Every(Duration::from_secs(10)));
        assert_eq!((tick.missed, tick.overlap), (Missed::All, Overlap::Skip));
        let own = &tick.options.settings;
        assert_eq!(own.timeout(), Some(Duration::from_secs(5)));
        assert_eq!(own.max_attempts(), Some(None));
        assert_eq!(own.backoff().map(|backoff| backoff.base), Some(Duration::from_secs(1)));
    }

    #[test]
    fn every_mistake_is_told_with_its_place() {
        let text = "
queues:
  - name: emails
schedules:
  - {name: a b, queue: emials, payload: 1}
  - {name: s, queue: emails, cron: 61 * * * *, zone: Mars/Olympus, payload: 1}
  - {name: t, queue: emails, cron: 0 7 * * *, every: 5s}
  - {name: u, queue: emails, every: 5, payload: 1, missed: never, overlap: maybe}
  - {name: v, queue: emails, every: 10ms, payload: 1, wen: now}
  - {name: w, queue: emails, cron: 0 0 30 2 *, payload: 1}
  - {name: x, queue: emails, every: 1m, payload: 1}
  - {name: x, queue: emails, every: 1m, payload: 1}
";
        let mistakes = parse(text).expect_err("mistakes");
        let shown = mistakes.shown("a.yaml", text);
        for part in [
            "a.yaml:5:12: 'a b' is not a schedule name",
            "a.yaml:5:24: there is no queue 'emials' in this file",
            "a schedule needs a field 'cron' or 'every'",
            "a.yaml:6:36: cron: '61 * * * *' is not a cron expression",
            "a.yaml:6:54: 'Mars/Olympus' is not a time zone",
            "choose one",
            "a schedule needs a field 'payload'",
            "a.yaml:8:37: every: '5' is not a duration: the unit is missing",
            "missed is one of once, skip, all, not 'never'",
            "overlap is one of allow, skip, not 'maybe'",
            "an interval is from 1s to 366 days",
            "a schedule has no field 'wen'",
            "a.yaml:10:36: cron: this expression never fires",
            "a.yaml:12:12: schedule 'x' is declared twice",
        ] {
            assert!(shown.contains(part), "missing: {part}\n{shown}");
        }
    }
}
