//! A page of the window, as the host, the command line and the menu name it.

use protocol::BoxId;
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
    Box(BoxId),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a page: use inbox, boxes, new, activity, credentials, integrations, rules or box/<id>."
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
        match (text, text.strip_prefix("box/")) {
            ("inbox", _) => Ok(Page::Inbox),
            ("boxes", _) => Ok(Page::Boxes),
            ("new", _) => Ok(Page::NewBox),
            ("activity", _) => Ok(Page::Activity),
            ("credentials", _) => Ok(Page::Credentials),
            ("integrations", _) => Ok(Page::Integrations),
            ("rules", _) => Ok(Page::Rules),
            (_, Some(id)) => id.parse().map(Page::Box).map_err(|_| bad()),
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
            Page::Box(id) => write!(f, "box/{id}"),
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
            "box/b0a1b2c3d",
        ] {
            assert_eq!(text.parse::<Page>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn anything_else_is_no_page() {
        for text in ["", "Inbox", "secrets", "rules/", "box/", "box/../x", "https://example.org"] {
            assert!(text.parse::<Page>().is_err(), "{text:?} was taken");
        }
    }
}
