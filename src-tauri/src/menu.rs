//! The tray as data: which icon, which words, which menu. Made from what the host said, compared
//! with what is up, and drawn by [`crate::tray`].
//!
//! The surprising thing: `Allow once` is left out where a question carries a warning, matters to
//! others or does not fit into its line. What a person allows here is what they could read here;
//! the rest is one click away in `Show`. However many questions and boxes there are, the menu lists
//! a few of them: making it takes no longer for a thousand.

use crate::live::Live;
use protocol::boxes::{BoxState, BoxView};
use protocol::question::Question;
use protocol::sessions::AgentState;
use protocol::{BoxId, QuestionId};
use std::borrow::Cow;

/// The longest sentence the menu shows whole.
const LONGEST: usize = 100;
const MOST_QUESTIONS: usize = 10;
const MOST_BOXES: usize = 30;
/// Stands for “more than nine” in an icon.
const MANY: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrayView {
    pub icon: Icon,
    /// “AgentBox needs you: 2 questions”. Screen readers read it out for the icon.
    pub title: String,
    /// The second line of the tooltip. Some panels read it as markup, so it holds only words of
    /// ours and numbers, nothing a box or a program chose.
    pub tooltip: String,
    pub menu: Vec<Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Icon {
    pub shape: Shape,
    /// How much needs somebody; none is 0, and ten is more than nine.
    pub number: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Idle,
    /// An agent works.
    Busy,
    /// The engine cannot be reached.
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
    pub label: Cow<'static, str>,
    pub action: Action,
}

impl Item {
    fn new(label: impl Into<Cow<'static, str>>, action: Action) -> Self {
        Self { label: label.into(), action }
    }
}

/// What an item does, with all it acts on: the menu may be old by the time it is clicked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    ShowQuestions,
    ShowQuestion(QuestionId),
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
    OpenShell(BoxId),
    OpenLogs(BoxId),
    NewBox,
    ShowBoxes,
    PauseAll,
    ResumeAll,
    /// No dialogs and notifications for an hour.
    Quiet,
    EndQuiet,
    OpenWindow,
    OpenSettings,
    OpenCheckUp,
    Quit,
}

impl Action {
    /// The id of the item that does this.
    pub fn to_id(&self) -> String {
        match self {
            Action::ShowQuestions => "show-questions".into(),
            Action::ShowQuestion(id) => format!("show-question/{id}"),
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
            Action::OpenShell(id) => format!("open-shell/{id}"),
            Action::OpenLogs(id) => format!("open-logs/{id}"),
            Action::NewBox => "new-box".into(),
            Action::ShowBoxes => "show-boxes".into(),
            Action::PauseAll => "pause-all".into(),
            Action::ResumeAll => "resume-all".into(),
            Action::Quiet => "quiet".into(),
            Action::EndQuiet => "end-quiet".into(),
            Action::OpenWindow => "open-window".into(),
            Action::OpenSettings => "open-settings".into(),
            Action::OpenCheckUp => "open-check-up".into(),
            Action::Quit => "quit".into(),
        }
    }

    /// None for the ids of lines that do nothing.
    pub fn from_id(id: &str) -> Option<Self> {
        let mut parts = id.splitn(3, '/');
        let action = match (parts.next()?, parts.next(), parts.next()) {
            ("show-questions", None, None) => Action::ShowQuestions,
            ("show-question", Some(id), None) => Action::ShowQuestion(id.parse().ok()?),
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
            ("open-shell", Some(id), None) => Action::OpenShell(id.parse().ok()?),
            ("open-logs", Some(id), None) => Action::OpenLogs(id.parse().ok()?),
            ("new-box", None, None) => Action::NewBox,
            ("show-boxes", None, None) => Action::ShowBoxes,
            ("pause-all", None, None) => Action::PauseAll,
            ("resume-all", None, None) => Action::ResumeAll,
            ("quiet", None, None) => Action::Quiet,
            ("end-quiet", None, None) => Action::EndQuiet,
            ("open-window", None, None) => Action::OpenWindow,
            ("open-settings", None, None) => Action::OpenSettings,
            ("open-check-up", None, None) => Action::OpenCheckUp,
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
    let shape = if !live.engine_reachable() {
        Shape::Down
    } else if live.agents().any(AgentState::is_at_work) {
        Shape::Busy
    } else {
        Shape::Idle
    };
    Icon { shape, number: (live.questions.len() + waiting(live)).min(MANY) }
}

/// Agents that go on only when somebody says something.
fn waiting(live: &Live) -> usize {
    live.agents().filter(|state| state.needs_input()).count()
}

fn title(live: &Live) -> String {
    let some = |n, one, many| (n > 0).then(|| count(n, one, many));
    let needs: Vec<_> = [
        some(live.questions.len(), "question", "questions"),
        some(waiting(live), "waiting agent", "waiting agents"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let works = live.agents().filter(|state| state.is_at_work()).count();
    match icon(live).shape {
        _ if !needs.is_empty() => format!("AgentBox needs you: {}", needs.join(", ")),
        Shape::Down => "AgentBox: container engine not reachable".into(),
        Shape::Busy => format!("AgentBox: {}", count(works, "agent works", "agents work")),
        Shape::Idle => "AgentBox".into(),
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
    let states: Vec<_> = live.agents().collect();
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
        entries.extend(live.questions.iter().take(MOST_QUESTIONS).map(question));
        entries.extend(more(live.questions.len(), MOST_QUESTIONS, Action::ShowQuestions));
        entries.push(Entry::Separator);
    }
    entries.extend(boxes(&live.boxes));
    entries.push(Entry::Separator);
    entries.push(item("New box…", Action::NewBox));
    if live.running() > 0 {
        entries.push(item("Pause all", Action::PauseAll));
    } else if live.boxes.iter().any(|view| view.state == BoxState::Paused) {
        entries.push(item("Resume all", Action::ResumeAll));
    }
    entries.push(if live.is_quiet() {
        item("End quiet", Action::EndQuiet)
    } else {
        item("Quiet for one hour", Action::Quiet)
    });
    entries.push(item("Open AgentBox", Action::OpenWindow));
    entries.push(item("Settings", Action::OpenSettings));
    entries.push(item("Check-up", Action::OpenCheckUp));
    entries.push(item("Quit AgentBox", Action::Quit));
    entries
}

/// What leads to those that are not listed.
fn more(all: usize, listed: usize, action: Action) -> Option<Entry> {
    let left = all.checked_sub(listed).filter(|left| *left > 0)?;
    Some(Entry::Item(Item::new(format!("{left} more… (Open AgentBox)"), action)))
}

fn question(q: &Question) -> Entry {
    let whole = format!("{} asks: {}", q.box_name, lower_first(&q.title));
    let fits = whole.chars().count() <= LONGEST;
    let (id, digest) = (q.id.clone(), q.digest.clone());
    let mut items = vec![Item::new("Show", Action::ShowQuestion(id.clone()))];
    if fits && q.is_plain() {
        let action = Action::AllowOnce { id: id.clone(), digest: digest.clone() };
        items.push(Item::new(q.answers.yes.clone(), action));
    }
    items.push(Item::new(q.answers.no.clone(), Action::Deny { id, digest }));
    Entry::Submenu { label: if fits { whole } else { shortened(&whole) }, items }
}

fn boxes(boxes: &[BoxView]) -> Vec<Entry> {
    if boxes.is_empty() {
        return vec![Entry::Text("No boxes yet".into())];
    }
    let mut entries = Vec::new();
    let mut project = None;
    for view in listed(boxes) {
        if project != Some(&view.project_root) {
            entries.push(Entry::Text(view.project.clone()));
            project = Some(&view.project_root);
        }
        entries.push(one_box(view));
    }
    entries.extend(more(boxes.len(), MOST_BOXES, Action::ShowBoxes));
    entries
}

/// As many as the menu takes, those first that somebody may look for; still in their order.
fn listed(boxes: &[BoxView]) -> Vec<&BoxView> {
    let mut places: Vec<usize> = (0..boxes.len()).collect();
    places.sort_by_key(|at| rank(&boxes[*at]));
    places.truncate(MOST_BOXES);
    places.sort_unstable();
    places.into_iter().map(|at| &boxes[at]).collect()
}

/// It goes on only when somebody says something.
fn waits(view: &BoxView) -> bool {
    let up = view.state == BoxState::Running;
    view.questions > 0 || (up && view.agents.iter().any(|a| a.state.needs_input()))
}

fn rank(view: &BoxView) -> u8 {
    match view.state {
        _ if waits(view) => 0,
        BoxState::Running | BoxState::Creating => 1,
        BoxState::Paused => 2,
        BoxState::Stopped | BoxState::Missing | BoxState::Unknown => 3,
    }
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
    let muted = view.muted_until.is_some();
    let said = if muted { ", muted" } else { "" };
    let label = format!("{} {}   {}{said}", mark(view), view.name, doing(view));
    let items =
        offered(view).into_iter().map(|(label, act)| Item::new(label, act(view.id.clone())));
    Entry::Submenu { label, items: items.collect() }
}

type OfBox = (&'static str, fn(BoxId) -> Action);

/// What can be done with a box as it is.
fn offered(view: &BoxView) -> Vec<OfBox> {
    let (running, paused) = (view.state == BoxState::Running, view.state == BoxState::Paused);
    let (up, stopped) = (running || paused, view.state == BoxState::Stopped);
    let muted = view.muted_until.is_some();
    let all: [(bool, OfBox); 11] = [
        (true, ("Open", Action::OpenBox)),
        (up && view.web.is_some(), ("Web app", Action::OpenWeb)),
        (up && view.screen.is_some(), ("Screen", Action::OpenScreen)),
        (up, ("Shell", Action::OpenShell)),
        (up || stopped, ("Logs", Action::OpenLogs)),
        (running, ("Pause", Action::PauseBox)),
        (paused, ("Resume", Action::ResumeBox)),
        (up, ("Stop", Action::StopBox)),
        (stopped, ("Start", Action::StartBox)),
        (muted, ("Hear it again", Action::HearBox)),
        (!muted, ("Mute for an hour", Action::MuteBox)),
    ];
    all.into_iter().filter_map(|(now, of_box)| now.then_some(of_box)).collect()
}

/// Signs that every font has as plain text: some panels show an emoji in another size and colour.
fn mark(view: &BoxView) -> char {
    match view.state {
        BoxState::Running if waits(view) => '◐',
        BoxState::Running => '●',
        BoxState::Paused => '‖',
        BoxState::Stopped => '○',
        BoxState::Creating => '◌',
        BoxState::Missing => '✕',
        BoxState::Unknown => '?',
    }
}

fn item(label: &'static str, action: Action) -> Entry {
    Entry::Item(Item::new(label, action))
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
    use protocol::control::HostEvent;
    use protocol::question::Tier;
    use protocol::sessions::{Agent, AgentView};

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
                    let items: Vec<_> = items.iter().map(|i| i.label.as_ref()).collect();
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
○ docs-bot   stopped > Open, Logs, Start, Mute for an hour
(shop-api)
● fix-login   running > Open, Shell, Logs, Pause, Stop, Mute for an hour
‖ perf   paused > Open, Shell, Logs, Resume, Stop, Mute for an hour
--
New box…
Pause all
Quiet for one hour
Open AgentBox
Settings
Check-up
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
        assert!(
            text.contains("a   running > Open, Web app, Screen, Shell, Logs, Pause, Stop,"),
            "{text}"
        );
        assert!(text.contains("b   paused > Open, Web app, Shell, Logs, Resume, Stop,"), "{text}");
        assert!(text.contains("c   stopped > Open, Logs, Start,"), "{text}");
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
    fn answers_bear_the_questions_own_words() {
        let mut asked = question(1, "a", "Copy 2 files");
        (asked.answers.yes, asked.answers.no) = ("Copy".into(), "Cancel".into());
        let of = |asked: &Question| text(&live(Vec::new(), vec![asked.clone()]));
        assert!(of(&asked).contains("a asks: copy 2 files > Show, Copy, Cancel\n"));
        asked.answers.without = Some("Without these files".into());
        assert!(of(&asked).contains("a asks: copy 2 files > Show, Cancel\n"));
    }

    #[test]
    fn quiet_and_muted_can_be_ended() {
        let mut muted = a_box(1, "a", "p", BoxState::Running);
        muted.muted_until = Some(1);
        let mut live = live(vec![muted], Vec::new());
        live.status.as_mut().unwrap().quiet_until = Some(1);
        let text = text(&live);
        assert!(
            text.contains("● a   running, muted > Open, Shell, Logs, Pause, Stop, Hear it again\n"),
            "{text}"
        );
        assert!(text.contains("End quiet\n"), "{text}");
    }

    /// A box that runs, with an agent in it.
    fn with_agent(id: u8, state: AgentState) -> BoxView {
        let agent = AgentView { agent: Agent::Claude, state, since: 0, has_login: false };
        BoxView { agents: vec![agent], ..a_box(id, "a", "p", BoxState::Running) }
    }

    #[test]
    fn a_box_that_waits_for_somebody_has_a_mark_of_its_own() {
        let label = |view: BoxView| text(&live(vec![view], Vec::new()));
        let asks = BoxView { questions: 1, ..a_box(1, "a", "p", BoxState::Running) };
        assert!(label(asks).contains("\n◐ a   running > "));
        for state in [AgentState::Waiting, AgentState::EndPlan, AgentState::Question] {
            assert!(label(with_agent(1, state)).contains("\n◐ a   Claude "), "{state:?}");
        }
        for state in [AgentState::Working, AgentState::Done, AgentState::Ready] {
            assert!(label(with_agent(1, state)).contains("\n● a   Claude "), "{state:?}");
        }
        let paused = BoxView { state: BoxState::Paused, ..with_agent(1, AgentState::Waiting) };
        assert!(label(paused).contains("\n‖ a   paused > "));
    }

    #[test]
    fn the_icon_says_what_matters_most() {
        let of = |live: &Live| {
            let view = view(live);
            (view.icon.shape, view.icon.number, view.title)
        };
        let asked = || vec![question(1, "a", "Push"), question(2, "b", "Push")];
        let resting = a_box(1, "a", "p", BoxState::Running);
        let idle = of(&live(vec![resting.clone()], Vec::new()));
        assert_eq!(idle, (Shape::Idle, 0, "AgentBox".into()), "a box runs, no agent works");
        let busy = of(&live(vec![with_agent(1, AgentState::Working)], Vec::new()));
        assert_eq!(busy, (Shape::Busy, 0, "AgentBox: 1 agent works".into()));
        let waits = vec![with_agent(1, AgentState::Waiting), with_agent(2, AgentState::Question)];
        let needs = of(&live(waits, asked()));
        let title = "AgentBox needs you: 2 questions, 2 waiting agents";
        assert_eq!(needs, (Shape::Idle, 4, title.into()));
        let mut down = live(vec![resting], Vec::new());
        down.status = Some(status(false));
        assert_eq!(of(&down).0, Shape::Down);
        assert!(text(&down).starts_with("(The container engine cannot be reached)\n"));
        down.questions = asked();
        assert_eq!(of(&down), (Shape::Down, 2, "AgentBox needs you: 2 questions".into()));
    }

    #[test]
    fn an_agent_in_a_box_that_does_not_run_needs_nobody() {
        let mut stopped = with_agent(1, AgentState::Waiting);
        stopped.state = BoxState::Stopped;
        assert_eq!(view(&live(vec![stopped], Vec::new())).icon.number, 0);
    }

    #[test]
    fn all_are_paused_and_resumed_at_once() {
        let all = |states: &[BoxState]| {
            let boxes = states.iter().map(|state| a_box(1, "a", "p", *state)).collect();
            let text = text(&live(boxes, Vec::new()));
            (text.contains("Pause all\n"), text.contains("Resume all\n"))
        };
        assert_eq!(all(&[]), (false, false));
        assert_eq!(all(&[BoxState::Stopped]), (false, false));
        assert_eq!(all(&[BoxState::Running, BoxState::Paused]), (true, false));
        assert_eq!(all(&[BoxState::Stopped, BoxState::Paused]), (false, true));
    }

    #[test]
    fn a_thousand_questions_and_boxes_make_a_short_menu_quickly() {
        let started = std::time::Instant::now();
        let mut live = live(Vec::new(), Vec::new());
        for n in 0..1000 {
            let mut asked = question(1, "a", "Push");
            asked.id = format!("{n:032x}").parse().unwrap();
            let mut view = a_box(1, "a", "p", BoxState::Stopped);
            view.id = format!("b{n:08x}").parse().unwrap();
            view.index = n;
            live.apply(HostEvent::Asked { question: asked });
            live.apply(HostEvent::BoxChanged { view });
            assert!(super::view(&live).menu.len() < 60);
        }
        live.boxes[999].state = BoxState::Running;
        let view = super::view(&live);
        assert_eq!(
            (view.icon.number, view.title.as_str()),
            (10, "AgentBox needs you: 1000 questions")
        );
        let text = text(&live);
        assert!(text.contains("990 more… (Open AgentBox)\n"), "{text}");
        assert!(text.contains("970 more… (Open AgentBox)\n"), "{text}");
        assert!(text.contains("● a   running"), "what runs is listed: {text}");
        // A thousand pictures, each as quick as the first: nothing is frozen.
        assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
    }

    #[test]
    fn an_action_survives_its_id() {
        let id: QuestionId = "0".repeat(32).parse().unwrap();
        let of: BoxId = "b00000001".parse().unwrap();
        for action in [
            Action::ShowQuestions,
            Action::ShowQuestion(id.clone()),
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
            Action::OpenScreen(of.clone()),
            Action::OpenShell(of.clone()),
            Action::OpenLogs(of),
            Action::NewBox,
            Action::ShowBoxes,
            Action::PauseAll,
            Action::ResumeAll,
            Action::Quiet,
            Action::EndQuiet,
            Action::OpenWindow,
            Action::OpenSettings,
            Action::OpenCheckUp,
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
