//! The mail service's command: put mails and newsletters, work, look.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use gristmill::Mill;
use gristmill::signal::Signals;

use mail_service::handlers::Mailer;
use mail_service::outbox::Outbox;
use mail_service::queues::{self, Emails, Newsletters};
use mail_service::{service, tend};

/// Mails by contract: put now, sent later.
#[derive(Debug, Parser)]
struct Args {
    /// The store
    #[arg(long, default_value = "sqlite://mail.db", global = true)]
    store: String,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Put a mail to each reader
    Send {
        /// What it is about
        subject: String,
        /// Who gets it; busy+3@example.org is refused three times first
        #[arg(required = true)]
        readers: Vec<String>,
    },
    /// Put one newsletter for all readers
    Newsletter {
        /// What it is about
        subject: String,
        /// Who gets it
        #[arg(required = true)]
        readers: Vec<String>,
    },
    /// Send what is due
    Work {
        /// Where mails go
        #[arg(long, default_value = "outbox")]
        outbox: PathBuf,
        /// Processors at the start
        #[arg(long, default_value_t = 1)]
        processors: usize,
        /// A file with the number of processors; read every second
        #[arg(long)]
        control: Option<PathBuf>,
        /// Where metrics are written every second
        #[arg(long)]
        metrics: Option<PathBuf>,
        /// Run a manager, which moves processors to the longer queue
        #[arg(long)]
        managed: bool,
        /// End when nothing is due
        #[arg(long)]
        drain: bool,
    },
    /// Show the queues' numbers
    Show,
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mail-service: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<()> {
    let mill = Mill::open(&args.store).await?;
    queues::declare(&mill).await?;
    match args.command {
        Command::Send { subject, readers } => {
            let mails = readers.into_iter().zip(1..).map(|(to, user_id)| {
                let subject = subject.clone();
                Emails { to, user_id, subject, body: None, attachment: None }
            });
            println!("{} mails put", mill.put_all(mails).run().await?.enqueued);
        }
        Command::Newsletter { subject, readers } => {
            let user_ids = (1..).take(readers.len()).collect();
            mill.put(Newsletters { subject, readers, user_ids }).await?;
            println!("newsletter put");
        }
        Command::Work { outbox, processors, control, metrics, managed, drain } => {
            let outbox = Outbox::open(&outbox)?;
            let mailer = Mailer { outbox, give_up_after: 20, wait: Duration::from_secs(1) };
            let worker = service::worker(&mill, &mailer, managed).processors(processors);
            let report = if drain {
                worker.drain(true).run_until_signalled().await?
            } else {
                let signals = Signals::listen()?;
                signals.stops(&worker);
                let worker = worker.start().await?;
                tokio::select! {
                    () = tend::tend(&mill, &worker, control.as_deref(), metrics.as_deref()) => {}
                    () = signals.asked() => {}
                }
                // Claims no more, and lets what runs finish. The second signal
                // ends the process, whatever a handler does.
                let report = worker.stop().await?;
                tend::write_metrics(&mill, metrics.as_deref());
                signals.ended(&report);
                report
            };
            println!("{} done, {} came back", report.done, report.not_done);
            if !report.left.is_empty() {
                let left = &report.left;
                println!("left: {} still run, {} not on record", left.running, left.unsettled);
            }
        }
        Command::Show => {
            println!(
                "{:<13}{:>7}{:>9}{:>12}{:>8}",
                "queue", "ready", "delayed", "processing", "done"
            );
            for queue in mill.inspect().stats().await? {
                println!(
                    "{:<13}{:>7}{:>9}{:>12}{:>8}",
                    queue.queue.as_str(),
                    queue.ready,
                    queue.delayed,
                    queue.processing,
                    queue.counters.done
                );
            }
        }
    }
    Ok(mill.close().await?)
}
