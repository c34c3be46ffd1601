//! Check-up: is everything there that boxes need?

use crate::core::Core;
use crate::engine::control_error;
use crate::home;
use boxes::{Engine, ImageSpec};
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
    checks.extend(engine(&core.settings).await);
    for notice in status.notices {
        checks.push(Check {
            group: "desktop".into(),
            label: notice.part,
            level: Level::Warn,
            detail: notice.message,
            hint: notice.hint,
        });
    }
    checks.push(keychain().await);
    checks
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
    match Settings::load(home) {
        Ok(settings) => checks.extend(engine(&settings).await),
        Err(e) => checks.push(check("system", "settings", Level::Fail, &e.to_string(), None)),
    }
    checks.push(keychain().await);
    checks
}

fn common(home: &Path) -> Vec<Check> {
    vec![home_folder(home), git(), ctl()]
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
    vec![ok("engine", "engine", profile), image(engine, settings).await]
}

async fn image(engine: Engine, settings: &Settings) -> Check {
    let label = "box image";
    let Some(ctl) = crate::ctl_binary() else {
        return check("engine", label, Level::Warn, "cannot be built without agentbox-ctl", None);
    };
    let certificates = boxes::host_certificates(settings.boxes.extra_cas.as_deref());
    let spec = ImageSpec::new(ctl, certificates);
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
            Some("agentbox prepare builds it now"),
        ),
        Err(e) => check("engine", label, Level::Warn, &control_error(e).message, None),
    }
}

async fn keychain() -> Check {
    match secrets::keychain_state().await {
        KeychainState::Ready => ok("desktop", "keychain", "unlocked".into()),
        KeychainState::Locked => {
            let hint = "unlock it in your desktop's password program";
            check("desktop", "keychain", Level::Warn, "locked", Some(hint))
        }
        KeychainState::Missing(why) => {
            let hint = "install and start gnome-keyring or KWallet to store credentials";
            check("desktop", "keychain", Level::Warn, &why, Some(hint))
        }
    }
}

fn ok(group: &str, label: &str, detail: String) -> Check {
    check(group, label, Level::Ok, &detail, None)
}

fn check(group: &str, label: &str, level: Level, detail: &str, hint: Option<&str>) -> Check {
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
