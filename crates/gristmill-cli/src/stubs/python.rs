//! The Python of a project: a worker with a handler a queue.

use std::fmt::Write as _;

use gristmill_contract::generate;

use super::Stubs;

const RUN: &str = "\
python3 -m venv .venv && .venv/bin/pip install -r requirements.txt     # once
gristmill up                    # the store and the service, until Ctrl-C
.venv/bin/python worker.py      # beside it: handles what comes, until Ctrl-C";

impl Stubs {
    pub(super) fn python(&self) -> Vec<(&'static str, String)> {
        let readme = self.told(RUN, "`worker.py`")
            + "\nWhen the contract changes: `gristmill generate --lang python --out . queues.yaml`.\n";
        vec![
            ("queues.py", generate::python(&self.contract, &["queues.yaml"])),
            ("worker.py", self.python_worker()),
            ("requirements.txt", "# On no index yet: from the clone.\n{client}\n".to_owned()),
            ("README.md", readme),
            (".gitignore", "/.venv\n__pycache__/\n/gristmill.db*\n".to_owned()),
        ]
    }

    fn python_worker(&self) -> String {
        let mut code = "\"\"\"Handles the tasks of the contract's queues: fill it in.\n\n\
                        It has them from the service that `gristmill up` runs \
                        (http://127.0.0.1:4747, or\nGRISTMILL_URL), until Ctrl-C.\n\"\"\"\n\n\
                        from gristmill import Task, Worker\n\nimport queues\n\n\
                        worker = Worker(processors=2)\n"
            .to_owned();
        // Writing to a string cannot fail.
        for (queue, class, function) in self.queues() {
            let name = &queue.name;
            let _ = write!(
                code,
                "\n\n@queues.on_{function}(worker)\ndef handle_{function}(task: queues.{class}, \
                 about: Task) -> None:\n    print(f\"{name} {{about.id}}: {{task}}\", \
                 flush=True)\n    # What returns is done; what raises is tried again.\n"
            );
        }
        code + "\n\nif __name__ == \"__main__\":\n    worker.run()\n"
    }
}
