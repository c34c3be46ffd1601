//! What there is to ask a person about before a page widens a box's way out: a looser mode, a rule that
//! allows, a repository's own wishes, credentials that came back, a denial that is taken away.
//!
//! What the host does not say is taken to be the tightest there is, so silence never saves a question. All
//! words here are of the host or were typed by a page: they are cut short and made visible.

use crate::loosening::{Loosening, MOST_WORDS, words};
use crate::{Window, to_control, usage};
use host::client::ClientError;
use protocol::boxes::BoxView;
use protocol::control::{ControlError, CreateBox, Request, Target};
use protocol::egress::{
    EgressAction, EgressChange, EgressChanged, EgressMode, EgressPlace, EgressView,
};
use protocol::question::{Breadth, Grant, Question, Reach, Remember, Verdict};
use protocol::text::{shortened, visible};
use protocol::window::{SettingFrom, SettingsView};
use protocol::{BoxId, GrantId, QuestionId};
use serde_json::Value;

/// Of a rule or a difference, in the question.
const MOST_LINES: usize = 16;
const MOST_OF_LINE: usize = 100;
/// Of a rule in one sentence.
const MOST_OF_RULE: usize = 500;
/// What the settings call the mode of new boxes.
const MODE: &str = "egress.mode";
/// What rules about requests are called.
const FAMILY: &str = "egress.";
/// Said of every yes: it is what people forget.
const TRUSTED: &str = "What is allowed is trusted with its whole payload: data can leave in it.";

impl Window {
    /// What a person has to agree to before this request; none when boxes may do no more than before.
    pub(crate) fn wider_way_out(
        &self,
        request: &Request,
    ) -> Result<Option<Loosening>, ControlError> {
        match request {
            Request::SwitchEgress { target, mode } => {
                let of = self.of(target)?;
                let from = of.view.as_ref().map(|view| view.egress);
                Ok(loosens(from, *mode).then(|| switching(&of, *mode)))
            }
            Request::CreateBox(create) => Ok(self.made_open(create)),
            Request::ChangeEgress(change)
                if !change.dry_run && change.action != EgressAction::Deny =>
            {
                let of = self.of(&change.target)?;
                let tried = EgressChange { dry_run: true, ..change.clone() };
                let would = self.says(&Request::ChangeEgress(tried))?;
                Ok(Some(ruling(&of, change, would.as_ref())))
            }
            Request::AnswerRepository { target, digest, accept: true } => {
                let of = self.of(target)?;
                let view: Option<EgressView> =
                    self.says(&Request::Egress { target: target.clone() })?;
                let diff = asked_for(view, digest)?;
                Ok(Some(accepting(&of, digest, &diff)))
            }
            Request::Answer {
                id, verdict: Verdict::Remember { reach, breadth, seconds }, ..
            } if *reach != Reach::Box => {
                let all: Option<Vec<Question>> = self.says(&Request::Questions)?;
                let Some(all) = all else {
                    return Ok(Some(remembering(id, String::new(), *reach)));
                };
                let question = all.iter().find(|question| question.id == *id);
                let Some(question) = question.filter(|q| q.method.starts_with(FAMILY)) else {
                    return Ok(None);
                };
                let rule = kept(question, *reach, *breadth, *seconds)?;
                Ok(Some(remembering(id, rule, *reach)))
            }
            Request::AcknowledgeEcho { host } => Ok(Some(trusting(host))),
            Request::RevokeGrant { id } => self.undenied(id),
            _ => Ok(None),
        }
    }

    /// What the host says to a question; none when nobody is there, and its own no is the page's answer.
    fn says<T: serde::de::DeserializeOwned>(
        &self,
        request: &Request,
    ) -> Result<Option<T>, ControlError> {
        match self.client.call(request) {
            Ok(said) => Ok(Some(said)),
            Err(ClientError::Host(no)) => Err(no),
            Err(_) => Ok(None),
        }
    }

    /// The box a page means, by its id and nothing else: another way of naming one could be another box
    /// by the time the host looks.
    fn of(&self, target: &Target) -> Result<Of, ControlError> {
        let id = target.query.as_deref().and_then(|query| query.parse::<BoxId>().ok());
        let id = id.ok_or_else(|| usage("A window names boxes by their ids."))?;
        let all: Option<Vec<BoxView>> = self.says(&Request::Boxes)?;
        let view = all.and_then(|all| all.into_iter().find(|view| view.id == id));
        Ok(Of { id, view })
    }

    fn made_open(&self, create: &CreateBox) -> Option<Loosening> {
        let mode = create.egress?;
        let request = Request::Settings { cwd: Some(create.workspace.clone()) };
        let settings = self.client.call::<SettingsView>(&request).map_err(to_control).ok();
        let from = settings.and_then(own_mode);
        loosens(from, mode).then(|| making(&create.workspace, mode))
    }

    /// A rule that denies, or asks, is taken away.
    fn undenied(&self, id: &GrantId) -> Result<Option<Loosening>, ControlError> {
        // Without knowing what the rule is it is not removed either.
        let all: Vec<Grant> = self.client.call(&Request::Grants).map_err(to_control)?;
        let rule = all.into_iter().find(|grant| grant.id == *id);
        let held_back = |rule: &Grant| {
            let scope: Option<Value> = serde_json::from_str(&rule.scope).ok();
            let allows = scope.is_some_and(|scope| scope["action"] == "allow");
            rule.method.starts_with(FAMILY) && !allows
        };
        Ok(rule.filter(held_back).map(|rule| removing(&rule)))
    }
}

/// A box as a person knows it.
struct Of {
    id: BoxId,
    view: Option<BoxView>,
}

impl Of {
    fn name(&self) -> String {
        self.view.as_ref().map_or_else(|| self.id.to_string(), |view| view.name.to_string())
    }

    fn project(&self) -> String {
        let root = self.view.as_ref().map(|view| view.project_root.as_str());
        shortened(root.unwrap_or("a project nobody told of"), MOST_WORDS)
    }

    fn whom(&self) -> String {
        format!("For the box {} of {}", self.name(), self.project())
    }
}

/// Whether a box may do more in the one than in the other; what is not known is the tightest.
fn loosens(from: Option<EgressMode>, to: EgressMode) -> bool {
    let place = |mode| EgressMode::ALL.iter().position(|other| *other == mode);
    place(to) < place(from.unwrap_or(EgressMode::Locked))
}

/// What the person's own files say of new boxes. A repository's word is not theirs.
fn own_mode(settings: SettingsView) -> Option<EgressMode> {
    let setting = settings.settings.into_iter().find(|setting| setting.key == MODE)?;
    setting.value.filter(|_| setting.from != SettingFrom::Workspace)?.parse().ok()
}

fn lets(mode: EgressMode) -> &'static str {
    match mode {
        EgressMode::Open => "It then reaches every address, and nothing of it is recorded.",
        EgressMode::Observe => {
            "It then reaches every public address. What it does is recorded, and nothing is stopped."
        }
        EgressMode::Balanced => {
            "It then reaches package registries and agents' services; everything else asks you."
        }
        EgressMode::Locked => {
            "It then reaches what you allowed, and the services of its own agent."
        }
    }
}

fn switching(of: &Of, mode: EgressMode) -> Loosening {
    Loosening {
        title: format!("Change the way out of {} to {}?", of.name(), mode.as_str()),
        allows: format!("{} {TRUSTED}", lets(mode)),
        of: of.whom(),
        shows: Vec::new(),
        command: words(&["agentbox", "egress", "mode", &of.name(), mode.as_str()]),
        verb: "Change it",
    }
}

fn making(folder: &str, mode: EgressMode) -> Loosening {
    Loosening {
        title: format!("Make a box whose way out is {}?", mode.as_str()),
        allows: format!("{} Your settings are stricter.", lets(mode)),
        of: format!("The new box is of {}", shortened(folder, MOST_WORDS)),
        shows: Vec::new(),
        command: words(&["agentbox", "create", "--egress", mode.as_str()]),
        verb: "Make it so",
    }
}

fn ruling(of: &Of, change: &EgressChange, would: Option<&EgressChanged>) -> Loosening {
    let host = shortened(&change.host, MOST_WORDS);
    let name = of.name();
    let (whose, until) = match (change.place, change.seconds) {
        (EgressPlace::Box, Some(seconds)) => (of.whom(), format!(", for {}", time(seconds))),
        (EgressPlace::Box, None) => (of.whom(), ", until you remove it".to_owned()),
        _ => (format!("For every box of {}", of.project()), ", until you take it out".to_owned()),
    };
    let verb = if change.action == EgressAction::Ask { "ask about" } else { "reach" };
    let whom = match change.place {
        EgressPlace::Box => name.clone(),
        _ => "every box of its project".to_owned(),
    };
    let widens = would.map(|would| cut(would.widens.iter().map(String::as_str)).join("\n"));
    let widens = widens.filter(|text| !text.is_empty());
    let allows = widens.map_or_else(|| TRUSTED.to_owned(), |text| format!("{text}\n{TRUSTED}"));
    Loosening {
        title: format!("Let {whom} {verb} {host}?"),
        allows,
        of: format!("{whose}{until}"),
        shows: would.map(|would| cut(would.added.lines())).unwrap_or_default(),
        command: typed(change, &name),
        verb: "Keep the rule",
    }
}

fn typed(change: &EgressChange, name: &str) -> Vec<String> {
    let short = |text: &str| shortened(text, MOST_WORDS);
    let verb = if change.action == EgressAction::Ask { "ask" } else { "allow" };
    let mut command = words(&["agentbox", "egress", verb, &short(&change.host)]);
    let mut flag = |flag: &str, value: String| command.extend([flag.to_owned(), value]);
    change.methods.iter().take(MOST_LINES).for_each(|method| flag("--method", short(method)));
    if let Some(path) = &change.path {
        flag("--path", short(path));
    }
    change.ports.iter().take(MOST_LINES).for_each(|port| flag("--port", port.to_string()));
    if let Some(seconds) = change.seconds {
        flag("--ttl", format!("{seconds}s"));
    }
    if change.place == EgressPlace::Box {
        flag("--box", name.to_owned());
    }
    if change.place == EgressPlace::Project {
        command.push("--project".to_owned());
    }
    command
}

fn time(seconds: u64) -> String {
    match seconds {
        3600 => "one hour".to_owned(),
        s if s % 3600 == 0 => format!("{} hours", s / 3600),
        s if s >= 60 => format!("{} minutes", s / 60),
        s => format!("{s} seconds"),
    }
}

/// The difference a person says yes to, when it is the one the page showed.
fn asked_for(view: Option<EgressView>, digest: &str) -> Result<Vec<String>, ControlError> {
    // Without a host there is nothing to say yes to, and the question would come to nothing.
    let Some(view) = view else { return Ok(Vec::new()) };
    let asked = view.repository.filter(|asked| asked.digest == digest);
    let changed = || usage("What the repository asks for has changed: read it again.");
    let diff = asked.ok_or_else(changed)?.diff;
    let fits = |line: &&str| line.chars().count() <= MOST_OF_LINE;
    let whole = changes(&diff).count() <= MOST_LINES && changes(&diff).all(|line| fits(&line));
    if !whole {
        let text = "What the repository asks for is too long to be shown in a question.";
        return Err(
            usage(text).hint("Read and accept it at a terminal: agentbox egress repository")
        );
    }
    Ok(diff)
}

/// What goes and what comes.
fn changes(diff: &[String]) -> impl Iterator<Item = &str> {
    diff.iter().map(String::as_str).filter(|line| !line.starts_with(' '))
}

fn accepting(of: &Of, digest: &str, diff: &[String]) -> Loosening {
    let (name, digest) = (of.name(), shortened(digest, MOST_WORDS));
    Loosening {
        title: "Let the repository's own policy hold?".to_owned(),
        allows: format!(
            "What it allows then passes without a question, until its text changes. {TRUSTED}"
        ),
        of: format!("For the boxes of {}", of.project()),
        shows: changes(diff).map(|line| shortened(line, MOST_OF_LINE)).collect(),
        command: words(&["agentbox", "egress", "repository", &name, "--accept", &digest]),
        verb: "Accept it",
    }
}

/// The rule that a yes would keep, whole.
fn kept(
    question: &Question,
    reach: Reach,
    breadth: Breadth,
    seconds: u64,
) -> Result<String, ControlError> {
    let remember = question.remember.as_ref();
    let remember = remember.ok_or_else(|| usage("This is asked every time."))?;
    let name = question.box_name.as_str();
    let sentence = remember.sentence(name, &question.project, reach, breadth);
    let until = match seconds {
        Remember::ALWAYS.. => "until you remove it".to_owned(),
        seconds => format!("for {}", time(seconds)),
    };
    let rule = visible(&format!("{sentence} {until}."));
    if rule.chars().count() > MOST_OF_RULE {
        let text = "The rule is too long to be shown in a question.";
        return Err(usage(text).hint("At a terminal: agentbox approvals --answer"));
    }
    Ok(rule)
}

/// A yes that holds for other boxes, too.
fn remembering(id: &QuestionId, rule: String, reach: Reach) -> Loosening {
    let (of, reach) = match reach {
        Reach::Everywhere => ("For every box", "everywhere"),
        Reach::Project | Reach::Box => ("For every box of its project", "project"),
    };
    Loosening {
        title: "Remember this for more than one box?".to_owned(),
        allows: format!("{rule}\n{TRUSTED}").trim_start().to_owned(),
        of: of.to_owned(),
        shows: Vec::new(),
        command: words(&["agentbox", "approve", &id.to_string(), "--reach", reach]),
        verb: "Remember it",
    }
}

fn trusting(host: &str) -> Loosening {
    let host = shortened(host, MOST_WORDS);
    Loosening {
        title: format!("Put credentials into requests to {host} again?"),
        allows: "It sent credentials back several times, where a box could have read them. Go on \
                 only if you know why."
            .to_owned(),
        of: "For every box".to_owned(),
        shows: Vec::new(),
        command: words(&["agentbox", "egress", "acknowledge", &host]),
        verb: "Put them in",
    }
}

fn removing(rule: &Grant) -> Loosening {
    Loosening {
        title: "Remove a rule that holds requests back?".to_owned(),
        allows: "What it stops may pass then, as the rest of the policy has it.".to_owned(),
        of: shortened(&rule.sentence, MOST_WORDS),
        shows: Vec::new(),
        command: words(&["agentbox", "grants", "rm", &rule.id.to_string()]),
        verb: "Remove it",
    }
}

/// The first lines, each short; how many are left out is said.
fn cut<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let all: Vec<&str> = lines.collect();
    let shown = all.iter().take(MOST_LINES).map(|line| shortened(line, MOST_OF_LINE));
    let mut shown: Vec<String> = shown.collect();
    if all.len() > MOST_LINES {
        shown.push(format!("… and {} more lines", all.len() - MOST_LINES));
    }
    shown
}

#[cfg(test)]
mod tests;
