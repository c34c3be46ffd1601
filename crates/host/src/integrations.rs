//! Services people switch on for their boxes: list, switch, try.

use crate::config::project_layers;
use crate::core::Core;
use crate::policies::policy_of;
use crate::project_dirs::project_dir;
use connectors::connector::{Connector, Means};
use connectors::registry;
use protocol::control::{ControlError, ErrorCode, Level};
use protocol::integrations::{IntegrationView, Layer, OpView, ProgramView, Tried};
use relay::{Entry, Probe};
use settings::edit::Scalar;
use settings::{Layers, Settings};
use std::path::{Path, PathBuf};

fn find(service: &str) -> Result<&'static Connector, ControlError> {
    registry::find(service).ok_or_else(|| {
        let names: Vec<&str> = registry::CONNECTORS.iter().map(|c| c.service).collect();
        ControlError::new(ErrorCode::Usage, format!("there is no integration named {service}"))
            .hint(format!("there are {}.", names.join(", ")))
    })
}

fn unreadable(e: settings::Error) -> ControlError {
    ControlError::new(ErrorCode::Usage, e.to_string())
}

impl Core {
    /// The project a folder belongs to.
    async fn project_of(&self, cwd: Option<&str>) -> Result<Option<PathBuf>, ControlError> {
        let Some(cwd) = cwd else { return Ok(None) };
        let root = boxes::project::project_root(Path::new(cwd)).await;
        root.map(Some).map_err(crate::engine::control_error)
    }

    /// The files that decide for a project, or for everything else.
    fn layers(&self, root: Option<&Path>) -> Result<Layers, ControlError> {
        let layers = match root {
            Some(root) => project_layers(&self.home, root),
            None => Layers::load(&self.home, &[] as &[PathBuf]),
        };
        layers.map_err(unreadable)
    }

    pub async fn integrations(
        &self,
        cwd: Option<&str>,
    ) -> Result<Vec<IntegrationView>, ControlError> {
        let root = self.project_of(cwd).await?;
        registry::CONNECTORS.iter().map(|c| self.integration(c, root.as_deref())).collect()
    }

    fn integration(
        &self,
        connector: &'static Connector,
        root: Option<&Path>,
    ) -> Result<IntegrationView, ControlError> {
        let layers = self.layers(root)?;
        let settings = layers.settings().map_err(unreadable)?;
        let key = format!("integrations.{}.enabled", connector.service);
        let program = connector.program().map(|p| ProgramView {
            name: p.name.to_owned(),
            path: self.relay.program(p.name).map(|path| path.display().to_string()),
        });
        let (install_hint, login_hint) = match &connector.means {
            Means::Cli(p) => (Some(p.install_hint.to_owned()), p.login_hint),
            Means::Http(api) => (None, api.login_hint),
        };
        let op = |i: &'static connectors::connector::OpInfo| OpView {
            name: i.name.to_owned(),
            write: i.write,
            summary: i.summary.to_owned(),
        };
        Ok(IntegrationView {
            service: connector.service.to_owned(),
            title: connector.title.to_owned(),
            about: connector.about.to_owned(),
            enabled: policy_of(&settings).integration(connector.service).enabled,
            decided_by: layers
                .decided(&key)
                .map_or("default", |(layer, _)| layer.source.as_str())
                .to_owned(),
            program,
            credentials: connector.secrets.iter().filter_map(|s| s.id.parse().ok()).collect(),
            ops: connector.infos().map(op).collect(),
            install_hint,
            login_hint: Some(login_hint.to_owned()),
        })
    }

    pub async fn set_integration(
        &self,
        service: &str,
        enabled: bool,
        layer: Layer,
        cwd: Option<&str>,
    ) -> Result<IntegrationView, ControlError> {
        let connector = find(service)?;
        let root = self.project_of(cwd).await?;
        let folder = match (layer, &root) {
            (Layer::Global, _) => self.home.clone(),
            (Layer::Project, Some(root)) => project_dir(&self.home, root),
            (Layer::Project, None) => {
                let text = "which project? No folder was named.";
                return Err(ControlError::new(ErrorCode::Usage, text));
            }
        };
        let key = format!("integrations.{service}.enabled");
        let file = folder.join("config.yaml");
        settings::edit::set(&file, &key, Scalar::Bool(enabled))
            .map_err(|e| ControlError::new(ErrorCode::Failed, e.to_string()))?;
        let what = if enabled { "enabled" } else { "disabled" };
        let entry = Entry {
            box_id: None,
            kind: "setting-changed",
            summary: format!("{} {what} in {}", connector.title, file.display()),
            data: serde_json::json!({ "key": key, "value": enabled, "file": file }),
        };
        self.store.record(entry).await?;
        self.integration(connector, root.as_deref())
    }

    /// Does the service answer, with the login or credential the relay would use?
    pub async fn test_integration(
        &self,
        service: &str,
        cwd: Option<&str>,
    ) -> Result<Tried, ControlError> {
        let connector = find(service)?;
        let root = self.project_of(cwd).await?;
        let settings = self.layers(root.as_deref())?.settings().map_err(unreadable)?;
        let base_url = policy_of(&settings).integration(service).base_url;
        Ok(tried(connector, self.relay.probe(connector, base_url.as_deref()).await))
    }

    /// One row of the check-up.
    pub async fn integration_check(&self, connector: &'static Connector) -> Tried {
        let settings = match Settings::load_for(&self.home, None) {
            Ok(settings) => settings,
            Err(e) => return Tried { level: Level::Info, detail: e.to_string(), hint: None },
        };
        let mut policy = policy_of(&settings).integration(connector.service);
        let mut only_in = Vec::new();
        if !policy.enabled {
            // One that is on for some projects works, or fails, like any other.
            for (project, own) in self.projects_with(connector.service) {
                only_in.push(project);
                policy = own;
            }
        }
        if !policy.enabled {
            let hint = Some(format!("agentbox integrations enable {}", connector.service));
            return Tried { level: Level::Info, detail: "disabled".into(), hint };
        }
        let probe = self.relay.probe(connector, policy.base_url.as_deref()).await;
        let mut tried = tried(connector, probe);
        if !only_in.is_empty() {
            tried.detail.push_str(&format!(" · only for {}", only_in.join(", ")));
        }
        tried
    }

    /// Projects of boxes for which a service is on.
    fn projects_with(&self, service: &str) -> Vec<(String, relay::IntegrationPolicy)> {
        let mut roots: Vec<_> = self.candidates().into_iter().map(|c| c.project_root).collect();
        roots.sort();
        roots.dedup();
        let policies = crate::policies::HostPolicies::new(self.home.clone());
        let on = |root: std::path::PathBuf| {
            let own = relay::Policies::policy(&policies, &root).integration(service);
            let name = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
            own.enabled.then_some((name, own))
        };
        roots.into_iter().filter_map(on).collect()
    }
}

fn tried(connector: &Connector, probe: Probe) -> Tried {
    let (install, login) = match &connector.means {
        Means::Cli(p) => (p.install_hint, p.login_hint),
        Means::Http(api) => ("", api.login_hint),
    };
    let name = connector.program().map_or(connector.service, |p| p.name);
    let warn = |detail: String, hint: &str| {
        let hint = (!hint.is_empty()).then(|| hint.to_owned());
        Tried { level: Level::Warn, detail, hint }
    };
    match probe {
        Probe::Ready(version) => {
            Tried { level: Level::Ok, detail: format!("{version} · authed"), hint: None }
        }
        Probe::Missing => warn(format!("{name} not installed"), install),
        Probe::Broken(why) => warn(format!("{name} --version failed: {why}"), ""),
        Probe::NotLoggedIn => warn("not logged in".into(), login),
        Probe::Slow => warn("auth check timed out after 10s".into(), ""),
        Probe::Failed(why) => warn(why, ""),
    }
}
