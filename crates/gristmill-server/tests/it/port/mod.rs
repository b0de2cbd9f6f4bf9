//! The port over HTTP: a service over a store that a test opened, and the client's store.

pub(crate) mod asked;
mod conformance;
mod verbs;
mod workers;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use gristmill::Mill;
use gristmill_core::Store;
use gristmill_remote::{Address, Remote};
use gristmill_server::{Options, Port, Server};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// Services run apart from who asks them, as they do elsewhere: a runtime that a test
/// blocks must not keep them from answering.
fn apart() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(2).enable_all().build().unwrap()
    })
}

/// A service that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

/// Serves a store.
pub(crate) async fn serve(store: Arc<dyn Store>) -> Serving {
    let served = apart().spawn(async move {
        let mill = Mill::over(store);
        let port = Port::take("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = port.address();
        let (stop, stops) = oneshot::channel();
        tokio::spawn(Server::new(port, &mill, Options::default()).run(async move {
            let _: Result<(), _> = stops.await;
        }));
        Serving { address, _stop: stop }
    });
    served.await.unwrap()
}

/// The store of a service, as this token's holder sees it.
pub(crate) async fn remote(address: SocketAddr, token: Option<&str>) -> Remote {
    let url: Address = format!("http://{address}").parse().unwrap();
    let url = url.or_token(token.map(str::to_owned));
    Remote::open(url, gristmill_remote::Options::default()).await.unwrap()
}
