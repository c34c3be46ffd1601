//! A page of the window, as the host, the command line and the menu name it.

use protocol::{BoxId, QuestionId};
use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Page {
    Inbox,
    Boxes,
    NewBox,
    Activity,
    Credentials,
    Integrations,
    Rules,
    Settings,
    CheckUp,
    Welcome,
    /// A box, and perhaps one of its tabs.
    Box(BoxId, Option<Tab>),
    /// One question of the inbox.
    Question(QuestionId),
}

/// What of a box its page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    Overview,
    Logs,
    Services,
    Terminal,
    Screen,
    Files,
    Network,
    Activity,
}

impl Tab {
    const ALL: [(Tab, &str); 8] = [
        (Tab::Overview, "overview"),
        (Tab::Logs, "logs"),
        (Tab::Services, "services"),
        (Tab::Terminal, "terminal"),
        (Tab::Screen, "screen"),
        (Tab::Files, "files"),
        (Tab::Network, "network"),
        (Tab::Activity, "activity"),
    ];

    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, own)| *own == name).map(|(tab, _)| *tab)
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(tab, _)| *tab == self).map_or("", |(_, name)| name)
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a page: use inbox, boxes, new, activity, credentials, integrations, rules, settings, \
     check-up, welcome, box/<id>, box/<id>/<tab> or inbox/<question>."
)]
pub struct BadPage(String);

impl Page {
    pub fn inbox() -> Self {
        Page::Inbox
    }
}

impl FromStr for Page {
    type Err = BadPage;

    fn from_str(text: &str) -> Result<Self, BadPage> {
        let bad = || BadPage(text.to_owned());
        let parts: Vec<&str> = text.split('/').collect();
        match parts.as_slice() {
            ["inbox"] => Ok(Page::Inbox),
            ["boxes"] => Ok(Page::Boxes),
            ["new"] => Ok(Page::NewBox),
            ["activity"] => Ok(Page::Activity),
            ["credentials"] => Ok(Page::Credentials),
            ["integrations"] => Ok(Page::Integrations),
            ["rules"] => Ok(Page::Rules),
            ["settings"] => Ok(Page::Settings),
            ["check-up"] => Ok(Page::CheckUp),
            ["welcome"] => Ok(Page::Welcome),
            ["box", id] => id.parse().map(|id| Page::Box(id, None)).map_err(|_| bad()),
            ["box", id, tab] => {
                let (id, tab) = (id.parse().map_err(|_| bad())?, Tab::named(tab));
                Ok(Page::Box(id, Some(tab.ok_or_else(bad)?)))
            }
            ["inbox", id] => id.parse().map(Page::Question).map_err(|_| bad()),
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Page::Inbox => f.write_str("inbox"),
            Page::Boxes => f.write_str("boxes"),
            Page::NewBox => f.write_str("new"),
            Page::Activity => f.write_str("activity"),
            Page::Credentials => f.write_str("credentials"),
            Page::Integrations => f.write_str("integrations"),
            Page::Rules => f.write_str("rules"),
            Page::Settings => f.write_str("settings"),
            Page::CheckUp => f.write_str("check-up"),
            Page::Welcome => f.write_str("welcome"),
            Page::Box(id, None) => write!(f, "box/{id}"),
            Page::Box(id, Some(tab)) => write!(f, "box/{id}/{}", tab.name()),
            Page::Question(id) => write!(f, "inbox/{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_read_as_they_are_written() {
        for text in [
            "inbox",
            "boxes",
            "new",
            "activity",
            "credentials",
            "integrations",
            "rules",
            "settings",
            "check-up",
            "welcome",
            "box/b0a1b2c3d",
            "box/b0a1b2c3d/logs",
            "box/b0a1b2c3d/network",
            "inbox/0123456789abcdef0123456789abcdef",
        ] {
            assert_eq!(text.parse::<Page>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn anything_else_is_no_page() {
        for text in [
            "",
            "Inbox",
            "secrets",
            "rules/",
            "box/",
            "box/../x",
            "box/b0a1b2c3d/secrets",
            "box/b0a1b2c3d/logs/x",
            "inbox/1",
            "https://example.org",
        ] {
            assert!(text.parse::<Page>().is_err(), "{text:?} was taken");
        }
    }
}
