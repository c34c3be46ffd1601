//! One job: what is written down of it, and what people see.

use protocol::control::CreateBox;
use protocol::queue::{Gate, JobStatus, JobView};
use protocol::sessions::Agent;
use protocol::{BoxId, JobId, Millis};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A job as it is kept. It holds no credential: those given with it are in memory alone.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    pub id: JobId,
    pub status: JobStatus,
    pub agent: Agent,
    pub prompt: String,
    pub create: CreateBox,
    pub args: Vec<String>,
    pub session_name: Option<String>,
    pub sync: bool,
    #[serde(default)]
    pub skip_permissions: Option<bool>,
    pub gate: Gate,
    pub cols: u16,
    pub rows: u16,
    pub created_at: Millis,
    pub started_at: Option<Millis>,
    pub finished_at: Option<Millis>,
    /// The box it has made.
    pub box_id: Option<BoxId>,
    pub box_name: Option<String>,
    pub reason: Option<String>,
    pub hint: Option<String>,
}

impl Job {
    pub fn view(&self, home: &Path) -> JobView {
        JobView {
            id: self.id.clone(),
            status: self.status,
            agent: self.agent,
            box_name: self.box_name.clone().or_else(|| self.create.name.clone()),
            box_id: self.box_id.clone(),
            workspace: self.create.workspace.clone(),
            prompt: self.prompt.clone(),
            gate: self.gate,
            created_at: self.created_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
            reason: self.reason.clone(),
            hint: self.hint.clone(),
            log: log_file(home, &self.id).display().to_string(),
        }
    }

    pub fn end(&mut self, status: JobStatus, now: Millis) {
        self.status = status;
        self.finished_at = Some(now);
    }

    pub fn fail(&mut self, reason: &str, hint: Option<String>, now: Millis) {
        self.end(JobStatus::Failed, now);
        self.reason = Some(secrets::redact(reason));
        self.hint = hint;
    }

    /// What the agent is started with: the prompt first, then what the person added.
    pub fn words(&self) -> Vec<String> {
        // A prompt is never taken for an option.
        let dash = if self.prompt.starts_with('-') { " " } else { "" };
        let prompt = format!("{dash}{}", self.prompt);
        // OpenCode takes the first word for a folder.
        let option = (self.agent == Agent::Opencode).then(|| "--prompt".to_owned());
        option.into_iter().chain([prompt]).chain(self.args.iter().cloned()).collect()
    }
}

pub fn log_dir(home: &Path) -> PathBuf {
    home.join("logs/queue")
}

pub fn log_file(home: &Path, id: &JobId) -> PathBuf {
    log_dir(home).join(format!("{id}.log"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn a_job(n: u8) -> Job {
        Job {
            id: JobId::from_bytes([n, 0, 0, 0, 0, 0]),
            status: JobStatus::Queued,
            agent: Agent::Claude,
            prompt: "fix it".into(),
            create: CreateBox { workspace: "/p".into(), ..CreateBox::default() },
            args: vec!["--model".into(), "x".into()],
            session_name: None,
            sync: true,
            skip_permissions: None,
            gate: Gate::Running(5),
            cols: 80,
            rows: 24,
            created_at: u64::from(n),
            started_at: None,
            finished_at: None,
            box_id: None,
            box_name: None,
            reason: None,
            hint: None,
        }
    }

    #[test]
    fn a_prompt_is_the_first_word_and_never_an_option() {
        let words = |agent, prompt: &str| {
            Job { agent, prompt: prompt.into(), ..a_job(1) }.words().join("|")
        };
        assert_eq!(words(Agent::Claude, "fix it"), "fix it|--model|x");
        assert_eq!(words(Agent::Codex, "--yolo"), " --yolo|--model|x");
        assert_eq!(words(Agent::Opencode, "- a\n- b"), "--prompt| - a\n- b|--model|x");
    }

    #[test]
    fn why_a_job_failed_names_no_credential() {
        let mut job = a_job(1);
        job.fail("no: https://me:ghp_0123456789abcdef0123@h/r", None, 7);
        assert!(!job.reason.as_ref().unwrap().contains("ghp_"), "{:?}", job.reason);
        assert_eq!((job.status, job.finished_at), (JobStatus::Failed, Some(7)));
    }
}
