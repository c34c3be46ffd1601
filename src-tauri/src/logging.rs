//! Where the two processes write what happened: one file each in `$AGENTBOX_HOME/logs`, and the
//! terminal when there is one.
//!
//! `AGENTBOX_LOG` takes a filter such as `debug` or `agentbox_host=trace`.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Mutex;
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// A file that grew beyond this becomes `<name>.1` at the next start.
const LARGEST: u64 = 4 * 1024 * 1024;

/// A log that cannot be opened is no reason not to start.
pub fn start(home: &Path, name: &str) {
    let file = open(&home.join("logs").join(name));
    if let Err(e) = &file {
        eprintln!("agentbox-desktop: no log file in {}: {e}.", home.display());
    }
    let file = file.ok().map(|f| fmt::layer().with_ansi(false).with_writer(Mutex::new(f)).boxed());
    let terminal = io::stderr().is_terminal().then(|| fmt::layer().with_writer(io::stderr).boxed());
    let _ = tracing_subscriber::registry().with(filter()).with(file).with(terminal).try_init();
    log_panics();
}

fn filter() -> EnvFilter {
    EnvFilter::try_from_env("AGENTBOX_LOG").unwrap_or_else(|_| EnvFilter::new("info,zbus=warn"))
}

fn open(path: &Path) -> io::Result<File> {
    if std::fs::metadata(path).is_ok_and(|m| m.len() > LARGEST) {
        std::fs::rename(path, path.with_extension("log.1"))?;
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

fn log_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tracing::error!("{panic}");
        usual(panic);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_log_makes_room() {
        let dir = std::env::temp_dir().join(format!("agentbox-logging-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("desktop.log");
        File::create(&path).unwrap().set_len(LARGEST + 1).unwrap();
        let log = open(&path).unwrap();
        assert_eq!(log.metadata().unwrap().len(), 0);
        assert_eq!(std::fs::metadata(dir.join("desktop.log.1")).unwrap().len(), LARGEST + 1);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
