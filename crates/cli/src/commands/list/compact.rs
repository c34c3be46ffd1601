//! The list for a narrow place, such as the sidebar of cmux or an overlay of Herdr: two short lines for
//! each box, below the name of its project.

use super::{agents, state};
use crate::table::cut;
use crate::ui::Look;
use protocol::boxes::BoxView;
use protocol::sessions::AgentState;
use protocol::text::visible;

/// As wide as the sidebars are, where nobody knows.
const WIDTH: usize = 24;

/// With `links`, a box's name leads to its web app in terminals that follow links.
pub fn page(look: Look, boxes: &[BoxView], links: bool) -> String {
    let width = look.width.unwrap_or(WIDTH);
    let (mut text, mut project) = (String::new(), None);
    for view in boxes {
        if project != Some(&view.project_root) {
            project = Some(&view.project_root);
            text.push_str(&look.dim(&heading(&visible(&view.project), width)));
            text.push('\n');
        }
        let name = cut(view.name.as_str(), width);
        let name = look.bold(&name);
        let address = view.web.as_deref().filter(|_| links);
        text.push_str(&address.map_or(name.clone(), |address| linked(&name, address)));
        text.push('\n');
        text.push_str(&format!("  {}\n", doing(look, view, width.saturating_sub(2))));
    }
    text
}

/// `── shop ───────`.
fn heading(project: &str, width: usize) -> String {
    let name = cut(project, width.saturating_sub(6));
    let rest = width.saturating_sub(4 + name.chars().count());
    format!("── {name} {}", "─".repeat(rest))
}

/// What its agents do, or how it is. What needs the person comes first.
fn doing(look: Look, view: &BoxView, width: usize) -> String {
    let agents = Some(agents(view)).filter(|text| text != "-");
    let needs = view.questions > 0 || view.agents.iter().any(|agent| agent.state.needs_input());
    let works = view.agents.iter().any(|agent| agent.state == AgentState::Working);
    let text = match (view.questions, agents) {
        (0, Some(agents)) if view.state.as_str() == "running" => agents,
        (0, _) => state(view),
        (_, Some(agents)) => format!("asks, {agents}"),
        (_, None) => "asks".to_owned(),
    };
    let text = cut(&text, width);
    match (needs, works) {
        (true, _) => look.warn(&text),
        (_, true) => look.good(&text),
        _ => text,
    }
}

/// A link of the terminal (OSC 8). The address is the host's own, and made of letters, digits and dots.
fn linked(text: &str, address: &str) -> String {
    let plain = address.chars().all(|c| c.is_ascii_graphic());
    if plain { format!("\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_sidebar_has_room_for_every_box() {
        let mut boxes = samples::boxes();
        boxes[0].questions = 1;
        let narrow = Look { color: false, width: Some(22) };
        let text = page(narrow, &boxes, false);
        assert!(text.lines().all(|line| line.chars().count() <= 22), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn names_lead_to_web_apps() {
        let mut boxes = samples::boxes();
        boxes[0].web = Some("http://fix-login.localhost:1355".into());
        let text = page(Look { color: false, width: None }, &boxes[..1], true);
        let link = "\x1b]8;;http://fix-login.localhost:1355\x1b\\fix-login\x1b]8;;\x1b\\\n";
        assert!(text.contains(link), "{text:?}");
        boxes[0].web = Some("http://x\x1b]52;c;\x07".into());
        assert!(!page(Look::PLAIN, &boxes[..1], true).contains("]52"), "{text:?}");
    }
}
