//! How a question looks: who, what, where, the evidence, the exact command, the answers.
//!
//! All text is plain text, never markup. What may be long is in one scrolling area, so the name of
//! the box and the buttons are always on screen. Remember… opens below that area, in place.

use super::remember::Form;
use super::{evidence, place, readers, words};
use crate::colour;
use agentbox_desktop::labels::{GAP, bold, dim, line, monospace, sheet, text_of};
use gtk::gdk::{self, keys::constants};
use gtk::glib::{self, ControlFlow, Propagation};
use gtk::pango;
use gtk::prelude::*;
use protocol::question::{Answers, Question, Tier, Verdict};
use protocol::{BoxName, Millis, text};

const WIDTH: i32 = 580;
const TALLEST: i32 = 520;
/// What the header, the hint, the buttons and the window's frame take of the height.
const AROUND: i32 = 200;
/// The scrolling area never gets lower than this.
const LOWEST: i32 = 80;
/// Between the text and the bar that scrolls it.
const BESIDE_BAR: i32 = 4;

/// What is no answer: opens or closes the rule, mutes the box.
pub const REMEMBER: gtk::ResponseType = gtk::ResponseType::Other(1);
pub const MUTE: gtk::ResponseType = gtk::ResponseType::Other(2);
/// Goes on without the files that the question lists.
pub const WITHOUT: gtk::ResponseType = gtk::ResponseType::Other(3);

pub struct Layout {
    pub dialog: gtk::Dialog,
    pub scroller: gtk::ScrolledWindow,
    /// Says what is still to do before the question can be allowed.
    pub hint: gtk::Label,
    pub allow: gtk::Widget,
    /// Only where the question offers it.
    pub without: Option<gtk::Widget>,
    answers: Answers,
    deny: gtk::Widget,
    /// The rule in the making, and the button that opens it; none when there can be no rule.
    remember: Option<(Form, gtk::Widget)>,
    /// “1 of 3”, where there are several.
    place: gtk::Label,
    /// “asked 3 times”, where it was more than once.
    times: gtk::Label,
    /// How the question ended, once it has.
    ending: gtk::Label,
}

impl Layout {
    /// All of it, not yet on screen.
    pub fn new(question: &Question) -> Self {
        let dialog = window(question);
        let scroller = scroller(&body(question));
        let hint = dim("");
        let ending = text_of("");
        ending.set_attributes(Some(&bold(1.0)));
        ending.set_no_show_all(true);
        let [place, times] = [line(""), dim("")];
        place.set_no_show_all(true);
        times.set_no_show_all(true);
        let content = dialog.content_area();
        content.set_spacing(GAP);
        content.set_border_width(GAP.unsigned_abs());
        content.pack_start(&header(question, &place, &times), false, false, 0);
        content.pack_start(&scroller, true, true, 0);
        let form = Form::new(question);
        if let Some(form) = &form {
            content.pack_start(&form.root, false, false, 0);
        }
        content.pack_start(&hint, false, false, 0);
        content.pack_start(&ending, false, false, 0);
        let remember = form.map(|form| (form, aside(&dialog, "Remember…", REMEMBER)));
        let mute = aside(&dialog, "Mute box", MUTE);
        mute.set_tooltip_text(Some(MUTES));
        let answers = question.answers.clone();
        let without = answers.without.as_ref().map(|label| dialog.add_button(label, WITHOUT));
        let allow = dialog.add_button(&answers.yes, gtk::ResponseType::Accept);
        let deny = dialog.add_button(&answers.no, gtk::ResponseType::Reject);
        dialog.set_default_response(gtk::ResponseType::Reject);
        if without.is_some() {
            keep_own_widths(&deny);
        }
        content.show_all();
        hint.set_visible(fit(&scroller, 0) == Fit::Scrolls);
        // Focus on the text would scroll it into view, past what comes before it.
        dialog.set_focus(Some(&deny));
        scroll_by_keys(&dialog, &scroller);
        let layout = Self {
            dialog,
            scroller,
            hint,
            allow,
            without,
            answers,
            deny,
            remember,
            place,
            times,
            ending,
        };
        layout.tell_readers(question, &mute);
        layout.set_times(question);
        layout
    }

    fn tell_readers(&self, question: &Question, mute: &gtk::Widget) {
        let name = &question.box_name;
        readers::describe(&self.dialog, &format!("{name} needs you: {}", question.title));
        readers::call(&self.scroller, "What it would do", "Where, on what, and the exact command");
        readers::describe(&self.allow, READ_ONCE);
        readers::describe(&self.deny, "Says no: nothing is done");
        if let Some(without) = &self.without {
            readers::describe(without, READ_WITHOUT);
        }
        readers::describe(mute, MUTES);
        if let Some((_, button)) = &self.remember {
            readers::describe(button, "Opens the choices of a rule; allows nothing yet");
        }
        readers::speaks_up(&self.ending);
    }

    /// “1 of 3”; nothing where it is the only one.
    pub fn set_place(&self, place: &str) {
        self.place.set_text(place);
        self.place.set_visible(!place.is_empty());
    }

    /// The box asked for the same again. Beside its age, so nothing below moves.
    pub fn set_times(&self, question: &Question) {
        let times = question.repeated();
        self.times.set_text(&times.as_ref().map(|t| format!("{t} ·")).unwrap_or_default());
        self.times.set_visible(times.is_some());
    }

    pub fn is_remembering(&self) -> bool {
        self.remember.as_ref().is_some_and(|(form, _)| form.is_open())
    }

    /// What a press on the yes means now.
    pub fn verdict(&self) -> Verdict {
        match &self.remember {
            Some((form, _)) if form.is_open() => form.verdict(),
            _ => Verdict::AllowOnce,
        }
    }

    /// Opens the rule in place, or goes back to the plain question.
    pub fn turn(&self) {
        let Some((form, button)) = &self.remember else { return };
        let open = !form.is_open();
        form.root.set_visible(open);
        let room = if open { form.root.preferred_height_for_width(WIDTH).1 + GAP } else { 0 };
        fit(&self.scroller, room);
        set_label(button, if open { "Back" } else { "Remember…" });
        let Answers { yes, remember, .. } = &self.answers;
        set_label(&self.allow, if open { remember } else { yes });
        readers::describe(&self.allow, if open { READ_RULE } else { READ_ONCE });
        // No rule is made of it.
        if let Some(without) = &self.without {
            without.set_visible(!open);
        }
        // Whatever had the focus meant something else a moment ago.
        self.dialog.set_focus(Some(&self.deny));
        self.dialog.resize(1, 1);
        place::keep_on_screen(&self.dialog);
    }

    /// Says how the question ended; nothing can be pressed any more.
    pub fn end(&self, box_name: &BoxName, how: &str, yes: bool) {
        self.dialog.set_title(&format!("{box_name} asked"));
        self.ending.set_text(&format!("{} {how}", if yes { "✓" } else { "✕" }));
        self.ending.set_visible(true);
        self.hint.set_visible(false);
        self.place.set_visible(false);
        if let Some((form, _)) = &self.remember {
            form.root.set_visible(false);
        }
        if let Some(buttons) = self.allow.parent() {
            buttons.set_sensitive(false);
        }
    }
}

const MUTES: &str = "Denies what this box asks for an hour";
const READ_ONCE: &str = "Lets the box do exactly this, this once";
const READ_WITHOUT: &str = "Lets it go on, and copies none of these files";
const READ_RULE: &str = "Lets the box do this, and makes the rule that is shown";

/// A button on the other side, away from the answers.
fn aside(dialog: &gtk::Dialog, label: &str, response: gtk::ResponseType) -> gtk::Widget {
    let button = dialog.add_button(label, response);
    if let Some(buttons) = button.parent().and_downcast::<gtk::ButtonBox>() {
        buttons.set_child_secondary(&button, true);
    }
    button
}

/// Five buttons as wide as the widest would make the dialog wider than what it says.
fn keep_own_widths(one: &gtk::Widget) {
    if let Some(buttons) = one.parent().and_downcast::<gtk::ButtonBox>() {
        for button in buttons.children() {
            buttons.set_child_non_homogeneous(&button, true);
        }
    }
}

fn set_label(button: &gtk::Widget, label: &str) {
    if let Some(button) = button.downcast_ref::<gtk::Button>() {
        button.set_label(label);
    }
}

/// On top and on every workspace, without taking the keyboard from what a person is doing.
fn window(question: &Question) -> gtk::Dialog {
    let dialog = gtk::Dialog::new();
    dialog.set_title(&format!("{} asks", question.box_name));
    dialog.set_keep_above(true);
    dialog.set_focus_on_map(false);
    dialog.set_accept_focus(true);
    dialog.set_urgency_hint(true);
    dialog.stick();
    dialog
}

/// “■ fix-login · shop-api      1 of 3    asked 3 times · 12 s ago”. The project gives way when there is no room,
/// the name never.
fn header(question: &Question, place: &gtk::Label, times: &gtk::Label) -> gtk::Box {
    let name = line(question.box_name.as_str());
    name.set_attributes(Some(&bold(1.0)));
    let project = line(&format!("· {}", question.project));
    project.set_ellipsize(pango::EllipsizeMode::End);
    project.set_max_width_chars(1); // takes what is left, asks for nothing
    let row = gtk::Box::new(gtk::Orientation::Horizontal, 6);
    let square = square(colour::of(&question.box_id));
    readers::picture(&square, &format!("The colour of {}", question.box_name));
    row.pack_start(&square, false, false, 0);
    row.pack_start(&name, false, false, 0);
    row.pack_start(&project, true, true, 0);
    place.set_margin_end(GAP);
    row.pack_start(place, false, false, 0);
    row.pack_start(times, false, false, 0);
    row.pack_start(&age(question.created_at), false, false, 0);
    row
}

/// Ticks while it is on screen.
fn age(at: Millis) -> gtk::Label {
    let label = dim(&words::ago(at, words::now()));
    let ticking = label.downgrade();
    glib::timeout_add_seconds_local(1, move || {
        let Some(label) = ticking.upgrade() else { return ControlFlow::Break };
        label.set_text(&words::ago(at, words::now()));
        ControlFlow::Continue
    });
    label
}

fn square(colour: (f64, f64, f64)) -> gtk::DrawingArea {
    let area = gtk::DrawingArea::new();
    area.set_size_request(14, 14);
    area.set_valign(gtk::Align::Center);
    area.connect_draw(move |_, cairo| {
        cairo.set_source_rgb(colour.0, colour.1, colour.2);
        let _ = cairo.paint();
        Propagation::Stop
    });
    area
}

fn body(question: &Question) -> gtk::Box {
    let body = gtk::Box::new(gtk::Orientation::Vertical, GAP);
    let title = text_of(&question.title);
    title.set_attributes(Some(&bold(1.2)));
    let what = gtk::Box::new(gtk::Orientation::Vertical, 2);
    what.add(&title);
    what.add(&text_of(&question.target));
    body.add(&what);
    for part in evidence::parts(&question.evidence) {
        body.add(&part);
    }
    for warning in warnings(question) {
        let warning = text_of(&format!("⚠ {warning}"));
        warning.set_attributes(Some(&bold(1.0)));
        body.add(&warning);
    }
    body.add(&command(&question.argv));
    body
}

fn warnings(question: &Question) -> Vec<String> {
    let lost = (question.tier == Tier::Irreversible).then(|| "cannot be undone".to_owned());
    lost.into_iter().chain(question.warnings.iter().cloned()).collect()
}

fn command(argv: &[String]) -> gtk::Frame {
    let label = text_of(&text::command_line(argv));
    label.set_attributes(Some(&monospace()));
    label.set_selectable(true);
    sheet(&label)
}

fn scroller(body: &gtk::Box) -> gtk::ScrolledWindow {
    let scroller = gtk::ScrolledWindow::new(gtk::Adjustment::NONE, gtk::Adjustment::NONE);
    scroller.set_policy(gtk::PolicyType::Never, gtk::PolicyType::Automatic);
    // A bar that is always there says that there is more.
    scroller.set_overlay_scrolling(false);
    scroller.set_can_focus(true);
    scroller.add(body);
    scroller
}

/// The focus is on Deny, so the keys that scroll are taken for the whole dialog.
fn scroll_by_keys(dialog: &gtk::Dialog, scroller: &gtk::ScrolledWindow) {
    let scroller = scroller.downgrade();
    dialog.connect_key_press_event(move |_, event| {
        let (Some(scroller), Some(scroll)) = (scroller.upgrade(), scroll_of(event.keyval())) else {
            return Propagation::Proceed;
        };
        scroller.emit_scroll_child(scroll, false);
        Propagation::Stop
    });
}

fn scroll_of(key: gdk::keys::Key) -> Option<gtk::ScrollType> {
    match key {
        constants::Page_Up => Some(gtk::ScrollType::PageBackward),
        constants::Page_Down => Some(gtk::ScrollType::PageForward),
        constants::Home => Some(gtk::ScrollType::Start),
        constants::End => Some(gtk::ScrollType::End),
        _ => None,
    }
}

#[derive(PartialEq)]
enum Fit {
    Whole,
    Scrolls,
}

/// As tall as what it holds, up to what the screen allows beside `other` things.
fn fit(scroller: &gtk::ScrolledWindow, other: i32) -> Fit {
    let area = place::work_area();
    let width = WIDTH.min(area.width() - 60);
    let tallest = tallest(area.height(), other);
    let height = scroller.child().map_or(0, |body| body.preferred_height_for_width(width).1);
    scroller.set_size_request(width, height.min(tallest));
    let fit = if height > tallest { Fit::Scrolls } else { Fit::Whole };
    if let Some(inside) = scroller.child().and_downcast::<gtk::Viewport>().and_then(|v| v.child()) {
        inside.set_margin_end(if fit == Fit::Scrolls { BESIDE_BAR } else { 0 });
    }
    fit
}

fn tallest(screen: i32, other: i32) -> i32 {
    TALLEST.min(screen - AROUND - other).max(LOWEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::samples::question;

    #[test]
    fn the_rule_never_pushes_the_buttons_off_the_screen() {
        assert_eq!(tallest(1080, 0), TALLEST);
        assert_eq!(tallest(768, 0), TALLEST);
        assert_eq!(tallest(768, 260), 308);
        assert_eq!(tallest(480, 260), LOWEST);
    }

    #[test]
    fn what_cannot_be_undone_is_the_first_warning() {
        let mut question = question(1, "a", "Merge");
        question.warnings = vec!["rewrites history".into()];
        assert_eq!(warnings(&question), ["rewrites history"]);
        question.tier = Tier::Irreversible;
        assert_eq!(warnings(&question), ["cannot be undone", "rewrites history"]);
    }
}
