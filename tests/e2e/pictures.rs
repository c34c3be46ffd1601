//! The pictures in `docs/screens`: every page of the window over samples, in light and in dark, and
//! whether the pages still look like that.
//!
//! What a page looks like now is kept among the artifacts as `pic-<name>.png`, and where that is not what
//! it was, as `differs-<name>.png`. When the new look is the one that is meant, take all of them over:
//!
//! ```text
//! AGENTBOX_UPDATE_PICTURES=1 scripts/test --only engine,build,image,e2e pictures::
//! for new in target/e2e/pic-*.png; do
//!   convert "$new" +dither -colors 256 -define png:compression-level=9 "docs/screens/${new##*/pic-}"
//! done
//! ```
//!
//! Nothing is compared to the last dot: letters are drawn a little differently by another Chromium.

use crate::world::World;
use agentbox_e2e::page::Page;
use agentbox_e2e::screen::artifacts;
use agentbox_e2e::webdriver::Browser;
use std::path::Path;
use std::process::Command;

const SIZE: (u32, u32) = (1100, 760);
/// How much of a picture may differ.
const MOST: f64 = 0.005;
/// How far apart two colours may be that count as one.
const FUZZ: &str = "8%";
const PAGES: [&str; 10] = [
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
];
/// The box of the samples whose page is pictured.
const BOX: &str = "b4f1c02a7";
const TABS: [&str; 8] =
    ["overview", "logs", "services", "terminal", "screen", "files", "network", "activity"];
const HOW: &str = "\
See target/e2e/pic-*.png for what they look like now, target/e2e/differs-*.png for where they differ, and the head of \
tests/e2e/pictures.rs for how to take that over.";

/// Says when everything is read and drawn: the page has done its steps, and then nothing changed for a
/// while. Some things come late on purpose, so a page that only just stood still is not done.
const SETTLED: &str = "
const done = arguments[0], QUIET_MS = 600;
let last = performance.now();
const all = { subtree: true, childList: true, attributes: true, characterData: true };
new MutationObserver(() => (last = performance.now())).observe(document, all);
const look = () => {
  const reads = document.querySelector('[aria-busy=true]') || document.body.innerText.includes('Checking…');
  const ready = 'pictured' in document.documentElement.dataset && !reads;
  if (ready && performance.now() - last > QUIET_MS) document.fonts.ready.then(() => done());
  else setTimeout(look, 50);
};
look();";

#[test]
fn every_page_looks_as_in_the_documentation() {
    let files = World::programs().join("page");
    let home = tempfile::tempdir().unwrap();
    let page = Page::serve(&files, home.path());
    let browser = Browser::chromium(SIZE.0, SIZE.1);
    browser.stand_still(SIZE.0, SIZE.1);
    let mut others = Vec::new();
    for (name, at) in pages() {
        for (scheme, ending) in [("light", ""), ("dark", "-dark")] {
            let name = format!("{name}{ending}");
            browser.prefer(scheme);
            // Another fragment alone loads nothing.
            browser.go_to("about:blank");
            browser.go_to(&page.pictured(&at));
            browser.execute_async(SETTLED);
            let new = browser.shoot(&format!("pic-{name}"));
            let kept = files.join(format!("screens/{name}.png"));
            if let Err(why) = alike(&kept, &new, &name) {
                others.push(format!("{name}: {why}"));
            }
        }
    }
    if std::env::var_os("AGENTBOX_UPDATE_PICTURES").is_some() {
        println!("not what they were: {others:#?}");
        return;
    }
    assert!(others.is_empty(), "{}\n{HOW}", others.join("\n"));
}

/// What of a page moves, or would when it changes: an element's class, and how.
const MOVES: &str = "
const still = (times) => times.split(', ').every((time) => parseFloat(time) === 0);
const found = [];
for (const one of document.querySelectorAll('*')) for (const part of ['', '::before', '::after']) {
  const style = getComputedStyle(one, part);
  if (!still(style.transitionDuration)) found.push(`${one.className}${part} changes in ${style.transitionDuration}`);
  if (style.animationName !== 'none' && !still(style.animationDuration)) found.push(`${one.className}${part} does ${style.animationName}`);
  if (style.scrollBehavior !== 'auto') found.push(`${one.className} scrolls ${style.scrollBehavior}`);
}
return found;";

/// Takes out of a page what it has for those who want less motion.
const FORGET: &str = "
for (const sheet of document.styleSheets) for (let at = sheet.cssRules.length - 1; at >= 0; at--) {
  if (sheet.cssRules[at].conditionText?.includes('prefers-reduced-motion')) sheet.deleteRule(at);
}";

#[test]
fn nothing_moves_for_who_wants_less_motion() {
    let home = tempfile::tempdir().unwrap();
    let page = Page::serve(&World::programs().join("page"), home.path());
    let browser = Browser::chromium(SIZE.0, SIZE.1);
    browser.prefer("light");
    let moves = || browser.execute(MOVES, &[]).as_array().unwrap().clone();
    let mut for_others = 0;
    for (name, at) in pages() {
        browser.go_to("about:blank");
        browser.go_to(&page.pictured(&at));
        browser.execute_async(SETTLED);
        assert_eq!(moves(), Vec::<serde_json::Value>::new(), "{name}");
        browser.execute(FORGET, &[]);
        for_others += moves().len();
    }
    assert!(for_others > 0, "nothing moves for anybody, so this proves nothing");
}

/// What each picture is called, and the page it shows.
fn pages() -> Vec<(String, String)> {
    let pages = PAGES.map(|page| (page.to_owned(), page.to_owned()));
    let tabs = TABS.map(|tab| (format!("box-{tab}"), format!("box/{BOX}/{tab}")));
    pages.into_iter().chain(tabs).collect()
}

/// Whether two pictures show the same, else why not.
fn alike(kept: &Path, new: &Path, name: &str) -> Result<(), String> {
    if !kept.is_file() {
        return Err("there is no picture of it in docs/screens".into());
    }
    let (was, is) = (size(kept), size(new));
    if was != is {
        return Err(format!("{is:?} dots large, and it was {was:?}"));
    }
    let difference = artifacts().join(format!("differs-{name}.png"));
    let share = differing(kept, new, &difference)? / (f64::from(is.0) * f64::from(is.1));
    if share > MOST {
        return Err(format!("{:.1} % of it differ", share * 100.0));
    }
    let _ = std::fs::remove_file(&difference);
    Ok(())
}

/// How many dots differ. Where they do is drawn into the third picture.
fn differing(kept: &Path, new: &Path, difference: &Path) -> Result<f64, String> {
    let mut compare = Command::new("compare");
    compare.args(["-metric", "AE", "-fuzz", FUZZ]).args([kept, new, difference]);
    let output = compare.output().expect("compare of ImageMagick");
    let said = String::from_utf8_lossy(&output.stderr);
    // Above one it could not compare them at all.
    let compared = output.status.code().is_some_and(|code| code <= 1);
    let count = said.split_whitespace().next().and_then(|number| number.parse().ok());
    count.filter(|_| compared).ok_or_else(|| format!("compare: {} {said}", output.status))
}

/// Width and height, as a PNG's first chunk says them.
#[track_caller]
fn size(png: &Path) -> (u32, u32) {
    let bytes = std::fs::read(png).unwrap();
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}
