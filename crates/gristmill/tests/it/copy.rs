//! Copying what stands in one store to another.

use std::collections::BTreeMap;
use std::time::Duration;

use gristmill::copy::{COPIER, CopyError};
use gristmill::port::{
    Action, ClaimRequest, ContractChange, Declaration, ListRequest, Operation, Origin, Outcome,
    Selection, SettingsPatch, Settlement, Token, WorkerId,
};
use gristmill::{Mill, QueueName, Task, TaskState};

use crate::{Mail, mills};

pub(crate) async fn claim(mill: &Mill, queue: &QueueName, max: usize) -> gristmill::port::Claim {
    let request = ClaimRequest {
        queue: queue.clone(),
        max,
        lease: None,
        worker: WorkerId::random().unwrap(),
        source: None,
        token: Token::random().unwrap(),
    };
    mill.store().claim(request).await.unwrap()
}

pub(crate) async fn settle(mill: &Mill, claim: &gristmill::port::Claim, outcome: Outcome) {
    let settlements = claim
        .tasks
        .iter()
        .map(|task| Settlement::new(task.id, claim.token, outcome.clone()))
        .collect();
    let answers = mill.store().settle(settlements).await.unwrap();
    assert!(answers.iter().all(|answer| answer.is_recorded()), "{answers:?}");
}

async fn all(mill: &Mill) -> Vec<Task> {
    let mut request = ListRequest { limit: 1000, ..ListRequest::default() };
    let mut tasks = Vec::new();
    loop {
        let page = mill.inspect().list(request.clone()).await.unwrap();
        tasks.extend(page.tasks);
        request.after = page.next;
        if request.after.is_none() {
            return tasks;
        }
    }
}

/// What must survive a move; numbers do not.
fn facts(task: &Task) -> String {
    let mut task = task.clone();
    task.id = gristmill::TaskId(1);
    format!("{task:?}")
}

/// A queue with a task in each state a copy meets.
async fn fill(mill: &Mill) {
    let mails = QueueName::new("mails").unwrap();
    mill.put(Mail::to("failed")).key("failed").await.unwrap();
    let taken = claim(mill, &mails, 1).await;
    settle(mill, &taken, Outcome::Fail("no such host".to_owned())).await;
    mill.put(Mail::to("back")).key("twice").await.unwrap();
    let taken = claim(mill, &mails, 1).await;
    mill.put(Mail::to("behind")).key("twice").await.unwrap();
    settle(mill, &taken, Outcome::Error("again".to_owned())).await;
    mill.put(Mail::to("later")).delay(Duration::from_secs(3600)).await.unwrap();
    mill.put(Mail::to("plain")).priority(-2).source("web").group("g").await.unwrap();
}

#[tokio::test]
async fn everything_that_stands_is_copied_and_a_repeat_copies_nothing() {
    for (from, _source) in mills().await {
        for (to, _target) in mills().await {
            fill(&from).await;
            let mails = QueueName::new("mails").unwrap();
            let patch = SettingsPatch { batch_size: Some(7), ..SettingsPatch::default() };
            from.store().override_queue(&mails, patch, "ada").await.unwrap();
            from.store()
                .declare_queue(Declaration {
                    number: Some(3),
                    origin: Origin::Contract,
                    ..Declaration::new(QueueName::new("typed").unwrap())
                })
                .await
                .unwrap();
            let change = ContractChange {
                queue: QueueName::new("typed").unwrap(),
                text: "fields: []".to_owned(),
                replaces: None,
                breaking: false,
            };
            from.store().register_contract(change).await.unwrap();
            from.schedule("nightly")
                .every(Duration::from_secs(60))
                .puts(Mail::to("x"))
                .await
                .unwrap();

            let before: Vec<String> = all(&from).await.iter().map(facts).collect();
            let report = from.copy_to(&to).run().await.unwrap();
            assert_eq!((report.imported(), report.left(), report.schedules), (5, 0, 1));
            let after: Vec<String> = all(&to).await.iter().map(facts).collect();
            assert_eq!(after, before, "in the same order");
            let left: Vec<String> = all(&from).await.iter().map(facts).collect();
            assert_eq!(left, before, "the source keeps what it has");

            let queues = to.store().queues().await.unwrap();
            let typed = queues.iter().find(|q| q.name.as_str() == "typed").unwrap();
            assert_eq!((typed.number, typed.contract.as_deref()), (3, Some("fields: []")));
            let copied = queues.iter().find(|q| q.name == mails).unwrap();
            assert_eq!((copied.settings.batch_size, copied.paused), (7, false));
            assert_eq!(copied.overridden.as_ref().unwrap().by, "ada");
            let schedules = to.store().schedules().await.unwrap();
            assert_eq!((schedules.len(), schedules[0].paused), (1, false));
            for queue in from.store().queues().await.unwrap() {
                assert!(queue.paused_by.is_some_and(|by| by.starts_with(COPIER)));
            }

            // Some of it runs in the target, then the copy is repeated.
            let done = claim(&to, &mails, 1).await;
            settle(&to, &done, Outcome::Done).await;
            let again = from.copy_to(&to).run().await.unwrap();
            assert_eq!((again.imported(), again.already(), again.left()), (0, 5, 0));
            assert_eq!(all(&to).await.len(), 4);
            assert!(!to.store().queues().await.unwrap().iter().any(|q| q.paused));

            for id in all(&from).await.iter().map(|task| task.id) {
                for action in [Action::Cancel, Action::Discard] {
                    let operation = Operation {
                        action,
                        selection: Selection::Ids(vec![id]),
                        limit: 1,
                        by: "test".to_owned(),
                        note: None,
                        start: gristmill::port::Start::Now,
                    };
                    from.store().operate(operation).await.unwrap();
                }
            }
            from.store().pause_queue(&mails, false, "test").await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_copy_that_was_ended_midway_goes_on() {
    let mut stores = mills().await;
    let (from, _source) = stores.pop().unwrap();
    for (to, _target) in mills().await {
        let mails = (0..500).map(Mail::to);
        from.put_all(mails).run().await.unwrap();
        let standing = from.inspect().queue("mails").await.unwrap().ready;
        // Cut off right behind its first page, as a killed process would be.
        let copy = from.copy_to(&to).progress(|_| panic!("cut off, on purpose"));
        let ended = tokio::spawn(copy.run()).await;
        assert!(ended.is_err_and(|error| error.is_panic()));
        let so_far = to.inspect().queue("mails").await.unwrap();
        assert!(so_far.ready > 0 && so_far.ready < standing, "{so_far:?}");
        assert!(so_far.paused, "closed until all has come");
        let report = from.copy_to(&to).run().await.unwrap();
        assert_eq!(report.imported() + report.already(), standing);
        assert_eq!(report.already(), so_far.ready);
        let stats = to.inspect().queue("mails").await.unwrap();
        assert_eq!((stats.ready, stats.paused), (standing, false));
        let mut payloads = BTreeMap::new();
        for task in all(&to).await {
            *payloads.entry(task.payload.bytes).or_insert(0) += 1;
        }
        assert!(payloads.values().all(|n| *n as u64 == standing / 500), "{payloads:?}");
    }
}

#[tokio::test]
async fn what_runs_is_waited_for_or_the_copy_refused_without_a_trace() {
    for (from, _source) in mills().await {
        let mails = QueueName::new("mails").unwrap();
        mill_with_one(&from).await;
        let running = claim(&from, &mails, 1).await;
        let to = Mill::open("memory:").await.unwrap();
        let refused = from.copy_to(&to).wait(Duration::ZERO).run().await;
        let Err(CopyError::StillProcessing { tasks: 1, queues }) = &refused else {
            panic!("{refused:?}");
        };
        assert_eq!(queues, "1 in 'mails'");
        assert!(!from.inspect().queue("mails").await.unwrap().paused, "as before");
        assert!(to.store().queues().await.unwrap().is_empty());

        let copying = from.clone();
        let target = to.clone();
        let copy = tokio::spawn(async move { copying.copy_to(&target).run().await });
        while !from.inspect().queue("mails").await.unwrap().paused {
            tokio::task::yield_now().await;
        }
        settle(&from, &running, Outcome::Fail("late".to_owned())).await;
        assert_eq!(copy.await.unwrap().unwrap().imported(), 1);
        assert_eq!(all(&to).await[0].state, TaskState::Failed);
    }
}

async fn mill_with_one(mill: &Mill) {
    assert!(mill.put(Mail::to("one")).await.unwrap().is_enqueued());
}

#[tokio::test]
async fn a_store_is_not_copied_onto_itself_whatever_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let link = folder.path().join("link.db");
    let one = Mill::open(&format!("sqlite://{}", file.display())).await.unwrap();
    one.declare::<Mail>().await.unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let two = Mill::open(&format!("sqlite://{}", link.display())).await.unwrap();
    for other in [&one, &two] {
        let refused = one.copy_to(other).run().await;
        assert!(matches!(refused, Err(CopyError::SameStore)), "{refused:?}");
    }
    assert!(!one.inspect().queue("mails").await.unwrap().paused);
}

#[tokio::test]
async fn what_the_target_cannot_take_stays_and_is_told() {
    for (from, _source) in mills().await {
        let (to, _folder) = mills().await.pop().unwrap();
        to.declare::<Mail>().with(|s| s.batch_size = Some(9)).await.unwrap();
        to.put(Mail::to("here")).key("k").await.unwrap();
        from.put(Mail::to("there")).key("k").await.unwrap();
        from.put(Mail::to("other")).key("other").await.unwrap();
        let report = from.copy_to(&to).run().await.unwrap();
        let mails = &report.queues[0];
        assert_eq!((mails.imported, mails.duplicates.len(), report.left()), (1, 1, 1));
        assert_eq!(mails.differs, [("batch_size".to_owned(), "100".to_owned(), "9".to_owned())]);
        let standing = all(&to).await;
        assert_eq!(standing.len(), 2);
        assert_eq!(standing[0].payload.bytes, r#"{"to":"here"}"#);
    }
}
