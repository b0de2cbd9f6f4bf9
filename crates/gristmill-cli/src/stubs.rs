//! A project out of somebody's own contract: the files of the sample, with a handler
//! for each of the contract's queues in place of the sample's own.

use std::fmt::Write as _;
use std::path::Path;

use gristmill_contract::naming::{field_name, pascal_case, snake_case};
use gristmill_contract::{Contract, FieldType, QueueContract, Scalar};
use serde_json::{Value, json};

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

    fn main(&self) -> String {
        let fields: String =
            self.queues().map(|(_, _, value)| format!("        {value}: App,\n")).collect();
        format!(
            "//! Handles the tasks of the contract's queues.\n\
             //!\n\
             //! `cargo run` handles what comes until Ctrl-C, `cargo run -- drain` handles what is\n\
             //! due and ends.\n\n\
             mod handlers;\n\n\
             gristmill::include_contract!(mod queues);\n\n\
             use gristmill::Mill;\n\n\
             use handlers::App;\n\
             use queues::Handlers;\n\n\
             #[tokio::main]\n\
             async fn main() -> Result<(), Box<dyn std::error::Error>> {{\n    \
                 let mill = Mill::open(\"sqlite://gristmill.db\").await?;\n    \
                 queues::declare(&mill).await?;\n    \
                 let handlers = Handlers {{\n{fields}    }};\n    \
                 let drain = std::env::args().nth(1).as_deref() == Some(\"drain\");\n    \
                 let report = handlers.worker(&mill).drain(drain).run_until_signalled().await?;\n    \
                 println!(\"{{}} done, {{}} ended otherwise\", report.done, report.not_done);\n    \
                 Ok(())\n\
             }}\n"
        )
    }

    fn handlers(&self) -> String {
        let mut code = "//! What is done with the tasks of each queue: fill it in.\n\n\
                        use gristmill::contract::Handled;\n\
                        use gristmill::worker::BatchContext;\n\n\
                        use crate::queues::{\n"
            .to_owned();
        // Writing to a string cannot fail.
        for (_, types, _) in self.queues() {
            let _ = writeln!(code, "    {types}Handler, {types}Task,");
        }
        code += "};\n\n/// Handles every queue.\n#[derive(Debug, Clone)]\npub struct App;\n";
        for (queue, types, value) in self.queues() {
            let fields = queue.fields.iter().filter_map(|field| field_name(&field.name));
            let fields: Vec<String> = fields.map(|field| format!("task.{field}")).collect();
            let fields = if fields.is_empty() { "none".to_owned() } else { fields.join(", ") };
            let _ = write!(
                code,
                "\nimpl {types}Handler for App {{\n    \
                     async fn handle_{value}(&self, tasks: Vec<{types}Task>, _store: BatchContext) -> Handled {{\n        \
                         for task in &tasks {{\n            \
                             // Its fields: {fields}.\n            \
                             println!(\"{} {{}}: {{:?}}\", task.id(), task.task);\n        \
                         }}\n        \
                         // What is left open is done; `_store` settles single tasks.\n        \
                         Ok(())\n    \
                     }}\n\
                 }}\n",
                queue.name
            );
        }
        code
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
