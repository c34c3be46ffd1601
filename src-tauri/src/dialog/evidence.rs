//! What backs a question up, as widgets: facts, commits, the text that would be published, files.
//!
//! What stands first in a row (a label, an object id, a path) has a column of its own: no value can
//! pass for another row.

use super::words::size;
use agentbox_desktop::labels::{bold, dim, line, monospace, sheet, text_of};
use gtk::prelude::*;
use protocol::question::{Commit, Evidence, Fact, FileLine};

/// Each part there is, in reading order.
pub fn parts(evidence: &Evidence) -> Vec<gtk::Widget> {
    let mut parts: Vec<gtk::Widget> = Vec::new();
    if !evidence.facts.is_empty() {
        parts.push(facts(&evidence.facts).upcast());
    }
    if !evidence.commits.is_empty() {
        parts.push(commits(&evidence.commits, evidence.more_commits).upcast());
    }
    if !evidence.body.is_empty() {
        parts.push(published(&evidence.body, evidence.more_body).upcast());
    }
    if !evidence.files.is_empty() {
        parts.push(files(&evidence.files, evidence.more_files).upcast());
    }
    if let Some(summary) = &evidence.summary {
        parts.push(text_of(summary).upcast());
    }
    parts
}

fn facts(facts: &[Fact]) -> gtk::Box {
    let list = column();
    let labels = gtk::SizeGroup::new(gtk::SizeGroupMode::Horizontal);
    for fact in facts {
        let label = dim(&fact.label);
        labels.add_widget(&label);
        list.add(&row(&label, &text_of(&fact.value)));
    }
    list
}

fn commits(commits: &[Commit], more: u32) -> gtk::Box {
    let list = column();
    let oids = gtk::SizeGroup::new(gtk::SizeGroupMode::Horizontal);
    for commit in commits {
        let oid = line(&commit.oid);
        oid.set_attributes(Some(&monospace()));
        oids.add_widget(&oid);
        let subject = text_of(&commit.subject);
        subject.set_attributes(Some(&monospace()));
        list.add(&row(&oid, &subject));
    }
    and_more(&list, more, "commit");
    list
}

/// Line by line on a sheet of its own, so that it cannot pass for ours.
fn published(lines: &[String], more: u32) -> gtk::Frame {
    let text = column();
    for written in lines {
        let label = text_of(written);
        label.set_attributes(Some(&monospace()));
        text.add(&label);
    }
    and_more(&text, more, "line");
    sheet(&text)
}

fn files(files: &[FileLine], more: u32) -> gtk::Box {
    let list = column();
    for file in files {
        let path = text_of(&file.path);
        path.set_attributes(Some(&monospace()));
        list.add(&path);
        list.add(&about(file));
    }
    and_more(&list, more, "file");
    list
}

/// “1.2 KB  ⚠ overwrites”, below the path.
fn about(file: &FileLine) -> gtk::Box {
    let about = gtk::Box::new(gtk::Orientation::Horizontal, 10);
    about.set_margin_start(16);
    about.pack_start(&dim(&size(file.bytes)), false, false, 0);
    if let Some(note) = &file.note {
        let note = text_of(&format!("⚠ {note}"));
        note.set_attributes(Some(&bold(1.0)));
        about.pack_start(&note, true, true, 0);
    }
    about
}

fn and_more(list: &gtk::Box, more: u32, noun: &str) {
    if let Some(text) = more_words(more, noun) {
        list.add(&text_of(&text));
    }
}

fn more_words(more: u32, noun: &str) -> Option<String> {
    let plural = if more == 1 { "" } else { "s" };
    (more > 0).then(|| format!("and {more} more {noun}{plural}"))
}

fn column() -> gtk::Box {
    gtk::Box::new(gtk::Orientation::Vertical, 2)
}

fn row(first: &gtk::Label, rest: &gtk::Label) -> gtk::Box {
    first.set_valign(gtk::Align::Start);
    let row = gtk::Box::new(gtk::Orientation::Horizontal, 10);
    row.pack_start(first, false, false, 0);
    row.pack_start(rest, true, true, 0);
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted() {
        assert_eq!(more_words(0, "commit"), None);
        assert_eq!(more_words(1, "commit").as_deref(), Some("and 1 more commit"));
        assert_eq!(more_words(40, "line").as_deref(), Some("and 40 more lines"));
    }
}
