//! The Rust of a project: its `main.rs`, and a handler a queue.

use std::fmt::Write as _;

use gristmill_contract::naming::field_name;

use super::Stubs;

impl Stubs {
    pub(super) fn main(&self) -> String {
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

    pub(super) fn handlers(&self) -> String {
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
}
