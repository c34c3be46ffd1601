//! The command line: which of the two processes this is.

use crate::link::Link;
use crate::page::{BadPage, Page};

#[derive(Debug, PartialEq, Eq)]
pub enum Mode {
    Tray {
        /// Also open the window there, of this app or of the one that runs already.
        open: Option<Link>,
    },
    Window {
        page: Page,
    },
    /// Print this and end.
    Say(String),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadArgs {
    #[error("{0:?} is not an argument of this program.")]
    Unknown(String),
    #[error("--page needs a page.")]
    NoPage,
    #[error("{0:?} leads to no page of AgentBox.")]
    Link(String),
    #[error(transparent)]
    Page(#[from] BadPage),
}

const HELP: &str = "\
AgentBox on the desktop: tray, questions and window.

Usage: agentbox-desktop                         start the tray app, or open the window of a running one
       agentbox-desktop --page PAGE             the same, at a page
       agentbox-desktop agentbox://PAGE         the same, for links; a box may go by its name
       agentbox-desktop --window [--page PAGE]  open only the window; PAGE is inbox, boxes, new, activity,
                                                credentials, integrations, rules, settings, check-up,
                                                box/<id> or box/<id>/<tab>

Without a desktop, use: agentbox serve";

pub fn parse(args: impl Iterator<Item = String>) -> Result<Mode, BadArgs> {
    let mut args = args;
    let (mut window, mut page, mut linked) = (false, None, None);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--window" => window = true,
            "--page" => page = Some(args.next().ok_or(BadArgs::NoPage)?.parse::<Page>()?),
            "--help" | "-h" => return Ok(Mode::Say(HELP.into())),
            "--version" | "-V" => {
                return Ok(Mode::Say(
                    concat!("agentbox-desktop ", env!("CARGO_PKG_VERSION")).into(),
                ));
            }
            link if link.starts_with("agentbox:") => {
                let found = Link::parse(link).ok_or_else(|| BadArgs::Link(arg.clone()))?;
                linked = Some(found);
            }
            _ => return Err(BadArgs::Unknown(arg)),
        }
    }
    match (window, page) {
        (false, page) => Ok(Mode::Tray { open: linked.or(page.map(Link::Page)) }),
        (true, page) => Ok(Mode::Window { page: page.unwrap_or_else(Page::inbox) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Mode, BadArgs> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn no_arguments_is_the_tray() {
        assert_eq!(of(""), Ok(Mode::Tray { open: None }));
        let open = Some(Link::Page(Page::inbox()));
        assert_eq!(of("--page inbox"), Ok(Mode::Tray { open: open.clone() }));
        assert_eq!(of("agentbox://inbox"), Ok(Mode::Tray { open }));
    }

    #[test]
    fn the_window_opens_at_a_page() {
        assert_eq!(of("--window"), Ok(Mode::Window { page: Page::inbox() }));
        let page = "box/b0a1b2c3d".parse().unwrap();
        assert_eq!(of("--window --page box/b0a1b2c3d"), Ok(Mode::Window { page }));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert_eq!(of("--windows"), Err(BadArgs::Unknown("--windows".into())));
        assert_eq!(of("--window --page"), Err(BadArgs::NoPage));
        let link = "agentbox://answer/1?allow";
        assert_eq!(of(link), Err(BadArgs::Link(link.into())));
        assert!(matches!(of("--window --page javascript:x"), Err(BadArgs::Page(_))));
    }
}
