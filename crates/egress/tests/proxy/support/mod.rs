//! A proxy with everything around it that it has in the host, in the test's hands: names and addresses,
//! credentials, the person, the lines it writes; and servers and clients on real sockets with real TLS.

pub mod client;
pub mod policy;
pub mod server;
pub mod world;

pub use client::Client;
pub use policy::{allow, record, rule};
pub use server::Server;
pub use world::World;

use std::time::Duration;

/// For what must happen; long, so that only what never happens fails.
pub const SOON: Duration = Duration::from_secs(30);

pub async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(SOON, work).await {
        Ok(done) => done,
        Err(late) => panic!("{what} took too long: {late}"),
    }
}

/// Waits until something is so.
pub async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    within(what, async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}
