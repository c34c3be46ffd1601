//! `agentbox://` links, such as `agentbox://box/fix-login/logs`: they lead to a page and do nothing else.
//!
//! A link may come from anywhere, also from a web page or a box. So it is one of ours or none, and
//! whatever it names is only looked at.

use crate::page::Page;
use protocol::BoxName;
use protocol::boxes::BoxView;

pub const SCHEME: &str = "agentbox";
const MOST: usize = 200;

/// Where a link leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    Page(Page),
    /// A box by its name, and the rest of the page.
    Named(BoxName, Option<String>),
}

impl Link {
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(SCHEME)?.strip_prefix(':')?;
        let path = rest.trim_start_matches('/').trim_end_matches('/');
        if text.len() > MOST {
            return None;
        }
        if path.is_empty() || path == "open" {
            return Some(Link::Page(Page::Inbox));
        }
        if let Ok(page) = path.parse() {
            return Some(Link::Page(page));
        }
        let (name, tab) = match path.strip_prefix("box/")?.split_once('/') {
            Some((name, tab)) => (name, Some(tab.to_owned())),
            None => (path.strip_prefix("box/")?, None),
        };
        Some(Link::Named(name.parse().ok()?, tab))
    }

    /// The page it means, where these boxes are; all of them when there is no such box.
    pub fn page(self, boxes: &[BoxView]) -> Page {
        match self {
            Link::Page(page) => page,
            Link::Named(name, tab) => {
                let found = boxes.iter().find(|view| view.name == name);
                let path = found.map(|view| match tab {
                    Some(tab) => format!("box/{}/{tab}", view.id),
                    None => format!("box/{}", view.id),
                });
                path.and_then(|path| path.parse().ok()).unwrap_or(Page::Boxes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_pages() {
        let page = |text: &str| match Link::parse(text) {
            Some(Link::Page(page)) => page.to_string(),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(page("agentbox://inbox"), "inbox");
        assert_eq!(page("agentbox:inbox/"), "inbox");
        assert_eq!(page("agentbox://"), "inbox");
        assert_eq!(page("agentbox://box/b0a1b2c3d/logs"), "box/b0a1b2c3d/logs");
        assert_eq!(page("agentbox://settings"), "settings");
        let named = Link::parse("agentbox://box/fix-login/screen").unwrap();
        assert_eq!(named, Link::Named("fix-login".parse().unwrap(), Some("screen".into())));
        assert_eq!(named.page(&[]), Page::Boxes);
    }

    #[test]
    fn no_link_does_anything_else() {
        for text in [
            "agentbox",
            "https://agentbox/inbox",
            "agentbox://answer/0123?verdict=allow",
            "agentbox://box/../../etc",
            "agentbox://box/A B",
            "agentbox://quit",
            "agentbox://box/x;id",
            "agentbox://--window",
        ] {
            assert_eq!(Link::parse(text), None, "{text}");
        }
        assert_eq!(Link::parse(&format!("agentbox://box/{}", "a".repeat(300))), None);
    }
}
