//! `config show`: every value that is in force, and where it comes from.

use std::path::PathBuf;

use gristmill::Settings;
use gristmill::port::{Missed, Overlap, Rule};
use gristmill_contract::{duration, settings};
use gristmill_server::Listen;
use serde_json::json;

use super::Session;
use crate::config::{self, Config, Kept, QueueConfig};
use crate::exec::Means;
use crate::failure::Failure;
use crate::output::table;
use crate::secret::hidden;
use crate::store;

/// Show what this file makes of things.
#[derive(Debug)]
pub(crate) struct ConfigShow {
    pub(crate) file: PathBuf,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ComesFrom {
    Default,
    /// A line of the file, and where the file says the value is kept, if elsewhere.
    File(u64, Option<String>),
    /// A contract that the file names.
    Contract,
    /// This variable.
    Environment(&'static str),
    /// A word of the command line.
    Flag(&'static str),
}

/// One value.
struct Shown {
    name: String,
    value: String,
    from: ComesFrom,
}

impl ConfigShow {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let config = config::read(&self.file)?;
        let mut values = Vec::new();
        places(session, &config, &mut values)?;
        for queue in &config.queues {
            of_queue(queue, &config, &mut values);
        }
        schedules(&config, &mut values);
        let file = self.file.display().to_string();
        if session.output.json {
            let rows: Vec<_> = values.iter().map(|value| as_json(value, &file)).collect();
            return session.output.value(&rows);
        }
        let mut shown = table::new(&["value", "is", "from"]);
        for Shown { name, value, from } in &values {
            shown.add_row([name.clone(), value.clone(), text(from, &file)]);
        }
        session.output.line(table::text(&shown))
    }
}

/// What is said of the file as a whole.
fn places(session: &Session, config: &Config, values: &mut Vec<Shown>) -> Result<(), Failure> {
    let in_file = |name: &str| config.lines.line(name).map(|line| ComesFrom::File(line, None));
    let mut add = |name: &str, value: String, from: ComesFrom| {
        values.push(Shown { name: name.to_owned(), value, from });
    };
    match (&session.store, &config.store) {
        // Its own text has no password.
        (Some(asked), _) => add("store", asked.to_string(), asked_by()),
        (None, Some((url, kept))) => {
            let line = config.lines.line("store").unwrap_or(1);
            add("store", url.to_string(), ComesFrom::File(line, kept_in(kept)));
        }
        (None, None) => add("store", store::default().to_string(), ComesFrom::Default),
    }
    let (listen, from) = super::up::listen(config)?;
    let from = match from {
        Some(variable) => ComesFrom::Environment(variable),
        None => in_file("listen").unwrap_or(ComesFrom::Default),
    };
    add("listen", Listen::to_string(&listen), from);
    let (metrics, from) = super::up::metrics(config)?;
    let from = match from {
        Some(variable) => ComesFrom::Environment(variable),
        None => in_file("metrics").unwrap_or(ComesFrom::Default),
    };
    add("metrics", Listen::to_string(&metrics), from);
    let shows = if config.read_only { "read-only" } else { "on" };
    add("dashboard", shows.to_owned(), in_file("dashboard").unwrap_or(ComesFrom::Default));
    if let Some(tls) = &config.tls {
        let part = |name: &str| in_file(name).unwrap_or(ComesFrom::Default);
        add("tls.cert", tls.cert.display().to_string(), part("tls.cert"));
        add("tls.key", tls.key.display().to_string(), part("tls.key"));
    }
    let keep = &config.keep;
    for (name, said, unless_said) in [
        ("keep.audit", keep.audit, "90d"),
        ("keep.operations", keep.operations, "7d"),
        // What the store says, where nothing does here: a week if nobody ever did.
        ("keep.minutes", keep.minutes, "as the store has it"),
    ] {
        let kept = said.map_or_else(|| unless_said.to_owned(), duration::show);
        add(name, kept, in_file(name).unwrap_or(ComesFrom::Default));
    }
    let (level, from) = crate::log::level();
    add("log", level, from.map_or(ComesFrom::Default, ComesFrom::Environment));
    let manager = config.manager();
    let from = || in_file("manager").unwrap_or(ComesFrom::Default);
    add("manager", manager.is_some().to_string(), from());
    if let Some(manager) = manager {
        let part = |name: &str| in_file(name).unwrap_or(ComesFrom::Default);
        let shared = crate::crew::shared_processors(config).unwrap_or_default();
        add("manager.processors", shared.to_string(), part("manager.processors"));
        let every = manager.every.unwrap_or(gristmill::manager::EVERY);
        add("manager.every", duration::show(every), part("manager.every"));
    }
    let seeded = config.seed.len().to_string();
    add("seed", seeded, in_file("seed").unwrap_or(ComesFrom::Default));
    Ok(())
}

fn kept_in(kept: &Kept) -> Option<String> {
    match kept {
        Kept::Here => None,
        Kept::Environment(variable) => Some(format!("variable {variable}")),
        Kept::File(file) => Some(format!("file {}", file.display())),
    }
}

fn asked_by() -> ComesFrom {
    let is_flag = |word: String| word == "--store" || word.starts_with("--store=");
    let mut words = std::env::args_os().filter_map(|word| word.into_string().ok());
    if words.any(is_flag) {
        ComesFrom::Flag("--store")
    } else {
        ComesFrom::Environment("GRISTMILL_STORE")
    }
}

fn of_queue(queue: &QueueConfig, config: &Config, values: &mut Vec<Shown>) {
    let path = format!("queues.{}", queue.name);
    let line = |name: &str| config.lines.line(&format!("{path}.{name}"));
    let mut add = |name: &str, value: String, from: ComesFrom| {
        values.push(Shown { name: format!("{path}.{name}"), value, from });
    };
    let said =
        |name: &str| line(name).map_or(ComesFrom::Default, |line| ComesFrom::File(line, None));
    // A command may hold a URL with a password.
    let none = || "none".to_owned();
    let (exec, mode, http) = match &queue.means {
        Some(Means::Program(command)) => (hidden(command), "task", none()),
        Some(Means::Stays(command)) => (hidden(command), "stream", none()),
        Some(Means::Hook(hook)) => (none(), "task", hook.to_string()),
        None => (none(), "task", none()),
    };
    add("exec", exec, said("exec"));
    add("mode", mode.to_owned(), said("mode"));
    add("http", http, said("http"));
    let secret = if queue.secret_kept.is_some() { "(not shown)" } else { "none" };
    let from = match (&queue.secret_kept, line("secret")) {
        (Some(kept), Some(line)) => ComesFrom::File(line, kept_in(kept)),
        _ => ComesFrom::Default,
    };
    add("secret", secret.to_owned(), from);
    add("processors", queue.processors.to_string(), said("processors"));
    add("with_store", queue.with_store.to_string(), said("with_store"));
    let contract = config.contract.queue(queue.name.as_str());
    let mut in_force = Settings::default();
    let mut by_contract = Vec::new();
    if let Some(contract) = contract {
        contract.settings.apply_to(&mut in_force);
        by_contract = settings::said(&contract.settings);
    }
    queue.settings.apply_to(&mut in_force);
    for (name, value) in settings::all(&in_force) {
        let setting = format!("settings.{name}");
        // A binding's parts are shown as one.
        let is_said = |by: &&str| *by == name || by.split('.').next() == Some(name);
        let from = match line(&setting) {
            Some(line) => ComesFrom::File(line, None),
            None if by_contract.iter().any(is_said) => ComesFrom::Contract,
            None => ComesFrom::Default,
        };
        let value = if value.is_empty() { "none".to_owned() } else { value };
        add(&setting, value, from);
    }
}

fn schedules(config: &Config, values: &mut Vec<Shown>) {
    for schedule in &config.schedules {
        let path = format!("schedules.{}", schedule.name);
        let (rule, text) = match &schedule.rule {
            Rule::Cron(cron) => ("cron", cron.clone()),
            Rule::Every(every) => ("every", duration::show(*every)),
        };
        let missed = match schedule.missed {
            Missed::Once => "once",
            Missed::Skip => "skip",
            Missed::All => "all",
        };
        let overlap = match schedule.overlap {
            Overlap::Allow => "allow",
            Overlap::Skip => "skip",
        };
        let key = schedule.options.key.clone().unwrap_or_else(|| "none".to_owned());
        for (name, value) in [
            ("queue", schedule.queue.to_string()),
            (rule, text),
            ("zone", schedule.zone.clone()),
            ("key", key),
            ("missed", missed.to_owned()),
            ("overlap", overlap.to_owned()),
        ] {
            let name = format!("{path}.{name}");
            let line = config.lines.line(&name);
            let from = line.map_or(ComesFrom::Default, |line| ComesFrom::File(line, None));
            values.push(Shown { name, value, from });
        }
    }
}

fn text(from: &ComesFrom, file: &str) -> String {
    match from {
        ComesFrom::Default => "default".to_owned(),
        ComesFrom::File(line, None) => format!("{file}:{line}"),
        ComesFrom::File(line, Some(kept)) => format!("{file}:{line}, {kept}"),
        ComesFrom::Contract => "contract".to_owned(),
        ComesFrom::Environment(variable) => format!("environment {variable}"),
        ComesFrom::Flag(flag) => format!("flag {flag}"),
    }
}

fn as_json(Shown { name, value, from }: &Shown, file: &str) -> serde_json::Value {
    let (from, file, line, kept_in) = match from {
        ComesFrom::Default => ("default", None, None, None),
        ComesFrom::File(line, kept) => ("file", Some(file), Some(*line), kept.as_deref()),
        ComesFrom::Contract => ("contract", None, None, None),
        ComesFrom::Environment(variable) => ("environment", None, None, Some(*variable)),
        ComesFrom::Flag(flag) => ("flag", None, None, Some(*flag)),
    };
    json!({
        "name": name, "value": value, "from": from, "file": file, "line": line, "kept_in": kept_in,
    })
}
