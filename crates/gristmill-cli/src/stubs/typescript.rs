//! The TypeScript of a project: a worker with a handler a queue.

use std::fmt::Write as _;

use gristmill_contract::generate;

use super::Stubs;

const RUN: &str = "\
npm run client && npm install     # once
gristmill up                      # the store and the service, until Ctrl-C
npm start                         # beside it: handles what comes, until Ctrl-C";

impl Stubs {
    pub(super) fn typescript(&self) -> Vec<(&'static str, String)> {
        let readme = self.told(RUN, "`src/worker.ts`")
            + "\n`npm run client` builds the client in its clone: it is on no registry yet. When the\n\
               contract changes: `npm run generate`.\n";
        let package = include_str!("../init/client/package.json").to_owned();
        let options = include_str!("../init/client/tsconfig.json").to_owned();
        vec![
            ("src/queues.ts", generate::typescript(&self.contract, &["queues.yaml"])),
            ("src/worker.ts", self.typescript_worker()),
            ("package.json", package),
            ("tsconfig.json", options),
            ("README.md", readme),
            (".gitignore", "/node_modules\n/dist\n/gristmill.db*\n".to_owned()),
        ]
    }

    fn typescript_worker(&self) -> String {
        // Under one name, so that a queue may be called as the client's own things are.
        let mut code = "// Handles the tasks of the contract's queues: fill it in.\n//\n\
                        // It has them from the service that `gristmill up` runs \
                        (http://127.0.0.1:4747, or\n// GRISTMILL_URL), until Ctrl-C.\n\n\
                        import { Worker } from \"gristmill\";\n\
                        import * as queues from \"./queues.js\";\n\n\
                        const worker = new Worker(undefined, { processors: 2 });\n"
            .to_owned();
        // Writing to a string cannot fail.
        for queue in &self.contract.queues {
            let (name, kind) = (&queue.name, generate::typescript_name(queue));
            let _ = write!(
                code,
                "\nqueues.{kind}.handle(worker, async (task, about) => {{\n  \
                 console.log(`{name} ${{about.id}}:`, task);\n  \
                 // What returns is done; what throws is tried again.\n}});\n"
            );
        }
        code + "\nawait worker.run();\n"
    }
}
