//! What was meant: one plain struct a verb, with everything parsed and
//! checked, and what it does.

mod audit;
mod backup;
mod bench;
mod cause;
mod check;
mod claim;
mod completions;
mod config;
mod config_show;
mod contract;
mod copy;
mod doctor;
mod failed;
mod generate;
mod init;
mod line_source;
mod list;
mod man;
mod migrate;
mod ndjson;
mod operate;
mod operations;
mod order;
mod pause;
mod put;
mod put_many;
mod put_wait;
mod queue;
mod reload;
mod schedule_add;
mod schedules;
mod settle;
mod show;
mod stats;
mod token;
mod top;
mod up;
mod work;
mod workers;

pub(crate) use order::Wanted;
pub(crate) use stats::{Rates, rate_text};

use std::path::Path;

pub(crate) use contract::open as open_contract;

use gristmill::{Mill, StoreUrl};
use gristmill_server::{Audit as Log, Deed};

use crate::args::{self, CauseArgs, FailedOperateArgs, RetryArgs, TypedUrl};
use crate::failure::Failure;
use crate::output::Output;
use crate::serve::say;
use crate::store::{self, Missing};

/// What every command knows besides its own words.
#[derive(Debug)]
pub(crate) struct Session {
    /// The store that was asked for, by flag or environment, or that the
    /// configuration of this folder names.
    pub(crate) store: Option<StoreUrl>,
    /// Where answers go.
    pub(crate) output: Output,
}

impl Session {
    /// Finds the store that the command means: the one that was asked for, else
    /// the one that is served here, of the configuration beside us. That is said,
    /// for nobody typed it.
    ///
    /// # Errors
    /// When what was asked for, or what the configuration says, names no store.
    pub(crate) fn find_store(
        &mut self,
        command: &Command,
        asked: Option<TypedUrl>,
    ) -> Result<(), Failure> {
        let using = command.store();
        if using == Using::No {
            return Ok(());
        }
        self.store = asked.map(TypedUrl::meant).transpose()?;
        if using == Using::Asked || self.store.is_some() {
            return Ok(());
        }
        self.store = crate::config::store_of(Path::new(crate::config::FILE))?;
        if let Some(url) = self.store.as_ref().filter(|url| **url != store::default())
            && !self.output.json
        {
            say(format_args!("store {url}, as {} says", crate::config::FILE));
        }
        Ok(())
    }

    /// The store's URL, for a command without a configuration of its own.
    pub(crate) fn url(&self) -> StoreUrl {
        self.store.clone().unwrap_or_else(store::default)
    }

    /// Opens the store.
    pub(crate) async fn open(&self, missing: Missing) -> Result<Mill, Failure> {
        store::open(&self.url(), missing).await
    }
}

/// Which store a command uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Using {
    /// None, or one that it names itself.
    No,
    /// The one that was asked for, else one of its own.
    Asked,
    /// The one that was asked for, else the one that is served here.
    Served,
}

/// A command that is ready to run.
#[derive(Debug)]
pub(crate) enum Command {
    Audit(audit::Audit),
    Backup(backup::Backup),
    Bench(bench::Bench),
    Check(check::Check),
    Claim(claim::Claim),
    Completions(completions::Completions),
    ConfigCheck(config::ConfigCheck),
    ConfigShow(config_show::ConfigShow),
    ContractCheck(contract::Check),
    ContractRegister(contract::Register),
    ContractSchema(contract::Schema),
    Copy(copy::Copy),
    Doctor(doctor::Doctor),
    Extend(settle::Extend),
    Failed(failed::Failed),
    Generate(generate::Generate),
    Init(init::Init),
    List(list::List),
    Man(man::Man),
    Migrate(migrate::Migrate),
    Operate(operate::Operate),
    Operations(operations::Operations),
    Pause(pause::Pause),
    Put(put::Put),
    PutMany(put_many::PutMany),
    QueueAdd(queue::Add),
    QueueChange(queue::Change),
    QueueList(queue::List),
    Schedules(schedules::Schedules),
    Settle(settle::Settle),
    Show(show::Show),
    Stats(stats::Stats),
    TokenCreate(token::Create),
    TokenList(token::List),
    TokenRevoke(token::Revoke),
    Top(top::Top),
    Up(up::Up),
    Work(work::Work),
    Workers(workers::Workers),
    Order(order::Order),
}

impl Command {
    /// Works out what was meant. Nothing is opened or read for it.
    ///
    /// # Errors
    /// One sentence about the first word that has no meaning.
    pub(crate) fn meant(typed: args::Command) -> Result<Self, Failure> {
        use args::Command as Typed;
        use gristmill::port::Action;
        Ok(match typed {
            Typed::Up(args) => Command::Up(up::Up::meant(args)),
            Typed::Serve(args) => Command::Up(up::Up::without_handlers(args)),
            Typed::Queue(args::QueueCommand::Add(args)) => {
                Command::QueueAdd(queue::Add::meant(args)?)
            }
            Typed::Queue(args::QueueCommand::Set(args)) => {
                Command::QueueChange(queue::Change::set(args)?)
            }
            Typed::Queue(args::QueueCommand::Reset(args)) => {
                Command::QueueChange(queue::Change::reset(args)?)
            }
            Typed::Queue(args::QueueCommand::List) => Command::QueueList(queue::List),
            Typed::Put(args) => match put_many::PutMany::meant(&args)? {
                Some(many) => Command::PutMany(many),
                None => Command::Put(put::Put::meant(args)?),
            },
            Typed::Work(args) => Command::Work(work::Work::meant(args)?),
            Typed::Claim(args) => Command::Claim(claim::Claim::meant(args)?),
            Typed::Settle(args) => Command::Settle(settle::Settle::meant(args)?),
            Typed::Done(args) => Command::Settle(settle::Settle::done(args)?),
            Typed::Fail(args) => Command::Settle(settle::Settle::fail(args)?),
            Typed::Extend(args) => Command::Extend(settle::Extend::meant(args)?),
            Typed::Workers(args) => match args.command {
                None => Command::Workers(workers::Workers),
                Some(command) => Command::Order(order::Order::meant(command)?),
            },
            Typed::Stats(args) => Command::Stats(stats::Stats::meant(args)?),
            Typed::Top(args) => Command::Top(top::Top::meant(args)?),
            Typed::List(args) => Command::List(list::List::meant(args)?),
            Typed::Failed(args) => Command::Failed(failed::Failed::meant(args)?),
            Typed::Show(args) => Command::Show(show::Show::meant(&args)?),
            Typed::Retry(RetryArgs { which, cause, fresh, delay, at }) => {
                let action = if fresh { Action::RetryFresh } else { Action::Retry };
                let start = put::start(delay.as_deref(), at.as_deref())?;
                let retry = operate::Operate::meant(action, which, cause)?;
                Command::Operate(retry.starting(start))
            }
            Typed::Resolve(FailedOperateArgs { which, cause }) => {
                Command::Operate(operate::Operate::meant(Action::Resolve, which, cause)?)
            }
            Typed::Discard(FailedOperateArgs { which, cause }) => {
                Command::Operate(operate::Operate::meant(Action::Discard, which, cause)?)
            }
            Typed::Cancel(which) => {
                let any = CauseArgs::default();
                Command::Operate(operate::Operate::meant(Action::Cancel, which, any)?)
            }
            Typed::Pause(args) => Command::Pause(pause::Pause::meant(args, true)?),
            Typed::Resume(args) => Command::Pause(pause::Pause::meant(args, false)?),
            Typed::Operations(args) => Command::Operations(operations::Operations::meant(args)?),
            Typed::Schedules(args) => Command::Schedules(schedules::Schedules::meant(args)?),
            Typed::Token(args::TokenCommand::Create(args)) => {
                Command::TokenCreate(token::Create::meant(args)?)
            }
            Typed::Token(args::TokenCommand::List) => Command::TokenList(token::List),
            Typed::Token(args::TokenCommand::Revoke(args)) => {
                Command::TokenRevoke(token::Revoke::meant(args)?)
            }
            Typed::Audit(args) => Command::Audit(audit::Audit::meant(&args)?),
            Typed::Backup(args) => Command::Backup(backup::Backup { file: args.file }),
            Typed::Bench(args) => Command::Bench(bench::Bench::meant(args)),
            Typed::Check => Command::Check(check::Check),
            Typed::Migrate(args) => {
                Command::Migrate(migrate::Migrate { print: args.print, roles: args.roles })
            }
            Typed::Doctor(args) => Command::Doctor(doctor::Doctor { strict: args.strict }),
            Typed::Copy(args) => Command::Copy(copy::Copy::meant(args)?),
            Typed::Config(args::ConfigCommand::Check(args)) => {
                Command::ConfigCheck(config::ConfigCheck { file: args.config })
            }
            Typed::Config(args::ConfigCommand::Show(args)) => {
                Command::ConfigShow(config_show::ConfigShow { file: args.config })
            }
            Typed::Contract(args::ContractCommand::Check(args)) => {
                Command::ContractCheck(contract::Check::meant(args))
            }
            Typed::Contract(args::ContractCommand::Schema(args)) => {
                Command::ContractSchema(contract::Schema::meant(args))
            }
            Typed::Contract(args::ContractCommand::Register(args)) => {
                Command::ContractRegister(contract::Register::meant(args))
            }
            Typed::Generate(args) => Command::Generate(generate::Generate::meant(args)),
            Typed::Init(args) => Command::Init(init::Init::meant(args)),
            Typed::Man(args) => Command::Man(man::Man { out: args.out }),
            Typed::Completions(args) => {
                Command::Completions(completions::Completions { shell: args.shell })
            }
        })
    }

    /// Which store the command is about.
    const fn store(&self) -> Using {
        match self {
            Command::Completions(_)
            | Command::ConfigCheck(_)
            | Command::ContractCheck(_)
            | Command::Copy(_)
            | Command::Generate(_)
            | Command::Init(_)
            | Command::Man(_) => Using::No,
            Command::ContractSchema(schema) if schema.names_a_file() => Using::No,
            Command::Bench(_) | Command::ConfigShow(_) | Command::Up(_) => Using::Asked,
            _ => Using::Served,
        }
    }

    /// Whether the command stays and works, rather than asks and ends.
    pub(crate) const fn stays(&self) -> bool {
        matches!(self, Command::Bench(_) | Command::Up(_) | Command::Work(_))
    }

    /// Does it.
    ///
    /// # Errors
    /// Why it could not be done.
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Command::Audit(audit) => audit.run(session).await,
            Command::Backup(backup) => backup.run(session).await,
            Command::Bench(bench) => bench.run(session).await,
            Command::Check(check) => check.run(session).await,
            Command::Claim(claim) => claim.run(session).await,
            Command::Completions(completions) => completions.run(session),
            Command::Copy(copy) => copy.run(session).await,
            Command::Doctor(doctor) => doctor.run(session).await,
            Command::Extend(extend) => extend.run(session).await,
            Command::Migrate(migrate) => migrate.run(session).await,
            Command::ConfigCheck(check) => check.run(session),
            Command::ConfigShow(show) => show.run(session),
            Command::ContractCheck(check) => check.run(session),
            Command::ContractRegister(register) => register.run(session).await,
            Command::ContractSchema(schema) => schema.run(session).await,
            Command::Failed(failed) => failed.run(session).await,
            Command::Generate(generate) => generate.run(session),
            Command::Init(init) => init.run(session),
            Command::List(list) => list.run(session).await,
            Command::Man(man) => man.run(session),
            Command::Operate(operate) => operate.run(session).await,
            Command::Operations(operations) => operations.run(session).await,
            Command::Pause(pause) => pause.run(session).await,
            Command::Put(put) => put.run(session).await,
            Command::PutMany(many) => many.run(session).await,
            Command::QueueAdd(add) => add.run(session).await,
            Command::QueueChange(change) => change.run(session).await,
            Command::QueueList(list) => list.run(session).await,
            Command::Schedules(schedules) => schedules.run(session).await,
            Command::Settle(settle) => settle.run(session).await,
            Command::Show(show) => show.run(session).await,
            Command::Stats(stats) => stats.run(session).await,
            Command::TokenCreate(create) => create.run(session).await,
            Command::TokenList(list) => list.run(session).await,
            Command::TokenRevoke(revoke) => revoke.run(session).await,
            Command::Top(top) => top.run(session).await,
            Command::Up(up) => up.run(session).await,
            Command::Work(work) => work.run(session).await,
            Command::Workers(workers) => workers.run(session).await,
            Command::Order(order) => order.run(session).await,
        }
    }
}

/// Writes down what an operator did from here.
async fn tell(mill: &Mill, by: &str, action: &str, more: Deed) {
    // A service writes down what is done through it, with the token that was shown.
    #[cfg(feature = "remote")]
    if mill.remote().is_some() {
        return;
    }
    let (action, via) = (action.to_owned(), "cli".to_owned());
    Log::of(mill).tell(Deed { action, via, by: Some(by.to_owned()), ..more }).await;
}

/// Who acts: what was said, or the user of the shell.
fn who(said: Option<String>) -> Result<String, Failure> {
    let who = said
        .or_else(|| std::env::var("USER").ok().filter(|user| !user.is_empty()))
        .or_else(|| std::env::var("LOGNAME").ok().filter(|user| !user.is_empty()))
        .unwrap_or_else(|| "unknown".to_owned());
    text("--by", who)
}

/// A text that stores keep: not empty, not endless, no NUL.
fn text(what: &str, text: String) -> Result<String, Failure> {
    text_up_to(512, what, text)
}

/// As [`text`], up to this many bytes.
fn text_up_to(limit: usize, what: &str, text: String) -> Result<String, Failure> {
    let bytes = text.len();
    let why = if text.is_empty() {
        "is empty: leave it out or give it a value".to_owned()
    } else if bytes > limit {
        format!("has {bytes} bytes and {limit} are allowed: shorten it")
    } else if text.contains('\0') {
        "holds a NUL: take it out".to_owned()
    } else {
        return Ok(text);
    };
    Err(Failure::usage(format!("{what} {why}")))
}
