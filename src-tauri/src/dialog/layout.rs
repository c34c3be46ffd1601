//! How a question looks: who, what, where, the evidence, the exact command, two buttons.
//!
//! All text is plain text, never markup. What may be long is in one scrolling area, so the name of
//! the box and the buttons are always on screen.

use super::place;
use crate::colour;
use gtk::gdk::{self, keys::constants};
use gtk::glib::Propagation;
use gtk::pango::{self, AttrList};
use gtk::prelude::*;
use protocol::question::{Commit, Question};
use protocol::text;

const WIDTH: i32 = 580;
const TALLEST: i32 = 520;
/// What the header, the hint, the buttons and the window's frame take of the height.
const AROUND: i32 = 200;
const GAP: i32 = 12;

pub struct Layout {
    pub dialog: gtk::Dialog,
    pub scroller: gtk::ScrolledWindow,
    /// Says what is still to do before the question can be allowed.
    pub hint: gtk::Label,
    pub allow: gtk::Widget,
}

impl Layout {
    /// All of it, not yet on screen.
    pub fn new(question: &Question) -> Self {
        let dialog = window(question);
        let scroller = scroller(&body(question));
        let hint = line("");
        hint.style_context().add_class("dim-label");
        let content = dialog.content_area();
        content.set_spacing(GAP);
        content.set_border_width(GAP.unsigned_abs());
        content.pack_start(&header(question), false, false, 0);
        content.pack_start(&scroller, true, true, 0);
        content.pack_start(&hint, false, false, 0);
        let allow = dialog.add_button("Allow once", gtk::ResponseType::Accept);
        let deny = dialog.add_button("Deny", gtk::ResponseType::Reject);
        dialog.set_default_response(gtk::ResponseType::Reject);
        content.show_all();
        hint.set_visible(fit(&scroller) == Fit::Scrolls);
        // Focus on the text would scroll it into view, past what comes before it.
        dialog.set_focus(Some(&deny));
        scroll_by_keys(&dialog, &scroller);
        Self { dialog, scroller, hint, allow }
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

/// “■ fix-login · shop-api”. The project gives way when there is no room, the name never.
fn header(question: &Question) -> gtk::Box {
    let name = line(question.box_name.as_str());
    name.set_attributes(Some(&bold(1.0)));
    let project = line(&format!("· {}", question.project));
    project.set_ellipsize(pango::EllipsizeMode::End);
    project.set_max_width_chars(1); // takes what is left, asks for nothing
    let row = gtk::Box::new(gtk::Orientation::Horizontal, 6);
    row.pack_start(&square(colour::of(&question.box_id)), false, false, 0);
    row.pack_start(&name, false, false, 0);
    row.pack_start(&project, true, true, 0);
    row
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
    body.set_margin_end(4);
    let title = text_of(&question.title);
    title.set_attributes(Some(&bold(1.2)));
    let what = gtk::Box::new(gtk::Orientation::Vertical, 2);
    what.add(&title);
    what.add(&text_of(&question.target));
    body.add(&what);
    if !question.commits.is_empty() {
        body.add(&commits(&question.commits, question.more_commits));
    }
    if let Some(summary) = &question.summary {
        body.add(&text_of(summary));
    }
    for warning in &question.warnings {
        let warning = text_of(&format!("⚠ {warning}"));
        warning.set_attributes(Some(&bold(1.0)));
        body.add(&warning);
    }
    body.add(&command(&question.argv));
    body
}

/// The object ids stand in a column of their own: a long subject cannot pose as another commit.
fn commits(commits: &[Commit], more: u32) -> gtk::Box {
    let list = gtk::Box::new(gtk::Orientation::Vertical, 2);
    let column = gtk::SizeGroup::new(gtk::SizeGroupMode::Horizontal);
    for commit in commits {
        let oid = line(&commit.oid);
        oid.set_attributes(Some(&monospace()));
        oid.set_valign(gtk::Align::Start);
        column.add_widget(&oid);
        let subject = text_of(&commit.subject);
        subject.set_attributes(Some(&monospace()));
        let row = gtk::Box::new(gtk::Orientation::Horizontal, 10);
        row.pack_start(&oid, false, false, 0);
        row.pack_start(&subject, true, true, 0);
        list.add(&row);
    }
    if more > 0 {
        let noun = if more == 1 { "commit" } else { "commits" };
        list.add(&text_of(&format!("and {more} more {noun}")));
    }
    list
}

fn command(argv: &[String]) -> gtk::Frame {
    let label = text_of(&text::command_line(argv));
    label.set_attributes(Some(&monospace()));
    label.set_selectable(true);
    label.set_margin_top(8);
    label.set_margin_bottom(8);
    label.set_margin_start(10);
    label.set_margin_end(10);
    let frame = gtk::Frame::new(None);
    frame.style_context().add_class("view");
    frame.add(&label);
    frame
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

/// As tall as what it holds, up to what the screen allows.
fn fit(scroller: &gtk::ScrolledWindow) -> Fit {
    let area = place::work_area();
    let width = WIDTH.min(area.width() - 60);
    let tallest = TALLEST.min(area.height() - AROUND).max(80);
    let height = scroller.child().map_or(0, |body| body.preferred_height_for_width(width).1);
    scroller.set_size_request(width, height.min(tallest));
    if height > tallest { Fit::Scrolls } else { Fit::Whole }
}

/// One line of plain text.
fn line(text: &str) -> gtk::Label {
    let label = gtk::Label::new(None);
    label.set_text(text);
    label.set_xalign(0.0);
    label
}

/// Plain text that wraps, inside a word if need be.
fn text_of(text: &str) -> gtk::Label {
    let label = line(text);
    label.set_line_wrap(true);
    label.set_line_wrap_mode(pango::WrapMode::WordChar);
    label.set_hexpand(true);
    label
}

fn bold(scale: f64) -> AttrList {
    let list = AttrList::new();
    list.insert(pango::AttrInt::new_weight(pango::Weight::Bold));
    list.insert(pango::AttrFloat::new_scale(scale));
    list
}

fn monospace() -> AttrList {
    let list = AttrList::new();
    list.insert(pango::AttrString::new_family("monospace"));
    list
}
