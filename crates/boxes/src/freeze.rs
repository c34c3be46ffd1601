//! Starting commands and freezing boxes, never both at once.
//!
//! A command that is frozen while the engine starts it keeps the engine's lock on its container, and
//! then nothing can thaw the box again. The engine answers before a command has really begun, so
//! whoever freezes asks about the latest ones first.

use crate::engine::{QUICK, limited};
use crate::{Engine, Error};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Whatever was started longer ago has begun, or the engine has given it up.
const YOUNG: Duration = QUICK;
const PAUSE: Duration = Duration::from_millis(5);

/// One gate per container.
#[derive(Default)]
pub(crate) struct Gates(Mutex<HashMap<String, Arc<Gate>>>);

impl Gates {
    pub fn of(&self, container: &str) -> Arc<Gate> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Of containers that are gone nobody asks again.
        all.retain(|_, gate| Arc::strong_count(gate) > 1 || !gate.young().is_empty());
        all.entry(container.to_owned()).or_default().clone()
    }
}

#[derive(Default)]
pub(crate) struct Gate {
    lock: RwLock<()>,
    /// Commands that were started lately.
    begun: Mutex<Vec<(Instant, String)>>,
}

impl Gate {
    /// Held while a command is started.
    pub async fn start(&self) -> RwLockReadGuard<'_, ()> {
        self.lock.read().await
    }

    pub fn started(&self, exec: &str) {
        self.young().push((Instant::now(), exec.to_owned()));
    }

    /// The engine refused to start it.
    pub fn refused(&self, exec: &str) {
        self.young().retain(|(_, begun)| begun != exec);
    }

    /// Held while the box is frozen; by then every command that was started has begun.
    pub async fn freeze(&self, engine: &Engine) -> Result<RwLockWriteGuard<'_, ()>, Error> {
        let held = self.lock.write().await;
        let young: Vec<String> = self.young().iter().map(|(_, exec)| exec.clone()).collect();
        let begin = async {
            for exec in young {
                while !has_begun(engine, &exec).await? {
                    tokio::time::sleep(PAUSE).await;
                }
            }
            Ok(())
        };
        limited("begin the commands of the box", QUICK, begin).await??;
        Ok(held)
    }

    fn young(&self) -> MutexGuard<'_, Vec<(Instant, String)>> {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.retain(|(at, _)| at.elapsed() < YOUNG);
        begun
    }
}

/// It has a process, or had one, or will never have one.
async fn has_begun(engine: &Engine, exec: &str) -> Result<bool, Error> {
    let request = engine.docker().inspect_exec(exec);
    match engine.ask("look at a command", QUICK, request).await {
        Ok(state) => {
            let ended = state.running == Some(false) && state.exit_code.is_some();
            Ok(ended || state.pid.is_some_and(|pid| pid > 0))
        }
        Err(error) if error.status() == Some(404) => Ok(true),
        Err(error) => Err(error),
    }
}
