//! What the page knows and how it looks. No terminal here: text comes out, keys go in.

use super::exactly;
use super::keys::{Act, Key};
use crate::commands::list;
use crate::table;
use crate::ui::Look;
use protocol::boxes::{BoxState, BoxView};
use protocol::control::{HostEvent, Request};
use protocol::question::Question;
use protocol::text::visible;
use protocol::{BoxId, BoxName};
use std::path::PathBuf;

const KEYS: &str =
    "Enter open  a answer  s shell  p pause  x stop  u web  v screen  l log  q leave";
/// Questions below the table; the rest are a number.
const MOST_QUESTIONS: usize = 5;

pub struct Page {
    look: Look,
    /// Only boxes of the project around this folder.
    project: Option<PathBuf>,
    boxes: Vec<BoxView>,
    questions: Vec<Question>,
    /// The box that is marked; it stays marked whatever comes and goes around it.
    marked: Option<BoxId>,
    /// A box that is stopped if the next key says so.
    stopping: Option<(BoxId, BoxName)>,
    pub note: String,
}

impl Page {
    pub fn new(look: Look, project: Option<PathBuf>) -> Self {
        Self {
            look,
            project,
            boxes: Vec::new(),
            questions: Vec::new(),
            marked: None,
            stopping: None,
            note: String::new(),
        }
    }

    pub fn apply(&mut self, event: HostEvent) {
        match event {
            HostEvent::Snapshot { ref questions, .. } => self.questions.clone_from(questions),
            HostEvent::Asked { ref question } => self.questions.push(question.clone()),
            HostEvent::AskedAgain { ref id, times } => {
                self.questions.iter_mut().filter(|q| q.id == *id).for_each(|q| q.times = times);
            }
            HostEvent::Resolved { ref id, .. } => self.questions.retain(|q| q.id != *id),
            _ => {}
        }
        list::apply(&mut self.boxes, event);
    }

    fn shown(&self) -> Vec<BoxView> {
        match &self.project {
            Some(folder) => list::of_project(self.boxes.clone(), Some(folder)),
            None => self.boxes.clone(),
        }
    }

    /// Where the mark is; on the first box when its own is gone.
    fn at(&self, shown: &[BoxView]) -> usize {
        shown.iter().position(|view| Some(&view.id) == self.marked.as_ref()).unwrap_or(0)
    }

    pub fn press(&mut self, key: Key) -> Option<Act> {
        if let Some((id, name)) = self.stopping.take() {
            self.note.clear();
            let stop = Request::StopBox { target: exactly(id.as_str()) };
            return (key == Key::Char('y')).then(|| ask(stop, format!("Stopping {name} …")));
        }
        let shown = self.shown();
        let at = self.at(&shown);
        match key {
            Key::Leave | Key::Char('q') => return Some(Act::Leave),
            Key::Char('a') => return Some(run(&["approvals", "--answer"])),
            Key::Char('n') => return Some(run(&["create"])),
            Key::Down | Key::Char('j') => return self.mark(&shown, at + 1),
            Key::Up | Key::Char('k') => return self.mark(&shown, at.saturating_sub(1)),
            _ => {}
        }
        let view = shown.get(at)?;
        self.note.clear();
        let id = view.id.as_str();
        match key {
            Key::Enter if !view.agents.is_empty() => Some(run(&["attach", id])),
            Key::Enter | Key::Char('s') => Some(run(&["shell", id])),
            Key::Char('l') => Some(run(&["logs", id, "-f"])),
            Key::Char('d') => Some(run(&["destroy", id])),
            Key::Char('u') => Some(aside(&["url", id])),
            Key::Char('v') => Some(aside(&["screen", id])),
            Key::Char('p') => self.pause(view),
            Key::Char('x') => self.stop_or_start(view),
            _ => None,
        }
    }

    fn mark(&mut self, shown: &[BoxView], at: usize) -> Option<Act> {
        self.marked = shown.get(at).or(shown.last()).map(|view| view.id.clone());
        None
    }

    fn pause(&mut self, view: &BoxView) -> Option<Act> {
        let (target, name) = (exactly(view.id.as_str()), &view.name);
        match view.state {
            BoxState::Running => {
                Some(ask(Request::PauseBox { target }, format!("Pausing {name} …")))
            }
            BoxState::Paused => {
                Some(ask(Request::UnpauseBox { target }, format!("{name} goes on …")))
            }
            _ => {
                self.note = format!("{name} does not run");
                None
            }
        }
    }

    /// Stopping ends what runs in it, so that takes a second key.
    fn stop_or_start(&mut self, view: &BoxView) -> Option<Act> {
        let (id, name) = (&view.id, &view.name);
        if view.state == BoxState::Stopped {
            let start = Request::StartBox { target: exactly(id.as_str()) };
            return Some(ask(start, format!("Starting {name} …")));
        }
        self.note = format!("Stop {name}, and whatever runs in it? y stops it");
        self.stopping = Some((id.clone(), name.clone()));
        None
    }

    /// At most so many columns and rows, without a line end at its end.
    pub fn render(&self, columns: usize, rows: usize) -> String {
        let shown = self.shown();
        let mut below = self.asked(columns);
        if !self.note.is_empty() {
            below.extend([String::new(), table::cut(&self.note, columns)]);
        }
        below.extend([String::new(), self.look.dim(&table::cut(KEYS, columns))]);
        let mut lines =
            vec![self.look.bold(&table::cut(&self.heading(&shown), columns)), String::new()];
        let room = rows.saturating_sub(lines.len() + below.len() + 1).max(1);
        lines.extend(self.table(&shown, columns, room));
        let free = rows.saturating_sub(lines.len() + below.len());
        lines.extend(std::iter::repeat_n(String::new(), free));
        lines.extend(below);
        lines.truncate(rows.max(1));
        lines.join("\n")
    }

    fn heading(&self, shown: &[BoxView]) -> String {
        let of = match (&self.project, shown.first()) {
            (Some(_), Some(view)) => format!(" · {}", visible(&view.project)),
            _ => String::new(),
        };
        let boxes = if shown.len() == 1 { "box" } else { "boxes" };
        let asked = match self.questions.len() {
            0 => String::new(),
            1 => " · 1 question".to_owned(),
            n => format!(" · {n} questions"),
        };
        format!("AgentBox{of} · {} {boxes}{asked}", shown.len())
    }

    /// The part of the table around the mark that fits.
    fn table(&self, shown: &[BoxView], columns: usize, room: usize) -> Vec<String> {
        if shown.is_empty() {
            return vec!["No boxes. n makes one for this folder.".to_owned()];
        }
        let at = self.at(shown);
        let first = (at + 1).saturating_sub(room);
        let rows: Vec<Vec<String>> = shown.iter().map(row).collect();
        let look = Look { width: Some(columns.saturating_sub(2)), ..self.look };
        let text = table::render(look, &["N", "NAME", "STATE", "AGENT", "ASKS", "PROJECT"], &rows);
        let mut lines = text.lines();
        let head = lines.next().map(|line| format!("  {line}"));
        let marked = |(n, line): (usize, &str)| {
            if n == at { self.look.bold(&format!("› {line}")) } else { format!("  {line}") }
        };
        head.into_iter().chain(lines.enumerate().map(marked).skip(first).take(room)).collect()
    }

    fn asked(&self, columns: usize) -> Vec<String> {
        let one = |q: &Question| {
            table::cut(&format!("{} asks: {}", q.box_name, visible(&q.title)), columns)
        };
        let mut lines: Vec<String> = self.questions.iter().take(MOST_QUESTIONS).map(one).collect();
        if let Some(more @ 1..) = self.questions.len().checked_sub(MOST_QUESTIONS) {
            lines.push(format!("and {more} more"));
        }
        if !lines.is_empty() {
            lines.insert(0, String::new());
        }
        lines
    }
}

fn row(view: &BoxView) -> Vec<String> {
    vec![
        view.index.to_string(),
        view.name.to_string(),
        view.busy.as_deref().map_or_else(|| view.state.as_str().to_owned(), visible),
        list::agents(view),
        if view.questions == 0 { "-".to_owned() } else { view.questions.to_string() },
        visible(&view.project),
    ]
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn run(command: &[&str]) -> Act {
    Act::Run(words(command))
}

fn aside(command: &[&str]) -> Act {
    Act::Aside(words(command))
}

fn ask(request: Request, doing: String) -> Act {
    Act::Ask(Box::new(request), doing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn page() -> Page {
        let mut page = Page::new(Look { color: false, width: Some(80) }, None);
        page.apply(HostEvent::Snapshot {
            status: samples::status(),
            boxes: samples::boxes(),
            questions: samples::questions(),
        });
        page
    }

    #[test]
    fn a_page_fits_its_terminal() {
        let mut page = page();
        for (columns, rows) in [(80, 24), (40, 10), (20, 4), (200, 60)] {
            let text = page.render(columns, rows);
            assert!(text.lines().count() <= rows, "{text}");
        }
        page.press(Key::Down);
        insta::assert_snapshot!(page.render(80, 20));
    }

    #[test]
    fn the_mark_stays_on_its_box_and_in_sight() {
        let mut page = page();
        let many: Vec<BoxView> = (0..40_u32)
            .map(|n| {
                let id = BoxId::from_bytes(n.to_be_bytes());
                BoxView { id, index: n + 1, ..samples::boxes()[0].clone() }
            })
            .collect();
        page.apply(HostEvent::Snapshot {
            status: samples::status(),
            boxes: many.clone(),
            questions: Vec::new(),
        });
        (0..30).for_each(|_| assert!(page.press(Key::Down).is_none()));
        let marked = |page: &Page| page.marked.clone().unwrap();
        assert_eq!(marked(&page), many[30].id);
        page.apply(HostEvent::BoxRemoved { id: many[3].id.clone() });
        let text = page.render(80, 12);
        assert!(text.contains("› 31 "), "{text}");
        (0..99).for_each(|_| drop(page.press(Key::Down)));
        assert_eq!(marked(&page), many[39].id);
    }

    #[test]
    fn stopping_takes_two_keys_and_destroying_asks_for_itself() {
        let mut page = page();
        assert!(page.press(Key::Char('x')).is_none());
        assert!(page.note.contains("y stops it"), "{}", page.note);
        assert!(page.press(Key::Char('n')).is_none(), "any other key takes it back");
        page.press(Key::Char('x'));
        let Some(Act::Ask(request, _)) = page.press(Key::Char('y')) else { panic!("no stop") };
        assert!(matches!(*request, Request::StopBox { .. }));
        let Some(Act::Run(words)) = page.press(Key::Char('d')) else { panic!("no command") };
        assert_eq!(words[0], "destroy");
        assert!(!words.iter().any(|word| word.starts_with("-y") || word == "--yes"));
    }

    #[test]
    fn what_a_box_asks_cannot_draw() {
        let mut page = page();
        let mut question = samples::questions()[0].clone();
        question.title = "Push\x1b[2J\u{202e}".to_owned();
        page.apply(HostEvent::Asked { question });
        let text = page.render(80, 24);
        assert!(!text.contains('\x1b') && !text.contains('\u{202e}'), "{text}");
    }
}
