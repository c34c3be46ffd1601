//! Check-up: is everything there that boxes need?

use crate::core::Core;
use crate::engine::control_error;
use crate::home;
use crate::policies::policy_of;
use crate::strain;
use boxes::{Engine, ImageSpec};
use connectors::connector::Connector;
use connectors::registry;
use protocol::control::{Check, Level};
use relay::process::Tool;
use secrets::KeychainState;
use settings::Settings;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The check-up of a running host.
pub async fn online(core: &Core) -> Vec<Check> {
    let status = core.status();
    let mut checks = common(&core.home);
    let running = format!("{} {}, pid {}", status.kind, status.version, status.pid);
    checks.push(ok("host", "host", running));
    let (engine, updates) = futures_util::join!(engine(&core.settings), updates(core));
    checks.extend(updates);
    checks.extend(engine);
    checks.extend(core.strained().await);
    for notice in status.notices {
        checks.push(Check {
            group: "desktop".into(),
            label: notice.part,
            level: Level::Warn,
            detail: notice.message,
            hint: notice.hint,
        });
    }
    checks.push(keychain(&core.settings).await);
    checks.extend(relay(core));
    checks.extend(programs(&|name| core.relay.program(name)));
    checks.extend(integrations(core).await);
    checks
}

/// Asked for by the person alone: without a feed nobody is asked.
async fn updates(core: &Core) -> Option<Check> {
    let feed = Settings::load(&core.home).ok()?.update.feed?;
    Some(crate::updates::row(&feed).await)
}

/// What decides about boxes' requests, and what in it is wider than usual.
fn relay(core: &Core) -> Vec<Check> {
    let mut checks = vec![control_socket(&core.home)];
    let settings = match Settings::load(&core.home) {
        Ok(settings) => settings,
        Err(e) => {
            let hint = "boxes' writes are asked for and integrations are off until it can be read";
            checks.push(check("relay", "settings", Level::Fail, &e.to_string(), Some(hint)));
            return checks;
        }
    };
    let unknown = settings.integrations.keys().filter(|name| registry::find(name).is_none());
    for name in unknown {
        let detail = format!("integrations.{name}: there is no such integration");
        checks.push(check("relay", "settings", Level::Warn, &detail, None));
    }
    let (mode, hint) = match settings.approvals.mode {
        settings::ApprovalMode::Ask => ("every write asks", None),
        settings::ApprovalMode::Safe => (
            "own-branch pushes, pull requests and contained copies pass without a question",
            Some("approvals.mode: ask in config.yaml asks for every write"),
        ),
    };
    let level = if hint.is_some() { Level::Warn } else { Level::Ok };
    checks.push(check("relay", "approvals", level, mode, hint));
    for (name, _) in settings.integrations.iter().filter(|(_, i)| i.auto_approve_writes) {
        let detail = format!("writes to {name} pass without a question");
        let hint = format!("integrations.{name}.autoApproveWrites in config.yaml");
        checks.push(check("relay", "approvals", Level::Warn, &detail, Some(&hint)));
    }
    checks.extend(ignored_keys(core));
    checks.extend(unknown_keys(core));
    checks
}

/// What nobody knows in the person's own files may have been meant to keep boxes in.
fn unknown_keys(core: &Core) -> Vec<Check> {
    let mut roots: Vec<_> = core.candidates().into_iter().map(|c| c.project_root).collect();
    roots.push("/".into());
    let mut told = std::collections::BTreeSet::new();
    for layers in roots.iter().filter_map(|root| crate::config::own_layers(&core.home, root).ok()) {
        let line = |(file, key): (&Path, &str)| {
            protocol::text::visible(&format!("{key} in {} is no setting", file.display()))
        };
        told.extend(layers.unknown().map(line));
    }
    let hint = "it has no effect; agentbox config list --include-advanced shows all there are";
    told.iter().map(|line| check("relay", "settings", Level::Warn, line, Some(hint))).collect()
}

fn control_socket(home: &Path) -> Check {
    let path = home::control_socket(home);
    match std::fs::metadata(&path).map(|m| m.permissions().mode() & 0o777) {
        Ok(0o600) => ok("relay", "control socket", format!("{}, 0600", path.display())),
        Ok(mode) => {
            let detail = format!("{} has mode {mode:04o}", path.display());
            check("relay", "control socket", Level::Fail, &detail, Some("restart the host"))
        }
        Err(e) => {
            let detail = format!("{}: {e}", path.display());
            check("relay", "control socket", Level::Fail, &detail, Some("restart the host"))
        }
    }
}

/// Settings that decide what a box may do have no effect in a file a box can write.
fn ignored_keys(core: &Core) -> Vec<Check> {
    let mut roots: Vec<_> = core.candidates().into_iter().map(|c| c.project_root).collect();
    roots.sort();
    roots.dedup();
    let warn = |root: std::path::PathBuf| {
        let text = crate::config::read_project_file(&root).ok()??;
        let file = root.join("agentbox.yaml");
        let trusted = crate::config::own_layers(&core.home, &root)
            .is_ok_and(|own| crate::trust::is_trusted(&own, &core.home, &root, &text));
        let mut keys = settings::ignored_policy_keys(&text);
        keys.retain(|key| !(trusted && may_be_trusted(key)));
        let detail = format!("{} in {} has no effect", keys.join(", "), file.display());
        let hint = "a box could write it; agentbox config explain KEY says what it is";
        (!keys.is_empty()).then(|| check("relay", "repository", Level::Warn, &detail, Some(hint)))
    };
    roots.into_iter().filter_map(warn).collect()
}

/// Whether a file that is trusted decides it.
fn may_be_trusted(key: &str) -> bool {
    let known = key.strip_prefix("defaults.").and_then(settings::registry::find);
    known.is_some_and(|known| known.scope == settings::registry::Scope::Project)
}

/// Where the programs are that the host runs for boxes.
fn programs(find: &dyn Fn(&str) -> Option<std::path::PathBuf>) -> Vec<Check> {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let named = registry::CONNECTORS.iter().filter_map(|c| c.program()).map(|p| p.name);
    let row = |name: &str| match find(name) {
        Some(path) => ok("programs", name, path.display().to_string()),
        None => check("programs", name, Level::Info, "not installed", None),
    };
    ["git"].into_iter().chain(named).chain([opener]).map(row).collect()
}

async fn integrations(core: &Core) -> Vec<Check> {
    let rows = registry::CONNECTORS.iter().map(|connector| async move {
        let tried = core.integration_check(connector).await;
        let hint = tried.hint.as_deref();
        check("integrations", connector.service, tried.level, &tried.detail, hint)
    });
    futures_util::future::join_all(rows).await
}

/// The check-up when no host runs.
pub async fn offline(home: &Path) -> Vec<Check> {
    let mut checks = common(home);
    checks.push(check(
        "host",
        "host",
        Level::Info,
        "not running",
        Some("agentbox serve, or agentbox-desktop"),
    ));
    let path = std::env::var_os("PATH").unwrap_or_default();
    match Settings::load(home) {
        Ok(settings) => {
            checks.extend(engine(&settings).await);
            checks.push(keychain(&settings).await);
            checks.extend(programs(&|name| Tool::find(name, &path).ok().map(|tool| tool.path)));
            checks.extend(registry::CONNECTORS.iter().map(|c| untried(c, &settings)));
        }
        Err(e) => checks.push(check("system", "settings", Level::Fail, &e.to_string(), None)),
    }
    checks
}

/// Whether a service answers is tried by the host, as it would for a box.
fn untried(connector: &Connector, settings: &Settings) -> Check {
    let service = connector.service;
    let on = policy_of(settings).integration(service).enabled;
    let hint = format!("agentbox integrations enable {service}");
    let (detail, hint) =
        if on { ("enabled; tried when the host runs", None) } else { ("disabled", Some(&*hint)) };
    check("integrations", service, Level::Info, detail, hint)
}

fn common(home: &Path) -> Vec<Check> {
    let mut checks = vec![home_folder(home)];
    checks.extend(strain::disk("system", home));
    checks.extend([git(), ctl()]);
    checks
}

fn home_folder(home: &Path) -> Check {
    let label = "home";
    if !socket_fits(home) {
        let detail = format!("{} is too long for a socket", home.display());
        let hint = "set AGENTBOX_HOME to a shorter path";
        return check("system", label, Level::Fail, &detail, Some(hint));
    }
    match std::fs::metadata(home) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            check("system", label, Level::Info, &format!("{} will be made", home.display()), None)
        }
        Err(e) => check("system", label, Level::Fail, &format!("{}: {e}", home.display()), None),
        Ok(m) if m.permissions().mode() & 0o077 != 0 => {
            let detail = format!("{} can be entered by others", home.display());
            check(
                "system",
                label,
                Level::Warn,
                &detail,
                Some("the host sets it to 0700 when it starts"),
            )
        }
        Ok(_) if nix::unistd::access(home, nix::unistd::AccessFlags::W_OK).is_err() => check(
            "system",
            label,
            Level::Fail,
            &format!("{} is not writable", home.display()),
            None,
        ),
        Ok(_) => ok("system", label, home.display().to_string()),
    }
}

fn git() -> Check {
    let path = std::env::var_os("PATH").unwrap_or_default();
    match Tool::find("git", &path) {
        Ok(tool) => ok("system", "git", tool.path.display().to_string()),
        Err(e) => check("system", "git", Level::Fail, &e.to_string(), Some("install git")),
    }
}

fn ctl() -> Check {
    match crate::ctl_binary() {
        Some(path) => ok("system", "in-box program", path.display().to_string()),
        None => {
            let hint = "build it with make build, or set AGENTBOX_CTL";
            check("system", "in-box program", Level::Fail, "agentbox-ctl not found", Some(hint))
        }
    }
}

async fn engine(settings: &Settings) -> Vec<Check> {
    let engine = match Engine::connect(settings.engine.host.as_deref()).await {
        Ok(engine) => engine,
        Err(e) => {
            let hint = e.hint();
            // Running but closed to this person is one group membership away from working.
            let level = if e.is_locked() { Level::Warn } else { Level::Fail };
            return vec![check("engine", "engine", level, &e.to_string(), hint.as_deref())];
        }
    };
    let profile = engine.profile().to_string();
    let free = engine.free_bytes();
    let at = engine.profile().data_root.clone();
    let mut checks = vec![ok("engine", "engine", profile)];
    checks.extend(free.map(|free| strain::disk_row("engine", &at, free)));
    checks.push(image(engine, settings).await);
    checks
}

async fn image(engine: Engine, settings: &Settings) -> Check {
    let label = "box image";
    let Some(ctl) = crate::ctl_binary() else {
        return check("engine", label, Level::Warn, "cannot be built without agentbox-ctl", None);
    };
    let certificates = boxes::host_certificates(settings.boxes.extra_cas.as_deref());
    let spec = ImageSpec::new(crate::daemons::stage(settings), ctl, certificates);
    let tag = match spec.tag() {
        Ok(tag) => tag,
        Err(e) => return check("engine", label, Level::Warn, &e.to_string(), None),
    };
    match engine.has_image(&tag).await {
        Ok(true) => ok("engine", label, tag),
        Ok(false) => check(
            "engine",
            label,
            Level::Info,
            "not built yet",
            Some("agentbox prepare --build builds it now"),
        ),
        Err(e) => check("engine", label, Level::Warn, &control_error(e).message, None),
    }
}

async fn keychain(settings: &Settings) -> Check {
    if settings.secrets.backend == settings::SecretsBackend::File {
        let detail = "not used; credentials are in files (secrets.backend: file)";
        return check("desktop", "keychain", Level::Info, detail, None);
    }
    match secrets::keychain_state().await {
        KeychainState::Ready => ok("desktop", "keychain", "unlocked".into()),
        KeychainState::Locked => {
            let hint = "unlock it in your desktop's password program";
            check("desktop", "keychain", Level::Warn, "locked", Some(hint))
        }
        KeychainState::Missing(why) => {
            let hint = "install and start gnome-keyring or KWallet, or set secrets.backend: file";
            check("desktop", "keychain", Level::Warn, &why, Some(hint))
        }
    }
}

pub(crate) fn ok(group: &str, label: &str, detail: String) -> Check {
    check(group, label, Level::Ok, &detail, None)
}

pub(crate) fn check(
    group: &str,
    label: &str,
    level: Level,
    detail: &str,
    hint: Option<&str>,
) -> Check {
    Check {
        group: group.into(),
        label: label.into(),
        level,
        detail: detail.into(),
        hint: hint.map(Into::into),
    }
}

/// Where the home's socket is too long for the kernel, say so early.
pub fn socket_fits(home: &Path) -> bool {
    home::control_socket(home).as_os_str().len() < 108
}
