//! Changes a page may ask for and never make: those that let boxes do more.
//!
//! A page can be tricked into any request it may make, and a question in the page would be answered by
//! whoever tricked it. So what loosens is asked about outside of the webview, by a [`Person`] whom no page
//! can press, and without one it is refused. What tightens, or changes nothing, is free. What there is to
//! ask about a box's way out is in [`crate::way_out`].

use crate::{Window, failed, to_control, usage};
use protocol::control::{ControlError, CreateBox, Request};
use protocol::integrations::Layer;
use protocol::text::{command_line, shortened};
use protocol::window::{SettingFrom, SettingView, SettingsView};
use settings::registry::Key;

/// After so many in a row a page has asked enough: nobody is to say yes for the sake of peace.
const MOST_NOES: u32 = 3;
/// More of a path than this is nobody's to read.
pub(crate) const MOST_WORDS: usize = 300;

/// Somebody in front of this computer, outside of the page.
pub trait Person: Send + Sync {
    /// Whether they said yes to exactly this; every other end is a no. It may take as long as they do.
    fn agrees(&self, to: &Loosening) -> bool;
}

/// A change that lets boxes do more, in words for a person. All of it is plain text that hides nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loosening {
    /// “Set approvals.mode to safe?”
    pub title: String,
    /// What boxes may do then.
    pub allows: String,
    /// Which projects it is for.
    pub of: String,
    /// What exactly would hold, a line each: a rule as it would be kept, a difference. May be none.
    pub shows: Vec<String>,
    /// What would do the same at a terminal.
    pub command: Vec<String>,
    /// On the button that says yes.
    pub verb: &'static str,
}

/// A change of one setting that a request comes down to.
struct Change<'a> {
    name: String,
    key: &'static Key,
    /// As it is typed; none takes it out of the file.
    value: Option<&'a str>,
    layer: Layer,
    cwd: Option<&'a str>,
}

impl Window {
    /// Asks a person about a request that lets boxes do more; refuses it without their yes.
    pub(crate) fn asked_outside(&self, request: &Request) -> Result<(), ControlError> {
        let mut all = Vec::new();
        if let Some(change) = change_in(request)? {
            all.extend(change.loosening(request, self.settings_for(&change)));
        }
        all.extend(self.wider_way_out(request)?);
        all.iter().try_for_each(|loosening| self.agreed(loosening))
    }

    fn agreed(&self, loosening: &Loosening) -> Result<(), ControlError> {
        let Some(person) = &self.person else {
            let text = "This lets boxes do more, so no page changes it by itself.";
            return Err(usage(text).hint(format!("At a terminal: {}", loosening.typed())));
        };
        let Ok(mut noes) = self.noes.try_lock() else {
            return Err(failed("Nothing was changed: another question of AgentBox is open."));
        };
        if *noes >= MOST_NOES {
            let text = "Nothing was changed: you said no to what this window asked for.";
            let hint = format!("Open the window anew, or at a terminal: {}", loosening.typed());
            return Err(failed(text).hint(hint));
        }
        if person.agrees(loosening) {
            *noes = 0;
            return Ok(());
        }
        *noes += 1;
        Err(failed("Nothing was changed: you did not say yes to AgentBox's question."))
    }

    /// What holds before the change; none when the host does not say.
    fn settings_for(&self, change: &Change<'_>) -> Option<SettingsView> {
        let cwd = match change.layer {
            Layer::Global => None,
            Layer::Project => change.cwd.map(str::to_owned),
        };
        self.client.call(&Request::Settings { cwd }).map_err(to_control).ok()
    }
}

/// The change of a setting in a request, if there is one that could let boxes do more.
fn change_in(request: &Request) -> Result<Option<Change<'_>>, ControlError> {
    let (name, value, layer, cwd) = match request {
        Request::SetSetting { key, value, layer, cwd } => {
            (key.clone(), value.as_deref(), *layer, cwd.as_deref())
        }
        Request::SetIntegration { service, enabled, layer, cwd } => {
            let value = if *enabled { "true" } else { "false" };
            (format!("integrations.{service}.enabled"), Some(value), *layer, cwd.as_deref())
        }
        // The same for one box.
        Request::CreateBox(CreateBox { with_env: Some(true), workspace, .. }) => {
            ("box.withEnv".to_owned(), Some("true"), Layer::Project, Some(workspace.as_str()))
        }
        _ => return Ok(None),
    };
    // The host says what is wrong with a name that is none.
    let Some(key) = host::find_setting(&name).ok().filter(|key| !key.allows.is_empty()) else {
        return Ok(None);
    };
    if let Some(Err(why)) = value.map(|value| key.kind.parse(value)) {
        return Err(usage(format!("{name}: {}", shortened(&why, MOST_WORDS))));
    }
    Ok(Some(Change { name, key, value, layer, cwd }))
}

impl Change<'_> {
    /// What there is to ask about; none when boxes may do no more than before.
    fn loosening(&self, request: &Request, before: Option<SettingsView>) -> Option<Loosening> {
        let project = before.as_ref().and_then(|all| all.project.clone());
        let now = before.and_then(|all| all.settings.into_iter().find(|s| s.key == self.name));
        let from = now.as_ref().and_then(own_value);
        let default = host::setting_default(&self.name);
        let to = match (self.value, self.layer) {
            (Some(value), _) => Some(value),
            (None, Layer::Global) => default.as_deref(),
            // Which of the person's other files then counts is not known here.
            (None, Layer::Project) => None,
        };
        self.key.loosens(from, to).then(|| self.words(request, project))
    }

    fn words(&self, request: &Request, project: Option<String>) -> Loosening {
        let service = self.name.split('.').nth(1).unwrap_or_default();
        let allows = self.key.allows.replace('*', service);
        let folder = project.or_else(|| self.cwd.map(str::to_owned)).unwrap_or_default();
        let folder = shortened(&folder, MOST_WORDS);
        if matches!(request, Request::CreateBox(_)) {
            return Loosening {
                title: "Take .env files along into a new box?".to_owned(),
                allows: "Credentials in files that git ignores are then in the hands of the box."
                    .to_owned(),
                of: format!("The new box is of {folder}"),
                shows: Vec::new(),
                command: words(&["agentbox", "create", "--with-env"]),
                verb: "Take them along",
            };
        }
        let (title, mut command) = match self.value {
            Some(value) => {
                let value = value.trim();
                let set = words(&["agentbox", "config", "set", &self.name, value]);
                (format!("Set {} to {value}?", self.name), set)
            }
            None => {
                let unset = words(&["agentbox", "config", "unset", &self.name]);
                (format!("Take {} out of your settings?", self.name), unset)
            }
        };
        let of = match self.layer {
            Layer::Global => {
                command.push("--global".to_owned());
                "For all projects".to_owned()
            }
            Layer::Project => format!("For the project {folder}"),
        };
        Loosening { title, allows, of, shows: Vec::new(), command, verb: "Change it" }
    }
}

/// What the person's own files say. What a repository says is not theirs, and may be other words tomorrow.
fn own_value(now: &SettingView) -> Option<&str> {
    now.value.as_deref().filter(|_| now.from != SettingFrom::Workspace)
}

pub(crate) fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

impl Loosening {
    /// The command that would do the same.
    pub fn typed(&self) -> String {
        command_line(&self.command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::control::ErrorCode;
    use protocol::window::SettingKind;
    use serde_json::{Value, json};
    use std::sync::{Arc, Mutex};

    /// Says the same to everything, and keeps what was asked.
    struct Says(bool, Mutex<Vec<Loosening>>);

    impl Person for Says {
        fn agrees(&self, to: &Loosening) -> bool {
            self.1.lock().unwrap().push(to.clone());
            self.0
        }
    }

    fn person(says: bool) -> Arc<Says> {
        Arc::new(Says(says, Mutex::default()))
    }

    fn set(key: &str, value: Option<&str>, layer: &str) -> Value {
        json!({"method": "setSetting", "params":
            {"key": key, "value": value, "layer": layer, "cwd": "/p"}})
    }

    fn on(service: &str) -> Value {
        json!({"method": "setIntegration", "params":
            {"service": service, "enabled": true, "layer": "global", "cwd": null}})
    }

    fn create(with_env: Option<bool>) -> Value {
        json!({"method": "createBox", "params": {"workspace": "/p", "name": null, "image": null,
            "snapshot": null, "withEnv": with_env}})
    }

    fn request(value: Value) -> Request {
        serde_json::from_value(value).unwrap()
    }

    fn attacks() -> Vec<Value> {
        vec![
            set("approvals.mode", Some("safe"), "global"),
            set("approvals.mode", Some(" safe "), "project"),
            set("approvals.mode", None, "project"),
            set("integrations.notion.autoApproveWrites", Some("YES"), "global"),
            set("integrations.notion.enabled", Some("1"), "project"),
            set("box.withEnv", Some("on"), "global"),
            set("gh.checkout", Some("true"), "global"),
            set("secrets.backend", Some("file"), "global"),
            set("claude.login", Some("true"), "global"),
            set("claude.login", None, "global"),
            on("notion"),
            create(Some(true)),
        ]
    }

    #[test]
    fn what_loosens_is_refused_where_nobody_can_be_asked() {
        let home = tempfile::tempdir().unwrap();
        let page = Window::new(home.path());
        for attack in attacks() {
            let refused = page.asked_outside(&request(attack.clone())).unwrap_err();
            assert_eq!(refused.code, ErrorCode::Usage, "{attack}");
            assert!(refused.hints.iter().any(|hint| hint.contains("agentbox ")), "{attack}");
        }
        // By the page's own ways, too: no host runs here, and it never came to asking one.
        let refused = page.call(set("approvals.mode", Some("safe"), "global")).unwrap_err();
        assert!(refused.message.contains("no page changes it"), "{refused:?}");
        let refused = page.begin(1, create(Some(true)), |_| ()).unwrap_err();
        assert!(refused.message.contains("no page changes it"), "{refused:?}");
    }

    #[test]
    fn what_loosens_is_asked_and_a_no_counts() {
        let home = tempfile::tempdir().unwrap();
        for attack in attacks() {
            let (no, yes) = (person(false), person(true));
            let page = Window::in_front_of(home.path(), no.clone());
            let refused = page.asked_outside(&request(attack.clone())).unwrap_err();
            assert_eq!(refused.code, ErrorCode::Failed, "{attack}");
            assert_eq!(no.1.lock().unwrap().len(), 1, "{attack}");
            let page = Window::in_front_of(home.path(), yes.clone());
            page.asked_outside(&request(attack.clone())).unwrap();
            assert_eq!(yes.1.lock().unwrap().len(), 1, "{attack}");
        }
    }

    #[test]
    fn a_page_that_asks_again_and_again_is_no_longer_heard() {
        let home = tempfile::tempdir().unwrap();
        let person = person(false);
        let page = Window::in_front_of(home.path(), person.clone());
        for _ in 0..10 {
            let again = page.clone();
            again.asked_outside(&request(on("notion"))).unwrap_err();
        }
        assert_eq!(person.1.lock().unwrap().len(), 3);
    }

    /// Asks for the next thing while the first is being asked about.
    struct Greedy(Mutex<Option<Window>>, Mutex<usize>);

    impl Person for Greedy {
        fn agrees(&self, _: &Loosening) -> bool {
            *self.1.lock().unwrap() += 1;
            let page = self.0.lock().unwrap().take().unwrap();
            page.asked_outside(&request(on("linear"))).unwrap_err();
            true
        }
    }

    #[test]
    fn one_question_is_asked_at_a_time() {
        let home = tempfile::tempdir().unwrap();
        let greedy = Arc::new(Greedy(Mutex::default(), Mutex::default()));
        let page = Window::in_front_of(home.path(), greedy.clone());
        *greedy.0.lock().unwrap() = Some(page.clone());
        page.asked_outside(&request(on("notion"))).unwrap();
        assert_eq!(*greedy.1.lock().unwrap(), 1);
    }

    #[test]
    fn what_tightens_or_looks_asks_nobody() {
        let home = tempfile::tempdir().unwrap();
        let person = person(false);
        let page = Window::in_front_of(home.path(), person.clone());
        for free in [
            set("approvals.mode", Some("ask"), "global"),
            set("approvals.mode", None, "global"),
            set("box.withEnv", Some("false"), "project"),
            set("integrations.notion.autoApproveWrites", Some("off"), "global"),
            set("claude.login", Some("false"), "global"),
            set("box.memory", Some("64g"), "global"),
            set("no.such.setting", Some("1"), "global"),
            create(Some(false)),
            create(None),
            json!({"method": "status"}),
        ] {
            page.asked_outside(&request(free.clone())).unwrap_or_else(|e| panic!("{free}: {e}"));
        }
        let bad = page.asked_outside(&request(set("box.withEnv", Some("maybe"), "global")));
        assert_eq!(bad.unwrap_err().code, ErrorCode::Usage);
        assert_eq!(*person.1.lock().unwrap(), []);
    }

    fn before(key: &str, value: &str, from: SettingFrom) -> SettingsView {
        let setting = SettingView {
            key: key.to_owned(),
            about: String::new(),
            takes: SettingKind::Bool,
            default: None,
            value: Some(value.to_owned()),
            from,
            only_global: false,
            after_restart: false,
            advanced: false,
            at_terminal: false,
        };
        SettingsView { project: Some("/p".into()), settings: vec![setting], problems: Vec::new() }
    }

    #[test]
    fn what_is_so_already_is_no_more_unless_a_repository_says_it() {
        let loosens = |wish: Value, now: SettingsView| {
            let request = request(wish);
            let change = change_in(&request).unwrap().unwrap();
            change.loosening(&request, Some(now)).is_some()
        };
        let wish = || set("approvals.mode", Some("safe"), "project");
        assert!(!loosens(wish(), before("approvals.mode", "safe", SettingFrom::Project)));
        assert!(loosens(wish(), before("approvals.mode", "safe", SettingFrom::Workspace)));
        assert!(loosens(wish(), before("approvals.mode", "ask", SettingFrom::Project)));
        let out = || set("approvals.mode", None, "project");
        assert!(!loosens(out(), before("approvals.mode", "safe", SettingFrom::Project)));
        assert!(loosens(out(), before("approvals.mode", "ask", SettingFrom::Project)));
        let env = before("box.withEnv", "true", SettingFrom::Global);
        assert!(!loosens(create(Some(true)), env));
    }

    #[test]
    fn a_person_reads_what_would_hold_and_for_whom() {
        let told = |wish: Value| {
            let request = request(wish);
            let change = change_in(&request).unwrap().unwrap();
            change.loosening(&request, None).unwrap()
        };
        let one = told(set("integrations.notion.autoApproveWrites", Some("yes"), "global"));
        assert_eq!(one.title, "Set integrations.notion.autoApproveWrites to yes?");
        assert!(one.allows.contains("delete at notion in your name"), "{}", one.allows);
        assert_eq!(one.of, "For all projects");
        let typed = "agentbox config set integrations.notion.autoApproveWrites yes --global";
        assert_eq!(one.typed(), typed);
        // A folder's name can say and hide nothing.
        let hidden = json!({"method": "setSetting", "params": {"key": "approvals.mode",
            "value": "safe", "layer": "project", "cwd": format!("/p\u{202e}{}", "x".repeat(900))}});
        let of = told(hidden).of;
        assert!(!of.contains('\u{202e}') && of.chars().count() < 400, "{of}");
        assert_eq!(told(create(Some(true))).of, "The new box is of /p");
    }
}
