//! The command line, as `agentbox-desktop` writes it: `[--page PAGE]`.

use crate::page::Page;

/// Where to open; fails in words.
pub fn page(args: impl Iterator<Item = String>) -> Result<Page, String> {
    let args: Vec<String> = args.collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => Ok(Page::inbox()),
        ["--page", page] => page.parse::<Page>().map_err(|bad| bad.to_string()),
        ["--page"] => Err("--page needs a page.".into()),
        [first, ..] => Err(format!("{first:?} is not an argument of this program.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_ours_or_none() {
        let of = |line: &str| page(line.split_whitespace().map(str::to_owned));
        assert_eq!(of(""), Ok(Page::inbox()));
        assert_eq!(of("--page boxes"), Ok(Page::Boxes));
        assert_eq!(of("--page box/b0a1b2c3d").unwrap().to_string(), "box/b0a1b2c3d");
        assert_eq!(of("--page"), Err("--page needs a page.".into()));
        for bad in ["--page javascript:x", "--window", "https://example.org", "--page boxes x"] {
            assert!(of(bad).is_err(), "{bad} was taken");
        }
    }
}
