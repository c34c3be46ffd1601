//! Remember…, opened in place: the choices of a rule as radio buttons, and the rule below them.

use super::readers;
use super::rule::{self, Choice, Wish};
use agentbox_desktop::labels::{GAP, bold, fade, line, text_of};
use gtk::prelude::*;
use jiff::Zoned;
use protocol::question::{Question, Remember, Verdict};
use std::cell::Cell;
use std::rc::Rc;

/// Closed at first. Choosing allows nothing.
pub struct Form {
    pub root: gtk::Box,
    wish: Rc<Cell<Wish>>,
}

impl Form {
    /// None when there can be no rule.
    pub fn new(question: &Question) -> Option<Self> {
        let remember = question.remember.clone()?;
        let wish = Rc::new(Cell::new(Wish::least(&remember)));
        let sentence = text_of("");
        sentence.set_attributes(Some(&bold(1.0)));
        let tell = teller(question.clone(), remember.clone(), wish.clone(), &sentence);

        let choices = gtk::Grid::new();
        choices.set_column_spacing(GAP.unsigned_abs());
        choices.set_row_spacing(10);
        let who = radios(rule::who(question, &remember), Wish::set_reach, &wish, &tell);
        if !who.is_empty() {
            row(&choices, 0, "Who", &stacked(&who));
        }
        let what = radios(rule::what(&remember), Wish::set_breadth, &wish, &tell);
        if !what.is_empty() {
            row(&choices, 1, "What", &stacked(&what));
        }
        let until = radios(rule::until(), Wish::set_until, &wish, &tell);
        row(&choices, 2, "Until", &beside(&until));

        let inside = gtk::Box::new(gtk::Orientation::Vertical, GAP);
        inside.set_border_width(GAP.unsigned_abs());
        inside.add(&choices);
        inside.add(&sentence);
        let frame = gtk::Frame::new(None);
        frame.style_context().add_class("view");
        frame.add(&inside);
        readers::group(&frame, "The rule", "Choosing allows nothing; the last line is the rule");
        frame.show_all();
        let root = gtk::Box::new(gtk::Orientation::Vertical, 0);
        root.add(&frame);
        root.set_no_show_all(true);
        tell();
        Some(Self { root, wish })
    }

    pub fn is_open(&self) -> bool {
        self.root.is_visible()
    }

    /// What is allowed when it is allowed now.
    pub fn verdict(&self) -> Verdict {
        self.wish.get().verdict(&Zoned::now())
    }
}

impl Wish {
    fn set_reach(self, reach: protocol::question::Reach) -> Self {
        Self { reach, ..self }
    }

    fn set_breadth(self, breadth: protocol::question::Breadth) -> Self {
        Self { breadth, ..self }
    }

    fn set_until(self, until: rule::Until) -> Self {
        Self { until, ..self }
    }
}

type Tell = Rc<dyn Fn()>;

/// Writes the rule as it is chosen now.
fn teller(question: Question, remember: Remember, wish: Rc<Cell<Wish>>, to: &gtk::Label) -> Tell {
    let label = to.downgrade();
    Rc::new(move || {
        let Some(label) = label.upgrade() else { return };
        label.set_text(&wish.get().sentence(&question, &remember, &Zoned::now()));
    })
}

/// One radio button for each; the first is chosen.
fn radios<T: Copy + 'static>(
    choices: Vec<Choice<T>>,
    set: fn(Wish, T) -> Wish,
    wish: &Rc<Cell<Wish>>,
    tell: &Tell,
) -> Vec<gtk::RadioButton> {
    let mut buttons: Vec<gtk::RadioButton> = Vec::new();
    for choice in choices {
        let button = match buttons.first() {
            Some(first) => gtk::RadioButton::from_widget(first),
            None => gtk::RadioButton::new(),
        };
        button.add(&described(&choice));
        // A screen reader sees no label inside a button.
        readers::call(&button, choice.label, &choice.adds);
        let (wish, tell) = (wish.clone(), tell.clone());
        button.connect_toggled(move |button| {
            if button.is_active() {
                wish.set(set(wish.get(), choice.value));
                tell();
            }
        });
        buttons.push(button);
    }
    buttons
}

/// “This project”, and below it what that adds.
fn described<T>(choice: &Choice<T>) -> gtk::Box {
    let text = gtk::Box::new(gtk::Orientation::Vertical, 0);
    text.add(&line(choice.label));
    if !choice.adds.is_empty() {
        let adds = text_of(&choice.adds);
        fade(&adds);
        text.add(&adds);
    }
    text
}

fn stacked(buttons: &[gtk::RadioButton]) -> gtk::Box {
    let column = gtk::Box::new(gtk::Orientation::Vertical, 2);
    for button in buttons {
        column.add(button);
    }
    column
}

fn beside(buttons: &[gtk::RadioButton]) -> gtk::Box {
    let row = gtk::Box::new(gtk::Orientation::Horizontal, 2 * GAP);
    for button in buttons {
        row.add(button);
    }
    row
}

fn row(grid: &gtk::Grid, at: i32, label: &str, choices: &gtk::Box) {
    let label = line(label);
    fade(&label);
    label.set_valign(gtk::Align::Start);
    grid.attach(&label, 0, at, 1, 1);
    readers::group(choices, &label.text(), "");
    choices.set_hexpand(true);
    grid.attach(choices, 1, at, 1, 1);
}
