//! A queue's handler trait and how a worker serves it; and all of them
//! together.

use super::layout::{Code, fits};
use crate::naming::{pascal_case, snake_case};
use crate::{Contract, QueueContract};

/// From this length on, the formatter breaks even a trait's first line.
const LONG: usize = 40;

pub(super) fn write(code: &mut Code, queue: &QueueContract) {
    let QueueContract { number, name, .. } = queue;
    let (types, value) = (pascal_case(name.as_str()), snake_case(name.as_str()));
    code.line("");
    code.line(&format!("/// A task of queue {number}, `{name}`: its fields, and its id, attempt,"));
    code.line("/// returns and previous run time.");
    code.item("", &[format!("pub type {types}Task = Typed<{types}>;")], &[]);
    code.line("");
    code.line(&format!("/// Handles the tasks of queue {number}, `{name}`."));
    if types.len() > LONG {
        code.line("#[rustfmt::skip]");
    }
    code.line(&format!("pub trait {types}Handler: Send + Sync + 'static {{"));
    code.line(
        "    /// Handles a batch. `store` settles single tasks and puts others; what is left open",
    );
    code.line("    /// is settled by what this returns: done, or an error for the queue's policy.");
    let returns = "-> impl Future<Output = Handled> + Send;";
    let one = format!(
        "    fn handle_{value}(&self, tasks: Vec<{types}Task>, store: BatchContext) {returns}"
    );
    if fits(&one) {
        code.line(&one);
    } else {
        code.line(&format!("    fn handle_{value}("));
        code.line("        &self,");
        code.line(&format!("        tasks: Vec<{types}Task>,"));
        code.line("        store: BatchContext,");
        code.line(&format!("    ) {returns}"));
    }
    code.line("}");
    code.line("");
    code.line(&format!("/// Has a worker serve queue {number}, `{name}`."));
    let call = format!("handler.handle_{value}(tasks, store).await");
    let head =
        format!("pub fn serve_{value}(worker: Worker, handler: impl {types}Handler) -> Worker {{");
    code.item(
        "",
        &[
            head,
            "    let handler = Arc::new(handler);".to_owned(),
            format!("    worker.handle_queue(move |tasks: Vec<{types}Task>, store| {{"),
            "        let handler = handler.clone();".to_owned(),
            format!("        async move {{ {call} }}"),
            "    })".to_owned(),
            "}".to_owned(),
        ],
        std::slice::from_ref(&call),
    );
}

pub(super) fn write_all(code: &mut Code, contract: &Contract) {
    let letters: Vec<String> =
        contract.queues.iter().map(|queue| format!("Q{}", queue.number)).collect();
    let all = letters.join(", ");
    code.line("");
    code.line("/// A handler for each queue.");
    code.line("#[derive(Debug, Clone)]");
    let mut lines = vec![format!("pub struct Handlers<{all}> {{")];
    for (queue, letter) in contract.queues.iter().zip(&letters) {
        lines.push(format!("    /// Of queue {}, `{}`.", queue.number, queue.name));
        lines.push(format!("    pub {}: {letter},", snake_case(queue.name.as_str())));
    }
    lines.push("}".to_owned());
    code.item("", &lines, &[]);
    code.line("");
    let mut calls = Vec::new();
    let mut lines = vec![format!("impl<{all}> Handlers<{all}>"), "where".to_owned()];
    for (queue, letter) in contract.queues.iter().zip(&letters) {
        lines.push(format!("    {letter}: {}Handler,", pascal_case(queue.name.as_str())));
    }
    lines.push("{".to_owned());
    lines.push("    /// Has a worker serve every queue, one batch from each in turn.".to_owned());
    lines.push("    pub fn dispatch(self, worker: Worker) -> Worker {".to_owned());
    let last = contract.queues.len().saturating_sub(1);
    for (position, queue) in contract.queues.iter().enumerate() {
        let value = snake_case(queue.name.as_str());
        let call = format!("serve_{value}(worker, self.{value})");
        calls.push(format!("worker, self.{value}"));
        lines.push(if position == last {
            format!("        {call}")
        } else {
            format!("        let worker = {call};")
        });
    }
    for line in [
        "    }",
        "",
        "    /// A worker with one processor that serves every queue.",
        "    pub fn worker(self, mill: &Mill) -> Worker {",
        "        self.dispatch(Worker::new(mill))",
        "    }",
        "}",
    ] {
        lines.push(line.to_owned());
    }
    code.item("", &lines, &calls);
}
