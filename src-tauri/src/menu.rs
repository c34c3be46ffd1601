//! The tray as data: which icon, which words, which menu. Made from what the host said, compared
//! with what is up, and drawn by [`crate::tray`].
//!
//! The surprising thing: `Allow once` is left out where a question carries a warning, matters to
//! others or does not fit into its line. What a person allows here is what they could read here;
//! the rest is one click away in `Show`.

use crate::live::Live;
use protocol::boxes::{BoxState, BoxView};
use protocol::question::Question;
use protocol::sessions::AgentState;
use protocol::{BoxId, QuestionId};

/// The longest sentence the menu shows whole.
const LONGEST: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrayView {
    pub icon: Icon,
    /// “AgentBox: 2 questions”.
    pub title: String,
    /// The second line of the tooltip. Some panels read it as markup, so it holds only words of
    /// ours and numbers, nothing a box or a program chose.
    pub tooltip: String,
    pub menu: Vec<Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Icon {
    Idle,
    Busy,
    Asks,
    Down,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Says something, does nothing.
    Text(String),
    Item(Item),
    Submenu {
        label: String,
        items: Vec<Item>,
    },
    Separator,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub label: &'static str,
    pub action: Action,
}

/// What an item does, with all it acts on: the menu may be old by the time it is clicked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    ShowQuestions,
    AllowOnce {
        id: QuestionId,
        digest: String,
    },
    Deny {
        id: QuestionId,
        digest: String,
    },
    OpenBox(BoxId),
    StartBox(BoxId),
    StopBox(BoxId),
    PauseBox(BoxId),
    ResumeBox(BoxId),
    MuteBox(BoxId),
    HearBox(BoxId),
    OpenWeb(BoxId),
    OpenScreen(BoxId),
    NewBox,
    /// No dialogs and notifications for an hour.
    Quiet,
    EndQuiet,
    OpenWindow,
    Quit,
}

impl Action {
    /// The id of the item that does this.
    pub fn to_id(&self) -> String {
        match self {
            Action::ShowQuestions => "show-questions".into(),
            Action::AllowOnce { id, digest } => format!("allow-once/{id}/{digest}"),
            Action::Deny { id, digest } => format!("deny/{id}/{digest}"),
            Action::OpenBox(id) => format!("open-box/{id}"),
            Action::StartBox(id) => format!("start-box/{id}"),
            Action::StopBox(id) => format!("stop-box/{id}"),
            Action::PauseBox(id) => format!("pause-box/{id}"),
            Action::ResumeBox(id) => format!("resume-box/{id}"),
            Action::MuteBox(id) => format!("mute-box/{id}"),
            Action::HearBox(id) => format!("hear-box/{id}"),
            Action::OpenWeb(id) => format!("open-web/{id}"),
            Action::OpenScreen(id) => format!("open-screen/{id}"),
            Action::NewBox => "new-box".into(),
            Action::Quiet => "quiet".into(),
            Action::EndQuiet => "end-quiet".into(),
            Action::OpenWindow => "open-window".into(),
            Action::Quit => "quit".into(),
        }
    }

    /// None for the ids of lines that do nothing.
    pub fn from_id(id: &str) -> Option<Self> {
        let mut parts = id.splitn(3, '/');
        let action = match (parts.next()?, parts.next(), parts.next()) {
            ("show-questions", None, None) => Action::ShowQuestions,
            ("allow-once", Some(id), Some(digest)) => {
                Action::AllowOnce { id: id.parse().ok()?, digest: digest.into() }
            }
            ("deny", Some(id), Some(digest)) => {
                Action::Deny { id: id.parse().ok()?, digest: digest.into() }
            }
            ("open-box", Some(id), None) => Action::OpenBox(id.parse().ok()?),
            ("start-box", Some(id), None) => Action::StartBox(id.parse().ok()?),
            ("stop-box", Some(id), None) => Action::StopBox(id.parse().ok()?),
            ("pause-box", Some(id), None) => Action::PauseBox(id.parse().ok()?),
            ("resume-box", Some(id), None) => Action::ResumeBox(id.parse().ok()?),
            ("mute-box", Some(id), None) => Action::MuteBox(id.parse().ok()?),
            ("hear-box", Some(id), None) => Action::HearBox(id.parse().ok()?),
            ("open-web", Some(id), None) => Action::OpenWeb(id.parse().ok()?),
            ("open-screen", Some(id), None) => Action::OpenScreen(id.parse().ok()?),
            ("new-box", None, None) => Action::NewBox,
            ("quiet", None, None) => Action::Quiet,
            ("end-quiet", None, None) => Action::EndQuiet,
            ("open-window", None, None) => Action::OpenWindow,
            ("quit", None, None) => Action::Quit,
            _ => return None,
        };
        Some(action)
    }
}

/// A menu label that shows `text` as it is: `&` would mark an access key.
pub fn literal(text: &str) -> String {
    text.replace('&', "&&")
}

pub fn view(live: &Live) -> TrayView {
    TrayView { icon: icon(live), title: title(live), tooltip: tooltip(live), menu: menu(live) }
}

fn icon(live: &Live) -> Icon {
    if !live.questions.is_empty() {
        Icon::Asks
    } else if !live.engine_reachable() {
        Icon::Down
    } else if live.running() > 0 {
        Icon::Busy
    } else {
        Icon::Idle
    }
}

fn title(live: &Live) -> String {
    match icon(live) {
        Icon::Asks => format!("AgentBox: {}", count(live.questions.len(), "question", "questions")),
        Icon::Down => "AgentBox: container engine not reachable".into(),
        Icon::Busy => format!("AgentBox: {} running", count(live.running(), "box", "boxes")),
        Icon::Idle => "AgentBox".into(),
    }
}

fn tooltip(live: &Live) -> String {
    if live.boxes.is_empty() {
        return "No boxes yet".into();
    }
    let running =
        format!("{} of {} running", live.running(), count(live.boxes.len(), "box", "boxes"));
    [running].into_iter().chain(needs(live)).collect::<Vec<_>>().join(", ")
}

/// How many agents have come to need somebody, and why.
fn needs(live: &Live) -> Vec<String> {
    let up = live.boxes.iter().filter(|view| view.state == BoxState::Running);
    let states: Vec<_> = up.flat_map(|view| view.agents.iter().map(|a| a.state)).collect();
    let all = [
        (AgentState::EndPlan, "has a plan for you", "have a plan for you"),
        (AgentState::Question, "asks you something", "ask you something"),
        (AgentState::Waiting, "waits for you", "wait for you"),
        (AgentState::Error, "stopped with an error", "stopped with an error"),
    ];
    let said = |(state, one, more): (AgentState, &str, &str)| match states
        .iter()
        .filter(|is| **is == state)
        .count()
    {
        0 => None,
        1 => Some(format!("1 agent {one}")),
        n => Some(format!("{n} agents {more}")),
    };
    all.into_iter().filter_map(said).collect()
}

fn menu(live: &Live) -> Vec<Entry> {
    let mut entries = Vec::new();
    if !live.engine_reachable() {
        entries.push(Entry::Text("The container engine cannot be reached".into()));
        entries.push(Entry::Separator);
    }
    if !live.questions.is_empty() {
        entries.push(Entry::Text(count(live.questions.len(), "question", "questions")));
        entries.extend(live.questions.iter().map(question));
        entries.push(Entry::Separator);
    }
    entries.extend(boxes(&live.boxes));
    entries.push(Entry::Separator);
    entries.push(item("New box…", Action::NewBox));
    entries.push(if live.is_quiet() {
        item("End quiet", Action::EndQuiet)
    } else {
        item("Quiet for one hour", Action::Quiet)
    });
    entries.push(item("Open AgentBox", Action::OpenWindow));
    entries.push(item("Quit AgentBox", Action::Quit));
    entries
}

fn question(q: &Question) -> Entry {
    let whole = format!("{} asks: {}", q.box_name, lower_first(&q.title));
    let fits = whole.chars().count() <= LONGEST;
    let (id, digest) = (q.id.clone(), q.digest.clone());
    let mut items = vec![Item { label: "Show", action: Action::ShowQuestions }];
    if fits && q.is_plain() {
        let action = Action::AllowOnce { id: id.clone(), digest: digest.clone() };
        items.push(Item { label: "Allow once", action });
    }
    items.push(Item { label: "Deny", action: Action::Deny { id, digest } });
    Entry::Submenu { label: if fits { whole } else { shortened(&whole) }, items }
}

fn boxes(boxes: &[BoxView]) -> Vec<Entry> {
    if boxes.is_empty() {
        return vec![Entry::Text("No boxes yet".into())];
    }
    let mut entries = Vec::new();
    let mut project = None;
    for view in boxes {
        if project != Some(&view.project_root) {
            entries.push(Entry::Text(view.project.clone()));
            project = Some(&view.project_root);
        }
        entries.push(one_box(view));
    }
    entries
}

/// What the box's agents do, as far as they say; else how the box is.
fn doing(view: &BoxView) -> String {
    let each = view.agents.iter().map(|a| format!("{} {}", a.agent.title(), a.state.in_words()));
    let agents = each.collect::<Vec<_>>().join(", ");
    if view.state == BoxState::Running && !agents.is_empty() {
        agents
    } else {
        view.state.as_str().to_owned()
    }
}

fn one_box(view: &BoxView) -> Entry {
    let mut items = vec![Item { label: "Open", action: Action::OpenBox(view.id.clone()) }];
    if matches!(view.state, BoxState::Running | BoxState::Paused) {
        if view.web.is_some() {
            items.push(Item { label: "Web app", action: Action::OpenWeb(view.id.clone()) });
        }
        if view.screen.is_some() {
            items.push(Item { label: "Screen", action: Action::OpenScreen(view.id.clone()) });
        }
    }
    match view.state {
        BoxState::Running => {
            items.push(Item { label: "Pause", action: Action::PauseBox(view.id.clone()) });
            items.push(Item { label: "Stop", action: Action::StopBox(view.id.clone()) });
        }
        BoxState::Paused => {
            items.push(Item { label: "Resume", action: Action::ResumeBox(view.id.clone()) });
            items.push(Item { label: "Stop", action: Action::StopBox(view.id.clone()) });
        }
        BoxState::Stopped => {
            items.push(Item { label: "Start", action: Action::StartBox(view.id.clone()) });
        }
        BoxState::Creating | BoxState::Missing | BoxState::Unknown => {}
    }
    let muted = view.muted_until.is_some();
    items.push(if muted {
        Item { label: "Hear it again", action: Action::HearBox(view.id.clone()) }
    } else {
        Item { label: "Mute for an hour", action: Action::MuteBox(view.id.clone()) }
    });
    let muted = if muted { ", muted" } else { "" };
    let label = format!("{} {}   {}{muted}", mark(view.state), view.name, doing(view));
    Entry::Submenu { label, items }
}

fn mark(state: BoxState) -> char {
    match state {
        BoxState::Running => '●',
        BoxState::Paused => '◐',
        BoxState::Stopped => '○',
        BoxState::Creating => '◌',
        BoxState::Missing => '✕',
        BoxState::Unknown => '?',
    }
}

fn item(label: &'static str, action: Action) -> Entry {
    Entry::Item(Item { label, action })
}

fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

fn lower_first(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map_or_else(String::new, |c| c.to_lowercase().chain(chars).collect())
}

fn shortened(text: &str) -> String {
    text.chars().take(LONGEST - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::samples::{a_box, question, status};
    use protocol::question::Tier;

    fn live(boxes: Vec<BoxView>, questions: Vec<Question>) -> Live {
        Live { status: Some(status(true)), boxes, questions }
    }

    /// The menu as a person would read it out.
    fn text(live: &Live) -> String {
        let mut out = String::new();
        for entry in menu(live) {
            match entry {
                Entry::Text(text) => out += &format!("({text})\n"),
                Entry::Item(item) => out += &format!("{}\n", item.label),
                Entry::Submenu { label, items } => {
                    let items: Vec<_> = items.iter().map(|i| i.label).collect();
                    out += &format!("{label} > {}\n", items.join(", "));
                }
                Entry::Separator => out += "--\n",
            }
        }
        out
    }

    #[test]
    fn questions_come_first_then_boxes_by_project() {
        let live = live(
            vec![
                a_box(3, "docs-bot", "docs", BoxState::Stopped),
                a_box(1, "fix-login", "shop-api", BoxState::Running),
                a_box(2, "perf", "shop-api", BoxState::Paused),
            ],
            vec![question(1, "fix-login", "Push 3 commits to origin/fix-login")],
        );
        let expected = "\
(1 question)
fix-login asks: push 3 commits to origin/fix-login > Show, Allow once, Deny
--
(docs)
○ docs-bot   stopped > Open, Start, Mute for an hour
(shop-api)
● fix-login   running > Open, Pause, Stop, Mute for an hour
◐ perf   paused > Open, Resume, Stop, Mute for an hour
--
New box…
Quiet for one hour
Open AgentBox
Quit AgentBox
";
        assert_eq!(text(&live), expected);
    }

    #[test]
    fn what_a_box_serves_is_opened_while_it_runs() {
        let with = |id: u8, name: &str, state, web: bool, screen: bool| {
            let address = |there: bool| there.then(|| "http://x.localhost:1355".to_owned());
            BoxView { web: address(web), screen: address(screen), ..a_box(id, name, "p", state) }
        };
        let text = text(&live(
            vec![
                with(1, "a", BoxState::Running, true, true),
                with(2, "b", BoxState::Paused, true, false),
                with(3, "c", BoxState::Stopped, true, true),
            ],
            Vec::new(),
        ));
        assert!(text.contains("a   running > Open, Web app, Screen, Pause, Stop,"), "{text}");
        assert!(text.contains("b   paused > Open, Web app, Resume, Stop,"), "{text}");
        assert!(text.contains("c   stopped > Open, Start,"), "{text}");
    }

    #[test]
    fn a_box_that_cannot_be_started_or_stopped_offers_neither() {
        let live = live(
            vec![
                a_box(1, "a", "p", BoxState::Missing),
                a_box(2, "b", "p", BoxState::Unknown),
                a_box(3, "c", "p", BoxState::Creating),
            ],
            Vec::new(),
        );
        let text = text(&live);
        assert!(text.contains("✕ a   missing > Open, Mute for an hour\n"), "{text}");
        assert!(text.contains("? b   unknown > Open, Mute for an hour\n"), "{text}");
        assert!(text.contains("◌ c   creating > Open, Mute for an hour\n"), "{text}");
    }

    #[test]
    fn what_does_not_fit_cannot_be_allowed_unread() {
        let title = format!("Push to origin/{}", "x".repeat(200));
        let text = text(&live(Vec::new(), vec![question(1, "a", &title)]));
        let line = text.lines().find(|l| l.starts_with("a asks")).unwrap();
        assert!(line.ends_with("… > Show, Deny"), "{line}");
    }

    #[test]
    fn what_has_to_be_looked_at_first_offers_no_yes() {
        for change in [
            (|q: &mut Question| q.tier = Tier::Sensitive) as fn(&mut Question),
            |q| q.tier = Tier::Irreversible,
            |q| q.warnings = vec!["rewrites history".into()],
        ] {
            let mut asked = question(1, "a", "Push");
            change(&mut asked);
            let text = text(&live(Vec::new(), vec![asked]));
            assert!(text.contains("a asks: push > Show, Deny\n"), "{text}");
        }
    }

    #[test]
    fn quiet_and_muted_can_be_ended() {
        let mut muted = a_box(1, "a", "p", BoxState::Running);
        muted.muted_until = Some(1);
        let mut live = live(vec![muted], Vec::new());
        live.status.as_mut().unwrap().quiet_until = Some(1);
        let text = text(&live);
        assert!(
            text.contains("● a   running, muted > Open, Pause, Stop, Hear it again\n"),
            "{text}"
        );
        assert!(text.contains("End quiet\n"), "{text}");
    }

    #[test]
    fn the_icon_says_what_matters_most() {
        let running = vec![a_box(1, "a", "p", BoxState::Running)];
        let asked = vec![question(1, "a", "Push"), question(2, "b", "Push")];
        let idle = view(&live(Vec::new(), Vec::new()));
        assert_eq!((idle.icon, idle.title.as_str()), (Icon::Idle, "AgentBox"));
        let busy = view(&live(running.clone(), Vec::new()));
        assert_eq!((busy.icon, busy.title.as_str()), (Icon::Busy, "AgentBox: 1 box running"));
        let mut down = live(running.clone(), Vec::new());
        down.status = Some(status(false));
        assert_eq!(view(&down).icon, Icon::Down);
        assert!(text(&down).starts_with("(The container engine cannot be reached)\n"));
        down.questions = asked;
        assert_eq!(view(&down).icon, Icon::Asks);
        assert_eq!(view(&down).title, "AgentBox: 2 questions");
    }

    #[test]
    fn an_action_survives_its_id() {
        let id: QuestionId = "0".repeat(32).parse().unwrap();
        let of: BoxId = "b00000001".parse().unwrap();
        for action in [
            Action::ShowQuestions,
            Action::AllowOnce { id: id.clone(), digest: "ab12".into() },
            Action::Deny { id, digest: "ab12".into() },
            Action::OpenBox(of.clone()),
            Action::StartBox(of.clone()),
            Action::StopBox(of.clone()),
            Action::PauseBox(of.clone()),
            Action::ResumeBox(of.clone()),
            Action::MuteBox(of.clone()),
            Action::HearBox(of.clone()),
            Action::OpenWeb(of.clone()),
            Action::OpenScreen(of),
            Action::NewBox,
            Action::Quiet,
            Action::EndQuiet,
            Action::OpenWindow,
            Action::Quit,
        ] {
            assert_eq!(Action::from_id(&action.to_id()), Some(action));
        }
        assert_eq!(Action::from_id("allow-once/nonsense/x"), None);
        assert_eq!(Action::from_id("17"), None);
    }

    #[test]
    fn labels_show_ampersands() {
        assert_eq!(literal("a & b_c"), "a && b_c");
    }
}
