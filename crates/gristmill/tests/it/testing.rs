//! The test kit: time that the test owns, handlers run inline.

use std::time::Duration;

use gristmill::testing::TestMill;
use gristmill::worker::{BatchContext, Typed, Worker};
use gristmill::{TaskState, TaskType};
use serde::{Deserialize, Serialize};

use crate::Mail;

#[derive(Serialize, Deserialize)]
struct Receipt(String);

impl TaskType for Receipt {
    const QUEUE: &'static str = "receipts";
}

// No runtime features at all: nothing in the kit needs a timer or a thread.
fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

#[test]
fn handlers_run_inline_and_retries_wait_for_the_clock() {
    block_on(async {
        let mill = TestMill::new();
        mill.declare::<Mail>().max_attempts(2).await.unwrap();
        mill.declare::<Receipt>().await.unwrap();
        mill.put(Mail::to("ada")).key("ada").await.unwrap();
        mill.put(Mail::to("nobody")).await.unwrap();
        let worker = Worker::new(&mill)
            .handle(|mail: Mail, context: gristmill::Context| async move {
                if mail.to == "nobody" {
                    return Err("no such address".to_owned());
                }
                context.follow_up(Receipt(mail.to)).map_err(|e| e.to_string())
            })
            .handle_batch(|_: Vec<Typed<Receipt>>, batch: BatchContext| async move {
                assert!(!batch.is_cancelled());
                Ok::<(), String>(())
            });
        assert_eq!(mill.pending::<Mail>().await.unwrap()[0].key.as_deref(), Some("ada"));
        let report = mill.run_until_idle(&worker).await.unwrap();
        assert_eq!((report.done, report.not_done), (2, 1));
        mill.assert_put::<Receipt>(0).await;
        assert_eq!(mill.assert_put::<Mail>(1).await[0].to, "nobody");
        mill.clock().advance(Duration::from_secs(60));
        assert_eq!(mill.run_until_idle(&worker).await.unwrap().not_done, 1);
        let failed = mill.inspect().failed(None, 10).await.unwrap();
        assert_eq!((failed.len(), failed[0].state), (1, TaskState::Failed));
    });
}

#[test]
#[should_panic(expected = "2 tasks were expected on mails, 1 wait")]
fn a_wrong_count_is_told_in_words() {
    block_on(async {
        let mill = TestMill::new();
        mill.declare::<Mail>().await.unwrap();
        mill.put(Mail::to("ada")).await.unwrap();
        mill.assert_put::<Mail>(2).await;
    });
}
