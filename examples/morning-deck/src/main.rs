//! Morning Deck as a program: the demonstration, or the service on a
//! configuration of one's own.

mod admin;
mod out;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use gristmill::port::SystemClock;
use gristmill::signal::Signals;
use morning_deck::ai::WordCounter;
use morning_deck::app::App;
use morning_deck::config::{Config, PROPERTIES, QueuePlace};
use morning_deck::deck::Services;
use morning_deck::demo::{self, Servers};
use morning_deck::error::Result;
use morning_deck::http::Client;
use morning_deck::log;
use morning_deck::search::Search;
use morning_deck::smtp::{Encryption, Mailer, Server};

use admin::{Add, Anew};
use out::say;

/// Fetches sources, enriches news and mails briefings.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// Show everything that happens
    #[arg(long, global = true)]
    debug: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run with local feeds, mail and search, fast enough to watch (the default)
    Demo {
        /// Keep the queues in memory instead of the database
        #[arg(long)]
        memory: bool,
        /// A file to keep and to go on with; without, all is gone at the end
        #[arg(long, value_name = "PATH")]
        db: Option<PathBuf>,
    },
    /// Run on a configuration of your own
    Run {
        /// YAML, or name=value lines in a file that ends in .properties
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Add a reader, a source, a briefing, or credits
    Add {
        #[command(flatten)]
        place: Place,
        #[command(subcommand)]
        what: Add,
    },
    /// Show how everything stands: rows, queues, readers, next briefings, failures
    Status {
        #[command(flatten)]
        place: Place,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Let what failed begin anew
    Retry {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        what: Anew,
    },
    /// List every property with its default and its environment variable
    Properties,
}

/// Where the deck is.
#[derive(Debug, clap::Args)]
struct Place {
    /// The configuration of the program that runs
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The file, instead of the configuration's
    #[arg(long, global = true, value_name = "PATH")]
    db: Option<PathBuf>,
}

impl Place {
    fn config(&self) -> Result<Config> {
        let mut config = Config::load(self.config.as_deref(), std::env::vars())?;
        if let Some(path) = &self.db {
            config.database.clone_from(path);
        }
        Ok(config)
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    log::install(args.debug);
    let ran = match args.command {
        None => demo(false, None).await,
        Some(Command::Demo { memory, db }) => demo(memory, db).await,
        Some(Command::Run { config }) => run(config).await,
        Some(Command::Add { place, what }) => {
            place.config().and_then(|config| admin::add(&config, &what))
        }
        Some(Command::Status { place, json }) => match place.config() {
            Ok(config) => admin::status(&config, json).await,
            Err(error) => Err(error),
        },
        Some(Command::Retry { place, what }) => {
            place.config().and_then(|config| admin::retry(&config, &what))
        }
        Some(Command::Properties) => properties(),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("morning-deck: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn properties() -> Result<()> {
    for property in PROPERTIES {
        say!("{:<57} {:<26} {}", property.name, property.default, property.variable())?;
    }
    Ok(())
}

async fn run(path: Option<PathBuf>) -> Result<()> {
    let config = Config::load(path.as_deref(), std::env::vars())?;
    let app = open(config).await?;
    serve(&app).await
}

async fn demo(memory: bool, db: Option<PathBuf>) -> Result<()> {
    // Deleted when this goes out of scope.
    let folder = tempfile::tempdir()?;
    let servers = Servers::start().await?;
    let mut config = Config::read(Some(("demo.yaml", demo::CONFIG)), std::env::vars())?;
    config.database = db.unwrap_or_else(|| folder.path().join("morning-deck.db"));
    if memory {
        config.queue = QueuePlace::Memory;
    }
    // Anybody may look while it runs.
    config.status = config.status.or(Some(([127, 0, 0, 1], 0).into()));
    config.mail = Some(Server {
        host: "127.0.0.1".to_owned(),
        port: servers.mail.port(),
        encryption: Encryption::None,
        login: None,
    });
    config.search = config.search.map(|_| servers.web.url(""));
    let app = open(config).await?;
    let known = demo::seed(&app.deck, &servers).await?;
    say!("morning-deck: two readers, four sources each, local servers. Ctrl-C stops it.")?;
    tokio::select! {
        served = serve(&app) => served,
        () = servers.keep_going(known) => Ok(()),
        hurried = demo::hurry(&app.deck) => hurried,
    }
}

async fn open(config: Config) -> Result<App> {
    let authorities = config.authorities.as_deref();
    let mailer = config.mail.clone();
    let mailer = mailer.map(|server| Mailer::new(server, &config.mail_from, authorities));
    let mailer = mailer.transpose()?;
    let web = match authorities {
        Some(path) => Client::with_authorities(path)?,
        None => Client::default(),
    };
    let key = config.search_key.clone();
    let search = config.search.clone().map(|url| Search { url, client: web.clone(), key });
    let services = Services { web, ai: Arc::new(WordCounter), mailer, search };
    App::open(config, Arc::new(SystemClock::default()), services).await
}

async fn serve(app: &App) -> Result<()> {
    let signals = Signals::listen()?;
    signals.waits(app.config.stop_within);
    // The second signal ends the patience with what still runs, and the process.
    let report = app.run(signals.asked(), signals.forced()).await?;
    signals.ended(&report);
    app.close().await?;
    say!(
        "morning-deck: stopped; {} tasks done, {} failed, {} given back, {} left running",
        report.done,
        report.not_done,
        report.released,
        report.left.running
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }
}
