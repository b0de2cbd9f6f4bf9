//! The configuration: one YAML file, read whole, with every mistake named by
//! its line and column.
//!
//! The file becomes a tree of values with positions (`gristmill_contract::yaml`);
//! reading it ([`read`]) collects mistakes instead of stopping at the first.
//! The dashboard will be a further field of the top level.

mod contracts;
mod handler;
mod keep;
mod kept;
mod lines;
mod manager;
mod own;
mod schedule;
mod seed;
mod tls;

use std::path::{Path, PathBuf};

use gristmill::port::{NewTask, QueueName, ScheduleDeclaration};
use gristmill::{SettingsPatch, StoreUrl, StoreUrlError};
use gristmill_contract::yaml::{self, Fields, Mistakes, Node, queue_settings};
use gristmill_contract::{Contract, ContractError};
use gristmill_server::Listen;

use crate::exec::Means;
use crate::failure::Failure;
use crate::secret::hidden_in_config;
pub(crate) use keep::KeepConfig;
use kept::Given;
pub(crate) use kept::Kept;
pub(crate) use lines::Lines;
pub(crate) use manager::ManagerConfig;
pub(crate) use tls::TlsConfig;

/// What `up` is to run.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// The store's URL, unless the command line names another, and where it is kept.
    pub(crate) store: Option<(StoreUrl, Kept)>,
    /// What the contracts say that the file names.
    pub(crate) contract: Contract,
    pub(crate) queues: Vec<QueueConfig>,
    pub(crate) schedules: Vec<ScheduleDeclaration>,
    pub(crate) seed: Vec<Seed>,
    /// Where HTTP is served, if anything was said.
    pub(crate) listen: Option<Listen>,
    /// Where only /metrics, /livez and /readyz are, if anything was said.
    pub(crate) metrics: Option<Listen>,
    /// With what HTTP is encrypted, if with anything.
    pub(crate) tls: Option<TlsConfig>,
    /// Whether the dashboard only shows.
    pub(crate) read_only: bool,
    /// How long what is told of the past is kept.
    pub(crate) keep: KeepConfig,
    /// What was said about the manager, if anything was.
    pub(crate) manager: Option<ManagerConfig>,
    /// Files whose content is a part of this, besides the file itself.
    pub(crate) files: Vec<PathBuf>,
    /// Where in the file each value stands.
    pub(crate) lines: Lines,
}

impl Config {
    /// The manager to run. Without a word about it there is one if a queue has
    /// a target that only a manager can keep.
    pub(crate) fn manager(&self) -> Option<ManagerConfig> {
        let wanted = |patch: &SettingsPatch| matches!(patch.drain_within, Some(Some(_)));
        let ours = self.queues.iter().map(|queue| &queue.settings);
        let mut all = ours.chain(self.contract.queues.iter().map(|queue| &queue.settings));
        match &self.manager {
            Some(said) => said.on.then(|| said.clone()),
            None => {
                all.any(wanted).then_some(ManagerConfig { on: true, processors: None, every: None })
            }
        }
    }
}

/// A queue, and who handles its tasks.
#[derive(Debug)]
pub(crate) struct QueueConfig {
    pub(crate) name: QueueName,
    pub(crate) settings: SettingsPatch,
    /// Its handler; without one, tasks wait for another worker.
    pub(crate) means: Option<Means>,
    /// Where the secret is kept that requests are signed with.
    pub(crate) secret_kept: Option<Kept>,
    /// The handler is told the store's URL.
    pub(crate) with_store: bool,
    pub(crate) processors: usize,
    /// Only a contract speaks of it; the file says nothing.
    pub(crate) only_in_contract: bool,
}

impl QueueConfig {
    fn of_contract(name: QueueName) -> Self {
        let settings = SettingsPatch::default();
        QueueConfig {
            name,
            settings,
            means: None,
            secret_kept: None,
            with_store: false,
            processors: 1,
            only_in_contract: true,
        }
    }
}

/// A task that is put once, recognised by its id.
#[derive(Debug)]
pub(crate) struct Seed {
    pub(crate) queue: QueueName,
    pub(crate) task: NewTask,
}

/// Longest file that is read.
const FILE_BYTES: u64 = 4 << 20;
/// Most processors a queue may have here; each may run a process.
const PROCESSORS_MAX: u64 = 1_000;

/// The configuration of a folder.
pub(crate) const FILE: &str = "gristmill.yaml";

/// The store that the file names, if there is a file and it names one. Other
/// mistakes in it are not this one's to tell.
///
/// # Errors
/// When there is a file and it cannot be known which store it names: another
/// one must not be taken for it.
pub(crate) fn store_of(path: &Path) -> Result<Option<StoreUrl>, Failure> {
    let wrong = |why: String| Failure {
        code: "config",
        ..Failure::usage(format!(
            "{} cannot be read, so the store it names is not known: {why}; correct it, or name a \
             store with --store",
            path.display()
        ))
    };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(error.to_string())),
    };
    let mut mistakes = Mistakes::default();
    let tree = yaml::parse(&text).map_err(|found| {
        wrong(found.shown(&path.display().to_string(), &hidden_in_config(&text)))
    })?;
    let store = Fields::of(&tree, "the configuration", &mut mistakes)
        .and_then(|mut top| store(&mut top, folder_of(path), &mut mistakes));
    if mistakes.is_empty() {
        Ok(store.map(|(store, _)| store))
    } else {
        Err(wrong(mistakes.shown(&path.display().to_string(), &hidden_in_config(&text))))
    }
}

/// Reads and checks the file.
///
/// # Errors
/// When it cannot be read, or has mistakes: all of them, with an excerpt each.
pub(crate) fn read(path: &Path) -> Result<Config, Failure> {
    let shown = path.display().to_string();
    let wrong = |message: String| Failure { code: "config", ..Failure::usage(message) };
    let size = std::fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => wrong(format!(
            "there is no {shown} here: 'gristmill init --exec DIR' begins a project with one, or \
             name another with --config"
        )),
        _ => wrong(format!("{shown} cannot be read: {error}")),
    })?;
    if size.is_dir() {
        return Err(wrong(format!("{shown} is a folder: name a file with --config")));
    }
    if size.len() > FILE_BYTES {
        return Err(wrong(format!("{shown} is larger than {FILE_BYTES} bytes: name another file")));
    }
    let bytes = std::fs::read(path).map_err(|e| wrong(format!("{shown} cannot be read: {e}")))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let good = String::from_utf8_lossy(good);
        let line = good.matches('\n').count() + 1;
        let column = good.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        wrong(format!("{shown}:{line}:{column}: this is not text in UTF-8: save the file as such"))
    })?;
    parse_in(folder_of(path), &text)
        .map_err(|found| wrong(found.shown(&shown, &hidden_in_config(&text))))
}

/// What relative paths of a file are relative to.
fn folder_of(file: &Path) -> &Path {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// What is wrong with the file, and with the contracts it names.
#[derive(Debug)]
struct Found {
    mistakes: Mistakes,
    contracts: Option<ContractError>,
}

impl Found {
    fn shown(&self, file: &str, text: &str) -> String {
        let own = self.mistakes.shown(file, text);
        match &self.contracts {
            Some(contracts) if own.is_empty() => contracts.to_string(),
            Some(contracts) => format!("{own}\n{contracts}"),
            None => own,
        }
    }
}

/// Reads and checks the text.
fn parse_in(folder: &Path, text: &str) -> Result<Config, Found> {
    let tree = yaml::parse(text).map_err(|mistakes| Found { mistakes, contracts: None })?;
    let mut mistakes = Mistakes::default();
    let mut config = Config { lines: Lines::of(&tree), ..Config::default() };
    let mut contracts = None;
    if let Some(mut top) = Fields::of(&tree, "the configuration", &mut mistakes) {
        config.store = store(&mut top, folder, &mut mistakes);
        if let Some((_, Kept::File(file))) = &config.store {
            config.files.push(file.clone());
        }
        config.listen = listen(&mut top, "listen", &mut mistakes);
        config.metrics = listen(&mut top, "metrics", &mut mistakes);
        config.read_only = is_read_only(&mut top, &mut mistakes);
        config.tls = top.node("tls").and_then(|node| tls::read(node, folder, &mut mistakes));
        config.keep =
            top.node("keep").and_then(|node| keep::read(node, &mut mistakes)).unwrap_or_default();
        contracts = contracts::read(&mut top, folder, &mut config, &mut mistakes);
        for node in top.list("queues", &mut mistakes) {
            queue(node, folder, &mut config, &mut mistakes);
        }
        contracts::add_queues(&mut config);
        for node in top.list("schedules", &mut mistakes) {
            schedule::read(node, &mut config, &mut mistakes);
        }
        config.manager =
            top.node("manager").and_then(|node| manager::read(node, PROCESSORS_MAX, &mut mistakes));
        let seed = top.list("seed", &mut mistakes);
        for node in seed {
            seed::read(node, &mut config, &mut mistakes);
        }
        let mut known = vec![
            "store",
            "listen",
            "metrics",
            "dashboard",
            "tls",
            "keep",
            "contracts",
            "queues",
            "schedules",
            "manager",
            "seed",
        ];
        if let Some(at) = top.node("handlers") {
            // What others call so stands elsewhere here.
            let why = "a handler stands with its queue: write 'exec:' or 'http:' below the queue's 'name:'";
            mistakes.add(at, format!("handlers: {why}"));
            known.push("handlers");
        }
        // Where it is said who listens, queues may be declared there.
        let serves = top.node("listen").is_some();
        top.done(&known, &mut mistakes);
        if config.queues.is_empty() && !serves && mistakes.is_empty() && contracts.is_none() {
            mistakes.add(&tree, "there are no queues: add one under 'queues:'".to_owned());
        }
    }
    if mistakes.is_empty() && contracts.is_none() {
        Ok(config)
    } else {
        Err(Found { mistakes, contracts })
    }
}

/// The store's URL, a value from here on.
fn store(top: &mut Fields<'_>, folder: &Path, mistakes: &mut Mistakes) -> Option<(StoreUrl, Kept)> {
    let Given { text, kept, at } = kept::read(top, "store", folder, mistakes)?;
    let read = text.parse();
    let read = read.map_err(|error: StoreUrlError| mistakes.add(at, error.to_string()));
    Some((read.ok()?, kept))
}

/// Where something is served.
fn listen(top: &mut Fields<'_>, name: &str, mistakes: &mut Mistakes) -> Option<Listen> {
    let said = top.text(name, mistakes)?;
    match said.parse() {
        Ok(listen) => Some(listen),
        Err(why) => {
            if let Some(at) = top.node(name) {
                mistakes.add(at, why);
            }
            None
        }
    }
}

/// Whether the dashboard only shows: `dashboard: read-only`.
fn is_read_only(top: &mut Fields<'_>, mistakes: &mut Mistakes) -> bool {
    let said = top.text("dashboard", mistakes);
    match (said.as_deref(), top.node("dashboard")) {
        (Some("read-only"), _) => return true,
        (None | Some("on"), _) | (_, None) => {}
        (Some(other), Some(at)) => {
            let shown: String = other.chars().take(80).collect();
            let why = format!("dashboard is on or read-only, not '{shown}'");
            mistakes.add(at, why);
        }
    }
    false
}

fn queue(node: &Node, folder: &Path, config: &mut Config, mistakes: &mut Mistakes) {
    let Some(mut fields) = Fields::of(node, "a queue", mistakes) else { return };
    let name = fields.required_text("name", mistakes).and_then(|(name, at)| {
        QueueName::new(&name).map_err(|error| mistakes.add(at, error.to_string())).ok()
    });
    if let Some(name) = &name
        && config.queues.iter().any(|queue| queue.name == *name)
    {
        mistakes.add(node, format!("queue '{name}' is declared twice: keep one"));
    }
    let settings = fields.node("settings").map(|node| queue_settings(node, mistakes).0);
    let (means, secret_kept) = handler::read(&mut fields, node, folder, config, mistakes);
    let with_store = match fields.text("with_store", mistakes).as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => {
            let at = fields.node("with_store").unwrap_or(node);
            mistakes.add(at, "with_store is true or false".to_owned());
            false
        }
    };
    let processors = fields.number("processors", 1..=PROCESSORS_MAX, mistakes).unwrap_or(1);
    let known = ["name", "settings", "exec", "mode", "http", "secret", "with_store", "processors"];
    fields.done(&known, mistakes);
    if let Some(name) = name {
        config.queues.push(QueueConfig {
            name,
            settings: settings.unwrap_or_default(),
            means,
            secret_kept,
            with_store,
            processors: usize::try_from(processors).unwrap_or(1),
            only_in_contract: false,
        });
    }
}

#[cfg(test)]
fn parse(text: &str) -> Result<Config, Found> {
    parse_in(Path::new("."), text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_whole_file_is_read() {
        let text = "
store: sqlite://a.db
listen: off
queues:
  - name: emails
    settings: {max_attempts: 3, timeout: 30s, backoff: {base: 1s, jitter: false}, keep_done: no}
    exec: cat
    mode: stream
    processors: 2
  - name: waiting
manager: {processors: 6, every: 1s}
seed:
  - {queue: emails, id: one, payload: {to: ada, n: 1.5, deep: [1, null, true]}, delay: 5s}
";
        let config = parse(text).expect("a configuration");
        assert_eq!(config.queues.len(), 2);
        assert_eq!(config.listen, Some(Listen::Off));
        let emails = config.queues.first().expect("emails");
        assert_eq!(emails.settings.max_attempts, Some(Some(3)));
        assert_eq!(emails.settings.backoff.map(|b| b.jitter), Some(false));
        assert_eq!(emails.settings.keep_done, Some(None));
        assert_eq!(emails.means, Some(Means::Stays("cat".to_owned())));
        assert_eq!(emails.processors, 2);
        let manager = config.manager().expect("a manager");
        assert_eq!((manager.processors, manager.every), (Some(6), Some(Duration::from_secs(1))));
        let seed = config.seed.first().expect("a seed");
        assert_eq!(&seed.task.payload.bytes[..], br#"{"deep":[1,null,true],"n":1.5,"to":"ada"}"#);
        assert_eq!(seed.task.id.as_deref(), Some("one"));
    }

    #[test]
    fn every_mistake_is_told_with_its_place() {
        let text = "
store: mysql://x
listen: everywhere:80
queues:
  - name: emails
    settings: {timeuot: 30s, lease: 5, backoff: 2s}
    exec: ''
    processors: many
    mode: streaming
  - nam: x
    mode: task
seed:
  - {queue: emials, payload: 1, id: a}
  - {queue: emails, payload: 1}
when: now
";
        let mistakes = parse(text).expect_err("mistakes");
        let shown = mistakes.shown("a.yaml", text);
        for part in [
            "a.yaml:2:8: there is no store 'mysql:'",
            "a.yaml:3:9: 'everywhere:80' is no address to listen at: it wants an IP address",
            "a.yaml:6:16: there is no setting 'timeuot'; did you mean 'timeout'?",
            "a.yaml:6:37: lease: '5' is not a duration: the unit is missing",
            "a.yaml:6:40: backoff has parts",
            "a.yaml:7:11: exec is empty",
            "a.yaml:8:17: processors wants a whole number from 1 to 1000",
            "a.yaml:9:11: mode is task (a program each) or stream (one that stays)",
            "a.yaml:11:11: mode goes with exec",
            "a.yaml:10:5: a queue has no field 'nam'; did you mean 'name'?",
            "a queue needs a field 'name'",
            "there is no queue 'emials' in this file; did you mean 'emails'?",
            "a task to seed needs a field 'id'",
            "a.yaml:15:1: the configuration has no field 'when'",
        ] {
            assert!(shown.contains(part), "missing: {part}\n{shown}");
        }
        assert!(shown.contains("  6 |     settings: {timeuot: 30s"), "{shown}");
    }

    #[test]
    fn a_manager_is_there_when_it_is_asked_for_or_needed() {
        let plain = "queues: [{name: a}]\n";
        let target = "queues: [{name: a, settings: {drain_within: 1m}}]\n";
        for (text, on) in [
            (plain.to_owned(), false),
            (target.to_owned(), true),
            (format!("{plain}manager: true\n"), true),
            (format!("{target}manager: false\n"), false),
        ] {
            assert_eq!(parse(&text).expect(&text).manager().is_some(), on, "{text}");
        }
        for (said, part) in [
            ("yes please", "manager is true, false, or fields"),
            ("{every: 10s}", "every: from 100ms to 5s is possible"),
            ("{procesors: 1}", "the manager has no field 'procesors'; did you mean 'processors'"),
        ] {
            let text = format!("{plain}manager: {said}\n");
            let shown = parse(&text).expect_err(said).shown("a.yaml", &text);
            assert!(shown.contains(part), "{shown}");
        }
    }

    #[test]
    fn broken_yaml_is_one_mistake() {
        for text in
            ["queues: [\n", "a: b: c\n", "queues:\n\t- name: x\n", "x: 1\nx: 2\n", "- x\n", ""]
        {
            let mistakes = parse(text).expect_err(text);
            assert_eq!(mistakes.mistakes.count(), 1, "{}", mistakes.shown("a.yaml", text));
        }
    }
}
