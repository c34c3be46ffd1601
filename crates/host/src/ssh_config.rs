//! `$AGENTBOX_HOME/ssh/config`: boxes for `ssh`, and for everything that reads ssh's configuration.
//!
//! Written anew whenever a box changes; a box that does not run is not in it. A client of a hostile
//! server must not be talked into anything, so each box's part switches off what a person's own
//! defaults might switch on: no agent, no display, no password typed into a box.
//!
//! The surprising thing: a box's plain name is left out when the person's own configuration has a
//! host of that name. It stands first there, and `ssh server` must not lead into a box by accident.

use crate::api::Api;
use crate::core::Core;
use crate::{home, ssh_keys};
use protocol::control::{ControlError, ErrorCode, Target};
use protocol::ctl::BOX_USER;
use protocol::links::{SshConfig, SshHost};
use protocol::{BoxId, BoxName};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The most that is read of a person's own configuration.
const MAX_OWN: u64 = 1024 * 1024;

/// One box, as far as ssh needs to know it.
struct Entry {
    id: BoxId,
    name: BoxName,
    port: u16,
}

pub fn path(home: &Path) -> PathBuf {
    home.join("ssh/config")
}

impl Api {
    pub fn ssh_config(&self) -> Result<SshConfig, ControlError> {
        let path = path(&self.core.home);
        let text = self.core.refreshed_ssh_config().map_err(|e| {
            let text = format!("{} cannot be written: {e}", path.display());
            ControlError::new(ErrorCode::Failed, text)
        })?;
        Ok(SshConfig { path: path.display().to_string(), text })
    }

    /// Brings a box up and says how ssh reaches it.
    pub async fn ssh_host(&self, target: Target) -> Result<SshHost, ControlError> {
        let id = self.find(&target)?;
        self.core.bring_up(&id).await?;
        let gone = || ControlError::new(ErrorCode::Usage, "the box is gone");
        let name = self.core.record(&id).ok_or_else(gone)?.name;
        if self.core.endpoints(&id).is_none_or(|at| at.ssh.is_none()) {
            let text = format!("{name} has no ssh server");
            return Err(ControlError::new(ErrorCode::Failed, text)
                .hint("boxes of the stage full have one; box.stage in config.yaml chooses."));
        }
        let config = self.ssh_config()?.path;
        Ok(SshHost { config, host: format!("agentbox-{name}"), name })
    }
}

impl Core {
    pub fn write_ssh_config(&self) {
        if let Err(e) = self.refreshed_ssh_config() {
            tracing::warn!("{} cannot be written: {e}", path(&self.home).display());
        }
    }

    /// What the file says; it is written only when that is something new.
    fn refreshed_ssh_config(&self) -> io::Result<String> {
        let entry = |known: &crate::core::Known| {
            let port = known.endpoints.ssh?;
            Some(Entry { id: known.record.id.clone(), name: known.record.name.clone(), port })
        };
        let boxes: Vec<Entry> = self.state().boxes.values().filter_map(entry).collect();
        let text = text(&self.home, &boxes, &own_hosts());
        let file = path(&self.home);
        if std::fs::read_to_string(&file).ok().as_deref() != Some(&text) {
            home::private_dir(&self.home.join("ssh"))?;
            replace(&file, &text)?;
        }
        Ok(text)
    }
}

fn text(home: &Path, boxes: &[Entry], taken: &HashSet<String>) -> String {
    let mut text = "# Written by AgentBox whenever a box changes.\n".to_owned();
    for Entry { id, name, port } in boxes {
        let plain = if taken.contains(name.as_str()) { String::new() } else { format!(" {name}") };
        let key = quoted(&ssh_keys::client_key(home, id));
        let known = quoted(&ssh_keys::known_hosts(home, id));
        let _ = write!(
            text,
            "\nHost agentbox-{name}{plain}\n  \
             HostName 127.0.0.1\n  Port {port}\n  User {BOX_USER}\n  \
             IdentityFile {key}\n  IdentitiesOnly yes\n  IdentityAgent none\n  \
             PreferredAuthentications publickey\n  PasswordAuthentication no\n  \
             KbdInteractiveAuthentication no\n  GSSAPIAuthentication no\n  \
             HostKeyAlias {alias}\n  UserKnownHostsFile {known}\n  GlobalKnownHostsFile /dev/null\n  \
             StrictHostKeyChecking yes\n  UpdateHostKeys no\n  CheckHostIP no\n  \
             ForwardAgent no\n  ForwardX11 no\n  PermitLocalCommand no\n  ProxyCommand none\n  \
             ControlMaster no\n  ControlPath none\n",
            alias = ssh_keys::alias(id),
        );
    }
    text
}

/// A percent sign begins a token there.
fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('%', "%%"))
}

/// The hosts a person has names for. A configuration that cannot be read has none.
fn own_hosts() -> HashSet<String> {
    let file = std::env::home_dir().map(|home| home.join(".ssh/config"));
    let readable = |file: &PathBuf| std::fs::metadata(file).is_ok_and(|m| m.len() <= MAX_OWN);
    let text = file.filter(readable).and_then(|file| std::fs::read_to_string(file).ok());
    named_hosts(&text.unwrap_or_default())
}

fn named_hosts(text: &str) -> HashSet<String> {
    let words = |line: &str| -> Vec<String> {
        let words = line.split(|c: char| c.is_whitespace() || c == '=');
        words.filter(|w| !w.is_empty()).map(|w| w.trim_matches('"').to_owned()).collect()
    };
    let lines = text.lines().map(words);
    let hosts = lines.filter(|line| line.first().is_some_and(|w| w.eq_ignore_ascii_case("host")));
    hosts.flat_map(|line| line.into_iter().skip(1)).collect()
}

/// Whole or not at all, for its owner alone.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let fresh = file.with_extension("new");
    let _ = std::fs::remove_file(&fresh);
    let mut options = std::fs::OpenOptions::new();
    let mut out = options.write(true).create_new(true).mode(0o600).open(&fresh)?;
    out.write_all(text.as_bytes())?;
    std::fs::rename(&fresh, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_is_a_host_with_its_own_key() {
        let entry = |name: &str| Entry {
            id: "b00000001".parse().unwrap(),
            name: name.parse().unwrap(),
            port: 4022,
        };
        let taken = named_hosts("Host server web\n  HostName x\nhost=\"other\"\nHostName no\n");
        assert_eq!(taken, ["server", "web", "other"].map(String::from).into());
        let text = text(Path::new("/home/a da/100%"), &[entry("fix"), entry("server")], &taken);
        assert!(text.contains("\nHost agentbox-fix fix\n"), "{text}");
        assert!(text.contains("\nHost agentbox-server\n"), "{text}");
        assert!(text.contains("  Port 4022\n") && text.contains("  ForwardAgent no\n"), "{text}");
        let key = "IdentityFile \"/home/a da/100%%/boxes/b00000001/ssh/id_ed25519\"";
        assert!(text.contains(key), "{text}");
    }
}
