//! `agentbox.yaml` on the host: checked before anything is made, and what it wants copied from this
//! computer asked about.
//!
//! The file is one a box may have written, through a merge. So a yes is always for one list as it is on
//! disk right now: from the person who makes the box, by its digest, or as a question to whoever watches.
//! A yes that is remembered is for one project and what its list says; see [`Plan::said`].

use crate::config::read_project_file;
use crate::core::Core;
use crate::store::now;
use approvals::{AskError, Asker, Draft, Rememberable, Scope, Times};
use boxes::carry::{Agreed, Plan, Since, Then, Yes, resolve};
use boxes::{Boxes, Record};
use project::{FILE_NAME, Project, Run};
use protocol::carry::{Carried, CarryBy, CarryChoice, CarryKind, CarryLine, CarryPlan};
use protocol::control::{ControlError, CreateBox, ErrorCode};
use protocol::question::{Answers, Evidence, FileLine, Grant, Outcome, Reach, Tier};
use protocol::text::{shortened, size, visible};
use protocol::{BoxId, BoxName};
use relay::Entry;
use std::path::{Path, PathBuf};

const METHOD: &str = "carry";
/// Sources that a rule names.
const NAMED: usize = 3;

/// What the project's file says, as far as making a box is concerned.
pub(crate) struct Checked {
    pub warnings: Vec<String>,
    /// What is copied, and how a person agreed.
    pub carry: Option<Agreed>,
    /// Services that need a container engine in the box.
    pub images: Vec<String>,
}

impl Checked {
    /// What is said when the box has no engine of its own.
    pub fn idle_images(&self) -> Option<String> {
        let (names, one) = (self.images.join(", "), self.images.len() == 1);
        let run = if one { "is an image and does not" } else { "are images and do not" };
        (!self.images.is_empty()).then(|| {
            format!("{names} in {FILE_NAME} {run} run: this box has no engine of its own; --docker gives one")
        })
    }
}

impl Core {
    /// What would be copied into a box of this folder.
    pub(crate) async fn carry_plan(&self, workspace: &Path) -> Result<CarryPlan, ControlError> {
        let root =
            boxes::project::project_root(workspace).await.map_err(crate::engine::control_error)?;
        let (project, warnings) = read(&root).await?;
        let plan = self.resolved(project, &root).await?;
        let known = self.known(&plan, &root).await?;
        Ok(CarryPlan {
            files: marked(&plan, known.since.as_ref()),
            digest: plan.digest(),
            warnings,
            remembered: known.rule,
            changes: known.since.as_ref().map(Since::in_words),
        })
    }

    /// Checks the project's file, and asks about what it wants copied. Nothing has been made yet.
    pub(crate) async fn check_project(
        &self,
        request: &CreateBox,
        root: &Path,
        id: &BoxId,
        name: &BoxName,
    ) -> Result<Checked, ControlError> {
        let (project, mut warnings) = read(root).await?;
        warnings.extend(self.check_defaults(&project, root)?);
        let images = project.services.iter().filter(|s| matches!(s.run, Run::Image(_)));
        let images = images.map(|service| service.name.to_string()).collect();
        if project.carry.is_empty() {
            return Ok(Checked { warnings, carry: None, images });
        }
        if request.carry == Some(CarryChoice::Skip) {
            warnings.push(left_out(project.carry.len()));
            return Ok(Checked { warnings, carry: None, images });
        }
        let many = project.carry.len();
        let plan = self.resolved(project, root).await?;
        let yes = match &request.carry {
            Some(CarryChoice::Copy { digest, by, remember, at }) => {
                if digest.as_ref().is_some_and(|digest| *digest != plan.digest()) {
                    let text = "carry: the list or its files changed after they were shown";
                    return Err(ControlError::new(ErrorCode::DigestMismatch, text)
                        .hint("make the box again, and look at the list once more."));
                }
                if *remember {
                    if digest.is_none() {
                        let text = "carry: only a list that was shown can be remembered";
                        return Err(ControlError::new(ErrorCode::Usage, text));
                    }
                    self.remember_list(&plan, root, id, name).await?;
                }
                Yes { by: *by, at: Some(at.unwrap_or_else(now).min(now())) }
            }
            _ if plan.copies() == 0 => return Ok(Checked { warnings, carry: None, images }),
            choice => {
                let mut known = self.known(&plan, root).await?;
                let mut draft = draft(&plan, root, id, name, known.since.take());
                if *choice == Some(CarryChoice::Ask) && known.rule.is_some() {
                    draft.remember = None;
                }
                let Some(yes) = self.ask_to_carry(draft).await? else {
                    warnings.push(left_out(many));
                    return Ok(Checked { warnings, carry: None, images });
                };
                yes
            }
        };
        let agreed = Agreed { plan, yes, best_effort: request.carry_best_effort };
        Ok(Checked { warnings, carry: Some(agreed), images })
    }

    async fn resolved(&self, project: Project, root: &Path) -> Result<Plan, ControlError> {
        let limit = self.settings_for(root)?.boxes.cp_max_bytes;
        let root = root.to_owned();
        let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
        let looked =
            tokio::task::spawn_blocking(move || resolve(&project, &root, &home, limit)).await;
        let looked = looked.map_err(|e| ControlError::new(ErrorCode::Failed, e.to_string()))?;
        looked.map_err(|refused| {
            let error = ControlError::new(ErrorCode::Failed, "carry: refused");
            refused.into_iter().fold(error, |error, why| error.hint(format!("  {why}")))
        })
    }

    /// What rules say about this list, or how it differs from the newest one that there is a rule for. Only
    /// told: what counts is what the broker finds.
    async fn known(&self, plan: &Plan, root: &Path) -> Result<Known, ControlError> {
        let (key, at) = (key(plan, root), root.display().to_string());
        let of_project =
            |g: &Grant| g.method == METHOD && g.reach == Reach::Project && g.project_root == at;
        let mut rules: Vec<Grant> =
            self.store.grants().await?.into_iter().filter(of_project).collect();
        // The newest yes takes the place of those before it: a list cannot go back to an older one.
        for old in rules.drain(1.min(rules.len())..) {
            self.store.revoke(old.id).await?;
        }
        if let Some(rule) = rules.iter().find(|rule| rule.scope == key) {
            return Ok(Known { rule: Some(rule.sentence.clone()), since: None });
        }
        let said = rules.first().and_then(|rule| rule.scope.strip_suffix(&place(root)));
        Ok(Known { rule: None, since: said.map(|said| plan.since(said)) })
    }

    /// Makes the rule that a person wanted who was shown the list at a terminal.
    async fn remember_list(
        &self,
        plan: &Plan,
        root: &Path,
        id: &BoxId,
        name: &BoxName,
    ) -> Result<(), ControlError> {
        if plan.copies() == 0 || self.known(plan, root).await?.rule.is_some() {
            return Ok(());
        }
        let kept = self.broker.remember(&draft(plan, root, id, name, None)).await;
        kept.map(|_| ()).map_err(failed)
    }

    /// None: a person wants the box without these files.
    async fn ask_to_carry(&self, draft: Draft) -> Result<Option<Yes>, ControlError> {
        let yes = |by, at| Ok(Some(Yes { by, at: Some(at) }));
        if let Some(rule) = self.broker.allowed_by_rule(&draft).await.map_err(failed)? {
            return yes(CarryBy::Rule, rule.created_at);
        }
        if !self.broker.is_attended() {
            let text = "carry: files of this computer are copied only when a person agrees, and nobody is here to ask";
            return Err(ControlError::new(ErrorCode::Failed, text)
                .hint("AGENTBOX_CARRY_YES=1 or --carry-yes copies them.")
                .hint("AGENTBOX_CARRY=skip or --carry skip makes a box without them."));
        }
        let outcome = self.broker.ask(draft).await;
        match outcome {
            Ok(Outcome::Granted { .. }) => yes(CarryBy::Rule, now()),
            Ok(Outcome::Allowed { .. }) => yes(CarryBy::Question, now()),
            Ok(Outcome::Without { .. }) => Ok(None),
            Ok(Outcome::Denied { .. }) => {
                let text = "carry: the files were not allowed; no box was made";
                Err(ControlError::new(ErrorCode::Failed, text)
                    .hint("--carry skip makes a box without them."))
            }
            Ok(_) => {
                let text = "carry: nobody answered; no box was made";
                Err(ControlError::new(ErrorCode::Failed, text)
                    .hint("--carry skip makes a box without them."))
            }
            Err(e) => Err(failed(e)),
        }
    }

    /// Brings a box what changed of what was agreed to when it was made: what it has now, and why
    /// something was left. That is only told: a box works without.
    pub(crate) async fn carry_again(
        &self,
        boxes: &Boxes,
        record: &Record,
    ) -> (Vec<Carried>, Vec<String>) {
        if record.carry.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let mut left = Vec::new();
        let copied = async {
            let (project, _) = read(&record.project_root).await?;
            let plan = self.resolved(project, &record.project_root).await?;
            let again = plan.again(record).await.map_err(crate::engine::control_error)?;
            left.extend(again.left.iter().cloned());
            // On record before it is sent: the box could say that it did not get it.
            self.note_carried(record, &again.changed).await?;
            let copied = boxes.carry_again(record, &again).await;
            copied.map_err(crate::engine::control_error)
        };
        match copied.await {
            Ok(copied) => {
                // What failed stays on record as it was, and is tried again the next time.
                let (failed, copied): (Vec<_>, Vec<_>) =
                    copied.into_iter().partition(|one| one.failed.is_some());
                left.extend(warnings(&failed).chain(warnings(&copied)));
                (copied, left)
            }
            Err(error) => {
                let why = std::iter::once(error.message.trim_end_matches(':'));
                let why = why.chain(error.hints.iter().map(|hint| hint.trim()));
                left.push(shortened(&why.collect::<Vec<_>>().join("; "), 600));
                (Vec::new(), left)
            }
        }
    }

    /// Writes down what was copied, and on whose word.
    pub(crate) async fn note_carried(
        &self,
        record: &Record,
        carried: &[Carried],
    ) -> Result<(), ControlError> {
        if carried.is_empty() {
            return Ok(());
        }
        let entry = Entry {
            box_id: Some(record.id.clone()),
            kind: "carried",
            summary: noted(&record.name, carried),
            data: serde_json::json!({ "files": carried }),
        };
        Ok(self.store.record(entry).await?)
    }
}

/// What a person should know of what was copied: what is not there, and what is not as they meant it.
pub(crate) fn warnings(carried: &[Carried]) -> impl Iterator<Item = String> {
    carried.iter().flat_map(|one| {
        let failed = one.failure().map(|why| format!("carry: not copied: {why}"));
        let file = visible(&one.src);
        let unfilled = one.unfilled.iter().map(move |name| {
            format!("carry: {{{{{name}}}}} in {file} has no value and was left as it is")
        });
        failed.into_iter().chain(unfilled)
    })
}

/// Everything in it was sent, or begun to be; a box that says it failed may have it all the same.
fn noted(name: &BoxName, carried: &[Carried]) -> String {
    let entries = |many: usize| match many {
        1 => "1 entry".to_owned(),
        many => format!("{many} entries"),
    };
    let failed = carried.iter().filter(|one| one.failed.is_some()).count();
    let copied = entries(carried.len() - failed);
    let summary = format!("Copied {copied} of this computer into {name}");
    if failed == 0 { summary } else { format!("{summary}; {} failed", entries(failed)) }
}

/// The project's file, without mistakes, and what a person should know of it. Reading may take a while.
async fn read(root: &Path) -> Result<(Project, Vec<String>), ControlError> {
    let root = root.to_owned();
    let read = tokio::task::spawn_blocking(move || read_now(&root)).await;
    read.map_err(|e| ControlError::new(ErrorCode::Failed, e.to_string()))?
}

fn read_now(root: &Path) -> Result<(Project, Vec<String>), ControlError> {
    let path = root.join(FILE_NAME);
    let failed = |why: String| {
        ControlError::new(ErrorCode::Failed, format!("cannot read {}: {why}", path.display()))
    };
    let Some(text) = read_project_file(root).map_err(failed)? else {
        return Ok((Project::default(), Vec::new()));
    };
    let parsed = Project::parse(&text);
    let line = |problem: &project::Problem| problem.line(FILE_NAME);
    let Some(project) = parsed.project else {
        let error = ControlError::new(ErrorCode::Failed, "agentbox.yaml validation failed:");
        let all = parsed.errors.iter().chain(&parsed.warnings);
        let error = all.fold(error, |error, problem| error.hint(format!("  {}", line(problem))));
        return Err(error.hint("agentbox validate checks it again."));
    };
    Ok((project, parsed.warnings.iter().map(line).collect()))
}

/// What a box that is made without them is told with.
fn left_out(many: usize) -> String {
    let were = if many == 1 { "entry of carry was" } else { "entries of carry were" };
    format!("{many} {were} not copied; {FILE_NAME} names what it is")
}

/// What is known about a list from before.
struct Known {
    /// The rule that covers it, as its sentence.
    rule: Option<String>,
    since: Option<Since>,
}

#[allow(clippy::needless_pass_by_value, reason = "what is given to map_err")]
fn failed(e: AskError) -> ControlError {
    ControlError::new(ErrorCode::Failed, format!("carry: {e}"))
}

/// The lines of a list; what a person has not said yes to for good is marked, once there is such a thing.
fn marked(plan: &Plan, since: Option<&Since>) -> Vec<CarryLine> {
    let mut lines = plan.lines();
    for (line, then) in lines.iter_mut().zip(since.iter().flat_map(|since| &since.entries)) {
        let mark = match then {
            Then::Same => continue,
            Then::Changed => "changed",
            Then::New => "new",
        };
        line.notes.insert(0, mark.to_owned());
    }
    lines
}

/// What a rule covers: this list, of this project.
fn key(plan: &Plan, root: &Path) -> String {
    format!("{}{}", plan.said(), place(root))
}

/// Two paths that only look alike are two.
fn place(root: &Path) -> String {
    format!(" {}", root.as_os_str().as_encoded_bytes().escape_ascii())
}

fn rememberable(plan: &Plan, root: &Path, there: &[&CarryLine]) -> Rememberable {
    let named = there.iter().take(NAMED).map(|line| shortened(&line.src, 60));
    let mut names = named.collect::<Vec<_>>().join(", ");
    if there.len() > NAMED {
        names.push_str(&format!(" and {} more", there.len() - NAMED));
    }
    let what = format!("start with copies of just {names}");
    Rememberable {
        exact: Scope { key: key(plan, root), what },
        kind: None,
        only: Some(Reach::Project),
    }
}

fn draft(plan: &Plan, root: &Path, id: &BoxId, name: &BoxName, since: Option<Since>) -> Draft {
    let lines = marked(plan, since.as_ref());
    let there: Vec<&CarryLine> = lines.iter().filter(|l| l.kind != CarryKind::Missing).collect();
    let many = match there.as_slice() {
        [one] => one.src.clone(),
        all => format!("{} files and folders", all.len()),
    };
    let total: u64 = there.iter().map(|line| line.bytes).sum();
    let files = there.iter().map(|line| FileLine {
        path: described(line),
        bytes: line.bytes,
        note: (!line.warnings.is_empty()).then(|| line.warnings.join("; ")),
    });
    let project = root.file_name().unwrap_or_default().to_string_lossy();
    let mut warnings = vec!["sends files of this computer into the box".to_owned()];
    let mut add = |warning: &str, holds: &dyn Fn(&str) -> bool| {
        if there.iter().any(|line| line.warnings.iter().any(|w| holds(w))) {
            warnings.push(warning.to_owned());
        }
    };
    add("a link leads elsewhere than it seems", &|w: &str| w.starts_with("a link"));
    add("looks like a credential", &|w: &str| w.contains("credential"));
    Draft {
        asker: Asker {
            box_id: id.clone(),
            box_name: name.clone(),
            project: protocol::text::visible(&project),
            project_root: root.display().to_string(),
        },
        method: METHOD.to_owned(),
        tier: Tier::Sensitive,
        title: format!("Copy {many} into the new box {name}"),
        target: protocol::text::visible(&root.join(FILE_NAME).display().to_string()),
        evidence: Evidence {
            files: files.collect(),
            summary: Some(match since {
                Some(since) => {
                    let since = since.in_words();
                    format!("{} in all; since the list you agreed to: {since}", size(total))
                }
                None => format!("{} in all", size(total)),
            }),
            ..Evidence::default()
        },
        warnings,
        argv: vec!["agentbox".to_owned(), "create".to_owned(), root.display().to_string()],
        plan: plan.digest(),
        remember: Some(rememberable(plan, root, &there)),
        answers: Answers {
            yes: "Copy".to_owned(),
            remember: "Copy and remember".to_owned(),
            without: Some("Without these files".to_owned()),
            no: "Cancel".to_owned(),
        },
        times: Times::default(),
        timeout: None,
    }
}

/// `~/.npmrc → /home/vscode/.npmrc, 0600`.
fn described(line: &CarryLine) -> String {
    let mut text = format!("{} → {}", line.src, line.dest);
    let user = line.user.map(|id| format!("user {id}"));
    for note in line.mode.iter().chain(&user).chain(&line.notes) {
        text.push_str(", ");
        text.push_str(note);
    }
    text
}

impl crate::Api {
    /// What would be copied into a box of this folder, for a person to look at.
    pub async fn carry_plan(&self, workspace: &str) -> Result<CarryPlan, ControlError> {
        let workspace = crate::create::workspace(workspace)?;
        self.core.carry_plan(&workspace).await
    }
}

#[cfg(test)]
mod tests;
