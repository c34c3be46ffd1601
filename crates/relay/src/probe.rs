//! Does a service answer? The check-up asks the same way as a box's call would: the same program,
//! environment and credentials.

use crate::http;
use crate::integration::own_variables;
use crate::ports::Credentials;
use crate::process::{Limit, Output, Tool};
use crate::server::{Relay, Shared};
use connectors::connector::{Api, Connector, Means, Program};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const LIMIT: Limit = Limit::of(Duration::from_secs(10));

/// What came of asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// It works; its version, or the name of the API.
    Ready(String),
    Missing,
    /// It is there and does not start.
    Broken(String),
    NotLoggedIn,
    /// No answer in time.
    Slow,
    /// Anything else, in words.
    Failed(String),
}

impl Relay {
    /// Where a host program is, if it is one the relay would run.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        self.shared.tool(name).ok().map(|tool| tool.path)
    }

    pub async fn probe(&self, connector: &Connector, base_url: Option<&str>) -> Probe {
        match &connector.means {
            Means::Cli(program) => cli(&self.shared, connector, program).await,
            Means::Http(api) => api_probe(&self.shared, connector, api, base_url).await,
        }
    }
}

async fn cli(shared: &Shared, connector: &Connector, program: &Program) -> Probe {
    if let Err(why) = own_variables(connector.secrets, program) {
        return Probe::Failed(why);
    }
    let Ok(tool) = shared.tool(program.name) else { return Probe::Missing };
    let mut env = shared.env(program.env_prefixes);
    let version = match run(shared, &tool, program.version_args, &env).await {
        Ok(output) if output.ok() => first_line(&output.out()),
        Ok(output) => return Probe::Broken(first_line(&output.err())),
        Err(why) => return Probe::Broken(why),
    };
    for wanted in connector.secrets {
        match stored(&*shared.deps.credentials, wanted.id).await {
            Ok(Some(value)) => env.push((wanted.env.into(), value.expose().into())),
            Ok(None) => {}
            Err(why) => return Probe::Failed(why),
        }
    }
    match run(shared, &tool, program.auth_args, &env).await {
        Ok(output) if output.ok() => Probe::Ready(version),
        Ok(output) if output.code == protocol::exit::TIMED_OUT => Probe::Slow,
        Ok(_) => Probe::NotLoggedIn,
        Err(why) => Probe::Failed(why),
    }
}

async fn run(
    shared: &Shared,
    tool: &Tool,
    args: &[&str],
    env: &[(OsString, OsString)],
) -> Result<Output, String> {
    let dir = shared.deps.scratch.join("probe");
    std::fs::create_dir_all(&dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
    let args: Vec<OsString> = args.iter().map(OsString::from).collect();
    tool.run(&dir, &args, env, LIMIT).await.map_err(|e| e.to_string())
}

async fn api_probe(
    shared: &Shared,
    connector: &Connector,
    api: &Api,
    base_url: Option<&str>,
) -> Probe {
    let mut values = Vec::new();
    for wanted in connector.secrets {
        match stored(&*shared.deps.credentials, wanted.id).await {
            Ok(Some(value)) => values.push(value),
            Ok(None) => return Probe::NotLoggedIn,
            Err(why) => return Probe::Failed(why),
        }
    }
    match http::probe(shared, api, base_url.unwrap_or(api.base_url), &values).await {
        Ok(()) => Probe::Ready(format!("{} API", connector.title)),
        Err(http::ProbeError::Refused) => Probe::NotLoggedIn,
        Err(http::ProbeError::Slow) => Probe::Slow,
        Err(http::ProbeError::Failed(why)) => Probe::Failed(why),
    }
}

async fn stored(credentials: &dyn Credentials, id: &str) -> Result<Option<secrets::Value>, String> {
    let id = id.parse().map_err(|e: protocol::ids::BadId| e.to_string())?;
    credentials.get(&id).await
}

fn first_line(text: &str) -> String {
    let line = text.lines().find(|l| !l.trim().is_empty()).unwrap_or_default();
    protocol::text::shortened(&secrets::redact(line.trim()), 120)
}
