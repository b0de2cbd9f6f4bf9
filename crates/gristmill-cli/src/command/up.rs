//! `up`: everything the configuration describes, in one process; and `serve`, which
//! is the same without handlers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill::contract::register;
use gristmill::port::{
    Declaration, Declared, Origin, PutAnswer, PutRequest, QueueName, ScheduleDeclaration,
};
use gristmill::schedule::Scheduler;
use gristmill::signal::Signals;
use gristmill::{Mill, StoreUrl};
use gristmill_contract::{QueueContract, Scalar, duration};
use gristmill_server::{Encryption, Listen, Options, Server};
use serde_json::Value;
use tokio::sync::mpsc::unbounded_channel;

use super::Session;
use super::queue::change_text;
use super::reload::Reload;
use super::schedules::rule_text;
use crate::args::{ServeArgs, UpArgs};
use crate::config::{self, Config, QueueConfig, TlsConfig};
use crate::contracts::Contracts;
use crate::crew::{Crew, shared_processors};
use crate::exec::Children;
use crate::failure::{Exit, Failure};
use crate::notify;
use crate::output::{Output, count};
use crate::program;
use crate::serve::{Beside, Tell, admit, no_token, say, serve, take};
use crate::store;

/// Run what this file describes.
#[derive(Debug)]
pub(crate) struct Up {
    config: PathBuf,
    /// Handlers run here.
    handles: bool,
    /// The file was asked for by name, or is needed.
    needs_file: bool,
}

impl Up {
    pub(crate) fn meant(args: UpArgs) -> Self {
        Up { config: args.config, handles: true, needs_file: true }
    }

    /// `serve`.
    pub(crate) fn without_handlers(args: ServeArgs) -> Self {
        let needs_file = args.config.is_some();
        let config = args.config.unwrap_or_else(|| config::FILE.into());
        Up { config, handles: false, needs_file }
    }

    /// What is to run.
    fn read(&self) -> Result<Config, Failure> {
        if !self.needs_file && !self.config.exists() {
            return Ok(Config::default());
        }
        let mut config = config::read(&self.config)?;
        if !self.handles {
            config.queues.iter_mut().for_each(|queue| queue.means = None);
        }
        Ok(config)
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let config = self.read()?;
        let encryption = encryption(&config)?;
        let (listen, _) = listen(&config)?;
        // Before anything is opened: a mistake must not leave a store behind.
        if !self.handles && listen == Listen::Off {
            let why = "HTTP is off and no handler is to run, so there is nothing to serve: say an \
                       address with 'listen:' or GRISTMILL_LISTEN";
            return Err(Failure::new(Exit::Usage, "config", why));
        }
        if listen == Listen::Off
            && config.schedules.is_empty()
            && config.queues.iter().all(|queue| queue.means.is_none())
        {
            return Err(Failure::new(
                Exit::Usage,
                "config",
                "no queue has a handler, there are no schedules, and HTTP is off: give a queue an \
                 'exec:' command or an 'http:' URL, or say an address with 'listen:'",
            ));
        }
        let port = take(listen).await?;
        let (watched_at, _) = metrics(&config)?;
        let watch_port = take(watched_at).await?;
        let url = session.store.clone().or_else(|| config.store.clone().map(|(url, _)| url));
        let url = url.unwrap_or_else(store::default);
        let reachable = listen.reachable().or(watched_at.reachable());
        if let Some(address) = reachable
            && store::is_new(&url)
        {
            // It has no token, and is not made for a start that cannot succeed.
            return Err(no_token(address));
        }
        let mill = store::open_to_stay(&url).await?;
        admit(&mill, reachable).await?;
        // Before it is read a second time, in case it changes meanwhile.
        let watched = Reload::watched(&self.config, &config);
        declare_all(&mill, &config).await?;
        let contracts = Arc::new(Contracts::of(&mill).await?);
        let seeded = seed(&mill, &config).await?;
        let signals = Signals::listen()?;
        let hangups = signals.hangups();
        for ahead in mill.ahead_of_the_clock().await? {
            say(format_args!("{}; {}", ahead.found, ahead.remedy));
        }
        for why in config.queues.iter().filter_map(program::missing) {
            say(format_args!("{why}; its tasks wait"));
        }
        let program = self.program(session, &url);
        let scheme = if encryption.is_some() { "https" } else { "http" };
        if let (Some(address), None) = (reachable, &encryption) {
            say(format_args!(
                "{address} can be reached from other machines and is not encrypted: tokens and \
                 payloads can be read on their way; give 'tls: {{cert, key}}', or put something \
                 that encrypts in front"
            ));
        }
        let http = port.as_ref().map(|port| format!("{scheme}://{}", port.address()));
        if let Some(port) = &watch_port {
            say(format_args!("metrics at {scheme}://{}/metrics", port.address()));
        }
        let file = (self.needs_file || self.config.exists()).then_some(self.config.as_path());
        let places = Places { file, url: &url, http: http.as_deref() };
        introduce(session.output, &places, &program, &config, &seeded)?;
        notify::tell(notify::READY);
        let children = Children::default();
        let mut crew = Crew::new(&mill, &url, session.output, &children);
        let (workers, _) = crew.follow(&config, &contracts);
        let options = Options {
            sweeps: workers.is_empty(),
            strict: reachable.is_some(),
            kept_audit: config.keep.audit,
            kept_operations: config.keep.operations,
            read_only: config.read_only,
            ..Options::default()
        };
        let sweeps = port.is_some() && !options.sweeps;
        let (hires, hired) = unbounded_channel();
        let watch_only = Options { watch_only: true, sweeps: false, ..options };
        let servers = port.map(|port| Server::new(port, &mill, options)).into_iter();
        let watching = watch_port.map(|port| Server::new(port, &mill, watch_only));
        let encrypted = |server: Server| match &encryption {
            Some(encryption) => server.encrypted(encryption.clone()),
            None => server,
        };
        let servers = servers.chain(watching).map(encrypted).collect();
        let beside =
            Beside { scheduler: Some(Scheduler::new(&mill)), http: servers, hires: Some(hired) };
        let (file, handles, mill_again) = (self.config.clone(), self.handles, mill.clone());
        let reload =
            Reload { file, handles, mill: mill_again, crew, hires, config, watched, sweeps };
        let reloading = tokio::spawn(reload.run(hangups));
        let ended = serve(&signals, &mill, workers, beside, &children, Tell::All).await;
        reloading.abort();
        let served = ended?;
        say(format_args!("stopped; {} done this time", count(served.report.done, "task")));
        served.interrupted(false)
    }

    /// How a person reaches the same store in another shell: what to type before
    /// a command, so that lines can be copied, and what to do before that.
    fn program(&self, session: &Session, url: &StoreUrl) -> Program {
        // As it was called.
        let called = std::env::args().next().unwrap_or_else(|| "gristmill".to_owned());
        let is_found = session.store.is_none() && self.config.as_path() == Path::new(config::FILE);
        if is_found || *url == store::default() {
            // Every command looks there by itself.
            Program { called, first: None }
        } else if url.is_shown_whole() {
            Program { called: format!("{called} --store {url}"), first: None }
        } else {
            let first =
                "with GRISTMILL_STORE set to the store's whole URL (a password is not shown)";
            Program { called, first: Some(first) }
        }
    }
}

/// With what HTTP is encrypted. Before a store is made: a certificate that cannot be used
/// is a mistake in the configuration.
fn encryption(config: &Config) -> Result<Option<Arc<Encryption>>, Failure> {
    let Some(TlsConfig { cert, key }) = config.tls.clone() else { return Ok(None) };
    let read = Encryption::read(cert, key);
    let read =
        read.map_err(|why| Failure { code: "config", ..Failure::usage(format!("tls: {why}")) })?;
    Ok(Some(Arc::new(read)))
}

/// The variables that say where to listen, over what the file says.
const LISTEN: &str = "GRISTMILL_LISTEN";
const METRICS: &str = "GRISTMILL_METRICS";

/// Where HTTP is served, and the variable that says so, if one does.
pub(super) fn listen(config: &Config) -> Result<(Listen, Option<&'static str>), Failure> {
    let said = said_by(LISTEN)?;
    Ok(match said {
        Some(listen) => (listen, Some(LISTEN)),
        None => (config.listen.unwrap_or_default(), None),
    })
}

/// Where only the process is watched, and the variable that says so, if one does.
pub(super) fn metrics(config: &Config) -> Result<(Listen, Option<&'static str>), Failure> {
    let said = said_by(METRICS)?;
    Ok(match said {
        Some(listen) => (listen, Some(METRICS)),
        None => (config.metrics.unwrap_or(Listen::Off), None),
    })
}

fn said_by(variable: &str) -> Result<Option<Listen>, Failure> {
    match std::env::var(variable) {
        Ok(said) if !said.is_empty() => {
            let read = said.parse();
            read.map(Some).map_err(|why: String| Failure::usage(format!("{variable}: {why}")))
        }
        _ => Ok(None),
    }
}

/// Where things are.
struct Places<'a> {
    file: Option<&'a Path>,
    url: &'a StoreUrl,
    http: Option<&'a str>,
}

/// How to reach the store that is served.
struct Program {
    called: String,
    /// What has to be so before.
    first: Option<&'static str>,
}

/// What declaring it all changed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Queues and schedules that did not stand before.
    pub(super) made: Vec<String>,
    /// How many others are not as they were; each was said.
    pub(super) changed: usize,
}

/// Has the store know the queues, the schedules and how long minutes are kept, and says what that changed of those
/// that stood before.
pub(super) async fn declare_all(mill: &Mill, config: &Config) -> Result<Changes, Failure> {
    let mut changes = Changes::default();
    for queue in &config.contract.queues {
        let registered = register(mill, queue, false).await?;
        changes.add(&queue.name, &registered.declared);
    }
    for queue in config.queues.iter().filter(|queue| !queue.only_in_contract) {
        declare(mill, queue, &mut changes).await?;
    }
    declare_schedules(mill, &config.schedules, &mut changes).await?;
    if let Some(kept) = config.keep.minutes
        && mill.keep_minutes(kept).await?
    {
        changes.changed += 1;
        say(format_args!("minutes of queues are kept for {} from now on", duration::show(kept)));
    }
    Ok(changes)
}

impl Changes {
    /// Says what a declaration changed of a queue that stood before.
    fn add(&mut self, queue: &QueueName, declared: &Declared) {
        if declared.created {
            self.made.push(format!("queue {queue}"));
            return;
        }
        for change in &declared.changes {
            say(format_args!("queue {queue}: {}", change_text(change)));
        }
        self.changed += declared.changes.len();
    }
}

/// Declares a queue, and says what that changed and what it could not.
async fn declare(mill: &Mill, queue: &QueueConfig, changes: &mut Changes) -> Result<(), Failure> {
    let declared = mill
        .store()
        .declare_queue(Declaration {
            name: queue.name.clone(),
            number: None,
            settings: queue.settings.clone(),
            origin: Origin::Config,
        })
        .await?;
    changes.add(&queue.name, &declared);
    if let Some(change) = &declared.queue.overridden {
        say(format_args!(
            "queue {}: settings changed by {} stand over the configuration until 'gristmill queue \
             reset {}'",
            queue.name, change.by, queue.name
        ));
    }
    Ok(())
}

/// Declares the schedules, and says what that changed. Others of the store are
/// left alone: they may belong to another file or to a program.
async fn declare_schedules(
    mill: &Mill,
    schedules: &[ScheduleDeclaration],
    changes: &mut Changes,
) -> Result<(), Failure> {
    let before = mill.store().schedules().await?;
    for schedule in schedules {
        mill.store().declare_schedule(schedule.clone()).await?;
        let known = before.iter().find(|known| known.declared.name == schedule.name);
        if known.is_none() {
            changes.made.push(format!("schedule {}", schedule.name));
        }
        if known.is_some_and(|known| known.declared != *schedule) {
            changes.changed += 1;
            say(format_args!("schedule {}: now as in the configuration", schedule.name));
        }
        if let Some(by) = known.filter(|known| known.paused).and_then(|k| k.paused_by.as_ref()) {
            say(format_args!("schedule {} stays paused, by {by}", schedule.name));
        }
    }
    for known in before.iter().map(|known| &known.declared) {
        if !schedules.iter().any(|schedule| schedule.name == known.name) {
            say(format_args!(
                "schedule {name} is not in this file and stays: 'gristmill schedules remove \
                 {name}' ends it",
                name = known.name
            ));
        }
    }
    Ok(())
}

/// What became of the tasks to seed.
#[derive(Debug, Default)]
pub(super) struct Seeded {
    pub(super) put: u64,
    stood: u64,
}

pub(super) async fn seed(mill: &Mill, config: &Config) -> Result<Seeded, Failure> {
    let mut seeded = Seeded::default();
    for seed in &config.seed {
        let request =
            PutRequest { queue: seed.queue.clone(), tasks: vec![seed.task.clone()], atomic: false };
        match mill.store().put(request).await?.answers.into_iter().next() {
            Some(PutAnswer::Enqueued { .. } | PutAnswer::Replaced { .. }) => seeded.put += 1,
            Some(PutAnswer::Refused(refusal)) => say(format_args!(
                "task '{}' of queue {} was not seeded: {refusal}",
                seed.task.id.as_deref().unwrap_or_default(),
                seed.queue
            )),
            _ => seeded.stood += 1,
        }
    }
    Ok(seeded)
}

/// Says where things are and what to try next.
fn introduce(
    output: Output,
    places: &Places<'_>,
    program: &Program,
    config: &Config,
    seeded: &Seeded,
) -> Result<(), Failure> {
    let Places { file, url, http } = places;
    let file = file.map_or_else(|| "none".to_owned(), |file| file.display().to_string());
    if output.json {
        let queues: Vec<&str> = config.queues.iter().map(|queue| queue.name.as_str()).collect();
        let schedules: Vec<&str> = config.schedules.iter().map(|s| s.name.as_str()).collect();
        return output.value(&serde_json::json!({
            "store": url.to_string(), "config": file, "http": http,
            "dashboard": http.map(|http| format!("{http}/")), "queues": queues,
            "schedules": schedules,
            "seeded": seeded.put, "seeded_before": seeded.stood,
        }));
    }
    let shared = shared_processors(config);
    let queues: Vec<String> = config
        .queues
        .iter()
        .map(|queue| match queue.means {
            Some(_) if shared.is_some() => queue.name.to_string(),
            Some(_) => {
                format!("{} ({})", queue.name, count(queue.processors as u64, "processor"))
            }
            None => format!("{} (no handler here)", queue.name),
        })
        .collect();
    let mut queues = if queues.is_empty() { "as they stand".to_owned() } else { queues.join(", ") };
    if let Some(shared) = shared {
        queues += &format!("; a manager moves {}", count(shared as u64, "processor"));
    }
    let schedules: Vec<String> = config
        .schedules
        .iter()
        .map(|schedule| format!("{} ({})", schedule.name, rule_text(&schedule.rule)))
        .collect();
    let has_schedules = !schedules.is_empty();
    let schedules = if schedules.is_empty() { "none".to_owned() } else { schedules.join(", ") };
    let Program { called: program, first: before } = program;
    let before = before.map_or_else(String::new, |before| format!(", {before}"));
    let first = config.queues.first().map_or("QUEUE", |queue| queue.name.as_str());
    let contract = config.contract.queues.iter().find(|queue| queue.name.as_str() == first);
    let sample = contract.map_or_else(|| "{\"hello\":\"world\"}".to_owned(), sample);
    let mut tries: Vec<String> = Vec::new();
    if let Some(http) = http {
        tries.push(format!("curl {http}/v1/stats"));
    }
    let mut said = "In a second shell".to_owned();
    if matches!(url, StoreUrl::Memory) {
        // No other process has it.
        if let Some(http) = http {
            let body = format!("{{\"payload\":{sample}}}");
            tries.push(format!("curl --json '{body}' {http}/v1/queues/{first}/tasks"));
        }
    } else {
        said += &before;
        let put = format!("put {first} '{sample}'");
        let verbs = ["stats", &put, "schedules", "failed --by-error", "top"];
        // Only what there is.
        let verbs = verbs.into_iter().filter(|verb| *verb != "schedules" || has_schedules);
        tries.splice(0..0, verbs.map(|verb| format!("{program} {verb}")));
    }
    let tries = if tries.is_empty() {
        "The queues are in this process's memory, and HTTP is off: nobody else can put tasks."
            .to_owned()
    } else {
        format!("{said}, try:\n  {}", tries.join("\n  "))
    };
    output.line(format_args!(
        "gristmill {version} is up
  store      {url}
  config     {file}
  http       {served}
  dashboard  {dashboard}
  queues     {queues}
  schedules  {schedules}
  seeded     {put} ({stood} put before)

{tries}

Stop with Ctrl-C.
",
        version = env!("CARGO_PKG_VERSION"),
        served = http.map_or_else(|| "off".to_owned(), |http| format!("{http} (/docs)")),
        dashboard = http.map_or_else(|| "off".to_owned(), |http| format!("{http}/")),
        put = count(seeded.put, "task"),
        stood = seeded.stood,
    ))
}

/// A payload that fits a contract, to try it with.
fn sample(contract: &QueueContract) -> String {
    let needed = contract.fields.iter().filter(|field| !field.kind.optional);
    let fields = needed.map(|field| {
        let one = match field.kind.scalar {
            Scalar::Int | Scalar::Int64 => Value::from(1),
            Scalar::Bool => Value::from(true),
            // Base64 of nothing.
            Scalar::Bytes => Value::from(""),
            Scalar::Float64 => Value::from(1.5),
            Scalar::Timestamp => Value::from("2026-11-15T08:30:00Z"),
            // One that came later has to be known here too.
            _ => Value::from("x"),
        };
        let value = if field.kind.list { Value::from(vec![one]) } else { one };
        (field.name.clone(), value)
    });
    Value::Object(fields.collect()).to_string()
}
