//! Schedules and their fires.

use gristmill_core::{Fire, FireAnswer, Rule, Schedule, ScheduleDeclaration, TaskOptions};

choice!(Rule { "cron" = Cron(cron), "every" = Every(every) });
record!(TaskOptions { key, group, source, priority, delay, headers, settings });
record!(ScheduleDeclaration { name, queue, rule, zone, payload, options, missed, overlap });
record!(Schedule { declared, paused, paused_by, decided_until, last_fire, last_tasks, created_at });
record!(Fire { schedule, instant, tasks, by_hand });
choice!(FireAnswer {
    "fired" = Fired(answers),
    "asked" = Asked,
    "already_decided" = AlreadyDecided,
    "overlapped" = Overlapped(id),
    "paused" = Paused,
    "not_yet" = NotYet(wait),
    "unknown" = Unknown,
});
