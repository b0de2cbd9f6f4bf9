//! A project out of a contract: the files of the sample, with a handler for each of the
//! contract's queues in place of the sample's own.

mod python;
mod rust;
mod typescript;

use std::fmt::Write as _;
use std::path::Path;

use gristmill_contract::naming::{pascal_case, snake_case};
use gristmill_contract::{Contract, FieldType, QueueContract, Scalar, Source, read};
use serde_json::{Value, json};

use crate::args::Language;

use crate::command::open_contract;
use crate::failure::Failure;

/// A contract and its text.
pub(crate) struct Stubs {
    contract: Contract,
    text: String,
}

/// A file's name and text.
type File = (String, String);

impl Stubs {
    pub(crate) fn read(file: &Path) -> Result<Self, Failure> {
        let contract = open_contract(&[file.to_owned()])?;
        let shown = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|error| Failure::io(&shown, &error))?;
        Ok(Stubs { contract, text })
    }

    /// Those of the sample, for languages that have none of their own.
    pub(crate) fn of(text: &str) -> Result<Self, Failure> {
        let source = Source { name: "queues.yaml".to_owned(), text: text.to_owned() };
        let contract = read(&[source]).map_err(|error| Failure::usage(error.to_string()))?;
        Ok(Stubs { contract, text: text.to_owned() })
    }

    /// A project that speaks with the service: its own files, and the contract's code.
    pub(crate) fn client(&self, language: Language) -> Vec<File> {
        let files = match language {
            Language::Python => self.python(),
            _ => self.typescript(),
        };
        let shared = [
            ("queues.yaml", self.text.clone()),
            ("gristmill.yaml", include_str!("../init/client/gristmill.yaml").to_owned()),
        ];
        shared.into_iter().chain(files).map(|(name, text)| (name.to_owned(), text)).collect()
    }

    /// The sample's files, made into those of this contract.
    pub(crate) fn files(&self, sample: &[(&str, &str)], exec: bool) -> Vec<File> {
        let mut files = Vec::new();
        for (name, text) in sample {
            let text = match *name {
                "queues.yaml" => self.text.clone(),
                "src/main.rs" => self.main(),
                "src/handlers.rs" => self.handlers(),
                "README.md" => self.readme(exec),
                "gristmill.yaml" if exec => self.configuration(),
                handler if handler.starts_with("handlers/") => continue,
                _ => (*text).to_owned(),
            };
            files.push(((*name).to_owned(), text));
        }
        if exec {
            let scripts = self
                .queues()
                .map(|(queue, ..)| (format!("handlers/{}", queue.name), script(queue)));
            files.extend(scripts);
        }
        files
    }

    /// Each queue, with its names in code.
    fn queues(&self) -> impl Iterator<Item = (&QueueContract, String, String)> {
        self.contract.queues.iter().map(|queue| {
            let name = queue.name.as_str();
            (queue, pascal_case(name), snake_case(name))
        })
    }

    fn configuration(&self) -> String {
        let mut text = "# What `gristmill up` runs: a program for each queue. The payload comes on its\n\
                        # standard input as JSON, and its exit status settles the task (0 done, 75\n\
                        # later, 65 failed for good, anything else is tried again).\n\
                        store: sqlite://gristmill.db\n\ncontracts: [queues.yaml]\n\nqueues:\n"
            .to_owned();
        for (queue, ..) in self.queues() {
            let name = queue.name.as_str();
            let _ = writeln!(text, "  - {{name: {name}, exec: ./handlers/{name}}}");
        }
        text
    }

    fn readme(&self, exec: bool) -> String {
        let (run, handlers) = if exec {
            ("gristmill up          # handles what comes, until Ctrl-C", "`handlers/`")
        } else {
            (
                "cargo run             # handles what comes, until Ctrl-C\n\
                 cargo run -- drain    # handles what is due, and ends",
                "`src/handlers.rs`",
            )
        };
        self.told(run, handlers)
    }

    /// A README: what runs it, where the handlers are, and a task for each queue.
    fn told(&self, run: &str, handlers: &str) -> String {
        let mut text = format!(
            "# {{name}}\n\nThe queues of `queues.yaml`. What is done with their tasks is in \
             {handlers}: fill it in.\n\n```\n{run}\n```\n\nPut tasks, and look at them, from \
             anywhere:\n\n```\n"
        );
        for (queue, ..) in self.queues() {
            let _ = writeln!(text, "gristmill put {} '{}'", queue.name, payload(queue));
        }
        text + "gristmill stats\ngristmill failed\n```\n"
    }
}

/// A program for a queue, which prints what it gets.
fn script(queue: &QueueContract) -> String {
    format!(
        "#!/bin/sh\n# What is done with a task of {}: fill it in. Exit code 0 is done, another \
         one is an error.\npayload=$(cat)\necho \"{} $GRISTMILL_TASK_ID: $payload\"\n",
        queue.name, queue.name
    )
}

/// A payload that fits.
fn payload(queue: &QueueContract) -> Value {
    let must = queue.fields.iter().filter(|field| !field.kind.optional);
    Value::Object(must.map(|field| (field.name.clone(), value(field.kind))).collect())
}

fn value(kind: FieldType) -> Value {
    let one = match kind.scalar {
        Scalar::Int | Scalar::Int64 => json!(1),
        Scalar::String => json!("text"),
        Scalar::Bool => json!(true),
        Scalar::Bytes => json!("Ynl0ZXM="),
        Scalar::Float64 => json!(0.5),
        Scalar::Timestamp => json!("2026-01-31T08:00:00Z"),
        // A type that is younger than this command: its author knows a value.
        _ => Value::Null,
    };
    if kind.list { json!([one]) } else { one }
}
