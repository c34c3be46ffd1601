//! The command line, as `agentbox-desktop` writes it: `[--page PAGE [--of-the-tray]]`.

use crate::page::Page;

/// Said by the tray, which holds the other end of the window's input.
const OF_THE_TRAY: &str = "--of-the-tray";

#[derive(Debug, PartialEq, Eq)]
pub struct Wanted {
    pub page: Page,
    /// It ends when its input does.
    pub of_the_tray: bool,
}

/// Where to open, and for whom; fails in words.
pub fn parse(args: impl Iterator<Item = String>) -> Result<Wanted, String> {
    let args: Vec<String> = args.collect();
    let at = |page: &str, of_the_tray| {
        let page = page.parse::<Page>().map_err(|bad| bad.to_string())?;
        Ok(Wanted { page, of_the_tray })
    };
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => Ok(Wanted { page: Page::inbox(), of_the_tray: false }),
        ["--page", page] => at(page, false),
        ["--page", page, OF_THE_TRAY] => at(page, true),
        ["--page"] => Err("--page needs a page.".into()),
        [first, ..] => Err(format!("{first:?} is not an argument of this program.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_ours_or_none() {
        let all = |line: &str| parse(line.split_whitespace().map(str::to_owned));
        let of = |line: &str| all(line).map(|wanted| wanted.page);
        assert_eq!(of(""), Ok(Page::inbox()));
        assert_eq!(of("--page boxes"), Ok(Page::Boxes));
        assert_eq!(of("--page box/b0a1b2c3d").unwrap().to_string(), "box/b0a1b2c3d");
        assert_eq!(of("--page"), Err("--page needs a page.".into()));
        let whose = |line: &str| all(line).map(|wanted| wanted.of_the_tray);
        assert_eq!(whose("--page boxes"), Ok(false));
        assert_eq!(whose("--page boxes --of-the-tray"), Ok(true));
        for bad in ["--page javascript:x", "--window", "https://example.org", "--page boxes x"] {
            assert!(of(bad).is_err(), "{bad} was taken");
        }
    }
}
