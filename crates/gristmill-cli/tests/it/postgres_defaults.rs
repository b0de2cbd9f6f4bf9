//! Databases that have stricter transactions than most as their default.

use gristmill_pgserver::Server;
use rustix::process::Signal;

use crate::place::{Place, Running};

const CONFIG: &str = "
queues:
  - {name: emails, exec: 'cat > /dev/null', processors: 2}
  - {name: feeds, exec: 'cat > /dev/null'}
  - name: waiting
schedules:
  - {name: hourly, every: 1h, queue: waiting, payload: 1}
seed:
  - {queue: emails, id: one, payload: {to: ada}}
  - {queue: emails, id: two, payload: {to: grace}}
";

#[test]
fn three_that_come_up_at_once_all_start() {
    for level in ["serializable", "repeatable read"] {
        let place = Place::new();
        place.write("gristmill.yaml", CONFIG);
        let database = Server::shared().unwrap().database("nothing", |_| Ok(())).unwrap();
        let set = "SET default_transaction_isolation";
        database
            .psql(&format!("ALTER DATABASE \"{}\" {set} = '{level}'", database.name()))
            .unwrap();
        let url = database.url();
        let mut ups: Vec<_> = (0..3).map(|_| place.start(&["--store", &url, "up"])).collect();
        for up in &mut ups {
            Running::until(&mut up.stdout, "Stop with Ctrl-C");
        }
        for up in &mut ups {
            up.signal(Signal::INT);
        }
        for up in ups {
            let (code, _, stderr) = up.end();
            assert_eq!(code, 0, "{level}: {stderr}");
        }
    }
}
