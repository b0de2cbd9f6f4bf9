//! The library on PostgreSQL, in the caller's transaction of sqlx.

use gristmill::postgres::sqlx_core::connection::Connection;
use gristmill::postgres::sqlx_core::query::query;
use gristmill::postgres::sqlx_core::query_scalar::query_scalar;
use gristmill::postgres::sqlx_postgres::PgConnection;
use gristmill::{Error, Mill, Worker};
use gristmill_pgserver::{Database, Server};

use crate::Mail;

async fn begun() -> (Database, Mill, PgConnection) {
    let made = tokio::task::spawn_blocking(|| Server::shared()?.database("mill", |_| Ok(())));
    let database = made.await.unwrap().unwrap();
    let mill = Mill::open(&database.url()).await.unwrap();
    mill.declare::<Mail>().await.unwrap();
    let application = PgConnection::connect(&database.url()).await.unwrap();
    (database, mill, application)
}

#[tokio::test]
async fn a_typed_put_stands_when_the_transaction_of_sqlx_commits() {
    let (_database, mill, mut application) = begun().await;
    for (commits, standing) in [(false, 0), (true, 2)] {
        let mut transaction = application.begin().await.unwrap();
        let mails = [Mail::to("ada"), Mail::to("bob")];
        let put = mill.put_all(mails).within(&mut transaction).await.unwrap();
        assert_eq!(put.answer().enqueued(), 2);
        assert_eq!(mill.inspect().queue("mails").await.unwrap().ready, 0, "not before");
        if commits {
            transaction.commit().await.unwrap();
            put.committed();
        } else {
            transaction.rollback().await.unwrap();
        }
        assert_eq!(mill.inspect().queue("mails").await.unwrap().ready, standing);
    }
    let memory = Mill::open("memory:").await.unwrap();
    let mut transaction = application.begin().await.unwrap();
    let refused = memory.put(Mail::to("ada")).within(&mut transaction).await;
    assert!(matches!(refused, Err(Error::NotPostgres(_))), "{refused:?}");
}

/// The first attempt at each mail breaks before its commit, the second after
/// it: each leaves one row.
#[tokio::test]
async fn an_effect_in_the_completing_transaction_of_sqlx_happens_once() {
    let (database, mill, mut application) = begun().await;
    query("CREATE TABLE sent (mail text)").execute(&mut application).await.unwrap();
    mill.declare::<Mail>()
        .with(|settings| {
            // Due again at once: a drain does not wait for what is delayed.
            let none = std::time::Duration::ZERO;
            settings.backoff = Some(gristmill::Backoff { base: none, cap: none, jitter: false });
        })
        .await
        .unwrap();
    mill.put_all(["ada", "bob", "eve"].map(Mail::to)).run().await.unwrap();
    let url = database.url();
    let worker = Worker::new(&mill).handle(move |mail: Mail, context: gristmill::Context| {
        let url = url.clone();
        async move {
            let mut own = PgConnection::connect(&url).await.map_err(|e| e.to_string())?;
            let mut transaction = own.begin().await.map_err(|e| e.to_string())?;
            let insert = query("INSERT INTO sent VALUES ($1)").bind(&mail.to);
            insert.execute(&mut *transaction).await.map_err(|e| e.to_string())?;
            let completed = context.complete_in(&mut transaction).await;
            let guard = completed.map_err(|e| e.to_string())?;
            if context.attempt == 1 {
                return Err("broke before the commit".to_owned());
            }
            transaction.commit().await.map_err(|e| e.to_string())?;
            guard.committed();
            Err::<(), _>("broke after the commit".to_owned())
        }
    });
    let report = worker.drain(true).run(std::future::pending()).await.unwrap();
    // The worker's own word comes after the transaction's: the task is gone.
    assert_eq!(report.gone, 3, "{report:?}");
    let sent: Vec<String> = query_scalar("SELECT mail FROM sent ORDER BY mail")
        .fetch_all(&mut application)
        .await
        .unwrap();
    assert_eq!(sent, ["ada", "bob", "eve"]);
    let stats = mill.inspect().queue("mails").await.unwrap();
    assert_eq!((stats.total(), stats.counters.done), (0, 3));
}
