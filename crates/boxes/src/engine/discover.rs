//! Finding the engine.
//!
//! An address somebody chose (`engine.host`, `DOCKER_HOST`) is the only one tried: quietly making
//! boxes on another engine than the chosen one would be worse than an error. Home folder,
//! variables and the file system's root come in as an [`Environment`], so a test can set the scene.

use super::{Address, context};
use crate::Error;
use bollard::Docker;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

/// How long one address may take to answer.
const PROBE: Duration = Duration::from_secs(3);
/// How long an ordinary request may take to be answered; longer ones say so themselves.
const REQUEST_SECONDS: u64 = 120;

/// What discovery looks at.
#[derive(Debug, Clone)]
pub struct Environment {
    pub home: PathBuf,
    pub docker_host: Option<String>,
    pub docker_context: Option<String>,
    pub docker_config: Option<PathBuf>,
    pub runtime_dir: Option<PathBuf>,
    /// Where `/var/run` and `/run` are; `/` outside tests.
    pub root: PathBuf,
}

impl Environment {
    pub fn current() -> Self {
        let text = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            home: text("HOME").unwrap_or_else(|| "/".to_owned()).into(),
            docker_host: text("DOCKER_HOST"),
            docker_context: text("DOCKER_CONTEXT"),
            docker_config: text("DOCKER_CONFIG").map(PathBuf::from),
            runtime_dir: text("XDG_RUNTIME_DIR").map(PathBuf::from),
            root: "/".into(),
        }
    }

    #[cfg(test)]
    pub(super) fn at(folder: &std::path::Path) -> Self {
        Self {
            home: folder.to_owned(),
            docker_host: None,
            docker_context: None,
            docker_config: None,
            runtime_dir: Some(folder.join("runtime")),
            root: folder.to_owned(),
        }
    }

    fn usual_sockets(&self) -> Vec<PathBuf> {
        let home = |path: &str| self.home.join(path);
        let mut sockets = vec![
            self.root.join("var/run/docker.sock"),
            home(".docker/run/docker.sock"),
            home(".docker/desktop/docker.sock"),
            home(".orbstack/run/docker.sock"),
            home(".colima/default/docker.sock"),
        ];
        if let Some(runtime) = &self.runtime_dir {
            sockets.push(runtime.join("docker.sock"));
            sockets.push(runtime.join("podman/podman.sock"));
        }
        sockets.push(self.root.join("run/podman/podman.sock"));
        sockets
    }
}

/// Where an address came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Configured,
    DockerHost,
    Context,
    Usual,
}

/// One address that was tried in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub address: String,
    pub found: Found,
    pub failure: Failure,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    NothingThere,
    PermissionDenied,
    /// Something is there but does not take connections or does not answer.
    NoAnswer(String),
    Unusable(String),
}

impl std::fmt::Display for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let origin = match self.found {
            Found::Configured => " (engine.host)",
            Found::DockerHost => " (DOCKER_HOST)",
            Found::Context => " (docker context)",
            Found::Usual => "",
        };
        let failure = match &self.failure {
            Failure::NothingThere => "nothing there",
            Failure::PermissionDenied => "permission denied",
            Failure::NoAnswer(why) | Failure::Unusable(why) => why,
        };
        write!(f, "{}{origin}: {failure}", self.address)
    }
}

/// The one next step that helps most, given what was tried.
pub(crate) fn hint(attempts: &[Attempt]) -> String {
    let first = |wanted: fn(&Failure) -> bool| attempts.iter().find(|a| wanted(&a.failure));
    if let Some(attempt) = first(|f| *f == Failure::PermissionDenied) {
        format!(
            "you may not use {}: add yourself to its group (sudo usermod -aG docker $USER) and log in again",
            attempt.address
        )
    } else if let Some(attempt) = first(|f| matches!(f, Failure::NoAnswer(_))) {
        format!("the engine at {} does not answer: start it", attempt.address)
    } else if let Some(attempt) = attempts.iter().find(|a| a.found != Found::Usual) {
        format!(
            "{} was chosen but cannot be used: start that engine or choose another",
            attempt.address
        )
    } else {
        "install and start Docker or Podman, or set engine.host".to_owned()
    }
}

pub(super) async fn discover(
    host: Option<&str>,
    environment: &Environment,
) -> Result<(Docker, Address), Error> {
    let mut attempts = Vec::new();
    for (text, found) in candidates(host, environment) {
        match probe(&text).await {
            Ok(engine) => return Ok(engine),
            Err(failure) => attempts.push(Attempt { address: text, found, failure }),
        }
    }
    Err(Error::NoEngine(attempts))
}

fn candidates(host: Option<&str>, environment: &Environment) -> Vec<(String, Found)> {
    if let Some(host) = host.filter(|host| !host.is_empty()) {
        return vec![(host.to_owned(), Found::Configured)];
    }
    if let Some(host) = &environment.docker_host {
        return vec![(host.clone(), Found::DockerHost)];
    }
    let context = context::current(environment).map(|text| (text, Found::Context));
    let usual = environment.usual_sockets().into_iter();
    let usual = usual.map(|path| (Address::Unix(path).to_string(), Found::Usual));
    let mut all: Vec<(String, Found)> = Vec::new();
    for candidate in context.into_iter().chain(usual) {
        if !all.iter().any(|(text, _)| *text == candidate.0) {
            all.push(candidate);
        }
    }
    all
}

async fn probe(text: &str) -> Result<(Docker, Address), Failure> {
    let address = Address::parse(text).map_err(|error| match error {
        Error::BadAddress { why, .. } => Failure::Unusable(why),
        other => Failure::Unusable(other.to_string()),
    })?;
    tokio::time::timeout(PROBE, answer(&address))
        .await
        .unwrap_or_else(|_| Err(Failure::NoAnswer(format!("no answer in {} s", PROBE.as_secs()))))
        .map(|docker| (docker, address))
}

/// A bare connection first, because its error says which of the three failures it is.
async fn answer(address: &Address) -> Result<Docker, Failure> {
    address.open().await.map_err(failure)?;
    let docker = client(address).map_err(|error| Failure::Unusable(error.to_string()))?;
    docker.ping().await.map_err(|error| Failure::NoAnswer(error.to_string()))?;
    docker.negotiate_version().await.map_err(|error| Failure::NoAnswer(error.to_string()))
}

fn failure(error: std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::NotFound => Failure::NothingThere,
        ErrorKind::PermissionDenied => Failure::PermissionDenied,
        _ => Failure::NoAnswer(error.to_string()),
    }
}

fn client(address: &Address) -> Result<Docker, bollard::errors::Error> {
    let version = bollard::API_DEFAULT_VERSION;
    match address {
        Address::Unix(path) => {
            Docker::connect_with_unix(&path.to_string_lossy(), REQUEST_SECONDS, version)
        }
        Address::Tcp(host) => Docker::connect_with_http(host, REQUEST_SECONDS, version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixListener;

    /// A socket that answers like an engine of the given API version.
    fn engine_at(path: &Path, api: &'static str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let listener = UnixListener::bind(path).unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut buffer = vec![0; 4096];
                    let Ok(n) = stream.read(&mut buffer).await else { return };
                    let asked = String::from_utf8_lossy(&buffer[..n]).into_owned();
                    let body = if asked.contains("/_ping") {
                        "OK".to_owned()
                    } else if asked.contains("/version") {
                        format!(r#"{{"Version":"20.10.0","ApiVersion":"{api}"}}"#)
                    } else {
                        r#"{"Driver":"overlay2","OperatingSystem":"Docker Desktop","SecurityOptions":["name=rootless"]}"#.to_owned()
                    };
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                    let _ = stream.write_all((head + &body).as_bytes()).await;
                });
            }
        });
    }

    fn failures(error: &Error) -> &[Attempt] {
        match error {
            Error::NoEngine(attempts) => attempts,
            other => panic!("{other}"),
        }
    }

    #[tokio::test]
    async fn usual_sockets_are_tried_in_order_and_described() {
        let temp = tempfile::tempdir().unwrap();
        engine_at(&temp.path().join(".colima/default/docker.sock"), "1.41");
        engine_at(&temp.path().join("runtime/podman/podman.sock"), "1.41");
        let engine =
            super::super::Engine::connect_in(None, &Environment::at(temp.path())).await.unwrap();
        let profile = engine.profile();
        assert!(profile.address.to_string().ends_with(".colima/default/docker.sock"));
        assert_eq!(profile.api, "1.41");
        assert_eq!(profile.kind, super::super::Kind::DockerDesktop);
        assert!(profile.rootless);
        assert_eq!(profile.storage_driver, "overlay2");
    }

    #[tokio::test]
    async fn configured_beats_docker_host_beats_context() {
        let temp = tempfile::tempdir().unwrap();
        for name in ["a", "b", "var/run/docker"] {
            engine_at(&temp.path().join(format!("{name}.sock")), "1.45");
        }
        let at = |name: &str| format!("unix://{}/{name}.sock", temp.path().display());
        let mut environment = Environment::at(temp.path());
        let found = |environment: Environment, host: Option<String>| async move {
            let (_, address) = discover(host.as_deref(), &environment).await.unwrap();
            address.to_string()
        };
        assert_eq!(found(environment.clone(), None).await, at("var/run/docker"));
        environment.docker_host = Some(at("b"));
        assert_eq!(found(environment.clone(), None).await, at("b"));
        assert_eq!(found(environment.clone(), Some(at("a"))).await, at("a"));
    }

    #[tokio::test]
    async fn a_chosen_engine_is_never_replaced_by_another() {
        let temp = tempfile::tempdir().unwrap();
        engine_at(&temp.path().join("var/run/docker.sock"), "1.41");
        let error = discover(Some("unix:///no/such.sock"), &Environment::at(temp.path()))
            .await
            .unwrap_err();
        assert_eq!(failures(&error).len(), 1);
        assert_eq!(failures(&error)[0].failure, Failure::NothingThere);
        assert!(error.to_string().contains("unix:///no/such.sock (engine.host): nothing there"));
        assert!(error.hint().unwrap().contains("choose another"));
    }

    #[tokio::test]
    async fn nothing_refused_silent_and_forbidden_are_told_apart() {
        let temp = tempfile::tempdir().unwrap();
        let environment = Environment::at(temp.path());
        let error = discover(None, &environment).await.unwrap_err();
        assert_eq!(failures(&error).len(), 8);
        assert!(error.hint().unwrap().contains("install and start"));

        // A socket file nobody listens on refuses.
        let refused = temp.path().join("var/run/docker.sock");
        std::fs::create_dir_all(refused.parent().unwrap()).unwrap();
        drop(std::os::unix::net::UnixListener::bind(&refused).unwrap());
        let error = discover(None, &environment).await.unwrap_err();
        assert!(matches!(failures(&error)[0].failure, Failure::NoAnswer(_)));
        assert!(error.hint().unwrap().contains("start it"));
        assert!(error.is_unreachable());

        // One that listens but never answers runs into the limit.
        let silent = temp.path().join("silent.sock");
        let _listener = UnixListener::bind(&silent).unwrap();
        let error = discover(Some(&silent.to_string_lossy()), &environment).await.unwrap_err();
        assert_eq!(failures(&error)[0].failure, Failure::NoAnswer("no answer in 3 s".to_owned()));
    }

    /// Root may use every socket, so the kernel's answer is given rather than provoked.
    #[test]
    fn permission_denied_points_to_the_group() {
        let attempt = Attempt {
            address: "unix:///var/run/docker.sock".to_owned(),
            found: Found::Usual,
            failure: failure(std::io::Error::from_raw_os_error(nix::libc::EACCES)),
        };
        assert_eq!(attempt.failure, Failure::PermissionDenied);
        assert!(hint(&[attempt]).contains("usermod -aG docker"));
    }

    #[tokio::test]
    async fn an_engine_that_is_too_old_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        engine_at(&temp.path().join("var/run/docker.sock"), "1.40");
        let error = super::super::Engine::connect_in(None, &Environment::at(temp.path())).await;
        assert!(matches!(error, Err(Error::OldEngine { api, .. }) if api == "1.40"));
    }
}
