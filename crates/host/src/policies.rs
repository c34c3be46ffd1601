//! What the settings say right now, for the relay.
//!
//! Files below the home decide: a box can write its project's `agentbox.yaml`, which can only tighten.
//! They are read anew whenever they changed, so that switching something off holds from the next call on. Settings
//! that cannot be read are as strict as settings can be.

use crate::config::project_settings;
use crate::project_dirs::project_dir;
use connectors::registry;
use relay::{IntegrationPolicy, Mode, Policies, Policy};
use settings::Settings;
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A file as it was when it was read: inode, size and time of its last change, if it is there.
type Stamp = Option<(u64, u64, i64, i64)>;

pub struct HostPolicies {
    home: PathBuf,
    known: Mutex<HashMap<PathBuf, (Vec<Stamp>, Policy)>>,
}

impl HostPolicies {
    pub fn new(home: PathBuf) -> Self {
        Self { home, known: Mutex::default() }
    }
}

impl Policies for HostPolicies {
    fn policy(&self, project_root: &Path) -> Policy {
        // What holds for a folder holds for those in it: an agentbox.yaml further down, which a box
        // may have brought, makes a project of its own but does not lead out of the outer one.
        let dirs: Vec<PathBuf> =
            project_root.ancestors().map(|root| project_dir(&self.home, root)).collect();
        let files = std::iter::once(&self.home).chain(&dirs).map(|dir| dir.join("config.yaml"));
        let files = files.chain([project_root.join(project::FILE_NAME)]);
        let stamps: Vec<Stamp> = files.map(|file| stamp(&file)).collect();
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let last = known().get(project_root).cloned();
        if let Some((then, policy)) = last
            && then == stamps
        {
            return policy;
        }
        // Without the lock: boxes of other projects do not wait for this one's file.
        let policy = match project_settings(&self.home, project_root) {
            Ok(settings) => policy_of(&settings),
            Err(e) => {
                tracing::error!("settings cannot be read, everything is asked for or off: {e}");
                Policy::default()
            }
        };
        known().insert(project_root.to_owned(), (stamps, policy.clone()));
        policy
    }
}

fn stamp(file: &Path) -> Stamp {
    let m = std::fs::metadata(file).ok()?;
    Some((m.ino(), m.len(), m.mtime(), m.mtime_nsec()))
}

/// Every service there is, with what the settings say of it.
pub fn policy_of(settings: &Settings) -> Policy {
    let integration = |service: &str, on_by_default: bool| {
        let given = settings.integrations.get(service);
        IntegrationPolicy {
            enabled: given.and_then(|g| g.enabled).unwrap_or(on_by_default),
            auto_approve_writes: given.is_some_and(|g| g.auto_approve_writes),
            base_url: given.and_then(|g| g.base_url.clone()),
        }
    };
    let integrations: BTreeMap<String, IntegrationPolicy> = registry::CONNECTORS
        .iter()
        .map(|c| (c.service.to_owned(), integration(c.service, c.on_by_default)))
        .collect();
    Policy {
        mode: match settings.approvals.mode {
            settings::ApprovalMode::Ask => Mode::Ask,
            settings::ApprovalMode::Safe => Mode::Safe,
        },
        integrations,
        checkout: settings.gh.checkout,
        copy_max_bytes: settings.boxes.cp_max_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enabled(policies: &HostPolicies, project: &Path) -> bool {
        policies.policy(project).integration("notion").enabled
    }

    #[test]
    fn relay_19_33_a_flip_holds_at_once_and_a_broken_file_means_off() {
        let home = tempfile::tempdir().unwrap();
        let project = Path::new("/home/ada/shop");
        let policies = HostPolicies::new(home.path().to_owned());
        let config = home.path().join("config.yaml");
        assert!(!enabled(&policies, project));
        assert!(policies.policy(project).integration("github").enabled);
        std::fs::write(&config, "integrations: {notion: {enabled: true}}").unwrap();
        assert!(enabled(&policies, project));
        std::fs::write(&config, "integrations: {notion: {enabled: tru").unwrap();
        assert!(!enabled(&policies, project));
        assert!(!policies.policy(project).integration("github").enabled);
        std::fs::write(&config, "integrations: {notion: {enabled: true}}\n").unwrap();
        assert!(enabled(&policies, project));
        let own = project_dir(home.path(), project);
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("config.yaml"), "integrations: {notion: {enabled: false}}")
            .unwrap();
        assert!(!enabled(&policies, project));
        assert!(!enabled(&policies, &project.join("packages/api")), "a project in the project");
        assert!(enabled(&policies, Path::new("/home/ada/other")));
    }

    #[test]
    fn relay_19_34_a_repository_enables_nothing() {
        let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let text = "defaults: {integrations: {notion: {enabled: true}}}\nintegrations: {notion: {enabled: true}}\napprovals: {mode: safe}\n";
        std::fs::write(project.path().join("agentbox.yaml"), text).unwrap();
        let policies = HostPolicies::new(home.path().to_owned());
        assert!(!enabled(&policies, project.path()));
        assert_eq!(policies.policy(project.path()).mode, Mode::Ask);
    }
}
