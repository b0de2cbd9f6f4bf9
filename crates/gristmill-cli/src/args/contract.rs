//! What was typed after `contract` and `generate`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const CHECK: &str = "\
Examples:
  gristmill contract check queues.yaml            every mistake in it
  gristmill contract check old.yaml new.yaml      what the new one would break

What is told of two contracts:
  breaking   tasks that stand could not be read by the new one
  careful    workers of the old one could not read new tasks: bring out workers first
  fine       old and new get along
Ends with 3 when something breaks.";

const SCHEMA: &str = "\
Examples:
  gristmill contract schema queues.yaml --queue emails > emails.schema.json
  gristmill contract schema queues.yaml           all queues, under $defs
  gristmill contract schema --queue emails        as the store keeps it";

const REGISTER: &str = "\
Examples:
  gristmill contract register queues.yaml
  gristmill contract register queues.yaml --force   though tasks stand that it cannot read";

const GENERATE: &str = "\
Examples:
  gristmill generate --out src                    queues.yaml becomes src/queues.rs
  gristmill generate mail.yaml bills.yaml --out src
  gristmill generate --lang python --out app      queues.yaml becomes app/queues.py
  gristmill generate --lang typescript --out src  queues.yaml becomes src/queues.ts
  gristmill generate --out src --check            fails when src/queues.rs is out of date";

/// `contract`.
#[derive(Debug, Subcommand)]
pub(crate) enum ContractCommand {
    /// Show every mistake in a contract, or what a new one would break
    #[command(after_help = CHECK)]
    Check(ContractCheckArgs),
    /// Print a contract as JSON Schema
    #[command(after_help = SCHEMA)]
    Schema(ContractSchemaArgs),
    /// Declare a contract's queues and have the store keep it
    #[command(after_help = REGISTER)]
    Register(ContractRegisterArgs),
}

/// `contract check`.
#[derive(Debug, Args)]
pub(crate) struct ContractCheckArgs {
    /// The contract, or the old one of two
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The new one
    #[arg(value_name = "NEW")]
    pub(crate) new: Option<PathBuf>,
}

/// `contract schema`.
#[derive(Debug, Args)]
pub(crate) struct ContractSchemaArgs {
    /// The contract; what the store keeps unless said
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Only this queue
    #[arg(long, value_name = "Q")]
    pub(crate) queue: Option<String>,
}

/// `contract register`.
#[derive(Debug, Args)]
pub(crate) struct ContractRegisterArgs {
    /// The contract's files
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Also when it cannot read tasks that stand
    #[arg(long)]
    pub(crate) force: bool,
}

/// `generate`.
#[derive(Debug, Args)]
#[command(after_help = GENERATE)]
pub(crate) struct GenerateArgs {
    /// The contract's files
    #[arg(value_name = "FILE", default_value = "queues.yaml")]
    pub(crate) files: Vec<PathBuf>,

    /// The folder that the code goes to; the file has the first contract's name
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,

    /// Write nothing; fail when what is there is not what would be written
    #[arg(long)]
    pub(crate) check: bool,

    /// The language
    #[arg(long, value_enum, value_name = "LANG", default_value_t)]
    pub(crate) lang: Language,
}

/// A language that code is generated in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Language {
    /// For the library `gristmill`
    #[default]
    Rust,
    /// For the package `gristmill` of clients/python
    Python,
    /// For the package `gristmill` of clients/typescript
    Typescript,
}
